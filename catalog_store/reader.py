"""The reader of a published catalog: read-only by construction, a deadline on every query, any number of threads and processes.

  with open_catalog(root) as catalog:
      catalog.read_track_body(catalog.find_id_by_isrc("USUM71703861"))

A `Catalog` stays on the snapshot it was opened on; open it again for the next one. This module only binds the questions of
catalog_store/queries to the open files. Writing belongs in publisher.py, HTTP in catalog_api.
"""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self

from polars.exceptions import ComputeError

from catalog_store.cursors import DEFAULT_KEY, CursorCodec
from catalog_store.errors import CatalogClosedError, IndexDamagedError, NoSnapshotError, TablesAbsentError, TablesDamagedError
from catalog_store.queries import browse as browse_queries
from catalog_store.queries import (
    entity_lookups,
    entity_names,
    genre_tree,
    id_changes,
    isrc_conflicts,
    platform_links,
    release_queries,
    track_search,
    tracks,
)
from catalog_store.queries import evidence as evidence_queries
from catalog_store.queries import genre_evidence as genre_evidence_queries
from catalog_store.queries import iswc as iswc_queries
from catalog_store.queries.browse import DEFAULT_FILTERS
from catalog_store.queries.id_changes import MAX_LIMIT as MAX_CHANGES
from catalog_store.queries.pages import DEFAULT_LIMIT, BodyPage
from catalog_store.queries.recorded_values import read_source_values
from catalog_store.search.search_index import SearchIndex
from catalog_store.serving.store import ServingStore
from catalog_store.snapshot import CURRENT, MANIFEST, SEARCH_FOLDER, SERVING_FOLDER, TABLES_FOLDER, Manifest, verify

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import date
    from types import TracebackType

    from catalog_store.platform_files import Platform
    from catalog_store.queries.browse import BrowseFilters
    from catalog_store.queries.entity_names import Named, NamedPage
    from catalog_store.queries.evidence import Evidence
    from catalog_store.queries.genre_evidence import GenreEvidence
    from catalog_store.queries.genre_tree import Genre
    from catalog_store.queries.id_changes import ChangePage
    from catalog_store.queries.isrc_conflicts import ConflictPage
    from catalog_store.queries.iswc import Work, WorkTitle
    from catalog_store.queries.platform_links import PlatformLink
    from catalog_store.queries.recorded_values import SourceValues
    from catalog_store.queries.release_queries import Artist, Label, ReleaseBody
    from catalog_store.queries.track_search import SearchPage
    from catalog_store.queries.tracks import SlimBody

DEADLINE_SECONDS = 5.0
"""Seconds for one query. No query of the hot path takes a hundredth of it; the deadline stops a runaway one."""
_OPEN_ATTEMPTS = 3


class Catalog:
    """One open snapshot. Every method may be called from any thread; all may raise DeadlineExceededError and CatalogClosedError."""

    def __init__(self, folder: Path, manifest: Manifest, *, deadline: float = DEADLINE_SECONDS, cursor_key: bytes = DEFAULT_KEY) -> None:
        """Use `open_catalog` instead. `folder` is a snapshot's own folder, `deadline` is in seconds."""
        self.folder = folder
        self.manifest = manifest
        self._platforms = manifest.list_platforms()
        self._store = ServingStore(folder / SERVING_FOLDER, deadline)
        self._index: SearchIndex | None = SearchIndex(folder / SERVING_FOLDER / SEARCH_FOLDER)
        self._cursors = CursorCodec(cursor_key)
        self._deadline = deadline

    @property
    def snapshot_id(self) -> str:
        """The id of the snapshot."""
        return self.manifest.id

    def read_track_body(self, recording_id: int) -> bytes | None:
        """Return the encoded wire JSON of the track of exactly that id."""
        return tracks.read_track_body(self._store, recording_id)

    def read_track_bodies(self, recording_ids: Sequence[int]) -> dict[int, bytes]:
        """Return the encoded wire JSON of many tracks; unknown ids are absent."""
        return tracks.read_track_bodies(self._store, recording_ids)

    def resolve_id(self, recording_id: int) -> int | None:
        """Return the id under which a recording lives now, redirects followed; None when there is none."""
        return tracks.resolve_id(self._store, recording_id)

    def find_track_by_isrc(self, isrc: str) -> tuple[int, bytes] | None:
        """Return (id, encoded wire JSON) of the track with an ISRC in any spelling: `find_id_by_isrc` and `read_track_body` in one."""
        return tracks.find_track_by_isrc(self._store, isrc)

    def find_id_by_isrc(self, isrc: str) -> int | None:
        """Return the recording that carries an ISRC."""
        return tracks.find_id_by_isrc(self._store, isrc)

    def list_isrcs(self, recording_id: int) -> list[str]:
        """Return every ISRC of a recording, the representative one first."""
        return tracks.list_isrcs(self._store, recording_id)

    def find_ids_by_isrcs(self, isrcs: Sequence[str]) -> dict[str, int]:
        """Return the recordings that carry many ISRCs, by the spelling given."""
        return tracks.find_ids_by_isrcs(self._store, isrcs)

    @property
    def platforms(self) -> Mapping[str, Platform]:
        """The platforms of the snapshot by key, in the order of answers."""
        return self._platforms

    def find_ids_by_external(self, source: str, external_id: str) -> list[int]:
        """Return the recordings behind a platform's id, most popular first; ValueError for a platform that the snapshot lacks."""
        self._require_platform(source)
        return tracks.find_ids_by_external(self._store, source, external_id)

    def find_ids_by_externals(self, source: str, external_ids: Sequence[str]) -> dict[str, list[int]]:
        """Return the recordings behind many ids of one platform, by the spelling given; ValueError for a platform that it lacks."""
        self._require_platform(source)
        return tracks.find_ids_by_externals(self._store, source, external_ids)

    def _require_platform(self, source: str) -> None:
        if source not in self._platforms:
            raise ValueError(f"unknown platform {source!r}: one of {', '.join(self._platforms)}")

    def list_links(self, recording_id: int) -> list[PlatformLink]:
        """Return the platform links of a recording, in platform order."""
        return platform_links.list_links(self._store, recording_id)

    def list_iswcs(self, recording_id: int) -> list[WorkTitle]:
        """Return the compositions that a recording performs."""
        return iswc_queries.list_iswcs(self._store, recording_id)

    def find_work(self, code: str, limit: int, cursor: str | None = None) -> Work | None:
        """Return a composition and `limit` of its recordings, most popular first; InvalidCursorError."""
        return iswc_queries.find_work(self._store, self._cursors, code, limit, cursor)

    def read_slim_bodies(self, recording_ids: Sequence[int]) -> dict[int, SlimBody]:
        """Return slim tracks (contract B10) of many ids with their links; unknown ids are absent, redirects are not followed."""
        return tracks.read_slim_bodies(self._store, recording_ids)

    def browse(
        self,
        filters: BrowseFilters = DEFAULT_FILTERS,
        *,
        limit: int = DEFAULT_LIMIT,
        cursor: str | None = None,
        randomize: bool = False,
    ) -> BodyPage:
        """Return encoded tracks that pass all filters, newest first, undated last; with `randomize` in a new random order per first page.

        InvalidQueryError for a limit outside 1..100, InvalidCursorError, UnknownGenreError. Unknown labels and artists find nothing.
        """
        return browse_queries.browse(self._store, self._cursors, filters, limit=limit, cursor=cursor, randomize=randomize)

    def list_new_releases(self, *, today: date, limit: int = DEFAULT_LIMIT, cursor: str | None = None) -> BodyPage:
        """Return encoded entries (contract B15) of releases dated `today` (UTC) or before, newest first, then artist popularity, then id.

        InvalidQueryError for a limit outside 1..100, InvalidCursorError. `today` is not bound into the cursor.
        """
        return release_queries.list_new_releases(self._store, self._cursors, today=today, limit=limit, cursor=cursor)

    def find_artist(self, artist_id: int) -> Artist | None:
        """Return the artist, or the one it was merged into (with that `id`); None when there is none."""
        return release_queries.find_artist(self._store, artist_id)

    def list_artists(self, name: str, *, limit: int = DEFAULT_LIMIT, cursor: str | None = None) -> NamedPage:
        """Return artists whose name has the key of `name`, by the rules of `browse`: most tracks first, then most releases, then by id.

        InvalidQueryError for a limit outside 1..100, InvalidCursorError.
        """
        return entity_names.list_by_name(self._store, self._cursors, "artist", name, limit=limit, cursor=cursor)

    def list_artist_releases(self, artist_id: int, *, limit: int = DEFAULT_LIMIT, cursor: str | None = None) -> BodyPage | None:
        """Return encoded entries (as list_new_releases) of an artist's releases, newest first, undated last; None for an unknown artist.

        Merged ids as in `find_artist`. InvalidQueryError for a limit outside 1..100, InvalidCursorError.
        """
        return release_queries.list_releases(self._store, self._cursors, "artist", artist_id, limit=limit, cursor=cursor)

    def find_label(self, label_id: int) -> Label | None:
        """Return the label, or the one it was merged into (with that `id`); None when there is none."""
        return release_queries.find_label(self._store, label_id)

    def list_labels(self, name: str, *, limit: int = DEFAULT_LIMIT, cursor: str | None = None) -> NamedPage:
        """Return the labels of a name as `list_artists` does."""
        return entity_names.list_by_name(self._store, self._cursors, "label", name, limit=limit, cursor=cursor)

    def list_label_releases(self, label_id: int, *, limit: int = DEFAULT_LIMIT, cursor: str | None = None) -> BodyPage | None:
        """Return the releases of a label as `list_artist_releases` does."""
        return release_queries.list_releases(self._store, self._cursors, "label", label_id, limit=limit, cursor=cursor)

    def find_release(self, release_id: int) -> ReleaseBody | None:
        """Return the encoded release with all its tracks, or the one it was merged into (with that `id`); None when there is none."""
        return release_queries.find_release(self._store, release_id)

    def list_releases_by_barcode(self, barcode: str, *, limit: int = DEFAULT_LIMIT, cursor: str | None = None) -> BodyPage:
        """Return encoded entries (as list_new_releases) of the releases with a GTIN-14: most tracks first, then earliest, then id.

        InvalidQueryError for a limit outside 1..100, InvalidCursorError.
        """
        return entity_lookups.list_releases_by_barcode(self._store, self._cursors, barcode, limit=limit, cursor=cursor)

    def find_release_ids_by_barcodes(self, barcodes: Sequence[str]) -> dict[str, list[int]]:
        """Return the releases of many GTIN-14, each list in the order of `list_releases_by_barcode`."""
        return entity_lookups.find_release_ids_by_barcodes(self._store, barcodes)

    def find_release_ids_by_name(self, artist: str, title: str) -> list[int]:
        """Return the releases of that title by artists of that name, in the same order."""
        return entity_lookups.find_release_ids_by_name(self._store, artist, title)

    def find_artist_ids_by_name(self, name: str) -> list[int]:
        """Return the artists of a name as `list_artists` orders them."""
        return entity_lookups.find_artist_ids_by_name(self._store, name)

    def find_entities_on_platform(self, kind: str, platform: str, external_ids: Sequence[str]) -> dict[str, int]:
        """Return the releases or artists (`kind`) of many ids of a platform, by the spelling given."""
        return entity_lookups.find_ids_on_platform(self._store, kind, platform, external_ids)

    def find_present_ids(self, kind: str, ids: Sequence[int]) -> dict[int, int]:
        """Return the present ids of releases or artists (`kind`), merges followed, by the id given; unknown ids are absent."""
        return entity_lookups.find_present_ids(self._store, kind, ids)

    def read_release_entries(self, release_ids: Sequence[int]) -> dict[int, bytes]:
        """Return encoded entries (as list_new_releases) of many releases; unknown ids are absent."""
        return entity_lookups.read_release_entries(self._store, release_ids)

    def read_artists(self, artist_ids: Sequence[int]) -> dict[int, Named]:
        """Return many artists by id; unknown ids are absent."""
        return entity_lookups.read_artists(self._store, artist_ids)

    def list_changes(self, since: str, *, until: str | None = None, limit: int = MAX_CHANGES, cursor: str | None = None) -> ChangePage:
        """Return the changes of ids after the build `since` (a snapshot id) up to `until`, by default this one.

        UnknownBuildError when this catalog does not descend from that build or no longer has its history. InvalidQueryError for a limit
        outside 1..1000, InvalidCursorError.
        """
        return id_changes.list_changes(self._store, self._cursors, since, until=until, limit=limit, cursor=cursor)

    def read_genres(self) -> list[Genre]:
        """Return the canonical genre tree."""
        return genre_tree.read_genres(self._store)

    def search(
        self,
        *,
        artist: str,
        title: str,
        limit: int = track_search.DEFAULT_LIMIT,
        cursor: str | None = None,
        min_class: str = track_search.LOWEST_CLASS,
    ) -> SearchPage:
        """Return recordings by artist and title of `min_class` or better.

        InvalidQueryError for blank names, a limit out of range or an unknown class, InvalidCursorError, IndexDamagedError.
        """
        index = self._index
        if index is None:
            raise CatalogClosedError("the catalog was closed: open it again")
        request = track_search.Request(artist, title, limit, cursor, min_class)
        try:
            return track_search.search(index, self._cursors, request, deadline=self._deadline)
        # Its files lead into each other by places: a wrong one is outside of a file, inside a letter or beside an empty name.
        except (IndexError, UnicodeDecodeError, ZeroDivisionError) as error:
            raise IndexDamagedError(f"search of {self.folder.name} contradicts itself: {error}: roll back, or publish again") from error

    def list_isrc_conflicts(self, *, isrc: str | None = None, limit: int = DEFAULT_LIMIT, cursor: str | None = None) -> ConflictPage:
        """Return codes that two recordings claimed, in order of the code; with a bare `isrc` only its conflicts.

        It reads Parquet. InvalidQueryError for a limit outside 1..100, InvalidCursorError, TablesAbsentError on a serving node,
        TablesDamagedError.
        """
        with self._open_tables() as tables:
            return isrc_conflicts.list_isrc_conflicts(tables, self._cursors, isrc=isrc, limit=limit, cursor=cursor)

    def collect_evidence(self, recording_id: int) -> Evidence | None:
        """Return why source records became the recording of exactly that id, and which record gave each field.

        For people, not for the hot path: it reads Parquet for up to seconds, and no deadline stops it. TablesAbsentError on a serving node,
        TablesDamagedError.
        """
        with self._open_tables() as tables:
            return evidence_queries.collect_evidence(tables, recording_id)

    def read_genre_evidence(self, recording_id: int) -> list[GenreEvidence]:
        """Return why the recording of exactly that id has its genres, most trusted first. Like `collect_evidence`, it reads Parquet."""
        with self._open_tables() as tables:
            return genre_evidence_queries.read_genre_evidence(tables, recording_id)

    def read_source_values(self, recording_id: int) -> list[SourceValues]:
        """Return the values that each platform gave the recording of exactly that id. Like `collect_evidence`, it reads Parquet."""
        with self._open_tables() as tables:
            return read_source_values(tables, recording_id)

    @contextmanager
    def _open_tables(self) -> Iterator[Path]:
        tables = self.folder / TABLES_FOLDER
        if not tables.is_dir():
            raise TablesAbsentError("this machine holds the files of a server, and no tables to read the evidence from")
        try:
            yield tables
        except (OSError, ComputeError) as error:
            raise TablesDamagedError(f"tables of {self.folder.name} cannot be read: {error}") from error

    def close(self) -> None:
        """Release files and memory; queries that run meanwhile may raise CatalogClosedError."""
        self._store.close()
        # A running search keeps the arrays until it ends.
        self._index = None

    def __enter__(self) -> Self:
        """Return the catalog itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close the catalog."""
        self.close()


def open_catalog(path: Path | str, *, deadline: float = DEADLINE_SECONDS, cursor_key: bytes = DEFAULT_KEY) -> Catalog:
    """Open the live snapshot of a catalog root, or the snapshot whose folder is `path`.

    Files of a server are checked for presence and size, not content (`catalog_store.snapshot.verify` does that). NoSnapshotError when
    nothing is published there, SnapshotInvalidError when it is damaged or of another format.
    """
    path = Path(path)
    for attempt in range(_OPEN_ATTEMPTS):
        folder = _find_snapshot_folder(path)
        try:
            return Catalog(folder, verify(folder, role="serving", contents=False), deadline=deadline, cursor_key=cursor_key)
        except Exception:
            # A prune may remove the folder between reading the link and opening the files. Then the link has moved on.
            if attempt + 1 == _OPEN_ATTEMPTS or _find_snapshot_folder(path) == folder:
                raise
    raise AssertionError("the loop above returns or raises in its last attempt")


def _find_snapshot_folder(path: Path) -> Path:
    if (path / MANIFEST).is_file():
        return path.resolve()
    live = path / CURRENT
    if not live.is_symlink():
        raise NoSnapshotError(f"nothing is published at {path}: build a catalog there first")
    return live.resolve()
