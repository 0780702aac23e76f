"""`python -m pipeline`: build a catalog, reclassify it, roll it back, verify it, list snapshots, simulate dumps, judge and explain linkage.

Progress goes to standard error, answers to standard output. Exit code 1: the command failed, and its message gives the reason.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import time
import uuid
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from catalog_store.log_stream import guard_standard_error
from catalog_store.standard_output import print_answer
from pipeline.build.catalog_claim import CatalogBusyError, ClaimRecord, Holder, hold_claim
from pipeline.dumps.landing.sources import SourcesError, find_sources
from pipeline.engine.interruption import find_caught_signal, watch_signals
from pipeline.paths import BuildPaths
from pipeline.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

log = logging.getLogger("pipeline")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code."""
    options = build_parser().parse_args(arguments)
    _log_progress()
    with watch_signals():
        try:
            _require_catalog(options)
            exit_code: int = options.run(options)
        except KeyboardInterrupt:
            return _fail("")
        except (CatalogBusyError, ValueError, OSError) as error:
            return _fail(str(error))
        if exit_code == 0 and (caught := find_caught_signal()):
            # A script that calls this command has to stop, too.
            print("interrupted, but too late: the command has done its work", file=sys.stderr)
            return 128 + caught
        return exit_code


def build(options: argparse.Namespace) -> int:
    """Materialise the nightly job in this process and print which snapshot is live."""
    settings = replace(Settings.from_environment(), root=options.catalog.resolve())
    if options.dumps:
        settings = replace(settings, dumps=options.dumps.resolve())
    if options.sources:
        settings = replace(settings, sources=options.sources.resolve())
    try:
        # A mistake in the file gets one message here. Otherwise the step of every platform would repeat it.
        find_sources(settings.dumps, settings.sources)
    except SourcesError as error:
        return _fail(str(error))
    require_usable(settings)
    # Dagster is imported late: its import takes longer than most other commands.
    from pipeline.run import BuildFailedError, run_build  # noqa: PLC0415

    try:
        built = run_build(settings, relink=options.relink)
    except BuildFailedError as error:
        return _fail(f"{error}{_tell_live(options.catalog)}")
    print_answer(json.dumps(built))
    return 0


def reclassify(options: argparse.Namespace) -> int:
    """Classify again by changed genre rules or suggestions, without staging or linkage, and publish."""
    from pipeline.run import BuildFailedError, run_reclassify  # noqa: PLC0415

    settings = replace(Settings.from_environment(), root=options.catalog.resolve())
    for name in ("dumps", "sources", "rules"):
        if getattr(options, name):
            settings = replace(settings, **{name: getattr(options, name).resolve()})
    require_usable(settings)
    try:
        built = run_reclassify(settings)
    except BuildFailedError as error:
        return _fail(f"{error}{_tell_live(options.catalog)}")
    print_answer(json.dumps(built))
    return 0


def require_usable(settings: Settings) -> None:
    """Read the files that people write, and try to write into the catalog, before an hour of build needs either.

    ValueError and OSError name the file or folder and the reason.
    """
    # The other commands need none of these modules.
    from genre_rules.documents import RuleError  # noqa: PLC0415
    from genre_rules.load import load_book  # noqa: PLC0415
    from pipeline.linkage.overrides import load_overrides  # noqa: PLC0415

    paths = BuildPaths(settings.root, settings.overrides, settings.rules)
    try:
        if settings.rules:
            load_book(settings.rules)
    except RuleError as error:
        raise ValueError(str(error)) from error
    if paths.has_overrides:
        load_overrides(paths.overrides)
    paths.require_writable()


def simulate(options: argparse.Namespace) -> int:
    """Write a simulated world as dumps, with its truth."""
    from pipeline.engine.pool import map_ordered  # noqa: PLC0415
    from simulator import SimulationSettings, draw_harsh_settings, write_world  # noqa: PLC0415

    settings = SimulationSettings(recordings=options.recordings, seed=options.seed, fingerprint_coverage=options.fingerprints)
    if options.world == "harsh":
        settings = draw_harsh_settings(settings)
    write_world(settings.make_dirtier(options.dirt), options.out, log.info, map_blocks=map_ordered)
    return 0


def evaluate(options: argparse.Namespace) -> int:
    """Compare a build's recordings, artists, releases and labels with the truth of the simulated world that it was built from."""
    from pipeline.linkage.evaluation import evaluate_build  # noqa: PLC0415

    print_answer(json.dumps(evaluate_build(options.catalog, options.truth), indent=1))
    return 0


def judge_golden_pairs(_: argparse.Namespace) -> int:
    """Link the golden pairs and print precision, recall and the wrong pairs, by part."""
    from pipeline.linkage.golden_pairs import judge, load_golden_pairs  # noqa: PLC0415

    result = judge(load_golden_pairs())
    rates = {name: f"precision {part.precision:.4f}, recall {part.recall:.4f}, {part.pairs} pairs" for name, part in result.parts.items()}
    print_answer(json.dumps({**rates, "wrong": {name: part.wrong for name, part in result.parts.items()}}, indent=1))
    return 0


def explain_recording(options: argparse.Namespace) -> int:
    """Print the evidence that makes records of the live snapshot one recording, the evidence against, and the source of each field."""
    from catalog_store.errors import CatalogError  # noqa: PLC0415
    from pipeline.explain import explain, format_json, format_text  # noqa: PLC0415
    from pipeline.paths import BuildPaths  # noqa: PLC0415

    try:
        with _name_damage("live"):
            explanation = explain(BuildPaths(options.catalog, Settings.from_environment().overrides), options.key)
    except CatalogError as error:
        return _fail(str(error))
    print_answer(format_json(explanation) if options.json else format_text(explanation))
    return 0


def list_snapshots(options: argparse.Namespace) -> int:
    """Print published snapshots in the order of publication. The output marks the live one and damaged ones."""
    from catalog_store.published_snapshots import list_damaged_snapshots, list_snapshots  # noqa: PLC0415
    from catalog_store.snapshot import SNAPSHOTS  # noqa: PLC0415

    if not (options.catalog / SNAPSHOTS).is_dir():
        return _fail(f"no catalog at {options.catalog}: it has no folder {SNAPSHOTS!r}; --catalog takes the folder that `build` was given")
    for snapshot in list_snapshots(options.catalog):
        print_answer(json.dumps(snapshot.describe()))
    for name, reason in list_damaged_snapshots(options.catalog).items():
        print_answer(json.dumps({"id": name, "damaged": reason}))
    return 0


def roll_back(options: argparse.Namespace) -> int:
    """Make an earlier snapshot the live one. First reads all its files, which takes some two seconds a gigabyte."""
    from catalog_store.errors import CatalogError  # noqa: PLC0415
    from catalog_store.publisher import rollback  # noqa: PLC0415

    try:
        with _claim_catalog(options.catalog, "rollback"):
            live = rollback(options.catalog, options.to, role=options.role, contents=not options.sizes_only, report=log.info)
    except CatalogError as error:
        return _fail(f"{error}{_tell_live(options.catalog)}")
    print_answer(json.dumps(live.describe()))
    return 0


def verify(options: argparse.Namespace) -> int:
    """Check a snapshot: every byte against its checksums, then its files against each other. Some three seconds a gigabyte.

    With --role only the files of that role are checked, and no others may be there.
    """
    from catalog_store.errors import CatalogError  # noqa: PLC0415
    from catalog_store.published_snapshots import find_snapshot, read_live_snapshot  # noqa: PLC0415
    from catalog_store.snapshot import verify as verify_files  # noqa: PLC0415
    from catalog_store.snapshot_invariants import require_invariants  # noqa: PLC0415

    try:
        found = find_snapshot(options.catalog, options.snapshot) if options.snapshot else read_live_snapshot(options.catalog)
        verify_files(found.folder, role=options.role, report=log.info)
        log.info("every file is what the manifest says; checking invariants")
        require_invariants(found.folder, found.manifest, options.role)
    except CatalogError as error:
        return _fail(str(error))
    print_answer(json.dumps({**found.describe(), "role": options.role, "verified": True}))
    return 0


def compare(options: argparse.Namespace) -> int:
    """Print what differs between two snapshots: ids gained, merged, split, removed and restored, and rows by table and column.

    With --rows also write every added, removed and changed value, as one Parquet file for each table.
    """
    from catalog_store.errors import CatalogError  # noqa: PLC0415
    from catalog_store.published_snapshots import find_snapshot  # noqa: PLC0415
    from catalog_store.snapshot import require_tables  # noqa: PLC0415
    from catalog_store.snapshot_difference import compare_snapshots, write_changed_rows  # noqa: PLC0415

    try:
        old, new = (find_snapshot(options.catalog, name) for name in (options.old, options.new))
        for snapshot in (old, new):
            require_tables(snapshot)
        with _name_damage(f"{old.id} or {new.id}"):
            if options.rows:
                write_changed_rows(old, new, options.rows)
            found = compare_snapshots(old, new)
    except CatalogError as error:
        return _fail(str(error))
    print_answer(msgspec.json.format(msgspec.json.encode(found), indent=1).decode())
    return 0


def check_overrides(options: argparse.Namespace) -> int:
    """Check a file of reviewed must-links and cannot-links; with --catalog also against the live snapshot, a JSON line per remark."""
    from pipeline.linkage.overrides import report_overrides  # noqa: PLC0415

    for remark in report_overrides(options.check, options.catalog):
        print_answer(json.dumps(remark))
    return 0


def derive_registry(options: argparse.Namespace) -> int:
    """Derive the lost id registry of the live snapshot from its other tables, for the next build."""
    from pipeline.linkage.id_registry import rebuild_registry  # noqa: PLC0415
    from pipeline.paths import BuildPaths  # noqa: PLC0415

    with _claim_catalog(options.catalog, "registry rebuild"):
        print_answer(json.dumps(rebuild_registry(BuildPaths(options.catalog))))
    return 0


def back_up_state(options: argparse.Namespace) -> int:
    """Save what no dump gives back: ids and their history, overrides, the audio mapping, accounts and the key of their secrets.

    Services and builds may go on. The last backup in the folder stays valid until the new one is whole.
    """
    from account_store.errors import AccountError  # noqa: PLC0415
    from catalog_store.errors import CatalogError  # noqa: PLC0415
    from pipeline.backup import BACKUP_FILE, BackupError, back_up  # noqa: PLC0415

    if options.catalog is None and options.accounts is None:
        return _fail("nothing to save: name --catalog, --accounts or both")
    paths = options.catalog and BuildPaths(options.catalog, Settings.from_environment().overrides)
    has_older = (options.dest / BACKUP_FILE).is_file()
    try:
        saved = back_up(options.dest, paths=paths, accounts=options.accounts, report=log.info)
    except (BackupError, AccountError, CatalogError) as error:
        return _fail(f"{error}\nThe backup before is still there." if has_older else str(error))
    snapshots = [snapshot.id for snapshot in saved.snapshots]
    print_answer(json.dumps({"created_at": saved.created_at, "snapshots": snapshots, "has_accounts": saved.has_accounts}))
    return 0


def restore_state(options: argparse.Namespace) -> int:
    """Verify a backup and bring it back. Nothing that exists is overwritten without --replace."""
    from account_store.errors import AccountError  # noqa: PLC0415
    from catalog_store.errors import CatalogError  # noqa: PLC0415
    from pipeline.backup import BackupError, restore  # noqa: PLC0415

    if options.catalog is None and options.accounts is None:
        return _fail("nothing to restore: name --catalog, --accounts or both")
    paths = options.catalog and BuildPaths(options.catalog, Settings.from_environment().overrides)
    ask = {"paths": paths, "accounts": options.accounts, "replaces": options.replace, "report": log.info}
    try:
        if options.catalog is None:
            restored = restore(options.source, **ask)
        else:
            options.catalog.mkdir(parents=True, exist_ok=True)
            with _claim_catalog(options.catalog, "restore"):
                restored = restore(options.source, **ask)
    except (BackupError, AccountError, CatalogError) as error:
        return _fail(str(error))
    live = restored.snapshots[-1].id if restored.snapshots and options.catalog else None
    print_answer(json.dumps({"created_at": restored.created_at, "live": live, "has_accounts": options.accounts is not None}))
    return 0


@contextmanager
def _claim_catalog(catalog: Path, command: str) -> Iterator[None]:
    """Claim the catalog for a command that changes it; CatalogBusyError when a build holds it."""

    def has_ended(record: ClaimRecord) -> bool:
        # Only a claim between two steps of a Dagster run needs the answer, and Dagster is slow to import.
        from pipeline.defs.resources import has_ended as ask_dagster  # noqa: PLC0415

        return ask_dagster(record)

    with hold_claim(catalog, Holder(str(uuid.uuid4()), f"python -m pipeline {command}"), has_ended):
        yield


@contextmanager
def _name_damage(snapshot: str) -> Iterator[None]:
    """Turn errors of libraries that read tables of a snapshot into a message with the remedy."""
    import duckdb  # noqa: PLC0415 - slow, and most commands need neither
    import polars as pl  # noqa: PLC0415

    try:
        yield
    except (duckdb.IOException, duckdb.InvalidInputException, pl.exceptions.PolarsError) as error:
        raise OSError(f"a table of the snapshot ({snapshot}) cannot be read: {error}: `verify` names its damaged files") from error


def _require_catalog(options: argparse.Namespace) -> None:
    """Raise FileNotFoundError when --catalog names no folder. `build` makes one and reports its own problems."""
    catalog: Path | None = getattr(options, "catalog", None)
    if catalog is None or options.run in (build, restore_state) or catalog.is_dir():
        return
    why = "it is not a folder" if catalog.exists() else "there is no such folder"
    raise FileNotFoundError(f"no catalog at {catalog}: {why}; --catalog takes the folder that `build` was given")


def _tell_live(catalog: Path) -> str:
    """Return the line that ends the message of a failure, if a snapshot is live."""
    return "\nThe catalog that was live before is still live." if (catalog / "current").is_dir() else ""


def _fail(message: str) -> int:
    """Print why the command failed and return the exit code; after Ctrl-C 128 + SIGINT, as in shells."""
    if caught := find_caught_signal():
        # The error of a library that was interrupted says nothing useful, so `message` is dropped.
        print("interrupted", file=sys.stderr)
        return 128 + caught
    print(f"error: {message}", file=sys.stderr)
    return 1


def _log_progress() -> None:
    guard_standard_error()  # a full disk under the log must not end a build
    started = time.monotonic()

    class Elapsed(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return f"[{time.monotonic() - started:7.1f} s] {record.getMessage()}"

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Elapsed())
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(prog="python -m pipeline", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)

    command = commands.add_parser("build", help="build a catalog from dumps and publish it", description=build.__doc__)
    command.add_argument("--catalog", type=Path, required=True, metavar="DIR", help="folder of the catalog; made when missing")
    where = command.add_mutually_exclusive_group()
    where.add_argument("--dumps", type=Path, metavar="DIR", help="folder with one sub-folder per platform key")
    where.add_argument("--sources", type=Path, metavar="FILE", help="sources.yaml, which names the place of each platform's dump")
    command.add_argument(
        "--relink", action="store_true", help="link every record again, not only those that changed since the live snapshot"
    )
    command.set_defaults(run=build)

    command = commands.add_parser("reclassify", help="apply changed genre rules without linkage", description=reclassify.__doc__)
    command.add_argument("--catalog", type=Path, required=True, metavar="DIR", help="catalog that was built before")
    command.add_argument("--rules", type=Path, metavar="DIR", help="folder of genre rules (default: the shipped ones)")
    where = command.add_mutually_exclusive_group()
    where.add_argument("--dumps", type=Path, metavar="DIR", help="folder with a sub-folder `suggestions`")
    where.add_argument("--sources", type=Path, metavar="FILE", help="sources.yaml, which names the place of the suggestions")
    command.set_defaults(run=reclassify)

    command = commands.add_parser("simulate", help="write a simulated world as dumps", description=simulate.__doc__)
    command.add_argument("--recordings", type=int, required=True, metavar="N", help="recordings in the world; about 2.5 source rows each")
    command.add_argument("--seed", type=int, default=1, metavar="S", help="seed of the world (default %(default)s)")
    command.add_argument(
        "--world", choices=["plain", "harsh"], default="plain", help="harsh: systematic errors per platform, drawn from the seed"
    )
    command.add_argument("--dirt", type=float, default=1.0, metavar="F", help="factor for all error rates (default %(default)s)")
    command.add_argument(
        "--fingerprints",
        type=float,
        default=0.0,
        metavar="SHARE",
        help="share of catalog_b recordings with fingerprints (default %(default)s)",
    )
    command.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for the dumps and the truth")
    command.set_defaults(run=simulate)

    command = commands.add_parser("evaluate", help="compare a build with the truth of its world", description=evaluate.__doc__)
    command.add_argument("--catalog", type=Path, required=True, metavar="DIR", help="catalog that was built from the world")
    command.add_argument("--truth", type=Path, required=True, metavar="DIR", help="the world's folder, or its truth folder")
    command.set_defaults(run=evaluate)

    command = commands.add_parser("golden", help="measure linkage with the golden pairs", description=judge_golden_pairs.__doc__)
    command.set_defaults(run=judge_golden_pairs)

    command = commands.add_parser(
        "explain", help="print why records are one recording, and the source of each field", description=explain_recording.__doc__
    )
    command.add_argument("key", metavar="KEY", help="track id, ISRC or <platform>:<external id>; old ids are followed")
    command.add_argument("--catalog", type=Path, required=True, metavar="DIR")
    command.add_argument("--json", action="store_true", help="print all evidence as JSON")
    command.set_defaults(run=explain_recording)

    _add_snapshot_commands(commands)
    _add_backup_commands(commands)

    command = commands.add_parser("overrides", help="check reviewed must-links and cannot-links", description=check_overrides.__doc__)
    command.add_argument("--check", type=Path, required=True, metavar="FILE", help="the reviewed file, see docs/design/linkage_review.md")
    command.add_argument(
        "--catalog", type=Path, metavar="DIR", help="also list records that its live snapshot lacks or links in another way"
    )
    command.set_defaults(run=check_overrides)

    command = commands.add_parser("registry", help="derive a lost id registry from the live snapshot", description=derive_registry.__doc__)
    command.add_argument("action", choices=["rebuild"])
    command.add_argument("--catalog", type=Path, required=True, metavar="DIR", help="catalog whose live snapshot lost its registry")
    command.set_defaults(run=derive_registry)
    return parser


def _add_snapshot_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser("snapshots", help="list published snapshots", description=list_snapshots.__doc__)
    command.add_argument("--catalog", type=Path, required=True, metavar="DIR")
    command.set_defaults(run=list_snapshots)

    command = commands.add_parser("rollback", help="make an earlier snapshot live", description=roll_back.__doc__)
    command.add_argument("--catalog", type=Path, required=True, metavar="DIR")
    command.add_argument("--to", required=True, metavar="ID", help="snapshot id, as `snapshots` lists it")
    command.add_argument(
        "--sizes-only", action="store_true", help="compare sizes only, which is fast but does not find damage inside files"
    )
    command.add_argument(
        "--role",
        choices=["all", "serving", "analyst"],
        help="files that this machine needs, as for `verify` (default: the role whose files all snapshots have, else all)",
    )
    command.set_defaults(run=roll_back)

    command = commands.add_parser("verify", help="check a snapshot's checksums and invariants", description=verify.__doc__)
    command.add_argument("--catalog", type=Path, required=True, metavar="DIR")
    command.add_argument("--snapshot", metavar="ID", help="snapshot id, as `snapshots` lists it (default: the live one)")
    command.add_argument(
        "--role",
        choices=["all", "serving", "analyst"],
        default="all",
        help="what the folder should hold: a server's files, tables and analysts' file, or all (default)",
    )
    command.set_defaults(run=verify)

    command = commands.add_parser("diff", help="compare two snapshots", description=compare.__doc__)
    command.add_argument("old", metavar="OLD", help="snapshot id, as `snapshots` lists it")
    command.add_argument("new", metavar="NEW", help="snapshot id of a later one")
    command.add_argument("--catalog", type=Path, required=True, metavar="DIR")
    command.add_argument("--rows", type=Path, metavar="DIR", help="new folder for the added, removed and changed values")
    command.set_defaults(run=compare)


def _add_backup_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    accounts = os.environ.get("CATALOG_API_ACCOUNTS_URL")
    about = "database of the accounts: sqlite:///<file> or postgresql://... (default: CATALOG_API_ACCOUNTS_URL)"

    command = commands.add_parser("backup", help="save ids, overrides, accounts and keys", description=back_up_state.__doc__)
    command.add_argument("dest", type=Path, metavar="DEST", help="folder of the backup; made when missing")
    command.add_argument("--catalog", type=Path, metavar="DIR", help="catalog to save")
    command.add_argument("--accounts", default=accounts, metavar="URL", help=about)
    command.set_defaults(run=back_up_state)

    command = commands.add_parser("restore", help="bring back what `backup` saved", description=restore_state.__doc__)
    command.add_argument("source", type=Path, metavar="SOURCE", help="folder of the backup")
    command.add_argument("--catalog", type=Path, metavar="DIR", help="catalog to bring back; made when missing")
    command.add_argument("--accounts", default=accounts, metavar="URL", help=about)
    command.add_argument("--replace", action="store_true", help="replace an existing database and files, and make the saved snapshot live")
    command.set_defaults(run=restore_state)


if __name__ == "__main__":
    sys.exit(main())
