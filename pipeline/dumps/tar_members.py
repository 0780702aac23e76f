"""Tar headers read strictly: a damaged one is an error, not the end of the archive.

What lives here: what the library's own reader lets pass. What must not live here: which members a dump has.
"""

from __future__ import annotations

import tarfile
from tarfile import HeaderError, ReadError
from typing import Self


class WholeMember(tarfile.TarInfo):
    """Says so when a header is damaged or missing; the library takes that for the end of the archive and silently drops what follows."""

    @classmethod
    def fromtarfile(cls, tarfile: tarfile.TarFile) -> Self:
        """As the library's; ReadError for every header but the block of zeros at the end."""
        try:
            return super().fromtarfile(tarfile)
        except HeaderError as error:
            if type(error).__name__ == "EOFHeaderError":  # the library keeps the class to itself
                raise
            raise ReadError(f"{error} where a member must begin") from error
