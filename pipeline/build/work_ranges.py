"""Claims of composition data weighed per range of recordings against the spellings of these recordings.

Claims and spellings are sent to the ranges of their recordings, so texts are joined for one range at a time. Out of scope: what a claim
is, and how it is weighed (works.py, work_guards.py).
"""

from __future__ import annotations

import shutil
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from catalog_store.array_files import map_array, write_array
from catalog_store.pending_files import name_pending
from catalog_store.record_keys.numbers import number_record
from catalog_store.row_shuffle import count_bucket_rows, read_bucket, write_run
from catalog_store.tables.atoms import read_gone_atoms
from catalog_store.tables.files import list_parts
from pipeline.build.recording_index import open_recording_index
from pipeline.build.recording_ranges import find_range, read_sent
from pipeline.build.work_guards import read_title_forms, weigh_claims
from pipeline.build.workbench import QuerySteps, open_text_memory
from pipeline.engine.duckdb_session import open_duckdb

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from catalog_store.remembered_texts import TextMemory
    from pipeline.build.recording_ranges import RangeWork
    from pipeline.engine.number_index import NumberIndex
    from pipeline.paths import BuildPaths

_FORMS = ("title_key", "stem_key", "number_key")
_SPELLING = {
    "recording_id": pl.Int64(),
    "b_artist_key": pl.String(),
    **{f"b_{form}": pl.String() for form in _FORMS},
    "b_names": pl.List(pl.String()),
    "b_duration_ms": pl.Int32(),
}

# A recording is known by several spellings, and a work by several titles: the one that agrees best decides.
# A struct and not `arg_min`, which leaves out rows without a reason: those that pass.
_BEST = "SELECT {key}, min(struct_pack(lost := -points, reason)).reason AS reason, max(points) AS points FROM pair GROUP BY ALL"


class ClaimRanges(NamedTuple):
    """The sent rows, as folders of runs below one folder for spilled data."""

    folder: Path
    recordings: NumberIndex
    memory: TextMemory

    def send_spellings(self, paths: BuildPaths, work: RangeWork, recordings: Iterable[pl.DataFrame]) -> None:
        """Send the names and lengths under which platforms know these recordings: blocks of recording_id, which may come twice."""
        wanted = np.zeros(1, bool)
        for rows in recordings:
            ids = rows["recording_id"].to_numpy()
            # Not for each block: padding copies all.
            if (missing := ids.max(initial=0) + 1 - len(wanted)) > 0:
                wanted = np.pad(wanted, (0, missing))
            wanted[ids] = True
        write_array(self.folder / "wanted.npy", np.packbits(wanted, bitorder="little"))
        pairs = zip(list_parts(paths.table("atom_member")), list_parts(paths.table("atom")), strict=True)
        work.run("send_spellings", partial(self._send_spellings, read_gone_atoms(paths.table)), enumerate(pairs))

    def weigh(self, work: RangeWork, name: str, claims: Iterable[pl.DataFrame], key: tuple[str, ...]) -> list[pl.DataFrame]:
        """Return the columns of `key` with reason and points of the best spelling, in a frame for each range that has claims.

        `claims`: blocks of `key`, `recording_id` among them, and `text`, `a_artist_key`, `a_names`, `a_duration_ms`.
        """
        for number, rows in enumerate(claims):
            write_run(self.folder / name, number, rows, find_range())
        ranges = list(count_bucket_rows(self.folder / name))
        found = work.run(f"weigh_{name}", partial(self._weigh_range, name, key), ranges)
        self.memory.keep_only(f"works-{name}", [f"works-{name}-{number}" for number in ranges])
        return found

    def remove(self) -> None:
        """Remove the sent rows once all claims are weighed."""
        for name in ("spelling", "by_title", "by_work"):
            shutil.rmtree(self.folder / name, ignore_errors=True)

    def _send_spellings(self, gone: pl.Series, job: tuple[int, tuple[Path, Path]]) -> None:
        """Send the atoms of one part. The parts of both tables are written in pairs: a record is in the one, its atom in the other."""
        number, (member_part, atom_part) = job
        members = pl.read_parquet(member_part, columns=["platform", "external_id", "atom_id"])
        if len(gone):
            members = members.filter(~pl.col("atom_id").is_in(gone.implode()))
        members = self.recordings.join(members, number_record()).select("atom_id", "recording_id").unique()
        bits, ids = map_array(self.folder / "wanted.npy"), members["recording_id"].to_numpy()
        inside = ids < 8 * len(bits)
        places = np.where(inside, ids, 0)
        is_wanted = inside & (bits[places >> 3] >> (places & 7).astype(np.uint8) & 1).astype(bool)
        atoms = pl.read_parquet(atom_part, columns=["atom_id", "artist_key", *_FORMS, "names", "duration_ms"])
        spelled = members.filter(pl.Series(is_wanted)).join(
            atoms.rename(lambda name: name if name == "atom_id" else f"b_{name}"), on="atom_id"
        )
        write_run(self.folder / "spelling", number, spelled.select(*_SPELLING), find_range())

    def _weigh_range(self, name: str, key: tuple[str, ...], number: int) -> pl.DataFrame:
        rows = read_bucket(self.folder / name, number)
        texts = rows.select("text").unique(maintain_order=True)
        forms = self.memory.recall(f"works-{name}-{number}", texts, lambda new: read_title_forms(new["text"]))
        forms = forms.select("text", "is_generic", *(pl.col(form).alias(f"a_{form}") for form in _FORMS))
        spelled = read_sent(self.folder / "spelling", number, _SPELLING).unique()
        pairs = rows.join(forms, on="text", how="left").join(spelled, on="recording_id")
        with open_duckdb(name_pending(self.folder / f"duckdb-{name}-{number:06d}")) as connection:
            steps = QuerySteps(connection)
            steps.show("pair", weigh_claims(pairs).select(*key, "points", "reason"))
            return steps.read_frame(_BEST.format(key=", ".join(key)))


def open_claim_ranges(paths: BuildPaths, work: RangeWork) -> ClaimRanges:
    """Return ranges in the folder of the stage."""
    return ClaimRanges(work.folder, open_recording_index(paths, work.folder / "recordings", work.pool), open_text_memory(paths))
