"""Results of a function of texts, remembered from build to build: a night reads only the texts that are new.

A file holds the results of one function for the texts of one build, or one result that depends on the program alone. Each program has a
folder of its own, because another program may read a text otherwise. Out of scope: the functions.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self

import polars as pl

from catalog_store.folder_listing import list_folder
from catalog_store.pending_files import PENDING_SUFFIX
from catalog_store.sealed_frames import read_sealed, write_sealed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path


class Recall(Protocol):
    """A way to call a function of texts: `read_anew`, or `TextMemory.recall` under a name."""

    def __call__(self, texts: pl.DataFrame, function: Callable[[pl.DataFrame], pl.DataFrame], part: str = "") -> pl.DataFrame:
        """Call the function. `part` tells several functions under one name apart."""


def read_anew(texts: pl.DataFrame, function: Callable[[pl.DataFrame], pl.DataFrame], part: str = "") -> pl.DataFrame:  # noqa: ARG001
    """Call the function."""
    return function(texts)


@dataclass(frozen=True)
class TextMemory:
    """The remembered texts of one program, in a folder. Processes may share it if each has names of its own."""

    folder: Path
    anew: bool = False
    """Whether all texts are read again, and remembered for the next build."""

    @classmethod
    def open(cls, root: Path, program: str, *, anew: bool) -> Self:
        """Open the folder below `root` for the texts that this program has read, and remove those of other programs."""
        folder = root / program[:16]
        for other in list_folder(root, "*"):
            if other != folder:
                # Steps of a build may run at once, and then another one removes it, too.
                shutil.rmtree(other, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        return cls(folder, anew)

    def recall(self, name: str, texts: pl.DataFrame, function: Callable[[pl.DataFrame], pl.DataFrame], part: str = "") -> pl.DataFrame:
        """Return `function(texts)`, in the order of `texts`, and look up the texts that were read under this name before.

        Args:
            name: a name for the function and its texts, without a dot.
            texts: distinct rows of columns of texts.
            function: returns one row for each of its rows, with all their columns; a row's result depends on that row alone.
            part: tells several functions under one name apart.
        """
        file = self.folder / f"{name}{part and f'.{part}'}.arrow"
        before = None if self.anew else read_sealed(file)
        if before is None:
            found = function(texts)
        else:
            keys = texts.columns
            new = function(texts.join(before, on=keys, how="anti", nulls_equal=True, maintain_order="left"))
            known = pl.concat([before.select(new.columns), new])
            found = texts.join(known, on=keys, how="left", nulls_equal=True, maintain_order="left").select(new.columns)
        write_sealed(file, found)
        return found

    def remember(self, name: str, make: Callable[[], pl.DataFrame]) -> pl.DataFrame:
        """Return `make()`, or what it returned under this name before. The name stands for all that it reads besides the program."""
        file = self.folder / f"{name}.arrow"
        found = None if self.anew else read_sealed(file)
        if found is None:
            found = make()
            write_sealed(file, found)
        return found

    def keep_only(self, name: str, names: Collection[str]) -> None:
        """Forget the names that begin with `name` and are none of `names`."""
        for file in list_folder(self.folder, f"{name}-*.arrow"):
            if file.stem.partition(".")[0] not in names:
                file.unlink()
        for file in list_folder(self.folder, f"{name}-*{PENDING_SUFFIX}"):
            file.unlink()
