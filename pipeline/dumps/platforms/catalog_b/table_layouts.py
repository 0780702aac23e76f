"""Tables of the relational dump that are read: columns in file order, the wanted ones, and the staging table they serve.

Add a member here when a relation needs it. A table that is absent from the dump is an empty one: the exporter leaves those out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import polars as pl

_TYPES: dict[str, pl.DataType] = {"i": pl.Int32(), "s": pl.Int16(), "t": pl.String(), "b": pl.Boolean()}
"""Only what is read is typed; ids (uuid), timestamps, char(n) and enums are text."""

_LINK_COLUMNS = "id:i* link:i* entity0:i* entity1:i* edits_pending:i last_updated:t link_order:i entity0_credit:t* entity1_credit:t"
_LOOKUP_COLUMNS = "id:i* name:t parent:i child_order:i description:t gid:t*"
_REDIRECT_COLUMNS = "gid:t* new_id:i* created:t"


@dataclass(frozen=True)
class Member:
    """One table of the dump.

    `layout` lists `name:type` in file order, a star after those that are read. A line that cannot be read is a record lost of the staging
    table `entity` when `is_record`, else a value lost to it.
    """

    table: str
    layout: str
    entity: str
    is_record: bool = False

    @cached_property
    def columns(self) -> dict[str, pl.DataType]:
        """Types of all columns, by name in file order."""
        return {name: _TYPES[kind.rstrip("*")] for name, kind in (cell.split(":") for cell in self.layout.split())}

    @cached_property
    def wanted(self) -> list[str]:
        """Names of the columns that are read."""
        return [cell.split(":")[0] for cell in self.layout.split() if cell.endswith("*")]

    @cached_property
    def schema(self) -> pl.Schema:
        """Schema of the unpacked table: the line number in the file, then the wanted columns."""
        return pl.Schema({"line": pl.Int64(), **{name: self.columns[name] for name in self.wanted}})


_DATES = "{0}_date_year:s {0}_date_month:s {0}_date_day:s"
_SPAN = f"{_DATES.format('begin')} {_DATES.format('end')}"
_EVENT_DATE = "date_year:s* date_month:s* date_day:s*"

_CORE = (
    Member(
        "recording",
        "id:i* gid:t* name:t* artist_credit:i* length:i* comment:t* edits_pending:i last_updated:t video:b*",
        "source_recording",
        is_record=True,
    ),
    # `isrc` and `barcode` are read as text: what they hold is judged in staging, where it can be rejected with its record.
    *(
        Member(
            f"{kind}_alias",
            f"id:i* {kind}:i* name:t* locale:t* edits_pending:i last_updated:t type:i sort_name:t {_SPAN} primary_for_locale:b ended:b",
            "source_title",
            is_record=True,
        )
        for kind in ("recording", "work")
    ),
    Member("isrc", "id:i recording:i* isrc:t* edits_pending:i created:t", "source_recording"),
    Member("artist_credit", "id:i* name:t* artist_count:s ref_count:i created:t edits_pending:i gid:t", "source_recording"),
    Member("artist_credit_name", "artist_credit:i* position:s* artist:i* name:t* join_phrase:t*", "source_recording"),
    Member(
        "artist",
        f"id:i* gid:t* name:t* sort_name:t* {_SPAN} type:i area:i gender:i comment:t edits_pending:i last_updated:t ended:b begin_area:i "
        "end_area:i",
        "source_artist",
        is_record=True,
    ),
    Member(
        "artist_alias",
        f"id:i artist:i* name:t* locale:t edits_pending:i last_updated:t type:i sort_name:t {_SPAN} primary_for_locale:b ended:b",
        "source_artist",
    ),
    Member(
        "release",
        "id:i* gid:t* name:t* artist_credit:i* release_group:i* status:i* packaging:i language:i script:i barcode:t* comment:t "
        "edits_pending:i quality:s last_updated:t",
        "source_release",
        is_record=True,
    ),
    Member("release_label", "id:i* release:i* label:i* catalog_number:t* last_updated:t", "source_release"),
    # Dates come from both tables: a release has dozens of countries, or none and one date.
    Member("release_country", f"release:i* country:i {_EVENT_DATE}", "source_release"),
    Member("release_unknown_country", f"release:i* {_EVENT_DATE}", "source_release"),
    Member(
        "release_group",
        "id:i* gid:t* name:t artist_credit:i type:i* comment:t edits_pending:i last_updated:t",
        "source_release",
    ),
    Member("release_group_secondary_type_join", "release_group:i* secondary_type:i* created:t", "source_release"),
    Member("release_group_primary_type", _LOOKUP_COLUMNS, "source_release"),
    Member("release_group_secondary_type", _LOOKUP_COLUMNS, "source_release"),
    Member("release_status", _LOOKUP_COLUMNS, "source_release"),
    Member(
        "medium",
        "id:i* release:i* position:i* format:i name:t edits_pending:i last_updated:t track_count:i* gid:t",
        "source_release_track",
    ),
    Member(
        "track",
        "id:i gid:t recording:i* medium:i* position:i* number:t name:t artist_credit:i length:i edits_pending:i last_updated:t "
        "is_data_track:b*",
        "source_release_track",
        is_record=True,
    ),
    Member(
        "label",
        f"id:i* gid:t* name:t* {_SPAN} label_code:i type:i area:i comment:t edits_pending:i last_updated:t ended:b",
        "source_label",
        is_record=True,
    ),
    Member("work", "id:i* gid:t* name:t* type:i comment:t edits_pending:i last_updated:t", "source_work", is_record=True),
    Member("iswc", "id:i work:i* iswc:t* edits_pending:i created:t", "source_work"),
    Member("url", "id:i* gid:t url:t* edits_pending:i last_updated:t", "source_link"),
    Member("link", f"id:i* link_type:i* {_SPAN} attribute_count:i created:t ended:b*", "source_link"),
    Member(
        "link_type",
        "id:i* parent:i child_order:i gid:t* entity_type0:t entity_type1:t name:t description:t link_phrase:t reverse_link_phrase:t "
        "long_link_phrase:t last_updated:t is_deprecated:b has_dates:b entity0_cardinality:s entity1_cardinality:s",
        "source_link",
    ),
    Member("link_attribute", "link:i* attribute_type:i* created:t", "source_recording"),
    Member(
        "link_attribute_type",
        "id:i* parent:i root:i child_order:i gid:t* name:t description:t last_updated:t",
        "source_recording",
    ),
    Member("l_artist_recording", _LINK_COLUMNS, "source_recording"),
    Member("l_recording_recording", _LINK_COLUMNS, "source_recording"),
    Member("l_recording_work", _LINK_COLUMNS, "source_work_recording"),
    Member("l_recording_url", _LINK_COLUMNS, "source_link"),
    Member("l_release_url", _LINK_COLUMNS, "source_link"),
    Member("l_artist_url", _LINK_COLUMNS, "source_link"),
    *(
        Member(f"{kind}_gid_redirect", _REDIRECT_COLUMNS, "source_redirect", is_record=True)
        for kind in ("recording", "release", "artist", "label")
    ),
)
# Tags are in the derived archive, which has another licence and may be absent.
_DERIVED = (
    Member("tag", "id:i* name:t* ref_count:i", "source_genre"),
    *(
        Member(f"{kind}_tag", f"{kind}:i* tag:i* count:i* last_updated:t", "source_genre")
        for kind in ("recording", "release", "release_group", "artist")
    ),
)
MEMBERS = {member.table: member for member in (*_CORE, *_DERIVED)}
REQUIRED = ("recording", "isrc", "artist", "artist_credit", "artist_credit_name", "release", "medium", "track")
"""Tables that every export has. One without rows was lost in transfer."""
