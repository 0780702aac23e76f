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
"""Every `source` that a platform link can have, in the order of answers (contract B12)."""

WORKS = "works"
"""The composition data: a source of works, not of recordings."""

SOURCES = (*CATALOG_PLATFORMS, WORKS)
"""All sources whose dumps a nightly build reads."""

SUGGESTIONS = "suggestions"
"""Values that callers proposed and an operator approved: written by our own account store, delivered like a dump."""

FINGERPRINTS = "fingerprints"
"""Public fingerprints and their recordings: delivered as one small dump a day, each in addition to those before."""

AUDIO = "audio"
"""An operator's own audio files, read in place."""

FINGERPRINT_SOURCES = (AUDIO, FINGERPRINTS)
"""The sources of fingerprints, the more trusted first."""

INPUTS = (*SOURCES, SUGGESTIONS, FINGERPRINTS, AUDIO)
"""All inputs of a nightly build."""

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
