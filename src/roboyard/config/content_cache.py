"""Content-addressed cache on disk for slow parsing: the key of an entry is a hash of all its inputs.

Entries are JSON, so reading one runs no code.  A change of any input, or of the parser's code, gives another key; stale
entries cannot be found.  The cache only saves time: if its folder or an entry is unusable, the caller parses as if
there were no entry.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from roboyard.config.atomic_file import write_atomic

MAX_ENTRIES = 64
MAX_BYTES = 64_000_000
_DIGEST_LENGTH = 64


def cache_folder() -> Path:
    """Return the folder of Roboyard's caches: ``roboyard`` in the XDG cache folder."""
    # The XDG base directory specification requires that relative paths are ignored.
    xdg = os.environ.get("XDG_CACHE_HOME", "")
    home = Path(xdg) if xdg.startswith("/") else Path(os.path.expanduser("~")) / ".cache"  # noqa: PTH111 - never raises
    return home / "roboyard"


def content_key(parts: Iterable[bytes]) -> str:
    """Return a hash of several contents in order; moving bytes from one part to the next changes it."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{len(part)}:".encode())
        digest.update(part)
    return digest.hexdigest()


class ContentCache:
    """Entries of one kind, in one folder.  Processes may read and write it at the same time.

    Args:
        kind: Name of the folder.
        max_entries: Maximum number of entries; the most recently used ones are kept.
        max_bytes: Maximum total size [bytes]; a larger entry is not stored.
    """

    def __init__(self, kind: str, max_entries: int = MAX_ENTRIES, max_bytes: int = MAX_BYTES) -> None:
        self._folder = cache_folder() / "parsed" / kind
        self._max_entries, self._max_bytes = max_entries, max_bytes

    def read(self, key: str) -> Any:
        """Return the value stored under this key; None if there is none, or it is damaged."""
        path = self._path(key)
        try:
            data = path.read_bytes()
            payload = data[_DIGEST_LENGTH + 1 :]
            if data[:_DIGEST_LENGTH] != hashlib.sha256(payload).hexdigest().encode():
                return None
            value = json.loads(payload)
        except (OSError, ValueError, RecursionError):
            return None
        with suppress(OSError):
            os.utime(path)  # records the order of use, for pruning; the clock is not read
        return value

    def write(self, key: str, value: Any) -> None:
        """Store a value of plain JSON types; does nothing if the folder is not writable or the value is too large."""
        payload = json.dumps(value, separators=(",", ":")).encode()
        if len(payload) > self._max_bytes:
            return
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            data = hashlib.sha256(payload).hexdigest().encode() + b"\n" + payload
            write_atomic(self._path(key), data, mode=0o600)
            self._prune()

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.json"

    def _prune(self) -> None:
        """Remove the least recently used entries that exceed the limits."""
        entries: list[tuple[int, int, Path]] = []
        for path in self._folder.iterdir():
            with suppress(FileNotFoundError):  # another process prunes at the same time
                status = path.stat()
                entries.append((status.st_mtime_ns, status.st_size, path))
        total_size = 0
        for count, (_, size, path) in enumerate(sorted(entries, reverse=True), 1):
            total_size += size
            if count > self._max_entries or total_size > self._max_bytes:
                path.unlink(missing_ok=True)
