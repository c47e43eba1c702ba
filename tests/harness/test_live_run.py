"""A live run is awaited, ended and killed; a terminal shows, takes keys, and is compared at the end."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from tests.harness.fixtures import private_runtime_folder
from tests.harness.live_bus import run_cli
from tests.harness.live_run import LiveRun, live_time_ns, poll, run_in_terminal, wait_for_live_time
from tests.harness.scenarios import short_scenario

__all__ = ["private_runtime_folder"]


def test_poll_returns_the_value_or_fails() -> None:
    values = iter([0, 0, 7])
    assert poll(lambda: next(values)) == 7
    with pytest.raises(TimeoutError, match="the moon did not come true within 0.05 s"):
        poll(lambda: False, timeout=0.05, expected="the moon")


def test_live_run_is_awaited_and_ended(tmp_path: Path) -> None:
    scenario = short_scenario(duration=60.0).write(tmp_path)
    with LiveRun("run", scenario, "--rate", "1", "--no-video", "--out", tmp_path / "out") as run:
        run.wait_for_time(0.1)
        assert live_time_ns() >= 100_000_000
        assert wait_for_live_time(0.15) >= 0.15
        run.send_signal(signal.SIGTERM)
        assert run.wait().code == 143
    assert live_time_ns() == -1
    with LiveRun("run", tmp_path / "nothing.yaml") as run, pytest.raises(AssertionError, match="nothing.yaml"):
        run.wait_for_time()


def test_terminal_shows_and_takes_keys(tmp_path: Path) -> None:
    scenario = short_scenario(duration=60.0).write(tmp_path)
    with run_in_terminal("run", scenario, "--paused", "--no-video", "--out", tmp_path / "out") as terminal:
        terminal.wait_for("short: .* paused")
        assert "\x1b" not in terminal.text
        terminal.press("q")
        assert terminal.wait() == 1
    assert run_cli("bag", "info", tmp_path / "out").code == 0
