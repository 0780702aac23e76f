"""Atoms: records that agree on lead artist, title, variant and (within seconds) duration. Atoms are the units that edges join.

A pure function of one bucket of normalised records; a known artist never straddles buckets.

- Durations are cut where neighbours are further apart than GAP_MS, and chains longer than SPAN_MS are cut again.
- A record without duration joins if its key leaves no choice: one atom, or one that shares its ISRC, or one that outweighs the others by
  DOMINANCE. Otherwise it waits in its own atom for an edge, and so does a record whose ISRC is none of theirs (key_edges.py).
- Bare live takes under one key may be those of several shows. A code or a release distinguishes them (live_takes.py joins what is left).
- Namesakes whom a platform keeps apart are separated (namesakes.py).

The id of an atom consists of its bucket (the first BUCKET_BITS of the hash of its artist) and a hash of its content: the values of its
records and the meaning of their names. So it depends on the atom alone, for any number of buckets and on any night, and an atom with any
change is another atom.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.record_keys.numbers import GOLDEN, hash_columns
from catalog_store.tables import TABLES
from pipeline.linkage.damaged_names import NAMELESS_ARTISTS
from pipeline.linkage.failing_rows import run_on_rows
from pipeline.linkage.generic_titles import is_generic_title, is_movement_title
from pipeline.linkage.live_takes import is_unplaced_live
from pipeline.linkage.namesakes import part_namesakes
from pipeline.linkage.performers import part_performers
from pipeline.linkage.release_mates import part_release_mates
from pipeline.linkage.sorted_runs import find_run_starts, pack_with_duration, sort_places

GAP_MS = 4_000
"""Encoder delay, trailing silence and whole seconds: platforms differ by up to 3 s in real quadruples, 4 with jitter."""
GENERIC_GAP_MS = 2_000
"""For titles that an artist has many times (`Intro`, `Allegro`): whole seconds and encoder delay, but no trailing silence."""
SPAN_MS = 10_000
DOMINANCE = 0.8
"""Share of a key's records with duration that one atom must hold to take in those without."""

BUCKET_BITS, HASH_BITS = 16, 47
"""Bits of an atom id. Two atoms of 90 million share an id with a chance of 1 in 4,000."""
ATOM_SEED = 0
"""Another value gives every atom another id, which resolves such a collision."""

NO_DURATION = (1 << 31) - 1
"""Stands for an unknown duration in sorts: a sort that handles nulls costs six times as much."""

KEY = ["artist_key", "title_key", "variant"]
"""Columns that are equal in all records of an atom; an unknown artist counts as none."""
_PLATFORM_BIT = pl.col("platform").replace_strict(
    {platform: 1 << place for place, platform in enumerate(CATALOG_PLATFORMS)}, return_dtype=pl.UInt8
)


class Atoms(NamedTuple):
    """Tables `atom`, `atom_member` and `atom_isrc` of one bucket, each in its declared order."""

    atom: pl.DataFrame
    member: pl.DataFrame
    isrc: pl.DataFrame


def make_atoms(records: pl.DataFrame, moves: pl.DataFrame | None = None) -> Atoms:
    """Return the atoms of normalised records.

    Args:
        records: as `normalise` returns; all records of each (artist key, title key, variant) among them. In one chunk: gathering texts
            from several chunks makes the whole a fifth slower.
        moves: platform, external_id, atom_id, part (as `overrides.find_moves` returns): records that leave their atom, one new atom for
            each part.

    Raises:
        ValueError: when two keys or two atoms share a hash (see ATOM_SEED).
        FailingRowsError: names the first record that fails.
    """
    if records.is_empty():
        return Atoms(*(TABLES[name].build_empty() for name in ("atom", "atom_member", "atom_isrc")))
    return run_on_rows(records, lambda rows: _make_atoms(rows, moves), ("platform", "external_id"))


def _make_atoms(records: pl.DataFrame, moves: pl.DataFrame | None) -> Atoms:
    placed = part_namesakes(_place_records(_number_records(records), records["isrcs"]), records)
    # A reviewed decision overrules the rules before it. Tracks of one release come last: the record that joined them may have left.
    if moves is not None:
        placed = _apply_moves(placed, records, moves)
    placed = part_release_mates(part_performers(placed, records), records)
    placed = _name_atoms(placed)
    order = placed["row"].to_numpy()
    # `placed` is in the order of atoms; scattering the ids back by row avoids a join.
    by_row = np.empty(len(order), dtype=np.int64)
    by_row[order] = placed["atom_id"].to_numpy()
    rows = records.with_columns(atom_id=pl.Series(by_row), bit=_PLATFORM_BIT)
    member = rows.select(pl.col(TABLES["atom_member"].column_names).gather(order))
    return Atoms(_build_atom_rows(rows, placed), member, _build_isrc_rows(rows))


def _number_records(records: pl.DataFrame) -> pl.DataFrame:
    """Return the columns that decide the atom of a record as numbers, because strings cost ten times as much to sort.

    row, key and check (two hashes of the key), name_hash, names (a hash of them), content (of all that an atom keeps of the record),
    artist_hash, duration_ms (unknown: NO_DURATION), is_generic (the title). A record without a known
    artist, or without a duration under a generic title or a bare `Live`, shares a key only with those that share its first ISRC:
    `Untitled` of 1994 may be any of an artist's.
    """
    # Two songs of unknown artists may share a title: without the salt they would become one atom.
    is_live = is_unplaced_live(pl.col("variant"))
    # A label such as `Artist` in the field of artists is that of many.
    is_generic = is_generic_title(pl.col("title_key")) | is_live | pl.col("artist_key").is_in(NAMELESS_ARTISTS)
    is_lone = (pl.col("artist_key") == "") | (is_generic & pl.col("duration_ms").is_null())
    # A movement without its work is any of many, of one length or not: only its code or its release shows which. So is a bare `Live`.
    is_one_of_many = is_movement_title(pl.col("title_key")) | is_live
    standing = pl.coalesce(pl.col("isrcs").list.first(), pl.concat_str("platform", pl.lit(":release:"), "release_id"), build_source_key())
    salt = pl.when(is_lone).then(choose_stand_in_artist()).when(is_one_of_many).then(standing).otherwise(pl.lit(""))
    return records.with_columns(salt=salt, names=hash_columns(["names"], ATOM_SEED)).select(
        "artist_hash",
        "names",
        pl.col("duration_ms").fill_null(NO_DURATION),
        is_generic=is_generic,
        row=pl.int_range(pl.len(), dtype=pl.UInt32),
        key=hash_columns([*KEY, "salt"], ATOM_SEED),
        check=hash_columns([*KEY, "salt"], ATOM_SEED + 1),
        name_hash=hash_columns(["platform", "external_id"], ATOM_SEED),
        # The hash covers the meaning of the names too: it can change while the record does not.
        content=hash_columns(["content_hash", "artist_key", "variant"], ATOM_SEED) * GOLDEN + pl.col("names"),
    )


def _place_records(numbers: pl.DataFrame, isrcs: pl.Series) -> pl.DataFrame:
    """Add `part`: rows of one part are one atom. `isrcs`: the codes of each `row`."""
    is_timed = pl.col("duration_ms") != NO_DURATION
    timed = numbers.filter(is_timed)
    keys, durations = timed["key"].to_numpy(), timed["duration_ms"].to_numpy()
    # Sorted by key and duration, the rows of an atom are side by side. So atoms are found without a group-by.
    timed = _cut_by_duration(timed[sort_places(pack_with_duration(keys, durations), keys, durations)])
    return pl.concat([timed, _place_untimed(numbers.filter(~is_timed), timed, isrcs)])


def _apply_moves(placed: pl.DataFrame, records: pl.DataFrame, moves: pl.DataFrame) -> pl.DataFrame:
    """Give the records that leave their atom a new `part`, below all others."""
    rows = records.select("platform", "external_id", row=pl.int_range(pl.len(), dtype=pl.UInt32)).join(
        moves, on=["platform", "external_id"]
    )
    apart = rows.select("row", own=-(1 << 40) - pl.struct("atom_id", "part").rank("dense").cast(pl.Int64))
    return placed.join(apart, on="row", how="left", maintain_order="left").with_columns(part=pl.coalesce("own", "part")).drop("own")


def _name_atoms(placed: pl.DataFrame) -> pl.DataFrame:
    """Add `atom_id`, and sort by it and `name_hash`."""
    placed = placed.sort("part")
    starts = find_run_starts(placed["part"].to_numpy())
    names, checks = placed["name_hash"].to_numpy(), placed["check"].to_numpy()
    # The bucket is the upper end of the id, so tables sorted by atom id are in the order of buckets, for any number of
    # them.
    prefix = (placed["artist_hash"].to_numpy()[starts] >> (32 - BUCKET_BITS)).astype(np.int64) << HASH_BITS
    # XOR: the order of the records must not matter. Contents differ, because each includes the record's own id.
    held = np.bitwise_xor.reduceat(placed["content"].to_numpy(), starts)
    ids = prefix + (held >> np.uint64(64 - HASH_BITS)).astype(np.int64)
    order = np.argsort(ids)
    # All rows of a part have one key. If `check` differs among them, two keys share the first hash.
    is_one = np.array_equal(np.minimum.reduceat(checks, starts), np.maximum.reduceat(checks, starts))
    if not is_one or (np.diff(ids[order]) == 0).any():
        raise ValueError("two keys or two atoms share a hash: give ATOM_SEED in pipeline/linkage/atoms.py another value and build again")
    rank = np.empty(len(ids), dtype=np.uint64)
    rank[order] = np.arange(len(ids), dtype=np.uint64)
    sizes = np.diff(starts, append=len(names))
    # Ids use all their bits, ranks only as many as there are atoms. So the rest of the 64 bits holds the start of the
    # name's hash.
    ranks, bits = np.repeat(rank, sizes), np.uint64(len(ids).bit_length())
    placed = placed.with_columns(atom_id=pl.Series(np.repeat(ids, sizes)))
    packed = (ranks << (np.uint64(64) - bits)) | (names >> bits)
    return placed[sort_places(packed, ranks, names)].set_sorted("atom_id")


def compute_bucket_range(bucket: int, buckets: int) -> tuple[int, int]:
    """Return the smallest and the largest atom id of a bucket 0..buckets-1. All buckets in order hold the same rows for any number."""
    first, behind = (-(-(number << BUCKET_BITS) // buckets) for number in (bucket, bucket + 1))
    return first << HASH_BITS, (behind << HASH_BITS) - 1


def build_source_key() -> pl.Expr:
    """Return the name of a record over all platforms, `<platform>:<external id>`."""
    return pl.concat_str("platform", pl.lit(":"), "external_id")


def choose_stand_in_artist() -> pl.Expr:
    """Return a value that separates records without a known artist: their first ISRC, else the record itself."""
    return pl.coalesce(pl.col("isrcs").list.first(), build_source_key())


def _cut_by_duration(rows: pl.DataFrame) -> pl.DataFrame:
    """Add `part`, the number of the atom, to rows sorted by key and duration."""
    keys, durations = rows["key"].to_numpy(), rows["duration_ms"].to_numpy()
    is_first = np.ones(len(keys), dtype=bool)
    gaps = np.where(rows["is_generic"].to_numpy(), GENERIC_GAP_MS, GAP_MS)
    is_first[1:] = (keys[1:] != keys[:-1]) | (np.diff(durations) > gaps[1:])
    # Gaps alone would let a chain drift over minutes. Slots count from the shortest of the chain, so that the order of
    # the rows does not matter.
    shortest = durations[is_first][np.cumsum(is_first) - 1]
    slots = (durations - shortest) // SPAN_MS
    is_first[1:] |= slots[1:] != slots[:-1]
    return rows.with_columns(part=pl.Series(np.cumsum(is_first, dtype=np.int64)))


def _place_untimed(rows: pl.DataFrame, timed: pl.DataFrame, isrcs: pl.Series) -> pl.DataFrame:
    """Add `part` to the records without duration; negative parts are new atoms."""
    # Most keys have no untimed record; their timed ones are left out before anything is counted.
    beside = timed.join(rows, on="key", how="semi")
    rows, beside = (numbers.with_columns(isrcs=isrcs.gather(numbers["row"])) for numbers in (rows, beside))
    sizes = beside.group_by("key", "part").agg(held=pl.len())
    of_key = sizes.group_by("key").agg(
        largest=pl.col("part").sort_by(["held", "part"], descending=[True, False]).first(),
        share=pl.col("held").max() / pl.col("held").sum(),
    )
    codes = beside.select("key", "part", isrc="isrcs").explode("isrc", empty_as_null=False).drop_nulls().unique()
    by_code = rows.select("row", "key", isrc="isrcs").explode("isrc", empty_as_null=False).drop_nulls().join(codes, on=["key", "isrc"])
    # A code that is on two atoms of the key leaves a choice, so it proves nothing.
    by_code = by_code.group_by("row").agg(coded=pl.col("part").first(), choices=pl.col("part").n_unique()).filter(pl.col("choices") == 1)
    placed = rows.join(of_key, on="key", how="left").join(by_code.select("row", "coded"), on="row", how="left")
    # The code of another recording: it may be a version whose word was left out. Edges see the whole code.
    is_foreign = (pl.col("isrcs").list.len() > 0) & pl.col("largest").is_in(codes["part"].unique().implode())
    dominant = pl.when(~is_foreign, pl.col("share") >= DOMINANCE).then("largest")
    # Untimed records wait together by their first code. If no timed atom has the key, `waits` is null: all of them are
    # one atom.
    alone = placed.select(waits=pl.when(pl.col("largest").is_not_null()).then(pl.col("isrcs").list.first())).to_series()
    placed = placed.with_columns(waits=alone).with_columns(waiting=-(pl.struct("key", "waits").rank("dense").cast(pl.Int64)))
    # The order is the rule: a shared code outweighs the majority of the key.
    return placed.with_columns(part=pl.coalesce("coded", dominant, "waiting")).select(timed.columns)


def _build_atom_rows(rows: pl.DataFrame, placed: pl.DataFrame) -> pl.DataFrame:
    """Return table `atom`. `placed`: the rows as numbers, sorted by atom. Strings are touched once an atom, because they cost most."""
    order, ids = placed["row"].to_numpy(), placed["atom_id"].to_numpy()
    starts = find_run_starts(ids)
    platforms = np.bitwise_or.reduceat(rows["bit"].to_numpy()[order], starts)
    durations = placed.select("atom_id", duration_ms=pl.when(pl.col("duration_ms") != NO_DURATION).then("duration_ms"))
    atoms = rows.select(pl.col("artist_key", "title_key", "variant").gather(order[starts])).with_columns(
        pl.Series("atom_id", ids[starts]),
        durations.group_by("atom_id", maintain_order=True).agg(pl.col("duration_ms").median().round())["duration_ms"],
        record_count=pl.Series(np.diff(starts, append=len(ids))),
        platform_count=pl.Series(np.bitwise_count(platforms)),
    )
    # Nearly all atoms agree on these columns and take them from their first record. Only atoms whose hashes differ look
    # at texts.
    forms = rows.select(hash_columns(["stem_key", "number_key"], ATOM_SEED)).to_series().to_numpy()[order]
    for hashes, columns, settled in (
        (forms, ["stem_key", "number_key"], _pick_smallest_forms),
        (placed["names"].to_numpy(), ["names"], _merge_names),
    ):
        differ = np.logical_or.reduceat(np.concatenate([hashes[1:] != hashes[:-1], [False]]) & (ids == np.append(ids[1:], -1)), starts)
        places, values = order[starts].astype(np.int64), rows.select(columns)
        if differ.any():
            mixed = settled(rows.filter(pl.col("atom_id").is_in(pl.Series(ids[starts][differ]).implode())))
            places[differ] = rows.height + np.arange(mixed.height)
            values = pl.concat([values, mixed.sort("atom_id").select(columns)])
        atoms = atoms.with_columns(values[places])
    return TABLES["atom"].conform(atoms)


def _pick_smallest_forms(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.group_by("atom_id").agg(pl.col("stem_key", "number_key").min())


def _merge_names(rows: pl.DataFrame) -> pl.DataFrame:
    """Return atom_id, names: everyone who is credited on a member; sorted."""
    names = rows.select("atom_id", name="names").explode("name", empty_as_null=False).drop_nulls().unique()
    return names.sort("atom_id", "name").group_by("atom_id", maintain_order=True).agg(names="name")


def _build_isrc_rows(rows: pl.DataFrame) -> pl.DataFrame:
    claims = rows.select("atom_id", "bit", isrc="isrcs").explode("isrc", empty_as_null=False).drop_nulls()
    # One number for code and atom, because strings cost ten times as much to sort.
    claim = claims.select(pl.col("isrc").hash() ^ (pl.col("atom_id").cast(pl.UInt64) * GOLDEN)).to_series()
    order = claim.arg_sort().to_numpy()
    starts = find_run_starts(claim.to_numpy()[order])
    counted = claims.select("atom_id", "isrc")[order[starts]].with_columns(
        bit=pl.Series(np.bitwise_or.reduceat(claims["bit"].to_numpy()[order], starts)),
        record_count=pl.Series(np.diff(starts, append=len(order))),
    )
    counted = counted.sort("atom_id", "isrc")
    # A mask of platforms is one byte, so each list is built once for each of the possible masks.
    sets = {
        bits: sorted(name for place, name in enumerate(CATALOG_PLATFORMS) if bits >> place & 1)
        for bits in range(1 << len(CATALOG_PLATFORMS))
    }
    platforms = pl.DataFrame(
        {"bit": list(sets), "platforms": list(sets.values())}, schema={"bit": pl.UInt8, "platforms": pl.List(pl.String)}
    )
    return TABLES["atom_isrc"].conform(counted.join(platforms, on="bit", how="left", maintain_order="left").drop("bit"))
