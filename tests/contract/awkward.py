"""A small catalog of awkward records, on which tests show the rows of the contract.

Ids are chosen, so that tests can name them. `first` and `second` are two builds of it: in the second, 41 was merged into 1, 42 left,
1000 took a part of 43, which lives on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any

from audio_recognition.chromaprint import fingerprint
from audio_recognition.index.batches import FingerprintBatch
from audio_recognition.index.build import build_index
from audio_recognition.landmarks import find_peaks
from catalog_store.publisher import publish
from catalog_store.tables import CATALOG_TABLES, TABLES
from catalog_store.tables.files import write_table
from genre_rules.load import load_book
from pipeline.build.genres import build_genre_rows
from tests.audio_recognition.audio import melody
from tests.table_frames import build_frame

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

FOXES, TRUNK, KLINE, TOKYO, KINO, SYMBOLS, MERIDIAN, SALT = range(1, 9)
ARTISTS = {
    FOXES: "The Velvet Foxes",
    TRUNK: "Daft Trunk",
    KLINE: "Nova Kline",
    TOKYO: "東京電灯",
    KINO: "Кинолента",
    SYMBOLS: "!?!",
    MERIDIAN: "Meridian",
    SALT: "DJ Salt",
}
FIRST_OF_2021 = date(2021, 1, 1)
NAMESAKE_ARTIST, NAMESAKE_LABEL = 99, 9
"""An artist with the name of MERIDIAN and a label with the name of label 1, both without releases."""
OLD_ARTIST, OLD_LABEL, OLD_RELEASE = 901, 902, 903
"""Merged into FOXES, label 1, release 1."""

MERGED, RETIRED, SPLIT, SPLIT_OFF = 41, 42, 43, 1000
OLD_RECORDING_UUID = "00000000-0000-4000-8000-0000000000ff"
"""Merged upstream into that of recording 1."""
SHARED_RELEASE = "7007"
"""A release of catalog_a on which recordings 31, 32, 33 stand."""
GLASS_REMIXES = range(51, 81)
REMIXERS = (
    *("Amber", "River", "Stone", "Cloud", "Violet", "Winter", "Golden", "Silent", "Broken", "Electric", "Summer", "Ghost", "Mirror"),
    *("Ocean", "Cedar", "Copper", "Desert", "Ember", "Falcon", "Garnet", "Hazel", "Indigo", "Jasper", "Kestrel", "Linden", "Maple"),
    *("Nickel", "Opal", "Pepper", "Quartz"),
)
WORK, WORK_OF_MANY, WORK_ALONE = "T0345246801", "T0000000010", "T9000000008"


@dataclass(frozen=True)
class Spec:
    """A recording in one line. Omitted fields have ordinary values."""

    id: int
    title: str
    artists: tuple[tuple[int, bool, bool], ...]
    """(artist id, is primary, is remixer)."""
    isrcs: tuple[str, ...] | None = None
    release_ids: tuple[int, ...] = (1,)
    milliseconds: int | None = 200_500
    genres: tuple[str, ...] = ()
    subgenres: tuple[str, ...] = ()
    popularity: float = 0.5
    variant: str = ""
    links: tuple[tuple[str, str], ...] | None = None
    credited_as: str | None = None
    """Name of the first artist in the credit, where it differs from the artist's own name."""

    @property
    def codes(self) -> tuple[str, ...]:
        """Return the ISRCs, the representative one first."""
        return (isrc(self.id),) if self.isrcs is None else self.isrcs


def isrc(recording_id: int, other: int = 0) -> str:
    return f"GBAYE26{recording_id:03d}{other:02d}"


def streamsvc_a_id(recording_id: int) -> str:
    return f"aB{recording_id:020d}"


def uuid(recording_id: int) -> str:
    return f"{recording_id:08x}-1111-4222-8333-444455556666"


def by(artist_id: int, *guests: int, remixer: int | None = None) -> tuple[tuple[int, bool, bool], ...]:
    credited = [(artist_id, True, remixer == artist_id), *((guest, False, False) for guest in guests)]
    return (*credited, *([(remixer, False, True)] if remixer not in {None, artist_id} else []))


EVERYWHERE = (
    ("streamsvc_a", streamsvc_a_id(1)),
    ("streamsvc_b", "1440000001"),
    ("streamsvc_c", "990001"),
    ("store_a", "5000001"),
    ("catalog_a", "7001"),
    ("catalog_b", uuid(1)),
    ("video_a", "vid_0000001"),
)
SPECS = (
    Spec(
        1,
        "Midnight Running",
        by(FOXES),
        (isrc(1), isrc(1, 1), isrc(1, 2)),
        (1, 2),
        178_500,
        ("House",),
        ("Deep House",),
        0.9,
        links=EVERYWHERE,
    ),
    Spec(2, "Midnight Running (Daft Trunk Remix)", by(FOXES, remixer=TRUNK), variant="daft trunk remix", popularity=0.95),
    Spec(3, "Midnight Running (Live)", by(FOXES), variant="live", popularity=0.96, release_ids=(3,)),
    Spec(4, "Silver Morning (Radio Edit)", by(KLINE), milliseconds=180_000, popularity=0.4),
    Spec(5, "Silver Morning (Extended Mix)", by(KLINE), milliseconds=400_000, popularity=0.3),
    Spec(6, "Harbour Lights", by(KLINE, FOXES), (), (2,), 200_499, ("Techno", "House")),
    Spec(7, "Harbour Lights (Acoustic)", by(KLINE), milliseconds=None, variant="acoustic"),
    Spec(8, "Intro", by(MERIDIAN)),
    Spec(9, "Remix", by(MERIDIAN)),
    Spec(10, "群青の空", by(TOKYO)),
    Spec(11, "Полночь", by(KINO)),
    Spec(12, "÷", by(SYMBOLS)),
    Spec(13, "Paper Kites (Nova Kline Remix)", by(KLINE, remixer=KLINE), variant="nova kline remix"),
    Spec(14, "Known To The Year", by(SALT), release_ids=(4,)),
    Spec(15, "Known To The Month", by(SALT), release_ids=(5,)),
    Spec(16, "Known To The Day", by(SALT), release_ids=(6,)),
    Spec(17, "Not Out Yet", by(SALT), release_ids=(7,)),
    Spec(18, "Undated", by(SALT), release_ids=(8,)),
    Spec(19, "Of No Known Genre", by(SALT), links=()),
    Spec(20, "Later Than First", by(SALT), release_ids=(9, 10)),
    Spec(21, "Under Another Name", by(KINO), release_ids=(12,), credited_as="Viktor & The Reels"),
    Spec(31, "Side One", by(MERIDIAN), popularity=0.2, links=(("catalog_a", SHARED_RELEASE),)),
    Spec(32, "Side Two", by(MERIDIAN), popularity=0.7, links=(("catalog_a", SHARED_RELEASE),)),
    Spec(33, "Side Three", by(MERIDIAN), popularity=0.7, links=(("catalog_a", SHARED_RELEASE),)),
    Spec(50, "Glass City", by(TRUNK), popularity=0.6, genres=("Trance",), release_ids=(11,)),
    *(
        Spec(
            number,
            f"Glass City ({name} Remix)",
            by(TRUNK, remixer=SALT),
            variant=f"{name.lower()} remix",
            popularity=0.9 - number / 1000,
            genres=("Trance",),
            release_ids=(11,),
        )
        for number, name in zip(
            GLASS_REMIXES,
            REMIXERS,
            strict=True,
        )
    ),
)
WHOLE = (("streamsvc_a", streamsvc_a_id(SPLIT)), ("store_a", "5000043"))
FIRST_ONLY = (
    Spec(SPLIT, "Twin Rivers", by(TRUNK), links=WHOLE),
    Spec(MERGED, "Midnight Runing", by(FOXES), (), links=()),
    Spec(RETIRED, "Withdrawn", by(SALT), (), links=()),
)
SECOND_ONLY = (
    Spec(SPLIT, "Twin Rivers", by(TRUNK), links=WHOLE[:1]),
    Spec(SPLIT_OFF, "Twin Rivers (Live)", by(TRUNK), (), variant="live", links=WHOLE[1:]),
)

RELEASES: dict[int, tuple[str, int, int | None, str | None, str | None]] = {
    1: ("Night Trains", FOXES, 1, "2021-03-05", "day"),
    2: ("Night Trains and Harbours", FOXES, 2, "2022-06-01", "day"),
    3: ("Night Trains Live", FOXES, None, "2023-02-03", "day"),
    4: ("Annual", SALT, 1, "1999-01-01", "year"),
    5: ("Monthly", SALT, 1, "1999-05-01", "month"),
    6: ("Daily", SALT, 1, "1999-01-02", "day"),
    7: ("Tomorrow", SALT, 1, "2999-01-01", "day"),
    8: ("Some Day", SALT, None, None, None),
    9: ("Second Pressing", SALT, 2, "2015-09-09", "day"),
    10: ("First Pressing", SALT, 2, "2003-08-08", "day"),
    11: ("Glass", TRUNK, 2, "2021-03-05", "day"),
    12: ("Reel To Reel", KINO, 1, "2001-01-01", "day"),
}
RELEASE_CREDITS = {12: "Viktor's Reels"}
"""Credited names by release id, where they differ from the artist's name."""
LABELS = {1: "Amber Records", 2: "Blue Door"}
BARCODE, SHARED_BARCODE = "05099902894225", "00602547790019"
BARCODES = {2: BARCODE, 9: SHARED_BARCODE, 10: SHARED_BARCODE}
"""GTIN-14 by release id."""


SONG_SECONDS = 40.0
SONGS = ((1, 1), (2, 2), (4, 4), (5, 4), (MERGED, MERGED), (MERGED, 1), (RETIRED, RETIRED))
"""(recording id, seed of its melody) as the recognition index has them, in both builds: 4 and 5 sound alike, 41 also sounds like 1."""


def song(seed: int) -> NDArray[np.int16]:
    """Return the sound of the recordings of that melody: mono, 11025 Hz."""
    return melody(SONG_SECONDS, seed=seed)


@dataclass
class Frames:
    """Rows of every table, by name."""

    rows: dict[str, list[dict[str, Any]]] = field(
        default_factory=lambda: {table.name: [] for table in (*CATALOG_TABLES, TABLES["recording_member"], TABLES["isrc_conflict"])}
    )

    def add(self, table: str, **row: object) -> None:
        """Add a row. Columns that are left out are null."""
        self.rows[table].append(dict.fromkeys(TABLES[table].polars_schema) | row)

    def write(self, folder: Path) -> dict[str, Path]:
        """Write all tables below `folder`; return name -> folder."""
        for name, rows in self.rows.items():
            write_table(TABLES[name], folder / name, build_frame(name, rows))
        return {name: folder / name for name in self.rows}


def publish_both(root: Path, tables: Path) -> None:
    """Publish both builds below `root`, so that `second` is live."""
    tables.mkdir(parents=True)
    index = tables / "recognition"
    heard = {seed: fingerprint(song(seed)) for _, seed in SONGS}
    batch = FingerprintBatch.of([one for one, _ in SONGS], [heard[seed] for _, seed in SONGS], [SONG_SECONDS] * len(SONGS))
    # One song has no landmarks, as the fingerprints of a dump.
    own = [one for one, seed in SONGS if seed != RETIRED]
    landmarks = FingerprintBatch.of(own, [find_peaks(song(seed)) for one, seed in SONGS if one in own])
    build_index([batch], index, landmarks=[landmarks], partitions=1)
    for name in ("first", "second"):
        frames = make_frames(is_second=name == "second")
        next_ids = dict.fromkeys(("recording", "artist", "release", "label"), SPLIT_OFF + (name == "second"))
        publish(frames.write(tables / name), root, snapshot_id=name, next_ids=next_ids, recognition=index)


def make_frames(*, is_second: bool) -> Frames:
    """Return the rows of a build."""
    frames = Frames()
    taxonomy = build_genre_rows(load_book().taxonomy)
    frames.rows["genre"] = taxonomy.to_dicts()
    genre_ids = dict(taxonomy.select("name", "genre_id").iter_rows())
    specs = (*SPECS, *(SECOND_ONLY if is_second else FIRST_ONLY))
    for artist_id, name in ARTISTS.items():
        count = sum(artist == artist_id for _, artist, *_ in RELEASES.values())
        frames.add("artist", artist_id=artist_id, name=name, release_count=count, recording_count=1, popularity=artist_id / 10)
        frames.add("artist_source", platform="streamsvc_a", external_id=f"artist{artist_id:016d}", artist_id=artist_id)
    frames.add("artist", artist_id=NAMESAKE_ARTIST, name=ARTISTS[MERIDIAN], release_count=0, recording_count=0, popularity=0)
    frames.add("artist_source", platform="streamsvc_a", external_id=f"artist{NAMESAKE_ARTIST:016d}", artist_id=NAMESAKE_ARTIST)
    for label_id, name in (*LABELS.items(), (NAMESAKE_LABEL, LABELS[1])):
        count = sum(label == label_id for _, _, label, *_ in RELEASES.values())
        frames.add("label", label_id=label_id, name=name, release_count=count)
        frames.add("label_source", platform="store_a", external_id=str(label_id), label_id=label_id)
    for release_id in RELEASES:
        _release(frames, release_id, specs)
    for spec in specs:
        _recording(frames, spec, genre_ids)
    many = [spec.id for spec in specs if spec.id in GLASS_REMIXES]
    for code, members in ((WORK, [1, 2, 6]), (WORK_OF_MANY, [6, *many]), (WORK_ALONE, [])):
        frames.add("work", iswc=code, title=f"Work {code[-3:]}")
        for member in members:
            frames.add("work_recording", iswc=code, recording_id=member)
    frames.add("redirect", kind="artist", old_id=OLD_ARTIST, new_id=FOXES)
    frames.add("redirect", kind="label", old_id=OLD_LABEL, new_id=1)
    frames.add("redirect", kind="release", old_id=OLD_RELEASE, new_id=1)
    if is_second:
        frames.add("redirect", kind="recording", old_id=MERGED, new_id=1)
        frames.add("redirect", kind="recording", old_id=RETIRED, new_id=None)
    frames.add("external_redirect", source="catalog_b", old_id=OLD_RECORDING_UUID, new_id=uuid(1))
    for code, reason in ((isrc(1), "variant"), (isrc(1, 1), "duration")):
        frames.add("isrc_conflict", isrc=code, recording_id=3, owner_recording_id=1, platforms=["store_a"], record_count=1, reason=reason)
    frames.add("unclassified_genre_string", platform="store_a", parent="", genre="Wobblecore?", recording_count=1, undecided_count=1)
    return frames


def _release(frames: Frames, release_id: int, specs: tuple[Spec, ...]) -> None:
    title, artist_id, label_id, date, precision = RELEASES[release_id]
    on_it = [spec.popularity for spec in specs if release_id in spec.release_ids]
    frames.add(
        "release",
        release_id=release_id,
        title=title,
        artist_id=artist_id,
        artist_name=ARTISTS[artist_id],
        artist_credited_as=RELEASE_CREDITS.get(release_id),
        gtin=BARCODES.get(release_id),
        label_id=label_id,
        label_name=LABELS.get(label_id or 0),
        release_date=date,
        release_date_precision=precision,
        release_type="album",
        is_compilation=False,
        track_count=max(1, len(on_it)),
        popularity=max(on_it, default=0.0),
        platform_count=2,
    )
    frames.add("release_source", platform="catalog_a", external_id=str(7000 + release_id), release_id=release_id)


def _recording(frames: Frames, spec: Spec, genre_ids: dict[str, int]) -> None:
    dated = sorted((RELEASES[one][3] is None, RELEASES[one][3] or "", one) for one in spec.release_ids)
    releases = [one for _, _, one in dated]
    _, _, _, date, precision = RELEASES[releases[0]]
    seconds = None if spec.milliseconds is None else (spec.milliseconds + 500) // 1000
    code = spec.codes[0] if spec.codes else None
    shared = {"recording_id": spec.id, "title": spec.title, "isrc": code, "duration_seconds": seconds, "popularity": spec.popularity}
    dates = {"release_date": date, "release_date_precision": precision}
    credit = " feat. ".join(ARTISTS[artist] for artist, _, is_remixer in spec.artists if not is_remixer or len(spec.artists) == 1)
    frames.add(
        "recording",
        **shared,
        **dates,
        variant=spec.variant,
        variants=[],
        artist_credit=credit,
        duration_ms=spec.milliseconds,
        source_count=2,
        platform_count=2,
        title_platform="streamsvc_a",
    )
    for number, one in enumerate(spec.codes):
        frames.add("recording_isrc", isrc=one, recording_id=spec.id, is_representative=number == 0, platform_count=3 - number)
    for position, (artist, is_primary, is_remixer) in enumerate(spec.artists):
        credited_as = None if position else spec.credited_as
        roles = {"name": ARTISTS[artist], "credited_as": credited_as, "is_primary": is_primary, "is_remixer": is_remixer}
        frames.add("recording_artist", recording_id=spec.id, position=position, artist_id=artist, **roles)
    for release_id in releases:
        frames.add("recording_release", recording_id=spec.id, release_id=release_id, disc_number=1, track_number=None)
    for position, name in enumerate((*spec.genres, *spec.subgenres)):
        columns = {"platform": "store_a", "entity_kind": "recording", "genre": name, "parent": "", "rule_id": "test"}
        frames.add("recording_genre", recording_id=spec.id, genre_id=genre_ids[name], position=position, platform_count=1, **columns)
    _track(frames, spec, releases, shared | dates)
    default = (("streamsvc_a", streamsvc_a_id(spec.id)), ("store_a", str(5_000_000 + spec.id)))
    for source, external_id in default if spec.links is None else spec.links:
        slug = f"track-{spec.id}" if source == "store_a" else None
        frames.add("platform_link", recording_id=spec.id, source=source, external_id=external_id, slug=slug)
        if source != "video_a":
            record = f"{external_id}-{spec.id}" if source == "catalog_a" else external_id
            frames.add("recording_member", platform=source, external_id=record, recording_id=spec.id)
            _add_source(frames, spec, source, record, release_id=external_id if source == "catalog_a" else None)


def _add_source(frames: Frames, spec: Spec, platform: str, record: str, *, release_id: str | None) -> None:
    """Add the values that a platform gives; each spells the title in its own way."""
    lists: dict[str, object] = {"artists": [], "isrcs": list(spec.codes), "genres": ["House"], "release_genres": ["House", "Club"]}
    dated: dict[str, object] = {"release_date": FIRST_OF_2021, "release_date_precision": "year", "release_date_entity": "release"}
    named = {"title": f"{spec.title} ({platform})", "artist_credit": "Velvet Foxes, The", "duration_ms": spec.milliseconds}
    frames.add(
        "recording_source", recording_id=spec.id, platform=platform, external_id=record, release_id=release_id, **lists, **dated, **named
    )


def _track(frames: Frames, spec: Spec, releases: list[int], shared: dict[str, object]) -> None:
    nested = []
    for release_id in releases:
        title, artist_id, label_id, date, precision = RELEASES[release_id]
        nested.append(
            {"release_id": release_id, "title": title, "artist_id": artist_id, "artist_name": ARTISTS[artist_id],
             "artist_credited_as": RELEASE_CREDITS.get(release_id), "label_id": label_id, "label_name": LABELS.get(label_id or 0),
             "release_date": date, "release_date_precision": precision}
        )  # fmt: skip
    artists = [
        {"artist_id": artist, "name": ARTISTS[artist], "credited_as": None if position else spec.credited_as,
         "is_primary": is_primary, "is_remixer": is_remixer}
        for position, (artist, is_primary, is_remixer) in enumerate(spec.artists)
    ]  # fmt: skip
    frames.add("track", releases=nested, artists=artists, genres=list(spec.genres), subgenres=list(spec.subgenres), **shared)
