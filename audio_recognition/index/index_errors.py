"""The errors of an index of fingerprints."""

from __future__ import annotations

from typing import ClassVar


class IndexInvalidError(Exception):
    """The folder holds no index, one of another format, or a damaged one."""

    code: ClassVar[str] = "fingerprint_index_invalid"


class FingerprintsInvalidError(ValueError):
    """The values to index are not fingerprints."""

    code: ClassVar[str] = "fingerprints_invalid"
