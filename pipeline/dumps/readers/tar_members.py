"""Tar headers read strictly: a damaged one is an error, not the end of the archive.

In scope: what the library's own reader lets pass. Out of scope: which members a dump has.
"""

from __future__ import annotations

import tarfile
from tarfile import HeaderError, ReadError
from typing import Self

LARGEST_HEADER_BYTES = 1 << 20
"""Most bytes of names and attributes before a member; the library reads them whole."""
_HEADERS = (*tarfile.GNU_TYPES, tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)


class WholeMember(tarfile.TarInfo):
    """Member whose header is checked. The library takes a damaged header for the end of the archive and silently drops the rest."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """Parse a header. Raises ReadError for an extended header that would fill the memory, and for sparse files."""
        member = super().frombuf(buf, encoding, errors)
        # The library unpacks holes as zeros: a few bytes could become terabytes.
        if member.type == tarfile.GNUTYPE_SPARSE:
            raise ReadError(f"{member.name[:100]} is a sparse file, which an export never is")
        if member.type in _HEADERS and member.size > LARGEST_HEADER_BYTES:
            raise ReadError(f"a header of {member.size:,} bytes")
        return member

    @classmethod
    def fromtarfile(cls, tarfile: tarfile.TarFile) -> Self:
        """Read the next header. Raises ReadError for every damaged one; only the block of zeros ends the archive."""
        try:
            return super().fromtarfile(tarfile)
        except HeaderError as error:
            if type(error).__name__ == "EOFHeaderError":  # the library keeps the class to itself
                raise
            raise ReadError(f"{error} where a member must begin") from error
