"""A socket on which Groot2 can watch a tree."""

from __future__ import annotations

from threading import Event, Thread
from typing import Any

from roboyard.behavior.groot import Monitor
from roboyard.errors import InputError

_POLL_MS = 100


class GrootServer:
    """Answers Groot2 on a thread of its own, as long as it is open; it only looks.

    Args:
        monitor: Who knows the answers.
        port: TCP port on this machine.

    Raises:
        InputError: ZeroMQ is not installed, or the port is taken.
    """

    def __init__(self, monitor: Monitor, port: int) -> None:
        try:
            import zmq
        except ImportError:
            raise InputError("Groot2 needs ZeroMQ", valid="pip install 'roboyard[groot]'") from None
        self._monitor = monitor
        self._context = zmq.Context()
        self._socket: Any = self._context.socket(zmq.REP)
        self._socket.setsockopt(zmq.LINGER, 0)
        try:
            self._socket.bind(f"tcp://127.0.0.1:{port}")
        except zmq.ZMQError as error:
            self._context.destroy()
            raise InputError(f"port {port} cannot be had: {error}", valid="another port") from None
        self._ended = Event()
        self._thread = Thread(target=self._serve, name="groot", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while not self._ended.is_set():
            if self._socket.poll(_POLL_MS):
                self._socket.send_multipart(self._monitor.answer(self._socket.recv_multipart()))

    def close(self) -> None:
        """Answer nobody any more."""
        self._ended.set()
        self._thread.join()
        self._context.destroy()
