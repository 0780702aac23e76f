"""All words of an index by length and text, and again reversed, so that words with a common beginning or end are neighbours.

Texts are between newlines, so a run of words is one piece of bytes. The start of every STRIDE-th word is stored. One bit of
`vocabulary_marks.npy` rejects most texts that are not words. layout.py names the files, walks.pyx searches them. The meaning of a word to a
query belongs in typo_lookup.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from catalog_store.array_files import ArrayWriter, map_array, map_bytes, map_numbers
from catalog_store.search.layout import FIELD_SEPARATOR, HASH_BITS, choose_unsigned, hash_title_word
from catalog_store.search.walks import SortedWords

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from numpy.typing import NDArray

# A search bisects the starts of every STRIDE-th word and walks at most this many words.
STRIDE = 64
LONGEST_LENGTH = 255
"""Characters. Longer words are sorted among those of this length."""
COUNT_STEPS = 8
"""Steps of a stored count per power of two."""
_BITS_PER_WORD = 16
"""The least bits per word. One in this many unknown texts has its bit set by chance and costs a search."""
_WORDS_PER_WRITE = 100_000
_REMEMBERED = 1_024
"""Texts of which `has` remembers the answer."""


def sort_words(words: pl.DataFrame, word: str = "word") -> pl.DataFrame:
    """Sort rows into the order of the vocabulary."""
    # Words of one length come together, because typo_lookup.py asks for one length at a time.
    return words.sort(pl.col(word).str.len_chars().clip(upper_bound=LONGEST_LENGTH), word)


def write_vocabulary(folder: Path, words: pl.DataFrame) -> None:
    """Write the files. `words` [word, count, title_hash] are distinct and in order."""
    _write_texts(folder, "vocabulary", words["word"])
    # One byte per word: a logarithm in eighths overstates a count by at most a tenth, enough to rank words by rarity.
    steps = np.ceil(COUNT_STEPS * np.log2(1.0 + words["count"].to_numpy())).clip(max=255)
    with ArrayWriter(folder / "vocabulary_counts.npy", np.uint8) as counts:
        counts.append(steps)
    with ArrayWriter(folder / "vocabulary_marks.npy", np.uint8) as marks:
        marks.append(_build_marks(words["title_hash"].to_numpy()))
    # By code points: Polars' reverse keeps combining marks after their letter, but the reader reverses code points.
    spelled = words.filter(~pl.col("word").str.starts_with(FIELD_SEPARATOR))["word"]
    backwards = pl.DataFrame({"word": pl.Series([word[::-1] for word in spelled], dtype=pl.String)})
    _write_texts(folder, "reversed", sort_words(backwards)["word"])


def _build_marks(hashes: NDArray[np.uint64]) -> NDArray[np.uint8]:
    # Three bits are eight marks, the one byte that a file needs at least.
    bits = max(3, (_BITS_PER_WORD * len(hashes) - 1).bit_length())
    marked = np.zeros(1 << bits, dtype=bool)
    marked[hashes >> np.uint64(HASH_BITS - bits)] = True
    return np.packbits(marked, bitorder="little")


def _write_texts(folder: Path, name: str, words: pl.Series) -> None:
    """Write `<name>.bin`, and where every STRIDE-th word begins, the end included."""
    lengths = words.str.len_bytes().to_numpy().astype(np.uint64) + np.uint64(1)
    starts = np.uint64(1) + np.concatenate([[np.uint64(0)], np.cumsum(lengths, dtype=np.uint64)])
    dtype = choose_unsigned(int(starts[-1]))
    with ArrayWriter(folder / f"{name}_starts.npy", dtype) as array, (folder / f"{name}.bin").open("wb") as texts:
        array.append(starts[:-1][::STRIDE])
        array.append(starts[-1:])
        texts.write(b"\n")
        for first in range(0, len(words), _WORDS_PER_WRITE):
            texts.write("".join(f"{word}\n" for word in words[first : first + _WORDS_PER_WRITE]).encode())


class Vocabulary:
    """The open files of the vocabulary."""

    def __init__(self, folder: Path) -> None:
        """Map the files."""
        self._counts = map_numbers(folder / "vocabulary_counts.npy")
        self._marks = map_numbers(folder / "vocabulary_marks.npy")
        self._mark_shift = HASH_BITS - (8 * len(self._marks) - 1).bit_length()
        self._forward, self._backward = (
            SortedWords(map_bytes(folder / f"{name}.bin"), map_array(folder / f"{name}_starts.npy"), STRIDE, LONGEST_LENGTH)
            for name in ("vocabulary", "reversed")
        )
        self._known: dict[str, bool] = {}
        self.neighbours: dict[str, list[str]] = {}
        """Words near other words, as typo_lookup.py found them."""

    def select_rarest(self, words: Iterable[str], at_most: int) -> list[str]:
        """Return the rarest of `words` in their order. Unknown words fill up only when known ones are too few."""
        counted: list[tuple[int, int, str]] = []
        for word in words:
            place = self._forward.place(word)
            # Unknown words sort after all known ones, whose stored counts are below 256.
            counted.append((1 << 16 if place < 0 else self._counts[place], len(counted), word))
        return [word for _, _, word in sorted(sorted(counted)[:at_most], key=lambda entry: entry[1])]

    def count(self, word: str) -> float:
        """Return about how many documents pair the word, at most a tenth too many; 0 for an unknown word."""
        place = self._forward.place(word)
        return 0.0 if place < 0 else 2.0 ** (self._counts[place] / COUNT_STEPS) - 1.0

    def has(self, word: str) -> bool:
        """Return whether the vocabulary has the word."""
        # A query asks for half of its texts twice: the parts of its words, in each reading. A cache of a method would keep the index open.
        known = self._known.get(word)
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            # The mark is tested first: a bisection over the texts costs far more, and most texts that callers ask for are not words.
            mark = hash_title_word(word) >> self._mark_shift
            known = bool(self._marks[mark >> 3] >> (mark & 7) & 1) and self._forward.place(word) >= 0
            self._known[word] = known
        return known

    def find_close(self, word: str, kept: int, characters: int, edits: int, at_most: int, *, beside: bool) -> list[tuple[int, str]]:
        """Return (edits, other) for words of `characters` characters that are at most `edits` edits from `word`.

        They begin or end with the same `kept` letters. About `at_most` words are compared at each end; with `beside`, also some whose
        beginning or end is nearly the same. A word that shares both ends with `word` may occur twice.
        """
        close = self._forward.close(word, kept, characters, edits, at_most, beside)
        return close + [(one, other[::-1]) for one, other in self._backward.close(word[::-1], kept, characters, edits, at_most, beside)]
