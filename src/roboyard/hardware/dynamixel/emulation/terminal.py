"""Emulated servo bus on a pseudo-terminal that drivers open like a serial port, run by a thread or a process."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from threading import Event, Thread
from types import TracebackType

from roboyard.compute.wall_clock import wall_seconds
from roboyard.errors import InputError, RunError
from roboyard.hardware.dynamixel.emulation.bus import EmulatedBus, UnpluggedError

_POLL_INTERVAL = 0.02
"""Period at which the thread checks for its end and advances the servos [s]."""


_STARTUP_TIMEOUT = 60.0
"""Startup timeout of the process [s]."""


class PseudoTerminal:
    """Thread that serves an emulated bus on a pseudo-terminal; a context manager.

    Args:
        bus: The servos; no other thread may access them meanwhile.
        clock: Time of the bus [s]; by default wall time since the first byte.

    Attributes:
        path: Path of the port.

    Raises:
        InputError: The system has no pseudo-terminals.
    """

    def __init__(self, bus: EmulatedBus, clock: Callable[[], float] | None = None) -> None:
        self._bus, self._clock = bus, clock
        try:
            from pty import openpty
            from tty import setraw
        except ImportError as error:
            raise InputError("this system has no pseudo-terminals", valid="Linux or macOS") from error
        self._server_fd, self._client_fd = openpty()
        setraw(self._client_fd)
        self.path = os.ttyname(self._client_fd)
        self._ending = Event()
        self._thread = Thread(target=self._serve, name="emulated-servos", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        start = None
        try:
            while not self._ending.is_set():
                ready = select.select([self._server_fd], [], [], _POLL_INTERVAL)[0]
                data = os.read(self._server_fd, 4096) if ready else b""
                if data and start is None:
                    start = wall_seconds()
                time_s = self._clock() if self._clock else 0.0 if start is None else wall_seconds() - start
                for delay, response in self._bus.receive(data, time_s):
                    if delay:
                        time.sleep(delay)
                    os.write(self._server_fd, response)
        except (UnpluggedError, OSError):
            pass
        finally:
            for fd in (self._client_fd, self._server_fd):
                with suppress(OSError):
                    os.close(fd)

    def close(self) -> None:
        """Close the port, like unplugging the cable."""
        self._ending.set()
        self._thread.join(timeout=5.0)

    def __enter__(self) -> PseudoTerminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class PseudoTerminalProcess:
    """Process that serves an emulated bus on a pseudo-terminal; it answers in time when this process is busy.

    A context manager.

    Args:
        bus: The servos; copied into the process.

    Attributes:
        path: Path of the port.

    Raises:
        InputError: The system has no pseudo-terminals.
        RunError: The process does not start in time.
    """

    def __init__(self, bus: EmulatedBus) -> None:
        context = get_context("spawn")  # a forked process would inherit locks in an undefined state
        self._pipe, child_end = context.Pipe()
        self._process = context.Process(
            target=_serve_process, args=(bus, child_end), name="emulated-servos", daemon=True
        )
        self._process.start()
        child_end.close()
        try:
            reply = self._pipe.recv() if self._pipe.poll(_STARTUP_TIMEOUT) else None
        except EOFError:
            reply = None
        if isinstance(reply, InputError):
            raise reply
        if reply is None:
            raise RunError(
                "the process of the emulated servos did not start in time", valid="a machine that is less busy"
            )
        self.path: str = reply

    def close(self) -> None:
        """Close the port, like unplugging the cable."""
        self._pipe.close()
        self._process.join(timeout=5.0)

    def __enter__(self) -> PseudoTerminalProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _serve_process(bus: EmulatedBus, pipe: Connection) -> None:
    """Serve until the other end of the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C stops the driver; the servos must answer until then
    try:
        with PseudoTerminal(bus) as terminal:
            pipe.send(terminal.path)
            with suppress(EOFError):
                pipe.recv()
    except InputError as error:
        pipe.send(error)
