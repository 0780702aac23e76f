"""Rows of the harsh world whose words are in the wrong field: artist in the title, track number, album, swapped or missing artists.

`damage_rows` is the last step before a platform puts its rows into its form. A damaged artist name is an artist of its own there, a
*stray*, as in shops that make an artist of every new spelling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from simulator.cast import make_cast, spell_platform_names
from simulator.damaged_names import apply_name_damage
from simulator.decidability import add_decidability
from simulator.randomness import draw_flags, make_generator
from simulator.regimes import draw_regime
from simulator.rows import make_block
from simulator.songs import NOBODY
from simulator.world_part import find_first_number

if TYPE_CHECKING:
    import numpy.typing as npt

    from simulator.rows import PlatformRows
    from simulator.settings import SimulationSettings

UNKNOWN_ARTISTS = ("Unknown Artist", "<unknown>", "Unknown", "N/A", "Artist")
JOINS = (" feat. ", " & ", ", ", " / ", " x ", " ft ", "; ", " und ")
ARTIST_FORMS = ("{artist} - {title}", "{title} / {artist}", "{artist}: {title}", "{title} by {artist}", "{artist} \u2013 {title}")
NUMBER_FORMS = ("{n}. {title}", "{n} {title}", "{n} - {title}", "{side} {title}", "{n}-{file}", "Track {n}: {title}")
ALBUM_FORMS = ("{title} ({album})", "{title} [{album}]", "{album} - {title}", '{title} (from "{album}")')
PLACEHOLDERS = ("Track {n}", "Untitled", "[untitled]", "Audio Track {n}", "-")
MIXES = (
    "placeholder_title",
    "artist_in_title",
    "number_in_title",
    "album_in_title",
    "swapped_fields",
    "missing_artist",
    "unknown_artist",
    "joined_credit",
)
"""Faults of which a row has one at most, in the order of their draw."""


def damage_rows(settings: SimulationSettings, source: PlatformRows, rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows as the platform's regime leaves them, with `dirt_*` for each fault and the columns of what they still say.

    Those are says_title, says_artist, says_version (booleans), title_left (characters of the title, -1 for all) and length_within.
    """
    regime = draw_regime(settings.seed, source.platform)
    rng = make_generator(settings.seed, f"damage/{source.platform}", source.block)
    spellings = spell_platform_names(settings, source.platform)
    composers = rows.select(pl.when(pl.col("composer") != NOBODY).then("composer")).to_series()
    rows = rows.with_columns(composer_name=spellings.gather(composers))
    rows = _rewrite_movements(rows, regime.movement_titles, regime.composer_credits, rng).with_columns(known_name="artist_name")
    titles, title_damage, left = apply_name_damage(rows["title"], regime, regime.typing_errors, rng)
    names, name_damage, _ = apply_name_damage(rows["artist_name"], regime, regime.artist_typing_errors, rng)
    cut = (left >= 0) & (rows["title"].str.len_chars().to_numpy() > left)
    rows = rows.with_columns(titles.alias("title"), names.alias("artist_name")).with_columns(
        [pl.Series(f"dirt_{name}", hit) for name, hit in title_damage.items()]
        + [pl.Series(f"dirt_artist_{name}", hit) for name, hit in name_damage.items()],
        title_left=pl.Series(np.where(cut, left, -1)),
    )
    rates = (
        regime.placeholder_titles,
        regime.artist_in_title,
        regime.number_in_title,
        regime.album_in_title,
        regime.swapped_fields,
        regime.missing_artists,
        regime.unknown_artists,
        regime.joined_credits,
    )
    fault = np.searchsorted(np.cumsum(rates), rng.random(len(rows)), side="right")
    rows = _mix_fields(rows, source, fault, rng)
    rows = _number_strays(settings, source.block, rows)
    rows = rows.with_columns(
        says_title=~pl.col("dirt_placeholder_title"),
        # A release that names its artist says whose its tracks are.
        says_artist=~(pl.col("dirt_missing_artist") | pl.col("dirt_unknown_artist")) | pl.col("has_release_artist"),
        # A cut title loses its last words first, and these are the version's.
        says_version=~(
            pl.col("dirt_missing_version")
            | pl.col("dirt_placeholder_title")
            | ((pl.col("title_left") >= 0) & (pl.col("kind") != "original"))
        ),
    )
    return add_decidability(settings, source, rows, make_block(settings, source.block))


def _rewrite_movements(rows: pl.DataFrame, movement: float, composer: float, rng: np.random.Generator) -> pl.DataFrame:
    """Return movements of works by their own heading alone, or credited to their composer first, each in a share."""
    count = len(rows)
    # A version would come after the whole title, so only plain performances lose it.
    is_work = pl.col("movement").is_not_null() & (pl.col("kind") == "original")
    frame = rows.with_columns(
        dirt_movement_title=is_work & pl.Series(draw_flags(rng, count, movement)),
        dirt_composer_credit=is_work & pl.Series(draw_flags(rng, count, composer)) & (pl.col("composer") != pl.col("artist")),
    )
    by_composer = pl.col("dirt_composer_credit")
    return frame.with_columns(
        title=pl.when("dirt_movement_title").then("movement").otherwise("title"),
        artist=pl.when(by_composer).then("composer").otherwise("artist"),
        artist_name=pl.when(by_composer).then("composer_name").otherwise("artist_name"),
        # The performer comes after the composer.
        second_artist=pl.when(by_composer).then("artist").otherwise("second_artist"),
        second_artist_name=pl.when(by_composer).then("artist_name").otherwise("second_artist_name"),
    )


def _mix_fields(rows: pl.DataFrame, source: PlatformRows, fault: npt.NDArray[np.int64], rng: np.random.Generator) -> pl.DataFrame:
    count = len(rows)
    albums = source.releases.select(
        "release", pl.col("title").alias("album"), pl.col("is_nameless"), has_release_artist=pl.col("artist") != NOBODY
    )
    frame = rows.join(albums, on="release", how="left", maintain_order="left").with_columns(
        pl.Series(f"dirt_{name}", fault == number) for number, name in enumerate(MIXES)
    )
    frame = frame.with_columns(
        # Nothing to join, and nothing to say about an album without a name.
        dirt_joined_credit=pl.col("dirt_joined_credit") & ((pl.col("guest") != NOBODY) | (pl.col("second_artist") != NOBODY)),
        dirt_album_in_title=pl.col("dirt_album_in_title") & ~pl.col("is_nameless"),
        dirt_missing_album=pl.col("is_nameless"),
        n=pl.col("track").cast(pl.String).str.zfill(2),
        side=pl.concat_str(pl.lit(["A", "B"]).list.get((pl.col("track") - 1) // 6 % 2), (pl.col("track") - 1) % 6 + 1),
        file=pl.concat_str(pl.col("artist_name"), pl.col("title"), separator="-").str.to_lowercase().str.replace_all(r"\s+", "_"),
        join=pl.Series(JOINS).gather(rng.integers(0, len(JOINS), count)),
        unknown=pl.Series(UNKNOWN_ARTISTS).gather(rng.integers(0, len(UNKNOWN_ARTISTS), count)),
        field=pl.Series(("artist", "placeholder", "nobody")).gather(rng.integers(0, 3, count)),
    )
    fields = {
        name: pl.col(column)
        for name, column in {"artist": "artist_name", "title": "title", "n": "n", "side": "side", "file": "file", "album": "album"}.items()
    }
    forms = {
        "artist_in_title": ARTIST_FORMS,
        "number_in_title": NUMBER_FORMS,
        "album_in_title": ALBUM_FORMS,
        "placeholder_title": PLACEHOLDERS,
    }
    title = pl.col("title")
    for name, patterns in forms.items():
        choice = rng.integers(0, len(patterns), count)
        frame = frame.with_columns(pl.Series("choice", choice).alias(f"choice_{name}"))
        for number, pattern in enumerate(patterns):
            title = pl.when(pl.col(f"dirt_{name}") & (pl.col(f"choice_{name}") == number)).then(_fill(pattern, fields)).otherwise(title)
    title = pl.when("dirt_swapped_fields").then("artist_name").otherwise(title)
    guests = [pl.when(pl.col(credit) != NOBODY).then(f"{credit}_name") for credit in ("second_artist", "guest")]
    joined = pl.concat_str([pl.col("artist_name"), *[pl.col("join") + guest for guest in guests]], ignore_nulls=True)
    # A row that names its artist in the title has it in its field too, or nobody there, or a placeholder.
    unknown = pl.col("dirt_unknown_artist") | (pl.col("dirt_artist_in_title") & (pl.col("field") == "placeholder"))
    missing = pl.col("dirt_missing_artist") | (pl.col("dirt_artist_in_title") & (pl.col("field") == "nobody"))
    shown = (
        pl.when("dirt_swapped_fields").then("title").when(unknown).then("unknown").when(missing).then(None)
        .when("dirt_joined_credit").then(joined).otherwise("artist_name")
    )  # fmt: skip
    alone = unknown | missing | pl.col("dirt_joined_credit") | pl.col("dirt_swapped_fields")
    others = ("second_artist", "guest", "second_guest")
    frame = frame.with_columns(
        [pl.when(alone).then(NOBODY).otherwise(credit).alias(credit) for credit in others]
        + [pl.when(alone).then(None).otherwise(f"{credit}_name").alias(f"{credit}_name") for credit in others],
        title=title,
        artist_name=shown,
        artist=pl.when(missing).then(NOBODY).otherwise("artist"),
    )
    return frame.drop("album", "is_nameless", "n", "side", "file", "join", "unknown", "field", *(f"choice_{name}" for name in forms))


def _fill(pattern: str, fields: dict[str, pl.Expr]) -> pl.Expr:
    pieces = pattern.replace("{", "\0{").replace("}", "}\0").split("\0")
    # A row without artist keeps the rest of the pattern.
    return pl.concat_str([fields[piece[1:-1]].fill_null("") if piece.startswith("{") else pl.lit(piece) for piece in pieces if piece])


def _number_strays(settings: SimulationSettings, block: int, rows: pl.DataFrame) -> pl.DataFrame:
    """Give every damaged artist name a number of its own, one for each spelling in the block."""
    first = len(make_cast(settings).names) + find_first_number(settings, block)
    stray = (pl.col("artist") != NOBODY) & pl.col("artist_name").ne_missing(pl.col("known_name"))
    rows = rows.with_columns(is_stray=stray)
    numbers = rows.filter("is_stray").select("artist_name").unique(maintain_order=True).with_row_index("stray", offset=first)
    return (
        rows.join(numbers.select("artist_name", pl.col("stray").cast(pl.Int64)), on="artist_name", how="left", maintain_order="left")
        .with_columns(artist=pl.when("is_stray").then("stray").otherwise("artist"))
        .drop("stray", "is_stray", "known_name")
    )


def list_strays(settings: SimulationSettings, rows: pl.DataFrame) -> pl.DataFrame:
    """Return artist, name: the strays among the artists of rows; none in a plain world."""
    strays = rows.filter(pl.col("artist") >= len(make_cast(settings).names))
    return strays.select("artist", name="artist_name").unique(maintain_order=True)
