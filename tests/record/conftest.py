"""Small recordings for the tests of the record room."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.record.samples import Item, some_messages, write_items


@pytest.fixture
def items() -> list[Item]:
    """Three seconds of messages."""
    return some_messages()


@pytest.fixture
def recording_file(tmp_path: Path, items: list[Item]) -> Path:
    """A whole recording of ``items``."""
    path = tmp_path / "recording.mcap"
    write_items(path, items)
    return path
