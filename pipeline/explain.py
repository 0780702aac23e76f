"""`python -m pipeline explain`: the reasons why records are one recording, and the sources of its fields, as text or as JSON.

catalog_store.queries.evidence looks the evidence up, and this module lays it out. It adds the source records from staging if the catalog's
work folder still holds them. Staging may be a night newer than the live snapshot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from catalog_store.published_snapshots import read_live_snapshot
from catalog_store.queries.evidence import Evidence, Found, Other, collect_evidence, find_recording
from catalog_store.snapshot import TABLES_FOLDER, require_tables
from catalog_store.tables import TABLES
from catalog_store.tables.files import scan_table
from pipeline.linkage.overrides import load_overrides

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pipeline.paths import BuildPaths

_STAGED = ("platform", "external_id", "title", "version", "artist_credit", "artists", "isrcs", "duration_ms", "release_date")


@dataclass(frozen=True)
class Explanation:
    """Evidence of one snapshot; `staged` holds the source records as staged, by (platform, external id)."""

    snapshot_id: str
    found: Found
    evidence: Evidence
    staged: dict[tuple[str, str], dict[str, Any]]
    decisions: tuple[str, ...] = ()
    """Reviewed overrides that name one of the source records, as they are in the file now."""


def explain(paths: BuildPaths, key: str) -> Explanation:
    """Explain the recording behind a track id, an ISRC or `platform:external id` in the live snapshot of the catalog.

    NoSnapshotError before the first publish, SnapshotInvalidError without its tables; ValueError for a malformed or unknown key, and for
    overrides that cannot be read.
    """
    # The snapshot is looked up once: a build may publish another one meanwhile, and evidence must come from a single snapshot.
    snapshot = read_live_snapshot(paths.root)
    require_tables(snapshot)
    tables = snapshot.folder / TABLES_FOLDER
    found = find_recording(tables, key)
    known = collect_evidence(tables, found.recording_id) if found else None
    if found is None or known is None:
        raise ValueError(f"snapshot {snapshot.id} has no recording {key!r}: give a track id, an ISRC or <platform>:<external id>")
    return Explanation(snapshot.id, found, known, _read_staged(paths, known), _read_decisions(paths, known))


def _read_decisions(paths: BuildPaths, known: Evidence) -> tuple[str, ...]:
    if not paths.has_overrides:
        return ()
    # The file may have changed since the build. So decisions are shown as they are now, beside the evidence of the snapshot.
    records = {f"{member.platform}:{member.external_id}" for member in known.members}
    entries = load_overrides(paths.overrides).entries
    return tuple(
        f"{entry.sense}: {', '.join(entry.records)}: {entry.why} ({entry.by}, {entry.on})"
        for entry in entries
        if not records.isdisjoint(entry.records)
    )


def _read_staged(paths: BuildPaths, known: Evidence) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the members as they were staged last."""
    staged: dict[tuple[str, str], dict[str, Any]] = {}
    for platform in sorted({member.platform for member in known.members}):
        folder = paths.staging(platform) / "source_recording"
        # An operator may have removed the work folder: then the explanation lacks the staged records.
        if folder.is_dir():
            ids = pl.Series([member.external_id for member in known.members if member.platform == platform])
            rows = scan_table(TABLES["source_recording"], folder).filter(pl.col("external_id").is_in(ids.implode())).select(_STAGED)
            staged |= {(row["platform"], row["external_id"]): row for row in rows.collect().iter_rows(named=True)}
    return staged


def format_json(explanation: Explanation) -> str:
    """Return the explanation as indented JSON; `said` holds the staged record of a member."""
    members = [
        {**msgspec.to_builtins(member), "said": explanation.staged.get((member.platform, member.external_id))}
        for member in explanation.evidence.members
    ]
    about = {"snapshot_id": explanation.snapshot_id, "steps": explanation.found.steps, "decisions": explanation.decisions}
    whole = {**about, **msgspec.to_builtins(explanation.evidence), "members": members}
    return msgspec.json.format(msgspec.json.encode(whole), indent=1).decode()


def format_text(explanation: Explanation) -> str:
    """Return the explanation as text: a section for each question, without empty ones."""
    known = explanation.evidence
    # Atom ids are hashes of 64 bits. Letters make the edges between atoms readable.
    letters = {atom.atom_id: _name_letter(place) for place, atom in enumerate(known.atoms)}
    fields = {field.name: field.value for field in known.fields}
    lines = [
        f"track {known.recording_id}: {fields['title']} / {fields['artists']}",
        f"snapshot {explanation.snapshot_id}",
        *explanation.found.steps,
    ]
    if known.former_ids:
        lines.append(f"continues the former ids {', '.join(map(str, known.former_ids))}")
    sections = {
        "Fields: value, source, reason": _format_fields(known),
        f"Source records: {len(known.members)}": _format_members(explanation, letters),
        "Atoms: records that agree on artist, title, variant and duration": _format_atoms(known, letters),
        "Evidence that joined the atoms": _format_edges(known, letters),
        "Audio compared: distance 0 is equal, .5 unrelated": _format_audio(known, letters),
        "Reviewed decisions that name these records": list(explanation.decisions),
        "Codes claimed by another recording too": _format_conflicts(known),
        "Evidence that was not used: the joined recordings would span too much, or their audio differs": _format_cuts(known),
        "Other recordings under the same names": _format_lookalikes(known),
        "Compositions, with the strongest claim of each": _align_columns([work.iswc, work.kind or "-", work.title] for work in known.works),
        "Compositions that were claimed and refused": _format_work_conflicts(known),
    }
    for heading, body in sections.items():
        if body:
            lines += ["", heading, *(f"  {line}" for line in body)]
    return "\n".join(lines)


def _name_letter(place: int) -> str:
    """Return A, B ... Z, AA, AB ..."""
    return (_name_letter(place // 26 - 1) if place >= 26 else "") + chr(ord("A") + place % 26)  # noqa: PLR2004 - the alphabet


def _format_time(milliseconds: int | None) -> str:
    if milliseconds is None:
        return "-:--"
    seconds, rest = divmod(milliseconds, 1000)
    return f"{seconds // 60}:{seconds % 60:02}.{rest:03}"


def _align_columns(rows: Iterable[Iterable[str]]) -> list[str]:
    """Return rows as lines, with cells padded to the widest of each column."""
    cells = [list(row) for row in rows]  # `rows` may be a generator, and the widths need a pass of their own
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]


def _format_fields(known: Evidence) -> list[str]:
    rows = []
    for field in known.fields:
        value = _format_time(int(field.value)) if field.name == "duration" and field.value is not None else str(field.value)
        source = f"{field.platform}:{field.external_id}" if field.platform else "-"
        of = " (release)" if field.entity == "release" else ""
        agreed = "" if field.agreed is None else f"{field.agreed} agree"
        rows.append([field.name, value if field.value not in {None, ""} else "-", source + of, field.reason or "-", agreed])
    return _align_columns(rows)


def _format_members(explanation: Explanation, letters: dict[int, str]) -> list[str]:
    rows = []
    for member in explanation.evidence.members:
        record = explanation.staged.get((member.platform, member.external_id))
        atom = letters.get(member.atom_id, "-") if member.atom_id is not None else "-"
        rows.append(
            [atom, f"{member.platform}:{member.external_id}", *(_format_record(record) if record else ["(no longer staged)", "", "", ""])]
        )
    return _align_columns(sorted(rows))  # by atom, then by platform: records of one atom come together


def _format_record(row: dict[str, Any]) -> list[str]:
    title = row["title"] + (f" [{row['version']}]" if row["version"] else "")
    artists = ", ".join(f"{a['name']}" + (f" ({a['role']})" if a["role"] != "primary" else "") for a in row["artists"])
    return [title, artists or row["artist_credit"] or "-", _format_time(row["duration_ms"]), " ".join(row["isrcs"]) or "no code"]


def _format_atoms(known: Evidence, letters: dict[int, str]) -> list[str]:
    return _align_columns(
        [
            letters[atom.atom_id],
            f"{atom.artist_key} / {atom.title_key}" + (f" / {atom.variant}" if atom.variant else ""),
            _format_time(atom.duration_ms),
            f"{atom.record_count} records",
            " ".join(atom.isrcs),
        ]
        for atom in known.atoms
    )


def _format_edges(known: Evidence, letters: dict[int, str]) -> list[str]:
    """Return a line for each edge, with the values in which its atoms differ."""
    atoms = {atom.atom_id: atom for atom in known.atoms}
    return _align_columns(
        [
            f"{letters[edge.atom_id_a]} - {letters[edge.atom_id_b]}",
            edge.kind,
            f"{edge.score:.2f}",
            edge.evidence,
            "; ".join(_list_differences(atoms[edge.atom_id_a], atoms[edge.atom_id_b])),
        ]
        for edge in known.edges
    )


def _format_audio(known: Evidence, letters: dict[int, str]) -> list[str]:
    return _align_columns(
        [
            f"{letters[audio.atom_id]} - {letters[audio.other_atom_id] if audio.other is None else 'another'}",
            audio.verdict,
            "nothing to compare" if audio.distance is None else f"{audio.distance:.2f} over {audio.overlap_seconds} s",
            f"kept apart by {audio.reason}" if audio.reason else "",
            *(_format_other(audio.other) if audio.other else [""] * 4),
        ]
        for audio in known.audio
    )


def _list_differences(one: Any, other: Any) -> Iterator[str]:  # noqa: ANN401 - atoms or recordings
    for name in ("artist_key", "title_key", "variant"):
        if getattr(one, name) != getattr(other, name):
            yield f"{name} {getattr(one, name)!r} ~ {getattr(other, name)!r}"
    if one.duration_ms != other.duration_ms:
        yield f"{_format_time(one.duration_ms)} ~ {_format_time(other.duration_ms)}"


def _format_other(other: Other) -> list[str]:
    return [
        f"track {other.recording_id}",
        f"{other.title} / {other.artist_credit}",
        _format_time(other.duration_ms),
        other.isrc or "no code",
    ]


def _format_conflicts(known: Evidence) -> list[str]:
    return _align_columns(
        [
            conflict.isrc,
            "kept here, claimed by" if conflict.is_kept else "lost to",
            *_format_other(conflict.other),
            f"kept apart by {conflict.reason}",
            f"{conflict.record_count} records of {', '.join(conflict.platforms)}",
        ]
        for conflict in known.conflicts
    )


def _format_cuts(known: Evidence) -> list[str]:
    return _align_columns([edge.kind, f"{edge.score:.2f}", edge.evidence, *_format_other(edge.other)] for edge in known.cut_edges)


def _format_lookalikes(known: Evidence) -> list[str]:
    # The recordings have the same name; either a part of the key differs or nothing spoke for a join.
    why = {"nothing": "no evidence joined them"}
    return _align_columns(
        [*_format_other(alike.other), why.get(alike.differs_in, f"differs in {alike.differs_in}"), alike.other.variant or "plain"]
        for alike in known.lookalikes
    )


def _format_work_conflicts(known: Evidence) -> list[str]:
    return _align_columns(
        [
            conflict.iswc,
            conflict.title,
            f"{conflict.kind} {conflict.isrc}" if conflict.isrc else conflict.kind,
            f"{conflict.claimed_title or '-'} / {conflict.claimed_artist or '-'}",
            _format_time(conflict.claimed_duration_ms),
            f"{conflict.claim_count} rows of {', '.join(conflict.platforms)}",
            f"outvoted by {conflict.winner_iswc}" if conflict.winner_iswc else f"refused by {conflict.reason}",
        ]
        for conflict in known.work_conflicts
    )
