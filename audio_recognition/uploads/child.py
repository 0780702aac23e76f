"""The process that decodes one file. It is confined before it reads a byte, opens the file, answers one window after the other, and exits.

fork_server.py forks it, and it never sees a second file: any effect of a crafted file ends with it.
"""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import msgspec

from audio_recognition.chromaprint import SAMPLE_RATE, fingerprint_phases
from audio_recognition.decoding.audio_errors import AudioError, UnsupportedAudioError
from audio_recognition.decoding.decoder import AudioFile
from audio_recognition.uploads.confinement import confine
from audio_recognition.uploads.limits import MOST_READ_SECONDS
from audio_recognition.uploads.messages import (
    LONGEST_MESSAGE,
    LONGEST_TEXT,
    FileFacts,
    Hello,
    Refusal,
    WindowItems,
    WindowRequest,
    pack_message,
)
from audio_recognition.uploads.sound_choice import choose_sound

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
            while packet := channel.recv(LONGEST_MESSAGE):
                channel.send(pack_message(fingerprint_window(audio, msgspec.msgpack.decode(packet, type=WindowRequest))))
    except AudioError as error:
        channel.send(pack_message(Refusal(isinstance(error, UnsupportedAudioError), str(error)[:LONGEST_TEXT])))
    # RLIMIT_AS makes an allocation fail; the process itself is sound and can still answer.
    except MemoryError:
        channel.send(pack_message(Refusal(is_unsupported=False, message="the file takes more memory than decoding may have")))
    except Exception as error:  # noqa: BLE001 - a crafted file may cause any error in a decoder, and the server needs an answer
        channel.send(pack_message(Refusal(is_unsupported=False, message=f"decoding this file failed ({type(error).__name__})")))


def fingerprint_window(audio: AudioFile, ask: WindowRequest) -> WindowItems:
    """Decode one window and return its items. UndecodableAudioError."""
    sound = choose_sound(audio.iterate_samples(ask.start_seconds, MOST_READ_SECONDS))
    items = tuple(one.astype("<u4").tobytes() for one in fingerprint_phases(sound.samples))
    start_seconds = ask.start_seconds + sound.start / SAMPLE_RATE
    return WindowItems(start_seconds, sound.read / SAMPLE_RATE, len(sound.samples) / SAMPLE_RATE, items)
