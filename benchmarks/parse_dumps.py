"""Speed and memory of the dump readers beside their peers: one table of ratios.

    python -m benchmarks.parse_dumps [--megabytes 200] [--runs 1] [--sections xml ndjson tsv epf]

XML: releases per CPU second, equal fields, against lxml's and the standard library's iterparse; goal 1.1 times the faster one. The others:
rows per CPU second to Parquet against DuckDB's own COPY of the same file; goal 0.8 times its speed. CPU seconds are those of all processes,
their start included (1.3 s for the XML reader's workers), each run in a fresh process. Memory is that of the largest process, at a quarter
of the size and at the full size.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import dump_files
from benchmarks.measurement import Run, measure_fastest

XML_GOAL = 1.1
FLAT_GOAL = 0.8
MEMORY_GOAL = 1.3
"""Growth of the peak over a fourfold file that counts as flat."""
PARTS_NOTE = "bounded: half a million rows a table are gathered for a part, full from 2 GB on"


@dataclass(frozen=True)
class Line:
    """One line of the table; `ratio` is our speed over the peer's, or our memory at full size over that at a quarter."""

    section: str
    what: str
    ours: str
    peer: str
    ratio: float | None = None
    goal: str = ""

    def __str__(self) -> str:
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}x"
        return f"{self.section:<8}{self.what:<34}{self.ours:>24}{self.peer:>30}{ratio:>9}  {self.goal}"


def measure_xml(folder: Path, megabytes: int, runs: int) -> list[Line]:
    """Measure releases per CPU second and memory of the XML reader; the whole adapter is a further line for comparison."""
    small, large = _write_file(folder / "small", megabytes // 4), _write_file(folder / "large", megabytes)
    ours = measure_fastest("benchmarks.xml_readers:read_with_ours", large, runs=runs)
    lines = []
    for name, function in (("lxml_iterparse", "read_with_lxml"), ("standard_iterparse", "read_with_standard_library")):
        peer = measure_fastest(f"benchmarks.xml_readers:{function}", large, runs=runs)
        if peer.answer != ours.answer:
            raise SystemExit(f"the readers do not extract the same: {ours.answer} against {name} {peer.answer}")
        lines.append(_format_speed("xml", f"releases/CPU-s against {name}", ours, peer, ours.answer["releases"], XML_GOAL))
    # A reader with a bounded buffer has one peak at both sizes; a reader that holds the file has four times the peak.
    quarter = measure_fastest("benchmarks.xml_readers:read_with_ours", small, runs=1)
    lines.append(_format_memory("xml", "reader", quarter, ours))
    staged = measure_fastest("benchmarks.xml_readers:stage_with_ours", large, str(folder / "staged"), runs=runs)
    staged_quarter = measure_fastest("benchmarks.xml_readers:stage_with_ours", small, str(folder / "staged"), runs=1)
    per_second = staged.answer["releases"] / staged.cpu
    lines.append(Line("xml", "whole adapter, releases/CPU-s", f"{per_second:,.0f} ({staged.cpu:.1f} s)", ""))
    lines.append(_format_memory("xml", "whole adapter", staged_quarter, staged, PARTS_NOTE))
    return lines


def _write_file(folder: Path, megabytes: int) -> str:
    folder.mkdir()
    path = folder / "discogs_20200806_releases.xml"
    dump_files.write_releases_xml(path, megabytes)
    return str(path)


def measure_flat_files(folder: Path, megabytes: int, runs: int, section: str) -> list[Line]:
    """Measure CPU seconds and memory of a reader of flat files."""
    make, name = {
        "ndjson": (dump_files.write_tracks_ndjson, "ndjson"),
        "tsv": (dump_files.write_recordings_tsv, "copy_text"),
        "epf": (dump_files.write_songs_epf, "epf"),
    }[section]
    small, large = folder / "small", folder / "large"
    make(small, megabytes // 4)
    make(large, megabytes)
    parts = folder / "parts"
    parts.mkdir()
    ours = measure_fastest(f"benchmarks.flat_readers:read_{name}_file", str(large), str(parts), runs=runs)
    peer = measure_fastest(f"benchmarks.flat_readers:read_{name}_with_duckdb", str(large), str(parts), runs=runs)
    if peer.answer != ours.answer:
        raise SystemExit(f"{section}: ours read {ours.answer} rows, DuckDB {peer.answer}")
    quarter = measure_fastest(f"benchmarks.flat_readers:read_{name}_file", str(small), str(parts), runs=1)
    speed = _format_speed(section, "rows/CPU-s against DuckDB COPY", ours, peer, ours.answer, FLAT_GOAL)
    return [speed, _format_memory(section, "reader", quarter, ours)]


def _format_speed(section: str, what: str, ours: Run, peer: Run, rows: int, goal: float) -> Line:
    mine, theirs = (f"{rows / run.cpu:,.0f} ({run.cpu:.1f} s)" for run in (ours, peer))
    return Line(section, what, mine, theirs, peer.cpu / ours.cpu, _judge_ratio(holds=peer.cpu / ours.cpu >= goal, goal=f">= {goal}"))


def _format_memory(section: str, what: str, quarter: Run, full: Run, note: str = "") -> Line:
    ratio = full.memory / quarter.memory
    verdict = note or _judge_ratio(holds=ratio <= MEMORY_GOAL, goal=f"<= {MEMORY_GOAL}")
    return Line(section, f"MiB at 1x and 4x, {what}", f"{quarter.memory:.0f} / {full.memory:.0f}", "", ratio, verdict)


def _judge_ratio(*, holds: bool, goal: str) -> str:
    return f"goal {goal} {'holds' if holds else 'MISSED'}"


def main() -> None:
    """Measure the requested sections and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=200, help="size of the larger file of each section (default 200)")
    parser.add_argument("--runs", type=int, default=1, help="runs per measurement, of which the fastest counts (default 1)")
    parser.add_argument("--sections", nargs="+", choices=["xml", "ndjson", "tsv", "epf"], default=["xml", "ndjson", "tsv", "epf"])
    options = parser.parse_args()
    print(f"{'':<8}{'':<34}{'ours':>24}{'peer':>30}{'ratio':>9}")
    for section in options.sections:
        with tempfile.TemporaryDirectory() as folder:
            if section == "xml":
                lines = measure_xml(Path(folder), options.megabytes, options.runs)
            else:
                lines = measure_flat_files(Path(folder), options.megabytes, options.runs, section)
        print(*lines, sep="\n", flush=True)


if __name__ == "__main__":
    main()
