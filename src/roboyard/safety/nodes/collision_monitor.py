"""The collision monitor node: the last word on every command before the drive."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from roboyard.bus import DroppedMessage, DropReason, MessageFilter, Node, TransformError, resource
from roboyard.config import Config, parameter
from roboyard.control import STANDSTILL, PlanarTwist
from roboyard.description.extent import FootprintPolygon
from roboyard.errors import ConfigError, RoboyardError
from roboyard.geometry import SE2, SE3, polygons
from roboyard.messages import msg, to_nanoseconds
from roboyard.messages.convert import is_finite_twist
from roboyard.safety.braking import BrakingConfig
from roboyard.safety.collision import CollisionMonitor, MonitorConfig, Verdict
from roboyard.safety.nodes.planar import planar_twist, twist_message
from roboyard.safety.nodes.views import view_of_cloud, view_of_range, view_of_scan
from roboyard.safety.surroundings import Surroundings, View
from roboyard.safety.zones import Action, Zone
from roboyard.safety.zones import outline as outline_of

Reader = Callable[[Any, SE2, SE3], View]
_SILENT: Final = "sensors"
"""Name of the zone in states that say that a sensor is silent."""


class ZoneConfig(Config):
    """A zone about the robot, as one of the polygons or circles of Nav2's collision monitor.

    Without ``points`` and ``radius`` the zone is the footprint.
    """

    action: Literal["stop", "slowdown", "limit", "approach"] = parameter(
        doc="Stop; slow down to a share of the speed; limit the speed; keep a time to collision."
    )
    points: tuple[tuple[float, float], ...] = parameter((), doc="Corners (x, y) in base_frame [m].")
    radius: float | None = parameter(None, unit="m", low=1e-3, high=1e3, doc="Radius of a circle, instead of points.")
    min_points: int = parameter(4, low=1, doc="Number of measured points that count as an obstacle.")
    ratio: float = parameter(0.5, low=0.0, high=1.0, doc="Share of the speed that slowdown leaves.")
    linear_limit: float = parameter(0.5, unit="m/s", low=0.0, high=1e3, doc="Largest speed of limit.")
    angular_limit: float = parameter(0.5, unit="rad/s", low=0.0, high=1e3, doc="Largest angular speed of limit.")
    time: float = parameter(2.0, unit="s", low=0.0, high=1e3, doc="Time to collision that approach keeps.")
    speeds: tuple[float, float] = parameter(
        (-math.inf, math.inf), unit="m/s", low=-math.inf, high=math.inf, doc="Forward speeds for which the zone holds."
    )
    turns: tuple[float, float] = parameter(
        (-math.inf, math.inf), unit="rad/s", low=-math.inf, high=math.inf, doc="Angular speeds for which it holds."
    )

    def validate(self) -> None:
        """Check that the shape is stated once."""
        if self.points and self.radius is not None:
            raise ConfigError("has points and a radius", valid="one of them")

    def zone(self, name: str, footprint: NDArray[np.float64]) -> Zone:
        """Return the zone.

        Raises:
            ConfigError: the corners are no polygon, or a range is not ascending.
        """
        corners = np.array(self.points) if self.points else footprint
        if self.radius is not None:
            corners = polygons.regular_polygon(self.radius)
        return Zone(
            name, Action[self.action.upper()], corners, self.min_points, self.ratio, self.linear_limit,
            self.angular_limit, self.time, self.speeds, self.turns,
        )  # fmt: skip


class CollisionMonitorNodeConfig(Config):
    """Configuration of `CollisionMonitorNode`."""

    scan_topics: tuple[str, ...] = parameter(("scan",), doc="Topics of sensor_msgs/LaserScan.")
    cloud_topics: tuple[str, ...] = parameter((), doc="Topics of sensor_msgs/PointCloud2.")
    range_topics: tuple[str, ...] = parameter((), doc="Topics of sensor_msgs/Range.")
    source_timeout: float = parameter(
        0.5, unit="s", low=0.01, high=60.0, doc="Silence of a sensor after which the robot stops."
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
        10.0, unit="s", low=0.0, high=3600.0, doc="Time for which points are remembered that no sensor looks at."
    )


class CollisionMonitorNode(Node[CollisionMonitorNodeConfig]):
    """Lets no command bring the robot so near to something that it could not stop before, whoever sent it.

    in: cmd_vel_in, odom, the sensors' topics, /tf odom → base and base → sensors
    out: cmd_vel_out; collision_monitor_state (nav2_msgs/CollisionMonitorState, latched, at every change)

    It judges the newest command at ``rate`` until that is older than ``command_timeout``.  When it overrules one it
    says why in the log, on /diagnostics and with its state.  A sensor that is silent for ``source_timeout``, or whose
    messages cannot be used (stale, no transform, no measurement), stops the robot.
    """

    footprint: FootprintPolygon = resource(tuple)

    state_fields = ("_heard_ns", "_began_ns", "_complaints", "_told")

    def setup(self) -> None:
        """Connect."""
        where = f"{self.full_name}, parameter"
        if not self.config.min_height < self.config.max_height:
            raise ConfigError(
                f"{self.config.min_height} to {self.config.max_height} m",
                location=f"{where} 'max_height'",
                valid="above",
            )
        outline = outline_of(self.footprint, f"{self.full_name}, resource 'footprint'")
        zones = tuple(one.zone(name, outline) for name, one in self.config.zones.items())
        self._monitor = CollisionMonitor(MonitorConfig(outline, self.config.margin, self.config.braking, zones))
        topics: dict[str, tuple[type, Reader]] = {
            **dict.fromkeys(self.config.scan_topics, (msg.LaserScan, view_of_scan)),
            **dict.fromkeys(
                self.config.cloud_topics,
                (msg.PointCloud2, partial(view_of_cloud, low=self.config.min_height, high=self.config.max_height)),
            ),
            **dict.fromkeys(self.config.range_topics, (msg.Range, view_of_range)),
        }
        if not topics:
            raise ConfigError("no sensor to watch", location=where, valid="scan_topics, cloud_topics or range_topics")
        self._seen = Surroundings(dict.fromkeys(topics, self.config.source_timeout), memory=self.config.memory)
        self._frames = self.frame(self.config.odom_frame), self.frame(self.config.base_frame)
        self._views = MessageFilter(
            self,
            self._add_view,
            target_frames=self._frames,
            queue_size=1,  # only what a sensor saw last counts
            timeout=self.config.source_timeout,
            on_drop=self._on_drop,
        )
        self._readers = {topic: reader for topic, (_, reader) in topics.items()}
        self._complaints: dict[str, str] = {}
        self._command, self._heard_ns, self._twist = STANDSTILL, -1, STANDSTILL
        self._told = (-1, "")
        self._began_ns = self.now_ns
        self._output = self.publisher("cmd_vel_out", msg.Twist)
        self._state = self.publisher("collision_monitor_state", msg.CollisionMonitorState, latched=True)
        self.subscribe("cmd_vel_in", msg.Twist, self._on_command, with_source=True)
        self.subscribe("odom", msg.Odometry, self._on_odometry)
        for topic, (kind, _) in topics.items():
            self.subscribe(topic, kind, partial(self._on_view, topic))
        self.timer(rate=self.config.rate, callback=self._tick)
        self._tell(Verdict(STANDSTILL))

    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        return super().save_state() | {
            "views": self._views.save_state(),
            "seen": self._seen.save_state(),
            "command": tuple(self._command),
            "twist": tuple(self._twist),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        super().load_state(state)
        self._views.load_state(state["views"])
        self._seen.load_state(state["seen"])
        self._command, self._twist = PlanarTwist(*state["command"]), PlanarTwist(*state["twist"])

    # -- what comes in -------------------------------------------------------------------------------------------------
    def _on_command(self, message: Any, publisher: str) -> None:
        if not is_finite_twist(message):
            self.log.error(f"refused a command of {publisher}: not finite", throttle=5.0)
            return
        self._command, self._heard_ns = planar_twist(message), self.now_ns
        if not any(self._command):
            self._tick()  # nothing is to wait for

    def _on_odometry(self, message: Any) -> None:
        if is_finite_twist(message.twist.twist):
            self._twist = planar_twist(message.twist.twist)

    def _on_view(self, topic: str, message: Any) -> None:
        if self._is_timely(topic, message):
            self._views.add(message, topic)

    def _is_timely(self, topic: str, message: Any) -> bool:
        """Whether a message is neither from the future nor too old."""
        age = (self.now_ns - to_nanoseconds(message.header.stamp)) * 1e-9
        if 0.0 <= age <= self.config.source_timeout:
            return True
        self._complain(topic, f"stamped {age:.2f} s ago" if age > 0.0 else f"stamped {-age:.2f} s ahead of time")
        return False

    def _on_drop(self, dropped: DroppedMessage) -> None:
        if dropped.reason is not DropReason.QUEUE_FULL:
            self._complain(dropped.topic, dropped.text)
        elif dropped.transform_error:  # that of the next message may still come
            self._complaints[dropped.topic] = dropped.transform_error

    def _add_view(self, message: Any, topic: str) -> None:
        """Use what a sensor saw; the transforms of its moment are known."""
        if not self._is_timely(topic, message):
            return
        time_ns, (odom, base) = to_nanoseconds(message.header.stamp), self._frames
        T_odom_base = SE2.from_se3(self.transforms.lookup(odom, base, time_ns))
        T_base_sensor = self.transforms.lookup(base, message.header.frame_id, time_ns)
        try:
            self._seen.see(topic, self._readers[topic](message, T_odom_base, T_base_sensor), time_ns)
        except RoboyardError as error:
            self._complain(topic, str(error))
            return
        self._complaints.pop(topic, None)

    def _complain(self, topic: str, why: str) -> None:
        self._complaints[topic] = why
        self.log.warn(f"left out a message of {topic}: {why}", throttle=5.0)

    # -- what goes out -------------------------------------------------------------------------------------------------
    def _tick(self) -> None:
        self._views.process()
        if self._heard_ns < 0:
            self._tell(self._silence(Verdict(STANDSTILL)))
            return
        if self.now_ns - self._heard_ns > self.config.command_timeout * 1e9:
            self._command, self._heard_ns = STANDSTILL, -1
        verdict = self._judge(self._command)
        self._output.publish(twist_message(verdict.twist))
        self._tell(verdict)

    def _judge(self, command: PlanarTwist) -> Verdict:
        verdict = self._silence(Verdict(command))
        if verdict.action is Action.STOP:
            return verdict
        try:
            T_odom_base = self.transforms.lookup(*self._frames)
        except TransformError as error:
            return Verdict(STANDSTILL, Action.STOP, _SILENT, 0.0, str(error))
        return self._monitor.judge(command, self._twist, self._seen.points(SE2.from_se3(T_odom_base)))

    def _silence(self, verdict: Verdict) -> Verdict:
        """A stop, if a sensor is silent."""
        silent = self._seen.silent(self.now_ns, self._began_ns)
        if not silent:
            return verdict
        texts = [
            f"{topic} silent for {math.floor(seconds * 10.0) / 10.0:.1f} s"
            + (f" ({self._complaints[topic]})" if topic in self._complaints else "")
            for topic, seconds in silent.items()
        ]
        return Verdict(STANDSTILL, Action.STOP, _SILENT, 0.0, "; ".join(texts))

    def _tell(self, verdict: Verdict) -> None:
        level, text = "ok", "commands pass"
        if verdict.zone == _SILENT:
            level, text = "error", f"stops: {verdict.reason}"
        elif verdict.action is not Action.NONE:
            level, text = "warn", f"{verdict.action.name.lower()} to {100.0 * verdict.share:.0f} %: {verdict.reason}"
        self.report_health(level, text, zone=verdict.zone)  # type: ignore[arg-type]
        told = (verdict.action.value, verdict.zone)
        if told == self._told:
            return
        self._told = told
        self._state.publish(msg.CollisionMonitorState(action_type=told[0], polygon_name=told[1]))
        if verdict.action is not Action.NONE:
            self.log.warn(f"{verdict.action.name.lower()}: {verdict.reason}", throttle=1.0)
