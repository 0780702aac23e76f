"""The rule by which a record of the harsh world counts as destroyed: what it says fits another recording as well as its own.

A record with a true code is decidable. Any other says some of: title, artist, version, album, and a length within a bound. It is destroyed
if another recording of its block has the same of all of them. Damage that a reader sees through (typing errors, case, word order, another
script, a swapped field) leaves a field said; a cut title says its first characters; a rounded length says less; a wrong one nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from simulator.cast import make_cast
from simulator.regimes import draw_regime
from simulator.songs import NOBODY
from simulator.spoilt_values import NO_LENGTH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simulator.rows import PlatformRows, World
    from simulator.settings import SimulationSettings

_SAID = ("says_artist", "says_version", "says_album")
WHOLE, CUT, MOVEMENT, NO_TITLE = range(4)
"""Parts of a title that a record says."""


def describe_placements(settings: SimulationSettings, world: World) -> pl.DataFrame:
    """Return what a complete record would say of each place on a release: the true fields, case ignored."""
    placements, recordings, songs = world.laid.placements, world.made.recordings, world.made.songs
    rows = recordings[placements["recording"].to_numpy()]
    song = songs[rows["song"].to_numpy()]
    names = make_cast(settings).names.gather(song["artist"])
    frame = pl.concat(
        [placements.select("release"), rows.select("true_id", "kind", "before", "after", "place", "remixer", true_ms="duration_ms")],
        how="horizontal",
    )
    place = pl.when(pl.col("before").str.ends_with(" ") & (pl.col("remixer") == NOBODY)).then("place").otherwise(pl.lit(""))
    return frame.select(
        "true_id",
        "true_ms",
        album=pl.col("release"),
        title=song["title"].str.to_lowercase(),
        movement=song["movement"].str.to_lowercase(),
        artist=names.str.to_lowercase(),
        version=pl.concat_str("before", place, "after", pl.col("remixer").cast(pl.String), separator="|"),
    )


def add_decidability(settings: SimulationSettings, source: PlatformRows, rows: pl.DataFrame, world: World) -> pl.DataFrame:
    """Return rows with `is_decidable`, and without the columns of what they say."""
    known = describe_placements(settings, world)
    own = known.select("true_id", "true_ms", "title", "movement", "artist", "version").unique("true_id")
    cut_at = draw_regime(settings.seed, source.platform).cut_at
    codes = pl.any_horizontal(pl.col("isrc").eq_missing(pl.col(name)) for name in ("true_isrc", "second_isrc", "edition_isrc"))
    recordings = world.made.recordings.select("true_id", true_isrc="isrc")
    records = (
        rows.with_row_index("row")
        .join(recordings, on="true_id", how="left", maintain_order="left")
        .filter(~(pl.col("isrc").is_not_null() & codes))
        .select(
            "row",
            "true_id",
            "length_within",
            "says_artist",
            "says_version",
            album="release",
            says_album=~pl.col("dirt_missing_album"),
            part=pl.when(~pl.col("says_title"))
            .then(NO_TITLE)
            .when("dirt_movement_title")
            .then(MOVEMENT)
            .when(pl.col("title_left") >= 0)
            .then(CUT)
            .otherwise(WHOLE),
        )
        .join(own, on="true_id", how="left", maintain_order="left")
    )
    groups = records.group_by("part", *_SAID, maintain_order=True)
    rivals = []
    for (part, *said), group in groups:
        fields = [name.removeprefix("says_") for name, is_said in zip(_SAID, said, strict=True) if is_said]
        rivals.append(_find_rivals(group, known, [*_cut_title(part, cut_at), *fields]))
    destroyed = pl.concat([pl.DataFrame(schema={"row": pl.UInt32}), *rivals])["row"]
    return rows.with_columns(is_decidable=~pl.int_range(pl.len(), dtype=pl.UInt32).is_in(destroyed.implode())).drop(
        "says_title", "says_artist", "says_version", "title_left", "length_within"
    )


def _cut_title(part: object, cut_at: int) -> list[pl.Expr]:
    """Return the title as far as a record says it."""
    whole = pl.col("title")
    if part == CUT:
        return [whole.str.slice(0, cut_at)]
    if part == MOVEMENT:
        return [pl.col("movement")]
    return [whole] if part == WHOLE else []


def _find_rivals(records: pl.DataFrame, known: pl.DataFrame, said: Sequence[pl.Expr | str]) -> pl.DataFrame:
    """Return the rows of records that another recording fits as well, by equal fields `said` and by length."""
    keys = [(pl.col(field) if isinstance(field, str) else field).alias(f"key_{number}") for number, field in enumerate(said)]
    if not keys:
        # A length alone fits countless recordings.
        return records.select("row")
    rivals = known.select("true_id", "true_ms", *keys).unique()
    return (
        records.select("row", "true_id", "true_ms", "length_within", *keys)
        .join(rivals, on=[f"key_{number}" for number in range(len(keys))], how="inner", suffix="_other")
        .filter(pl.col("true_id") != pl.col("true_id_other"))
        .filter(
            (pl.col("length_within") == NO_LENGTH)
            # Twice the bound, because the other record may err as much.
            | ((pl.col("true_ms") - pl.col("true_ms_other")).abs() <= 2 * pl.col("length_within"))
        )
        .select("row")
        .unique()
    )
