"""Numbers of the tracks on releases and their positions, written beside the staged tables while those are in memory.

A night's linkage scans all tracks and barcodes for changed positions. Decoding and hashing their names was a tenth of its cost. So staging
writes one uncompressed file for each part of the two tables:

  <staging>/<platform>/place_numbers/source_release-<part>.arrow         `barcoded`: 16 bytes for each release with a barcode
  <staging>/<platform>/place_numbers/source_release_track-<part>.arrow   `standing`: 18 bytes for each track with a number

`<part>` names the end of the part, the version of Polars, whose hash this is, and the version of this code. Files of another staging or
version are therefore not found, and missing numbers are computed from the part. Which positions count does not belong here.
"""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, cast

import polars as pl
import pyarrow as pa

from catalog_store.record_keys import numbers
from catalog_store.record_keys.numbers import number_record, number_release
from catalog_store.tables.files import hash_part_end, list_parts

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = "place_numbers"
DISC_BITS, TRACK_BITS = 6, 10
"""Bits of a spot. No real release has more discs or tracks; a release that claims more is not evidence."""
_CODE = b"".join(Path(module).read_bytes() for module in (__file__, numbers.__file__))
_MADE_BY = blake2b(pl.__version__.encode() + _CODE, digest_size=4).hexdigest()


def select_barcoded(releases: pl.DataFrame) -> pl.DataFrame:
    """Return release (`number_release`) and gtin (i64) of the rows of `source_release` that have one."""
    return releases.select(release=number_release(), gtin=pl.col("gtin").cast(pl.Int64, strict=False)).drop_nulls("gtin")


def select_placed(tracks: pl.DataFrame) -> pl.DataFrame:
    """Return release, record (`number_record`) and spot (disc and track as one number) of the tracks that have a position."""
    disc, track = pl.col("disc_number").fill_null(1).cast(pl.Int64), pl.col("track_number").cast(pl.Int64)
    # 6 and 10 bits fill a spot of 16. A missing disc number counts as disc 1.
    numbered = disc.is_between(0, (1 << DISC_BITS) - 1) & track.is_between(0, (1 << TRACK_BITS) - 1)
    spot = pl.when(numbered).then(disc * (1 << TRACK_BITS) + track).cast(pl.UInt16)
    return tracks.select(release=number_release(), record=number_record(), spot=spot).drop_nulls("spot")


FORMS = {
    "source_release": (select_barcoded, ["platform", "release_id", "gtin"]),
    "source_release_track": (select_placed, ["platform", "release_id", "external_id", "disc_number", "track_number"]),
}
"""The function for each table, and the columns that it reads."""


def write_place_numbers(staging: Path, name: str, part: Path, rows: pl.DataFrame) -> None:
    """Write the numbers of a part into a platform's staging folder, if table `name` has any. `rows` are the rows of the part."""
    if name in FORMS:
        form, _ = FORMS[name]
        file = _place_file(staging, name, part)
        file.parent.mkdir(exist_ok=True)
        form(rows).rechunk().write_ipc(file, compression="uncompressed")


def write_all_place_numbers(staging: Path) -> None:
    """Write the numbers of every part in a platform's staging folder."""
    for name, (_, columns) in FORMS.items():
        for part in list_parts(staging / name):
            write_place_numbers(staging, name, part, pl.read_parquet(part, columns=columns))


def read_place_numbers(staging: Path, name: str) -> Iterator[pl.DataFrame]:
    """Yield the numbers of a table in a platform's staging folder, part by part."""
    for part in list_parts(staging / name):
        try:
            # Through a table, which maps the file instead of reading it.
            table = pa.ipc.open_file(pa.memory_map(str(_place_file(staging, name, part)))).read_all()
            yield cast("pl.DataFrame", pl.from_arrow(table, rechunk=False))
        except (OSError, ValueError):
            form, columns = FORMS[name]
            yield form(pl.read_parquet(part, columns=columns))


def _place_file(staging: Path, name: str, part: Path) -> Path:
    return staging / FOLDER / f"{name}-{hash_part_end(part)}-{_MADE_BY}.arrow"
