"""Operator scripts and the controller that plays them.

A script is a list of timed steps:

- ``drive``: hold a twist
- ``keys``: hold keys one after the other
- ``goto``, ``follow``: drive to a point, or along points, by odometry (pure pursuit)
- ``wander``: drive by lidar wherever there is space
- ``wait``: hold a zero twist
- ``link_loss``: send nothing
- ``repeat``: repeat steps

Pure: no bus.  `roboyard.scenarios.nodes.operator` publishes what the controller returns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from roboyard.config import ValueConstraint, YamlNode, load, parameter, read_yaml, yaml_from_data
from roboyard.errors import ConfigError
from roboyard.geometry import SE2, wrap_angle

MAX_ACTIONS = 100_000
KEY_DIRECTIONS: dict[str, tuple[float, float]] = {
    "w": (1, 0),
    "s": (-1, 0),
    "a": (0, 1),
    "d": (0, -1),
    "x": (0, 0),
    " ": (0, 0),
}
"""Fractions of full speed (forward, left turn) of each key; keys held together add up."""

Point = Annotated[tuple[float, float], ValueConstraint(unit="m")]


@dataclass(frozen=True)
class DriveStep:
    """Publish a constant velocity."""

    linear: float = parameter(0.0, unit="m/s", low=-20.0, high=20.0, doc="forward velocity")
    angular: float = parameter(0.0, unit="rad/s", low=-20.0, high=20.0, doc="angular velocity, positive to the left")
    duration: float = parameter(1.0, unit="s", low=0.0, high=1e6, doc="how long the twist is held")


@dataclass(frozen=True)
class KeysStep:
    """Hold keys one after the other: w a s d, several at once as `wa`; x or a space for none."""

    sequence: tuple[str, ...] = parameter(doc="keys in order, e.g. [w, w, wa, x]")
    key_duration: float = parameter(0.5, unit="s", low=0.0, high=1e4, doc="how long each entry is held")
    speed: float = parameter(0.5, unit="m/s", low=0.0, high=20.0, doc="forward velocity of w and s")
    angular: float = parameter(1.0, unit="rad/s", low=0.0, high=20.0, doc="angular velocity of a and d")

    def __post_init__(self) -> None:
        for pressed in self.sequence:
            for key in pressed:
                if key not in KEY_DIRECTIONS:
                    raise ConfigError(f"key {key!r}", location="sequence", valid="w, a, s, d, x")


@dataclass(frozen=True)
class FollowStep:
    """Drive along points in the odometry's frame, by the robot's own odometry."""

    points: tuple[Point, ...] = parameter(doc="[[x, y], ...] in the frame of /odom")
    speed: float = parameter(0.5, unit="m/s", low=0.01, high=20.0, doc="speed on straight parts")
    angular: float = parameter(1.5, unit="rad/s", low=0.01, high=20.0, doc="largest angular velocity")
    tolerance: float = parameter(0.15, unit="m", low=0.01, doc="distance at which the last point counts as reached")
    lookahead: float = parameter(0.5, unit="m", low=0.05, doc="look-ahead distance on the line")
    timeout: float = parameter(300.0, unit="s", low=0.0, doc="time after which the next step begins")

    def __post_init__(self) -> None:
        if not self.points:
            raise ConfigError("there is no point", location="points")


@dataclass(frozen=True)
class GotoStep:
    """Drive to one point."""

    to: Point = parameter(doc="[x, y] in the script's frame")
    speed: float = parameter(0.5, unit="m/s", low=0.01, high=20.0, doc="speed")
    angular: float = parameter(1.5, unit="rad/s", low=0.01, high=20.0, doc="largest yaw rate")
    tolerance: float = parameter(0.15, unit="m", low=0.01, doc="distance at which the point is reached")
    timeout: float = parameter(120.0, unit="s", low=0.0, doc="time after which the next step starts")


@dataclass(frozen=True)
class WanderStep:
    """Drive where the lidar measures free space."""

    duration: float = parameter(30.0, unit="s", low=0.0, high=1e6, doc="how long it wanders")
    speed: float = parameter(
        0.5, unit="m/s", low=0.01, high=20.0, doc="largest speed; it is also limited to two robot radii per second"
    )
    angular: float = parameter(1.0, unit="rad/s", low=0.01, high=20.0, doc="largest angular velocity")
    margin: float = parameter(
        0.1, unit="m", low=0.0, high=10.0, doc="least distance from everything that the lidar measures"
    )


@dataclass(frozen=True)
class RepeatStep:
    """Repeat steps."""

    times: int = parameter(low=0, high=MAX_ACTIONS, doc="number of repetitions")
    steps: tuple[ScriptStep, ...] = parameter(doc="steps that are repeated")


@dataclass(frozen=True)
class ScriptStep:
    """One step: exactly one of these keys."""

    drive: DriveStep | None = None
    keys: KeysStep | None = None
    goto: GotoStep | Point | None = None
    follow: FollowStep | None = None
    wander: WanderStep | None = None
    wait: float | None = parameter(None, unit="s", low=0.0)
    link_loss: float | None = parameter(None, unit="s", low=0.0)
    repeat: RepeatStep | None = None

    def __post_init__(self) -> None:
        names = [f.name for f in fields(self)]
        present = [name for name in names if getattr(self, name) is not None]
        if len(present) != 1:
            problem = f"a step with {' and '.join(present)}" if present else "an empty step"
            raise ConfigError(problem, valid=f"exactly one of: {', '.join(names)}")


@dataclass(frozen=True)
class OperatorScript:
    """A complete script."""

    steps: tuple[ScriptStep, ...] = parameter(doc="steps in order")
    rate: float = parameter(20.0, unit="Hz", low=0.1, high=1000.0, doc="rate of the operator's messages")
    frame: str = parameter("odom", doc="frame of the points: odom, or map if the robot localizes itself in one")
    command_noise: float = parameter(0.0, low=0.0, high=1.0, doc="noise of the commands, as a fraction of each command")


@dataclass(frozen=True, slots=True)
class HoldTwist:
    """A twist (v [m/s], w [rad/s]) for ``duration`` [s]; None: publish nothing."""

    twist: tuple[float, float] | None
    duration: float


OperatorAction = HoldTwist | FollowStep | WanderStep


OperatorScriptFile = tuple[ScriptStep, ...] | OperatorScript
"""Content of a script's file."""


def load_script(
    source: str | Path | Sequence[Any] | Mapping[str, Any], source_name: str = "operator"
) -> OperatorScript:
    """Load a script from a YAML file or from data: a list of steps, or a mapping with `steps` and `rate`.

    Raises:
        ConfigError: The file cannot be read, or a step is not valid.
    """
    node = read_yaml(source) if isinstance(source, str | Path) else yaml_from_data(source, source_name)
    return parse_script(node, source_name)


def parse_script(node: YamlNode, source_name: str = "operator") -> OperatorScript:
    """Read a script from a YAML document. Raises ConfigError where it says something it may not."""
    if isinstance(node.value, list):
        node = YamlNode(
            {"steps": YamlNode(node.value, node.location, node.location, node.size)},
            node.location,
            node.location,
            node.size,
        )
    return load(OperatorScript, node, source_name=source_name)


def flatten_script(script: OperatorScript) -> tuple[OperatorAction, ...]:
    """Return the script as a flat list of actions with all repetitions.

    Raises:
        ConfigError: There are more than ``MAX_ACTIONS`` actions.
    """
    collected: list[OperatorAction] = []
    for action in _expand_steps(script.steps):
        if len(collected) == MAX_ACTIONS:
            raise ConfigError(f"the script has more than {MAX_ACTIONS} steps", location="operator")
        collected.append(action)
    return tuple(collected)


def _expand_steps(steps: tuple[ScriptStep, ...]) -> Iterator[OperatorAction]:
    for step in steps:
        if step.drive is not None:
            yield HoldTwist((step.drive.linear, step.drive.angular), step.drive.duration)
        elif step.keys is not None:
            for pressed in step.keys.sequence:
                forward = sum(KEY_DIRECTIONS[key][0] for key in pressed)
                left = sum(KEY_DIRECTIONS[key][1] for key in pressed)
                yield HoldTwist((forward * step.keys.speed, left * step.keys.angular), step.keys.key_duration)
        elif step.follow is not None:
            yield step.follow
        elif isinstance(step.goto, GotoStep):
            goto = step.goto
            yield FollowStep((goto.to,), goto.speed, goto.angular, goto.tolerance, timeout=goto.timeout)
        elif step.goto is not None:
            yield FollowStep((step.goto,))
        elif step.wander is not None:
            yield step.wander
        elif step.wait is not None:
            yield HoldTwist((0.0, 0.0), step.wait)
        elif step.link_loss is not None:
            yield HoldTwist(None, step.link_loss)
        elif step.repeat is not None:
            for _ in range(step.repeat.times):
                yield from _expand_steps(step.repeat.steps)


_HEADINGS = np.radians(np.arange(-100.0, 101.0, 5.0))
_MAX_FREE_DISTANCE = 3.0
"""Largest free distance that is distinguished [m]."""
_HEADING_COST = 0.5
"""Free distance that outweighs one radian of heading change [m/rad]."""
_SIDE_BIAS = 0.2
"""Free distance per radian by which one side is preferred for a while [m/rad], to leave a pillar after circling it."""
_SIDE_BIAS_PERIOD = 14.0
"""Time for which one side is preferred [s]."""
_STEERING_GAIN = 1.5
"""Turn rate per heading error [1/s]."""


@dataclass(frozen=True, slots=True)
class ScanPoints:
    """A planar scan: ``points`` (n, 2) [m] of its returns in the robot's frame."""

    points: NDArray[np.float64]


def free_distances(points: NDArray[np.float64], radius: float) -> NDArray[np.float64]:
    """Return how far a disc can move along each of the headings before it touches a point, at most 3 m.

    Args:
        points: (n, 2) points in the robot's frame [m].
        radius: Radius of the disc [m]; a point inside it blocks every heading towards the point.

    Returns:
        (headings,) distances [m].
    """
    directions = np.column_stack([np.cos(_HEADINGS), np.sin(_HEADINGS)])
    normals = np.column_stack([-directions[:, 1], directions[:, 0]])
    along, lateral = points @ directions.T, points @ normals.T  # (n, headings)
    blocking = (np.abs(lateral) < radius) & (along > 0.0)
    distance = along - np.sqrt(np.maximum(radius**2 - lateral**2, 0.0))
    free: NDArray[np.float64] = np.min(
        np.where(blocking, np.maximum(distance, 0.0), _MAX_FREE_DISTANCE), axis=0, initial=_MAX_FREE_DISTANCE
    )
    return free


class ScanWanderer:
    """Selects twists from scans.

    Attributes:
        rotation_direction: Direction in which it turns in place (1 left, -1 right), 0 while it drives.
    """

    def __init__(self) -> None:
        self.rotation_direction = 0
        self._last_scan: ScanPoints | None = None
        self._twist = (0.0, 0.0)

    def update(
        self, time: float, scan: ScanPoints | None, radius: float, max_speed: float, max_angular_speed: float
    ) -> tuple[float, float]:
        """Return the twist (v [m/s], w [rad/s]); it changes with each new scan.

        Args:
            time: Time [s].
            sight: Newest scan; None before the first one: it waits.
            radius: Radius of the robot with its margin [m].
            speed: Largest speed [m/s].
            turn: Largest turn rate [rad/s].
        """
        if scan is not self._last_scan and scan is not None:
            self._last_scan = scan
            self._twist = self._choose_twist(time, scan, radius, max_speed, max_angular_speed)
        return self._twist

    def _choose_twist(
        self, time: float, scan: ScanPoints, radius: float, max_speed: float, max_angular_speed: float
    ) -> tuple[float, float]:
        free = free_distances(scan.points, radius)
        straight = len(_HEADINGS) // 2
        if self.rotation_direction and free[straight] < 2.0 * radius:
            return 0.0, self.rotation_direction * max_angular_speed
        self.rotation_direction = 0
        preferred_side = 1.0 if int(time / _SIDE_BIAS_PERIOD) % 2 == 0 else -1.0
        best_heading = int(
            np.argmax(free - _HEADING_COST * np.abs(_HEADINGS) + _SIDE_BIAS * preferred_side * _HEADINGS)
        )
        if free[straight] < 0.5 * radius:
            self.rotation_direction = 1 if _HEADINGS[best_heading] >= 0.0 else -1
            return 0.0, self.rotation_direction * max_angular_speed
        heading = float(_HEADINGS[best_heading])
        distance = float(min(free[straight], free[best_heading]))
        speed = min(max_speed, 0.6 * distance) * max(0.2, math.cos(heading))
        return speed, max(-max_angular_speed, min(max_angular_speed, _STEERING_GAIN * heading))


ROTATE_IN_PLACE_ERROR = math.radians(60.0)
"""Heading error above which the controller turns in place before it drives on [rad]."""
NO_SCAN_TIMEOUT = 2.0
"""Time without a scan after which a wandering operator drives without free distances [s]."""
_APPROACH_GAIN = 1.0
"""Speed per distance to the last point [1/s]."""


@dataclass(frozen=True, slots=True)
class OperatorCommand:
    """Command of the operator: a twist (v, w) or None for silence, and whether the script is finished."""

    twist: tuple[float, float] | None
    is_finished: bool = False


class OperatorController:
    """Executes the actions of a script.

    Args:
        actions: Actions in order.
        radius: Radius of the robot for wandering [m].

    Attributes:
        index: Index of the present action.
        since: Time at which it began [s]; None before the first update.
        leg: Index of the point to which a ``follow`` step drives.
    """

    def __init__(self, actions: tuple[OperatorAction, ...], radius: float = 0.3) -> None:
        self.actions = actions
        self.radius = radius
        self.wanderer = ScanWanderer()
        self.action_index = 0
        self.action_start: float | None = None
        self.waypoint_index = 0
        self._path_start: tuple[float, float] | None = None

    def update(self, time: float, pose: SE2 | None, scan: ScanPoints | None = None) -> OperatorCommand:
        """Return the command at ``time`` [s] for a pose by odometry and the newest scan (None without one)."""
        if self.action_start is None:
            self.action_start = time
        while self.action_index < len(self.actions):
            action = self.actions[self.action_index]
            if isinstance(action, FollowStep):
                if time - self.action_start < action.timeout:
                    twist = self._follow(action, pose)
                    if twist is not None:
                        return OperatorCommand(twist)
                self._start_next_action(time)
            elif time - self.action_start < action.duration - 1e-9:
                return OperatorCommand(
                    action.twist if isinstance(action, HoldTwist) else self._wander(action, time, scan)
                )
            else:
                self._start_next_action(
                    self.action_start + action.duration
                )  # the script's own time: no drift from the sending rate
        return OperatorCommand((0.0, 0.0), is_finished=True)

    def _start_next_action(self, time: float) -> None:
        self.action_index, self.action_start, self.waypoint_index, self._path_start = (
            self.action_index + 1,
            time,
            0,
            None,
        )

    def is_without_scan(self, time: float, scan: ScanPoints | None) -> bool:
        """Return whether it wanders at ``time`` [s] and has not received a scan for `NO_SCAN_TIMEOUT`."""
        wandering = self.action_index < len(self.actions) and isinstance(self.actions[self.action_index], WanderStep)
        return (
            wandering and scan is None and self.action_start is not None and time - self.action_start > NO_SCAN_TIMEOUT
        )

    def _wander(self, action: WanderStep, time: float, scan: ScanPoints | None) -> tuple[float, float]:
        speed = min(action.speed, 2.0 * self.radius)
        if self.is_without_scan(time, scan):
            # Round a circle beside the place that it was put at: nothing tells where there is more room.
            circle_radius = self.radius + action.margin
            angular_speed = min(action.angular, 0.5 * speed / circle_radius)
            return angular_speed * circle_radius, angular_speed
        return self.wanderer.update(time, scan, self.radius + action.margin, speed, action.angular)

    def _follow(self, action: FollowStep, pose: SE2 | None) -> tuple[float, float] | None:
        """Return the twist on an arc to the point ``lookahead`` ahead; None when the last point is reached.

        Pure pursuit: curvature 2 sin(error) / distance (R. C. Coulter, CMU-RI-TR-92-01).
        """
        if pose is None:
            return 0.0, 0.0
        if self._path_start is None:
            self._path_start = (pose.x, pose.y)
        points = (self._path_start, *action.points)
        while self.waypoint_index < len(action.points):
            a, b = points[self.waypoint_index], points[self.waypoint_index + 1]
            along, remaining = _project(a, b, (pose.x, pose.y))
            last = self.waypoint_index == len(action.points) - 1
            distance = action.tolerance if last else action.lookahead
            if math.hypot(b[0] - pose.x, b[1] - pose.y) > distance and not (remaining <= 0.0 and not last):
                break
            self.waypoint_index += 1
        else:
            return None
        target = _lookahead_point(points, self.waypoint_index, along, action.lookahead)
        error = wrap_angle(math.atan2(target[1] - pose.y, target[0] - pose.x) - pose.theta)
        if abs(error) > ROTATE_IN_PLACE_ERROR:
            return 0.0, math.copysign(action.angular, error)
        speed = min(
            action.speed,
            max(
                0.1 * action.speed,
                _APPROACH_GAIN * _remaining_distance(points, self.waypoint_index, along, action.speed / _APPROACH_GAIN),
            ),
        )
        distance = max(math.hypot(target[0] - pose.x, target[1] - pose.y), 0.1)
        angular_speed = 2.0 * speed * math.sin(error) / distance
        if abs(angular_speed) > action.angular:
            speed, angular_speed = (
                speed * action.angular / abs(angular_speed),
                math.copysign(action.angular, angular_speed),
            )
        return speed, angular_speed

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return {
            "action_index": self.action_index,
            "action_start": self.action_start,
            "waypoint_index": self.waypoint_index,
            "path_start": self._path_start,
            "rotation_direction": self.wanderer.rotation_direction,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        self.action_index, self.action_start, self.waypoint_index = (
            state["action_index"],
            state["action_start"],
            state["waypoint_index"],
        )
        self.wanderer.rotation_direction = state["rotation_direction"]
        self._path_start = None if state["path_start"] is None else tuple(state["path_start"])


def _project(a: tuple[float, float], b: tuple[float, float], point: tuple[float, float]) -> tuple[float, float]:
    """Return the distance of p's projection from a along a→b, and the remaining length of the leg [m]."""
    length = math.hypot(b[0] - a[0], b[1] - a[1])
    if length == 0.0:
        return 0.0, 0.0
    along = ((point[0] - a[0]) * (b[0] - a[0]) + (point[1] - a[1]) * (b[1] - a[1])) / length
    return max(along, 0.0), length - along


def _remaining_distance(
    points: tuple[tuple[float, float], ...], segment_index: int, along: float, cutoff: float
) -> float:
    """Return the remaining length of the polyline [m], or any larger value than ``enough``."""
    distance = -along
    for index in range(segment_index, len(points) - 1):
        a, b = points[index], points[index + 1]
        distance += math.hypot(b[0] - a[0], b[1] - a[1])
        if distance > cutoff:
            break
    return distance


def _lookahead_point(
    points: tuple[tuple[float, float], ...], segment_index: int, along: float, distance: float
) -> tuple[float, float]:
    """Return the point of the polyline at ``distance`` ahead."""
    remaining = along + distance
    for a, b in zip(points[segment_index:], points[segment_index + 1 :], strict=False):
        length = math.hypot(b[0] - a[0], b[1] - a[1])
        if remaining <= length:
            fraction = remaining / length if length else 0.0
            return a[0] + fraction * (b[0] - a[0]), a[1] + fraction * (b[1] - a[1])
        remaining -= length
    return points[-1]
