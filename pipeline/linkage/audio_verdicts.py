"""Verdicts on audio: which distances of two fingerprints mean equal audio, and which mean two performances.

The limits come from real tracks in several encodings (docs/design/linkage_evidence.md). Out of scope: which pairs are compared
(audio_pairs.py), and what a verdict does to a recording (audio_edges.py, clusters.py).
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from audio_recognition.chromaprint import HOP_SAMPLES, SAMPLE_RATE
from audio_recognition.matching import compare_pair
from catalog_store.array_files import ArrayWriter, map_array
from pipeline.dumps.platforms.fingerprints.items import flatten_lists
from pipeline.linkage.atom_fingerprints import SAME_LENGTH_SECONDS
from pipeline.linkage.staged_fingerprints import iterate_fingerprints

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from pipeline.paths import BuildPaths

EQUAL_DISTANCE = 0.15
"""Largest distance. All of 24 real tracks encoded again, or with seconds cut off, are within .07; of loud remasters nine in ten
within .12."""
DIFFERENT_DISTANCE = 0.42
"""Least distance. All of 595 pairs of real tracks are beyond .45, but for three mixes beside their own guitar. One recording that plays 2
% too fast, as on another pressing, comes up to .41."""
MOST_ITEMS = 1_000
"""Length that is compared, two minutes: the public database has no more of most tracks. Own files are fingerprinted whole."""
DIGITS = 4
"""Decimals of a distance: the sums of floats may differ in the last bits from machine to machine."""
MEASURED_SCHEMA = pl.Schema({"one": pl.Int64(), "other": pl.Int64(), "distance": pl.Float64(), "overlap_seconds": pl.Int32()})
"""`one` <= `other`: keys of fingerprints; no distance if they prove nothing."""


def measure_pairs(paths: BuildPaths, pairs: pl.DataFrame) -> pl.DataFrame:
    """Return rows of MEASURED_SCHEMA for distinct pairs one, other.

    A pair costs a millisecond. The items are in a mapped file meanwhile, so memory does not depend on the number of pairs.
    """
    if pairs.is_empty():
        return MEASURED_SCHEMA.to_frame()
    spill = paths.root / "work" / "linkage" / "fingerprints.spill"
    shutil.rmtree(spill, ignore_errors=True)
    spill.mkdir(parents=True)
    try:
        wanted = pl.concat([pairs["one"], pairs["other"]]).unique().sort().to_numpy()
        items = _gather_items(paths, spill, wanted)
        rows = [(one, other, *_measure(items.cut(one), items.cut(other))) for one, other in pairs.select("one", "other").iter_rows()]
    finally:
        shutil.rmtree(spill, ignore_errors=True)
    return pl.DataFrame(rows, schema=MEASURED_SCHEMA, orient="row")


class _Items(NamedTuple):
    """Items of fingerprints by key, which ascends; `bounds`: where those of each key start and end, int64 [n, 2]."""

    keys: NDArray[np.int64]
    bounds: NDArray[np.int64]
    values: NDArray[np.uint32]

    def cut(self, key: int) -> NDArray[np.uint32]:
        """Return the items of a key; none if it is no longer staged."""
        at = int(np.searchsorted(self.keys, key))
        first, end = self.bounds[at] if at < len(self.keys) and self.keys[at] == key else (0, 0)
        return self.values[first:end]


def _gather_items(paths: BuildPaths, spill: Path, wanted: NDArray[np.int64]) -> _Items:
    """Copy the first MOST_ITEMS of these fingerprints into a file, and map it."""
    found, lengths = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    with ArrayWriter(spill / "items.npy", np.uint32) as written:
        for rows in iterate_fingerprints(paths, wanted):
            values, starts = flatten_lists(rows["items"].list.head(MOST_ITEMS))
            written.append(values)
            found.append(rows["fingerprint_key"].to_numpy())
            lengths.append(np.diff(starts))
    keys, sizes = np.concatenate(found), np.concatenate(lengths)
    order, ends = np.argsort(keys), np.cumsum(sizes)
    return _Items(keys[order], np.stack([ends - sizes, ends], axis=1)[order], map_array(spill / "items.npy"))


def _measure(one: NDArray[np.uint32], other: NDArray[np.uint32]) -> tuple[float | None, int | None]:
    compared = compare_pair(one, other)
    if compared is None:
        return None, None
    return round(compared.distance, DIGITS), compared.overlap * HOP_SAMPLES // SAMPLE_RATE


def judge_atoms(rows: pl.DataFrame) -> pl.DataFrame:
    """Add `verdict` to rows of compared fingerprints: the one of their two atoms, over all fingerprints of both.

    `equal`: two of them are equal and have one length. `different`: all differ clearly, and the claims of both atoms are firm. Else
    `unclear`, also when silence or a drone is all that there is.

    Args:
        rows: a, b (atoms), distance, seconds_a, seconds_b, is_firm_a, is_firm_b.
    """
    has_one_length = (pl.col("seconds_a") - pl.col("seconds_b")).abs() <= SAME_LENGTH_SECONDS
    is_equal = ((pl.col("distance") <= EQUAL_DISTANCE) & has_one_length).fill_null(value=False)
    # A distance that is missing proves nothing either way; one fingerprint of an atom can be the wrong one, all of them hardly.
    is_far = pl.col("distance") >= DIFFERENT_DISTANCE
    is_firm = (pl.col("is_firm_a") & pl.col("is_firm_b") & is_far).fill_null(value=False)
    verdict = (
        pl.when(is_equal.any().over("a", "b"))
        .then(pl.lit("equal"))
        .when(is_far.fill_null(value=True).all().over("a", "b") & is_firm.any().over("a", "b"))
        .then(pl.lit("different"))
        .otherwise(pl.lit("unclear"))
    )
    return rows.with_columns(verdict=verdict)
