"""The answer of a command on standard output. What cannot be written there has been done all the same, and the message says so."""

from __future__ import annotations

import os
import sys


class AnswerLostError(OSError):
    """Nobody reads standard output any more, or its disk is full."""


def print_answer(text: str) -> None:
    """Print the answer of a command that has done its work. AnswerLostError when it cannot be written."""
    try:
        print(text, flush=True)  # noqa: T201 - answers of commands belong there
    except OSError as error:
        # Python tries once more at its end, and would complain of it.
        with open(os.devnull, "w", encoding="ascii") as nowhere:  # noqa: PTH123 - no path of anybody
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        raise AnswerLostError(
            f"the answer cannot be written to standard output ({error.strerror}); the command has done its work"
        ) from error
