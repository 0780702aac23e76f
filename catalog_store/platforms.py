"""The platforms of a catalog and its other inputs, in their fixed order.

A platform is described by its `platform.yaml` (platform_files.py); a new one changes nothing here. Constants exist only for keys whose
adapters, rules or simulated dumps the code names.
"""

from __future__ import annotations

from catalog_store.platform_files import SHIPPED, InputRights, list_added_folders, read_platforms

STREAMSVC_A = "streamsvc_a"
STREAMSVC_B = "streamsvc_b"
STREAMSVC_C = "streamsvc_c"
STORE_A = "store_a"
CATALOG_A = "catalog_a"
CATALOG_B = "catalog_b"
VIDEO_A = "video_a"

PLATFORMS = {platform.key: platform for platform in read_platforms((SHIPPED, *list_added_folders()))}
"""Every platform of a build in this process, by key, in the order of answers (contract B12)."""

CATALOG_PLATFORMS = tuple(key for key, platform in PLATFORMS.items() if platform.has_dumps)
"""The platforms whose recordings are merged (specification, part 1)."""

SHIPPED_PLATFORMS = (STREAMSVC_A, STREAMSVC_B, STREAMSVC_C, STORE_A, CATALOG_A, CATALOG_B)
"""The six platforms of the specification."""

LINK_SOURCES = tuple(PLATFORMS)
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

INPUT_RIGHTS = (
    InputRights(WORKS, "by the terms of the rights collective", "Contains composition data of the mechanical-rights collective."),
    InputRights(FINGERPRINTS, "CC BY-SA 3.0", "Contains fingerprints of acoustid.org, CC BY-SA 3.0."),
    InputRights(AUDIO, "the operator's own files"),
    InputRights(SUGGESTIONS, "given by callers to this catalog"),
)
"""Rights of the inputs that are no platforms."""

URL_TEMPLATES = {key: platform.url for key, platform in PLATFORMS.items()}
"""`{id}` is the link's external id; `{slug}` the platform's own slug, `-` where it gave none."""


def rank_platforms(field: str) -> tuple[str, ...]:
    """Return the platforms that have a priority for a field, the first to be asked first (platform_files.FIELDS)."""
    ranks = {key: platform.priorities[field] for key, platform in PLATFORMS.items() if field in platform.priorities}
    return tuple(sorted(ranks, key=ranks.__getitem__))


def find_genre_scope(platform: str) -> str:
    """Return the scope of genre rules that applies to the strings of a platform."""
    return PLATFORMS[platform].genre_scope if platform in PLATFORMS else platform


def require_reserved_keys_free() -> None:
    """Raise ValueError when a platform has the key of another input."""
    if taken := sorted({WORKS, SUGGESTIONS, FINGERPRINTS, AUDIO} & PLATFORMS.keys()):
        raise ValueError(f"platform.yaml: {taken[0]!r} is the key of another input: choose another key")


require_reserved_keys_free()
