"""Dump files of any size for the benchmarks, the same bytes for the same size: real releases repeated, and rows made up by number."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SAMPLE = Path(__file__).resolve().parent.parent / "tests/sample_dumps/catalog_a/2020/discogs_20200806_releases.xml.gz"
_LAST_ASCII = 127

NDJSON_COLUMNS = {
    "id": "VARCHAR",
    "title": "VARCHAR",
    "title_short": "VARCHAR",
    "isrc": "VARCHAR",
    "duration": "VARCHAR",
    "rank": "VARCHAR",
    "release_date": "VARCHAR",
    "explicit_lyrics": "VARCHAR",
    "artist": "STRUCT(id VARCHAR, name VARCHAR)",
    "album": "STRUCT(id VARCHAR, title VARCHAR)",
}
COPY_COLUMNS = (
    "id:i gid:t name:t artist_credit:i length:i comment:t edits_pending:i last_updated:t video:b"  # as the table of recordings has them
)
EPF_COLUMNS = (
    "export_date",
    "song_id",
    "name",
    "title_version",
    "search_terms",
    "artist_display_name",
    "track_length",
    "original_release_date",
)


def releases_xml(path: Path, megabytes: int) -> None:
    """The shipped releases repeated under new ids, characters as UTF-8 (the live dump has no numeric references)."""
    sample = re.sub(rb"&#(\d+);", _character, gzip.decompress(SAMPLE.read_bytes()))
    body = sample[sample.index(b"<releases>") + len(b"<releases>") : sample.rindex(b"</releases>")]
    pieces = re.split(rb'(?<=<release id=")\d+', body)
    with path.open("wb") as file:
        file.write(b"<releases>")
        number = 0
        while file.tell() < megabytes * 1_000_000:
            file.write(pieces[0])
            for piece in pieces[1:]:
                number += 1
                file.write(b"%d" % number + piece)
        file.write(b"</releases>\n")


def _character(reference: re.Match[bytes]) -> bytes:
    code = int(reference[1])
    return reference[0] if code <= _LAST_ASCII else chr(code).encode()


def tracks_ndjson(path: Path, megabytes: int) -> None:
    """Track objects, one per line."""
    _write(path, megabytes, b"", _track_line, b"")


def _track_line(number: int) -> bytes:
    track = {
        "id": number,
        "title": f"Song Number {number % 99_991} (Extended Mix)",
        "title_short": f"Song Number {number % 99_991}",
        "isrc": f"GBABC{number % 10_000_000:07d}",
        "duration": 120 + number % 240,
        "rank": number % 1_000_000,
        "release_date": f"20{number % 24:02d}-0{1 + number % 9}-1{number % 10}",
        "explicit_lyrics": number % 7 == 0,
        "artist": {"id": number % 50_021, "name": f"Ärtist {number % 50_021}"},
        "album": {"id": number // 10, "title": f"Album {number // 10}"},
    }
    return json.dumps(track, ensure_ascii=False).encode() + b"\n"


def recordings_tsv(path: Path, megabytes: int) -> None:
    """Rows as `COPY ... TO` writes them, one in a hundred with an escape."""
    _write(path, megabytes, b"", _recording_row, b"")


def _recording_row(number: int) -> bytes:
    name = f"Song\\tNumber {number}" if number % 100 == 0 else f'Sông "Number" {number}'
    length = "\\N" if number % 5 == 0 else str(120_000 + number % 240_000)
    gid = f"{number:08x}-1111-4111-8111-{number:012x}"
    return f"{number}\t{gid}\t{name}\t{number % 90_001}\t{length}\t\t0\t2024-05-16 16:31:52.155025+00\tf\n".encode()


def songs_epf(path: Path, megabytes: int) -> None:
    """Records of the EPF table of songs."""
    head = b"#" + "\x01".join(EPF_COLUMNS).encode() + b"\x02\n#primaryKey:song_id\x02\n#exportMode:FULL\x02\n"
    _write(path, megabytes, head, _song_record, b"#recordsWritten:%d\x02\n")


def _song_record(number: int) -> bytes:
    cells = ("1766000000000", number, f"Song Number {number}", "Remix" if number % 9 == 0 else "", "")
    return ("\x01".join(map(str, (*cells, f"Ärtist {number % 50_021}", 120_000 + number % 240_000, "2019 05 17"))) + "\x02\n").encode()


def _write(path: Path, megabytes: int, head: bytes, row: Callable[[int], bytes], foot: bytes) -> None:
    with path.open("wb") as file:
        file.write(head)
        for number in _numbers():
            if number % 1000 == 0 and file.tell() >= megabytes * 1_000_000:
                break
            file.write(row(number))
        file.write(foot % number if foot else b"")


def _numbers() -> Iterator[int]:
    number = 0
    while True:
        yield number
        number += 1
