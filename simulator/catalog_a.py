"""catalog_a as monthly XML: releases, artists, labels, masters, one record a line start; 2026 shape, other form the 2020 shape.

Tracks have no id of their own: the n-th real track of a release is `<release id>-<n>`. Names are unique by a number in brackets, versions
are in brackets in the title, remixers are extra artists, half of the releases give no times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from catalog_store.platforms import CATALOG_A
from simulator.cast import list_artists, list_other_names, make_cast, spell_labels
from simulator.files import insert_broken_lines
from simulator.genre_words import CATALOG_A as GENRES
from simulator.mixed_fields import list_strays
from simulator.nested import draw_main_strings, format_clock_duration, format_written_duration
from simulator.randomness import draw_flags, make_base62_ids, make_generator
from simulator.rows import CREDITS, build_label_truth, build_platform_rows, spell_artists
from simulator.songs import NOBODY
from simulator.wording import add_original_mix, add_versions, compose_titles
from simulator.world_part import ROWS_PER_RECORDING, Part, build_entity_truth, build_truth, draw_malformed_count, find_first_number
from simulator.xml_text import build_attribute, build_element, escape_text, join_records

if TYPE_CHECKING:
    from collections.abc import Mapping

    from simulator.files import Closing, Content
    from simulator.settings import SimulationSettings

FIRST_RELEASE_ID, FIRST_ARTIST_ID, FIRST_LABEL_ID, FIRST_MASTER_ID = 50_000_000, 20_000_000, 6_000_000, 5_000_000
"""Above what the real platform has given out, so that a simulated dump can stand beside real excerpts."""
VARIOUS_ID = 194
"""Referred to by compilations and, as in the real dumps, absent from the artists file."""
COUNTRIES = (
    "US",
    "UK",
    "Germany",
    "France",
    "Netherlands",
    "Italy",
    "Japan",
    "Europe",
    "UK & Europe",
    "Sweden",
    "Russia",
    "Greece",
    "Brazil",
    "",
)
DESCRIPTIONS = {
    "album": "Album",
    "ep": "EP",
    "single": "Single",
    "live": "Album",
    "edition": "Reissue",
    "deluxe": "Album",
    "compilation": "Compilation",
}
PRINTED_OTHERWISE = 0.1
"""Share of credits printed in another way than the artist's page is called (`anv`)."""
REMIX_CREDITS, FEATURED_JOINS = 0.85, 0.7
HEADINGS, SUITES, NO_POSITION, NOTES = 0.02, 0.02, 0.05, 0.1
SUITE_FROM = 4
RELEASED_SHARES = (0.118, 0.689, 0.746, 0.764)
"""Cumulated: nothing, `YYYY`, `YYYY-MM-00`, `YYYY-00-00`; the rest is exact."""
KINDS = ("releases", "artists", "labels", "masters")


def build_file_name(settings: SimulationSettings, kind: str) -> str:
    """Return `discogs_YYYYMMDD_<kind>.xml.gz`."""
    return f"discogs_{settings.dump_date:%Y%m%d}_{kind}.xml.gz"


def build_openings(settings: SimulationSettings) -> dict[str, bytes]:
    """Return the start tags of the root elements; there is no XML declaration."""
    return {build_file_name(settings, kind): f"<{kind}>\n".encode() for kind in KINDS}


def build_closings(settings: SimulationSettings) -> dict[str, Closing]:
    """Return the end tags of the root elements."""
    return {build_file_name(settings, kind): (lambda _lines, kind=kind: f"</{kind}>\n".encode()) for kind in KINDS}  # type: ignore[misc]


def list_release_ids(settings: SimulationSettings, block: int) -> pl.DataFrame:
    """Return release (position in the block) and id, for links of other platforms."""
    releases = build_platform_rows(settings, CATALOG_A, block).releases
    return releases.select("release", id=pl.col("release") + FIRST_RELEASE_ID + find_first_number(settings, block))


def build_part(settings: SimulationSettings, block: int) -> Part:
    """Return releases, artists, labels and masters of one block."""
    source = build_platform_rows(settings, CATALOG_A, block)
    rates, rng, first = settings.get_rates(CATALOG_A), source.rng, find_first_number(settings, block)
    cast = make_cast(settings)
    is_dance = pl.Series(cast.is_dance(source.rows["main"].to_numpy()))
    rows = add_original_mix(add_versions(settings, CATALOG_A, source), is_dance, settings.original_mix_wording, source)
    rows = compose_titles(settings, rows, source, featured=rates.featured_in_title, in_title=rates.version_in_title, form=" ({})")
    rows = rows.with_columns(_number_names(settings, rows, credit) for credit in CREDITS).with_columns(
        id=pl.col("release") + FIRST_RELEASE_ID + first
    )
    # Tracks have no id: their number on the release is part of the id that staging gives them.
    rows = rows.with_columns(n=pl.int_range(1, pl.len() + 1).over("release"), length=pl.len().over("release"))
    releases = source.releases.with_columns(
        id=pl.col("release") + FIRST_RELEASE_ID + first,
        master=pl.col("release") + FIRST_MASTER_ID + first,
        is_vinyl=pl.Series(draw_flags(rng, len(source.releases), 0.5)),
        artist_name=spell_artists(settings, CATALOG_A, source.releases["artist"]).fill_null("Various"),
    )
    releases = releases.with_columns(_number_names(settings, releases, "artist"))
    rows = rows.join(
        releases.select("release", "is_vinyl", pl.col("kind").alias("release_kind"), pl.col("artist").alias("release_artist")),
        on="release",
        how="left",
        maintain_order="left",
    ).with_columns(draw=pl.Series(rng.random(len(rows))), anv_draw=pl.Series(rng.random(len(rows))))
    out = Part(truth=build_truth(rows.select(pl.concat_str("id", "n", separator="-")).to_series(), rows))
    strings, positions = draw_main_strings(releases["main"].to_numpy(), GENRES, rng, settings, always=True)
    releases = releases.with_columns(
        genre=pl.Series([genre for genre, _ in strings]).gather(positions),
        style=pl.Series([style for _, style in strings], dtype=pl.String).gather(positions),
        country=pl.Series(COUNTRIES).gather(rng.integers(0, len(COUNTRIES), len(releases))),
        date_draw=pl.Series(rng.random(len(releases))),
        draw=pl.Series(rng.random(len(releases))),
        label_name=number_label_names(settings).gather(releases["label"].to_numpy()),
        video=make_base62_ids(releases["id"].to_numpy(), "catalog_a video").str.slice(0, 11),
    )
    # Ids of broken records are above those of good ones, so none is the id of a good record.
    broken = _break_records(settings, rng, FIRST_RELEASE_ID + first + (ROWS_PER_RECORDING - 1) * settings.recordings_per_block, len(rows))
    out.files = _build_files(settings, block, rows, releases, broken, old=False)
    artists = pl.Series(list_artists(settings, CATALOG_A, block))
    out.entities = {
        "artist": build_entity_truth("artist", artists + FIRST_ARTIST_ID, artists),
        "release": build_entity_truth("release", releases["id"], releases["number"]),
        "label": build_label_truth(settings, block, FIRST_LABEL_ID),
    }
    if settings.alternative_forms:
        out.alternative = _build_files(settings, block, rows, releases, broken, old=True)
    return out


def number_label_names(settings: SimulationSettings) -> pl.Series:
    """Return every label as this platform calls it: `Name (2)` for the second label of a name."""
    frame = pl.DataFrame({"name": spell_labels(settings, CATALOG_A), "n": make_cast(settings).label_numbers})
    return frame.select(pl.when(pl.col("n") > 1).then(pl.format("{} ({})", "name", "n")).otherwise("name")).to_series()


def _number_names(settings: SimulationSettings, frame: pl.DataFrame, credit: str) -> pl.Series:
    """Return `Name (2)` for the second artist of a name; the printed name has no number."""
    # Nobody is -1: clipping makes the lookup valid, and the branch below leaves those names alone.
    known = make_cast(settings).numbers
    numbers = pl.Series(known).gather(frame[credit].clip(0, len(known) - 1))
    name = pl.col(f"{credit}_name")
    return (
        frame.select(f"{credit}_name")
        .with_columns(n=numbers, who=frame[credit])
        .select(
            # Strays have numbers above those of the cast, and a name of their own.
            pl.when((pl.col("n") > 1) & (pl.col("who") != NOBODY) & (pl.col("who") < len(known)))
            .then(pl.concat_str(name, pl.lit(" ("), "n", pl.lit(")")))
            .otherwise(name)
            .alias(f"{credit}_name")
        )
        .to_series()
    )


def _build_files(
    settings: SimulationSettings, block: int, rows: pl.DataFrame, releases: pl.DataFrame, broken: list[bytes], *, old: bool
) -> dict[str, Content]:
    records = _build_release_records(rows, releases, old=old)
    out: dict[str, Content] = {
        build_file_name(settings, "releases"): insert_broken_lines(
            records, broken, make_generator(settings.seed, "catalog_a broken", block)
        ),
        build_file_name(settings, "artists"): join_records(_build_artist_records(settings, block, list_strays(settings, rows), old=old)),
        build_file_name(settings, "masters"): join_records(_build_master_records(releases)),
    }
    # Labels belong to no block, so the first one writes them all.
    if block == 0:
        out[build_file_name(settings, "labels")] = join_records(_build_label_records(settings, old=old))
    return out


def _break_records(settings: SimulationSettings, rng: np.random.Generator, first_id: int, rows: int) -> list[bytes]:
    """Return records that no parser can read: a bare ampersand, a wrong end tag, a control character, invalid UTF-8."""
    # One bad record must not end the reading of a file.
    forms = (b"<title>Salt & Pepper</title>", b"<title>Half</titel>", b"<title>Bell \x07</title>", b"<title>Caf\xe9</title>")
    count = draw_malformed_count(settings, rng, rows)
    return [
        f'<release id="{first_id + number}"><artists><artist><id>{VARIOUS_ID}</id><name>Various</name></artist></artists>'.encode()
        + forms[int(rng.integers(0, len(forms)))]
        + b"</release>"
        for number in range(count)
    ]


def _build_artist(credit: str, join: pl.Expr, *, old: bool, anv: pl.Expr | None = None, role: str = "") -> pl.Expr:
    """Return one `<artist>` of a credit: id, name, printed name, joining word, role; the old shape writes empty elements, too."""
    none = pl.lit(None, dtype=pl.String)
    return pl.concat_str(
        pl.lit("<artist>"),
        build_element("id", pl.when(pl.col(credit) == NOBODY).then(VARIOUS_ID).otherwise(pl.col(credit) + FIRST_ARTIST_ID).cast(pl.String)),
        build_element("name", escape_text(pl.col(f"{credit}_name"))),
        build_element("anv", none if anv is None else anv, always=old),
        build_element("join", join, always=old),
        build_element("role", pl.lit(role) if role else none, always=old),
        build_element("tracks", none, always=old),
        pl.lit("</artist>"),
    )


def _build_track_elements(rows: pl.DataFrame, *, old: bool) -> pl.DataFrame:
    """Return release, xml: the tracks of each release, with headings and suites, in order."""
    side, number = pl.col("n") - 1, pl.col("n")
    # A track must keep a position or a time: without both it would be a heading.
    position = (
        pl.when((pl.col("draw") < NO_POSITION) & pl.col("duration_ms").is_not_null())
        .then(pl.lit(None, dtype=pl.String))
        .when(pl.col("is_vinyl"))
        .then(pl.concat_str(pl.lit(["A", "B", "C", "D", "E", "F", "G", "H"]).list.get(side // 5 % 8), (side % 5 + 1).cast(pl.String)))
        .otherwise(number.cast(pl.String))
    )
    has_second, has_guest = pl.col("second_artist") != NOBODY, pl.col("guest") != NOBODY
    joins = has_guest & (pl.col("draw") < FEATURED_JOINS)
    printed = escape_text(pl.col("artist_name").str.replace(r" \(\d+\)$", "").str.replace(r"^(\S)\S+ ", "$1. "))
    anv = pl.when((pl.col("anv_draw") < PRINTED_OTHERWISE) & (printed != escape_text(pl.col("artist_name")))).then(printed)
    none = pl.lit(None, dtype=pl.String)
    people = pl.concat_str(
        _build_artist("artist", pl.when(has_second).then(pl.lit("&amp;")).when(joins).then(pl.lit("Feat.")), old=old, anv=anv),
        pl.when(has_second).then(_build_artist("second_artist", pl.when(joins).then(pl.lit("Featuring")), old=old)).otherwise(pl.lit("")),
        pl.when(joins).then(_build_artist("guest", none, old=old)).otherwise(pl.lit("")),
    )
    # In the harsh world a track may have another artist than its release.
    differs = (pl.col("artist") != pl.col("release_artist")) & (pl.col("artist") != NOBODY)
    shows_people = differs | (pl.col("release_kind") == "compilation") | has_second | joins | (pl.col("anv_draw") < PRINTED_OTHERWISE)
    extra = pl.concat_str(
        pl.when((pl.col("remixer") != NOBODY) & (pl.col("kind") == "remix") & (pl.col("draw") < REMIX_CREDITS))
        .then(_build_artist("remixer", none, old=old, role="Remix"))
        .otherwise(pl.lit("")),
        pl.when(has_guest & ~joins).then(_build_artist("guest", none, old=old, role="Featuring")).otherwise(pl.lit("")),
        pl.when(pl.col("second_guest") != NOBODY)
        .then(_build_artist("second_guest", none, old=old, role="Featuring, Vocals"))
        .otherwise(pl.lit("")),
    )
    track = pl.concat_str(
        pl.lit("<track>"),
        build_element("position", position, always=old),
        build_element("title", escape_text(pl.col("title"))),
        build_element("duration", _write_duration(rows), always=old),
        pl.when(shows_people).then(pl.concat_str(pl.lit("<artists>"), people, pl.lit("</artists>"))).otherwise(pl.lit("")),
        pl.when(extra != "").then(pl.concat_str(pl.lit("<extraartists>"), extra, pl.lit("</extraartists>"))).otherwise(pl.lit("")),
        pl.lit("</track>"),
    )
    heading = (
        pl.when((pl.col("n") == 1) & (pl.col("release") % int(1 / HEADINGS) == 0))
        .then(pl.lit("<track><title>First Part</title></track>"))
        .otherwise(pl.lit(""))
    )
    # The last two tracks become sub-tracks, which the platform nests below a track without a time.
    is_suite = (pl.col("length") >= SUITE_FROM) & (pl.col("release") % int(1 / SUITES) == 1)
    opens = (
        pl.when(is_suite & (pl.col("n") == pl.col("length") - 1))
        .then(pl.lit("<track><position>S</position><title>Suite</title><sub_tracks>"))
        .otherwise(pl.lit(""))
    )
    closes = pl.when(is_suite & (pl.col("n") == pl.col("length"))).then(pl.lit("</sub_tracks></track>")).otherwise(pl.lit(""))
    isrc = pl.when(pl.col("isrc").is_not_null()).then(
        pl.concat_str(
            pl.lit('<identifier type="ISRC" description="Track '),
            position.fill_null(number.cast(pl.String)),
            pl.lit('"'),
            build_attribute("value", pl.col("isrc")),
            pl.lit(" />"),
        )
    )
    return (
        rows.select("release", xml=pl.concat_str(heading, opens, track, closes), isrc=isrc.fill_null(""))
        .group_by("release", maintain_order=True)
        .agg(pl.col("xml").str.join(""), pl.col("isrc").str.join(""))
    )


def _write_duration(rows: pl.DataFrame) -> pl.Expr:
    usual = format_clock_duration(pl.col("duration_ms"))
    # Only rows of the harsh world have a notation.
    return format_written_duration(pl.col("duration_ms"), pl.col("notation"), usual) if "notation" in rows.columns else usual


def _build_release_records(rows: pl.DataFrame, releases: pl.DataFrame, *, old: bool) -> pl.Series:
    year, month, day = (pl.col(name).cast(pl.String) for name in ("year", "month", "day"))
    exact = pl.concat_str(year.str.zfill(4), month.str.zfill(2), day.str.zfill(2), separator="-")
    nothing, only_year, to_month, zeros = RELEASED_SHARES
    draw = pl.col("date_draw")
    released = (
        pl.when("is_bogus")
        .then(pl.lit("0197"))
        .when(pl.col("year") == 0)
        .then(pl.lit(None, dtype=pl.String))
        .when(draw < nothing)
        .then(pl.lit(None, dtype=pl.String))
        .when(draw < only_year)
        .then(year)
        .when(draw < to_month)
        .then(pl.concat_str(year, month.str.zfill(2), pl.lit("00"), separator="-"))
        .when(draw < zeros)
        .then(year + "-00-00")
        .otherwise(exact)
    )
    medium = pl.when("is_vinyl").then(pl.lit("Vinyl")).when(pl.col("year") > 2010).then(pl.lit("File")).otherwise(pl.lit("CD"))  # noqa: PLR2004 - when files took over
    label = pl.concat_str(
        pl.lit("<label"),
        build_attribute("name", pl.col("label_name")),
        build_attribute("catno", pl.when(pl.col("draw") < 0.11).then(pl.lit("none")).otherwise("catalog_number")),  # noqa: PLR2004 - share of `none`
        build_attribute("id", (pl.col("label") + FIRST_LABEL_ID).cast(pl.String)),
        pl.lit(" />"),
    )
    # Barcodes are printed as people type them, in groups.
    gtin = pl.col("gtin").str.strip_prefix("0")
    barcode = pl.when(gtin.is_not_null() & (pl.col("draw") < 0.5)).then(  # noqa: PLR2004 - half print it
        pl.concat_str(
            pl.lit('<identifier type="Barcode" description="Text"'),
            build_attribute("value", pl.concat_str(gtin.str.slice(0, 1), gtin.str.slice(1, 6), gtin.str.slice(7), separator=" ")),
            pl.lit(" />"),
        )
    )
    identifiers = pl.concat_str(barcode.fill_null(""), "isrc")
    video = pl.when(pl.col("draw") > 0.8).then(  # noqa: PLR2004 - a fifth
        pl.concat_str(
            pl.lit('<videos><video src="https://www.youtube.com/watch?v='),
            "video",
            pl.lit('" duration="215" embed="true"><title>'),
            escape_text(pl.col("title")),
            pl.lit("</title></video></videos>"),
        )
    )
    master = pl.when(pl.col("draw") < 0.6).then(pl.col("master").cast(pl.String)).otherwise(pl.lit("0"))  # noqa: PLR2004
    written_by = pl.lit("<extraartists><artist><name>J. Doe</name><role>Written-By [All Tracks By]</role></artist></extraartists>")
    record = pl.concat_str(
        pl.lit("<release"),
        build_attribute("id", pl.col("id").cast(pl.String)),
        pl.lit(' status="Accepted">' if old else ">"),
        pl.lit('<images><image height="600" type="primary" uri="" uri150="" width="600"/></images>' if old else ""),
        pl.lit("<artists>"),
        _build_artist("artist", pl.lit(None, dtype=pl.String), old=old),
        pl.lit("</artists>"),
        build_element("title", escape_text(pl.col("title"))),
        pl.lit("<labels>"),
        label,
        pl.lit("</labels>"),
        pl.when(pl.col("draw") < 0.02).then(written_by).otherwise(pl.lit("<extraartists/>" if old else "")),  # noqa: PLR2004 - unlinked artists
        pl.lit("<formats><format"),
        build_attribute("name", medium),
        pl.lit(' qty="1" text=""><descriptions>'),
        build_element("description", pl.col("kind").replace_strict(DESCRIPTIONS)),
        pl.lit("</descriptions></format></formats><genres>"),
        build_element("genre", escape_text(pl.col("genre"))),
        pl.lit("</genres>"),
        pl.when(pl.col("style").is_not_null())
        .then(pl.concat_str(pl.lit("<styles>"), build_element("style", escape_text(pl.col("style"))), pl.lit("</styles>")))
        .otherwise(pl.lit("")),
        build_element("country", escape_text(pl.when(pl.col("country") != "").then("country")), always=old),
        build_element("released", released, always=old),
        pl.when(pl.col("draw") < NOTES)
        .then(pl.lit("<notes>Made in several places.\n\nSee [l=Label] &amp; friends.&#13;\n</notes>"))
        .otherwise(pl.lit("")),
        pl.lit("<data_quality>Needs Vote</data_quality>"),
        pl.concat_str(
            pl.lit("<master_id is_main_release="),
            pl.when(master != "0").then(pl.lit('"true">')).otherwise(pl.lit('"false">')),
            master,
            pl.lit("</master_id>"),
        ),
        pl.lit("<tracklist>"),
        "xml",
        pl.lit("</tracklist>"),
        pl.when(identifiers != "")
        .then(pl.concat_str(pl.lit("<identifiers>"), identifiers, pl.lit("</identifiers>")))
        .otherwise(pl.lit("<identifiers/>" if old else "")),
        video.fill_null(""),
        pl.lit("<companies/>" if old else ""),
        pl.lit("</release>"),
    )
    return releases.join(_build_track_elements(rows, old=old), on="release", how="inner", maintain_order="left").select(record).to_series()


def _build_artist_records(settings: SimulationSettings, block: int, strays: pl.DataFrame, *, old: bool) -> pl.Series:
    numbers = list_artists(settings, CATALOG_A, block)
    frame = pl.DataFrame({"artist": numbers, "artist_name": spell_artists(settings, CATALOG_A, pl.Series(numbers))})
    frame = pl.concat([frame.with_columns(_number_names(settings, frame, "artist")), strays.rename({"name": "artist_name"})])
    printed = pl.col("artist_name").str.replace(r" \(\d+\)$", "").str.replace(r"^(\S)\S+ ", "$1. ")
    others = list_other_names(settings, CATALOG_A, numbers).group_by("artist", maintain_order=True).agg("other")
    frame = frame.join(others, on="artist", how="left", maintain_order="left")
    names = pl.concat_list(pl.when(printed != pl.col("artist_name")).then(printed), "other").list.drop_nulls()
    variations = names.list.eval(build_element("name", escape_text(pl.element()))).list.join("")
    return frame.select(
        pl.concat_str(
            pl.lit("<artist>"),
            pl.lit('<images><image height="600" type="primary" uri="" uri150="" width="600"/></images>' if old else ""),
            build_element("id", (pl.col("artist") + FIRST_ARTIST_ID).cast(pl.String)),
            build_element("name", escape_text(pl.col("artist_name"))),
            pl.when(pl.col("artist") % 20 == 0)
            .then(pl.lit("<profile>Played in [a=Someone].\nLater [b]solo[/b].</profile>"))
            .otherwise(pl.lit("<profile/>" if old else "")),
            pl.lit("<data_quality>Needs Vote</data_quality>"),
            pl.when(variations != "")
            .then(pl.concat_str(pl.lit("<namevariations>"), variations, pl.lit("</namevariations>")))
            .otherwise(pl.lit("")),
            pl.lit("</artist>"),
        )
    ).to_series()


def _build_label_records(settings: SimulationSettings, *, old: bool) -> pl.Series:
    names = number_label_names(settings)
    own = pl.DataFrame({"id": np.arange(len(names)) + FIRST_LABEL_ID, "name": names})
    frame = pl.concat([pl.DataFrame({"id": [1818], "name": ["Not On Label"]}), own])
    record = pl.concat_str(
        pl.lit("<label>"),
        build_element("id", pl.col("id").cast(pl.String)),
        build_element("name", escape_text(pl.col("name"))),
        pl.lit("<contactinfo/><profile/>" if old else ""),
        pl.lit("<data_quality>Needs Vote</data_quality></label>"),
    )
    return frame.select(record).to_series()


def _build_master_records(releases: pl.DataFrame) -> pl.Series:
    record = pl.concat_str(
        pl.lit("<master"),
        build_attribute("id", pl.col("master").cast(pl.String)),
        pl.lit(">"),
        build_element("main_release", pl.col("id").cast(pl.String)),
        pl.lit("<artists>"),
        _build_artist("artist", pl.lit(None, dtype=pl.String), old=False),
        pl.lit("</artists><genres>"),
        build_element("genre", escape_text(pl.col("genre"))),
        pl.lit("</genres>"),
        build_element("year", pl.col("year").cast(pl.String)),
        build_element("title", escape_text(pl.col("title"))),
        pl.lit("<data_quality>Correct</data_quality></master>"),
    )
    return releases.filter(pl.col("draw") < 0.6).select(record).to_series()  # noqa: PLR2004 - those that name a master


def build_checksum_file(settings: SimulationSettings, digests: Mapping[str, str]) -> tuple[str, bytes]:
    """Return name and text of the CHECKSUM file, which is written last: SHA-256, one space, file name."""
    lines = "".join(f"{digest} {name}\n" for name, digest in sorted(digests.items()))
    return f"discogs_{settings.dump_date:%Y%m%d}_CHECKSUM.txt", lines.encode()
