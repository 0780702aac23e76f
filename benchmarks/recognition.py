"""Recognition at a million recordings: recall by damage, false accepts, calibration, time, size and the cost of the build.

    python -m benchmarks.recognition WORK [--recordings 1000000] [--pieces 3] [--seed 11] [--unseen] [--export DIR] [--whole-files]

Real tracks (benchmarks/game_music.py, fetched into WORK/audio: about 1.3 GB) are held, absent or material (recognition_families.py);
made-up recordings of the material fill the index (recognition_synthetic.py). Every held track is asked for in `--pieces` clips of each
length and damage (recognition_clips.py), cut anywhere; every absent one in undamaged windows, one every ten seconds. `--unseen` asks for
windows of more packages, which were in nobody's view when gates were set; nothing of them is in the index, so whatever is answered is a
false accept. Both modes are asked: `fingerprint` knows one phase, `upload` four. An answer is right when its first recording is the track
or a relative of it. What was made is kept in WORK (12 GB), so another run takes minutes. `--export` writes the references' and the clips'
audio and one line per clip and mode into DIR: any other fingerprinter can be run on the same work. `--whole-files` adds the peer of
recognition_whole_files.py (3 GB of memory).
"""

from __future__ import annotations

import argparse
import shutil
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from audio_recognition.index.batches import FingerprintBatch
from audio_recognition.index.build import build_index
from audio_recognition.index.fingerprint_index import Index
from audio_recognition.matching import Matcher
from audio_recognition.matching.candidates import build_plain_probes, find_candidates
from benchmarks import recognition_synthetic
from benchmarks.game_music import UNSEEN_PACKAGES
from benchmarks.game_music import list_tracks as music_files
from benchmarks.measurement import measure
from benchmarks.recognition_clips import CLASSES, CLIP_SECONDS, Clip, build_clip_name, cut_clips, read_tracks
from benchmarks.recognition_damage import read_speech
from benchmarks.recognition_families import choose_role, find_families, find_strangers
from benchmarks.recognition_whole_files import WholeFiles

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from benchmarks.recognition_clips import Track

MODES = {"fingerprint": 1, "upload": 4}
MADE_UP_SEED = 5
ABSENT, UNSEEN = "absent", "absent, unseen"
_ABSENT_ITEMS = {10: 59, 30: 223}
_ABSENT_STEP = 80
_EDGES = (0.5, 0.55, 0.65, 0.75, 0.85, 0.95, 1.01)
_COLUMNS = ("bucket_starts.npy", "posting_words.npy", "posting_places.npy", "ids.npy", "seconds.npy")


@dataclass(frozen=True)
class World:
    """The tracks by role; held_ids[i] is the recording id of held[i]."""

    folder: Path
    recordings: int
    held: list[Track]
    absent: list[Track]
    material: list[Track]
    family: dict[str, str]

    @property
    def audio(self) -> Path:
        """Return the folder of unpacked packages."""
        return self.folder / "audio"

    @property
    def held_ids(self) -> list[int]:
        """Return the recording ids of the held tracks: odd numbers, evenly among the generated ones, so that none is favoured."""
        return [2 * (number * self.recordings // len(self.held)) + 1 for number in range(len(self.held))]

    def iterate_batches(self) -> Iterator[FingerprintBatch]:
        """Yield generated recordings and the held tracks."""
        yield from recognition_synthetic.read_batches(
            self.folder / "made_up", self.recordings - len(self.held), first_id=0, seed=MADE_UP_SEED, apart=2
        )
        yield FingerprintBatch.of(self.held_ids, [one.items[0] for one in self.held], [one.seconds for one in self.held])


def read_world(folder: Path, recordings: int) -> World:
    """Fetch and read the missing parts of the world."""
    read = read_tracks(folder / "audio", music_files(folder / "audio"), folder / "tracks")
    family = find_families(read)
    by_role = {name: [track for track in read if choose_role(family[track.name]) == name] for name in ("held", "absent", "material")}
    return World(folder, recordings, by_role["held"], by_role["absent"], by_role["material"], family)


def read_unseen(made: World) -> list[Track]:
    """Return tracks of which nothing is in the index."""
    read = read_tracks(made.audio, music_files(made.audio, UNSEEN_PACKAGES), made.folder / "tracks")
    return find_strangers(read, [*made.held, *made.absent, *made.material])


def build(folder: str, recordings: str) -> dict[str, float]:
    """Build the index in WORK/index; return the CPU seconds of the build, and of reading its input."""
    made = read_world(Path(folder), int(recordings))
    shutil.rmtree(made.folder / "index", ignore_errors=True)
    reading = 0.0

    def time_batches() -> Iterator[FingerprintBatch]:
        nonlocal reading
        started = time.process_time()
        for batch in made.iterate_batches():
            # Reading generated recordings is not part of a real build, so its time is reported apart.
            reading += time.process_time() - started
            yield batch
            started = time.process_time()

    started = time.process_time()
    build_index(time_batches(), made.folder / "index")
    return {"cpu": time.process_time() - started, "reading": reading}


def iterate_windows(tracks: Sequence[Track], kind: str) -> Iterator[Clip]:
    """Yield undamaged windows; a window's items are those of the track."""
    for track in tracks:
        items = min(len(one) for one in track.items)
        whole = np.stack([one[:items] for one in track.items])
        for seconds, length in _ABSENT_ITEMS.items():
            for start in range(0, items - length, _ABSENT_STEP):
                yield Clip(track.name, kind, seconds, start * 0.1238, whole[:, start : start + length])


def ask(matcher: Matcher, made: World, clips: Sequence[Clip]) -> pl.DataFrame:
    """Return one row per clip and mode; times in ms."""
    names = {number: track.name for number, track in zip(made.held_ids, made.held, strict=True)}
    rows = []
    for mode, phases in MODES.items():
        for clip in clips:
            query = list(clip.items[:phases])
            wall, cpu = time.perf_counter(), time.thread_time()
            answer = matcher.match(query)
            cpu, wall = time.thread_time() - cpu, time.perf_counter() - wall
            best = answer.matches[0] if answer.matches else None
            found = None if best is None else names.get(best.recording_id, str(best.recording_id))
            rows.append(
                {
                    "mode": mode,
                    "class": clip.kind,
                    "seconds": clip.seconds,
                    "clip": build_clip_name(clip.track, clip.kind, clip.seconds, clip.start_seconds),
                    "track": clip.track,
                    "start_seconds": clip.start_seconds,
                    "answer": found,
                    # A track of the same family holds the same music, so answering with it is right.
                    "is_right": best is not None and made.family.get(found or "") == made.family.get(clip.track, clip.track),
                    "confidence": None if best is None else best.confidence,
                    "bit_error_rate": None if best is None else best.bit_error_rate,
                    "answer_start_seconds": None if best is None else best.offset_seconds,
                    "answers": len(answer.matches),
                    "reason": answer.reason,
                    "cpu_ms": cpu * 1000,
                    "wall_ms": wall * 1000,
                }
            )
    return pl.DataFrame(rows, infer_schema_length=None)


def measure_candidate_times(index: Index, clips: Sequence[Clip]) -> dict[str, NDArray[np.float64]]:
    """Return the wall ms of the first lookup for each mode."""
    times: dict[str, NDArray[np.float64]] = {}
    for mode, phases in MODES.items():
        taken = []
        for clip in clips:
            started = time.perf_counter()
            for segment in index.segments:
                find_candidates(segment, build_plain_probes(clip.items[:phases]))
            taken.append(time.perf_counter() - started)
        times[mode] = np.array(taken) * 1000
    return times


def print_recall(answers: pl.DataFrame) -> None:
    """Print right and wrong answers of held tracks, and false accepts of absent ones."""
    print(f"\n{'class':18}" + "".join(f"{mode + f' {seconds} s':>26}" for seconds in CLIP_SECONDS for mode in MODES))
    for kind in (*CLASSES, ABSENT, UNSEEN):
        if kind not in answers["class"]:
            continue
        cells = []
        for seconds in CLIP_SECONDS:
            for mode in MODES:
                rows = answers.filter((pl.col("class") == kind) & (pl.col("seconds") == seconds) & (pl.col("mode") == mode))
                right, answered = rows["is_right"].sum(), rows["answer"].count()
                share = (
                    f"false {answered / rows.height:.4f}"
                    if kind in (ABSENT, UNSEEN)
                    else f"{right / rows.height:.3f}, wrong {answered - right}"
                )
                cells.append(f"{share + f' of {rows.height}':>26}")
        print(f"{kind:18}" + "".join(cells))


def print_calibration(answers: pl.DataFrame) -> None:
    """Print the share of right answers by confidence, held and absent tracks together."""
    print(f"\n{'confidence':14}" + "".join(f"{mode + f' {seconds} s':>22}" for seconds in CLIP_SECONDS for mode in MODES))
    for low, high in pairwise(_EDGES):
        cells = []
        for seconds in CLIP_SECONDS:
            for mode in MODES:
                chosen = (
                    (pl.col("seconds") == seconds) & (pl.col("mode") == mode) & pl.col("confidence").is_between(low, high, closed="left")
                )
                rows = answers.filter(chosen)
                share = f"{rows['is_right'].sum()} of {rows.height}" if rows.height else "-"
                cells.append(f"{share:>22}")
        print(f"{low:.2f} - {min(high, 1):.2f}   " + "".join(cells))


def print_times(answers: pl.DataFrame, looks: dict[str, NDArray[np.float64]]) -> None:
    """Print milliseconds of the first lookup alone and of the whole match."""
    for mode, first in looks.items():
        rows = answers.filter(pl.col("mode") == mode)
        quantiles = [rows[name].quantile(at) or 0.0 for name in ("wall_ms", "cpu_ms") for at in (0.5, 0.99)]
        print(
            f"{mode:12} candidates p50 {np.median(first):.2f} p99 {np.quantile(first, 0.99):.2f} ms; "
            f"match p50 {quantiles[0]:.2f} p99 {quantiles[1]:.2f} ms (CPU {quantiles[2]:.2f}, {quantiles[3]:.2f})"
        )


def print_size(index: Path, recordings: int) -> None:
    """Print the bytes for each recording."""
    sizes = {file.name: file.stat().st_size / recordings for file in sorted((index / "base").glob("*.npy"))}
    look_up = sum(sizes[name] for name in _COLUMNS)
    print(f"\nindex {look_up:.0f} bytes a recording, store {sum(sizes.values()) - look_up:.0f}, together {sum(sizes.values()):.0f}")
    print("  " + ", ".join(f"{name} {size:.0f}" for name, size in sizes.items()))


def export(folder: Path, made: World, answers: pl.DataFrame) -> None:
    """Write references and one line per clip and mode; the clips' audio exists already."""
    (folder / "references").mkdir(parents=True, exist_ok=True)
    rows = []
    for number, track in enumerate(made.held):
        file = folder / "references" / f"{number:04d}{Path(track.name).suffix}"
        shutil.copyfile(made.audio / track.name, file)
        rows.append({"file": f"references/{file.name}", "track": track.name, "family": made.family[track.name]})
    pl.DataFrame(rows).write_csv(folder / "references.csv")
    answers.write_csv(folder / "answers.csv")


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--recordings", type=int, default=1_000_000)
    parser.add_argument("--pieces", type=int, default=3)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--unseen", action="store_true")
    parser.add_argument("--export", type=Path)
    parser.add_argument("--whole-files", action="store_true")
    parser.add_argument("--keep-index", action="store_true", help="ask the index that an earlier run left in WORK")
    options = parser.parse_args()
    made = read_world(options.work, options.recordings)
    print(f"{len(made.held)} tracks held, {len(made.absent)} absent, {len(made.material)} material; {options.recordings} recordings")
    recognition_synthetic.make_recordings(
        [one.chroma for one in made.material], options.work / "made_up", options.recordings, seed=MADE_UP_SEED
    )
    if not options.keep_index:
        run = measure("benchmarks.recognition:build", str(options.work), str(options.recordings))
        each, reading = (run.answer[name] / options.recordings * 1e6 for name in ("cpu", "reading"))
        print(
            f"build {each:.1f} us of CPU a recording, {reading:.1f} of them to read what it is built of, {run.wall:.0f} s, "
            f"peak {run.memory:.0f} MiB resident"
        )
    print_size(options.work / "index", options.recordings)
    audio = None if options.export is None else options.export / "clips"
    if audio is not None:
        audio.mkdir(parents=True, exist_ok=True)
    voices = read_speech(made.audio)
    names = [track.name for track in made.held]
    clips = list(cut_clips(made.audio, names, options.work / "clips", voices, pieces=options.pieces, seed=options.seed, audio=audio))
    asked = [*clips, *iterate_windows(made.absent, ABSENT)]
    if options.unseen:
        more = read_unseen(made)
        print(f"{len(more)} tracks unseen before, of {len(UNSEEN_PACKAGES)} packages")
        asked += iterate_windows(more, UNSEEN)
    index = Index.open(options.work / "index")
    measure_candidate_times(index, clips)  # warm
    answers = ask(Matcher(index), made, asked)
    print_recall(answers)
    print_calibration(answers)
    print()
    print_times(answers, measure_candidate_times(index, clips))
    if options.whole_files:
        print_whole_files(made, clips)
    if options.export is not None:
        export(options.export, made, answers)


def print_whole_files(made: World, clips: Sequence[Clip]) -> None:
    """Print the recall of the peer among its ten best."""
    peer = WholeFiles(made.iterate_batches())
    names = {number: track.name for number, track in zip(made.held_ids, made.held, strict=True)}
    for kind in CLASSES:
        cells = []
        for seconds in CLIP_SECONDS:
            mine = [clip for clip in clips if (clip.kind, clip.seconds) == (kind, seconds)]
            found = [any(names.get(one) == clip.track for one in peer.find_best(clip.items[0])) for clip in mine]
            cells.append(f"{np.mean(found):.3f} of {len(found)}")
        print(f"whole files, ten best  {kind:18} " + "  ".join(cells))


if __name__ == "__main__":
    main()
