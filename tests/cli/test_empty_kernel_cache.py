"""Runs and batches whose kernels are not compiled yet: progress, Ctrl-C, and a cache that cannot be written."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from roboyard.compute.kernel_folders import is_locked
from roboyard.record import open_recording


def start(arguments: list[str], cache: Path, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "roboyard", *arguments], env=os.environ | {"NUMBA_CACHE_DIR": str(cache)}, cwd=folder,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def users_of(cache: Path) -> list[str]:
    """Processes that have this cache in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"NUMBA_CACHE_DIR={cache}".encode() in path.read_bytes():
                found.append(path.parent.name)
        except OSError:
            continue
    return found


@pytest.mark.slow
def test_ctrl_c_during_compilation_ends_a_run_that_is_not_assembled(tmp_path: Path) -> None:
    cache, out = tmp_path / "cache", tmp_path / "run"
    process = start(["run", "rover-drive", "--out", str(out)], cache, tmp_path)
    while process.poll() is None and not any(map(is_locked, cache.glob("roboyard.physics.*"))):
        pass
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == 130, errors
    assert users_of(cache) == []
    document = json.loads((out / "metrics.json").read_text())
    assert (document["state"], document["robots"], document["messages"]) == ("interrupted", {}, 0)
    assert all(found["passed"] is None for found in document["criteria"].values())
    assert (out / "report.html").is_file()
    assert (out / "scenario.yaml").is_file()
    with open_recording(out) as recording:
        assert recording.is_complete
        assert recording.metadata["run"] == "rover-drive"
    assert not any(map(is_locked, cache.iterdir()))


@pytest.mark.slow
def test_batch_shows_progress_of_compilation_once(tmp_path: Path) -> None:
    arguments = ["batch", "rover-drive", "--smoke", "--runs", "2", "--workers", "2"]
    process = start(arguments, tmp_path / "cache", tmp_path)
    _, errors = process.communicate()
    lines = errors.splitlines()
    assert any(line.startswith("rover-drive: compiling kernels: 1 of ") for line in lines), errors
    assert all(line.endswith("; once only") for line in lines if "compiling kernels" in line)
    process = start(arguments, tmp_path / "cache", tmp_path)
    assert "compiling" not in process.communicate()[1]


@pytest.mark.slow
def test_cache_that_cannot_be_written_is_one_line_of_the_command(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.write_text("a file where a folder should be")
    process = start(["run", "rover-drive", "--smoke", "--out", "run"], cache, tmp_path)
    _, errors = process.communicate()
    lines = [line for line in errors.splitlines() if "cannot be cached" in line]
    assert len(lines) == 1, errors
    assert lines[0].startswith("warning: compiled kernels cannot be cached (")
    assert "RuntimeWarning" not in errors
    assert "KernelCacheWarning" not in errors
