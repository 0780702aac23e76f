"""What a stream plays: decided every few seconds from what its connection gave, written down as airings.

A track that plays is followed by its own fingerprint; only when none does is the matcher asked about the last seconds. A recording is
taken for played after one match that leaves no doubt, or after a match that the seconds behind it confirm; silence, talk and advertisements
give neither. One play is one row: through talk over it, drop-outs, new connections and other workers, because its implied start stays
where it is; the same recording begun anew after it is another row.

What must not live here: sound and connections (listener.py), comparing fingerprints (references.py), the tables (account_store/streams).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from audio_recognition.chromaprint import FIRST_ITEM_SECONDS, ITEMS_PER_SECOND
from audio_recognition.matching import FEWEST_ITEMS, Match, Reason
from stream_monitor.ear import middle
from stream_monitor.plays import LONGEST_FADE_MS, Play
from stream_monitor.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray
    from sqlalchemy import Connection

    from account_store.streams.airings import Airing, PlayedTrack
    from audio_recognition.matching import Answer
    from stream_monitor.clock import AirClock
    from stream_monitor.ear import Ear
    from stream_monitor.references import Place, Reference
    from stream_monitor.trace import Since

TICK_SECONDS = 5.0
"""Of sound, between two looks."""
WINDOW_ITEMS = 80
"""The matcher is asked about 12 s at most."""
VERY_GOOD = 0.08
"""Bit error rate of a match that needs no second look, if it is of VERY_GOOD_ITEMS."""
VERY_GOOD_ITEMS = 55
CONFIRMED = 0.22
"""Bit error rate of the seconds behind a match that confirm it, and of those that find a play again in another connection."""
LINGER_MS = 30_000
"""A play that is no longer heard is over after so long, or at its end; it is taken up again if it comes back later."""
_FRESH_ITEMS = round(4 * ITEMS_PER_SECOND)
"""What was heard so recently still plays."""
_SNAP_MS = 2_000
"""Heard from so near to its beginning on, it was played from its beginning."""
_END_SNAP_ITEMS = round(2 * ITEMS_PER_SECOND)
"""Heard until so near to where its fingerprint ends, it was played on."""
_UNDETECTED_MS = 15_000
"""Listened to for less than that before or after a gap, a track may not have been detected."""
_SHORT_OUTAGE_MS = 30_000
"""A source that was away for no longer went on playing meanwhile."""
_FADED = 0.035
"""Share of bits by which a track that goes differs more than before while another comes: .04 to .18; when it is cut off, .02 at most."""
_HALF_ITEM_MS = FIRST_ITEM_SECONDS * 500
_MIXED_ITEMS = round(FIRST_ITEM_SECONDS / 2 * ITEMS_PER_SECOND)
"""Items behind the last one that is like a track which still have some of it in them."""
_TRACED_MS = 300_000
"""A trace tells nothing of what is heard so long after it."""
_NEAR_ITEMS = 80
"""To either side of where a track should be: sound was lost in between, or the clock of another connection differs."""


class Catalog(Protocol):
    """What is asked of the catalog."""

    def references(self, recording_id: int) -> list[Reference]:
        """Its fingerprints."""

    def track(self, recording_id: int) -> PlayedTrack | None:
        """What it is called."""


class Notes(Protocol):
    """Where is written what was decided."""

    def post(self, write: Callable[[Connection, str], None], replaces: object = None) -> None:
        """Write soon, in order; instead of what waits under the same `replaces`."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A recording that was matched once, not yet believed."""

    match: Match
    references: list[Reference]
    reference: Reference
    place: Place
    end: int
    """The next item after those that it was matched by."""


class Tracker:
    """Of one stream, for as long as a worker has it. Calls come from one thread."""

    def __init__(
        self,
        catalog: Catalog,
        match: Callable[[Sequence[NDArray[np.uint32]]], Answer],
        notes: Notes,
        listened_ms: int,
        earlier: Trace | None = None,
    ) -> None:
        """`match` is Matcher.match. `listened_ms`: until when the stream was listened to; when it was registered, if it never was.

        `earlier`: what an earlier worker heard last and could not tell yet.
        """
        self._catalog = catalog
        self._match = match
        self._notes = notes
        self._candidate: _Candidate | None = None
        self._fresh_from = 0
        """The first item of the connection that has nothing of the last play in it."""
        self._follows = False
        """What is heard is of the play."""
        self._earlier = earlier
        """The trace of an earlier connection."""
        self.trace: Trace | None = None
        """What was heard last and is of no play yet; None while one is followed."""
        self._lost_ms = listened_ms
        """Until when was listened before the present connection."""
        self._gap_began_ms = listened_ms
        """The same, but for connections too short to detect anything in."""
        self._connected_ms = listened_ms
        """When the present connection began."""
        self._is_first_connection = self._is_first_look = True
        self.listened_ms = listened_ms
        self.play: Play | None = None
        """What plays, or played last."""

    def resume(self, airing: Airing) -> None:
        """Go on with the last airing that was written."""
        self.play = Play.of(airing, self._catalog.references(airing.track.recording_id))

    def connected(self) -> None:
        """What is heard from now on comes from another connection, with an ear and a clock of its own."""
        self._candidate = None
        self._fresh_from = 0
        self._follows = False
        self._earlier, self.trace = self.trace or self._earlier, None
        self._lost_ms = self.listened_ms
        if self.listened_ms - self._connected_ms > _UNDETECTED_MS:
            self._gap_began_ms = self.listened_ms
        self._is_first_look = True
        if self.play is not None:
            self.play.place = None

    def disconnected(self, now_ms: int) -> None:
        """Nothing is heard now: a play that must be over ends."""
        play = self.play
        if play is not None and play.is_open and now_ms > min(play.end_ms, play.heard_ms + 4 * LINGER_MS) + LINGER_MS:
            self._end(play)

    def look(self, ear: Ear, clock: AirClock) -> None:
        """A tick: decide what plays. What `match` raises goes through, after all that needs no match is done."""
        self.listened_ms = now_ms = clock.at(ear.samples)
        if self._is_first_look:
            self._connected_ms = clock.at(0)
            self._bridge(self._connected_ms)
            self._is_first_connection = self._is_first_look = False
        follows = self.play is not None and self._follow(self.play, ear, clock)
        play = self.play
        if play is not None and play.is_open and now_ms > min(play.end_ms, play.heard_ms + LINGER_MS):
            self._end(play)
        self._follows = follows
        self.note(ear, clock)
        if not follows:
            self._seek(ear, clock)

    def note(self, ear: Ear, clock: AirClock) -> None:
        """Between two looks, too: keep the trace of what is heard and not known."""
        self.trace = None if self._follows else Trace.of(ear, clock, self._fresh_from)

    def _follow(self, play: Play, ear: Ear, clock: AirClock) -> bool:
        """Whether what played last still does; if so that is noted."""
        if play.place is None and not self._find_again(play, ear, clock):
            if play.plays_on:
                self._heard(play, min(self.listened_ms, play.end_ms))
            return False
        place, reference = play.place, play.reference
        assert place is not None  # noqa: S101 -- found above
        assert reference is not None  # noqa: S101 -- set with it
        like = reference.like(place, ear.since(ear.end - 2 * WINDOW_ITEMS))
        if len(like):
            last = int(like[-1])
            self._fresh_from = max(self._fresh_from, last + _MIXED_ITEMS)
            play.plays_on = last + place.shift >= reference.items - _END_SNAP_ITEMS
            play.sure_ms = max(play.sure_ms, clock.at(middle(last, place.phase)))
            self._heard(play, play.sure_ms)
            if ear.end - last <= _FRESH_ITEMS:
                return True
        if play.plays_on:
            self._heard(play, min(self.listened_ms, play.end_ms))
            # Where the fingerprint ends long before the recording, something else may have begun: the matcher is asked.
            return self.listened_ms < play.end_ms < play.anchor_ms + reference.covered_seconds * 1000 + LINGER_MS / 4
        return self._find_near(play, ear)

    def _bridge(self, first_ms: int) -> None:
        """What played when a gap began, and was to end in it or too soon after it to be found again, is taken to have played to its end."""
        play, began_ms = self.play, self._lost_ms
        if play is None or not play.is_open or not began_ms <= play.end_ms <= first_ms + _UNDETECTED_MS:
            return
        was_on = play.heard_ms >= began_ms - 2 * TICK_SECONDS * 1000
        if was_on and (self._is_first_connection or first_ms - began_ms <= _SHORT_OUTAGE_MS):
            play.plays_on = True
            self._heard(play, min(self.listened_ms, play.end_ms))

    def _find_again(self, play: Play, ear: Ear, clock: AirClock) -> bool:
        """Look for what played before in a new connection: where it should be, else anywhere in the recording."""
        heard = ear.since(ear.end - WINDOW_ITEMS)
        if heard[1].shape[1] < FEWEST_ITEMS or self.listened_ms > play.end_ms + 4 * LINGER_MS:
            return False
        expected = round((clock.at(0) - play.anchor_ms) / 1000 * ITEMS_PER_SECOND)
        for reference in play.references:
            for shifts in (_around(expected), reference.everywhere(heard)):
                place = reference.place(heard, shifts)
                if place is None or place.bit_error_rate > CONFIRMED:
                    continue
                anchor_ms = clock.at(place.origin)
                if play.is_same(play.track.recording_id, anchor_ms):
                    play.take(reference, place, anchor_ms)
                    return True
        return False

    def _find_near(self, play: Play, ear: Ear) -> bool:
        """Look a little earlier and later: some sound was lost. The play is at another place then."""
        assert play.place is not None  # noqa: S101 -- it was followed
        assert play.reference is not None  # noqa: S101 -- likewise
        again = play.reference.place(ear.since(ear.end - FEWEST_ITEMS), _around(play.place.shift))
        if again is None or again.bit_error_rate > CONFIRMED:
            return False
        play.place = again
        return True

    def _heard(self, play: Play, until_ms: int) -> None:
        if until_ms <= play.heard_ms:
            return
        play.heard_ms = until_ms
        play.detections += 1
        play.is_open = True
        self._notes.post(play.write_progress, replaces=play)

    def _end(self, play: Play) -> None:
        play.is_open = play.plays_on = False
        self._notes.post(play.write_end)

    def _seek(self, ear: Ear, clock: AirClock) -> None:
        """Ask what plays."""
        if self._confirm(ear, clock):
            return
        heard = ear.since(max(ear.end - WINDOW_ITEMS, self._fresh_from))
        if heard[1].shape[1] < FEWEST_ITEMS:
            return
        answer = self._match(list(heard[1]))
        if self.play is not None and answer.reason is Reason.SILENCE:
            self.play.plays_on = False
        best = next((found for match in answer.matches if (found := self._placed(match, heard)) is not None), None)
        if best is None:
            return
        play = self.play
        anchor_ms = clock.at(best.place.origin)
        if play is not None and play.is_same(best.match.recording_id, anchor_ms):
            play.references = best.references
            play.take(best.reference, best.place, anchor_ms)
            self._follow(play, ear, clock)
        elif best.match.bit_error_rate <= VERY_GOOD and best.match.overlap_items >= VERY_GOOD_ITEMS:
            self._start(best, ear, clock)
        else:
            self._candidate = best

    def _placed(self, match: Match, heard: tuple[int, NDArray[np.uint32]]) -> _Candidate | None:
        """Where in the connection the matched recording lies; None when the catalog has no fingerprint of it (any more)."""
        references = self._catalog.references(match.recording_id)
        shift = round(match.offset_seconds * ITEMS_PER_SECOND) - heard[0]
        found = [(place, one) for one in references if (place := one.place(heard, np.arange(shift - 2, shift + 3)))]
        if not found:
            return None
        place, reference = min(found, key=lambda pair: pair[0].bit_error_rate)
        return _Candidate(match, references, reference, place, heard[0] + heard[1].shape[1])

    def _confirm(self, ear: Ear, clock: AirClock) -> bool:
        """Whether the seconds behind a first match are of the same recording; it is an airing then."""
        candidate, self._candidate = self._candidate, None
        if candidate is None:
            return False
        shifts = np.arange(candidate.place.shift - 2, candidate.place.shift + 3)
        behind = candidate.reference.place(ear.since(candidate.end), shifts)
        if behind is None or behind.bit_error_rate > CONFIRMED:
            return False
        return self._start(candidate, ear, clock)

    def _start(self, found: _Candidate, ear: Ear, clock: AirClock) -> bool:
        """A play that was not known before; False when the catalog does not know the recording."""
        track = self._catalog.track(found.match.recording_id)
        before, phase = self.play, found.place.phase
        like = found.reference.like(found.place, ear.since(-found.place.shift))
        if before is not None:  # while that was heard a few items of this one are like it by chance
            from_ms = before.sure_ms - LONGEST_FADE_MS - clock.at(middle(0, phase))
            like = like[like >= from_ms / 1000 * ITEMS_PER_SECOND]
        if track is None or not len(like):
            return False
        anchor_ms, first_ms = clock.at(found.place.origin), clock.at(middle(int(like[0]), phase))
        was_faded_in = before is not None and _goes(before, anchor_ms, first_ms, ear, clock)
        started_ms = anchor_ms if was_faded_in else self._started(found.references, anchor_ms, first_ms, clock.at(0))
        if before is not None:
            if was_faded_in:  # when the other is like itself it is nearly over
                before.heard_ms = before.sure_ms = max(before.sure_ms, min(first_ms, before.end_ms))
            before.heard_ms = min(before.heard_ms, max(before.sure_ms, started_ms))
            self._end(before)
        heard_ms = clock.at(middle(int(like[-1]), phase))
        self.play = Play(track, found.references, anchor_ms, started_ms, heard_ms, found.match.confidence, sure_ms=heard_ms)
        self.play.take(found.reference, found.place, anchor_ms)
        self._follows, self.trace = True, None
        self._notes.post(self.play.write_start)
        return True

    def _started(self, references: Sequence[Reference], anchor_ms: int, first_ms: int, connected_ms: int) -> int:
        """When a play began that was first heard in this connection at `first_ms` (the middle of an item)."""
        if first_ms - _HALF_ITEM_MS <= anchor_ms + _SNAP_MS:
            return anchor_ms
        since = self._since(references, anchor_ms, connected_ms)
        if since is not None and not since.is_cut:
            return anchor_ms if since.at_ms - _HALF_ITEM_MS <= anchor_ms + _SNAP_MS else since.at_ms
        if since is None and first_ms - _HALF_ITEM_MS > connected_ms + _SNAP_MS:
            return first_ms
        # It played already when the connection began.
        if anchor_ms >= self._gap_began_ms - _UNDETECTED_MS:
            # Begun while nobody listened, or too shortly before to be detected: where its anchor is, unless another was heard then.
            before_ms = anchor_ms if self.play is None else self.play.sure_ms
            return anchor_ms if anchor_ms >= before_ms - LONGEST_FADE_MS else min(before_ms, connected_ms)
        # Of what played before the stream was monitored, or before that trace of it, nothing is claimed.
        return connected_ms if since is None else since.at_ms

    def _since(self, references: Sequence[Reference], anchor_ms: int, connected_ms: int) -> Since | None:
        """Since when it played before the connection began, if that was heard."""
        earlier = self._earlier
        if earlier is None or connected_ms - earlier.until_ms > _TRACED_MS:
            return None
        return earlier.since(references, anchor_ms)


def _goes(play: Play, anchor_ms: int, first_ms: int, ear: Ear, clock: AirClock) -> bool:
    """Whether `play` went while another came, that began at `anchor_ms` and is like itself from `first_ms` on.

    One that is cut off, for another that is begun late, is like itself until then.
    """
    if play.place is None or play.reference is None or not anchor_ms < first_ms <= anchor_ms + LONGEST_FADE_MS or play.sure_ms < anchor_ms:
        return False

    def unlike(from_ms: float, until_ms: float) -> float:
        assert play.place is not None  # noqa: S101 -- see above
        assert play.reference is not None  # noqa: S101 -- likewise
        origin_ms = clock.at(middle(0, play.place.phase))
        start, end = (round((at - origin_ms) / 1000 * ITEMS_PER_SECOND) for at in (from_ms, until_ms))
        first, items = ear.since(max(0, start))
        return play.reference.unlike(play.place, (first, items[:, : max(0, end - first)]))

    pure_ms = anchor_ms - _HALF_ITEM_MS
    return unlike(anchor_ms + _HALF_ITEM_MS / 2, first_ms - 1.25 * _HALF_ITEM_MS) > unlike(pure_ms - TICK_SECONDS * 1000, pure_ms) + _FADED


def _around(shift: int) -> NDArray[np.int64]:
    return np.arange(shift - _NEAR_ITEMS, shift + _NEAR_ITEMS + 1)
