"""Gait generator: foot set-points at any twist, through changes of gait and speed.

The gait decides only when feet lift off.  Stance feet move against the body at all times; a foot that is due lifts off
as soon as the other feet support the body, and the body moves no faster than all stance feet can follow until they are
due.  Changes therefore need no standstill, and feet may touch down earlier or later than the gait plans.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.compute import kernel
from roboyard.config import Config, parameter
from roboyard.geometry.arrays import Array
from roboyard.walking.gait import (
    RAMP_FRACTION,
    Gait,
    GaitSpeed,
    compute_gait_speed,
    ease,
    ground_velocity,
    lift_profile,
    move_point_with_ground,
    swing_coordinate,
)
from roboyard.walking.legged_robot import LeggedRobot
from roboyard.walking.statics import MIN_SUPPORT_FEET, support_margin

Mask = NDArray[np.bool_]

STANDSTILL_SPEED: Final = 1e-4
"""Feet slower than this against the body stand [m/s]."""
_STANCE_TOLERANCE: Final = 2e-3
"""A foot within this distance of its stance position need not step when the body stands [m]."""
_STRIDE_OVERSHOOT: Final = 1.1
"""Stance feet may exceed half their stride by this factor."""
_LIFT_OFF_FRACTION: Final = 0.15
"""Fraction of a swing in which a foot may still report contact with the ground that it leaves."""
_TOUCH_DOWN_TOLERANCE: Final = 0.005
"""A foot in contact that is no higher above its stance position than this continues its swing to the end [m]."""
_MAX_TARGET_SPEED: Final = 0.1
"""How fast the end of a swing follows a change of the twist [m/s]."""
ELAPSED_CYCLES, CYCLE_TIME = range(2)


class SteppingParameters(NamedTuple):
    """Stance of the robot, gait and `SteppingConfig` as arguments of kernels; units as there.

    ``stance_feet`` (l, 3) are the foot positions of the stance in the body frame [m], ``phases`` (l) and
    ``duty_factor`` those of the gait.
    """

    stance_feet: Array
    phases: Array

    stride: float
    lift: float
    acceleration: float
    min_stability_margin: float
    ground_search_depth: float
    ground_search_speed: float
    obstacle_lift: float
    height_correction_rate: float
    duty_factor: float
    tilt_correction_rate: float


class FeetState(NamedTuple):
    """State of all feet, changed in place.

    Attributes:
        position: (l, 3) set-points in the body frame [m].
        in_stance: (l) feet on the ground.
        lift_off_due: (l) feet that are due to lift off.
        has_cleared: (l) feet that have lost contact since their lift-off.
        started_cycles: (l) cycles started so far.
        swing_fraction: (l) fraction of the swing that is over.
        swing_time: (l) duration of the swing [s].
        lift_off: (l, 2) lift-off positions [m].
        touch_down: (l, 2) planned touch-down positions [m].
        ground_drift: (l, 2) displacement of the ground during the swing [m].
        lift_off_height: (l) height at lift-off [m].
        extra_lift: (l) additional lift after contact with an obstacle [m].
        twist: (3,) twist of the body.
        achieved_twist: (3,) twist that the stance feet have just executed.
        timing: (2,) elapsed cycles; length of a cycle [s].
    """

    position: Array
    in_stance: Mask
    lift_off_due: Mask
    has_cleared: Mask
    started_cycles: NDArray[np.int64]
    swing_fraction: Array
    swing_time: Array
    lift_off: Array
    touch_down: Array
    ground_drift: Array
    lift_off_height: Array
    extra_lift: Array
    twist: Array
    achieved_twist: Array
    timing: Array


def standing_feet_state(stance_feet: Array, cycle: float) -> FeetState:
    """Return the state of feet (l, 3) of a standing body."""
    n_feet = len(stance_feet)
    positions_2d = stance_feet[:, :2]
    not_set, zeros = np.zeros(n_feet, np.bool_), np.zeros(n_feet)
    return FeetState(
        stance_feet.copy(),
        np.ones(n_feet, np.bool_),
        not_set,
        not_set.copy(),
        np.full(n_feet, -1),
        zeros,
        np.ones(n_feet),
        positions_2d.copy(),
        positions_2d.copy(),
        np.zeros((n_feet, 2)),
        stance_feet[:, 2].copy(),
        zeros.copy(),
        np.zeros(3),
        np.zeros(3),
        np.array([0.0, cycle]),
    )


@kernel(examples=lambda: [(np.zeros((6, 3)), np.zeros(3))])
def max_foot_speed(stance_feet: Array, twist: Array) -> float:
    """Return the speed of the fastest foot (l, 3) relative to a body with a twist (3,) [m/s]."""
    max_speed = 0.0
    for i in range(stance_feet.shape[0]):
        vx, vy = ground_velocity(stance_feet[i, 0], stance_feet[i, 1], twist)
        max_speed = max(max_speed, math.hypot(vx, vy))
    return max_speed


@kernel
def _limit_acceleration(feet: FeetState, stance_feet: Array, desired: Array, max_change: float) -> None:
    """Change the body's twist within the acceleration limit of the feet."""
    change = desired - feet.twist
    size = max_foot_speed(stance_feet, change)
    feet.twist[:] = desired if size <= max_change else feet.twist + change * (max_change / size)


@kernel
def _is_displaced(feet: FeetState, stance_feet: Array, i: int) -> bool:
    return (
        math.hypot(feet.position[i, 0] - stance_feet[i, 0], feet.position[i, 1] - stance_feet[i, 1]) > _STANCE_TOLERANCE
    )


@kernel
def _twist_fraction_within_stride(
    feet: FeetState, stance_feet: Array, phases: Array, stride: float, dt: float
) -> float:
    """Return the fraction of the twist with which all stance feet stay within their strides until they are due."""
    fraction, radius = 1.0, 0.5 * _STRIDE_OVERSHOOT * max(stride, 1e-6)
    for i in range(stance_feet.shape[0]):
        if not feet.in_stance[i]:
            continue
        phase = feet.timing[ELAPSED_CYCLES] - phases[i] - feet.started_cycles[i]
        remaining_time = 0.0 if feet.lift_off_due[i] else (1.0 - phase) * feet.timing[CYCLE_TIME]
        vx, vy = ground_velocity(feet.position[i, 0], feet.position[i, 1], feet.twist)
        speed = math.hypot(vx, vy)
        if speed < STANDSTILL_SPEED:
            continue
        x, y = feet.position[i, 0] - stance_feet[i, 0], feet.position[i, 1] - stance_feet[i, 1]
        forward_offset = (x * vx + y * vy) / speed
        discriminant = forward_offset * forward_offset + radius * radius - x * x - y * y
        distance_left = math.sqrt(discriminant) - forward_offset if discriminant > 0.0 else -forward_offset
        fraction = min(fraction, max(distance_left, 0.0) / (speed * max(remaining_time, dt)))
    return fraction


@kernel
def _move_stance_feet(
    feet: FeetState, stance_feet: Array, height_correction_rate: float, tilt: Array, dt: float
) -> None:
    """Move stance feet against the body, and correct the body's height above them and its tilt.

    ``tilt`` is the rotation about the body's x and y axes that is taken back [rad], a small angle.
    """
    height_error, n_feet = 0.0, 0
    for i in range(stance_feet.shape[0]):
        if feet.in_stance[i]:
            x, y = move_point_with_ground(feet.position[i, 0], feet.position[i, 1], feet.achieved_twist, dt)
            feet.position[i, 0], feet.position[i, 1] = x, y
            z = feet.position[i, 2]
            feet.position[i, 0] += tilt[1] * z
            feet.position[i, 1] -= tilt[0] * z
            feet.position[i, 2] += tilt[0] * y - tilt[1] * x
            height_error += stance_feet[i, 2] - feet.position[i, 2]
            n_feet += 1
    if n_feet > 0:
        feet.position[feet.in_stance, 2] += height_error / n_feet * min(height_correction_rate * dt, 1.0)


@kernel
def _plan_touch_down(feet: FeetState, parameters: SteppingParameters, i: int, out: Array) -> None:
    """Predict the touch-down position (2) of a foot and the displacement of the ground during its swing (2)."""
    stance_feet = parameters.stance_feet
    x, y = move_point_with_ground(
        stance_feet[i, 0], stance_feet[i, 1], feet.twist, -0.5 * parameters.duty_factor * feet.timing[CYCLE_TIME]
    )
    dx, dy = x - stance_feet[i, 0], y - stance_feet[i, 1]
    fraction = min(1.0, 0.5 * parameters.stride / max(math.hypot(dx, dy), 1e-12))
    out[0], out[1] = stance_feet[i, 0] + fraction * dx, stance_feet[i, 1] + fraction * dy
    ax, ay = ground_velocity(feet.lift_off[i, 0], feet.lift_off[i, 1], feet.twist)
    bx, by = ground_velocity(out[0], out[1], feet.twist)
    out[2], out[3] = 0.5 * feet.swing_time[i] * (ax + bx), 0.5 * feet.swing_time[i] * (ay + by)


@kernel
def _finish_swing(
    feet: FeetState, parameters: SteppingParameters, i: int, search_height: float, in_contact: bool
) -> None:
    """End the swing of a foot: it enters the stance, or searches for lower ground."""
    stance_height = parameters.stance_feet[i, 2]
    min_height = stance_height - parameters.ground_search_depth
    if feet.swing_fraction[i] > 1.0 + 1e-9:
        feet.position[i, 2] = max(min(search_height, stance_height), min_height)
    feet.in_stance[i] = in_contact or feet.position[i, 2] <= min_height + 1e-9


@kernel
def _advance_swing(
    feet: FeetState,
    parameters: SteppingParameters,
    i: int,
    in_contact: bool,
    has_contacts: bool,
    dt: float,
) -> None:
    """Move a swing foot, and put it into the stance at the end of the swing or on contact."""
    swing_time, stance_height = feet.swing_time[i], parameters.stance_feet[i, 2]
    feet.has_cleared[i] = feet.has_cleared[i] or (not in_contact and feet.swing_fraction[i] > _LIFT_OFF_FRACTION)
    has_hit = in_contact and feet.has_cleared[i]
    if has_hit and feet.swing_fraction[i] > 0.5 and feet.position[i, 2] - stance_height > _TOUCH_DOWN_TOLERANCE:
        feet.in_stance[i] = True
        return
    if has_hit and feet.swing_fraction[i] <= 0.5 and feet.extra_lift[i] < parameters.obstacle_lift:
        feet.extra_lift[i] += parameters.lift / (0.5 * swing_time) * dt
    else:
        feet.swing_fraction[i] += dt / swing_time
    fraction, target = min(feet.swing_fraction[i], 1.0), np.empty(4)
    _plan_touch_down(feet, parameters, i, target)
    max_change = _MAX_TARGET_SPEED * dt
    for k in range(2):
        feet.touch_down[i, k] += min(max(target[k] - feet.touch_down[i, k], -max_change), max_change)
        feet.ground_drift[i, k] += min(max(target[2 + k] - feet.ground_drift[i, k], -max_change), max_change)
    base_height = feet.lift_off_height[i] + (stance_height - feet.lift_off_height[i]) * fraction
    search_height = feet.position[i, 2] - parameters.ground_search_speed * dt
    progress = ease(fraction, RAMP_FRACTION)
    for k in range(2):
        feet.position[i, k] = swing_coordinate(
            feet.lift_off[i, k], feet.touch_down[i, k], feet.ground_drift[i, k], fraction, progress
        )
    feet.position[i, 2] = base_height + (parameters.lift + feet.extra_lift[i]) * lift_profile(fraction)
    if fraction >= 1.0:
        _finish_swing(feet, parameters, i, search_height, in_contact or not has_contacts)


@kernel
def _is_supported(feet: FeetState, stance_mask: Mask, swing_time: float, margin: float) -> bool:
    """Return whether some feet support the body now and at the end of a swing."""
    if support_margin(feet.position, stance_mask, 0.0, 0.0) < margin:
        return False
    later_positions = feet.position.copy()
    for k in range(len(later_positions)):
        later_positions[k, 0], later_positions[k, 1] = move_point_with_ground(
            later_positions[k, 0], later_positions[k, 1], feet.twist, swing_time
        )
    return float(support_margin(later_positions, stance_mask, 0.0, 0.0)) >= margin


@kernel
def _start_swings(feet: FeetState, parameters: SteppingParameters, is_moving: bool, dt: float) -> None:
    """Let feet lift off that are due, as far as the other feet support the body until they touch down."""
    cycle = feet.timing[CYCLE_TIME]
    swing_time, phase = (
        (1.0 - parameters.duty_factor) * cycle,
        feet.timing[ELAPSED_CYCLES] - parameters.phases - feet.started_cycles,
    )
    target = np.empty(4)
    for i in np.argsort(-phase, kind="mergesort"):
        if not (feet.lift_off_due[i] and feet.in_stance[i]):
            continue
        if not is_moving and not _is_displaced(feet, parameters.stance_feet, i):
            feet.lift_off_due[i] = False
            continue
        stance_mask = feet.in_stance.copy()
        stance_mask[i] = False
        if stance_mask.sum() < MIN_SUPPORT_FEET or not _is_supported(
            feet, stance_mask, swing_time, parameters.min_stability_margin
        ):
            continue
        feet.in_stance[i] = feet.lift_off_due[i] = feet.has_cleared[i] = False
        delay = phase[i] * cycle
        feet.swing_fraction[i] = delay / swing_time if delay <= dt else 0.0
        feet.extra_lift[i], feet.swing_time[i], feet.lift_off_height[i] = 0.0, swing_time, feet.position[i, 2]
        feet.lift_off[i] = feet.position[i, :2]
        _plan_touch_down(feet, parameters, i, target)
        feet.touch_down[i], feet.ground_drift[i] = target[:2], target[2:]


def _advance_example() -> list[tuple[object, ...]]:
    stance_feet = np.zeros((6, 3))
    feet, parameters, no_contacts = (
        standing_feet_state(stance_feet, 1.0),
        SteppingParameters(stance_feet, np.zeros(6), *[0.1] * 10),
        np.zeros(6, np.bool_),
    )
    return [(feet, parameters, np.zeros(3), no_contacts, True, np.zeros(2), 0.02)]


@kernel(examples=_advance_example)
def advance_feet(
    feet: FeetState,
    parameters: SteppingParameters,
    twist: Array,
    contacts: Mask,
    has_contacts: bool,
    tilt: Array,
    dt: float,
) -> None:
    """Advance all feet by one control step.

    Args:
        feet: State of the feet; changed.
        parameters: Stance, gait, and parameters of the steps.
        twist: (3,) feasible twist: forward, left [m/s], yaw rate [rad/s]; its cycle is in ``feet.timing``.
        contacts: (l) feet in contact.
        has_contacts: Whether contacts are measured.
        tilt: (2,) roll and pitch of the body to be corrected [rad].
        dt: Duration of the step [s].
    """
    stance_feet, phases = parameters.stance_feet, parameters.phases
    n_feet = stance_feet.shape[0]
    _limit_acceleration(feet, stance_feet, twist, parameters.acceleration * dt)
    feet.achieved_twist[:] = feet.twist * _twist_fraction_within_stride(
        feet, stance_feet, phases, parameters.stride, dt
    )
    _move_stance_feet(
        feet,
        stance_feet,
        parameters.height_correction_rate,
        tilt * min(parameters.tilt_correction_rate * dt, 1.0),
        dt,
    )
    for i in range(n_feet):
        if not feet.in_stance[i]:
            _advance_swing(feet, parameters, i, has_contacts and contacts[i], has_contacts, dt)
    is_moving, is_stepping = bool(feet.twist.any()), False
    for i in range(n_feet):
        is_stepping = is_stepping or not feet.in_stance[i] or _is_displaced(feet, stance_feet, i)
    if not is_moving and not is_stepping:
        feet.lift_off_due[:] = False
        return
    feet.timing[ELAPSED_CYCLES] += dt / feet.timing[CYCLE_TIME]
    for i in range(n_feet):
        started = math.floor(feet.timing[ELAPSED_CYCLES] - phases[i])
        feet.lift_off_due[i] = feet.lift_off_due[i] or (started > feet.started_cycles[i] and feet.in_stance[i])
        feet.started_cycles[i] = started
    _start_swings(feet, parameters, is_moving, dt)


_N_DIRECTIONS: Final = 32
"""Speeds are computed for directions on a grid with so many cells along each axis."""
_MAX_CYCLE_TIME: Final = 4.0
"""The longest cycle [s]; slower bodies take shorter strides."""
_JOINT_SPEED_FRACTION: Final = 0.98
"""Fraction of the joints' speeds that is used."""


class SteppingConfig(Config):
    """Parameters of the steps of a gait."""

    stride: float = parameter(
        0.08, unit="m", low=0.005, high=2.0, runtime=True, doc="Largest travel of a foot on the ground in a stance."
    )
    lift: float = parameter(0.03, unit="m", low=0.001, high=1.0, runtime=True, doc="Height to which feet rise.")
    acceleration: float = parameter(
        0.2, unit="m/s²", low=1e-3, high=100.0, runtime=True,
        doc="Largest acceleration of the fastest foot against the body.",
    )  # fmt: skip
    min_stability_margin: float = parameter(
        0.01, unit="m", low=0.0, high=1.0, runtime=True,
        doc="Smallest distance of the body's middle from the edge of the support polygon.",
    )  # fmt: skip
    ground_search_depth: float = parameter(
        0.0, unit="m", low=0.0, high=1.0, runtime=True,
        doc="Depth below its place in the stance to which a foot searches for ground; 0: no search.",
    )  # fmt: skip
    ground_search_speed: float = parameter(
        0.1, unit="m/s", low=1e-3, high=10.0, runtime=True, doc="Speed with which a foot searches for ground."
    )
    obstacle_lift: float = parameter(
        0.06, unit="m", low=0.0, high=1.0, runtime=True,
        doc="Height above `lift` to which a foot rises that has run into something.",
    )  # fmt: skip
    height_correction_rate: float = parameter(
        1.0, unit="1/s", low=0.0, high=100.0, runtime=True,
        doc="Rate at which the body comes back to its height above the feet.",
    )  # fmt: skip
    tilt_correction_rate: float = parameter(
        1.0, unit="1/s", low=0.0, high=100.0, runtime=True, doc="Rate at which the body comes back from a tilt."
    )


class GaitGenerator:
    """Foot set-points of a walking robot in the body frame; pure, with explicit state.

    Args:
        legged_robot: The robot.
        gait: The gait.
        config: Parameters of the steps.
    """

    def __init__(self, legged_robot: LeggedRobot, gait: Gait, config: SteppingConfig | None = None) -> None:
        self.legged_robot, self.config = legged_robot, config or SteppingConfig()
        self._stance_feet = legged_robot.stance_feet
        self._state = standing_feet_state(self._stance_feet, _MAX_CYCLE_TIME)
        self._stance_radius = float(np.hypot(*self._stance_feet[:, :2].T).max())
        self._no_contacts = np.zeros(len(legged_robot.legs), np.bool_)
        self._gait_speeds: dict[tuple[int, ...], GaitSpeed] = {}
        self._feasible_cache: tuple[tuple[float, ...], tuple[Array, float]] | None = None
        self.gait = gait
        self._update_parameters()

    # -- configuration -----------------------------------------------------------------------------------------------
    def reconfigure(self, gait: Gait | None = None, config: SteppingConfig | None = None) -> None:
        """Continue with another gait or other parameters, without a standstill."""
        self.gait, self.config = gait or self.gait, config or self.config
        self._gait_speeds.clear()
        self._update_parameters()
        if gait is not None:
            self._state.started_cycles[:] = np.floor(self.elapsed_cycles - self._phases)

    def _update_parameters(self) -> None:
        """Convert configuration and gait to arguments of the kernel."""
        config = self.config
        self._phases = np.array(self.gait.phases)
        self._parameters = SteppingParameters(
            self._stance_feet,
            self._phases,
            config.stride,
            config.lift,
            config.acceleration,
            config.min_stability_margin,
            config.ground_search_depth,
            config.ground_search_speed,
            config.obstacle_lift,
            config.height_correction_rate,
            self.gait.duty_factor,
            config.tilt_correction_rate,
        )
        self._feasible_cache = None

    def feasible_twist(self, twist: ArrayLike) -> tuple[Array, float]:
        """Return the twist (3,) in the desired direction that the legs can execute, and its cycle [s].

        Raises:
            InputError: Feet cannot be lifted that high in the stance.
        """
        desired = np.asarray(twist, dtype=np.float64)
        speed = float(max_foot_speed(self._stance_feet, desired))
        if speed < STANDSTILL_SPEED:
            return np.zeros(3), float(self._state.timing[CYCLE_TIME])
        vx, vy, yaw_rate = desired.tolist()
        scale = _N_DIRECTIONS / speed
        key = round(vx * scale), round(vy * scale), round(yaw_rate * self._stance_radius * scale)
        if key not in self._gait_speeds:
            direction = np.array([key[0], key[1], key[2] / self._stance_radius])
            self._gait_speeds[key] = compute_gait_speed(
                self.legged_robot, self.gait, direction, self.config.stride, self.config.lift, _JOINT_SPEED_FRACTION
            )
        gait_speed = self._gait_speeds[key]
        feasible_speed = min(speed, gait_speed.speed)
        cycle = min(gait_speed.stride / (self.gait.duty_factor * feasible_speed), _MAX_CYCLE_TIME)
        return desired * (feasible_speed / speed), max(cycle, gait_speed.cycle)

    # -- state of the feet ---------------------------------------------------------------------------------------------
    @property
    def feet(self) -> Array:
        """(l, 3) foot set-points in the body frame [m]."""
        return self._state.position

    @property
    def in_stance(self) -> NDArray[np.bool_]:
        """(l) feet on the ground."""
        return self._state.in_stance

    @property
    def twist(self) -> Array:
        """(3,) twist of the body: m/s, m/s, rad/s."""
        return self._state.twist

    @property
    def achieved_twist(self) -> Array:
        """(3,) twist that the stance feet have just executed, limited by their strides."""
        return self._state.achieved_twist

    @property
    def elapsed_cycles(self) -> float:
        """Cycles so far."""
        return float(self._state.timing[ELAPSED_CYCLES])

    @property
    def is_standing(self) -> bool:
        """Whether the body stands with all feet in stance."""
        return bool(self.in_stance.all()) and not self.twist.any()

    def stability_margin(self) -> float:
        """Return the distance of the body's center from the edges of the support polygon [m]."""
        return float(support_margin(self.feet, self.in_stance, 0.0, 0.0))

    # -- control step --------------------------------------------------------------------------------------------------
    def advance(
        self, dt: float, twist: ArrayLike, contacts: ArrayLike | None = None, tilt: ArrayLike = (0.0, 0.0)
    ) -> Array:
        """Return foot set-points (l, 3) in the body frame [m] after a control step.

        Args:
            dt: Duration of the step [s], much shorter than a swing.
            twist: (3,) desired twist of the body: m/s, m/s, rad/s; reduced to what the legs can execute.
            contacts: (l) feet in contact; None: contacts are not measured, and the ground is flat.
            tilt: (2,) roll and pitch of the body [rad] to be corrected.
        """
        requested = tuple(np.asarray(twist, dtype=np.float64).tolist())
        if self._feasible_cache is None or self._feasible_cache[0] != requested or not any(requested):
            self._feasible_cache = requested, self.feasible_twist(requested)
        desired, cycle = self._feasible_cache[1]
        self._state.timing[CYCLE_TIME] = cycle
        contact_mask = self._no_contacts if contacts is None else np.asarray(contacts, np.bool_)
        tilt_angles, has_contacts = np.asarray(tilt, np.float64), contacts is not None
        advance_feet(self._state, self._parameters, desired, contact_mask, has_contacts, tilt_angles, dt)
        return self.feet

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data, without the gait."""
        return {name: value.copy() for name, value in self._state._asdict().items()}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore what ``save_state`` returned."""
        self._state = FeetState(**{name: np.array(value) for name, value in saved.items()})
