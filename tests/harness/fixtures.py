"""Fixtures for a room's ``conftest.py``: import there what the room uses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.harness.bus import BusHarness


@pytest.fixture
def harness() -> Iterator[BusHarness]:
    """An empty bus that is closed at the end of the test."""
    with BusHarness() as harness:
        yield harness


@pytest.fixture(autouse=True)
def private_runtime_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A registry of live runs that no other test and no user's run shares."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
