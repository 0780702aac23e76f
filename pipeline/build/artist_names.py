"""Names of artists: the name that the catalog shows, and all others as `artist_alias`.

The module reads the steps `node`, `node_artist`, `credit_node`, `release_credit` and `name_key` of the artists' workbench. artists.py
decides which platform artists are one. credited_names.py decides which credits are shown under another name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.name_keys import build_name_key_expr, compact_expr
from catalog_store.platforms import CATALOG_A, CATALOG_B
from pipeline.build.name_forms import render_shown_name_sql
from pipeline.build.priorities import ARTIST_NAME, render_rank_sql
from pipeline.build.workbench import cut_ranges

if TYPE_CHECKING:
    from pipeline.build.workbench import Workbench

NAME_ONLY = "name"
"""`platform` of nodes that are known by name only."""
UNKNOWN_ARTIST = "Unknown Artist"
"""Artist of a record without a name: a track always has a primary artist (contract B6)."""
VARIOUS_ARTISTS = "Various Artists"
"""Artist of a release without a name whose tracks have different artists."""

VOTE = 1_000
"""Votes of a platform's own list for its name, and of all its credits together for the names that they print. They are whole numbers, so
that the order of a sum does not matter."""
LEAST_VOTES = VOTE // 20
"""Support that makes a spelling with small letters more than a slip."""
MOST_FORMS = 30
"""Names of an artist that are compared with each other; classical composers are credited by hundreds."""
MOST_WORDS = 5
"""Words of a person's full name."""
ACRONYM_LETTERS = 5
"""Capitals of a longer name are a way to print it: `ABBA`, but `Sampha`."""
_EDITED = (CATALOG_B, CATALOG_A)
"""Catalogs whose editors choose the name of an artist."""

_LISTED = """
SELECT a.artist_id, n.platform, s.name, s.sort_name, s.popularity, s.aliases
FROM (FROM node_artist WHERE artist_id BETWEEN {first} AND {last}) a
JOIN node n USING (node) JOIN source_artist s ON s.platform = n.platform AND s.artist_id = n.artist_id
"""
# Not among the names of `listed_artist`, which vote for the name to show.
_LEGAL = """
SELECT a.artist_id, n.platform, l.name
FROM node_artist a JOIN node n USING (node) JOIN source_legal_name l ON l.platform = n.platform AND l.artist_id = n.artist_id
"""
_CREDITED = """
SELECT a.artist_id, n.platform AS voter, c.platform, c.name, count(*) AS times
FROM (FROM node_artist WHERE artist_id BETWEEN {first} AND {last}) a JOIN node n USING (node) JOIN credit_node c USING (node) GROUP BY ALL
"""
_KEYED_ON_RELEASE = f"""
SELECT DISTINCT c.platform, c.name, CASE WHEN c.artist_id IS NULL THEN '{NAME_ONLY}' ELSE c.platform END AS listing,
    coalesce(c.artist_id, k.key) AS listed
FROM (FROM release_credit WHERE hash(name) % {{parts}} = {{part}}) c
JOIN (FROM name_key WHERE hash(name) % {{parts}} = {{part}}) k USING (name)
"""
_CREDITED_ON_RELEASE = """
SELECT DISTINCT a.artist_id, c.platform, c.name
FROM (FROM keyed_on_release WHERE hash(listed) % {parts} = {part}) c
JOIN (FROM node WHERE hash(artist_id) % {parts} = {part}) n ON n.platform = c.listing AND n.artist_id = c.listed
JOIN node_artist a USING (node)
"""

# `Beatles, The` stands for `The Beatles` wherever it is printed, so it needs no other witness.
_ARTICLE_BEHIND = "'^(.+), (The)$', '\\2 \\1'"
_IN_RANGE = "artist_id BETWEEN {first} AND {last}"
_SHOWN = f"regexp_replace(trim({render_shown_name_sql('name')}), {_ARTICLE_BEHIND})"
_IS_EDITED = f"platform IN {_EDITED}"

# The chain only decides between equal votes: a platform's own list, then its credits, then credits of releases.
_FORM = f"""
SELECT artist_id, name, sum(votes)::BIGINT AS votes, min(rank)::INT AS rank, bool_or(is_edited) AS is_edited FROM (
    SELECT artist_id, {_SHOWN} AS name, {VOTE} AS votes, {render_rank_sql(ARTIST_NAME)} AS rank, {_IS_EDITED} AS is_edited
    FROM listed_artist WHERE {_IN_RANGE}
    UNION ALL
    SELECT artist_id, name, {VOTE} * times // sum(times) OVER (PARTITION BY artist_id, voter),
        {len(ARTIST_NAME)} + {render_rank_sql(ARTIST_NAME, "voter")}, false
    FROM (SELECT artist_id, voter, {_SHOWN} AS name, sum(times)::BIGINT AS times FROM credited_artist WHERE {_IN_RANGE} GROUP BY ALL)
    UNION ALL
    SELECT artist_id, {_SHOWN}, 0, {3 * len(ARTIST_NAME)}, false FROM credited_on_release WHERE {_IN_RANGE}
) GROUP BY artist_id, name
"""
_CONTESTED_FORM = f"""
WITH form AS (FROM artist_form WHERE {_IN_RANGE})
FROM form SEMI JOIN (SELECT artist_id FROM form GROUP BY artist_id HAVING count(*) > 1) USING (artist_id) ORDER BY artist_id, name
"""

_ARTIST = f"""
SELECT artist_id, name, sort_name, 0 AS release_count, 0 AS recording_count, coalesce(popularity, 0) AS popularity
FROM (
    FROM chosen_name WHERE {_IN_RANGE}
    UNION ALL SELECT artist_id, name FROM (FROM artist_form WHERE {_IN_RANGE})
    ANTI JOIN (FROM chosen_name WHERE {_IN_RANGE}) USING (artist_id)
) LEFT JOIN (
    SELECT artist_id, max(popularity) AS popularity,
        arg_min(sort_name, struct_pack(a := {render_rank_sql(ARTIST_NAME)}, b := sort_name)) AS sort_name
    FROM listed_artist WHERE {_IN_RANGE} GROUP BY artist_id
) USING (artist_id)
"""

_ALIAS = f"""
SELECT DISTINCT a.artist_id, f.alias, f.kind, f.platform FROM (FROM artist WHERE {_IN_RANGE}) a JOIN (
    SELECT artist_id, {render_shown_name_sql("name")} AS alias, 'name' AS kind, platform FROM listed_artist
    UNION ALL SELECT artist_id, unnest(aliases), 'alias', platform FROM listed_artist
    UNION ALL SELECT artist_id, sort_name, 'sort_name', platform FROM listed_artist
    UNION ALL SELECT artist_id, trim(name), 'legal_name', platform FROM legal_artist
    UNION ALL SELECT artist_id, {render_shown_name_sql("name")}, 'credit', platform FROM (
        SELECT artist_id, name, platform FROM credited_artist UNION ALL SELECT artist_id, name, platform FROM credited_on_release
    ) WHERE platform <> '{NAME_ONLY}'
) f USING (artist_id) WHERE f.{_IN_RANGE} AND f.alias <> a.name AND trim(f.alias) <> ''
"""


def write_artist_names(bench: Workbench) -> dict[str, int]:
    """Write `artist` (counts still 0) and `artist_alias`, and return row counts."""
    # All that is known of an artist is in one range of ids.
    end, rows = 1 + int(bench.read_frame("SELECT coalesce(max(artist_id), 0) FROM node_artist").item()), bench.count("node_artist")
    bench.keep_ranges("listed_artist", _LISTED, end, rows)
    bench.keep("legal_artist", _LEGAL)
    bench.keep_ranges("credited_artist", _CREDITED, end, rows)
    bench.keep_parts("keyed_on_release", _KEYED_ON_RELEASE, bench.count("release_credit"))
    bench.keep_parts("credited_on_release", _CREDITED_ON_RELEASE, bench.count("node") + bench.count("keyed_on_release"))
    bench.drop("keyed_on_release")
    rows = bench.count("credited_artist")
    bench.keep_ranges("artist_form", _FORM, end, rows)
    # Most artists have one name everywhere, so few names are compared outside the database.
    bench.load_blocks("chosen_name", (choose_names(bench.read_frame(sql)) for sql in cut_ranges(_CONTESTED_FORM, end, rows)))
    return {
        "artists": bench.write_in_turn("artist", cut_ranges(_ARTIST, end, rows)),
        "artist_aliases": bench.write_in_turn("artist_alias", cut_ranges(_ALIAS, end, rows)),
    }


def choose_names(forms: pl.DataFrame) -> pl.DataFrame:
    """Return the name to show for each artist: artist_id, name.

    The name with most votes wins; spellings of one key vote together. These yield to another name of the artist:

    - a name turned round (`Dylan, Bob`), or with a remark in brackets (`Bush (US)`);
    - a family name, or one with initials, where a full name has support (`Couperin`, `J. S. Bach`);
    - capitals throughout, where another spelling of the name has small letters.

    Args:
        forms: artist_id, name, votes, rank (the least is asked first), is_edited (an edited catalog lists the artist so); distinct.
    """
    name = pl.col("name")
    forms = forms.sort("artist_id", -pl.col("votes"), "rank", "name").filter(pl.int_range(pl.len()).over("artist_id") < MOST_FORMS)
    words = build_name_key_expr(name)
    known = forms.with_columns(
        words=words.str.split(" "),
        key=compact_expr(words),
        turned_key=_build_key(name.str.extract(r"^([^,]+), [^,]+$", 1), name.str.extract(r"^[^,]+, ([^,]+)$", 1)),
        bare_key=_build_key(name.str.extract(r"^(.*\S)\s*[(\[][^()\[\]]*[)\]]\s*$", 1)),
        is_upper=(name.str.to_uppercase() == name) & (name.str.to_lowercase() != name),
        is_lower=(name.str.to_lowercase() == name) & (name.str.to_uppercase() != name),
        is_long=name.str.replace_all(r"\P{L}", "").str.len_chars() > ACRONYM_LETTERS,
    ).with_columns(
        last=pl.col("words").list.last(),
        lead=pl.col("words").list.head(pl.col("words").list.len() - 1).list.join(""),
        initials=pl.col("words").list.head(pl.col("words").list.len() - 1).list.eval(pl.element().str.head(1)).list.join(""),
        key_votes=pl.col("votes").sum().over("artist_id", "key"),
        is_printed=(pl.col("is_upper") | pl.col("is_lower")),
    )
    yielding = pl.concat([_find_disguised(known, "turned_key"), _find_disguised(known, "bare_key"), _find_shortened(known)]).unique()
    is_spelt = ((pl.col("votes") >= LEAST_VOTES) & ~pl.col("is_printed")).any().over("artist_id", "key")
    marked = known.join(yielding.with_columns(is_yielding=pl.lit(value=True)), on=["artist_id", "name"], how="left")
    best = marked.with_columns(is_shouted=pl.col("is_upper") & pl.col("is_long") & is_spelt).sort(
        "artist_id",
        name != VARIOUS_ARTISTS,
        pl.col("is_yielding").fill_null(value=False),
        -pl.col("key_votes"),
        "is_shouted",
        -pl.col("votes"),
        "is_printed",
        "rank",
        "name",
    )
    return best.unique("artist_id", keep="first", maintain_order=True).select("artist_id", "name")


def _build_key(last: pl.Expr, first: pl.Expr | None = None) -> pl.Expr:
    """Return the key of a name, or of a name and its part after the comma put in front; null without one."""
    text = last if first is None else pl.concat_str(first, pl.lit(" "), last)
    return pl.when(text.is_not_null()).then(compact_expr(build_name_key_expr(text)))


def _find_disguised(known: pl.DataFrame, key: str) -> pl.DataFrame:
    """Return artist_id, name of the names that in the form `key` are another name of the artist, which itself has no such form."""
    plain = known.filter(pl.col(key).is_null()).select("artist_id", pl.col("key").alias(key))
    return known.drop_nulls(key).join(plain, on=["artist_id", key], how="semi").select("artist_id", "name")


def _find_shortened(known: pl.DataFrame) -> pl.DataFrame:
    """Return artist_id, name of family names alone or with initials that stand for a supported full name."""
    named = known.filter(pl.col("last").str.contains(r"^\p{L}{2,}$"))
    full = named.filter(
        pl.col("words").list.len().is_between(2, MOST_WORDS), ~pl.col("words").list.contains("and"), pl.col("initials") != ""
    )
    pairs = named.join(full, on=["artist_id", "last"], suffix="_full").filter(
        pl.col("lead").str.len_chars() < pl.col("lead_full").str.len_chars()
    )
    is_short = (pl.col("lead") == "") | (pl.col("lead") == pl.col("initials_full"))
    # A full name that is printed now and then is no more than a remark; half of the shorter one's votes make it a second name.
    is_supported = pl.col("is_edited_full") | (2 * pl.col("key_votes_full") >= pl.col("key_votes"))
    return pairs.filter(is_short, is_supported).select("artist_id", "name")
