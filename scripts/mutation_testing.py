"""Mutation testing: the share of deliberate faults in a package that its own tests detect. `scripts/mutation --help` explains its use.

Cosmic Ray creates the faults, one at a time, in a copy of the tracked files; the package's tests run until the first failure. A sample
represents the package: places in the code are chosen by a hash, one fault at each, so the same code gives the same sample. Faults that no
test can detect are excluded: in annotations, in `if TYPE_CHECKING` blocks, in prohibitions (FORBIDDING), and in tuning figures (UNTESTED).
scripts/mutation creates the environment with Cosmic Ray.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import shlex
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

from cosmic_ray.ast import ast_nodes, get_ast_from_path
from cosmic_ray.plugins import get_operator, operator_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).resolve().parent.parent
SLACK = 60, 4
"""Seconds, and multiples of the run without a fault. Slower tests count as having detected the fault: it mostly loops for ever."""
SAME = ("_Is_Eq", "_Eq_Is", "_IsNot_NotEq", "_NotEq_IsNot")
"""Ends of operators that exchange identity and equality: for None, enum members and interned texts the two are equal."""
UNTESTED = ("ROWS_PER", "BYTES_PER", "BLOCK", "BATCH", "MEMORY", "SECONDS", "PARTITIONS", "THREADS")
"""Parts of names of constants that change the speed and not the result."""
FORBIDDING = ("frozen", "slots", "gc", "strict")
"""Arguments of classes and of `zip` that only forbid: correct code behaves the same without them. mypy, not a test, finds assignments
to a frozen field; rows of unequal length need another fault first."""


@dataclass(frozen=True)
class Target:
    """Modules (files or folders) and their tests."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]


TARGETS = {
    "linkage": Target(("pipeline/linkage",), ("tests/pipeline/linkage",)),
    "name_keys": Target(("catalog_store/name_keys",), ("tests/catalog_store/name_keys",)),
    "rerank": Target(
        ("catalog_store/search/reranker.py",),
        tuple(f"tests/catalog_store/search/test_{name}.py" for name in ("reranker", "reranker_limits")),
    ),
    "genre_rules": Target(("genre_rules",), ("tests/genre_rules",)),
    "ledger": Target(("account_store/ledger",), ("tests/account_store/ledger",)),
    "landing": Target(
        (
            "pipeline/dumps/landing/landed_dumps.py",
            "pipeline/dumps/landing/landing_zone.py",
            "pipeline/dumps/landing/upstream.py",
            "pipeline/dumps/landing/transfer.py",
            "catalog_store/file_transfer.py",
            "pipeline/dumps/landing/checksums.py",
            "pipeline/dumps/intake/daily_dumps.py",
        ),
        (
            *(
                f"tests/pipeline/dumps/landing/test_{name}.py"
                for name in ("landing_zone", "landing_steps", "landing_identity", "upstream", "transfer", "checksums")
            ),
            "tests/pipeline/dumps/intake/test_daily_dumps.py",
        ),
    ),
    "publisher": Target(
        ("catalog_store/publisher.py", "catalog_store/snapshot.py"),
        tuple(f"tests/catalog_store/test_{name}.py" for name in ("publisher", "snapshot", "scrub", "current_link", "publish_killed")),
    ),
}


@dataclass(frozen=True)
class Fault:
    """One deliberate fault: the operator's `occurrence`th place in a module."""

    module: str
    operator: str
    occurrence: int
    line: int
    column: int

    @property
    def rank(self) -> str:
        """The order in which faults enter a sample."""
        return hashlib.sha256(f"{self.module} {self.line} {self.column} {self.operator}".encode()).hexdigest()


@dataclass(frozen=True)
class Verdict:
    """The result of a fault: `killed`, `survived`, or `broken` where Cosmic Ray could not create it."""

    fault: Fault
    outcome: str
    diff: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Test the named packages; print each fault that survived, and a table."""
    options = _build_parser().parse_args(arguments)
    packages = options.packages or TARGETS
    found = {name: test_target(TARGETS[name], options.sample, options.workers, options.skip) for name in packages}
    print("| package | faults | noticed | share |\n|---|---|---|---|")
    for name, verdicts in found.items():
        tried = [verdict for verdict in verdicts if verdict.outcome != "broken"]
        killed = sum(verdict.outcome == "killed" for verdict in tried)
        print(f"| {name} | {len(tried)} | {killed} | {killed / max(1, len(tried)):.0%} |")
    return 0


def test_target(target: Target, sample: int, workers: int, skip: int) -> list[Verdict]:
    """Create `sample` faults in the modules of `target`, without the first `skip`; run its tests for each, `workers` at a time.

    Each worker has a copy of the project. RuntimeError when the tests fail without a fault: they would seem to detect everything.
    """
    faults = sample_faults(target, skip + sample)[skip:]
    # A fault changes a file on disk, so no two tests may run in one copy at a time.
    copies: SimpleQueue[Path] = SimpleQueue()
    with tempfile.TemporaryDirectory(prefix="mutation") as scratch:
        for number in range(workers):
            copies.put(_copy_tree(Path(scratch) / str(number)))
        allowed = _measure_allowed_seconds(target, Path(scratch) / "0")

        def judge(fault: Fault) -> Verdict:
            copy = copies.get()
            try:
                verdict = _judge(fault, target, copy, allowed)
            finally:
                copies.put(copy)
            print(f"{fault.module}:{fault.line} {fault.operator}: {verdict.outcome}", file=sys.stderr, flush=True)
            if verdict.outcome == "survived":
                print(verdict.diff, flush=True)
            return verdict

        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(judge, faults))


def sample_faults(target: Target, count: int) -> list[Fault]:
    """Return `count` faults, no two at one place."""
    faults = [fault for module in _list_modules(target) for fault in _find_faults(module)]
    places = groupby(sorted(faults, key=lambda fault: (fault.module, fault.line, fault.column)), key=lambda f: (f.module, f.line, f.column))
    # One fault at a place, so that a place with many operators does not outweigh the others.
    one_each = [min(at_place, key=lambda fault: fault.rank) for _, at_place in places]
    return sorted(one_each, key=lambda fault: fault.rank)[:count]


def _list_modules(target: Target) -> Iterator[str]:
    for name in target.modules:
        path = ROOT / name
        files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
        yield from (str(file.relative_to(ROOT)) for file in files)


def _find_faults(module: str) -> Iterator[Fault]:
    source = get_ast_from_path(ROOT / module)
    ignored = _find_ignored_lines((ROOT / module).read_text())
    silent = _find_silent_places((ROOT / module).read_text())
    for name in operator_names():
        operator = get_operator(name)
        # Operators with arguments need a configuration of their own.
        if operator.arguments() or name.endswith(SAME):
            continue
        places = (start for node in ast_nodes(source) for start, _ in operator().mutation_positions(node))
        for occurrence, (line, column) in enumerate(places):
            if line not in ignored and not any(first <= (line, column) <= last for first, last in silent):
                yield Fault(module, name, occurrence, line, column)


def _find_ignored_lines(text: str) -> set[int]:
    """Return the lines of `if TYPE_CHECKING` blocks and of tuning figures."""
    lines: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        is_typing = isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        names = [target.id for target in node.targets if isinstance(target, ast.Name)] if isinstance(node, ast.Assign) else []
        if is_typing or any(part in name for name in names for part in UNTESTED if name.isupper()):
            lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))  # type: ignore[attr-defined]
    return lines


def _find_silent_places(text: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return where annotations and FORBIDDING arguments begin and end: (line, column) of both."""
    found: list[ast.expr] = []
    for node in ast.walk(ast.parse(text)):
        found += [part for name in ("annotation", "returns") if isinstance(part := getattr(node, name, None), ast.expr)]
        if isinstance(node, ast.ClassDef) or (isinstance(node, ast.Call) and ast.unparse(node.func) in ("dataclass", "zip")):
            found += [keyword.value for keyword in node.keywords if keyword.arg in FORBIDDING]
    return [((part.lineno, part.col_offset), (part.end_lineno or 0, part.end_col_offset or 0)) for part in found]


def _copy_tree(folder: Path) -> Path:
    """Copy the files of the work tree that git tracks, the compiled module of search, and the environment of the project."""
    folder.mkdir()
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True)  # noqa: S607 - git is where the user has it
    tracked = listed.stdout.decode().split("\0")
    # git does not track compiled modules, and a copy does not build its own.
    compiled = [str(path.relative_to(ROOT)) for path in ROOT.glob("catalog_store/search/*.so")]
    for name in [*filter(None, tracked), *compiled]:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    # Otherwise the first run in every copy compiles all modules, and the time allowed would include that.
    subprocess.run([sys.executable, "-m", "compileall", "-q", "."], cwd=folder, check=True)
    (folder / ".venv").symlink_to((ROOT / ".venv").resolve())
    return folder


def _measure_allowed_seconds(target: Target, copy: Path) -> float:
    """Return how long the tests may take over `copy`, from their time without a fault."""
    started = time.monotonic()
    ran = subprocess.run(_build_command(target, copy, ""), cwd=copy, check=False, capture_output=True, text=True)  # noqa: S603
    if ran.returncode:
        raise RuntimeError(f"the tests of {', '.join(target.tests)} fail without a fault:\n{ran.stdout[-4000:]}")
    least, times = SLACK
    return least + times * (time.monotonic() - started)


def _build_command(target: Target, copy: Path, module: str) -> list[str]:
    """Return the command for the tests of `target`: files with the module's name first, then files that mention it."""
    word = Path(module).stem.strip("_")
    files = {file for name in target.tests for file in ((copy / name).rglob("test_*.py") if (copy / name).is_dir() else [copy / name])}
    # The first failure ends a run, so the tests that most likely fail come first.
    ordered = sorted(files, key=lambda file: (word not in file.stem, word not in file.read_text(), file))
    # A folder cannot follow files in it: pytest would run the files in the order of the folder.
    return [".venv/bin/python", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *(str(file.relative_to(copy)) for file in ordered)]


def _judge(fault: Fault, target: Target, copy: Path, allowed: float) -> Verdict:
    """Run the tests over `copy` with the fault in it."""
    tests = shlex.join(_build_command(target, copy, fault.module))
    # Cosmic Ray changes files of the current folder, which belongs to the whole process, so each fault has a process of its own.
    program = f"""
import json
from cosmic_ray.mutating import mutate_and_test
from cosmic_ray.work_item import MutationSpec
spec = MutationSpec({fault.module!r}, {fault.operator!r}, {fault.occurrence}, (1, 0), (1, 1))
result = mutate_and_test([spec], {tests!r}, {allowed!r})
print(json.dumps([str(result.test_outcome.value) if result.test_outcome else "broken", result.diff or result.output or ""]))
"""
    ran = subprocess.run([sys.executable, "-c", program], cwd=copy, check=True, capture_output=True, text=True)  # noqa: S603
    outcome, diff = json.loads(ran.stdout)
    return Verdict(fault, "broken" if outcome == "incompetent" else outcome, diff)


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scripts/mutation", description="Measure the share of deliberate faults that the tests of a package detect."
    )
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help=f"any of {', '.join(TARGETS)} (default: all)")
    parser.add_argument("--sample", type=int, default=40, metavar="N", help="number of faults in each package (default %(default)s)")
    parser.add_argument(
        "--skip",
        type=int,
        default=0,
        metavar="N",
        help="leave out the first N faults of the sample, to test faults that no earlier run tested",
    )
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="number of faults to test at a time (default %(default)s)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
