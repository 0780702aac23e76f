"""All steps behind staging, on staging tables that are copied until they hold a larger world: what each costs, in a process of its own.

    python -m benchmarks.copied_steps CATALOG --copies 10 --work DIR [--steps atoms edges ...]

CATALOG is the root of a build whose platforms are staged. Each copy has ids, codes and names of its own, so copies do not merge: ids get
two digits in front, ISRCs another country, barcodes and codes of works other numbers, and consonants of names are exchanged. Words that
many titles have ("remix", "live") stay. Steps run in the order of a build, as a large catalog runs them, with their checks. Prints a
line a step: wall and processor seconds, those of workers, peak memory of the process of the step and of its largest worker, spilled and
written bytes, bytes of DIR afterwards. Mapped files of linkage are deleted, because no later step reads them; `--keep-mapped` keeps them
for nights (benchmarks/copied_nights.py). A later call goes on with `--steps`.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import string
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from catalog_store.memory_budget import MemoryBudget, count_processors, set_budget
from catalog_store.publisher import publish
from catalog_store.record_keys.content_hash import add_content_hash
from catalog_store.tables import TABLES
from catalog_store.tables.files import TableWriter, count_rows, list_parts, measure_bytes
from pipeline.build.recognition import build_recognition
from pipeline.build.workbench import open_text_memory
from pipeline.defs import catalog_assets, identity_assets, linkage_assets
from pipeline.defs.checks import run_asset_checks
from pipeline.defs.snapshot_assets import PUBLISHED
from pipeline.engine.pool import map_ordered, start_workers
from pipeline.engine.progress import enter_section, send_progress
from pipeline.engine.step_process import run_in_own_process
from pipeline.engine.usage import measure_usage
from pipeline.linkage.id_registry import read_next_ids
from pipeline.linkage.mapped_atoms import get_mapped_folder
from pipeline.paths import BuildPaths
from pipeline.quality.build_figures import build_figures
from pipeline.quality.code_loss import count_code_losses
from pipeline.quality.report.examples import choose_examples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pipeline.defs.table_steps import TableStep
    from pipeline.engine.usage import Usage

log = logging.getLogger(__name__)

IDS = (
    *("external_id", "link_id", "repeats", "release_id", "group_id", "artist_id", "label_id", "parent_label_id", "work_id"),
    *("entity_id", "target_id", "old_id", "new_id"),
)
NAMES = (
    *("title", "version", "heading", "artist_credit", "name", "sort_name", "label_name", "catalog_number", "slug"),
    *("recording_title", "aliases", "alternative_titles"),
)
MOST_COPIES = 15
"""Letters of the shortest list of CONSONANTS: after as many copies they return."""
TEXTS_PER_WORD = 1000
"""A word that one of so many titles has says what a recording is, or belongs to the language."""
CONSONANTS = (
    "bcdfgklmnpqrstvxz",
    "бвгджзклмнпрстфхцчшщ",
    "βγδζθκλμνξπρτφχψ",
    "בגדהזחטילמנסעפצקרשת",
    "بتثجحخدذرزسشصضطظعغفقكلمن",
    "かきくけこさしすせそたちつてとはひふへほ",
    "なにぬねのまみむめもらりるれろ",
    "カキクケコサシスセソタチツテトハヒフヘホ",
    "ナニヌネノマミムメモラリルレロ",
    "".join(map(chr, range(0x1100, 0x1113))),  # Korean syllables, taken apart
)
"""Letters that replace each other. Vowels stay: an umlaut is also written with an e. A kana that can bear a mark becomes another such."""
FIRST_IDEOGRAPH, IDEOGRAPHS = 0x4E00, 20_000


def find_common_words(tables: Iterable[Path]) -> list[str]:
    """Return the words of titles that stay, in lower case, from the first parts of tables with a title."""
    frames = [pl.read_parquet(list_parts(table)[0], columns=["title"]) for table in tables if list_parts(table)]
    titles = pl.concat(frames)["title"].drop_nulls().str.to_lowercase()
    words = titles.str.extract_all(r"\b[a-z]{2,}\b").list.unique().explode().value_counts()
    return words.filter(pl.col("count") > len(titles) // TEXTS_PER_WORD)["title"].sort().to_list()


def exchange_letters(copy: int, words: list[str]) -> dict[str, str]:
    """Return what replaces what in the names of one copy, in decomposed Unicode (NFD). Words that stay replace themselves."""
    kept = [f"{before}{form}" for before in (" ", "(", "[", "-") for word in words for form in (word, word.title(), word.upper())]
    exchanged = {word: word for word in kept}
    for letters in CONSONANTS:
        moved = letters[copy % len(letters) :] + letters[: copy % len(letters)]
        exchanged |= dict(zip(letters, moved, strict=True)) | dict(zip(letters.upper(), moved.upper(), strict=True))
    ideographs = range(FIRST_IDEOGRAPH, FIRST_IDEOGRAPH + IDEOGRAPHS)
    return exchanged | {chr(place): chr(FIRST_IDEOGRAPH + (place - FIRST_IDEOGRAPH + copy) % IDEOGRAPHS) for place in ideographs}


class Copy:
    """Gives the rows of a staging table the ids, codes and names of one copy."""

    def __init__(self, number: int, words: list[str]) -> None:
        """`words`: those that stay in names."""
        self.number, self.prefix, self.letters = number, f"{10 + number}", exchange_letters(number, words)
        alphabet = string.ascii_uppercase
        self.countries = dict(zip(alphabet, alphabet[number:] + alphabet[:number], strict=True))

    def shift(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of the copy. Prefixes keep the order of ids."""
        artist, texts = pl.element().struct, pl.element()
        for name, dtype in rows.schema.items():
            column = pl.col(name)
            if name in IDS:
                shifted = self.prefix + column
            elif name == "url":
                shifted = column + self.prefix
            elif name in NAMES:
                shifted = self._rename(column) if dtype == pl.String else column.list.eval(self._rename(texts))
            elif name == "artists":
                named = {"artist_id": self.prefix + artist.field("artist_id"), "name": self._rename(artist.field("name"))}
                fields = [named.get(field.name, artist.field(field.name)).alias(field.name) for field in dtype.inner.fields]  # type: ignore[attr-defined]
                shifted = column.list.eval(pl.struct(fields))
            elif name == "isrc":
                shifted = self._move_country(column)
            elif name == "isrcs":
                shifted = column.list.eval(self._move_country(texts))
            elif name == "gtin":
                shifted = self._move_digits(column, 14)
            elif name == "iswc":
                shifted = "T" + self._move_digits(column.str.slice(1), 10)
            else:
                continue
            rows = rows.with_columns(shifted.alias(name))
        # The hash includes the id.
        return add_content_hash(rows.drop("content_hash")).select(rows.columns) if "content_hash" in rows.columns else rows

    def _rename(self, texts: pl.Expr) -> pl.Expr:
        # The space makes the first word one that follows something.
        return (pl.lit(" ") + texts.str.normalize("NFD")).str.replace_many(self.letters, leftmost=True).str.slice(1).str.normalize("NFC")

    def _move_digits(self, numbers: pl.Expr, digits: int) -> pl.Expr:
        span: int = 10**digits
        return ((numbers.cast(pl.Int64) + self.number * (span // MOST_COPIES)) % span).cast(pl.String).str.zfill(digits)

    def _move_country(self, codes: pl.Expr) -> pl.Expr:
        return codes.str.slice(0, 2).str.replace_many(self.countries) + codes.str.slice(2)


def copy_table(source: Path, target: Path, copies: list[Copy]) -> int:
    """Write the copies of one staging table, one after the other, and return the rows."""
    rows = 0
    with TableWriter(TABLES[source.name], target) as writer:
        for copy in copies:
            for part in list_parts(source):
                shifted = copy.shift(pl.read_parquet(part))
                writer.write(shifted)
                rows += shifted.height
    return rows


def copy_staging(source: BuildPaths, target: BuildPaths, count: int) -> None:
    """Write the staging tables of all platforms so many times, a table a worker."""
    tables = sorted(folder for folder in source.staging_root.glob("*/*") if folder.name in TABLES)
    words = find_common_words(folder for folder in tables if folder.name == "source_recording")
    copies = [Copy(number, words) for number in range(count)]
    largest_first = sorted(tables, key=measure_bytes, reverse=True)
    with ProcessPoolExecutor(count_processors(), get_context("forkserver")) as workers:
        targets = [target.staging(folder.parent.name) / folder.name for folder in largest_first]
        written = workers.map(partial(copy_table, copies=copies), largest_first, targets)
        print(f"{sum(written):,} staged rows in {measure_bytes(target.root) / 1e9:.2f} GB", flush=True)


def write_table_step(step: TableStep, paths: BuildPaths) -> object:
    """Run a step of tables in a process of its own, and its checks in this one, as a build does."""
    facts = run_in_own_process(step.name, partial(step.run, paths))
    failed = [result for result in run_asset_checks(step.list_checks(paths), paths.root / "work" / "scratch") if not result.passed]
    if failed:
        raise SystemExit(f"{step.name}: checks failed: {failed}")
    return facts


def count_figures(paths: BuildPaths) -> None:
    """Do the work of the gate that depends on the size: figures, lost codes and examples."""
    build_figures(paths)
    count_code_losses(paths)
    choose_examples(paths)


def publish_tables(paths: BuildPaths, name: str) -> None:
    """Publish all tables as snapshot `name`, without the pages of a build."""
    tables = {table.name: paths.table(table.name) for table in PUBLISHED}
    with start_workers() as pool:
        run = partial(map_ordered, pool=pool)
        publish(
            tables,
            paths.root,
            snapshot_id=name,
            next_ids=read_next_ids(paths),
            recognition=paths.recognition,
            report=enter_section,
            run=run,
            anew=paths.relink.exists(),
            texts=open_text_memory(paths),
        )


def list_steps(snapshot: str = "copied") -> dict[str, Callable[[BuildPaths], object]]:
    """Return what each step does, in the order of a build. `snapshot`: the name that the last one publishes."""
    steps = [*linkage_assets.list_steps(), *identity_assets.list_steps(), *catalog_assets.list_steps()]
    alone: dict[str, Callable[[BuildPaths], object]] = {
        "recognition": build_recognition,
        "gate": count_figures,
        "snapshot": partial(publish_tables, name=snapshot),
    }
    return {
        **{step.name: partial(write_table_step, step) for step in steps},
        **{name: partial(run_alone, name, work) for name, work in alone.items()},
    }


def run_alone(name: str, work: Callable[[BuildPaths], object], paths: BuildPaths) -> object:
    """Return `work(paths)`, called in a process of its own."""
    return run_in_own_process(name, partial(work, paths))


def delete_mapped_files(paths: BuildPaths) -> None:
    """Delete what linkage keeps for the next night, and say how much it was."""
    folder = get_mapped_folder(paths)
    print(f"mapped files of linkage: {measure_bytes(folder) / 1e9:.2f} GB", flush=True)
    shutil.rmtree(folder)


def run_steps(
    paths: BuildPaths, steps: dict[str, Callable[[BuildPaths], object]], names: list[str], *, delete_mapped: bool
) -> dict[str, Usage]:
    """Run steps one after the other, print a line of each, and return what each took."""
    print(f"| {'step':14} | wall s | CPU s | of workers | peak GB | worker GB | spilled GB | written GB | disk GB |")
    print("|---" * 9 + "|", flush=True)
    taken = {}
    for name in names:
        with measure_usage(paths.list_spill_folders) as usage:
            facts = steps[name](paths)
        taken[name] = usage
        times = (usage.seconds, usage.cpu_seconds, usage.worker_cpu_seconds)
        sizes = (usage.peak_bytes, usage.worker_peak_bytes, usage.spill_bytes, usage.written_bytes, measure_bytes(paths.root))
        cells = [*(f"{value:.1f}" for value in times), *(f"{size / 1e9:.2f}" for size in sizes)]
        print(f"| {name:14} | {' | '.join(cells)} |", flush=True)
        log.info("%s: %s", name, facts)
        if name == "recording_ids" and delete_mapped:
            delete_mapped_files(paths)
    return taken


class LoggedSections:
    """Logs when each section of a step begins."""

    def enter(self, section: str, inputs: int = 1, finished: int = 0) -> None:
        """Log the section."""
        log.info("%s: %d of %d", section, finished, inputs)

    def count(self, inputs: int = 1) -> None:
        """Log nothing."""

    def count_bytes(self, file: str, position: int) -> None:
        """Log nothing."""


def log_sections() -> None:
    """Log the sections of all steps from now on."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    send_progress(LoggedSections())


def main() -> None:
    """Copy, run and print."""
    steps = list_steps()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("catalog", type=Path, metavar="CATALOG")
    parser.add_argument("--copies", type=int, default=10, choices=range(1, MOST_COPIES + 1), metavar="N")
    parser.add_argument("--work", type=Path, required=True, help="folder for the copies; without staging tables they are made first")
    parser.add_argument("--gigabytes", type=float, help="memory of the build (default: as a build with a new catalog takes)")
    parser.add_argument("--keep-mapped", action="store_true", help="keep what linkage keeps for nights")
    parser.add_argument("--steps", nargs="+", choices=steps, default=list(steps))
    options = parser.parse_args()
    log_sections()
    if options.gigabytes:
        set_budget(MemoryBudget.share_out(int(options.gigabytes * 1e9)))
    paths = BuildPaths(options.work)
    if not paths.staging_root.is_dir():
        copy_staging(BuildPaths(options.catalog), paths, options.copies)
    run_steps(paths, steps, options.steps, delete_mapped=not options.keep_mapped)
    rows = {name: count_rows(paths.table(name)) for name in ("recording", "recording_member") if paths.table(name).is_dir()}
    print(f"rows: {rows}")


if __name__ == "__main__":
    main()
