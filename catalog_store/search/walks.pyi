from collections.abc import Iterable, Sequence
from mmap import mmap
from typing import Any, Generic, TypeAlias, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from catalog_store.search.credits import Artists
from catalog_store.search.titles import Title

_Value = TypeVar("_Value", int, float)
_Array: TypeAlias = NDArray[Any]
_Texts: TypeAlias = bytes | mmap
_Pairs: TypeAlias = tuple[_Array, _Array, _Array]
_Words: TypeAlias = tuple[_Array, _Array, _Array, _Texts]

@final
class Column(Generic[_Value]):
    def __init__(self, base: memoryview[_Value], delta: memoryview[_Value]) -> None: ...
    def __getitem__(self, document: int) -> _Value: ...

@final
class Postings:
    def __init__(self, base: _Pairs, delta: _Pairs, bits: int, delta_bits: int, dead: _Array, places: _Array) -> None: ...
    def look(self, grids: Iterable[tuple[Sequence[int], Sequence[int]]]) -> tuple[list[int], list[int], list[float]]: ...

@final
class Titles:
    def __init__(self, base: _Words, delta: _Words) -> None: ...
    def of(self, documents: Iterable[int]) -> list[Title]: ...
    def count_words(self, documents: NDArray[np.int64], counts: NDArray[np.int64]) -> None: ...

@final
class Credits:
    def __init__(self, base: _Words, delta: _Words, role_bits: int) -> None: ...
    def __getitem__(self, number: int) -> Artists: ...

@final
class SortedWords:
    def __init__(self, texts: bytes | mmap, starts: NDArray[Any], stride: int, longest_told: int) -> None: ...
    def place(self, word: str) -> int: ...
    def close(self, word: str, kept: int, characters: int, most: int, at_most: int, beside: bool) -> list[tuple[int, str]]: ...
