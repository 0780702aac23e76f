"""The index of the live snapshot, followed like the catalog (catalog_store/live_snapshot.py).

The format of an index belongs in index/layout.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from audio_recognition.index.fingerprint_index import Index
from audio_recognition.index.index_errors import IndexInvalidError
from audio_recognition.matching import Matcher
from catalog_store.errors import NoSnapshotError, SnapshotInvalidError
from catalog_store.live_snapshot import LiveSnapshot
from catalog_store.snapshot import RECOGNITION_FOLDER, SERVING_FOLDER

if TYPE_CHECKING:
    from pathlib import Path

    from audio_recognition.matcher_process.frames import Question
    from audio_recognition.matching import Answer


class OpenIndex:
    """The open index of one snapshot."""

    def __init__(self, snapshot: Path) -> None:
        """Open the index of the folder `snapshot`; SnapshotInvalidError when it has no whole index."""
        try:
            index = Index.open(snapshot / SERVING_FOLDER / RECOGNITION_FOLDER)
        except IndexInvalidError as error:
            raise SnapshotInvalidError(str(error)) from error
        self.recordings = index.recordings
        self._matcher: Matcher | None = Matcher(index)

    def answer(self, question: Question) -> Answer:
        """Match a question; from one thread at a time."""
        assert self._matcher is not None  # noqa: S101 - its holder keeps it open
        if question.peaks:
            return self._matcher.match_landmarks(question.decode_fingerprints(), question.decode_peaks(), limit=question.limit)
        return self._matcher.match(
            question.decode_fingerprints(),
            weak_bits=question.decode_weak_bits(),
            pace=question.pace,
            duration_seconds=question.duration_seconds,
            limit=question.limit,
        )

    def close(self) -> None:
        """Drop the memory maps; they close with their last reference."""
        self._matcher = None


class LiveIndex(LiveSnapshot[OpenIndex]):
    """Hands out the open index; NoSnapshotError while there is none."""

    def __init__(self, root: Path, *, verify_contents: bool = True, look_seconds: float = 1.0, last_served: Path | None = None) -> None:
        """`root` is a catalog root or a snapshot's folder. With `verify_contents` a new index is read first (a second per GB).

        `last_served`: see LiveSnapshot.
        """
        super().__init__(
            root,
            OpenIndex,
            what="recognition index",
            contents=f"{SERVING_FOLDER}/{RECOGNITION_FOLDER}" if verify_contents else False,
            # A matcher that died must be back at once, and the index that is live at its start was in use before.
            verifies_first=False,
            absent=_build_absence_error,
            look_seconds=look_seconds,
            last_served=last_served,
        )

    @property
    def recordings(self) -> int:
        """Return the number of fingerprints in the open index; 0 while none is open."""
        live = self._open
        return 0 if live is None else live.opened.recordings


def _build_absence_error() -> NoSnapshotError:
    return NoSnapshotError("no recognition index is open")
