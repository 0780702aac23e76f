"""Albums, places and years of atoms: what the releases of their records say, as lists of numbers and compact titles.

Only the atoms of a few candidate pairs are looked up, so tracks and releases are filtered while they are read. Out of scope:
what a common album weighs (match_weights.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.frame_texts import copy_texts
from catalog_store.name_keys import build_title_keys_frame, compact_expr
from catalog_store.name_keys.spellings import drop_article_expr, unify_spellings_series
from catalog_store.record_keys.numbers import number_release

if TYPE_CHECKING:
    from collections.abc import Iterable

EVIDENCE_SCHEMA = pl.Schema(
    {
        "atom_id": pl.Int64(),
        "albums": pl.List(pl.UInt64),
        "album_ends": pl.List(pl.UInt64),
        "album_titles": pl.List(pl.String),
        "places": pl.List(pl.UInt16),
        "years": pl.List(pl.Int16),
        "is_concert": pl.Boolean(),
        "shows": pl.List(pl.String),
    }
)
ALBUM_END = 6
"""Characters at either end of an album's title: a typing error spares one of them."""
_SHOW = r"(?:^|\+)(live:[^+]+)"
_CONCERT = r"(?i)\b(?:live|alive|concerts?|unplugged|(?:en|ao|dal) vivo|en directo)\b|ライブ|라이브|концерт"
"""Titles of releases that may hold a concert. `Live Through This` does not, so that this is evidence beside a title with the word only."""
RELEASE_COLUMNS = ["platform", "release_id", "title", "release_date"]
"""Columns of `source_release` that are read."""


def list_releases(members: pl.DataFrame, tracks: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Return atom_id, release, spot (null: unknown) of every release that a record is on.

    Args:
        members: atom_id, record, release (of the record's own release; null: none).
        tracks: yields release, record, spot (as `place_numbers.select_placed`) of all tracks.
    """
    named = members.drop_nulls("release").select("atom_id", "release", spot=pl.lit(None, pl.UInt16))
    records = members["record"].unique().implode()
    found = [rows.filter(pl.col("record").is_in(records)).join(members.select("atom_id", "record"), on="record") for rows in tracks]
    return pl.concat([named, *(rows.select("atom_id", "release", "spot") for rows in found)])


def read_evidence(listed: pl.DataFrame, releases: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Return EVIDENCE_SCHEMA of the atoms in `listed` (as `list_releases`). `releases`: yields RELEASE_COLUMNS of all releases."""
    wanted = listed["release"].unique().implode()
    numbered = (rows.with_columns(release=number_release()).filter(pl.col("release").is_in(wanted)) for rows in releases)
    known = pl.concat(
        [pl.DataFrame(schema={"release": pl.UInt64, "title": pl.String, "release_date": pl.String})]
        # Else the titles of all releases stay in memory.
        + [copy_texts(rows.select("release", "title", "release_date")) for rows in numbered]
    )
    is_concert = known["title"].str.contains(_CONCERT)
    # The stem leaves out what editions add: `(Deluxe Edition)`, `- EP`.
    stems = unify_spellings_series(build_title_keys_frame(known["title"])["stem"])
    titles = stems.to_frame().select(title=compact_expr(drop_article_expr(pl.col("stem"))))
    named = titles.select(album=pl.col("title").hash(), album_ends=pl.concat_list(number_ends(pl.col("title"))), album_title="title")
    known = known.select("release", "release_date").hstack(named.with_columns(is_concert=is_concert, show=_read_shows(known["title"])))
    year = pl.col("release_date").str.head(4).cast(pl.Int16, strict=False)
    rows = listed.join(
        known.select("release", "album", "album_ends", "album_title", "is_concert", "show", year=year), on="release", how="left"
    )
    grouped = rows.group_by("atom_id").agg(
        *(pl.col(name).drop_nulls().unique().sort().alias(f"{name}s") for name in ("album", "album_title", "year", "show")),
        pl.col("album_ends").drop_nulls().explode().drop_nulls().unique().sort(),
        is_concert=pl.col("is_concert").drop_nulls().all() & pl.col("is_concert").is_not_null().any(),
        places=pl.col("spot").drop_nulls().unique().sort(),
    )
    return grouped.select(pl.col(name).cast(dtype) for name, dtype in EVIDENCE_SCHEMA.items())


def _read_shows(titles: pl.Series) -> pl.Series:
    """Return the show that each title of a release names, as a variant (`live:wembley`); null for all others."""
    places = titles.str.contains(_CONCERT).arg_true()
    concerts = titles.gather(places).to_frame("title")
    # `Live at Wembley` says of an album what it says in brackets of a song.
    texts = (concerts["title"], concerts.select(pl.format("live ({})", "title")).to_series())
    found = pl.DataFrame([build_title_keys_frame(text)["variant"].alias(str(number)) for number, text in enumerate(texts)])
    shows = found.select(pl.coalesce(pl.all().str.extract(_SHOW))).to_series()
    return pl.repeat(None, len(titles), dtype=pl.String, eager=True).scatter(places, shows)


def number_ends(title: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """Return the numbers of the beginning and the end of a compact title of an album."""
    return (pl.lit("^") + title.str.head(ALBUM_END)).hash(), (pl.lit("$") + title.str.tail(ALBUM_END)).hash()
