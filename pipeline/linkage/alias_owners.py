"""Names that are another name of exactly one artist: aliases, former names and sort names that platforms list.

`Ye` is listed with `Kanye West` and with nobody else. So a record that credits `Ye` also counts as one of Kanye West where guards and edges
ask for a common name (credits.py). The name of its lead stays what it is. A name in two scripts (`周杰倫 (Jay Chou)`) lists its other name
itself, and initials (`ELO`) are another name where one artist alone has them. Out of scope: memberships, because a member is not
the group.
"""

from __future__ import annotations

import polars as pl

from pipeline.linkage.credits import derive_name_forms
from pipeline.linkage.sound_edges import SOUND_SIMILARITY
from pipeline.linkage.writing_systems import mark_alike_sounds, mark_unlike_scripts, split_scripts

LISTED_SCHEMA = pl.Schema({"platform": pl.String(), "artist_id": pl.String(), "name": pl.String(), "alias": pl.String()})
OWNER_SCHEMA = pl.Schema({"alias_key": pl.String(), "owner_key": pl.String()})
MOST_OWNERS = 8
"""Artists that list one name; a name with more of them is a plain word."""
LEAST_CHARACTERS = 2
"""Characters of the key of an alias: a single letter is an abbreviation."""
_TURNED = r"^([^,]+), ([^,]+)$"
NAMES_PER_PIECE = 250_000
"""Names whose words are in memory at a time: some 50 MB."""
LEAST_WORDS = 3
"""Words of a name whose initials are another name of it."""
_ACRONYM = r"^(?:[A-Z]{3,6}|(?:[A-Za-z]\.){3,6})$"
_WORD = r"[A-Za-z]+(?:['\x{2019}][a-z]+)?"
_PARTICLES = ["a", "and", "for", "in", "of", "the"]
_TRANSLATED = r"[\p{Han}\p{Hangul}\p{Hiragana}\p{Katakana}]"
"""Artists of these scripts often have a Latin name of another sound: `아이유 (IU)`."""


def list_aliases(artists: pl.DataFrame) -> pl.DataFrame:
    """Return LISTED_SCHEMA: the other names of artists, each sort name as it is and with its parts in speaking order.

    `artists`: platform, artist_id, name; sort_name, aliases (a list) and is_placeholder may be missing.
    """
    columns = {"sort_name": pl.String(), "aliases": pl.List(pl.String()), "is_placeholder": pl.Boolean()}
    known = artists.with_columns(pl.lit(None, dtype).alias(name) for name, dtype in columns.items() if name not in artists.columns)
    known = known.filter(~pl.col("is_placeholder").fill_null(value=False))
    owner = ("platform", "artist_id", "name")
    listed = known.select(*owner, alias="aliases").explode("alias", empty_as_null=False)
    turned = known.select(*owner, alias=pl.col("sort_name").str.replace(_TURNED, "${2} ${1}"))
    found = pl.concat([listed, known.select(*owner, alias="sort_name"), turned.filter(pl.col("alias") != pl.col("name"))])
    return found.drop_nulls().filter(pl.col("alias") != pl.col("name")).select(LISTED_SCHEMA.names())


def add_owner_keys(names: pl.DataFrame, artists: pl.DataFrame | pl.LazyFrame, listed: pl.DataFrame) -> pl.DataFrame:
    """Return a name table with `owner_keys`: the artists of whom each name, or each artist it is read as, is another name.

    Args:
        names: as `credits.build_name_table` returns, over all names of the build and of `artists`.
        artists: platform, artist_id, name of all artists; a LazyFrame is never whole in memory.
        listed: as `list_aliases` returns.
    """
    owners = pl.concat([find_alias_owners(names, artists, listed), find_bilingual_names(names), find_acronyms(names)])
    if owners.is_empty():
        return names
    # Few names have an owner, so only their rows are looked at as lists.
    parts = names.select("name", alias_key="part_keys").drop_nulls().explode("alias_key", empty_as_null=False)
    owned = pl.concat([names.select("name", alias_key="name_key"), parts]).join(owners, on="alias_key")
    read = pl.concat(
        [names.select("name", owner_key="name_key").join(owned, on="name", how="semi"), parts.rename({"alias_key": "owner_key"})]
    )
    found = owned.join(read, on=["name", "owner_key"], how="anti").group_by("name").agg(owner_keys=pl.col("owner_key").unique().sort())
    return names.drop("owner_keys").join(found, on="name", how="left", maintain_order="left").select(names.columns)


def find_alias_owners(names: pl.DataFrame, artists: pl.DataFrame | pl.LazyFrame, listed: pl.DataFrame) -> pl.DataFrame:
    """Return OWNER_SCHEMA: the keys of names, and the key of the one artist whose other name each is. Arguments as for `add_owner_keys`.

    A name proves nothing if a platform gives it to two artists, as their own or as another name. Artists that list it under different
    names count as one if all the others' names are listed with one of them (`Puff Daddy`, `P. Diddy` and `Diddy`).
    """
    keys = names.select("name", "name_key")
    aliases = listed.select(name="alias").unique()
    # Most names are no alias. Only those that are one are joined below.
    credited = keys.join(aliases, on="name", how="semi")
    new = aliases.join(credited, on="name", how="anti")
    alias_keys = pl.concat([credited, derive_name_forms(new["name"]).select("name", "name_key")])
    pairs = (
        listed.join(alias_keys.rename({"name": "alias", "name_key": "alias_key"}), on="alias")
        .join(keys.rename({"name_key": "owner_key"}), on="name")
        .filter(
            pl.col("alias_key") != pl.col("owner_key"),
            pl.col("owner_key") != "",
            pl.col("alias_key").str.len_chars() >= LEAST_CHARACTERS,
        )
        .select("platform", "artist_id", "alias_key", "owner_key")
        .unique()
    )
    # Names first: of 10 million recordings, 5.1 million artists have a name, and few of the names are an alias.
    borne = keys.join(pairs, left_on="name_key", right_on="alias_key", how="semi")
    named = artists.lazy().join(borne.lazy(), on="name").select("platform", "artist_id", alias_key="name_key").collect(engine="streaming")
    bearers = pl.concat([pairs.select(named.columns), named]).unique()
    shared = bearers.filter(pl.struct("platform", "alias_key").is_duplicated())
    return _choose_owners(pairs.join(shared, on="alias_key", how="anti").select("alias_key", "owner_key").unique())


def find_bilingual_names(names: pl.DataFrame) -> pl.DataFrame:
    """Return OWNER_SCHEMA of the names that hold one name in two scripts: each half owns the whole. `names` as for `add_owner_keys`."""
    halves = names.select("name", alias_key="name_key").join(split_scripts(names["name"]), left_on="name", right_on="text")
    if halves.is_empty():
        return OWNER_SCHEMA.to_frame()
    texts = pl.concat([halves["one"], halves["other"].rename("one")]).unique()
    keys = derive_name_forms(texts).select("name", "name_key")
    for half in ("one", "other"):
        halves = halves.join(keys.rename({"name": half, "name_key": f"{half}_key"}), on=half, maintain_order="left")
    unlike = mark_unlike_scripts(halves["one_key"], halves["other_key"])
    alike = mark_alike_sounds(halves["one_key"], halves["other_key"], unlike, SOUND_SIMILARITY)
    is_long = pl.all_horizontal(pl.col(f"{half}_key").str.len_chars() >= LEAST_CHARACTERS for half in ("one", "other"))
    is_translated = pl.concat_str("one_key", "other_key").str.contains(_TRANSLATED)
    # `春香 (CV:Mika)` has lost its bracket in the key: a singer is no other name.
    is_whole = (pl.col("alias_key") != pl.col("one_key")) & (pl.col("alias_key") != pl.col("other_key"))
    halves = halves.filter(pl.lit(unlike) & (pl.lit(alike) | is_translated) & is_long & is_whole)
    return pl.concat([halves.select("alias_key", owner_key=f"{half}_key") for half in ("one", "other")]).unique().sort(OWNER_SCHEMA.names())


def find_acronyms(names: pl.DataFrame) -> pl.DataFrame:
    """Return OWNER_SCHEMA of the names that are the initials of one other name alone: `ELO`, `O.M.D.`. `names` as for `add_owner_keys`."""
    short = names.filter(pl.col("name").str.contains(_ACRONYM)).select("name_key").unique()
    # The words of all names at once took .6 GB at 30 million recordings.
    read = (
        _read_initials(piece).join(short, left_on="alias_key", right_on="name_key", how="semi")
        for piece in names.iter_slices(NAMES_PER_PIECE)
    )
    found = pl.concat([OWNER_SCHEMA.to_frame(), *(piece.select(OWNER_SCHEMA.names()) for piece in read)]).unique()
    return found.filter(~pl.col("alias_key").is_duplicated()).sort(OWNER_SCHEMA.names())


def _read_initials(names: pl.DataFrame) -> pl.DataFrame:
    """Return OWNER_SCHEMA of all names of some words: their initials, with and without small words."""
    long = names.filter(pl.col("name").str.count_matches(_WORD) >= LEAST_WORDS)
    words = long.select(owner_key="name_key", words=pl.col("name").str.to_lowercase().str.extract_all(_WORD))
    # `Emerson, Lake & Palmer` is ELP, `Rage Against the Machine` RATM, `Orchestral Manoeuvres in the Dark` OMD.
    kept = (pl.col("words").list.filter(~pl.element().is_in(left_out)) for left_out in ([], ["and"], _PARTICLES))
    initials = (found.list.eval(pl.element().str.slice(0, 1)).list.join("") for found in kept)
    found = pl.concat([words.select("owner_key", alias_key=alias) for alias in initials]).unique()
    return found.filter(pl.col("alias_key") != pl.col("owner_key"))


def _choose_owners(pairs: pl.DataFrame) -> pl.DataFrame:
    """Return the pairs alias_key, owner_key (distinct) of the names that have one owner, or one that lists all their other owners."""
    counted = pairs.with_columns(others=pl.len().over("alias_key") - 1).filter(pl.col("others") < MOST_OWNERS)
    several = counted.filter(pl.col("others") > 0)
    both = several.join(several.select("alias_key", other="owner_key"), on="alias_key").filter(pl.col("owner_key") != pl.col("other"))
    listing = both.join(pairs, left_on=["other", "owner_key"], right_on=["alias_key", "owner_key"], how="semi")
    heads = listing.group_by("alias_key", "owner_key").agg(pl.len(), pl.col("others").first()).filter(pl.col("len") == pl.col("others"))
    # Two artists may list each other; either name then serves, and the smaller one does not depend on the order of the rows.
    chosen = heads.group_by("alias_key").agg(pl.col("owner_key").min())
    return pl.concat([counted.filter(pl.col("others") == 0).select(OWNER_SCHEMA.names()), chosen])
