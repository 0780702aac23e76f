from collections.abc import Iterable, Sequence
from mmap import mmap
from typing import Any, final

from numpy.typing import NDArray

from catalog_store.search.titles import Title

@final
class Postings:
    def __init__(self, starts: NDArray[Any], tags: NDArray[Any], documents: NDArray[Any], bucket_shift: int) -> None: ...
    def look(self, grids: Iterable[tuple[Sequence[int], Sequence[int]]]) -> tuple[list[int], list[int], list[float]]: ...

@final
class Titles:
    def __init__(
        self, starts: NDArray[Any], units: NDArray[Any], ranked: NDArray[Any], word_starts: NDArray[Any], words: bytes | mmap
    ) -> None: ...
    def __getitem__(self, document: int) -> Title: ...

def close_words(lines: bytes, word: str, most: int) -> list[tuple[int, str]]: ...
