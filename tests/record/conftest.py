"""Small recordings for the tests of the record room."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.record.samples import Item, make_messages, record_robot, write_items


@pytest.fixture
def items() -> list[Item]:
    """Three seconds of messages."""
    return make_messages()


@pytest.fixture
def recording_file(tmp_path: Path, items: list[Item]) -> Path:
    """A complete recording of ``items``."""
    path = tmp_path / "recording.mcap"
    write_items(path, items)
    return path


@pytest.fixture
def robot_recording(tmp_path: Path) -> Path:
    """A recording of the bus with a robot and subscribers."""
    record_robot(tmp_path / "r.mcap")
    return tmp_path / "r.mcap"
