"""The name under which compiled kernels are kept: a hash of all source they may have been compiled from."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

KEPT_FOLDERS = 8
"""How many keyed cache folders stay; each edit of the source makes a new one."""


@lru_cache(maxsize=4096)
def _file_digest(path: str, mtime_ns: int, size: int) -> bytes | None:
    """Of a file that can hold compiled code; None of another."""
    text = Path(path).read_bytes()
    return hashlib.sha256(text).digest() if b"kernel" in text or b"numba" in text else None


def _tree_files(folder: Path, recursive: bool) -> Iterator[tuple[str, Path]]:
    if folder.is_file():
        yield folder.name, folder
        return
    files = folder.rglob("*.py") if recursive else folder.glob("*.py")
    for path in sorted(files):
        yield path.relative_to(folder).as_posix(), path


def source_digest(folders: tuple[Path, ...], *, recursive: bool = True) -> str:
    """Hash of names and contents of the `.py` files below `folders` that can hold compiled code.

    These are the ones that speak of kernels or numba; the others cannot define anything that a kernel calls. What is
    given as a file counts whatever it speaks of. Independent of where the folders lie, and of times.
    """
    total = hashlib.sha256()
    for folder in folders:
        for name, path in _tree_files(folder, recursive):
            status = path.stat()
            digest = _file_digest(str(path), status.st_mtime_ns, status.st_size)
            if digest is not None or path == folder:
                total.update(name.encode() + b"\0" + (digest or path.read_bytes()))
        total.update(b"\1")
    return total.hexdigest()[:24]


def owner_of(function: Callable[..., Any]) -> tuple[str, tuple[Path, ...], bool]:
    """Name, folders and kind (package or not) of the source that `function` belongs to.

    A function in a package belongs to the whole top-level package. One in a script or a single module belongs to the
    folder of that file, without its subfolders.
    """
    module: ModuleType | None = sys.modules.get(function.__module__)
    name = function.__module__
    if name == "__main__":
        spec = getattr(module, "__spec__", None)
        name = spec.name if spec is not None else name
    top = sys.modules.get(name.partition(".")[0])
    locations = getattr(top, "__path__", None)
    if locations is not None and name != "__main__":
        return name.partition(".")[0], tuple(Path(location) for location in locations), True
    return Path(function.__code__.co_filename).stem, (Path(function.__code__.co_filename).resolve().parent,), False


@lru_cache(maxsize=1)
def machine_text() -> str:
    """What else compiled code depends on: Python, numba, LLVM and numpy versions, and the CPU."""
    import llvmlite
    import llvmlite.binding as binding
    import numba
    import numpy as np

    versions = [sys.version.split()[0], numba.__version__, llvmlite.__version__, np.__version__]
    return " ".join([*versions, binding.get_host_cpu_name(), str(binding.get_host_cpu_features().flatten())])


def cache_base() -> Path:
    """The folder that holds all keyed folders: `$NUMBA_CACHE_DIR`, else `roboyard/kernels` in the XDG cache."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return Path(chosen)
    # An XDG path that is not absolute is to be ignored, says the XDG base directory specification.
    xdg = os.environ.get("XDG_CACHE_HOME", "")
    home = Path(xdg) if xdg.startswith("/") else Path(os.path.expanduser("~")) / ".cache"  # noqa: PTH111 - never raises
    return home / "roboyard" / "kernels"


def keyed_folder(name: str, digest: str, base: Path) -> Path:
    """Make, mark as just used, and return the folder for this source on this machine; old siblings are removed.

    Raises:
        OSError: It cannot be made or written.
    """
    machine = hashlib.sha256(machine_text().encode()).hexdigest()[:8]
    folder = base / f"{name}-{digest}-{machine}"
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    os.utime(folder)  # the order of use, for pruning; no clock is read
    if is_new:
        _prune(base, name, keep=folder)
    return folder


def _prune(base: Path, name: str, keep: Path) -> None:
    """Remove all but the most recently used folders of `name`. A process still using one only recompiles."""
    aged: list[tuple[int, str]] = []
    for folder in base.glob(f"{name}-*-*"):
        try:
            aged.append((folder.stat().st_mtime_ns, folder.name))
        except FileNotFoundError:
            continue  # another process prunes at the same time
    for _, old in sorted(aged, reverse=True)[KEPT_FOLDERS:]:
        if old != keep.name:
            shutil.rmtree(base / old, ignore_errors=True)
