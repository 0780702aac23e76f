"""Hand-made source records, and a small random world with known truth."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from catalog_store.snapshot import FORMAT, FORMAT_VERSION, MANIFEST, Manifest, StoredFile
from catalog_store.tables import TABLES
from pipeline.linkage import link

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

STAGED = TABLES["source_recording"]


@dataclass
class Records:
    """A collection of source records. Tests name a record by `name`, its external id."""

    rows: list[dict[str, object]] = field(default_factory=list)

    def add(
        self,
        name: str,
        title: str = "Song",
        artists: str | list[str] = "Astrid",
        *,
        platform: str = "streamsvc_a",
        version: str | None = None,
        isrcs: str | list[str] = "",
        seconds: float | None = 200,
        featured: tuple[str, ...] = (),
        remixers: tuple[str, ...] = (),
        release: str | None = None,
        track: int | None = None,
        disc: int | None = None,
        heading: str | None = None,
        repeats: str | None = None,
        traits: tuple[str, ...] = (),
        with_ids: bool = True,
    ) -> Records:
        """Add a record. Artists are primary, and known by id unless `with_ids` is false."""
        primary = [artists] if isinstance(artists, str) else artists
        people = [(who, "primary") for who in primary] + [(who, "featured") for who in featured] + [(who, "remixer") for who in remixers]
        self.rows.append(
            {
                "platform": platform,
                "external_id": name,
                "link_id": name,
                "title": title,
                "version": version,
                "artists": [{"artist_id": f"id {who}" if with_ids else None, "name": who, "role": role} for who, role in people],
                "artist_credit": ", ".join(primary) or None,
                "isrcs": isrcs.split() if isinstance(isrcs, str) else isrcs,
                "duration_ms": None if seconds is None else round(seconds * 1000),
                "release_id": release,
                "disc_number": disc,
                "track_number": track,
                "heading": heading,
                "repeats": repeats,
                "is_video": False,
                "traits": list(traits),
            }
        )
        return self

    def frame(self) -> pl.DataFrame:
        """Return the records as staging has them."""
        return STAGED.conform(pl.DataFrame(self.rows, schema={name: STAGED.polars_schema[name] for name in self.rows[0]}, strict=False))

    def linked(self) -> set[frozenset[str]]:
        """Return the recordings, each as the set of its records' names."""
        return partition(link(self.frame()))


def write_manifest(folder: Path, next_ids: Mapping[str, int]) -> None:
    """Write the part of a manifest that linkage reads: the next ids of the snapshot in `folder`."""
    manifest = Manifest(FORMAT, FORMAT_VERSION, folder.name, "2026-01-01T00:00:00Z", "x", {}, dict(next_ids), StoredFile("x", 0, ""), ())
    (folder / MANIFEST).write_bytes(manifest.encode())


def partition(member: pl.DataFrame) -> set[frozenset[str]]:
    """Return the recordings as sets of external ids."""
    return {frozenset(ids) for ids in member.group_by("recording_id").agg("external_id")["external_id"].to_list()}


VERSIONS = ("", "Radio Edit", "Extended Mix", "Live", "{} Remix", "Acoustic", "Instrumental")
PLATFORMS = ("streamsvc_a", "streamsvc_b", "streamsvc_c", "store_a", "catalog_a", "catalog_b")


def made_up_world(seed: int, songs: int, wrong_codes: float = 0.01) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return staged records and their truth: songs in several versions on six platforms.

    Guests are in the title or beside it; codes and durations are missing, mistyped titles and wrong codes occur, durations jitter.
    """
    rng = np.random.default_rng(seed)
    syllables = ["ka", "lo", "mi", "ren", "sta", "vor", "del", "qua", "tis", "bu", "fen", "gor", "hal", "jun"]

    def word(size: int) -> str:
        return "".join(rng.choice(syllables, size)).capitalize()

    people = [f"{word(2)} {word(3)}" for _ in range(max(4, songs // 4))]
    made, truth, number = Records(), [], 0
    for song in range(songs):
        artist, guest = people[song % len(people)], people[int(rng.integers(len(people)))]
        title, has_guest = f"{word(3)} {word(2)} {word(3)}", rng.random() < 0.2 and guest != artist
        for version in rng.choice(len(VERSIONS), size=int(rng.integers(1, 4)), replace=False):
            number += 1
            words = VERSIONS[version].format(people[int(rng.integers(len(people)))])
            seconds, code = float(rng.uniform(120, 420)), f"GBABC{song % 90 + 10}{number:05d}"
            for copy, platform in enumerate(rng.choice(PLATFORMS, size=int(rng.integers(1, 7)))):
                shown = title
                if rng.random() < 0.02:
                    place = int(rng.integers(2, len(title) - 1))
                    shown = title[:place] + title[place + 1 :]
                if has_guest and rng.random() < 0.5:
                    shown += f" (feat. {guest})"
                apart = platform in ("store_a", "streamsvc_c") and words
                if words and not apart:
                    shown += f" - {words}" if platform == "streamsvc_a" else f" ({words})"
                carried = "" if rng.random() < (0.9 if platform.startswith("catalog") else 0.05) else code
                if rng.random() < wrong_codes:
                    carried = f"GBABC{song % 90 + 10}{max(1, number - 1):05d}"
                name = f"{number}-{copy}"
                made.add(
                    name,
                    shown,
                    [artist, guest] if has_guest and platform == "streamsvc_a" else artist,
                    platform=str(platform),
                    version=words if apart else None,
                    isrcs=carried,
                    seconds=None if rng.random() < 0.1 else round(seconds + float(rng.normal(0, 0.6)), 3),
                    featured=(guest,) if has_guest and platform != "streamsvc_a" else (),
                )
                truth.append({"platform": str(platform), "external_id": name, "true_recording_id": number})
    return made.frame(), pl.DataFrame(truth)
