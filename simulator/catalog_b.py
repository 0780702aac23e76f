"""catalog_b as two archives of PostgreSQL COPY text: recordings, releases, artists, works and the relations between them.

A recording is one row, on any number of releases; few carry ISRCs; addresses on other platforms, merged ids and videos are in
tables of their own. Table columns are those of schema 31.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from catalog_store.identifiers import ISRC_SHAPE
from catalog_store.platforms import CATALOG_B
from simulator import catalog_b_tables as tables
from simulator.cast import list_artists
from simulator.catalog_b_artists import FIRST_ARTIST_ID, FIRST_LABEL_ID, VARIOUS_ID, build_artist_tables, build_label_table
from simulator.catalog_b_links import build_links
from simulator.catalog_b_tables import CORE, DERIVED, NONE, STAMP, TAGS, copy_text, name_member
from simulator.catalog_b_titles import build_title_aliases
from simulator.genre_words import CATALOG_B as GENRES
from simulator.genre_words import MAINS, NO_GENRES, UMBRELLAS
from simulator.mixed_fields import list_strays
from simulator.nested import draw_main_strings
from simulator.randomness import draw_flags, make_uuids
from simulator.rows import build_label_truth, build_platform_rows, make_block
from simulator.songs import NOBODY
from simulator.wording import add_versions, compose_titles
from simulator.world_part import Part, build_entity_truth, build_truth, draw_malformed_count, find_first_number

if TYPE_CHECKING:
    from simulator.files import Closing
    from simulator.rows import PlatformRows
    from simulator.settings import SimulationSettings

FIRST_SHARED_CREDIT = 1_000_000_000
"""Credits of several artists; the credit of one artist alone has the artist's row id."""
PRIMARY_TYPES = {"album": 1, "ep": 3, "single": 2, "live": 1, "edition": 1, "deluxe": 1, "compilation": 1}
SECONDARY_TYPES = {"live": 6, "compilation": 1}
COUNTRIES = (222, 221, 81, 150, 107, 13, 241)
LOWER_VERSIONS = 0.6
"""Share of versions that are in lower case, as the style guide asks."""
WORK_SHARE = 0.4
RENAMED = 0.03
"""Share of tracks called otherwise than their recording."""
UNKNOWN_COUNTRY, NO_DATE, NO_CATALOG_NUMBER = 0.08, 0.06, 0.03


def build_openings(_settings: SimulationSettings) -> dict[str, bytes]:
    """Return nothing: COPY text has no header."""
    return {}


def build_closings(_settings: SimulationSettings) -> dict[str, Closing]:
    """Return nothing: COPY text has no last line."""
    return {}


def build_part(settings: SimulationSettings, block: int) -> Part:
    """Return the table rows of one block; names are `core/<table>` and `derived/<table>`, spooled until the archives are packed."""
    source = build_platform_rows(settings, CATALOG_B, block)
    rng, first = source.rng, find_first_number(settings, block)
    rows = _build_titles(settings, source)
    recordings = rows.unique("recording", keep="first", maintain_order=True)
    # The same recording entered twice by editors, the second time without a code.
    twins = recordings.filter(draw_flags(rng, len(recordings), settings.catalog_b_duplicates)).with_columns(
        isrc=pl.lit(None, dtype=pl.String)
    )
    entities = pl.concat([recordings, twins]).with_columns(is_video=pl.lit(value=False))
    videos = recordings.filter(draw_flags(rng, len(recordings), settings.catalog_b_videos)).with_columns(
        is_video=pl.lit(value=True), isrc=pl.lit(None, dtype=pl.String)
    )
    entities = pl.concat([entities, videos])
    numbers = first + 1 + np.arange(len(entities))
    entities = entities.with_columns(id=pl.Series(numbers), gid=make_uuids(numbers, "catalog_b recording")).with_columns(
        credit=_choose_credit(pl.col("id"))
    )
    # Videos are rows of the same table and have no truth: no other platform's record belongs to them.
    good = entities.filter(~pl.col("is_video"))
    out = Part(truth=build_truth(good["gid"], good))
    artists = pl.Series(list_artists(settings, CATALOG_B, block))
    labels = build_label_truth(settings, block, FIRST_LABEL_ID)
    out.entities = {
        "artist": build_entity_truth("artist", make_uuids(artists.to_numpy(), "catalog_b artist"), artists),
        "label": labels.with_columns(external_id=make_uuids(labels["external_id"].cast(pl.Int64).to_numpy(), "catalog_b label")),
    }
    rows = rows.join(
        # Tracks refer to the first entry of a recording and never to its duplicate.
        entities.head(len(recordings)).select("recording", pl.col("id").alias("recording_id"), "credit"),
        on="recording",
        how="left",
        maintain_order="left",
    )
    releases = _build_releases(source, first)
    out.entities["release"] = build_entity_truth("release", releases["gid"], releases["number"])
    groups = [
        _build_recording_tables(settings, source, entities, first),
        _build_release_tables(source, releases, rows, first),
        build_artist_tables(settings, block, list_strays(settings, recordings)),
        _build_work_tables(settings, block, good, source),
        build_title_aliases(settings, block, "recording", good.select("id", "title")),
        _build_tag_tables(settings, source, good, releases),
        build_links(settings, block, good, releases, rng),
    ]
    if block == 0:
        groups += [
            tables.build_constant_tables(TAGS, tuple(tag for tag in TAGS if tag not in NO_GENRES), STAMP),
            build_label_table(settings),
        ]
    texts: dict[str, bytes] = {}
    for group in groups:
        for name, text in group.items():
            # Several groups write into one table (credits of recordings and of artists).
            texts[name] = texts.get(name, b"") + text
    out.files.update(texts)
    return out


def _build_titles(settings: SimulationSettings, source: PlatformRows) -> pl.DataFrame:
    rates = settings.get_rates(CATALOG_B)
    rows = add_versions(settings, CATALOG_B, source)
    lower = pl.Series(draw_flags(source.rng, len(rows), LOWER_VERSIONS))
    # Names keep their case: only the words of the variant are lowered.
    plain = lower & pl.Series(rows["kind"] != "remix")
    rows = rows.with_columns(version=pl.when(plain).then(pl.col("version").str.to_lowercase()).otherwise("version"))
    rows = rows.with_columns(isrc=pl.when(pl.col("isrc").str.contains(ISRC_SHAPE)).then("isrc"))
    return compose_titles(settings, rows, source, featured=rates.featured_in_title, in_title=rates.version_in_title, form=" ({})")


def _choose_credit(shared: pl.Expr) -> pl.Expr:
    """Return the row id of the artist credit: the artist's own, or a shared one with the number of its recording."""
    several = (pl.col("second_artist") != NOBODY) | (pl.col("guest") != NOBODY)
    alone = pl.when(pl.col("artist") == NOBODY).then(VARIOUS_ID).otherwise(pl.col("artist") + FIRST_ARTIST_ID)
    return pl.when(several).then(shared + FIRST_SHARED_CREDIT).otherwise(alone)


def _build_releases(source: PlatformRows, first: int) -> pl.DataFrame:
    number = pl.col("release") + first + 1
    artist = pl.when(pl.col("artist") == NOBODY).then(VARIOUS_ID).otherwise(pl.col("artist") + FIRST_ARTIST_ID)
    frame = source.releases.with_columns(id=number, credit=artist, barcode=pl.col("gtin").str.strip_chars_start("0"))
    return frame.with_columns(
        gid=make_uuids(frame["id"].to_numpy(), "catalog_b release"),
        group_gid=make_uuids(frame["id"].to_numpy(), "catalog_b group"),
        medium_gid=make_uuids(frame["id"].to_numpy(), "catalog_b medium"),
        area=pl.Series(COUNTRIES).gather(source.rng.integers(0, len(COUNTRIES), len(frame))),
        place=pl.Series(source.rng.random(len(frame))),
    )


def _build_recording_tables(settings: SimulationSettings, source: PlatformRows, entities: pl.DataFrame, first: int) -> dict[str, bytes]:
    comment = (
        pl.when((pl.col("kind") == "live") & (pl.col("id") % 3 == 0))
        .then(pl.lit('live, "second night" \\ audience tape'))
        .otherwise(pl.lit(""))
    )
    stamp = pl.when(pl.col("id") % 7 == 0).then(None).otherwise(pl.lit(STAMP))
    text = copy_text(
        entities.select(
            "id",
            "gid",
            "title",
            "credit",
            "duration_ms",
            comment.alias("comment"),
            pl.lit(0).alias("edits"),
            stamp.alias("updated"),
            pl.when("is_video").then(pl.lit("t")).otherwise(pl.lit("f")).alias("video"),
        )
    )
    # A row with too few columns, or with a byte that is not UTF-8.
    broken = b""
    for number in range(draw_malformed_count(settings, source.rng, len(entities))):
        row = first + len(entities) + 2 + number
        gid = make_uuids(np.array([row]), "catalog_b recording")[0].encode()
        kinds = (b"%d\t%s\tCut off\n", b"%d\t%s\tCaf\xe9 noir\t10000\t200000\t\t0\t\\N\tf\n")
        broken += kinds[int(source.rng.integers(0, 2))] % (row, gid)
    several = entities.filter(pl.col("credit") >= FIRST_SHARED_CREDIT)
    join_to_guest = pl.when(pl.col("guest") != NOBODY).then(pl.lit(" feat. ")).otherwise(pl.lit(""))
    people = [
        several.select(
            "credit",
            position=pl.lit(0),
            artist="artist",
            name="artist_name",
            join=pl.when(pl.col("second_artist") != NOBODY).then(pl.lit(" & ")).otherwise(join_to_guest),
        ),
        several.filter(pl.col("second_artist") != NOBODY).select(
            "credit", position=pl.lit(1), artist="second_artist", name="second_artist_name", join=join_to_guest
        ),
        several.filter(pl.col("guest") != NOBODY).select(
            "credit",
            position=pl.when(pl.col("second_artist") != NOBODY).then(2).otherwise(1),
            artist="guest",
            name="guest_name",
            join=pl.when(pl.col("second_guest") != NOBODY).then(pl.lit(", ")).otherwise(pl.lit("")),
        ),
        several.filter(pl.col("second_guest") != NOBODY).select(
            "credit",
            position=pl.when(pl.col("second_artist") != NOBODY).then(3).otherwise(2),
            artist="second_guest",
            name="second_guest_name",
            join=pl.lit(""),
        ),
    ]
    credit_names = pl.concat(people).sort("credit", "position").with_columns(pl.col("artist") + FIRST_ARTIST_ID)
    whole = credit_names.group_by("credit", maintain_order=True).agg(name=pl.concat_str("name", "join").str.join(""), count=pl.len())
    codes = entities.filter(pl.col("isrc").is_not_null())
    # The dirt of a code may have chosen the second one already.
    second = codes.filter(pl.col("second_isrc").is_not_null() & (pl.col("second_isrc") != pl.col("isrc")))
    isrcs = pl.concat([codes.select("id", "isrc"), second.select("id", isrc="second_isrc")]).unique(maintain_order=True)
    old = entities.filter(draw_flags(source.rng, len(entities), settings.catalog_b_redirects))
    redirects = old.select(gid=make_uuids(old["id"].to_numpy(), "catalog_b merged"), new="id", created=pl.lit(STAMP))
    return {
        name_member("recording"): text + broken,
        name_member("artist_credit_name"): copy_text(credit_names),
        name_member("artist_credit"): copy_text(
            whole.select(
                "credit",
                "name",
                "count",
                pl.lit(1),
                pl.lit(STAMP).alias("created"),
                pl.lit(0).alias("edits"),
                gid=make_uuids(whole["credit"].to_numpy(), "catalog_b credit"),
            )
        ),
        name_member("isrc"): copy_text(
            isrcs.select(row=pl.int_range(pl.len()) + first + 1, recording="id", isrc="isrc", edits=pl.lit(0), created=pl.lit(STAMP))
        ),
        name_member("recording_gid_redirect"): copy_text(redirects),
    }


def _build_release_tables(source: PlatformRows, releases: pl.DataFrame, rows: pl.DataFrame, first: int) -> dict[str, bytes]:
    numbers = first + 1 + np.arange(len(rows))
    renamed = pl.Series(draw_flags(source.rng, len(rows), RENAMED))
    status = pl.when(pl.col("place") > 0.98).then(3).when(pl.col("place") > 0.97).then(4).when(pl.col("place") > 0.96).then(2).otherwise(1)  # noqa: PLR2004 - bootleg, pseudo, promotion
    dated = releases.filter((pl.col("place") > NO_DATE) & ~pl.col("is_bogus"))
    date = [pl.when(pl.col(name) > 0).then(name).alias(name) for name in ("year", "month", "day")]
    is_unknown = pl.col("place") < NO_DATE + UNKNOWN_COUNTRY
    secondary = releases.with_columns(secondary=pl.col("kind").replace_strict(SECONDARY_TYPES, default=None, return_dtype=pl.Int64)).filter(
        pl.col("secondary").is_not_null()
    )
    zero, stamp, null, empty = pl.lit(0).alias("edits"), pl.lit(STAMP).alias("updated"), NONE, pl.lit("").alias("comment")
    return {
        name_member("release"): copy_text(
            releases.select(
                "id",
                "gid",
                "title",
                "credit",
                pl.col("id").alias("group"),
                status.alias("status"),
                null.alias("packaging"),
                pl.lit(120).alias("language"),
                pl.lit(28).alias("script"),
                "barcode",
                empty,
                zero,
                pl.lit(-1).alias("quality"),
                stamp,
            )
        ),
        name_member("release_group"): copy_text(
            releases.select("id", "group_gid", "title", "credit", pl.col("kind").replace_strict(PRIMARY_TYPES), empty, zero, stamp)
        ),
        name_member("release_group_secondary_type_join"): copy_text(secondary.select("id", "secondary", stamp)),
        name_member("medium"): copy_text(
            releases.select(
                "id",
                pl.col("id").alias("release"),
                pl.lit(1),
                pl.lit(12).alias("format"),
                pl.lit("").alias("name"),
                zero,
                stamp,
                "track_count",
                "medium_gid",
            )
        ),
        name_member("track"): copy_text(
            rows.select(
                pl.Series("row", numbers),
                make_uuids(numbers, "catalog_b track").alias("gid"),
                "recording_id",
                (pl.col("release") + first + 1).alias("medium"),
                "track",
                pl.col("track").cast(pl.String).alias("number"),
                pl.when(renamed).then(pl.col("title") + " (album version)").otherwise("title"),
                "credit",
                "duration_ms",
                zero,
                stamp,
                pl.lit("f").alias("data"),
            )
        ),
        name_member("release_label"): copy_text(
            releases.select(
                "id",
                pl.col("id").alias("release"),
                pl.col("label") + FIRST_LABEL_ID,
                pl.when(pl.col("place") < NO_CATALOG_NUMBER).then(pl.lit("[none]")).otherwise("catalog_number"),
                stamp,
            )
        ),
        name_member("release_country"): copy_text(dated.filter(~is_unknown).select("id", "area", *date)),
        name_member("release_unknown_country"): copy_text(dated.filter(is_unknown).select("id", *date)),
    }


def _build_work_tables(settings: SimulationSettings, block: int, good: pl.DataFrame, source: PlatformRows) -> dict[str, bytes]:
    """Return works, their ISWCs (a few with a wrong check digit) and the recordings that perform them."""
    songs = (
        make_block(settings, block)
        .made.songs.select(number="work", work_title="title", iswc="iswc", second_iswc="second_iswc")
        .unique("number", keep="first", maintain_order=True)
    )
    performed = good.with_columns(number=pl.col("work")).filter(draw_flags(source.rng, len(good), WORK_SHARE))
    works = songs.filter(pl.col("number").is_in(performed["number"].unique().implode())).with_columns(id=pl.col("number") + 1)
    stamp, zero = pl.lit(STAMP).alias("updated"), pl.lit(0).alias("edits")
    spoilt = pl.Series(draw_flags(source.rng, len(works), settings.wrong_iswc))
    first_code = (
        pl.when(spoilt)
        .then(pl.concat_str(pl.col("iswc").str.slice(0, 10), (pl.col("iswc").str.slice(10).cast(pl.Int64) + 1) % 10))
        .otherwise("iswc")
    )
    codes = pl.concat([works.select("id", code=first_code), works.select("id", code="second_iswc")]).drop_nulls()
    return build_title_aliases(settings, block, "work", works.select("id", title="work_title")) | {
        name_member("work"): copy_text(
            works.select(
                "id",
                make_uuids(works["id"].to_numpy(), "catalog_b work").alias("gid"),
                "work_title",
                pl.lit(17).alias("type"),
                pl.lit("").alias("comment"),
                zero,
                stamp,
            )
        ),
        name_member("iswc"): copy_text(
            codes.select(
                (pl.int_range(pl.len()) + 1 + find_first_number(settings, block)).alias("row"),
                "id",
                tables.format_iswc(pl.col("code")).alias("code"),
                zero,
                stamp,
            )
        ),
        name_member("l_recording_work"): copy_text(
            performed.select(
                (pl.int_range(pl.len()) + 1 + find_first_number(settings, block)).alias("row"),
                pl.when(pl.col("kind") == "live").then(tables.LIVE_PERFORMANCE).otherwise(tables.PERFORMANCE).alias("link"),
                "id",
                (pl.col("number") + 1).alias("work"),
                zero,
                stamp,
                pl.lit(0).alias("order"),
                pl.lit("").alias("c0"),
                pl.lit("").alias("c1"),
            )
        ),
    }


def _build_tag_tables(settings: SimulationSettings, source: PlatformRows, good: pl.DataFrame, releases: pl.DataFrame) -> dict[str, bytes]:
    """Return tags with votes on release groups (dense) and recordings (sparse): the genre, often its umbrella, rarely no genre."""
    rng = source.rng
    umbrella = pl.Series([TAGS.index(UMBRELLAS[main]) + 1 if main in UMBRELLAS else None for main, _ in MAINS], dtype=pl.Int64)

    def draw_tags(entities: pl.DataFrame, share: float) -> pl.DataFrame:
        some = entities.filter(draw_flags(rng, len(entities), share))
        tags, positions = draw_main_strings(some["main"].to_numpy(), GENRES, rng, settings)
        ids = pl.Series([TAGS.index(tag) + 1 for tag in tags])
        exact = some.select("id").with_columns(
            tag=ids.gather(pl.Series(positions).replace(-1, None)), count=pl.Series(2 + rng.geometric(0.3, len(some)))
        )
        broad = (
            some.select("id", tag=umbrella.gather(some["main"]))
            .with_columns(count=pl.Series(rng.integers(1, 3, len(some))))
            .filter(draw_flags(rng, len(some), 0.5))
        )
        junk = some.select("id").with_columns(
            tag=pl.Series(rng.integers(len(TAGS) - len(NO_GENRES) + 1, len(TAGS) + 1, len(some))),
            count=pl.Series(rng.integers(-1, 4, len(some))),
        )
        return (
            pl.concat([exact, broad, junk.filter(draw_flags(rng, len(some), 0.1))])
            .drop_nulls()
            .unique(["id", "tag"], keep="first", maintain_order=True)
            .with_columns(updated=pl.lit(STAMP))
        )

    return {
        name_member("release_group_tag", DERIVED): copy_text(draw_tags(releases, 0.6)),
        name_member("recording_tag", DERIVED): copy_text(draw_tags(good, 0.15)),
    }


ARCHIVES = {CORE: "mbdump.tar.bz2", DERIVED: "mbdump-derived.tar.bz2"}
