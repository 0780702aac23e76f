"""Names of artists or labels by id or by key, in one file that all processes of a stage map into memory.

A range of a stage touches the pages of its own names only. A join with the whole table would cost each range a pass over all names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa

from catalog_store.record_keys.numbers import hash_columns
from catalog_store.tables.files import list_parts

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_NAME = "name"
_KEY = "key"
_KEY_NUMBER = "key_number"


def write_name_map(table: Path, entity_id: str, file: Path) -> None:
    """Write columns `entity_id` and `name` of a table that is in the order of ids."""
    _write(file, entity_id, (pl.read_parquet(part, columns=[entity_id, _NAME]) for part in list_parts(table)))


def write_key_map(names: pl.DataFrame, file: Path) -> None:
    """Write the names of distinct keys, rows of key and name. Two keys share a number with a chance of 1 in 2^64, and then a name."""
    _write(file, _KEY_NUMBER, [names.select(_number_key(), _NAME).sort(_KEY_NUMBER)])


def _write(file: Path, entity_id: str, blocks: Iterable[pl.DataFrame]) -> None:
    columns: dict[str, pa.DataType] = {entity_id: pa.int64(), _NAME: pa.large_string()}
    with pa.ipc.new_file(str(file), pa.schema(columns)) as writer:
        for rows in blocks:
            writer.write_table(rows.to_arrow(compat_level=pl.CompatLevel.oldest()))


def _number_key() -> pl.Expr:
    return hash_columns([_KEY]).reinterpret(signed=True).alias(_KEY_NUMBER)


def read_names_of_keys(file: Path, keys: pl.Series) -> pl.DataFrame:
    """Return key and name of those of the keys that the file has."""
    wanted = pl.DataFrame({_KEY: keys.unique()}).with_columns(_number_key())
    return wanted.join(read_names(file, wanted[_KEY_NUMBER]), on=_KEY_NUMBER).select(_KEY, _NAME)


def read_names(file: Path, ids: pl.Series) -> pl.DataFrame:
    """Return the rows of these ids that the file has."""
    wanted = ids.drop_nulls().unique().sort().to_numpy()
    found = []
    with pa.memory_map(str(file)) as source, pa.ipc.open_file(source) as names:
        entity_id = names.schema.names[0]
        for number in range(names.num_record_batches):
            batch = names.get_batch(number)
            # Through Polars, because pyarrow imports pandas for arrays of NumPy: a fifth of a second in each process.
            here = pl.Series(batch.column(entity_id)).to_numpy()
            places = np.searchsorted(here, wanted)
            # Only ids beyond the last one of the batch have no place in it.
            inside = places < len(here)
            places = places[inside]
            found.append(batch.take(pl.Series(places[here[places] == wanted[inside]]).to_arrow()))
        return pl.DataFrame(pl.from_arrow(pa.Table.from_batches(found, names.schema))).unique(maintain_order=True)
