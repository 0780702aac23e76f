"""Folksonomy tags of the relational dump, staged as `source_genre`: all tags with more votes for than against, most votes first.

Whether a tag is a genre is the business of the genre rules: fewer than one tag in a hundred is in the source's own genre list, and many
useful ones are not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from pipeline.dumps.platforms.catalog_b.relations import Relations

_TAGGED = {
    "recording": "SELECT recording AS entity, tag, count FROM recording_tag",
    # A tag on the release group holds for each of its releases; votes of both add up.
    "release": "SELECT release AS entity, tag, count FROM release_tag WHERE count > 0 UNION ALL "
    "SELECT r.id, g.tag, g.count FROM release_group_tag g JOIN release r ON r.release_group = g.release_group",
    "artist": "SELECT artist AS entity, tag, count FROM artist_tag",
}
_MAXIMUM_POSITION = 32_767


def stage_genres(relations: Relations) -> None:
    """Write the tags of recordings, releases and artists, each kind in the file order of its records."""
    for table in ("recording_tag", "release_tag", "release_group_tag", "artist_tag"):
        relations.reject_dangling("source_genre", table, "tag", "tag")
        relations.reject_dangling("source_genre", table, table.removesuffix("_tag"), table.removesuffix("_tag"))
    for kind, tagged in _TAGGED.items():
        for rows in relations.read_rows(f"""
            SELECT r.line, r.gid AS entity_id, n.name AS genre, x.votes,
                row_number() OVER (PARTITION BY r.line ORDER BY x.votes DESC, n.name) - 1 AS position
            FROM (SELECT entity, tag, sum(count) AS votes FROM ({tagged}) WHERE count > 0 GROUP BY entity, tag) x
                JOIN {kind} r ON x.entity = r.id JOIN tag n ON x.tag = n.id
            WHERE trim(n.name) <> ''
            ORDER BY r.line, position
        """):
            kept = rows.filter(pl.col("position") <= _MAXIMUM_POSITION)
            relations.write("source_genre", kind, kept.with_columns(entity_kind=pl.lit(kind)))
