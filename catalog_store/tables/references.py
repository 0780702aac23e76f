"""The references between tables that their specs declare, for the checks of a whole snapshot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from catalog_store.tables import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@dataclass(frozen=True)
class Reference:
    """`table.column` must be in `other.key`. `nested` is a field of structs in a list; with `kind` only rows of that kind count."""

    table: str
    column: str
    other: str
    key: str
    nested: str = ""
    kind: tuple[str, str] | None = None

    @property
    def name(self) -> str:
        """The check's name, in the form of a table's own checks."""
        return "_".join(filter(None, [self.table, self.column, self.nested, self.kind and self.kind[1], "known"]))

    def __str__(self) -> str:
        """Return one line for an operator."""
        condition = f" where {self.kind[0]} is {self.kind[1]}" if self.kind else ""
        return f"every {'.'.join(filter(None, [self.table, self.column, self.nested]))}{condition} occurs in {self.other}.{self.key}"


def list_references(names: Iterable[str]) -> Iterator[Reference]:
    """Yield all references between the named tables."""
    names = list(names)
    for name in names:
        for found in _list_of_table(name):
            if found.other in names:
                yield found


def _list_of_table(name: str) -> Iterator[Reference]:
    table = TABLES[name]
    for column in table.columns:
        for target in filter(None, (column.references, column.later_references)):
            if target.startswith("{"):
                kinds = target[1 : target.index("}")]
                for kind in table.get_column(kinds).values:
                    other, key = target.format(**{kinds: kind}).split(".")
                    yield Reference(name, column.name, other, key, kind=(kinds, kind))
            else:
                other, key = target.split(".")
                yield Reference(name, column.name, other, key)
        for field, target in column.nested_references:
            other, key = target.split(".")
            yield Reference(name, column.name, other, key, nested=field)
