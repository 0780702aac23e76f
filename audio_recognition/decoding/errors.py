"""What can be wrong with audio that somebody hands in: one class per cause, each with a code that never changes.

Whoever serves decides what a code means there: here nothing knows of HTTP. Messages are for people and name what was found.
"""

from __future__ import annotations

from typing import ClassVar


class AudioError(Exception):
    """Root of everything that is wrong with the audio itself; the same audio is never going to be taken."""

    code: ClassVar[str] = "audio_error"


class UnsupportedAudioError(AudioError):
    """The bytes are in none of the formats that are taken, or hold audio in a coding that is not."""

    code = "unsupported_audio"


class UndecodableAudioError(AudioError):
    """The format is one that is taken, but no sound comes out: broken, empty, or beyond the limits of decoding."""

    code = "undecodable_audio"
