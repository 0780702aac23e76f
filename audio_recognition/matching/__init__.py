"""Recognition of the recording that contains a fingerprint: lookups in the index, comparison bit by bit, a verdict with a confidence.

`Matcher` is the interface. query.py checks the query, candidates.py finds places, alignment.py compares and confidence.py rates.
`compare_pair` compares two known fingerprints without an index. Audio, processes, sockets and the meaning of a recording do not belong
here.
"""

from audio_recognition.matching.answers import Answer, Match, Method, Reason
from audio_recognition.matching.matcher import Matcher
from audio_recognition.matching.pace import OWN_PACE, SPEEDS, TEMPOS, Pace, stretch
from audio_recognition.matching.pair_comparison import PairComparison, compare_pair
from audio_recognition.matching.query import FEWEST_ITEMS, SURE_ITEMS

__all__ = [
    "FEWEST_ITEMS",
    "OWN_PACE",
    "SPEEDS",
    "SURE_ITEMS",
    "TEMPOS",
    "Answer",
    "Match",
    "Matcher",
    "Method",
    "Pace",
    "PairComparison",
    "Reason",
    "compare_pair",
    "stretch",
]
