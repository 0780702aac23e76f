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
READING, SWAPPED = "reading", "swapped"
REPEATED = (READING, SWAPPED)
"""Kinds of which an atom may have one block twice."""
NO_NAME = pl.lit("").hash()
_SLOTS = (pl.col("duration_ms") // SLOT_MS, -1 - (pl.col("duration_ms") + SLOT_MS // 2) // SLOT_MS)
_TITLE_ENDS, _ARTIST_ENDS = ("title_front", "title_back"), ("artist_front", "artist_back")


def list_blocks(atoms: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield kind, and block, atom_id, mark of the atoms that have a block of it; a kind may come twice. `atoms`: BLOCK_COLUMNS, mark."""
    numbers = atoms.with_columns(has_artist=pl.col("artist") != NO_NAME, **{f"slot_{place}": slot for place, slot in enumerate(_SLOTS)})
    timed = numbers.filter(pl.col("duration_ms").is_not_null())
    named, timed_named = numbers.filter("has_artist"), timed.filter("has_artist")
    yield READING, _number(named, READING, (READING,))
    for slot in ("slot_0", "slot_1"):
        yield f"title {slot}", _number(timed, slot, ("title", slot))
        yield f"artist {slot}", _number(timed_named, slot, ("artist", slot))
        for end in _TITLE_ENDS:
            yield f"{end} {slot}", _number(timed, slot, (end, slot))
            for other in _ARTIST_ENDS:
                yield f"{end} {other} {slot}", _number(timed_named, slot, (end, other, slot))
        yield f"artist ends {slot}", _number(timed_named, slot, (*_ARTIST_ENDS, slot))
    for end in _TITLE_ENDS:
        yield f"artist {end}", _number(named, "end", ("artist", end))
        for other in _ARTIST_ENDS:
            yield f"{end} {other}", _number(named, "ends", (end, other))
    for other in _ARTIST_ENDS:
        yield f"title {other}", _number(named, "end", ("title", other))
    yield "title ends", _number(numbers, "ends", _TITLE_ENDS)
    # A title under an artist on one side, and under none on the other; and the two fields swapped.
    yield "title", _number(numbers, "title", ("title",))
    yield SWAPPED, _number(named, SWAPPED, ("title", "artist"))
    yield SWAPPED, _number(named, SWAPPED, ("artist", "title"))


def list_reading_blocks(readings: pl.DataFrame) -> pl.DataFrame:
    """Return block, atom_id, mark of readings (atom_id, readings: one a row, mark), of the kind READING."""
    return _number(readings, READING, ("readings",))


def _number(numbers: pl.DataFrame, kind: str, parts: tuple[str, ...]) -> pl.DataFrame:
    return numbers.select("atom_id", "mark", block=_hash_block(kind, parts))


@cache  # three dozen expressions, each built once instead of once for each piece of a table
def _hash_block(kind: str, parts: tuple[str, ...]) -> pl.Expr:
    return hash_columns((pl.lit(kind), *parts))
