"""Errors that concern a dump as a whole; records and values at fault go to `reject` instead."""

from __future__ import annotations


class DumpError(Exception):
    """The dump as a whole cannot be used: names file, place and what to do. The last good staging of the platform stays."""


class UnblamedError(DumpError):
    """Reading a dump ended in something for which the dump may not be to blame: a full disk, too little memory, a bug of ours.

    The last good staging stays, but the dump is not marked as broken: it is tried again the next time.
    """
