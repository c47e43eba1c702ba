"""How an arm's motions to goals went."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from roboyard.control.trajectories import Trajectory, WayPoint
from roboyard.errors import RoboyardError
from roboyard.geometry import SE3
from roboyard.kinematics import Chain
from roboyard.messages.convert import pose_to_se3
from roboyard.messages.time import to_seconds
from roboyard.safety.capsules import LinkCapsules
from roboyard.scenarios.metrics.collector import Collector, Handler, Value

_ENDS = ("succeeded", "aborted", "canceled")
_STEP = 0.001
"""Between moments at which limits are looked after [s]."""
_ROUNDING = 1e-6


class ArmMotion(NamedTuple):
    """How an arm truly stands and moves.

    Attributes:
        chain: Joints of its first group.
        capsules: Its parts.
        T_base_world: The world in the base of the chain.
        q: (n,) positions [rad or m].
        velocity: (n,) speeds [rad/s or m/s].
    """

    chain: Chain
    capsules: LinkCapsules
    T_base_world: SE3
    q: NDArray[np.float64]
    velocity: NDArray[np.float64]


class Arm(Protocol):
    """The truth about a robot's arm."""

    def tip(self, group: str) -> tuple[SE3, SE3]:
        """True poses in the world of the robot's root link, and of the tip of a group of its joints."""

    def limits(self, joints: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Limits (n,) of velocity [rad/s or m/s] and acceleration [rad/s² or m/s²] of joints."""

    def root(self) -> str:
        """Name of the robot's root link."""

    def joints(self) -> tuple[str, ...]:
        """Names of the joints of its first group; none where it has no groups."""

    def motion(self) -> ArmMotion | None:
        """How it stands and moves at the moment; None where it has no groups."""


class Reaching(Collector):
    """Goals of the move node, from its status, against the truth; a frame but the robot's own is taken for the world's.

    ``arm_goals``: asked for; ``arm_reached``; ``arm_failed``: refused or given up; ``pose_error_mean`` and
    ``pose_error_max`` [m], ``turn_error_max`` [rad]: true pose of the tool against the planned one when a motion has
    succeeded; ``arm_time`` [s]: from goals to their ends; ``arm_length``: of the planned ways, in the space of the
    joints; ``planning_looks``: states that were looked at for collisions, a plan; ``arm_replans``: since something came
    into the way; ``limit_violations``: moments of the planned motions, 1 ms apart, at which a set-point is faster or
    changes faster than a joint may.
    """

    names = (
        "arm_goals", "arm_reached", "arm_failed", "pose_error_mean", "pose_error_max", "turn_error_max", "arm_time",
        "arm_length", "planning_looks", "arm_replans", "limit_violations",
    )  # fmt: skip

    def __init__(self, namespace: str, arm: Arm | None) -> None:
        self._topics = (f"{namespace}/move_group/status", f"{namespace}/display_planned_path")
        self._arm = arm
        self.cause = ""
        self._counts = {"arm_goals": 0, "arm_reached": 0, "arm_failed": 0}
        self._errors: list[tuple[float, float]] = []
        self._seconds = self._length = 0.0
        self._looks = self._plans = self._replans = self._broken = self._motions = 0

    def handlers(self) -> Mapping[str, Handler]:
        """The move node's status, and the motions it shows."""
        return dict(zip(self._topics, (self._on_status, self._on_motion), strict=True))

    def _on_status(self, message: Any, time_ns: int) -> None:
        if message.state == "rejected":
            self._counts["arm_goals"] += 1
            self._counts["arm_failed"] += 1
            self.cause = message.error_code
        elif message.state in _ENDS:
            self._counts["arm_goals"] += 1
            self._counts["arm_reached" if message.state == "succeeded" else "arm_failed"] += 1
            self._seconds += float(message.elapsed)
            self._length += float(message.path_length)
            self._looks += int(message.collision_checks)
            self._plans += int(message.plans)
            self._replans += int(message.replans)
            if message.state == "succeeded":
                self._judge(message)
            else:
                self.cause = message.error_code

    def _judge(self, message: Any) -> None:
        if self._arm is None or not len(message.goal):
            return
        T_world_root, T_world_tip = self._arm.tip(message.group)
        wanted = pose_to_se3(message.pose)
        if message.header.frame_id.rpartition("/")[2] == self._arm.root():
            wanted = T_world_root @ wanted
        self._errors.append((wanted.distance(T_world_tip), wanted.angle_to(T_world_tip)))

    def _on_motion(self, message: Any, time_ns: int) -> None:
        if self._arm is None:
            return
        for part in message.trajectory:
            self._motions += 1
            self._broken += _broken(part.joint_trajectory, self._arm)

    def result(self) -> dict[str, Value]:
        """Errors are None until a goal was reached, the rest is 0 without goals."""
        errors = np.array(self._errors).reshape(-1, 2)
        judged = len(errors) > 0
        return {
            **self._counts,
            "pose_error_mean": float(errors[:, 0].mean()) if judged else None,
            "pose_error_max": float(errors[:, 0].max()) if judged else None,
            "turn_error_max": float(errors[:, 1].max()) if judged else None,
            "arm_time": self._seconds,
            "arm_length": self._length,
            "planning_looks": self._looks / self._plans if self._plans else None,
            "arm_replans": self._replans,
            "limit_violations": self._broken if self._motions else None,
        }

    def save_state(self) -> dict[str, Any]:
        """All but the truth, which the run has."""
        return copy.deepcopy({key: value for key, value in vars(self).items() if key != "_arm"})


def _broken(trajectory: Any, arm: Arm) -> int:
    """At how many moments a trajectory_msgs/JointTrajectory breaks a limit."""
    points = [
        WayPoint(
            to_seconds(point.time_from_start),
            np.asarray(point.positions, dtype=np.float64),
            np.asarray(point.velocities, dtype=np.float64) if len(point.velocities) else None,
            np.asarray(point.accelerations, dtype=np.float64) if len(point.accelerations) else None,
        )
        for point in trajectory.points
    ]
    try:
        spline = Trajectory(points)
        velocity, acceleration = arm.limits(list(trajectory.joint_names))
    except RoboyardError:
        return 1
    found = spline.samples(np.arange(spline.start, spline.end, _STEP))
    fast = np.abs(found.velocity) > velocity * (1.0 + _ROUNDING)
    return int((fast | (np.abs(found.acceleration) > acceleration * (1.0 + _ROUNDING))).any(axis=1).sum())
