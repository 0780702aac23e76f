"""CPU of timelines: an hour of audio, decoding included, against the index of benchmarks/recognition_conditions.py.

    python -m benchmarks.timelines WORK [--held P ...] [--absent P ...] [--seconds 1500]

The tracks of a package are files one after the other; a mix of the same length takes as long.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from audio_recognition.index.fingerprint_index import Index
from audio_recognition.matching import Matcher
from audio_recognition.timeline.slices import iterate_slices
from benchmarks.game_music import list_tracks
from benchmarks.recognition_conditions import HELD_PACKAGES

ABSENT_PACKAGES = ("planetblupi-music-ogg",)
_HOUR = 3600


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--held", nargs="+", default=HELD_PACKAGES)
    parser.add_argument("--absent", nargs="+", default=ABSENT_PACKAGES)
    parser.add_argument("--seconds", type=int, default=1500, help="of audio, at least, for each of the two")
    options = parser.parse_args()
    matcher = Matcher(Index.open(options.work / "conditions"))
    for name, packages in (("held", options.held), ("absent", options.absent)):
        heard = cpu = 0.0
        slices = known = 0
        for file in list_tracks(options.work / "audio", packages):
            started = time.process_time()
            found = list(iterate_slices(matcher, file))
            cpu += time.process_time() - started
            heard += found[-1].end_seconds
            slices += len(found)
            known += sum(bool(one.matches) for one in found)
            if heard >= options.seconds:
                break
        print(f"{name}: {heard:.0f} s of audio, {known} of {slices} slices known, {cpu:.1f} s of CPU, {cpu / heard * _HOUR:.1f} s an hour")


if __name__ == "__main__":
    main()
