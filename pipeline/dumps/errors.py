"""Errors that concern a dump as a whole. A faulty record or value becomes a row of `reject` instead."""

from __future__ import annotations


class DumpError(Exception):
    """A dump that cannot be used. The message names file, place and remedy; the last good staging of the platform stays in use."""


class UnblamedError(DumpError):
    """An error that may be no fault of the dump: a full disk, too little memory, a bug of this program.

    The last good staging stays in use. The dump is not marked as broken, and the next build tries it again.
    """
