"""What the simulation node publishes for one model: its sensors, its truth, its contacts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from roboyard.bus import SENSOR, Publisher
from roboyard.bus.executor import DELIVERY
from roboyard.description.sensors import camera_topics
from roboyard.messages import deserialize, msg, serialize
from roboyard.simulation.engine import Simulation
from roboyard.simulation.faults import FaultTable
from roboyard.simulation.handle import Handle
from roboyard.simulation.nodes.camera_messages import TYPES, CameraMessages
from roboyard.simulation.nodes.camera_outlet import CameraOutlet
from roboyard.simulation.nodes.to_messages import Converter, contacts_state, converter, odometry, true_pose
from roboyard.simulation.sensors import SimulatedSensor
from roboyard.simulation.sensors.cameras.camera import Camera
from roboyard.simulation.touch import touches_of
from roboyard.simulation.truth import truth_of

if TYPE_CHECKING:
    from roboyard.bus import Node
    from roboyard.bus.executor import ScheduledEvent, Timer

FASTEST_NS = 10_000_000
"""Period of sensors whose description asks for "as fast as possible" [ns]."""
_STANDING_RATE = 10.0
"""How often it is told at most where a robot is that is bolted down [Hz]."""


@dataclass(slots=True)
class _OnItsWay:
    """Something that arrives later.

    Attributes:
        due_ns: When [ns].
        held_by: Name of the fault that holds a reading back; "": it is a message that the sensor's latency holds.
        what: The reading, or the message.
        event: The arrival, as the executor knows it.
    """

    due_ns: int
    held_by: str
    what: Any
    event: ScheduledEvent


class Outlet:
    """Publishes what one sensor measures: at once or after its latency, and not while it has an outage or is silent."""

    def __init__(
        self, node: Node, faults: FaultTable, sensor: SimulatedSensor[Any], convert: Converter, publisher: Publisher
    ) -> None:
        self._faults = faults
        self._node, self._sensor, self._convert, self._publisher = node, sensor, convert, publisher
        self._latency_ns = round(sensor.sensor.latency * 1e9)
        self._waiting: dict[int, _OnItsWay] = {}
        self._number = 0

    def read(self) -> None:
        """Measure now."""
        reading = self._sensor.read()
        if not self._sensor.is_out():
            self._send(reading, "")

    def _send(self, reading: Any, after: str) -> None:
        """Let a reading go on, from behind the fault ``after``."""
        passage = self._faults.pass_on(self._sensor, reading, after)
        if passage is None:
            return
        if passage.held_by:
            self.expect(self._node.now_ns + passage.delay_ns, passage.held_by, passage.reading)
            return
        message = self._convert(passage.reading)
        if self._latency_ns:
            self.expect(self._node.now_ns + self._latency_ns, "", message)
        else:
            self._publisher.publish(message)

    def expect(self, due_ns: int, held_by: str, what: Any) -> None:
        """Let something arrive at ``due_ns`` [ns]: a message, or a reading that a fault holds back."""
        self._number += 1
        number, delay_ns = self._number, due_ns - self._node.now_ns
        event = self._node.call_after(
            delay_ns * 1e-9, lambda: self._arrive(number), restored_by_node=True, priority=DELIVERY
        )
        self._waiting[number] = _OnItsWay(due_ns, held_by, what, event)

    def _arrive(self, number: int) -> None:
        item = self._waiting.pop(number)
        if item.held_by:
            self._send(item.what, item.held_by)
        else:
            self._publisher.publish(item.what)

    def close(self) -> None:
        """What is on its way does not arrive."""
        for item in self._waiting.values():
            item.event.cancel()
        self._waiting.clear()

    def save_state(self, sequence: Mapping[ScheduledEvent | None, int]) -> list[tuple[int, int, str, Any]]:
        """What is on its way: its place in the executor's queue, due time [ns], the fault that holds it, and itself.

        Messages are CDR bytes.
        """
        return [
            (sequence[item.event], item.due_ns, item.held_by, item.what if item.held_by else serialize(item.what))
            for item in self._waiting.values()
        ]

    def load_state(self, due_ns: int, held_by: str, what: Any) -> None:
        """Expect again what ``save`` gave; all outlets' together in their order, once this one was closed."""
        kind = self._publisher.topic.type_name
        self.expect(due_ns, held_by, what if held_by else deserialize(what, kind))


class Outlets:
    """Publishers and timers of one model; `close` takes them down."""

    def __init__(
        self, node: Node, simulation: Simulation, handle: Handle, truth_rate: float, record_cameras: float = 0.0
    ) -> None:
        self._record_ns = round(1e9 / record_cameras) if record_cameras > 0.0 else 0
        self._node, self._simulation, self._handle = node, simulation, handle
        self._frame_prefix = f"{handle.namespace.strip('/')}/" if handle.namespace.strip("/") else ""
        self._open: list[Publisher | Timer] = []
        self.sensors: dict[str, Outlet | CameraOutlet] = {}
        for sensor in simulation.sensors(handle.name):
            self._sensor(node, sensor)
        self._watched = handle.is_robot
        self.pairs: frozenset[tuple[str, str]] = frozenset()
        if self._watched:
            base = f"/truth/{handle.name}"
            self._pose = self._keep(node.publisher(f"{base}/pose", msg.PoseStamped))
            self._odometry = self._keep(node.publisher(f"{base}/odom", msg.Odometry))
            self._contacts = self._keep(node.publisher(f"{base}/contacts", msg.ContactsState))
            placement = simulation.placement(handle.name)
            if simulation.model.body_weldid[placement.links[placement.root].body] == 0:
                truth_rate = min(truth_rate, _STANDING_RATE)
            self._open.append(node.timer(rate=truth_rate, callback=self._truth, immediate=True, priority=SENSOR))

    def _keep(self, publisher: Publisher) -> Publisher:
        self._open.append(publisher)
        return publisher

    def _sensor(self, node: Node, sensor: SimulatedSensor[Any]) -> None:
        outlet: Outlet | CameraOutlet
        if isinstance(sensor, Camera):
            outlet = self._camera(node, sensor)
        else:
            found = converter(sensor, self._frame_prefix + sensor.sensor.frame)
            if found is None:
                return
            kind, convert = found
            publisher = self._keep(node.publisher(self._absolute(sensor.sensor.topic or sensor.sensor.name), kind))
            outlet = Outlet(node, self._simulation.faults, sensor, convert, publisher)
        period = (sensor.period_ns or FASTEST_NS) * 1e-9
        self.sensors[sensor.sensor.name] = outlet
        timer = node.timer(period, outlet.read, priority=SENSOR, name=sensor.sensor.name)
        if sensor.sensor.phase:
            timer.reschedule(timer.next_ns + round(sensor.sensor.phase * 1e9))
        self._open.append(timer)

    def _absolute(self, topic: str) -> str:
        if topic.startswith("/"):
            return topic
        return f"/{self._handle.namespace.strip('/')}/{topic}" if self._frame_prefix else f"/{topic}"

    def _camera(self, node: Node, camera: Camera) -> CameraOutlet:
        topics = camera_topics(camera.sensor, camera.spec)
        for picture in ("image", "depth"):
            if picture in topics and self._record_ns:
                topics[f"{picture}/compressed"] = f"{topics[picture]}/compressed"
        publishers = {
            output: self._keep(node.publisher(self._absolute(topic), TYPES[output])) for output, topic in topics.items()
        }
        messages = CameraMessages(camera.sensor, camera.spec, self._frame_prefix)
        return CameraOutlet(node, self._simulation.faults, camera, messages, publishers, self._record_ns)

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
            self._node.release_endpoint(item)
        self._open.clear()
