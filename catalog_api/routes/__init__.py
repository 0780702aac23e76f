"""The routes of `/v1`, one module per resource. A handler takes checked values and returns a question (metering.py).

A new resource gets a module here and its handlers a place in ROUTES, which is also the order of the description.
"""

from __future__ import annotations

from catalog_api.routes.airplay_report import report
from catalog_api.routes.artists_and_labels import artist, artist_releases, artists, label, label_releases, labels
from catalog_api.routes.audit import audit
from catalog_api.routes.changes import changes
from catalog_api.routes.conflicts import isrc_conflicts
from catalog_api.routes.identify import identify
from catalog_api.routes.jobs import cancel_job, create_job, job, job_result, jobs
from catalog_api.routes.public_routes import (
    check_alive,
    check_readiness,
    get_changelog,
    get_error_codes,
    get_openapi_document,
    get_reference_page,
    get_reference_page_script,
    get_reference_style_sheet,
)
from catalog_api.routes.releases import new_releases, release, releases
from catalog_api.routes.resolve import resolve, resolve_artists, resolve_releases
from catalog_api.routes.search_and_browse import browse, genres, search
from catalog_api.routes.streams import change_stream, create_stream, stop_stream, stream, stream_history, streams
from catalog_api.routes.suggestions import suggest, suggestions, suggestions_of_track
from catalog_api.routes.tracks import links, track_by_id, track_by_isrc
from catalog_api.routes.usage import usage
from catalog_api.routes.webhooks import (
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
from catalog_api.routes.works import iswcs_of_track, tracks_of_iswc

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
    releases,
    resolve_releases,
    release,
    artists,
    resolve_artists,
    artist,
    artist_releases,
    labels,
    label,
    label_releases,
    genres,
    create_job,
    jobs,
    job,
    cancel_job,
    job_result,
    suggest,
    suggestions_of_track,
    suggestions,
    create_stream,
    streams,
    report,
    stream,
    change_stream,
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
    isrc_conflicts,
    usage,
    audit,
    get_error_codes,
    get_changelog,
    get_openapi_document,
    get_reference_page,
    get_reference_page_script,
    get_reference_style_sheet,
    check_alive,
    check_readiness,
]
