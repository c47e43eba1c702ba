"""Sockets by which Groot2 watches a tree, and holds it."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Lock, Thread
from typing import Any

from roboyard.behavior.groot import Monitor, reached
from roboyard.errors import InputError, import_extra

_POLL_MS = 100
_SILENT = 50
"""Polls without a request, 5 s, after which Groot2 is gone, as BehaviorTree.CPP takes it; hooks do nothing then."""


class GrootServer:
    """Answers Groot2 on a thread of its own, as long as it is open, and tells it of breakpoints on the next port.

    Args:
        monitor: Who knows the answers.
        port: TCP port on this machine; breakpoints are told of on the one after it.
        heard: Called from its thread with whether Groot2 is there, when that changes.

    Attributes:
        there: Whether Groot2 has asked something lately.

    Raises:
        InputError: ZeroMQ is not installed, or a port is taken.
    """

    def __init__(self, monitor: Monitor, port: int, heard: Callable[[bool], None]) -> None:
        zmq = import_extra("zmq", "groot", "Groot2")
        self._monitor, self._heard = monitor, heard
        self._context = zmq.Context()
        self._socket: Any = self._context.socket(zmq.REP)
        self._publisher: Any = self._context.socket(zmq.PUB)
        self._publishing, self._told = Lock(), 0
        for number, socket in ((port, self._socket), (port + 1, self._publisher)):
            socket.setsockopt(zmq.LINGER, 0)
            try:
                socket.bind(f"tcp://127.0.0.1:{number}")
            except zmq.ZMQError as error:
                self._context.destroy()
                raise InputError(f"port {number} cannot be had: {error}", valid="another port") from None
        self.there = False
        self._ended = Event()
        self._thread = Thread(target=self._serve, name="groot", daemon=True)
        self._thread.start()

    def tell(self, uid: int) -> None:
        """A node's hook is come upon."""
        with self._publishing:
            self._told += 1
            self._publisher.send_multipart(reached(uid, self._told))

    def _serve(self) -> None:
        silent = 0
        while not self._ended.is_set():
            asked = self._socket.poll(_POLL_MS)
            silent = 0 if asked else silent + 1
            there = bool(asked) or (self.there and silent < _SILENT)
            if there is not self.there:
                self.there = there
                self._heard(there)
            if asked:
                self._socket.send_multipart(self._monitor.answer(self._socket.recv_multipart()))

    def close(self) -> None:
        """Answer nobody any more."""
        self._ended.set()
        self._thread.join()
        self._context.destroy()
