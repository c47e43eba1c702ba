"""Client of the local socket: a connection to a live run."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from roboyard.bus.socket import protocol, registry
from roboyard.bus.socket.registry import LiveRun
from roboyard.compute.wall_clock import wall_seconds
from roboyard.errors import MessageError, RunError
from roboyard.messages import deserialize, serialize, type_name

TIMEOUT = 10.0


@dataclass(frozen=True, slots=True)
class ReceivedMessage:
    """Message from the run; `time_ns` is simulated time."""

    topic: str
    type: str
    source: str
    time_ns: int
    data: bytes
    latched: bool = False

    @property
    def message(self) -> Any:
        """The decoded message."""
        return deserialize(self.data, self.type)


@dataclass(frozen=True, slots=True)
class ServiceResponse:
    """Response to an asynchronous service call: `data` as CDR, or else `error`."""

    call_id: int
    time_ns: int
    data: bytes
    error: str


def connect(name: str | None = None) -> RunConnection:
    """Connect to the live run `name` (its name or process id; None: the only one).

    Raises:
        InputError: The run does not exist, or the name is ambiguous.
        RunError: The run does not respond.
    """
    return RunConnection(registry.find_run(name))


class RunConnection:
    """Connection to a live run with blocking calls; a context manager.

    Attributes:
        name: Name of this connection in the run, the source of messages published without another source.
        has_ended: Whether the run was found to have ended while messages were read.
    """

    def __init__(self, run: LiveRun) -> None:
        self.run = run
        self._received_events: deque[ReceivedMessage | ServiceResponse] = deque()
        self._async_call_ids: set[int] = set()
        self._last_call_id = 0
        self.has_ended = False
        self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._sock.settimeout(TIMEOUT)
            self._sock.connect(str(run.socket))
            self._reader = protocol.SocketPacketReader(self._sock)
            hello, _ = self._read_packet(TIMEOUT)
        except OSError as error:
            self._sock.close()
            raise RunError(f"run '{run.name}' (pid {run.pid}) does not respond: {error}") from error
        except RunError:
            self._sock.close()
            raise
        if hello["op"] == "error":
            self._sock.close()
            raise RunError(str(hello.get("error")), location=f"run '{run.name}'")
        self.name = str(hello.get("client", ""))

    # -- topics --------------------------------------------------------------------------------------------------------
    def subscribe(self, topic: str) -> None:
        """Subscribe to a topic; read its messages with `messages`."""
        self._send({"op": "subscribe", "topic": topic})

    def unsubscribe(self, topic: str) -> None:
        """Unsubscribe from a topic."""
        self._send({"op": "unsubscribe", "topic": topic})

    def messages(self, timeout: float | None = None) -> Iterator[ReceivedMessage]:
        """Iterate over messages of the subscribed topics as they arrive.

        Args:
            timeout: Maximum wall time without a message [s]; None waits forever.
        """
        return (item for item in self.events(timeout) if isinstance(item, ReceivedMessage))

    def events(self, timeout: float | None = None) -> Iterator[ReceivedMessage | ServiceResponse]:
        """Iterate as `messages` does, including the responses to `call_async`."""
        while True:
            if self._received_events:
                yield self._received_events.popleft()
                continue
            try:
                packet = self._read_packet(timeout)
            except TimeoutError:
                return
            except RunError:
                self.has_ended = True
                return
            self._buffer_event(*packet)

    def publish(self, topic: str, message: Any, source: str = "", *, latched: bool = False) -> None:
        """Publish a message into the run; `latched` stores it for later subscribers."""
        self.publish_raw(topic, type_name(type(message)), serialize(message), source, latched=latched)

    def publish_raw(self, topic: str, type_name: str, data: bytes, source: str = "", *, latched: bool = False) -> None:
        """Publish a message given as CDR; `latched` stores it for later subscribers."""
        header = {"op": "publish", "topic": topic, "type": type_name, "source": source or self.name}
        self._send(header | {"latched": True} if latched else header, data)

    # -- requests ------------------------------------------------------------------------------------------------------
    def graph(self) -> dict[str, Any]:
        """Return the run's graph as plain data, see ``roboyard.bus.Graph``."""
        header, _ = self._request({"op": "graph"})
        graph_data: dict[str, Any] = header["graph"]
        return graph_data

    def call(
        self, service: str, service_type: Any, request: Any, source: str = "", timeout: float | None = TIMEOUT
    ) -> Any:
        """Call a service and wait for its response, at most `timeout` seconds of wall time (None: forever).

        Raises:
            RunError: The service has no server, the server rejected the request, or no response arrived in time.
        """
        header = {"op": "call", "service": service, "type": service_type.name, "source": source or self.name}
        _, payload = self._request(header, serialize(request), timeout)
        return deserialize(payload, f"{service_type.name}_Response")

    def call_async(self, service: str, service_type: Any, request: Any, source: str = "") -> int:
        """Call a service without waiting; `events` yields the response with the returned call id."""
        self._last_call_id += 1
        self._async_call_ids.add(self._last_call_id)
        header = {"op": "call", "service": service, "type": service_type.name, "source": source or self.name}
        self._send({**header, "id": self._last_call_id}, serialize(request))
        return self._last_call_id

    def reserve_node_name(self, node: str) -> int:
        """Reserve a node name in the run; return the run's time [ns].

        Raises:
            RunError: The name is in use.
        """
        header, _ = self._request({"op": "reserve_node_name", "node": node})
        return int(header["time"])

    def release_node_names(self) -> None:
        """Release the names reserved with `reserve_node_name`.

        Raises:
            RunError: The connection is lost.
        """
        self._request({"op": "release_node_names"}, timeout=1.0)

    def control(self, action: str, **values: Any) -> dict[str, Any]:
        """Control the run's clock; return its time [ns], whether it is ``paused``, and its ``previous_rate``.

        Args:
            action: "pause", "resume", "stop", "rate" (``rate=``: simulated seconds per second, 0 for no limit), or
                "step" (``count=`` times with events, or ``seconds=`` of simulated time; the run is paused then).
            values: Arguments of the action, as named above.

        Raises:
            RunError: The run rejects the action, or ends meanwhile.
        """
        timeout = None if action == "step" else TIMEOUT  # the duration of a step is not limited
        header, _ = self._request({"op": "control", "action": action, **values}, timeout=timeout)
        return header

    # -- packets -------------------------------------------------------------------------------------------------------
    def _send(self, header: dict[str, Any], payload: bytes = b"") -> None:
        try:
            protocol.write_packet(self._sock, header, payload)
        except OSError as error:
            raise RunError(f"lost connection to run '{self.run.name}': {error}") from error

    def _request(
        self, header: dict[str, Any], payload: bytes = b"", timeout: float | None = TIMEOUT
    ) -> tuple[dict[str, Any], bytes]:
        self._last_call_id += 1
        self._send({**header, "id": self._last_call_id}, payload)
        deadline = None if timeout is None else wall_seconds() + timeout
        while True:
            try:
                response, data = self._read_packet(None if deadline is None else max(deadline - wall_seconds(), 0.001))
            except TimeoutError:
                raise RunError(f"run '{self.run.name}' did not respond within {timeout:g} s") from None
            if response.get("id") != self._last_call_id or response["op"] == "message":
                self._buffer_event(response, data)
            else:
                if response["op"] == "error":
                    raise RunError(str(response.get("error")), location=f"run '{self.run.name}'")
                return response, data

    def _buffer_event(self, header: dict[str, Any], payload: bytes) -> None:
        """Store a message or a response for `events`; responses that are no longer expected are dropped."""
        if header["op"] == "message":
            self._received_events.append(_received_message(header, payload))
        elif header.get("id") in self._async_call_ids:
            self._async_call_ids.discard(header["id"])
            error = str(header.get("error")) if header["op"] == "error" else ""
            self._received_events.append(ServiceResponse(header["id"], int(header.get("time", 0)), payload, error))

    def _read_packet(self, timeout: float | None) -> tuple[dict[str, Any], bytes]:
        """Read the next packet.

        Raises:
            TimeoutError: No packet arrived in time.
            RunError: The run has ended, or the connection was lost.
        """
        self._sock.settimeout(timeout)
        try:
            packet = self._reader.read()
        except TimeoutError:
            raise
        except (OSError, MessageError) as error:
            raise RunError(f"lost connection to run '{self.run.name}': {error}") from error
        if packet is None:
            raise RunError(f"run '{self.run.name}' has ended")
        return packet

    def close(self) -> None:
        """Close the connection."""
        self._sock.close()

    def __enter__(self) -> RunConnection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _received_message(header: dict[str, Any], payload: bytes) -> ReceivedMessage:
    return ReceivedMessage(
        header["topic"], header["type"], header["source"], int(header["time"]), payload, bool(header.get("latched"))
    )
