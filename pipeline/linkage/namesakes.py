"""Records of namesakes in one atom: two artists of one name who have a song of one title and length.

An atom knows artists by name. What tells namesakes apart is a platform that keeps them under two ids, together with codes: records whose
codes are linked to one another are one body, and two bodies are two recordings when some platform credits them to different artists. One of
both alone proves nothing: platforms keep artists twice, and a recording has several codes.

What must not live here: who is who among artists (that is for the build, which sees all their works).
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterator

PARTED = 1 << 41
"""Numbers of new parts start here, below zero; those of records that people have moved lie above."""


def part_namesakes(placed: pl.DataFrame, records: pl.DataFrame) -> pl.DataFrame:
    """Move the records of namesakes into a `part` of their own.

    Args:
        placed: row, part, name_hash; rows of one part are one atom, and those with a duration come together.
        records: platform, lead (a number for the lead artist's id on the platform; null: none), isrcs; by `row`.
    """
    moved = [(row, -PARTED - number) for number, rows in enumerate(_others(placed, records)) for row in rows]
    if not moved:
        return placed
    moves = pl.DataFrame(moved, schema={"row": placed.schema["row"], "own": pl.Int64}, orient="row")
    return placed.join(moves, on="row", how="left", maintain_order="left").with_columns(part=pl.coalesce("own", "part")).drop("own")


def _others(placed: pl.DataFrame, records: pl.DataFrame) -> Iterator[list[int]]:
    """Rows that leave their part together, in the order of parts and sides."""
    rows = _with_several_codes(placed, records["isrcs"])
    leads, platforms = (records[name].gather(rows["row"]) for name in ("lead", "platform"))
    rows = rows.with_columns(leads, platforms)
    shapes = rows.drop_nulls("lead").group_by("part", "platform").agg(one=pl.col("lead").min(), other=pl.col("lead").max())
    doubtful = shapes.filter(pl.col("one") != pl.col("other")).select("part").unique()
    rows = rows.join(doubtful, on="part", how="semi").sort("part", "name_hash")
    rows = rows.with_columns(records["isrcs"].gather(rows["row"]))
    for _, members in rows.group_by("part", maintain_order=True):
        yield from _sides(members)[1:]


def _with_several_codes(placed: pl.DataFrame, isrcs: pl.Series) -> pl.DataFrame:
    """row, part, name_hash of the parts whose records do not all carry the same codes; neighbours are compared, parts come together."""
    rows = placed.select("row", "part", "name_hash")
    codes = pl.DataFrame({"code": isrcs.hash(), "is_coded": isrcs.list.len() > 0})[rows["row"]]
    coded = pl.concat([rows.select("part"), codes], how="horizontal").filter("is_coded")
    differ = (pl.col("part") == pl.col("part").shift(1)) & (pl.col("code") != pl.col("code").shift(1))
    return rows.join(coded.filter(differ).select("part").unique(), on="part", how="semi")


def _sides(members: pl.DataFrame) -> list[list[int]]:
    """The rows of one part by namesake, the largest side first."""
    bodies = _bodies(members)
    sides: list[list[int]] = []
    leads: list[dict[str, set[int]]] = []
    for body in bodies:
        rows = members[body]
        own = _leads(rows)
        place = next((side for side, known in enumerate(leads) if not _at_odds(known, own)), None)
        if place is None:
            sides.append([])
            leads.append(defaultdict(set))
            place = len(sides) - 1
        sides[place] += rows["row"].to_list()
        for platform, ids in own.items():
            leads[place][platform] |= ids
    settled = {number for body in bodies for number in body}
    for number, (row, platform, lead) in enumerate(members.select("row", "platform", "lead").iter_rows()):
        if number not in settled:
            known = [side for side, ids in enumerate(leads) if lead in ids.get(platform, ())]
            (sides[known[0] if known else 0] if sides else []).append(row)
    return sides


def _bodies(members: pl.DataFrame) -> list[list[int]]:
    """Positions of the records with codes, those joined by codes together; the largest first, then in the order of the rows."""
    body_of: dict[str, int] = {}
    bodies: dict[int, list[int]] = {}
    for position, isrcs in enumerate(members["isrcs"].to_list()):
        if not isrcs:
            continue
        joined = sorted({body_of[isrc] for isrc in isrcs if isrc in body_of})
        number = joined[0] if joined else position
        for other in joined[1:]:
            bodies[number] += bodies.pop(other)
            body_of.update({isrc: number for isrc, body in body_of.items() if body == other})
        bodies.setdefault(number, []).append(position)
        body_of.update(dict.fromkeys(isrcs, number))
    return sorted((sorted(body) for body in bodies.values()), key=lambda body: (-len(body), body))


def _leads(rows: pl.DataFrame) -> dict[str, set[int]]:
    found: dict[str, set[int]] = defaultdict(set)
    for platform, lead in rows.select("platform", "lead").drop_nulls().iter_rows():
        found[platform].add(lead)
    return found


def _at_odds(one: dict[str, set[int]], other: dict[str, set[int]]) -> bool:
    return any(other.get(platform) and ids.isdisjoint(other[platform]) for platform, ids in one.items())
