"""A run in ROS 2's graph, over DDS."""

from __future__ import annotations

import asyncio
import os
import struct
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any, Final

from roboyard.bridges.asking import look
from roboyard.bridges.bridge import BridgeError
from roboyard.bridges.descriptions import Descriptions
from roboyard.bridges.gateway import Gateway, Seen
from roboyard.bridges.loop import Loop
from roboyard.bridges.ros2 import discovery, names
from roboyard.bridges.ros2.dds import Participant, Quality, Reader, Writer
from roboyard.bridges.ros2.discovery import NodeEnds
from roboyard.bridges.ros2.services import Asked, Served
from roboyard.bridges.ros2.topics import Read, Written
from roboyard.bus import Bus
from roboyard.bus.actions import endpoint
from roboyard.bus.external_inputs import EXTERNAL_REQUEST_TOPIC
from roboyard.compute.wall_clock import perf_ns
from roboyard.errors import MessageError, RoboyardError, RunError
from roboyard.messages import message_type, serialize, to_nanoseconds

_OWN: Final = "/roboyard"
_CLOCK: Final = "/clock"
_TICK_NS: Final = 10_000_000
_FLUSH_NS: Final = 20_000_000
"""What a run that does not rest has to say waits so long, at most [wall ns]."""
_LOOK, _PERIOD = 0.1, 0.5
_GRAPH_QUALITY: Final = Quality(latched=True, depth=1)
_STRING: Final = "std_msgs/msg/String"


class Ros2Bridge:
    """Shows a run to ROS 2; see `Bridge`.

    Topics reach peers with any middleware on DDS, services and actions those with ``rmw_cyclonedds_cpp``.

    Args:
        domain: Number of the domain; None: that of ROS_DOMAIN_ID, else 0.
        topics: Patterns of topics that cross; none: all.
        local: Speak with this machine only.
        descriptions: Robots as URDF, which become latched topics.
    """

    name = "ros2"

    def __init__(
        self,
        domain: int | None = None,
        *,
        topics: Collection[str] = (),
        local: bool = True,
        descriptions: Descriptions | None = None,
    ) -> None:
        self._domain = domain if domain is not None else _domain_of(os.environ.get("ROS_DOMAIN_ID", ""))
        self.where = f"domain {self._domain}" + (", this machine" if local else "")
        self.counts: Counter[str] = Counter()
        self._patterns = topics
        self._local = local
        self._descriptions = descriptions or Descriptions()
        self._written: dict[str, Written] = {}
        self._read: dict[str, Read] = {}
        self._served: dict[str, Served] = {}
        self._asked: dict[str, Asked] = {}
        self._described: list[Writer] = []
        self._nodes: dict[str, NodeEnds] = {}
        self._unfit: set[str] = set()
        self._peers: dict[bytes, dict[str, NodeEnds]] = {}
        self._sources: dict[bytes, str] = {}
        self._octets = (
            discovery.OLD if os.environ.get("ROS_DISTRO") in ("humble", "galactic", "foxy") else discovery.NEW
        )
        self._clock: Writer | None = None
        self._clock_read = False
        self._ticked_ns = -_TICK_NS
        self._flushed_ns = 0

    # -- beginning and end -----------------------------------------------------------------------------------------
    def open(self, bus: Bus) -> None:
        """Take part in the domain. Raises BridgeError."""
        self._gateway = Gateway(bus, self.name, self._patterns)
        self.counts = self._gateway.counts
        self._participant = Participant(self._domain, local=self._local)
        self._loop = Loop("roboyard-ros2")
        seen = self._gateway.look()
        try:
            self._loop.wait(self._begin(seen), 60.0)
        except RoboyardError as error:
            self._loop.stop()
            self._participant.close()
            raise BridgeError(f"no ROS 2: {error}", location=self.where) from error
        self._gateway.listen(EXTERNAL_REQUEST_TOPIC, self._ask)  # now, since nodes may call at the first instant
        self._off = (bus.executor.on_advance(self._advance), bus.executor.on_idle(self._participant.flush))

    async def _begin(self, seen: Seen) -> None:
        self._graph = self._participant.writer(discovery.TOPIC, discovery.TYPE, _GRAPH_QUALITY)
        self._participant.reader(discovery.TOPIC, discovery.TYPE, _GRAPH_QUALITY, self._told)
        self._clock = self._participant.writer(
            names.topic(_CLOCK), names.dds_type("rosgraph_msgs/msg/Clock"), Quality(depth=1),
            names.hash_of("rosgraph_msgs/msg/Clock"),
        )  # fmt: skip
        for topic, text in self._descriptions.texts.items():
            writer = self._participant.writer(
                names.topic(topic), names.dds_type(_STRING), Quality(latched=True, depth=1), names.hash_of(_STRING)
            )
            writer.write(serialize(message_type(_STRING)(data=text)))
            self._described.append(writer)
        self._update(seen)
        self._loop.begin(self._watch())

    def close(self) -> None:
        """Leave the domain."""
        for off in self._off:
            off()
        self._participant.flush()

        async def end() -> None:
            self._graph.write(discovery.encode(self._participant.guid, {}, self._octets))

        try:
            self._loop.wait(end(), 2.0)
        except (RunError, BridgeError):
            self._gateway.count("left in haste")
        self._loop.stop()
        self._participant.close()
        self._gateway.close()

    # -- the graph -------------------------------------------------------------------------------------------------
    async def _watch(self) -> None:
        rounds = 0
        while True:
            await asyncio.sleep(_LOOK)
            for written in self._written.values():
                written.look()
            for asked in list(self._asked.values()):
                asked.look()
            self._clock_read = self._clock is not None and self._clock.matched
            rounds += 1
            if rounds % round(_PERIOD / _LOOK) == 0:
                seen = await look(self._gateway, self._loop)
                try:
                    self._update(seen)
                except RoboyardError as error:
                    self._gateway.complain("not shown", str(error))

    def _update(self, seen: Seen) -> None:
        """Bring DDS up to date."""
        self._update_written(seen)
        self._update_read(seen)
        self._update_asked(seen)
        served = _services(seen.services, seen.actions)
        wanted = {name: about for name, about in served.items() if name not in self._unfit}
        for name in [name for name, served in self._served.items() if wanted.get(name) != (served.kind, served.node)]:
            self._served.pop(name).close()
        for name, (kind, node) in wanted.items():
            if name not in self._served:
                with _Fitting(self, name):
                    self._served[name] = Served(name, kind, node, self._participant, self._gateway)
        self._announce(seen)

    def _update_written(self, seen: Seen) -> None:
        for name in [name for name in self._written if name not in seen.topics]:
            self._written.pop(name).close()
        for name, about in seen.topics.items():
            if name == _CLOCK or name in self._unfit or not (about.publishers or name in self._written):
                continue
            with _Fitting(self, name):
                written = self._written.get(name)
                if written is not None and written.latched != about.latched:
                    written.close()
                    written = None
                if written is None:
                    written = self._written[name] = Written(
                        name, about.type, latched=about.latched, participant=self._participant, gateway=self._gateway
                    )
                written.update(about.publishers)

    def _update_read(self, seen: Seen) -> None:
        wanted = {name: about.type for name, about in seen.topics.items() if about.subscribers and name != _CLOCK}
        for name in [name for name in self._read if name not in wanted]:
            self._read.pop(name).close()
        writers = self._participant.foreign_writers()
        for name, kind in wanted.items():
            if name in self._unfit:
                continue
            with _Fitting(self, name):
                if name not in self._read:
                    self._read[name] = Read(name, kind, self._participant, self._gateway, self._source)
                self._read[name].update(writers)

    def _update_asked(self, seen: Seen) -> None:
        ours = {name: (kind, _OWN) for name, kind in seen.asked.items()}
        actions = {name: (kind, _OWN) for name, kind in seen.asked_actions.items()}
        wanted = _services(ours, actions)
        for name in [name for name in self._asked if name not in wanted]:
            self._asked.pop(name).close()
        for name, (kind, _) in wanted.items():
            if name not in self._asked and name not in self._unfit:
                with _Fitting(self, name):
                    self._asked[name] = Asked(name, kind, self._participant, self._gateway, self._source)
            if name in self._asked:
                self._asked[name].check(self._participant.foreign_writers())

    def _ask(self, message: Any, node: str, time_ns: int) -> None:
        """A node of ours calls a foreign one; on the executor's thread."""
        asked = self._asked.get(message.service)
        if asked is not None:
            asked.ask(int(message.call_id), bytes(message.request), to_nanoseconds(message.deadline))

    def _announce(self, seen: Seen) -> None:
        """Tell which endpoints belong to which node, if that has changed."""
        nodes: dict[str, NodeEnds] = {name: NodeEnds() for name in seen.parameters}
        for written in self._written.values():
            for node, writer in written.writers.items():
                nodes.setdefault(_node(node), NodeEnds()).writers.append(writer.guid)
        for name, read in self._read.items():
            for node in sorted(seen.topics[name].subscribers):
                nodes.setdefault(_node(node), NodeEnds()).readers.append(read.reader.guid)
        for served in self._served.values():
            ends = nodes.setdefault(_node(served.node), NodeEnds())
            ends.readers.append(served.reader.guid)
            ends.writers.append(served.writer.guid)
        own = nodes.setdefault(_OWN, NodeEnds())
        for asked in self._asked.values():
            own.readers.append(asked.reader.guid)
            own.writers.append(asked.writer.guid)
        own.writers += [writer.guid for writer in (self._clock, *self._described) if writer is not None]
        if nodes != self._nodes:
            self._nodes = nodes
            self._graph.write(discovery.encode(self._participant.guid, nodes, self._octets))

    # -- what peers tell, on DDS's thread --------------------------------------------------------------------------
    def _told(self, reader: Reader) -> None:
        for sample in reader.take():
            try:
                participant, nodes, octets = discovery.decode(sample.data)
            except MessageError as error:
                self._gateway.complain("malformed", f"{discovery.TOPIC}: {error}")
                continue
            if octets != self._octets and not self._peers:  # the first peer's distribution is ours
                self._octets = octets
                self._nodes = {}
            self._peers[participant] = nodes
            self._sources = discovery.names_by_writer(self._peers.values())
            for name in sorted(nodes.keys() & self._nodes.keys()):
                self._gateway.complain("name clash", f"another node of ROS 2 is called {name}, as one of ours")

    def _source(self, guid: bytes) -> str:
        """How the owner of a writer is called here: never as one of our nodes."""
        name = self._sources.get(guid) or f"/dds_{guid.hex()[:8] or 'unknown'}"
        return f"{name}_ros2" if name in self._nodes else name

    # -- time, on the executor's thread ----------------------------------------------------------------------------
    def _advance(self, time_ns: int) -> None:
        if self._clock_read and self._clock is not None and time_ns - self._ticked_ns >= _TICK_NS:
            self._ticked_ns = time_ns
            self._clock.write(b"\0\1\0\0" + struct.pack("<iI", *divmod(time_ns, 1_000_000_000)))
        now_ns = perf_ns()
        if now_ns - self._flushed_ns > _FLUSH_NS:
            self._flushed_ns = now_ns
            self._participant.flush()

    def unfitting(self, name: str, why: str) -> None:
        """Leave something out from now on, and say so."""
        self._unfit.add(name)
        self._gateway.complain("not shown", f"{name}: {why}")


class _Fitting:
    """What cannot be shown is left out, and the rest goes on."""

    def __init__(self, bridge: Ros2Bridge, name: str) -> None:
        self._bridge = bridge
        self._name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        if isinstance(error, MessageError | BridgeError):
            self._bridge.unfitting(self._name, str(error))
            return True
        return False


def _services(
    services: Mapping[str, tuple[str, str]], actions: Mapping[str, tuple[str, str]]
) -> dict[str, tuple[str, str]]:
    """All of them, those that carry actions too: ROS 2 has them alike."""
    found = dict(services)
    for name, (kind, node) in actions.items():
        found[endpoint(name, "send_goal")] = (f"{kind}_SendGoal", node)
        found[endpoint(name, "get_result")] = (f"{kind}_GetResult", node)
        found[endpoint(name, "cancel_goal")] = ("action_msgs/srv/CancelGoal", node)
    return found


def _node(source: str) -> str:
    return source if source.startswith("/") else f"/{source}"


def _domain_of(text: str) -> int:
    if not text:
        return 0
    if not text.isdecimal() or int(text) > 232:
        raise BridgeError(f"ROS_DOMAIN_ID is '{text[:40]}'", valid="0 to 232")
    return int(text)
