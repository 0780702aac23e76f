"""The evidence behind one recording: its source records, what joined them, what was kept apart, and which record gave each field.

It comes from the Parquet tables of a snapshot, not from the serving files: a question for people, a second or so at a million recordings. A
snapshot without the tables of linkage answers with what it has. Text for readers belongs in pipeline/explain.py. The values of
each source are in recorded_values.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import polars as pl

from catalog_store.identifiers import normalise_isrc
from catalog_store.platforms import LINK_SOURCES
from catalog_store.tables import TABLES
from catalog_store.tables.atoms import ATOM_TABLES, scan_live_atoms
from catalog_store.tables.files import scan_table

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import date
    from pathlib import Path

FIELD_COLUMNS = {
    "title": "title",
    "artists": "artist_credit",
    "duration": "duration_ms",
    "isrc": "isrc",
    "release_date": "release_date",
    "popularity": "popularity",
    "variant": "variant",
}
"""Field of `recording_provenance` -> the column of `recording` that holds its value."""
MOST_LOOKALIKES = 20
"""The limit of other recordings with the same names."""


class Found(NamedTuple):
    """The recording of a key; `steps` lists the redirects on the way."""

    recording_id: int
    steps: tuple[str, ...] = ()


class Member(msgspec.Struct, frozen=True):
    """A source record of the recording, and its atom (None when the snapshot has no atoms)."""

    platform: str
    external_id: str
    atom_id: int | None


class Atom(msgspec.Struct, frozen=True):
    """The values on which the records of an atom agree."""

    atom_id: int
    artist_key: str
    title_key: str
    variant: str
    duration_ms: int | None
    names: list[str]
    record_count: int
    isrcs: list[str]


class Edge(msgspec.Struct, frozen=True):
    """Evidence between two atoms of the recording."""

    kind: str
    score: float
    evidence: str
    atom_id_a: int
    atom_id_b: int


class Other(msgspec.Struct, frozen=True):
    """The displayed fields of another recording."""

    recording_id: int
    title: str
    artist_credit: str
    variant: str
    duration_ms: int | None
    isrc: str | None


class Conflict(msgspec.Struct, frozen=True):
    """A code that this recording and another one claimed; `is_kept` when this one has it. `reason`: the guard that kept them apart."""

    isrc: str
    is_kept: bool
    reason: str
    platforms: list[str]
    record_count: int
    other: Other


class CutEdge(msgspec.Struct, frozen=True):
    """Evidence to an atom of another recording that was not followed, because the cluster would have spanned too much."""

    kind: str
    score: float
    evidence: str
    atom_id: int
    other: Other


class AudioComparison(msgspec.Struct, frozen=True):
    """The nearest fingerprints of two atoms; `atom_id` is of this recording, and `other` is None when both are."""

    atom_id: int
    other_atom_id: int
    verdict: str
    distance: float | None
    overlap_seconds: int | None
    reason: str | None
    other: Other | None


class Lookalike(msgspec.Struct, frozen=True):
    """Another recording under the same artist and title key. `differs_in`: variant, duration, or nothing (no evidence joined them)."""

    differs_in: str
    other: Other


class Work(msgspec.Struct, frozen=True):
    """A composition that the recording performs. `kind`: the strongest claim (a linked record, a code, names)."""

    iswc: str
    title: str
    kind: str | None


class WorkConflict(msgspec.Struct, frozen=True):
    """A composition that was claimed and refused: the claimed values, and what refused them. `winner_iswc`: the work that outvoted it."""

    iswc: str
    title: str
    kind: str
    reason: str
    platforms: list[str]
    claim_count: int
    isrc: str | None
    claimed_title: str | None
    claimed_artist: str | None
    claimed_duration_ms: int | None
    winner_iswc: str | None


class Field(msgspec.Struct, frozen=True):
    """One field of the golden record: its value, its source, the reason, and how many agreed (None where nothing is counted)."""

    name: str
    value: str | int | float | None
    platform: str | None
    external_id: str | None
    reason: str | None
    agreed: int | None
    entity: str = "recording"


class Evidence(msgspec.Struct, frozen=True):
    """All evidence that a snapshot has about a recording."""

    recording_id: int
    fields: list[Field]
    members: list[Member]
    atoms: list[Atom]
    edges: list[Edge]
    conflicts: list[Conflict]
    cut_edges: list[CutEdge]
    lookalikes: list[Lookalike]
    former_ids: list[int]
    audio: list[AudioComparison] = []
    works: list[Work] = []
    work_conflicts: list[WorkConflict] = []


def find_recording(tables: Path, key: str) -> Found | None:
    """Find the recording of a track id, an ISRC or `platform:external id` (a source record's id, else a link's); None if there is none.

    Merged ids are followed. ValueError for a key that is none of the three.
    """
    key = key.strip()
    if key.isdecimal():
        return _find_by_id(tables, int(key))
    platform, colon, external_id = key.partition(":")
    if colon and platform in LINK_SOURCES:
        return _find_by_external_id(tables, platform, external_id)
    isrc = normalise_isrc(key)
    if isrc is None:
        raise ValueError(f"{key!r} is not a track id, an ISRC or <platform>:<id> with one of {', '.join(LINK_SOURCES)}")
    found = _read_rows(tables, "recording_isrc", pl.col("isrc") == isrc)
    return Found(found["recording_id"].item()) if found.height else None


def _find_by_id(tables: Path, recording_id: int) -> Found | None:
    # Polars would raise for a number beyond int64.
    if recording_id >= 2**63:
        return None
    if _read_rows(tables, "recording", pl.col("recording_id") == recording_id).height:
        return Found(recording_id)
    redirects = _read_rows(tables, "redirect", pl.col("kind") == "recording", pl.col("old_id") == recording_id)
    survivor = redirects["new_id"].item() if redirects.height else None
    return None if survivor is None else Found(survivor, (f"track {recording_id} was merged into track {survivor}",))


def _find_by_external_id(tables: Path, platform: str, external_id: str) -> Found | None:
    record = _read_rows(tables, "recording_member", pl.col("external_id") == external_id, pl.col("platform") == platform)
    if record.height:
        return Found(record["recording_id"].item())
    merged = _read_rows(tables, "external_redirect", pl.col("source") == platform, pl.col("old_id") == external_id)
    steps: tuple[str, ...] = ()
    if merged.height:
        steps = (f"{platform} merged {external_id} into {merged['new_id'].item()}",)
        external_id = merged["new_id"].item()
    links = _read_rows(tables, "platform_link", pl.col("external_id") == external_id, pl.col("source") == platform)
    if links.is_empty():
        return None
    recordings = _read_rows(tables, "recording", pl.col("recording_id").is_in(links["recording_id"].implode()))
    ids = recordings.sort(-pl.col("popularity"), "recording_id")["recording_id"].to_list()
    if len(ids) > 1:
        steps += (f"{platform}:{external_id} stands for {len(ids)} tracks: {', '.join(map(str, ids))}; this is the most popular",)
    return Found(ids[0], steps)


def collect_evidence(tables: Path, recording_id: int) -> Evidence | None:
    """Return all evidence about one recording of the snapshot whose `tables` folder is given; None when it has no such recording."""
    recording = _read_rows(tables, "recording", pl.col("recording_id") == recording_id)
    if recording.is_empty():
        return None
    member = _join_atoms(tables, _read_rows(tables, "recording_member", pl.col("recording_id") == recording_id))
    atoms = _read_rows(tables, "atom", pl.col("atom_id").is_in(member["atom_id"].drop_nulls().unique().implode()))
    inside = atoms["atom_id"].implode()
    edges = _read_rows(tables, "edge", pl.col("atom_id_a").is_in(inside) | pl.col("atom_id_b").is_in(inside))
    is_inner = pl.col("atom_id_a").is_in(inside) & pl.col("atom_id_b").is_in(inside)
    return Evidence(
        recording_id,
        _read_fields(tables, recording.row(0, named=True)),
        [Member(**row) for row in member.iter_rows(named=True)],
        _read_atoms(tables, atoms),
        [Edge(**row) for row in edges.filter(is_inner).select(Edge.__struct_fields__).iter_rows(named=True)],
        _read_conflicts(tables, recording_id),
        _read_cut_edges(tables, edges.filter(~is_inner), inside),
        _find_lookalikes(tables, recording_id, atoms),
        _read_rows(tables, "redirect", pl.col("kind") == "recording", pl.col("new_id") == recording_id)["old_id"].to_list(),
        _read_audio(tables, inside),
        [Work(**row) for row in _read_works(tables, "work_recording", recording_id, Work).iter_rows(named=True)],
        [WorkConflict(**row) for row in _read_works(tables, "work_conflict", recording_id, WorkConflict).iter_rows(named=True)],
    )


def _scan(tables: Path, name: str) -> pl.LazyFrame:
    # A snapshot published without the tables of linkage answers with what it has.
    if not (tables / name).is_dir():
        return TABLES[name].build_empty().lazy()
    return scan_live_atoms(name, tables.joinpath) if name in ATOM_TABLES else scan_table(TABLES[name], tables / name)


def _read_rows(tables: Path, name: str, *conditions: pl.Expr) -> pl.DataFrame:
    """Return the rows of a published table that meet all conditions, in the table's order; none when it was not published."""
    rows = _scan(tables, name).filter(*conditions).collect()
    # The parts of atom tables come from several nights, so only rows inside a part are sorted.
    return rows.sort(TABLES[name].order, maintain_order=True) if name in ATOM_TABLES else rows


def _join_atoms(tables: Path, member: pl.DataFrame) -> pl.DataFrame:
    """Return platform, external_id and atom_id of source records."""
    keys = ["platform", "external_id"]
    placed = _read_rows(tables, "atom_member", pl.col("external_id").is_in(member["external_id"].implode())).select(*keys, "atom_id")
    return member.select(keys).join(placed, on=keys, how="left", maintain_order="left")


def _read_atoms(tables: Path, atoms: pl.DataFrame) -> list[Atom]:
    claims = _read_rows(tables, "atom_isrc", pl.col("atom_id").is_in(atoms["atom_id"].implode()))
    codes = claims.sort("isrc").group_by("atom_id").agg(isrcs="isrc")
    described = atoms.join(codes, on="atom_id", how="left", maintain_order="left").with_columns(pl.col("isrcs").fill_null([]))
    return [Atom(**row) for row in described.select(Atom.__struct_fields__).iter_rows(named=True)]


def _read_others(tables: Path, ids: Iterable[int]) -> dict[int, Other]:
    wanted = pl.Series("recording_id", sorted(set(ids)), dtype=pl.Int64)
    rows = (
        _read_rows(tables, "recording", pl.col("recording_id").is_in(wanted.implode()))
        if len(wanted)
        else TABLES["recording"].build_empty()
    )
    return {row["recording_id"]: Other(**row) for row in rows.select(Other.__struct_fields__).iter_rows(named=True)}


def _read_conflicts(tables: Path, recording_id: int) -> list[Conflict]:
    owner = pl.col("owner_recording_id")
    rows = _read_rows(tables, "isrc_conflict", (pl.col("recording_id") == recording_id) | (owner == recording_id))
    rows = rows.with_columns(is_kept=owner == recording_id, other=pl.when(owner == recording_id).then("recording_id").otherwise(owner))
    others = _read_others(tables, rows["other"])
    columns = ("isrc", "is_kept", "reason", "platforms", "record_count")
    return [Conflict(**{name: row[name] for name in columns}, other=others[row["other"]]) for row in rows.iter_rows(named=True)]


def _read_works(tables: Path, name: str, recording_id: int, shape: type[msgspec.Struct]) -> pl.DataFrame:
    """Return the rows of a table of works that name the recording, with the title of each work."""
    rows = _read_rows(tables, name, pl.col("recording_id") == recording_id)
    titles = _read_rows(tables, "work", pl.col("iswc").is_in(rows["iswc"].implode()))
    return rows.join(titles.select("iswc", "title"), on="iswc", how="left", maintain_order="left").select(shape.__struct_fields__)


def _read_cut_edges(tables: Path, edges: pl.DataFrame, inside: pl.Series) -> list[CutEdge]:
    beyond = edges.with_columns(atom_id=pl.when(pl.col("atom_id_a").is_in(inside)).then("atom_id_b").otherwise("atom_id_a"))
    found = _map_atoms_to_recordings(tables, beyond["atom_id"])
    others = _read_others(tables, found.values())
    return [
        CutEdge(row["kind"], row["score"], row["evidence"], row["atom_id"], others[found[row["atom_id"]]])
        for row in beyond.iter_rows(named=True)
        if row["atom_id"] in found
    ]


def _read_audio(tables: Path, inside: pl.Series) -> list[AudioComparison]:
    is_a, is_b = pl.col("atom_id_a").is_in(inside), pl.col("atom_id_b").is_in(inside)
    rows = _read_rows(tables, "audio_comparison", is_a | is_b)
    ends = (pl.when(is_a).then("atom_id_a").otherwise("atom_id_b"), pl.when(is_a).then("atom_id_b").otherwise("atom_id_a"))
    rows = rows.with_columns(atom_id=ends[0], other_atom_id=ends[1], is_inner=is_a & is_b)
    # Atoms may have several fingerprints each. The nearest ones decide most verdicts, so they stand for the pair.
    nearest = rows.sort("atom_id", "other_atom_id", "distance", nulls_last=True).unique(
        ["atom_id", "other_atom_id"], keep="first", maintain_order=True
    )
    found = _map_atoms_to_recordings(tables, nearest.filter(~pl.col("is_inner"))["other_atom_id"])
    others = _read_others(tables, found.values())
    columns = ("atom_id", "other_atom_id", "verdict", "distance", "overlap_seconds", "reason")
    return [
        AudioComparison(**{name: row[name] for name in columns}, other=None if row["is_inner"] else others[found[row["other_atom_id"]]])
        for row in nearest.iter_rows(named=True)
        # An atom without a recording belongs to a snapshot that lacks tables of linkage.
        if row["is_inner"] or row["other_atom_id"] in found
    ]


def _map_atoms_to_recordings(tables: Path, atom_ids: pl.Series) -> dict[int, int]:
    """Return recording_id by atom_id."""
    if atom_ids.is_empty():
        return {}
    members = _read_rows(tables, "atom_member", pl.col("atom_id").is_in(atom_ids.unique().implode()))
    keys = ["platform", "external_id"]
    first = members.sort(keys).unique("atom_id", keep="first", maintain_order=True).select(*keys, "atom_id")
    found = _read_rows(tables, "recording_member", pl.col("external_id").is_in(first["external_id"].implode())).join(first, on=keys)
    return dict(found.select("atom_id", "recording_id").iter_rows())


def _find_lookalikes(tables: Path, recording_id: int, atoms: pl.DataFrame) -> list[Lookalike]:
    """Return recordings that share an artist and title key with an atom of this one."""
    named = atoms.filter(pl.col("artist_key") != "").select("artist_key", "title_key").unique()
    if named.is_empty():
        return []
    alike = _read_rows(tables, "atom", pl.col("title_key").is_in(named["title_key"].implode())).join(
        named, on=["artist_key", "title_key"], how="semi"
    )
    # Sorted before the cut, so the same snapshot always shows the same ones.
    alike = alike.filter(~pl.col("atom_id").is_in(atoms["atom_id"].implode())).sort("atom_id").head(MOST_LOOKALIKES)
    found = _map_atoms_to_recordings(tables, alike["atom_id"])
    others = _read_others(tables, found.values())
    seen: dict[int, Lookalike] = {}
    for row in alike.iter_rows(named=True):
        other_id = found.get(row["atom_id"], recording_id)
        if other_id != recording_id:
            seen.setdefault(other_id, Lookalike(_describe_difference(row, atoms), others[other_id]))
    return list(seen.values())


def _describe_difference(atom: dict[str, Any], atoms: pl.DataFrame) -> str:
    same_variant = atoms.filter(pl.col("variant") == atom["variant"])
    if same_variant.is_empty():
        return "variant"
    durations = same_variant["duration_ms"].drop_nulls()
    return "duration" if len(durations) and atom["duration_ms"] is not None and atom["duration_ms"] not in durations else "nothing"


def _read_fields(tables: Path, recording: dict[str, Any]) -> list[Field]:
    rows = _read_rows(tables, "recording_provenance", pl.col("recording_id") == recording["recording_id"])
    row: dict[str, Any] = rows.row(0, named=True) if rows.height else {}
    value = recording | {"release_date": cut_date(recording["release_date"], recording["release_date_precision"])}
    return [
        Field(
            name,
            value[column],
            row.get(f"{name}_platform"),
            row.get(f"{name}_external_id"),
            row.get(f"{name}_reason"),
            row.get(f"{name}_agreed"),
            row.get(f"{name}_entity") or "recording",
        )
        for name, column in FIELD_COLUMNS.items()
    ]


def cut_date(day: date | str | None, precision: str | None) -> str | None:
    """Cut a date to its precision: `YYYY`, `YYYY-MM` or `YYYY-MM-DD`. Snapshots of the release before hold text."""
    return None if day is None else str(day)[: {"year": 4, "month": 7}.get(precision or "day", 10)]
