"""Builds the demo: real excerpts beside a simulated world of 20,000 recordings, the catalog out of both, an account with a key.

Everything lies below one folder (`demo/dumps`, `demo/catalog`, `demo/accounts.db`, `demo/key`). What is there already is not made again.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

from account_store import Accounts

ROOT = Path(__file__).resolve().parent.parent
RECORDINGS, SEED = 20_000, 2026

EXCERPTS = {
    "catalog_a": ("2020/*_releases.xml.gz", "2020/*_artists.xml.gz", "2020/*_labels.xml.gz"),
    "streamsvc_c": ("flat/*.jsonl", "flat_answers/*.json"),
    "store_a": ("version_3/*.json", "version_4/*.ndjson"),
}
"""Real excerpts that can stand in one dump beside simulated files, below tests/sample_dumps; their licences are in SOURCES.txt there."""


def main() -> int:
    """Build what is missing below the folder named on the command line."""
    demo = Path(sys.argv[1] if len(sys.argv) > 1 else "demo").resolve()
    started = time.monotonic()
    dumps, catalog = demo / "dumps", demo / "catalog"
    if not (dumps / "complete").exists():
        shutil.rmtree(dumps, ignore_errors=True)
        _pipeline("simulate", "--recordings", str(RECORDINGS), "--seed", str(SEED), "--out", str(dumps))
        _add_excerpts(dumps)
        (dumps / "complete").touch()
    if not (catalog / "current").exists():
        _pipeline("build", "--dumps", str(dumps), "--catalog", str(catalog))
    _make_key(demo)
    print(f"demo ready in {time.monotonic() - started:.0f} s", file=sys.stderr)
    return 0


def _pipeline(*arguments: str) -> None:
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


def _make_key(demo: Path) -> None:
    if (demo / "key").exists():
        return
    (demo / "accounts.db").unlink(missing_ok=True)
    store = Accounts.open(f"sqlite:///{demo}/accounts.db")
    (demo / "key").write_text(store.keys.create(store.create("demo").account_id).key + "\n", encoding="utf-8")
    store.close()


if __name__ == "__main__":
    sys.exit(main())
