"""Names the recordings that a fingerprint is a piece of: look-ups in the index, comparison bit by bit, a verdict with a confidence.

`Matcher` is what others use. Here live what may be asked (query.py), where it might fit (candidates.py), how well (alignment.py) and
what that is worth (confidence.py). What must not live here: audio, processes and sockets, what a recording is.
"""

from audio_recognition.matching.answers import Answer, Match, Reason
from audio_recognition.matching.matcher import Matcher
from audio_recognition.matching.query import FEWEST_ITEMS

__all__ = ["FEWEST_ITEMS", "Answer", "Match", "Matcher", "Reason"]
