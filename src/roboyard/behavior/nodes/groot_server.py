"""ZeroMQ sockets of Groot2: requests and notifications."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Lock, Thread
from typing import Any

from roboyard.behavior.groot import GrootRequestHandler, encode_breakpoint_reached
from roboyard.errors import InputError, import_extra

_POLL_MS = 100
_MAX_SILENT_POLLS = 50
"""Polls without a request, 5 s, after which Groot2 is gone, as BehaviorTree.CPP takes it; hooks do nothing then."""


class GrootServer:
    """Replies to Groot2 on a thread of its own, and publishes reached breakpoints on the next port.

    Args:
        request_handler: Handles the requests.
        port: TCP port on this machine; breakpoints are published on the next one.
        on_connection_change: Called on the server's thread with whether Groot2 is connected, when that changes.

    Attributes:
        is_connected: Whether Groot2 has sent a request lately.

    Raises:
        InputError: ZeroMQ is not installed, or a port is in use.
    """

    def __init__(
        self, request_handler: GrootRequestHandler, port: int, on_connection_change: Callable[[bool], None]
    ) -> None:
        zmq = import_extra("zmq", "groot", "Groot2")
        self._monitor, self._on_connection_change = request_handler, on_connection_change
        self._context = zmq.Context()
        self._socket: Any = self._context.socket(zmq.REP)
        self._publisher: Any = self._context.socket(zmq.PUB)
        self._publishing, self._n_notifications = Lock(), 0
        for number, socket in ((port, self._socket), (port + 1, self._publisher)):
            socket.setsockopt(zmq.LINGER, 0)
            try:
                socket.bind(f"tcp://127.0.0.1:{number}")
            except zmq.ZMQError as error:
                self._context.destroy()
                raise InputError(f"port {number} cannot be had: {error}", valid="another port") from None
        self.is_connected = False
        self._stop_event = Event()
        self._thread = Thread(target=self._serve, name="groot", daemon=True)
        self._thread.start()

    def notify_breakpoint(self, uid: int) -> None:
        """Publish that a node's hook is reached."""
        with self._publishing:
            self._n_notifications += 1
            self._publisher.send_multipart(encode_breakpoint_reached(uid, self._n_notifications))

    def _serve(self) -> None:
        n_silent_polls = 0
        while not self._stop_event.is_set():
            has_request = self._socket.poll(_POLL_MS)
            n_silent_polls = 0 if has_request else n_silent_polls + 1
            is_connected = bool(has_request) or (self.is_connected and n_silent_polls < _MAX_SILENT_POLLS)
            if is_connected is not self.is_connected:
                self.is_connected = is_connected
                self._on_connection_change(is_connected)
            if has_request:
                self._socket.send_multipart(self._monitor.handle_request(self._socket.recv_multipart()))

    def close(self) -> None:
        """Stop the server."""
        self._stop_event.set()
        self._thread.join()
        self._context.destroy()
