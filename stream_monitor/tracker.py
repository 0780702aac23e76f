"""Decides every few seconds what a stream plays, and writes it as airings.

The tracker follows a track by the track's own fingerprint. Only when nothing known plays does it ask the matcher about the last seconds. A
recording counts as played after one match that leaves no doubt, or after a match that the following seconds confirm; silence, talk and
advertisements give neither. One play is one row through talk, drop-outs, new connections and other workers, because its implied start (the
anchor) stays where it is. The same recording begun again is another row.

Out of scope: sound and connections (listener.py), comparison of fingerprints (references.py), tables (account_store/streams).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from account_store.streams.registry import BALANCED, SENSITIVE, Settings
from audio_recognition.chromaprint import FIRST_ITEM_SECONDS, ITEMS_PER_SECOND
from audio_recognition.matching import SURE_ITEMS, Match, Reason
from stream_monitor.fades import LONGEST_FADE_MS, is_cross_fade
from stream_monitor.fingerprint_buffer import find_middle
from stream_monitor.play import Play
from stream_monitor.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray
    from sqlalchemy import Connection

    from account_store.streams.airings import Airing, PlayedTrack
    from audio_recognition.matching import Answer
    from stream_monitor.clock import AirClock
    from stream_monitor.fingerprint_buffer import FingerprintBuffer
    from stream_monitor.references import Place, Reference
    from stream_monitor.trace import EarlierStart

TICK_SECONDS = 5.0
"""Sound between two decisions."""
WINDOW_ITEMS = 80
"""Longest question to the matcher: 12 s."""
VERY_GOOD = 0.08
"""Bit error rate of a match that needs no confirmation, if it has VERY_GOOD_ITEMS."""
VERY_GOOD_ITEMS = 55
CONFIRMED = 0.22
"""Bit error rate of the seconds that confirm a match, and of those that find a play again in another connection."""
_FOUND_AGAIN_MS = 120_000
"""Time after its end within which another connection may find a play again."""
_COVERED_MS = 7_500
"""Seconds of a recording behind its fingerprint that need no question to the matcher."""
_FRESH_ITEMS = round(4 * ITEMS_PER_SECOND)
"""Age of its last match up to which a track still plays."""
_SNAP_MS = 2_000
"""Distance from its beginning within which a track counts as played from its beginning."""
_END_SNAP_ITEMS = round(2 * ITEMS_PER_SECOND)
"""Distance from the end of its fingerprint within which a track is presumed to play on."""
_UNDETECTED_MS = 15_000
"""A track that played for less before or after a gap may not have been detected."""
_SHORT_OUTAGE_MS = 30_000
"""A source that was away for no longer is presumed to have played on."""
_HALF_ITEM_MS = FIRST_ITEM_SECONDS * 500
_MIXED_ITEMS = round(FIRST_ITEM_SECONDS / 2 * ITEMS_PER_SECOND)
"""Items after the last one that is like a track which still have some of it in them."""
_MOST_MIXED_MS = 7_000
"""Most time before the last sound of a track in which the next one can be told in it."""
_SET_BACK_MS = 1_000
"""Sound only adds time: if its end moves back by more than this, the machine's clock was set back."""
_TRACED_MS = 300_000
"""A trace is ignored this long after its end."""
_NEAR_ITEMS = 80
"""To either side of where a track should be: sound was lost in between, or the clock of another connection differs."""


class Catalog(Protocol):
    """The part of the catalog that the tracker reads."""

    def find_references(self, recording_id: int) -> list[Reference]:
        """Return the recording's fingerprints."""

    def find_track(self, recording_id: int) -> PlayedTrack | None:
        """Return the recording's names."""


class WriteSink(Protocol):
    """The destination of writes."""

    def post(self, write: Callable[[Connection, str], None], replaces: object = None) -> None:
        """Queue a write; it replaces the last one when that was posted under the same `replaces`."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A recording that was matched once and is not confirmed yet."""

    match: Match
    references: list[Reference]
    reference: Reference
    place: Place
    end: int
    """Number of the item after those of the match."""


class Tracker:
    """The tracker of one stream, for as long as a worker holds its lease. Call it from one thread."""

    def __init__(
        self,
        catalog: Catalog,
        match: Callable[[Sequence[NDArray[np.uint32]]], Answer],
        queue: WriteSink,
        listened_ms: int,
        earlier: Trace | None = None,
        settings: Settings | None = None,
    ) -> None:
        """Track a stream that was listened to until `listened_ms` (its registration, if it never was).

        `match` is Matcher.match. `earlier` is the trace of the worker before.
        """
        self._catalog = catalog
        self._match = match
        self._queue = queue
        self.settings = settings or Settings()
        """Read at each decision: the account may change them."""
        self._candidate: _Candidate | None = None
        self._fresh_from = 0
        """The connection's first item without sound of the last play."""
        self.is_following = False
        """The present sound belongs to `play`."""
        self._earlier = earlier
        """The trace of the connection before."""
        self.trace: Trace | None = None
        """The last sound that belongs to no play; None while a play is followed."""
        self._listened_before_ms = listened_ms
        """End of listening before the present connection."""
        self._gap_began_ms = listened_ms
        """End of listening before the present gap. A connection that was too short to detect anything belongs to the gap."""
        self._connected_ms = listened_ms
        """Start of the present connection."""
        self._is_first_connection = self._is_first_look = True
        self._looked_samples = 0
        """Samples of the present connection at the last decision."""
        self.listened_ms = listened_ms
        self.play: Play | None = None
        """The present or last play."""

    def resume(self, airing: Airing) -> None:
        """Continue the last airing that was written."""
        self.play = Play.of(airing, self._catalog.find_references(airing.track.recording_id))

    def begin_connection(self) -> None:
        """Expect sound of another connection, with a buffer and a clock of its own."""
        self._candidate = None
        self._fresh_from = 0
        self.is_following = False
        self._earlier, self.trace = self.trace or self._earlier, None
        self._listened_before_ms = self.listened_ms
        # A connection of a few seconds detects nothing, so the gap before it goes on through it.
        if self.listened_ms - self._connected_ms > _UNDETECTED_MS:
            self._gap_began_ms = self.listened_ms
        self._is_first_look = True
        self._looked_samples = 0
        if self.play is not None:
            self.play.place = None

    def end_overdue_play(self, now_ms: int) -> None:
        """End a play that must be over by now, while nothing is heard."""
        play = self.play
        # Nothing is heard here, so silence proves nothing: the play gets four times as long as in `look`.
        if play is not None and play.is_open and now_ms > min(play.end_ms, play.heard_ms + 4 * self._linger_ms) + self._linger_ms:
            self._end(play)

    def look(self, buffer: FingerprintBuffer, clock: AirClock) -> None:
        """Decide what plays. Errors of `match` pass through, after everything that needs no match is done."""
        now_ms = clock.convert_sample(buffer.samples)
        if now_ms < self.listened_ms - _SET_BACK_MS:
            self._move_back(self.listened_ms - clock.convert_sample(self._looked_samples))
        self.listened_ms, self._looked_samples = now_ms, buffer.samples
        # Only now, after TICK_SECONDS of arrivals, does the clock know when the connection began (clock.py).
        if self._is_first_look:
            self._connected_ms = clock.convert_sample(0)
            self._bridge(self._connected_ms)
            self._is_first_connection = self._is_first_look = False
        # The order matters: `_identify` may raise while the matcher is away, so everything that needs no matcher comes first.
        follows = self.play is not None and self._follow(self.play, buffer, clock)
        play = self.play
        if play is not None and play.is_open and now_ms > min(play.end_ms, play.heard_ms + self._linger_ms):
            self._end(play)
        self.is_following = follows
        self.update_trace(buffer, clock)
        if not follows:
            self._identify(buffer, clock)

    def update_trace(self, buffer: FingerprintBuffer, clock: AirClock) -> None:
        """Keep the trace of sound that belongs to no play; call it between two decisions, too."""
        self.trace = None if self.is_following else Trace.of(buffer, clock, self._fresh_from)

    def _move_back(self, by_ms: int) -> None:
        """Continue under a clock that was set back. Times ahead of it would keep all plays until then from being found."""
        self._listened_before_ms -= by_ms
        self._gap_began_ms -= by_ms
        self._connected_ms -= by_ms
        if self.play is not None and self.play.is_open:
            # The same airing at its new time: a second one would count the play twice.
            self.play.move_back(by_ms)
            self._queue.post(self.play.write_times)
        else:
            self.play = None

    def _follow(self, play: Play, buffer: FingerprintBuffer, clock: AirClock) -> bool:
        """Return whether the last play still plays, and extend it if so."""
        if play.place is None and not self._find_again(play, buffer, clock):
            if play.is_presumed:
                self._extend(play, min(self.listened_ms, play.end_ms))
            return False
        place, reference = play.place, play.reference
        assert place is not None  # noqa: S101 -- found above
        assert reference is not None  # noqa: S101 -- set with it
        # 20 s of sound, four looks: half a run decided at the end of the last look, and now the whole run does.
        matching = reference.find_matching_items(place, buffer.read_since(buffer.end - 2 * WINDOW_ITEMS))
        if len(matching):
            last = int(matching[-1])
            # The matcher must not be asked about sound of this play: the track would be found again as another one.
            self._fresh_from = max(self._fresh_from, last + _MIXED_ITEMS)
            play.is_presumed = last + place.shift >= reference.items - _END_SNAP_ITEMS
            play.confirmed_ms = max(play.confirmed_ms, clock.convert_sample(find_middle(last, place.phase)))
            self._extend(play, play.confirmed_ms)
            if buffer.end - last <= _FRESH_ITEMS:
                return True
        if play.is_presumed:
            self._extend(play, min(self.listened_ms, play.end_ms))
            # When the fingerprint ends long before the recording, another sound may have begun, so the matcher is asked.
            return self.listened_ms < play.end_ms < play.anchor_ms + reference.covered_seconds * 1000 + _COVERED_MS
        return self._find_near(play, buffer)

    def _bridge(self, first_ms: int) -> None:
        """Presume that a play went on to its end when that lay in a gap, or too soon after it to be detected again."""
        play, began_ms = self.play, self._listened_before_ms
        if play is None or not play.is_open or not began_ms <= play.end_ms <= first_ms + _UNDETECTED_MS:
            return
        was_on = play.heard_ms >= began_ms - 2 * TICK_SECONDS * 1000
        if was_on and (self._is_first_connection or first_ms - began_ms <= _SHORT_OUTAGE_MS):
            play.is_presumed = True
            self._extend(play, min(self.listened_ms, play.end_ms))

    def _find_again(self, play: Play, buffer: FingerprintBuffer, clock: AirClock) -> bool:
        """Search a new connection for the last play: first at its expected place, then in the whole recording."""
        window = buffer.read_since(buffer.end - WINDOW_ITEMS)
        if window[1].shape[1] < SURE_ITEMS or self.listened_ms > play.end_ms + _FOUND_AGAIN_MS:
            return False
        expected = round((clock.convert_sample(0) - play.anchor_ms) / 1000 * ITEMS_PER_SECOND)
        for reference in play.references:
            # 161 places first. All places of the recording are searched only if the track is at none of these.
            for shifts in (_build_range(expected), reference.list_shifts(window)):
                place = reference.find_place(window, shifts)
                if place is None or place.bit_error_rate > CONFIRMED:
                    continue
                anchor_ms = clock.convert_sample(place.origin)
                if play.is_same(play.track.recording_id, anchor_ms):
                    play.take(reference, place, anchor_ms)
                    return True
        return False

    def _find_near(self, play: Play, buffer: FingerprintBuffer) -> bool:
        """Search a little earlier and later: some sound was lost, and the play is at another place then."""
        assert play.place is not None  # noqa: S101 -- it was followed
        assert play.reference is not None  # noqa: S101 -- likewise
        # Fewest items: a longer window would still hold sound from before the loss.
        again = play.reference.find_place(buffer.read_since(buffer.end - SURE_ITEMS), _build_range(play.place.shift))
        if again is None or again.bit_error_rate > CONFIRMED:
            return False
        play.place = again
        return True

    def _extend(self, play: Play, until_ms: int) -> None:
        until_ms = min(until_ms, play.longest_ms)
        if until_ms <= play.heard_ms:
            return
        play.heard_ms = until_ms
        play.detections += 1
        play.is_open = True
        # Progress replaces progress that still waits: after an outage of the database one write is left, not one for each look.
        self._queue.post(play.write_progress, replaces=play)

    def _end(self, play: Play) -> None:
        play.is_open = play.is_presumed = False
        self._queue.post(play.write_end)

    def _identify(self, buffer: FingerprintBuffer, clock: AirClock) -> None:
        """Ask the matcher what plays."""
        if self._confirm(buffer, clock):
            return
        window = buffer.read_since(max(buffer.end - WINDOW_ITEMS, self._fresh_from))
        if window[1].shape[1] < SURE_ITEMS:
            return
        answer = self._match(list(window[1]))
        # Silence is a positive finding: a play that was only presumed to go on has stopped.
        if self.play is not None and answer.reason is Reason.SILENCE:
            self.play.is_presumed = False
        best = next((found for match in answer.matches if (found := self._locate(match, window)) is not None), None)
        if best is None:
            return
        # The same anchor: a drop-out or talk interrupted the play, and it is the same airing.
        play = self.play
        anchor_ms = clock.convert_sample(best.place.origin)
        if play is not None and play.is_same(best.match.recording_id, anchor_ms):
            play.references = best.references
            play.take(best.reference, best.place, anchor_ms)
            self._follow(play, buffer, clock)
        elif self._is_sure(best.match):
            self._start(best, buffer, clock)
        else:
            # Matches of lower quality also come from other music: the next seconds must belong to the recording, too.
            self._candidate = best

    def _is_sure(self, match: Match) -> bool:
        """Return whether a match needs no second one."""
        if self.settings.detection_mode == BALANCED:
            return match.bit_error_rate <= VERY_GOOD and match.overlap_items >= VERY_GOOD_ITEMS
        return self.settings.detection_mode == SENSITIVE

    @property
    def _linger_ms(self) -> int:
        """Time without a match after which a play ends, if its end comes no sooner. It continues if it comes back later."""
        return 1000 * self.settings.linger_seconds

    def _locate(self, match: Match, window: tuple[int, NDArray[np.uint32]]) -> _Candidate | None:
        """Return the matched recording with its place in the connection; None when the catalog has no fingerprint of it (any more)."""
        references = self._catalog.find_references(match.recording_id)
        shift = round(match.offset_seconds * ITEMS_PER_SECOND) - window[0]
        # The offset in seconds holds a shift and a phase of a quarter item; two items to either side cover its rounding.
        found = [(place, one) for one in references if (place := one.find_place(window, np.arange(shift - 2, shift + 3)))]
        if not found:
            return None
        place, reference = min(found, key=lambda pair: pair[0].bit_error_rate)
        return _Candidate(match, references, reference, place, window[0] + window[1].shape[1])

    def _confirm(self, buffer: FingerprintBuffer, clock: AirClock) -> bool:
        """Start a play when the seconds after a first match belong to the same recording; return whether they do."""
        candidate, self._candidate = self._candidate, None
        if candidate is None:
            return False
        shifts = np.arange(candidate.place.shift - 2, candidate.place.shift + 3)
        # Only items after the first match: the same items would confirm themselves.
        behind = candidate.reference.find_place(buffer.read_since(candidate.end), shifts)
        if behind is None or behind.bit_error_rate > CONFIRMED:
            return False
        return self._start(candidate, buffer, clock)

    def _start(self, found: _Candidate, buffer: FingerprintBuffer, clock: AirClock) -> bool:
        """Start a play that was not known before; return False when the catalog does not know the recording."""
        track = self._catalog.find_track(found.match.recording_id)
        before, phase = self.play, found.place.phase
        matching = found.reference.find_matching_items(found.place, buffer.read_since(-found.place.shift))
        # Some items match by chance while the play before is heard. Without this limit one start lay 26.9 s too early.
        if before is not None:
            from_ms = before.confirmed_ms - _MOST_MIXED_MS - clock.convert_sample(find_middle(0, phase))
            matching = matching[matching >= from_ms / 1000 * ITEMS_PER_SECOND]
        if track is None or not len(matching):
            return False
        anchor_ms, first_ms = clock.convert_sample(found.place.origin), clock.convert_sample(find_middle(int(matching[0]), phase))
        is_crossfade = False
        if before is not None and before.reference is not None and before.place is not None and before.confirmed_ms >= anchor_ms:
            old, new = (before.reference, before.place), (found.reference, found.place)
            is_crossfade = is_cross_fade(old, new, anchor_ms, first_ms, buffer, clock)
        started_ms = anchor_ms if is_crossfade else self._estimate_start(found.references, anchor_ms, first_ms, clock.convert_sample(0))
        if before is not None:
            # In a cross-fade the old track stops to match while it is still heard: it lasts until the new one matches.
            if is_crossfade:
                before.heard_ms = before.confirmed_ms = max(before.confirmed_ms, min(first_ms, before.end_ms, before.longest_ms))
            # Presumed sound ends where the next play begins; confirmed sound stays.
            before.heard_ms = min(before.heard_ms, max(before.confirmed_ms, started_ms))
            self._end(before)
        heard_ms = clock.convert_sample(find_middle(int(matching[-1]), phase))
        # Clocks of two connections may differ a little: no airing outlasts its file.
        heard_ms = min(heard_ms, started_ms + round(found.reference.seconds * 1000))
        self.play = Play(track, found.references, anchor_ms, started_ms, heard_ms, found.match.confidence, confirmed_ms=heard_ms)
        self.play.take(found.reference, found.place, anchor_ms)
        self.is_following, self.trace = True, None
        self._queue.post(self.play.write_start)
        return True

    def _estimate_start(self, references: Sequence[Reference], anchor_ms: int, first_ms: int, connected_ms: int) -> int:
        """Return when a play began that was first heard in this connection at `first_ms` (the middle of an item)."""
        # `first_ms` is the middle of an item: its sound begins half an item (1.4 s) earlier.
        if first_ms - _HALF_ITEM_MS <= anchor_ms + _SNAP_MS:
            return anchor_ms
        # The trace of the connection before knows whether the track played there, and whether it had begun by then.
        since = self._find_earlier_start(references, anchor_ms, connected_ms)
        if since is not None and not since.is_cut:
            return anchor_ms if since.at_ms - _HALF_ITEM_MS <= anchor_ms + _SNAP_MS else since.at_ms
        if since is None and first_ms - _HALF_ITEM_MS > connected_ms + _SNAP_MS:
            return first_ms
        # It played already when the connection began.
        if anchor_ms >= self._gap_began_ms - _UNDETECTED_MS:
            # It began while nobody listened, or too shortly before to be detected: at its anchor, unless another play was heard then.
            before_ms = anchor_ms if self.play is None else self.play.confirmed_ms
            return anchor_ms if anchor_ms >= before_ms - LONGEST_FADE_MS else min(before_ms, connected_ms)
        # Nothing is claimed of the time before the stream was monitored, or before its trace.
        return connected_ms if since is None else since.at_ms

    def _find_earlier_start(self, references: Sequence[Reference], anchor_ms: int, connected_ms: int) -> EarlierStart | None:
        """Return the earliest moment at which the trace of the connection before holds it; None when it does not, or is too old."""
        earlier = self._earlier
        if earlier is None or connected_ms - earlier.until_ms > _TRACED_MS:
            return None
        return earlier.find_start(references, anchor_ms)


def _build_range(shift: int) -> NDArray[np.int64]:
    return np.arange(shift - _NEAR_ITEMS, shift + _NEAR_ITEMS + 1)
