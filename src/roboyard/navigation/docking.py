"""Docking: the robot approaches a dock from a staging pose along a straight line; if it arrives out of tolerance, it
backs off to the staging pose and approaches again.

The terms are those of Nav2's opennav_docking: dock, staging pose, approach, retry, undock.  A `DockingControlLaw`
steers; the default is the graceful control law, which opennav_docking uses too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from roboyard.config import Config, parameter
from roboyard.control import ZERO_TWIST, PlanarTwist
from roboyard.geometry import SE2, wrap_angle
from roboyard.navigation.controllers import MotionLimits


class DockingPhase(Enum):
    """Phase of docking or undocking."""

    ROTATING = "turn"
    """The robot rotates in place until it can approach the dock."""
    APPROACHING = "approach"
    """The robot drives to the dock."""
    BACKING_OFF = "back off"
    """The robot drives back to the staging pose, to try again or to undock."""
    DOCKED = "docked"
    UNDOCKED = "left"
    """The robot is at the staging pose after undocking."""
    FAILED = "failed"

    @property
    def is_final(self) -> bool:
        """Whether docking or undocking has ended."""
        return self in (DockingPhase.DOCKED, DockingPhase.UNDOCKED, DockingPhase.FAILED)


class DockingControlLaw(Protocol):
    """Control law that steers a base along a smooth curve to a target pose.

    `Docking` calls it with a reversed heading when the base drives backward, limits speed and acceleration, and scales
    the speed down where the curvature exceeds the maximum angular velocity.  A law has no state.
    """

    def heading_error(self, pose: SE2, target: SE2) -> float:
        """Return the error of the heading against the one that the law steers to [rad].

        Args:
            pose: Pose of the base, whose x axis points in the direction of motion.
            target: Pose to arrive at, in the same frame.
        """
        ...

    def curvature(self, pose: SE2, target: SE2) -> float:
        """Return the signed curvature to drive [1/m], positive to the left; for arguments see `heading_error`."""
        ...


@dataclass(frozen=True, slots=True)
class GracefulControlLaw:
    """Graceful control law (J. Park and B. Kuipers, "A smooth control law for graceful motion of differential wheeled
    mobile robots in 2D environment", ICRA 2011).

    In egocentric polar coordinates the target lies at the distance r; the line of sight makes the angle θ with the
    heading of the target and δ with that of the robot.  The law steers δ to atan(-k1 θ), so that θ vanishes with r and
    the robot arrives along the axis of the target.

    Attributes:
        k1: Ratio of the rate at which θ vanishes to that of r.
        k2: Gain of the steering to the wanted heading.
    """

    k1: float = 3.0
    k2: float = 3.0

    def heading_error(self, pose: SE2, target: SE2) -> float:
        """Return the error of the heading, δ - atan(-k1 θ) [rad]."""
        _, theta, delta = egocentric_polar(pose, target)
        return heading_error(theta, delta, self.k1)

    def curvature(self, pose: SE2, target: SE2) -> float:
        """Return the curvature of equation 14 of the paper [1/m]."""
        return curvature(*egocentric_polar(pose, target), self.k1, self.k2)


class DockingConfig(Config):
    """Configuration of docking."""

    staging_distance: float = parameter(
        0.7, unit="m", low=1e-6, high=1e3, doc="Distance from the dock to the staging pose, where the approach begins."
    )
    backward: bool = parameter(False, doc="Dock backward.")
    max_speed: float = parameter(0.25, unit="m/s", low=1e-6, high=1e3, doc="Maximum speed.")
    min_speed: float = parameter(
        0.03, unit="m/s", low=1e-6, high=1e3, doc="Minimum speed, at which the robot arrives at the dock."
    )
    max_angular_speed: float = parameter(0.8, unit="rad/s", low=1e-6, high=1e3, doc="Maximum angular velocity.")
    tolerance: float = parameter(
        0.02,
        unit="m",
        low=1e-6,
        high=1e3,
        doc="Tolerance of the docked position along and across the axis of the dock.",
    )
    heading_tolerance: float = parameter(0.05, unit="rad", low=1e-6, high=1e3, doc="Tolerance of the docked heading.")
    k1: float = parameter(3.0, low=1e-6, high=1e6, doc="Gain k1 of the graceful control law.")
    k2: float = parameter(3.0, low=1e-6, high=1e6, doc="Gain k2 of the graceful control law.")
    target_offset: float = parameter(
        0.25,
        unit="m",
        low=1e-6,
        high=1e3,
        doc="Distance beyond the dock of the pose that the control law steers to; the law is singular at its target.",
    )
    rotate_in_place_threshold: float = parameter(
        0.4,
        unit="rad",
        low=0.05,
        high=math.pi / 2.0,
        doc="Error of the heading from which the robot rotates in place before it approaches.",
    )
    max_retries: int = parameter(3, low=0, doc="Maximum number of retries: backing off and approaching again.")
    stuck_cycles: int = parameter(
        60, low=1, doc="Number of control periods without progress after which the robot backs off."
    )
    max_cycles: int = parameter(3000, low=1, doc="Maximum number of control periods in total.")


class Docking:
    """Docks or undocks a differential base, one velocity command per control period.

    Attributes:
        dock: Pose ``T_fixed_base`` of the docked base; its x axis is the axis of the dock.
        phase: Present phase.
        retries: Number of retries so far.
        cause: Cause of the failure or of the last retry, "" without one.

    Args:
        dock: Pose ``T_fixed_base`` of the docked base, in a frame without jumps.
        limits: Limits of the velocity and the acceleration of the base.
        config: Configuration of docking.
        period: Control period [s].
        is_undocking: Whether the robot is docked and drives to the staging pose.
        control_law: Control law that steers; None: the graceful control law with the gains of ``config``.
    """

    def __init__(
        self,
        dock: SE2,
        limits: MotionLimits,
        config: DockingConfig | None = None,
        period: float = 0.05,
        *,
        is_undocking: bool = False,
        control_law: DockingControlLaw | None = None,
    ) -> None:
        self.dock = dock
        self.phase = DockingPhase.BACKING_OFF if is_undocking else DockingPhase.ROTATING
        self.retries = 0
        self.cause = ""
        self._limits, self._config, self._period = limits, config or DockingConfig(), period
        self._control_law = control_law or GracefulControlLaw(self._config.k1, self._config.k2)
        self._is_undocking = is_undocking
        self._last_command = ZERO_TWIST
        self._min_remaining, self._n_stuck_cycles, self._n_cycles = math.inf, 0, 0

    @property
    def is_finished(self) -> bool:
        """Whether docking or undocking has ended."""
        return self.phase.is_final

    @property
    def staging_pose(self) -> SE2:
        """Pose at which the approach begins, in the frame of ``dock``."""
        return staging_pose(self.dock, self._config)

    def errors(self, pose: SE2) -> tuple[float, float, float]:
        """Return the remaining distance along the axis of the dock, the lateral error [m] and the heading error [rad].

        Args:
            pose: Pose of the base, in the frame of ``dock``.
        """
        pose_in_dock = self.dock.inverse() @ pose
        return (pose_in_dock.x if self._config.backward else -pose_in_dock.x), pose_in_dock.y, pose_in_dock.theta

    def compute_command(self, pose: SE2) -> PlanarTwist:
        """Return the velocity command for the next control period.

        Args:
            pose: Present pose of the base, in the frame of ``dock``.
        """
        self._n_cycles += 1
        if not self.is_finished and self._n_cycles > self._config.max_cycles:
            self._fail("the time limit is exceeded")
        target_twist = ZERO_TWIST
        if self.phase is DockingPhase.ROTATING:
            target_twist = self._rotate(pose)
        if self.phase is DockingPhase.APPROACHING:
            target_twist = self._approach(pose)
        if self.phase is DockingPhase.BACKING_OFF:
            target_twist = self._back_off(pose)
        if self.is_finished:
            self._last_command = ZERO_TWIST
            return ZERO_TWIST
        self._last_command = self._limit_acceleration(target_twist)
        return self._last_command

    def _rotate(self, pose: SE2) -> PlanarTwist:
        """Rotate in place to the heading that the control law steers to."""
        along, _, _ = self.errors(pose)
        if along < 0.5 * self._config.staging_distance:
            self._enter_phase(DockingPhase.BACKING_OFF, "too close to the dock for a straight approach")
            return ZERO_TWIST
        error = self._heading_error(pose, self._approach_target())
        if abs(error) < (0.5 * self._config.rotate_in_place_threshold if self._last_command.wz == 0.0 else 0.05):
            self._enter_phase(DockingPhase.APPROACHING)
            return ZERO_TWIST
        max_angular_speed = min(self._config.max_angular_speed, self._limits.max_angular_speed)
        return PlanarTwist(wz=-math.copysign(min(max_angular_speed, 0.05 + 1.5 * abs(error)), error))

    def _approach(self, pose: SE2) -> PlanarTwist:
        along, across, heading = self.errors(pose)
        config = self._config
        if along <= 0.5 * config.tolerance:
            if (
                along >= -config.tolerance
                and abs(across) <= config.tolerance
                and abs(heading) <= config.heading_tolerance
            ):
                self.phase = DockingPhase.DOCKED
            else:
                self._retry(f"arrived with errors of {across:+.3f} m and {heading:+.3f} rad")
            return ZERO_TWIST
        if abs(self._heading_error(pose, self._approach_target())) > math.pi / 2.0:
            self._retry("the heading points away from the dock")
            return ZERO_TWIST
        if self._is_stuck(along):
            self._retry("no progress towards the dock")
            return ZERO_TWIST
        return self._track_pose(pose, self._approach_target(), along, config.backward)

    def _back_off(self, pose: SE2) -> PlanarTwist:
        """Drive back to the staging pose, forward or backward, whichever needs no rotation."""
        config = self._config
        distance, _, _ = self.errors(pose)
        remaining = config.staging_distance - distance
        if remaining <= 0.05 * config.staging_distance:
            self._enter_phase(DockingPhase.UNDOCKED if self._is_undocking else DockingPhase.ROTATING)
            return ZERO_TWIST
        if self._is_stuck(remaining):
            self._fail("no progress while backing off")
            return ZERO_TWIST
        _, _, delta = egocentric_polar(pose, self._exit_target())
        return self._track_pose(pose, self._exit_target(), remaining, abs(delta) > math.pi / 2.0)

    def _approach_target(self) -> SE2:
        """Return the target of the approach, beyond the dock, with the heading of the motion."""
        dock = reverse_heading(self.dock) if self._config.backward else self.dock
        return dock @ SE2(self._config.target_offset, 0.0, 0.0)

    def _exit_target(self) -> SE2:
        """Return the target of backing off, beyond the staging pose, with the heading of the motion."""
        outward_pose = self.dock if self._config.backward else reverse_heading(self.dock)
        return outward_pose @ SE2(self._config.staging_distance + self._config.target_offset, 0.0, 0.0)

    def _heading_error(self, pose: SE2, target: SE2) -> float:
        return self._control_law.heading_error(reverse_heading(pose) if self._config.backward else pose, target)

    def _track_pose(self, pose: SE2, target: SE2, remaining: float, backward: bool) -> PlanarTwist:
        """Return the command along the curve of the law, at a speed from which the base can stop at the end."""
        config, limits = self._config, self._limits
        path_curvature = self._control_law.curvature(reverse_heading(pose) if backward else pose, target)
        max_speed = min(config.max_speed, limits.max_backward_speed if backward else limits.max_forward_speed)
        max_angular_speed = min(config.max_angular_speed, limits.max_angular_speed)
        speed = min(
            max_speed, math.sqrt(limits.max_acceleration * max(remaining, 0.0)), config.min_speed + 1.2 * remaining
        )
        speed = max(min(speed, max_angular_speed / max(abs(path_curvature), 1e-9)), min(config.min_speed, max_speed))
        return PlanarTwist(
            -speed if backward else speed, 0.0, min(max(path_curvature * speed, -max_angular_speed), max_angular_speed)
        )

    def _limit_acceleration(self, target_twist: PlanarTwist) -> PlanarTwist:
        """Return the velocity nearest to the target velocity that the acceleration limits allow."""
        max_speed_change, max_angular_speed_change = (
            self._limits.max_acceleration * self._period,
            self._limits.max_angular_acceleration * self._period,
        )
        return PlanarTwist(
            min(
                max(target_twist.vx, self._last_command.vx - max_speed_change), self._last_command.vx + max_speed_change
            ),
            0.0,
            min(
                max(target_twist.wz, self._last_command.wz - max_angular_speed_change),
                self._last_command.wz + max_angular_speed_change,
            ),
        )

    def _is_stuck(self, remaining: float) -> bool:
        """Return whether the remaining distance has not decreased for too many periods."""
        if remaining < self._min_remaining - 1e-3:
            self._min_remaining, self._n_stuck_cycles = remaining, 0
        else:
            self._n_stuck_cycles += 1
        return self._n_stuck_cycles > self._config.stuck_cycles

    def _retry(self, cause: str) -> None:
        if self.retries >= self._config.max_retries:
            self._fail(cause)
            return
        self.retries += 1
        self._enter_phase(DockingPhase.BACKING_OFF, cause)

    def _enter_phase(self, phase: DockingPhase, cause: str = "") -> None:
        self.phase, self.cause = phase, cause or self.cause
        self._min_remaining, self._n_stuck_cycles = math.inf, 0

    def _fail(self, cause: str) -> None:
        self.phase, self.cause = DockingPhase.FAILED, cause

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        dock = self.dock.to_tuple()
        counts = (self.phase.value, self.retries, self.cause, self._min_remaining, self._n_stuck_cycles, self._n_cycles)
        return {"dock": dock, "last": tuple(self._last_command), "counts": counts}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore a state that `save_state` returned."""
        self.dock, self._last_command = SE2.from_tuple(saved["dock"]), PlanarTwist(*saved["last"])
        phase, self.retries, self.cause, self._min_remaining, self._n_stuck_cycles, self._n_cycles = saved["counts"]
        self.phase = DockingPhase(phase)


def staging_pose(dock: SE2, config: DockingConfig) -> SE2:
    """Return the staging pose of a dock: on its axis, with the heading of the docked base."""
    return dock @ SE2(config.staging_distance if config.backward else -config.staging_distance, 0.0, 0.0)


def egocentric_polar(pose: SE2, target: SE2) -> tuple[float, float, float]:
    """Return the distance r [m] of the target and the angles θ and δ of the target's and the robot's headings against
    the line of sight [rad].
    """
    bearing = math.atan2(target.y - pose.y, target.x - pose.x)
    return pose.distance(target), wrap_angle(target.theta - bearing), wrap_angle(pose.theta - bearing)


def heading_error(theta: float, delta: float, k1: float) -> float:
    """Return the error of the robot's heading against the reference of the graceful control law [rad]."""
    return wrap_angle(delta - math.atan(-k1 * theta))


def curvature(r: float, theta: float, delta: float, k1: float, k2: float) -> float:
    """Return the curvature to drive [1/m]: equation 14 of Park and Kuipers.

    Args:
        r: Distance of the target [m], more than 0.
        theta: Heading of the target against the line of sight [rad].
        delta: Heading of the robot against the line of sight [rad].
        k1: Ratio of the rate at which θ vanishes to that of r.
        k2: Gain of the steering to the reference heading.
    """
    error = heading_error(theta, delta, k1)
    return -(k2 * error + (1.0 + k1 / (1.0 + (k1 * theta) ** 2)) * math.sin(delta)) / r


def reverse_heading(pose: SE2) -> SE2:
    """Return the pose with the opposite heading: the direction of motion of a base that drives backward."""
    return SE2(pose.x, pose.y, wrap_angle(pose.theta + math.pi))
