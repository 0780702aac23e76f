"""Artist credits: who is named on a release or a track, in which role, and how the credit reads.

A credit belongs to an `owner` (a number that the caller gives). This module joins parts that the dump keeps apart: the artists with the
words between them, and the remixers and guests among the extra artists.
"""

from __future__ import annotations

import polars as pl

from pipeline.dumps.platforms.catalog_a.names import read_known_id, strip_namesake_suffix
from pipeline.dumps.platforms.catalog_a.xml_extraction import list_items

_FEATURING_JOIN = r"(?i)(?:^|[^a-z])(?:feat|ft|featuring|with)(?:[^a-z]|$)"
_ROLE_DETAIL = r"\[[^\]]*\]"
_REMIX_ROLE = r"(?i)(?:^|,)\s*remix(?:ed by)?\s*(?:,|$)"
_FEATURING_ROLE = r"(?i)(?:^|,)\s*featuring\s*(?:,|$)"
_FEATURING_DETAIL = r"(?i)\[\s*feat(?:uring|\.)?\s*\]"
_CREDIT_PARTS = ("artist_id", "name", "variation", "join")
_EXTRA_PARTS = ("artist_id", "name", "variation", "role", "tracks")

CREDITED = {"owner": pl.UInt32, "artist_id": pl.String, "name": pl.String, "role": pl.String}
"""Columns of one credited artist; rows of an owner come together and in order."""


def read_credited_artists(frame: pl.DataFrame) -> pl.DataFrame:
    """Return CREDITED and `glue`, the text between this name and the next, of `frame` (owner, artists as delivered).

    A credit is primary up to a joining word like `Feat.`, and featured after it. Artists without a name are left out.
    """
    rows = list_items(frame.select("owner", "artists"), "artists", _CREDIT_PARTS)
    rows = rows.select("owner", read_known_id(pl.col("artist_id")), _choose_shown_name(), join=pl.col("join").str.strip_chars())
    rows = rows.filter(pl.col("name").is_not_null())
    joins_guest = pl.col("join").str.contains(_FEATURING_JOIN).cast(pl.UInt32)
    # The join comes after its artist, so it makes guests of those after it and not of the artist itself.
    guest_joins_before = (joins_guest.cum_sum() - joins_guest).over("owner")
    is_last = pl.col("owner") != pl.col("owner").shift(-1)
    return rows.with_columns(
        role=pl.when(guest_joins_before > 0).then(pl.lit("featured")).otherwise(pl.lit("primary")),
        # A join word has no place after the last artist.
        glue=pl.when(is_last.fill_null(value=True)).then(pl.lit("")).otherwise(_build_glue(pl.col("join"))),
    ).select(*CREDITED, "glue")


def _build_glue(join: pl.Expr) -> pl.Expr:
    """Return a join with the spaces that the dump leaves out. Punctuation has none before it."""
    spaced = pl.when(join.str.contains(r"^[,;:]")).then(join + " ").otherwise(pl.concat_str(pl.lit(" "), join, pl.lit(" ")))
    return pl.when(join == "").then(pl.lit(", ")).otherwise(spaced)


def read_extra_artists(frame: pl.DataFrame) -> pl.DataFrame:
    """Return CREDITED and `tracks` (the positions of a limited credit) of `frame` (owner, extras as delivered): guests, then remixers."""
    rows = list_items(frame.select("owner", "extras"), "extras", _EXTRA_PARTS)
    # Details in brackets are prose (`Written-By [All Tracks By]`) and must not be read as roles.
    plain = pl.col("role").str.replace_all(_ROLE_DETAIL, "")
    rows = rows.select(
        "owner",
        read_known_id(pl.col("artist_id")),
        _choose_shown_name(),
        tracks=pl.col("tracks").str.strip_chars(),
        featured=plain.str.contains(_FEATURING_ROLE) | pl.col("role").str.contains(_FEATURING_DETAIL),
        remixer=plain.str.contains(_REMIX_ROLE),
    ).filter(pl.col("name").is_not_null())
    # One credit may have both roles and is two rows then.
    by_role = [rows.filter(role).with_columns(role=pl.lit(role)) for role in ("featured", "remixer")]
    return pl.concat(by_role).select(*CREDITED, "tracks")


def _choose_shown_name() -> pl.Expr:
    """Return the name printed on the release (the name variation), else the artist's name without the suffix for namesakes."""
    variation = pl.col("variation").str.strip_chars()
    return pl.when(variation != "").then(variation).otherwise(strip_namesake_suffix(pl.col("name"))).alias("name")


def add_extras(credited: pl.DataFrame, extras: pl.DataFrame) -> pl.DataFrame:
    """Return both as CREDITED, an owner's artists before its extras, without repeated roles and without guests of the credit itself."""
    # Artists without a page have no id. The printed name is the best there is.
    identity = pl.coalesce("artist_id", "name")
    in_credit = credited.select("owner", identity=identity)
    # A guest who is in the credit already is not added; a remixer is, because that is another role.
    guests = extras.filter(pl.col("role") == "featured").with_columns(identity=identity)
    guests = guests.join(in_credit, on=["owner", "identity"], how="anti", maintain_order="left")
    remixers = extras.filter(pl.col("role") == "remixer").with_columns(identity=identity)
    added = pl.concat([guests, remixers]).unique(["owner", "identity", "role"], keep="first", maintain_order=True)
    return pl.concat([credited.select(*CREDITED), added.select(*CREDITED)]).sort("owner", maintain_order=True)


def build_artist_lists(credited: pl.DataFrame) -> pl.DataFrame:
    """Return owner and `artists` (the list of structs of the staging tables) of CREDITED."""
    return credited.group_by("owner", maintain_order=True).agg(artists=pl.struct("artist_id", "name", "role"))


def build_credit_texts(credited: pl.DataFrame) -> pl.DataFrame:
    """Return owner and `artist_credit`, as the platform shows it, of credited artists with `glue`."""
    return credited.group_by("owner", maintain_order=True).agg(artist_credit=(pl.col("name") + pl.col("glue")).str.join(""))
