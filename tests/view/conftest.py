"""A small world that is shown, its server, and clients of its socket."""

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from threading import Thread
from typing import Any

import pytest
from websockets.sync.client import ClientConnection, connect

from roboyard.scenarios import Run, RunControl
from roboyard.view import View
from roboyard.view.wire import unpacked


class Client:
    """A client that speaks as a page does."""

    def __init__(self, view: View, **more: Any) -> None:
        address, _, token = view.url.partition("#")
        self.base = address.replace("http", "ws") + "socket"
        self._stack = ExitStack()
        opening = connect(f"{self.base}?token={token}", max_size=None, **more)
        self.socket: ClientConnection = self._stack.enter_context(opening)
        self.holder: int | None = None
        self.number = self.wait_for("welcome")["viewer"]

    def next(self, timeout: float = 10.0) -> dict[str, Any]:
        data = self.socket.recv(timeout=timeout)
        if isinstance(data, str):
            message = json.loads(data)
            self.holder = message.get("holder", self.holder) if message["op"] == "control" else self.holder
            return message
        head, parts = unpacked(data)
        return {**head, "parts": parts}

    def wait_for(self, op: str, **values: Any) -> dict[str, Any]:
        """The next message of a kind."""
        for _ in range(3000):
            message = self.next()
            if message["op"] == op and all(message.get(key) == value for key, value in values.items()):
                return message
        raise AssertionError(f"no {op} came")

    def control(self) -> "Client":
        """Wait until it has control."""
        while self.holder != self.number:
            self.next()
        return self

    def send(self, op: str, **values: Any) -> None:
        self.socket.send(json.dumps({"op": op, **values}))

    def ask(self, op: str, **values: Any) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        self.send(op, id=77, **values)
        for _ in range(3000):
            message = self.next()
            if message.get("id") == 77:
                return message
        raise AssertionError(f"{op} was not answered")

    def close(self) -> None:
        with suppress(OSError):
            self.socket.socket.shutdown(socket.SHUT_RDWR)  # as a browser that is killed: without a farewell
        self._stack.close()


class Stage:
    """A run that goes on in its own thread, and its view."""

    def __init__(self, run: Run, view: View, control: RunControl) -> None:
        self.run, self.view, self.control = run, view, control
        self._clients: list[Client] = []
        self._thread = Thread(target=self._run, daemon=True)

    def start(self, rate: float = 0.0) -> "Stage":
        self.control.bind(self.run.bus)
        self.run.bus.executor.pacer.real_time_factor = rate
        self.view.begin(self.run, "test", 600.0, self.control)
        self._thread.start()
        return self

    def _run(self) -> None:
        from roboyard.scenarios.execution import execute

        execute(self.run, 600.0, self.control)

    def client(self, **more: Any) -> Client:
        client = Client(self.view, **more)
        self._clients.append(client)
        return client

    def close(self) -> None:
        for client in self._clients:
            client.close()
        self.control.stop()
        if self._thread.ident is not None:
            self._thread.join(20.0)
        self.view.close()


@pytest.fixture
def stage() -> Iterator[Stage]:
    """The rover in the arena, not yet on its way."""
    with Run("arena", record=False) as run:
        run.add_robot("rover")
        stage = Stage(run, View(0), RunControl())
        try:
            yield stage
        finally:
            stage.close()
