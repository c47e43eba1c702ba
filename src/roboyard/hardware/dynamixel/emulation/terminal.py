"""An emulated bus on a pseudo-terminal, where drivers find it as they find a serial port: on a thread, or a process."""

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
"""How often it looks whether it shall end, and lets the servos go on [s]."""


_STARTUP_TIMEOUT = 60.0
"""How long a process has to come up [s]."""


class PseudoTerminal:
    """Serves a bus on a pseudo-terminal, on a thread of its own; a context manager.

    Args:
        bus: Its servos; nobody else may touch them meanwhile.
        clock: Of the bus [s]; that on the wall, from the first byte on, unless given.

    Attributes:
        path: Of the port.

    Raises:
        InputError: this system has no pseudo-terminals.
    """

    def __init__(self, bus: EmulatedBus, clock: Callable[[], float] | None = None) -> None:
        self._bus, self._clock = bus, clock
        try:
            from pty import openpty
            from tty import setraw
        except ImportError as error:
            raise InputError("no pseudo-terminals here", valid="Linux or macOS") from error
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
        """Unplug it."""
        self._ending.set()
        self._thread.join(timeout=5.0)

    def __enter__(self) -> PseudoTerminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class PseudoTerminalProcess:
    """The same in a process of its own, which answers in time whatever this one does; a context manager.

    Args:
        bus: Copied into it.

    Attributes:
        path: Of the port.

    Raises:
        InputError: this system has no pseudo-terminals.
        RunError: the process does not come up.
    """

    def __init__(self, bus: EmulatedBus) -> None:
        context = get_context("spawn")  # a forked one would inherit locks in whatever state they are
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
            raise RunError("the process of the emulated servos does not come up", valid="a machine that is less busy")
        self.path: str = reply

    def close(self) -> None:
        """Unplug it."""
        self._pipe.close()
        self._process.join(timeout=5.0)

    def __enter__(self) -> PseudoTerminalProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _serve_process(bus: EmulatedBus, pipe: Connection) -> None:
    """Serve until nobody holds the other end of the line."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one who drives: servos go on until then
    try:
        with PseudoTerminal(bus) as terminal:
            pipe.send(terminal.path)
            with suppress(EOFError):
                pipe.recv()
    except InputError as error:
        pipe.send(error)
