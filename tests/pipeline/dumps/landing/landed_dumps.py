"""Dumps that a test lands from a server or a folder."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from pipeline.dumps.landing.landing_zone import land
from pipeline.dumps.landing.sources import Source

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.dumps.landing.landing_zone import Landing

    from .http_upstream import Upstream


MONDAY, TUESDAY = "Mon, 01 Jun 2026 00:00:00 GMT", "Tue, 02 Jun 2026 00:00:00 GMT"


def fetched(upstream: Upstream, zone: Path, **more: object) -> Landing:
    return land(Source("store_a", upstream.address, **more), zone)  # type: ignore[arg-type]


def local(folder: Path, zone: Path, **more: object) -> Landing:
    return land(Source("store_a", str(folder), **more), zone)  # type: ignore[arg-type]


def sums(**files: bytes) -> bytes:
    return "".join(f"{hashlib.sha256(content).hexdigest()}  {name.replace('__', '.')}\n" for name, content in files.items()).encode()


def content(result: Landing, name: str = "a.csv") -> bytes:
    assert result.folder is not None, result.problem
    return (result.folder / name).read_bytes()


def left_behind(upstream: Upstream, zone: Path, part: bytes) -> None:
    """Write the remains of a run that was killed while it fetched a.csv of the dump that upstream shows."""
    probe = zone.with_name("probe")
    fetched(upstream, probe)
    listing = json.loads(next(probe.glob("*.landed.json")).read_text())["listing"]
    (zone / ".incoming").mkdir(parents=True)
    (zone / ".incoming" / ".listing").write_text(listing)
    (zone / ".incoming" / "a.csv.part").write_bytes(part)
    upstream.sent.clear()
