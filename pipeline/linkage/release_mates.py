"""Tracks of one release under one key: two recordings, unless something strong says that they are one.

A release rarely contains one recording twice. So two records of one platform and one release leave an atom that holds both, unless they
share a code or one `repeats` the other (an LP beside a CD with the same tracks). At most one of them stays with the records of other
releases: the one with their code, else the one whose duration is clearly nearest, else the one in their place (disc and track). If nothing
decides, none stays, because a guess would be wrong more often than right.

The answer depends on the records, not on their order. Out of scope: namesakes with different codes (namesakes.py); tracks of
one release in different atoms (clusters.py).
"""

from __future__ import annotations

from statistics import median_low
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from catalog_store.record_keys.numbers import number_release
from pipeline.linkage.connected_components import add_components

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NEAREST_MS = 1_000
"""A track is clearly nearest if the others of its release are so much farther. Platforms that give whole seconds differ by as much."""
MOST_COMPARED = 2_000
"""Tracks of one key that leave their releases and are compared with each other, each with each: at most some seconds. Of more, each stays
alone."""
ROWS_AT_A_TIME = 1_000_000
"""Rows of records and releases that are grouped at a time: some .2 GB."""
PARTED = 1 << 42
"""Numbers of new parts start here, below zero; those of namesakes and of reviewed decisions are above."""


class _Record(NamedTuple):
    row: int
    release: int | None
    external_id: str
    codes: frozenset[str]
    duration_ms: int | None
    place: tuple[int, int] | None
    repeats: str | None


_Track = list[_Record]
"""Records that are one recording."""


def part_release_mates(placed: pl.DataFrame, records: pl.DataFrame) -> pl.DataFrame:
    """Move the tracks of one release that share a `part` into parts of their own.

    Args:
        placed: row, part; rows of one part are one atom.
        records: platform, external_id, release_id, disc_number, track_number, repeats, isrcs, duration_ms; by `row`.
    """
    moved, parts = list[tuple[int, int]](), 0
    for members in _find_mates(placed, records).partition_by("part"):
        for track in _find_leaving_tracks(_read_records(members)):
            moved += [(record.row, -PARTED - parts) for record in track]
            parts += 1
    if not moved:
        return placed
    moves = pl.DataFrame(moved, schema={"row": placed.schema["row"], "own": pl.Int64}, orient="row")
    return placed.join(moves, on="row", how="left", maintain_order="left").with_columns(part=pl.coalesce("own", "part")).drop("own")


def find_mate_pairs(listed: pl.DataFrame, read_codes: Callable[[pl.Series], pl.DataFrame], components: pl.DataFrame) -> pl.DataFrame:
    """Return atom_id_a < atom_id_b of the atoms of one component with records on one release that share no code there.

    A code that the two atoms share by records of other releases does not count: it may be the wrong code that joined them.

    Args:
        listed: atom_id, release (a number) of the records that have one, at least of the atoms with edges.
        read_codes: takes atom ids and returns atom_id, release, isrcs of their records, possibly of other atoms too.
        components: atom_id, cluster_id, as `clusters.find_components` returns them.
    """
    rows = pl.concat(_find_atoms_of_one_release(some, components) for some in _cut_by_release(listed))
    if rows.is_empty():
        return rows.select(atom_id_a="atom_id", atom_id_b="atom_id")
    codes = read_codes(rows["atom_id"].unique()).explode("isrcs", empty_as_null=False).drop_nulls().unique()
    # One code on all atoms of a release parts none of them. Without this, a code on a whole release would give all pairs.
    held = rows.join(codes, on=["atom_id", "release"]).group_by("cluster_id", "release", "isrcs").len("holders")
    held = held.group_by("cluster_id", "release").agg(pl.col("holders").max())
    rows = rows.join(held, on=["cluster_id", "release"], how="left").with_columns(listed=pl.len().over("cluster_id", "release"))
    rows = rows.filter(pl.col("holders").fill_null(0) < pl.col("listed"), pl.col("listed") <= MOST_COMPARED).drop("holders", "listed")
    one, other = rows.rename({"atom_id": "atom_id_a"}), rows.rename({"atom_id": "atom_id_b"})
    pairs = one.join(other, on=["cluster_id", "release"]).filter(pl.col("atom_id_a") < pl.col("atom_id_b")).drop("cluster_id")
    on_one, on_other = codes.rename({"atom_id": "atom_id_a"}), codes.rename({"atom_id": "atom_id_b"})
    sharing = pairs.join(on_one, on=["atom_id_a", "release"]).join(on_other, on=["atom_id_b", "release", "isrcs"], how="semi")
    apart = pairs.join(sharing, on=["atom_id_a", "atom_id_b", "release"], how="anti")
    return apart.select("atom_id_a", "atom_id_b").unique().sort("atom_id_a", "atom_id_b")


def _cut_by_release(listed: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield the rows of some releases at a time. All at once took 2 GB at 30 million recordings."""
    parts = 1 + listed.height // ROWS_AT_A_TIME
    for part in range(parts):
        yield listed.filter(pl.col("release") % parts == part)


def _find_atoms_of_one_release(listed: pl.DataFrame, components: pl.DataFrame) -> pl.DataFrame:
    """Return atom_id, release, cluster_id of the atoms of one component that have records on one release. Few releases have any."""
    rows = add_components(listed.unique(), components)
    return rows.filter(rows.select("cluster_id", "release").is_duplicated())


def number_listed_release() -> pl.Expr:
    """Return the number of the release that a record names; null when it names none."""
    return pl.when(pl.col("release_id").is_not_null()).then(number_release())


def _find_mates(placed: pl.DataFrame, records: pl.DataFrame) -> pl.DataFrame:
    """Return all rows of the parts in which a release occurs twice, with the columns of `_Record`."""
    release = records.select(number_listed_release()).to_series()
    rows = placed.select("row", "part", release=release.gather(placed["row"]))
    listed = rows.drop_nulls("release")
    twice = listed.filter(listed.select("part", "release").is_duplicated())["part"].unique()
    rows = rows.filter(pl.col("part").is_in(twice.implode()))
    columns = ("external_id", "isrcs", "duration_ms", "disc_number", "track_number", "repeats")
    return rows.with_columns(records[name].gather(rows["row"]) for name in columns)


def _read_records(members: pl.DataFrame) -> list[_Record]:
    return [
        _Record(
            row["row"],
            row["release"],
            row["external_id"],
            frozenset(row["isrcs"]),
            row["duration_ms"],
            # A release of one medium need not number it.
            None if row["track_number"] is None else (row["disc_number"] or 1, row["track_number"]),
            row["repeats"],
        )
        for row in members.iter_rows(named=True)
    ]


def _find_leaving_tracks(records: list[_Record]) -> list[_Track]:
    """Return the tracks that become recordings of their own. `records`: those of one part."""
    releases: dict[int, list[_Record]] = {}
    for record in records:
        if record.release is not None:
            releases.setdefault(record.release, []).append(record)
    tracks = {release: _join_records(held) for release, held in releases.items()}
    contested = {release for release, held in tracks.items() if len(held) > 1}
    others = [record for record in records if record.release not in contested]
    leaving: list[_Track] = []
    for release in contested:
        stays = _find_staying_track(tracks[release], others)
        leaving += [track for track in tracks[release] if track is not stays]
    if len(leaving) > MOST_COMPARED:
        return leaving
    # The order decides which tracks meet where two of one release could join a third. Ids decide only between equal tracks.
    return _join_tracks(sorted(leaving, key=_sort_key))


def _sort_key(track: _Track) -> tuple[int, tuple[int, int], list[str], str]:
    return min((record.duration_ms or 0, record.place or (0, 0), sorted(record.codes), record.external_id) for record in track)


def _find_staying_track(tracks: list[_Track], others: list[_Record]) -> _Track | None:
    """Return the one of these tracks of a release that is the recording of the other records; None if nothing decides."""
    candidates = [track for track in tracks if not _list_codes(track).isdisjoint(_list_codes(others))] or tracks
    durations = [record.duration_ms for record in others if record.duration_ms is not None]
    if len(candidates) > 1 and durations:
        candidates = _filter_nearest(candidates, median_low(durations))
    if len(candidates) > 1:
        places = {record.place for record in others} - {None}
        candidates = [track for track in candidates if any(record.place in places for record in track)]
    return candidates[0] if len(candidates) == 1 else None


def _filter_nearest(tracks: list[_Track], duration_ms: int) -> list[_Track]:
    """Return the one track that is clearly nearest to a duration, else all; a track without a duration is not near."""
    gaps = sorted(
        (min(abs(record.duration_ms - duration_ms) for record in track if record.duration_ms is not None), number)
        for number, track in enumerate(tracks)
        if any(record.duration_ms is not None for record in track)
    )
    is_clear = len(gaps) == 1 or (len(gaps) > 1 and gaps[1][0] - gaps[0][0] >= NEAREST_MS)
    return [tracks[gaps[0][1]]] if is_clear else tracks


def _join_records(records: list[_Record]) -> list[_Track]:
    """Return the tracks of one release: its records, joined where they share a code or one repeats the other."""
    root = list(range(len(records)))

    def find(place: int) -> int:
        while root[place] != place:
            root[place] = root[root[place]]
            place = root[place]
        return place

    holder: dict[str, int] = {}
    for place, record in enumerate(records):
        # A code and an id never look alike: ids come after a colon.
        for key in (*record.codes, f":{record.external_id}", *([f":{record.repeats}"] if record.repeats else [])):
            low, high = sorted((find(place), find(holder.setdefault(key, place))))
            root[high] = low
    tracks: dict[int, _Track] = {}
    for place, record in enumerate(records):
        tracks.setdefault(find(place), []).append(record)
    return list(tracks.values())


def _join_tracks(tracks: list[_Track]) -> list[_Track]:
    """Return the tracks of several releases, those that are one recording joined."""
    joined: list[_Track] = []
    for track in tracks:
        grown, apart = track, list[_Track]()
        for known in joined:
            if _is_one_recording(known, grown):
                grown = known + grown
            else:
                apart.append(known)
        joined = [*apart, grown]
    return joined


def _is_one_recording(one: _Track, other: _Track) -> bool:
    """Return whether tracks of two releases share a code, or their place and their duration."""
    if {record.release for record in one} & {record.release for record in other}:
        return False
    return not _list_codes(one).isdisjoint(_list_codes(other)) or any(
        a.place == b.place
        and a.place is not None
        and a.duration_ms is not None
        and b.duration_ms is not None
        and abs(a.duration_ms - b.duration_ms) <= NEAREST_MS
        for a in one
        for b in other
    )


def _list_codes(track: _Track) -> frozenset[str]:
    return frozenset[str]().union(*(record.codes for record in track))
