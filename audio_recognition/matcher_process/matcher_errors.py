"""The errors of a matcher that gave no answer."""

from __future__ import annotations


class MatcherUnavailableError(Exception):
    """No answer now; the request may be sent again after `retry_after` seconds, a whole number of at least 1."""

    def __init__(self, message: str, retry_after: int) -> None:
        """Store both. `message` is for the log: it may name paths."""
        super().__init__(message)
        self.retry_after = retry_after


class MatcherBusyError(MatcherUnavailableError):
    """The queue is full, or the request waited too long in it."""


class MatcherDownError(MatcherUnavailableError):
    """Nothing listens on the socket, the process died with the request, or it has no index open."""


class MatcherFailedError(Exception):
    """The matcher failed on this one request. This is a bug, reported in its log; other requests are answered."""
