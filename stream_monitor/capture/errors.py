"""What can go wrong with a source, in words that the stream's owner can act on. They become the stream's `last_error`."""

from __future__ import annotations


class CaptureError(Exception):
    """The source gives no sound now; it may do so later."""

    is_lasting = False
    """Whether trying again soon is pointless."""


class LastingCaptureError(CaptureError):
    """The address has to be changed, or the source: refused, forbidden, no audio stream. Still tried again, seldom."""

    is_lasting = True


class DecoderError(CaptureError):
    """The process that decodes the stream ended, hung, or said what it may not: the stream's doing, or the machine's."""
