"""The reference fingerprinter, Debian's libchromaprint1, through ctypes: ours is compared with it bit by bit.

The product never needs it.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import numpy as np

from audio_recognition.chromaprint import SAMPLE_RATE

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NAME = "libchromaprint.so.1"
_ALGORITHM_2 = 1


class LibChromaprint:
    """The loaded library. OSError where it is not installed."""

    def __init__(self) -> None:
        """Find the library as the linker does."""
        self._library = ctypes.CDLL(_NAME)
        self._library.chromaprint_new.restype = ctypes.c_void_p
        self._library.chromaprint_get_version.restype = ctypes.c_char_p
        self.version = self._library.chromaprint_get_version().decode()

    def fingerprint(self, samples: NDArray[np.int16]) -> NDArray[np.uint32]:
        """Return the items of `int16[n]` samples, mono at `SAMPLE_RATE`."""
        library, samples = self._library, np.ascontiguousarray(samples, np.int16)
        context = ctypes.c_void_p(library.chromaprint_new(_ALGORITHM_2))
        items, count = ctypes.POINTER(ctypes.c_uint32)(), ctypes.c_int()
        try:
            library.chromaprint_start(context, SAMPLE_RATE, 1)
            library.chromaprint_feed(context, samples.ctypes.data_as(ctypes.c_void_p), len(samples))
            library.chromaprint_finish(context)
            library.chromaprint_get_raw_fingerprint(context, ctypes.byref(items), ctypes.byref(count))
            if not count.value:
                return np.empty(0, np.uint32)
            answer = np.ctypeslib.as_array(items, (count.value,)).copy()
        finally:
            library.chromaprint_free(context)
        library.chromaprint_dealloc(items)
        return answer

    def compress(self, items: NDArray[np.uint32]) -> str:
        """Return the text form of the items."""
        library, items = self._library, np.ascontiguousarray(items, np.uint32)
        text, size = ctypes.c_char_p(), ctypes.c_int()
        pointer = items.ctypes.data_as(ctypes.c_void_p)
        library.chromaprint_encode_fingerprint(pointer, len(items), _ALGORITHM_2, ctypes.byref(text), ctypes.byref(size), 1)
        answer = ctypes.string_at(text, size.value).decode()
        library.chromaprint_dealloc(text)
        return answer
