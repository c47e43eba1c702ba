"""What the simulation node publishes for one model: its sensors, its truth, its contacts."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from roboyard.bus import SENSOR, Publisher
from roboyard.bus.executor import ARRIVAL
from roboyard.bus.node_state import release
from roboyard.messages import deserialize, msg, serialize
from roboyard.simulation.engine import Handle, Simulation
from roboyard.simulation.faults import FaultTable
from roboyard.simulation.nodes.to_messages import Converter, contacts_state, converter, odometry, true_pose
from roboyard.simulation.sensors import SimulatedSensor
from roboyard.simulation.touch import touches_of
from roboyard.simulation.truth import truth_of

if TYPE_CHECKING:
    from roboyard.bus import Node
    from roboyard.bus.executor import Scheduled
    from roboyard.bus.timers import Timer

FASTEST_NS = 10_000_000
"""Period of sensors whose description asks for "as fast as possible" [ns]."""


class Outlet:
    """Publishes what one sensor measures: at once or after its latency, and not while it has an outage or is silent."""

    def __init__(
        self, node: Node, faults: FaultTable, sensor: SimulatedSensor[Any], convert: Converter, publisher: Publisher
    ) -> None:
        self._faults = faults
        self._node, self._sensor, self._convert, self._publisher = node, sensor, convert, publisher
        self._latency_ns = round(sensor.sensor.latency * 1e9)
        self._waiting: deque[tuple[int, Any]] = deque()
        self._events: deque[Scheduled] = deque()

    def read(self) -> None:
        """Measure now."""
        reading = self._faults.sensed(self._sensor)
        if self._sensor.is_out() or reading is None:
            return
        message = self._convert(reading)
        if self._latency_ns == 0:
            self._publisher.publish(message)
            return
        self._waiting.append((self._node.now_ns + self._latency_ns, message))
        self._schedule(self._latency_ns)

    def _schedule(self, delay_ns: int) -> None:
        self._events.append(self._node.after(delay_ns * 1e-9, self._deliver, restored=True, priority=ARRIVAL))

    def _deliver(self) -> None:
        self._events.popleft()
        self._publisher.publish(self._waiting.popleft()[1])

    def close(self) -> None:
        """What is on its way does not arrive."""
        for event in self._events:
            event.cancel()
        self._events.clear()
        self._waiting.clear()

    def save(self) -> list[tuple[int, bytes]]:
        """What is on its way: when it is due [ns], and the message as CDR."""
        return [(due_ns, serialize(message)) for due_ns, message in self._waiting]

    def load(self, saved: list[tuple[int, bytes]]) -> None:
        """Counterpart of `save`."""
        for event in self._events:
            event.cancel()
        self._events.clear()
        kind = self._publisher.topic.type_name
        self._waiting = deque((due_ns, deserialize(data, kind)) for due_ns, data in saved)
        for due_ns, _ in self._waiting:
            self._schedule(due_ns - self._node.now_ns)


class Outlets:
    """Publishers and timers of one model; `close` takes them down."""

    def __init__(self, node: Node, simulation: Simulation, handle: Handle, truth_rate: float) -> None:
        self._node, self._simulation, self._handle = node, simulation, handle
        self._frame_prefix = f"{handle.namespace.strip('/')}/" if handle.namespace.strip("/") else ""
        self._open: list[Publisher | Timer] = []
        self.sensors: dict[str, Outlet] = {}
        for sensor in simulation.sensors(handle.name):
            self._sensor(node, sensor)
        self._watched = handle.is_robot
        self.pairs: frozenset[tuple[str, str]] = frozenset()
        if self._watched:
            base = f"/truth/{handle.name}"
            self._pose = self._keep(node.publisher(f"{base}/pose", msg.PoseStamped))
            self._odometry = self._keep(node.publisher(f"{base}/odom", msg.Odometry))
            self._contacts = self._keep(node.publisher(f"{base}/contacts", msg.ContactsState))
            self._open.append(node.timer(rate=truth_rate, callback=self._truth, start=True, priority=SENSOR))

    def _keep(self, publisher: Publisher) -> Publisher:
        self._open.append(publisher)
        return publisher

    def _sensor(self, node: Node, sensor: SimulatedSensor[Any]) -> None:
        found = converter(sensor, self._frame_prefix + sensor.sensor.frame)
        if found is None:
            return
        kind, convert = found
        topic = sensor.sensor.topic or sensor.sensor.name
        if not topic.startswith("/"):
            topic = f"/{self._handle.namespace.strip('/')}/{topic}" if self._frame_prefix else f"/{topic}"
        publisher = self._keep(node.publisher(topic, kind))
        period = (sensor.period_ns or FASTEST_NS) * 1e-9
        outlet = Outlet(node, self._simulation.faults, sensor, convert, publisher)
        self.sensors[sensor.sensor.name] = outlet
        self._open.append(node.timer(period, outlet.read, priority=SENSOR))

    def _truth(self) -> None:
        truth = truth_of(self._simulation, self._simulation.placement(self._handle.name), contacts=False)
        self._pose.publish(true_pose(truth))
        root = self._simulation.placement(self._handle.name).root
        self._odometry.publish(odometry(truth, self._frame_prefix + root))

    def look_at_contacts(self, touched: frozenset[tuple[str, str]]) -> None:
        """Publish the model's contacts if the set of things it touches has changed.

        Args:
            touched: Pairs of shapes (own, other) of this model that touched since the last look.
        """
        if not self._watched or touched == self.pairs:
            return
        self.pairs = touched
        simulation = self._simulation
        own = simulation.watch.owner == simulation.placement(self._handle.name).index
        touches = touches_of(simulation, own, ground=False)
        self._contacts.publish(contacts_state(touches, simulation.time_ns, tuple(sorted(touched))))

    def close(self) -> None:
        """Stop publishing."""
        for outlet in self.sensors.values():
            outlet.close()
        for item in self._open:
            release(self._node, item)
        self._open.clear()
