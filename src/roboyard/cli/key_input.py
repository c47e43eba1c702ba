"""Key presses in the terminal of a run and signals that reach it, read by one thread."""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Callable
from contextlib import suppress
from threading import Thread, current_thread, main_thread
from types import TracebackType
from typing import Any


class KeyInput:
    """Calls back for every key and signal while it is open; a context manager.

    Without a terminal in the foreground it reads signals only.

    Args:
        on_key: Called with each character, from a thread.
        on_signal: Called with the number of each signal, from a thread, in addition to the signal's handler.

    Attributes:
        signals: Numbers of the received signals.
    """

    def __init__(self, on_key: Callable[[str], None], on_signal: Callable[[int], None]) -> None:
        self._on_key = on_key
        self._on_signal = on_signal
        self.signals: list[int] = []
        self._terminal: int | None = None
        self._settings: list[Any] = []

    def __enter__(self) -> KeyInput:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        self._handles_signals = current_thread() is main_thread()
        if self._handles_signals:
            self._previous_wakeup_fd = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        if sys.stdin.isatty() and _in_foreground(sys.stdin.fileno()):
            self._terminal = sys.stdin.fileno()
            self._settings = termios.tcgetattr(self._terminal)
            tty.setcbreak(self._terminal)
        self._thread = Thread(target=self._read_events, name="roboyard-keys", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._handles_signals:
            signal.set_wakeup_fd(self._previous_wakeup_fd)
        os.write(self._writer, b"\0")  # no signal has this number
        self._thread.join()
        os.close(self._reader)
        os.close(self._writer)
        if self._terminal is not None:
            with suppress(termios.error):
                termios.tcsetattr(self._terminal, termios.TCSADRAIN, self._settings)

    def _read_events(self) -> None:
        terminal = self._terminal
        while True:
            sources = [self._reader] if terminal is None else [self._reader, terminal]
            ready, _, _ = select.select(sources, [], [])
            if self._reader in ready:
                for number in os.read(self._reader, 64):
                    if number == 0:
                        return
                    self.signals.append(number)
                    self._on_signal(number)
            if terminal is not None and terminal in ready:
                if not _in_foreground(terminal):  # reading now would stop the whole process
                    terminal = None
                    continue
                pressed = os.read(terminal, 64).decode(errors="replace")
                if not pressed:
                    terminal = None
                for key in pressed:
                    self._on_key(key)


def _in_foreground(terminal: int) -> bool:
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
