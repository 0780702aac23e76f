"""Private files and folders for secrets and personal data: 0600 and 0700, whatever the umask.

Wider rights of existing ones are narrowed and logged; those of another owner's files are only logged. Out of scope: the list of
such files.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

log = logging.getLogger("account_store")

FILE_MODE: Final = 0o600
FOLDER_MODE: Final = 0o700
_OTHERS: Final = 0o077


def make_private_file(file: Path) -> None:
    """Make an empty private file, or narrow the rights of an existing one. OSError: neither is possible, or it is a folder."""
    try:
        # O_EXCL distinguishes a new file from an existing one, whose rights are narrowed and logged.
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
    except FileExistsError:
        # The rights of a folder that is named by mistake are others' to use.
        if file.is_dir():
            raise IsADirectoryError(errno.EISDIR, "is a folder: name a file", str(file)) from None
        narrow(file)
    else:
        try:
            # A umask may take the owner's rights, too.
            os.fchmod(descriptor, FILE_MODE)
        finally:
            os.close(descriptor)


def make_private_folder(folder: Path) -> None:
    """Make a private folder, or narrow the rights of an existing one; its parents get the umask's rights. OSError."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(FOLDER_MODE)
    except FileExistsError:
        if not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "is no folder: name one", str(folder)) from None
        narrow(folder)
    else:
        folder.chmod(FOLDER_MODE)


def narrow(path: Path) -> None:
    """Remove the rights of other users, and log it. Ignore a missing path.

    Devices and shared folders (sticky, as `/tmp`) are public on purpose and stay unchanged.
    """
    with suppress(FileNotFoundError):
        found = path.stat()
        mode = stat.S_IMODE(found.st_mode)
        is_shared = stat.S_ISDIR(found.st_mode) and mode & stat.S_ISVTX
        if not mode & _OTHERS or is_shared or not (stat.S_ISDIR(found.st_mode) or stat.S_ISREG(found.st_mode)):
            return
        right = FOLDER_MODE if stat.S_ISDIR(found.st_mode) else FILE_MODE
        try:
            path.chmod(right)
        except PermissionError:
            owner = f"user {found.st_uid}, who is not this process's"
            log.warning("%s is open to others (mode %04o) and belongs to %s: run `chmod %04o` on it as its owner", path, mode, owner, right)
        else:
            log.warning("%s was open to others (mode %04o): it is %04o now; others may have a copy", path, mode, right)
