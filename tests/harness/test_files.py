"""Temporary folders are empty, distinct and deleted."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.harness import files
from tests.harness.files import temporary_folder


def test_temporary_folders_are_distinct_and_deleted_after_errors() -> None:
    with temporary_folder() as one, temporary_folder() as other:
        assert one != other
        assert not list(one.iterdir())
        (one / "file").write_text("text")
        (other / "folder").mkdir()
    assert not one.exists()
    assert not other.exists()
    with pytest.raises(ValueError, match="of the test"), temporary_folder() as folder:
        raise ValueError("of the test")
    assert not folder.exists()


def test_temporary_folder_does_not_need_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(files, "MEMORY", tmp_path / "missing")
    with temporary_folder() as folder:
        (folder / "file").write_text("text")
        assert (folder / "file").read_text() == "text"
