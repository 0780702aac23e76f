"""The public fingerprint database, day by day: tracks, fingerprints, users' links to catalog_b recordings, typed titles.

The first days surround the day on which files lost their second escaping. Tracks come, are merged (also in chains and, wrongly, in a
circle), get votes and lose links on later days: a world with more days is the same world, some nights later. Every true recording has its
own items; all its fingerprints are copies of them. Add a kind of dirt here when the join learns to withstand it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from catalog_store.platforms import FINGERPRINTS
from simulator.catalog_b_tables import name_member
from simulator.files import break_lines, insert_broken_lines
from simulator.fingerprint_items import FEWEST_ITEMS, MOST_CUT, copy_items, count_items, draw_items
from simulator.randomness import draw_flags, make_generator, make_uuids
from simulator.rows import make_block
from simulator.world_part import draw_malformed_count

if TYPE_CHECKING:
    from simulator.settings import SimulationSettings
    from simulator.world_part import Part

FIRST_DAY = date(2024, 12, 3)
LAST_ESCAPED_DAY = date(2024, 12, 4)
FIRST_DAYS = 4
LATE, LATE_DAYS = 0.08, 10
"""Share of tracks that come late, and their largest delay behind the first days."""
ROWS_PER_RECORDING = 8
"""Bound on the rows of a stream per recording of a block: spaces the ids of the blocks."""
SECOND, THIRD = 0.35, 0.1
"""Shares of tracks with a second and a third fingerprint, which come a day later."""
COMPANIONS, CHAINED = 0.05, 0.3
"""Share of tracks into which another track is merged two days later; share of those others with a track merged into them."""
STRANGERS, MISLED, TAKEN_BACK = 0.05, 0.003, 0.02
"""Shares of tracks with a second link to another recording: by one user, by most users, by many users until it is disabled."""
SIBLINGS = 0.5
"""Share of the links to others that name another version of the song, where catalog_b has one: files are mistagged by look-alikes."""
OLD_IDS = 0.5
"""Share of the recordings with merged ones in catalog_b that are linked by the id of the merged one."""
ODD_TITLES = (' 7" Edit', " \\ Live", "\tMix", ' (feat. "X")', "")
STREAMS = ("track", "meta", "fingerprint", "track_fingerprint", "track_mbid", "track_meta", "track_puid")
RAW = "fingerprint"
"""The field whose values are JSON already."""


@dataclass(frozen=True)
class Fingerprints:
    """Files of one block by path below the dump's folder, and the truth: fingerprint_id, true_recording_id."""

    files: dict[str, bytes]
    truth: pl.DataFrame


def build_fingerprints(settings: SimulationSettings, block: int, catalog_b: Part) -> Fingerprints:
    """Return the rows of the database for one block of the world; `catalog_b` is that platform's part of it."""
    rng = make_generator(settings.seed, FINGERPRINTS, block)
    tracks = _draw_tracks(settings, block, catalog_b, rng)
    prints = _draw_fingerprints(tracks, rng).with_columns(id=_number_rows(settings, block))
    links = _draw_links(settings, block, tracks, catalog_b, rng).with_columns(id=_number_rows(settings, block))
    written = prints.filter(pl.col("day") < settings.fingerprint_days)
    streams = {
        "track": _build_track_rows(tracks),
        "meta": _build_meta_rows(tracks, rng).select("day", _number_rows(settings, block).alias("id"), "track", "artist"),
        "fingerprint": _build_item_rows(settings, written),
        "track_fingerprint": prints.select("day", "id", track_id="track", fingerprint_id="id", submission_count="count"),
        "track_mbid": pl.concat([links, links.filter("is_taken_back").with_columns(pl.col("day") + 1, disabled=True)]).select(
            "day", "id", track_id="track", mbid="mbid", submission_count="count", disabled="disabled"
        ),
    }
    files = {}
    for number in range(settings.fingerprint_days):
        day = FIRST_DAY + timedelta(days=number)
        for name in STREAMS:
            rows = streams[name].filter(pl.col("day") == number).drop("day") if name in streams else pl.DataFrame()
            text = _encode_rows(rows, day, settings, rng)
            # Until LAST_ESCAPED_DAY the publisher escaped every backslash twice; a reader must undo that for old files
            # only.
            files[f"{day:%Y}/{day:%Y-%m}/{day}-{name}-update.jsonl.gz"] = text.replace(b"\\", b"\\\\") if day <= LAST_ESCAPED_DAY else text
    return Fingerprints(files, written.select(fingerprint_id="id", true_recording_id="true_id"))


def _number_rows(settings: SimulationSettings, block: int) -> pl.Expr:
    return pl.int_range(1, pl.len() + 1) + block * settings.recordings_per_block * ROWS_PER_RECORDING


def _encode_rows(rows: pl.DataFrame, day: date, settings: SimulationSettings, rng: np.random.Generator) -> bytes:
    """Return one JSON object for each row, without keys of nulls, and malformed lines among them."""
    created = f'"created":"{day}T00:00:18.312881+00:00"}}'
    lines = [
        "{"
        + "".join(f'"{name}":{_encode_value(name, value)},' for name, value in zip(rows.columns, row, strict=True) if value is not None)
        + created
        for row in rows.iter_rows()
    ]
    broken = break_lines(lines[: draw_malformed_count(settings, rng, len(lines))], rng)
    return insert_broken_lines(pl.Series(lines, dtype=pl.String), broken, rng)


def _encode_value(name: str, value: object) -> str:
    return str(value) if name == RAW else json.dumps(value, ensure_ascii=False)


def _draw_tracks(settings: SimulationSettings, block: int, catalog_b: Part, rng: np.random.Generator) -> pl.DataFrame:
    """Return track, true_id, mbid, song, title, seconds, day, into, is_real.

    `into`: the track it is merged into, later; `is_real`: has fingerprints and links.
    """
    world = make_block(settings, block).made
    recordings = world.recordings.select(
        "song", true_id="true_id", seconds=pl.col("duration_ms") // 1000, title=world.songs["title"].gather(world.recordings["song"])
    )
    known = catalog_b.truth.filter(draw_flags(rng, len(catalog_b.truth), settings.fingerprint_coverage))
    plain = known.select(true_id="true_recording_id", mbid="external_id").join(recordings, on="true_id", how="left", maintain_order="left")
    plain = plain.with_row_index("place").select(pl.all().exclude("place"), pl.col("place").cast(pl.Int64))
    companions = plain.filter(draw_flags(rng, len(plain), COMPANIONS)).rename({"place": "into"})
    # Places continue after the plain tracks, because `into` of the chained ones names a companion.
    companions = companions.with_columns(place=pl.int_range(pl.len()) + len(plain))
    chained = companions.filter(draw_flags(rng, len(companions), CHAINED)).with_columns(into="place")
    circle = plain.head(2) if len(plain) > 1 else plain.clear()
    last = len(plain) + len(companions) + len(chained)
    # Two tracks that name each other: a reader that follows merges must come to an end.
    circle = circle.with_columns(into=last + 1 - pl.int_range(pl.len()), is_real=pl.lit(value=False))
    rows = pl.concat([plain, companions.drop("place"), chained.drop("place"), circle.drop("place")], how="diagonal").drop("place")
    late = draw_flags(rng, len(rows), LATE)
    days = np.where(late, FIRST_DAYS + rng.integers(0, LATE_DAYS, len(rows)), rng.integers(0, FIRST_DAYS, len(rows)))
    first = block * settings.recordings_per_block * ROWS_PER_RECORDING + 1
    return rows.with_columns(
        track=pl.int_range(pl.len()) + first,
        into=pl.col("into") + first,
        day=pl.Series(days),
        is_real=pl.col("is_real").fill_null(value=True),
    )


def _build_track_rows(tracks: pl.DataFrame) -> pl.DataFrame:
    """Return each track on its day, and again on the day of its merge."""
    came = tracks.select("day", id="track", gid=make_uuids(tracks["track"].to_numpy(), "fingerprint track"), new_id="into")
    merged = came.drop_nulls("new_id").with_columns(pl.col("day") + 2)
    return pl.concat([came.with_columns(new_id=pl.lit(None, dtype=pl.Int64)), merged])


def _build_meta_rows(tracks: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    odd = pl.Series(ODD_TITLES).gather(rng.integers(0, len(ODD_TITLES), len(tracks)))
    return tracks.select("day", track=pl.col("title") + odd, artist=pl.when(pl.col("track") % 3 > 0).then(pl.lit("AC/DC")))


def _draw_fingerprints(tracks: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    """Return track, true_id, seconds, day, count of each fingerprint."""
    real = tracks.filter("is_real").select("track", "true_id", "seconds", "day")
    further = [real.filter(draw_flags(rng, len(real), share)).with_columns(pl.col("day") + 1) for share in (SECOND, THIRD)]
    prints = pl.concat([real, *further])
    seconds = (pl.col("seconds") + pl.Series(rng.integers(-1, 2, len(prints)))).clip(lower_bound=1)
    return prints.with_columns(seconds, count=pl.Series(rng.integers(1, 12, len(prints))))


def _build_item_rows(settings: SimulationSettings, prints: pl.DataFrame) -> pl.DataFrame:
    """Return the items. They do not depend on the days written, so more days leave the files of the first days unchanged."""
    counts = count_items(prints["seconds"].cast(pl.Int64).to_numpy())
    texts = []
    for number, true_id, count in zip(prints["id"].to_list(), prints["true_id"].to_list(), counts.tolist(), strict=True):
        # Seeded by the recording, and below by the fingerprint: the items of one never depend on any other row.
        items = draw_items(np.random.default_rng([settings.seed, true_id]), 1)[0]
        draw = np.random.default_rng([settings.seed, true_id, number])
        items = copy_items(items, draw)[: max(count, FEWEST_ITEMS + MOST_CUT)]
        items = items[int(draw.integers(MOST_CUT + 1)) :]
        texts.append("[" + ",".join(map(str, items.view(np.int32).tolist())) + "]")
    return prints.select("day", "id", fingerprint=pl.Series(texts, dtype=pl.String), length="seconds")


def _draw_links(settings: SimulationSettings, block: int, tracks: pl.DataFrame, catalog_b: Part, rng: np.random.Generator) -> pl.DataFrame:
    """Return track, mbid, count, day, is_taken_back (a day later), disabled of each link."""
    real = tracks.filter("is_real")
    old = _map_old_ids(catalog_b)
    mbids = [
        old.get(mbid, mbid) if is_old else mbid for mbid, is_old in zip(real["mbid"], draw_flags(rng, len(real), OLD_IDS), strict=True)
    ]
    misled, back = (
        pl.Series(draw_flags(rng, len(real), MISLED)),
        pl.Series(draw_flags(rng, len(real), TAKEN_BACK)) & (real["day"] < FIRST_DAYS - 1),
    )
    some = pl.Series(draw_flags(rng, len(real), STRANGERS))
    others = catalog_b.truth["external_id"].gather(rng.integers(0, max(1, len(catalog_b.truth)), len(real)))
    siblings = _draw_siblings(settings, block, real, catalog_b, rng)
    is_sibling = pl.Series(draw_flags(rng, len(real), SIBLINGS)) & siblings.is_not_null()
    others = siblings.zip_with(is_sibling, others)
    right = real.select("track", "day", mbid=pl.Series(mbids, dtype=pl.String), count=pl.Series(rng.integers(2, 20, len(real))))
    wrong = real.select("track", "day", mbid=others, count=pl.when(misled | back).then(30).otherwise(1).cast(pl.Int64)).with_columns(
        is_taken_back=back & ~misled
    )
    rows = pl.concat([right, wrong.filter(misled | back | some)], how="diagonal")
    return rows.with_columns(pl.col("is_taken_back").fill_null(value=False), disabled=pl.lit(None, dtype=pl.Boolean))


def _draw_siblings(settings: SimulationSettings, block: int, real: pl.DataFrame, catalog_b: Part, rng: np.random.Generator) -> pl.Series:
    """Return for each track a catalog_b record of another recording of its song; null where there is none."""
    recordings = make_block(settings, block).made.recordings.select("song", true_recording_id="true_id")
    known = catalog_b.truth.select("external_id", "true_recording_id").join(recordings, on="true_recording_id").sort("external_id")
    rows = real.select("song", "true_id", draw=pl.Series(rng.random(len(real)))).with_row_index("row")
    pairs = rows.join(known, on="song").filter(pl.col("true_id") != pl.col("true_recording_id")).sort("row", "external_id")
    place = (pl.col("draw") * pl.len()).floor().cast(pl.Int64).over("row")
    drawn = pairs.filter(pl.int_range(pl.len()).over("row") == place)
    return rows.join(drawn.select("row", "external_id"), on="row", how="left", maintain_order="left")["external_id"]


def _map_old_ids(catalog_b: Part) -> dict[str, str]:
    """Return a recording's id -> an id that catalog_b has merged into it."""

    def read_cells(table: str) -> list[list[str]]:
        content = catalog_b.files.get(name_member(table), b"")
        text = content.decode(errors="replace") if isinstance(content, bytes) else ""
        return [line.split("\t") for line in text.splitlines() if line.count("\t") > 1]

    gids = {row[0]: row[1] for row in read_cells("recording")}
    return {gids[row[1]]: row[0] for row in read_cells("recording_gid_redirect") if row[1] in gids}
