from __future__ import annotations

import io
import os
import signal

import pytest

from pipeline.engine.interruption import find_caught_signal, require_no_signal, watch_signals


class InterruptedClose(io.RawIOBase):
    """A file that is interrupted while Python collects it. Python drops the error that its `close` raises then."""

    def close(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        super().close()


def collect_interrupted_file() -> None:
    file = InterruptedClose()
    del file


def test_signal_that_a_finaliser_swallowed_is_remembered() -> None:
    with watch_signals():
        require_no_signal()
        collect_interrupted_file()
        assert find_caught_signal() == signal.SIGINT
        with pytest.raises(KeyboardInterrupt):
            require_no_signal()
        assert find_caught_signal() == signal.SIGINT, "asking must not forget it"


def test_signals_of_an_earlier_block_are_forgotten() -> None:
    with watch_signals():
        collect_interrupted_file()
        assert find_caught_signal()
    assert find_caught_signal() is None
    with watch_signals():
        require_no_signal()


def test_other_signals_interrupt_nothing() -> None:
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        with watch_signals():
            os.kill(os.getpid(), signal.SIGUSR1)
            require_no_signal()
    finally:
        signal.signal(signal.SIGUSR1, before)
