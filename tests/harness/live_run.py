"""The command line as a process of its own: a run that goes on, at a terminal or without one."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from tests.harness.live_bus import PROGRAM, CliResult

from roboyard.bus.socket import connect, live_runs
from roboyard.errors import RunError

T = TypeVar("T")
_CONTROL_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def poll(condition: Callable[[], T], *, timeout: float = 60.0, expected: str = "the condition") -> T:
    """Ask again and again until ``condition()`` is true, for what another process or thread does; returns its value.

    Raises:
        TimeoutError: it did not become true in time [s of the wall clock].
    """
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{expected} did not come true within {timeout} s")
        time.sleep(0.01)
    return value


def live_time_ns() -> int:
    """Simulated time of the only live run [ns]; -1 where there is none, or where it does not answer yet."""
    with suppress(RunError):  # it cannot answer while kernels are compiled
        if live_runs():
            with connect() as connection:
                return int(connection.graph()["time_ns"])
    return -1


def wait_for_live_time(seconds: float, *, timeout: float = 120.0) -> float:
    """Wait until a run can be reached and its clock has come to a moment [s]; returns its time then [s]."""

    def now_ns() -> int:  # at least 1, which is true
        time_ns = live_time_ns()
        return time_ns + 1 if time_ns >= round(seconds * 1e9) else 0

    return (poll(now_ns, timeout=timeout, expected=f"a live run at {seconds} s") - 1) * 1e-9


class LiveRun:
    """A command line as a process without a terminal, killed if it outlives the block.

    Attributes:
        process: The process; its output goes into pipes.
    """

    def __init__(self, *words: object) -> None:
        self.process = subprocess.Popen(
            [str(PROGRAM), *map(str, words)],
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def wait_for_time(self, seconds: float = 0.0) -> None:
        """Wait until the run can be reached and its clock has come to a moment [s].

        Raises:
            AssertionError: the process ended before.
        """

        def reached() -> bool:
            assert self.process.poll() is None, self.process.communicate()
            return live_time_ns() >= round(seconds * 1e9)

        poll(reached, timeout=120.0, expected=f"a live run at {seconds} s")

    def send_signal(self, number: int) -> None:
        """Send a signal to the process."""
        self.process.send_signal(number)

    def read_line(self, stream: str = "stdout") -> str:
        """Wait for the next line of its output, or of ``stderr``."""
        pipe = getattr(self.process, stream)
        assert pipe is not None
        return str(pipe.readline())

    def wait(self, timeout: float = 120.0) -> CliResult:
        """Wait for its end."""
        out, err = self.process.communicate(timeout=timeout)
        return CliResult(self.process.returncode, out, err)

    def __enter__(self) -> LiveRun:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        with suppress(ValueError):  # a test has closed a pipe itself
            self.process.communicate()


class Terminal:
    """A terminal in which a process runs: keys go in, what it shows comes out.

    Attributes:
        process: The process.
        text: What was shown since the last key, without control codes.
    """

    def __init__(self, master: int, process: subprocess.Popen[bytes]) -> None:
        self._master = master
        self.process = process
        self.text = ""

    def read(self, seconds: float = 0.1) -> str:
        """Take what is shown until nothing new comes for some time; returns ``text``."""
        while select.select([self._master], [], [], seconds)[0]:
            try:
                data = os.read(self._master, 65536)
            except OSError:  # the process has closed its end
                break
            self.text += _CONTROL_CODES.sub("", data.decode(errors="replace"))
        return self.text

    def wait_for(self, pattern: str) -> None:
        """Wait until a regular expression matches what was shown since the last key."""
        for _ in range(600):
            if re.search(pattern, self.read()):
                return
        raise AssertionError(f"{pattern!r} was not shown in {self.text[-2000:]!r}")

    def press(self, keys: str) -> None:
        """Type; what was shown before is forgotten."""
        self.text = ""
        os.write(self._master, keys.encode())

    def send_to_group(self, number: int) -> None:
        """Send a signal to the process and its children, as a shell does."""
        os.killpg(self.process.pid, number)

    def wait_until_stopped(self) -> None:
        """Wait until the process stands still after SIGSTOP."""
        _, status = os.waitpid(self.process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), status

    def wait_until_pending(self, number: int) -> None:
        """Wait until a signal is on its way to the process that stands still."""
        status = Path(f"/proc/{self.process.pid}/status")

        def pending() -> int:
            masks = dict(line.split(":", 1) for line in status.read_text().splitlines())
            return int(masks["ShdPnd"], 16) >> (number - 1) & 1

        poll(pending, expected=f"signal {number} for the process")

    def wait(self) -> int:
        """Read until the process ends; returns its exit code."""
        while self.process.poll() is None:
            self.read()
        self.read()
        return self.process.returncode


@contextmanager
def run_in_terminal(*words: object) -> Iterator[Terminal]:
    """Run a command line in a terminal of 120 x 30 characters, whose settings must be as before at its end."""
    master, slave = pty.openpty()
    before = termios.tcgetattr(slave)
    environment: dict[str, Any] = {**os.environ, "TERM": "xterm", "COLUMNS": "120", "LINES": "30"}
    process = subprocess.Popen(
        [str(PROGRAM), *map(str, words)],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=environment,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    try:
        yield Terminal(master, process)
        assert termios.tcgetattr(slave) == before, "the terminal is not left as it was"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGCONT)
        process.kill()
        process.wait()
        os.close(slave)
        os.close(master)
