"""An operation of the API as the generated core describes it, and the content of uploads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")
Content = bytes | Path | Callable[[], Iterable[bytes]]
"""An upload: bytes, a file, or a function that returns its parts anew for each attempt."""


@dataclass(frozen=True)
class Operation(Generic[T]):
    """A row of the generated table. `takes_key`: a repeat under one `Idempotency-Key` is safe."""

    name: str
    method: str
    path: str
    answer: type[T]
    takes_key: bool = False

    @property
    def is_repeatable(self) -> bool:
        """Return whether a second request does no harm, whatever became of the first."""
        return self.takes_key or self.method in {"GET", "PUT", "DELETE"}
