"""Families of tracks that share music: reprises, stems, the same piece in two games.

A matcher that answers with another track of the family makes no mistake.
"""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from audio_recognition.index.batches import FingerprintBatch
from audio_recognition.index.build import build_index
from audio_recognition.index.fingerprint_index import Index
from audio_recognition.matching import Matcher

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.recognition_clips import Track

_WINDOW_ITEMS, _STEP_ITEMS = 223, 80
"""30 s, every 10 s."""
_ALIKE = 0.15
"""Bit error rate below which 30 s are the same music. Unrelated ones of a thousand tracks hardly come below .25."""
_SHARES = {"held": 0.45, "absent": 0.75, "material": 1.0}


def find_families(tracks: Sequence[Track]) -> dict[str, str]:
    """Return the name of each track -> the name of its family, that of its first member."""
    with tempfile.TemporaryDirectory() as folder:
        build_index([FingerprintBatch.of(range(len(tracks)), [track.items[0] for track in tracks])], Path(folder) / "index")
        matcher = Matcher(Index.open(Path(folder) / "index"), near_tie=1.0)
        family = {track.name: track.name for track in tracks}
        for track in tracks:
            for start in range(0, max(1, len(track.items[0]) - _WINDOW_ITEMS), _STEP_ITEMS):
                window = [items[start : start + _WINDOW_ITEMS] for items in track.items]
                for match in matcher.match(window, limit=len(tracks)).matches:
                    if match.bit_error_rate <= _ALIKE:
                        _join(family, track.name, tracks[match.recording_id].name)
    return family


def find_strangers(tracks: Sequence[Track], known: Sequence[Track]) -> list[Track]:
    """Return those of `tracks` that share no music with any of `known`; print the others."""
    family = find_families([*known, *tracks])
    familiar = {family[track.name] for track in known}
    for track in tracks:
        if family[track.name] in familiar:
            print(f"left out, for it shares music with another: {track.name}")
    return [track for track in tracks if family[track.name] not in familiar]


def _join(family: dict[str, str], one: str, other: str) -> None:
    old, new = sorted((family[one], family[other]), reverse=True)
    family.update({name: new for name, of in family.items() if of == old})


def choose_role(family: str) -> str:
    """Choose the role by hash, so that it is the same on every machine."""
    at = int.from_bytes(hashlib.blake2b(family.encode(), digest_size=4).digest(), "little") / 2**32
    return next(name for name, end in _SHARES.items() if at < end)
