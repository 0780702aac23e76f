"""Reasons for rejecting a record or a value of a dump: stable codes, each with advice for the operator.

Add a code when an adapter meets a new kind of dirt; `docs/reference/rejects.md` is generated from this table.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Reason(StrEnum):
    """Stable reject codes, as they appear in `reject.reason`."""

    def __new__(cls, code: str, advice: str) -> Self:
        """Carry the advice beside the code."""
        member = str.__new__(cls, code)
        member._value_ = code
        member.advice = advice
        return member

    advice: str

    UNREADABLE_FILE = "unreadable_file", "The file is missing, empty, cut off or has another format: fetch it again, compare its checksum."
    TRUNCATED_FILE = "truncated_file", "The file ends within a record: fetch it again; records before the cut are staged."
    BROKEN_RECORD = "broken_record", "The record cannot be parsed: report it upstream; if many fail alike, the layout has changed."
    WRONG_TYPE = (
        "wrong_type",
        "A value has the wrong JSON type: the record is staged without the field; if many fail alike, the layout has changed.",
    )
    INVALID_UTF8 = "invalid_utf8", "The record holds bytes that are not UTF-8: report it upstream."
    WRONG_COLUMN_COUNT = "wrong_column_count", "The row has fewer cells than the table: the line is cut, or the layout has changed."
    MISSING_ID = "missing_id", "The record has no id, so nothing can refer to it: report it upstream."
    INVALID_ID = "invalid_id", "The id does not have the platform's shape: report it upstream."
    DUPLICATE_ID = "duplicate_id", "Another record of the same id was kept (the first in file order): check for a file delivered twice."
    DOUBLED_ROW = (
        "doubled_row",
        "A row without an id is repeated: one of each is used; check for a file delivered twice.",
    )
    MISSING_TITLE = "missing_title", "The record has no title (often a takedown): nothing to do."
    MISSING_VALUE = "missing_value", "A cell that the format makes mandatory is blank: the record is staged without it."
    NOT_AUDIO = "not_audio", "The record is a video, a heading or anything else but a sound recording: nothing to do."
    LOCAL_FILE = "local_file", "A user's local file, unknown to the platform: nothing to do."
    INVALID_ISRC = "invalid_isrc", "The code is not an ISRC: the record is staged without it; report it upstream."
    INVALID_ISWC = "invalid_iswc", "The code is not an ISWC, or its check digit is wrong: the work is staged without it."
    INVALID_GTIN = "invalid_gtin", "The barcode has a wrong length or check digit: the release is staged without it."
    INVALID_DATE = "invalid_date", "The date is impossible (year 0000, month 13 ...): staged without it."
    INVALID_DURATION = "invalid_duration", "The duration is negative, zero or not a number: staged without it."
    INVALID_NUMBER = "invalid_number", "The number cannot be read or is out of its range: staged without it."
    TOO_LONG = (
        "too_long",
        "A text exceeds the bound of its column: the value is left out, or the record if it requires the value; report it upstream.",
    )
    TOO_MANY = "too_many", "A list exceeds the bound of its column: the record is staged without it; report it upstream."
    TOO_LARGE = "too_large", "The record exceeds the bound of a record: report it upstream; the following records are staged."
    INVALID_FINGERPRINT = "invalid_fingerprint", "The items are not 32-bit numbers, or cover less than two seconds: report it upstream."
    UNDECODABLE_AUDIO = (
        "undecodable_audio",
        "The file cannot be decoded or is silent: replace it; a build tries it again after a change.",
    )
    MISSING_FILE = "missing_file", "The mapping names a file that is not in the folder: deliver it, or remove the line from the mapping."
    DANGLING_REFERENCE = "dangling_reference", "The row refers to a record that is not in the dump: the reference is left out."
    UNKNOWN_KIND = "unknown_kind", "No adapter knows this kind of record: check the format page; the kind may be new."
    UNKNOWN_GENRE = (
        "unknown_genre",
        "The suggested node is not in the canonical tree: correct the suggestion, or update the rules of this build.",
    )
    UNREAD_LAYOUT = "unread_layout", "The dump has another layout that takes precedence over this file's: deliver one layout per dump."
