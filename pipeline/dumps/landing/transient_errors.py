"""Faults of upstreams that may be gone in a minute."""

from __future__ import annotations

import errno
from http import HTTPStatus

import aiohttp

_LASTING = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ENAMETOOLONG}
_PASSING_ANSWERS = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS}


def is_transient(error: Exception) -> bool:
    """Return whether another try in a minute may succeed: no connection, a time-out, an overloaded server."""
    if isinstance(error, aiohttp.ClientResponseError):
        return error.status >= HTTPStatus.INTERNAL_SERVER_ERROR or error.status in _PASSING_ANSWERS
    if isinstance(error, (FileNotFoundError, PermissionError, NotADirectoryError, IsADirectoryError, FileExistsError, aiohttp.InvalidURL)):
        return False
    if isinstance(error, OSError):
        return error.errno not in _LASTING
    return isinstance(error, (aiohttp.ClientError, TimeoutError))
