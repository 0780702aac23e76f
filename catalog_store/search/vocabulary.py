"""All words of an index in order of length and text, and again by reversed texts: words with a common beginning or end are neighbours.

Texts stand between newlines, so that a run of words is one piece, whose ends are found by where every STRIDE-th word begins. Most texts
that are no word are told by one bit. layout.py names the files, walks.pyx looks into them. What must not live here: what a word means to a
query (typos.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from catalog_store.search.arrays import ArrayWriter, mapped, mapped_bytes, numbers
from catalog_store.search.layout import FIELD_SEPARATOR, HASH_BITS, smallest_unsigned, title_word_hash
from catalog_store.search.walks import SortedWords

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from numpy.typing import NDArray

STRIDE = 64
LONGEST_TOLD = 255
"""Characters: longer words stand among those of this length."""
COUNT_STEPS = 8
"""Steps of a word's count per power of two, as it is stored."""
_BITS_PER_WORD = 16
"""At least: of texts that are no word one in so many has a mark all the same."""
_WRITTEN_AT_ONCE = 100_000


def in_order(words: pl.DataFrame, word: str = "word") -> pl.DataFrame:
    """Rows in the order of the vocabulary."""
    return words.sort(pl.col(word).str.len_chars().clip(upper_bound=LONGEST_TOLD), word)


def write_vocabulary(folder: Path, words: pl.DataFrame) -> None:
    """Write the files; `words` [word, count, title_hash] in order, distinct."""
    _write_texts(folder, "vocabulary", words["word"], stride=1)
    steps = np.ceil(COUNT_STEPS * np.log2(1.0 + words["count"].to_numpy())).clip(max=255)
    with ArrayWriter(folder / "vocabulary_counts.npy", np.uint8) as counts:
        counts.append(steps)
    with ArrayWriter(folder / "vocabulary_marks.npy", np.uint8) as marks:
        marks.append(_marks(words["title_hash"].to_numpy()))
    # By code points: Polars' own reverse keeps combining marks behind their letter, the reader's does not.
    spelled = words.filter(~pl.col("word").str.starts_with(FIELD_SEPARATOR))["word"]
    backwards = pl.DataFrame({"word": pl.Series([word[::-1] for word in spelled], dtype=pl.String)})
    _write_texts(folder, "reversed", in_order(backwards)["word"], stride=STRIDE)


def _marks(hashes: NDArray[np.uint64]) -> NDArray[np.uint8]:
    bits = max(3, (_BITS_PER_WORD * len(hashes) - 1).bit_length())
    marked = np.zeros(1 << bits, dtype=bool)
    marked[hashes >> np.uint64(HASH_BITS - bits)] = True
    return np.packbits(marked, bitorder="little")


def _write_texts(folder: Path, name: str, words: pl.Series, stride: int) -> None:
    """`<name>.bin`, and where every `stride`-th word begins, the end included."""
    lengths = words.str.len_bytes().to_numpy().astype(np.uint64) + np.uint64(1)
    starts = np.uint64(1) + np.concatenate([[np.uint64(0)], np.cumsum(lengths, dtype=np.uint64)])
    dtype = smallest_unsigned(int(starts[-1]))
    with ArrayWriter(folder / f"{name}_starts.npy", dtype) as array, (folder / f"{name}.bin").open("wb") as texts:
        array.append(starts[:-1][::stride])
        array.append(starts[-1:])
        texts.write(b"\n")
        for first in range(0, len(words), _WRITTEN_AT_ONCE):
            texts.write("".join(f"{word}\n" for word in words[first : first + _WRITTEN_AT_ONCE]).encode())


class Vocabulary:
    """The opened files."""

    def __init__(self, folder: Path) -> None:
        """Reads where every STRIDE-th word begins."""
        self._counts = numbers(folder / "vocabulary_counts.npy")
        self._marks = numbers(folder / "vocabulary_marks.npy")
        self._mark_shift = HASH_BITS - (8 * len(self._marks) - 1).bit_length()
        starts = mapped(folder / "vocabulary_starts.npy")
        strides = np.concatenate([starts[:-1:STRIDE], starts[-1:]])
        self._forward = SortedWords(mapped_bytes(folder / "vocabulary.bin"), strides, STRIDE, LONGEST_TOLD)
        backward_strides = mapped(folder / "reversed_starts.npy")
        self._backward = SortedWords(mapped_bytes(folder / "reversed.bin"), backward_strides, STRIDE, LONGEST_TOLD)

    def rarest(self, words: Iterable[str], at_most: int) -> list[str]:
        """Of these words the rarest that the vocabulary has, in their order; unknown ones only where known ones are too few."""
        counted: list[tuple[int, int, str]] = []
        for word in words:
            place = self._forward.place(word)
            counted.append((1 << 16 if place < 0 else self._counts[place], len(counted), word))
        return [word for _, _, word in sorted(sorted(counted)[:at_most], key=lambda one: one[1])]

    def count(self, word: str) -> float:
        """About how many documents pair it, a tenth too many at most; 0 when it is no word."""
        place = self._forward.place(word)
        return 0.0 if place < 0 else 2.0 ** (self._counts[place] / COUNT_STEPS) - 1.0

    def has(self, word: str) -> bool:
        """Whether it is one of the words."""
        mark = title_word_hash(word) >> self._mark_shift
        return bool(self._marks[mark >> 3] >> (mark & 7) & 1) and self._forward.place(word) >= 0

    def close(self, word: str, kept: int, characters: int, edits: int, at_most: int, *, beside: bool) -> list[tuple[int, str]]:
        """(edits, other) for words of so many characters, at most `edits` from `word`, that begin or end with the same `kept` letters.

        At each end about `at_most` words are looked at, with `beside` also some that begin or end nearly so.
        """
        close = self._forward.close(word, kept, characters, edits, at_most, beside)
        return close + [(one, other[::-1]) for one, other in self._backward.close(word[::-1], kept, characters, edits, at_most, beside)]
