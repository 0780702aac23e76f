"""Audio files to samples: the format of bytes, and mono int16 at 11025 Hz from any of the seven supported formats.

Everything decodes in the calling process. audio_recognition.uploads decodes files of strangers in a sandbox.
"""

from audio_recognition.decoding.audio_errors import AudioError, UndecodableAudioError, UnsupportedAudioError
from audio_recognition.decoding.decoder import decode
from audio_recognition.decoding.formats import SNIFFED_BYTES, sniff

__all__ = ["SNIFFED_BYTES", "AudioError", "UndecodableAudioError", "UnsupportedAudioError", "decode", "sniff"]
