"""Tests of the rules of the house that no tool checks by itself."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import grimp
import pytest

from pipeline.settings import Settings
from scripts.tree_statistics import Module, find_import_circles, find_repeated_names, read_modules

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "account_store",
    "audio_recognition",
    "catalog_api",
    "catalog_store",
    "genre_rules",
    "outbound_http",
    "pipeline",
    "simulator",
    "stream_monitor",
    "webhook_delivery",
    "yaml_documents",
)


@pytest.fixture(scope="module")
def modules() -> list[Module]:
    """Return the modules of all packages, parsed once."""
    return read_modules(ROOT)


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_packages_import_only_what_the_layers_allow() -> None:
    result = run(str(Path(sys.executable).with_name("lint-imports")))
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("package", ["account_store", "outbound_http", "stream_monitor", "webhook_delivery"])
def test_modules_of_a_package_import_each_other_one_way(package: str) -> None:
    graph = grimp.build_graph(package, cache_dir=None)
    circles = [
        (importer, imported)
        for importer in graph.modules
        for imported in graph.find_modules_directly_imported_by(importer)
        if graph.find_shortest_chain(imported, importer)
    ]
    assert circles == []


def test_modules_of_all_packages_import_each_other_one_way() -> None:
    assert find_import_circles(ROOT, PACKAGES, with_types=True) == []


def test_base_name_of_a_module_is_unique_within_its_package(modules: list[Module]) -> None:
    _, repeated = find_repeated_names(module.path for module in modules)
    assert repeated == {}


def test_no_private_module_of_a_library_is_imported(modules: list[Module]) -> None:
    found = {
        module.path.as_posix(): node.module
        for module in modules
        for node in ast.walk(module.syntax)
        if isinstance(node, ast.ImportFrom) and re.search(r"(^|\.)_(?!typeshed$)[a-z]", node.module or "")
    }
    assert found == {}


def test_generated_pages_are_up_to_date() -> None:
    result = run(sys.executable, "-m", "scripts.generate_docs", "--check")
    assert result.returncode == 0, result.stderr


def test_every_setting_of_a_build_is_described_with_its_default() -> None:
    page = (ROOT / "docs" / "reference" / "build_settings.md").read_text()
    for field in fields(Settings):
        default = "" if field.default is None else f"`{field.default}`"
        assert f"| `CATALOG_{field.name.upper()}` | {default}" in page, field.name


def test_every_module_says_what_it_is_for(modules: list[Module]) -> None:
    assert [module.path.as_posix() for module in modules if not ast.get_docstring(module.syntax)] == []


def _find_calls(modules: list[Module], methods: set[str]) -> list[str]:
    """Return the places that call a method of one of these names."""
    return [
        f"{module.path}:{node.lineno}"
        for module in modules
        for node in ast.walk(module.syntax)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in methods
    ]


def test_packages_list_folders_so_that_an_unreadable_one_is_an_error(modules: list[Module]) -> None:
    found = _find_calls(modules, {"glob", "iglob", "rglob"})
    assert found == [], "a glob takes an unreadable folder for an empty one: use catalog_store/folder_listing.py"


def test_packages_write_arrays_so_that_a_full_disk_is_an_error(modules: list[Module]) -> None:
    found = _find_calls(modules, {"tofile", "save", "savez", "savez_compressed"})
    assert found == [], "NumPy ignores the error of its last write: use catalog_store/array_files.py"


def test_makefile_stays_a_list_of_one_line_recipes() -> None:
    text = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^[a-z-]+:.*##", text, flags=re.MULTILINE)
    recipes = re.findall(r"^\t", text, flags=re.MULTILINE)
    assert len(targets) == len(recipes) <= 16


@pytest.mark.parametrize(
    ("file", "fewest"),
    [
        ("requirements.lock", 50),
        ("requirements-bench.lock", 3),
        ("requirements-docs.lock", 10),
        ("requirements-fuzz.lock", 50),
        ("requirements-mutation.lock", 10),
        ("requirements-spark.lock", 50),
    ],
)
def test_lock_files_name_no_index_and_pin_every_hash(file: str, fewest: int) -> None:
    lock = (ROOT / file).read_text()
    assert not re.search(r"https?://|--index-url|--find-links", lock)
    pins = re.findall(r"^[a-z0-9][^ ]*==", lock, flags=re.MULTILINE)
    assert len(pins) > fewest
    assert lock.count("--hash=sha256:") >= len(pins)


def test_dagster_is_not_imported_by_what_does_not_need_it() -> None:
    code = "import sys, pipeline.__main__, pipeline.linkage, catalog_api.app, genre_rules; sys.exit('dagster' in sys.modules)"
    assert run(sys.executable, "-c", code).returncode == 0
