"""The velocity smoother node: limits the changes of velocity commands."""

from __future__ import annotations

import math
from typing import Any

from roboyard.bus import Node, resource
from roboyard.config import Config, parameter
from roboyard.control import ZERO_TWIST, PlanarRampLimits, PlanarTwist, RampLimits
from roboyard.control.drive_config import DriveLimits
from roboyard.control.nodes.velocity_base import planar_twist_from_msg, planar_twist_to_msg
from roboyard.errors import ConfigError
from roboyard.messages import msg
from roboyard.messages.convert import is_finite_twist
from roboyard.safety.velocity_smoother import SmootherConfig, VelocitySmoother


class VelocitySmootherNodeConfig(Config):
    """Configuration of `VelocitySmootherNode`."""

    smoothing_frequency: float = parameter(20.0, unit="Hz", low=1.0, high=1000.0, doc="Rate of the published commands.")
    scale_velocities: bool = parameter(
        True, doc="Scale all axes together, so that the base stays on the commanded arc."
    )
    feedback: str = parameter(
        "OPEN_LOOP",
        choices=("OPEN_LOOP", "CLOSED_LOOP"),
        doc="Start of each step: the last command, or the measured velocity.",
    )
    max_velocity: tuple[float, ...] = parameter(
        (), low=0.0, doc="Largest velocities x, y [m/s], turning [rad/s]; empty: those of the drive."
    )
    min_velocity: tuple[float, ...] = parameter(
        (), high=0.0, doc="Largest velocities backward, negative; empty: those of the drive."
    )
    max_accel: tuple[float, ...] = parameter(
        (), low=0.0, doc="Largest accelerations x, y [m/s²], turning [rad/s²]; empty: those of the drive."
    )
    max_decel: tuple[float, ...] = parameter(
        (), high=0.0, doc="Largest decelerations, negative; empty: those of the drive."
    )
    deadband_velocity: tuple[float, ...] = parameter(
        (0.0, 0.0, 0.0), low=0.0, doc="Velocities below which the command of an axis counts as zero."
    )
    velocity_timeout: float = parameter(
        1.0, unit="s", low=0.01, high=60.0, doc="Age from which a command counts as standstill."
    )


class VelocitySmootherNode(Node[VelocitySmootherNodeConfig]):
    """Smooths commands, as Nav2's velocity smoother with its parameters.

    in: cmd_vel_in, odom (closed loop only)   out: cmd_vel_out

    It publishes at ``smoothing_frequency`` from a command on until it has commanded standstill. After
    ``velocity_timeout`` without a command the target is standstill. A command that is not finite is rejected. Limits
    that are not given are those of the robot's drive, or Nav2's where these are unknown.
    """

    drive_limits: DriveLimits | None = resource(DriveLimits, optional=True)

    state_fields = ("_is_sending",)

    def setup(self) -> None:
        """Connect."""
        self._smoother = VelocitySmoother(self._smoother_config())
        self._measured: PlanarTwist | None = None
        self._is_sending = False
        self._output = self.publisher("cmd_vel_out", msg.Twist)
        self.subscribe("cmd_vel_in", msg.Twist, self._on_command, with_source=True)
        if self.config.feedback == "CLOSED_LOOP":
            self.subscribe("odom", msg.Odometry, self._on_odometry)
        self.timer(rate=self.config.smoothing_frequency, callback=self._update)
        self.report_health("ok", "at standstill")

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return super().save_state() | {"smoother": self._smoother.save_state()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        super().load_state(state)
        self._smoother.load_state(state["smoother"])

    def _smoother_config(self) -> SmootherConfig:
        defaults = _default_limits(self.drive_limits)
        lists = {key: getattr(self.config, key) or defaults[key] for key in defaults}
        lists["deadband_velocity"] = self.config.deadband_velocity
        for key, values in lists.items():
            if len(values) != 3:
                raise ConfigError(
                    f"{len(values)} numbers", location=f"{self.full_name}, parameter '{key}'", valid="3: x, y, turning"
                )
        axes = [
            RampLimits(
                speed=high,
                reverse_speed=-low,
                acceleration=acceleration or math.inf,
                deceleration=-deceleration or math.inf,
                deadband=deadband,
            )
            for high, low, acceleration, deceleration, deadband in zip(*lists.values(), strict=True)
        ]
        return SmootherConfig(PlanarRampLimits(*axes), self.config.scale_velocities, self.config.velocity_timeout)

    def _on_command(self, message: Any, publisher: str) -> None:
        if not is_finite_twist(message):
            self.log.error(f"rejected a command of {publisher}: not finite", throttle=5.0)
            self.report_health("warn", f"rejected a command of {publisher}: not finite")
            return
        self._smoother.set_command(planar_twist_from_msg(message), self.now_ns)
        self._is_sending = True

    def _on_odometry(self, message: Any) -> None:
        if is_finite_twist(message.twist.twist):
            self._measured = planar_twist_from_msg(message.twist.twist)

    def _update(self) -> None:
        if not self._is_sending:
            return
        twist = self._smoother.step(self.now_ns, 1.0 / self.config.smoothing_frequency, self._measured)
        self._output.publish(planar_twist_to_msg(twist))
        timed_out = self._smoother.is_timed_out(self.now_ns)
        self._is_sending = twist != ZERO_TWIST or not timed_out
        self.report_health("ok", "braking: no command" if timed_out and self._is_sending else
                           "driving" if self._is_sending else "at standstill")  # fmt: skip


def _default_limits(limits: DriveLimits | None) -> dict[str, tuple[float, ...]]:
    """Return the defaults of the parameters that are not given: the drive's limits, or Nav2's defaults without them.

    If the drive's limits do not state otherwise, the speeds backward and sideways are the speed forward, and the
    deceleration is the acceleration.
    """
    limits = limits or DriveLimits()
    v, w = limits.speed or 0.5, limits.angular_speed or 2.5
    a, b = limits.acceleration or 2.5, limits.angular_acceleration or 3.2
    lateral = v if limits.lateral_speed is None else limits.lateral_speed
    reverse = v if limits.reverse_speed is None else limits.reverse_speed
    d = limits.deceleration or a
    return {
        "max_velocity": (v, lateral, w),
        "min_velocity": (-reverse, -lateral, -w),
        "max_accel": (a, a, b),
        "max_decel": (-d, -d, -b),
    }
