"""The id registry on disk: read from the live snapshot, saved by each stage, collected for the next snapshot.

Between builds it consists of tables `id_registry` and `redirect` of the live snapshot, and of `next_ids` in the manifests of all snapshots:
after a rollback the live snapshot does not know the ids that a later one gave out. Rows of `id_registry` are the homes of source keys and,
as `id:<old id>`, the links of id_rules.py. The home of a record is its id in `recording_member` of the same snapshot, unless `id_registry`
has a row for it: records that are absent, or whose home was merged into the id that they carry.

Between the stages of one build it is in `<root>/work/registry/<kind>/{id_registry,redirect}/` and `next_id.json` (`{"next_id": n}`).

Ids never start at 1 again while there is a snapshot. A lost or damaged registry stops the build until `rebuild_registry` derives it from
the snapshot's other tables, into `<root>/work/registry/rebuilt/<snapshot id>/id_registry/`; a snapshot itself is never changed. A rebuilt
registry does not know keys that were absent from that snapshot, nor merges that could be undone.

Out of scope: who gets which id (id_rules.py).
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Self

import polars as pl

from catalog_store.errors import NoSnapshotError
from catalog_store.folder_listing import list_folder
from catalog_store.published_snapshots import find_highest_ids, list_snapshots
from catalog_store.snapshot import find_role, hash_file, read_manifest
from catalog_store.tables import TABLES
from catalog_store.tables.files import EvenTableWriter, join_tables, scan_table, write_table
from pipeline.linkage.id_rules import FIRST_ID, KEY_SCHEMA, Assignment, Registry

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from types import TracebackType

    from pipeline.paths import BuildPaths


KINDS = ("artist", "label", "recording", "release")
MEMBERS = {"artist": "artist_source", "label": "label_source", "recording": "recording_member", "release": "release_source"}
"""The table of each kind with the id of every source entity."""

LINK = "id:"
"""Prefix of the rows of `id_registry` that are links."""
_AFTER_LINKS = "id;"
"""The smallest string after all that begin with `id:`."""
SOURCE_KEY = pl.concat_str("platform", pl.lit(":"), "external_id")
_NO_MEMBERS = TABLES["recording_member"].build_empty().lazy()


class RegistryError(ValueError):
    """The registry cannot be used; the message says what to run. A build without it would give every entity a new id."""


def require_registry(paths: BuildPaths) -> None:
    """Read every byte of the live snapshot's registry; RegistryError when it cannot be used. Once a build: a second per gigabyte."""
    _find_registry_folder(paths, contents=True)


class StoredKeys:
    """The source keys of one kind as last published, and their homes; none before the first publish. RegistryError when they are lost.

    Opening it costs a look at the manifest, so a process of its own can read a range of keys.
    """

    def __init__(self, paths: BuildPaths, kind: str) -> None:
        """Open the tables."""
        folder = _find_registry_folder(paths, contents=False)
        table = TABLES["id_registry"]
        rows = table.build_empty().lazy() if folder is None else scan_table(table, folder)
        self._rows = rows.filter(pl.col("kind") == kind).select(KEY_SCHEMA.names())
        self._members = _scan_live_members(paths) if kind == "recording" else _NO_MEMBERS

    def read_keys(self, start: str = "", end: str | None = None) -> pl.DataFrame:
        """Return keys as in Registry, from `start` on, up to `end`."""
        rows = _filter_between(self._rows, start, end).collect()
        first, last = (rows["source_key"].search_sorted(key) for key in (LINK, _AFTER_LINKS))
        rows = pl.concat([rows[:first], rows[last:]])
        members = _filter_members(self._members, start, end).select(source_key=SOURCE_KEY, entity_id="recording_id")
        return overlay(members.collect(), rows)

    def read_exceptions(self) -> pl.DataFrame:
        """Return the keys that table `id_registry` itself holds, as in Registry."""
        return self._rows.filter(~pl.col("source_key").str.starts_with(LINK)).collect()


class StoredRegistry(StoredKeys):
    """The registry of one kind as last published, read piece by piece: keys, links, the first free id.

    `links` as in Registry; `next_id`: the first free id.
    """

    def __init__(self, paths: BuildPaths, kind: str) -> None:
        """Read the links and the largest ids, not the keys."""
        super().__init__(paths, kind)
        stored = self._rows.filter(pl.col("source_key").is_between(pl.lit(LINK), pl.lit(_AFTER_LINKS))).collect()
        links = stored.select(old_id=pl.col("source_key").str.strip_prefix(LINK).cast(pl.Int64), new_id="entity_id")
        self.links = pl.concat([links, self._convert_redirects(read_published_redirects(paths, kind), links)]).sort("old_id")
        # Each source may know ids that the others lack: links name merged ids, and after a rollback only the manifests know
        # the ids of later snapshots.
        largest = [rows.select(pl.col(name).max()).collect().item() or 0 for rows, name in self._list_tables()]
        first_free = find_highest_ids(paths.root).get(kind, FIRST_ID)
        self.next_id = max([FIRST_ID, *(number + 1 for number in largest), Registry(links=self.links).largest_id + 1, first_free])

    def _list_tables(self) -> list[tuple[pl.LazyFrame, str]]:
        return [(self._rows, "entity_id"), (self._members, "recording_id")]

    def _convert_redirects(self, redirects: pl.DataFrame, links: pl.DataFrame) -> pl.DataFrame:
        """Return redirects of ids that the registry does not know, as links: it was rebuilt, or is older than links."""
        # A rebuilt registry has no links. Without these the callers' old ids would stop redirecting after the next
        # build.
        unknown = redirects.join(links, on="old_id", how="anti")
        if unknown.is_empty():
            return unknown
        homes = pl.concat([rows.select(old_id=name).join(unknown.lazy(), on="old_id", how="semi") for rows, name in self._list_tables()])
        return unknown.join(homes.unique().collect(), on="old_id", how="anti").select("old_id", new_id=pl.coalesce("new_id", "old_id"))


def is_exception() -> pl.Expr:
    """Return whether `id_registry` needs a row of `id_rules.assign_homes`, because `recording_member` does not imply it."""
    return pl.col("group").is_null() | (pl.col("home") != pl.col("entity_id"))


def _filter_between(rows: pl.LazyFrame, start: str, end: str | None) -> pl.LazyFrame:
    here = pl.col("source_key") >= start
    return rows.filter(here if end is None else here & (pl.col("source_key") < end))


def _filter_members(members: pl.LazyFrame, start: str, end: str | None) -> pl.LazyFrame:
    """Return the rows of `recording_member` from the key `start` on, up to the key `end`."""
    # Platform and id are compared apart: a reader skips row groups by them, but must read all rows to compare keys.
    platform, _, first = start.partition(":")
    if end is None:
        return members.filter(_is_behind(platform, first))
    last_platform, _, last = end.partition(":")
    if platform == last_platform:
        return members.filter(pl.col("platform") == platform, pl.col("external_id") >= first, pl.col("external_id") < last)
    return members.filter(_is_behind(platform, first), ~_is_behind(last_platform, last))


def _is_behind(platform: str, external_id: str) -> pl.Expr:
    """Return whether a record's key is this one or comes after it."""
    return (pl.col("platform") > platform) | ((pl.col("platform") == platform) & (pl.col("external_id") >= external_id))


def overlay(members: pl.DataFrame, rows: pl.DataFrame, everywhere: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return these rows of the registry, and members for which it has none, sorted by source_key.

    `everywhere`: all rows of the registry, when `rows` are some of them.
    """
    others = members.join(rows if everywhere is None else everywhere, on="source_key", how="anti", maintain_order="left")
    return others.merge_sorted(rows, key="source_key")


def _scan_live_members(paths: BuildPaths) -> pl.LazyFrame:
    table = TABLES["recording_member"]
    folder = paths.current / "tables" / table.name
    return scan_table(table, folder) if folder.is_dir() else _NO_MEMBERS


def read_previous_registry(paths: BuildPaths, kind: str) -> tuple[Registry, int]:
    """Return the last published registry of `kind` and the first free id; empty and 1 before the first publish. RegistryError if lost."""
    stored = StoredRegistry(paths, kind)
    return Registry(stored.read_keys(), stored.links), stored.next_id


def read_published_redirects(paths: BuildPaths, kind: str) -> pl.DataFrame:
    """Return the redirects of `kind` in the live snapshot: old_id, new_id."""
    table = TABLES["redirect"]
    folder = paths.current / "tables" / table.name
    if not folder.is_dir():
        return table.build_empty().select("old_id", "new_id")
    return scan_table(table, folder).filter(pl.col("kind") == kind).select("old_id", "new_id").collect()


def save_assignment(folder: Path, kind: str, assignment: Assignment) -> None:
    """Save a whole assignment into a `get_work_folder`, for `collect_registry`."""
    with RegistryWriter(folder / "id_registry") as writer:
        writer.write(kind, assignment.registry.keys, assignment.registry.links)
    write_redirects_and_next_id(folder, kind, assignment.redirects, assignment.next_id)


def write_redirects_and_next_id(folder: Path, kind: str, redirects: pl.DataFrame, next_id: int) -> None:
    """Write the files beside the registry of a kind in its `get_work_folder`: redirects (old_id, new_id) and the first free id."""
    write_table(TABLES["redirect"], folder / "redirect", redirects.with_columns(kind=pl.lit(kind)))
    (folder / "next_id.json").write_text(json.dumps({"next_id": next_id}) + "\n")


class RegistryWriter:
    """A writer of table `id_registry`: keys come in order, in frames of any size, and leave in parts of equal size."""

    def __init__(self, folder: Path) -> None:
        """Write into `folder`, the folder of the table."""
        self._writer = EvenTableWriter(TABLES["id_registry"], folder)

    def __enter__(self) -> Self:
        """Open the table for writing."""
        self._writer.__enter__()
        return self

    def write(self, kind: str, keys: pl.DataFrame, links: pl.DataFrame | None = None) -> None:
        """Append keys, and all links at the place of `id:`: give the links with the last keys before it or the first keys after it."""
        if links is not None:
            named = links.select(source_key=pl.lit(LINK) + pl.col("old_id").cast(pl.String), entity_id="new_id").sort("source_key")
            place = keys["source_key"].search_sorted(LINK)
            keys = pl.concat([keys[:place], named, keys[place:]])
        self._writer.append(keys.with_columns(kind=pl.lit(kind)))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Write the remaining rows and publish the table, or discard it when the block failed."""
        self._writer.__exit__(kind, error, trace)


def collect_registry(paths: BuildPaths) -> dict[str, int]:
    """Write tables `id_registry` and `redirect` out of all kinds, and return the next free id of each kind.

    A kind that this build did not assign keeps what the live snapshot says of it.
    """
    for kind in KINDS:
        if not (get_work_folder(paths, kind) / "next_id.json").is_file():
            # A build of some stages only: the other kinds must not lose their ids.
            registry, next_id = read_previous_registry(paths, kind)
            kept = Assignment(pl.DataFrame(), registry, read_published_redirects(paths, kind), next_id)
            save_assignment(_get_kept_folder(paths, kind), kind, kept)
    folders = [_find_collected_folder(paths, kind) for kind in KINDS]
    join_tables(TABLES["id_registry"], paths.table("id_registry"), [folder / "id_registry" for folder in folders])
    join_tables(TABLES["redirect"], paths.table("redirect"), [folder / "redirect" for folder in folders])
    return read_next_ids(paths)


def read_next_ids(paths: BuildPaths) -> dict[str, int]:
    """Return the next free id of each kind, as `collect_registry` found it last."""
    return {kind: json.loads((_find_collected_folder(paths, kind) / "next_id.json").read_text())["next_id"] for kind in KINDS}


def _get_kept_folder(paths: BuildPaths, kind: str) -> Path:
    """Return the folder that replaces `get_work_folder` for a kind to which this build gave no ids."""
    return get_work_folder(paths, kind).with_name(f"{kind}.kept")


def _find_collected_folder(paths: BuildPaths, kind: str) -> Path:
    folder = get_work_folder(paths, kind)
    return folder if (folder / "next_id.json").is_file() else _get_kept_folder(paths, kind)


def rebuild_registry(paths: BuildPaths) -> dict[str, object]:
    """Derive a lost registry from the live snapshot's other tables, so that the next build can run, and return facts about it.

    RegistryError when nothing is live, or a table that it needs is damaged too. A registry that can be used is left alone.
    """
    live = _find_live(paths)
    if live is None:
        raise RegistryError(f"{paths.root} has no published snapshot: a first build needs no registry")
    _require_members(live, MEMBERS.values(), contents=True)
    fault = _find_fault(live, "id_registry", contents=True)
    if fault is None:
        return {"snapshot": live.name, "rebuilt": False, "why": "its registry is usable"}
    found = [(kind, Registry(_read_member_keys(live, kind))) for kind in KINDS]
    with RegistryWriter(_get_rebuilt_folder(paths, live)) as writer:
        for kind, registry in found:
            # Homes of records are read from `recording_member` of the same snapshot, so the registry repeats none.
            writer.write(kind, registry.keys if kind != "recording" else registry.keys.clear())
    return {"snapshot": live.name, "rebuilt": True, "why": fault, **{kind: registry.keys.height for kind, registry in found}}


def _read_member_keys(live: Path, kind: str) -> pl.DataFrame:
    name = MEMBERS[kind]
    key = pl.concat_str("platform", pl.lit(":"), "external_id")
    if kind == "artist":  # known by name only: one entity, whichever platforms name it
        key = pl.when(pl.col("external_id").str.starts_with("name:")).then("external_id").otherwise(key)
    rows = scan_table(TABLES[name], live / "tables" / name).select(source_key=key, entity_id=f"{kind}_id").unique().collect()
    return rows.sort("source_key")


def _require_members(live: Path, names: Iterable[str], *, contents: bool) -> None:
    """Raise RegistryError when a table of members is not as it was published. Nothing else knows the ids of these records."""
    for name in names:
        fault = _find_fault(live, name, contents=contents)
        if fault is not None:
            raise RegistryError(
                f"snapshot {live.name} has lost the ids of its records ({fault}): roll back to another snapshot, or bring this one back "
                "with `python -m pipeline restore --replace` or `python -m catalog_store pull --role all --read-all`"
            )


def _find_registry_folder(paths: BuildPaths, *, contents: bool) -> Path | None:
    """Return the folder of the last registry; None before the first publish."""
    live = _find_live(paths)
    if live is None:
        return None
    _require_members(live, ["recording_member"], contents=contents)
    fault = _find_fault(live, "id_registry", contents=contents)
    if fault is None:
        return live / "tables" / "id_registry"
    if _get_rebuilt_folder(paths, live).is_dir():
        return _get_rebuilt_folder(paths, live)
    raise RegistryError(
        f"snapshot {live.name} has no usable id registry ({fault}), and without it every entity would get a new id: "
        f"run `python -m pipeline registry rebuild --catalog {paths.root}`, or roll back to another snapshot"
    )


def _find_live(paths: BuildPaths) -> Path | None:
    if paths.current.is_dir():
        live = paths.current.resolve()
        _require_tables(live)
        return live
    published = list_snapshots(paths.root)
    if published:
        raise RegistryError(
            f"none of the {len(published)} published snapshots under {paths.root} is live, so every entity would get a new id; "
            f"run `python -m pipeline rollback --catalog {paths.root} --to {published[-1].folder.name}`"
        )
    # No snapshot is found but the link exists: a disk that is not mounted looks like this, and a first build would be
    # wrong.
    if paths.current.is_symlink():
        raise RegistryError(
            f"{paths.current} names {paths.current.readlink()}, which does not exist, and there is no other snapshot: "
            "every entity would get a new id; "
            "mount or restore the snapshots; if they are lost, remove that link and begin a new catalog"
        )
    return None


def _require_tables(live: Path) -> None:
    """Raise RegistryError for a snapshot that never had its tables here: no command can derive them."""
    with suppress(NoSnapshotError):
        if find_role(live, read_manifest(live)) == "serving":
            raise RegistryError(
                f"{live} holds only the files of a server, and a build goes on from tables: build on the machine that has them, or "
                "`python -m catalog_store pull --role all` into another folder and build there"
            )


def _find_fault(live: Path, name: str, *, contents: bool) -> str | None:
    """Return what is wrong with a table of a snapshot; None if nothing is, or the snapshot never had that table of members."""
    if name == "id_registry" and not list_folder(live / "tables" / name, "part-*.parquet"):
        return "the table is missing"
    try:
        tables = read_manifest(live).tables
    except NoSnapshotError:
        return None  # a folder without a manifest: there is nothing to compare with
    for part in tables[name].files if name in tables else ():
        path = live / part.path
        if not path.is_file():
            return f"{part.path} is missing"
        # Size first: hashing reads the whole file, and is left to the one check at the start of a build.
        if path.stat().st_size != part.bytes or (contents and hash_file(path) != part.sha256):
            return f"{part.path} differs from what was published"
    return None


def _get_rebuilt_folder(paths: BuildPaths, live: Path) -> Path:
    return paths.root / "work" / "registry" / "rebuilt" / live.name / "id_registry"


def get_work_folder(paths: BuildPaths, kind: str) -> Path:
    """Return the folder for the ids of a kind between the stages of one build; ValueError for an unknown kind."""
    if kind not in KINDS:
        raise ValueError(f"kind {kind!r} has no ids: use one of {', '.join(KINDS)}")
    return paths.root / "work" / "registry" / kind
