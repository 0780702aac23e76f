"""A small export of catalog_b, written as the archives that the platform delivers, and staged."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

from catalog_store.tables import TABLES
from catalog_store.tables.files import read_table
from pipeline.dumps.intake.adapters import stage_dump

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl


SAMPLE = Path(__file__).parents[3] / "sample_dumps" / "catalog_b" / "20260722-001102"
METADATA = {"TIMESTAMP": "2026-07-22 00:11:02.518374+00\n", "REPLICATION_SEQUENCE": "", "SCHEMA_SEQUENCE": "31\n"}
N = r"\N"
OFFICIAL, BOOTLEG = "4e304316-386d-3409-af2e-78857eec5cfe", "1156806e-d06a-38bd-83f0-cf2284a808b9"
ALBUM, OTHER = "f529b476-6e62-324f-b0aa-1f3e33d313fc", "4fc3be2b-de1e-396b-a933-beb8f1607a22"
COMPILATION = "dd2a21e1-0c00-3729-a7a0-de60b84eb5d1"
VARIOUS = "89ad4ac3-39f7-470e-963a-56509c546377"
Cells = tuple[object, ...]
Tables = dict[str, list[Cells]]


def gid(kind: str, number: int) -> str:
    return f"{ord(kind[0]):08x}-0000-4000-8000-{number:012d}"


def recording(
    number: int, name: str = "Song", credit: object = 1, length: object = 180_000, video: str = "f", mbid: str | None = None
) -> Cells:
    return (number, mbid or gid("c", number), name, credit, length, "", 0, N, video)


def artist(number: int, name: str, mbid: str | None = None) -> Cells:
    return (number, mbid or gid("a", number), name, name, *(N,) * 6, N, N, N, "", 0, N, "f", N, N)


def release(number: int, name: str = "Album", group: object = 1, status: object = 1, barcode: str = N, credit: int = 1) -> Cells:
    return (number, gid("e", number), name, credit, group, status, N, N, N, barcode, "", 0, -1, N)


def track(number: int, recording_row: int, medium: int, position: int, data: str = "f") -> Cells:
    return (number, gid("t", number), recording_row, medium, position, f"A{position}", "Other Title", 1, N, 0, N, data)


def relation(number: int, link: int, entity0: int, entity1: int, credit0: str = "") -> Cells:
    return (number, link, entity0, entity1, 0, N, 0, credit0, "")


def link(number: int, link_type: int, ended: str = "f") -> Cells:
    return (number, link_type, *(N,) * 6, 0, N, ended)


def link_type(number: int, mbid: str) -> Cells:
    return (number, N, 0, mbid, "a", "b", "name", N, "", "", "", N, "f", "f", 0, 0)


def lookup(number: int, mbid: str) -> Cells:
    return (number, "Name", N, 0, N, mbid)


def small_world() -> Tables:
    """Return two recordings of one artist on one release; enough to hang each oddity on."""
    return {
        "artist": [artist(1, "Ada"), artist(2, "Bo")],
        "artist_credit": [(1, "Ada", 1, 2, N, 0, gid("d", 1))],
        "artist_credit_name": [(1, 0, 1, "Ada", "")],
        "recording": [recording(1), recording(2, "Other Song")],
        "release_status": [lookup(1, OFFICIAL), lookup(3, BOOTLEG)],
        "release_group_primary_type": [lookup(1, ALBUM), lookup(11, OTHER)],
        "release_group_secondary_type": [lookup(1, COMPILATION)],
        "release_group": [(1, gid("f", 1), "Album", 1, 1, "", 0, N)],
        "release": [release(1)],
        "medium": [(1, 1, 1, N, "", 0, N, 2, gid("b", 1))],
        "track": [track(1, 1, 1, 1), track(2, 2, 1, 2)],
        "isrc": [(1, 2, "GBAAA0000001", 0, N)],
    }


def text(rows: list[Cells]) -> bytes:
    return "".join("\t".join(map(str, row)) + "\n" for row in rows).encode("utf-8", errors="surrogateescape")


def tar(tables: Mapping[str, list[Cells] | bytes], metadata: Mapping[str, str] = METADATA) -> bytes:
    members = {name: content.encode() for name, content in metadata.items()}
    members |= {f"mbdump/{name}": rows if isinstance(rows, bytes) else text(rows) for name, rows in tables.items()}
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.GNU_FORMAT) as file:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            file.addfile(info, io.BytesIO(content))
    return archive.getvalue()


class Staged:
    """The staging tables of one dump."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def table(self, name: str) -> pl.DataFrame:
        return read_table(TABLES[name], self.folder / name)

    def one(self, name: str) -> dict[str, object]:
        return self.table(name).row(0, named=True)

    def rejects(self) -> list[tuple[object, ...]]:
        return self.table("reject").select("entity", "severity", "reason", "source_file", "place").rows()

    def books(self) -> dict[str, tuple[int, int, int]]:
        return {row[0]: row[1:] for row in self.table("intake").select("entity", "rows_read", "rows_staged", "rows_rejected").iter_rows()}


def stage(
    dump: Path, tables: Mapping[str, list[Cells] | bytes] | None = None, derived: Mapping[str, list[Cells] | bytes] | None = None
) -> Staged:
    if tables is not None:
        (dump / "mbdump.tar").write_bytes(tar(tables))
    if derived is not None:
        (dump / "mbdump-derived.tar").write_bytes(tar(derived))
    folder = dump.parent / "staging" / "catalog_b"
    stage_dump("catalog_b", dump, folder)
    assert [path.name for path in folder.parent.iterdir()] == ["catalog_b"], "nothing is left beside the staging tables"
    return Staged(folder)
