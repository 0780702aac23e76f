"""Errors of a source. Their messages become the stream's `last_error`, so they tell its owner what to do."""

from __future__ import annotations


class CaptureError(Exception):
    """The source gives no sound now, and may later."""

    is_lasting = False
    """An early retry is pointless."""


class LastingCaptureError(CaptureError):
    """The address or the source must change: refused, forbidden, no audio stream. Retries are rare."""

    is_lasting = True


class DecoderError(CaptureError):
    """The decoding process ended, hung, or broke the protocol: the fault of the stream or of the machine."""
