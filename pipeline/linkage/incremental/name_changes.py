"""Tables `credit_name` and `artist_name` of a night that builds on a snapshot, and the records that a changed name reaches.

The meaning of a name depends on all names of a build (credits.py). Only names that a change leaves in doubt are looked into again.
`artist_name`, half as many rows as recordings, is never whole in memory: it is compared and written in pieces, and then scanned for the
few rows that a step needs (0.6 CPU-s for 5.1 million rows).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from catalog_store.frame_texts import copy_texts
from catalog_store.record_keys.numbers import hash_columns
from catalog_store.tables import TABLES
from catalog_store.tables.files import list_parts, scan_table, write_table
from pipeline.linkage import staged_records
from pipeline.linkage.alias_owners import add_owner_keys
from pipeline.linkage.credits import (
    NO_ARTIST,
    add_part_keys,
    derive_name_forms,
    merge_names,
    number_artist,
    number_name,
    read_credits,
)
from pipeline.linkage.failing_rows import run_on_rows
from pipeline.linkage.incremental.differences import find_differing_rows
from pipeline.linkage.incremental.table_splicing import find_insertion_places, find_places, splice_rows
from pipeline.linkage.name_cache import write_artist_names
from pipeline.linkage.normal_forms import add_artist_hash, collect_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pipeline.linkage.incremental.night import Night
    from pipeline.paths import BuildPaths

CREDITS = ("credit_names", "credit_artists")


def read_names(paths: BuildPaths, name_numbers: pl.Series, artist_numbers: pl.Series) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the rows of tonight's `credit_name` and `artist_name` that these credits need."""
    own = _read_rows(paths, "artist_name", number_artist().is_in(artist_numbers.unique().implode()))
    wanted = pl.concat([name_numbers, own.select(number_name()).to_series()]).unique()
    return _read_rows(paths, "credit_name", number_name().is_in(wanted.implode())), own


def write_changed_names(paths: BuildPaths, night: Night, gone: pl.Series, fresh: pl.DataFrame) -> tuple[pl.Series, pl.Series]:
    """Write both tables, and return two sets of atom_id of the base.

    The first set lost a record; the second has a record that credits a name with another meaning, or an artist with another name.

    Args:
        paths: of the build.
        night: what it builds on.
        gone: content hashes of the records that are gone.
        fresh: rows of `source_recording` that are new.
    """
    lost = night.atoms.read_rows("atom_member", ["atom_id", *CREDITS], pl.col("content_hash").is_in(gone.implode()))
    renamed = _write_changed_artists(paths, night)
    names = _derive_names(paths, night, lost, renamed, fresh)
    write_table(TABLES["credit_name"], paths.table("credit_name"), [names])
    # Only the cuts and the owners of a name can change: its own key depends on its text alone.
    meaning = ("part_keys", "owner_keys")
    known = night.scan("credit_name").select("name", *meaning).collect()
    both = known.join(names.select("name", *meaning), on="name", suffix="_now")
    is_other = pl.any_horizontal(pl.col(name).ne_missing(pl.col(f"{name}_now")) for name in meaning)
    changed = both.filter(is_other).select(number_name()).to_series()
    # A credit also means the name under which the platform keeps its artist, whatever the record shows.
    kept = _read_rows(paths, "artist_name", number_name().is_in(changed.implode()))
    reached = _find_atoms_crediting(night, changed, pl.concat([renamed, kept]).select(number_artist()).to_series())
    return lost["atom_id"].unique(), reached


def _derive_names(paths: BuildPaths, night: Night, lost: pl.DataFrame, renamed: pl.DataFrame, fresh: pl.DataFrame) -> pl.DataFrame:
    """Return tonight's `credit_name`.

    Args:
        paths: of the build; `artist_name` is that of tonight.
        night: what it builds on.
        lost: credit_names, credit_artists of the records that are gone.
        renamed: rows of `artist_name` that came or went.
        fresh: rows of `source_recording` that are new.
    """
    artists = scan_table(TABLES["artist_name"], paths.table("artist_name"))
    # Names that a gone record credited may be out of use, or may have lost their only use with an id.
    doubtful = pl.concat([lost["credit_names"].explode(empty_as_null=False), renamed.select(number_name()).to_series()]).unique()
    known = night.read("credit_name")
    in_doubt = known.select(number_name()).to_series().is_in(doubtful.implode())
    own = artists.filter(number_name().is_in(doubtful.implode())).select("name", has_id=pl.lit(value=True)).collect()
    used = [_find_names_in_use(night, known.filter(in_doubt), lost), own, collect_names(fresh)]
    names = change_names(known, in_doubt, pl.concat(used))
    # The search for owners takes most memory of this step, and needs nothing of last night.
    del known, used, own
    return add_owner_keys(names, artists, staged_records.read_aliases(paths))


def change_names(known: pl.DataFrame, in_doubt: pl.Series, used: pl.DataFrame) -> pl.DataFrame:
    """Return `credits.build_name_table` of names that an earlier table mostly knows.

    Args:
        known: the earlier table.
        in_doubt: a mask over `known`: names that may no longer be in use, or no longer have an id.
        used: name, has_id of every use of the names in doubt, and of every new name; names may repeat.
    """
    used = merge_names(used)
    as_before = known.filter(~in_doubt).join(used, on="name", how="semi").select("name", "has_id")
    # A new use can give an old name an id, and never take one: so both are merged.
    again = merge_names(pl.concat([used, as_before]))
    forms = known.select("name", "name_key", "parts").join(again, on="name", how="semi")
    forms = pl.concat([forms, derive_name_forms(again.join(forms, on="name", how="anti")["name"])])
    stays = known.filter(~in_doubt).join(again, on="name", how="anti")
    columns = ["name", "has_id", "name_key", "parts"]
    return add_part_keys(pl.concat([stays.select(columns), again.join(forms, on="name").select(columns)]))


def reread_credits(rows: pl.DataFrame, names: pl.DataFrame, artists: pl.DataFrame) -> pl.DataFrame:
    """Return normalised rows with their credits read again under other names.

    `names`, `artists` as for `normal_forms.normalise`. Nothing else about the rows can change with the names, so staging is not read.
    """
    return run_on_rows(rows, lambda some: _reread_credits(some, names, artists), ("platform", "external_id"))


def _reread_credits(rows: pl.DataFrame, names: pl.DataFrame, artists: pl.DataFrame) -> pl.DataFrame:
    numbers = rows.select(row=pl.int_range(pl.len(), dtype=pl.UInt32), name="credit_names", artist="credit_artists")
    read = read_credits(numbers.explode("name", "artist", empty_as_null=False), names, artists)
    rows = rows.drop("artist_key", "names", "artist_hash").with_row_index("row").join(read, on="row", how="left", maintain_order="left")
    return add_artist_hash(rows.with_columns(pl.col("artist_key").fill_null(""), pl.col("names").fill_null([])))


def _read_rows(paths: BuildPaths, name: str, where: pl.Expr) -> pl.DataFrame:
    """Return rows of one of tonight's tables, without the texts of the others, which rows that a filter left would keep."""
    return copy_texts(scan_table(TABLES[name], paths.table(name)).filter(where).collect())


def _write_changed_artists(paths: BuildPaths, night: Night) -> pl.DataFrame:
    """Write `artist_name`, and return the rows that came or went; of a renamed artist both."""
    parts = (list_parts(night.find_folder("artist_name")), staged_records.list_artist_parts(paths))
    before, after = (partial(staged_records.read_artist_pieces, of) for of in parts)
    left, entered = find_differing_rows(before, after, hash_columns(TABLES["artist_name"].column_names))
    entered = entered.sort(TABLES["artist_name"].order)
    write_artist_names(paths, splice_pieces(before(), left, entered))
    return pl.concat([left, entered])


def splice_pieces(pieces: Iterable[pl.DataFrame], gone: pl.DataFrame, new: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield the rows of `artist_name` without those in `gone` and with those in `new`, in order.

    Unchanged rows, nearly all, are not sorted again.

    Args:
        pieces: the table of the base in its order.
        gone: rows of it.
        new: rows of tonight, in order; a renamed artist is in both.
    """
    for piece in pieces:
        places = find_insertion_places(piece, new, "artist_id")
        # Rows behind the last of this piece belong to the next.
        here = int((places < piece.height).sum())
        lost = find_places(piece, gone, "artist_id").drop_nulls()
        yield splice_rows(piece, lost.to_numpy(), new[:here], places[:here].to_numpy())
        new = new[here:]
    yield new


def _find_names_in_use(night: Night, names: pl.DataFrame, lost: pl.DataFrame) -> pl.DataFrame:
    """Return name, has_id of those of `names` that records of the base credit which are still there.

    `lost`: credit_names, credit_artists of the records that are gone.
    """
    names = names.select("name", number=number_name())
    left, open_ = _count_credits(_flatten_credits(lost), names["number"]).with_columns(-pl.col("times")), names["number"]
    for rows in night.atoms.read_pieces("atom_member", [*CREDITS]):
        left = pl.concat([left, _count_credits(_flatten_credits(rows), open_)]).group_by("number", "has_id").agg(pl.col("times").sum())
        # A name that is credited with an id more often than it was lost is decided: nearly all are, after the first piece.
        settled = left.filter("has_id", pl.col("times") > 0)["number"]
        open_ = open_.filter(~open_.is_in(settled.implode()))
    return names.join(left.filter(pl.col("times") > 0), on="number").select("name", "has_id")


def _count_credits(credits_: pl.DataFrame, numbers: pl.Series) -> pl.DataFrame:
    """Return number, has_id, times: how often names with these numbers are credited."""
    wanted = credits_.filter(pl.col("number").is_in(numbers.implode()))
    return wanted.group_by("number", "has_id").agg(times=pl.len().cast(pl.Int64))


def _flatten_credits(rows: pl.DataFrame) -> pl.DataFrame:
    """Return every credit of some records: number (of the name), has_id. Whole lists are laid end to end, not rows exploded."""
    names, artists = (rows[name].explode(empty_as_null=False) for name in CREDITS)
    return pl.DataFrame({"number": names, "has_id": artists != NO_ARTIST})


def _find_atoms_crediting(night: Night, names: pl.Series, artists: pl.Series) -> pl.Series:
    """Return atom_id of the atoms of the base with a record that credits one of these names, or of these artists (numbers)."""
    found = [pl.Series("atom_id", [], dtype=pl.Int64)]
    for rows in night.atoms.read_pieces("atom_member", ["atom_id", *CREDITS]) if len(names) or len(artists) else []:
        # Lists are stored end to end: the running length maps a credit back to its row without exploding rows.
        ends = rows["credit_names"].list.len().cum_sum()
        for name, wanted in zip(CREDITS, (names, artists), strict=True):
            hits = rows[name].explode(empty_as_null=False).is_in(wanted.implode()).arg_true()
            found.append(rows["atom_id"].gather(ends.search_sorted(hits, side="right")))
    return pl.concat(found).unique()
