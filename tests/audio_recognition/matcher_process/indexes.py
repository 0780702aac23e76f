"""Snapshots of a recognition index alone, and a matcher process over them, for tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from audio_recognition.index.batches import FingerprintBatch
from audio_recognition.index.build import build_index
from catalog_store.snapshot import FORMAT, FORMAT_VERSION, MANIFEST, RECOGNITION_FOLDER, SERVING_FOLDER, Manifest, describe_file
from tests.conftest import ROOT
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

ITEMS = 900


def recording(number: int, items: int = ITEMS) -> NDArray[np.uint32]:
    """Return a made-up fingerprint, the same for the same number."""
    return np.random.default_rng(number).integers(0, 2**32, items, dtype=np.uint32)


def make_index(root: Path, name: str, recordings: Mapping[int, NDArray[np.uint32]]) -> Path:
    """Write a snapshot `name` with an index of these recordings; return the folder of the index."""
    folder = root / "snapshots" / name
    index = folder / SERVING_FOLDER / RECOGNITION_FOLDER
    index.parent.mkdir(parents=True)
    build_index([FingerprintBatch.of(list(recordings), list(recordings.values()))] if recordings else [], index, partitions=1)
    (folder / "catalog.duckdb").touch()
    write_manifest(folder)
    return index


def switch(root: Path, name: str) -> None:
    """Make that snapshot the live one."""
    link = root / f".next-{name}"
    link.symlink_to(f"snapshots/{name}")
    link.rename(root / "current")


def publish_index(root: Path, name: str, recordings: Mapping[int, NDArray[np.uint32]]) -> None:
    """Write the index and make its snapshot the live one."""
    make_index(root, name, recordings)
    switch(root, name)


def write_manifest(folder: Path) -> None:
    """Write the snapshot's manifest for its files as they are."""
    serving = tuple(describe_file(folder, one) for one in sorted((folder / SERVING_FOLDER).rglob("*")) if one.is_file())
    analysts = describe_file(folder, folder / "catalog.duckdb")
    made = Manifest(FORMAT, FORMAT_VERSION, folder.name, "2026-11-21T00:00:00Z", "0" * 16, {}, {}, analysts, serving)
    (folder / MANIFEST).write_bytes(made.encode())


@contextmanager
def matcher(root: Path, socket: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run `python -m audio_recognition matcher` and yield once it has an index open. Its log is <socket>.log."""
    command = [sys.executable, "-m", "audio_recognition", "matcher", "--catalog", str(root), "--socket", str(socket)]
    log = socket.with_suffix(".log")
    with log.open("w") as lines:
        process = subprocess.Popen([*command, "--look-seconds", "0.05", *options], cwd=ROOT, stderr=lines, env={**os.environ})
        try:
            until(lambda: {"recognition index is live", "matcher serves"} <= set(events(log)), "the matcher", process)
            until(socket.exists, "its socket", process)
            yield process
        finally:
            process.kill()
            process.wait()


def events(log: Path) -> list[str]:
    """Return the logged events in order."""
    return [json.loads(line)["event"] for line in log.read_text().splitlines()]
