"""Atomic replacement of files: readers, also after a crash, find either the old or the new content."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

_MAX_STEM: Final = 40
"""Number of characters of the file's name in the temporary file's name; file systems allow 255 bytes."""


def write_atomic(path: Path | str, content: str | bytes, *, mode: int = 0o666) -> None:
    """Write a complete file, or leave the old one unchanged.

    Args:
        path: The file; if it is a symbolic link, its target is replaced.
        content: The content; text is written as UTF-8 with unchanged line endings.
        mode: Permissions of a new file, reduced by the umask of the process.

    Raises:
        OSError: The disk is full, or the file or its folder cannot be written; the error names `path`.
    """
    with atomic_path(path, mode=mode) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def atomic_path(path: Path | str, *, has_target_suffix: bool = False, mode: int = 0o666) -> Iterator[Path]:
    """Yield a temporary path that replaces `path` when the block ends without an error.

    The temporary file is in the same folder and is flushed to the disk before it replaces the old file. It has the
    permissions of the old file. Special files (a device, a pipe) are written in place.

    Args:
        path: The file to replace or create.
        has_target_suffix: Whether the temporary file has the suffix of `path`, for libraries that derive the format
            from it.
        mode: Permissions of a new file, reduced by the umask of the process.

    Raises:
        OSError: The disk is full, or the file or its folder cannot be written; the error names `path`.
    """
    try:
        replacement = FileReplacement(path, has_target_suffix=has_target_suffix, mode=mode)
        try:
            yield replacement.path
            replacement.commit()
        except BaseException:
            replacement.discard()
            raise
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise


class FileReplacement:
    """Temporary file that replaces another file when its owner calls `commit`; see `atomic_path`.

    The owner may keep the temporary file open during `commit` and write to it afterwards.

    Args:
        path: The file to replace or create.
        has_target_suffix: Whether the temporary file has the suffix of `path`.
        mode: Permissions of a new file, reduced by the umask of the process.

    Attributes:
        path: Path to write to: the temporary file, or `path` itself for special files.
        is_pending: Whether neither `commit` nor `discard` was called.

    Raises:
        OSError: The file or its folder is not writable.
    """

    def __init__(self, path: Path | str, *, has_target_suffix: bool = False, mode: int = 0o666) -> None:
        self._target = target = Path(os.path.realpath(path))
        self._mode = target.stat().st_mode if target.exists() else None
        self.is_pending = self._mode is None or stat.S_ISREG(self._mode)
        self.path = target
        if not self.is_pending:
            return
        if self._mode is not None and not os.access(target, os.W_OK):
            raise PermissionError(13, "Permission denied", str(path))
        self.path = _create_temporary(target, target.suffix if has_target_suffix else "", mode)

    def commit(self) -> None:
        """Flush the temporary file to the disk and replace the old file; a second call does nothing.

        Raises:
            OSError: The disk is full, or the folder cannot be written.
        """
        if not self.is_pending:
            return
        _flush(self.path)
        if self._mode is not None:
            self.path.chmod(stat.S_IMODE(self._mode))
        self.path.replace(self._target)
        self.path, self.is_pending = self._target, False
        with suppress(OSError):  # not every file system can flush a folder; the file itself is complete
            _flush(self._target.parent)

    def discard(self) -> None:
        """Remove the temporary file; a committed file is kept."""
        if self.is_pending:
            self.path.unlink(missing_ok=True)
            self.is_pending = False


def _create_temporary(target: Path, suffix: str, mode: int) -> Path:
    """Create an empty file next to `target` that no other process or thread uses."""
    number = 0
    while True:
        name = f".{target.name[:_MAX_STEM]}.{os.getpid()}-{number}.part{suffix}"
        path = target.with_name(name)
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
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
