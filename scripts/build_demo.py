"""The demo: real excerpts beside a simulated world of 20,000 recordings, the catalog of both, an account with a key.

Everything is below one folder (`demo/dumps`, `demo/catalog`, `demo/accounts.db`, `demo/key`); existing parts are kept. To identify:
`demo/fingerprint.json`, the body of a request with 30 s of a generated recording's fingerprint, and `demo/clip.wav`, twelve seconds of a
generated tune that an operator's folder (`demo/dumps/audio`) assigns to a recording of the world.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl

from account_store import Accounts
from simulator.fingerprint_items import copy_items
from simulator.tunes import LOUDNESS, RATE, make_tune, write_wav

ROOT = Path(__file__).resolve().parent.parent
RECORDINGS, SEED = 20_000, 2026
FINGERPRINTED = 0.15
"""Share of the recordings of catalog_b. A larger share would slow the build of the demo and show nothing new."""
CLIP_ITEMS = slice(400, 623)
"""Thirty seconds, from the fiftieth on."""
TUNE_SECONDS, CLIP_SECONDS = 40, slice(9, 21)

EXCERPTS = {
    "catalog_a": ("2020/*_releases.xml.gz", "2020/*_artists.xml.gz", "2020/*_labels.xml.gz"),
    "streamsvc_c": ("flat/*.jsonl", "flat_answers/*.json"),
    "store_a": ("version_3/*.json", "version_4/*.ndjson"),
}
"""Real excerpts that fit into one dump with simulated files, below tests/sample_dumps; SOURCES.txt there states their licences."""


def main() -> int:
    """Build the missing parts below the folder named on the command line."""
    demo = Path(sys.argv[1] if len(sys.argv) > 1 else "demo").resolve()
    started = time.monotonic()
    dumps, catalog = demo / "dumps", demo / "catalog"
    if not (dumps / "complete").exists():
        # The mark `complete` is missing: what is there is half of a world, and a world is never written over another.
        shutil.rmtree(dumps, ignore_errors=True)
        world = ("--recordings", str(RECORDINGS), "--seed", str(SEED), "--fingerprints", str(FINGERPRINTED))
        _run_pipeline("simulate", *world, "--out", str(dumps))
        _add_excerpts(dumps)
        _add_audio(demo, dumps)
        (dumps / "complete").touch()
    if not (catalog / "current").exists():
        _run_pipeline("build", "--dumps", str(dumps), "--catalog", str(catalog))
    _make_key(demo)
    _write_request(demo, catalog)
    print(f"demo ready in {time.monotonic() - started:.0f} s", file=sys.stderr)
    return 0


def _run_pipeline(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pipeline", *arguments], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own command


def _add_excerpts(dumps: Path) -> None:
    for platform, globs in EXCERPTS.items():
        [dated] = [folder for folder in (dumps / platform).iterdir() if folder.is_dir()]
        for pattern in globs:
            for file in sorted((ROOT / "tests" / "sample_dumps" / platform).glob(pattern)):
                (dated / "excerpt").mkdir(exist_ok=True)
                # The excerpt's own date would make it look like an older dump than the simulated one beside it.
                name = file.name.replace("20200806", dated.name.replace("-", ""))
                shutil.copyfile(file, dated / "excerpt" / f"{file.parent.name}_{name}")


def _add_audio(demo: Path, dumps: Path) -> None:
    """Write a tune that is assigned to a recording of catalog_b, and a piece of it with noise."""
    truth = pl.scan_parquet(dumps / "truth" / "recording" / "*.parquet").filter(platform="catalog_b")
    (record,) = truth.select("external_id").head(1).collect().to_series()
    samples = make_tune(SEED, TUNE_SECONDS)
    write_wav(dumps / "audio" / "tune.wav", samples)
    (dumps / "audio" / "mapping.csv").write_text(f"path,isrc,platform,id\ntune.wav,,catalog_b,{record}\n", encoding="utf-8")
    clip = samples[CLIP_SECONDS.start * RATE : CLIP_SECONDS.stop * RATE]
    noise = np.random.default_rng(SEED).normal(0, LOUDNESS / 20, len(clip))
    write_wav(demo / "clip.wav", (clip + noise).astype(np.int16))


def _write_request(demo: Path, catalog: Path) -> None:
    """Write a piece of the longest-known recording's fingerprint, as a client with another copy of it would send it."""
    if (demo / "fingerprint.json").exists():
        return
    chosen = pl.scan_parquet(catalog / "current" / "tables" / "recording_fingerprint" / "*.parquet").filter(source="fingerprints")
    recordings = pl.scan_parquet(catalog / "current" / "tables" / "recording" / "*.parquet").select("recording_id", "platform_count")
    best = chosen.join(recordings, on="recording_id").sort("platform_count", "recording_id", descending=[True, False]).head(1)
    staged = pl.scan_parquet(catalog / "work" / "staging" / "fingerprints" / "*" / "source_fingerprint" / "*.parquet")
    (items,) = staged.join(best, on="fingerprint_key", how="semi").select("items").collect().to_series().to_list()
    clip = copy_items(np.array(items, dtype=np.uint32), np.random.default_rng(SEED))[CLIP_ITEMS]
    (demo / "fingerprint.json").write_text(json.dumps({"fingerprint": clip.tolist()}) + "\n", encoding="utf-8")


def _make_key(demo: Path) -> None:
    if (demo / "key").exists():
        return
    (demo / "accounts.db").unlink(missing_ok=True)
    store = Accounts.open(f"sqlite:///{demo}/accounts.db")
    account = store.create("demo", "starter").account_id  # paid and with a card on file: every route can be tried
    store.set_card(account, has_card=True)
    (demo / "key").write_text(store.keys.create(account).key + "\n", encoding="utf-8")
    store.close()


if __name__ == "__main__":
    sys.exit(main())
