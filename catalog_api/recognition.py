"""Name the recordings in a fingerprint or an upload: ask the matcher, decode uploads in the sandbox, look up names in the catalog.

One per worker. Out of scope: requests and answers over HTTP (routes/identify.py), prices (credit_prices.py).
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from audio_recognition.chromaprint import SoftFingerprint
from audio_recognition.decoding import UndecodableAudioError, UnsupportedAudioError
from audio_recognition.matcher_process import MatcherClient, MatcherUnavailableError
from audio_recognition.matching import OWN_PACE, SPEEDS, TEMPOS, Pace, Reason, stretch
from audio_recognition.uploads import SandboxUnavailableError, UploadSandbox
from catalog_api.problems import ApiError
from catalog_api.uploads import Spool
from catalog_api.wire.catalog_types import TrackArtist
from catalog_api.wire.matching_types import RecognitionResult

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import BinaryIO

    from numpy.typing import NDArray

    from audio_recognition.matching import Answer, Match
    from audio_recognition.uploads import Upload, Window
    from catalog_api.live_catalog import LiveCatalog
    from catalog_api.settings import ApiSettings
    from catalog_store.reader import Catalog


MOST_WINDOWS_AT_OTHER_PACES = 2
"""Windows of an upload that are searched at other paces after all have missed: its beginning and its middle. Each costs as much as two."""


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


class Recognition:
    """Recognition for one event loop. It connects and starts processes with the first question; `close` it at the end."""

    def __init__(self, settings: ApiSettings, live: LiveCatalog) -> None:
        """`live` is the catalog of names."""
        self._live = live
        self._matcher = MatcherClient(settings.matcher_socket)
        self._sandbox = UploadSandbox(most_waiting=settings.uploads)
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

    async def _match_at_other_paces(self, upload: Upload, window: Window) -> Answer:
        """Return the best answer of all speeds and tempos. UndecodableAudioError."""
        answers = [await self._match(stretch(window.fingerprints, tempo), pace=Pace(tempo)) for tempo in TEMPOS]
        for speed in SPEEDS:
            fingerprints = await upload.fingerprint_at_speed(window, speed)
            answers.append(await self._match(fingerprints, pace=Pace(speed, speed)))
        return _choose_best(answers)

    async def _match_landmarks(self, upload: Upload, window: Window) -> Answer:
        """Return the answer of the second witness about a window that the fingerprint does not find. UndecodableAudioError."""
        peaks = await upload.find_peaks(window)
        try:
            return await self._matcher.match_landmarks([one.items for one in window.fingerprints], peaks)
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
