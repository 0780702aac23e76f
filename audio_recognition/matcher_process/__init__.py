"""The matcher as a process of its own, shared by all callers: one index mapped once, a bounded queue, answers in order of arrival.

`MatcherClient` is the interface. frames.py defines the frames on the socket, client.py and service.py its two ends, live_index.py follows
the live index and meters.py counts. Matching belongs in matching, permissions in catalog_api.
"""

from audio_recognition.matcher_process.client import MatcherClient
from audio_recognition.matcher_process.matcher_errors import MatcherBusyError, MatcherDownError, MatcherUnavailableError

__all__ = ["MatcherBusyError", "MatcherClient", "MatcherDownError", "MatcherUnavailableError"]
