"""Composition data as tab-separated bulk files with a manifest: the collective's own layout (v1), other form the 2.0 layout.

Recordings are identified by ISRC; a work may have no ISWC, two, or one whose check digit is wrong. Cells are never quoted. The faults
of the senders of recordings belong in collective_wording.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from catalog_store.platforms import WORKS
from simulator.cast import make_cast
from simulator.collective_wording import reword_recordings
from simulator.nested import format_iso_duration
from simulator.randomness import draw_flags, make_generator
from simulator.rows import make_block
from simulator.world_part import Part, draw_malformed_count

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from simulator.files import Closing, Content, Written
    from simulator.settings import SimulationSettings

RECIPIENT = "PADPIDA2020062405C"
MISSING_ISRC = 0.08
PLACEHOLDER_DURATIONS = 0.2
"""Share of recordings without duration."""
SECOND_TITLES = 0.05
TYPES = {
    "works.tsv": "Works",
    "workalternativetitles.tsv": "WorkAlternativeTitles",
    "workidentifiers.tsv": "WorkIdentifiers",
    "recordings.tsv": "Recordings",
    "worksrecordings.tsv": "WorksRecordings",
    "musicalworks.tsv": "MusicalWorks",
    "resources.tsv": "Resources",
    "workresourcelinks.tsv": "WorkResourceLinks",
}
HEADINGS = {
    "musicalworks.tsv": (
        "MusicalWorkRecordId",
        "ISWC",
        "MusicalWorkTitle",
        "LanguageAndScriptCode",
        "OpusNumber",
        "ComposerCatalogNumber",
        "NominalDuration",
        "HasRightShareInDispute",
        "TerritoryOfPublicDomain",
        "IsArrangementOfTraditionalWork",
        "AlternativeMusicalWorkIdForUsStatutoryReversion",
        "UsStatutoryReversionDate",
        "IsCompositeMusicalWork",
    ),
    "resources.tsv": (
        "ResourceRecordId",
        "ResourceType",
        "ISRC",
        "Title",
        "LanguageAndScriptCode",
        "SubTitle",
        "DisplayArtistName",
        "DisplayArtistISNI",
        "PLine",
        "CLine",
        "Duration",
        "ReleaseRecordId",
        "StudioProducerName",
        "StudioProducerProprietaryId",
        "OriginalDataProviderName",
        "OriginalDataProviderDPID",
        "IsDataProvidedAsReceived",
    ),
    "workresourcelinks.tsv": ("LinkRecordId", "MusicalWorkId", "ResourceRecordId"),
}
"""Only the 2.0 layout has heading lines; their first cell starts with `#`."""


def build_openings(_settings: SimulationSettings) -> dict[str, bytes]:
    """Return the heading lines of the 2.0 layout."""
    return {name: ("#" + "\t".join(cells) + "\n").encode() for name, cells in HEADINGS.items()}


def build_closings(_settings: SimulationSettings) -> dict[str, Closing]:
    """Return nothing: no text comes after the last block."""
    return {}


def build_part(settings: SimulationSettings, block: int) -> Part:
    """Return works, recordings and links of one block."""
    world, cast, rng = make_block(settings, block), make_cast(settings), make_generator(settings.seed, WORKS, block)
    songs = world.made.songs.with_row_index("song").with_columns(pl.col("song").cast(pl.Int64))
    # Covers share a work, which is listed once.
    listed = songs.unique("work", keep="first", maintain_order=True).filter(
        draw_flags(rng, songs["work"].n_unique(), settings.works_coverage)
    )
    spoilt = pl.Series(draw_flags(rng, len(listed), settings.wrong_iswc))
    # A digit one higher never is the right check digit.
    wrong = pl.concat_str(pl.col("iswc").str.slice(0, 10), (pl.col("iswc").str.slice(10).cast(pl.Int64) + 1) % 10)
    works = listed.select(
        "work",
        "artist",
        id=pl.concat_str(pl.lit("W"), pl.col("work") + 1),
        iswc=pl.when(spoilt).then(wrong).otherwise("iswc"),
        second_iswc="second_iswc",
        title=pl.col("title").str.to_uppercase(),
    )
    # A second ISWC is a second record of the same work, which shares its recordings.
    again = works.filter(pl.col("second_iswc").is_not_null()).with_columns(pl.col("id") + "B", iswc="second_iswc")
    known = pl.concat([works, again])
    recordings = (
        world.made.recordings.select("true_id", "song", "isrc", "duration_ms", "before")
        .join(songs.select("song", "work", "title", "artist", "guest"), on="song", how="left", maintain_order="left")
        .join(works.select("work"), on="work", how="semi", maintain_order="left")
    )
    recordings = recordings.with_columns(
        id=pl.concat_str(pl.lit("R"), "true_id"),
        name=cast.names.gather(recordings["artist"]),
        has_isrc=pl.Series(~draw_flags(rng, len(recordings), MISSING_ISRC)),
        has_duration=pl.Series(~draw_flags(rng, len(recordings), PLACEHOLDER_DURATIONS)),
    )
    recordings = reword_recordings(settings, block, recordings, cast.names)
    links = recordings.join(known.select("work", pl.col("id").alias("work_id")), on="work", how="left", maintain_order="left").with_columns(
        link=pl.concat_str(pl.lit("L"), world.block, pl.lit("-"), pl.int_range(pl.len()) + 1)
    )
    out = Part()
    out.files = _build_first_layout(
        known, recordings, links, _break_records(settings, rng, len(recordings)), draw_flags(rng, len(known), SECOND_TITLES)
    )
    if settings.alternative_forms:
        out.alternative = _build_second_layout(known, recordings, links)
    return out


def _encode_cells(frame: pl.DataFrame) -> bytes:
    lines = (
        frame.select(pl.concat_str([pl.col(name).cast(pl.String).fill_null("") for name in frame.columns], separator="\t"))
        .to_series()
        .to_list()
    )
    return "".join(line + "\n" for line in lines).encode()


def _build_blanks(*names: str) -> list[pl.Expr]:
    return [pl.lit("").alias(name) for name in names]


def _break_records(settings: SimulationSettings, rng: np.random.Generator, rows: int) -> bytes:
    """Return recording rows with too few cells or with invalid UTF-8."""
    kinds = (b"RX%d\tcut off\n", b"RX%d\t\tCaf\xe9\t\tNobody\t\t\t\t\t\t\t\t\tfalse\n")
    return b"".join(kinds[int(rng.integers(0, 2))] % number for number in range(draw_malformed_count(settings, rng, rows)))


def _choose_isrc() -> pl.Expr:
    return pl.when("has_isrc").then("isrc")


def _choose_duration() -> pl.Expr:
    return pl.when("has_duration").then(format_iso_duration(pl.col("duration_ms")))


def _build_first_layout(
    works: pl.DataFrame, recordings: pl.DataFrame, links: pl.DataFrame, broken: bytes, second: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> dict[str, Content]:
    false = pl.lit("false")
    titled_again = works.filter(second)
    return {
        "works.tsv": _encode_cells(
            works.select(
                "id",
                "iswc",
                "title",
                *_build_blanks("opus", "catalog"),
                pl.lit("").alias("duration"),
                false.alias("dispute"),
                pl.lit("").alias("domain"),
                false.alias("arranged"),
                *_build_blanks("reversion", "date"),
            )
        ),
        "workalternativetitles.tsv": _encode_cells(
            titled_again.select(
                pl.concat_str(pl.lit("A"), "id").alias("row"),
                "id",
                pl.concat_str(pl.lit("THE "), "title"),
                pl.lit("en").alias("language"),
                pl.lit("AlternativeTitle").alias("kind"),
            )
        ),
        "workidentifiers.tsv": _encode_cells(
            works.select(
                pl.concat_str(pl.lit("I"), "id").alias("row"),
                "id",
                pl.concat_str(pl.lit("SONG"), "work").alias("code"),
                pl.lit("P1").alias("party"),
            )
        ),
        "recordings.tsv": _encode_cells(
            recordings.select(
                "id",
                _choose_isrc().alias("isrc"),
                "title",
                pl.col("before").str.strip_chars().alias("sub"),
                "name",
                pl.lit("").alias("isni"),
                pl.lit("").alias("pline"),
                _choose_duration().alias("duration"),
                *_build_blanks("release", "producer", "producer_id", "provider", "dpid"),
                false.alias("received"),
            )
        )
        + broken,
        "worksrecordings.tsv": _encode_cells(links.select("link", "work_id", "id")),
    }


def _build_second_layout(works: pl.DataFrame, recordings: pl.DataFrame, links: pl.DataFrame) -> dict[str, Content]:
    false = pl.lit("false")
    return {
        "musicalworks.tsv": _encode_cells(
            works.select(
                "id",
                "iswc",
                "title",
                pl.lit("en").alias("language"),
                *_build_blanks("opus", "catalog", "duration"),
                false.alias("dispute"),
                pl.lit("").alias("domain"),
                false.alias("arranged"),
                *_build_blanks("reversion", "date"),
                false.alias("composite"),
            )
        ),
        "resources.tsv": _encode_cells(
            recordings.select(
                "id",
                pl.lit("SoundRecording").alias("kind"),
                _choose_isrc().alias("isrc"),
                "title",
                pl.lit("en").alias("language"),
                pl.col("before").str.strip_chars().alias("sub"),
                "name",
                *_build_blanks("isni", "pline", "cline"),
                _choose_duration().alias("duration"),
                *_build_blanks("release", "producer", "producer_id", "provider", "dpid"),
                false.alias("received"),
            )
        ),
        "workresourcelinks.tsv": _encode_cells(links.select("link", "work_id", "id")),
    }


def build_manifest(settings: SimulationSettings, written: Mapping[str, Written]) -> tuple[str, bytes]:
    """Return name and text of the manifest: a header, one record for each file (type, name, lines, MD5), a footer."""
    stamp = f"{settings.dump_date:%Y%m%d}000000000"
    created = f"{settings.dump_date}T00:00:00Z"
    lines = [f"HEAD\t1.1\t1\tSimulated Collective\tPADPIDA2015120100S\tCatalog\t{RECIPIENT}\t{created}"]
    lines += [f"DATA\t{TYPES[name]}\t{name}\t{file.lines}\t{file.md5}" for name, file in sorted(written.items())]
    lines.append(f"EOF\t{len(written)}")
    return f"BWARM_Manifest_{RECIPIENT}_{stamp}.tsv", "".join(line + "\n" for line in lines).encode()
