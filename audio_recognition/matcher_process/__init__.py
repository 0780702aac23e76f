"""The matcher as a process of its own, shared by whoever asks: one index mapped once, a bounded queue, answers in order of arrival.

`MatcherClient` is what others use. Here live the frames on the socket (frames.py), both ends of it (client.py, service.py), which index is
asked (live_index.py) and what is counted (meters.py). What must not live here: what makes a match (matching), who may ask (catalog_api).
"""

from audio_recognition.matcher_process.client import MatcherClient
from audio_recognition.matcher_process.errors import MatcherBusyError, MatcherDownError, MatcherUnavailableError

__all__ = ["MatcherBusyError", "MatcherClient", "MatcherDownError", "MatcherUnavailableError"]
