"""The writer of a simulated world: a pool of processes makes blocks, files grow in block order, sums and archives come last.

<out>/<platform>/<date>/            the dump in the platform's primary form
<out>/alternative/<platform>/<date>/  the same rows in its other form, when `alternative_forms` is set
<out>/fingerprints/<year>/<month>/  fingerprints day by day, when `fingerprint_coverage` is set
<out>/truth/{recording,artist,release,label,work,genre,fingerprint}/part-0.parquet, and dirt in the harsh world
"""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

import polars as pl

from catalog_store.platforms import CATALOG_A, CATALOG_B, FINGERPRINTS, STORE_A, STREAMSVC_A, STREAMSVC_B, STREAMSVC_C, WORKS
from simulator import catalog_a, catalog_b, catalog_b_tables, store_a, streamsvc_a, streamsvc_b, streamsvc_c, works
from simulator.files import Dump, Written, compute_digests, pack_tar
from simulator.fingerprints import build_fingerprints
from simulator.genre_words import MAINS
from simulator.rows import make_block
from simulator.world_part import DIRT_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from simulator.files import Closing
    from simulator.settings import SimulationSettings
    from simulator.world_part import Part

    Block = tuple[dict[str, Part], dict[str, pl.DataFrame], dict[str, bytes]]
    MapBlocks = Callable[[Callable[[int], Block], Iterable[int]], Iterator[Block]]

PLATFORMS = MappingProxyType(
    {
        STREAMSVC_A: streamsvc_a,
        STREAMSVC_B: streamsvc_b,
        STREAMSVC_C: streamsvc_c,
        STORE_A: store_a,
        CATALOG_A: catalog_a,
        CATALOG_B: catalog_b,
        WORKS: works,
    }
)
ENTITIES = ("artist", "release", "label")
"""Entities besides recordings that have a truth."""
SPOOL = ".spool"
"""Folder of catalog_b's tables until the archives are packed; tar members tell their size in front."""


def make_block_output(settings: SimulationSettings, block: int) -> Block:
    """Return everything of one block: the platforms' parts, the truth tables, the files of fingerprints."""
    # All platforms of a block are made together: they share the true block, which is cached (rows.make_block).
    made = {platform: PLATFORMS[platform].build_part(settings, block) for platform in PLATFORMS}
    recording = pl.concat(
        [part.truth.select(pl.lit(platform).alias("platform"), pl.all()) for platform, part in made.items() if platform != WORKS]
    )
    dirt = {"dirt": recording.select("platform", "external_id", *DIRT_COLUMNS)} if settings.is_harsh else {}
    recording = recording.drop(DIRT_COLUMNS, strict=False)
    world = make_block(settings, block).made
    songs = world.songs[world.recordings["song"].to_numpy()]
    codes = pl.concat(
        [songs.select(true_recording_id=world.recordings["true_id"], iswc=name) for name in ("iswc", "second_iswc")]
        # A work may lack its ISWC or have two.
    ).drop_nulls()
    mains = pl.Series([main for main, _ in MAINS]).gather(songs["main"])
    genre = pl.DataFrame({"true_recording_id": world.recordings["true_id"], "main": mains})
    entities = {kind: _collect_entities(kind, made) for kind in ENTITIES}
    truth = {"recording": recording, **dirt, **entities, "work": codes.sort("true_recording_id", "iswc"), "genre": genre}
    if not settings.fingerprint_coverage:
        return made, truth, {}
    printed = build_fingerprints(settings, block, made[CATALOG_B])
    return made, {**truth, "fingerprint": printed.truth}, printed.files


def _collect_entities(kind: str, made: Mapping[str, Part]) -> pl.DataFrame:
    """Return platform, external_id, true_<kind>_id of all platforms."""
    empty = pl.DataFrame(schema={"platform": pl.String, "external_id": pl.String, f"true_{kind}_id": pl.Int64})
    entities = {platform: part.entities[kind] for platform, part in made.items() if kind in part.entities}
    return pl.concat([empty, *(rows.select(pl.lit(platform).alias("platform"), pl.all()) for platform, rows in entities.items())])


def write_world(
    settings: SimulationSettings, out: Path, report: Callable[[str], None] = lambda _line: None, *, map_blocks: MapBlocks = map
) -> dict[str, int]:
    """Write all dumps and the truth below `out`, and return the rows of the truth per platform. `report` is called after each block.

    `map_blocks` makes the blocks and keeps their order; `map` makes one after the other in this process.
    FileExistsError when `out` holds something already: a world is never written over another one.
    """
    if out.exists() and any(out.iterdir()):
        raise FileExistsError(f"{out} is not empty: name a new folder, or remove it first")
    day = str(settings.dump_date)
    counts = dict.fromkeys(PLATFORMS, 0)
    folders = {platform: out / platform / day for platform in PLATFORMS}
    dumps = {platform: _open_dump(settings, platform, folder) for platform, folder in folders.items()}
    others = (
        {platform: _open_dump(settings, platform, out / "alternative" / platform / day) for platform in PLATFORMS}
        if settings.alternative_forms
        else {}
    )
    truth, printed = Dump(out / "truth", {}, {}), Dump(out / FINGERPRINTS, {}, {})
    with ExitStack() as stack:
        # Runs once the archives are packed, and also when a block fails.
        stack.callback(shutil.rmtree, out / SPOOL, ignore_errors=True)
        # `map_blocks` keeps the order of the blocks, and files grow in that order: so one process or many write the
        # same bytes.
        for block, (made, true, files) in enumerate(map_blocks(partial(make_block_output, settings), range(settings.block_count))):
            for platform, part in made.items():
                for name, content in part.files.items():
                    dumps[platform].add(name, content)
                for name, content in part.alternative.items():
                    others[platform].add(name, content)
                counts[platform] += len(part.truth)
            for name, text in files.items():
                printed.add(name, text)
            for table, frame in true.items():
                truth.add(f"{table}/part-0.parquet", frame)
            report(f"block {block + 1} of {settings.block_count}: {sum(counts.values())} source rows")
        truth.close()
        printed.close()
        for platform, dump in dumps.items():
            report(f"finishing {platform}")
            _finish(settings, platform, folders[platform], dump.close())
        for platform, dump in others.items():
            _finish(settings, platform, dump.folder, dump.close())
    return counts


def _open_dump(settings: SimulationSettings, platform: str, folder: Path) -> Dump:
    module = PLATFORMS[platform]
    if platform == CATALOG_B:
        # Tar members state their size before their content, so tables wait outside of the dump until they are complete.
        folder = folder.parents[1] / SPOOL
    closings: Mapping[str, Closing] = module.build_closings(settings)
    return Dump(folder, module.build_openings(settings), closings)


def _finish(settings: SimulationSettings, platform: str, folder: Path, written: dict[str, Written]) -> None:
    """Write the last files of publishers: checksums, manifest, archives."""
    if platform == CATALOG_A and written:
        name, text = catalog_a.build_checksum_file(settings, {file: digest.sha256 for file, digest in written.items()})
        (folder / name).write_bytes(text)
    elif platform == WORKS and written:
        name, text = works.build_manifest(settings, written)
        (folder / name).write_bytes(text)
    elif platform == CATALOG_B and written:
        _write_archives(folder, folder.parents[1] / SPOOL, sorted(written))


def _write_archives(folder: Path, spool: Path, names: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for kind, archive in catalog_b.ARCHIVES.items():
        heading = catalog_b_tables.build_heading(kind, catalog_b_tables.STAMP)
        for name, text in heading.items():
            (spool / name).write_bytes(text)
        tables = [name for name in names if name.startswith(f"{kind}/") and (spool / name).stat().st_size]
        members = [(name, spool / name) for name in heading] + [(f"mbdump/{name.split('/')[1]}", spool / name) for name in tables]
        pack_tar(folder / archive, members)
    sums = {archive: compute_digests(folder / archive) for archive in sorted(catalog_b.ARCHIVES.values())}
    (folder / "SHA256SUMS").write_text("".join(f"{digest.sha256} *{name}\n" for name, digest in sums.items()), encoding="utf-8")
    (folder / "MD5SUMS").write_text("".join(f"{digest.md5} *{name}\n" for name, digest in sums.items()), encoding="utf-8")
