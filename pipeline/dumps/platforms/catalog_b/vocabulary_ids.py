"""Fixed ids of the dump's vocabulary: relationship types, release types and statuses, placeholder entities.

By `gid`, never by row number: numbers are an internal matter of the exporting database.
"""

from __future__ import annotations

PERFORMANCE = "a3005666-a872-32c3-ad06-98af558e99b0"
"""Recording - work: the recording performs the work."""
REMIXER = "7950be4d-13a3-48e7-906b-5af562e39544"
"""Artist - recording."""
REMIX_OF = "bfbdb55a-b857-473a-8f2e-a9c09e45c3f5"
"""Recording - recording: entity0 is a remix of entity1."""
KARAOKE_VERSION = "39a08d0e-26e4-44fb-ae19-906f5fe9435d"
"""Recording - recording: entity1 is a karaoke version of entity0."""

PERFORMANCE_TRAITS = {
    "70007db6-a8bc-46d7-a770-80e6a0bb551a": "live",
    "c031ed4f-c9bb-4394-8cf5-e8ce4db512ae": "instrumental",
    "1e8536bd-6eda-3822-8e78-1c0f4d3d2113": "cover",
    "37da3398-5d1b-4acb-be25-df95e33e423c": "medley",
}
"""Attributes of a performance relationship -> trait of the recording."""

OFFICIAL_STATUSES = ("4e304316-386d-3409-af2e-78857eec5cfe", "518ffc83-5cde-34df-8627-81bff5093d92")
"""Official and Promotion. Any other status (bootleg, pseudo-release, withdrawn, cancelled, expunged) is not official; no status is."""

RELEASE_TYPES = {
    "f529b476-6e62-324f-b0aa-1f3e33d313fc": "album",
    "d6038452-8ee0-3f68-affc-2de9a1ede0b9": "single",
    "6d0c5bf6-7a33-3420-a519-44fc63eedebf": "ep",
}
"""Primary types; the rest (broadcast, other) is `other`."""
COMPILATION = "dd2a21e1-0c00-3729-a7a0-de60b84eb5d1"
DJ_MIX = "0d47f47a-3fe5-3d69-ac9d-d566c23968bf"
"""Secondary types of collections of what existed before."""

VARIOUS_ARTISTS = "89ad4ac3-39f7-470e-963a-56509c546377"
PLACEHOLDER_ARTISTS = (
    VARIOUS_ARTISTS,
    "c06aa285-520e-40c0-b776-83d2c9e8a6d1",  # Deleted Artist
    "f731ccc4-e22a-43af-a747-64213329e088",  # [anonymous]
    "33cf029c-63b0-41a0-9855-be2a3665fb3b",  # [data]
    "314e1c25-dde7-4e4d-b2f4-0a7b9f7c56dc",  # [dialogue]
    "eec63d3c-3b81-4ad4-b1e4-7c147d4d2b61",  # [no artist]
    "9be7f096-97ec-4615-8957-8d40b5dcbc41",  # [traditional]
    "125ec42a-7229-4250-afc5-e057484327fe",  # [unknown]
)
PLACEHOLDER_LABELS = (
    "157afde4-4bf5-4039-8ad2-5a15acc85176",  # [no label]
    "f43e252d-9ebf-4e8e-bba8-36d080756cc1",  # Deleted Label
)


def build_sql_list(values: tuple[str, ...]) -> str:
    """Return constants of this module for `IN (...)`."""
    return ", ".join(f"'{value}'" for value in values)
