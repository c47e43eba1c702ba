"""Docking: from a staging pose in along a straight line, to within tolerances; else out again and once more."""

from __future__ import annotations

import math
from typing import Any, Literal

from roboyard.config import Config, parameter
from roboyard.control import STANDSTILL, PlanarTwist
from roboyard.geometry import SE2
from roboyard.navigation.controllers import MotionLimits
from roboyard.navigation.docking.graceful import curvature, heading_error, lines_of_sight, turned_about

Phase = Literal["turn", "approach", "back off", "docked", "left", "failed"]


class DockingConfig(Config):
    """How to dock."""

    staging: float = parameter(
        0.7, unit="m", low=1e-6, high=1e3, doc="Distance before the dock at which the approach begins."
    )
    backward: bool = parameter(False, doc="Dock with the tail first.")
    speed: float = parameter(0.25, unit="m/s", low=1e-6, high=1e3, doc="Largest speed.")
    slowest: float = parameter(0.03, unit="m/s", low=1e-6, high=1e3, doc="Speed at the dock.")
    turn: float = parameter(0.8, unit="rad/s", low=1e-6, high=1e3, doc="Largest turning rate.")
    tolerance: float = parameter(0.02, unit="m", low=1e-6, high=1e3, doc="Tolerance of the position, along and across.")
    heading_tolerance: float = parameter(0.05, unit="rad", low=1e-6, high=1e3, doc="Tolerance of the heading.")
    k1: float = parameter(3.0, low=1e-6, high=1e6, doc="Gain k1 of the graceful control law.")
    k2: float = parameter(3.0, low=1e-6, high=1e6, doc="Gain k2 of the graceful control law.")
    beyond: float = parameter(
        0.25,
        unit="m",
        low=1e-6,
        high=1e3,
        doc="Distance beyond the dock of the point that the robot aims at, so that the law does not end at the dock.",
    )
    turn_first: float = parameter(
        0.4,
        unit="rad",
        low=0.05,
        high=math.pi / 2.0,
        doc="Error of the heading from which the robot turns on the spot before it drives.",
    )
    retries: int = parameter(3, low=0, doc="Largest number of times that the robot backs off and begins anew.")
    patience: int = parameter(60, low=1, doc="Periods without progress after which the robot backs off.")
    budget: int = parameter(3000, low=1, doc="Largest number of periods in all.")


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
        leaving: The robot is in the dock, and shall only back off.
    """

    def __init__(
        self,
        dock: SE2,
        limits: MotionLimits,
        config: DockingConfig | None = None,
        period: float = 0.05,
        *,
        leaving: bool = False,
    ) -> None:
        self.dock = dock
        self.phase: Phase = "back off" if leaving else "turn"
        self.retries = 0
        self.cause = ""
        self._limits, self._config, self._period = limits, config or DockingConfig(), period
        self._leaving = leaving
        self._last = STANDSTILL
        self._best, self._idle, self._steps = math.inf, 0, 0

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.phase in ("docked", "left", "failed")

    @property
    def staging(self) -> SE2:
        """Where the approach begins, ``T_map_base``."""
        return staging_pose(self.dock, self._config)

    def errors(self, pose: SE2) -> tuple[float, float, float]:
        """How far it still is along the line, how far beside it [m], and by how much its heading is off [rad]."""
        seen = self.dock.inverse() @ pose
        return (seen.x if self._config.backward else -seen.x), seen.y, seen.theta

    def command(self, pose: SE2) -> PlanarTwist:
        """The velocity to drive for the next period.

        Args:
            pose: ``T_map_base`` now.
        """
        self._steps += 1
        if not self.over and self._steps > self._config.budget:
            self._fail("took too long")
        wanted = STANDSTILL
        if self.phase == "turn":
            wanted = self._turn(pose)
        if self.phase == "approach":
            wanted = self._approach(pose)
        if self.phase == "back off":
            wanted = self._back_off(pose)
        if self.over:
            self._last = STANDSTILL
            return STANDSTILL
        self._last = self._ramped(wanted)
        return self._last

    def _turn(self, pose: SE2) -> PlanarTwist:
        """Turn on the spot to where the law wants the robot to look."""
        along, _, _ = self.errors(pose)
        if along < 0.5 * self._config.staging:
            self._begin("back off", "too near to come in straight")
            return STANDSTILL
        error = self._heading_error(pose, self._aim())
        if abs(error) < (0.5 * self._config.turn_first if self._last.wz == 0.0 else 0.05):
            self._begin("approach")
            return STANDSTILL
        fastest = min(self._config.turn, self._limits.turn)
        return PlanarTwist(wz=-math.copysign(min(fastest, 0.05 + 1.5 * abs(error)), error))

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
            return STANDSTILL
        if abs(self._heading_error(pose, self._aim())) > math.pi / 2.0:
            self._retry("turned away from the dock")
            return STANDSTILL
        if self._stands_still(along):
            self._retry("came no nearer")
            return STANDSTILL
        return self._drive(pose, self._aim(), along, config.backward)

    def _back_off(self, pose: SE2) -> PlanarTwist:
        """Out again, whichever of nose and tail looks there."""
        config = self._config
        away, _, _ = self.errors(pose)
        left = config.staging - away
        if left <= 0.05 * config.staging:
            self._begin("left" if self._leaving else "turn")
            return STANDSTILL
        if self._stands_still(left):
            self._fail("cannot back off")
            return STANDSTILL
        _, _, delta = lines_of_sight(pose, self._out())
        return self._drive(pose, self._out(), left, abs(delta) > math.pi / 2.0)

    def _aim(self) -> SE2:
        """What the robot drives at, looking as it comes in."""
        dock = turned_about(self.dock) if self._config.backward else self.dock
        return dock @ SE2(self._config.beyond, 0.0, 0.0)

    def _out(self) -> SE2:
        """What it drives at as it goes out, looking there."""
        away = self.dock if self._config.backward else turned_about(self.dock)
        return away @ SE2(self._config.staging + self._config.beyond, 0.0, 0.0)

    def _heading_error(self, pose: SE2, target: SE2) -> float:
        _, theta, delta = lines_of_sight(turned_about(pose) if self._config.backward else pose, target)
        return heading_error(theta, delta, self._config.k1)

    def _drive(self, pose: SE2, target: SE2, left: float, backward: bool) -> PlanarTwist:
        """Along the law's curve, so slowly that the base can follow it and stop at its end."""
        config, limits = self._config, self._limits
        sights = lines_of_sight(turned_about(pose) if backward else pose, target)
        bend = curvature(*sights, config.k1, config.k2)
        fastest = min(config.speed, limits.backward if backward else limits.forward)
        turn = min(config.turn, limits.turn)
        speed = min(fastest, math.sqrt(limits.acceleration * max(left, 0.0)), config.slowest + 1.2 * left)
        speed = max(min(speed, turn / max(abs(bend), 1e-9)), min(config.slowest, fastest))
        return PlanarTwist(-speed if backward else speed, 0.0, min(max(bend * speed, -turn), turn))

    def _ramped(self, wanted: PlanarTwist) -> PlanarTwist:
        """The wanted velocity as far as accelerations allow."""
        faster, turning = self._limits.acceleration * self._period, self._limits.turn_acceleration * self._period
        return PlanarTwist(
            min(max(wanted.vx, self._last.vx - faster), self._last.vx + faster),
            0.0,
            min(max(wanted.wz, self._last.wz - turning), self._last.wz + turning),
        )

    def _stands_still(self, left: float) -> bool:
        """Whether it has not come nearer for too long."""
        if left < self._best - 1e-3:
            self._best, self._idle = left, 0
        else:
            self._idle += 1
        return self._idle > self._config.patience

    def _retry(self, cause: str) -> None:
        if self.retries >= self._config.retries:
            self._fail(cause)
            return
        self.retries += 1
        self._begin("back off", cause)

    def _begin(self, phase: Phase, cause: str = "") -> None:
        self.phase, self.cause = phase, cause or self.cause
        self._best, self._idle = math.inf, 0

    def _fail(self, cause: str) -> None:
        self.phase, self.cause = "failed", cause

    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        dock = (self.dock.x, self.dock.y, self.dock.theta)
        counts = (self.phase, self.retries, self.cause, self._best, self._idle, self._steps)
        return {"dock": dock, "last": tuple(self._last), "counts": counts}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Counterpart of ``save``."""
        self.dock, self._last = SE2(*saved["dock"]), PlanarTwist(*saved["last"])
        self.phase, self.retries, self.cause, self._best, self._idle, self._steps = saved["counts"]


def staging_pose(dock: SE2, config: DockingConfig) -> SE2:
    """Where the approach to a dock begins, ``T_map_base``: on its line, looking as when docked."""
    return dock @ SE2(config.staging if config.backward else -config.staging, 0.0, 0.0)
