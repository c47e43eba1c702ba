"""A person at a terminal: the line that is redrawn, the keys, and Ctrl-C."""

import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.cli.conftest import PROGRAM, Command, environment

from roboyard.bus.socket import connect, live_runs
from roboyard.errors import RunError

CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Screen:
    """The other end of a terminal."""

    def __init__(self, master: int, process: "subprocess.Popen[bytes]") -> None:
        self.master = master
        self.process = process
        self.text = ""

    def read(self, seconds: float = 0.1) -> str:
        while select.select([self.master], [], [], seconds)[0]:
            try:
                piece = os.read(self.master, 65536)
            except OSError:  # the other end is closed
                break
            self.text += CODES.sub("", piece.decode(errors="replace"))
        return self.text

    def wait_for(self, pattern: str) -> None:
        """Until ``pattern`` has been shown since the last key."""
        for _ in range(600):
            if re.search(pattern, self.read()):
                return
        raise AssertionError(f"{pattern!r} was not shown in {self.text[-2000:]!r}")

    def press(self, keys: str) -> None:
        self.text = ""
        os.write(self.master, keys.encode())

    def end(self) -> int:
        while self.process.poll() is None:
            self.read()
        self.read()
        return self.process.returncode


@contextmanager
def at_terminal(*words: object) -> Iterator[Screen]:
    master, slave = pty.openpty()
    before = termios.tcgetattr(slave)
    process = subprocess.Popen(
        [str(PROGRAM), *map(str, words)],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=environment(TERM="xterm", COLUMNS="120", LINES="30"),
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    try:
        yield Screen(master, process)
        assert termios.tcgetattr(slave) == before, "the terminal is left as it was"
    finally:
        process.kill()
        process.wait()
        os.close(slave)
        os.close(master)


def now_ns() -> int:
    with connect() as connection:
        return int(connection.graph()["time_ns"])


def wait_for_time(time_ns: int) -> int:
    for _ in range(2400):
        with suppress(RunError):  # it cannot answer while kernels are compiled
            if live_runs() and (now := now_ns()) >= time_ns:
                return now
        time.sleep(0.05)
    raise AssertionError(f"the run did not reach {time_ns} ns")


@pytest.mark.slow
def test_pause_step_go_on_end(scenario: Path) -> None:
    with at_terminal("run", scenario, "--duration", "600", "--paused", "--rate", "1", "--no-video") as screen:
        screen.wait_for(r"short: 0\.000 of 600 s  paused  \[space\] go on  \[s\] step  \[q\] end")
        begin = now_ns()
        screen.press("s")
        first = wait_for_time(begin + 1)
        screen.press("\n")
        wait_for_time(first + 1)
        screen.press("S")
        wait_for_time(first + 100_000_000)
        screen.wait_for("paused")
        screen.press(" ")
        screen.wait_for(r"real time  \[space\] pause  \[q\] end")
        screen.press("s")
        screen.wait_for("paused")
        stands = now_ns()
        time.sleep(0.2)
        assert now_ns() == stands
        screen.press("q")
        assert screen.end() == 1
        assert "interrupted: short" in screen.text


def test_ctrl_c_ends_in_order_and_twice_aborts(scenario: Path, command: Command) -> None:
    with at_terminal("run", scenario, "--duration", "600", "--rate", "1", "--out", "out", "--no-video") as screen:
        wait_for_time(100_000_000)
        screen.press("\x03")
        assert screen.end() == 130
        assert "interrupted: short" in screen.text
        assert "Traceback" not in screen.text
    assert command("bag", "info", "out", "--json").json["complete"]
    assert Path("out/report.html").is_file()
    with at_terminal("run", scenario, "--duration", "600", "--rate", "1", "--no-video") as screen:
        wait_for_time(100_000_000)
        os.killpg(screen.process.pid, signal.SIGSTOP)  # so that both come before anything is done about the first
        screen.press("\x03")
        time.sleep(0.1)
        os.killpg(screen.process.pid, signal.SIGCONT)
        screen.press("\x03")
        assert screen.end() == 130
        assert "Traceback" not in screen.text


@pytest.mark.slow
def test_warnings_of_nodes_stand_above_the_line(scenario: Path) -> None:
    Path("mine.py").write_text(
        "import roboyard as ry\n"
        "class Warner(ry.Node):\n"
        "    'Warns.'\n"
        "    def setup(self): self.after(0.05, lambda: self.log.warn('mind [the] gap'))\n"
    )
    Path("warning.yaml").write_text(scenario.read_text() + "nodes: {warner: {use: 'mine.py:Warner'}}\n")
    with at_terminal("run", "warning.yaml", "--duration", "0.2", "--no-video", "--rate", "1") as screen:
        screen.end()
        assert "0.050 s  warn  /warner: mind [the] gap" in screen.text


def test_a_replay_obeys_keys_too(recording: Path) -> None:
    with at_terminal("replay", recording, "--paused") as screen:
        screen.wait_for(r"replay-yard: 0\.000 of 2 s  paused")
        screen.press("s")
        wait_for_time(100_000_000)
        screen.press("S")
        wait_for_time(200_000_000)
        screen.press(" ")
        assert screen.end() == 0
        assert "replay-yard: " in screen.text


def test_nothing_is_drawn_on_a_plain_terminal(scenario: Path, command: Command) -> None:
    done = command("run", scenario, "--no-video")
    assert "\x1b" not in done.out + done.err
