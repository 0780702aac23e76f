"""Namesakes in one atom: two artists of one name who have a song of one title and length, or one artist's two songs of one title.

An atom knows artists by name. What tells namesakes apart is a platform that keeps them under two ids, together with codes: records whose
codes are linked to one another are one body, and two bodies are two recordings when some platform credits them to different artists. One of
both alone proves nothing: platforms keep artists twice, and a recording has several codes. So are two bodies that stand on one release (two
of one `Interlude`: a release holds a recording once), and two whose other artists a platform names and none is the same (one symphony,
played by two orchestras, led by its composer).

What must not live here: who is who among artists (that is for the build, which sees all their works).
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from pipeline.linkage.credits import NO_ARTIST

if TYPE_CHECKING:
    from collections.abc import Iterator

PARTED = 1 << 41
"""Numbers of new parts start here, below zero; those of records that people have moved lie above."""


def part_namesakes(placed: pl.DataFrame, records: pl.DataFrame) -> pl.DataFrame:
    """Move the records of namesakes into a `part` of their own.

    Args:
        placed: row, part, name_hash; rows of one part are one atom, and those with a duration come together.
        records: platform, lead (a number for the lead artist's id; null: none), credit_artists, release_id, isrcs; by `row`.
    """
    moved = [(row, -PARTED - number) for number, rows in enumerate(_others(placed, records)) for row in rows]
    if not moved:
        return placed
    moves = pl.DataFrame(moved, schema={"row": placed.schema["row"], "own": pl.Int64}, orient="row")
    return placed.join(moves, on="row", how="left", maintain_order="left").with_columns(part=pl.coalesce("own", "part")).drop("own")


def _others(placed: pl.DataFrame, records: pl.DataFrame) -> Iterator[list[int]]:
    """Rows that leave their part together, in the order of parts and sides."""
    rows = _with_several_codes(placed, records["isrcs"])
    rows = rows.with_columns(records[name].gather(rows["row"]) for name in ("lead", "platform", "release_id", "credit_artists"))
    credited = rows.drop_nulls("lead").select("part", "platform", listed=pl.col("credit_artists").hash())
    shapes = credited.group_by("part", "platform").agg(one=pl.col("listed").min(), other=pl.col("listed").max())
    placed = rows.drop_nulls("release_id")
    beside = placed.filter(placed.select("part", "platform", "release_id").is_duplicated()).select("part")
    doubtful = pl.concat([shapes.filter(pl.col("one") != pl.col("other")).select("part"), beside]).unique()
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
    said: list[_Said] = []
    for body in bodies:
        rows = members[body]
        own = _Said.of(rows)
        place = next((side for side, known in enumerate(said) if not known.is_at_odds_with(own)), None)
        if place is None:
            sides.append([])
            said.append(own)
            place = len(sides) - 1
        else:
            said[place].absorb(own)
        sides[place] += rows["row"].to_list()
    settled = {number for body in bodies for number in body}
    for number, (row, platform, lead) in enumerate(members.select("row", "platform", "lead").iter_rows()):
        if number not in settled:
            known = [side for side, known in enumerate(said) if lead in known.leads[platform]]
            (sides[known[0] if known else 0] if sides else []).append(row)
    return sides


class _Said(NamedTuple):
    """What the records of a side say: ids of leading and of other artists, and releases, each by platform."""

    leads: defaultdict[str, set[int]]
    others: defaultdict[str, set[int]]
    releases: defaultdict[str, set[str]]

    @classmethod
    def of(cls, rows: pl.DataFrame) -> _Said:
        said = cls(defaultdict(set), defaultdict(set), defaultdict(set))
        for platform, lead, artists, release in rows.select("platform", "lead", "credit_artists", "release_id").iter_rows():
            if lead is not None:
                said.leads[platform].add(lead)
                said.others[platform].update(artist for artist in artists[1:] if artist != NO_ARTIST)
            if release is not None:
                said.releases[platform].add(release)
        return said

    def is_at_odds_with(self, other: _Said) -> bool:
        names = (_disjoint(self.leads, other.leads), _disjoint(self.others, other.others))
        return any(names) or any(not there.isdisjoint(other.releases[platform]) for platform, there in self.releases.items())

    def absorb(self, other: _Said) -> None:
        pairs: Iterator[tuple[defaultdict[str, set[Any]], defaultdict[str, set[Any]]]] = zip(self, other, strict=True)
        for mine, theirs in pairs:
            for platform, ids in theirs.items():
                mine[platform] |= ids


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


def _disjoint(one: dict[str, set[int]], other: dict[str, set[int]]) -> bool:
    return any(ids and other.get(platform) and ids.isdisjoint(other[platform]) for platform, ids in one.items())
