"""Who leads a recording: the one artist all platforms agree on most, and everyone else who is credited.

Platforms differ in whom they list besides: guests in the title or among the artists, remixers among the artists or apart, second artists
left out. The first primary artist is what they share; so the lead is the key and the others are evidence.

A platform that gives only one joined string (`A & B feat. C`) is cut at its separators only when the first part is an artist known by an id
somewhere and the whole is not: `Earth, Wind & Fire` stays one.
"""

from __future__ import annotations

import polars as pl

from catalog_store.name_keys import compact_expr, fold_expr, name_key_expr

PLACEHOLDERS = ("various", "variousartists", "unknown", "unknownartist", "noartist", "anonymous", "va", "diverse", "traditional", "data")
SEPARATORS = (
    " feat. ",
    " feat ",
    " ft. ",
    " ft ",
    " featuring ",
    " & ",
    ", ",
    " and ",
    " x ",
    " vs. ",
    " vs ",
    " with ",
    " / ",
    "; ",
    " + ",
)
_CUT = "\x1f"


def artist_name_keys(names: pl.Series) -> pl.DataFrame:
    """Distinct artist names -> columns name, name_key (without spaces)."""
    distinct = pl.DataFrame({"name": names.cast(pl.String)}).unique().drop_nulls()
    return distinct.with_columns(name_key=compact_expr(name_key_expr(pl.col("name"))))


def known_artists(artists: pl.Series) -> pl.DataFrame:
    """Keys of the names that some platform gives an id: column name_key, distinct. `artists` is a `source_recording.artists` column."""
    credits_ = artists.explode(empty_as_null=False).drop_nulls().struct.unnest() if len(artists) else None
    if credits_ is None or credits_.is_empty():
        return pl.DataFrame(schema={"name_key": pl.String})
    return artist_name_keys(credits_.filter(pl.col("artist_id").is_not_null())["name"]).select("name_key").unique()


def credited(records: pl.DataFrame, known: pl.DataFrame, artists: pl.DataFrame) -> pl.DataFrame:
    """Lead and names of each row.

    Args:
        records: `row` (u32), `platform`, `artists`, `artist_credit`.
        known: as `known_artists` gives.
        artists: `platform`, `artist_id`, `name` (rows of `source_artist`): the name behind a credited one (`L. Marlin` for Linda Marlin),
            which leads when it is known. May be empty.

    Returns:
        row, artist_key (empty: none or a placeholder), names (list of keys, sorted, distinct), remixer_key (remixers joined; empty: none).
    """
    flat = records.select("row", "platform", "artists").explode("artists", empty_as_null=False).drop_nulls("artists").unnest("artists")
    missing = records.filter(pl.col("artists").list.len() == 0).filter(pl.col("artist_credit").is_not_null())
    joined = missing.select(
        "row", "platform", artist_id=pl.lit(None, dtype=pl.String), name=pl.col("artist_credit"), role=pl.lit("primary")
    )
    flat = pl.concat([flat, joined.cast(flat.schema)]) if missing.height else flat
    flat = _with_own_names(flat, artists)
    keys = artist_name_keys(flat["name"]).join(_parts_of(flat, known), on="name", how="left")
    flat = flat.join(keys, on="name", how="left", maintain_order="left")
    flat = flat.with_columns(first_key=pl.coalesce("own_key", pl.col("part_keys").list.first(), "name_key"))
    flat = flat.with_columns(first_key=pl.when(pl.col("first_key").is_in(PLACEHOLDERS)).then(pl.lit("")).otherwise("first_key"))
    is_primary, is_remixer = pl.col("role") == "primary", pl.col("role") == "remixer"
    leads = flat.group_by("row", maintain_order=True).agg(
        artist_key=pl.coalesce(pl.col("first_key").filter(is_primary).first(), pl.col("first_key").first()),
        remixer_key=pl.col("name_key").filter(is_remixer).unique(maintain_order=True).str.join(""),
    )
    own_keys = flat.select("row", name_key="own_key")
    everyone = pl.concat(
        [flat.select("row", "name_key"), own_keys, flat.select("row", name_key="part_keys").explode("name_key", empty_as_null=False)]
    )
    everyone = everyone.drop_nulls().filter(~pl.col("name_key").is_in(PLACEHOLDERS)).unique()
    names = everyone.group_by("row").agg(names=pl.col("name_key").sort())
    return leads.join(names, on="row", how="left").with_columns(pl.col("names").fill_null([]))


def _with_own_names(flat: pl.DataFrame, artists: pl.DataFrame) -> pl.DataFrame:
    """Add `own_key`: the key of the name under which the platform keeps the credited artist; null when it does not say."""
    ids = ["platform", "artist_id"]
    involved = artists.select(*ids, own="name").join(flat.select(ids).unique(), on=ids, how="semi")
    involved = involved.join(artist_name_keys(involved["own"]).rename({"name": "own", "name_key": "own_key"}), on="own").drop("own")
    return flat.join(involved, on=ids, how="left", maintain_order="left")


def _parts_of(flat: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Joined strings that may be cut: name, part_keys (list of keys in order)."""
    candidates = flat.filter(pl.col("artist_id").is_null()).select("name").unique().with_columns(folded=fold_expr(pl.col("name")))
    candidates = candidates.filter(pl.any_horizontal(pl.col("folded").str.contains(text, literal=True) for text in SEPARATORS))
    whole = candidates.with_columns(name_key=compact_expr(name_key_expr(pl.col("name")))).join(known, on="name_key", how="anti")
    cut = pl.col("folded")
    for separator in SEPARATORS:
        cut = cut.str.replace_all(separator, _CUT, literal=True)
    parts = whole.select("name", part=cut.str.split(_CUT)).explode("part", empty_as_null=False)
    parts = parts.filter(pl.col("part").str.strip_chars(" ") != "").with_columns(part_key=compact_expr(name_key_expr(pl.col("part"))))
    parts = parts.join(
        known.with_columns(is_known=pl.lit(value=True)), left_on="part_key", right_on="name_key", how="left", maintain_order="left"
    )
    gathered = parts.group_by("name", maintain_order=True).agg(part_keys=pl.col("part_key"), first_known=pl.col("is_known").first())
    return gathered.filter(pl.col("first_known").is_not_null()).select("name", "part_keys")
