"""Mono and stereo, two mixes of one performance: both marks on two records part them, and one mark beside none proves nothing.

The mark is a tag of the variant inside linkage alone. Search and the published variant leave it out, because nobody looks for it.
Out of scope: the words (catalog_store/name_keys/version_words.py).
"""

from __future__ import annotations

import polars as pl

CHANNELS = ("mono", "stereo")
_CHANNEL = r"(?:^|\+)(?:mono|stereo)(?:$|(\+))"


def add_channels(variant: pl.Expr, notes: pl.Expr) -> pl.Expr:
    """Return the variants with the one channel that the notes of the title name; both say nothing."""
    tags = notes.str.split("+")
    named = [tags.list.contains(channel) for channel in CHANNELS]
    channel = pl.when(named[0] & ~named[1]).then(pl.lit(CHANNELS[0])).when(named[1] & ~named[0]).then(pl.lit(CHANNELS[1]))
    joined = pl.concat_list(variant.str.split("+"), channel).list.sort().list.join("+").str.strip_prefix("+")
    return pl.when(channel.is_not_null()).then(joined).otherwise(variant)


def remove_channels(variant: pl.Expr) -> pl.Expr:
    """Return the variants without their channel."""
    return variant.str.replace(_CHANNEL, "${1}").str.strip_prefix("+")


def cut_channel(variant: str) -> tuple[str, str]:
    """Return the channel, empty without one, and the rest of a variant."""
    tags = variant.split("+")
    return "".join(tag for tag in tags if tag in CHANNELS), "+".join(tag for tag in tags if tag not in CHANNELS)
