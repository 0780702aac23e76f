"""The errors of an upload that was not decoded for reasons of the server. Faults of the audio are in decoding/audio_errors.py."""

from __future__ import annotations


class SandboxUnavailableError(Exception):
    """Not decoded now; the upload may be sent again after `retry_after` seconds, a whole number of at least 1."""

    def __init__(self, message: str, retry_after: int = 1) -> None:
        """Store both. `message` is for the log."""
        super().__init__(message)
        self.retry_after = retry_after


class SandboxBusyError(SandboxUnavailableError):
    """The largest number of uploads is waiting already."""


class SandboxDownError(SandboxUnavailableError):
    """No decoding process is available."""
