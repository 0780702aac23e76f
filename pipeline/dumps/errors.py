"""Errors that concern a dump as a whole; records and values at fault go to `reject` instead."""

from __future__ import annotations


class DumpError(Exception):
    """The dump as a whole cannot be used: names file, place and what to do. The last good staging of the platform stays."""
