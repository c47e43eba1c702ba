"""Drives a robot through calibration moves in simulation, and fits its drive to what really happened."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.control.kinematics import DifferentialDrive
from roboyard.description.extent import bounding_radius
from roboyard.errors import InputError, RunError
from roboyard.geometry import wrap_angle
from roboyard.localization import DriveFit, Estimate, fit_drive
from roboyard.localization.nodes import OdometryNode
from roboyard.scenarios.calibrated import USES, DriveCalibration, digest
from roboyard.scenarios.calibration.moves import Move, plan_moves
from roboyard.scenarios.robot_handle import RobotHandle
from roboyard.scenarios.robot_package import RobotPackage
from roboyard.scenarios.run import Run

_STEP = 0.05
"""Between two looks at the truth [s]; in between the way counts as an arc."""
_ROOM = 1.5
"""How far moves may lead away from the start, in reaches of the robot, and at least this many metres."""
_REST, _PATIENCE = 2e-3, 10.0
"""Slower than this it rests [m/s, rad/s]; how long that is waited for [s]."""
_LEAST = 6


@dataclass(frozen=True, slots=True)
class Driven:
    """Moves as they were driven, (n,) each.

    Attributes:
        moves: What was asked for.
        left: Angle that the left wheels turned by their encoders [rad].
        right: The right ones.
        way: Real way of the axle's middle along its heading [m].
        turn: Real turn [rad].
        dropped: How many were left out since the robot touched something.
    """

    moves: tuple[Move, ...]
    left: NDArray[np.float64]
    right: NDArray[np.float64]
    way: NDArray[np.float64]
    turn: NDArray[np.float64]
    dropped: int


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A calibration and what it rests on.

    Attributes:
        package: The robot, uncalibrated.
        nominal: Its drive as described, with k = 1.
        driven: The moves.
        fit: The regression.
        world: Where.
        seed: Of moves and noise.
    """

    package: RobotPackage
    nominal: DifferentialDrive
    driven: Driven
    fit: DriveFit
    world: str
    seed: int

    @property
    def estimates(self) -> dict[str, Estimate]:
        """What was found, by name."""
        fit = self.fit
        return {
            "wheel_radius": fit.wheel_radius,
            "left_radius_scale": fit.left_radius_scale,
            "right_radius_scale": fit.right_radius_scale,
            "slip_factor": fit.slip_factor,
            "effective_track": fit.effective_track,
        }

    @property
    def record(self) -> DriveCalibration:
        """As it is stored."""
        drive = self.fit.drive
        return DriveCalibration(
            robot=self.package.name,
            description=digest(self.package),
            wheel_radius=drive.wheel_radius,
            left_radius_scale=drive.left_radius_scale,
            right_radius_scale=drive.right_radius_scale,
            slip_factor=drive.slip_factor,
            track=drive.track,
            standard_errors={name: found.standard_error for name, found in self.estimates.items()},
            intervals={name: found.interval for name, found in self.estimates.items()},
            made=f"roboyard calibrate drive {self.package.name} --world {self.world} --seed {self.seed}, "
            f"{len(self.driven.moves)} moves",
        )

    def turn_errors(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(n,) turns by odometry less real ones [rad], uncalibrated and calibrated."""
        driven, nominal = self.driven, self.nominal
        pairs = zip(driven.left.tolist(), driven.right.tolist(), strict=True)
        told = np.array([nominal.travel(left, right)[1] for left, right in pairs])
        return told - driven.turn, -self.fit.turn_residuals


def calibrate_drive(
    package: RobotPackage,
    *,
    world: str = "empty",
    seed: int = 0,
    turns: int = 24,
    progress: Callable[[int, int], None] | None = None,
) -> Calibrated:
    """Calibrate the two-sided drive of a robot.

    Args:
        package: The robot.
        world: Where to drive: a flat floor with room.
        seed: Of the moves' speeds and the encoders' noise.
        turns: How many turns; as many straights are driven too.
        progress: Called with the number of moves done and of all.

    Raises:
        InputError and its kinds: the robot has no two-sided drive, the world no room.
        RunError: it does not move as told, or touches something most of the time.
    """
    parameters = two_sided(package)
    nominal = DifferentialDrive(
        wheel_radius=parameters["wheel_radius"], track=parameters["track"], axle_x=parameters.get("axle_x", 0.0)
    )
    with Run(world, seed=seed, record=False) as run:
        robot = _put(run, package)
        room = max(_ROOM, _ROOM * bounding_radius(robot.model))
        limits = package.file.limits
        # narrow robots tip and slide at speeds that wide ones take easily
        speed = min(limits.speed or math.inf, 3.0 * nominal.track, 1.0)
        moves = plan_moves(turns, speed, min(limits.turn_rate or math.inf, 1.5), room, seed)
        driven = _drive(run, robot, moves, parameters, nominal, progress)
    if len(driven.moves) < _LEAST:
        raise RunError(
            f"the robot touched something in {driven.dropped} of {len(moves)} moves", valid="a world with more room"
        )
    if np.abs(driven.turn).max() < 0.1 or np.abs(driven.way).max() < 0.5 * nominal.wheel_radius:
        raise RunError(
            f"{package.name} hardly moves: {np.degrees(np.abs(driven.turn).max()):.1f}° and "
            f"{np.abs(driven.way).max():.3f} m at most",
            valid="a drive that can move it; `roboyard check robot` shows its limits",
        )
    fit = fit_drive(nominal, driven.left, driven.right, driven.way, driven.turn)
    return Calibrated(package, nominal, driven, fit, world, seed)


def two_sided(package: RobotPackage) -> dict[str, Any]:
    """The numbers of a robot's two-sided drive, as its odometry (or else its drive node) has them.

    Raises:
        InputError: it has none.
    """
    specs = [spec for spec in package.file.nodes.values() if spec.use in USES and "left_joints" in spec.parameters]
    if not specs or "drive" not in package.file.nodes:
        drives = [spec.use.rpartition(":")[2] for name, spec in package.file.nodes.items() if name == "drive"]
        raise InputError(
            f"{package.name} has no drive with a left and a right side",
            location=str(package.source),
            valid=f"differential or skid-steer robots; its drive is {drives[0]}" if drives else "a robot that drives",
        )
    spec = next((spec for spec in specs if "odometry" in spec.use.lower()), specs[0])
    known = OdometryNode.parameters_declared()
    defaults = {name: known[name].default for name in ("wheel_radius", "track", "axle_x")}
    return {**defaults, **spec.parameters}


def _put(run: Run, package: RobotPackage) -> RobotHandle:
    """The robot where it has room, at rest."""
    from roboyard.scenarios.floor import floor_of

    model = package.load_model()
    x, y = floor_of(run.simulation).free_place(2.0 * max(_ROOM, _ROOM * bounding_radius(model)))
    quiet = ("odometry", "robot_state")
    nodes = [name for name in package.file.default if package.file.nodes[name].use not in quiet]
    robot = run.add(package, package.name, at=(x, y, 0.0), nodes=nodes)
    run.run_for(1.0)
    return robot


def _drive(
    run: Run,
    robot: RobotHandle,
    moves: tuple[Move, ...],
    parameters: dict[str, Any],
    nominal: DifferentialDrive,
    progress: Callable[[int, int], None] | None,
) -> Driven:
    names = robot.hardware.joint_names
    sides = [np.array([names.index(joint) for joint in parameters[key]]) for key in ("left_joints", "right_joints")]
    rows: list[tuple[float, float, float, float]] = []
    kept: list[Move] = []
    for number, move in enumerate(moves):
        touches = _touches(run, robot)
        before = robot.hardware.read().position
        way, turn = _one(run, robot, move, nominal.axle_x)
        angles = robot.hardware.read().position - before
        if _touches(run, robot) == touches:
            rows.append((float(angles[sides[0]].mean()), float(angles[sides[1]].mean()), way, turn))
            kept.append(move)
        if progress is not None:
            progress(number + 1, len(moves))
    left, right, ways, turns = np.array(rows).reshape(-1, 4).T
    return Driven(tuple(kept), left, right, ways, turns, len(moves) - len(kept))


def _one(run: Run, robot: RobotHandle, move: Move, axle_x: float) -> tuple[float, float]:
    """Drive a move from rest to rest; gives its real way [m] and turn [rad]."""
    x, y, yaw = _axle(robot, axle_x)
    way = turn = 0.0
    end, given_up = run.time + move.seconds, run.time + move.seconds + _PATIENCE
    robot.drive(move.v, move.w)
    resting = 0
    while resting < 4:
        run.run_for(_STEP)
        if run.time >= end - 1e-9:
            robot.drive(0.0, 0.0)
        now_x, now_y, now_yaw = _axle(robot, axle_x)
        step = wrap_angle(now_yaw - yaw)
        middle = yaw + 0.5 * step
        along = (now_x - x) * math.cos(middle) + (now_y - y) * math.sin(middle)
        half = 0.5 * step
        way += along * (half / math.sin(half) if abs(half) > 1e-6 else 1.0)  # the arc over its chord
        turn += step
        x, y, yaw = now_x, now_y, now_yaw
        slow = abs(along) < _REST * _STEP and abs(step) < _REST * _STEP
        resting = resting + 1 if slow and run.time >= end else 0
        if run.time > given_up:
            raise RunError(f"{robot.name} does not come to rest after {move.kind} moves", valid="a flat floor")
    return way, turn


def _axle(robot: RobotHandle, axle_x: float) -> tuple[float, float, float]:
    """True place and heading of the axle's middle."""
    pose = robot.truth.pose
    return pose.x + axle_x * math.cos(pose.yaw), pose.y + axle_x * math.sin(pose.yaw), pose.yaw


def _touches(run: Run, robot: RobotHandle) -> int:
    found = run.evaluation.by_robot()[robot.name].get("contacts")
    return int(found) if isinstance(found, int | float) else 0
