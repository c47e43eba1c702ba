"""A node of ours as ROS 1 sees it: one port that answers XML-RPC, subscribers and callers of services."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from roboyard.bridges.gateway import Gateway
from roboyard.bridges.loop import Loop, Outlet
from roboyard.bridges.ros1.channels import LOST, Outgoing
from roboyard.bridges.ros1.wire import MESSAGE_LIMIT, PATIENCE, encode_header, frame, read_frame, read_header
from roboyard.bridges.ros1.xmlrpc import serve
from roboyard.errors import MessageError

if TYPE_CHECKING:
    from roboyard.bridges.ros1.services import Offered

_NO, _YES = -1, 1
_PEERS: Final = 200


class Station:
    """One node.

    Args:
        name: Of the node in ROS 1.
        source: Of the node on the bus.
        host: Address that it listens on, and that others are told.
        master: URI of the master, for who asks.
        loop: Where its connections live.
        gateway: The bus.
        publishers_changed: Called with this node's name, a topic, and the URIs of all who publish it.
        parameter_changed: Called with this node's name, a parameter's key, and its value.

    Attributes:
        uri: Where it answers.
        publishes: What it publishes, by topic.
        subscribes: What it listens to.
        serves: Its services by name.
    """

    def __init__(
        self,
        name: str,
        source: str,
        host: str,
        master: str,
        loop: Loop,
        gateway: Gateway,
        publishers_changed: Callable[[str, str, list[str]], None],
        parameter_changed: Callable[[str, str, Any], None],
    ) -> None:
        self.name = name
        self.source = source
        self.uri = ""
        self.port = 0
        self.publishes: dict[str, Outgoing] = {}
        self.subscribes: dict[str, str] = {}
        self.serves: dict[str, Offered] = {}
        self._host = host
        self._master = master
        self._loop = loop
        self._gateway = gateway
        self._publishers_changed = publishers_changed
        self._parameter_changed = parameter_changed
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    async def open(self) -> None:
        """Begin to listen. Raises OSError."""
        self._server = await asyncio.start_server(self._accept, self._host, 0)
        self.port = self._server.sockets[0].getsockname()[1]
        self.uri = f"http://{self._host}:{self.port}/"

    async def close(self) -> None:
        """Let everybody go."""
        if self._server is not None:
            self._server.close()
        for writer in list(self._writers):
            writer.close()

    # -- connections -----------------------------------------------------------------------------------------------
    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._writers) >= _PEERS:
            self._gateway.complain("refused", f"{self.name}: {_PEERS} are connected already")
            writer.close()
            return
        self._writers.add(writer)
        try:
            async with asyncio.timeout(PATIENCE):
                first = await reader.readexactly(4)
            if first.isalpha():  # a length of a header never reads so
                await serve(reader, writer, first, self._answer)
            else:
                await self._tcpros(reader, writer, first)
        except MessageError as error:
            self._gateway.complain("malformed", f"{self.name}, a peer: {error}")
        except LOST:
            self._gateway.count("connections ended")
        except asyncio.CancelledError:
            pass  # the bridge closes; asyncio would print it
        finally:
            self._writers.discard(writer)
            writer.close()
            with suppress(*LOST):
                await writer.wait_closed()

    async def _tcpros(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, first: bytes) -> None:
        header = await read_header(reader, first)
        if "service" in header:
            await self._serve(reader, writer, header)
            return
        outgoing = self.publishes.get(header.get("topic", ""))
        if outgoing is None:
            await _refuse(writer, f"{self.name} does not publish {header.get('topic', '')[:200]}")
            return
        kind = outgoing.kind
        if header.get("md5sum") not in (kind.md5, "*") or header.get("type", "*") not in (kind.name, "*"):
            await _refuse(writer, f"{outgoing.name} is {kind.name} [{kind.md5}]")
            raise MessageError(
                f"{header.get('callerid', 'somebody')[:80]} wants {outgoing.name} as "
                f"{header.get('type', '?')[:80]} with md5 {header.get('md5sum', '?')[:40]}",
                valid=f"{kind.name} with {kind.md5}",
            )
        fields = {
            "callerid": self.name, "topic": outgoing.name, "type": kind.name, "md5sum": kind.md5,
            "latching": "1" if outgoing.latched else "0", "message_definition": kind.definition,
        }  # fmt: skip
        writer.write(encode_header(fields))
        outlet = Outlet(self._loop, writer, lambda: self._gateway.count("not read"))
        self._gateway.ask(lambda: outgoing.opened(self.source, outlet))
        try:
            while await reader.read(4096):
                pass  # a subscriber has nothing to say
        finally:
            outlet.close()
            self._gateway.ask(lambda: outgoing.closed(self.source, outlet))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, header: dict[str, str]) -> None:
        offered = self.serves.get(header["service"])
        if offered is None:
            await _refuse(writer, f"{self.name} does not serve {header['service'][:200]}")
            return
        kind = offered.kind
        if header.get("md5sum") not in (kind.md5, "*"):
            await _refuse(writer, f"{offered.name} is {kind.name} [{kind.md5}]")
            raise MessageError(
                f"{header.get('callerid', 'somebody')[:80]} calls {offered.name} with md5 "
                f"{header.get('md5sum', '?')[:40]}",
                valid=f"{kind.name} with {kind.md5}",
            )
        fields = {
            "callerid": self.name, "type": kind.name, "md5sum": kind.md5, "request_type": f"{kind.name}Request",
            "response_type": f"{kind.name}Response",
        }  # fmt: skip
        writer.write(encode_header(fields))
        await writer.drain()
        if header.get("probe") == "1":
            return
        source = header.get("callerid") or "ros1"
        while True:
            request = await read_frame(reader, MESSAGE_LIMIT, f"a request of {offered.name}")
            good, answer = await offered.answer(request, source)
            writer.write((b"\x01" if good else b"\x00") + frame(answer))
            await writer.drain()
            if header.get("persistent") != "1":
                return

    # -- XML-RPC ---------------------------------------------------------------------------------------------------
    async def _answer(self, method: str, arguments: tuple[Any, ...]) -> tuple[int, str, Any]:
        answer = _METHODS.get(method)
        if answer is None:
            return _NO, f"there is no method {method[:80]}", 0
        try:
            return _YES, "", await answer(self, *arguments[1:])
        except (TypeError, ValueError, LookupError, MessageError) as error:
            self._gateway.complain("malformed", f"{self.name}, call of {method[:80]}: {error}")
            return _NO, str(error), 0

    async def _publisher_update(self, topic: str, uris: list[str]) -> int:
        if topic in self.subscribes and isinstance(uris, list):
            self._publishers_changed(self.name, topic, [str(uri) for uri in uris])
        return 0

    async def _param_update(self, key: str, value: Any) -> int:
        self._parameter_changed(self.name, str(key), value)
        return 0

    async def _request_topic(self, topic: str, protocols: list[Any]) -> list[Any]:
        if topic not in self.publishes:
            raise MessageError(f"{self.name} does not publish {str(topic)[:200]}")
        if not any(isinstance(item, list) and item and item[0] == "TCPROS" for item in protocols):
            raise MessageError("no protocol that is spoken here", valid="TCPROS")
        return ["TCPROS", self._host, self.port]

    async def _pid(self) -> int:
        return os.getpid()

    async def _master_uri(self) -> str:
        return self._master

    async def _subscriptions(self) -> list[list[str]]:
        return [[topic, kind] for topic, kind in self.subscribes.items()]

    async def _publications(self) -> list[list[str]]:
        return [[topic, outgoing.kind.name] for topic, outgoing in self.publishes.items()]

    async def _bus_info(self) -> list[Any]:
        return [
            [number, "?", "o", "TCPROS", topic, True]
            for number, topic in enumerate(topic for topic, out in self.publishes.items() if self.source in out.outlets)
        ]

    async def _bus_stats(self) -> list[Any]:
        return [[], [], []]

    async def _shutdown(self, reason: str = "") -> int:
        self._gateway.complain(
            "refused", f"{self.name}: a shutdown was asked for ({str(reason)[:80]}); the run goes on"
        )
        return 0


_METHODS: dict[str, Callable[..., Awaitable[Any]]] = {
    "publisherUpdate": Station._publisher_update,
    "paramUpdate": Station._param_update,
    "requestTopic": Station._request_topic,
    "getPid": Station._pid,
    "getMasterUri": Station._master_uri,
    "getSubscriptions": Station._subscriptions,
    "getPublications": Station._publications,
    "getBusInfo": Station._bus_info,
    "getBusStats": Station._bus_stats,
    "shutdown": Station._shutdown,
}


async def _refuse(writer: asyncio.StreamWriter, why: str) -> None:
    writer.write(encode_header({"error": why}))
    with suppress(*LOST):
        await writer.drain()
