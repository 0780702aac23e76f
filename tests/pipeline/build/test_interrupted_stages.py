"""Tests of stages that end between two of their slices and ranges: the next build goes on there and writes the same bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipeline.build import artist_evidence, genre_buckets, links, recording_ranges, release_buckets, source_values, tracks, workbench
from pipeline.build.artists import build_artists
from pipeline.build.genres import build_genres
from pipeline.build.labels import build_labels
from pipeline.build.links import build_links
from pipeline.build.recordings import build_recordings
from pipeline.build.releases import build_releases
from pipeline.build.source_values import build_source_values
from pipeline.build.tracks import build_tracks
from pipeline.build.works import build_works
from pipeline.engine.checkpoints import use_token
from pipeline.linkage import staged_records
from tests.pipeline.interrupter import Interrupter

from .test_tables import STAGES, fill, hash_folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeline.paths import BuildPaths

    from .conftest import World

SIZES = (
    (recording_ranges, "RECORDINGS_PER_RANGE", 13),
    (genre_buckets, "ROWS_PER_BUCKET", 100),
    (links, "ROWS_PER_BUCKET", 30),
    (workbench, "TEXTS_PER_BUCKET", 10),
    (workbench, "ROWS_PER_JOIN", 10),
    (artist_evidence, "NODES_PER_BLOCK", 10),
    (release_buckets, "NODES_PER_BUCKET", 10),
    (release_buckets, "RELEASES_PER_RANGE", 9),
    (source_values, "RELEASES_PER_BUCKET", 9),
    (tracks, "RELEASES_PER_BUCKET", 9),
    (staged_records, "ROWS_PER_SLICE", 30),
)


@pytest.mark.parametrize(
    ("stage", "step"),
    [
        (build_artists, ("group", 3)),
        (build_labels, ("group", 0)),
        (build_releases, ("build", 1)),
        (build_recordings, ("build", 3)),
        (build_works, ("weigh_by_title", 3)),
        (build_source_values, ("build", 3)),
        (build_links, ("build", 3)),
        (build_genres, ("build", 3)),
        (build_tracks, ("build", 3)),
    ],
)
def test_stage_interrupted_after_each_input_repeats_none_and_ends_byte_identical(
    world: World, monkeypatch: pytest.MonkeyPatch, stage: Callable[[BuildPaths], object], step: tuple[str, int]
) -> None:
    fill(world)
    paths = world.write()
    for module, name, value in SIZES:
        monkeypatch.setattr(module, name, value)
    for each in STAGES:
        each(paths)
    assert step in Interrupter(monkeypatch).check_turns(stage, paths, 1, hash_tables)
    assert not (paths.root / "work" / "spill" / stage.__name__.removeprefix("build_")).exists()


def hash_tables(paths: BuildPaths) -> dict[str, str]:
    return {folder.name: hash_folder(folder) for folder in (paths.root / "work" / "catalog").iterdir()}


def test_stage_of_other_inputs_begins_anew(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(world)
    paths = world.write()
    for each in STAGES:
        each(paths)
    interrupter = Interrupter(monkeypatch)
    for token in ("yesterday", "tonight"):
        with use_token(token):
            assert not interrupter.run(build_tracks, paths, 1)
    assert interrupter.finished == [("send_listings", 0)] * 2
