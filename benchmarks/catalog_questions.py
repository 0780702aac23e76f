"""Questions of every kind that the serving files of a snapshot answer: as calls of the reader, and as paths of the HTTP server."""

from __future__ import annotations

import re
from datetime import date
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

from catalog_store.platforms import PLATFORMS
from catalog_store.queries.browse import BrowseFilters
from catalog_store.reader import open_catalog
from catalog_store.tables import TABLES
from catalog_store.tables.files import read_table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from catalog_store.queries.pages import BodyPage
    from catalog_store.reader import Catalog

    Ask = Callable[[Catalog, Any], object]
    Render = Callable[[Any], str]

_TOGETHER = 100
_MONTHS = [date(1980 + number // 12, 1 + number % 12, 1) for number in range(480)]
"""Days of questions for new releases."""


class Kind(NamedTuple):
    """Questions of one kind: `asked` holds an item for each, `ask` answers one by the reader, `render` makes its path."""

    name: str
    asked: list[Any]
    ask: Ask
    render: Render | None = None
    """None where a body would be posted, or where the server draws the seed."""
    each: int = 1
    """Keys of one question."""


def draw_searches(snapshot: Path, count: int) -> list[tuple[str, str]]:
    """Return questions of nine kinds: as written, misspelt, swapped, half a title, another artist, one line."""
    names = read_table(TABLES["recording"], snapshot / "tables" / "recording").select("artist_credit", "title")
    rows = names.gather_every(max(1, names.height // count)).head(count).rows()
    questions = []
    for number, (artist, title) in enumerate(rows):
        other_artist, other_title = rows[(7 * number + 3) % len(rows)]
        kinds = (
            (artist, title), (artist, _misspell(title, number)), (_misspell(artist, number), title), (title, artist),
            (artist, title.split(" ")[0]), (other_artist, title), ("Channel", f"{artist} - {title}"),
            (_misspell(artist, number), _misspell(title, number)), (artist, other_title),
        )  # fmt: skip
        questions.append(kinds[number % len(kinds)])
    return questions


def _misspell(text: str, number: int) -> str:
    place = number % len(text)
    return f"{text[:place]}x{text[place + 1 :]}"


def list_kinds(root: Path, count: int) -> list[Kind]:
    """Return all kinds with about `count` questions each about the catalog at `root`, fewer where it has fewer."""
    with open_catalog(root) as catalog:
        snapshot = catalog.folder

    def sample(name: str, *columns: str) -> list[Any]:
        rows = read_table(TABLES[name], snapshot / "tables" / name).select(columns).drop_nulls()
        found = rows.gather_every(max(1, rows.height // count)).head(count).rows()
        return [row[0] for row in found] if len(columns) == 1 else found

    searches, recordings, codes = draw_searches(snapshot, count), sample("recording", "recording_id"), sample("recording_isrc", "isrc")
    links = [link for link in sample("platform_link", "source", "external_id") if _is_asked(*link)]
    years = [number % 100 + 1925 for number in range(count)]
    artists, labels, works, genres = (sample(name, f"{name}_id", "name") for name in ("artist", "label", "genre", "genre"))
    works = sample("work", "iswc")
    artist_ids, label_ids, genre_ids = ([one for one, _ in named] for named in (artists, labels, genres))
    mixed = [(genre_ids[number % len(genre_ids)], years[-number], artist_ids[number % len(artist_ids)]) for number in range(count)]
    with open_catalog(snapshot) as catalog:
        pages = [(one, catalog.browse(BrowseFilters(genre_id=one), randomize=True).next_cursor) for one in genre_ids]
    return [
        Kind("search", searches, lambda c, q: c.search(artist=q[0], title=q[1]),
             lambda q: _write("/v1/tracks/search", artist=q[0], title=q[1])),
        Kind("track by id", recordings, lambda c, q: c.read_track_body(q), "/v1/tracks/{}".format),
        Kind("codes and links of a track", recordings, lambda c, q: (c.list_isrcs(q), c.list_links(q)),
             "/v1/tracks/{}?include=isrcs,links".format),
        Kind("track by ISRC", codes, lambda c, q: c.find_track_by_isrc(q), "/v1/tracks/isrc/{}".format),
        Kind("ids by ISRC, a hundred together", _group(codes), lambda c, q: c.find_ids_by_isrcs(q), each=_TOGETHER),
        Kind("tracks, a hundred together", _group(recordings), lambda c, q: c.read_track_bodies(q), each=_TOGETHER),
        Kind("ids by platform id", links, lambda c, q: c.find_ids_by_external(*q),
             lambda q: _write("/v1/tracks/links", **{f"{q[0]}_id": q[1]})),
        Kind("works of a track", recordings, lambda c, q: c.list_iswcs(q), "/v1/tracks/iswc?id={}".format),
        Kind("work", works, lambda c, q: c.find_work(q, limit=20), "/v1/tracks/iswc/{}".format),
        Kind("artist by id", artist_ids, lambda c, q: c.find_artist(q), "/v1/artists/{}".format),
        Kind("artists by name", [name for _, name in artists], lambda c, q: c.list_artists(q), lambda q: _write("/v1/artists", name=q)),
        Kind("releases of an artist", artist_ids, lambda c, q: c.list_artist_releases(q), "/v1/artists/{}/releases".format),
        Kind("label by id", label_ids, lambda c, q: c.find_label(q), "/v1/labels/{}".format),
        Kind("labels by name", [name for _, name in labels], lambda c, q: c.list_labels(q), lambda q: _write("/v1/labels", name=q)),
        Kind("releases of a label, two pages", label_ids, lambda c, q: _turn(lambda **at: c.list_label_releases(q, **at)),
             "/v1/labels/{}/releases".format),
        Kind("release by id", sample("release", "release_id"), lambda c, q: c.find_release(q), "/v1/releases/{}".format),
        Kind("releases by barcode", sample("release", "gtin"), lambda c, q: c.list_releases_by_barcode(q),
             "/v1/releases?barcode={}".format),
        Kind("new releases", _MONTHS, lambda c, q: c.list_new_releases(today=q), lambda _: "/v1/releases/new"),
        Kind("browse by artist", artist_ids, lambda c, q: c.browse(BrowseFilters(artist_id=q)), "/v1/tracks/browse?artistId={}".format),
        Kind("browse by label", label_ids, lambda c, q: c.browse(BrowseFilters(label_id=q)), "/v1/tracks/browse?labelId={}".format),
        Kind("browse by genre", genre_ids, lambda c, q: c.browse(BrowseFilters(genre_id=q)), "/v1/tracks/browse?genreId={}".format),
        Kind("browse by year, two pages", sorted(set(years)), lambda c, q: _turn(lambda **at: c.browse(BrowseFilters(year=q), **at)),
             "/v1/tracks/browse?year={}".format),
        Kind("browse by genre, year and artist", mixed, lambda c, q: c.browse(BrowseFilters(genre_id=q[0], year=q[1], artist_id=q[2])),
             lambda q: _write("/v1/tracks/browse", genreId=q[0], year=q[1], artistId=q[2])),
        Kind("browse by genre at random", [page for page in pages if page[1]],
             lambda c, q: c.browse(BrowseFilters(genre_id=q[0]), randomize=True, cursor=q[1])),
        Kind("genre tree", [None], lambda c, _: c.read_genres(), lambda _: "/v1/genres"),
    ]  # fmt: skip


def _is_asked(platform: str, external_id: str) -> bool:
    """Return whether the server takes an id. Records that simulated nights add have ids of another shape."""
    return PLATFORMS[platform].has_dumps and re.fullmatch(PLATFORMS[platform].id_shape, external_id) is not None


def _write(path: str, **parameters: object) -> str:
    return f"{path}?{urlencode(parameters)}"


def _group(keys: list[Any]) -> list[list[Any]]:
    return [keys[start : start + _TOGETHER] for start in range(0, len(keys), _TOGETHER)]


def _turn(read: Callable[..., BodyPage | None]) -> list[BodyPage | None]:
    """Return the first page and the second one, if there is one."""
    first = read()
    return [first, read(cursor=first.next_cursor)] if first and first.next_cursor else [first]
