"""The errors of submitted audio: one class per cause, each with a code that never changes.

HTTP does not belong here: the server decides what a code means. Messages are for people and name the finding.
"""

from __future__ import annotations

from typing import ClassVar


class AudioError(Exception):
    """The base class of all faults of the audio itself; the same audio will always be refused."""

    code: ClassVar[str] = "audio_error"


class UnsupportedAudioError(AudioError):
    """The bytes are in no supported format, or the audio is coded by an unsupported codec."""

    code = "unsupported_audio"


class UndecodableAudioError(AudioError):
    """The format is supported, but no sound comes out: broken, empty, or beyond the limits of decoding."""

    code = "undecodable_audio"
