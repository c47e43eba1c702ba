"""Topics on ROS 1's side: what we publish to foreign subscribers, and what foreign publishers send us."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final

from roboyard.bridges.gateway import Gateway
from roboyard.bridges.loop import Loop, Outlet
from roboyard.bridges.ros1.types import Ros1Type
from roboyard.bridges.ros1.wire import MESSAGE_LIMIT, encode_header, frame, read_frame, read_header
from roboyard.bridges.ros1.xmlrpc import MasterError, call
from roboyard.errors import InputError, MessageError

Take = Callable[[bytes, str, bool], bool | None]
"""Gets a message's bytes, the name of the foreign node, and whether the message is latched there; False: too many."""

LOST: Final = (OSError, TimeoutError, asyncio.IncompleteReadError)
"""How connections end."""
_FIRST_WAIT, _LONGEST_WAIT = 0.2, 5.0
_BREATH: Final = 0.001


class Outgoing:
    """A topic that nodes of ours publish.

    Args:
        name: The topic.
        kind: Its type in ROS 1.
        latched: Whether new subscribers get the last message.

    Attributes:
        outlets: Subscribers' connections, by the node of ours that they are connected to.
    """

    def __init__(self, name: str, kind: Ros1Type, *, latched: bool) -> None:
        self.name = name
        self.kind = kind
        self.latched = latched
        self.outlets: dict[str, list[Outlet]] = {}

    def opened(self, node: str, outlet: Outlet) -> None:
        """A subscriber has come; on the executor's thread."""
        self.outlets.setdefault(node, []).append(outlet)

    def closed(self, node: str, outlet: Outlet) -> None:
        """A subscriber has gone; on the executor's thread."""
        outlets = self.outlets.get(node, [])
        if outlet in outlets:
            outlets.remove(outlet)
        if not outlets:
            self.outlets.pop(node, None)

    def send(self, node: str, data: bytes) -> int:
        """Send a message's bytes in the name of ``node``; gives to how many."""
        outlets = self.outlets.get(node)
        if not outlets:
            return 0
        framed = frame(data)
        for outlet in outlets:
            outlet.send(framed)
        return len(outlets)


class BusTopic(Outgoing):
    """A topic of the bus, shown in ROS 1.

    Args:
        name: The topic.
        kind: Its type in ROS 1.
        latched: Whether new subscribers get the last message.
        gateway: The bus.
    """

    def __init__(self, name: str, kind: Ros1Type, *, latched: bool, gateway: Gateway) -> None:
        super().__init__(name, kind, latched=latched)
        self._gateway = gateway

    def opened(self, node: str, outlet: Outlet) -> None:
        """A subscriber has come: it gets what is latched, and all that is said from now on."""
        if not self.outlets:
            self._gateway.listen(self.name, self._heard)
        super().opened(node, outlet)
        for message, source, _ in self._gateway.latched(self.name):
            if station_name(source) == node and (data := self._encode(message)) is not None:
                outlet.send(frame(data))

    def closed(self, node: str, outlet: Outlet) -> None:
        """A subscriber has gone."""
        super().closed(node, outlet)
        if not self.outlets:
            self._gateway.forget(self.name, self._heard)

    def _heard(self, message: Any, node: str, time_ns: int) -> None:
        node = station_name(node)
        if node in self.outlets and (data := self._encode(message)) is not None:
            self._gateway.count("sent", self.send(node, data))

    def _encode(self, message: Any) -> bytes | None:
        try:
            return self.kind.encode(message)
        except MessageError as error:
            self._gateway.complain("not sent", f"{self.name}: {error}")
            return None


class ClockTopic(Outgoing):
    """Simulated time, which new subscribers get at once: a run that pauses would leave them at zero.

    Args:
        name: The topic.
        kind: Its type in ROS 1.
        gateway: The bus.
    """

    def __init__(self, name: str, kind: Ros1Type, *, gateway: Gateway) -> None:
        super().__init__(name, kind, latched=False)
        self._gateway = gateway

    def opened(self, node: str, outlet: Outlet) -> None:
        """A subscriber has come; on the executor's thread."""
        super().opened(node, outlet)
        outlet.send(frame(encode_time(self._gateway.bus.now_ns)))


def encode_time(time_ns: int) -> bytes:
    """As a ``rosgraph_msgs/Clock`` of ROS 1."""
    return struct.pack("<II", *divmod(time_ns, 1_000_000_000))


def station_name(source: str) -> str:
    """Name in ROS 1 of who publishes on the bus: what is not a node there has no slash in front."""
    return source if source.startswith("/") else f"/{source}"


class Incoming:
    """A topic whose foreign publishers we listen to.

    Args:
        name: The topic.
        kind: Its type in ROS 1.
        caller: The node of ours that listens.
        take: Gets the messages, on the loop's thread.
        loop: Where the connections live.
        gateway: For counts and complaints.

    Attributes:
        sources: Names of the foreign nodes whose messages come in now, by their addresses.
    """

    def __init__(self, name: str, kind: Ros1Type, caller: str, take: Take, loop: Loop, gateway: Gateway) -> None:
        self.name = name
        self.sources: dict[str, str] = {}
        self.kind = kind
        self._caller = caller
        self._take = take
        self._loop = loop
        self._gateway = gateway
        self._following: dict[str, asyncio.Task[Any]] = {}
        self._told: dict[str, set[str]] = {}

    def update(self, node: str, uris: Iterable[str], *, more: bool = False) -> None:
        """Listen to who publishes; on the loop's thread.

        Args:
            node: Which of our nodes was told: another may have been told something older, but later.
            uris: The publishers.
            more: They are not all: what comes back from registering may be older than what was told meanwhile.
        """
        self._told[node] = set(uris) | (self._told.get(node, set()) if more else set())
        self._follow_these(set().union(*self._told.values()))

    def _follow_these(self, wanted: set[str]) -> None:
        for uri in [uri for uri in self._following if uri not in wanted]:
            self._following.pop(uri).cancel()
        for uri in sorted(wanted - self._following.keys()):
            self._following[uri] = self._loop.begin(self._follow(uri))

    async def _follow(self, uri: str) -> None:
        """Listen to one publisher until told otherwise; what fails is tried again, less and less often."""
        wait = _FIRST_WAIT
        while True:
            try:
                wait = await self._connect(uri, wait)
            except MessageError as error:
                self._gateway.complain("malformed", f"{self.name}, publisher at {uri}: {error}")
            except (MasterError, InputError) as error:
                self._gateway.complain("unreachable", f"{self.name}: {error}")
            except LOST:
                self._gateway.count("connections lost")
            await asyncio.sleep(wait)
            wait = min(wait * 2.0, _LONGEST_WAIT)

    async def _connect(self, uri: str, wait: float) -> float:
        protocol = await call(uri, "requestTopic", self._caller, self.name, [["TCPROS"]])
        match protocol:
            case ["TCPROS", str(host), int(port)] if 0 < port < 65536:
                reader, writer = await asyncio.open_connection(host, port)
            case _:
                raise MasterError(f"{uri} offers {str(protocol)[:80]} for {self.name}", valid="TCPROS")
        try:
            kind = self.kind
            fields = {
                "callerid": self._caller, "topic": self.name, "type": kind.name, "md5sum": kind.md5, "tcp_nodelay": "1",
                "message_definition": kind.definition,
            }  # fmt: skip
            writer.write(encode_header(fields))
            answer = await read_header(reader)
            self._check(answer)
            source = self.sources[uri] = answer.get("callerid", uri)
            await self._receive(reader, source, answer.get("latching") == "1")
        finally:
            self.sources.pop(uri, None)
            writer.close()
            with suppress(*LOST):
                await writer.wait_closed()
        return _FIRST_WAIT

    def _check(self, answer: dict[str, str]) -> None:
        if "error" in answer:
            raise MessageError(f"it refuses: {answer['error'][:200]}")
        if answer.get("md5sum") not in (self.kind.md5, "*"):
            raise MessageError(
                f"it sends {answer.get('type', '?')[:80]} with md5 {answer.get('md5sum', '?')[:40]}",
                valid=f"{self.kind.name} with {self.kind.md5}",
            )

    async def _receive(self, reader: asyncio.StreamReader, source: str, latched: bool) -> None:
        while True:
            data = await read_frame(reader, MESSAGE_LIMIT, f"a message of {self.name}")
            try:
                if self._take(data, source, latched) is False:
                    await asyncio.sleep(_BREATH)  # the publisher waits, or drops itself
            except MessageError as error:
                self._gateway.complain("malformed", f"{self.name} from {source}: {error}")
            except InputError as error:
                self._gateway.complain("refused", f"{self.name} from {source}: {error}")

    def close(self) -> None:
        """Listen no more; on the loop's thread."""
        self._follow_these(set())
