"""Shared fixtures of the tests of damaged and hostile dumps.

They make a small dump of every platform in every form, and a copy of one to be damaged.
"""

from __future__ import annotations

import bz2
import gzip
import shutil
import sqlite3
import subprocess
import tarfile
from functools import cache
from typing import TYPE_CHECKING

import duckdb
import polars as pl
import pytest

from catalog_store.tables.checks import run_check
from pipeline.dumps.errors import DumpError
from pipeline.dumps.intake.adapters import stage_dump
from pipeline.quality.invariants import list_staging_invariants
from simulator import SimulationSettings, write_world

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RECORDINGS = 60
FORMS = {
    "streamsvc_a parquet": "tracks.parquet",
    "streamsvc_a sqlite": "export.sqlite3",
    "streamsvc_a objects": "tracks.ndjson.gz",
    "streamsvc_b feed": "Song/**/part-*.parquet",
    "streamsvc_b flat": "song",
    "streamsvc_b archive": "export.tbz",
    "streamsvc_c resources": "tracks.ndjson.gz",
    "streamsvc_c flat": "tracks.ndjson.gz",
    "store_a objects": "tracks.ndjson.gz",
    "store_a tables": "bp_track.csv",
    "catalog_a 2026": "*_releases.xml.gz",
    "catalog_a 2020": "*_releases.xml.gz",
    "catalog_b archives": "mbdump.tar.bz2",
    "catalog_b unpacked": "mbdump/recording",
    "works 1": "recordings.tsv",
    "works 2": "resources.tsv",
    "fingerprints day": "*-track_mbid-update.jsonl.gz",
}
"""Platform and form -> the file that is damaged."""


@pytest.fixture(scope="session")
def forms(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return a whole dump in each form. The files are links; a test damages a copy."""
    base = tmp_path_factory.mktemp("damage")
    write_world(
        SimulationSettings(recordings=RECORDINGS, seed=11, alternative_forms=True, fingerprint_coverage=1),
        base / "world",
        lambda _line: None,
    )

    def delivered(platform: str, *, is_alternative: bool = False) -> Path:
        return next((base / "world" / ("alternative" if is_alternative else "") / platform).iterdir())

    first = {"streamsvc_a": "parquet", "streamsvc_b": "feed", "streamsvc_c": "resources", "store_a": "objects"}
    first |= {"catalog_a": "2026", "catalog_b": "archives", "works": "1"}
    second = {
        "streamsvc_a": "objects",
        "streamsvc_b": "flat",
        "streamsvc_c": "flat",
        "store_a": "tables",
        "catalog_a": "2020",
        "works": "2",
    }
    found = {f"{platform} {form}": delivered(platform) for platform, form in first.items()}
    found |= {f"{platform} {form}": delivered(platform, is_alternative=True) for platform, form in second.items()}
    for form in ("streamsvc_a sqlite", "streamsvc_b archive", "catalog_b unpacked", "fingerprints day"):
        found[form] = base / form
        found[form].mkdir()
    _write_sqlite(found["streamsvc_a parquet"], found["streamsvc_a sqlite"] / "export.sqlite3")
    with tarfile.open(found["streamsvc_b archive"] / "export.tbz", "w:bz2") as archive:
        for path in sorted(found["streamsvc_b flat"].iterdir()):
            archive.add(path, path.name)
    for name in ("mbdump", "mbdump-derived"):
        content = bz2.decompress((found["catalog_b archives"] / f"{name}.tar.bz2").read_bytes())
        subprocess.run(["/usr/bin/env", "tar", "-x", "-C", found["catalog_b unpacked"]], input=content, check=True)
    for path in (base / "world" / "fingerprints").rglob("2024-12-05-*"):
        shutil.copy(path, found["fingerprints day"])
    assert found.keys() == FORMS.keys()
    return found


def _write_sqlite(parquet: Path, target: Path) -> None:
    with sqlite3.connect(target) as connection:
        for path in sorted(parquet.glob("*.parquet")):
            table = pl.read_parquet(path)
            if table.schema.get("rowid") is None and path.stem == "available_markets":
                continue
            columns = [name + (" INTEGER PRIMARY KEY" if name == "rowid" else "") for name in table.columns]
            connection.execute(f"CREATE TABLE {path.stem} ({', '.join(columns)})")
            texts = table.select(pl.all().cast(pl.String, strict=False))
            connection.executemany(f"INSERT INTO {path.stem} VALUES ({', '.join('?' * len(columns))})", texts.rows())
    connection.close()


@cache
def _connect() -> duckdb.DuckDBPyConnection:
    """Return a database without tables. It stays open, because opening one takes .02 CPU seconds."""
    return duckdb.connect()


class Case:
    """A copy of one dump, to be damaged and staged over what was staged the day before."""

    def __init__(self, form: str, pristine: Path, place: Path) -> None:
        self.platform = form.split(maxsplit=1)[0]
        self.dump = place / "dump"
        shutil.copytree(pristine, self.dump)
        self.file = next(self.dump.glob(FORMS[form]))
        self.folder = place / "staging" / self.platform
        self.folder.mkdir(parents=True)
        (self.folder / "yesterday").write_text("tables")

    def read(self) -> bytes:
        """Return the unpacked content of the file."""
        raw = self.file.read_bytes()
        return {".gz": gzip.decompress, ".bz2": bz2.decompress, ".tbz": bz2.decompress}.get(self.file.suffix, bytes)(raw)

    def write(self, content: bytes) -> None:
        """Give the file other content, packed as before."""
        pack = {".gz": gzip.compress, ".bz2": bz2.compress, ".tbz": bz2.compress}.get(self.file.suffix, bytes)
        self.file.write_bytes(pack(content))
        for checksums in self.dump.rglob("*Manifest*"):  # a manifest would refuse the file before it is read
            checksums.unlink()

    def stage(self, report: Callable[[str], None] = lambda _line: None) -> None:
        stage_dump(self.platform, self.dump, self.folder, report)

    def refusal(self, report: Callable[[str], None] = lambda _line: None) -> str:
        """Stage a dump that must be refused, and return the message. Only the tables of the day before remain."""
        with pytest.raises(DumpError) as caught:
            self.stage(report)
        assert [path.name for path in self.folder.parent.iterdir()] == [self.platform], "something half-written is left"
        assert (self.folder / "yesterday").exists()
        return str(caught.value)

    def rejects(self) -> pl.DataFrame:
        """Stage the dump and return the rejects, after checks of the books and of each reject."""
        self.stage()
        assert [path.name for path in self.folder.parent.iterdir()] == [self.platform], "something half-written is left"
        for check in list_staging_invariants(self.platform, self.folder):
            assert run_check(_connect(), check) == 0, check.description
        found = pl.read_parquet(self.folder / "reject" / "*.parquet")
        assert found.filter(pl.any_horizontal(pl.col("source_file", "place", "reason").fill_null("") == "")).is_empty()
        return found

    def outcome(self) -> str | pl.DataFrame:
        """Require a refusal that names the file, or rejects."""
        try:
            return self.rejects()
        except DumpError as error:
            said = str(error)
        assert self.file.name in said
        return said


@pytest.fixture
def case(forms: dict[str, Path], tmp_path: Path) -> Callable[[str], Case]:
    return lambda form: Case(form, forms[form], tmp_path)
