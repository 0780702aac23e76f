"""Command that runs fuzz targets, each in a process of its own: `scripts/fuzz [--seconds N] [TARGET ...]`. Exits 1 when one found a fault.

Inputs that crashed a target are in `fuzz-findings/<target>/`. To keep it as a test, move it to `tests/fuzz/crashes/<target>/`; the inputs
that reached new code are kept in `fuzz-corpus/<target>/` and begun with the next time.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.fuzz import INSTRUMENTED, Target, all_targets, crashes, target_named

SECONDS = 600
MEMORY_MB = 4096
SLOWEST_RUN_SECONDS = 60
"""Longest run of one input. An ordinary one takes some tenths of a second."""
LONGEST_INPUT = 64 << 10
_ESCAPED = "\\x{:02x}".format


def main() -> int:
    """Run all targets, or the named ones, one after the other."""
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=SECONDS, help=f"for each target (default {SECONDS})")
    parser.add_argument("--run-one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("targets", nargs="*", help=f"default: all, which are {', '.join(all_targets())}")
    options = parser.parse_args()
    unknown = sorted(set(options.targets) - set(all_targets()))
    if unknown:
        parser.error(f"no target {', '.join(unknown)}: one of {', '.join(all_targets())}")
    if options.run_one:
        fuzz(options.targets[0], options.seconds)
        return 0
    return max(_run_apart(name, options.seconds) for name in options.targets or all_targets())


def _run_apart(name: str, seconds: int) -> int:
    command = [sys.executable, "-m", "tests.fuzz", "--run-one", "--seconds", str(seconds), name]
    sys.stdout.write(f"{name}: {seconds} s\n")
    sys.stdout.flush()
    # The fuzzer ends its process without a clean-up: what a target leaves goes with this folder.
    with tempfile.TemporaryDirectory() as scratch:
        environment = {**os.environ, "POLARS_MAX_THREADS": "1", "TMPDIR": scratch}
        done = subprocess.run(command, check=False, env=environment, stderr=subprocess.PIPE, text=True, errors="replace")
    lines = done.stderr.splitlines()
    shown = lines[-40:] if done.returncode else [line for line in lines if line.startswith(("#", "Done"))][-1:]
    sys.stdout.write("\n".join([*shown, f"{name}: {'a fault, see fuzz-findings/' + name if done.returncode else 'no fault'}\n"]))
    return int(done.returncode != 0)


def fuzz(name: str, seconds: int) -> None:
    """Run one target in this process until its time is over or an input crashes it. It does not return."""
    import atheris  # noqa: PLC0415 - only in the fuzzer's own environment

    # On one processor staging works in this process, where the fuzzer sees it.
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

    with atheris.instrument_imports(include=[*INSTRUMENTED]):
        target = target_named(name)
    corpus, findings = Path("fuzz-corpus") / name, Path("fuzz-findings") / name
    corpus.mkdir(parents=True, exist_ok=True)
    findings.mkdir(parents=True, exist_ok=True)
    seeds = [*target.seeds(), *crashes(name)]
    for number, seed in enumerate(seeds):
        (corpus / f"seed-{number}").write_bytes(seed)
    target.run(seeds[0])  # setup in the first run does not count as its time
    limits = [f"-rss_limit_mb={MEMORY_MB}", f"-timeout={SLOWEST_RUN_SECONDS}", f"-max_len={LONGEST_INPUT}", f"-max_total_time={seconds}"]
    places = [*_dictionary(target), f"-artifact_prefix={findings}/", str(corpus)]
    atheris.Setup([sys.argv[0], *limits, *places], target.run)
    atheris.Fuzz()


def _dictionary(target: Target) -> list[str]:
    words = [f'"{"".join(map(_ESCAPED, word))}"\n' for word in target.words()]
    file = Path("fuzz-corpus") / f"{target.name}.words"
    file.write_text("".join(words))
    return [f"-dict={file}"] if words else []  # an empty one is refused


if __name__ == "__main__":
    sys.exit(main())
