"""Publishers of one simulated model: its sensors, cameras, ground truth and contacts.

A camera's state is captured at the sample time, rendered on the render thread, and published after the sensor's
latency.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from roboyard.bus import SENSOR, Publisher
from roboyard.bus.executor import DELIVERY
from roboyard.bus.names import frame_prefix, normalize_namespace, resolve
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


Payload = TypeVar("Payload")
SavedPublication = tuple[int, int, str, Any]
"""Position in the executor's queue, due time [ns], name of the fault that delays it, payload as plain data."""
MIN_SENSOR_PERIOD_NS = 10_000_000
"""Period of sensors whose description asks for "as fast as possible" [ns]."""
_MAX_FIXED_ROBOT_RATE = 10.0
"""Highest rate of the ground truth of a robot that is fixed to the world [Hz]."""


@dataclass(slots=True)
class _DelayedPublication(Generic[Payload]):
    """One publication that is due later.

    Attributes:
        due_ns: Time at which it is due [ns].
        delayed_by: Name of the fault that delays it; "": the sensor's latency does.
        payload: What is published.
        event: The executor's event at that time.
    """

    due_ns: int
    delayed_by: str
    payload: Payload
    event: ScheduledEvent


class DelayedPublications(Generic[Payload]):
    """Publications of one sensor that are delayed by the sensor's latency or by a fault.

    The node that owns them saves and restores them with `save_state` and `schedule`, in the executor's order.

    Args:
        node: Its executor calls back.
        on_due: Called when a publication is due, with the payload and the name of the fault that delayed it, or "".
    """

    def __init__(self, node: Node, on_due: Callable[[Payload, str], None]) -> None:
        self._node, self._on_due = node, on_due
        self._delayed: dict[int, _DelayedPublication[Payload]] = {}
        self._last_number = 0

    def schedule(self, due_ns: int, delayed_by: str, payload: Payload) -> None:
        """Schedule a publication.

        Args:
            due_ns: Time at which it is due [ns].
            delayed_by: Name of the fault that delays it; "": the sensor's latency does.
            payload: What is published.
        """
        self._last_number += 1
        number, delay_ns = self._last_number, due_ns - self._node.now_ns
        event = self._node.call_after(
            delay_ns * 1e-9, lambda: self._publish(number), restored_by_node=True, priority=DELIVERY
        )
        self._delayed[number] = _DelayedPublication(due_ns, delayed_by, payload, event)

    def schedule_after(self, delay_ns: int, delayed_by: str, payload: Payload) -> None:
        """Schedule a publication ``delay_ns`` [ns] after the present time (see `schedule`)."""
        self.schedule(self._node.now_ns + delay_ns, delayed_by, payload)

    def _publish(self, number: int) -> None:
        item = self._delayed.pop(number)
        self._on_due(item.payload, item.delayed_by)

    def cancel(self) -> list[Payload]:
        """Cancel all publications, and return what is not published."""
        payloads = [item.payload for item in self._delayed.values()]
        for item in self._delayed.values():
            item.event.cancel()
        self._delayed.clear()
        return payloads

    def save_state(
        self, sequence: Mapping[ScheduledEvent | None, int], to_plain: Callable[[Payload, str], Any]
    ) -> list[SavedPublication]:
        """Return the delayed publications as plain data.

        Args:
            sequence: Positions of all events in the executor's queue.
            to_plain: Converts a payload, given the name of the fault that delays it, to plain data.

        Returns:
            Of each publication: position in the executor's queue, due time [ns], name of the fault that delays it,
            and its payload as plain data.
        """
        return [
            (sequence[item.event], item.due_ns, item.delayed_by, to_plain(item.payload, item.delayed_by))
            for item in self._delayed.values()
        ]


class SensorPublisher:
    """Publishes the readings of one sensor: immediately or after its latency, except during outages and by faults.

    Args:
        node: Owner of the publisher.
        faults: Faults that change, delay or drop readings.
        sensor: The sensor.
        convert: Converts a reading to a message.
        publisher: Publishes the message.
    """

    def __init__(
        self, node: Node, faults: FaultManager, sensor: SimulatedSensor[Any], convert: Converter, publisher: Publisher
    ) -> None:
        self._faults = faults
        self._sensor, self._convert, self._publisher = sensor, convert, publisher
        self._latency_ns = round(sensor.sensor.latency * 1e9)
        # A fault delays a reading, the sensor's latency delays a message.
        self._delayed: DelayedPublications[Any] = DelayedPublications(node, self._on_due)

    def sample(self) -> None:
        """Read the sensor, and publish the reading unless the sensor has an outage."""
        reading = self._sensor.read()
        if not self._sensor.has_outage():
            self._publish_or_delay(reading, "")

    def _publish_or_delay(self, reading: Any, after_fault: str) -> None:
        """Apply the faults behind ``after_fault`` to a reading, and publish or schedule the result."""
        faulted = self._faults.apply_faults(self._sensor, reading, after_fault)
        if faulted is None:
            return
        if faulted.delayed_by:
            self._delayed.schedule_after(faulted.delay_ns, faulted.delayed_by, faulted.reading)
            return
        message = self._convert(faulted.reading)
        if self._latency_ns:
            self._delayed.schedule_after(self._latency_ns, "", message)
        else:
            self._publisher.publish(message)

    def _on_due(self, payload: Any, delayed_by: str) -> None:
        if delayed_by:
            self._publish_or_delay(payload, delayed_by)
        else:
            self._publisher.publish(payload)

    def close(self) -> None:
        """Cancel all delayed publications."""
        self._delayed.cancel()

    def save_state(self, sequence: Mapping[ScheduledEvent | None, int]) -> list[SavedPublication]:
        """Return the delayed publications (see `DelayedPublications.save_state`); messages become CDR bytes."""
        return self._delayed.save_state(
            sequence, lambda payload, delayed_by: payload if delayed_by else serialize(payload)
        )

    def load_state(self, due_ns: int, delayed_by: str, payload: Any) -> None:
        """Schedule one saved publication; the node restores those of all sensors in the executor's order."""
        type_name = self._publisher.topic.type_name
        self._delayed.schedule(due_ns, delayed_by, payload if delayed_by else deserialize(payload, type_name))


class ModelPublishers:
    """Publishers and timers of one model; `close` removes them."""

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
        self._frame_prefix = frame_prefix(handle.namespace)
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
        return resolve(topic, normalize_namespace(self._handle.namespace), self._handle.name)

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
        """Publish the model's contacts if the set of touching shapes has changed.

        Args:
            touching_pairs: Pairs of shapes (own, other) of this model that touched since the last call.
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
    """Counts of a camera's images; each requested image is delivered, dropped by an outage or a fault, or in flight.

    Attributes:
        requested: Images that the camera's rate asked for.
        delivered: Published images.
        outage: Images dropped because the camera had an outage.
        fault: Images dropped by a fault.
    """

    requested: int = 0
    delivered: int = 0
    outage: int = 0
    fault: int = 0

    @property
    def dropped(self) -> int:
        """Number of images that are never published."""
        return self.outage + self.fault

    @property
    def in_flight(self) -> int:
        """Number of images that were captured and are not published yet."""
        return self.requested - self.delivered - self.dropped


class _CapturedImage(NamedTuple):
    """A captured image.

    Attributes:
        future: Its reading and messages, as soon as the render thread has made them.
        is_recorded: Whether the recording needs it.
    """

    future: _RenderFuture
    is_recorded: bool


class CameraPublisher:
    """Publishes the images of one camera.

    Renders only images that are subscribed to or that the recording needs; ``camera_info`` is always published.

    Args:
        node: Owner of the publishers.
        faults: Faults that change, delay or drop images.
        sensor: The camera.
        messages: Converts readings to messages.
        publishers: Publishers by output.
        record_ns: Time between two images of the recording [ns]; 0: the recording has no images.
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
        self._delayed: DelayedPublications[_CapturedImage] = DelayedPublications(node, self._publish_or_delay)
        self.frames = FrameCounts()

    def sample(self) -> None:
        """Capture the present state, and publish its image, or schedule it after the camera's latency."""
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
        if outputs <= _INFO_OUTPUTS:  # without a subscriber nothing is rendered; the camera info has stamp and model
            future = _finished_future(CameraReading(now_ns, self._sensor.spec))
        else:
            future = self._sensor.context.renderer.submit(
                _render_messages, self._messages, self._sensor.capture(), self._sensor.spec, outputs
            )
        image = _CapturedImage(future, is_recorded)
        if self._latency_ns:
            self._delayed.schedule_after(self._latency_ns, "", image)
        else:
            self._publish_or_delay(image, "")

    def _select_outputs(self, is_recorded: bool) -> frozenset[str]:
        """Return the outputs to make now; compressed images are made only for the recording."""
        available = self._publishers.keys()
        subscribed = {name for name in available - COMPRESSED_OUTPUTS if self._publishers[name].topic.subscriptions}
        return frozenset(
            subscribed | (_INFO_OUTPUTS & available) | (COMPRESSED_OUTPUTS & available if is_recorded else set())
        )

    def _publish_or_delay(self, image: _CapturedImage, after_fault: str) -> None:
        """Wait for the image if necessary, apply the faults behind ``after_fault``, and publish or schedule it."""
        (reading, messages), spent_ns = image.future.result()
        if not after_fault:
            task_name = f"picture {self._sensor.robot}/{self._sensor.sensor.name}"
            self._node.bus.offload.record_duration(self._node.full_name, task_name, self._latency_ns, spent_ns)
        faulted = self._faults.apply_faults(self._sensor, reading, after_fault)
        if faulted is None:
            self.frames.fault += 1
            return
        if faulted.delayed_by:
            self._delayed.schedule_after(
                faulted.delay_ns,
                faulted.delayed_by,
                _CapturedImage(_finished_future(faulted.reading), image.is_recorded),
            )
            return
        if faulted.reading is not reading or not messages:  # a fault changed the reading, or it was restored
            messages = self._messages.make(faulted.reading, self._select_outputs(image.is_recorded))
        self.frames.delivered += 1
        for name, message in messages.items():
            if name in self._publishers:
                self._publishers[name].publish(message)

    def close(self) -> None:
        """Cancel all delayed publications and their rendering."""
        for image in self._delayed.cancel():
            image.future.cancel()

    def save_state(self, sequence: Mapping[ScheduledEvent | None, int]) -> list[SavedPublication]:
        """Return the delayed publications (see `DelayedPublications.save_state`); waits for their rendering.

        A payload is the reading and whether the recording needs it.
        """
        return self._delayed.save_state(sequence, lambda image, _: (image.future.result()[0][0], image.is_recorded))

    def load_state(self, due_ns: int, delayed_by: str, payload: Any) -> None:
        """Schedule one saved publication; the node restores those of all sensors in the executor's order."""
        reading, is_recorded = payload
        self._delayed.schedule(due_ns, delayed_by, _CapturedImage(_finished_future(reading), bool(is_recorded)))

    def save_counts(self) -> dict[str, int]:
        """Return the counts of images, and the time of the recording's next image [ns], as plain data."""
        frames = self.frames
        return {
            "due": frames.requested,
            "delivered": frames.delivered,
            "outage": frames.outage,
            "fault": frames.fault,
            "next": self._next_record_ns,
        }

    def load_counts(self, saved: Mapping[str, int]) -> None:
        """Restore what `save_counts` returned."""
        self.frames = FrameCounts(saved["due"], saved["delivered"], saved["outage"], saved["fault"])
        self._next_record_ns = saved["next"]


def _finished_future(reading: CameraReading) -> _RenderFuture:
    """Return the future of a finished reading without messages."""
    future: _RenderFuture = Future()
    future.set_result(((reading, {}), 0))
    return future


def _render_messages(
    worker: Any, messages: CameraMessages, snapshot: CameraSnapshot, spec: Any, outputs: frozenset[str]
) -> tuple[tuple[CameraReading, dict[str, Any]], int]:
    """Make the reading and its messages on the render thread, and return them with the time spent [ns]."""

    def render() -> tuple[CameraReading, dict[str, Any]]:
        needed = frozenset().union(*(REQUIRED_IMAGES.get(name, frozenset()) for name in outputs))
        reading = (
            render_camera_reading(worker, snapshot, spec, needed) if needed else CameraReading(snapshot.time_ns, spec)
        )
        return reading, messages.make(reading, outputs)

    return run_timed(render, ())
