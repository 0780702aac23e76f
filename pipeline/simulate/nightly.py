"""What a night changes: the staged tables of one day -> those of the next, a small share of the rows changed in every way that matters.

Every change is a function of the row and the number of the night alone (a hash of platform and id), so a part of a table is changed without
a look at any other, and the same night gives the same bytes. Besides plain corrections there are changes whose effect lies on rows that
stay as they are: a code that joins two recordings, its leaving that parts them, an artist who makes a joined name readable. What such a
change needs is laid one night ahead; night 0 is the eve that lays it for night 1.

Add a kind of change here when linkage learns something that a kind could upset. Dirt of a single day belongs to the simulator's settings.
"""

from __future__ import annotations

import shutil
import zlib
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from catalog_store.platforms import SOURCES
from catalog_store.tables import TABLES
from catalog_store.tables.files import TableWriter, parts, read_table, write_table
from pipeline.simulate.randomness import mixed

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.paths import BuildPaths

SHARE = 0.003
"""Rows that a night changes."""
DRAWN = {"retitled": 0.21, "recoded": 0.16, "retimed": 0.14, "removed": 0.12, "added": 0.14, "uncredited": 0.03}
"""Kinds of which every night draws rows anew; each a share of the rows changed."""
BY_TURN = 0.04
"""Rows whose turn comes in one night, as a share of the rows changed: `twinned` on its eve, `joined` on the day, `parted` a night later."""
READABLE = 0.02
"""The same for `obscured` (on the eve) and `explained`."""
RENAMED = 0.02
"""Rows of artists who take another name."""

TWIN_GAP_MS, TWIN_GAP_RANGE_MS = 9_000, 3_000
"""How much longer a twin is than its row: another recording by duration, one recording with it once they share a code."""
ADDED = "~"
"""Separates the id of a row from the mark of the rows made out of it."""


def nightly_changes(before: BuildPaths, after: BuildPaths, *, night: int = 1, share: float = SHARE) -> pl.DataFrame:
    """Write the staging tables of the day after; `before` stays as it is.

    Tables other than recordings and artists are taken over, less what hangs on removed records; `intake` is not kept in step. Night 0 makes
    what night 1 needs; count on from 1 to make several nights.

    Args:
        before: catalog root whose platforms are staged.
        after: another catalog root; staging tables there are replaced.
        night: number of the night.
        share: share of the rows to change, below 0.1.

    Returns:
        platform, external_id, change (a kind; `renamed` rows are those whose artist took another name), sorted, one row per changed record.
    """
    found = [_change_platform(before.staging(key), after.staging(key), night, share) for key in SOURCES if before.staging(key).is_dir()]
    empty = pl.DataFrame(schema={"platform": pl.String, "external_id": pl.String, "change": pl.String})
    return pl.concat([empty, *found]).sort("platform", "external_id")


def _change_platform(before: Path, after: Path, night: int, share: float) -> pl.DataFrame:
    shutil.rmtree(after, ignore_errors=True)
    shutil.copytree(before, after, ignore=shutil.ignore_patterns("source_recording", "source_artist"))
    artists = read_table(TABLES["source_artist"], before / "source_artist")
    renamed = artists.select("artist_id", new_name="name").filter(_draw(artists, "artist_id", f"artist {night}") < share * RENAMED)
    renamed = renamed.with_columns(pl.lit("New ") + pl.col("new_name"))
    with_names = artists.join(renamed, on="artist_id", how="left", maintain_order="left")
    changed_artists = with_names.with_columns(name=pl.coalesce("new_name", "name")).drop("new_name")
    write_table(TABLES["source_artist"], after / "source_artist", [changed_artists])
    changes = []
    with TableWriter(TABLES["source_recording"], after / "source_recording") as writer:
        for part in parts(before / "source_recording"):
            rows = pl.read_parquet(part)
            chosen = rows.with_columns(change=_kinds(rows, renamed, night, share))
            changes.append(_listed(chosen, night))
            writer.write(_changed(chosen, renamed, night).select(rows.columns))
    found = pl.concat(changes)
    _forget(after, found.filter(pl.col("change") == "removed"))
    return found


def _draw(rows: pl.DataFrame, key: str, purpose: str) -> pl.Series:
    """A number in [0, 1) for each row by its platform and id."""
    named = rows.select(pl.concat_str("platform", pl.lit(":"), key)).to_series()
    hashed = np.fromiter((zlib.crc32(text.encode()) for text in named), dtype=np.int64, count=rows.height)
    return pl.Series(mixed(hashed, purpose) / 2.0**64)


def _kinds(rows: pl.DataFrame, renamed: pl.DataFrame, night: int, share: float) -> pl.Series:
    """The change of each row of `source_recording`; null for nearly all."""
    draws = rows.with_columns(
        drawn=_draw(rows, "external_id", f"night {night}"),
        half=_draw(rows, "external_id", "half") < 0.5,
        turn=(_draw(rows, "external_id", "turn") / (share * BY_TURN)).floor(),
        reading=(_draw(rows, "external_id", "reading") / (share * READABLE)).floor(),
        is_renamed=pl.col("artists").list.eval(pl.element().struct.field("artist_id").is_in(renamed["artist_id"].implode())).list.any(),
    )
    can_twin = pl.col("duration_ms").is_not_null() & (pl.col("artists").list.len() > 0)
    kind = (
        pl.when(can_twin & (pl.col("turn") == night + 1))
        .then(pl.lit("twinned"))
        .when(can_twin & (pl.col("turn") == night))
        .then(pl.lit("joined" if night else "joined twin"))
        .when(can_twin & (pl.col("turn") == night - 1))
        .then(pl.when("half").then(pl.lit("parted")).otherwise(pl.lit("removed")))
        .when(can_twin & (pl.col("reading") == night + 1))
        .then(pl.lit("obscured"))
        .when(can_twin & (pl.col("reading") == night))
        .then(pl.lit("explained" if night else None, pl.String))
        .when("is_renamed")
        .then(pl.lit("renamed"))
    )
    limit = 0.0
    for name, part in DRAWN.items():
        limit += part * share
        kind = kind.when(pl.col("drawn") < limit).then(pl.lit(name))
    return draws.select(kind).to_series()


def _changed(rows: pl.DataFrame, renamed: pl.DataFrame, night: int) -> pl.DataFrame:
    """The part as it is the day after: changed rows in their places, new ones at the end."""
    touched = rows.filter(pl.col("change").is_not_null())
    drawn = touched.with_columns(
        choice=_draw(touched, "external_id", f"choice {night}"),
        amount=_draw(touched, "external_id", f"amount {night}"),
        twin_code=_codes(touched, "twin"),
        new_code=_codes(touched, f"code {night}"),
    )
    new_names = dict(renamed.iter_rows())
    edited = pl.concat([_edited(drawn), _renamed(drawn, new_names)]).filter(pl.col("change") != "removed")
    kept = rows.join(edited, on="external_id", how="anti", maintain_order="left").filter(pl.col("change").is_null())
    in_place = pl.concat([kept.with_columns(edited=False), edited.select(kept.columns).with_columns(edited=True)])
    order = rows.select("external_id", place=pl.int_range(pl.len()))
    in_place = in_place.join(order, on="external_id", how="left").sort("place").drop("place", "edited")
    return pl.concat([in_place, _new_rows(drawn, night).select(in_place.columns)])
