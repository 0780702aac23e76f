"""Tar headers read strictly: a damaged one is an error, not the end of the archive.

What lives here: what the library's own reader lets pass. What must not live here: which members a dump has.
"""

from __future__ import annotations

import tarfile
from tarfile import HeaderError, ReadError
from typing import Self

LARGEST_HEADER_BYTES = 1 << 20
"""Of names and attributes that stand before a member; the library reads them whole."""
_HEADERS = (*tarfile.GNU_TYPES, tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)


class WholeMember(tarfile.TarInfo):
    """Says so when a header is damaged or missing; the library takes that for the end of the archive and silently drops what follows."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """As the library's; ReadError for a header of a header that would fill the memory, and for a file that is mostly no bytes."""
        member = super().frombuf(buf, encoding, errors)
        if member.type == tarfile.GNUTYPE_SPARSE:
            raise ReadError(f"{member.name[:100]} is a sparse file, which an export never is")
        if member.type in _HEADERS and member.size > LARGEST_HEADER_BYTES:
            raise ReadError(f"a header of {member.size:,} bytes")
        return member

    @classmethod
    def fromtarfile(cls, tarfile: tarfile.TarFile) -> Self:
        """As the library's; ReadError for every header but the block of zeros at the end."""
        try:
            return super().fromtarfile(tarfile)
        except HeaderError as error:
            if type(error).__name__ == "EOFHeaderError":  # the library keeps the class to itself
                raise
            raise ReadError(f"{error} where a member must begin") from error
