"""Folders that may not be listed, for tests that run as root and could list any."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest


def refuse_listing(monkeypatch: pytest.MonkeyPatch, *folders: Path) -> None:
    """Make every listing of these folders fail as the system does for a user without the right to read them."""
    for name in ("listdir", "scandir"):
        monkeypatch.setattr(os, name, _refuse(getattr(os, name), {os.fspath(folder) for folder in folders}))


def _refuse(listing: Callable[..., object], refused: set[str]) -> Callable[..., object]:
    def list_or_refuse(folder: str | os.PathLike[str] = ".") -> object:
        if not isinstance(folder, int) and os.fspath(folder) in refused:
            raise PermissionError(13, "Permission denied", os.fspath(folder))
        return listing(folder)

    return list_or_refuse
