"""Recordings with real names for the benchmark of typed queries: names of the committed samples, and of benchmarks/typed_queries/songs.tsv.

`read_recordings` returns them in a fixed order. Popularity is invented: songs of playlists stand above tracks of old records, and a hash
of the names orders each group. Aliases are those that the samples of catalog_a and catalog_b deliver. Queries belong in typed_search.py.
"""

from __future__ import annotations

import gzip
import json
import re
import tarfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from xml.etree import ElementTree as ET

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "tests" / "sample_dumps"
SONGS = ROOT / "benchmarks" / "typed_queries" / "songs.tsv"
_PLAYLIST, _SERVICE, _RECORD = 0.50, 0.30, 0.05
"""The least popularity of a group; the hash adds up to _SPREAD."""
_SPREAD = 0.45
_JOINT = re.compile(r",|;| ft\. ")
_WITH_COMMA = ("Tyler, The", "Earth, Wind", "Fear, and", "Dave Dee,", "Peter, Sue", "Baddiel,")
_WITHOUT_MEANING = frozenset({"Unknown Artist", "Various", "Various Artists"})


class RealRecording(NamedTuple):
    """One recording: main artists, title, popularity."""

    artists: tuple[str, ...]
    title: str
    popularity: float


def read_recordings() -> list[RealRecording]:
    """Return the recordings of all samples, each pair of names once."""
    groups = ((_PLAYLIST, _read_songs()), (_SERVICE, _read_services()), (_RECORD, _read_catalog_b()), (_RECORD, _read_catalog_a()))
    found: dict[tuple[tuple[str, ...], str], RealRecording] = {}
    for least, names in groups:
        for artists, title in names:
            if title.strip() and artists and not _WITHOUT_MEANING.intersection(artists):
                popularity = least + zlib.crc32(f"{artists} {title}".encode()) % 1_000 / 1_000 * _SPREAD
                found.setdefault((artists, title), RealRecording(artists, title, popularity))
    return list(found.values())


def read_aliases() -> dict[str, list[str]]:
    """Return other names of artists by name: aliases, sort names, variations and legal names."""
    found: dict[str, dict[str, None]] = {}
    for name, other in (*_read_aliases_b(), *_read_aliases_a()):
        if other and other != name:
            found.setdefault(name, {})[other] = None
    return {name: list(others) for name, others in found.items()}


def _read_songs() -> Iterator[tuple[tuple[str, ...], str]]:
    for row in pl.read_csv(SONGS, separator="\t", quote_char=None, infer_schema=False).iter_rows():
        yield _split_credit(row[0]), row[1]


def _split_credit(credit: str) -> tuple[str, ...]:
    """Split the artists that a playlist or a service shows in one text; a comma may belong to a name."""
    if credit.startswith(_WITH_COMMA):
        return (credit,)
    return tuple(name for part in _JOINT.split(credit) if (name := part.strip()))


def _read_services() -> Iterator[tuple[tuple[str, ...], str]]:
    for line in (SAMPLES / "streamsvc_c" / "flat" / "tracks.jsonl").read_text().splitlines():
        track = json.loads(line)
        yield _split_credit(track["artist"]["name"]), track["title"]
    for line in (SAMPLES / "streamsvc_b" / "answers" / "catalog_songs.jsonl").read_text().splitlines():
        song = json.loads(line)["attributes"]
        yield _split_credit(song["artistName"]), song["name"]


def _read_tables(*names: str) -> list[list[list[str]]]:
    with tarfile.open(SAMPLES / "catalog_b" / "20260722-001102" / "mbdump.tar.bz2") as archive:
        return [[line.split("\t") for line in _read_member(archive, f"mbdump/{name}").splitlines()] for name in names]


def _read_member(archive: tarfile.TarFile, name: str) -> str:
    file = archive.extractfile(name)
    if file is None:
        raise FileNotFoundError(f"{archive.name!r} has no file {name}")
    return file.read().decode()


def _read_catalog_b() -> Iterator[tuple[tuple[str, ...], str]]:
    recordings, credits_, artists = _read_tables("recording", "artist_credit_name", "artist")
    names = {row[0]: row[2] for row in artists}
    credited: dict[str, list[str]] = {}
    for row in sorted(credits_, key=lambda row: (row[0], int(row[1]))):
        credited.setdefault(row[0], []).append(names.get(row[2], row[3]))
    for row in recordings:
        yield tuple(credited.get(row[3], ())), row[2]


def _read_aliases_b() -> Iterator[tuple[str, str]]:
    artists, aliases = _read_tables("artist", "artist_alias")
    names = {row[0]: row[2] for row in artists}
    for row in artists:
        yield row[2], row[3]
    for row in aliases:
        if row[1] in names:
            yield names[row[1]], row[2]


def _read_xml(name: str) -> Iterable[ET.Element]:
    with gzip.open(SAMPLES / "catalog_a" / "2020" / f"discogs_20200806_{name}s.xml.gz", "rb") as file:
        return ET.fromstring(file.read()).iter(name)  # noqa: S314 - a committed sample


def _strip_number(name: str) -> str:
    """Remove the number that distinguishes namesakes."""
    head, bracket, tail = name.rpartition(" (")
    return head if bracket and tail[:-1].isdigit() else name


def _read_artists(element: ET.Element) -> tuple[str, ...]:
    return tuple(_strip_number(one.findtext("name") or "") for one in element.findall("artists/artist"))


def _read_catalog_a() -> Iterator[tuple[tuple[str, ...], str]]:
    for release in _read_xml("release"):
        main = _read_artists(release)
        for track in release.findall("tracklist/track"):
            yield _read_artists(track) or main, track.findtext("title") or ""


def _read_aliases_a() -> Iterator[tuple[str, str]]:
    for artist in _read_xml("artist"):
        name = _strip_number(artist.findtext("name") or "")
        for other in (artist.findtext("realname") or "", *(one.text or "" for one in artist.findall("namevariations/name"))):
            yield name, _strip_number(other)
    for release in _read_xml("release"):
        for one in (*release.findall("artists/artist"), *release.findall("tracklist/track/artists/artist")):
            yield _strip_number(one.findtext("name") or ""), one.findtext("anv") or ""
