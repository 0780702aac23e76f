"""What can be wrong with an index of fingerprints."""

from __future__ import annotations

from typing import ClassVar


class IndexInvalidError(Exception):
    """The folder holds no index, one of another format, or one that is damaged."""

    code: ClassVar[str] = "fingerprint_index_invalid"


class FingerprintsInvalidError(ValueError):
    """What was to be indexed are no fingerprints."""

    code: ClassVar[str] = "fingerprints_invalid"
