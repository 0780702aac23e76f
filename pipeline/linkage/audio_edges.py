"""Equal audio as evidence to join two atoms, different audio as evidence to separate them: rows of `audio_comparison` and of `edge`.

Equal audio counts like a shared code: names, variants and durations must pass the same guards, because a fingerprint may be attached to
the wrong record. An instrumental or a live recording stays apart by its variant; clean and explicit share their variant and join.
Different audio joins nothing and forbids nothing a reviewer decides; clusters.py separates such atoms if other evidence has joined them.
Out of scope: limits of audio (audio_verdicts.py), and whose fingerprints count (atom_fingerprints.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.tables import TABLES
from pipeline.linkage.atom_fingerprints import find_atom_fingerprints
from pipeline.linkage.audio_pairs import (
    NAME_BLOCKS,
    NO_PAIRS,
    drop_known_pairs,
    find_joined_pairs,
    find_same_name_pairs,
    find_same_track_pairs,
)
from pipeline.linkage.audio_verdicts import MEASURED_SCHEMA, judge_atoms, measure_pairs
from pipeline.linkage.clusters import find_components
from pipeline.linkage.connected_components import find_linked_atoms
from pipeline.linkage.guards import PAIRS_AT_A_TIME, add_compared_columns, add_verdict
from pipeline.linkage.staged_fingerprints import has_fingerprints

if TYPE_CHECKING:
    from pipeline.linkage.mapped_atoms import MappedAtoms
    from pipeline.paths import BuildPaths

UNRELATED = 0.5
"""The distance of unrelated audio, which scores 0."""


class AudioEvidence:
    """The comparisons of one build. Without fingerprints it finds nothing, and reads nothing but the names of folders."""

    def __init__(self, paths: BuildPaths, atoms: MappedAtoms, base: pl.DataFrame) -> None:
        """Find the fingerprints of tonight's atoms. `base`: `audio_comparison` of the base, whose measures are used again."""
        self._paths, self._atoms = paths, atoms
        self._prints = find_atom_fingerprints(paths, atoms) if has_fingerprints(paths) else None
        self._measured = _read_measures(base)
        self._compared = TABLES["audio_comparison"].build_empty()

    def find_edges(self) -> pl.DataFrame:
        """Compare the atoms under one fingerprint track, and those with similar names and equal lengths; return edges of equal audio."""
        if self._prints is None:
            return TABLES["edge"].build_empty()
        blocks = self._atoms.read_atom_rows("atom", self._prints["atom_id"], ["atom_id", *NAME_BLOCKS])
        tracked = find_same_track_pairs(self._prints).unique()
        named = self._judge_names(drop_known_pairs([find_same_name_pairs(self._prints, blocks)], tracked))
        # Names cost microseconds and audio a millisecond, so names come first where nothing else speaks for a pair.
        return self._compare(pl.concat([self._judge_names(tracked.sort("a", "b")), named.filter(pl.col("reason").is_null())]))

    def examine_joined(self, edges: pl.DataFrame) -> pl.DataFrame:
        """Compare the atoms that these edges join into one component; return edges of equal audio between them."""
        if self._prints is None:
            return TABLES["edge"].build_empty()
        components = find_components(find_linked_atoms(edges)["atom_id"], edges)
        known = self._compared.select(a="atom_id_a", b="atom_id_b").unique()
        return self._compare(self._judge_names(drop_known_pairs([find_joined_pairs(self._prints, components)], known)))

    @property
    def comparisons(self) -> pl.DataFrame:
        """Rows of `audio_comparison`, in its order."""
        return self._compared.sort(TABLES["audio_comparison"].order)

    def _judge_names(self, pairs: pl.DataFrame) -> pl.DataFrame:
        """Return a, b, reason: the guard that names, variants and durations of a pair fail; null if they could be one recording."""
        found = [NO_PAIRS.with_columns(reason=pl.lit(None, pl.String))]
        for some in pairs.iter_slices(PAIRS_AT_A_TIME):
            rows = self._atoms.read_atom_rows("atom", pl.concat([some["a"], some["b"]]), TABLES["atom"].column_names)
            found.append(add_verdict(add_compared_columns(some, rows)).select("a", "b", "reason"))
        return pl.concat(found)

    def _compare(self, pairs: pl.DataFrame) -> pl.DataFrame:
        """Add the comparisons of pairs (a, b, reason), and return the edges of those with equal audio and no reason."""
        if self._prints is None or pairs.is_empty():
            return TABLES["edge"].build_empty()
        sides = [self._prints.rename({name: f"{name}_{side}" for name in self._prints.columns}) for side in "ab"]
        rows = pairs.join(sides[0], left_on="a", right_on="atom_id_a").join(sides[1], left_on="b", right_on="atom_id_b")
        keys = ("fingerprint_key_a", "fingerprint_key_b")
        rows = rows.with_columns(one=pl.min_horizontal(keys), other=pl.max_horizontal(keys))
        new = rows.select("one", "other").unique().join(self._measured, on=["one", "other"], how="anti")
        self._measured = pl.concat([self._measured, measure_pairs(self._paths, new.sort("one", "other"))])
        rows = judge_atoms(rows.join(self._measured, on=["one", "other"], how="left"))
        is_equal = pl.col("verdict") == "equal"
        compared = rows.with_columns(reason=pl.when(is_equal).then("reason")).rename({"a": "atom_id_a", "b": "atom_id_b"})
        compared = TABLES["audio_comparison"].conform(compared.select(TABLES["audio_comparison"].column_names))
        self._compared = pl.concat([self._compared, compared])
        return _build_edges(rows.filter(is_equal, pl.col("reason").is_null()))


def _read_measures(base: pl.DataFrame) -> pl.DataFrame:
    """Return rows of MEASURED_SCHEMA from comparisons of a former build: fingerprints under one key never change."""
    keys = ("fingerprint_key_a", "fingerprint_key_b")
    known = base.select("distance", "overlap_seconds", one=pl.min_horizontal(keys), other=pl.max_horizontal(keys))
    return known.unique(["one", "other"]).select(MEASURED_SCHEMA.names())


def _build_edges(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the edges of kind `audio`: one for each pair of atoms, of their nearest fingerprints."""
    nearest = rows.drop_nulls("distance").sort("a", "b", "distance", "fingerprint_key_a", "fingerprint_key_b")
    nearest = nearest.unique(["a", "b"], keep="first", maintain_order=True)
    described = pl.format("fingerprints {} ~ {}: {} s compared", "fingerprint_id_a", "fingerprint_id_b", "overlap_seconds")
    score = (1 - pl.col("distance") / UNRELATED).clip(0, 1)
    return TABLES["edge"].conform(nearest.select(atom_id_a="a", atom_id_b="b", kind=pl.lit("audio"), score=score, evidence=described))


def find_parted_pairs(comparisons: pl.DataFrame) -> pl.DataFrame:
    """Return atom_id_a < atom_id_b of the atoms whose audio differs."""
    return comparisons.filter(pl.col("verdict") == "different").select("atom_id_a", "atom_id_b").unique().sort("atom_id_a", "atom_id_b")
