"""Tests that the statistics of a checkout count what their rows say."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from scripts import tree_statistics
from scripts.request_trace import HOOK, read_trace
from tests.waiting import until

FILES = {
    "shop/__init__.py": '"""A shop."""\n',
    "shop/orders.py": '''
        """Orders of a shop."""

        import shop.prices  # the circle's first half


        def total(count: int) -> int:  # noqa: D103
            # A price may change between two calls.
            return shop.prices.price() * count
        ''',
    "shop/prices.py": '''
        """Prices of a shop. They name a currency."""
        from typing import TYPE_CHECKING

        if TYPE_CHECKING:
            from shop.orders import total


        def price() -> int:
            from shop.stock import orders

            return orders.COUNT


        def never_called() -> None:
            """Do nothing."""
        ''',
    "shop/stock/__init__.py": "",
    "shop/stock/orders.py": "import shop.prices\n\nshop.prices.price()\n",
    "store/__init__.py": "",
    "store/prices.py": "from shop.orders import total\n\ntotal(2)\n",
    "tests/test_prices.py": "from shop.prices import never_called\n\nnever_called()\n",
    "README.md": "Two words. Three words more.\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(dedent(text).lstrip("\n"))
    (tmp_path / "shop" / "unknown_to_git.py").write_text("x = 1\n" * 1000)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", *FILES)
    for subject in ("First", "s" * 73, "s" * 72):
        git(tmp_path, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "--allow-empty", "-m", subject)
    return tmp_path


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True)  # noqa: S607 - git of the path


def test_table_counts_match_their_rows(tree: Path) -> None:
    measured = tree_statistics.measure_tree(tree, "HEAD~2", is_traced=False)
    assert measured["Python files of the packages"] == "7"
    assert measured["lines of code"] == "14"
    assert measured["lines of a file: median, p90"] == "3, 11"
    assert measured["lines of a function: median, p90"] == "3, 4"
    assert measured["base names that repeat in the tree"] == "2"
    assert measured["base names that repeat within a package"] == "1"
    assert measured["comments per 100 lines of code"] == "14.3"
    assert measured["words a sentence of the pages"] == "2.5"
    assert measured["commit subjects over 72 characters"] == "1 since HEAD~2"
    assert measured["import circles"] == "0"
    assert measured["import circles, with imports for type checkers"] == "1"
    assert measured["dead code"] == "1"


def test_code_that_only_tests_call_is_dead(tree: Path) -> None:
    assert tree_statistics.find_dead_code(tree, ["shop", "store"]) == ["shop/prices.py:14 function never_called"]


def test_circle_names_its_modules_but_not_those_imported_within_functions(tree: Path) -> None:
    assert tree_statistics.find_import_circles(tree, ["shop"], with_types=True) == [["shop.orders", "shop.prices"]]


def test_trace_keeps_files_of_the_tree_and_counts_the_switches_between_them() -> None:
    calls = ["/t/a.py", "/usr/lib/x.py", "/t/a.py", "/t/b.py", "/t/.venv/c.py", "/t/a.py"]
    assert read_trace(Path("/t"), calls) == (["a.py", "b.py"], 2)


def test_hook_notes_the_calls_between_two_signals(tmp_path: Path) -> None:
    for name in ("before", "between"):
        (tmp_path / f"{name}.py").write_text("def call(): pass\n")
    # A signal that arrives just before a blocking read waits until the read ends, so the program reads only what is there.
    program = """
import before, between, select, sys
before.call()
while True:
    while not select.select([sys.stdin], [], [], 0.05)[0]:
        pass
    if not sys.stdin.readline().strip():
        break
    between.call()
    print(flush=True)
"""
    environment = {**os.environ, "PYTHONPATH": f"{HOOK}:{tmp_path}", "REQUEST_TRACE_FOLDER": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", program], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("warm up\n")
        process.stdin.flush()
        process.stdout.readline()
        process.send_signal(signal.SIGUSR2)
        until((tmp_path / f"{process.pid}.started").exists, "its start", process)
        process.stdin.write("traced\n")
        process.stdin.flush()
        process.stdout.readline()
        process.send_signal(signal.SIGUSR2)
        until((tmp_path / f"{process.pid}.calls").exists, "its answer", process)
        process.stdin.write("\n")
    calls = (tmp_path / f"{process.pid}.calls").read_text().splitlines()
    assert str(tmp_path / "between.py") in calls
    assert str(tmp_path / "before.py") not in calls
