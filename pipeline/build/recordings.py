"""Golden recordings and their artists: one title, credit list, code, duration and date for all source records of each.

The module writes recording, recording_isrc, recording_artist and recording_provenance. Each field is chosen by a chain or a vote of its
own (priorities.py and the module of the field); docs/design/build.md states the rules in a table. One process builds one range of
recordings (recording_buckets.py brings its source records). Choices are made over numbers of source records; provenance.py looks up their
ids once, at the end. Linkage decides which records are one recording.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

import duckdb
import polars as pl

from catalog_store.name_keys.variants import build_variants_expr
from catalog_store.pending_files import name_pending, write_aside
from catalog_store.record_keys.numbers import hash_columns
from catalog_store.tables import TABLES
from catalog_store.tables.files import count_rows, join_tables, list_parts
from pipeline.build.carried_ranges import open_carrier
from pipeline.build.credited_names import load_other_names
from pipeline.build.durations import DURATION, DURATION_OF_PLATFORM
from pipeline.build.name_map import read_names, write_name_map
from pipeline.build.packing import render_packed_sql, render_record_sql
from pipeline.build.popularity import render_popularity_sql
from pipeline.build.priorities import render_platform_count_sql
from pipeline.build.provenance import CHOSEN, RECORDING_PROVENANCE, name_popularity, name_records
from pipeline.build.recording_artists import CREDIT_KEY, RECORDING_ARTIST, ROLE_KNOWLEDGE
from pipeline.build.recording_buckets import count_code_parts, open_buckets
from pipeline.build.recording_ranges import list_range_parts, open_range_work, read_range, write_range
from pipeline.build.release_dates import DATED, RELEASE_DATE, find_last_believable_day, render_date_sql, render_precision_sql
from pipeline.build.representative_isrcs import render_representative_sql
from pipeline.build.titles import OUTVOTED, TITLE, TITLED
from pipeline.build.workbench import QuerySteps, order_sql
from pipeline.engine.duckdb_session import open_duckdb

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.build.carried_ranges import RangeCarrier
    from pipeline.build.recording_buckets import RecordingBuckets
    from pipeline.paths import BuildPaths


_NAMES = "artist_names.arrow"
_SOURCE = ("platform", "external_id")
_TABLES = ("recording_artist", "recording", "recording_provenance")
"""Tables whose parts are ranges of recordings. `recording_isrc` is in order of codes."""


class _Range(NamedTuple):
    """A range, and the parts of source_credit and of the live snapshot's recordings that hold it."""

    number: int
    credits: list[Path]
    shown: list[Path]


class _Made(NamedTuple):
    """The result of one range: the folder of its tables, the file of its digests, and the recordings carried over."""

    folder: Path
    digests: Path
    carried: int


def build_recordings(paths: BuildPaths) -> dict[str, int]:
    """Write recording_isrc, recording_artist, recording and recording_provenance, and return row counts."""
    records = count_rows(paths.table("recording_member"))
    with open_range_work(paths, "recordings", records) as work:
        buckets = open_buckets(paths, work, find_last_believable_day(paths))
        write_name_map(paths.table("artist"), "artist_id", work.folder / _NAMES)
        buckets.fill(paths, work)
        credited = list_range_parts(paths.table("source_credit"))
        live = paths.current / "tables" / "recording"
        shown = list_range_parts(live) if live.is_dir() else {}
        ranges = [_Range(number, credited.get(number, []), shown.get(number, [])) for number in buckets.list_buckets()]
        # Dates that the last day makes believable are among the inputs. Of the day itself only the year counts, for codes. With the whole
        # day nothing would be carried over once a dump of another day has landed.
        carrier = open_carrier(paths, "recordings", _TABLES, buckets.last_day[:4])
        written = work.run("build", partial(_build_range, buckets, carrier), ranges)
        carrier.remove_stale_files([made.digests for made in written])
        for table in _TABLES:
            join_tables(TABLES[table], paths.table(table), [made.folder / table for made in written])
        codes = work.run("write_codes", partial(_write_code_part, paths, buckets), range(count_code_parts(paths)))
        join_tables(TABLES["recording_isrc"], paths.table("recording_isrc"), codes)
    names = {"recording_isrcs": "recording_isrc", "recording_artists": "recording_artist", "recordings": "recording"}
    counts = {fact: count_rows(paths.table(table)) for fact, table in names.items()}
    return {**counts, "carried_recordings": sum(made.carried for made in written)}


def _write_code_part(paths: BuildPaths, buckets: RecordingBuckets, part: int) -> Path:
    folder = buckets.folder / "built" / f"codes-{part:06d}"
    with write_aside(folder) as pending:
        write_range(TABLES["recording_isrc"], pending, buckets.read_codes(paths, part))
    return folder


def _build_range(buckets: RecordingBuckets, carrier: RangeCarrier, place: _Range) -> _Made:
    """Write the tables of one range of recordings, and send its shown codes on."""
    folder = buckets.folder / "built" / f"{place.number:06d}"
    inputs = _read_inputs(buckets, place)
    carried, spill = carrier.carry(place.number, _name_inputs(inputs)), name_pending(buckets.folder / f"duckdb-{place.number:06d}")
    made = _choose_rows(carried.select_changed(inputs), buckets.last_day, spill)
    carried.rows.update(_rank_again(carried.rows, inputs["source_member"], spill))
    with write_aside(folder) as pending:
        for name in _TABLES:
            write_range(TABLES[name], pending / name, carried.merge(name, made[name]))
        digests = carrier.record(carried.digests, [part for name in _TABLES for part in list_parts(pending / name)])
    shown = inputs["isrc_owner"].join(carried.rows["recording"], on=["recording_id", "isrc"], how="semi").select("place")
    buckets.send_shown_codes(place.number, pl.concat([made["shown"], shown]))
    return _Made(folder, digests, len(carried.kept))


def _rank_again(rows: dict[str, pl.DataFrame], members: pl.DataFrame, spill: Path) -> dict[str, pl.DataFrame]:
    """Return the rows of `recording` and `recording_provenance` that are carried over, with tonight's popularity."""
    kept = members.join(rows["recording"], on="recording_id", how="semi").select("recording_id", "record", *_SOURCE, "popularity")
    if kept.is_empty():
        return {}
    with open_duckdb(spill) as connection:
        steps = QuerySteps(connection)
        steps.show("source_member", kept)
        ranked = steps.read_frame(_RANKED)
    tonight = {"recording": ranked.select("recording_id", "popularity"), "recording_provenance": name_popularity(ranked, kept)}
    return {name: rows[name].update(values, on="recording_id", include_nulls=True) for name, values in tonight.items()}


def _name_inputs(inputs: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Return the inputs by recording, with names in place of the numbers that differ from night to night."""
    member, credited, owner = inputs["source_member"], inputs["source_credit"], inputs["isrc_owner"]
    record = member.select("record", name=hash_columns(_SOURCE))
    artist = inputs["artist"].select("artist_id", artist_name="name")
    # The code of last night counts only beside another one.
    rivals = owner.filter(pl.len().over("recording_id") > 1)
    return {
        # Platforms rank all of their records every day. Popularity decides about no other field, so `_rank_again` brings it up to date.
        "member": member.drop("record", "popularity"),
        "listing": inputs["listing"].join(record, on="record", how="left").drop("record"),
        "credit": credited.join(artist, on="artist_id", how="left"),
        "owner": owner.drop("place"),
        "shown_before": inputs["shown_before"].join(rivals, on="recording_id", how="semi"),
    }


def _read_inputs(buckets: RecordingBuckets, place: _Range) -> dict[str, pl.DataFrame]:
    """Return what the sources say of one range, and the tables of earlier stages for it."""
    credited = read_range(TABLES["source_credit"], place.credits, place.number)
    # A code that gains or loses one platform must not make a track flip between two codes from night to night.
    shown = read_range(TABLES["recording"], place.shown, place.number, ("recording_id", "isrc"))
    return {
        "source_member": buckets.read_members(place.number),
        "listing": buckets.read_listings(place.number),
        "source_credit": credited,
        "isrc_owner": buckets.read_owners(place.number),
        "shown_before": shown.drop_nulls("isrc"),
        "artist": read_names(buckets.folder / _NAMES, credited["artist_id"]),
    }


def _choose_rows(inputs: dict[str, pl.DataFrame], last_day: str, spill: Path) -> dict[str, pl.DataFrame]:
    """Return the rows of _TABLES, and `shown`: the places of the representative codes in `isrc_owner`.

    Inputs that do not fit into memory are halved by recording_id, so the rows depend on no limit.
    """
    try:
        return _query_rows(inputs, last_day, spill)
    except duckdb.OutOfMemoryException:
        ids = inputs["source_member"]["recording_id"]
        first, last = cast("int", ids.min()), cast("int", ids.max())
        if first == last:
            raise
    middle = max(first + 1, int(cast("float", ids.median())))
    is_lower = pl.col("recording_id") < middle
    halves = [_choose_rows(_filter_inputs(inputs, is_inside), last_day, spill) for is_inside in (is_lower, ~is_lower)]
    return {name: pl.concat([half[name] for half in halves]) for name in halves[0]}


def _filter_inputs(inputs: dict[str, pl.DataFrame], is_inside: pl.Expr) -> dict[str, pl.DataFrame]:
    return {name: rows.filter(is_inside) if "recording_id" in rows.columns else rows for name, rows in inputs.items()}


def _query_rows(inputs: dict[str, pl.DataFrame], last_day: str, spill: Path) -> dict[str, pl.DataFrame]:
    with open_duckdb(spill) as connection:
        steps = QuerySteps(connection)
        for name, rows in inputs.items():
            steps.show(name, rows)
        _choose_values(steps, last_day)
        return {
            "recording_artist": steps.read_frame(order_sql(TABLES["recording_artist"], RECORDING_ARTIST)),
            "recording": steps.read_frame(order_sql(TABLES["recording"], _RECORDING)).with_columns(
                variants=build_variants_expr(pl.col("variant"))
            ),
            "recording_provenance": name_records(steps.read_frame(RECORDING_PROVENANCE), inputs["source_member"]),
            "shown": steps.read_frame(_SHOWN),
        }


def _choose_values(steps: QuerySteps, last_day: str) -> None:
    """Choose the values of every field."""
    # Each step reads the ones before it by name, so the order is that of their queries.
    steps.keep("uncredited", _UNCREDITED)
    steps.keep("member", _MEMBER)
    steps.keep("source_release_number", _RELEASE_NUMBER)
    steps.keep("on_release", _ON_RELEASE)
    steps.keep("representative", render_representative_sql(last_day))
    steps.keep("counted", _COUNTED)
    steps.keep("credit_record", _CREDIT_RECORD)
    steps.keep("role_knowledge", ROLE_KNOWLEDGE)
    steps.keep("titled", TITLED)
    steps.keep("outvoted", OUTVOTED)
    steps.keep("title", TITLE)
    steps.keep("duration_of_platform", DURATION_OF_PLATFORM)
    steps.keep("duration", DURATION)
    steps.keep("dated", DATED)
    steps.keep("release_date", RELEASE_DATE)
    steps.keep("variant", _VARIANT)
    load_other_names(steps, "SELECT artist_id, name AS credited_as FROM source_credit")
    steps.keep("chosen", CHOSEN)


# A record of `Unknown Artist` beside a record that names the artist must not choose the list: the recording would have no artist.
_UNCREDITED = """
SELECT record FROM source_member ANTI JOIN (FROM source_credit WHERE NOT is_named_by_title) USING (platform, external_id)
"""

_MEMBER = "SELECT m.*, u.record IS NOT NULL AS is_uncredited FROM source_member m LEFT JOIN uncredited u USING (record)"
"""Source records, numbered in the order of (platform, external id), whatever the order of the dumps."""

_RELEASE_NUMBER = """
SELECT row_number() OVER (ORDER BY platform, release_id) AS release_number, platform, release_id
FROM (SELECT DISTINCT platform, release_id FROM listing)
"""

_ON_RELEASE = """
SELECT l.recording_id, l.record, l.platform, r.release_number, l.stamp, l.is_official
FROM listing l JOIN source_release_number r USING (platform, release_id)
"""

_SHOWN = "SELECT o.place FROM isrc_owner o JOIN representative r USING (recording_id) WHERE o.isrc = r.isrc"

# One pass over the members feeds several fields. `popularity_key` is smallest for the highest popularity: `min` is the only choice needed.
_POPULARITY_KEY = f"min({render_packed_sql(('1000000 - round(popularity * 1e6)', 20))}) FILTER (WHERE popularity > 0)"
_COUNTED = f"""
SELECT recording_id, count(*)::INT AS source_count, {render_platform_count_sql()}::INT AS platform_count,
    {render_popularity_sql()} AS popularity,
    min({CREDIT_KEY}) AS credit_key,
    {_POPULARITY_KEY} AS popularity_key
FROM member GROUP BY recording_id
"""
_RANKED = f"""
SELECT recording_id, {render_popularity_sql()} AS popularity, {render_record_sql(_POPULARITY_KEY)} AS popularity_record
FROM source_member GROUP BY recording_id ORDER BY recording_id
"""

_CREDIT_RECORD = f"""
SELECT m.recording_id, m.platform, m.external_id, nullif(trim(m.artist_credit), '') AS shown
FROM member m JOIN (SELECT {render_record_sql("credit_key")} AS record FROM counted) c USING (record)
"""

_VARIANT = """
SELECT recording_id, min(struct_pack(a := -n, variant := variant, record := record)) AS best, count(*) AS variants
FROM (SELECT recording_id, variant, count(*) AS n, min(record) AS record FROM member GROUP BY ALL) GROUP BY recording_id
"""

# `names` joins the listed names only where the chosen record has no display credit of its own. Durations are rounded half up, and a known
# duration is never 0 seconds.
_RECORDING = f"""
WITH names AS (
    SELECT c.recording_id, string_agg(c.name, ', ' ORDER BY c.position) AS joined
    FROM source_credit c JOIN (FROM credit_record WHERE shown IS NULL) r USING (recording_id)
    WHERE c.platform = r.platform AND c.external_id = r.external_id AND c.role <> 'remixer' AND NOT c.is_named_by_title GROUP BY ALL
)
SELECT c.recording_id, t.title, v.best.variant AS variant, coalesce(a.shown, n.joined, 'Unknown Artist') AS artist_credit, i.isrc,
    floor(l.ms + 0.5)::INT AS duration_ms,
    CASE WHEN l.ms IS NOT NULL THEN greatest(1, floor(l.ms / 1000 + 0.5))::INT END AS duration_seconds,
    ({render_date_sql("d.stamp")})::DATE AS release_date,
    CASE WHEN d.stamp IS NOT NULL THEN {render_precision_sql("d.stamp")} END AS release_date_precision,
    c.popularity, c.source_count, c.platform_count, t.platform AS title_platform
FROM counted c JOIN title t USING (recording_id) JOIN variant v USING (recording_id) JOIN credit_record a USING (recording_id)
LEFT JOIN duration l USING (recording_id) LEFT JOIN representative i USING (recording_id) LEFT JOIN release_date d USING (recording_id)
LEFT JOIN names n USING (recording_id)
"""
