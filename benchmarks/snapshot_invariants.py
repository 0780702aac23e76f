"""Cost of the last check before a publish: each invariant of a snapshot by itself, beside reading every byte for its checksums.

    python -m benchmarks.snapshot_invariants FOLDER

FOLDER is a catalog root, such as `benchmarks.catalog_world` makes. Prints processor and wall seconds, peak memory and what is broken.
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path

from catalog_store import snapshot_invariants
from catalog_store.published_snapshots import read_live_snapshot
from catalog_store.snapshot import verify


def main() -> None:
    """Measure the live snapshot of a catalog."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--checksums", action="store_true", help="also read every byte, as `rollback` does")
    options = parser.parse_args()
    snapshot = read_live_snapshot(options.folder)
    recordings = snapshot.manifest.tables["recording"].rows
    size = sum(file.bytes for file in snapshot.manifest.list_files())
    print(f"snapshot {snapshot.id}: {recordings:,} recordings, {size / 1e9:.2f} GB")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wall, processor = time.perf_counter(), time.process_time()
    broken = snapshot_invariants.find_violations(snapshot.folder, snapshot.manifest)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"invariants: {processor:.2f} CPU-s, {wall:.2f} s, peak {peak / 1024:.0f} MB ({(peak - before) / 1024:.0f} MB above the start)")
    for violation in broken:
        print(f"  {violation}")
    if options.checksums:
        wall, processor = time.perf_counter(), time.process_time()
        verify(snapshot.folder)
        print(f"checksums: {time.process_time() - processor:.2f} CPU-s, {time.perf_counter() - wall:.2f} s")


if __name__ == "__main__":
    main()
