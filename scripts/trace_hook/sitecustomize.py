"""Record of the files whose functions a process calls between two SIGUSR2.

`scripts.request_trace` puts this folder on the path of a server. Python imports a module of this name when it starts. Nothing else may
import it.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

_FOLDER = Path(os.environ["REQUEST_TRACE_FOLDER"])
_calls: list[str] | None = None


def _note_call(frame: FrameType, event: str, _argument: object) -> None:
    if _calls is not None and event == "call":
        _calls.append(frame.f_code.co_filename)


def _toggle(_signal: int, _frame: FrameType | None) -> None:
    """Start to note calls, or write down what was noted. The new file shows the caller that it happened."""
    global _calls  # noqa: PLW0603 - a profile function has no other place to look at
    if _calls is None:
        (_FOLDER / f"{os.getpid()}.started").touch()
        _calls = []
        return
    noted, _calls = _calls, None
    unfinished = _FOLDER / f"{os.getpid()}.unfinished"
    unfinished.write_text("\n".join(noted), encoding="utf-8")
    unfinished.rename(_FOLDER / f"{os.getpid()}.calls")


signal.signal(signal.SIGUSR2, _toggle)
# Set at the start, because a thread takes its profile function over when it begins: threads that book charges begin early.
threading.setprofile(_note_call)
sys.setprofile(_note_call)
(_FOLDER / f"{os.getpid()}.ready").touch()
