"""Folders for laws that write files in hundreds of examples."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

MEMORY = Path("/dev/shm")
"""Where Linux keeps files in memory."""


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder that is deleted at the end of the block, in memory where that is possible.

    Each synchronized write to a disk takes milliseconds, and so does each of pytest's own numbered folders.
    """
    in_memory = MEMORY.is_dir() and os.access(MEMORY, os.W_OK)
    with TemporaryDirectory(prefix="roboyard-test-", dir=MEMORY if in_memory else None) as name:
        yield Path(name)
