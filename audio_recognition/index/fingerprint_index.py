"""An open index: mapped arrays shared by all processes that open it, lookup of codes, reading of stored items.

Sizes are checked against each other on opening, so a truncated file is refused and never read beyond its end. The snapshot checks
checksums.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from audio_recognition.index.index_errors import IndexInvalidError
from audio_recognition.index.layout import (
    ADDRESS_BITS,
    FORMAT,
    INDEX_FILE,
    ITEM_POSTINGS,
    LANDMARK_POSTINGS,
    READ_VERSIONS,
    SAMPLE_BITS,
    SEGMENT_FILE,
    VOID,
)
from audio_recognition.landmarks import CODE_BITS
from catalog_store.array_files import map_array
from catalog_store.format_versions import explain_unreadable

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from audio_recognition.index.layout import PostingFiles


class _IndexFile(msgspec.Struct, frozen=True):
    format: str
    format_version: int
    segments: tuple[str, ...]


class SegmentFacts(msgspec.Struct, frozen=True):
    """segment.json, field by field as in layout.py."""

    recordings: int
    items: int
    stored: int
    postings: int
    bucket_bits: int
    ordinal_bits: int
    landmarks: int = 0
    landmark_bucket_bits: int = 0


@dataclass(frozen=True)
class FoundPostings:
    """Found postings: posting i is of probe probes[i], in fingerprint ordinals[i] at position places[i]."""

    probes: NDArray[np.int64]
    ordinals: NDArray[np.int64]
    places: NDArray[np.int64]


class PostingLists:
    """The open postings of one kind of codes in a segment."""

    def __init__(
        self, folder: Path, files: PostingFiles, count: int, *, bucket_bits: int, ordinal_bits: int, address_bits: int, sample_bits: int
    ) -> None:
        """Open the files of `count` postings; IndexInvalidError when they are missing, truncated or do not fit together."""
        self._bucket_bits, self._ordinal_bits = bucket_bits, ordinal_bits
        self._address_bits, self._sample_bits = address_bits, sample_bits
        self._starts = _map_column(folder / files.starts, None, (1 << bucket_bits) + 1)
        self._words = _map_column(folder / files.words, np.dtype(np.uint32), count)
        self._places = _map_column(folder / files.places, np.dtype(np.uint16), count)
        # The starts are trusted without checks from here on.
        if self._starts[-1] != count:
            raise IndexInvalidError(f"{folder}: the starts in {files.starts} do not end where the postings do; rebuild the index")

    def find(self, codes: NDArray[np.uint32], *, longest: int, most: int) -> FoundPostings:
        """Return the postings of sampled codes, in their order.

        Buckets of more than `longest` postings prove nothing and are skipped. Of the others the shortest are read, at most `most` postings
        in all.
        """
        tag_bits = self._address_bits - self._bucket_bits
        addresses = codes >> np.uint32(self._sample_bits)
        buckets = addresses >> np.uint32(tag_bits)
        starts = self._starts[buckets].astype(np.int64)
        lengths = self._starts[buckets + np.uint32(1)].astype(np.int64) - starts
        # Before the sum: buckets that are skipped anyway must not use up the limit.
        lengths[lengths > longest] = 0
        if lengths.sum() > most:
            # The shortest buckets hold the rarest items, which prove most.
            shortest_first = np.argsort(lengths, kind="stable")
            lengths[shortest_first[np.cumsum(lengths[shortest_first]) > most]] = 0
        probes = np.repeat(np.arange(len(codes)), lengths)
        # The place of a posting is the start of its probe's bucket, and its number in the bucket.
        at = np.arange(len(probes)) + (starts - np.cumsum(lengths) + lengths)[probes]
        words = self._words[at]
        tags = addresses & np.uint32((1 << tag_bits) - 1)
        # A bucket mixes several codes; the tag, the rest of the address, distinguishes them.
        fits = (words >> np.uint32(self._ordinal_bits)) == tags[probes] if tag_bits else np.ones(len(at), np.bool_)
        words, probes, at = words[fits], probes[fits], at[fits]
        ordinals = (words & np.uint32((1 << self._ordinal_bits) - 1)).astype(np.int64)
        return FoundPostings(probes, ordinals, self._places[at].astype(np.int64))


class Segment:
    """One open segment."""

    def __init__(self, folder: Path) -> None:
        """Open the files; IndexInvalidError when they are missing, truncated or do not fit together."""
        self.name = folder.name
        try:
            self.facts = facts = msgspec.json.decode((folder / SEGMENT_FILE).read_bytes(), type=SegmentFacts)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise IndexInvalidError(f"{folder / SEGMENT_FILE} cannot be read: {error}; rebuild the index") from error
        self.ids = _map_column(folder / "ids.npy", np.dtype(np.int64), facts.recordings)
        self.seconds = _map_column(folder / "seconds.npy", np.dtype(np.uint16), facts.recordings)
        self.store = _map_column(folder / "store.npy", np.dtype(np.uint32), facts.stored)
        self.store_starts = _map_column(folder / "store_starts.npy", None, facts.recordings + 1)
        # The starts are trusted without checks from here on.
        if self.store_starts[-1] != facts.stored:
            raise IndexInvalidError(f"{folder}: the starts do not end where the store does; rebuild the index")
        self.postings = PostingLists(
            folder,
            ITEM_POSTINGS,
            facts.postings,
            bucket_bits=facts.bucket_bits,
            ordinal_bits=facts.ordinal_bits,
            address_bits=ADDRESS_BITS,
            sample_bits=SAMPLE_BITS,
        )
        self.landmarks = None
        """Pairs of peaks; None when no fingerprint of the segment has any."""
        if facts.landmarks:
            self.landmarks = PostingLists(
                folder,
                LANDMARK_POSTINGS,
                facts.landmarks,
                bucket_bits=facts.landmark_bucket_bits,
                ordinal_bits=facts.ordinal_bits,
                address_bits=CODE_BITS,
                sample_bits=0,
            )


class Index:
    """The open segments, oldest first."""

    def __init__(self, segments: tuple[Segment, ...], format_version: int) -> None:
        """Use `open` instead."""
        self.segments = segments
        self.format_version = format_version

    @classmethod
    def open(cls, folder: Path) -> Index:
        """Open an index; IndexInvalidError, naming the file, when it is not a whole index of this format."""
        try:
            content = msgspec.json.decode((folder / INDEX_FILE).read_bytes(), type=_IndexFile)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise IndexInvalidError(f"{folder / INDEX_FILE} cannot be read: {error}; rebuild the index") from error
        if content.format != FORMAT:
            raise IndexInvalidError(f"{folder} has format {content.format}, this program reads {FORMAT}: rebuild the index")
        if content.format_version not in READ_VERSIONS:
            raise IndexInvalidError(f"{folder} has format {FORMAT} {explain_unreadable(content.format_version, READ_VERSIONS)}")
        return cls(tuple(Segment(folder / name) for name in content.segments), content.format_version)

    @property
    def has_landmarks(self) -> bool:
        """Return whether any fingerprint of the index has landmarks."""
        return any(segment.landmarks is not None for segment in self.segments)

    @property
    def recordings(self) -> int:
        """Return the number of fingerprints in the index."""
        return sum(int((segment.ids != VOID).sum()) for segment in self.segments)


def _map_column(path: Path, dtype: np.dtype[Any] | None, length: int) -> NDArray[Any]:
    try:
        column = map_array(path)
    except (OSError, ValueError, EOFError) as error:
        raise IndexInvalidError(f"{path} cannot be read: {error}; rebuild the index") from error
    if column.ndim != 1 or len(column) != length:
        raise IndexInvalidError(f"{path} holds {column.shape} values where {length} are expected; rebuild the index")
    if column.dtype != dtype and (dtype is not None or column.dtype not in (np.dtype(np.uint32), np.dtype(np.uint64))):
        raise IndexInvalidError(f"{path} holds values of type {column.dtype}; rebuild the index")
    return column
