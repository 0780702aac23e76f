"""Namesakes in one atom: two artists of one name with songs of one title and length, or two songs of one title by one artist.

An atom knows artists by name. Records whose codes overlap are one body. Two bodies are two recordings in three cases:

- A platform credits them to different lead artists (ids) of one spelling. Ids alone prove nothing, because platforms keep artists twice
  (`Beyoncé`, `BEYONCE`); codes alone prove nothing, because a recording has several.
- They are on one release, which holds a recording once (two of one `Interlude`).
- A platform names their other artists and none is the same (one symphony by two orchestras, led by its composer).

Out of scope: which artists are one (the build decides that, from all their works).
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from pipeline.linkage.credits import NO_ARTIST

if TYPE_CHECKING:
    from collections.abc import Iterator

PARTED = 1 << 41
"""Numbers of new parts start here, below zero; those of reviewed decisions are above."""


def part_namesakes(placed: pl.DataFrame, records: pl.DataFrame) -> pl.DataFrame:
    """Move the records of namesakes into a `part` of their own.

    Args:
        placed: row, part, name_hash; rows of one part are one atom, and those with a duration come together.
        records: platform, lead (a number for the lead artist's id; null: none), credit_artists, release_id, isrcs; by `row`.
    """
    moved = [(row, -PARTED - number) for number, rows in enumerate(_find_leaving_rows(placed, records)) for row in rows]
    if not moved:
        return placed
    moves = pl.DataFrame(moved, schema={"row": placed.schema["row"], "own": pl.Int64}, orient="row")
    return placed.join(moves, on="row", how="left", maintain_order="left").with_columns(part=pl.coalesce("own", "part")).drop("own")


def _find_leaving_rows(placed: pl.DataFrame, records: pl.DataFrame) -> Iterator[list[int]]:
    """Yield the rows that leave their part together, in the order of parts and sides."""
    rows = _filter_mixed_codes(placed, records["isrcs"])
    rows = rows.with_columns(
        records[name].gather(rows["row"]) for name in ("lead", "platform", "release_id", "credit_artists", "credit_names")
    )
    # Two cheap signs reduce the parts: one platform lists several sets of artists, or one release holds several
    # records.
    credited = rows.drop_nulls("lead").select("part", "platform", listed=pl.col("credit_artists").hash())
    shapes = credited.group_by("part", "platform").agg(one=pl.col("listed").min(), other=pl.col("listed").max())
    placed = rows.drop_nulls("release_id")
    beside = placed.filter(placed.select("part", "platform", "release_id").is_duplicated()).select("part")
    doubtful = pl.concat([shapes.filter(pl.col("one") != pl.col("other")).select("part"), beside]).unique()
    rows = rows.join(doubtful, on="part", how="semi").sort("part", "name_hash")
    rows = rows.with_columns(records["isrcs"].gather(rows["row"]))
    # Records are sorted by a hash of their name, so the sides do not depend on the order of the input.
    for _, members in rows.group_by("part", maintain_order=True):
        yield from _split_sides(members)[1:]


def _filter_mixed_codes(placed: pl.DataFrame, isrcs: pl.Series) -> pl.DataFrame:
    """Return row, part, name_hash of the parts whose records do not all carry the same codes. Rows of a part come together."""
    rows = placed.select("row", "part", "name_hash")
    codes = pl.DataFrame({"code": isrcs.hash(), "is_coded": isrcs.list.len() > 0})[rows["row"]]
    coded = pl.concat([rows.select("part"), codes], how="horizontal").filter("is_coded")
    differ = (pl.col("part") == pl.col("part").shift(1)) & (pl.col("code") != pl.col("code").shift(1))
    return rows.join(coded.filter(differ).select("part").unique(), on="part", how="semi")


def _split_sides(members: pl.DataFrame) -> list[list[int]]:
    """Return the rows of one part by namesake, the largest side first."""
    bodies = _find_bodies(members)
    sides: list[list[int]] = []
    claims: list[_Claims] = []
    for body in bodies:
        rows = members[body]
        own = _Claims.of(rows)
        # Largest body first: it joins the first side that nothing contradicts, so small bodies gather around large
        # ones.
        place = next((side for side, known in enumerate(claims) if not known.is_contradicted_by(own)), None)
        if place is None:
            sides.append([])
            claims.append(own)
            place = len(sides) - 1
        else:
            claims[place].absorb(own)
        sides[place] += rows["row"].to_list()
    # Records without a code cannot tell a side by codes: they go where their lead artist is known, else to the largest
    # side.
    settled = {number for body in bodies for number in body}
    for number, (row, platform, lead) in enumerate(members.select("row", "platform", "lead").iter_rows()):
        if number not in settled:
            known = [side for side, known in enumerate(claims) if lead in known.leads[platform]]
            (sides[known[0] if known else 0] if sides else []).append(row)
    return sides


class _Claims(NamedTuple):
    """Claims of the records of a side: ids of lead artists, their spellings, ids of other artists, and releases, each by platform."""

    leads: defaultdict[str, set[int]]
    spellings: defaultdict[str, set[int]]
    others: defaultdict[str, set[int]]
    releases: defaultdict[str, set[str]]

    @classmethod
    def of(cls, rows: pl.DataFrame) -> _Claims:
        claims = cls(defaultdict(set), defaultdict(set), defaultdict(set), defaultdict(set))
        columns = ("platform", "lead", "credit_artists", "credit_names", "release_id")
        for platform, lead, artists, names, release in rows.select(columns).iter_rows():
            if lead is not None:
                claims.leads[platform].add(lead)
                claims.spellings[platform].update(names[:1])
                claims.others[platform].update(artist for artist in artists[1:] if artist != NO_ARTIST)
            if release is not None:
                claims.releases[platform].add(release)
        return claims

    def is_contradicted_by(self, other: _Claims) -> bool:
        # An artist whom a platform keeps twice has two spellings there; namesakes share one.
        shared = {platform: ids for platform, ids in self.leads.items() if self.spellings[platform] & other.spellings[platform]}
        names = (_has_disjoint_ids(shared, other.leads), _has_disjoint_ids(self.others, other.others))
        return any(names) or any(not there.isdisjoint(other.releases[platform]) for platform, there in self.releases.items())

    def absorb(self, other: _Claims) -> None:
        pairs: Iterator[tuple[defaultdict[str, set[Any]], defaultdict[str, set[Any]]]] = zip(self, other, strict=True)
        for mine, theirs in pairs:
            for platform, ids in theirs.items():
                mine[platform] |= ids


def _find_bodies(members: pl.DataFrame) -> list[list[int]]:
    """Return the places of the records with codes, by body: the largest first, then in the order of the rows."""
    body_of: dict[str, int] = {}
    bodies: dict[int, list[int]] = {}
    for position, isrcs in enumerate(members["isrcs"].to_list()):
        if not isrcs:
            continue
        joined = sorted({body_of[isrc] for isrc in isrcs if isrc in body_of})
        number = joined[0] if joined else position
        for other in joined[1:]:
            # A record that carries codes of two bodies joins them.
            bodies[number] += bodies.pop(other)
            body_of.update({isrc: number for isrc, body in body_of.items() if body == other})
        bodies.setdefault(number, []).append(position)
        body_of.update(dict.fromkeys(isrcs, number))
    return sorted((sorted(body) for body in bodies.values()), key=lambda body: (-len(body), body))


def _has_disjoint_ids(one: dict[str, set[int]], other: dict[str, set[int]]) -> bool:
    # Ids of different platforms cannot be compared, and a platform that names nobody proves nothing.
    return any(ids and other.get(platform) and ids.isdisjoint(other[platform]) for platform, ids in one.items())
