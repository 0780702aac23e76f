"""The dirt channel: functions that take clean columns and return the dirty ones of a dump.

Rates come from `SimulationSettings`; no function knows a platform's form. A reader still recognises every dirty title.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from simulator.randomness import draw_flags
from simulator.romanised import romanise

if TYPE_CHECKING:
    import numpy.typing as npt

    from simulator.settings import SimulationSettings

SHORTEST_TYPO = 5
"""Characters: in shorter names one wrong letter makes another word."""
OUTLIER_SECONDS = (5, 40)
JUNK_ISRCS = ("000000000000", "N/A", "UNKNOWN", "ISRC", "XX0000000000", "US-123-45")
POOL_MARKS = (" (Dirty)", " (Explicit)", " (Main)")
BOGUS_DATES = ("0000", "0000-00-00", "1900-01-01", "2011-13-05", "0217-03-01", "9999-99-99")
_FULL_WIDTH = {chr(code): chr(code + 0xFEE0) for code in range(0x21, 0x7F)}
_NEIGHBOURS = "esairtonlducmpghvfbqjxyzkw"


def mistype(text: str, kind: int, place: float, letter: int) -> str:
    """Apply one edit: 0 substitutes, 1 deletes, 2 inserts, 3 transposes; other scripts get a letter of their own."""
    position = 1 + int(place * (len(text) - 2))
    other = _NEIGHBOURS[letter % len(_NEIGHBOURS)] if text.isascii() else text[letter % len(text)]
    if kind == 0:
        return text[:position] + other + text[position + 1 :]
    if kind == 1:
        return text[:position] + text[position + 1 :]
    if kind == 2:  # noqa: PLR2004 - the four kinds are listed above
        return text[:position] + other + text[position:]
    return text[: position - 1] + text[position] + text[position - 1] + text[position + 1 :]


def _add_typos(texts: pl.Series, rng: np.random.Generator, share: float) -> pl.Series:
    hit = draw_flags(rng, len(texts), share) & (texts.str.len_chars().fill_null(0).to_numpy() >= SHORTEST_TYPO)
    rows = np.nonzero(hit)[0]
    kinds, places, letters = rng.integers(0, 4, len(rows)), rng.random(len(rows)), rng.integers(0, 997, len(rows))
    edited = [
        mistype(text, kind, place, letter)
        for text, kind, place, letter in zip(texts.gather(rows).to_list(), kinds.tolist(), places.tolist(), letters.tolist(), strict=True)
    ]
    # `scatter` writes into the series it is called on: without the clone the clean names would be lost for all who come later.
    return texts.clone().scatter(rows, pl.Series(edited, dtype=pl.String)) if len(rows) else texts


def corrupt_titles(texts: pl.Series, rng: np.random.Generator, settings: SimulationSettings) -> pl.Series:
    """Return titles with typing errors, other case, other Unicode forms and other punctuation, each at its rate; null stays null."""
    count = len(texts)
    texts = _reword_titles(_add_typos(texts, rng, settings.typos), rng, settings)
    # Three independent draws: a title may be in capitals, decomposed and without an apostrophe at once.
    casing, form, marks = rng.random(count), rng.random(count), rng.random(count)
    text = pl.col("text")
    case, unicode_form, mark = settings.casing, settings.unicode_forms, settings.punctuation
    frame = pl.DataFrame({"text": texts, "casing": casing, "form": form, "marks": marks}).with_columns(
        pl.when(pl.col("casing") < case * 0.5)
        .then(text.str.to_uppercase())
        .when(pl.col("casing") < case)
        .then(text.str.to_lowercase())
        .otherwise(text)
    )
    frame = frame.with_columns(
        pl.when(pl.col("marks") < mark * 0.3)
        .then(text.str.replace_all("'", "\u2019", literal=True))
        .when(pl.col("marks") < mark * 0.5)
        .then(text.str.replace_all("'", "", literal=True))
        .when(pl.col("marks") < mark * 0.7)
        .then(text.str.replace_all(" ", "  ", literal=True))
        .when(pl.col("marks") < mark * 0.85)
        .then(text.str.replace_all(" & ", " and ", literal=True))
        .when(pl.col("marks") < mark)
        .then(text + " ")
        .otherwise(text)
    )
    return frame.select(
        pl.when(pl.col("form") < unicode_form * 0.6)
        .then(text.str.normalize("NFD"))
        .when(pl.col("form") < unicode_form * 0.75)
        .then(text.str.replace_many(_FULL_WIDTH))
        .when(pl.col("form") < unicode_form)
        .then(text.str.replace(" ", "\u00a0", literal=True))
        .otherwise(text)
    ).to_series()


def _reword_titles(texts: pl.Series, rng: np.random.Generator, settings: SimulationSettings) -> pl.Series:
    """Return titles in Latin letters, with a censored word, or with a mark of DJ records."""
    fate, text = pl.col("fate"), pl.col("text")
    censored = settings.romanised_titles + settings.censored_titles
    pool = censored + settings.pool_titles
    return (
        pl.DataFrame(
            {
                "text": texts,
                "fate": rng.random(len(texts)),
                "mark": pl.Series(POOL_MARKS).gather(rng.integers(0, len(POOL_MARKS), len(texts))),
            }
        )
        .select(
            pl.when(fate < settings.romanised_titles)
            .then(romanise(text))
            .when(fate < censored)
            .then(text.str.replace(r"^(\w)\w(\w+)", "$1*$2"))
            .when(fate < pool)
            .then(text + pl.col("mark"))
            .otherwise(text)
        )
        .to_series()
    )


def spell_names(names: pl.Series, rng: np.random.Generator, settings: SimulationSettings) -> pl.Series:
    """Return artist names as a platform spells them: a share with a typo or other case, some with `&` written out."""
    count = len(names)
    names = _add_typos(names, rng, settings.artist_spelling / 2)
    text = pl.col("text")
    return (
        pl.DataFrame({"text": names, "casing": rng.random(count), "joins": rng.random(count)})
        .select(
            pl.when(pl.col("casing") < settings.artist_spelling / 2)
            .then(text.str.to_uppercase())
            .when(pl.col("joins") < settings.artist_and)
            .then(text.str.replace(" & ", " and ", literal=True))
            .otherwise(text)
        )
        .to_series()
    )


def corrupt_durations(
    milliseconds: npt.NDArray[np.int64], rng: np.random.Generator, settings: SimulationSettings, jitter_ms: float
) -> npt.NDArray[np.int64]:
    """Return durations as measured by another encoder, a few of them far off (fade-outs, silence, another master)."""
    count = len(milliseconds)
    off = rng.uniform(*OUTLIER_SECONDS, count) * 1000 * rng.choice([-1, 1], count)
    moved = milliseconds + rng.normal(0, jitter_ms, count) + np.where(draw_flags(rng, count, settings.duration_outliers), off, 0)
    return moved.clip(min=15_000).round().astype(np.int64)


def corrupt_isrcs(
    true: pl.Series,
    second: pl.Series,
    releases: npt.NDArray[np.int64],
    rng: np.random.Generator,
    settings: SimulationSettings,
    missing: float,
) -> pl.Series:
    """Return the code of each row: the true one, a second, a stranger's, a neighbour's, the release's first, a broken one, none."""
    count = len(true)
    if not count:
        return true
    neighbour = np.minimum(np.arange(count) + 1, count - 1)
    # The last track of a release keeps its own code.
    neighbour = np.where(releases[neighbour] == releases, neighbour, np.arange(count))
    first = np.unique(releases, return_index=True)[1][np.unique(releases, return_inverse=True)[1]]
    # Drawn for each release: all its tracks carry the code of the first.
    sprayed = draw_flags(rng, int(releases.max()) + 1, settings.sprayed_isrc)[releases]
    # One draw decides the fate of a row, so its rates add up and no two faults meet in one code.
    fate, form = rng.random(count), rng.integers(0, 4 + len(JUNK_ISRCS), count)
    wrong, swapped = settings.wrong_isrc, settings.wrong_isrc + settings.swapped_isrc
    broken = swapped + settings.malformed_isrc
    frame = pl.DataFrame(
        {
            "true": true,
            "second": second,
            "stranger": true.gather(rng.integers(0, count, count)),
            "neighbour": true.gather(neighbour),
            "first": true.gather(first),
            "is_sprayed": sprayed,
            "fate": fate,
            "form": form,
            "junk": pl.Series(JUNK_ISRCS).gather((form - 4).clip(min=0)),
            "is_missing": draw_flags(rng, count, missing),
            "takes_second": draw_flags(rng, count, 0.4),
        }
    )
    code, fate_column, form_column = pl.col("true"), pl.col("fate"), pl.col("form")
    malformed = (
        pl.when(form_column == 0)
        .then(pl.concat_str(code.str.slice(0, 2), code.str.slice(2, 3), code.str.slice(5, 2), code.str.slice(7), separator="-"))
        .when(form_column == 1)
        .then(code.str.to_lowercase())
        .when(form_column == 2)  # noqa: PLR2004 - forms are numbered in the order of their branches
        .then(code.str.slice(0, 11))
        .when(form_column == 3)  # noqa: PLR2004
        .then(pl.lit(" ") + code + pl.lit(" "))
        .otherwise(pl.col("junk"))
    )
    return frame.select(
        pl.when(pl.col("is_missing"))
        .then(None)
        .when("is_sprayed")
        .then(pl.col("first"))
        .when(fate_column < wrong)
        .then(pl.col("stranger"))
        .when(fate_column < swapped)
        .then(pl.col("neighbour"))
        .when(fate_column < broken)
        .then(malformed)
        .when(pl.col("second").is_not_null() & pl.col("takes_second"))
        .then(pl.col("second"))
        .otherwise(code)
    ).to_series()


def corrupt_gtins(codes: pl.Series, rng: np.random.Generator, settings: SimulationSettings) -> pl.Series:
    """Return barcodes (GTIN-14): some missing, some of another release, some with a wrong check digit or cut."""
    count = len(codes)
    reused = np.where(draw_flags(rng, count, settings.reused_gtin), rng.integers(0, max(1, count), count), np.arange(count))
    frame = pl.DataFrame({"code": codes.gather(pl.Series(reused)), "fate": rng.random(count), "form": rng.random(count)})
    code = pl.col("code")
    wrong_digit = code.str.slice(0, 13) + ((code.str.slice(13, 1).cast(pl.Int64) + 1) % 10).cast(pl.String)
    return frame.select(
        pl.when(pl.col("fate") < settings.missing_gtin)
        .then(None)
        .when(pl.col("fate") < settings.missing_gtin + settings.malformed_gtin)
        .then(pl.when(pl.col("form") < 0.5).then(wrong_digit).otherwise(code.str.slice(0, 6)))  # noqa: PLR2004 - a coin
        .otherwise(code)
    ).to_series()


def corrupt_dates(dates: pl.DataFrame, rng: np.random.Generator, settings: SimulationSettings) -> pl.DataFrame:
    """Return true year, month, day as text, precision (day, month or year), year, month, day as the platform knows them.

    A share is moved by up to a month (on-store date against release date), a share loses its day or month, a share is impossible; of the
    partial ones half pretend to be exact (`-01-01`).
    """
    count = len(dates)
    year, month, day = (dates[name].to_numpy().copy() for name in ("year", "month", "day"))
    day = np.where(draw_flags(rng, count, settings.shifted_dates), rng.integers(1, 29, count), day)
    fate, fake = rng.random(count), rng.random(count)
    is_year = fate < settings.partial_dates * 0.95
    is_month = ~is_year & (fate < settings.partial_dates)
    pretends = is_year & (fake < 0.5)  # noqa: PLR2004 - half of them
    month = np.where(is_year, np.where(pretends, 1, 0), month)
    day = np.where(is_year, np.where(pretends, 1, 0), np.where(is_month, 0, day))
    bogus = draw_flags(rng, count, settings.bogus_dates)
    frame = pl.DataFrame(
        {
            "year": year,
            "month": month,
            "day": day,
            "is_bogus": bogus,
            "bogus": pl.Series(BOGUS_DATES).gather(rng.integers(0, len(BOGUS_DATES), count)),
        }
    )
    number = pl.col("year").cast(pl.String).str.zfill(4)
    text = (
        pl.when(pl.col("is_bogus"))
        .then("bogus")
        .when(pl.col("month") == 0)
        .then(number)
        .when(pl.col("day") == 0)
        .then(pl.concat_str(number, pl.col("month").cast(pl.String).str.zfill(2), separator="-"))
        .otherwise(
            pl.concat_str(number, pl.col("month").cast(pl.String).str.zfill(2), pl.col("day").cast(pl.String).str.zfill(2), separator="-")
        )
    )
    precision = (
        pl.when(text.str.len_chars() == 4)  # noqa: PLR2004 - YYYY
        .then(pl.lit("year"))
        .when(text.str.len_chars() == 7)  # noqa: PLR2004 - YYYY-MM
        .then(pl.lit("month"))
        .otherwise(pl.lit("day"))
    )
    return frame.select(text.alias("text"), precision.alias("precision"), "year", "month", "day", "is_bogus")
