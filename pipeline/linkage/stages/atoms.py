"""Staged records -> tables `atom`, `atom_member`, `atom_isrc` (and what names mean): all of them, or those that a change can reach.

A change reaches an atom through its key alone (artist, title, variant): made again are the atoms of every key that a record had or has
which came, went, changed, or is credited to a name that means something else than last night. The parts of the snapshot that the night
builds on are taken over as they are, with one part more for the atoms that are new; those that are gone are named in `atom_gone` until
they are so many that everything is written anew.
"""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Self

import polars as pl

from catalog_store.record_keys.numbers import hashed, record_number
from catalog_store.tables import TABLES
from catalog_store.tables.atoms import ATOM_TABLES
from catalog_store.tables.files import join_tables, parts, row_count, write_table
from pipeline.engine.local import map_ordered, worker_pool
from pipeline.linkage import mapped, staged
from pipeline.linkage.atoms import KEY, Atoms, bucket_range, make_atoms
from pipeline.linkage.credits import NO_ARTIST, artist_number, changed_names, credit_numbers, credits_of, name_number
from pipeline.linkage.failures import naming_records
from pipeline.linkage.names_at_hand import hand_out_names, names_at_hand, write_names
from pipeline.linkage.night import MOST_CHANGED, Night, begin, settle
from pipeline.linkage.normalise import NORMAL_SCHEMA, hash_bucket, names_of, normalise, read_again
from pipeline.linkage.overrides import NO_OVERRIDES, apart, load_overrides
from pipeline.linkage.runs import in_differing_sums
from pipeline.linkage.splicing import insertion_places, spliced

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pipeline.linkage.mapped import Mapped
    from pipeline.linkage.overrides import Overrides
    from pipeline.paths import BuildPaths

Facts = dict[str, int]

ROWS_PER_BUCKET = 400_000
"""Records (or atoms) that one bucket holds on average: some 300 MB at the widest point."""
ROWS_FOR_A_POOL = 500_000
"""Below, starting worker processes costs more than they take over."""
_CREDITS = ("credit_names", "credit_artists")
MOST_GONE = 0.1
"""Share of atoms that count no more above which the tables are cleared of them: once in some twenty nights."""


def normalise_and_atoms(paths: BuildPaths, *, buckets: int | None = None, workers: int | None = None) -> Facts:
    """Write `linkage_version`, `credit_name`, `artist_name`, `atom`, `atom_member`, `atom_isrc`, `atom_gone` and `atom_change`.

    LinkageError, which names platform and record, when one cannot be read.
    """
    with naming_records(paths):
        return _normalise_and_atoms(paths, buckets, workers)


def _normalise_and_atoms(paths: BuildPaths, buckets: int | None, workers: int | None) -> Facts:
    night = begin(paths)
    overrides = load_overrides(paths.overrides) if paths.has_overrides else NO_OVERRIDES
    records = staged.record_count(paths)
    buckets = buckets or bucket_count(records)
    workers = workers or (1 if records < ROWS_FOR_A_POOL else None)
    changes = None
    if night.base is not None:
        changes = _changes(paths, night)
    if changes is not None and changes.share > MOST_CHANGED:
        night = settle(paths, Night(None, f"{changes.share:.0%} of the records have changed"))
    changed = None
    if night.base is not None and changes is not None:
        changed = _link_changes(paths, night, changes, overrides, buckets)
        if changed is None:
            night = settle(paths, Night(None, f"names that are read otherwise reach more than {MOST_CHANGED:.0%} of the atoms"))
    if changed is None:
        changed = _link_all(paths, overrides, buckets, workers)
    write_table(TABLES["atom_change"], paths.table("atom_change"), changed)
    return {
        "records": records,
        "atoms": row_count(paths.table("atom")) - row_count(paths.table("atom_gone")),
        "isrc_claims": mapped.tonight(paths).rows("atom_isrc", ["atom_id"]).height,
        "buckets": buckets,
        "is_in_full": int(night.base is None),
        "changed_records": len(changes.fresh) if changes is not None else records,
        "changed_atoms": changed.height,
    }


def bucket_count(rows: int) -> int:
    """How many buckets so many rows are cut into."""
    return max(1, -(-rows // ROWS_PER_BUCKET))


class _Changes(NamedTuple):
    """How the staged records differ from those of the base: content hashes of those that are `gone`, and of those that are `fresh`."""

    gone: pl.Series
    fresh: pl.Series
    share: float


def _changes(paths: BuildPaths, night: Night) -> _Changes:
    after = staged.content_hashes(paths)
    before = night.atoms.rows("atom_member", ["content_hash"])["content_hash"]
    gone, fresh = _differing_ids(before, after)
    return _Changes(gone, fresh, max(len(gone), len(fresh)) / max(1, len(after)))


class _Names(NamedTuple):
    """Tables `credit_name` and `artist_name` of tonight."""

    names: pl.DataFrame
    artists: pl.DataFrame

    def of(self, name_numbers: pl.Series, artist_numbers: pl.Series) -> Self:
        """Those that these credits need."""
        own = self.artists.filter(artist_number().is_in(artist_numbers.unique().implode()))
        wanted = pl.concat([name_numbers, own.select(name_number()).to_series()]).unique()
        return type(self)(self.names.filter(name_number().is_in(wanted.implode())), own)


def _read_names(paths: BuildPaths, night: Night, gone: pl.Series, fresh: pl.DataFrame) -> tuple[_Names, pl.Series, pl.Series]:
    """Write both tables, and say which atoms of the base lost a record, and which have names that may mean something else than last night.

    `gone`: content hashes of the records that are gone. `fresh`: rows of `source_recording` that are new.
    """
    lost = night.atoms.rows("atom_member", ["atom_id", *_CREDITS], pl.col("content_hash").is_in(gone.implode()))
    before = night.read("artist_name")
    artists, renamed = _artists(before, staged.artist_names(paths))
    doubtful = pl.concat([lost["credit_names"].explode(empty_as_null=False), renamed.select(name_number()).to_series()]).unique()
    known = night.read("credit_name")
    in_doubt = known.select(name_number()).to_series().is_in(doubtful.implode())
    own = artists.filter(name_number().is_in(doubtful.implode())).select("name", has_id=pl.lit(value=True))
    told = [_still_credited(night, known.filter(in_doubt), lost), own, names_of(fresh)]
    names = changed_names(known, in_doubt, pl.concat(told))
    write_names(paths, artists, names)
    both = known.select("name", before="part_keys").join(names, on="name")
    read_otherwise = both.filter(pl.col("part_keys").ne_missing(pl.col("before"))).select(name_number()).to_series()
    reached = _atoms_crediting(night, read_otherwise, renamed.select(artist_number()).to_series())
    return _Names(names, artists), lost["atom_id"].unique(), reached


def _artists(before: pl.DataFrame, after: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """`after` in its order, and the rows that came or went; of an artist who has another name both.

    `before`: table `artist_name` of the base. What has not changed is not sorted again: nearly all.
    """
    was, is_ = (table.select(row=hashed(table.columns)).to_series() for table in (before, after))
    left, entered = (ids.is_in(differing.implode()) for ids, differing in zip((was, is_), _differing_ids(was, is_), strict=True))
    came = after.filter(entered).sort(TABLES["artist_name"].order)
    found = spliced(before, left.arg_true().to_numpy(), came, insertion_places(before, came, "artist_id").to_numpy())
    return found, pl.concat([before.filter(left), came])


def _still_credited(night: Night, names: pl.DataFrame, lost: pl.DataFrame) -> pl.DataFrame:
    """name, has_id of those of some names that the base's records credit and tonight's still do.

    `lost`: credit_names, credit_artists of the records that are gone.
    """
    names = names.select("name", number=name_number())
    left, open_ = _times(_flat(lost), names["number"]).with_columns(-pl.col("times")), names["number"]
    for rows in night.atoms.pieces("atom_member", [*_CREDITS]):
        left = pl.concat([left, _times(_flat(rows), open_)]).group_by("number", "has_id").agg(pl.col("times").sum())
        # One that is credited with an id once more than it lost needs no more counting: nearly all, after the first piece.
        settled = left.filter("has_id", pl.col("times") > 0)["number"]
        open_ = open_.filter(~open_.is_in(settled.implode()))
    return names.join(left.filter(pl.col("times") > 0), on="number").select("name", "has_id")


def _times(credits_: pl.DataFrame, numbers: pl.Series) -> pl.DataFrame:
    """number, has_id, times: how often names with these numbers are credited."""
    wanted = credits_.filter(pl.col("number").is_in(numbers.implode()))
    return wanted.group_by("number", "has_id").agg(times=pl.len().cast(pl.Int64))


def _flat(rows: pl.DataFrame) -> pl.DataFrame:
    """Every credit of some records: number (of the name), has_id. The lists are laid end to end, not taken apart row by row."""
    names, artists = (rows[name].explode(empty_as_null=False) for name in _CREDITS)
    return pl.DataFrame({"number": names, "has_id": artists != NO_ARTIST})


def _atoms_crediting(night: Night, names: pl.Series, artists: pl.Series) -> pl.Series:
    """atom_id of the atoms of the base with a record that credits one of these names, or of these artists (numbers)."""
    found = [pl.Series("atom_id", [], dtype=pl.Int64)]
    for rows in night.atoms.pieces("atom_member", ["atom_id", *_CREDITS]) if len(names) or len(artists) else []:
        ends = rows["credit_names"].list.len().cum_sum()
        for name, wanted in zip(_CREDITS, (names, artists), strict=True):
            hits = rows[name].explode(empty_as_null=False).is_in(wanted.implode()).arg_true()
            found.append(rows["atom_id"].gather(ends.search_sorted(hits, side="right")))
    return pl.concat(found).unique()


def _differing_ids(before: pl.Series, after: pl.Series) -> tuple[pl.Series, pl.Series]:
    """The numbers that stand in `before` only, and those in `after` only."""
    one, other = (ids.filter(pl.Series(differ)) for ids, differ in zip((before, after), in_differing_sums(before, after), strict=True))
    return one.filter(~one.is_in(other.implode())), other.filter(~other.is_in(one.implode()))


def _link_all(paths: BuildPaths, overrides: Overrides, buckets: int, workers: int | None) -> pl.DataFrame:
    spill, files = paths.root / "work" / "linkage" / "normalised.spill", mapped.folder(paths)
    shutil.rmtree(spill, ignore_errors=True)
    slices = list(enumerate(staged.slices(paths)))
    with worker_pool(workers) as pool:
        hand_out_names(paths, spill / "names", slices, pool)
        for _ in map_ordered(partial(_normalise_slice, spill, buckets), slices, pool=pool):
            pass
        shutil.rmtree(spill / "names")
        made = list(map_ordered(partial(_write_atoms, spill / "atoms", files), sorted((spill / "rows").glob("*")), pool=pool))
    _join_parts(paths, made)
    shutil.rmtree(spill)
    _write_gone(paths, pl.Series("atom_id", [], dtype=pl.Int64))
    atoms = mapped.tonight(paths)
    named = members_named(atoms, overrides)
    moves = apart(overrides, named)
    if moves.height:
        touched = _atoms_with_keys(atoms, _keys_of(atoms, named["atom_id"]))
        rows = _normal_forms(atoms, touched)
        _write_merged(paths, atoms, touched["atom_id"], make_atoms(rows, moves), rows, buckets)
    return TABLES["atom_change"].empty()


def _link_changes(paths: BuildPaths, night: Night, changes: _Changes, overrides: Overrides, buckets: int) -> pl.DataFrame | None:
    """Rows of `atom_change`, or None when too much would have to be made again.

    What people have decided on is always made again: a decision can reach from one key to another.
    """
    fresh = staged.records_with(paths, changes.fresh)
    names, lost, read_otherwise = _read_names(paths, night, changes.gone, fresh)
    if len(read_otherwise) > MOST_CHANGED * row_count(night.folder("atom")):
        return None
    credited = credit_numbers(credits_of(fresh.with_row_index("row")))
    rows = normalise(fresh, *names.of(credited["name"], credited["artist"]))
    named = members_named(night.atoms, overrides)
    keys = _keys_of(night.atoms, pl.concat([lost, read_otherwise, named["atom_id"]]))
    touched = next_ = _atoms_with_keys(night.atoms, pl.concat([keys, _keys(rows)]))
    while next_.height:
        others = _normal_forms(night.atoms, next_).filter(~pl.col("content_hash").is_in(changes.gone.implode()))
        credited = others.select("credit_names", "credit_artists").explode("credit_names", "credit_artists", empty_as_null=False)
        others = read_again(others, *names.of(credited["credit_names"], credited["credit_artists"]))
        rows = pl.concat([rows, others])
        # A name that is read otherwise can have taken a record to another key.
        next_ = _atoms_with_keys(night.atoms, _keys(others)).join(touched, on="atom_id", how="anti")
        touched = pl.concat([touched, next_])
    made = make_atoms(rows)
    moves = apart(overrides, made.member.select("platform", "external_id", "atom_id"))
    if moves.height:
        made = make_atoms(rows, moves)
    gone, came = _differing_ids(touched["atom_id"], made.atom["atom_id"])
    _take_over(paths, night, gone, Atoms(*(some.filter(pl.col("atom_id").is_in(came.implode())) for some in made)), rows, buckets)
    return pl.concat([ids.to_frame("atom_id").with_columns(change=pl.lit(change)) for ids, change in ((gone, "gone"), (came, "made"))])


def members_named(atoms: Mapped, overrides: Overrides) -> pl.DataFrame:
    """platform, external_id, atom_id of the records that people have decided on."""
    columns = ["platform", "external_id", "atom_id"]
    if not overrides.entries:
        return TABLES["atom_member"].empty().select(columns)
    near = atoms.rows("atom_member", columns, pl.col("record").is_in(overrides.records.select(record_number()).to_series().implode()))
    return near.join(overrides.records, on=["platform", "external_id"], how="semi")


def _keys(rows: pl.DataFrame) -> pl.Series:
    """The numbers of the keys of normalised records."""
    return rows.select(key=hashed(KEY)).to_series()


def _keys_of(atoms: Mapped, atom_ids: pl.Series) -> pl.Series:
    """The numbers of the keys of these atoms."""
    return atoms.of_atoms("atom", atom_ids, ["key"])["key"]


def _atoms_with_keys(atoms: Mapped, keys: pl.Series) -> pl.DataFrame:
    """atom_id of the atoms of these keys, given by number: an atom more, 1 time in 2^64, would be made again as it was."""
    return atoms.rows("atom", ["atom_id"], pl.col("key").is_in(keys.unique().implode()))


def _normal_forms(atoms: Mapped, of: pl.DataFrame) -> pl.DataFrame:
    """The normalised records of these atoms."""
    return atoms.of_atoms("atom_member", of["atom_id"], NORMAL_SCHEMA.names())


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
    return pl.concat([pl.read_ipc(file) for file in sorted(folder.glob("*.arrow"))], rechunk=True)


def _write_atoms(out: Path, files: Path, bucket: Path) -> list[Path]:
    """Make the atoms of one bucket and lay them down."""
    records = unspilled(bucket)
    shutil.rmtree(bucket)
    return _lay_down(out / bucket.name, files, make_atoms(records), records)


def _lay_down(out: Path, files: Path, atoms: Atoms, records: pl.DataFrame) -> list[Path]:
    """Write the tables of some atoms, each as a table of its own, and map them; their folders.

    `records`: the normal forms of all members; of others, too.
    """
    normal = atoms.member.select("content_hash", "atom_id").join(records, on="content_hash", how="left", maintain_order="left")
    folders = [out / name for name in ATOM_TABLES]
    for name, folder, rows in zip(ATOM_TABLES, folders, atoms, strict=True):
        write_table(TABLES[name], folder, [rows])
        for part in parts(folder) if rows.height else []:
            mapped.keep(files, part, normal if name == "atom_member" else rows)
    return folders


def _join_parts(paths: BuildPaths, laid_down: Sequence[Sequence[Path]]) -> None:
    """Make the tables of atoms out of what was laid down, in that order."""
    for place, name in enumerate(ATOM_TABLES):
        folders = [tables[place] for tables in laid_down]
        join_tables(TABLES[name], paths.table(name), [folder for folder in folders if row_count(folder)])


def _take_over(paths: BuildPaths, night: Night, gone: pl.Series, came: Atoms, records: pl.DataFrame, buckets: int) -> None:
    """Write the tables of atoms: the parts of the base as they are and one with what came; and which atoms are gone by now."""
    before = night.atoms.gone
    known = pl.col("atom_id").is_in(before.implode())
    back = came.atom.filter(known)["atom_id"]
    gone = pl.concat([before.filter(~before.is_in(back.implode())), gone])
    if len(gone) > MOST_GONE * row_count(night.folder("atom")):
        _write_merged(paths, night.atoms, gone, came, records, buckets)
        return
    with _spill(paths) as spill:
        new = Atoms(*(rows.filter(~known) for rows in came))
        _join_parts(paths, [[night.folder(name) for name in ATOM_TABLES], _lay_down(spill, night.files, new, records)])
    _write_gone(paths, gone)


def _write_merged(paths: BuildPaths, atoms: Mapped, gone: pl.Series, came: Atoms, records: pl.DataFrame, buckets: int) -> None:
    """Write the tables of atoms anew: these without the atoms that are gone, and what came."""
    stays = ~pl.col("atom_id").is_in(gone.implode())
    laid_down = []
    with _spill(paths) as spill:
        for bucket in range(buckets):
            within = pl.col("atom_id").is_between(*bucket_range(bucket, buckets))
            kept = {name: atoms.rows(name, where=within & stays) for name in ATOM_TABLES}
            merged = Atoms(
                *(pl.concat([kept[name].select(new.columns), new.filter(within)]) for name, new in zip(ATOM_TABLES, came, strict=True))
            )
            merged = Atoms(*(rows.sort("atom_id", maintain_order=True) for rows in merged))
            members = kept["atom_member"]["content_hash"]
            others = records.filter(~pl.col("content_hash").is_in(members.implode()))
            normal = pl.concat([kept["atom_member"].select(NORMAL_SCHEMA.names()), others.select(NORMAL_SCHEMA.names())])
            laid_down.append(_lay_down(spill / f"{bucket:05d}", mapped.folder(paths), merged, normal))
        _join_parts(paths, laid_down)
    _write_gone(paths, gone.clear())


@contextmanager
def _spill(paths: BuildPaths) -> Iterator[Path]:
    """A folder for parts on their way into tables."""
    folder = paths.root / "work" / "linkage" / "atoms.spill"
    shutil.rmtree(folder, ignore_errors=True)
    yield folder
    shutil.rmtree(folder)


def _write_gone(paths: BuildPaths, gone: pl.Series) -> None:
    write_table(TABLES["atom_gone"], paths.table("atom_gone"), gone.to_frame("atom_id"))
