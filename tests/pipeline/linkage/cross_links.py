"""Dumps of four platforms, written from real cross-links in the platforms' own forms.

A row holds the names of a song, its code and its ids on three services. Each id becomes one record of its service under the names that
most rows give it; each wording of a song becomes one recording of catalog_b that points to the services by URL. The source has no
durations: a song has one drawn from its code, so that length never separates what names and codes do not (wrong codes are harder so).
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import zlib
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

SAMPLE = Path(__file__).parents[2] / "sample_dumps" / "cross_links" / "cross_links.jsonl.gz"
FREE_STREAMING = "7e41ef12-a124-4324-afdb-fdbae687a89c"
WHOLE_NAMES = (
    "Earth, Wind & Fire",
    "Fear, and Loathing in Las Vegas",
    "Dave Dee, Dozy, Beaky, Mick & Tich",
    "Baddiel, Skinner & Lightning Seeds",
    "Crosby, Stills, Nash & Young",
    "Tyler, The Creator",
    "Blood, Sweat & Tears",
    "Emerson, Lake & Palmer",
    "Peter, Paul and Mary",
)
"""Names of one artist that hold a comma; every other comma of the source stands between artists."""
_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Song:
    """One wording of a song."""

    artist: str
    title: str
    isrc: str | None

    @property
    def artists(self) -> list[str]:
        """Return the artists one by one."""
        return [self.artist] if self.artist in WHOLE_NAMES else [name.strip() for name in self.artist.split(",") if name.strip()]

    @property
    def bracketed(self) -> str:
        """Return the title with its version in brackets instead of after a dash."""
        base, _, version = self.title.partition(" - ")
        return f"{base} ({version})" if version else base

    @property
    def milliseconds(self) -> int:
        """120-360 s."""
        return 120_000 + zlib.crc32((self.isrc or self.title).encode()) % 240_000


@dataclass
class CrossLinks:
    """The links between platforms: `songs` of each (platform, id), and the ids of each song."""

    songs: dict[tuple[str, str], Counter[Song]] = field(default_factory=lambda: defaultdict(Counter))
    ids: dict[Song, set[tuple[str, str]]] = field(default_factory=lambda: defaultdict(set))

    def named(self, record: tuple[str, str]) -> Song:
        """Return the wording of a service's record: that of most rows, of equals the first."""
        return self.songs[record].most_common(1)[0][0]


def read_cross_links(path: Path = SAMPLE) -> CrossLinks:
    """Return the rows of a file of JSON lines, compressed or not."""
    found = CrossLinks()
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    for row in map(json.loads, text.decode().splitlines()):
        song = Song(row["artist"].replace("\xa0", " ").strip(), row["title"].strip(), row.get("isrc") or None)
        records = [("streamsvc_a", row.get("uri")), ("streamsvc_b", row.get("uri_apple_music")), ("streamsvc_c", row.get("uri_deezer"))]
        records += [("streamsvc_b", number) for number in row.get("apple_other_regions", [])]
        for platform, number in records:
            if number:
                found.songs[platform, str(number)][song] += 1
                found.ids[song].add((platform, str(number)))
    return found


def write_dumps(links: CrossLinks, root: Path) -> dict[str, Path]:
    """Write `<root>/<platform>`: streamsvc_a Web-API tracks, streamsvc_b API songs, streamsvc_c flat tracks, catalog_b documents."""
    makers = {"streamsvc_a": _web_api_track, "streamsvc_b": _api_song, "streamsvc_c": _flat_track}
    lines: dict[str, list[dict[str, object]]] = {platform: [] for platform in (*makers, "catalog_b")}
    for platform, number in links.songs:
        lines[platform].append(makers[platform](number, links.named((platform, number))))
    lines["catalog_b"] = [_document(song, sorted(ids)) for song, ids in links.ids.items()]
    for platform, records in lines.items():
        (root / platform).mkdir(parents=True)
        name = "recording.jsonl" if platform == "catalog_b" else "tracks.jsonl"
        (root / platform / name).write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    return {platform: root / platform for platform in lines}


def document_id(song: Song) -> str:
    """Return the id of the song's recording on catalog_b."""
    return str(uuid5(NAMESPACE_URL, f"recording {song.artist} {song.title} {song.isrc}"))


def _number(name: str) -> int:
    return zlib.crc32(name.casefold().encode()) + 1


def _base62(name: str) -> str:
    value = int.from_bytes(hashlib.sha256(name.casefold().encode()).digest())
    return "".join(_BASE62[value // 62**place % 62] for place in range(22))


def _web_api_track(number: str, song: Song) -> dict[str, object]:
    return {
        "type": "track",
        "id": number,
        "name": song.title,
        "artists": [{"id": _base62(name), "name": name} for name in song.artists],
        "duration_ms": song.milliseconds,
        "external_ids": {"isrc": song.isrc} if song.isrc else {},
    }


def _api_song(number: str, song: Song) -> dict[str, object]:
    artists = song.artists
    joined = artists[0] if len(artists) == 1 else f"{', '.join(artists[:-1])} & {artists[-1]}"
    attributes = {"name": song.bracketed, "artistName": joined, "durationInMillis": song.milliseconds, "genreNames": ["Music"]}
    return {"id": number, "type": "songs", "attributes": attributes | ({"isrc": song.isrc} if song.isrc else {})}


def _flat_track(number: str, song: Song) -> dict[str, object]:
    short, _, version = song.title.partition(" - ")
    people = [{"id": _number(name), "name": name, "role": "Main"} for name in song.artists]
    return {
        "id": int(number),
        "type": "track",
        "title": f"{short} ({version})" if version else short,
        "title_short": short,
        "title_version": f"({version})" if version else "",
        "isrc": song.isrc or "",
        "duration": song.milliseconds // 1000,
        "artist": people[0],
        "contributors": people,
    }


def _document(song: Song, ids: list[tuple[str, str]]) -> dict[str, object]:
    sites = {"streamsvc_a": "open.spotify.com/track", "streamsvc_b": "music.apple.com/us/song", "streamsvc_c": "www.deezer.com/track"}
    urls = [f"https://{sites[platform]}/{number}" for platform, number in ids]
    names = song.artists
    return {
        "id": document_id(song),
        "title": re.sub(r"\(([^()]*)\)$", lambda version: version[0].lower(), song.bracketed),
        "length": song.milliseconds,
        "video": False,
        "isrcs": [song.isrc] if song.isrc else [],
        "artist-credit": [
            {
                "name": name,
                "joinphrase": "" if place == len(names) else " & ",
                "artist": {"id": str(uuid5(NAMESPACE_URL, f"artist {name.casefold()}")), "name": name, "sort-name": name},
            }
            for place, name in enumerate(names, start=1)
        ],
        "relations": [
            {
                "type-id": FREE_STREAMING,
                "target-type": "url",
                "direction": "forward",
                "ended": False,
                "attribute-ids": {},
                "url": {"id": str(uuid5(NAMESPACE_URL, url)), "resource": url},
            }
            for url in urls
        ],
    }
