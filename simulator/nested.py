"""Nested columns that several platforms share: credit lists, drawn genres, durations in words, slugs."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np
import polars as pl

from simulator.genre_words import MAINS
from simulator.randomness import draw_flags
from simulator.songs import NOBODY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from simulator.settings import SimulationSettings

Entry = TypeVar("Entry")


def build_credit_list(credit_columns: Sequence[str], entry: Callable[[str], pl.Expr]) -> pl.Expr:
    """Return a list of `entry(credit)` over the credits of a row; `<credit>` is the artist's number, `<credit>_name` the name."""
    return pl.concat_list([pl.when(pl.col(credit) != NOBODY).then(entry(credit)) for credit in credit_columns]).list.drop_nulls()


def draw_main_strings(
    mains: npt.NDArray[np.int64],
    choices: Mapping[str, Sequence[Entry]],
    rng: np.random.Generator,
    settings: SimulationSettings,
    *,
    always: bool = False,
) -> tuple[list[Entry], npt.NDArray[np.int64]]:
    """Draw one of a platform's strings for each main genre: (all strings, position per row).

    The position is -1 where the platform has no string or, unless `always`, omits it. A share (`genre_noise`) gets a string of another main
    genre.
    """
    flat: list[Entry] = []
    starts, sizes = np.zeros(len(MAINS), dtype=np.int64), np.zeros(len(MAINS), dtype=np.int64)
    for number, (main, _) in enumerate(MAINS):
        # Strings of all genres in one list: a row then draws by one number.
        starts[number], sizes[number] = len(flat), len(choices.get(main, ()))
        flat.extend(choices.get(main, ()))
    count = len(mains)
    shown = np.where(draw_flags(rng, count, settings.genre_noise), rng.integers(0, len(MAINS), count), mains)
    # Noise must not choose a genre for which this platform has no word.
    shown = np.where(sizes[shown] == 0, mains, shown)
    drawn = starts[shown] + (rng.random(count) ** 1.5 * sizes[shown]).astype(np.int64)
    return flat, np.where((sizes[shown] == 0) | draw_flags(rng, count, 0.0 if always else settings.missing_genre), -1, drawn)


def format_iso_duration(milliseconds: pl.Expr) -> pl.Expr:
    """Return `PT4M12S`, `PT1H2M3S`, in whole seconds; null stays null."""
    seconds = (milliseconds / 1000).round().cast(pl.Int64)
    hours, minutes = seconds // 3600, seconds % 3600 // 60
    return pl.concat_str(
        pl.lit("PT"),
        pl.when(hours > 0).then(hours.cast(pl.String) + "H").otherwise(pl.lit("")),
        pl.when(minutes > 0).then(minutes.cast(pl.String) + "M").otherwise(pl.lit("")),
        (seconds % 60).cast(pl.String),
        pl.lit("S"),
    )


def format_clock_duration(milliseconds: pl.Expr) -> pl.Expr:
    """Return `M:SS` or `H:MM:SS`, in whole seconds; null stays null."""
    seconds = (milliseconds / 1000).round().cast(pl.Int64)
    two = (seconds % 60).cast(pl.String).str.zfill(2)
    minutes = seconds // 60
    return (
        pl.when(minutes >= 60)  # noqa: PLR2004 - minutes of an hour
        .then(pl.concat_str(minutes // 60, (minutes % 60).cast(pl.String).str.zfill(2), two, separator=":"))
        .otherwise(pl.concat_str(minutes, two, separator=":"))
    )


def format_written_duration(milliseconds: pl.Expr, notation: pl.Expr, usual: pl.Expr) -> pl.Expr:
    """Return a duration as people type it: `notation` 0 is `usual`, then `4m 5sec`, `245000`, `4.08` (minutes), `04:05`, `245`, `4'05"`."""
    seconds = (milliseconds / 1000).round().cast(pl.Int64)
    minutes, rest = (seconds // 60).cast(pl.String), seconds % 60
    two = rest.cast(pl.String).str.zfill(2)
    written = (
        pl.concat_str(minutes, pl.lit("m "), rest.cast(pl.String), pl.lit("sec")),
        milliseconds.cast(pl.String),
        (milliseconds / 60_000).round(2).cast(pl.String),
        pl.concat_str(minutes.str.zfill(2), two, separator=":"),
        seconds.cast(pl.String),
        pl.concat_str(minutes, pl.lit("'"), two, pl.lit('"')),
    )
    out = usual
    for number, text in enumerate(written, 1):
        out = pl.when(notation == number).then(text).otherwise(out)
    return out


def build_slug(text: pl.Expr) -> pl.Expr:
    """Return lower-case words joined by hyphens; `-` when no Latin letter remains."""
    plain = (
        text.str.normalize("NFKD").str.replace_all(r"\p{M}", "").str.to_lowercase().str.replace_all(r"[^a-z0-9]+", "-").str.strip_chars("-")
    )
    return pl.when(plain == "").then(pl.lit("-")).otherwise(plain)
