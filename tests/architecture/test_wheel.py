"""Tests that the wheel holds all files that a server or a build needs: data files and the compiled module of search."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CODE = (
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
)


def tracked(*folders: str) -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z", *folders], cwd=ROOT, check=True, capture_output=True, text=True)  # noqa: S607
    return [name for name in listed.stdout.split("\0") if name]


@pytest.mark.long
def test_wheel_holds_every_file_of_the_packages_and_the_compiled_module(tmp_path: Path) -> None:
    for name in tracked():
        if name.startswith((*CODE, "yaml_documents", "pyproject.toml", "README.md", "LICENSE")):
            (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "tree" / name).write_bytes((ROOT / name).read_bytes())
    build = "from setuptools import build_meta; build_meta.build_wheel('..')"
    subprocess.run([sys.executable, "-c", build], cwd=tmp_path / "tree", check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        held = set(file.namelist())
    assert {name for name in tracked(*CODE) if not name.endswith((".pyx", ".pyi"))} <= held
    assert f"catalog_store/search/walks{sysconfig.get_config_var('EXT_SUFFIX')}" in held
