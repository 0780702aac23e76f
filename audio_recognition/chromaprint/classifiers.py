"""Normalised chroma to items: sixteen classifiers over a window of sixteen rows give two bits each, the second half of the algorithm.

A classifier compares the sums of two areas of the window, read from an integral image. The table belongs to the published algorithm and is
not tuned here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from audio_recognition.chromaprint.chroma import NOTES
from audio_recognition.chromaprint.configuration import WINDOW_ROWS

if TYPE_CHECKING:
    from numpy.typing import NDArray

INTEGRAL_COLUMNS: Final = NOTES + 1


class _Area(NamedTuple):
    """Rows `[x0, x1)` (time) and notes `[y0, y1)` of the window."""

    x0: int
    y0: int
    x1: int
    y1: int


class _Classifier(NamedTuple):
    shape: int
    """Selects the compared parts of the rectangle: see `list_areas`."""
    y: int
    height: int
    width: int
    thresholds: tuple[float, float, float]

    def list_areas(self) -> tuple[list[_Area], list[_Area]]:
        """Return the two sides of the comparison. Rectangles start at the window's first row and at note `y`."""
        w, y, h = self.width, self.y, self.height
        x_half, y_half = w // 2, y + h // 2
        x_third, x_two_thirds, y_third, y_two_thirds = w // 3, 2 * (w // 3), y + h // 3, y + 2 * (h // 3)
        match self.shape:
            case 0:
                return [_Area(0, y, w, y + h)], []
            case 1:
                return [_Area(0, y_half, w, y + h)], [_Area(0, y, w, y_half)]
            case 2:
                return [_Area(x_half, y, w, y + h)], [_Area(0, y, x_half, y + h)]
            case 3:
                return (
                    [_Area(0, y_half, x_half, y + h), _Area(x_half, y, w, y_half)],
                    [_Area(0, y, x_half, y_half), _Area(x_half, y_half, w, y + h)],
                )
            case 4:
                return [_Area(0, y_third, w, y_two_thirds)], [_Area(0, y, w, y_third), _Area(0, y_two_thirds, w, y + h)]
            case 5:
                return [_Area(x_third, y, x_two_thirds, y + h)], [_Area(0, y, x_third, y + h), _Area(x_two_thirds, y, w, y + h)]
            case _:
                raise ValueError(f"no classifier has shape {self.shape}")


CLASSIFIERS: Final = (
    _Classifier(0, 4, 3, 15, (1.98215, 2.35817, 2.63523)),
    _Classifier(4, 4, 6, 15, (-1.03809, -0.651211, -0.282167)),
    _Classifier(1, 0, 4, 16, (-0.298702, 0.119262, 0.558497)),
    _Classifier(3, 8, 2, 12, (-0.105439, 0.0153946, 0.135898)),
    _Classifier(3, 4, 4, 8, (-0.142891, 0.0258736, 0.200632)),
    _Classifier(4, 0, 3, 5, (-0.826319, -0.590612, -0.368214)),
    _Classifier(1, 2, 2, 9, (-0.557409, -0.233035, 0.0534525)),
    _Classifier(2, 7, 3, 4, (-0.0646826, 0.00620476, 0.0784847)),
    _Classifier(2, 6, 2, 16, (-0.192387, -0.029699, 0.215855)),
    _Classifier(2, 1, 3, 2, (-0.0397818, -0.00568076, 0.0292026)),
    _Classifier(5, 10, 1, 15, (-0.53823, -0.369934, -0.190235)),
    _Classifier(3, 6, 2, 10, (-0.124877, 0.0296483, 0.139239)),
    _Classifier(2, 1, 1, 14, (-0.101475, 0.0225617, 0.231971)),
    _Classifier(3, 5, 6, 4, (-0.0799915, -0.00729616, 0.063262)),
    _Classifier(1, 9, 2, 12, (-0.272556, 0.019424, 0.302559)),
    _Classifier(3, 4, 2, 14, (-0.164292, -0.0321188, 0.0846339)),
)
"""In the order of their bits, most significant first."""

WEAK_BITS: Final = len(CLASSIFIERS)
_THRESHOLDS: Final = np.array([classifier.thresholds for classifier in CLASSIFIERS])
_SPREADS: Final = _THRESHOLDS[:, -1] - _THRESHOLDS[:, 0]
"""The scale of each classifier's values."""
# Neighbouring levels differ in one bit, so a value near a threshold costs one bit error.
_GRAY_CODE: Final = np.array([0, 1, 3, 2], dtype=np.uint32)
_BITS: Final = np.arange(2 * len(CLASSIFIERS) - 2, -1, -2, dtype=np.uint32)
"""The shift of each classifier's two bits."""


def _compute_corners() -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return `int[4, areas]`, the corners of each area (plus, minus, minus, plus) in the flat image, and `int[32]`, where each side starts.

    All first sides come before all second ones. A side without an area gets one of size 0.
    """
    first, second = zip(*(classifier.list_areas() for classifier in CLASSIFIERS), strict=True)
    # `reduceat` would take the area of the next side for an empty one.
    sides = [side or [_Area(0, 0, 0, 0)] for side in (*first, *second)]
    areas = np.array([area for side in sides for area in side], dtype=np.intp)
    x0, y0, x1, y1 = areas.T
    places = [x * INTEGRAL_COLUMNS + y for x, y in ((x1, y1), (x0, y1), (x1, y0), (x0, y0))]
    return np.stack(places), np.cumsum([0] + [len(side) for side in sides[:-1]])


_CORNERS, _SIDE_STARTS = _compute_corners()


def extend_integral_image(rows: NDArray[np.float64], before: NDArray[np.float64]) -> NDArray[np.float64]:
    """Continue the integral image: its last rows `before` (`float64[k, INTEGRAL_COLUMNS]`) and one more row for each of `rows`.

    Sums continue from the last row, one row at a time, so the image is the same for any division into pieces.
    """
    image = np.zeros((len(before) + len(rows), INTEGRAL_COLUMNS))
    image[: len(before)] = before
    np.cumsum(rows, axis=1, out=image[len(before) :, 1:])
    np.cumsum(image[len(before) - 1 :], axis=0, out=image[len(before) - 1 :])
    return image


def classify(image: NDArray[np.float64]) -> NDArray[np.uint32]:
    """Return `uint32[items]`: one item for every window of rows in an integral image of `items + WINDOW_ROWS` rows."""
    return _encode_levels((_compute_ratios(image)[:, :, None] >= _THRESHOLDS).sum(axis=2))


def classify_with_weak_bits(image: NDArray[np.float64]) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
    """Return the items as `classify` does, and their weak bits, `uint8[items, WEAK_BITS]`.

    Each classifier has one weak bit: the one that changes when its value passes the nearest threshold. Bits are counted from the lowest;
    the weakest comes first.
    """
    ratios = _compute_ratios(image)
    levels = (ratios[:, :, None] >= _THRESHOLDS).sum(axis=2)
    distances = np.abs(ratios[:, :, None] - _THRESHOLDS)
    nearest = distances.argmin(axis=2)
    beyond = np.where(levels > nearest, nearest, nearest + 1)
    # Gray codes of neighbouring levels differ in one bit: 1 or 2 in the classifier's pair.
    bits = ((_GRAY_CODE[levels] ^ _GRAY_CODE[beyond]) >> np.uint32(1)) + _BITS
    order = (distances.min(axis=2) / _SPREADS).argsort(axis=1, kind="stable")
    return _encode_levels(levels), np.take_along_axis(bits, order, axis=1).astype(np.uint8)


def _compute_ratios(image: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return `float64[items, classifiers]`, the values that thresholds cut into levels."""
    count = max(0, len(image) - WINDOW_ROWS)
    flat, windows = image.reshape(-1), np.arange(count)[:, None] * INTEGRAL_COLUMNS
    lower_right, upper_right, lower_left, upper_left = (flat[windows + corner] for corner in _CORNERS)
    # The algorithm compares log((1 + a) / (1 + b)), which is defined for silent areas too.
    sides = 1 + np.add.reduceat(lower_right - upper_right - lower_left + upper_left, _SIDE_STARTS, axis=1)
    ratios: NDArray[np.float64] = np.log(sides[:, : len(CLASSIFIERS)] / sides[:, len(CLASSIFIERS) :])
    return ratios


def _encode_levels(levels: NDArray[np.int64]) -> NDArray[np.uint32]:
    items: NDArray[np.uint32] = np.bitwise_or.reduce(_GRAY_CODE[levels] << _BITS, axis=1)
    return items
