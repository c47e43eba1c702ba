"""A run in ROS 1's graph: its nodes, topics, services, actions and parameters, registered at a master that runs."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Collection
from typing import Any, Final, TypeVar

from roboyard.bridges.asking import look
from roboyard.bridges.bridge import BridgeError
from roboyard.bridges.descriptions import Descriptions
from roboyard.bridges.gateway import Gateway, Seen, TopicSeen
from roboyard.bridges.loop import Loop
from roboyard.bridges.ros1.actions import ServedAction
from roboyard.bridges.ros1.calls import Asked
from roboyard.bridges.ros1.channels import (
    BusTopic,
    ClockTopic,
    Incoming,
    Outgoing,
    Take,
    encode_time,
    station_name,
)
from roboyard.bridges.ros1.master import Entry, Master
from roboyard.bridges.ros1.parameters import Parameters
from roboyard.bridges.ros1.pursuits import SoughtAction
from roboyard.bridges.ros1.services import Offered
from roboyard.bridges.ros1.station import Station
from roboyard.bridges.ros1.types import Ros1Type, ros1_action, ros1_service, ros1_type
from roboyard.bridges.ros1.xmlrpc import call, split_uri
from roboyard.bus import Bus
from roboyard.bus.external_inputs import EXTERNAL_REQUEST_TOPIC
from roboyard.errors import MessageError, RoboyardError, RunError
from roboyard.messages import action_type, service_type, to_nanoseconds

MASTER: Final = "http://127.0.0.1:11311"
_OWN: Final = "/roboyard"
_CLOCK: Final = "/clock"
_TICK_NS: Final = 10_000_000
"""Between two messages of /clock [ns of simulated time]."""
_PERIOD: Final = 0.5
"""Between two looks at the run and the master [wall s]."""
_NAME: Final = re.compile(r"/[A-Za-z]\w*(/[A-Za-z]\w*)*", re.ASCII)
_A = TypeVar("_A", ServedAction, SoughtAction)
_HIDDEN: Final = ("rcl_interfaces/",)
"""Packages whose services ROS 1 has no use for: there the master keeps parameters."""


class Ros1Bridge:
    """Shows a run to ROS 1; see `Bridge`.

    Each node of ours is a node there, with what it publishes, hears and serves.  Messages of foreign nodes on topics
    that ours hear, calls of services and goals of actionlib come in through the input port.

    Args:
        master: URI of the master.
        topics: Patterns of topics that cross; none: all.
        host: Address that our nodes listen on, and that others are told.
        simulated: Whether time is simulated: nodes are told by /use_sim_time.
        descriptions: Robots as URDF, which become parameters.
    """

    name = "ros1"

    def __init__(
        self,
        master: str = MASTER,
        *,
        topics: Collection[str] = (),
        host: str = "127.0.0.1",
        simulated: bool = True,
        descriptions: Descriptions | None = None,
    ) -> None:
        split_uri(master)
        self.where = master
        self.counts: Counter[str] = Counter()
        self._patterns = topics
        self._host = host
        self._simulated = simulated
        self._descriptions = descriptions or Descriptions()
        self._stations: dict[str, Station] = {}
        self._outgoing: dict[str, Outgoing] = {}
        self._incoming: dict[str, Incoming] = {}
        self._actions: dict[str, ServedAction] = {}
        self._offered: dict[str, Offered] = {}
        self._asked: dict[str, Asked] = {}
        self._sought: dict[str, SoughtAction] = {}
        self._unfit: set[str] = set()
        self._uris: set[str] = set()
        self._nodes: frozenset[str] = frozenset()
        self._clock: Outgoing | None = None
        self._ticked_ns = -_TICK_NS

    # -- beginning and end -----------------------------------------------------------------------------------------
    def open(self, bus: Bus) -> None:
        """Register at the master.

        Raises:
            BridgeError: there is none, or no port can be had.
        """
        self._gateway = Gateway(bus, self.name, self._patterns)
        self.counts = self._gateway.counts
        self._loop = Loop("roboyard-ros1")
        self._master = Master(self.where, _OWN, self._publishers_changed)
        self._parameters = Parameters(
            self._master, self._gateway, self._loop, simulated=self._simulated, descriptions=self._descriptions
        )
        seen = self._gateway.look()  # nobody runs the bus yet
        try:
            self._loop.wait(self._begin(seen), 30.0)
        except (RoboyardError, OSError) as error:
            self._loop.stop()
            raise BridgeError(
                f"no ROS 1: {error}",
                location=self.where,
                valid="a running `roscore`, and its address in ROS_MASTER_URI",
            ) from error
        self._gateway.listen(EXTERNAL_REQUEST_TOPIC, self._ask)  # now, since nodes may call at the first instant
        self._off = bus.executor.on_advance(self._advance)

    async def _begin(self, seen: Seen) -> None:
        await self._master.ask("getPid")
        await self._parameters.begin()
        await self._update(seen)
        self._loop.begin(self._watch())

    def close(self) -> None:
        """Withdraw everything from the master, and let go of all connections."""
        self._off()

        async def end() -> None:
            await self._master.leave(self._parameters.own())
            for station in self._stations.values():
                await station.close()

        try:
            self._loop.wait(end(), 10.0)
        except RunError:
            self._gateway.count("left in haste")
        self._loop.stop()
        self._gateway.close()

    # -- time ------------------------------------------------------------------------------------------------------
    def _advance(self, time_ns: int) -> None:
        """Tell the time; on the executor's thread."""
        if self._clock is not None and time_ns - self._ticked_ns >= _TICK_NS and self._clock.outlets:
            self._ticked_ns = time_ns
            self._clock.send(_OWN, encode_time(time_ns))

    # -- the graph -------------------------------------------------------------------------------------------------
    async def _watch(self) -> None:
        """Keep the master told, whatever happens to it."""
        lost = False
        while True:
            await asyncio.sleep(_PERIOD)
            seen = await look(self._gateway, self._loop)
            try:
                if not await self._master.look(_OWN, self._stations[_OWN].uri) and not self._master.there:
                    if not lost:
                        lost = True
                        self._gateway.complain("master lost", f"the master at {self.where} does not answer")
                    continue
                if lost:
                    lost = False
                    self._gateway.say("warn", f"the master at {self.where} is back")
                await self._update(seen)
            except (RoboyardError, OSError) as error:
                self._gateway.complain("not registered", str(error))

    async def _update(self, seen: Seen) -> None:
        """Bring ROS 1's graph up to date."""
        self._nodes = frozenset(seen.parameters)
        for name in seen.parameters:
            await self._station(name)
        entries: set[Entry] = set()
        for topic, about in seen.topics.items():
            if "/_action/" not in topic:
                await self._topic(topic, about, entries)
        for service, (kind, node) in seen.services.items():
            if not kind.startswith(_HIDDEN):
                await self._service(service, kind, node, entries)
        for action, (kind, node) in seen.actions.items():
            await self._action(action, kind, node, entries)
        for service, kind in seen.asked.items():
            await self._ask_for(service, kind)
        for action, kind in seen.asked_actions.items():
            await self._seek(action, kind, entries)
        for gone in self._actions.keys() - seen.actions.keys():
            self._actions.pop(gone).close()
        heard = {entry.name for entry in entries if entry.kind == "subscriber"}
        for topic in self._incoming.keys() - heard:
            self._incoming.pop(topic).close()
        for station in self._stations.values():
            mine = {(entry.kind, entry.name) for entry in entries if entry.node == station.name}
            for ends, kind in ((station.publishes, "publisher"), (station.subscribes, "subscriber")):
                for topic in [topic for topic in ends if (kind, topic) not in mine]:
                    del ends[topic]
        await self._master.update(entries)
        await self._parameters.update(seen, {name: self._stations[name] for name in seen.parameters})

    async def _station(self, source: str) -> Station | None:
        """The node there that stands for ``source`` here; None if its name is none in ROS 1."""
        name = station_name(source)
        if name in self._stations:
            return self._stations[name]
        if not _NAME.fullmatch(name):
            self._unfitting(name, "is no name of a node in ROS 1")
            return None
        shown = name
        if await self._taken(name):
            shown = f"/roboyard{name}"
            self._gateway.complain("name clash", f"another node of ROS 1 is called {name}; ours is {shown} there")
        station = Station(
            shown, name, self._host, self.where, self._loop, self._gateway, self._publishers_changed,
            self._parameter_changed,
        )  # fmt: skip
        await station.open()
        self._stations[name] = station
        self._uris.add(station.uri)
        return station

    async def _taken(self, name: str) -> bool:
        """Whether somebody else who answers has that name: the master would shut him down for ours."""
        try:
            uri = await self._master.ask("lookupNode", name)
            await call(uri, "getPid", _OWN)
        except RoboyardError:
            return False
        return uri not in self._uris

    async def _topic(self, topic: str, about: TopicSeen, entries: set[Entry]) -> None:
        kind = self._fitting(topic, about.type)
        if kind is None:
            return
        for source in sorted(about.publishers):
            station = await self._station(source)
            if station is not None:
                station.publishes[topic] = self._outgo(topic, kind, latched=about.latched)
                entries.add(Entry("publisher", station.name, station.uri, topic, kind.name))
        if topic == _CLOCK:
            return  # there is but one clock
        for source in sorted(about.subscribers):
            station = await self._station(source)
            if station is not None:
                self._listen(topic, kind, station, self._taking(topic, about.type, kind), entries)

    def _outgo(self, topic: str, kind: Ros1Type, *, latched: bool) -> Outgoing:
        outgoing = self._outgoing.get(topic)
        if outgoing is None:
            if topic == _CLOCK:
                outgoing = self._clock = ClockTopic(topic, kind, gateway=self._gateway)
            else:
                outgoing = BusTopic(topic, kind, latched=latched, gateway=self._gateway)
            self._outgoing[topic] = outgoing
        outgoing.latched = latched
        return outgoing

    def _listen(self, topic: str, kind: Ros1Type, station: Station, take: Take, entries: set[Entry]) -> Incoming:
        incoming = self._incoming.get(topic)
        if incoming is None:
            incoming = Incoming(topic, kind, station.name, take, self._loop, self._gateway)
            self._incoming[topic] = incoming
        station.subscribes[topic] = kind.name
        entries.add(Entry("subscriber", station.name, station.uri, topic, kind.name))
        return incoming

    def _taking(self, topic: str, ours: str, kind: Ros1Type) -> Take:
        def take(data: bytes, source: str, latched: bool) -> bool:
            return self._gateway.publish(topic, ours, self._foreign(source), kind.decode(data), latched=latched)

        return take

    def _foreign(self, source: str) -> str:
        """How a foreign node is called here: never as one of ours."""
        return f"{source}_ros1" if source in self._nodes else source

    async def _service(self, name: str, ours: str, node: str, entries: set[Entry]) -> None:
        station = await self._station(node)
        if station is None or name in self._unfit:
            return
        if name not in self._offered or name not in station.serves:
            try:
                kind = ros1_service(service_type(ours))
            except MessageError as error:
                self._unfitting(name, str(error))
                return
            self._offered[name] = station.serves[name] = Offered(name, ours, kind, self._loop, self._gateway)
        where = f"rosrpc://{self._host}:{station.port} {station.uri}"
        entries.add(Entry("service", station.name, where, name))

    async def _action(self, name: str, ours: str, node: str, entries: set[Entry]) -> None:
        found = await self._shown(self._actions, ServedAction, name, ours, node, entries)
        if found is not None:
            action, station = found
            self._listen(f"{name}/goal", action.kind.goal, station, action.take_goal, entries)
            self._listen(f"{name}/cancel", ros1_type("actionlib_msgs/msg/GoalID"), station, action.take_cancel, entries)

    async def _seek(self, name: str, ours: str, entries: set[Entry]) -> None:
        found = await self._shown(self._sought, SoughtAction, name, ours, _OWN, entries)
        if found is not None:
            action, station = found
            status = ros1_type("actionlib_msgs/msg/GoalStatusArray")
            self._listen(f"{name}/status", status, station, action.take_status, entries)
            action.heard = (
                self._listen(f"{name}/feedback", action.kind.feedback, station, action.take_feedback, entries),
                self._listen(f"{name}/result", action.kind.result, station, action.take_result, entries),
            )

    async def _shown(
        self, known: dict[str, _A], make: type[_A], name: str, ours: str, node: str, entries: set[Entry]
    ) -> tuple[_A, Station] | None:
        """One of the known ends of actions, made if it is new, and the node that stands for ``node``; its topics are
        told of. None where one of them cannot be shown."""
        station = await self._station(node)
        if station is None or name in self._unfit:
            return None
        action = known.get(name)
        if action is None:
            try:
                kind = action_type(ours)
                action = make(name, kind, ros1_action(kind), station.source, self._loop, self._gateway)
            except MessageError as error:
                self._unfitting(name, str(error))
                return None
            known[name] = action
            action.open()
        for outgoing in action.topics:
            station.publishes[outgoing.name] = outgoing
            entries.add(Entry("publisher", station.name, station.uri, outgoing.name, outgoing.kind.name))
        return action, station

    async def _ask_for(self, name: str, ours: str) -> None:
        station = await self._station(_OWN)
        if station is None or name in self._unfit or name in self._asked:
            return
        try:
            kind = ros1_service(service_type(ours))
        except MessageError as error:
            self._unfitting(name, str(error))
            return
        self._asked[name] = Asked(name, ours, kind, station.name, self._master, self._loop, self._gateway)

    def _ask(self, message: Any, node: str, time_ns: int) -> None:
        """A node of ours calls a foreign one; on the executor's thread."""
        name, number = message.service, int(message.call_id)
        request, until_ns = bytes(message.request), to_nanoseconds(message.deadline)
        asked, sought = self._asked.get(name), self._sought.get(name.partition("/_action/")[0])
        if asked is not None:
            self._loop.post(lambda: asked.ask(number, request, until_ns))
        elif sought is not None:
            self._loop.post(lambda: sought.ask(name, number, request, until_ns))

    def _fitting(self, name: str, ours: str) -> Ros1Type | None:
        if name in self._unfit:
            return None
        try:
            return ros1_type(ours)
        except MessageError as error:
            self._unfitting(name, str(error))
            return None

    def _unfitting(self, name: str, why: str) -> None:
        self._unfit.add(name)
        self._gateway.complain("not shown", f"{name}: {why}")

    # -- what others tell, on the loop's thread --------------------------------------------------------------------
    def _publishers_changed(self, node: str, topic: str, uris: list[str], more: bool = False) -> None:
        incoming = self._incoming.get(topic)
        if incoming is not None:
            incoming.update(node, [uri for uri in uris if uri not in self._uris], more=more)

    def _parameter_changed(self, node: str, key: str, value: Any) -> None:
        self._loop.begin(self._parameters.changed(node, key, value))
