"""A run for roslib and other clients of rosbridge (github.com/RobotWebTools/rosbridge_suite): JSON over a WebSocket."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Final

from roboyard.bridges.asking import ask, look
from roboyard.bridges.bridge import BridgeError
from roboyard.bridges.descriptions import Descriptions
from roboyard.bridges.gateway import Gateway
from roboyard.bridges.loop import Loop
from roboyard.bridges.parameters import like, request_of
from roboyard.bridges.rosbridge import rosapi
from roboyard.bridges.values import from_json, to_json
from roboyard.bridges.web import Peer, PeerHandlers, WebServer, json_number
from roboyard.bridges.web_access import WebAccess
from roboyard.bus import Bus
from roboyard.bus.actions import endpoint
from roboyard.errors import InputError, RoboyardError
from roboyard.messages import action_type, full_name, serialize, service_type
from roboyard.messages.convert.action_goals import uuid_from_msg, uuid_of_text, uuid_to_msg

PORT: Final = 9090


@dataclass(slots=True)
class _RosbridgeClient:
    """A client: subscriptions with the least time between two messages [ns], and goals by their ids."""

    peer: Peer
    subscriptions: dict[str, dict[str, int]] = field(default_factory=dict)
    last_ns: dict[str, int] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    goals: dict[str, tuple[str, bytes]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """As a node of the run."""
        return f"/rosbridge_client{self.peer.number}"

    def wants(self, topic: str, time_ns: int) -> bool:
        """Whether a message that comes now is wanted."""
        periods = self.subscriptions.get(topic)
        if not periods:
            return False
        if topic in self.last_ns and time_ns - self.last_ns[topic] < min(periods.values()):
            return False
        self.last_ns[topic] = time_ns
        return True


class RosbridgeBridge:
    """Shows a run to clients of rosbridge; see `Bridge`.

    Args:
        topics: Patterns of topics that cross; none: all.
        host: Address to listen on.
        port: Where; 0: any that is free.
        allow_origins: Origins of web pages that may connect, besides `KNOWN_ORIGINS`: "http://localhost:8080".
        descriptions: Robots as URDF.

    Raises:
        InputError: One of ``allow_origins`` is no origin.
    """

    name = "rosbridge"

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
        self._clients: dict[int, _RosbridgeClient] = {}
        self._listening: set[str] = set()

    # -- beginning and end -----------------------------------------------------------------------------------------
    def open(self, bus: Bus) -> None:
        """Begin to serve. Raises BridgeError: the port is taken."""
        self._gateway = Gateway(bus, self.name, self._patterns, echo=True)
        self.counts = self._gateway.counts
        self._loop = Loop("roboyard-rosbridge")
        handlers = PeerHandlers(self._came, self._hear, self._left)
        self._server = WebServer(self._loop, self._gateway, self._host, self._port, self._access, handlers)
        try:
            self._loop.wait(self._server.open(), 10.0)
        except BridgeError:
            self._loop.stop()
            raise
        self.where = f"ws://{self._host}:{self._server.port}"

    def close(self) -> None:
        """Let all clients go."""
        try:
            self._loop.wait(self._server.close(), 5.0)
        except RoboyardError:
            self._gateway.count("left in haste")
        self._loop.stop()
        self._gateway.close()

    # -- clients ---------------------------------------------------------------------------------------------------
    def _came(self, peer: Peer) -> None:
        self._clients[peer.number] = _RosbridgeClient(peer)

    def _left(self, peer: Peer) -> None:
        self._clients.pop(peer.number, None)

    async def _hear(self, peer: Peer, said: str | bytes) -> None:
        client, number = self._clients[peer.number], None
        try:
            found = json.loads(said)
            number = found.get("id")
            await self._obey(client, found)
        except RoboyardError as error:
            self._refuse(client, number, str(error))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            self._refuse(client, number, f"what {client.name} says makes no sense: {type(error).__name__}: {error}")

    def _refuse(self, client: _RosbridgeClient, number: Any, why: str) -> None:
        self._gateway.complain("malformed", why)
        client.peer.answer(_text({"op": "status", "level": "error", "msg": why, "id": number}))

    async def _obey(self, client: _RosbridgeClient, said: dict[str, Any]) -> None:
        op = said["op"]
        if op == "publish":
            await self._publish(client, said)
        elif op == "subscribe":
            self._subscribe(client, said)
        elif op == "unsubscribe":
            self._unsubscribe(client, _absolute(said["topic"]), said.get("id"))
        elif op == "advertise":
            client.types[_absolute(said["topic"])] = _type(said["type"])
        elif op == "unadvertise":
            client.types.pop(_absolute(said["topic"]), None)
        elif op == "call_service":
            self._loop.begin(self._call(client, said))
        elif op == "send_action_goal":
            self._loop.begin(self._pursue(client, said))
        elif op == "cancel_action_goal":
            self._loop.begin(self._cancel(client, said))
        elif op not in ("set_level", "auth", "status"):
            raise InputError(f"operation '{str(op)[:40]}' is not offered", location=client.name)

    # -- topics ----------------------------------------------------------------------------------------------------
    async def _publish(self, client: _RosbridgeClient, said: dict[str, Any]) -> None:
        if self._gateway.flooded_by(client.name):
            self._gateway.count("dropped")
            await asyncio.sleep(0.001)
            return
        topic = _absolute(said["topic"])
        kind = client.types.get(topic)
        if kind is None:
            known = self._gateway.bus.topics.get(topic)
            if known is None:
                raise InputError(f"{topic[:80]} was not advertised", location=client.name, valid="advertise it first")
            kind = known.type_name
        message = from_json(kind, said.get("msg", {}))
        self._gateway.publish(topic, kind, client.name, serialize(message), latched=bool(said.get("latch")))

    def _subscribe(self, client: _RosbridgeClient, said: dict[str, Any]) -> None:
        topic = _absolute(said["topic"])
        if topic not in self._gateway.topics:
            raise InputError(f"{topic[:80]} does not cross this bridge", location=client.name)
        period = max(int(said.get("throttle_rate") or 0), 0) * 1_000_000
        client.subscriptions.setdefault(topic, {})[str(said.get("id"))] = period
        if topic in self._descriptions.texts:
            text = self._descriptions.texts[topic]
            client.peer.message(_text({"op": "publish", "topic": topic, "msg": {"data": text}}))
            return
        if topic not in self._listening:
            self._listening.add(topic)
            self._gateway.ask(
                lambda: self._gateway.listen(topic, lambda message, _, time_ns: self._heard(topic, message, time_ns))
            )
        self._gateway.ask(lambda: self._send_latched(client, topic))

    def _unsubscribe(self, client: _RosbridgeClient, topic: str, number: Any) -> None:
        if number is None:
            client.subscriptions.pop(topic, None)
            return
        client.subscriptions.get(topic, {}).pop(str(number), None)

    def _send_latched(self, client: _RosbridgeClient, topic: str) -> None:
        for message, _, _ in self._gateway.latched(topic):
            self._loop.post(lambda message=message: client.peer.message(_publication(topic, message)))  # type: ignore[misc]

    def _heard(self, topic: str, message: Any, time_ns: int) -> None:
        """A message was published; on the executor's thread. It becomes text on the other."""
        if any(topic in client.subscriptions for client in list(self._clients.values())):
            self._loop.post(lambda: self._send(topic, message, time_ns))

    def _send(self, topic: str, message: Any, time_ns: int) -> None:
        wanting = [client for client in self._clients.values() if client.wants(topic, time_ns)]
        if wanting:
            text = _publication(topic, message)
            for client in wanting:
                client.peer.message(text)

    # -- services --------------------------------------------------------------------------------------------------
    async def _call(self, client: _RosbridgeClient, said: dict[str, Any]) -> None:
        service = _absolute(said.get("service"))
        answer: dict[str, Any] = {"op": "service_response", "service": service, "id": said.get("id")}
        try:
            arguments = said.get("args") or {}
            values = await self._answer(client, service, arguments)
            answer |= {"values": values, "result": True}
        except RoboyardError as error:
            answer |= {"values": str(error), "result": False}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            answer |= {"values": f"the call makes no sense: {type(error).__name__}: {error}", "result": False}
        client.peer.answer(_text({key: value for key, value in answer.items() if value is not None}))

    async def _answer(self, client: _RosbridgeClient, service: str, arguments: Any) -> Any:
        seen = await look(self._gateway, self._loop)
        if service == "/rosapi/set_param":
            return await self._set_parameter(client, str(arguments["name"]), json.loads(arguments["value"]))
        if service == "/rosapi/get_param" and str(arguments.get("name", "")) in self._descriptions.texts:
            text = json.dumps(self._descriptions.texts[str(arguments["name"])])
            return {"value": text, "successful": True, "reason": ""}
        if rosapi.is_rosapi(service):
            return rosapi.answer(service, seen, arguments)
        if service not in seen.services:
            raise InputError(f"nobody serves {service[:80]}")
        kind, _ = seen.services[service]
        request = from_json(f"{kind}_Request", _named(f"{kind}_Request", arguments))
        message = await ask(self._gateway, self._loop, service, kind, client.name, serialize(request))
        return to_json(message)

    async def _set_parameter(self, client: _RosbridgeClient, name: str, value: Any) -> dict[str, Any]:
        seen = await look(self._gateway, self._loop)
        node, label = rosapi.find_parameter(seen, name)
        service, kind, data = request_of(node, label, like(seen.parameters[node][label], value))
        answer: Any = await ask(self._gateway, self._loop, service, kind, client.name, data)
        for result in answer.results:
            if not result.successful:
                raise InputError(result.reason)
        return {"successful": True, "reason": ""}

    # -- actions ---------------------------------------------------------------------------------------------------
    async def _pursue(self, client: _RosbridgeClient, said: dict[str, Any]) -> None:
        """Send a goal, tell its feedback, and its result at the end."""
        number, name = str(said.get("id", "")), _absolute(said.get("action"))
        ended: dict[str, Any] = {"op": "action_result", "id": number, "action": name, "status": 6, "result": False}
        uuid = uuid_of_text(f"{client.name} {name} {number}")
        topic = endpoint(name, "feedback")

        def heard(message: Any, node: str, time_ns: int) -> None:
            if uuid_from_msg(message.goal_id) == uuid:
                self._loop.post(lambda: self._send_feedback(client, number, name, message.feedback))

        try:
            seen = await look(self._gateway, self._loop)
            if name not in seen.actions:
                raise InputError(f"nobody serves the action {name[:80]}")
            kind = action_type(seen.actions[name][0])
            goal = from_json(f"{kind.name}_Goal", said.get("args") or {})
            goal_id = uuid_to_msg(uuid)
            client.goals[number] = (name, uuid)
            if said.get("feedback"):
                self._gateway.ask(lambda: self._gateway.listen(topic, heard))
            request = serialize(kind.SendGoal.Request(goal_id=goal_id, goal=goal))
            answer: Any = await self._ask(client, endpoint(name, "send_goal"), kind.SendGoal.name, request)
            if not answer.accepted:
                raise InputError("the goal was rejected", location=name)
            request = serialize(kind.GetResult.Request(goal_id=goal_id))
            outcome: Any = await self._ask(client, endpoint(name, "get_result"), kind.GetResult.name, request)
            ended |= {"values": to_json(outcome.result), "status": int(outcome.status), "result": outcome.status == 4}
        except RoboyardError as error:
            ended["values"] = str(error)
        finally:
            client.goals.pop(number, None)
            self._gateway.ask(lambda: self._gateway.forget(topic, heard))
        client.peer.answer(_text(ended))

    async def _ask(self, client: _RosbridgeClient, service: str, kind: str, request: bytes) -> object:
        return await ask(self._gateway, self._loop, service, kind, client.name, request)

    def _send_feedback(self, client: _RosbridgeClient, number: str, name: str, feedback: Any) -> None:
        said = {"op": "action_feedback", "id": number, "action": name, "values": to_json(feedback)}
        client.peer.message(_text(said))

    async def _cancel(self, client: _RosbridgeClient, said: dict[str, Any]) -> None:
        found = client.goals.get(str(said.get("id", "")))
        if found is None:
            self._refuse(client, said.get("id"), "there is no such goal under way")
            return
        name, uuid = found
        kind = service_type("action_msgs/srv/CancelGoal")
        request = kind.Request()
        request.goal_info.goal_id = uuid_to_msg(uuid)
        try:
            await self._ask(client, endpoint(name, "cancel_goal"), kind.name, serialize(request))
        except RoboyardError as error:
            self._refuse(client, said.get("id"), str(error))


def _absolute(name: Any) -> str:
    """Names are those of the root: roslib asks for ``rosapi/nodes``."""
    return f"/{str(name or '').lstrip('/')}"


def _type(name: Any) -> str:
    return full_name(str(name))


def _named(kind: str, arguments: Any) -> Any:
    """Arguments by name; a list gives them in order."""
    if not isinstance(arguments, list):
        return arguments
    from roboyard.messages.type_registry import definition_of

    fields = [field.name for field in definition_of(kind).fields]
    if len(arguments) > len(fields):
        raise InputError(f"{len(arguments)} arguments", valid=", ".join(fields))
    return dict(zip(fields, arguments, strict=False))


def _publication(topic: str, message: Any) -> str:
    return _text({"op": "publish", "topic": topic, "msg": to_json(message)})


def _text(said: dict[str, Any]) -> str:
    try:
        return json.dumps(said, separators=(",", ":"), allow_nan=False)
    except ValueError:
        return json.dumps(json_number(said), separators=(",", ":"))
