"""Artists of whom one lists the name of another: aliases, former names and sort names of the platforms' own lists of artists.

The module reads the steps `node` and `name_key` of the artists' workbench. artist_evidence.py weighs the pairs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pipeline.build.name_forms import build_artist_key
from pipeline.linkage.alias_owners import find_alias_owners, list_aliases
from pipeline.linkage.credits import derive_name_forms

if TYPE_CHECKING:
    from pipeline.build.workbench import Workbench

_LISTING = """
SELECT platform, artist_id, name, sort_name, aliases, is_placeholder FROM source_artist WHERE len(aliases) > 0 OR sort_name <> name
ORDER BY platform, artist_id
"""
# An alias concerns its owner, and all artists of its key. No other name is read.
_CONCERNED_KEY = """
SELECT key FROM alias_key UNION SELECT form FROM alias_key UNION SELECT key FROM name_key SEMI JOIN alias_key USING (name)
"""
_CONCERNED = """
SELECT name, key AS name_key FROM name_key WHERE key IN (FROM concerned_key) OR name IN (SELECT owner FROM listed) ORDER BY name
"""
_NAMED = """
SELECT platform, artist_id, name FROM source_artist SEMI JOIN (FROM name_key SEMI JOIN concerned_key USING (key)) USING (name)
ORDER BY platform, artist_id
"""
_LISTED_KEY = """
SELECT least(a.node, b.node) AS node_a, greatest(a.node, b.node) AS node_b, bool_or(o.owner_key IS NOT NULL) AS is_owned
FROM listed l JOIN (FROM alias_key WHERE hash(key) % {parts} = {part}) k USING (name) JOIN node a USING (platform, artist_id)
JOIN (FROM node WHERE hash(key) % {parts} = {part}) b ON b.key = k.key
LEFT JOIN alias_owner o ON o.alias_key = b.key AND o.owner_key = a.key
WHERE a.key <> b.key AND a.platform <> b.platform AND b.platform <> 'name' AND NOT a.is_placeholder AND NOT b.is_placeholder
GROUP BY ALL
"""
# Two artists may list each other, each the key of the other.
_LISTED_PAIR = "SELECT node_a, node_b, bool_or(is_owned) AS is_owned FROM listed_key_pair GROUP BY ALL"


def find_listed_pairs(bench: Workbench) -> None:
    """Make `listed_pair`: node_a, node_b, of which one lists the other's name, and is_owned (nobody else lists or bears that name)."""
    aliases = list_aliases(bench.read_frame(_LISTING))
    names = derive_name_forms(aliases["alias"].unique().sort()).select("name", form="name_key")
    bench.load("listed", aliases.select("platform", "artist_id", name="alias", owner="name"))
    bench.load("alias_key", names.with_columns(key=build_artist_key(pl.col("name"))))
    bench.keep("concerned_key", _CONCERNED_KEY)
    concerned, named = bench.read_frame(_CONCERNED), bench.read_frame(_NAMED)
    # The names are in memory as a whole: with full buffers 2.3 GB at 30 million recordings.
    bench.drop_buffers()
    bench.load("alias_owner", find_alias_owners(concerned, named, aliases))
    bench.keep_parts("listed_key_pair", _LISTED_KEY, bench.count("node"))
    bench.keep("listed_pair", _LISTED_PAIR)
    bench.drop("listed_key_pair", "listed", "alias_key", "alias_owner", "concerned_key")
