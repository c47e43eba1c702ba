"""A run in Foxglove: a WebSocket server with ROS 2's schemas."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Collection
from typing import Any, Final

from roboyard.bridges.asking import ask, look
from roboyard.bridges.bridge import BridgeError
from roboyard.bridges.descriptions import Descriptions
from roboyard.bridges.foxglove import wire
from roboyard.bridges.foxglove.client import Client
from roboyard.bridges.gateway import Gateway, Seen
from roboyard.bridges.loop import Loop
from roboyard.bridges.parameters import like, request_of
from roboyard.bridges.values import from_json
from roboyard.bridges.web import Peer, PeerHandlers, WebServer, json_number
from roboyard.bridges.web_access import WebAccess
from roboyard.bus import Bus
from roboyard.errors import InputError, MessageError, RoboyardError
from roboyard.messages import message_type, schema, serialize

PORT: Final = 8765
_PERIOD: Final = 0.5
_TICK_NS: Final = 33_000_000
_STRING: Final = "std_msgs/msg/String"
_ABILITIES: Final = (
    "clientPublish", "parameters", "parametersSubscribe", "time", "services", "connectionGraph", "assets",
)  # fmt: skip


class FoxgloveBridge:
    """Shows a run to Foxglove, or any client of its protocol; see `Bridge`.

    Args:
        topics: Patterns of topics that cross; none: all.
        host: Address to listen on.
        port: Where; 0: any that is free.
        allow_origins: Origins of web pages that may connect, besides `KNOWN_ORIGINS`: "http://localhost:8080".
        descriptions: Robots as URDF, and the files that these name.

    Raises:
        InputError: One of ``allow_origins`` is no origin.
    """

    name = "foxglove"

    def __init__(
        self,
        *,
        topics: Collection[str] = (),
        host: str = "127.0.0.1",
        port: int = PORT,
        allow_origins: Collection[str] = (),
        descriptions: Descriptions | None = None,
    ) -> None:
        self.counts: Counter[str] = Counter()
        self.where = f"ws://{host}:{port}"
        self._host, self._port, self._patterns = host, port, topics
        self._access = WebAccess(host, allow_origins)
        self._descriptions = descriptions or Descriptions()
        self._clients: dict[int, Client] = {}
        self._channels: dict[str, tuple[int, str]] = {}
        self._services: dict[str, tuple[int, str]] = {}
        self._listening: set[str] = set()
        self._values: dict[str, Any] = {}
        self._seen: Seen | None = None
        self._graph: dict[str, Any] = {}
        self._number = 0
        self._ticked_ns = -_TICK_NS

    # -- beginning and end -----------------------------------------------------------------------------------------
    def open(self, bus: Bus) -> None:
        """Begin to serve. Raises BridgeError: the port is taken."""
        self._gateway = Gateway(bus, self.name, self._patterns, echo=True)
        self.counts = self._gateway.counts
        self._loop = Loop("roboyard-foxglove")
        handlers = PeerHandlers(self._came, self._hear, self._left)
        self._server = WebServer(
            self._loop, self._gateway, self._host, self._port, self._access, handlers, wire.PROTOCOLS
        )
        seen = self._gateway.look()
        try:
            self._loop.wait(self._begin(seen), 10.0)
        except BridgeError:
            self._loop.stop()
            raise
        self.where = f"ws://{self._host}:{self._server.port}"
        self._off = bus.executor.on_advance(self._advance)

    async def _begin(self, seen: Seen) -> None:
        await self._server.open()
        self._update(seen)
        self._loop.begin(self._watch())

    def close(self) -> None:
        """Let all clients go."""
        self._off()
        try:
            self._loop.wait(self._server.close(), 5.0)
        except RoboyardError:
            self._gateway.count("left in haste")
        self._loop.stop()
        self._gateway.close()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_PERIOD)
            self._update(await look(self._gateway, self._loop))

    def _advance(self, time_ns: int) -> None:
        """Tell the time; on the executor's thread."""
        if self._clients and time_ns - self._ticked_ns >= _TICK_NS:
            self._ticked_ns = time_ns
            frame = wire.time(time_ns)
            self._loop.post(lambda: self._tell_time(frame))

    def _tell_time(self, frame: bytes) -> None:
        for client in self._clients.values():
            client.peer.message(frame)

    # -- what there is ---------------------------------------------------------------------------------------------
    def _update(self, seen: Seen) -> None:
        """Tell all what has come and gone."""
        topics = {name: about.type for name, about in seen.topics.items() if about.publishers and _shown(name)}
        topics |= dict.fromkeys(self._descriptions.texts, _STRING)
        services = {name: kind for name, (kind, _) in seen.services.items()}
        new, gone = self._compare(self._channels, topics)
        if gone:
            self._tell({"op": "unadvertise", "channelIds": gone})
        if new:
            self._tell({"op": "advertise", "channels": [self._channel(name) for name in new]})
        new, gone = self._compare(self._services, services)
        if gone:
            self._tell({"op": "unadvertiseServices", "serviceIds": gone})
        if new:
            self._tell({"op": "advertiseServices", "services": [self._service(name) for name in new]})
        self._seen = seen
        self._update_parameters(seen)
        self._update_graph(seen)

    def _compare(self, known: dict[str, tuple[int, str]], wanted: dict[str, str]) -> tuple[list[str], list[int]]:
        gone = [known.pop(name)[0] for name in list(known) if wanted.get(name) != known[name][1]]
        new = [name for name in wanted if name not in known]
        for name in new:
            self._number += 1
            known[name] = (self._number, wanted[name])
        return new, gone

    def _channel(self, name: str) -> dict[str, Any]:
        number, kind = self._channels[name]
        return {
            "id": number, "topic": name, "encoding": "cdr", "schemaName": kind, "schema": schema(kind),
            "schemaEncoding": "ros2msg",
        }  # fmt: skip

    def _service(self, name: str) -> dict[str, Any]:
        number, kind = self._services[name]
        parts = {
            part.lower(): {
                "encoding": "cdr", "schemaName": f"{kind}_{part}", "schemaEncoding": "ros2msg",
                "schema": schema(f"{kind}_{part}"),
            }
            for part in ("Request", "Response")
        }  # fmt: skip
        old = {f"{part}Schema": value["schema"] for part, value in parts.items()}  # as older clients read it
        return {"id": number, "name": name, "type": kind, **parts, **old}

    def _update_parameters(self, seen: Seen) -> None:
        values = {f"{node}.{name}": value for node, own in seen.parameters.items() for name, value in own.items()}
        changed = {name for name, value in values.items() if name not in self._values or self._values[name] != value}
        self._values = values
        for client in self._clients.values():
            wanted = sorted(changed & client.parameters)
            if wanted:
                client.peer.answer(_text({"op": "parameterValues", "parameters": self._parameters(wanted)}))

    def _update_graph(self, seen: Seen) -> None:
        found = {
            "publishedTopics": [
                {"name": name, "publisherIds": sorted(about.publishers)} for name, about in seen.topics.items()
            ],
            "subscribedTopics": [
                {"name": name, "subscriberIds": sorted(about.subscribers)} for name, about in seen.topics.items()
            ],
            "advertisedServices": [
                {"name": name, "providerIds": [node]} for name, (_, node) in seen.services.items()
            ],
        }  # fmt: skip
        if found != self._graph:
            self._graph = found
            for client in self._clients.values():
                if client.graph:
                    client.peer.answer(self._graph_text())

    def _graph_text(self) -> str:
        return _text({"op": "connectionGraphUpdate", **self._graph, "removedTopics": [], "removedServices": []})

    def _tell(self, said: dict[str, Any]) -> None:
        text = _text(said)
        for client in self._clients.values():
            client.peer.answer(text)

    # -- clients ---------------------------------------------------------------------------------------------------
    def _came(self, peer: Peer) -> None:
        self._clients[peer.number] = Client(peer)
        info = {
            "op": "serverInfo", "name": "Roboyard", "capabilities": _ABILITIES, "supportedEncodings": ["cdr", "json"],
            "metadata": {"ROS_DISTRO": "jazzy"}, "sessionId": str(id(self)),
        }  # fmt: skip
        peer.answer(_text(info))
        peer.answer(_text({"op": "advertise", "channels": [self._channel(name) for name in self._channels]}))
        peer.answer(_text({"op": "advertiseServices", "services": [self._service(name) for name in self._services]}))

    def _left(self, peer: Peer) -> None:
        self._clients.pop(peer.number, None)

    async def _hear(self, peer: Peer, said: str | bytes) -> None:
        client = self._clients[peer.number]
        try:
            if isinstance(said, bytes):
                await self._hear_bytes(client, said)
            else:
                self._obey(client, json.loads(said))
        except RoboyardError as error:
            self._refuse(client, str(error))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            self._refuse(client, f"what {client.name} says makes no sense: {type(error).__name__}: {error}")

    def _refuse(self, client: Client, why: str) -> None:
        self._gateway.complain("malformed", why)
        client.peer.answer(_text({"op": "status", "level": 2, "message": why}))

    async def _hear_bytes(self, client: Client, said: bytes) -> None:
        if said[:1] == bytes([wire.CLIENT_MESSAGE]):
            if self._gateway.flooded_by(client.name):
                self._gateway.count("dropped")
                await asyncio.sleep(0.001)
                return
            number, data = wire.client_message(said)
            client.publish(number, data, self._gateway, _parse)
        elif said[:1] == bytes([wire.CLIENT_CALL]):
            self._loop.begin(self._call(client, *wire.client_call(said)))
        else:
            raise MessageError(f"opcode {said[:1].hex() or 'none'}", location=client.name, valid="1 or 2")

    def _obey(self, client: Client, said: dict[str, Any]) -> None:
        op = said["op"]
        if op == "subscribe":
            for item in said["subscriptions"]:
                self._subscribe(client, int(item["id"]), int(item["channelId"]))
        elif op == "unsubscribe":
            gone = {int(number) for number in said["subscriptionIds"]}
            client.subscriptions = {ch: number for ch, number in client.subscriptions.items() if number not in gone}
        elif op == "advertise":
            client.advertise(said["channels"])
        elif op == "unadvertise":
            for number in said["channelIds"]:
                client.channels.pop(int(number), None)
        elif op == "getParameters":
            self._tell_parameters(client, said["parameterNames"] or sorted(self._values), said.get("id"))
        elif op == "setParameters":
            self._loop.begin(self._set_parameters(client, said["parameters"], said.get("id")))
        elif op == "subscribeParameterUpdates":
            client.parameters |= {str(name) for name in said["parameterNames"]} & self._values.keys()
        elif op == "unsubscribeParameterUpdates":
            client.parameters -= {str(name) for name in said["parameterNames"]}
        elif op in ("subscribeConnectionGraph", "unsubscribeConnectionGraph"):
            client.graph = op.startswith("sub")
            if client.graph:
                client.peer.answer(self._graph_text())
        elif op == "fetchAsset":
            client.peer.answer(self._asset(str(said["uri"]), int(said["requestId"])))
        else:
            raise InputError(f"unknown operation '{str(op)[:40]}'", location=client.name)

    # -- topics ----------------------------------------------------------------------------------------------------
    def _subscribe(self, client: Client, number: int, channel: int) -> None:
        topic = next((name for name, (known, _) in self._channels.items() if known == channel), None)
        if topic is None:
            raise InputError(f"there is no channel {channel}", location=client.name)
        client.subscriptions[channel] = number
        if topic in self._descriptions.texts:
            message = message_type(_STRING)(data=self._descriptions.texts[topic])
            client.peer.message(wire.message(number, self._gateway.bus.now_ns, serialize(message)))
        elif topic not in self._listening:
            self._listening.add(topic)
            self._gateway.ask(lambda: self._listen(topic))
        if topic not in self._descriptions.texts:
            self._gateway.ask(lambda: self._send_latched(client, topic, number))

    def _listen(self, topic: str) -> None:
        self._gateway.listen(topic, lambda message, node, time_ns: self._heard(topic, message, time_ns))

    def _send_latched(self, client: Client, topic: str, number: int) -> None:
        for message, _, time_ns in self._gateway.latched(topic):
            frame = wire.message(number, max(time_ns, 0), serialize(message))
            self._loop.post(lambda frame=frame: client.peer.message(frame))  # type: ignore[misc]

    def _heard(self, topic: str, message: Any, time_ns: int) -> None:
        """A message was published; on the executor's thread."""
        channel = self._channels.get(topic, (0, ""))[0]
        if any(channel in client.subscriptions for client in list(self._clients.values())):
            data = self._gateway.encode(topic, message)
            self._loop.post(lambda: self._send(channel, time_ns, data))

    def _send(self, channel: int, time_ns: int, data: bytes) -> None:
        for client in self._clients.values():
            number = client.subscriptions.get(channel)
            if number is not None:
                client.peer.message(wire.message(number, time_ns, data))

    # -- services, parameters, files -------------------------------------------------------------------------------
    async def _call(self, client: Client, service: int, call: int, encoding: str, data: bytes) -> None:
        try:
            found = next(((name, kind) for name, (number, kind) in self._services.items() if number == service), None)
            if found is None:
                raise InputError(f"there is no service {service}")
            name, kind = found
            if encoding == "json":
                data = _parse(f"{kind}_Request", data)
            answer = await ask(self._gateway, self._loop, name, kind, client.name, data)
            client.peer.answer(wire.response(service, call, "cdr", serialize(answer)))
        except RoboyardError as error:
            failed = {"op": "serviceCallFailure", "serviceId": service, "callId": call, "message": str(error)}
            client.peer.answer(_text(failed))

    def _parameters(self, names: Collection[Any]) -> list[dict[str, Any]]:
        return [_parameter(str(name), self._values[str(name)]) for name in names if str(name) in self._values]

    def _tell_parameters(self, client: Client, names: Collection[Any], number: Any) -> None:
        said = {"op": "parameterValues", "parameters": self._parameters(names)}
        client.peer.answer(_text(said | ({"id": number} if number is not None else {})))

    async def _set_parameters(self, client: Client, wanted: list[Any], number: Any) -> None:
        names = []
        try:
            for item in wanted:
                name, value = str(item["name"]), item.get("value")
                names.append(name)
                if name not in self._values:
                    raise InputError(f"there is no parameter {name[:80]}")
                node, _, label = name.partition(".")
                service, kind, data = request_of(node, label, like(self._values[name], value))
                answer: Any = await ask(self._gateway, self._loop, service, kind, client.name, data)
                for result in answer.results:
                    if not result.successful:
                        raise InputError(result.reason)
        except RoboyardError as error:
            self._refuse(client, str(error))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            self._refuse(client, f"parameters make no sense: {type(error).__name__}: {error}")
        self._update(await look(self._gateway, self._loop))
        if number is not None:
            self._tell_parameters(client, names, number)

    def _asset(self, uri: str, request: int) -> bytes:
        path = self._descriptions.files.get(uri)
        if path is None:
            return wire.asset(request, None, "no robot of the run names this file")
        try:
            return wire.asset(request, path.read_bytes())
        except OSError as error:
            return wire.asset(request, None, f"cannot be read: {error.strerror}")


def _shown(topic: str) -> bool:
    return "/_action/" not in topic


def _text(said: dict[str, Any]) -> str:
    return json.dumps(json_number(said), separators=(",", ":"))


def _parameter(name: str, value: Any) -> dict[str, Any]:
    kind = {float: "float64"}.get(type(value))
    if isinstance(value, tuple) and value and all(isinstance(item, float) for item in value):
        kind = "float64_array"
    return {"name": name, "value": value, **({"type": kind} if kind else {})}


def _parse(kind: str, data: bytes) -> bytes:
    """JSON of a client as CDR. Raises MessageError."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise MessageError(f"no JSON: {error}") from error
    return serialize(from_json(kind, found))
