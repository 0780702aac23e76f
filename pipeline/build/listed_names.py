"""Artists of whom one lists the name of another: aliases, former names and sort names of the platforms' own lists of artists.

The module reads the steps `node` and `name_key` of the artists' workbench. artist_evidence.py weighs the pairs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pipeline.build.name_forms import build_artist_key
from pipeline.linkage.alias_owners import find_alias_owners, list_aliases

if TYPE_CHECKING:
    from pipeline.build.workbench import Workbench

_LISTING = """
SELECT platform, artist_id, name, sort_name, aliases, is_placeholder FROM source_artist WHERE len(aliases) > 0 OR sort_name <> name
ORDER BY platform, artist_id
"""
_NAMED = "SELECT platform, artist_id, name FROM source_artist ORDER BY platform, artist_id"
_LISTED_PAIR = """
SELECT least(a.node, b.node) AS node_a, greatest(a.node, b.node) AS node_b, bool_or(o.owner_key IS NOT NULL) AS is_owned
FROM listed l JOIN alias_key k USING (name) JOIN node a USING (platform, artist_id)
JOIN node b ON b.key = k.key LEFT JOIN alias_owner o ON o.alias_key = b.key AND o.owner_key = a.key
WHERE a.key <> b.key AND a.platform <> b.platform AND b.platform <> 'name' AND NOT a.is_placeholder AND NOT b.is_placeholder
GROUP BY ALL ORDER BY ALL
"""


def find_listed_pairs(bench: Workbench) -> pl.DataFrame:
    """Return pairs of nodes of which one lists the other's name: node_a, node_b, is_owned (nobody else lists or bears that name there)."""
    aliases = list_aliases(bench.read_frame(_LISTING))
    names = aliases.select(name=pl.col("alias").unique().sort())
    bench.load("listed", aliases.select("platform", "artist_id", name="alias"))
    bench.load("alias_key", names.with_columns(key=build_artist_key(pl.col("name"))))
    keys = bench.read_frame("SELECT name, key AS name_key FROM name_key ORDER BY name")
    bench.load("alias_owner", find_alias_owners(keys, bench.read_frame(_NAMED), aliases))
    return bench.read_frame(_LISTED_PAIR)
