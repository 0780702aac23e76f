"""Staged records -> tables `atom`, `atom_member`, `atom_isrc` (and what names mean): all of them, or those that a change can reach.

A change reaches an atom through its key alone (artist, title, variant): made again are the atoms of every key that a record had or has
which came, went, changed, or is credited to a name that means something else than last night. The parts of the snapshot that the night
builds on are taken over as they are, with one part more for the atoms that are new; those that are gone are named in `atom_gone` until
they are so many that everything is written anew.
"""

from __future__ import annotations

import shutil
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Self

import polars as pl

from catalog_store.tables import TABLES
from catalog_store.tables.atoms import ATOM_TABLES, gone_atoms, live_atoms
from catalog_store.tables.files import TableWriter, join_tables, parts, row_count, scan_table, write_table
from pipeline.engine.local import map_ordered, worker_pool
from pipeline.linkage import staged
from pipeline.linkage.atoms import Atoms, bucket_range, make_atoms
from pipeline.linkage.names_at_hand import hand_out_names, names_at_hand, write_names
from pipeline.linkage.night import MOST_CHANGED, Night, begin, settle
from pipeline.linkage.normalise import hash_bucket, names_of, normalise
from pipeline.linkage.overrides import NO_OVERRIDES, apart, load_overrides
from pipeline.linkage.runs import hashed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipeline.linkage.overrides import Overrides
    from pipeline.paths import BuildPaths

Facts = dict[str, int]

ROWS_PER_BUCKET = 400_000
"""Records (or atoms) that one bucket holds on average: some 300 MB at the widest point."""
ROWS_FOR_A_POOL = 500_000
"""Below, starting worker processes costs more than they take over."""
KEY = ("artist_key", "title_key", "variant")
MOST_GONE = 0.1
"""Share of atoms that count no more above which the tables are cleared of them: once in some twenty nights."""


def normalise_and_atoms(paths: BuildPaths, *, buckets: int | None = None, workers: int | None = None) -> Facts:
    """Write `linkage_version`, `credit_name`, `artist_name`, `atom`, `atom_member`, `atom_isrc`, `atom_gone` and `atom_change`."""
    night = begin(paths)
    overrides = load_overrides(paths.overrides) if paths.overrides.is_file() else NO_OVERRIDES
    records = staged.record_count(paths)
    buckets = buckets or bucket_count(records)
    workers = workers or (1 if records < ROWS_FOR_A_POOL else None)
    changes = None
    if night.base is not None:
        changes = _changes(paths, night)
    if changes is not None and changes.share > MOST_CHANGED:
        night = settle(paths, Night(None, f"{changes.share:.0%} of the records have changed"))
    if night.base is None or changes is None:
        changed = _link_all(paths, overrides, buckets, workers)
    else:
        changed = _link_changes(paths, night, changes, overrides, buckets)
    write_table(TABLES["atom_change"], paths.table("atom_change"), changed)
    return {
        "records": records,
        "atoms": row_count(paths.table("atom")) - row_count(paths.table("atom_gone")),
        "isrc_claims": live_atoms("atom_isrc", paths.table).select(pl.len()).collect().item(),
        "buckets": buckets,
        "is_in_full": int(night.base is None),
        "changed_records": changes.fresh.height if changes is not None else records,
        "changed_atoms": changed.height,
    }


def bucket_count(rows: int) -> int:
    """How many buckets so many rows are cut into."""
    return max(1, -(-rows // ROWS_PER_BUCKET))


class _Changes(NamedTuple):
    """Records of the base that are gone or must be looked at again (rows of `atom_member`), and the staged ones that must.

    `doubtful`: ids of atoms with a record that is as it was and may have to be read otherwise.
    """

    gone: pl.DataFrame
    fresh: pl.DataFrame
    doubtful: pl.Series
    share: float


def _changes(paths: BuildPaths, night: Night) -> _Changes:
    """What differs from the base: records by their content hash, and those whose names mean something else than last night."""
    after = staged.content_hashes(paths)
    before = night.table("atom_member").select("content_hash").collect()["content_hash"]
    gone, fresh = _differing_ids(before, after)
    artists = staged.artist_names(paths)
    renamed = _differing(night.table("artist_name").collect(), artists, ["platform", "artist_id"])
    credited, records = staged.names_and_records(paths, fresh, renamed)
    known = night.table("credit_name").collect()
    names = write_names(paths, artists, credited, known)
    read_otherwise = _differing(known.select("name", "part_keys"), names.select("name", "part_keys"), ["name"])
    read_otherwise = read_otherwise.join(known, on="name", how="semi").join(names, on="name", how="semi")
    keys = known.join(read_otherwise, on="name", how="semi")["name_key"].unique()
    if "" in keys:  # an atom keeps no placeholder among its names
        nameless = known.filter(pl.col("name_key") == "").join(read_otherwise, on="name", how="semi")["name"]
        records = pl.concat([records, staged.records_crediting(paths, nameless)]).unique("content_hash", keep="any")
    again = pl.concat([gone, records["content_hash"]]).unique().implode()
    rows = night.table("atom_member").filter(pl.col("content_hash").is_in(again)).collect()
    return _Changes(rows, records, _atoms_naming(night, keys), max(records.height, rows.height) / max(1, len(after)))


def _atoms_naming(night: Night, keys: pl.Series) -> pl.Series:
    """atom_id of the atoms of the base with a record that credits one of these names."""
    names = night.table("atom").select("atom_id", key="names").explode("key", empty_as_null=False)
    return names.filter(pl.col("key").is_in(keys.implode())).select("atom_id").unique().collect()["atom_id"]


def _differing_ids(before: pl.Series, after: pl.Series) -> tuple[pl.Series, pl.Series]:
    """The numbers that stand in `before` only, and those in `after` only. A tenth of what two joins cost."""
    return before.filter(~before.is_in(after.implode())), after.filter(~after.is_in(before.implode()))


def _differing(before: pl.DataFrame, after: pl.DataFrame, key: list[str]) -> pl.DataFrame:
    """Keys of the rows that stand in one of the tables only, or with other values."""
    both = pl.concat([before, after]).select(*key, row=pl.struct(before.columns).hash())
    return both.filter(pl.col("row").is_unique()).select(key).unique()


def _link_all(paths: BuildPaths, overrides: Overrides, buckets: int, workers: int | None) -> pl.DataFrame:
    spill = paths.root / "work" / "linkage" / "normalised.spill"
    shutil.rmtree(spill, ignore_errors=True)
    slices = list(enumerate(staged.slices(paths)))
    with worker_pool(workers) as pool:
        hand_out_names(paths, spill / "names", slices, pool)
        for _ in map_ordered(partial(_normalise_slice, spill, buckets), slices, pool=pool):
            pass
        shutil.rmtree(spill / "names")
        made = map_ordered(partial(_write_atoms, spill / "atoms"), sorted((spill / "rows").glob("*")), pool=pool)
        written_parts: list[list[Path]] = list(made)
    for place, name in enumerate(ATOM_TABLES):
        join_tables(TABLES[name], paths.table(name), [of_bucket[place] for of_bucket in written_parts if row_count(of_bucket[place])])
    shutil.rmtree(spill)
    _write_gone(paths, pl.Series("atom_id", [], dtype=pl.Int64))

    def written(name: str) -> pl.LazyFrame:
        return scan_table(TABLES[name], paths.table(name))

    named = _members_named(overrides, written)
    moves = apart(overrides, named)
    if moves.height:
        touched = _atoms_with_keys(written, _keys_of(written, named["atom_id"]))
        rows = _normal(paths, _hashes_in(written, touched))
        _write_merged(paths, written, touched["atom_id"], make_atoms(rows, moves), buckets)
    return TABLES["atom_change"].empty()


def _link_changes(paths: BuildPaths, night: Night, changes: _Changes, overrides: Overrides, buckets: int) -> pl.DataFrame:
    """Rows of `atom_change`. What people have decided on is always made again: a decision can reach from one key to another."""
    rows = _normalised(paths, changes.fresh)
    named = _members_named(overrides, night.table)
    keys = _keys_of(night.table, pl.concat([changes.gone["atom_id"], changes.doubtful, named["atom_id"]]))
    touched = reached = _atoms_with_keys(night.table, pl.concat([keys, rows.select(KEY)]).unique())
    while reached.height:
        stays = _hashes_in(night.table, reached).to_frame().join(changes.gone, on="content_hash", how="anti")["content_hash"]
        others = _normal(paths, stays)
        rows = pl.concat([rows, others])
        # A name that is read otherwise can have taken a record to another key.
        reached = _atoms_with_keys(night.table, others.select(KEY).unique()).join(touched, on="atom_id", how="anti")
        touched = pl.concat([touched, reached])
    made = make_atoms(rows)
    moves = apart(overrides, made.member.select("platform", "external_id", "atom_id"))
    if moves.height:
        made = make_atoms(rows, moves)
    gone, came = _differing_ids(touched["atom_id"], made.atom["atom_id"])
    _take_over(paths, night, gone, Atoms(*(rows.filter(pl.col("atom_id").is_in(came.implode())) for rows in made)), buckets)
    return pl.concat([ids.to_frame("atom_id").with_columns(change=pl.lit(change)) for ids, change in ((gone, "gone"), (came, "made"))])


def _members_named(overrides: Overrides, tables: Callable[[str], pl.LazyFrame]) -> pl.DataFrame:
    """platform, external_id, atom_id of the records that people have decided on."""
    columns = ["platform", "external_id", "atom_id"]
    if not overrides.entries:
        return TABLES["atom_member"].empty().select(columns)
    return tables("atom_member").select(columns).join(overrides.records.lazy(), on=["platform", "external_id"], how="semi").collect()


def _keys_of(tables: Callable[[str], pl.LazyFrame], atom_ids: pl.Series) -> pl.DataFrame:
    return tables("atom").select("atom_id", *KEY).join(_ids(atom_ids), on="atom_id", how="semi").select(KEY).unique().collect()


def _atoms_with_keys(tables: Callable[[str], pl.LazyFrame], keys: pl.DataFrame) -> pl.DataFrame:
    """atom_id of the atoms of these keys; by hash: an atom more, 1 time in 2^64, would be made again as it was."""
    wanted = hashed(KEY).is_in(keys.select(hashed(KEY)).to_series().implode())
    return tables("atom").select("atom_id", *KEY).filter(wanted).select("atom_id").collect()


def _hashes_in(tables: Callable[[str], pl.LazyFrame], atoms: pl.DataFrame) -> pl.Series:
    rows = tables("atom_member").select("atom_id", "content_hash").filter(pl.col("atom_id").is_in(atoms["atom_id"].implode()))
    return rows.select("content_hash").collect()["content_hash"]


def _ids(atom_ids: pl.Series) -> pl.LazyFrame:
    return atom_ids.unique().to_frame("atom_id").lazy()


def _normal(paths: BuildPaths, hashes: pl.Series) -> pl.DataFrame:
    return _normalised(paths, staged.records_with(paths, hashes))


def _normalised(paths: BuildPaths, records: pl.DataFrame) -> pl.DataFrame:
    """Normal forms of records, with only those names and artists in hand that they need."""
    credited = records.select("platform", artist="artists").explode("artist", empty_as_null=False).drop_nulls().unnest("artist")
    ids = credited.select("platform", "artist_id").drop_nulls().unique()
    artists = scan_table(TABLES["artist_name"], paths.table("artist_name")).join(ids.lazy(), on=ids.columns, how="semi").collect()
    wanted = names_of(records, artists).select("name").unique()
    names = scan_table(TABLES["credit_name"], paths.table("credit_name")).join(wanted.lazy(), on="name", how="semi").collect()
    return normalise(records, names, artists)


def _normalise_slice(spill: Path, buckets: int, job: tuple[int, staged.Slice]) -> None:
    """Write the normal form of a slice, the rows of each bucket into a folder of its own."""
    number, records = job
    rows = normalise(records.read(), *names_at_hand(spill / "names", number))
    spilled(rows.with_columns(bucket=hash_bucket(buckets)), spill / "rows", number)


def spilled(rows: pl.DataFrame, spill: Path, number: int) -> None:
    """Write the rows of each `bucket` into a folder of its own; `number` says which of the writers this is.

    As Arrow, uncompressed: Parquet takes a third of the room (some 100 bytes a record instead of 280) and four times the processor time.
    """
    for (bucket,), frame in rows.partition_by("bucket", as_dict=True, include_key=False).items():
        folder = spill / f"{bucket:05d}"
        folder.mkdir(parents=True, exist_ok=True)
        frame.write_ipc(folder / f"{number:06d}.arrow", compression="uncompressed")


def unspilled(folder: Path) -> pl.DataFrame:
    """All rows of one bucket, in the order of the writers."""
    return pl.concat([pl.read_ipc(file) for file in sorted(folder.glob("*.arrow"))])


def _write_atoms(out: Path, bucket: Path) -> list[Path]:
    """Write the three tables of one bucket, each as a table of its own; their folders."""
    folders = [out / bucket.name / name for name in ATOM_TABLES]
    for name, folder, rows in zip(ATOM_TABLES, folders, make_atoms(unspilled(bucket)), strict=True):
        write_table(TABLES[name], folder, [rows])
    shutil.rmtree(bucket)
    return folders


class _AtomWriters:
    """The three tables of atoms, a part of each per bucket, published together."""

    def __init__(self, paths: BuildPaths) -> None:
        self._writers = [TableWriter(TABLES[name], paths.table(name)) for name in ATOM_TABLES]

    def __enter__(self) -> Self:
        for writer in self._writers:
            writer.__enter__()
        return self

    def write(self, atoms: Atoms) -> None:
        """Write one bucket."""
        for writer, rows in zip(self._writers, atoms, strict=True):
            writer.write(rows)

    def take(self, folder: Callable[[str], Path]) -> None:
        """Take over all parts as they are."""
        for name, writer in zip(ATOM_TABLES, self._writers, strict=True):
            for part in parts(folder(name)):
                writer.take(part)

    def __exit__(self, *error: object) -> None:
        for writer in self._writers:
            writer.__exit__(*error)  # type: ignore[arg-type]


def _take_over(paths: BuildPaths, night: Night, gone: pl.Series, came: Atoms, buckets: int) -> None:
    """Write the three tables of atoms: the parts of the base as they are and one with what came; and which atoms are gone by now."""
    before = gone_atoms(night.folder)
    known = pl.col("atom_id").is_in(before.implode())
    back = came.atom.filter(known)["atom_id"]
    gone = pl.concat([before.filter(~before.is_in(back.implode())), gone])
    if len(gone) > MOST_GONE * row_count(night.folder("atom")):
        _write_merged(paths, night.table, gone, came, buckets)
        return
    with _AtomWriters(paths) as out:
        out.take(night.folder)
        out.write(Atoms(*(rows.filter(~known) for rows in came)))
    _write_gone(paths, gone)


def _write_merged(paths: BuildPaths, tables: Callable[[str], pl.LazyFrame], gone: pl.Series, came: Atoms, buckets: int) -> None:
    """Write the three tables of atoms anew: those of `tables` without the atoms that are gone, and what came."""
    stays = ~pl.col("atom_id").is_in(gone.implode())
    with _AtomWriters(paths) as out:
        for bucket in range(buckets):
            within = pl.col("atom_id").is_between(*bucket_range(bucket, buckets))
            kept = (tables(name).filter(within & stays).collect() for name in ATOM_TABLES)
            merged = (pl.concat([old, new.filter(within)]) for old, new in zip(kept, came, strict=True))
            out.write(Atoms(*(rows.sort("atom_id", maintain_order=True) for rows in merged)))
    _write_gone(paths, gone.clear())


def _write_gone(paths: BuildPaths, gone: pl.Series) -> None:
    write_table(TABLES["atom_gone"], paths.table("atom_gone"), gone.to_frame("atom_id"))
