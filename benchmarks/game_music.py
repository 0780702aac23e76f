"""Real music for measurements: the tracks of Debian's free game-music packages, downloaded and unpacked, never installed.

Each package's debian/copyright states its licence; nothing of it is committed. Needs apt-get and dpkg-deb (Debian, Ubuntu).
"""

from __future__ import annotations

import subprocess
import zipfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

PACKAGES = (
    "asc-music",
    "extremetuxracer-data",
    "flare-game",
    "fretsonfire-songs-muldjord",
    "fretsonfire-songs-sectoid",
    "frozen-bubble-data",
    "hyperrogue-music",
    "lincity-ng-data",
    "planetblupi-music-ogg",
    "singularity-music",
    "supertux-data",
    "unknown-horizons",
    "warzone2100-music",
    "wesnoth-1.16-music",
    "xmoto-data",
)
"""About 1.3 GB to download, 220 tracks."""
UNSEEN_PACKAGES = (
    "colobot-common-sounds",
    "drascula-music",
    "fillets-ng-data",
    "hedgewars-data",
    "lugaru-data",
    "megaglest-data",
)
"""Recognition was not tuned on these. Replace them after a gate was changed because of them. About 590 MB, 110 tracks; wind and rain among
them."""
VOICE_PACKAGES = ("espeak-ng", "espeak-ng-data", "libespeak-ng1", "libpcaudio0", "libsonic0")
"""A speaking program: presenters talk over music."""
_SUFFIXES = {".ogg", ".mp3", ".opus"}
_SMALLEST_BYTES = 400_000
"""Smaller files are sounds, not tracks."""


def unpack_packages(packages: Iterable[str], folder: Path) -> None:
    """Download and unpack packages into `folder`/<package>/; existing ones stay."""
    folder.mkdir(parents=True, exist_ok=True)
    for package in packages:
        if (folder / package).is_dir():
            continue
        subprocess.run(["apt-get", "download", "-q", package], cwd=folder, check=True, capture_output=True)  # noqa: S607 - the system's own
        (archive,) = folder.glob(f"{package}_*.deb")
        partial = folder / f".{package}"
        subprocess.run(["dpkg-deb", "-x", archive, partial], check=True)  # noqa: S607 - likewise
        for packed in list(partial.rglob("*.pk3")):
            with zipfile.ZipFile(packed) as opened:
                opened.extractall(packed.parent)
            packed.unlink()
        partial.rename(folder / package)
        archive.unlink()


def list_tracks(folder: Path, packages: Iterable[str] = PACKAGES) -> list[Path]:
    """Return the audio files of packages in the order of their paths; missing packages are fetched into `folder`."""
    wanted = list(packages)
    unpack_packages(wanted, folder)
    return sorted(
        file
        for package in wanted
        for file in (folder / package).rglob("*")
        if file.suffix in _SUFFIXES and not file.is_symlink() and file.stat().st_size >= _SMALLEST_BYTES
    )
