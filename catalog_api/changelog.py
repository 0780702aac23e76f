"""All changes of the interface, newest first, and the headers of deprecated paths (contract A17). Entries are never edited.

A deprecated path answers with `Deprecation`, `Sunset` and `Link`. It is removed no earlier than its sunset.
"""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import format_datetime
from typing import TYPE_CHECKING

from catalog_api.wire.service_types import InterfaceChange

if TYPE_CHECKING:
    from collections.abc import Sequence

CHANGES: tuple[InterfaceChange, ...] = (
    InterfaceChange("2026-11-27", "added", "/v1/tracks/search", "Answers of 1 kB or more in zstd or gzip, by Accept-Encoding."),
    InterfaceChange("2026-11-27", "added", "/v1/releases", "Releases by barcode."),
    InterfaceChange("2026-11-27", "added", "/v1/artists/resolve", "Bulk resolve of artists by ids and names."),
    InterfaceChange("2026-11-27", "added", "/v1/releases/resolve", "Bulk resolve of releases by barcodes, ids and names."),
    InterfaceChange("2026-11-27", "added", "/v1/jobs/resolve", "Bulk jobs of up to a million rows."),
    InterfaceChange("2026-11-27", "added", "/v1/tracks/resolve", "X-Catalog-Build names the build of bulk resolve and identify."),
    InterfaceChange("2026-11-26", "added", "/v1/artists", "Artists by name."),
    InterfaceChange("2026-11-26", "added", "/v1/conflicts/isrc", "ISRCs that two tracks claim, with the reason that keeps them apart."),
    InterfaceChange("2026-11-27", "added", "/v1/streams/{id}", "PUT changes address, name, `detection_mode` and `linger_seconds`."),
    InterfaceChange("2026-11-27", "added", "/v1/streams/{id}/history", "`include=segments` lists talk, unknown music and silence."),
    InterfaceChange("2026-11-26", "added", "/v1/labels", "Labels by name."),
    InterfaceChange("2026-11-26", "added", "/v1/tracks/{id}", "X-Catalog-Build names the build of each lookup."),
    InterfaceChange("2026-11-21", "added", "/v1/tracks/identify", "Identify a recording by its fingerprint or by an audio file."),
    InterfaceChange("2026-11-21", "added", "/v1/tracks/resolve", "Bulk resolve of up to 100 rows, with Idempotency-Key."),
    InterfaceChange("2026-11-21", "added", "/v1/tracks/browse", "Browse tracks by genre, year, label and artist."),
    InterfaceChange("2026-11-21", "added", "/v1/releases/new", "New releases; releases, artists and labels by id."),
    InterfaceChange("2026-11-21", "added", "/v1/webhooks", "Webhooks after Standard Webhooks 1.0, with a log, replay and rotation."),
    InterfaceChange("2026-11-21", "added", "/v1/tracks/{id}/suggestions", "Suggest a correction of a track."),
    InterfaceChange("2026-11-21", "added", "/v1/changes", "What became of ids between builds."),
    InterfaceChange("2026-11-21", "added", "/v1/usage", "Credits and rate of the key's account."),
    InterfaceChange("2026-11-21", "added", "/v1/tracks/links", "`url` finds a track by its address on a platform."),
    InterfaceChange("2026-11-21", "added", "/v1/streams", "Live streams: register, list, read, stop; what airs on them."),
    InterfaceChange("2026-11-21", "added", "/v1/streams/report", "Airplay report as JSON, CSV or Parquet."),
    InterfaceChange("2026-11-21", "added", "/v1/usage", "`stream_months` and their price."),
)


def build_deprecation_headers(changes: Sequence[InterfaceChange], path: str) -> dict[str, str]:
    """Return the headers for answers of `path`, a template such as `/v1/tracks/{id}` (RFC 9745, RFC 8594); empty without a deprecation."""
    for change in changes:
        if change.kind == "deprecated" and change.path == path:
            headers = {"deprecation": f"@{int(_parse_midnight(change.date).timestamp())}"}
            if change.sunset:
                headers["sunset"] = format_datetime(_parse_midnight(change.sunset), usegmt=True)
            if change.link:
                headers["link"] = f'<{change.link}>; rel="deprecation"'
            return headers
    return {}


def _parse_midnight(date: str) -> datetime:
    return datetime.fromisoformat(date).replace(tzinfo=UTC)
