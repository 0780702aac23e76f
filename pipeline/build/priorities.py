"""Survivorship chains of the golden records: the order in which each field asks the platforms.

The first platform of a chain that has a value decides. docs/design/build.md shows the same chains with their reasons and is tested against
this module. The numbers are in the `platform.yaml` of each platform. Each field's module computes it from the chosen record.
"""

from __future__ import annotations

from catalog_store.platforms import CATALOG_PLATFORMS, PLATFORMS, WORKS, rank_platforms

Chain = tuple[str, ...]

RECORDING_TITLE: Chain = rank_platforms("recording_title")
"""Order for titles. Platforms that keep title and version apart give the cleanest display form."""
RECORDING_CREDITS: Chain = rank_platforms("recording_artists")
"""Order for artists. Platforms with roles come first."""
RECORDING_POSITION: Chain = rank_platforms("recording_position")
RECORDING_DURATION: Chain = rank_platforms("recording_duration")
"""Order for durations, asked only where platforms contradict each other one to one. Milliseconds measured from the audio come first, then
whole seconds, then durations printed on sleeves."""
DATE: Chain = rank_platforms("date")
"""Order in which provenance names one of several platforms with the same date, of a recording or a release. The date itself does not depend
on it."""

RELEASE_TITLE: Chain = rank_platforms("release_title")
RELEASE_ARTIST: Chain = rank_platforms("release_artist")
RELEASE_LABEL: Chain = rank_platforms("release_label")
RELEASE_CATALOG_NUMBER: Chain = rank_platforms("release_catalog_number")
RELEASE_TYPE: Chain = rank_platforms("release_type")

ARTIST_NAME: Chain = rank_platforms("artist_name")
LABEL_NAME: Chain = rank_platforms("label_name")
WORK_TITLE: Chain = (WORKS, *rank_platforms("work_title"))

SUGGESTION = "suggestion"
"""Platform name of proposals that a caller made and an operator approved."""
GENRE: Chain = (SUGGESTION, *rank_platforms("genre"))
"""Order for genres. A shop files each track; votes and editors file releases."""

ROLELESS: Chain = tuple(key for key, platform in PLATFORMS.items() if platform.is_roleless)
"""Platforms that call every listed artist `primary`. A list of any platform that names no guest is silent about guests in the same way,
one that names no remixer about remixers. store_a knows no guests, and editors leave roles out."""

CHAINS = {
    "recording.title": RECORDING_TITLE,
    "recording.artists": RECORDING_CREDITS,
    "recording.duration": RECORDING_DURATION,
    "recording_release.disc_number, track_number": RECORDING_POSITION,
    "release.title": RELEASE_TITLE,
    "release.artist": RELEASE_ARTIST,
    "release.label": RELEASE_LABEL,
    "release.catalog_number": RELEASE_CATALOG_NUMBER,
    "release.release_type": RELEASE_TYPE,
    "artist.name, sort_name": ARTIST_NAME,
    "label.name": LABEL_NAME,
    "work.title": WORK_TITLE,
    "recording_genre": GENRE,
}


def render_platform_count_sql(column: str = "platform", chain: Chain = CATALOG_PLATFORMS) -> str:
    """Return an SQL aggregate for the number of the chain's platforms in the group."""
    # Bits are counted, because `count(DISTINCT ...)` keeps a set of strings per group.
    return f"bit_count(bit_or(1 << {render_rank_sql(chain, column)}))"


def render_rank_sql(chain: Chain, column: str = "platform") -> str:
    """Return SQL for the place of `column` in the chain: 0 is asked first, platforms outside come last."""
    places = " ".join(f"WHEN '{platform}' THEN {place}" for place, platform in enumerate(chain))
    return f"(CASE {column} {places} ELSE {len(chain)} END)"
