"""Settings of a build that an operator can change, each with its default. They are read from the environment once, at the edge.

`docs/reference/build_settings.md` lists them; a test keeps that list and this file equal.
"""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Self

from catalog_store.memory_budget import LEAST_PROCESS_BYTES, measure_ram
from yaml_documents import suggest_nearest

PREFIX = "CATALOG_"
SERVER_PREFIX = "CATALOG_API_"
"""Settings of the server, which reads and checks them itself."""
LAKE_PYTHON = "CATALOG_LAKE_PYTHON"
"""Setting of every program that writes a lake (catalog_store/lake.py)."""

Count = int
"""A whole number from 1."""
Share = float
"""From 0 to 1."""
Factor = float
"""From 1."""
Memory = int
"""Bytes, written with a unit (`4GB`, `1500 MiB`) or as a share of the RAM from 0 to 1."""
Folders = str
"""Paths separated by colons. They are read when the program starts, because tables and chains depend on them."""
Cron = str
Engine = str
"""`local`, `processes`, or the address of a cluster."""
WebAddress = str
"""An http or https address."""
MailAddresses = str
"""Mail addresses, separated by commas."""
LakeDatabase = str
"""`sqlite:FILE` or `postgres:CONNECTION`."""
LakeData = str
"""A folder or an `s3://` address."""
MailServer = str
"""`smtp://host:port` or `smtps://user:password@host:port`."""
# Bounds beyond which a value can only be a slip of the keyboard: 0 snapshots to keep, a share of 20 for 20 %.
_BOUNDS = {"Count": (1, 1_000_000), "Share": (0, 1), "Factor": (1, 1_000_000)}
_UNITS = {"MB": 10**6, "GB": 10**9, "TB": 10**12, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}
_MEMORY = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) ?([A-Za-z]*)", re.ASCII)
_CRON_FIELD = r"[0-9A-Za-z*/,\-?#]+"
_CRON = re.compile(rf"@(?:hourly|daily|weekly|monthly|yearly|annually|midnight)|{_CRON_FIELD}(?: +{_CRON_FIELD}){{4}}")
_ENGINE = re.compile(r"local|processes|(?:spark|sc|k8s)://\S+|yarn|local-cluster\[\d+,\d+,\d+\]")
_MAIL_ADDRESS = r"[^\s@,;<>\"]+@[^\s@,;<>\"]+"
_TEXTS = {
    "WebAddress": (re.compile(r"https?://[^\s/]+\S*"), "an http or https address"),
    "MailAddresses": (re.compile(rf"{_MAIL_ADDRESS}(?:, *{_MAIL_ADDRESS})*"), "mail addresses, separated by commas"),
    "Engine": (
        _ENGINE,
        "`local`, `processes`, or the address of a cluster: `spark://host:port`, `k8s://address`, `yarn`, `sc://host:port`",
    ),
    "LakeDatabase": (re.compile(r"(?:sqlite|postgres):\S.*"), "`sqlite:FILE` or `postgres:CONNECTION`"),
    "LakeData": (re.compile(r"(?:s3://[^\s/]+|[^\s:]+)(?:/.*)?"), "a folder or an `s3://` address"),
    "MailServer": (re.compile(r"smtps?://\S+"), "`smtp://host:port` or `smtps://user:password@host:port`"),
}


@dataclass(frozen=True)
class Settings:
    """Settings of a build; the environment variable of a field is `CATALOG_` + its name in capitals."""

    root: Path = Path("catalog")
    """Folder of the catalog: landing zone, work files, snapshots."""
    platform_folders: Folders | None = None
    """Folders with a folder for each platform that you add to the shipped ones, separated by colons (docs/guides/add_a_platform.md)."""
    sources: Path = Path("sources.yaml")
    """The file that names the place of each platform's dump."""
    dumps: Path | None = None
    """A folder with one sub-folder per platform; replaces `sources` when set."""
    overrides: Path | None = None
    """The file of reviewed overrides of linkage, which may be absent (docs/design/linkage_review.md).

    When not set: `overrides.yaml` in the catalog's folder.
    """
    memory: Memory | None = None
    """Memory that all processes of a build take together: bytes with a unit (`6GB`, `1500MiB`) or a share of the RAM (`0.4`). When not set:
    2 GB and 4 bytes a recording for each processor, at most half of the RAM."""
    stage_at_once: Count = 1
    """Platforms that Dagster's runs land and stage side by side, each with its share of the memory."""
    engine: Engine = "local"
    """Engine that runs the work of pools: `local`; `processes` of this machine, which take small work, too; a master of Spark
    (`spark://host:7077`); or a Spark Connect server (`sc://host:15002`), which may be Sail's."""
    engine_tasks: Count = 2
    """Inputs that the engine works on at once: the processor cores of its workers. Unused where it is `local`."""
    keep_snapshots: Count = 3
    """Published snapshots that stay on disk, the live one included."""
    keep_dumps: Count = 2
    """Landed dumps that stay on disk, per platform."""
    largest_shrink: Share = 0.2
    """Share of the live catalog's recordings that a new build may lack before its publication is refused; 1 switches the check off."""
    lowest_precision: Share = 0.98
    """Precision over a simulated world. A build below it is not published."""
    lowest_recall: Share = 0.93
    """The same for recall."""
    lowest_golden_precision: Share = 0.93
    """Precision over the golden pairs. They are hard cases by choice, so the limit is just below the measured rate."""
    lowest_golden_recall: Share = 0.77
    """The same for recall."""
    largest_fall: Share = 0.002
    """The largest fall of precision or recall below the live snapshot's; 1 switches the comparison off."""
    largest_jump: Factor = 1.5
    """Factor by which signs of mixed recordings and contested codes may grow against the live snapshot, its size taken into account."""
    largest_twice: Share = 0.0
    """Share of the recordings that may hold two tracks of one release which no common code, repeated track list or decision joins."""
    largest_move: Share = 0.02
    """Share of the records of the live snapshot that may have another recording id; 1 switches the check off."""
    lowest_rows: Share = 0.7
    """Share of the rows staged before that each staging table of a platform's next dump must hold; below, the dump before stays in use. 0
    switches the check off."""
    largest_loss: Share = 0.1
    """Share of a platform's values of one column, and of the codes of the live catalog, that may be lost; 1 switches the checks off."""
    keep_run_days: Count = 90
    """Days for which Dagster remembers runs, with their events and logs."""
    fingerprint_days: Count = 400
    """Days of the fingerprint dump that one build fetches and reads at most: the first ones of many years take several nights."""
    rules: Path | None = None
    """A folder of genre rules that replaces the shipped ones."""
    schedule: Cron = "0 3 * * *"
    """Cron expression (UTC) of the nightly build."""
    lake: LakeDatabase | None = None
    """Database of a lake, to which a build adds each published snapshot: `sqlite:FILE` or `postgres:CONNECTION`. Needs `lake_data`."""
    lake_data: LakeData | None = None
    """Folder or `s3://` address of the lake's files."""
    alert_webhook: WebAddress | None = None
    """Address that Dagster's alerts are posted to as JSON."""
    alert_mail: MailAddresses | None = None
    """Mail addresses that Dagster's alerts go to, separated by commas; needs `mail_server`."""
    mail_server: MailServer | None = None
    """The server that takes the mails: `smtp://host:port` (STARTTLS where it is offered) or `smtps://user:password@host:port`."""
    mail_sender: MailAddresses = "music-catalog@localhost"
    """Sender of the mails."""

    @classmethod
    def from_environment(cls) -> Self:
        """Return the defaults, overridden by `CATALOG_*`. ValueError names the variable, its value and the values allowed."""
        kinds = {f"{PREFIX}{field.name.upper()}": (field.name, str(field.type)) for field in fields(cls)}
        values: dict[str, object] = {}
        for variable, text in os.environ.items():
            if variable in kinds:
                name, kind = kinds[variable]
                values |= {name: _read(variable, text, kind)} if text else {}
            # A misspelled limit would silently leave the default in force. A name that resembles no setting may belong to another program.
            elif (
                variable.startswith(PREFIX)
                and not variable.startswith((SERVER_PREFIX, LAKE_PYTHON))
                and (meant := suggest_nearest(variable, kinds))
            ):
                raise ValueError(f"{variable}={text!r}: there is no such setting{meant}")
        return cls(**values)  # type: ignore[arg-type]


def _read(variable: str, text: str, kind: str) -> object:
    if kind in _BOUNDS:
        least, most = _BOUNDS[kind]
        try:
            number = int(text) if kind == "Count" else float(text)
        except ValueError:
            number = math.nan  # fails the comparison below, as a given `nan` does
        if not least <= number <= most:
            raise ValueError(f"{variable}={text!r}: expected a {'whole ' if kind == 'Count' else ''}number from {least} to {most}")
        return number
    if kind.startswith("Memory"):
        return _read_memory(variable, text.strip())
    if kind == "Cron":
        if not _CRON.fullmatch(text.strip()):
            raise ValueError(f"{variable}={text!r}: expected a cron expression of five fields, as `0 3 * * *`")
        return text
    if kind.startswith("Folders"):
        return text
    if found := _TEXTS.get(kind.partition(" ")[0]):
        pattern, expected = found
        # The value is not shown: addresses of mail servers and webhooks hold passwords.
        if not pattern.fullmatch(text.strip()):
            raise ValueError(f"{variable}: expected {expected}")
        return text.strip()
    # Whether the file exists is checked where it is read: a command that does not need it must not fail.
    return Path(text)


def _read_memory(variable: str, text: str) -> int:
    found = _MEMORY.fullmatch(text)
    number, unit = (float(found[1]), found[2].upper()) if found else (math.nan, "")
    ram = measure_ram()
    # A bare number above 1 could mean bytes or megabytes.
    size = number * _UNITS[unit] if unit in _UNITS else number * ram if not unit and number <= 1 else math.nan
    if not LEAST_PROCESS_BYTES <= size <= ram:
        raise ValueError(
            f"{variable}={text!r}: expected bytes with a unit, as `4GB` or `1500MiB`, or a share of the RAM, as `0.4`: "
            f"at least {LEAST_PROCESS_BYTES >> 20} MiB and at most the {ram >> 20} MiB of RAM that this process may use"
        )
    return int(size)
