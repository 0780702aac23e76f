"""Modules in Cython (`.pyx`): compiled when they are first imported, and again when their source has changed; `make setup` does it ahead.

What was compiled lies beside the source in `__pycache__`, named by what it was made of, so that no stale module is ever run and several
processes may compile at once. What must not live here: what such a module does.
"""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

_ARGUMENTS = ["-O2", "-g0"]
_SUFFIX: str = sysconfig.get_config_var("EXT_SUFFIX")
"""Names Python's version and the machine."""


def compiled(name: str, source: Path) -> ModuleType:
    """The module `name` made of `source`; ImportError that says what is missing when it cannot be compiled."""
    library = _library(source)
    if not library.exists():
        _compile(name, source, library)
    loader = importlib.machinery.ExtensionFileLoader(name, str(library))
    spec = importlib.util.spec_from_file_location(name, library, loader=loader)
    if spec is None:
        raise ImportError(f"{library} cannot be loaded", name=name, path=str(library))
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def _library(source: Path) -> Path:
    made_of = hashlib.sha256(source.read_bytes() + repr(_ARGUMENTS).encode()).hexdigest()[:16]
    return source.parent / "__pycache__" / f"{source.stem}.{made_of}{_SUFFIX}"


def _compile(name: str, source: Path, library: Path) -> None:
    print(f"compiling {source.name} ...", file=sys.stderr)  # noqa: T201 - some seconds in which nothing else is heard
    try:
        library.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=library.parent, prefix=f"{source.stem}.") as folder:
            _built(name, source, Path(folder)).replace(library)
        for other in library.parent.glob(f"{source.stem}.*{_SUFFIX}"):
            if other != library:
                other.unlink(missing_ok=True)
    except (Exception, SystemExit) as error:  # setuptools ends the program when a compiler fails
        raise ImportError(
            f"{source} could not be compiled: {error}. It needs Cython and setuptools (requirements.lock), a C++ compiler and Python's "
            f"header files (Debian: apt-get install g++ python3-dev), and once leave to write to {library.parent}",
            name=name,
            path=str(source),
        ) from error


def _built(name: str, source: Path, folder: Path) -> Path:
    """What Cython and the C++ compiler make of the source, in `folder`."""
    from Cython.Build import cythonize  # noqa: PLC0415 - half a second, for those who compile
    from setuptools import Distribution, Extension  # noqa: PLC0415
    from setuptools.command.build_ext import build_ext  # noqa: PLC0415

    copy = folder / source.name  # the C++ file is written beside the source
    shutil.copyfile(source, copy)
    extension = Extension(name, [str(copy)], extra_compile_args=_ARGUMENTS)
    command = build_ext(Distribution({"ext_modules": cythonize([extension], quiet=True)}))
    command.build_temp = command.build_lib = str(folder)
    command.ensure_finalized()
    command.run()
    return folder / str(command.get_ext_filename(name))
