"""A bus that runs in a thread behind its socket, and the command line in this process or as one of its own."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Any, Self, TypeVar

from roboyard.bus import Bus, Node
from roboyard.bus.socket import SocketServer

T = TypeVar("T")
PROGRAM = Path(sys.executable).with_name("roboyard")
END_NS = 10**16


class RunningBus:
    """A bus that runs in a thread of its own, paced, once it is started.

    Args:
        bus: The bus; it is closed by `stop`.
        factor: Simulated seconds per second; 0: as fast as it goes.

    Attributes:
        bus: The bus; while it runs, only `in_run` may touch it.
        log_lines: The texts of its log.
        thread: In which it runs.
    """

    def __init__(self, bus: Bus, *, factor: float = 1.0) -> None:
        self.bus = bus
        self.bus.executor.pacer.real_time_factor = factor
        self.log_lines: list[str] = []
        self.bus.log_sinks.append(lambda record: self.log_lines.append(record.text))
        self._stopped = False
        self._error: BaseException | None = None
        self.thread = Thread(target=self._run, name="running bus")

    def start(self) -> Self:
        """Begin to run."""
        self.thread.start()
        return self

    def _run(self) -> None:
        try:
            self.bus.executor.run_until(self.bus.now_ns + END_NS)
        except BaseException as error:  # noqa: BLE001 - `stop` raises it in the test's thread
            self._error = error
        finally:
            self.on_end()

    def on_end(self) -> None:
        """What happens in the run's thread when the run ends."""

    def in_run(self, question: Callable[[], T], timeout: float = 30.0) -> T:
        """Call ``question()`` in the run's thread, between two instants, and return its answer.

        Raises:
            TimeoutError: the run did not come to it in time [s of the wall clock].
        """
        response: list[T] = []
        errors: list[BaseException] = []
        finished = Event()

        def ask() -> None:
            try:
                response.append(question())
            except BaseException as error:  # noqa: BLE001 - raised again in the test's thread
                errors.append(error)
            finished.set()

        self.bus.inputs.run_on_executor(ask)
        if not finished.wait(timeout):
            raise TimeoutError(f"the live bus did not answer within {timeout} s") from self._error
        if errors:
            raise errors[0]
        return response[0]

    def wait_until(self, condition: Callable[[], object], timeout: float = 30.0) -> None:
        """Wait until ``condition()``, looked at in the run's thread after every 10 ms of simulated time, holds.

        Raises:
            TimeoutError: it did not in time [s of the wall clock].
        """
        held = Event()

        def check() -> None:
            if condition():
                held.set()
            elif not held.is_set():
                self.bus.executor.schedule(self.bus.now_ns + 10_000_000, check)

        self.in_run(check, timeout)
        if not held.wait(timeout):
            self.in_run(held.set)  # looks no more
            raise TimeoutError(f"the condition did not hold within {timeout} s") from self._error

    def wait_for_time(self, seconds: float, timeout: float = 60.0) -> None:
        """Wait until the run's clock has come to a moment [s].

        Raises:
            TimeoutError: it did not in time [s of the wall clock].
        """
        reached = Event()
        self.in_run(lambda: self.bus.executor.schedule(round(seconds * 1e9), reached.set), timeout)
        if not reached.wait(timeout):
            raise TimeoutError(f"the run did not come to {seconds} s within {timeout} s") from self._error

    def end(self) -> None:
        """End the run as if it were over: nobody can reach it any more, and the bus can still be looked at."""
        self.bus.executor.stop()
        if self.thread.ident is not None:
            self.thread.join()

    def end_after(self, condition: Callable[[], object], seconds: float = 0.0) -> None:
        """Let the run end by itself, ``seconds`` of its time after ``condition()`` holds; returns at once."""

        def check() -> None:
            now_ns = self.bus.now_ns
            if condition():
                self.bus.executor.schedule(now_ns + round(seconds * 1e9), self.bus.executor.stop)
            else:
                self.bus.executor.schedule(now_ns + 10_000_000, check)

        self.in_run(check)

    def stop(self) -> None:
        """End the run and close everything; a second call does nothing. Raises the error that ended the run, if any."""
        if self._stopped:
            return
        self._stopped = True
        self.end()
        self.bus.close()
        if self._error is not None:
            raise self._error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class LiveBus(RunningBus):
    """A bus that runs in a thread and is reachable by other processes under a name.

    Args:
        nodes: (node, name) pairs that join before it runs.
        name: Of the run.
        factor: Simulated seconds per second; 0: as fast as it goes.
        warm_up: Simulated time that passes before anybody can reach it [s].

    Attributes:
        server: Its socket, which is closed when the run ends.
    """

    def __init__(
        self, *nodes: tuple[Node, str], name: str = "yard", factor: float = 20.0, warm_up: float = 0.0
    ) -> None:
        super().__init__(Bus(), factor=0.0)
        for node, node_name in nodes:
            self.bus.add(node, node_name)
        if warm_up:
            self.bus.executor.run_for(warm_up)
        self.server = SocketServer(self.bus, name)
        self.bus.executor.pacer.real_time_factor = factor
        self.start()

    def on_end(self) -> None:
        """Close the socket."""
        self.server.close()

    @property
    def is_connected(self) -> bool:
        """Whether another process is connected; for `wait_until` and `end_after`."""
        return bool(self.server._clients)

    def is_subscribed(self, topic: str) -> bool:
        """Whether another process takes the messages of an absolute topic; for `wait_until` and `end_after`."""
        return bool(self.server._clients_by_topic.get(topic))


@dataclass(frozen=True)
class CliResult:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The JSON document in the last line of its output."""
        return json.loads(self.out.splitlines()[-1])

    @property
    def error(self) -> str:
        """The one line that a failed command says; fails if there is none, several, or a traceback."""
        (line,) = [line for line in self.err.splitlines() if line.startswith("error:")]
        assert "Traceback" not in self.out + self.err
        return line


class _Stream(io.TextIOWrapper):
    """Text in memory with a ``buffer``, as the standard streams have, which says that it is no terminal."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", errors="backslashreplace", write_through=True)

    def text(self) -> str:
        self.flush()
        return self.buffer.getvalue().decode("utf-8", "backslashreplace")  # type: ignore[attr-defined]


def run_cli(*words: object) -> CliResult:
    """Run a command line in this process; its output is returned instead of shown."""
    from roboyard.cli.main import run

    out, err = _Stream(), _Stream()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = run([str(word) for word in words])
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
    return CliResult(code, out.text(), err.text())


def spawn_cli(*words: object, timeout: float = 120.0, env: Mapping[str, str] | None = None) -> CliResult:
    """Run a command line as a process of its own, without a terminal, and wait for its end."""
    process = subprocess.run(
        [str(PROGRAM), *map(str, words)],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=timeout,
        check=False,
        env=None if env is None else dict(env),
    )
    return CliResult(process.returncode, process.stdout, process.stderr)
