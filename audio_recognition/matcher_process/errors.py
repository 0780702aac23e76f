"""Why a matcher gave no answer."""

from __future__ import annotations


class MatcherUnavailableError(Exception):
    """No answer now; the same request may be sent again after `retry_after` seconds, a whole number of at least 1."""

    def __init__(self, message: str, retry_after: int) -> None:
        """`message` is for the log: it may name paths."""
        super().__init__(message)
        self.retry_after = retry_after


class MatcherBusyError(MatcherUnavailableError):
    """Its queue is full, or the request's turn did not come in time."""


class MatcherDownError(MatcherUnavailableError):
    """Nobody listens on the socket, the process died with the request, or it has no index open."""


class MatcherFailedError(Exception):
    """The matcher could not make anything of this very request: a bug, told in its log; others are answered."""
