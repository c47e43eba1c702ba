"""Scripted foot movements: offsets of every foot from the stance, their XML files, playback, standing up and lying
down.

A file reads ``<movement><foot number="0"><step><x>0.01</x><y>0</y><z>0.02</z></step>…</foot>…</movement>``: meters
from the stance in the body frame, one list of steps for each foot, all of the same length.  ``<movement ticks="1">``
states the number of periods of 20 ms between steps for which the movement was made.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.description.load import read_file
from roboyard.description.xml import XmlNode, parse_xml
from roboyard.errors import DescriptionError, InputError, RoboyardError
from roboyard.geometry.arrays import Array
from roboyard.walking.legged_robot import LeggedRobot

Interpolation = Literal["cosine", "spline"]

TICK_PERIOD: Final = 0.02
"""Time between two set-points [s]."""
DEFAULT_TICKS: Final = 8
"""Periods from one step to the next, unless a joint would be too fast."""
_MAX_TICKS: Final = 100_000


@dataclass(frozen=True, eq=False)
class FootMovement:
    """Offsets of all feet, step by step.

    Attributes:
        foot_offsets: (l, k, 3) offset of each foot from the stance at each step, in the body frame [m].
        name: Name of the movement.
        step_ticks: Periods between steps that the movement was made for; None: the player's default.
    """

    foot_offsets: Array = field(repr=False)
    name: str = ""
    step_ticks: int | None = None

    def __post_init__(self) -> None:
        if self.step_ticks is not None and not 1 <= self.step_ticks <= _MAX_TICKS:
            raise InputError(
                f"{self.step_ticks} ticks", location=f"movement {self.name}".strip(), valid=f"1 to {_MAX_TICKS}"
            )
        foot_offsets = np.array(self.foot_offsets, dtype=np.float64)
        if (
            foot_offsets.ndim != 3
            or foot_offsets.shape[2] != 3
            or 0 in foot_offsets.shape
            or not np.isfinite(foot_offsets).all()
        ):
            raise InputError(
                f"steps of shape {foot_offsets.shape}",
                location=f"movement {self.name}".strip(),
                valid="finite numbers (l, k, 3)",
            )
        foot_offsets.flags.writeable = False
        object.__setattr__(self, "foot_offsets", foot_offsets)

    @property
    def n_feet(self) -> int:
        """Number of feet."""
        return len(self.foot_offsets)

    @property
    def n_steps(self) -> int:
        """Number of steps."""
        return int(self.foot_offsets.shape[1])


@dataclass(frozen=True, eq=False)
class MovementPlayback:
    """A movement as joint set-points, one for each period.

    Attributes:
        q: (t, l, 3) joint positions [rad].
        step_ticks: (k - 1) periods between successive steps.
        period: Time between two set-points [s].
    """

    q: Array = field(repr=False)
    step_ticks: NDArray[np.int64]
    period: float

    @property
    def duration(self) -> float:
        """Duration of the playback [s]."""
        return (len(self.q) - 1) * self.period


def absolute_foot_positions(movement: FootMovement, legged_robot: LeggedRobot) -> Array:
    """Return (k, l, 3) foot positions in the body frame [m]. Raises InputError if the robot has another number of
    feet."""
    if movement.n_feet != len(legged_robot.legs):
        raise InputError(
            f"{movement.n_feet} feet",
            location=f"movement {movement.name}".strip(),
            valid=f"{len(legged_robot.legs)}, as {legged_robot.name} has",
        )
    return legged_robot.stance_feet + movement.foot_offsets.transpose(1, 0, 2)


def validate_movement(movement: FootMovement, legged_robot: LeggedRobot) -> Array:
    """Return joint positions (k, l, 3) [rad] of each step.

    Raises:
        RoboyardError: A foot position is out of reach; the error names step, leg, joint, value and limit.
    """
    seed, joints = legged_robot.stance_pose, []
    for number, feet in enumerate(absolute_foot_positions(movement, legged_robot)):
        try:
            seed = legged_robot.solve_ik(feet, seed)
        except RoboyardError as error:
            error.message = f"step {number}: {error.message}"
            raise
        joints.append(seed)
    return np.array(joints)


def play_movement(
    movement: FootMovement,
    legged_robot: LeggedRobot,
    *,
    interpolation: Interpolation = "cosine",
    period: float = TICK_PERIOD,
    step_ticks: int | None = None,
    speed_fraction: float = 1.0,
    start: ArrayLike | None = None,
) -> MovementPlayback:
    """Return the set-points of a movement, slow enough for the slowest joint.

    Args:
        movement: The movement.
        legged_robot: The robot.
        interpolation: "cosine": each foot moves straight, eased at both ends; "spline": a cubic spline through all
            steps, at rest at its ends.
        period: Time between two set-points [s].
        step_ticks: Periods between steps; more where a joint would be too fast.  None: those of the movement, or else
            `DEFAULT_TICKS`; at least `DEFAULT_TICKS` to its first step.
        speed_fraction: Fraction of the joint speeds to use.
        start: (l, 3) foot positions in the body frame to start from [m]; None: the first step of the movement.

    Raises:
        RoboyardError: A foot position is out of reach.
        InputError: A parameter is not valid.
    """
    if step_ticks is None:
        step_ticks = movement.step_ticks or DEFAULT_TICKS
    if not 0.0 < period <= 1.0 or not 1 <= step_ticks <= _MAX_TICKS or not 0.0 < speed_fraction <= 1.0:
        raise InputError(
            f"period {period} s, {step_ticks} ticks, speed {speed_fraction}",
            valid="up to 1 s; 1 tick or more; a share up to 1",
        )
    validate_movement(movement, legged_robot)
    foot_positions = absolute_foot_positions(movement, legged_robot)
    if start is not None:
        foot_positions = np.concatenate([np.asarray(start, dtype=np.float64).reshape(1, -1, 3), foot_positions])
    tick_counts = np.full(max(len(foot_positions) - 1, 0), step_ticks, np.int64)
    if start is not None:
        tick_counts[0] = max(step_ticks, DEFAULT_TICKS)
    max_joint_travel = legged_robot.max_joint_speeds * speed_fraction * period * (1.0 + 1e-9)
    while True:
        foot_path = _interpolate(foot_positions, tick_counts, interpolation)
        q = _solve_along(legged_robot, foot_path)
        if len(q) < 2:
            return MovementPlayback(q, tick_counts, period)
        travel_ratio = (np.abs(np.diff(q, axis=0)) / max_joint_travel).max(axis=(1, 2))
        step_indices = np.concatenate([[0], np.cumsum(tick_counts)])
        max_ratios = np.array([travel_ratio[a:b].max() for a, b in pairwise(step_indices)])
        too_fast = max_ratios > 1.0
        if not too_fast.any():
            return MovementPlayback(q, tick_counts, period)
        tick_counts = np.where(
            too_fast, np.maximum(tick_counts + 1, np.ceil(tick_counts * max_ratios).astype(np.int64)), tick_counts
        )
        if tick_counts.max() > _MAX_TICKS:
            raise InputError("a joint would have to be endlessly slow", valid="feet away from their first axes")


def _interpolate(foot_positions: Array, tick_counts: NDArray[np.int64], interpolation: Interpolation) -> Array:
    """Return (t, l, 3) foot positions at each period."""
    if len(foot_positions) == 1:
        return foot_positions
    if interpolation == "spline":
        from scipy.interpolate import CubicSpline  # it brings half of SciPy, and few movements are splines

        knots = np.concatenate([[0], np.cumsum(tick_counts)]).astype(np.float64)
        curve = CubicSpline(knots, foot_positions.reshape(len(foot_positions), -1), bc_type="clamped")
        interpolated: Array = curve(np.arange(int(knots[-1]) + 1)).reshape(-1, *foot_positions.shape[1:])
        return interpolated
    pieces = [foot_positions[:1]]
    for a, b, count in zip(foot_positions, foot_positions[1:], tick_counts.tolist(), strict=False):
        fraction = 0.5 - 0.5 * np.cos(math.pi * np.arange(1, count + 1) / count)
        pieces.append(a + fraction[:, None, None] * (b - a))
    return np.concatenate(pieces)


def _solve_along(legged_robot: LeggedRobot, foot_path: Array) -> Array:
    """Return joints (t, l, 3) along a path of the feet, each solution near the previous one."""
    seed, out = legged_robot.stance_pose, np.empty_like(foot_path)
    for k, feet in enumerate(foot_path):
        seed = out[k] = legged_robot.solve_ik(feet, seed)
    return out


_MAX_FILE_STEPS = 100_000
_MAX_FILE_TICKS = 10_000


def load_movement(path: Path) -> FootMovement:
    """Load a movement from its file.

    Raises:
        DescriptionError: The file is not valid; the error names line, problem and what is valid.
    """
    _, data = read_file(path, (".xml",), "a movement: .xml")
    root, _ = parse_xml(data, str(path))
    if root.tag != "movement":
        raise _file_error(root, f"the root is <{root.tag}>", "<movement>")
    feet: dict[int, XmlNode] = {}
    for node in root.children:
        if node.tag != "foot":
            raise _file_error(node, f"<{node.tag}> in a movement", "<foot number=…>")
        number = node.get("number")
        if not number.isdecimal() or int(number) > 1000:
            raise _file_error(node, f"foot number {number!r}", "0, 1, 2, …")
        if int(number) in feet:
            raise _file_error(
                node, f"a second foot {number}", f"each once; the first is at {feet[int(number)].location}"
            )
        feet[int(number)] = node
    if not feet:
        raise _file_error(root, "no feet", '<foot number="0"> and so on')
    missing = [count for count in range(max(feet) + 1) if count not in feet]
    if missing:
        raise _file_error(root, f"foot {missing[0]} is missing", f"all of 0 to {max(feet)}")
    steps = [_read_foot_offsets(feet[count]) for count in range(len(feet))]
    for foot, foot_steps in enumerate(steps):
        if len(foot_steps) != len(steps[0]):
            raise _file_error(
                feet[foot], f"foot {foot} has {len(foot_steps)} steps", f"{len(steps[0])}, as many as foot 0 has"
            )
    return FootMovement(np.array(steps), path.stem, _read_step_ticks(root))


def format_movement(movement: FootMovement) -> str:
    """Return the text of a movement file; reading it returns the same numbers."""
    from xml.sax.saxutils import quoteattr  # brings an HTTP client and TLS, which readers of movements do not need

    ticks_attribute = "" if movement.step_ticks is None else f" ticks={quoteattr(str(movement.step_ticks))}"
    lines = ['<?xml version="1.0"?>', f"<movement{ticks_attribute}>"]
    for number, steps in enumerate(movement.foot_offsets.tolist()):
        lines.append(f"  <foot number={quoteattr(str(number))}>")
        lines += [f"    <step><x>{x!r}</x><y>{y!r}</y><z>{z!r}</z></step>" for x, y, z in steps]
        lines.append("  </foot>")
    return "\n".join([*lines, "</movement>", ""])


def _read_step_ticks(root: XmlNode) -> int | None:
    text = root.get("ticks")
    if not text:
        return None
    if not text.isdecimal() or not 1 <= int(text[:9]) <= _MAX_FILE_TICKS:
        raise _file_error(root, f"ticks {text!r}", f"1 to {_MAX_FILE_TICKS}")
    return int(text)


def _read_foot_offsets(foot: XmlNode) -> list[tuple[float, ...]]:
    offsets: list[tuple[float, ...]] = []
    for node in foot.children:
        if node.tag != "step":
            raise _file_error(node, f"<{node.tag}> in a foot", "<step>")
        values = {}
        for child in node.children:
            if child.tag not in ("x", "y", "z") or child.tag in values:
                raise _file_error(child, f"<{child.tag}> in a step", "<x>, <y> and <z>, each once")
            values[child.tag] = _read_number(child)
        if len(values) < 3:
            missing_axis = next(axis for axis in "xyz" if axis not in values)
            raise _file_error(node, f"a step without <{missing_axis}>", "<x>, <y> and <z>, each once")
        offsets.append((values["x"], values["y"], values["z"]))
    if not offsets or len(offsets) > _MAX_FILE_STEPS:
        raise _file_error(foot, f"{len(offsets)} steps", f"1 to {_MAX_FILE_STEPS}")
    return offsets


def _read_number(node: XmlNode) -> float:
    try:
        value = float(node.text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise _file_error(node, f"<{node.tag}> is {node.text.strip()!r}", "a finite number of meters")
    return value


def _file_error(node: XmlNode, message: str, valid: str) -> DescriptionError:
    return DescriptionError(message, location=node.location, valid=valid)


_N_LIFT_POSES: Final = 25
"""Number of poses between the ground and the stance in which the inverse kinematics is solved."""


def plan_stand_up(
    legged_robot: LeggedRobot,
    current_joints: ArrayLike,
    *,
    resting_foot_height: float,
    period: float = TICK_PERIOD,
    speed_fraction: float = 0.8,
) -> Array:
    """Return set-points (t, l, 3) from the current joints to the stance [rad], one for each period.

    The feet first move to the ground below their positions in the stance while the body lies; then they lift the body.

    Args:
        legged_robot: The robot.
        current_joints: (l, 3) current joint positions [rad].
        resting_foot_height: Height of the ground in the body frame while the robot lies, above the feet of the stance
            [m].
        period: Time between two set-points [s].
        speed_fraction: Fraction of the joint speeds to use.

    Raises:
        InputError: The ground is below the feet of the stance.
        RoboyardError: A foot position is out of reach.
    """
    return _time_joint_path(
        legged_robot,
        [np.asarray(current_joints, dtype=np.float64), *_lift_joint_path(legged_robot, resting_foot_height)],
        period,
        speed_fraction,
    )


def plan_lie_down(
    legged_robot: LeggedRobot,
    current_joints: ArrayLike,
    *,
    resting_foot_height: float,
    period: float = TICK_PERIOD,
    speed_fraction: float = 0.8,
) -> Array:
    """Return set-points (t, l, 3) from the current joints to the rest pose; arguments as for `plan_stand_up`.

    Raises:
        InputError, RoboyardError: As for `plan_stand_up`.
    """
    lowering = _lift_joint_path(legged_robot, resting_foot_height)[::-1]
    return _time_joint_path(
        legged_robot,
        [np.asarray(current_joints, dtype=np.float64), *lowering, legged_robot.rest_pose],
        period,
        speed_fraction,
    )


def plan_return_to_stance(
    legged_robot: LeggedRobot, current_joints: ArrayLike, *, period: float = TICK_PERIOD, speed_fraction: float = 0.8
) -> Array:
    """Return set-points (t, l, 3) straight to the stance; arguments as for `plan_stand_up`."""
    return _time_joint_path(
        legged_robot, [np.asarray(current_joints, dtype=np.float64), legged_robot.stance_pose], period, speed_fraction
    )


def _lift_joint_path(legged_robot: LeggedRobot, resting_foot_height: float) -> list[Array]:
    """Return joints (l, 3) while the body rises from the ground to the height of its stance."""
    stance = legged_robot.stance_feet
    if resting_foot_height <= float(stance[:, 2].max()):
        raise InputError(
            f"ground at {resting_foot_height:g} m", location=legged_robot.name, valid="above the feet of the stance"
        )
    seed, joint_path = legged_robot.stance_pose, []
    for fraction in np.linspace(1.0, 0.0, _N_LIFT_POSES):
        feet = stance.copy()
        feet[:, 2] += (1.0 - fraction) * (resting_foot_height - stance[:, 2])
        seed = legged_robot.solve_ik(feet, seed)
        joint_path.append(seed)
    return joint_path[::-1]


def _time_joint_path(legged_robot: LeggedRobot, points: list[Array], period: float, speed_fraction: float) -> Array:
    """Return set-points through waypoints, eased at both ends, with joints within their fraction of the speed
    limits."""
    segments: list[Array] = []
    for waypoints in (points[:2], points[1:-1], points[-2:]) if len(points) > 3 else (points,):
        joint_path = np.array(waypoints)
        durations = np.array([(np.abs(b - a) / legged_robot.max_joint_speeds).max() for a, b in pairwise(joint_path)])
        path_time = np.concatenate([[0.0], np.cumsum(durations)])
        if path_time[-1] < 1e-9:
            continue
        ticks = max(1, math.ceil(path_time[-1] * 0.5 * math.pi / (speed_fraction * period)))
        sample_times = path_time[-1] * (0.5 - 0.5 * np.cos(math.pi * np.arange(1, ticks + 1) / ticks))
        k = np.clip(np.searchsorted(path_time, sample_times) - 1, 0, len(durations) - 1)
        fraction = np.clip((sample_times - path_time[k]) / np.maximum(durations[k], 1e-12), 0.0, 1.0)
        segments.append(joint_path[k] + fraction[:, None, None] * (joint_path[k + 1] - joint_path[k]))
    return np.concatenate(segments) if segments else points[-1][None]
