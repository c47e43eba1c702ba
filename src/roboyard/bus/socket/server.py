"""Server of the local socket, inside the run.

Reader threads only queue inputs for the bus; all access to the bus is on the executor's thread.  A client that does not
read fast enough loses its oldest messages and never slows the run down.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Any

from roboyard.bus.bus import Bus
from roboyard.bus.executor import LAST
from roboyard.bus.external_inputs import ExternalInput, InputOperation
from roboyard.bus.graph import graph
from roboyard.bus.services import Future
from roboyard.bus.socket import protocol, registry
from roboyard.bus.socket.protocol import SendQueue
from roboyard.bus.topics import Topic
from roboyard.compute.wall_clock import wall_seconds
from roboyard.errors import InputError, MessageError, RoboyardError
from roboyard.messages import serialize

MAX_CLIENTS = 64
_CLOSE_TIMEOUT = 1.0


class _SocketClient:
    """Connection of one client."""

    def __init__(self, sock: socket.socket, number: int) -> None:
        self.sock = sock
        self.name = f"client{number}"
        self.topics: set[str] = set()
        self.nodes: set[str] = set()
        self.send_queue = SendQueue(sock, f"roboyard-{self.name}-out")

    def send_error(self, call_id: Any, error: object) -> None:
        """Send an error as the response to a request."""
        self.send_queue.put_response({"op": "error", "id": call_id, "error": str(error)})


class SocketServer:
    """Makes a bus reachable for other processes of this user until `close`.

    Args:
        bus: The run's bus.
        name: Name of the run in the registry.

    Attributes:
        run: Entry of the run in the registry.
    """

    def __init__(self, bus: Bus, name: str) -> None:
        self.bus = bus
        self.run = registry.register_run(name)
        self._clients: list[_SocketClient] = []
        self._clients_by_topic: dict[str, list[_SocketClient]] = {}
        self._remove_observer: Callable[[], None] | None = None
        self._client_count = 0
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(self.run.socket))
        self.run.socket.chmod(0o600)
        self._listener.listen()
        Thread(target=self._accept_forever, name="roboyard-socket", daemon=True).start()

    # -- threads -------------------------------------------------------------------------------------------------------
    def _accept_forever(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            if len(self._clients) >= MAX_CLIENTS:
                with suppress(OSError):
                    protocol.write_packet(
                        sock, {"op": "error", "error": f"{MAX_CLIENTS} clients are connected already"}
                    )
                sock.close()
                continue
            self._client_count += 1
            client = _SocketClient(sock, self._client_count)
            self._clients.append(client)
            client.send_queue.put_response(
                {"op": "hello", "name": self.run.name, "pid": self.run.pid, "client": client.name}
            )
            Thread(target=self._read_forever, args=(client,), name=f"roboyard-{client.name}", daemon=True).start()

    def _read_forever(self, client: _SocketClient) -> None:
        reader = protocol.SocketPacketReader(client.sock)
        try:
            while (packet := reader.read()) is not None:
                self._handle_packet(client, *packet)
            client.send_queue.close()
        except MessageError as error:  # the start of the next packet is unknown: report the error and disconnect
            client.send_error(None, error)
            client.send_queue.close_after_send()
            client.send_queue.wait_sent(_CLOSE_TIMEOUT)
        except OSError:
            client.send_queue.close()
        finally:
            client.sock.close()
            self.bus.inputs.run_on_executor(lambda: self._remove_client(client))

    def _handle_packet(self, client: _SocketClient, header: dict[str, Any], payload: bytes) -> None:
        operation, call_id = header["op"], header.get("id")
        source = str(header.get("source") or client.name)
        inputs = self.bus.inputs
        try:
            if operation == "publish":
                input_operation: InputOperation = "latch" if header.get("latched") else "publish"
                inputs.put(ExternalInput(input_operation, str(header["topic"]), str(header["type"]), source, payload))
            elif operation == "call":
                item = ExternalInput(
                    "call", str(header["service"]), str(header["type"]), source, payload,
                    reply=lambda future: self._send_response(client, call_id, future),
                )  # fmt: skip
                if not inputs.put(item):
                    raise InputError("too many pending inputs", valid="retry later")
            elif operation == "subscribe":
                inputs.run_on_executor(lambda: self._subscribe(client, str(header["topic"])))
            elif operation == "unsubscribe":
                inputs.run_on_executor(lambda: self._unsubscribe(client, str(header["topic"])))
            elif operation == "graph":
                inputs.run_on_executor(lambda: self._send_graph(client, call_id))
            elif operation == "reserve_node_name":
                inputs.run_on_executor(lambda: self._reserve_node_name(client, call_id, str(header.get("node", ""))))
            elif operation == "release_node_names":
                inputs.run_on_executor(lambda: self._release_node_names(client, call_id))
            elif operation == "control":
                inputs.run_on_executor(lambda: self._control(client, call_id, header))
            else:
                raise InputError(f"unknown operation '{operation}'")
        except KeyError as error:
            client.send_error(call_id, f"operation '{operation}' requires {error}")
        except InputError as error:
            client.send_error(call_id, error)

    # -- on the executor's thread --------------------------------------------------------------------------------------
    def _send_graph(self, client: _SocketClient, call_id: Any) -> None:
        client.send_queue.put_response({"op": "graph", "id": call_id, "graph": graph(self.bus).to_dict()})

    def _reserve_node_name(self, client: _SocketClient, call_id: Any, node: str) -> None:
        """Reserve the name of a node of another process, if it is free."""
        if node in self.bus.nodes or any(node in other.nodes for other in self._clients):
            client.send_error(call_id, f"node name {node} is already in use in the run (another name or namespace)")
            return
        client.nodes.add(node)
        self._send_done(client, call_id)

    def _release_node_names(self, client: _SocketClient, call_id: Any) -> None:
        client.nodes.clear()
        self._send_done(client, call_id)

    def _subscribe(self, client: _SocketClient, name: str) -> None:
        if name in client.topics or client.send_queue.closed:
            return
        client.topics.add(name)
        self._clients_by_topic.setdefault(name, []).append(client)
        if self._remove_observer is None:
            self._remove_observer = self.bus.add_message_observer(self._on_message)
        topic = self.bus.topics.get(name)
        for publisher in topic.publishers if topic else ():
            if publisher.last is not None and topic is not None:
                self._send_to([client], topic, publisher.last, publisher.node, topic.last_ns)

    def _unsubscribe(self, client: _SocketClient, name: str) -> None:
        client.topics.discard(name)
        remaining = [other for other in self._clients_by_topic.get(name, ()) if other is not client]
        if remaining:
            self._clients_by_topic[name] = remaining
        else:
            self._clients_by_topic.pop(name, None)
        if not self._clients_by_topic and self._remove_observer is not None:
            self._remove_observer()
            self._remove_observer = None

    def _remove_client(self, client: _SocketClient) -> None:
        for name in sorted(client.topics):
            self._unsubscribe(client, name)
        if client in self._clients:
            self._clients.remove(client)

    def _on_message(self, topic: Topic, message: Any, node: str, time_ns: int) -> None:
        clients = self._clients_by_topic.get(topic.name)
        if clients:
            self._send_to(clients, topic, message, node, time_ns)

    def _send_to(self, clients: list[_SocketClient], topic: Topic, message: Any, node: str, time_ns: int) -> None:
        header = {"op": "message", "topic": topic.name, "type": topic.type_name, "source": node, "time": time_ns}
        if topic.latched:
            header["latched"] = True
        payload = serialize(message)
        for client in clients:
            client.send_queue.put_message(header, payload)

    def _send_response(self, client: _SocketClient, call_id: Any, future: Future) -> None:
        def send(finished_future: Future) -> None:
            try:
                payload = serialize(
                    finished_future.result
                )  # an invalid response is reported to the caller and does not end the run
            except RoboyardError as error:
                client.send_error(call_id, error)
            else:
                client.send_queue.put_response({"op": "response", "id": call_id, "time": self.bus.now_ns}, payload)

        future.add_done_callback(send)

    def _control(self, client: _SocketClient, call_id: Any, header: dict[str, Any]) -> None:
        executor, action = self.bus.executor, header.get("action")
        previous_factor = executor.pacer.real_time_factor
        try:
            if action == "pause":
                executor.paused = True
            elif action == "resume":
                executor.paused = False
            elif action == "stop":
                executor.stop()
            elif action == "rate":
                executor.pacer.real_time_factor = _parse_rate(header.get("rate"))
            elif action == "step":
                self._step(*_parse_step(header), lambda: self._send_done(client, call_id))
                return
            else:
                raise InputError(f"unknown control '{action}'", valid="pause, resume, step, stop, rate")
        except RoboyardError as error:
            client.send_error(call_id, error)
            return
        self._send_done(client, call_id, previous_rate=previous_factor)

    def _send_done(self, client: _SocketClient, call_id: Any, **values: Any) -> None:
        executor = self.bus.executor
        client.send_queue.put_response(
            {"op": "done", "id": call_id, "time": executor.now_ns, "paused": executor.paused, **values}
        )

    def _step(self, instants: int, span_ns: int, on_done: Callable[[], None]) -> None:
        """Run for `span_ns`, or else the next `instants` times with events; then pause and call `on_done`."""
        executor = self.bus.executor
        remaining = instants

        def step_instant() -> None:
            nonlocal remaining
            remaining -= 1
            next_ns = None if span_ns or remaining <= 0 else executor.next_event_time_ns()
            if next_ns is not None:
                executor.schedule(next_ns, step_instant, LAST)
                return
            executor.paused = True
            on_done()

        first_ns = executor.now_ns + span_ns if span_ns else executor.next_event_time_ns()
        executor.schedule(executor.now_ns if first_ns is None else first_ns, step_instant, LAST)
        executor.paused = False

    def close(self) -> None:
        """Disconnect all clients after their queued packets are sent, and remove the run from the registry."""
        registry.unregister_run(self.run)
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        clients, deadline = list(self._clients), wall_seconds() + _CLOSE_TIMEOUT
        for client in clients:
            client.send_queue.close_after_send()
        for client in clients:
            client.send_queue.wait_sent(max(deadline - wall_seconds(), 0.0))
        if self._remove_observer is not None:
            self._remove_observer()
            self._remove_observer = None


def _parse_step(header: dict[str, Any]) -> tuple[int, int]:
    """Parse the number of times with events, or else the duration [ns], of a step."""
    count, span = header.get("count", 1), header.get("seconds", 0.0)
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= 1_000_000:
        raise InputError(f"invalid number of steps {count!r}", valid="1 to 1,000,000")
    if not isinstance(span, (int, float)) or isinstance(span, bool) or not 0.0 <= span <= 1e6:
        raise InputError(f"invalid step duration {span!r} s", valid="0 to 1e6")
    return count, round(span * 1e9)


def _parse_rate(value: Any) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise InputError(f"invalid rate {value!r}", valid="a number")
    return float(value)
