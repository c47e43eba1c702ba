"""System node of the bus: publishes clock, log, diagnostics and parameter events, and collects transforms."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from roboyard.bus.executor import LATE
from roboyard.bus.log import LOG_LEVELS, LogRecord
from roboyard.bus.node import HEALTH_LEVELS, Node
from roboyard.bus.parameter_services import to_value
from roboyard.bus.parameters import resource
from roboyard.bus.topics import Publisher
from roboyard.errors import RoboyardError
from roboyard.messages import message_type, time_to_msg, to_nanoseconds
from roboyard.messages.convert import transform_to_se3

CLOCK_RATE = 10.0
HEALTH_PERIOD = 1.0


class SystemNode(Node):
    """in: /tf /tf_static   out: /clock /rosout /diagnostics /parameter_events"""

    nodes: Callable[[], Iterable[Node]] = resource()

    def setup(self) -> None:
        """Create the standard topics."""
        self._clock_type = message_type("rosgraph_msgs/msg/Clock")
        self._clock_publisher = self.publisher("/clock", self._clock_type)
        self._log_type = message_type("rcl_interfaces/msg/Log")
        self._log_publisher: Publisher = self.publisher("/rosout", self._log_type)
        self._diagnostics_type = message_type("diagnostic_msgs/msg/DiagnosticArray")
        self._status_type = message_type("diagnostic_msgs/msg/DiagnosticStatus")
        self._key_value_type = message_type("diagnostic_msgs/msg/KeyValue")
        self._diagnostics_publisher = self.publisher("/diagnostics", self._diagnostics_type)
        self._event_type = message_type("rcl_interfaces/msg/ParameterEvent")
        self._parameter_type = message_type("rcl_interfaces/msg/Parameter")
        self._parameter_event_publisher = self.publisher("/parameter_events", self._event_type)
        tf_type = message_type("tf2_msgs/msg/TFMessage")
        self.subscribe("/tf", tf_type, self._on_tf)
        self.subscribe("/tf_static", tf_type, self._on_static_tf)
        self.timer(rate=CLOCK_RATE, callback=self._publish_clock, immediate=True, priority=LATE)
        self.timer(HEALTH_PERIOD, self.publish_health, priority=LATE)

    def _publish_clock(self) -> None:
        self._clock_publisher.publish(self._clock_type(clock=time_to_msg(self.now_ns)))

    # -- transforms ----------------------------------------------------------------------------------------------------
    def _on_tf(self, message: Any) -> None:
        self._insert_transforms(message, static=False)

    def _on_static_tf(self, message: Any) -> None:
        self._insert_transforms(message, static=True)

    def _insert_transforms(self, message: Any, *, static: bool) -> None:
        for item in message.transforms:
            header = item.header
            try:
                self.transforms.insert(
                    transform_to_se3(item.transform),
                    header.frame_id,
                    item.child_frame_id,
                    to_nanoseconds(header.stamp),
                    static,
                )
            except RoboyardError as error:  # a loop, an invalid rotation, numbers that are not finite
                self.log.error(
                    f"transform from '{header.frame_id}' to '{item.child_frame_id}' ignored: {error}", throttle=5.0
                )

    # -- reports -------------------------------------------------------------------------------------------------------
    def publish_log(self, record: LogRecord) -> None:
        """Publish a log record on /rosout."""
        self._log_publisher.publish(
            self._log_type(
                stamp=time_to_msg(record.time_ns), level=LOG_LEVELS[record.level], name=record.node, msg=record.text
            )
        )

    def publish_health(self) -> None:
        """Publish the health of every node on /diagnostics, if any node has reported it."""
        reports = [(node.full_name, node.health) for node in self.nodes() if node.health is not None]
        if not reports:
            return
        message = self._diagnostics_type()
        message.header.stamp = time_to_msg(self.now_ns)
        for name, health in reports:
            values = [self._key_value_type(key=key, value=value) for key, value in health.values]
            message.status.append(
                self._status_type(level=HEALTH_LEVELS[health.level], name=name, message=health.text, values=values)
            )
        self._diagnostics_publisher.publish(message)

    def publish_parameter(self, node: str, name: str, value: Any) -> None:
        """Publish a changed parameter on /parameter_events."""
        changed = self._parameter_type(name=name, value=to_value(value))
        self._parameter_event_publisher.publish(
            self._event_type(stamp=time_to_msg(self.now_ns), node=node, changed_parameters=[changed])
        )
