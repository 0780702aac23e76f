"""Checksum files that upstreams publish beside their dumps: names, formats, and the hashes of each file.

Names: `MD5SUMS`, `SHA256SUMS.txt`, `*_CHECKSUM.txt` list many files; `dump.tar.sha256` speaks of `dump.tar`. Lines: `<hash> *<file>`,
`<hash>  <file>`, `<hash> <file>`, `SHA256 (<file>) = <hash>`, and in a file for one file the hash alone. The algorithm follows from the
length of the hash.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from catalog_store.folder_listing import list_tree
from pipeline.dumps.errors import DumpError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

BLOCK_BYTES = 8 * 1024 * 1024
LARGEST_LIST_BYTES = 16 * 1024 * 1024
"""About 200,000 lines. A larger file of such a name is not a list of checksums."""

_ALGORITHMS = {32: "md5", 40: "sha1", 56: "sha224", 64: "sha256", 96: "sha384", 128: "sha512"}
_KIND = r"(?:md5|sha1|sha224|sha256|sha384|sha512)"
_LIST_NAME = re.compile(rf"(?i)(?:^|[._-])(?:{_KIND}sums?|checksums?)(?:\.txt|\.{_KIND}(?:sums?)?)?$")
_SINGLE_NAME = re.compile(rf"(?i)^(?P<file>.+)\.{_KIND}(?:sums?)?(?:\.txt)?$")
# A leading backslash is how coreutils marks a line whose file name is escaped. One blank as separator is what catalog_a writes.
_LINE = re.compile(r"^\\?([0-9a-fA-F]{32,128})\s+\*?(\S.*?)\s*$")
_TAGGED_LINE = re.compile(r"^(?i:MD5|SHA1|SHA224|SHA256|SHA384|SHA512)\s*\((.+)\)\s*=\s*([0-9a-fA-F]{32,128})\s*$")
_BARE_LINE = re.compile(r"^\s*([0-9a-fA-F]{32,128})\s*$")


def is_checksum_file(name: str) -> bool:
    """Return whether a file of that name holds checksums of others."""
    base = PurePosixPath(name).name
    return bool(_LIST_NAME.search(base) or _SINGLE_NAME.match(base))


def read_checksums(name: str, text: str) -> dict[str, dict[str, str]]:
    """Return file -> {algorithm: hash} of the checksum file `name` (path below the dump); the paths are below the dump, too.

    A path that leads out of the dump (`/srv/out/a.tar`, `../a.tar`) means the file of that name beside the list. DumpError when lines
    contradict each other.
    """
    folder, single = PurePosixPath(name).parent, _SINGLE_NAME.match(PurePosixPath(name).name)
    found: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        if match := _TAGGED_LINE.match(line):
            file, digest = match[1], match[2]
        elif match := _LINE.match(line):
            file, digest = match[2], match[1]
        elif single and (match := _BARE_LINE.match(line)):
            file, digest = single["file"], match[1]
        else:
            continue
        algorithm = _ALGORITHMS.get(len(digest))
        if algorithm:
            path = PurePosixPath(file)
            # Lists are often made on the server by absolute path. Taken literally, such a path would lead out of the landing folder.
            inside = path.name if path.is_absolute() or ".." in path.parts else path
            add_checksums(found, str(folder / inside), {algorithm: digest.lower()}, name)
    return found


def add_checksums(found: dict[str, dict[str, str]], file: str, hashes: Mapping[str, str], name: str) -> None:
    """Add what the checksum file `name` says of a file. Raises DumpError when another line or list said something else."""
    known = found.setdefault(file, {})
    for algorithm, digest in hashes.items():
        # Nobody can say which of both is right. With the last one a stale list would win, or lose, by its name.
        if known.setdefault(algorithm, digest) != digest:
            raise DumpError(
                f"{file}: published are two {algorithm} hashes, {known[algorithm]} and {digest} (in {name}); take out the wrong one"
            )


def read_published_checksums(folder: Path) -> dict[Path, dict[str, str]]:
    """Return file -> {algorithm: hash} of all checksum files below `folder`; names are relative to the checksum file."""
    found: dict[Path, dict[str, str]] = {}
    for listing in [path for path in list_tree(folder) if path.is_file() and is_checksum_file(path.name)]:
        text = listing.read_text(encoding="utf-8", errors="replace")
        for name, hashes in read_checksums(listing.relative_to(folder).as_posix(), text).items():
            found.setdefault(folder / name, {}).update(hashes)
    return found


def hash_file(path: Path, algorithm: str) -> str:
    """Return the hex digest of a file, read in blocks."""
    return compute_hashes(path, [algorithm])[algorithm]


def compute_hashes(path: Path, algorithms: Collection[str]) -> dict[str, str]:
    """Return hex digests of a file by several algorithms, read once."""
    # usedforsecurity=False: a system in FIPS mode refuses MD5 otherwise, and upstreams publish it.
    digests = {algorithm: hashlib.new(algorithm, usedforsecurity=False) for algorithm in algorithms}
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            for digest in digests.values():
                digest.update(block)
    return {algorithm: digest.hexdigest() for algorithm, digest in digests.items()}


def compare_checksums(name: str, actual: Mapping[str, str], published: Mapping[str, str]) -> list[str]:
    """Return a sentence per algorithm whose hash differs from the published one."""
    return [
        f"{name}: {algorithm} is {actual[algorithm]}, published is {expected}"
        for algorithm, expected in sorted(published.items())
        if actual[algorithm] != expected
    ]
