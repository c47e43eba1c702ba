"""The asking end of the local socket: one connection to one live run."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from roboyard.bus.socket import frames, registry
from roboyard.bus.socket.registry import LiveRun
from roboyard.compute.wall_clock import wall_seconds
from roboyard.errors import MessageError, RunError
from roboyard.messages import deserialize, serialize, type_name

TIMEOUT = 10.0


@dataclass(frozen=True, slots=True)
class Received:
    """A message from the run; ``time_ns`` is simulated."""

    topic: str
    type: str
    source: str
    time_ns: int
    data: bytes
    latched: bool = False

    @property
    def message(self) -> Any:
        """The message itself."""
        return deserialize(self.data, self.type)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a call that was not waited for: ``data`` as CDR, or else ``error``."""

    number: int
    time_ns: int
    data: bytes
    error: str


def connect(name: str | None = None) -> Connection:
    """Connect to the live run ``name`` (its name or process id; None: the only one).

    Raises:
        InputError: there is no such run, or several to choose from.
        RunError: it does not answer.
    """
    return Connection(registry.find(name))


class Connection:
    """Blocking calls to a live run.  Use as a context manager.

    Attributes:
        name: What the run calls this connection; messages published without another source come from it.
        ended: The run was found to have ended while messages were read.
    """

    def __init__(self, run: LiveRun) -> None:
        self.run = run
        self._waiting: deque[Received | Answer] = deque()
        self._later: set[int] = set()
        self._number = 0
        self.ended = False
        self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._sock.settimeout(TIMEOUT)
            self._sock.connect(str(run.socket))
            self._reader = frames.FrameReader(self._sock)
            hello, _ = self._next(TIMEOUT)
        except OSError as error:
            self._sock.close()
            raise RunError(f"run '{run.name}' (pid {run.pid}) does not answer: {error}") from error
        except RunError:
            self._sock.close()
            raise
        if hello["op"] == "error":
            self._sock.close()
            raise RunError(str(hello.get("error")), where=f"run '{run.name}'")
        self.name = str(hello.get("client", ""))

    # -- topics ----------------------------------------------------------------------------------------------------
    def subscribe(self, topic: str) -> None:
        """Ask for the messages of a topic; read them with ``messages``."""
        self._send({"op": "subscribe", "topic": topic})

    def unsubscribe(self, topic: str) -> None:
        """Ask for them no more."""
        self._send({"op": "unsubscribe", "topic": topic})

    def messages(self, timeout: float | None = None) -> Iterator[Received]:
        """Messages of the subscribed topics as they come.

        Args:
            timeout: End after this much wall time without any message [s]; None waits for ever.
        """
        return (item for item in self.events(timeout) if isinstance(item, Received))

    def events(self, timeout: float | None = None) -> Iterator[Received | Answer]:
        """As ``messages``, with the answers to ``ask_later`` among them."""
        while True:
            if self._waiting:
                yield self._waiting.popleft()
                continue
            try:
                frame = self._next(timeout)
            except TimeoutError:
                return
            except RunError:
                self.ended = True
                return
            self._put_aside(*frame)

    def publish(self, topic: str, message: Any, source: str = "", *, latched: bool = False) -> None:
        """Publish a message into the run; ``latched``: for those who subscribe later too."""
        self.publish_raw(topic, type_name(type(message)), serialize(message), source, latched=latched)

    def publish_raw(self, topic: str, type_name: str, data: bytes, source: str = "", *, latched: bool = False) -> None:
        """Publish a message given as CDR."""
        header = {"op": "publish", "topic": topic, "type": type_name, "source": source or self.name}
        self._send(header | {"latched": True} if latched else header, data)

    # -- questions -------------------------------------------------------------------------------------------------
    def graph(self) -> dict[str, Any]:
        """The run's graph as plain data, see ``roboyard.bus.Graph``."""
        header, _ = self._ask({"op": "graph"})
        found: dict[str, Any] = header["graph"]
        return found

    def call(
        self, service: str, service_type: Any, request: Any, source: str = "", timeout: float | None = TIMEOUT
    ) -> Any:
        """Call a service and wait for its response, at most ``timeout`` seconds of wall time (None: for ever).

        Raises:
            RunError: nobody serves it, the server refused, or no answer came.
        """
        header = {"op": "call", "service": service, "type": service_type.name, "source": source or self.name}
        _, payload = self._ask(header, serialize(request), timeout)
        return deserialize(payload, f"{service_type.name}_Response")

    def ask_later(self, service: str, service_type: Any, request: Any, source: str = "") -> int:
        """Call a service without waiting; its answer comes among ``events`` under the number returned."""
        self._number += 1
        self._later.add(self._number)
        header = {"op": "call", "service": service, "type": service_type.name, "source": source or self.name}
        self._send({**header, "id": self._number}, serialize(request))
        return self._number

    def join(self, node: str) -> int:
        """Take a node's name in the run; returns the run's time [ns].

        Raises:
            RunError: somebody has it already.
        """
        header, _ = self._ask({"op": "join", "node": node})
        return int(header["time"])

    def leave(self) -> None:
        """Give back the names that were taken with ``join``.

        Raises:
            RunError: the run does not listen any more.
        """
        self._ask({"op": "leave"}, timeout=1.0)

    def control(self, action: str, **values: Any) -> dict[str, Any]:
        """Steer the run's clock; returns its time [ns], whether it is ``paused``, and its rate ``before``.

        Args:
            action: "pause", "resume", "stop", "rate" (``rate=``: simulated seconds per second, 0 for no limit), or
                "step" (``count=`` instants or ``seconds=`` of simulated time; the run is paused then).
            values: As named.

        Raises:
            RunError: the run refuses, or ends meanwhile.
        """
        timeout = None if action == "step" else TIMEOUT  # a step takes as long as it takes
        header, _ = self._ask({"op": "control", "do": action, **values}, timeout=timeout)
        return header

    # -- frames ----------------------------------------------------------------------------------------------------
    def _send(self, header: dict[str, Any], payload: bytes = b"") -> None:
        try:
            frames.send(self._sock, header, payload)
        except OSError as error:
            raise RunError(f"run '{self.run.name}' is gone: {error}") from error

    def _ask(
        self, header: dict[str, Any], payload: bytes = b"", timeout: float | None = TIMEOUT
    ) -> tuple[dict[str, Any], bytes]:
        self._number += 1
        self._send({**header, "id": self._number}, payload)
        deadline = None if timeout is None else wall_seconds() + timeout
        while True:
            try:
                answer, data = self._next(None if deadline is None else max(deadline - wall_seconds(), 0.001))
            except TimeoutError:
                raise RunError(f"run '{self.run.name}' did not answer within {timeout:g} s") from None
            if answer.get("id") != self._number or answer["op"] == "message":
                self._put_aside(answer, data)
            else:
                if answer["op"] == "error":
                    raise RunError(str(answer.get("error")), where=f"run '{self.run.name}'")
                return answer, data

    def _put_aside(self, header: dict[str, Any], payload: bytes) -> None:
        """Keep a message or an answer for ``events``; answers nobody waits for any more are dropped."""
        if header["op"] == "message":
            self._waiting.append(_received(header, payload))
        elif header.get("id") in self._later:
            self._later.discard(header["id"])
            error = str(header.get("error")) if header["op"] == "error" else ""
            self._waiting.append(Answer(header["id"], int(header.get("time", 0)), payload, error))

    def _next(self, timeout: float | None) -> tuple[dict[str, Any], bytes]:
        """The next frame.

        Raises:
            TimeoutError: none came in time.
            RunError: the run has ended, in order or not.
        """
        self._sock.settimeout(timeout)
        try:
            frame = self._reader.receive()
        except TimeoutError:
            raise
        except (OSError, MessageError) as error:
            raise RunError(f"run '{self.run.name}' is gone: {error}") from error
        if frame is None:
            raise RunError(f"run '{self.run.name}' has ended")
        return frame

    def close(self) -> None:
        """Hang up."""
        self._sock.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _received(header: dict[str, Any], payload: bytes) -> Received:
    return Received(
        header["topic"], header["type"], header["source"], int(header["time"]), payload, bool(header.get("latched"))
    )
