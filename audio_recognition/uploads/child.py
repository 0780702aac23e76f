"""The process that decodes one file. It is confined before it reads a byte, opens the file, answers one window after the other, and exits.

fork_server.py forks it, and it never sees a second file: any effect of a crafted file ends with it.
"""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from audio_recognition.chromaprint import SAMPLE_RATE, fingerprint_phases_softly
from audio_recognition.chromaprint.speeds import SpeedFingerprinter
from audio_recognition.decoding.audio_errors import AudioError, UnsupportedAudioError
from audio_recognition.decoding.decoder import AudioFile
from audio_recognition.landmarks import find_peaks
from audio_recognition.uploads.confinement import confine
from audio_recognition.uploads.limits import MOST_READ_SECONDS, WINDOW_SECONDS
from audio_recognition.uploads.messages import (
    LONGEST_MESSAGE,
    LONGEST_TEXT,
    MOST_PEAKS,
    FileFacts,
    Hello,
    Refusal,
    WindowItems,
    WindowPeaks,
    WindowRequest,
    pack_message,
)
from audio_recognition.uploads.sound_choice import ChosenSound, choose_sound

if TYPE_CHECKING:
    from typing import BinaryIO

    from audio_recognition.uploads.limits import Limits


def serve_one_file(file: BinaryIO, channel: socket.socket, limits: Limits) -> None:
    """Confine this process for good, then answer on `channel` until the server closes it or the file is refused."""
    # Before the confinement, whose list of system calls has no pidfd_open.
    process = os.pidfd_open(os.getpid())
    has_filter = confine(limits)
    socket.send_fds(channel, [pack_message(Hello(has_filter))], [process])
    try:
        with AudioFile(file) as audio:
            channel.send(pack_message(FileFacts(audio.format, audio.codec, audio.duration_seconds)))
            windows = WindowReader(audio)
            while packet := channel.recv(LONGEST_MESSAGE):
                channel.send(pack_message(windows.answer(msgspec.msgpack.decode(packet, type=WindowRequest))))
    except AudioError as error:
        channel.send(pack_message(Refusal(isinstance(error, UnsupportedAudioError), str(error)[:LONGEST_TEXT])))
    # RLIMIT_AS makes an allocation fail; the process itself is sound and can still answer.
    except MemoryError:
        channel.send(pack_message(Refusal(is_unsupported=False, message="the file takes more memory than decoding may have")))
    except Exception as error:  # noqa: BLE001 - a crafted file may cause any error in a decoder, and the server needs an answer
        channel.send(pack_message(Refusal(is_unsupported=False, message=f"decoding this file failed ({type(error).__name__})")))


class WindowReader:
    """The windows of one file. The last one stays in memory, because a miss asks for it at several speeds."""

    def __init__(self, audio: AudioFile) -> None:
        """Read nothing yet."""
        self._audio = audio
        self._window: tuple[float, bool] | None = None
        self._sound = ChosenSound(np.zeros(0, np.int16), 0, 0)
        self._speeds: SpeedFingerprinter | None = None

    def answer(self, ask: WindowRequest) -> WindowItems | WindowPeaks:
        """Decode one window and return its items or its peaks. UndecodableAudioError."""
        if (ask.start_seconds, ask.is_whole) != self._window:
            self._sound = self._read_sound(ask)
            self._window, self._speeds = (ask.start_seconds, ask.is_whole), None
        sound = self._sound
        if ask.wants_peaks:
            return WindowPeaks(find_peaks(sound.samples)[:MOST_PEAKS].astype("<u4").tobytes())
        if ask.speed == 1:
            phases = fingerprint_phases_softly(sound.samples)
        else:
            self._speeds = self._speeds or SpeedFingerprinter(sound.samples)
            phases = self._speeds.fingerprint(ask.speed)
        return WindowItems(
            start_seconds=ask.start_seconds + sound.start / SAMPLE_RATE,
            read_seconds=sound.read / SAMPLE_RATE,
            seconds=len(sound.samples) / SAMPLE_RATE,
            fingerprints=tuple(one.items.astype("<u4").tobytes() for one in phases),
            weak_bits=tuple(one.weak_bits.tobytes() for one in phases),
        )

    def _read_sound(self, ask: WindowRequest) -> ChosenSound:
        if not ask.is_whole:
            return choose_sound(self._audio.iterate_samples(ask.start_seconds, MOST_READ_SECONDS))
        samples = np.concatenate([np.zeros(0, np.int16), *self._audio.iterate_samples(ask.start_seconds, WINDOW_SECONDS)])
        return ChosenSound(samples, 0, len(samples))
