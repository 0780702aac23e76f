"""Why an upload was not decoded although nothing is known to be wrong with it. What is wrong with audio is decoding/errors.py's."""

from __future__ import annotations


class SandboxUnavailableError(Exception):
    """Not decoded now; the same upload may be sent again after `retry_after` seconds, a whole number of at least 1."""

    def __init__(self, message: str, retry_after: int = 1) -> None:
        """`message` is for the log."""
        super().__init__(message)
        self.retry_after = retry_after


class SandboxBusyError(SandboxUnavailableError):
    """As many uploads are waiting for their turn as may wait."""


class SandboxDownError(SandboxUnavailableError):
    """No process can be had to decode in."""
