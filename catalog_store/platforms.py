"""The platform keys of the specification, their fixed order and their URL templates.

Add a key here when a new platform enters the catalog. Templates are defaults; an operator overrides them by settings, never in code.
"""

from __future__ import annotations

STREAMSVC_A = "streamsvc_a"
STREAMSVC_B = "streamsvc_b"
STREAMSVC_C = "streamsvc_c"
STORE_A = "store_a"
CATALOG_A = "catalog_a"
CATALOG_B = "catalog_b"
VIDEO_A = "video_a"

CATALOG_PLATFORMS = (STREAMSVC_A, STREAMSVC_B, STREAMSVC_C, STORE_A, CATALOG_A, CATALOG_B)
"""The six platforms whose recordings are merged (specification, part 1)."""

LINK_SOURCES = (*CATALOG_PLATFORMS, VIDEO_A)
"""Every `source` a platform link can carry, in the order in which links are answered (contract B12)."""

WORKS = "works"
"""The composition data: a source of works, not of recordings."""

SOURCES = (*CATALOG_PLATFORMS, WORKS)
"""Everything a nightly build reads a dump of."""

SUGGESTIONS = "suggestions"
"""What callers proposed and an operator approved: written by our own account store, delivered like a dump."""

FINGERPRINTS = "fingerprints"
"""Public fingerprints and whose recordings they are: delivered as one small dump a day, each on top of those before."""

AUDIO = "audio"
"""An operator's own audio files, read where they lie."""

FINGERPRINT_SOURCES = (AUDIO, FINGERPRINTS)
"""Where fingerprints come from, the more trusted first."""

INPUTS = (*SOURCES, SUGGESTIONS, FINGERPRINTS, AUDIO)
"""Everything a nightly build reads."""

URL_TEMPLATES = {
    STREAMSVC_A: "https://open.spotify.com/track/{id}",
    STREAMSVC_B: "https://music.apple.com/us/song/{id}",
    STREAMSVC_C: "https://www.deezer.com/track/{id}",
    STORE_A: "https://www.beatport.com/track/{slug}/{id}",
    CATALOG_A: "https://www.discogs.com/release/{id}",
    CATALOG_B: "https://musicbrainz.org/recording/{id}",
    VIDEO_A: "https://www.youtube.com/watch?v={id}",
}
"""`{id}` is the link's external id; `{slug}` the platform's own slug, `-` where it gave none."""
