"""Streams of a day: their fields, the checks of each, and their staging columns.

Add a stream when a later stage reads it. Values come as text and are cast here, so that one bad number costs its row and not the block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from catalog_store.tables.fingerprints import UUID_PATTERN
from pipeline.dumps.platforms.fingerprints.items import build_fingerprint_keys, to_unsigned
from pipeline.dumps.staging.record_checks import RowRule, parse_whole_number
from pipeline.dumps.staging.reject_reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_LARGEST_ID = 2**53
"""Ids pass through a float when they are checked."""
_LARGEST_COUNT = 2**31 - 1
LONGEST_SECONDS = 24 * 3600
FEWEST_ITEMS = 16
"""Two seconds of items: the algorithm gives none for less than three seconds of audio."""
UNREAD_STREAMS = {
    "track_meta": "which typed titles belong to which track decides nothing here",
    "track_puid": "ids of a service that has ended",
}
"""Streams that are not read, and why."""


@dataclass(frozen=True)
class Stream:
    """`columns`: field -> DuckDB type. `values` adds `_parse_id` and the cast values; `staged` makes staging columns of these."""

    name: str
    table: str
    columns: Mapping[str, str]
    values: Callable[[pl.DataFrame], pl.DataFrame]
    own_rules: tuple[RowRule, ...]
    staged: Callable[[pl.DataFrame], pl.DataFrame]

    @property
    def usual(self) -> tuple[str, ...]:
        """Fields that every day of some size has."""
        return tuple(name for name in self.columns if name not in ("new_id", "disabled", "fingerprint_id"))

    def build_rules(self) -> tuple[RowRule, ...]:
        """Return the rules that reject a row. The first that applies is the reason."""
        return (
            RowRule(Reason.MISSING_ID, pl.col("id").is_null()),
            RowRule(Reason.INVALID_ID, pl.col("_id").is_null(), "id"),
            RowRule(Reason.DUPLICATE_ID, pl.col("_is_later"), "id"),
            *self.own_rules,
        )


def _parse_id(name: str) -> pl.Expr:
    return parse_whole_number(pl.col(name), 1, _LARGEST_ID)


def _parse_count(name: str) -> pl.Expr:
    return parse_whole_number(pl.col(name), 0, _LARGEST_COUNT)


def _parse_uuid(name: str) -> pl.Expr:
    return pl.when(pl.col(name).str.to_lowercase().str.contains(f"^{UUID_PATTERN}$")).then(pl.col(name).str.to_lowercase())


def _build_cast(**values: pl.Expr) -> Callable[[pl.DataFrame], pl.DataFrame]:
    return lambda rows: rows.with_columns(_id=_parse_id("id"), **{f"_{name}": value for name, value in values.items()})


def _build_renaming(**columns: str | pl.Expr) -> Callable[[pl.DataFrame], pl.DataFrame]:
    return lambda rows: rows.select(**columns)


def _build_missing_rule(value: str, field: str, reason: Reason) -> RowRule:
    return RowRule(reason, pl.col(value).is_null(), field)


def _is_flag(name: str) -> pl.Expr:
    """Return an expression for a flag; absent means false."""
    return pl.col(name).str.to_lowercase().is_in(["true", "1", "t"]).fill_null(value=False)


def _cast_fingerprints(rows: pl.DataFrame) -> pl.DataFrame:
    items = pl.col("fingerprint")
    # The dump writes signed numbers. The same bits written unsigned are accepted, too.
    fits = (items.list.min() >= -(2**31)) & (items.list.max() < 2**32) & ~items.list.eval(pl.element().is_null()).list.any()
    return rows.with_columns(_id=_parse_id("id"), _length=parse_whole_number(pl.col("length"), 1, LONGEST_SECONDS), _fits=fits)


def _build_fingerprint_rows(rows: pl.DataFrame) -> pl.DataFrame:
    items = to_unsigned(rows["fingerprint"])
    return pl.DataFrame(
        {"fingerprint_id": rows["_id"], "fingerprint_key": build_fingerprint_keys(rows["_id"], items), "duration_seconds": rows["_length"]}
    ).with_columns(items=items)


STREAMS = (
    Stream(
        "track",
        "source_fingerprint_track",
        {"id": "VARCHAR", "gid": "VARCHAR", "new_id": "VARCHAR"},
        # A merged track names its successor; an absent `new_id` is null and no fault.
        _build_cast(gid=_parse_uuid("gid"), new_id=_parse_id("new_id")),
        (
            _build_missing_rule("_gid", "gid", Reason.INVALID_ID),
            # Without this rule a damaged successor would bring a merged track back to life.
            RowRule(Reason.INVALID_ID, pl.col("new_id").is_not_null() & pl.col("_new_id").is_null(), "new_id"),
        ),
        _build_renaming(fingerprint_track_id="_id", public_id="_gid", merged_into="_new_id"),
    ),
    Stream(
        "meta",
        "source_fingerprint_meta",
        {"id": "VARCHAR", "track": "VARCHAR", "artist": "VARCHAR", "album": "VARCHAR", "year": "VARCHAR"},
        _build_cast(year=parse_whole_number(pl.col("year"), -9999, 9999)),
        (),
        _build_renaming(meta_id="_id", title="track", artist="artist", album="album", year="_year"),
    ),
    Stream(
        "fingerprint",
        "source_fingerprint",
        {"id": "VARCHAR", "fingerprint": "BIGINT[]", "length": "VARCHAR"},
        _cast_fingerprints,
        (
            RowRule(Reason.INVALID_FINGERPRINT, pl.col("fingerprint").list.len().fill_null(0) < FEWEST_ITEMS),
            RowRule(Reason.INVALID_FINGERPRINT, ~pl.col("_fits").fill_null(value=False)),
            _build_missing_rule("_length", "length", Reason.INVALID_DURATION),
        ),
        _build_fingerprint_rows,
    ),
    Stream(
        "track_fingerprint",
        "source_fingerprint_member",
        {"id": "VARCHAR", "track_id": "VARCHAR", "fingerprint_id": "VARCHAR", "submission_count": "VARCHAR"},
        _build_cast(
            # Both fields hold the same id upstream.
            fingerprint=pl.coalesce(_parse_id("fingerprint_id"), _parse_id("id")),
            track=_parse_id("track_id"),
            count=_parse_count("submission_count"),
        ),
        (
            _build_missing_rule("_track", "track_id", Reason.INVALID_ID),
            _build_missing_rule("_count", "submission_count", Reason.INVALID_NUMBER),
        ),
        _build_renaming(fingerprint_id="_fingerprint", fingerprint_track_id="_track", submission_count="_count"),
    ),
    Stream(
        "track_mbid",
        "source_fingerprint_link",
        {"id": "VARCHAR", "track_id": "VARCHAR", "mbid": "VARCHAR", "submission_count": "VARCHAR", "disabled": "VARCHAR"},
        _build_cast(
            track=_parse_id("track_id"),
            mbid=_parse_uuid("mbid"),
            count=_parse_count("submission_count"),
            # Upstream writes the field only when it is true.
            disabled=_is_flag("disabled"),
        ),
        (
            _build_missing_rule("_track", "track_id", Reason.INVALID_ID),
            _build_missing_rule("_mbid", "mbid", Reason.INVALID_ID),
            _build_missing_rule("_count", "submission_count", Reason.INVALID_NUMBER),
        ),
        _build_renaming(
            link_id="_id", fingerprint_track_id="_track", external_id="_mbid", submission_count="_count", is_disabled="_disabled"
        ),
    ),
)
"""Every stream, in the order in which a day is applied."""
