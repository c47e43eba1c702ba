"""Publishers of one simulated model: its sensors, cameras, ground truth and contacts.

A camera's state is captured at the sample time, rendered on the render thread, and published after the sensor's
latency.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from roboyard.bus import SENSOR, Publisher
from roboyard.bus.executor import DELIVERY
from roboyard.bus.offload import run_timed
from roboyard.description.sensors import camera_topics
from roboyard.messages import deserialize, msg, serialize
from roboyard.sensors import SimulatedSensor
from roboyard.sensors.cameras.camera import CameraReading, CameraSensor, CameraSnapshot, render_camera_reading
from roboyard.simulation.faults import FaultManager
from roboyard.simulation.nodes.sensor_messages import (
    CAMERA_MESSAGE_TYPES,
    REQUIRED_IMAGES,
    CameraMessages,
    Converter,
    make_contacts_state,
    make_converter,
    make_ground_truth_pose,
    make_odometry,
)
from roboyard.simulation.simulation import ModelHandle, Simulation

if TYPE_CHECKING:
    from roboyard.bus import Node
    from roboyard.bus.executor import ScheduledEvent, Timer


MIN_SENSOR_PERIOD_NS = 10_000_000
"""Period of sensors whose description asks for "as fast as possible" [ns]."""
_MAX_FIXED_ROBOT_RATE = 10.0
"""How often it is told at most where a robot is that is bolted down [Hz]."""


@dataclass(slots=True)
class _PendingReading:
    """A reading or message that is published later.

    Attributes:
        due_ns: When [ns].
        delayed_by: Name of the fault that holds a reading back; "": it is a message that the sensor's latency holds.
        payload: The reading, or the message.
        event: The arrival, as the executor knows it.
    """

    due_ns: int
    delayed_by: str
    payload: Any
    event: ScheduledEvent


class SensorPublisher:
    """Publishes what one sensor measures: at once or after its latency, and not while it has an outage or is silent."""

    def __init__(
        self, node: Node, faults: FaultManager, sensor: SimulatedSensor[Any], convert: Converter, publisher: Publisher
    ) -> None:
        self._faults = faults
        self._node, self._sensor, self._convert, self._publisher = node, sensor, convert, publisher
        self._latency_ns = round(sensor.sensor.latency * 1e9)
        self._pending: dict[int, _PendingReading] = {}
        self._last_number = 0

    def sample(self) -> None:
        """Measure now."""
        reading = self._sensor.read()
        if not self._sensor.has_outage():
            self._publish_or_delay(reading, "")

    def _publish_or_delay(self, reading: Any, after_fault: str) -> None:
        """Publish a reading, or schedule it: the faults behind ``after_fault`` still act on it."""
        faulted = self._faults.apply_faults(self._sensor, reading, after_fault)
        if faulted is None:
            return
        if faulted.delayed_by:
            self.schedule(self._node.now_ns + faulted.delay_ns, faulted.delayed_by, faulted.reading)
            return
        message = self._convert(faulted.reading)
        if self._latency_ns:
            self.schedule(self._node.now_ns + self._latency_ns, "", message)
        else:
            self._publisher.publish(message)

    def schedule(self, due_ns: int, delayed_by: str, payload: Any) -> None:
        """Let something arrive at ``due_ns`` [ns]: a message, or a reading that a fault holds back."""
        self._last_number += 1
        number, delay_ns = self._last_number, due_ns - self._node.now_ns
        event = self._node.call_after(
            delay_ns * 1e-9, lambda: self._on_due(number), restored_by_node=True, priority=DELIVERY
        )
        self._pending[number] = _PendingReading(due_ns, delayed_by, payload, event)

    def _on_due(self, number: int) -> None:
        item = self._pending.pop(number)
        if item.delayed_by:
            self._publish_or_delay(item.payload, item.delayed_by)
        else:
            self._publisher.publish(item.payload)

    def close(self) -> None:
        """What is on its way does not arrive."""
        for item in self._pending.values():
            item.event.cancel()
        self._pending.clear()

    def save_state(self, sequence: Mapping[ScheduledEvent | None, int]) -> list[tuple[int, int, str, Any]]:
        """What is on its way: its place in the executor's queue, due time [ns], the fault that holds it, and itself.

        Messages are CDR bytes.
        """
        return [
            (
                sequence[item.event],
                item.due_ns,
                item.delayed_by,
                item.payload if item.delayed_by else serialize(item.payload),
            )
            for item in self._pending.values()
        ]

    def load_state(self, due_ns: int, delayed_by: str, payload: Any) -> None:
        """Expect again what ``save`` gave; all outlets' together in their order, once this one was closed."""
        type_name = self._publisher.topic.type_name
        self.schedule(due_ns, delayed_by, payload if delayed_by else deserialize(payload, type_name))


class ModelPublishers:
    """Publishers and timers of one model; `close` takes them down."""

    def __init__(
        self,
        node: Node,
        simulation: Simulation,
        handle: ModelHandle,
        truth_rate: float,
        camera_record_rate: float = 0.0,
    ) -> None:
        self._record_ns = round(1e9 / camera_record_rate) if camera_record_rate > 0.0 else 0
        self._node, self._simulation, self._handle = node, simulation, handle
        self._frame_prefix = f"{handle.namespace.strip('/')}/" if handle.namespace.strip("/") else ""
        self._endpoints: list[Publisher | Timer] = []
        self.sensors: dict[str, SensorPublisher | CameraPublisher] = {}
        for sensor in simulation.sensors(handle.name):
            self._add_sensor(node, sensor)
        self._has_ground_truth = handle.is_robot
        self.contact_pairs: frozenset[tuple[str, str]] = frozenset()
        if self._has_ground_truth:
            topic_prefix = f"/truth/{handle.name}"
            self._pose = self._add_endpoint(node.publisher(f"{topic_prefix}/pose", msg.PoseStamped))
            self._odometry = self._add_endpoint(node.publisher(f"{topic_prefix}/odom", msg.Odometry))
            self._contacts = self._add_endpoint(node.publisher(f"{topic_prefix}/contacts", msg.ContactsState))
            addresses = simulation.world.addresses(handle.name)
            if simulation.world.model.body_weldid[addresses.links[addresses.root].body] == 0:
                truth_rate = min(truth_rate, _MAX_FIXED_ROBOT_RATE)
            self._endpoints.append(
                node.timer(rate=truth_rate, callback=self._publish_ground_truth, immediate=True, priority=SENSOR)
            )

    def _add_endpoint(self, publisher: Publisher) -> Publisher:
        self._endpoints.append(publisher)
        return publisher

    def _add_sensor(self, node: Node, sensor: SimulatedSensor[Any]) -> None:
        sensor_publisher: SensorPublisher | CameraPublisher
        if isinstance(sensor, CameraSensor):
            sensor_publisher = self._make_camera_publisher(node, sensor)
        else:
            conversion = make_converter(sensor, self._frame_prefix + sensor.sensor.frame)
            if conversion is None:
                return
            message_type, convert = conversion
            publisher = self._add_endpoint(
                node.publisher(self._absolute_topic(sensor.sensor.topic or sensor.sensor.name), message_type)
            )
            sensor_publisher = SensorPublisher(node, self._simulation.faults, sensor, convert, publisher)
        period = (sensor.period_ns or MIN_SENSOR_PERIOD_NS) * 1e-9
        self.sensors[sensor.sensor.name] = sensor_publisher
        timer = node.timer(period, sensor_publisher.sample, priority=SENSOR, name=sensor.sensor.name)
        if sensor.sensor.phase:
            timer.reschedule(timer.next_ns + round(sensor.sensor.phase * 1e9))
        self._endpoints.append(timer)

    def _absolute_topic(self, topic: str) -> str:
        if topic.startswith("/"):
            return topic
        return f"/{self._handle.namespace.strip('/')}/{topic}" if self._frame_prefix else f"/{topic}"

    def _make_camera_publisher(self, node: Node, camera: CameraSensor) -> CameraPublisher:
        topics = camera_topics(camera.sensor, camera.spec)
        for image_kind in ("image", "depth"):
            if image_kind in topics and self._record_ns:
                topics[f"{image_kind}/compressed"] = f"{topics[image_kind]}/compressed"
        publishers = {
            output: self._add_endpoint(node.publisher(self._absolute_topic(topic), CAMERA_MESSAGE_TYPES[output]))
            for output, topic in topics.items()
        }
        messages = CameraMessages(camera.sensor, camera.spec, self._frame_prefix)
        return CameraPublisher(node, self._simulation.faults, camera, messages, publishers, self._record_ns)

    def _publish_ground_truth(self) -> None:
        truth = self._simulation.world.ground_truth(self._handle.name, with_contacts=False)
        self._pose.publish(make_ground_truth_pose(truth))
        root = self._simulation.world.addresses(self._handle.name).root
        self._odometry.publish(make_odometry(truth, self._frame_prefix + root))

    def publish_contacts_if_changed(self, touching_pairs: frozenset[tuple[str, str]]) -> None:
        """Publish the model's contacts if the set of things it touches has changed.

        Args:
            touching_pairs: Pairs of shapes (own, other) of this model that touched since the last look.
        """
        if not self._has_ground_truth or touching_pairs == self.contact_pairs:
            return
        self.contact_pairs = touching_pairs
        simulation = self._simulation
        geom_mask = simulation.world.contacts.geom_models == simulation.world.addresses(self._handle.name).index
        contact_points = simulation.world.find_contacts(geom_mask, ground=False)
        self._contacts.publish(make_contacts_state(contact_points, simulation.time_ns, tuple(sorted(touching_pairs))))

    def close(self) -> None:
        """Stop publishing."""
        for sensor_publisher in self.sensors.values():
            sensor_publisher.close()
        for item in self._endpoints:
            self._node.release_endpoint(item)
        self._endpoints.clear()


COMPRESSED_OUTPUTS = frozenset(("image/compressed", "depth/compressed"))
_RenderFuture = Future[tuple[tuple[CameraReading, dict[str, Any]], int]]
_INFO_OUTPUTS = frozenset(("info", "depth_info", "infrared_info", "right_info"))


@dataclass(slots=True)
class FrameCounts:
    """Counts of a camera's images; each requested image is counted once as delivered, outage, fault or in flight.

    Attributes:
        requested: As often as its rate asked for one.
        delivered: Published.
        outage: Missed: the camera had an outage.
        fault: Missed: a fault swallowed it.
        in_flight: Not yet there.
    """

    requested: int = 0
    delivered: int = 0
    outage: int = 0
    fault: int = 0

    @property
    def dropped(self) -> int:
        """How many never came."""
        return self.outage + self.fault

    @property
    def in_flight(self) -> int:
        """How many were caught and have not come yet."""
        return self.requested - self.delivered - self.dropped


@dataclass(slots=True)
class _PendingImage:
    """One on its way.

    Attributes:
        due_ns: When it arrives [ns].
        delayed_by: Name of the fault that holds it back; "": none does.
        is_recorded: Whether it is for the recording.
        future: Its reading and messages, once they are made.
        event: The arrival, as the executor knows it.
    """

    due_ns: int
    delayed_by: str
    is_recorded: bool
    future: _RenderFuture
    event: ScheduledEvent


class CameraPublisher:
    """Publishes the images of one camera.

    Renders only images that are subscribed to or that the recording needs; ``camera_info`` is always published.

    Args:
        node: Whose publishers they are.
        faults: What is wrong with sensors.
        sensor: The camera.
        messages: Makes its messages.
        publishers: By output.
        record_ns: Between two pictures of the recording [ns]; 0: none.
    """

    def __init__(
        self,
        node: Node,
        faults: FaultManager,
        sensor: CameraSensor,
        messages: CameraMessages,
        publishers: dict[str, Publisher],
        record_ns: int,
    ) -> None:
        self._node, self._faults, self._sensor, self._messages = node, faults, sensor, messages
        self._publishers, self._record_ns, self._next_record_ns = publishers, record_ns, 0
        self._latency_ns = round(sensor.sensor.latency * 1e9)
        self._pending: dict[int, _PendingImage] = {}
        self._last_number = 0
        self.frames = FrameCounts()

    def sample(self) -> None:
        """Capture the present state."""
        self.frames.requested += 1
        if self._sensor.has_outage():
            self.frames.outage += 1
            return
        now_ns = self._sensor.context.world.time_ns
        is_recorded = bool(self._record_ns) and now_ns >= self._next_record_ns
        if is_recorded:
            # A stamp is up to a physics step before its event.
            self._next_record_ns = now_ns + self._record_ns - self._sensor.context.world.timestep_ns
        outputs = self._select_outputs(is_recorded)
        if outputs <= _INFO_OUTPUTS:  # nobody looks: the camera says when and how it would have
            future = _finished_future(CameraReading(now_ns, self._sensor.spec))
        else:
            future = self._sensor.context.renderer.submit(
                _render_messages, self._messages, self._sensor.capture(), self._sensor.spec, outputs
            )
        if self._latency_ns:
            self._schedule(self._node.now_ns + self._latency_ns, "", is_recorded, future)
        else:
            self._publish_or_delay(future, "", is_recorded)

    def _select_outputs(self, is_recorded: bool) -> frozenset[str]:
        """What is to be made now; compressed pictures only for the recording, whoever else listens."""
        available = self._publishers.keys()
        subscribed = {name for name in available - COMPRESSED_OUTPUTS if self._publishers[name].topic.subscriptions}
        return frozenset(
            subscribed | (_INFO_OUTPUTS & available) | (COMPRESSED_OUTPUTS & available if is_recorded else set())
        )

    def _schedule(self, due_ns: int, delayed_by: str, is_recorded: bool, future: _RenderFuture) -> None:
        self._last_number += 1
        number, delay_ns = self._last_number, due_ns - self._node.now_ns
        event = self._node.call_after(
            delay_ns * 1e-9, lambda: self._on_due(number), restored_by_node=True, priority=DELIVERY
        )
        self._pending[number] = _PendingImage(due_ns, delayed_by, is_recorded, future, event)

    def _on_due(self, number: int) -> None:
        item = self._pending.pop(number)
        self._publish_or_delay(item.future, item.delayed_by, item.is_recorded)

    def _publish_or_delay(self, future: _RenderFuture, after_fault: str, is_recorded: bool) -> None:
        """Wait for the picture if need be, let it through the faults, and publish it."""
        (reading, messages), spent_ns = future.result()
        if not after_fault:
            task_name = f"picture {self._sensor.robot}/{self._sensor.sensor.name}"
            self._node.bus.offload.record_duration(self._node.full_name, task_name, self._latency_ns, spent_ns)
        faulted = self._faults.apply_faults(self._sensor, reading, after_fault)
        if faulted is None:
            self.frames.fault += 1
            return
        if faulted.delayed_by:
            self._schedule(
                self._node.now_ns + faulted.delay_ns, faulted.delayed_by, is_recorded, _finished_future(faulted.reading)
            )
            return
        if faulted.reading is not reading or not messages:  # a fault changed it, or it was restored
            messages = self._messages.make(faulted.reading, self._select_outputs(is_recorded))
        self.frames.delivered += 1
        for name, message in messages.items():
            if name in self._publishers:
                self._publishers[name].publish(message)

    def close(self) -> None:
        """What is on its way does not arrive."""
        for item in self._pending.values():
            item.event.cancel()
            item.future.cancel()
        self._pending.clear()

    def save_state(self, sequence: Mapping[ScheduledEvent | None, int]) -> list[tuple[int, int, str, Any]]:
        """What is on its way, finished: its place in the executor's queue, due time [ns], the fault that holds it.

        Last, its reading and whether it is for the recording.
        """
        return [
            (sequence[item.event], item.due_ns, item.delayed_by, (item.future.result()[0][0], item.is_recorded))
            for item in self._pending.values()
        ]

    def load_state(self, due_ns: int, delayed_by: str, payload: Any) -> None:
        """Expect again what ``save`` gave."""
        reading, is_recorded = payload
        self._schedule(due_ns, delayed_by, bool(is_recorded), _finished_future(reading))

    def save_counts(self) -> dict[str, int]:
        """What became of its pictures so far, and when the recording's next is due [ns], as plain data."""
        frames = self.frames
        return {
            "due": frames.requested,
            "delivered": frames.delivered,
            "outage": frames.outage,
            "fault": frames.fault,
            "next": self._next_record_ns,
        }

    def load_counts(self, saved: Mapping[str, int]) -> None:
        """Counterpart of `counts`."""
        self.frames = FrameCounts(saved["due"], saved["delivered"], saved["outage"], saved["fault"])
        self._next_record_ns = saved["next"]


def _finished_future(reading: CameraReading) -> _RenderFuture:
    """A reading that is there already, without messages."""
    future: _RenderFuture = Future()
    future.set_result(((reading, {}), 0))
    return future


def _render_messages(
    worker: Any, messages: CameraMessages, snapshot: CameraSnapshot, spec: Any, outputs: frozenset[str]
) -> tuple[tuple[CameraReading, dict[str, Any]], int]:
    """In the studio: the reading and its messages, and how long it took [ns]."""

    def render() -> tuple[CameraReading, dict[str, Any]]:
        needed = frozenset().union(*(REQUIRED_IMAGES.get(name, frozenset()) for name in outputs))
        reading = (
            render_camera_reading(worker, snapshot, spec, needed) if needed else CameraReading(snapshot.time_ns, spec)
        )
        return reading, messages.make(reading, outputs)

    return run_timed(render, ())
