"""The collision monitor node: checks every velocity command just before the drive."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Final

import numpy as np
from numpy.typing import NDArray

from roboyard.bus import DroppedMessage, DropReason, MessageFilter, Node, TransformError, resource
from roboyard.config import Config, parameter
from roboyard.config.parameter import RegisteredName
from roboyard.control import ZERO_TWIST, PlanarTwist
from roboyard.control.drive_config import DriveLimits
from roboyard.control.nodes.velocity_base import planar_twist_from_msg, planar_twist_to_msg
from roboyard.description.extent import FootprintPolygon
from roboyard.errors import ConfigError, InputError, RoboyardError
from roboyard.geometry import SE2, SE3, polygons
from roboyard.messages import msg, to_nanoseconds
from roboyard.messages.convert import is_finite_twist
from roboyard.messages.convert.clouds import cloud_points
from roboyard.messages.convert.scans import scan_angles, scan_points
from roboyard.safety.collision_monitor import (
    ZONE_ACTIONS,
    BrakingConfig,
    CollisionMonitor,
    CollisionMonitorConfig,
    MonitorAction,
    MonitorDecision,
    SafetyZone,
    validate_polygon,
)
from roboyard.safety.obstacle_memory import ObstacleMemory, SensorView

_ARC_SPACING = 0.05
"""Distance between the points that represent the arc of an echo [m]."""


def view_from_scan(scan: Any, T_odom_base: SE2, T_base_sensor: SE3) -> SensorView:
    """Return the view of a sensor_msgs/LaserScan.

    Raises:
        InputError: no beam measured anything, or the angles are invalid.
    """
    ranges = np.asarray(scan.ranges, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        measured = ((ranges >= scan.range_min) & (ranges <= scan.range_max)) | np.isposinf(ranges)
    if not measured.any():
        raise InputError(f"a scan of {len(ranges)} beams, none of which measured anything", valid="ranges, or infinite")
    step = float(scan.angle_increment)
    if not (math.isfinite(step) and step != 0.0 and math.isfinite(scan.angle_min)):
        raise InputError(f"beams from {scan.angle_min} in steps of {step} rad", valid="finite angles")
    pose = T_odom_base @ SE2.from_se3(T_base_sensor)
    points_in_base = T_base_sensor @ np.column_stack([scan_points(scan), np.zeros(len(scan_points(scan)))])
    ends = scan_angles(scan)[[0, -1]]
    # of a laser that hangs upside down the beams run the other way
    is_upright = float(T_base_sensor.matrix()[2, 2]) > 0.0
    first, last = sorted(ends.tolist()) if is_upright else sorted((-ends).tolist())
    return SensorView(pose, T_odom_base @ points_in_base[:, :2], first, last, float(scan.range_max))


def view_from_cloud(
    cloud: Any, T_odom_base: SE2, T_base_sensor: SE3, min_height: float, max_height: float
) -> SensorView:
    """Return the view of a sensor_msgs/PointCloud2: its points between two heights above the base [m].

    Raises:
        MessageError: the cloud cannot be read.
    """
    points = T_base_sensor @ cloud_points(cloud)
    points_in_range = points[(points[:, 2] >= min_height) & (points[:, 2] <= max_height)]
    return SensorView(
        T_odom_base @ SE2.from_se3(T_base_sensor), T_odom_base @ points_in_range[:, :2], 0.0, 2.0 * math.pi
    )


def view_from_range(message: Any, T_odom_base: SE2, T_base_sensor: SE3) -> SensorView:
    """Return the view of a sensor_msgs/Range: points on the arc at the measured distance.

    Raises:
        InputError: the message contains no measurement.
    """
    distance, half_angle = float(message.range), 0.5 * float(message.field_of_view)
    if distance == -math.inf:
        distance = float(message.min_range)
    if math.isnan(distance) or not (math.isfinite(half_angle) and half_angle > 0.0):
        raise InputError(f"an echo at {distance} m in a cone of {2.0 * half_angle} rad", valid="metres and radians")
    pose = T_odom_base @ SE2.from_se3(T_base_sensor)
    points = np.zeros((0, 2))
    if distance < message.max_range:
        angles = np.linspace(-half_angle, half_angle, max(math.ceil(2.0 * half_angle * distance / _ARC_SPACING) + 1, 4))
        points = distance * np.column_stack([np.cos(angles), np.sin(angles)])
    return SensorView(pose, pose @ points, -half_angle, half_angle, float(message.max_range))


ViewReader = Callable[[Any, SE2, SE3], SensorView]
_SENSORS_ZONE: Final = "sensors"
"""Name of the zone in states in which a sensor is silent."""


class ZoneConfig(Config):
    """A zone about the robot, as one of the polygons or circles of Nav2's collision monitor.

    Without ``points`` and ``radius`` the zone is the footprint.
    """

    action: Annotated[str, RegisteredName(ZONE_ACTIONS)] = parameter(
        doc="Stop; scale the speed; limit the speed; keep a time to collision; or an action of a package."
    )
    points: tuple[tuple[float, float], ...] = parameter((), doc="Corners (x, y) in base_frame [m].")
    radius: float | None = parameter(None, unit="m", low=1e-3, high=1e3, doc="Radius of a circle, instead of points.")
    min_points: int = parameter(4, low=1, doc="Number of measured points that count as an obstacle.")
    slowdown_ratio: float = parameter(0.5, low=0.0, high=1.0, doc="Factor on the speed, for slowdown.")
    linear_limit: float = parameter(0.5, unit="m/s", low=0.0, high=1e3, doc="Largest speed, for limit.")
    angular_limit: float = parameter(0.5, unit="rad/s", low=0.0, high=1e3, doc="Largest angular speed, for limit.")
    time_before_collision: float = parameter(
        2.0, unit="s", low=0.0, high=1e3, doc="Smallest time to collision, for approach."
    )
    linear_speeds: tuple[float, float] = parameter(
        (-math.inf, math.inf),
        unit="m/s",
        low=-math.inf,
        high=math.inf,
        doc="Range of forward speeds for which the zone is active.",
    )
    angular_speeds: tuple[float, float] = parameter(
        (-math.inf, math.inf),
        unit="rad/s",
        low=-math.inf,
        high=math.inf,
        doc="Range of angular speeds for which the zone is active.",
    )

    def validate(self) -> None:
        """Check that the shape is stated once."""
        if self.points and self.radius is not None:
            raise ConfigError("has points and a radius", valid="one of them")

    def to_zone(self, name: str, footprint: NDArray[np.float64]) -> SafetyZone:
        """Return the zone.

        Raises:
            ConfigError: the corners are no polygon, or a range is not ascending.
        """
        corners = np.array(self.points) if self.points else footprint
        if self.radius is not None:
            corners = polygons.regular_polygon(self.radius)
        return SafetyZone(
            name, ZONE_ACTIONS[self.action](), corners, self.min_points, self.slowdown_ratio, self.linear_limit,
            self.angular_limit, self.time_before_collision, self.linear_speeds, self.angular_speeds,
        )  # fmt: skip


class CollisionMonitorNodeConfig(Config):
    """Configuration of `CollisionMonitorNode`."""

    scan_topics: tuple[str, ...] = parameter(("scan",), doc="Topics of sensor_msgs/LaserScan.")
    cloud_topics: tuple[str, ...] = parameter((), doc="Topics of sensor_msgs/PointCloud2.")
    range_topics: tuple[str, ...] = parameter((), doc="Topics of sensor_msgs/Range.")
    source_timeout: float = parameter(
        0.5, unit="s", low=0.01, high=60.0, doc="Time without a message of a sensor after which the robot stops."
    )
    command_timeout: float = parameter(
        0.5, unit="s", low=0.01, high=60.0, doc="Age at which a command is no longer used.", runtime=True
    )
    rate: float = parameter(25.0, unit="Hz", low=1.0, high=1000.0, doc="Rate of the published commands.")
    odom_frame: str = parameter("odom", doc="Frame of the odometry, in which points are remembered.")
    base_frame: str = parameter("base_link", doc="Frame of the base.")
    margin: float = parameter(
        0.05, unit="m", low=0.0, high=10.0, doc="Smallest distance between the robot and everything else."
    )
    braking: BrakingConfig = parameter(factory=BrakingConfig, flatten="", doc="How the base accelerates and brakes.")
    zones: dict[str, ZoneConfig] = parameter(factory=dict, doc="Zones about the robot, by name.")
    min_height: float = parameter(
        0.05, unit="m", doc="Height above base_frame of the lowest point of clouds that counts."
    )
    max_height: float = parameter(
        1.5, unit="m", doc="Height above base_frame of the highest point of clouds that counts."
    )
    memory: float = parameter(
        10.0, unit="s", low=0.0, high=3600.0, doc="Time for which points outside all fields of view are remembered."
    )


def braking_parameters(limits: DriveLimits) -> dict[str, float]:
    """Return the parameters of braking that follow from the limits of a robot's drive.

    Accelerations are those of the drive.  Decelerations are those that `BrakingConfig` assumes, or those of the drive
    where it brakes less.
    """
    deceleration = limits.acceleration if limits.deceleration is None else limits.deceleration
    assumed = BrakingConfig()
    parameters: dict[str, float] = {}
    if limits.acceleration is not None:
        parameters["acceleration"] = limits.acceleration
    if deceleration is not None:
        parameters["deceleration"] = min(assumed.deceleration, deceleration)
    if limits.angular_acceleration is not None:
        parameters["angular_acceleration"] = limits.angular_acceleration
        parameters["angular_deceleration"] = min(assumed.angular_deceleration, limits.angular_acceleration)
    return parameters


class CollisionMonitorNode(Node[CollisionMonitorNodeConfig]):
    """Slows down or stops commands after which the robot could not stop before an obstacle, from any publisher.

    in: cmd_vel_in, odom, the sensors' topics, /tf odom → base and base → sensors
    out: cmd_vel_out; collision_monitor_state (nav2_msgs/CollisionMonitorState, latched, at every change)

    The node checks the newest command at ``rate`` until it is older than ``command_timeout``. When it changes a command
    it reports the reason in the log, on /diagnostics and in its state. A sensor without messages for
    ``source_timeout``, or whose messages cannot be used (stale, no transform, no measurement), stops the robot.
    """

    footprint: FootprintPolygon = resource(tuple)
    drive_limits: DriveLimits | None = resource(DriveLimits, optional=True)

    state_fields = ("_command_ns", "_start_ns", "_sensor_errors", "_published_state")

    def __init__(self, **arguments: Any) -> None:
        limits = arguments.get("drive_limits")
        derived = braking_parameters(limits) if isinstance(limits, DriveLimits) else {}
        super().__init__(**{**derived, **arguments})

    def setup(self) -> None:
        """Connect."""
        location = f"{self.full_name}, parameter"
        if not self.config.min_height < self.config.max_height:
            raise ConfigError(
                f"{self.config.min_height} to {self.config.max_height} m",
                location=f"{location} 'max_height'",
                valid="above",
            )
        footprint = validate_polygon(self.footprint, f"{self.full_name}, resource 'footprint'")
        zones = tuple(zone.to_zone(name, footprint) for name, zone in self.config.zones.items())
        self._monitor = CollisionMonitor(
            CollisionMonitorConfig(footprint, self.config.margin, self.config.braking, zones)
        )
        topics: dict[str, tuple[type, ViewReader]] = {
            **dict.fromkeys(self.config.scan_topics, (msg.LaserScan, view_from_scan)),
            **dict.fromkeys(
                self.config.cloud_topics,
                (
                    msg.PointCloud2,
                    partial(view_from_cloud, min_height=self.config.min_height, max_height=self.config.max_height),
                ),
            ),
            **dict.fromkeys(self.config.range_topics, (msg.Range, view_from_range)),
        }
        if not topics:
            raise ConfigError(
                "no sensor to watch", location=location, valid="scan_topics, cloud_topics or range_topics"
            )
        self._obstacles = ObstacleMemory(dict.fromkeys(topics, self.config.source_timeout), memory=self.config.memory)
        self._frames = self.frame(self.config.odom_frame), self.frame(self.config.base_frame)
        self._views = MessageFilter(
            self,
            self._add_view,
            target_frames=self._frames,
            queue_size=1,  # only the newest view of a sensor counts
            timeout=self.config.source_timeout,
            on_drop=self._on_drop,
        )
        self._readers = {topic: reader for topic, (_, reader) in topics.items()}
        self._sensor_errors: dict[str, str] = {}
        self._command, self._command_ns, self._twist = ZERO_TWIST, -1, ZERO_TWIST
        self._published_state = (-1, "")
        self._start_ns = self.now_ns
        self._output = self.publisher("cmd_vel_out", msg.Twist)
        self._state = self.publisher("collision_monitor_state", msg.CollisionMonitorState, latched=True)
        self.subscribe("cmd_vel_in", msg.Twist, self._on_command, with_source=True)
        self.subscribe("odom", msg.Odometry, self._on_odometry)
        for topic, (kind, _) in topics.items():
            self.subscribe(topic, kind, partial(self._on_view, topic))
        self.timer(rate=self.config.rate, callback=self._update)
        self._publish_decision(MonitorDecision(ZERO_TWIST))

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return super().save_state() | {
            "views": self._views.save_state(),
            "seen": self._obstacles.save_state(),
            "command": tuple(self._command),
            "twist": tuple(self._twist),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        super().load_state(state)
        self._views.load_state(state["views"])
        self._obstacles.load_state(state["seen"])
        self._command, self._twist = PlanarTwist(*state["command"]), PlanarTwist(*state["twist"])

    # -- inputs --------------------------------------------------------------------------------------------------------
    def _on_command(self, message: Any, publisher: str) -> None:
        if not is_finite_twist(message):
            self.log.error(f"rejected a command of {publisher}: not finite", throttle=5.0)
            return
        self._command, self._command_ns = planar_twist_from_msg(message), self.now_ns
        if not any(self._command):
            self._update()  # a stop is passed on without delay

    def _on_odometry(self, message: Any) -> None:
        if is_finite_twist(message.twist.twist):
            self._twist = planar_twist_from_msg(message.twist.twist)

    def _on_view(self, topic: str, message: Any) -> None:
        if self._is_timely(topic, message):
            self._views.add(message, topic)

    def _is_timely(self, topic: str, message: Any) -> bool:
        """Whether a message is neither from the future nor too old."""
        age = (self.now_ns - to_nanoseconds(message.header.stamp)) * 1e-9
        if 0.0 <= age <= self.config.source_timeout:
            return True
        self._reject_message(topic, f"stamped {age:.2f} s ago" if age > 0.0 else f"stamped {-age:.2f} s ahead of time")
        return False

    def _on_drop(self, dropped: DroppedMessage) -> None:
        if dropped.reason is not DropReason.QUEUE_FULL:
            self._reject_message(dropped.topic, dropped.text)
        elif dropped.transform_error:  # that of the next message may still come
            self._sensor_errors[dropped.topic] = dropped.transform_error

    def _add_view(self, message: Any, topic: str) -> None:
        """Store the view of a sensor; the transforms at its time are known."""
        if not self._is_timely(topic, message):
            return
        time_ns, (odom, base) = to_nanoseconds(message.header.stamp), self._frames
        T_odom_base = SE2.from_se3(self.transforms.lookup(odom, base, time_ns))
        T_base_sensor = self.transforms.lookup(base, message.header.frame_id, time_ns)
        try:
            self._obstacles.update(topic, self._readers[topic](message, T_odom_base, T_base_sensor), time_ns)
        except RoboyardError as error:
            self._reject_message(topic, str(error))
            return
        self._sensor_errors.pop(topic, None)

    def _reject_message(self, topic: str, reason: str) -> None:
        self._sensor_errors[topic] = reason
        self.log.warn(f"ignored a message of {topic}: {reason}", throttle=5.0)

    # -- outputs -------------------------------------------------------------------------------------------------------
    def _update(self) -> None:
        self._views.process()
        if self._command_ns < 0:
            self._publish_decision(self._check_sensors(MonitorDecision(ZERO_TWIST)))
            return
        if self.now_ns - self._command_ns > self.config.command_timeout * 1e9:
            self._command, self._command_ns = ZERO_TWIST, -1
        decision = self._check(self._command)
        self._output.publish(planar_twist_to_msg(decision.twist))
        self._publish_decision(decision)

    def _check(self, command: PlanarTwist) -> MonitorDecision:
        decision = self._check_sensors(MonitorDecision(command))
        if decision.action is MonitorAction.STOP:
            return decision
        try:
            T_odom_base = self.transforms.lookup(*self._frames)
        except TransformError as error:
            return MonitorDecision(ZERO_TWIST, MonitorAction.STOP, _SENSORS_ZONE, 0.0, str(error))
        return self._monitor.check(command, self._twist, self._obstacles.points(SE2.from_se3(T_odom_base)))

    def _check_sensors(self, decision: MonitorDecision) -> MonitorDecision:
        """Return a stop if a sensor is silent, else the given decision."""
        silent = self._obstacles.silent_sensors(self.now_ns, self._start_ns)
        if not silent:
            return decision
        texts = [
            f"{topic} silent for {math.floor(seconds * 10.0) / 10.0:.1f} s"
            + (f" ({self._sensor_errors[topic]})" if topic in self._sensor_errors else "")
            for topic, seconds in silent.items()
        ]
        return MonitorDecision(ZERO_TWIST, MonitorAction.STOP, _SENSORS_ZONE, 0.0, "; ".join(texts))

    def _publish_decision(self, decision: MonitorDecision) -> None:
        level, text = "ok", "commands pass"
        if decision.zone == _SENSORS_ZONE:
            level, text = "error", f"stop: {decision.reason}"
        elif decision.action is not MonitorAction.DO_NOTHING:
            level, text = (
                "warn",
                f"{decision.action.name.lower()} to {100.0 * decision.speed_scaling:.0f} %: {decision.reason}",
            )
        self.report_health(level, text, zone=decision.zone)  # type: ignore[arg-type]
        state = (decision.action.value, decision.zone)
        if state == self._published_state:
            return
        self._published_state = state
        self._state.publish(msg.CollisionMonitorState(action_type=state[0], polygon_name=state[1]))
        if decision.action is not MonitorAction.DO_NOTHING:
            self.log.warn(f"{decision.action.name.lower()}: {decision.reason}", throttle=1.0)
