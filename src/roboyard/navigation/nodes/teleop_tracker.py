"""The tracker node: listens for the operator, remembers the way, orders the way home."""

from __future__ import annotations

from typing import Any

from roboyard.bus import Node, TransformError
from roboyard.config import Config, parameter
from roboyard.geometry import SE2
from roboyard.messages import msg
from roboyard.messages.convert import make_header, path_to_msg, pose_stamped_to_msg
from roboyard.messages.time import to_nanoseconds
from roboyard.navigation.homing import HomingConfig, LinkConfig, Outcome, Phase, Report, Tracker

MISSIONS = ("navigate_to_pose", "navigate_through_poses", "follow_waypoints")
_ACTIVE = (1, 2, 3)
"""Accepted, executing, canceling (action_msgs/GoalStatus)."""


class TeleopTrackerNodeConfig(Config):
    """Configuration of `TeleopTrackerNode`."""

    homing: HomingConfig = parameter(factory=HomingConfig, flatten="", doc="How the robot comes home.")
    link: LinkConfig = parameter(factory=LinkConfig, flatten="", doc="When the operator's link counts as lost.")
    autonomous: tuple[str, ...] = parameter(
        ("navigator",), doc="Nodes whose cmd_vel is no sign of life of an operator."
    )
    stamped: bool = parameter(False, doc="Messages of cmd_vel are TwistStamped.")
    map_frame: str = parameter("map", doc="Frame of the map.")
    odom_frame: str = parameter("odom", doc="Frame in which the odometry starts.")
    base_frame: str = parameter("base_link", doc="Frame of the base.")
    rate: float = parameter(20.0, unit="Hz", low=1.0, high=1000.0, doc="Rate of the checks of path and link.")


class TeleopTrackerNode(Node[TeleopTrackerNodeConfig]):
    """Watches the operator's link and the way driven; says where to go when the link is lost.

    in: cmd_vel of everybody but ``autonomous`` (a sign of life), joy, teleop/heartbeat (std_msgs/Header),
        homing/report, /tf map → base or odom → base, status of the navigator's actions (a mission that runs)
    out: homing/order, homing/status, homing/trail (nav_msgs/Path), all latched

    Points are kept in the map where there is one, else in odometry's frame; they follow when a map comes.
    """

    state_fields = ("_frame", "_active", "_told")

    def setup(self) -> None:
        """Connect."""
        self._tracker = Tracker(self.config.homing, self.config.link)
        self._map, self._odom, self._base = map(
            self.frame, (self.config.map_frame, self.config.odom_frame, self.config.base_frame)
        )
        self._frame = ""
        self._active: dict[str, bool] = {}
        self._told: tuple[Any, ...] = ()
        self._orders = self.publisher("homing/order", msg.HomingOrder, latched=True)
        self._status = self.publisher("homing/status", msg.HomingStatus, latched=True)
        self._trail = self.publisher("homing/trail", msg.Path, latched=True)
        twist = msg.TwistStamped if self.config.stamped else msg.Twist
        self.subscribe("cmd_vel", twist, self._on_command, with_source=True)
        self.subscribe("joy", msg.Joy, self._on_joy, with_source=True)
        self.subscribe("teleop/heartbeat", msg.Header, self._on_heartbeat, with_source=True)
        self.subscribe("homing/report", msg.HomingReport, self._on_report)
        for action in MISSIONS:
            self.subscribe(f"{action}/_action/status", msg.GoalStatusArray, self._watcher(action))
        self.timer(rate=self.config.rate, callback=self._look, immediate=True)
        self._publish_order()
        self._tell()

    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        return super().save_state() | {"tracker": self._tracker.save_state()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        super().load_state(state)
        self._tracker.load_state(state["tracker"])
        self._number = self._tracker.order.number

    # -- what comes in -------------------------------------------------------------------------------------------------
    def _on_command(self, command: Any, source: str) -> None:
        if source.rsplit("/", 1)[-1] not in self.config.autonomous:
            self._hear(source, to_nanoseconds(command.header.stamp) if self.config.stamped else None)

    def _on_joy(self, joy: Any, source: str) -> None:
        self._hear(source, to_nanoseconds(joy.header.stamp))

    def _on_heartbeat(self, beat: Any, source: str) -> None:
        self._hear(source, to_nanoseconds(beat.stamp))

    def _hear(self, source: str, stamp_ns: int | None) -> None:
        if not self._tracker.hear(source, self.now_ns, stamp_ns):
            self.log.debug(f"a message of {source} is late, doubled or overtaken: no sign of life", throttle=5.0)
        self._follow()

    def _on_report(self, report: Any) -> None:
        try:
            outcome = Outcome(report.outcome)
        except ValueError:
            self.log.error(f"a report of {report.outcome!r}", throttle=5.0)
            return
        self._tracker.report(Report(report.id, outcome, report.distance, report.reason), self.now_ns)
        self._follow()

    def _watcher(self, action: str) -> Any:
        def on_status(status: Any) -> None:
            self._active[action] = any(goal.status in _ACTIVE for goal in status.status_list)
            if self._tracker.phase in (Phase.DRIVEN, Phase.MISSION):  # else the goals are those of the way home
                self._tracker.mission(any(self._active.values()), self.now_ns)
                self._follow()

        return on_status

    def _look(self) -> None:
        pose = self._pose()
        if pose is None:
            self._tracker.tick(self.now_ns)
        else:
            self._tracker.at(pose, self.now_ns)
        self._follow()

    def _pose(self) -> SE2 | None:
        """T_map_base, or T_odom_base while there is no map."""
        for frame in (self._map, self._odom):
            try:
                pose = SE2.from_se3(self.transforms.lookup(frame, self._base))
            except TransformError:
                if frame == self._frame:
                    return None  # what was stored cannot be compared with what is said elsewhere
                continue
            if frame != self._frame:
                self._enter(frame)
            return pose
        return None

    def _enter(self, frame: str) -> None:
        """From now on in this frame; what is stored follows."""
        if self._frame:
            T_new_old = SE2.from_se3(self.transforms.lookup(frame, self._frame))
            self._tracker.move_frame(T_new_old, self.now_ns)
            self.log.info(f"the trail goes on in {frame}")
        self._frame = frame

    # -- what goes out -------------------------------------------------------------------------------------------------
    def _follow(self) -> None:
        tracker = self._tracker
        if tracker.order.number != self._number:
            self._publish_order()
        told = self._state()
        if told != self._told:
            self._say(self._told, told)
            self._tell()

    def _state(self) -> tuple[Any, ...]:
        t = self._tracker
        return (
            t.link.state.value, t.phase.value, t.link.outages, t.link.losses, len(t.trail), t.reached, t.given_up,
            t.returns, t.missed.distance if t.missed is not None else 0.0,
        )  # fmt: skip

    def _publish_order(self) -> None:
        order = self._tracker.order
        self._number = order.number
        pose = pose_stamped_to_msg(order.target or SE2(), self._frame or self._map, self.now_ns)
        is_active = order.target is not None
        self._orders.publish(
            msg.HomingOrder(
                id=order.number,
                is_active=is_active,
                is_home=order.last,
                returning=order.returning,
                pose=pose,
            )
        )

    def _tell(self) -> None:
        before, self._told = self._told, self._state()
        link, phase, outages, losses, stored, reached, skipped, returns, missed = self._told
        frame = self._frame or self._map
        self._status.publish(
            msg.HomingStatus(
                header=make_header(frame, self.now_ns), link=link, phase=phase, outages=outages, losses=losses,
                stored=stored, reached=reached, skipped=skipped, returns=returns, missed_distance=missed,
            )
        )  # fmt: skip
        if not before or before[4] != stored:
            self._trail.publish(path_to_msg(self._tracker.trail.points, frame, self.now_ns))
        self.report_health("warn" if link == "lost" else "ok", f"link {link}, {phase}", stored=stored, skipped=skipped)

    def _say(self, before: tuple[Any, ...], now: tuple[Any, ...]) -> None:
        """In the log, for people: what changed."""
        if not before:
            return
        tracker, (link, phase) = self._tracker, now[:2]
        if link == "lost" and before[0] != "lost":
            what = {"mission": "the mission goes on first", "waiting": "nowhere to go, standing still"}
            self.log.warn(f"the operator is not heard: {what.get(phase, f'going home by {now[4]} points')}")
        elif before[0] == "lost" and link != "lost":
            self.log.info(
                f"the operator is heard again{', the way home is broken off' if tracker.order.returning else ''}"
            )
        elif phase == "home" and before[1] != "home":
            self.log.info("home")
        if now[6] > before[6]:
            one = tracker.skipped[-1]
            place = f"({one.point.x:.2f}, {one.point.y:.2f})"
            self.log.warn(f"point {place} was not reached, {one.distance:.2f} m short: {one.reason}")
        if tracker.missed is not None and phase == "waiting" and before[1] != "waiting":
            missed = tracker.missed
            self.log.warn(f"home was not reached, {missed.distance:.2f} m short: {missed.reason}; trying again later")
