"""A person at a terminal: the line that is redrawn, the keys, and Ctrl-C."""

import signal
from pathlib import Path

import pytest
from tests.cli.conftest import Command
from tests.harness.live_run import live_time_ns, run_in_terminal, wait_for_live_time


@pytest.mark.slow
def test_keys_pause_step_resume_and_end_a_run(scenario: Path) -> None:
    with run_in_terminal("run", scenario, "--duration", "600", "--paused", "--rate", "1", "--no-video") as terminal:
        terminal.wait_for(r"short: 0\.000 of 600 s  paused  \[space\] resume  \[s\] step  \[q\] stop")
        start = live_time_ns() * 1e-9
        terminal.press("s")
        first = wait_for_live_time(start + 1e-9)
        terminal.press("\n")
        wait_for_live_time(first + 1e-9)
        terminal.press("S")
        wait_for_live_time(first + 0.1)
        terminal.wait_for("paused")
        terminal.press(" ")
        terminal.wait_for(r"real time  \[space\] pause  \[q\] stop")
        terminal.press("s")
        terminal.wait_for("paused")
        time_ns = live_time_ns()
        terminal.read(0.2)  # ten instants at the rate of before
        assert live_time_ns() == time_ns
        terminal.press("q")
        assert terminal.wait() == 1
        assert "interrupted: short" in terminal.text


def test_ctrl_c_ends_the_run_and_twice_aborts(scenario: Path, command: Command) -> None:
    with run_in_terminal("run", scenario, "--duration", "600", "--rate", "1", "--out", "out", "--no-video") as terminal:
        wait_for_live_time(0.1)
        terminal.press("\x03")
        assert terminal.wait() == 130
        assert "interrupted: short" in terminal.text
        assert "Traceback" not in terminal.text
    assert command("bag", "info", "out", "--json").json["complete"]
    assert Path("out/report.html").is_file()
    with run_in_terminal("run", scenario, "--duration", "600", "--rate", "1", "--no-video") as terminal:
        wait_for_live_time(0.1)
        terminal.send_to_group(signal.SIGSTOP)  # so that both come before anything is done about the first
        terminal.wait_until_stopped()
        terminal.press("\x03")
        terminal.wait_until_pending(signal.SIGINT)
        terminal.send_to_group(signal.SIGCONT)
        terminal.press("\x03")
        assert terminal.wait() == 130
        assert "Traceback" not in terminal.text


@pytest.mark.slow
def test_warnings_of_nodes_are_shown_above_the_progress_line(scenario: Path) -> None:
    Path("mine.py").write_text(
        "import roboyard as ry\n"
        "class Warner(ry.Node):\n"
        "    'Warns.'\n"
        "    def setup(self): self.call_after(0.05, lambda: self.log.warn('mind [the] gap'))\n"
    )
    Path("warning.yaml").write_text(scenario.read_text() + "nodes: {warner: {type: 'mine.py:Warner'}}\n")
    with run_in_terminal("run", "warning.yaml", "--duration", "0.2", "--no-video", "--rate", "1") as terminal:
        terminal.wait()
        assert "0.050 s  warn  /warner: mind [the] gap" in terminal.text


def test_replay_obeys_keys(recording: Path) -> None:
    with run_in_terminal("replay", recording, "--paused") as terminal:
        terminal.wait_for(r"replay-yard: 0\.000 of 2 s  paused")
        terminal.press("s")
        wait_for_live_time(0.1)
        terminal.press("S")
        wait_for_live_time(0.2)
        terminal.press(" ")
        assert terminal.wait() == 0
        assert "replay-yard: " in terminal.text


def test_output_without_terminal_has_no_control_codes(scenario: Path, command: Command) -> None:
    result = command("run", scenario, "--no-video")
    assert "\x1b" not in result.out + result.err
