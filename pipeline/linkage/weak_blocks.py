"""Blocks in which atoms are compared by weak signals: any two of title, artist and length suffice, and an error spares one end of a name.

A block is a number, a hash over its kind and its parts. Few pairs share a block by chance; a collision (1 in 2^64) only adds a pair that
the comparison rejects. Out of scope: what a pair is worth (match_weights.py).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import polars as pl

from catalog_store.record_keys.numbers import hash_columns
from pipeline.linkage.mixed_fields import number_reading

if TYPE_CHECKING:
    from collections.abc import Iterator

TITLE_END, ARTIST_END = 4, 3
"""Characters at either end of a name."""
SLOT_MS = 4_000
"""Two lengths within half of it share a slot: each is in one of the slots and in one of those that begin half a slot later."""
LARGEST_BLOCK = 24
"""In atoms. A larger block holds names too common to tell anything without the signals of a smaller one."""

_TITLE, _ARTIST = pl.col("title_key"), pl.col("artist_key")
NAME_NUMBERS = {
    "artist": _ARTIST.hash(),
    "reading": number_reading(),
    "title_front": (pl.lit("^") + _TITLE.str.head(TITLE_END)).hash(),
    "title_back": (pl.lit("$") + _TITLE.str.tail(TITLE_END)).hash(),
    "artist_front": (pl.lit("^") + _ARTIST.str.head(ARTIST_END)).hash(),
    "artist_back": (pl.lit("$") + _ARTIST.str.tail(ARTIST_END)).hash(),
}
"""Numbers of an atom's names and of their ends, stored (mapped_atoms.py): hashing texts is most of the cost of blocks."""
BLOCK_COLUMNS = ["atom_id", "title", *NAME_NUMBERS, "duration_ms"]
BLOCKS_PER_ATOM = 31
"""Blocks of an atom, besides the readings of a mixed title."""
NO_NAME = pl.lit("").hash()
_SLOTS = (pl.col("duration_ms") // SLOT_MS, -1 - (pl.col("duration_ms") + SLOT_MS // 2) // SLOT_MS)
_TITLE_ENDS, _ARTIST_ENDS = ("title_front", "title_back"), ("artist_front", "artist_back")


def list_blocks(atoms: pl.DataFrame, readings: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield block, atom_id, mark of the atoms that have a block, kind by kind. An atom has each block once.

    `atoms`: BLOCK_COLUMNS, mark. `readings`: atom_id, readings (one a row), mark of those of them with a mixed title, each once.
    """
    numbers = atoms.with_columns(has_artist=pl.col("artist") != NO_NAME, **{f"slot_{place}": slot for place, slot in enumerate(_SLOTS)})
    timed = numbers.filter(pl.col("duration_ms").is_not_null())
    named, timed_named = numbers.filter("has_artist"), timed.filter("has_artist")
    yield _list_reading_blocks(named, readings)
    for slot in ("slot_0", "slot_1"):
        yield _number(timed, ("title", slot))
        yield _number(timed_named, ("artist", slot))
        for end in _TITLE_ENDS:
            yield _number(timed, (end, slot))
            for other in _ARTIST_ENDS:
                yield _number(timed_named, (end, other, slot))
        yield _number(timed_named, (*_ARTIST_ENDS, slot))
    for end in _TITLE_ENDS:
        yield _number(named, ("artist", end))
        for other in _ARTIST_ENDS:
            yield _number(named, (end, other))
    for other in _ARTIST_ENDS:
        yield _number(named, ("title", other))
    yield _number(numbers, _TITLE_ENDS)
    # A title under an artist on one side, and under none on the other; and the two fields swapped.
    yield _number(numbers, ("title",))
    yield _number(named, ("title", "artist"), "swapped")
    yield _number(named.filter(pl.col("title") != pl.col("artist")), ("artist", "title"), "swapped")


def _list_reading_blocks(named: pl.DataFrame, readings: pl.DataFrame) -> pl.DataFrame:
    own, read = _number(named, ("reading",), "reading"), _number(readings, ("readings",), "reading")
    if read.is_empty():
        return own
    # The own names of an atom may be one of its readings.
    known = own.join(read, on="atom_id", how="semi")
    return pl.concat([own, read.join(known, on=["atom_id", "block"], how="anti")])


def _number(numbers: pl.DataFrame, parts: tuple[str, ...], kind: str = "") -> pl.DataFrame:
    return numbers.select("atom_id", "mark", block=_hash_block(kind or " ".join(parts), parts))


@cache  # three dozen expressions, each built once instead of once for each piece of a table
def _hash_block(kind: str, parts: tuple[str, ...]) -> pl.Expr:
    return hash_columns((pl.lit(kind), *parts))
