"""Checksum files that upstreams publish beside their dumps: read in all their spellings, compared with what was fetched.

Known spellings: `<hash> *<file>` and `<hash>  <file>` (MD5SUMS, SHA256SUMS), one blank only (`*_CHECKSUM.txt`). The algorithm follows from
the length of the hash.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

_NAME = re.compile(r"(?i)(^|_)(md5sums?|sha1sums?|sha256sums?|sha512sums?|checksums?)(\.txt)?$")
_LINE = re.compile(r"^([0-9a-fA-F]{32,128})\s+\*?(\S.*?)\s*$")
_ALGORITHMS = {32: "md5", 40: "sha1", 64: "sha256", 128: "sha512"}


def is_checksum_file(name: str) -> bool:
    """Whether a file of that name lists checksums."""
    return bool(_NAME.search(Path(name).name))


def published_checksums(folder: Path) -> dict[Path, dict[str, str]]:
    """File -> {algorithm: hash} over all checksum files below `folder`; names are taken relative to the listing file."""
    found: dict[Path, dict[str, str]] = {}
    for listing in sorted(path for path in folder.rglob("*") if path.is_file() and is_checksum_file(path.name)):
        for line in listing.read_text(encoding="utf-8", errors="replace").splitlines():
            match = _LINE.match(line)
            algorithm = _ALGORITHMS.get(len(match[1])) if match else None
            if match and algorithm:
                found.setdefault(listing.parent / match[2], {})[algorithm] = match[1].lower()
    return found


def file_hash(path: Path, algorithm: str) -> str:
    """Hex digest of a file, read in blocks."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def wrong_checksums(folder: Path) -> list[str]:
    """One sentence per file below `folder` that differs from its published checksum; files that were not fetched are passed over."""
    complaints = []
    for path, hashes in sorted(published_checksums(folder).items()):
        if path.is_file():
            complaints += [
                f"{path.name}: {algorithm} is {actual}, published is {expected}"
                for algorithm, expected in sorted(hashes.items())
                if (actual := file_hash(path, algorithm)) != expected
            ]
    return complaints
