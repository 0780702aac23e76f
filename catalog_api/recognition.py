"""Name the recordings in a fingerprint or an upload: ask the matcher, decode uploads in the sandbox, look up names in the catalog.

One per worker. Out of scope: requests and answers over HTTP (routes/identify.py), prices (credit_prices.py).
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from audio_recognition.chromaprint import FIRST_ITEM_SECONDS, HOP_SAMPLES, SAMPLE_RATE, SoftFingerprint
from audio_recognition.decoding import UndecodableAudioError, UnsupportedAudioError
from audio_recognition.landmarks import cut_peaks
from audio_recognition.matcher_process import MatcherClient, MatcherUnavailableError
from audio_recognition.matching import OWN_PACE, SPEEDS, TEMPOS, Answer, Pace, Reason, stretch
from audio_recognition.timeline import Slice, list_entries
from audio_recognition.uploads import TIMELINE_LIMITS, SandboxUnavailableError, UploadSandbox
from catalog_api.problems import ApiError
from catalog_api.uploads import Spool
from catalog_api.wire.catalog_types import TrackArtist
from catalog_api.wire.matching_types import RecognitionResult, TimelineEntry

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import BinaryIO

    from numpy.typing import NDArray

    from audio_recognition.matching import Match
    from audio_recognition.uploads import Upload, Window
    from catalog_api.live_catalog import LiveCatalog
    from catalog_api.settings import ApiSettings
    from catalog_store.reader import Catalog


MOST_WINDOWS_AT_OTHER_PACES = 2
"""Windows of an upload that are searched at other paces after all have missed: its beginning and its middle. Each costs as much as two."""


MOST_TIMELINES = 1
"""At once in one worker: each takes a decoder for as long as a hundred other uploads."""
_SLICES = 3
"""Pieces of a window that are asked about one by one: 10 s each."""


class _Named(msgspec.Struct):
    """The members of a stored track that are shown."""

    title: str
    artists: list[TrackArtist]


_NAMED = msgspec.json.Decoder(_Named)


@dataclass(frozen=True)
class RecognitionOutcome:
    """The recognised recordings, best first, or the reason for none. For uploads: the windows tried, and where the last one begins."""

    results: list[RecognitionResult]
    reason: Reason | None
    windows: int = 0
    window_start_seconds: float | None = None
    timeline: list[TimelineEntry] | None = None


class Recognition:
    """Recognition for one event loop. It connects and starts processes with the first question; `close` it at the end."""

    def __init__(self, settings: ApiSettings, live: LiveCatalog) -> None:
        """`live` is the catalog of names."""
        self._live = live
        self._matcher = MatcherClient(settings.matcher_socket)
        self._sandbox = UploadSandbox(most_waiting=settings.uploads)
        self._timelines = asyncio.Semaphore(MOST_TIMELINES)
        self.spool = Spool(settings.upload_folder, most=settings.uploads, seconds=settings.upload_seconds)

    async def close(self) -> None:
        """Stop what was started."""
        await self._matcher.close()
        await self._sandbox.close()

    async def recognise_fingerprint(self, items: NDArray[np.uint32], duration_seconds: int | None) -> RecognitionOutcome:
        """Recognise one fingerprint, uint32[n], at other tempos after a miss. ApiError `recognition_unavailable`, `catalog_unavailable`."""
        # A client sends no weak bits.
        query = [SoftFingerprint(items, np.zeros((len(items), 0), np.uint8))]
        answer = await self._match(query, duration_seconds=duration_seconds)
        if answer.reason is Reason.NOT_FOUND:
            answer = _choose_best([answer, *[await self._match(stretch(query, tempo), pace=Pace(tempo)) for tempo in TEMPOS]])
        results = self._list_results(answer)
        return RecognitionOutcome(results, None if results else answer.reason or Reason.NOT_FOUND)

    async def recognise_file(self, file: BinaryIO) -> RecognitionOutcome:
        """Recognise an upload: its beginning, then deeper windows until one matches (contract E4).

        ApiError `unsupported_audio`, `undecodable_audio`, `recognition_unavailable`, `catalog_unavailable`.
        """
        reasons: list[Reason] = []
        missed: list[Window] = []
        try:
            async with self._sandbox.open(file) as upload, aclosing(upload.iterate_windows()) as windows:
                async for window in windows:
                    # The length of the file says something only about its beginning: a deeper window starts at an unknown place
                    # of the recording.
                    whole = upload.duration_seconds if window.start_seconds == 0 else None
                    answer = await self._match(window.fingerprints, duration_seconds=None if whole is None else round(whole))
                    if answer.has_landmarks:
                        answer = await self._match_landmarks(upload, window)
                    results = self._list_results(answer)
                    if results:
                        return RecognitionOutcome(results, None, len(reasons) + 1, window.start_seconds)
                    reasons.append(answer.reason or Reason.NOT_FOUND)
                    if answer.reason is Reason.NOT_FOUND and len(missed) < MOST_WINDOWS_AT_OTHER_PACES:
                        missed.append(window)
                for window in missed:
                    results = self._list_results(await self._match_at_other_paces(upload, window))
                    if results:
                        return RecognitionOutcome(results, None, len(reasons), window.start_seconds)
        except (UnsupportedAudioError, UndecodableAudioError) as error:
            raise ApiError(error.code, f"{str(error)[:1].upper()}{str(error)[1:]}.") from None
        except SandboxUnavailableError as error:
            raise _build_unavailable_error(error.retry_after) from error
        return RecognitionOutcome([], _choose_reason(reasons), len(reasons))

    async def list_tracks(self, file: BinaryIO) -> RecognitionOutcome:
        """List every track of an upload, up to `TIMELINE_LIMITS`. ApiError as of `recognise_file`."""
        slices: list[Slice] = []
        windows = 0
        try:
            async with (
                self._timelines,
                self._sandbox.open(file, TIMELINE_LIMITS) as upload,
                aclosing(upload.iterate_whole_windows()) as whole,
            ):
                async for window in whole:
                    slices += await self._match_slices(upload, window)
                    windows += 1
        except (UnsupportedAudioError, UndecodableAudioError) as error:
            raise ApiError(error.code, f"{str(error)[:1].upper()}{str(error)[1:]}.") from None
        except SandboxUnavailableError as error:
            raise _build_unavailable_error(error.retry_after) from error
        timeline: list[TimelineEntry] = []
        results: dict[str, RecognitionResult] = {}
        for entry in list_entries(slices):
            found = [] if entry.match is None else self._list_results(Answer(matches=(entry.match,)))
            for result in found:
                result.offset_seconds = round(entry.start_seconds - entry.anchor_seconds, 2)
                results.setdefault(result.id, result)
            timeline.append(TimelineEntry(round(entry.start_seconds, 2), round(entry.end_seconds, 2), found[0] if found else None))
        reasons = [one.reason for one in slices if one.reason is not None]
        return RecognitionOutcome([*results.values()], None if results else _choose_reason(reasons), windows, timeline=timeline)

    async def _match_slices(self, upload: Upload, window: Window) -> list[Slice]:
        """Return the answers about the slices of a window at its own pace."""
        items = min((len(one.items) for one in window.fingerprints), default=0)
        if not items:
            return [Slice(window.start_seconds, window.start_seconds + window.seconds, reason=Reason.TOO_SHORT)]
        bounds = [items * number // _SLICES for number in range(_SLICES + 1)]
        peaks: NDArray[np.uint32] | None = None
        slices = []
        for first, last in pairwise(bounds):
            pieces = [SoftFingerprint(one.items[first:last], one.weak_bits[first:last]) for one in window.fingerprints]
            answer = await self._match(pieces) if last > first else Answer(reason=Reason.TOO_SHORT)
            if answer.has_landmarks:
                peaks = await upload.find_peaks(window, is_whole=True) if peaks is None else peaks
                count = round((last - first) * HOP_SAMPLES + FIRST_ITEM_SECONDS * SAMPLE_RATE)
                answer = await self._ask_landmarks(pieces, cut_peaks(peaks, first * HOP_SAMPLES, count))
            start = window.start_seconds + first * HOP_SAMPLES / SAMPLE_RATE
            end = window.start_seconds + (window.seconds if last == items else last * HOP_SAMPLES / SAMPLE_RATE)
            if end > start:
                slices.append(Slice(start, end, answer.matches, answer.reason))
        return slices

    async def _match_at_other_paces(self, upload: Upload, window: Window) -> Answer:
        """Return the best answer of all speeds and tempos. UndecodableAudioError."""
        answers = [await self._match(stretch(window.fingerprints, tempo), pace=Pace(tempo)) for tempo in TEMPOS]
        for speed in SPEEDS:
            fingerprints = await upload.fingerprint_at_speed(window, speed)
            answers.append(await self._match(fingerprints, pace=Pace(speed, speed)))
        return _choose_best(answers)

    async def _match_landmarks(self, upload: Upload, window: Window) -> Answer:
        """Return the answer of the second witness about a window that the fingerprint does not find. UndecodableAudioError."""
        return await self._ask_landmarks(window.fingerprints, await upload.find_peaks(window))

    async def _ask_landmarks(self, fingerprints: Sequence[SoftFingerprint], peaks: NDArray[np.uint32]) -> Answer:
        try:
            return await self._matcher.match_landmarks([one.items for one in fingerprints], peaks)
        except MatcherUnavailableError as error:
            raise _build_unavailable_error(error.retry_after) from error

    async def _match(
        self, fingerprints: Sequence[SoftFingerprint], *, pace: Pace = OWN_PACE, duration_seconds: int | None = None
    ) -> Answer:
        weak_bits = [one.weak_bits for one in fingerprints if one.weak_bits.size]
        try:
            return await self._matcher.match(
                [one.items for one in fingerprints], weak_bits=weak_bits, pace=pace, duration_seconds=duration_seconds
            )
        except MatcherUnavailableError as error:
            raise _build_unavailable_error(error.retry_after) from error

    def _list_results(self, answer: Answer) -> list[RecognitionResult]:
        """Return each track once, under its present id; tracks that left the catalog are omitted."""
        with self._live.hold() as catalog:
            found: dict[int, RecognitionResult] = {}
            for match in answer.matches:
                track_id, body = _find_current(catalog, match.recording_id)
                # Two recordings of the index may have been merged since it was built; the better match comes first.
                if body is not None and track_id not in found:
                    found[track_id] = _build_result(track_id, body, match)
        return list(found.values())


def _find_current(catalog: Catalog, recording_id: int) -> tuple[int, bytes | None]:
    body = catalog.read_track_body(recording_id)
    if body is not None:
        return recording_id, body
    survivor = catalog.resolve_id(recording_id)
    return (recording_id, None) if survivor is None else (survivor, catalog.read_track_body(survivor))


def _build_result(track_id: int, body: bytes, match: Match) -> RecognitionResult:
    named = _NAMED.decode(body)
    result = RecognitionResult(
        str(track_id),
        named.title,
        named.artists,
        round(match.confidence, 4),
        round(match.probability, 4),
        round(match.offset_seconds, 2),
        match.method.value,
    )
    if (match.speed, match.pitch) != OWN_PACE:
        result.speed, result.pitch = round(match.speed, 3), round(match.pitch, 3)
    return result


def _choose_best(answers: Sequence[Answer]) -> Answer:
    """Return the answer with the most confident match; the first one when there is none."""
    return max(answers, key=lambda answer: answer.matches[0].confidence if answer.matches else 0.0)


def _choose_reason(reasons: Sequence[Reason]) -> Reason:
    """Return the reason for all windows together: a reason about audio that was matched says more than one about unusable audio."""
    return Reason.NOT_FOUND if Reason.NOT_FOUND in reasons or not reasons else reasons[0]


def _build_unavailable_error(retry_after: int) -> ApiError:
    return ApiError(
        "recognition_unavailable", "Recognition is busy or is being restarted.", headers={"retry-after": str(max(1, retry_after))}
    )
