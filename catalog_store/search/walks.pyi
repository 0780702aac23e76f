from collections.abc import Iterable, Sequence
from mmap import mmap
from typing import Any, final

from numpy.typing import NDArray

from catalog_store.search.credits import Artists
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
    def of(self, documents: Iterable[int]) -> list[Title]: ...

@final
class Credits:
    def __init__(self, starts: NDArray[Any], artists: NDArray[Any], name_starts: NDArray[Any], names: bytes | mmap) -> None: ...
    def __getitem__(self, number: int) -> Artists: ...

@final
class SortedWords:
    def __init__(self, texts: bytes | mmap, starts: NDArray[Any], stride: int, longest_told: int) -> None: ...
    def place(self, word: str) -> int: ...
    def close(self, word: str, kept: int, characters: int, most: int, at_most: int, beside: bool) -> list[tuple[int, str]]: ...
