"""Cache folders of compiled kernels: one folder per kernel and key."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from roboyard.compute.wall_clock import wall_seconds
from roboyard.config.content_cache import cache_folder


class KernelCacheWarning(RuntimeWarning):
    """Compiled kernels cannot be stored in the cache."""


def divert_cache_warnings(handler: Callable[[str], object]) -> None:
    """Pass the text of each further `KernelCacheWarning` to `handler` instead of showing it as Python does."""
    show = warnings.showwarning

    def divert(message: Warning | str, category: type[Warning], *arguments: Any, **options: Any) -> None:
        if issubclass(category, KernelCacheWarning):
            handler(str(message))
        else:
            show(message, category, *arguments, **options)

    warnings.showwarning = divert


MAX_CACHED_VERSIONS = 8
"""Maximum number of cached folders per kernel; each edit of its sources creates a new one."""


@lru_cache(maxsize=1)
def environment_key() -> str:
    """Return the other dependencies of compiled code: Python, numba, LLVM and numpy versions, and the CPU."""
    import llvmlite
    import llvmlite.binding as binding
    import numba
    import numpy as np

    versions = [sys.version.split()[0], numba.__version__, llvmlite.__version__, np.__version__]
    return " ".join([*versions, binding.get_host_cpu_name(), str(binding.get_host_cpu_features().flatten())])


def cache_root() -> Path:
    """Return the cache folder of all kernels: `$NUMBA_CACHE_DIR`, else `roboyard/kernels` in the XDG cache."""
    configured = os.environ.get("NUMBA_CACHE_DIR")
    return Path(configured) if configured else cache_folder() / "kernels"


def can_write_cache() -> bool:
    """Return whether the cache folder is writable."""
    try:
        cache_root().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=cache_root()) as file:
            file.write(bytes(_PROBE_SIZE))
            file.flush()
    except OSError:
        return False
    return True


def kernel_cache_folder(name: str, key: str) -> Path:
    """Create, mark as just used, and return the folder of a kernel on this machine; remove old folders of its name.

    An existing folder that is not writable is returned as it is: code can be read from it.

    Raises:
        OSError: It cannot be created.
    """
    digest = hashlib.sha256(f"{key} {environment_key()}".encode()).hexdigest()[:24]
    name = name.replace("<", "").replace(">", "")
    root = cache_root()
    folder = root / f"{name}-{digest}"
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    with suppress(OSError):  # in a read-only cache
        os.utime(folder)  # records the order of use, for pruning; the clock is not read
    if is_new:
        _prune(root, name, current=folder)
    return folder


def _prune(root: Path, name: str, current: Path) -> None:
    """Remove all but the most recently used folders of `name`. A process that still uses one only recompiles."""
    folders: list[tuple[int, str]] = []
    for folder in root.glob(f"{name}-*"):
        try:
            folders.append((folder.stat().st_mtime_ns, folder.name))
        except FileNotFoundError:
            continue  # another process prunes at the same time
    for _, folder_name in sorted(folders, reverse=True)[MAX_CACHED_VERSIONS:]:
        if folder_name != current.name:
            shutil.rmtree(root / folder_name, ignore_errors=True)


_PROBE_SIZE = 1 << 16
"""Size of the probe that checks for free disk space [bytes]; about the size of a kernel's code."""
_LOCK_FILE = "lock"
_LOCK_TIMEOUT = 600.0
"""Maximum time for which a process waits for the code of another one before it compiles itself [s]: the other one may
be suspended.
"""
_LOCK_POLL = 0.02


@contextmanager
def lock_folder(folder: Path, check: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Prevent other processes from compiling into a folder; the operating system releases the lock when this process
    dies.

    `check` is called repeatedly while another process holds the lock; an exception from it ends the wait.

    On file systems without locks, the context is entered anyway: two processes may then compile the same code, and the
    later one replaces it.
    """
    try:
        file = (folder / _LOCK_FILE).open("ab")
    except OSError:
        yield
        return
    with file:
        pause, end = threading.Event(), wall_seconds() + _LOCK_TIMEOUT
        while not _try_lock(file.fileno()) and wall_seconds() < end:
            check()
            pause.wait(_LOCK_POLL)
        yield


def is_locked(folder: Path) -> bool:
    """Return whether a process is compiling into a folder at this moment."""
    try:
        with (folder / _LOCK_FILE).open("rb") as file:
            return not _try_lock(file.fileno())
    except OSError:
        return False


def _try_lock(descriptor: int) -> bool:
    """Lock an open file; return False if another process holds the lock."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # this file system has no locks
    return True
