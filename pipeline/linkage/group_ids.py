"""Ids of all groups, a bucket of groups at a time, in memory that does not grow with the catalog.

The ranges of source keys send votes here: how many of a group's records have which id. A bucket holds all votes of its groups, so the rules
of id_rules.py settle nearly all of them there. Two kinds of groups concern others. Groups that share an id with another are contested, and
one process settles them together; they are few. A group without an id gets a new one by its place among all such groups, and a set of bits
counts the places. Everyone who asked then reads the ids of his groups.

The files are in one folder, which the caller makes and removes:

    vote        group, home, held, rank (a row's place in its range), receiver (the range), by bucket of groups
    question    group, receiver, by bucket of groups: who besides the ranges wants to know an id
    id          group, code, by receiver; code: an id, or -1 - rank for a group that gets a new one
    fresh       the ranks of the groups that get a new id (NumberOrder)

Out of scope: what is a group; tables.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from catalog_store.row_shuffle import count_bucket_rows, read_bucket, write_run
from pipeline.engine.pool import map_ordered
from pipeline.linkage.id_rules import FIRST_ID, count_votes, find_known_votes, find_redirects, list_known_ids, move_links, settle
from pipeline.linkage.number_sets import NumberOrder, NumberSet

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy.typing as npt

    from pipeline.engine.pool import Pool
    from pipeline.linkage.id_registry import StoredRegistry

VOTES_PER_BUCKET = 1_000_000
"""Votes that one bucket of groups holds at most, on average: some 150 MB at the widest point."""
_QUESTION = {"group": pl.Int64, "receiver": pl.UInt32}
_CODE = {"group": pl.Int64, "code": pl.Int64}


class GroupIds(NamedTuple):
    """The decision. `links` as in Registry; `first_new_id`, `next_id`: the new ids; `in_use`: those of the older ids that are."""

    links: pl.DataFrame
    first_new_id: int
    next_id: int
    in_use: NumberSet


def count_group_buckets(members: int) -> int:
    """Return the number of buckets of groups for this number of members: there are at most as many votes."""
    return max(1, -(-members // VOTES_PER_BUCKET))


def send_votes(folder: Path, buckets: int, receiver: int, tallied: pl.DataFrame) -> None:
    """Send the tally (`id_rules.tally`) of the range of keys with this number, which is also the receiver of the ids."""
    rows = tallied.with_columns(pl.col("held", "rank").cast(pl.UInt32), receiver=pl.lit(receiver, pl.UInt32))
    write_run(folder / "vote", receiver, rows, _find_bucket(buckets))


def ask_ids(folder: Path, buckets: int, receiver: int, groups: pl.Series) -> None:
    """Ask for the ids of these groups. No range of keys may have the number of the receiver."""
    rows = groups.unique().to_frame("group").with_columns(receiver=pl.lit(receiver, pl.UInt32))
    write_run(folder / "question", receiver, rows, _find_bucket(buckets))


def _find_bucket(buckets: int) -> pl.Expr:
    return pl.col("group").hash() % buckets


def decide_ids(folder: Path, stored: StoredRegistry, range_rows: Sequence[int], pool: Pool) -> GroupIds:
    """Give each group its id. `range_rows`: the number of keys in each range, in order of keys."""
    first_ranks = np.cumsum([0, *range_rows])
    buckets = list(count_bucket_rows(folder / "vote"))
    doubled = _find_doubled_roots(folder, stored, buckets, pool)
    in_use, fresh = NumberSet(stored.next_id), NumberSet(int(first_ranks[-1]))
    contested, asked = [], []
    for found in map_ordered(partial(_settle_bucket, folder, first_ranks, stored.links, doubled), buckets, pool=pool):
        in_use.add(found.used)
        fresh.add(found.fresh)
        contested.append(found.contested)
        asked.append(found.asked)
    moved = stored.links.clear()
    if buckets:
        settled = settle(pl.concat(contested), stored.links)
        in_use.add(settled.ids["entity_id"].to_numpy())
        fresh.add(settled.fresh["rank"].to_numpy())
        moved = settled.moved
        _answer(folder, max(buckets) + 1, pl.concat(asked), settled.ids, settled.fresh)
    fresh.write_order(folder / "fresh")
    linked = stored.links["old_id"]
    links = move_links(stored.links, moved, linked.filter(in_use.find_members(linked.to_numpy())))
    return GroupIds(links, stored.next_id, stored.next_id + fresh.count(), in_use)


def find_group_redirects(homes: pl.Series, ids: GroupIds) -> pl.DataFrame:
    """Return old_id, new_id of the known ids that are not in use. `homes`: homes of keys that may be out of use, with repetitions."""
    doubtful = homes.drop_nulls().unique()
    known = list_known_ids(doubtful, ids.links)
    return find_redirects(doubtful, ids.links, known.filter(pl.Series(ids.in_use.find_members(known.to_numpy()), dtype=pl.Boolean)))


def read_ids(folder: Path, receiver: int, first_new_id: int) -> pl.DataFrame:
    """Return group, entity_id for all groups that the receiver voted for or asked for, in no order."""
    rows = read_bucket(folder / "id", receiver)
    if not rows.width:
        rows = pl.DataFrame(schema=_CODE)
    codes = rows["code"].to_numpy()
    is_fresh = codes < 0
    ids = codes.copy()
    ids[is_fresh] = first_new_id + NumberOrder(folder / "fresh").count_smaller(-1 - codes[is_fresh])
    return rows.select("group", entity_id=pl.Series(ids))


def _find_doubled_roots(folder: Path, stored: StoredRegistry, buckets: list[int], pool: Pool) -> pl.Series:
    """Return the ids, links followed, that have several votes."""
    doubled = [np.zeros(0, np.int64)]
    # Before the first publish there is no id to vote for.
    if stored.next_id > FIRST_ID:
        seen = NumberSet(stored.next_id)
        for roots in map_ordered(partial(_read_roots, folder, stored.links), buckets, pool=pool):
            ids, votes = np.unique(roots, return_counts=True)
            doubled.append(ids[(votes > 1) | seen.find_members(ids)])
            seen.add(ids)
    return pl.Series("root", np.concatenate(doubled)).unique()


def _read_roots(folder: Path, links: pl.DataFrame, bucket: int) -> npt.NDArray[np.int64]:
    return find_known_votes(count_votes(read_bucket(folder / "vote", bucket)), links)["root"].to_numpy()


class _Settled(NamedTuple):
    """The result of one bucket, for the step that settles all buckets.

    `used`: ids given; `fresh`: ranks of groups that get a new one; `contested`: votes as of `count_votes`, and `asked`: group, receiver, of
    contested groups.
    """

    used: npt.NDArray[np.int64]
    fresh: npt.NDArray[np.int64]
    contested: pl.DataFrame
    asked: pl.DataFrame


def _settle_bucket(folder: Path, first_ranks: npt.NDArray[np.int64], links: pl.DataFrame, doubled: pl.Series, bucket: int) -> _Settled:
    """Settle the groups of a bucket that share no id with others, and answer for them."""
    rows = read_bucket(folder / "vote", bucket)
    rows = rows.with_columns(rank=pl.Series(first_ranks[rows["receiver"].to_numpy()] + rows["rank"].to_numpy()))
    questions = read_bucket(folder / "question", bucket)
    asked = pl.concat([rows.select(_QUESTION.keys()).unique(), questions if questions.width else pl.DataFrame(schema=_QUESTION)])
    votes = count_votes(rows)
    known = find_known_votes(votes, links)
    disputed = known.filter(~pl.col("is_plain") | pl.col("root").is_in(doubled.implode())).select("group").unique()
    found = settle(votes.join(disputed, on="group", how="anti"), links)
    _answer(folder, bucket, asked, found.ids, found.fresh)
    contested, open_questions = (frame.join(disputed, on="group", how="semi") for frame in (votes, asked))
    return _Settled(found.ids["entity_id"].to_numpy(), found.fresh["rank"].to_numpy(), contested, open_questions)


def _answer(folder: Path, number: int, asked: pl.DataFrame, ids: pl.DataFrame, fresh: pl.DataFrame) -> None:
    """Write the ids of these groups for those who asked."""
    codes = pl.concat([ids.select("group", code="entity_id"), fresh.select("group", code=-1 - pl.col("rank"))])
    answers = asked.join(codes, on="group")
    write_run(folder / "id", number, answers.select(_CODE.keys()), answers["receiver"])
