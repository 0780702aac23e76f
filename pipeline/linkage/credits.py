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

_CREDIT_SCHEMA = {"platform": pl.String(), "artist_id": pl.String(), "name": pl.String(), "role": pl.String()}


def credits_of(records: pl.DataFrame) -> pl.DataFrame:
    """Every credit of each row (`row`, `platform`, `artists`, `artist_credit`): row, platform, artist_id, name, role, in order.

    A record without credited artists is credited to its display string.
    """
    flat = records.select("row", "platform", "artists").explode("artists", empty_as_null=False).drop_nulls("artists").unnest("artists")
    shown = records.filter(pl.col("artists").list.len() == 0, pl.col("artist_credit").is_not_null())
    joined = shown.select("row", "platform", artist_id=pl.lit(None, pl.String), name="artist_credit", role=pl.lit("primary"))
    columns = ["row", *_CREDIT_SCHEMA]
    return pl.concat([flat.select(columns), joined.select(columns)]) if shown.height else flat.select(columns)


NAME_SCHEMA = pl.Schema(
    {"name": pl.String(), "name_key": pl.String(), "parts": pl.List(pl.String), "part_keys": pl.List(pl.String), "has_id": pl.Boolean()}
)


def name_table(names: pl.DataFrame, known: pl.DataFrame | None = None) -> pl.DataFrame:
    """What each name of a build means, once for all rows that carry it.

    Args:
        names: name, has_id (some platform gives this name an artist id); names may repeat.
        known: an earlier answer: what does not depend on the other names is taken from it and not computed again.

    Returns:
        NAME_SCHEMA, sorted by name: name (distinct), name_key (without spaces; empty for placeholders such as Various Artists), parts (keys
        of a joined string's parts in order; null when it is none), part_keys (the same; null unless it is to be cut), has_id.
    """
    distinct = names.drop_nulls("name").group_by("name").agg(has_id=pl.col("has_id").any())
    forms = pl.DataFrame(schema={name: NAME_SCHEMA[name] for name in ("name", "name_key", "parts")})
    if known is not None:
        forms = known.select(forms.columns).join(distinct, on="name", how="semi")
    unseen = distinct.join(forms, on="name", how="anti")["name"]
    forms = pl.concat([forms, name_forms(unseen)])
    table = distinct.join(forms, on="name").sort("name")
    with_id = table.filter("has_id", pl.col("name_key") != "")["name_key"].unique().implode()
    is_cut = ~pl.col("has_id") & ~pl.col("name_key").is_in(with_id) & pl.col("parts").list.first().is_in(with_id)
    return table.with_columns(part_keys=pl.when(is_cut).then("parts")).select(NAME_SCHEMA.names())


def name_forms(names: pl.Series) -> pl.DataFrame:
    """What distinct names mean by themselves: name, name_key, parts."""
    folded = pl.DataFrame({"name": names}, schema={"name": pl.String()}).with_columns(folded=fold_expr(pl.col("name")))
    keyed = folded.with_columns(name_key=compact_expr(name_key_expr(pl.col("name"))))
    keyed = keyed.with_columns(name_key=pl.when(pl.col("name_key").is_in(PLACEHOLDERS)).then(pl.lit("")).otherwise("name_key"))
    joined = keyed.filter(pl.any_horizontal(pl.col("folded").str.contains(text, literal=True) for text in SEPARATORS))
    return keyed.select("name", "name_key").join(_parts_of(joined), on="name", how="left")


def _parts_of(joined: pl.DataFrame) -> pl.DataFrame:
    """Joined strings (name, folded): name, parts."""
    cut = pl.col("folded")
    for separator in SEPARATORS:
        cut = cut.str.replace_all(separator, _CUT, literal=True)
    parts = joined.select("name", part=cut.str.split(_CUT)).explode("part", empty_as_null=False)
    parts = parts.filter(pl.col("part").str.strip_chars(" ") != "").with_columns(part=compact_expr(name_key_expr(pl.col("part"))))
    return parts.group_by("name", maintain_order=True).agg(parts="part")


def credited(credits_: pl.DataFrame, names: pl.DataFrame, artists: pl.DataFrame) -> pl.DataFrame:
    """Lead and names of each row that is credited to someone.

    Args:
        credits_: as `credits_of` gives.
        names: as `name_table` gives, over all names of the build.
        artists: `platform`, `artist_id`, `name` (rows of `source_artist`): the name behind a credited one (`L. Marlin` for Linda Marlin),
            which leads when it is known. May be empty.

    Returns:
        row, artist_key (empty: none or a placeholder), names (list of keys, sorted, distinct), remixer_key (remixers joined; null: none).
    """
    own = artists.select("platform", "artist_id", own="name").join(names.select(own="name", own_key="name_key"), on="own").drop("own")
    flat = credits_.join(names.select("name", "name_key", "part_keys"), on="name", how="left", maintain_order="left")
    flat = flat.join(own, on=["platform", "artist_id"], how="left", maintain_order="left")
    flat = flat.with_columns(first_key=pl.coalesce("own_key", pl.col("part_keys").list.first(), "name_key"))
    by_role = flat.with_columns(rank=(pl.col("role") != "primary").cast(pl.Int8))
    leads = by_role.sort("row", "rank", maintain_order=True).unique("row", keep="first", maintain_order=True)
    remixers = flat.filter(pl.col("role") == "remixer").unique(["row", "name_key"], keep="first", maintain_order=True)
    remixers = remixers.group_by("row", maintain_order=True).agg("name_key").select("row", remixer_key=pl.col("name_key").list.join(""))
    parts = flat.filter(pl.col("part_keys").is_not_null()).select("row", name_key="part_keys").explode("name_key", empty_as_null=False)
    others = flat.filter(pl.col("own_key") != pl.col("name_key")).select("row", name_key="own_key")
    everyone = pl.concat([flat.select("row", "name_key"), others, parts]).filter(pl.col("name_key") != "")
    gathered = everyone.group_by("row").agg("name_key").select("row", names=pl.col("name_key").list.unique().list.sort())
    leads = leads.select("row", artist_key=pl.col("first_key").fill_null("")).join(gathered, on="row", how="left")
    return leads.join(remixers, on="row", how="left").with_columns(pl.col("names").fill_null([]))
