"""Fuzz targets of the dump readers: one file of a dump holds the bytes, the others are good, and the dump is staged.

A staging must balance its books, or raise a DumpError that blames the dump. Anything else is a fault: an error of our own code
(which staging reports as an UnblamedError), a crash of the process, more memory or time than the fuzzer allows.
"""

from __future__ import annotations

import io
import shutil
import sqlite3
import tarfile
import tempfile
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from pipeline.dumps.errors import DumpError, UnblamedError
from pipeline.dumps.intake.adapters import stage_dump
from tests.fuzz import Target

if TYPE_CHECKING:
    from collections.abc import Callable

SAMPLES = Path(__file__).parents[1] / "sample_dumps"
LONGEST_SEED = 64 << 10
_SCRATCH = Path("/dev/shm")  # noqa: S108 - memory, where there is some: a file per run wears a disk


@dataclass(frozen=True)
class FuzzedFile:
    """`name` is the file of a dump of `platform` that holds the bytes, `others` are the files beside it."""

    platform: str
    name: str
    others: dict[str, bytes] = field(default_factory=dict)

    def stage(self, content: bytes) -> None:
        """Stage the dump. An error that is not a fault of the dump is raised unchanged."""
        place = Path(tempfile.mkdtemp(dir=_SCRATCH if _SCRATCH.is_dir() else None))
        try:
            for name, data in {**self.others, self.name: content}.items():
                (place / "dump" / name).parent.mkdir(parents=True, exist_ok=True)
                (place / "dump" / name).write_bytes(data)
            stage_dump(self.platform, place / "dump", place / "staged")
        except UnblamedError as error:
            raise error.__cause__ or error from None
        except DumpError:
            pass
        finally:
            shutil.rmtree(place)


def _samples(*globs: str) -> list[bytes]:
    files = [path for glob in globs for path in sorted(SAMPLES.glob(glob))]
    return [path.read_bytes()[:LONGEST_SEED] for path in files]


def _tables() -> dict[str, pl.DataFrame]:
    """Return a small dump of the relational layout."""
    return {
        "tracks": pl.DataFrame(
            {
                "rowid": [1, 2],
                "id": ["6habFhsOp2NvshLv26DqMb", "1301WleyT98MSxVHPZCA6M"],
                "name": ["One", "Two"],
                "album_rowid": [1, 1],
                "track_number": [1, 2],
                "external_id_isrc": ["GBDUW0000059", None],
                "duration_ms": [224_000, 1],
                "popularity": [61, 0],
            }
        ),
        "albums": pl.DataFrame({"rowid": [1], "id": ["2noRn2Aes5aoNVsU6iWThc"], "name": ["Album"], "release_date": ["2001-03-12"]}),
        "artists": pl.DataFrame({"rowid": [1], "id": ["4tZwfgrHOc3mvqYlEYSvVi"], "name": ["Someone"]}),
        "track_artists": pl.DataFrame({"track_rowid": [1, 2], "artist_rowid": [1, 1]}),
    }


def _parquet(frame: pl.DataFrame) -> bytes:
    target = io.BytesIO()
    frame.write_parquet(target, compression="uncompressed")
    return target.getvalue()


def _database() -> bytes:
    connection = sqlite3.connect(":memory:")
    for name, frame in _tables().items():
        columns = ", ".join(column + (" INTEGER PRIMARY KEY" if column == "rowid" else "") for column in frame.columns)
        connection.execute(f"CREATE TABLE {name} ({columns})")
        connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * frame.width)})", frame.rows())
    connection.commit()
    return connection.serialize()


def _feed() -> bytes:
    songs = pl.DataFrame(
        {
            "id": ["1440833098"],
            "nameDefault": ["One"],
            "isrc": ["GBDUW0000059"],
            "durationInMillis": [224_000],
            "album": [[{"id": "1440833081"}]],
            "primaryArtists": [[{"id": "5468295", "name": "Someone"}]],
            "genres": [[{"id": "7", "name": "Electronic", "path": ["Music", "Electronic"]}]],
        }
    )
    return _parquet(songs)


def _archive() -> bytes:
    """Return a small dump of the open catalog's relational layout, not compressed, so that its headers can be reached."""
    stamp = "2026-07-22 00:11:02.000000+00"
    gid = "9ff43b6a-4f16-427c-93c2-92307ca505e{}"
    members = {
        "TIMESTAMP": stamp,
        "SCHEMA_SEQUENCE": "31",
        "mbdump/artist": "\t".join(["1", gid.format(1), "Someone", "Someone", *["\\N"] * 10, "", "0", stamp, "f", "\\N", "\\N"]),
        "mbdump/artist_credit": "\t".join(["1", "Someone", "1", "1", stamp, "0", gid.format(2)]),
        "mbdump/artist_credit_name": "1\t0\t1\tSomeone\t",
        "mbdump/recording": "\t".join(["1", gid.format(3), "One", "1", "224000", "", "0", stamp, "f"]),
        "mbdump/release": "\t".join(["1", gid.format(4), "Album", "1", "1", *["\\N"] * 4, "", "", "0", "-1", stamp]),
        "mbdump/medium": "\t".join(["1", "1", "1", "\\N", "", "0", stamp, "1", gid.format(5)]),
        "mbdump/track": "\t".join(["1", gid.format(6), "1", "1", "1", "1", "One", "1", "224000", "0", stamp, "f"]),
        "mbdump/isrc": f"1\t1\tGBDUW0000059\t0\t{stamp}",
    }
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, text in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(text) + 1
            archive.addfile(member, io.BytesIO(f"{text}\n".encode()))
    return target.getvalue()


_PARQUETS = {f"{name}.parquet": _parquet(frame) for name, frame in _tables().items()}
_BESIDE_TRACKS = {name: data for name, data in _PARQUETS.items() if name != "tracks.parquet"}
_EPF = {path.name: path.read_bytes() for path in sorted((SAMPLES / "streamsvc_b" / "epf").iterdir()) if path.name != "song"}
_CSV = {path.name: path.read_bytes() for path in sorted((SAMPLES / "store_a" / "csv_set").iterdir()) if path.name != "bp_track.csv"}
_WORKS = {path.name: path.read_bytes() for path in sorted((SAMPLES / "works" / "layout_1").iterdir()) if path.name != "recordings.tsv"}
_DAY = "2026-07-22"
_STREAMS = ("track", "meta", "track_fingerprint", "track_mbid", "track_meta", "track_puid")
_EMPTY_STREAMS = {f"{_DAY}-{name}-update.jsonl": b"\n" for name in _STREAMS}
_FINGERPRINT = b'{"id": 9, "fingerprint": [' + b", ".join(b"%d" % (number * 7919) for number in range(30)) + b'], "length": 320}\n'
_RELEASE = (
    b'<releases>\n<release id="1" status="Accepted"><title>Album</title><artists><artist><id>1</id><name>Someone</name></artist></artists>'
    b"<released>2001-03-12</released><tracklist><track><position>1</position><title>One</title><duration>3:44</duration></track></tracklist>"
    b"</release>\n</releases>"
)


def _target(name: str, file: FuzzedFile, seeds: Callable[[], list[bytes]]) -> Target:
    return Target(name, file.stage, seeds)


TARGETS = (
    _target("xml", FuzzedFile("catalog_a", "x_20260801_releases.xml"), lambda: [_RELEASE]),
    _target(
        "ndjson",
        FuzzedFile("store_a", "tracks.ndjson"),
        partial(_samples, "store_a/version_4/tracks.ndjson", "store_a/version_4_answers/*.json"),
    ),
    _target("json_documents", FuzzedFile("streamsvc_c", "tracks.json"), partial(_samples, "streamsvc_c/*/*.json")),
    _target("epf", FuzzedFile("streamsvc_b", "song", _EPF), partial(_samples, "streamsvc_b/epf/song")),
    _target("csv", FuzzedFile("store_a", "bp_track.csv", _CSV), partial(_samples, "store_a/csv_set/bp_track.csv")),
    _target("bwarm", FuzzedFile("works", "recordings.tsv", _WORKS), partial(_samples, "works/layout_1/recordings.tsv")),
    _target("parquet", FuzzedFile("streamsvc_a", "tracks.parquet", _BESIDE_TRACKS), lambda: [_PARQUETS["tracks.parquet"]]),
    _target("parquet_feed", FuzzedFile("streamsvc_b", "Song/part-0.parquet"), lambda: [_feed()]),
    _target("sqlite", FuzzedFile("streamsvc_a", "export.sqlite3"), lambda: [_database()]),
    _target("tar", FuzzedFile("catalog_b", "mbdump.tar"), lambda: [_archive()]),
    _target("fingerprints", FuzzedFile("fingerprints", f"{_DAY}-fingerprint-update.jsonl", _EMPTY_STREAMS), lambda: [_FINGERPRINT]),
)
