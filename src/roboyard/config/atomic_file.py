"""Replaces a file in one step: readers, and whoever comes after a crash, find the old content or the new one."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

_MAX_STEM: Final = 40
"""Characters of the file's own name that its temporary file's name repeats; file systems allow 255 bytes."""


def write_atomic(path: Path | str, content: str | bytes) -> None:
    """Write a whole file, or leave the old one as it was.

    Args:
        path: The file; a symbolic link stays one, and the file that it points to is replaced.
        content: Text is written as UTF-8, with its line endings as they are.

    Raises:
        OSError: The disk is full, or the file or its folder cannot be written; it names ``path``.
    """
    with atomic_path(path) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def atomic_path(path: Path | str, *, keep_suffix: bool = False) -> Iterator[Path]:
    """A path to write to in place of ``path``; the file there replaces ``path`` when the block ends without an error.

    The temporary file lies in the same folder and is flushed to the disk before it replaces the old file. It has the
    permissions of the old file. What is no regular file (a device, a pipe) is written in place.

    Args:
        path: The file to replace, or to make.
        keep_suffix: Whether the temporary file ends as ``path`` does, for libraries that choose a format by it.

    Raises:
        OSError: The disk is full, or the file or its folder cannot be written; it names ``path``.
    """
    target = Path(os.path.realpath(path))
    try:
        mode = target.stat().st_mode if target.exists() else None
        if mode is not None and not stat.S_ISREG(mode):
            yield target
            return
        if mode is not None and not os.access(target, os.W_OK):
            raise PermissionError(13, "Permission denied", str(path))
        temporary = _create_temporary(target, target.suffix if keep_suffix else "")
        try:
            yield temporary
            _flush(temporary)
            if mode is not None:
                temporary.chmod(stat.S_IMODE(mode))
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise
    with suppress(OSError):  # not every file system can flush a folder; the file itself is complete
        _flush(target.parent)


def _create_temporary(target: Path, suffix: str) -> Path:
    """Make an empty file beside ``target`` that no other process or thread uses."""
    number = 0
    while True:
        name = f".{target.name[:_MAX_STEM]}.{os.getpid()}-{number}.part{suffix}"
        path = target.with_name(name)
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        except FileExistsError:
            number += 1
        else:
            return path


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
