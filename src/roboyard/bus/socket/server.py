"""The serving end of the local socket, inside the run.

Reader threads only hand things to the bus's input port; everything that touches the bus happens on its own thread.  A
client that does not read fast enough loses its oldest messages, never slows the run down.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Any

from roboyard.bus.bus import Bus
from roboyard.bus.executor import LAST
from roboyard.bus.futures import Future
from roboyard.bus.graph import graph
from roboyard.bus.inputs import Input, Kind
from roboyard.bus.socket import frames, registry
from roboyard.bus.socket.outbox import Outbox
from roboyard.bus.topics import Topic
from roboyard.compute.wall_clock import wall_seconds
from roboyard.errors import InputError, MessageError, RoboyardError
from roboyard.messages import serialize

CLIENT_LIMIT = 64
_LAST_WORDS_SECONDS = 1.0


class _Client:
    """One connection."""

    def __init__(self, sock: socket.socket, number: int) -> None:
        self.sock = sock
        self.name = f"client{number}"
        self.topics: set[str] = set()
        self.nodes: set[str] = set()
        self.out = Outbox(sock, f"roboyard-{self.name}-out")

    def fail(self, number: Any, error: object) -> None:
        """Say that a question has no answer."""
        self.out.answer({"op": "error", "id": number, "error": str(error)})


class SocketServer:
    """Makes ``bus`` reachable for other processes of this user until ``close``.

    Args:
        bus: The run's bus.
        name: Under which the run is listed.

    Attributes:
        run: Its entry in the registry.
    """

    def __init__(self, bus: Bus, name: str) -> None:
        self.bus = bus
        self.run = registry.announce(name)
        self._clients: list[_Client] = []
        self._by_topic: dict[str, list[_Client]] = {}
        self._untap: Callable[[], None] | None = None
        self._count = 0
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(self.run.socket))
        self.run.socket.chmod(0o600)
        self._listener.listen()
        Thread(target=self._accept_forever, name="roboyard-socket", daemon=True).start()

    # -- threads ---------------------------------------------------------------------------------------------------
    def _accept_forever(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            if len(self._clients) >= CLIENT_LIMIT:
                with suppress(OSError):
                    frames.send(sock, {"op": "error", "error": f"{CLIENT_LIMIT} others are connected already"})
                sock.close()
                continue
            self._count += 1
            client = _Client(sock, self._count)
            self._clients.append(client)
            client.out.answer({"op": "hello", "name": self.run.name, "pid": self.run.pid, "client": client.name})
            Thread(target=self._read_forever, args=(client,), name=f"roboyard-{client.name}", daemon=True).start()

    def _read_forever(self, client: _Client) -> None:
        reader = frames.FrameReader(client.sock)
        try:
            while (frame := reader.receive()) is not None:
                self._take(client, *frame)
            client.out.close()
        except MessageError as error:  # where the next frame begins cannot be known: say so and let the client go
            client.fail(None, error)
            client.out.finish()
            client.out.join(_LAST_WORDS_SECONDS)
        except OSError:
            client.out.close()
        finally:
            client.sock.close()
            self.bus.inputs.query(lambda: self._forget(client))

    def _take(self, client: _Client, header: dict[str, Any], payload: bytes) -> None:
        operation, number = header["op"], header.get("id")
        source = str(header.get("source") or client.name)
        inputs = self.bus.inputs
        try:
            if operation == "publish":
                kind: Kind = "latch" if header.get("latched") else "publish"
                inputs.push(Input(kind, str(header["topic"]), str(header["type"]), source, payload))
            elif operation == "call":
                item = Input(
                    "call", str(header["service"]), str(header["type"]), source, payload,
                    reply=lambda future: self._answer(client, number, future),
                )  # fmt: skip
                if not inputs.push(item):
                    raise InputError("the run has too many inputs waiting", valid="ask again later")
            elif operation == "subscribe":
                inputs.query(lambda: self._subscribe(client, str(header["topic"])))
            elif operation == "unsubscribe":
                inputs.query(lambda: self._unsubscribe(client, str(header["topic"])))
            elif operation == "graph":
                inputs.query(lambda: self._graph(client, number))
            elif operation == "join":
                inputs.query(lambda: self._join(client, number, str(header.get("node", ""))))
            elif operation == "leave":
                inputs.query(lambda: self._leave(client, number))
            elif operation == "control":
                inputs.query(lambda: self._control(client, number, header))
            else:
                raise InputError(f"unknown operation '{operation}'")
        except KeyError as error:
            client.fail(number, f"'{operation}' lacks {error}")
        except InputError as error:
            client.fail(number, error)

    # -- on the executor's thread ----------------------------------------------------------------------------------
    def _graph(self, client: _Client, number: Any) -> None:
        client.out.answer({"op": "graph", "id": number, "graph": graph(self.bus).to_dict()})

    def _join(self, client: _Client, number: Any, node: str) -> None:
        """Let a node of another process take part under its name, if nobody else has it."""
        if node in self.bus.nodes or any(node in other.nodes for other in self._clients):
            client.fail(number, f"a node {node} takes part in the run already (another name or namespace)")
            return
        client.nodes.add(node)
        self._done(client, number)

    def _leave(self, client: _Client, number: Any) -> None:
        client.nodes.clear()
        self._done(client, number)

    def _subscribe(self, client: _Client, name: str) -> None:
        if name in client.topics or client.out.closed:
            return
        client.topics.add(name)
        self._by_topic.setdefault(name, []).append(client)
        if self._untap is None:
            self._untap = self.bus.tap(self._tap)
        topic = self.bus.topics.get(name)
        for publisher in topic.publishers if topic else ():
            if publisher.last is not None and topic is not None:
                self._post([client], topic, publisher.last, publisher.node, topic.last_ns)

    def _unsubscribe(self, client: _Client, name: str) -> None:
        client.topics.discard(name)
        remaining = [other for other in self._by_topic.get(name, ()) if other is not client]
        if remaining:
            self._by_topic[name] = remaining
        else:
            self._by_topic.pop(name, None)
        if not self._by_topic and self._untap is not None:
            self._untap()
            self._untap = None

    def _forget(self, client: _Client) -> None:
        for name in sorted(client.topics):
            self._unsubscribe(client, name)
        if client in self._clients:
            self._clients.remove(client)

    def _tap(self, topic: Topic, message: Any, node: str, time_ns: int) -> None:
        clients = self._by_topic.get(topic.name)
        if clients:
            self._post(clients, topic, message, node, time_ns)

    def _post(self, clients: list[_Client], topic: Topic, message: Any, node: str, time_ns: int) -> None:
        header = {"op": "message", "topic": topic.name, "type": topic.type_name, "source": node, "time": time_ns}
        if topic.latched:
            header["latched"] = True
        payload = serialize(message)
        for client in clients:
            client.out.message(header, payload)

    def _answer(self, client: _Client, number: Any, future: Future) -> None:
        def send(done: Future) -> None:
            try:
                payload = serialize(done.result)  # a response that is none is its caller's to know, not the run's end
            except RoboyardError as error:
                client.fail(number, error)
            else:
                client.out.answer({"op": "response", "id": number, "time": self.bus.now_ns}, payload)

        future.then(send)

    def _control(self, client: _Client, number: Any, header: dict[str, Any]) -> None:
        executor, action = self.bus.executor, header.get("do")
        before = executor.pacer.factor
        try:
            if action == "pause":
                executor.paused = True
            elif action == "resume":
                executor.paused = False
            elif action == "stop":
                executor.stop()
            elif action == "rate":
                executor.pacer.factor = _rate(header.get("rate"))
            elif action == "step":
                self._step(*_steps(header), lambda: self._done(client, number))
                return
            else:
                raise InputError(f"unknown control '{action}'", valid="pause, resume, step, stop, rate")
        except RoboyardError as error:
            client.fail(number, error)
            return
        self._done(client, number, before=before)

    def _done(self, client: _Client, number: Any, **more: Any) -> None:
        executor = self.bus.executor
        client.out.answer({"op": "done", "id": number, "time": executor.now_ns, "paused": executor.paused, **more})

    def _step(self, instants: int, span_ns: int, then: Callable[[], None]) -> None:
        """Run ``span_ns``, or else the next ``instants`` that have events, then pause and say so."""
        executor = self.bus.executor
        left = instants

        def arrive() -> None:
            nonlocal left
            left -= 1
            following = None if span_ns or left <= 0 else executor.next_time_ns()
            if following is not None:
                executor.at(following, arrive, LAST)
                return
            executor.paused = True
            then()

        first = executor.now_ns + span_ns if span_ns else executor.next_time_ns()
        executor.at(executor.now_ns if first is None else first, arrive, LAST)
        executor.paused = False

    def close(self) -> None:
        """Let all clients go, once they have what was said so far, and leave the registry."""
        registry.withdraw(self.run)
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        clients, deadline = list(self._clients), wall_seconds() + _LAST_WORDS_SECONDS
        for client in clients:
            client.out.finish()
        for client in clients:
            client.out.join(max(deadline - wall_seconds(), 0.0))
        if self._untap is not None:
            self._untap()
            self._untap = None


def _steps(header: dict[str, Any]) -> tuple[int, int]:
    """How many instants, or else how many nanoseconds, a step is."""
    count, span = header.get("count", 1), header.get("seconds", 0.0)
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= 1_000_000:
        raise InputError(f"{count!r} steps", valid="1 to 1,000,000")
    if not isinstance(span, (int, float)) or isinstance(span, bool) or not 0.0 <= span <= 1e6:
        raise InputError(f"a step of {span!r} s", valid="0 to 1e6")
    return count, round(span * 1e9)


def _rate(value: Any) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise InputError(f"rate {value!r}", valid="a number")
    return float(value)
