from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import pytest

from audio_recognition.chromaprint import SAMPLE_RATE, SILENCE_ITEM, fingerprint_phases
from audio_recognition.decoding import UndecodableAudioError, UnsupportedAudioError
from audio_recognition.landmarks import find_peaks
from audio_recognition.uploads import TIMELINE_LIMITS, Limits, SandboxBusyError, SandboxDownError, UploadSandbox, Window
from tests.audio_recognition.audio import ENCODERS, encoded, melody
from tests.audio_recognition.decoding.files import file_of, heard, wav
from tests.processes import children
from tests.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

InSandbox = Callable[..., None]


def upload(data: bytes) -> BinaryIO:
    file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by its block
    file.write(data)
    file.seek(0)
    return file


PATIENT = Limits(cpu_seconds=600, deadline_seconds=PATIENCE_SECONDS)
"""No verdict depends on them. On a machine with a load of 25 an hour of silence took longer than the default."""


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as running:
        yield running


@pytest.fixture(scope="module")
def shared(runner: asyncio.Runner) -> Iterator[UploadSandbox]:
    sandbox = UploadSandbox()
    runner.run(sandbox.start())
    yield sandbox
    runner.run(sandbox.close())


@pytest.fixture
def in_sandbox(runner: asyncio.Runner, shared: UploadSandbox) -> InSandbox:
    """Run it with a sandbox of those limits, of no limits of time if none are given. All share a fork server, because its start is slow."""

    def run(what: Callable[[UploadSandbox], Coroutine[None, None, None]], limits: Limits | None = None, **options: int) -> None:
        sandbox = UploadSandbox(limits or PATIENT, **options)
        sandbox._server = shared._server
        runner.run(what(sandbox))

    return run


@pytest.fixture
def in_own_sandbox(runner: asyncio.Runner) -> InSandbox:
    """Run it with a fork server of its own, for tests that end the fork server."""

    def run(what: Callable[[UploadSandbox], Coroutine[None, None, None]]) -> None:
        async def closing() -> None:
            sandbox = UploadSandbox()
            try:
                await what(sandbox)
            finally:
                await sandbox.close()

        runner.run(closing())

    return run


async def windows_of(sandbox: UploadSandbox, data: bytes) -> list[Window]:
    with upload(data) as file:
        async with sandbox.open(file) as opened:
            return [window async for window in opened.iterate_windows()]


def decoding_process(sandbox: UploadSandbox) -> int:
    """Return the process that the fork server forked last. Processes of earlier uploads may still run."""
    assert sandbox._server is not None
    return children(sandbox._server._process.pid)[-1]


@asynccontextmanager
async def opened(sandbox: UploadSandbox, data: bytes) -> AsyncIterator[AsyncIterator[Window]]:
    with upload(data) as file:
        async with sandbox.open(file) as found:
            yield found.iterate_windows()


LONG = wav(np.tile(melody(10), 10).tobytes(), rate=SAMPLE_RATE)
"""100 s."""


def test_every_format_gives_the_fingerprints_of_its_sound(in_sandbox: InSandbox) -> None:
    async def what(sandbox: UploadSandbox) -> None:
        for form in ENCODERS:
            with upload(file_of(form)) as file:
                async with sandbox.open(file) as found:
                    assert found.format == form
                    (window,) = [window async for window in found.iterate_windows()]
            expected = fingerprint_phases(heard(file_of(form)))
            assert [one.items.tolist() for one in window.fingerprints] == [one.tolist() for one in expected]

    in_sandbox(what)


def test_deeper_windows_are_decoded_on_demand_and_cover_the_file(in_sandbox: InSandbox) -> None:
    async def what(sandbox: UploadSandbox) -> None:
        windows = await windows_of(sandbox, LONG)
        assert [window.start_seconds for window in windows] == [0, 60, 30, 70]
        assert {window.seconds for window in windows} == {30}
        assert [len(one.items) for one in windows[1].fingerprints] == [221, 221, 220, 220]

    in_sandbox(what)


def test_false_duration_gives_no_more_windows_than_the_budget(in_sandbox: InSandbox) -> None:
    async def what(sandbox: UploadSandbox) -> None:
        assert len(await windows_of(sandbox, LONG)) == 2

    in_sandbox(what, Limits(most_windows=2))


def claiming(data: bytes, seconds: float) -> bytes:
    """Return a flac file whose header claims another number of samples.

    The number has 36 bits, the last ones of 18 bytes behind the first block's header.
    """
    assert data.startswith(b"fLaC")
    total = round(seconds * SAMPLE_RATE)
    return data[:21] + bytes([data[21] & 0xF0 | total >> 32]) + (total & 0xFFFFFFFF).to_bytes(4, "big") + data[26:]


FLAC = encoded(melody(80), "flac", rate=SAMPLE_RATE)


@pytest.mark.parametrize("claimed", [5.0, 36_000.0])
def test_windows_follow_the_sound_when_the_claimed_duration_is_false(in_sandbox: InSandbox, claimed: float) -> None:
    async def what(sandbox: UploadSandbox) -> None:
        windows = await windows_of(sandbox, claiming(FLAC, claimed))
        reached = 0.0
        for window in sorted(windows, key=lambda one: one.start_seconds):
            assert window.start_seconds <= reached
            reached = window.start_seconds + window.seconds
        assert reached == pytest.approx(80, abs=0.1)

    in_sandbox(what)


def test_claimed_hours_without_sound_are_not_searched(in_sandbox: InSandbox) -> None:
    short = claiming(encoded(melody(12), "flac", rate=SAMPLE_RATE), 36_000)

    async def what(sandbox: UploadSandbox) -> None:
        with upload(short) as file:
            async with sandbox.open(file) as found:
                assert found.duration_seconds == 36_000
                windows = found.iterate_windows()
                assert (await anext(windows)).seconds == 12
                os.kill(decoding_process(sandbox), signal.SIGKILL)  # it cannot answer any more, and need not
                assert [window async for window in windows] == []

    in_sandbox(what)


def test_file_shorter_than_an_item_gives_one_window_without_items(in_sandbox: InSandbox) -> None:
    async def what(sandbox: UploadSandbox) -> None:
        (window,) = await windows_of(sandbox, wav(melody(1).tobytes(), rate=SAMPLE_RATE))
        assert window.seconds == 1
        assert [len(one.items) for one in window.fingerprints] == [0, 0, 0, 0]

    in_sandbox(what)


def test_window_is_fingerprinted_at_several_speeds_without_moving_on(in_sandbox: InSandbox) -> None:
    async def what(sandbox: UploadSandbox) -> None:
        with upload(LONG) as file:
            async with sandbox.open(file) as found:
                window = await anext(found.iterate_windows())
                fast, slow, same = [await found.fingerprint_at_speed(window, speed) for speed in (1.04, 0.96, 1.0)]
        assert [len(one.items) for one in (fast[0], same[0], slow[0])] == [230, 221, 210]
        assert [one.items.tolist() for one in same] == [one.items.tolist() for one in window.fingerprints]
        assert [one.weak_bits.tolist() for one in same] == [one.weak_bits.tolist() for one in window.fingerprints]

    in_sandbox(what)


SILENCE = np.zeros(35 * SAMPLE_RATE, np.int16)


def test_whole_windows_hold_all_sound_in_order_with_its_silence_and_landmarks(in_sandbox: InSandbox) -> None:
    sound = np.concatenate([melody(10), np.zeros(15 * SAMPLE_RATE, np.int16), melody(42, seed=2)])

    async def what(sandbox: UploadSandbox) -> None:
        with upload(wav(sound.tobytes(), rate=SAMPLE_RATE)) as file:
            async with sandbox.open(file, TIMELINE_LIMITS) as found:
                seen = []
                async for window in found.iterate_whole_windows():
                    seen.append((window.start_seconds, window.seconds))
                    piece = sound[round(window.start_seconds * SAMPLE_RATE) :][: round(window.seconds * SAMPLE_RATE)]
                    assert np.array_equal(window.fingerprints[0].items, fingerprint_phases(piece)[0])
                    assert np.array_equal(await found.find_peaks(window, is_whole=True), find_peaks(piece))
        assert seen == [(0.0, 30.0), (30.0, 30.0), (60.0, pytest.approx(7, abs=0.01))]

    in_sandbox(what)


def test_landmarks_of_a_window_are_those_of_its_chosen_sound(in_sandbox: InSandbox) -> None:
    sound = np.concatenate([np.zeros(20 * SAMPLE_RATE, np.int16), melody(20)])

    async def what(sandbox: UploadSandbox) -> None:
        with upload(wav(sound.tobytes(), rate=SAMPLE_RATE)) as file:
            async with sandbox.open(file) as found:
                async for window in found.iterate_windows():
                    first = round(window.start_seconds * SAMPLE_RATE)
                    assert np.array_equal(await found.find_peaks(window), find_peaks(sound[first:]))

    in_sandbox(what)


@pytest.mark.parametrize("form", ["wav", "mp3", "m4a", "opus"])
def test_silence_before_and_between_sound_is_skipped(in_sandbox: InSandbox, form: str) -> None:
    sound = np.concatenate([SILENCE, melody(10), SILENCE, melody(12, seed=2)])

    async def what(sandbox: UploadSandbox) -> None:
        windows = await windows_of(sandbox, encoded(np.repeat(sound, 4), form))
        # The window at 60 s was read with the silence before the second sound or gives the same sound again.
        heard = {(round(window.start_seconds / 5) * 5, round(window.seconds)) for window in windows if window.seconds >= 9}
        assert any(33 <= start <= 35 and seconds <= 13 for start, seconds in heard), windows
        assert any(75 <= start <= 80 for start, _ in heard), windows

    in_sandbox(what)


def test_silent_file_gives_silent_windows_within_the_budget(in_sandbox: InSandbox) -> None:
    async def what(sandbox: UploadSandbox) -> None:
        windows = await windows_of(sandbox, wav(np.zeros(3600 * SAMPLE_RATE, np.int16).tobytes(), rate=SAMPLE_RATE))
        assert 8 <= len(windows) <= 20
        assert all((window.fingerprints[0].items == SILENCE_ITEM).all() for window in windows)

    in_sandbox(what)


def test_error_of_a_file_is_raised_unchanged(in_sandbox: InSandbox) -> None:
    async def what(sandbox: UploadSandbox) -> None:
        with pytest.raises(UnsupportedAudioError, match="mp3, flac, wav"):
            await windows_of(sandbox, b"not music at all")
        with pytest.raises(UndecodableAudioError, match="look like m4a"):
            await windows_of(sandbox, file_of("m4a")[:5000])
        with pytest.raises(UndecodableAudioError, match="no packet"):
            await windows_of(sandbox, wav(b""))
        assert len(await windows_of(sandbox, file_of("mp3"))) == 1

    in_sandbox(what)


@pytest.mark.parametrize("how", [signal.SIGSEGV, signal.SIGKILL], ids=["a crash of the decoder", "the kernel's out-of-memory killer"])
def test_dead_process_fails_only_its_own_upload(in_sandbox: InSandbox, how: signal.Signals) -> None:
    async def what(sandbox: UploadSandbox) -> None:
        async with opened(sandbox, LONG) as windows:
            await anext(windows)
            os.kill(decoding_process(sandbox), how)
            with pytest.raises(UndecodableAudioError, match="limits of time and memory"):
                await anext(windows)
        assert len(await windows_of(sandbox, file_of("mp3"))) == 1

    in_sandbox(what)


def test_hanging_process_is_ended_at_the_deadline(in_sandbox: InSandbox) -> None:
    async def what(sandbox: UploadSandbox) -> None:
        with upload(LONG) as file:
            async with sandbox.open(file) as found:
                windows = found.iterate_windows()
                await anext(windows)
                process = decoding_process(sandbox)
                os.kill(process, signal.SIGSTOP)
                assert 0 < found._process._left < PATIENCE_SECONDS, "what the first window left of the deadline"
                found._process._left = 0.2
                with pytest.raises(UndecodableAudioError, match="limits of time and memory"):
                    await anext(windows)
        await gone(process)
        assert len(await windows_of(sandbox, file_of("mp3"))) == 1

    in_sandbox(what)


def is_there(process: int) -> bool:
    return Path(f"/proc/{process}").exists()


async def gone(process: int) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while is_there(process):  # noqa: ASYNC110 - no event reports the end of another process's child
            await asyncio.sleep(0.01)


def test_file_that_takes_too_much_memory_is_undecodable(in_sandbox: InSandbox) -> None:
    async def what(sandbox: UploadSandbox) -> None:
        with pytest.raises(UndecodableAudioError):
            await windows_of(sandbox, LONG)

    in_sandbox(what, Limits(memory_bytes=2**20))


def test_process_that_takes_too_much_cpu_time_is_ended_by_the_kernel(in_sandbox: InSandbox) -> None:
    hour = encoded(np.zeros(3600 * 8000, np.int16), "flac", rate=8000)

    async def what(sandbox: UploadSandbox) -> None:
        async with opened(sandbox, hour) as windows:
            with pytest.raises(UndecodableAudioError, match="limits of time and memory"):
                assert len([window async for window in windows]) < 120

    in_sandbox(what, Limits(cpu_seconds=1, most_windows=1000))


def test_no_process_sees_two_files_and_none_outlives_its_upload(in_sandbox: InSandbox) -> None:
    async def what(sandbox: UploadSandbox) -> None:
        seen = []
        for _ in range(3):
            async with opened(sandbox, file_of("mp3")) as windows:
                await anext(windows)
                seen.append(decoding_process(sandbox))
        assert len(set(seen)) == 3
        for process in seen:
            await gone(process)

    in_sandbox(what)


def test_cancelled_upload_ends_its_process(in_sandbox: InSandbox) -> None:
    async def what(sandbox: UploadSandbox) -> None:
        started = asyncio.Event()

        async def ask() -> None:
            async with opened(sandbox, LONG) as windows:
                await anext(windows)
                started.set()
                await asyncio.sleep(60)

        asking = asyncio.create_task(ask())
        await started.wait()
        process = decoding_process(sandbox)
        asking.cancel()
        with suppress(asyncio.CancelledError):
            await asking
        await gone(process)

    in_sandbox(what)


def test_uploads_wait_for_their_turn_and_are_refused_when_the_queue_is_full(in_sandbox: InSandbox) -> None:
    async def what(sandbox: UploadSandbox) -> None:
        async with opened(sandbox, LONG) as windows:
            await anext(windows)
            waiting = asyncio.create_task(windows_of(sandbox, file_of("mp3")))
            await asyncio.sleep(0)
            with pytest.raises(SandboxBusyError) as refused:
                await windows_of(sandbox, file_of("mp3"))
            assert refused.value.retry_after >= 1
            assert not waiting.done()
        assert len(await waiting) == 1

    in_sandbox(what, most_at_once=1, most_waiting=1)


def test_dead_fork_server_is_restarted(in_own_sandbox: InSandbox) -> None:
    async def what(sandbox: UploadSandbox) -> None:
        await sandbox.start()
        assert sandbox._server is not None
        sandbox._server._process.kill()
        assert len(await windows_of(sandbox, file_of("mp3"))) == 1

    in_own_sandbox(what)


def test_fork_server_that_dies_during_a_request_is_restarted(in_own_sandbox: InSandbox) -> None:
    async def what(sandbox: UploadSandbox) -> None:
        await sandbox.start()
        assert sandbox._server is not None
        server = sandbox._server._process
        server.send_signal(signal.SIGSTOP)
        asked = asyncio.create_task(windows_of(sandbox, file_of("mp3")))
        await asyncio.sleep(0.05)
        server.kill()
        assert len(await asked) == 1

    in_own_sandbox(what)


def test_running_uploads_end_with_the_fork_server(in_own_sandbox: InSandbox) -> None:
    async def what(sandbox: UploadSandbox) -> None:
        async with opened(sandbox, LONG) as windows:
            await anext(windows)
            process = decoding_process(sandbox)
            assert sandbox._server is not None
            sandbox._server._process.kill()
            await gone(process)
            with pytest.raises(UndecodableAudioError):
                await anext(windows)

    in_own_sandbox(what)


def test_fork_server_that_cannot_start_is_not_the_fault_of_the_file(in_own_sandbox: InSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")

    async def what(sandbox: UploadSandbox) -> None:
        with pytest.raises(SandboxDownError, match="exit code 1"):
            await windows_of(sandbox, file_of("mp3"))

    in_own_sandbox(what)


def test_decoding_process_has_no_secrets_of_the_server(in_own_sandbox: InSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_PASSWORD", "hunter2")

    async def what(sandbox: UploadSandbox) -> None:
        await sandbox.start()
        assert sandbox._server is not None
        environment = Path(f"/proc/{sandbox._server._process.pid}/environ").read_bytes()  # noqa: ASYNC240 - no disk is behind it
        assert b"PYTHONPATH" in environment
        assert b"hunter2" not in environment

    in_own_sandbox(what)
