"""Docking: the robot approaches a dock from a staging pose along a straight line; out of tolerance it backs off and
tries again.

The control law is that of J. Park and B. Kuipers, "A smooth control law for graceful motion of differential wheeled
mobile robots in 2D environment", ICRA 2011.  In egocentric polar coordinates the target lies at distance r; the line of
sight makes the angle θ with the target's heading and δ with the robot's.  Steering δ towards atan(-k1 θ) lets θ vanish
with r, so the robot arrives along the target's own line.
"""

from __future__ import annotations

import math
from typing import Any, Literal

from roboyard.config import Config, parameter
from roboyard.control import ZERO_TWIST, PlanarTwist
from roboyard.geometry import SE2, wrap_angle
from roboyard.navigation.controllers import MotionLimits

DockingPhase = Literal["turn", "approach", "back off", "docked", "left", "failed"]


class DockingConfig(Config):
    """How to dock."""

    staging_distance: float = parameter(
        0.7, unit="m", low=1e-6, high=1e3, doc="Distance before the dock at which the approach begins."
    )
    backward: bool = parameter(False, doc="Dock with the tail first.")
    max_speed: float = parameter(0.25, unit="m/s", low=1e-6, high=1e3, doc="Largest speed.")
    min_speed: float = parameter(0.03, unit="m/s", low=1e-6, high=1e3, doc="Speed at the dock.")
    max_angular_speed: float = parameter(0.8, unit="rad/s", low=1e-6, high=1e3, doc="Largest turning rate.")
    tolerance: float = parameter(0.02, unit="m", low=1e-6, high=1e3, doc="Tolerance of the position, along and across.")
    heading_tolerance: float = parameter(0.05, unit="rad", low=1e-6, high=1e3, doc="Tolerance of the heading.")
    k1: float = parameter(3.0, low=1e-6, high=1e6, doc="Gain k1 of the graceful control law.")
    k2: float = parameter(3.0, low=1e-6, high=1e6, doc="Gain k2 of the graceful control law.")
    target_offset: float = parameter(
        0.25,
        unit="m",
        low=1e-6,
        high=1e3,
        doc="Distance beyond the dock of the point that the robot aims at, so that the law does not end at the dock.",
    )
    rotate_in_place_threshold: float = parameter(
        0.4,
        unit="rad",
        low=0.05,
        high=math.pi / 2.0,
        doc="Error of the heading from which the robot turns on the spot before it drives.",
    )
    max_retries: int = parameter(3, low=0, doc="Largest number of times that the robot backs off and begins anew.")
    stuck_cycles: int = parameter(60, low=1, doc="Periods without progress after which the robot backs off.")
    max_cycles: int = parameter(3000, low=1, doc="Largest number of periods in all.")


class Docking:
    """Drives a differential base into a dock, or out of it, one command at a time.

    Attributes:
        dock: ``T_map_base`` when docked; its x axis is the line of approach.
        phase: "turn" on the spot, "approach", "back off" to the staging pose; "docked", "left" or "failed" at the end.
        retries: How often it has backed off.
        cause: Why it failed, or backed off last.

    Args:
        dock: See above.
        limits: What the base can do.
        config: How to dock.
        period: Between commands [s].
        is_undocking: The robot is in the dock, and shall only back off.
    """

    def __init__(
        self,
        dock: SE2,
        limits: MotionLimits,
        config: DockingConfig | None = None,
        period: float = 0.05,
        *,
        is_undocking: bool = False,
    ) -> None:
        self.dock = dock
        self.phase: DockingPhase = "back off" if is_undocking else "turn"
        self.retries = 0
        self.cause = ""
        self._limits, self._config, self._period = limits, config or DockingConfig(), period
        self._is_undocking = is_undocking
        self._last_command = ZERO_TWIST
        self._min_remaining, self._n_stuck_cycles, self._n_cycles = math.inf, 0, 0

    @property
    def is_finished(self) -> bool:
        """Whether it has ended."""
        return self.phase in ("docked", "left", "failed")

    @property
    def staging_pose(self) -> SE2:
        """Where the approach begins, ``T_map_base``."""
        return staging_pose(self.dock, self._config)

    def errors(self, pose: SE2) -> tuple[float, float, float]:
        """How far it still is along the line, how far beside it [m], and by how much its heading is off [rad]."""
        pose_in_dock = self.dock.inverse() @ pose
        return (pose_in_dock.x if self._config.backward else -pose_in_dock.x), pose_in_dock.y, pose_in_dock.theta

    def compute_command(self, pose: SE2) -> PlanarTwist:
        """The velocity to drive for the next period.

        Args:
            pose: ``T_map_base`` now.
        """
        self._n_cycles += 1
        if not self.is_finished and self._n_cycles > self._config.max_cycles:
            self._fail("took too long")
        target_twist = ZERO_TWIST
        if self.phase == "turn":
            target_twist = self._rotate(pose)
        if self.phase == "approach":
            target_twist = self._approach(pose)
        if self.phase == "back off":
            target_twist = self._back_off(pose)
        if self.is_finished:
            self._last_command = ZERO_TWIST
            return ZERO_TWIST
        self._last_command = self._limit_acceleration(target_twist)
        return self._last_command

    def _rotate(self, pose: SE2) -> PlanarTwist:
        """Turn on the spot to where the law wants the robot to look."""
        along, _, _ = self.errors(pose)
        if along < 0.5 * self._config.staging_distance:
            self._enter_phase("back off", "too near to come in straight")
            return ZERO_TWIST
        error = self._heading_error(pose, self._approach_target())
        if abs(error) < (0.5 * self._config.rotate_in_place_threshold if self._last_command.wz == 0.0 else 0.05):
            self._enter_phase("approach")
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
                self.phase = "docked"
            else:
                self._retry(f"arrived {across:+.3f} m and {heading:+.3f} rad off")
            return ZERO_TWIST
        if abs(self._heading_error(pose, self._approach_target())) > math.pi / 2.0:
            self._retry("turned away from the dock")
            return ZERO_TWIST
        if self._is_stuck(along):
            self._retry("came no nearer")
            return ZERO_TWIST
        return self._track_pose(pose, self._approach_target(), along, config.backward)

    def _back_off(self, pose: SE2) -> PlanarTwist:
        """Out again, whichever of nose and tail looks there."""
        config = self._config
        distance, _, _ = self.errors(pose)
        remaining = config.staging_distance - distance
        if remaining <= 0.05 * config.staging_distance:
            self._enter_phase("left" if self._is_undocking else "turn")
            return ZERO_TWIST
        if self._is_stuck(remaining):
            self._fail("cannot back off")
            return ZERO_TWIST
        _, _, delta = egocentric_polar(pose, self._exit_target())
        return self._track_pose(pose, self._exit_target(), remaining, abs(delta) > math.pi / 2.0)

    def _approach_target(self) -> SE2:
        """What the robot drives at, looking as it comes in."""
        dock = reverse_heading(self.dock) if self._config.backward else self.dock
        return dock @ SE2(self._config.target_offset, 0.0, 0.0)

    def _exit_target(self) -> SE2:
        """What it drives at as it goes out, looking there."""
        outward_pose = self.dock if self._config.backward else reverse_heading(self.dock)
        return outward_pose @ SE2(self._config.staging_distance + self._config.target_offset, 0.0, 0.0)

    def _heading_error(self, pose: SE2, target: SE2) -> float:
        _, theta, delta = egocentric_polar(reverse_heading(pose) if self._config.backward else pose, target)
        return heading_error(theta, delta, self._config.k1)

    def _track_pose(self, pose: SE2, target: SE2, remaining: float, backward: bool) -> PlanarTwist:
        """Along the law's curve, so slowly that the base can follow it and stop at its end."""
        config, limits = self._config, self._limits
        polar = egocentric_polar(reverse_heading(pose) if backward else pose, target)
        path_curvature = curvature(*polar, config.k1, config.k2)
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
        """The wanted velocity as far as accelerations allow."""
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
        """Whether it has not come nearer for too long."""
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
        self._enter_phase("back off", cause)

    def _enter_phase(self, phase: DockingPhase, cause: str = "") -> None:
        self.phase, self.cause = phase, cause or self.cause
        self._min_remaining, self._n_stuck_cycles = math.inf, 0

    def _fail(self, cause: str) -> None:
        self.phase, self.cause = "failed", cause

    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        dock = (self.dock.x, self.dock.y, self.dock.theta)
        counts = (self.phase, self.retries, self.cause, self._min_remaining, self._n_stuck_cycles, self._n_cycles)
        return {"dock": dock, "last": tuple(self._last_command), "counts": counts}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Counterpart of ``save``."""
        self.dock, self._last_command = SE2(*saved["dock"]), PlanarTwist(*saved["last"])
        self.phase, self.retries, self.cause, self._min_remaining, self._n_stuck_cycles, self._n_cycles = saved[
            "counts"
        ]


def staging_pose(dock: SE2, config: DockingConfig) -> SE2:
    """Where the approach to a dock begins, ``T_map_base``: on its line, looking as when docked."""
    return dock @ SE2(config.staging_distance if config.backward else -config.staging_distance, 0.0, 0.0)


def egocentric_polar(pose: SE2, target: SE2) -> tuple[float, float, float]:
    """Distance r [m] and the angles θ and δ [rad] of target and robot against the line of sight."""
    bearing = math.atan2(target.y - pose.y, target.x - pose.x)
    return pose.distance(target), wrap_angle(target.theta - bearing), wrap_angle(pose.theta - bearing)


def heading_error(theta: float, delta: float, k1: float) -> float:
    """By how much the robot looks off the heading that the law wants of it [rad]."""
    return wrap_angle(delta - math.atan(-k1 * theta))


def curvature(r: float, theta: float, delta: float, k1: float, k2: float) -> float:
    """Curvature to drive [1/m], equation 14 of the paper.

    Args:
        r: Distance of the target [m], more than 0.
        theta: Its heading against the line of sight [rad].
        delta: The robot's heading against it [rad].
        k1: How much faster θ vanishes than r.
        k2: How fast the robot turns to the wanted heading.
    """
    error = heading_error(theta, delta, k1)
    return -(k2 * error + (1.0 + k1 / (1.0 + (k1 * theta) ** 2)) * math.sin(delta)) / r


def reverse_heading(pose: SE2) -> SE2:
    """The same place, looking the other way: a robot that backs drives as if its tail were its nose."""
    return SE2(pose.x, pose.y, wrap_angle(pose.theta + math.pi))
