"""The seconds of the sections of all steps, out of a catalog that was built with the present program.

    python -m benchmarks.typical_seconds CATALOG

Writes pipeline/quality/typical_seconds.json, by which a first build shows its progress. The last build of the catalog must be a full one
from dumps (an empty catalog folder, or `--relink`).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import msgspec

import pipeline.quality
from pipeline.build.step_fingerprint import hash_program
from pipeline.paths import BuildPaths
from pipeline.quality.build_costs import read_build_costs
from pipeline.quality.section_seconds import read_section_seconds


def main() -> int:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("catalog", type=Path)
    paths = BuildPaths(parser.parse_args().catalog)
    steps = [cost.step for cost in read_build_costs(paths.costs)[0].steps]
    found = {step: seconds for step in steps if (seconds := read_section_seconds(paths.sections, step, hash_program()))}
    if not found:
        parser.error("this program has not built the catalog: build it first")
    file = Path(pipeline.quality.__path__[0], "typical_seconds.json")
    file.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
