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

_LOOK = 0.02
"""How often it looks whether it shall end, and lets the servos go on [s]."""


_PATIENCE = 60.0
"""How long a process has to come up [s]."""


class EmulatedTerminal:
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
        self._ours, self._theirs = openpty()
        setraw(self._theirs)
        self.path = os.ttyname(self._theirs)
        self._ending = Event()
        self._thread = Thread(target=self._serve, name="emulated-servos", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        begun = None
        try:
            while not self._ending.is_set():
                ready = select.select([self._ours], [], [], _LOOK)[0]
                data = os.read(self._ours, 4096) if ready else b""
                if data and begun is None:
                    begun = wall_seconds()
                time_s = self._clock() if self._clock else 0.0 if begun is None else wall_seconds() - begun
                for delay, answer in self._bus.take(data, time_s):
                    if delay:
                        time.sleep(delay)
                    os.write(self._ours, answer)
        except (UnpluggedError, OSError):
            pass
        finally:
            for end in (self._theirs, self._ours):
                with suppress(OSError):
                    os.close(end)

    def close(self) -> None:
        """Unplug it."""
        self._ending.set()
        self._thread.join(timeout=5.0)

    def __enter__(self) -> EmulatedTerminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class EmulatedProcess:
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
        self._line, theirs = context.Pipe()
        self._process = context.Process(target=_serve_alone, args=(bus, theirs), name="emulated-servos", daemon=True)
        self._process.start()
        theirs.close()
        try:
            found = self._line.recv() if self._line.poll(_PATIENCE) else None
        except EOFError:
            found = None
        if isinstance(found, InputError):
            raise found
        if found is None:
            raise RunError("the process of the emulated servos does not come up", valid="a machine that is less busy")
        self.path: str = found

    def close(self) -> None:
        """Unplug it."""
        self._line.close()
        self._process.join(timeout=5.0)

    def __enter__(self) -> EmulatedProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _serve_alone(bus: EmulatedBus, line: Connection) -> None:
    """Serve until nobody holds the other end of the line."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one who drives: servos go on until then
    try:
        with EmulatedTerminal(bus) as terminal:
            line.send(terminal.path)
            with suppress(EOFError):
                line.recv()
    except InputError as error:
        line.send(error)
