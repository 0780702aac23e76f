"""All words of an index in order of length and text, and again by reversed texts: words with a common beginning or end are neighbours.

Texts stand between newlines, so that a run of words is read as one slice. Every STRIDE-th word is held in memory
when the files are opened, which finds a run's ends without touching the rest. Most texts that are no word are told by one bit. layout.py
names the files. What must not live here: what a word means to a query (typos.py).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from catalog_store.search.arrays import ArrayWriter, mapped_bytes, numbers
from catalog_store.search.layout import FIELD_SEPARATOR, HASH_BITS, smallest_unsigned, title_word_hash

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
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
_BEHIND_ALL = b"\xff"
_LENGTHS = [bytes((length,)) for length in range(LONGEST_TOLD + 1)]


def order_key(word: str, characters: int | None = None) -> bytes:
    """Sorts words as the files do; of a beginning: where words of so many characters with it begin."""
    return _LENGTHS[min(len(word) if characters is None else characters, LONGEST_TOLD)] + word.encode()


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


class _Sorted:
    """Words in one order."""

    def __init__(self, folder: Path, name: str, starts: Sequence[int]) -> None:
        """`starts`: where every STRIDE-th word begins, and the end."""
        self._texts = mapped_bytes(folder / f"{name}.bin")
        self._starts = starts
        self._heads = [order_key(self._texts[start : self._texts.find(b"\n", start)].decode()) for start in starts[:-1]]

    def run(self, beginning: str, characters: int, at_most: int, *, beside: bool) -> bytes:
        """All words of that length with that beginning, about `at_most` of them, as lines; `beside`: and some that stand next to them."""
        key = order_key(beginning, characters)
        first = max(0, bisect_right(self._heads, key) - 1)
        last = bisect_left(self._heads, key + _BEHIND_ALL, first, min(len(self._heads), first - (-at_most // STRIDE)))
        texts, led = self._texts[self._starts[first] - 1 : self._starts[last]], b"\n" + key[1:]
        begin, end = (0, -1) if beside else (texts.find(led), texts.find(b"\n", texts.rfind(led) + 1))
        return texts[begin + 1 : end] if begin >= 0 else b""

    def find(self, word: str) -> tuple[int, int]:
        """Number of the stride that a word is in, and where in the texts it begins; a place below 0: it is no word."""
        key = order_key(word)
        stride = bisect_right(self._heads, key) - 1
        if stride < 0:
            return 0, -1
        return stride, self._texts.find(b"\n%b\n" % key[1:], self._starts[stride] - 1, self._starts[stride + 1])

    def place(self, word: str) -> int | None:
        """Number of a word, None when it is none."""
        stride, found = self.find(word)
        return None if found < 0 else stride * STRIDE + self._texts[self._starts[stride] - 1 : found].count(b"\n")


class Vocabulary:
    """The opened files."""

    def __init__(self, folder: Path) -> None:
        """Reads every STRIDE-th word."""
        starts = numbers(folder / "vocabulary_starts.npy")
        self._counts = numbers(folder / "vocabulary_counts.npy")
        self._marks = numbers(folder / "vocabulary_marks.npy")
        self._mark_shift = HASH_BITS - (8 * len(self._marks) - 1).bit_length()
        self._forward = _Sorted(folder, "vocabulary", [*starts[:-1][::STRIDE], starts[-1]])
        self._backward = _Sorted(folder, "reversed", numbers(folder / "reversed_starts.npy").tolist())

    def rarest(self, words: Iterable[str], at_most: int) -> list[str]:
        """Of these words the rarest that the vocabulary has, in their order; unknown ones only where known ones are too few."""
        counted: list[tuple[int, int, str]] = []
        for word in words:
            place = self._forward.place(word)
            counted.append((1 << 16 if place is None else self._counts[place], len(counted), word))
        return [word for _, _, word in sorted(sorted(counted)[:at_most], key=lambda one: one[1])]

    def count(self, word: str) -> float:
        """About how many documents pair it, a tenth too many at most; 0 when it is no word."""
        place = self._forward.place(word)
        return 0.0 if place is None else 2.0 ** (self._counts[place] / COUNT_STEPS) - 1.0

    def has(self, word: str) -> bool:
        """Whether it is one of the words."""
        mark = title_word_hash(word) >> self._mark_shift
        return bool(self._marks[mark >> 3] >> (mark & 7) & 1) and self._forward.find(word)[1] >= 0

    def beginning(self, beginning: str, characters: int, at_most: int, *, beside: bool) -> bytes:
        """Words of so many characters that begin so, about `at_most` of them, as lines; with `beside` also some that begin nearly so."""
        return self._forward.run(beginning, characters, at_most, beside=beside)

    def ending(self, ending: str, characters: int, at_most: int, *, beside: bool) -> bytes:
        """Words that end so, each backwards, as lines; otherwise as `beginning`."""
        return self._backward.run(ending[::-1], characters, at_most, beside=beside)
