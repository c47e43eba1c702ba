"""Kernel folders: the number of cached versions is limited, and a lock excludes other processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from roboyard.compute import CompilationInterrupted
from roboyard.compute.kernel_folders import MAX_CACHED_VERSIONS, is_locked, kernel_cache_folder, lock_folder


def test_kernel_folders_are_limited_to_the_latest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    unrelated = tmp_path / "other-0"
    unrelated.mkdir()
    folders = []
    for i in range(MAX_CACHED_VERSIONS + 3):
        folders.append(kernel_cache_folder("name", str(i)))
        os.utime(folders[-1], ns=(i, i))  # the order must not depend on the resolution of the file system's times
    assert [folder.exists() for folder in folders] == [False] * 3 + [True] * MAX_CACHED_VERSIONS
    assert unrelated.exists()


def test_lock_excludes_other_processes_until_it_is_released(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from roboyard.compute.kernel_folders import is_locked; "
    code += f"print(is_locked(Path({str(tmp_path)!r})))"
    assert not is_locked(tmp_path)
    with lock_folder(tmp_path):
        assert (
            subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "True\n"
        )
    assert not is_locked(tmp_path)


def test_wait_for_a_locked_folder_is_interrupted(tmp_path: Path) -> None:
    checks: list[None] = []

    def check() -> None:
        checks.append(None)
        if len(checks) == 3:
            raise CompilationInterrupted

    with lock_folder(tmp_path):
        with pytest.raises(CompilationInterrupted), lock_folder(tmp_path, check):
            pass
        assert is_locked(tmp_path)
    assert len(checks) == 3
    assert not is_locked(tmp_path)
