"""Comparison of the locked packages with known vulnerabilities, without a network: `python -m scripts.dependency_audit`.

The advisories are a pinned copy of the PyPA advisory database (CC BY 4.0), limited to the packages of our lock files. advisories.json
states its commit and day. `--pin CHECKOUT` creates a new one from a git clone of github.com/pypa/advisory-database. Exit code 1: a locked
version is affected and not listed in ACCEPTED. Without the copy the audit is skipped and reports that. Network access does not belong here.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from yaml_documents import DocumentError, parse_document

ROOT = Path(__file__).resolve().parent.parent
PINNED = Path(__file__).with_name("advisories.json")
LOCKS = ("requirements.lock", "requirements-bench.lock", "requirements-docs.lock", "requirements-mutation.lock", "requirements-spark.lock")
ACCEPTED: dict[str, str] = {}
"""Advisory -> why it does not affect us."""
_PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?==([^\s;\\]+)", re.MULTILINE)

Range = list[dict[str, str]]


def main(arguments: list[str] | None = None) -> int:
    """Audit, or pin a new copy; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.dependency_audit", description="Compare the locked packages with known vulnerabilities."
    )
    parser.add_argument("--pin", type=Path, metavar="CHECKOUT", help="rewrite advisories.json from a clone of pypa/advisory-database")
    options = parser.parse_args(arguments)
    if options.pin:
        pinned = pin_advisories(options.pin, {name for name, _, _ in read_locked_packages()})
        PINNED.write_text(json.dumps(pinned, indent=0, sort_keys=True) + "\n", encoding="utf-8")
        print(f"pinned {len(pinned['advisories'])} advisories of {pinned['commit'][:12]} ({pinned['date']})")
        return 0
    return audit(PINNED, read_locked_packages())


def audit(pinned_file: Path, packages: list[tuple[str, str, str]]) -> int:
    """Print the advisories of the locked packages (name, version, lock file); return 1 when there are any."""
    try:
        pinned = json.loads(pinned_file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        print(
            f"dependency audit skipped: {pinned_file.name} is missing; `--pin CHECKOUT` creates it from a clone of pypa/advisory-database"
        )
        return 0
    findings = 0
    for name, version, lock in packages:
        for advisory in pinned["advisories"]:
            if advisory["package"] == name and is_affected(version, advisory) and advisory["id"] not in ACCEPTED:
                aliases = ", ".join(advisory["aliases"])
                print(f"{lock}: {name} {version}: {advisory['id']} ({aliases}): {advisory['about']}; fixed in {advisory['fixed'] or '-'}")
                findings += 1
    print(
        f"dependency audit: {len(packages)} locked packages, {len(pinned['advisories'])} advisories of {pinned['date']} "
        f"(pypa/advisory-database {pinned['commit'][:12]}; later advisories are not included), {findings} findings"
    )
    return int(findings > 0)


def read_locked_packages() -> list[tuple[str, str, str]]:
    """Return every pin of every lock file: name, version, lock file."""
    return [
        (canonicalize_name(name), version, lock)
        for lock in LOCKS
        for name, version in _PIN.findall((ROOT / lock).read_text(encoding="utf-8"))
    ]


def is_affected(version: str, advisory: dict[str, Any]) -> bool:
    """Return whether an advisory affects this version: it is named, or in a range of `introduced` up to `fixed` or `last_affected`."""
    return version in advisory["versions"] or any(_is_in_range(Version(version), events) for events in advisory["ranges"])


def _is_in_range(version: Version, events: Range) -> bool:
    """Return whether a version is affected: events in version order switch between affected and not (OSV schema)."""
    is_in = False
    # An advisory may list several ranges in one list of events, so each event switches the state.
    for kind, bound in sorted(((kind, Version(bound)) for event in events for kind, bound in event.items()), key=lambda item: item[1]):
        if (kind == "introduced" and version >= bound) or (kind == "fixed" and version >= bound):
            is_in = kind == "introduced"
        elif kind == "last_affected" and version > bound:
            is_in = False
    return is_in


def pin_advisories(checkout: Path, packages: set[str]) -> dict[str, Any]:
    """Return the advisories of these packages from a clone (bare or not), with its commit and day."""
    commit, date = _run_git(checkout, "log", "-1", "--format=%H %cs").split()
    paths = [path for path in _run_git(checkout, "ls-tree", "-r", "--name-only", "HEAD", "vulns").splitlines() if path.endswith(".yaml")]
    advisories = []
    for path in paths:
        if canonicalize_name(path.split("/")[1]) in packages:
            try:
                written = parse_document(_run_git(checkout, "show", f"HEAD:{path}"), path).read_plain()
            except DocumentError as error:
                print(f"this advisory is left out: {error}", file=sys.stderr)
                continue
            advisories += [] if "withdrawn" in written else list(_select_packages(written, packages))
    source = "github.com/pypa/advisory-database, CC BY 4.0, shortened"
    return {"source": source, "commit": commit, "date": date, "advisories": sorted(advisories, key=lambda one: (one["package"], one["id"]))}


def _select_packages(written: dict[str, Any], packages: set[str]) -> list[dict[str, Any]]:
    found = []
    for affected in written.get("affected", []):
        name = canonicalize_name(str(affected["package"]["name"]))
        ranges = [
            [{kind: str(bound) for kind, bound in event.items()} for event in one["events"]]
            for one in affected.get("ranges", [])
            if one["type"] == "ECOSYSTEM"
        ]
        # Bounds may be commits, which cannot be compared with the version of a package.
        ranges = [events for events in ranges if _are_versions(events)]
        if name in packages and (ranges or affected.get("versions")):
            about = " ".join(str(written.get("summary") or written.get("details") or "").split())[:160]
            fixed = ", ".join(event["fixed"] for events in ranges for event in events if "fixed" in event)
            # Ranges already cover the listed versions.
            versions = [] if ranges else [str(version) for version in affected["versions"]]
            aliases = [str(alias) for alias in written.get("aliases", [])]
            entry = {"id": str(written["id"]), "package": name, "aliases": aliases, "about": about, "fixed": fixed}
            found.append({**entry, "ranges": ranges, "versions": versions})
    return found


def _are_versions(events: Range) -> bool:
    try:
        return bool([Version(bound) for event in events for bound in event.values()])
    except InvalidVersion:
        return False


def _run_git(checkout: Path, *arguments: str) -> str:
    command = ["git", "-C", str(checkout), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603 - the developer's own clone


if __name__ == "__main__":
    sys.exit(main())
