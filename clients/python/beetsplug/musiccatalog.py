"""Plugin of beets: ISRC, genres and platform ids from a music catalog.

An item is looked up by its ISRC, or else by artist and title. Only a match above `min_score` counts: a wrong tag is worse than none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beets import config
from beets.plugins import BeetsPlugin
from beets.ui import Subcommand, UserError

from music_catalog import CatalogError, Client, NotFoundError

if TYPE_CHECKING:
    import optparse
    from collections.abc import Iterable

    from beets.importer import ImportSession, ImportTask
    from beets.library import Item, Library

    from music_catalog.generated.types import Track


class MusicCatalogPlugin(BeetsPlugin):
    """The plugin `musiccatalog`."""

    def __init__(self) -> None:
        """Read the configuration; with `auto`, follow imports."""
        super().__init__()
        self.config.add({"url": "", "key": "", "auto": True, "min_score": 0.9, "overwrite": False})
        self.config["key"].redact = True
        if self.config["auto"].get(bool):
            self.register_listener("import_task_files", self.tag_imported)

    def commands(self) -> list[Subcommand]:
        """Return the command `beet musiccatalog`."""
        command = Subcommand("musiccatalog", help="fetch ISRC, genres and platform ids from the music catalog")
        command.func = self.run_command
        return [command]

    def run_command(self, library: Library, _options: optparse.Values, arguments: list[str]) -> None:
        """Tag the items of a query."""
        changed = self.tag(library.items(arguments))
        self._log.info("{} items changed", changed)

    def tag_imported(self, session: ImportSession, task: ImportTask) -> None:  # noqa: ARG002 - the signature of the event
        """Tag what was imported. A server that is away must not end an import."""
        try:
            self.tag(task.imported_items())
        except UserError as error:
            self._log.warning("{}", error)

    def tag(self, items: Iterable[Item]) -> int:
        """Tag items; return how many changed. UserError: the server refused or did not answer."""
        changed = 0
        try:
            with Client(self.config["url"].as_str() or None, self.config["key"].as_str() or None) as catalog:
                for item in items:
                    track = self.find_track(catalog, item)
                    if track is not None and self.write_values(item, track):
                        changed += 1
        except (CatalogError, ValueError) as error:
            raise UserError(f"musiccatalog: {error}") from error
        return changed

    def find_track(self, catalog: Client, item: Item) -> Track | None:
        """Return the track of an item, with its links."""
        try:
            if item.isrc:
                return catalog.track_by_isrc(item.isrc, include="links")
        except (NotFoundError, ValueError):
            self._log.debug("no track carries {}", item.isrc)
        if not item.artist or not item.title:
            return None
        [best, *_] = catalog.search(artist=item.artist, title=item.title, limit=1).results or [None]
        if best is None or best.match is None or best.match.score < self.config["min_score"].as_number():
            return None
        return catalog.track_by_id(best.id, include="links")

    def write_values(self, item: Item, track: Track) -> bool:
        """Write what the catalog knows and the item lacks; return whether something changed."""
        genres = [*track.subgenre, *track.genre]
        known: dict[str, Any] = {"musiccatalog_id": str(track.id), "isrc": track.isrc, "genres": genres}
        known |= {f"{link.source}_id": link.external_id for link in reversed(track.links)}
        overwrites, before = self.config["overwrite"].get(bool), dict(item)
        for name, value in known.items():
            if value and (overwrites or not item.get(name)):
                item[name] = value
        if dict(item) == before:
            return False
        if config["import"]["write"].get(bool):
            item.try_write()
        item.store()
        return True
