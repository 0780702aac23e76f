"""Opening a published catalog to ask it: read-only by construction, a deadline on every query, any number of threads and processes.

    with open_catalog(root) as catalog:
        catalog.track_body(catalog.id_for_isrc("USUM71703861"))

A `Catalog` stays on the snapshot it was opened on; whoever wants the next one opens it anew. Questions themselves live in
catalog_store/queries; this module only binds them to the opened files. What must not live here: writing (publisher.py), HTTP.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Self

from catalog_store.cursors import DEFAULT_KEY, CursorCodec
from catalog_store.errors import CatalogClosedError, NoSnapshotError
from catalog_store.queries import browse as browse_queries
from catalog_store.queries import changes as change_queries
from catalog_store.queries import evidence as evidence_queries
from catalog_store.queries import genre_evidence as genre_evidence_queries
from catalog_store.queries import genres as genre_queries
from catalog_store.queries import iswc as iswc_queries
from catalog_store.queries import links as link_queries
from catalog_store.queries import releases as release_queries
from catalog_store.queries import track_search, tracks
from catalog_store.queries.browse import DEFAULT_FILTERS
from catalog_store.queries.changes import MAX_LIMIT as MAX_CHANGES
from catalog_store.queries.pages import DEFAULT_LIMIT, BodyPage
from catalog_store.search.search_index import SearchIndex
from catalog_store.serving.store import ServingStore
from catalog_store.snapshot import CURRENT, MANIFEST, SEARCH_FOLDER, SERVING_FOLDER, TABLES_FOLDER, Manifest, verify

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date
    from types import TracebackType

    from catalog_store.queries.browse import BrowseFilters
    from catalog_store.queries.changes import ChangePage
    from catalog_store.queries.evidence import Evidence
    from catalog_store.queries.genre_evidence import GenreEvidence
    from catalog_store.queries.genres import Genre
    from catalog_store.queries.iswc import Work, WorkTitle
    from catalog_store.queries.links import PlatformLink
    from catalog_store.queries.releases import Artist, Label, ReleaseBody
    from catalog_store.queries.track_search import SearchPage
    from catalog_store.queries.tracks import SlimBody

DEADLINE_SECONDS = 5.0
"""No question of the hot path takes a hundredth of it; it stops a runaway one."""
_OPEN_ATTEMPTS = 3


class Catalog:
    """One snapshot, opened. Every method may be called from any thread; all may raise DeadlineExceededError and CatalogClosedError."""

    def __init__(self, folder: Path, manifest: Manifest, *, deadline: float = DEADLINE_SECONDS, cursor_key: bytes = DEFAULT_KEY) -> None:
        """Use `open_catalog`. `folder` is a snapshot's own folder, `deadline` in seconds."""
        self.folder = folder
        self.manifest = manifest
        self._store = ServingStore(folder / SERVING_FOLDER, deadline)
        self._index: SearchIndex | None = SearchIndex(folder / SERVING_FOLDER / SEARCH_FOLDER)
        self._cursors = CursorCodec(cursor_key)
        self._deadline = deadline

    @property
    def snapshot_id(self) -> str:
        """Id of the snapshot."""
        return self.manifest.id

    def track_body(self, recording_id: int) -> bytes | None:
        """Encoded wire JSON of the track of exactly that id."""
        return tracks.track_body(self._store, recording_id)

    def track_bodies(self, recording_ids: Sequence[int]) -> dict[int, bytes]:
        """Encoded wire JSON of many tracks; unknown ids are absent."""
        return tracks.track_bodies(self._store, recording_ids)

    def resolve_id(self, recording_id: int) -> int | None:
        """The id under which a recording lives now, redirects followed; None when there is none."""
        return tracks.resolve_id(self._store, recording_id)

    def track_by_isrc(self, isrc: str) -> tuple[int, bytes] | None:
        """(id, encoded wire JSON) of the track that carries an ISRC, in whatever spelling: `id_for_isrc` and `track_body` in one."""
        return tracks.track_by_isrc(self._store, isrc)

    def id_for_isrc(self, isrc: str) -> int | None:
        """The recording that carries an ISRC."""
        return tracks.id_for_isrc(self._store, isrc)

    def isrcs(self, recording_id: int) -> list[str]:
        """Every ISRC of a recording, the representative one first."""
        return tracks.isrcs(self._store, recording_id)

    def ids_for_isrcs(self, isrcs: Sequence[str]) -> dict[str, int]:
        """The recordings that carry many ISRCs, by the spelling given."""
        return tracks.ids_for_isrcs(self._store, isrcs)

    def ids_for_external(self, source: str, external_id: str) -> list[int]:
        """Recordings behind a platform's id, most popular first."""
        return tracks.ids_for_external(self._store, source, external_id)

    def ids_for_externals(self, source: str, external_ids: Sequence[str]) -> dict[str, list[int]]:
        """Recordings behind many ids of one platform, by the spelling given."""
        return tracks.ids_for_externals(self._store, source, external_ids)

    def links(self, recording_id: int) -> list[PlatformLink]:
        """Platform links of a recording, in platform order."""
        return link_queries.links(self._store, recording_id)

    def links_of(self, recording_ids: Sequence[int]) -> dict[int, list[PlatformLink]]:
        """Platform links of many recordings; unknown ids are absent."""
        return link_queries.links_of(self._store, recording_ids)

    def iswcs(self, recording_id: int) -> list[WorkTitle]:
        """Compositions that a recording performs."""
        return iswc_queries.iswcs(self._store, recording_id)

    def work(self, code: str, limit: int, cursor: str | None = None) -> Work | None:
        """A composition and `limit` of its recordings, most popular first; InvalidCursorError."""
        return iswc_queries.work(self._store, self._cursors, code, limit, cursor)

    def slim_bodies(self, recording_ids: Sequence[int]) -> dict[int, SlimBody]:
        """Slim tracks (contract B10) of many ids with their links, in one go; unknown ids are absent, redirects not followed."""
        return tracks.slim_bodies(self._store, recording_ids)

    def browse(
        self,
        filters: BrowseFilters = DEFAULT_FILTERS,
        *,
        limit: int = DEFAULT_LIMIT,
        cursor: str | None = None,
        randomize: bool = False,
    ) -> BodyPage:
        """Encoded tracks that pass all filters, newest first, undated last; with `randomize` in an order drawn anew for every first page.

        InvalidQueryError for a limit outside 1..100, InvalidCursorError, UnknownGenreError. Unknown labels and artists find nothing.
        """
        return browse_queries.browse(self._store, self._cursors, filters, limit=limit, cursor=cursor, randomize=randomize)

    def new_releases(self, *, today: date, limit: int = DEFAULT_LIMIT, cursor: str | None = None) -> BodyPage:
        """Encoded entries (contract B15) of releases dated `today` (UTC) or before, newest first, then artist popularity, then id.

        InvalidQueryError for a limit outside 1..100, InvalidCursorError. `today` is not bound into the cursor.
        """
        return release_queries.new_releases(self._store, self._cursors, today=today, limit=limit, cursor=cursor)

    def artist(self, artist_id: int) -> Artist | None:
        """The artist, or the one it was merged into (its `id` tells); None when there is none."""
        return release_queries.artist(self._store, artist_id)

    def artist_releases(self, artist_id: int, *, limit: int = DEFAULT_LIMIT, cursor: str | None = None) -> BodyPage | None:
        """Encoded entries (as new_releases) of an artist's releases, newest first, undated last; None when there is no such artist.

        Merged ids as in `artist`. InvalidQueryError for a limit outside 1..100, InvalidCursorError.
        """
        return release_queries.releases_of(self._store, self._cursors, "artist", artist_id, limit=limit, cursor=cursor)

    def label(self, label_id: int) -> Label | None:
        """The label, or the one it was merged into (its `id` tells); None when there is none."""
        return release_queries.label(self._store, label_id)

    def label_releases(self, label_id: int, *, limit: int = DEFAULT_LIMIT, cursor: str | None = None) -> BodyPage | None:
        """As `artist_releases`, of a label."""
        return release_queries.releases_of(self._store, self._cursors, "label", label_id, limit=limit, cursor=cursor)

    def release(self, release_id: int) -> ReleaseBody | None:
        """The encoded release with all its tracks, or the one it was merged into (its `id` tells); None when there is none."""
        return release_queries.release(self._store, release_id)

    def changes(self, since: str, *, limit: int = MAX_CHANGES, cursor: str | None = None) -> ChangePage:
        """What became of ids after the build `since` (a snapshot id) up to this one.

        UnknownBuildError when this catalog does not descend from that build or no longer knows, InvalidQueryError for a limit outside
        1..1000, InvalidCursorError.
        """
        return change_queries.changes(self._store, self._cursors, since, limit=limit, cursor=cursor)

    def genres(self) -> list[Genre]:
        """The canonical genre tree."""
        return genre_queries.genres(self._store)

    def search(self, *, artist: str, title: str, limit: int = track_search.DEFAULT_LIMIT, cursor: str | None = None) -> SearchPage:
        """Recordings by artist and title; InvalidQueryError for blank names or a limit out of range, InvalidCursorError."""
        index = self._index
        if index is None:
            raise CatalogClosedError("the catalog was closed: open it again")
        return track_search.search(index, self._cursors, track_search.Request(artist, title, limit, cursor), deadline=self._deadline)

    def evidence(self, recording_id: int) -> Evidence | None:
        """Why source records became the recording of exactly that id, and who gave its fields.

        For people, not for the hot path: it reads Parquet, up to seconds, and no deadline stops it.
        """
        return evidence_queries.evidence(self.folder / TABLES_FOLDER, recording_id)

    def genre_evidence(self, recording_id: int) -> list[GenreEvidence]:
        """Why the recording of exactly that id has its genres, most trusted first. As `evidence`, for people: it reads Parquet."""
        return genre_evidence_queries.genre_evidence(self.folder / TABLES_FOLDER, recording_id)

    def close(self) -> None:
        """Give back files and memory; queries that run meanwhile may raise CatalogClosedError."""
        self._store.close()
        # A search under way keeps the arrays until it is done.
        self._index = None

    def __enter__(self) -> Self:
        """The catalog itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close it."""
        self.close()


def open_catalog(path: Path | str, *, deadline: float = DEADLINE_SECONDS, cursor_key: bytes = DEFAULT_KEY) -> Catalog:
    """Open the live snapshot of a catalog root, or the snapshot whose folder `path` is.

    Files are checked for presence and size, not content (`catalog_store.snapshot.verify` does that). NoSnapshotError when nothing is
    published there, SnapshotInvalidError when it is damaged or of another format.
    """
    path = Path(path)
    for attempt in range(_OPEN_ATTEMPTS):
        folder = _snapshot_folder(path)
        try:
            return Catalog(folder, verify(folder, contents=False), deadline=deadline, cursor_key=cursor_key)
        except Exception:
            # A prune may remove the folder between reading the link and opening the files; then the link has moved on.
            if attempt + 1 == _OPEN_ATTEMPTS or _snapshot_folder(path) == folder:
                raise
    raise AssertionError("unreachable")


def _snapshot_folder(path: Path) -> Path:
    if (path / MANIFEST).is_file():
        return path.resolve()
    live = path / CURRENT
    if not live.is_symlink():
        raise NoSnapshotError(f"nothing is published at {path}: build a catalog there first")
    return live.resolve()
