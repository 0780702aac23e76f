"""Measure a checkout: sizes, repeated names, comments, prose, import circles, dead code.

`python -m scripts.tree_statistics` prints a table. `--tree` measures another checkout, so that two versions are counted by the same rules.
Packages are the top-level folders with Python files, except tests, benchmarks, clients, scripts and pages. The results are kept in
docs/contributing/tree_statistics.md.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import grimp
import numpy as np
import vulture  # type: ignore[import-untyped]
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from scripts.prose_statistics import ROOT, list_pages, measure_prose
from scripts.request_trace import trace_request

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

LONGEST_SUBJECT = 72
"""Characters; git's own tools cut longer subjects."""
DEAD_KINDS = {"class", "function", "import", "method", "property", "unreachable_code"}
"""Fields and variables are left out: the JSON encoder, SQLAlchemy and Alembic read them by name."""
CALLED_BY_NAME = [
    *("__getattr__", "process_bind_param", "process_result_value", "describe", "writable", "readable", "readinto", "put_nowait"),
    *("do_POST", "on_response_complete", "send_400_response", "keep_subprocess_alive", "yield_for_execution"),
]
"""Python, SQLAlchemy, prometheus-client, io and logging call the first line, http.server, uvicorn and Dagster the second."""
_OTHER_FOLDERS = {"benchmarks", "clients", "docs", "scripts", "tests"}
_DIRECTIVE = re.compile(r"#\s*(noqa|type:|pragma|fmt:|!|cython:|distutils:)")


class Module(NamedTuple):
    """One Python file: its place in the tree, its text and its syntax tree."""

    path: Path
    text: str
    syntax: ast.Module

    @property
    def lines(self) -> int:
        """Lines of the file, empty ones included."""
        return len(self.text.splitlines())


def read_modules(tree: Path) -> list[Module]:
    """Read the Python files of the packages that git knows."""
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=tree, check=True, capture_output=True, text=True).stdout.splitlines()  # noqa: S607 - git of the path
    paths = [Path(name) for name in listed if "/" in name and name.split("/")[0] not in _OTHER_FOLDERS]
    texts = ((path, (tree / path).read_text(encoding="utf-8")) for path in paths)
    return [Module(path, text, ast.parse(text)) for path, text in texts]


def measure_functions(modules: Iterable[Module]) -> list[int]:
    """Measure the lines of each function and method, from `def` to its last line."""
    found = (node for module in modules for node in ast.walk(module.syntax))
    return [(node.end_lineno or 0) - node.lineno + 1 for node in found if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def find_repeated_names(paths: Iterable[Path]) -> tuple[Counter[str], Counter[tuple[str, str]]]:
    """Find base names that occur more than once: in the tree, and in one top-level package. `__init__` and `__main__` do not count."""
    named = [path for path in paths if not path.stem.startswith("__")]
    in_tree = Counter(path.stem for path in named)
    in_package = Counter((path.parts[0], path.stem) for path in named)
    return Counter({name: n for name, n in in_tree.items() if n > 1}), Counter({name: n for name, n in in_package.items() if n > 1})


def find_docstrings(module: Module) -> Iterator[tuple[str, int]]:
    """Find the texts that stand alone as a statement, attribute docstrings included, each with its number of lines."""
    for node in ast.walk(module.syntax):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value, (node.end_lineno or 0) - node.lineno + 1


def count_comments(modules: Iterable[Module]) -> tuple[int, int]:
    """Count the lines with a comment, and the lines of code. Directives to tools are not comments; docstrings and empty lines no code."""
    comments = code = 0
    for module in modules:
        tokens = tokenize.generate_tokens(io.StringIO(module.text).readline)
        comments += sum(token.type == tokenize.COMMENT and not _DIRECTIVE.match(token.string) for token in tokens)
        filled = sum(bool(line.strip()) and not line.lstrip().startswith("#") for line in module.text.splitlines())
        code += filled - sum(lines for _, lines in find_docstrings(module))
    return comments, code


def find_import_circles(tree: Path, packages: Sequence[str], *, with_types: bool = False) -> list[list[str]]:
    """Find groups of modules that reach each other by imports at module level, `with_types` also by those for type checkers."""
    # grimp finds packages by the import path, and the measured tree is not the one that this script runs from.
    sys.path.insert(0, str(tree))
    graph = grimp.build_graph(*packages, exclude_type_checking_imports=not with_types, cache_dir=None)
    sys.path.remove(str(tree))
    names = sorted(graph.modules)
    places = {name: place for place, name in enumerate(names)}
    # An import within a function runs after all modules are loaded, so it cannot make a circle.
    deferred = {name: _find_deferred_lines(tree, name) for name in names}
    arrows = [
        (places[importer], places[imported])
        for importer in names
        for imported in graph.find_modules_directly_imported_by(importer)
        if any(one["line_number"] not in deferred[importer] for one in graph.get_import_details(importer=importer, imported=imported))
    ]
    rows, columns = np.array(arrows, dtype=np.int64).reshape(-1, 2).T
    matrix = csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(names), len(names)))
    _, groups = connected_components(matrix, directed=True, connection="strong")
    members = [[name for name, group in zip(names, groups, strict=True) if group == one] for one in range(max(groups, default=-1) + 1)]
    return [circle for circle in members if len(circle) > 1]


def _find_deferred_lines(tree: Path, name: str) -> set[int]:
    """Find the lines within functions, which run after all modules are imported."""
    base = tree / name.replace(".", "/")
    file = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
    if not file.exists():
        return set()
    nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    functions = (node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {line for node in functions for line in range(node.lineno, (node.end_lineno or 0) + 1)}


def find_dead_code(tree: Path, packages: Sequence[str]) -> list[str]:
    """Find what nothing in the tree names. Tests do not count as users: code that only they call is dead."""
    finder = vulture.Vulture(ignore_names=CALLED_BY_NAME)
    finder.scavenge([str(tree / name) for name in (*packages, "benchmarks", "scripts") if (tree / name).is_dir()])
    found = (item for item in finder.get_unused_code() if item.typ in DEAD_KINDS)
    ours = ((Path(item.filename).relative_to(tree), item) for item in found)
    return [f"{path}:{item.first_lineno} {item.typ} {item.name}" for path, item in ours if path.parts[0] in packages]


def find_long_subjects(tree: Path, since: str) -> list[str]:
    """Find the subjects of commits after `since` that are longer than LONGEST_SUBJECT."""
    command = ["git", "log", "--format=%s", f"{since}..HEAD"]
    subjects = subprocess.run(command, cwd=tree, check=True, capture_output=True, text=True).stdout.splitlines()  # noqa: S603 - git
    return [subject for subject in subjects if len(subject) > LONGEST_SUBJECT]


def measure_tree(tree: Path, since: str | None, *, is_traced: bool, catalog: Path | None = None) -> dict[str, str]:
    """Measure everything; each value as the table shows it."""
    modules = read_modules(tree)
    packages = sorted({module.path.parts[0] for module in modules})
    functions = measure_functions(modules)
    in_tree, in_package = find_repeated_names(module.path for module in modules)
    comments, code = count_comments(modules)
    pages = measure_prose(page.read_text(encoding="utf-8") for page in list_pages(tree))
    docstrings = measure_prose(text for module in modules for text, _ in find_docstrings(module))
    trace = trace_request(tree, catalog) if is_traced else None
    return {
        "Python files of the packages": f"{len(modules)}",
        "lines of code": f"{code:,}",
        "lines of a file: median, p90": _describe([module.lines for module in modules]),
        "lines of a function: median, p90": _describe(functions),
        "files below 50 lines": f"{sum(module.lines < 50 for module in modules)}",  # noqa: PLR2004 - as the row says
        "files that a GET crosses, switches between them": f"{len(trace.files)}, {trace.switches}" if trace else "not traced",
        "base names that repeat in the tree": f"{len(in_tree)}",
        "base names that repeat within a package": f"{len(in_package)}",
        "comments per 100 lines of code": f"{100 * comments / max(code, 1):.1f}",
        "words a sentence of the pages": f"{pages.mean_sentence:.1f}",
        "words a sentence of docstrings": f"{docstrings.mean_sentence:.1f}",
        f"commit subjects over {LONGEST_SUBJECT} characters": f"{len(find_long_subjects(tree, since))} since {since}"
        if since
        else "not counted",
        "import circles": f"{len(find_import_circles(tree, packages))}",
        "import circles, with imports for type checkers": f"{len(find_import_circles(tree, packages, with_types=True))}",
        "dead code": f"{len(find_dead_code(tree, packages))}",
    }


def _describe(lengths: Sequence[int]) -> str:
    median, high = np.percentile(lengths, [50, 90])
    return f"{median:.0f}, {high:.0f}"


def main(arguments: Sequence[str]) -> int:
    """Print the table, and the findings behind it with `--list`."""
    parser = argparse.ArgumentParser(prog="python -m scripts.tree_statistics", description=__doc__)
    parser.add_argument("--tree", metavar="DIR", type=Path, default=ROOT, help="checkout to measure; its search module must be compiled")
    parser.add_argument("--since", metavar="COMMIT", help="count commit subjects after this commit")
    parser.add_argument("--catalog", metavar="DIR", type=Path, help="trace a request to this catalog instead of building one")
    parser.add_argument("--no-trace", action="store_true", help="leave out the traced request, which takes a minute")
    parser.add_argument("--dead-code", action="store_true", help="list dead code alone; exit with 1 if there is any")
    parser.add_argument("--list", action="store_true", help="also list repeated names, import circles and dead code")
    options = parser.parse_args(arguments)
    tree = options.tree.resolve()
    if options.dead_code:
        dead = find_dead_code(tree, sorted({module.path.parts[0] for module in read_modules(tree)}))
        print(*(f"nothing but tests uses {found}: delete it" for found in dead), sep="\n", end="\n" if dead else "", file=sys.stderr)
        return int(bool(dead))
    measured = measure_tree(tree, options.since, is_traced=not options.no_trace, catalog=options.catalog)
    print("| Measure | Value |\n|---|---|", *(f"| {name} | {value} |" for name, value in measured.items()), sep="\n")
    if options.list:
        modules = read_modules(tree)
        packages = sorted({module.path.parts[0] for module in modules})
        _, in_package = find_repeated_names(module.path for module in modules)
        print("", *(f"- repeated in {package}: {name} ({n})" for (package, name), n in sorted(in_package.items())), sep="\n")
        print(*(f"- circle: {', '.join(circle)}" for circle in find_import_circles(tree, packages, with_types=True)), sep="\n")
        print(*(f"- dead: {found}" for found in find_dead_code(tree, packages)), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
