"""Survivorship chains of the golden records: the order in which each field asks the platforms.

The first platform of a chain that has a value decides. docs/design/build.md shows the same chains with their reasons and is tested against
this module. Change an order here, never in a query. Each field's module computes it from the chosen record.
"""

from __future__ import annotations

from catalog_store.platforms import CATALOG_A, CATALOG_B, CATALOG_PLATFORMS, STORE_A, STREAMSVC_A, STREAMSVC_B, STREAMSVC_C

Chain = tuple[str, ...]

RECORDING_TITLE: Chain = (STREAMSVC_B, STREAMSVC_C, STORE_A, STREAMSVC_A, CATALOG_B, CATALOG_A)
"""Order for titles. Platforms that keep title and version apart give the cleanest display form; catalogs normalise capitals and print
variants."""
RECORDING_CREDITS: Chain = (STREAMSVC_C, STREAMSVC_B, CATALOG_B, STORE_A, STREAMSVC_A, CATALOG_A)
"""Order for artists. Platforms with roles come first; streamsvc_a lists guests and remixers among the artists without a mark."""
RECORDING_POSITION: Chain = (CATALOG_B, STREAMSVC_A, STREAMSVC_B, STREAMSVC_C, CATALOG_A, STORE_A)
"""Order for disc and track numbers. store_a gives the number 1 to every track of some releases."""
RECORDING_DURATION: Chain = (STREAMSVC_A, STREAMSVC_B, STORE_A, STREAMSVC_C, CATALOG_B, CATALOG_A)
"""Order for durations, asked only where platforms contradict each other one to one. Milliseconds measured from the audio come first, then
whole seconds, then durations printed on sleeves."""
DATE: Chain = (CATALOG_B, STREAMSVC_C, STREAMSVC_B, STORE_A, STREAMSVC_A, CATALOG_A)
"""Order in which provenance names one of several platforms with the same date, of a recording or a release. The date itself does not depend
on it."""

RELEASE_TITLE: Chain = (STREAMSVC_A, STREAMSVC_C, STREAMSVC_B, STORE_A, CATALOG_B, CATALOG_A)
RELEASE_ARTIST: Chain = (STREAMSVC_C, STREAMSVC_A, STREAMSVC_B, CATALOG_B, CATALOG_A, STORE_A)
"""Order for release artists. store_a gathers all track artists on a release."""
RELEASE_LABEL: Chain = (STORE_A, CATALOG_B, CATALOG_A, STREAMSVC_B, STREAMSVC_A, STREAMSVC_C)
"""Order for labels. Imprints come first; streamsvc_c may name the distributor."""
RELEASE_CATALOG_NUMBER: Chain = (CATALOG_A, CATALOG_B, STORE_A, STREAMSVC_A, STREAMSVC_B, STREAMSVC_C)
RELEASE_TYPE: Chain = (CATALOG_B, STREAMSVC_C, STREAMSVC_B, CATALOG_A, STORE_A, STREAMSVC_A)
"""Order for release types. streamsvc_a knows no EP."""

ARTIST_NAME: Chain = (CATALOG_B, STREAMSVC_A, STREAMSVC_B, STREAMSVC_C, STORE_A, CATALOG_A)
LABEL_NAME: Chain = (CATALOG_B, CATALOG_A, STORE_A, STREAMSVC_B, STREAMSVC_A, STREAMSVC_C)
WORK_TITLE: Chain = ("works", CATALOG_B)

SUGGESTION = "suggestion"
"""Platform name of proposals that a caller made and an operator approved."""
GENRE: Chain = (SUGGESTION, STORE_A, CATALOG_B, CATALOG_A, STREAMSVC_B, STREAMSVC_C, STREAMSVC_A)
"""Order for genres. A shop files each track; votes and editors file releases; streamsvc_a knows genres of artists only."""

ROLELESS: Chain = (STREAMSVC_A,)
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
