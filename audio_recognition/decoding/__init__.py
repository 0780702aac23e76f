"""Audio files to samples: what format bytes are in, and mono int16 at 11025 Hz out of any of the seven formats that are taken.

Everything decodes in the calling process. What strangers send goes through audio_recognition.uploads, which does it in a sandbox.
"""

from audio_recognition.decoding.decoder import decode
from audio_recognition.decoding.errors import AudioError, UndecodableAudioError, UnsupportedAudioError
from audio_recognition.decoding.formats import SNIFFED_BYTES, sniff

__all__ = ["SNIFFED_BYTES", "AudioError", "UndecodableAudioError", "UnsupportedAudioError", "decode", "sniff"]
