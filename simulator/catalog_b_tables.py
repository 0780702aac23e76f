"""COPY text and the tables of catalog_b that do not depend on the world: lookups, link types, tags, the members that head an archive."""

from __future__ import annotations

import numpy as np
import polars as pl

from simulator.codes import format_iswcs
from simulator.genre_words import CATALOG_B as GENRES
from simulator.genre_words import NO_GENRES, UMBRELLAS
from simulator.randomness import make_uuids

CORE, DERIVED = "core", "derived"
DERIVED_TABLES = ("artist_tag", "recording_tag", "release_group_tag", "tag")
NONE = pl.lit(None, dtype=pl.String)
_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
STAMP = "2026-10-31 00:11:02.518374+00"
"""The time of the last change of each row."""
TAGS = tuple(dict.fromkeys([*(tag for names in GENRES.values() for tag in names), *UMBRELLAS.values(), *NO_GENRES]))
SCHEMA_SEQUENCE = 31
REPLICATION_SEQUENCE = 187_042
README = "Snapshots of the database, in a form fit for import into PostgreSQL by a server of the schema named in SCHEMA_SEQUENCE.\n"
LICENCES = {CORE: "CC0 1.0 Universal\n", DERIVED: "Attribution-NonCommercial-ShareAlike 3.0\n"}
STREAMING, PURCHASE, DISCOGS, PERFORMANCE, REMIXER, LIVE_PERFORMANCE, VIDEO, ARTIST_STREAMING, ARTIST_DISCOGS = (
    11,
    12,
    13,
    14,
    15,
    16,
    17,
    18,
    19,
)
"""Row ids in `link`."""
LINK_TYPES = (
    (268, "7e41ef12-a124-4324-afdb-fdbae687a89c", "recording", "url", "streaming music"),
    (254, "92777657-504c-4acb-bd33-51a201bd57e1", "recording", "url", "purchase for download"),
    (76, "4a78823c-1c53-4176-a5f3-58026c76f2bc", "release", "url", "discogs"),
    (278, "a3005666-a872-32c3-ad06-98af558e99b0", "recording", "work", "performance"),
    (153, "7950be4d-13a3-48e7-906b-5af562e39544", "artist", "recording", "remixer"),
    (194, "769085a1-c2f7-4c24-a532-2375a77693bd", "artist", "url", "free streaming"),
    (180, "04a5b104-a4c2-4bac-99a1-7b837c37d9e4", "artist", "url", "discogs"),
    (85, "08445ccf-7b99-4438-9f9a-fb9ac18099ee", "release", "url", "streaming music"),
)
LINKS = (
    (STREAMING, 268),
    (PURCHASE, 254),
    (DISCOGS, 76),
    (PERFORMANCE, 278),
    (REMIXER, 153),
    (LIVE_PERFORMANCE, 278),
    (VIDEO, 268),
    (ARTIST_STREAMING, 194),
    (ARTIST_DISCOGS, 180),
)
LIVE_ATTRIBUTE = 578
LOOKUPS: dict[str, tuple[tuple[int, str, str], ...]] = {
    "artist_type": (
        (1, "Person", "b6e035f4-3ce9-331c-97df-83397230b0df"),
        (2, "Group", "e431f5f6-b5d2-343d-8b36-72607fffb74b"),
        (3, "Other", "ac897045-5043-3294-969b-187360e45d86"),
        (4, "Character", "5c1375b0-f18d-3db7-a164-a49d7a63773f"),
        (5, "Orchestra", "a0b36c92-3eb1-3839-a4f9-4799823f54a5"),
        (6, "Choir", "6124967d-7e3a-3eba-b642-c9a2ffb44d94"),
    ),
    "area_type": ((1, "Country", "06dd0ae4-8c74-30bb-b43d-95dcedf961de"),),
    "label_type": (
        (1, "Distributor", "53ab8dcc-9946-3b62-966e-7634d78e5034"),
        (2, "Holding", "43f31a62-97e4-36f6-9752-453c131b71ed"),
        (7, "Publisher", "e9ad53b0-e3d0-3885-a10b-8193d501338c"),
        (8, "Rights Society", "78ab2758-7809-372c-9b99-74b7ab87f390"),
        (9, "Imprint", "b6285b2a-3514-3d43-80df-fcf528824ded"),
    ),
    "release_status": (
        (1, "Official", "4e304316-386d-3409-af2e-78857eec5cfe"),
        (2, "Promotion", "518ffc83-5cde-34df-8627-81bff5093d92"),
        (3, "Bootleg", "1156806e-d06a-38bd-83f0-cf2284a808b9"),
        (4, "Pseudo-Release", "41121bb9-3413-3818-8a9a-9742318349aa"),
        (5, "Withdrawn", "6a3772de-4605-4132-993d-aa315cd19b4b"),
        (6, "Cancelled", "55005350-bc3f-441a-b0c7-27c565eae341"),
    ),
    "release_group_primary_type": (
        (1, "Album", "f529b476-6e62-324f-b0aa-1f3e33d313fc"),
        (2, "Single", "d6038452-8ee0-3f68-affc-2de9a1ede0b9"),
        (3, "EP", "6d0c5bf6-7a33-3420-a519-44fc63eedebf"),
        (11, "Other", "4fc3be2b-de1e-396b-a933-beb8f1607a22"),
        (12, "Broadcast", "3b2e49e1-2875-37b8-9fa9-1f7cf3f49900"),
    ),
    "release_group_secondary_type": (
        (1, "Compilation", "dd2a21e1-0c00-3729-a7a0-de60b84eb5d1"),
        (2, "Soundtrack", "22a628ad-c082-3c4f-b1b6-d41665107b88"),
        (6, "Live", "6fd474e2-6b58-3102-9d17-d6f7eb7da0a0"),
        (7, "Remix", "0c60f497-ff81-3818-befd-abfc84a4858b"),
        (8, "DJ-mix", "0d47f47a-3fe5-3d69-ac9d-d566c23968bf"),
        (10, "Demo", "81598169-0d6c-3bce-b4be-866fa658eda3"),
    ),
    "work_type": ((17, "Song", "f061270a-2fd6-32f1-a641-f0f8676d14e6"),),
}
"""Row id, name and public id of what the tables point to."""
MEDIUM_GIDS = ("9712d52a-4509-3d4b-a1a2-67c88c643e31", "10e17707-9751-3aaf-95b2-2432acd5374c", "907a28d9-b3b2-3ef6-89a8-7b18d91d4794")
AREAS = (
    (222, "United States", "US"),
    (221, "United Kingdom", "GB"),
    (81, "Germany", "DE"),
    (150, "Netherlands", "NL"),
    (107, "Japan", "JP"),
    (13, "Australia", "AU"),
    (241, "Europe", "XE"),
)


def name_member(table: str, archive: str | None = None) -> str:
    """Return the spool file of a table: `<archive>/<table>`."""
    return f"{archive or (DERIVED if table in DERIVED_TABLES else CORE)}/{table}"


def copy_text(frame: pl.DataFrame) -> bytes:
    r"""Return rows in COPY text format: tab between fields, `\N` for null, backslash escapes, nothing quoted."""
    columns = [
        # One pass over all escapes: replacing them one after the other would escape the new backslashes again.
        (pl.col(name).str.replace_many(_ESCAPES) if kind == pl.String else pl.col(name).cast(pl.String))
        .fill_null("\\N")
        .alias(str(position))
        for position, (name, kind) in enumerate(frame.schema.items())
    ]
    lines = frame.select(pl.concat_str(columns, separator="\t")).to_series().to_list()
    return "".join(line + "\n" for line in lines).encode()


def format_iswc(code: pl.Expr) -> pl.Expr:
    """Return an ISWC as the database prints it."""
    return format_iswcs(code)


def build_heading(archive: str, stamp: str) -> dict[str, bytes]:
    """Return the first five members of an archive, in their fixed order."""
    return {
        "TIMESTAMP": f"{stamp}\n".encode(),
        "COPYING": LICENCES[archive].encode(),
        "README": README.encode(),
        "REPLICATION_SEQUENCE": f"{REPLICATION_SEQUENCE}\n".encode(),
        "SCHEMA_SEQUENCE": f"{SCHEMA_SEQUENCE}\n".encode(),
    }


def _build_gids(kind: str, numbers: list[int]) -> pl.Series:
    return make_uuids(np.array(numbers, dtype=np.int64), f"catalog_b {kind}")


def build_constant_tables(tags: tuple[str, ...], genres: tuple[str, ...], stamp: str) -> dict[str, bytes]:
    """Return the tables that do not depend on the world."""
    out: dict[str, bytes] = {}
    for table, entries in LOOKUPS.items():
        frame = pl.DataFrame(entries, schema=["id", "name", "gid"], orient="row")
        out[name_member(table)] = copy_text(
            frame.select("id", "name", NONE.alias("parent"), pl.lit(0).alias("order"), NONE.alias("description"), "gid")
        )
    out[name_member("medium_format")] = copy_text(
        pl.DataFrame({"id": [1, 7, 12], "name": ["CD", "Vinyl", "Digital Media"]}).select(
            "id",
            "name",
            NONE.alias("parent"),
            pl.lit(0).alias("order"),
            pl.lit(1982).alias("year"),
            pl.lit("f").alias("discids"),
            NONE.alias("description"),
            pl.Series("gid", MEDIUM_GIDS),
        )
    )
    areas = pl.DataFrame(
        {"id": [number for number, _, _ in AREAS], "name": [name for _, name, _ in AREAS], "code": [code for _, _, code in AREAS]}
    )
    nothing = [NONE.alias(name) for name in ("by", "bm", "bd", "ey", "em", "ed")]
    zero, updated = pl.lit(0).alias("edits"), pl.lit(stamp).alias("updated")
    out[name_member("area")] = copy_text(
        areas.select(
            "id",
            _build_gids("area", areas["id"].to_list()).alias("gid"),
            "name",
            pl.lit(1).alias("type"),
            zero,
            updated,
            *nothing,
            pl.lit("f").alias("ended"),
            pl.lit("").alias("comment"),
        )
    )
    out[name_member("iso_3166_1")] = copy_text(areas.select("id", "code"))
    out[name_member("country_area")] = copy_text(areas.select("id"))
    out[name_member("language")] = b"120\teng\teng\ten\tEnglish\t2\teng\n"
    out[name_member("script")] = b"28\tLatn\t215\tLatin\t4\n"
    out[name_member("replication_control")] = f"1\t{SCHEMA_SEQUENCE}\t{REPLICATION_SEQUENCE}\t{stamp}\n".encode()
    types = pl.DataFrame(LINK_TYPES, schema=["id", "gid", "e0", "e1", "name"], orient="row")
    out[name_member("link_type")] = copy_text(
        types.select(
            "id",
            NONE.alias("parent"),
            pl.lit(0).alias("order"),
            "gid",
            "e0",
            "e1",
            "name",
            NONE.alias("description"),
            pl.col("name").alias("phrase"),
            pl.col("name").alias("reverse"),
            pl.col("name").alias("long"),
            updated,
            pl.lit("f").alias("deprecated"),
            pl.lit("f").alias("dates"),
            pl.lit(0).alias("c0"),
            pl.lit(0).alias("c1"),
        )
    )
    links = pl.DataFrame(LINKS, schema=["id", "type"], orient="row")
    attributes = (pl.col("id") == LIVE_PERFORMANCE).cast(pl.Int64)
    out[name_member("link")] = copy_text(
        links.select("id", "type", *nothing, attributes.alias("attributes"), pl.lit(stamp).alias("created"), pl.lit("f").alias("ended"))
    )
    out[name_member("link_attribute")] = f"{LIVE_PERFORMANCE}\t{LIVE_ATTRIBUTE}\t{stamp}\n".encode()
    out[name_member("link_attribute_type")] = (
        f"{LIVE_ATTRIBUTE}\t\\N\t{LIVE_ATTRIBUTE}\t0\t70007db6-a8bc-46d7-a770-80e6a0bb551a\tlive\t\\N\t{stamp}\n".encode()
    )
    numbers = list(range(1, len(genres) + 1))
    out[name_member("genre")] = copy_text(
        pl.DataFrame({"id": numbers, "gid": _build_gids("genre", numbers), "name": genres}).select(
            "id", "gid", "name", pl.lit("").alias("comment"), zero, updated
        )
    )
    out[name_member("tag", DERIVED)] = copy_text(
        pl.DataFrame({"id": list(range(1, len(tags) + 1)), "name": tags}).with_columns(refs=pl.lit(1))
    )
    return out
