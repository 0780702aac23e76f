"""Files and folders that hold secrets or personal data are their owner's alone: 0600 and 0700, whatever the umask.

What is there with wider rights is narrowed and told. Of another owner's it is told alone. What must not live here: which files those are.
"""

from __future__ import annotations

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
    """Have the file there, empty if it is new, and nobody else's. OSError when it can be neither made nor found."""
    try:
        made = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
    except FileExistsError:
        narrow(file)
    else:
        try:
            os.fchmod(made, FILE_MODE)  # a umask may take the owner's rights, too
        finally:
            os.close(made)


def make_private_folder(folder: Path) -> None:
    """Have the folder there and nobody else's; folders above it are made as the umask says. OSError."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(FOLDER_MODE)
    except FileExistsError:
        narrow(folder)
    else:
        folder.chmod(FOLDER_MODE)


def narrow(path: Path) -> None:
    """Take the rights of others away, where there are any; told either way. A path that is not there is no matter.

    Devices and shared folders (sticky, as `/tmp`) are everybody's on purpose and left alone.
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
            log.warning("%s was open to others (mode %04o): it is %04o now; whoever could read it may have a copy", path, mode, right)
