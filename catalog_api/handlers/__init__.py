"""The routes of `/v1`, one module per resource. A handler takes checked values and returns the question that they make.

Add a route's module here when a resource appears; ROUTES is also the order in which the description names them.
"""

from __future__ import annotations

from catalog_api.handlers.browse import browse
from catalog_api.handlers.changes import changes
from catalog_api.handlers.genres import genres
from catalog_api.handlers.identify import identify
from catalog_api.handlers.iswc import iswcs_of_track, tracks_of_iswc
from catalog_api.handlers.links import links
from catalog_api.handlers.releases import artist, artist_releases, label, label_releases, new_releases, release
from catalog_api.handlers.report import report
from catalog_api.handlers.resolve import resolve
from catalog_api.handlers.search import search
from catalog_api.handlers.service import alive, changelog, error_codes, openapi_document, ready, reference_page, reference_style_sheet
from catalog_api.handlers.streams import create_stream, stop_stream, stream, stream_history, streams
from catalog_api.handlers.suggestions import suggest, suggestions, suggestions_of_track
from catalog_api.handlers.tracks import track_by_id, track_by_isrc
from catalog_api.handlers.usage import usage
from catalog_api.handlers.webhooks import (
    change_webhook,
    create_webhook,
    delete_webhook,
    ping_webhook,
    replay_webhook,
    replay_webhook_delivery,
    rotate_webhook_secret,
    webhook,
    webhook_deliveries,
    webhook_delivery,
    webhooks,
)

ROUTES = [
    search,
    track_by_isrc,
    track_by_id,
    links,
    iswcs_of_track,
    tracks_of_iswc,
    resolve,
    identify,
    browse,
    new_releases,
    release,
    artist,
    artist_releases,
    label,
    label_releases,
    genres,
    suggest,
    suggestions_of_track,
    suggestions,
    create_stream,
    streams,
    report,
    stream,
    stop_stream,
    stream_history,
    create_webhook,
    webhooks,
    webhook,
    change_webhook,
    delete_webhook,
    rotate_webhook_secret,
    ping_webhook,
    replay_webhook,
    webhook_deliveries,
    webhook_delivery,
    replay_webhook_delivery,
    changes,
    usage,
    error_codes,
    changelog,
    openapi_document,
    reference_page,
    reference_style_sheet,
    alive,
    ready,
]
