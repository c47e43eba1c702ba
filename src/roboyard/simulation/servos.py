"""One servo a joint inside the engine: position, velocity and feed-forward set-points, clamped to the joint's effort.

The engine computes ``force = kp (u_pos - q) + kd (u_vel - v) + u_ff`` each step, implicit in velocity and therefore
stable at any gain.  Which mode is on is a matter of the gains; the integral part comes in through ``u_ff`` from
`roboyard.simulation.actuation`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import mujoco

from roboyard.description.joint_interfaces import POSITION_BANDWIDTH, VELOCITY_TIME, command_modes
from roboyard.description.model import Axis, CommandMode, JointInterface, Model
from roboyard.errors import DescriptionError
from roboyard.geometry.constants import GRAVITY
from roboyard.simulation.assembly.joints import Scalar
from roboyard.simulation.loads import FAST, Rest

ALL_INPUTS = int(mujoco.mjtCtrlInput.mjINPUT_POS | mujoco.mjtCtrlInput.mjINPUT_VEL | mujoco.mjtCtrlInput.mjINPUT_FF)

GIVE, GIVE_SLIDE = 0.02, 0.005
"""Error at which a servo made for its robot's weight gives all its effort, or holds all that weight [rad, m]."""
POSITION_RESET, VELOCITY_RESET = 0.5, 0.05
"""Integral times of the default servos [s]."""
PRESS_STEP, PRESS_BANDWIDTH, PRESS_RESET = 0.4, 200.0, 8.0
"""Natural frequency of servos that press, times the physics step, at most, so that the engine's own damping does for
it; its bound [rad/s]; and their integral time, times that frequency: the effort is there within half a second."""


@dataclass(frozen=True, slots=True)
class Gains:
    """Of one mode of one joint.

    Attributes:
        p: Position: N m/rad; velocity: N m s/rad (N/m, N s/m for slides).
        i: Integral gain, per second of ``p``'s unit.
        d: Damping in position mode [N m s/rad].
        windup: Bound of the integral's contribution [N m or N].
        ramp: Bound of the set-point's rate; infinite = none.
        cycle: Time in which the set-point goes to a new position, with feed-forward (see `run_servos`) [s]; 0: at once.
    """

    p: float
    i: float = 0.0
    d: float = 0.0
    windup: float = math.inf
    ramp: float = math.inf
    cycle: float = 0.0


def effort_limit(axis: Axis) -> float:
    """Largest effort [N m or N]; zero and negative limits in files mean none."""
    effort = axis.limits.effort
    return effort if effort > 0.0 else math.inf


def no_load_speed(interface: JointInterface | None, effort: float, model: str) -> float:
    """Speed at which the joint's motor has no effort left [rad/s or m/s], its ``no_load_speed``; 0: it always has all.

    Args:
        interface: What the description's ``ros2_control`` says of the joint.
        effort: Its limit, which the motor has when stalled [N m or N].
        model: Its name, for errors.

    Raises:
        DescriptionError: it is no number above zero, or the joint's effort has no limit.
    """
    said = None if interface is None else dict(interface.parameters).get("no_load_speed")
    if interface is None or said is None:
        return 0.0
    where = f"model {model}, joint {interface.joint}"
    try:
        speed = float(said)
    except ValueError:
        speed = 0.0
    if not (speed > 0.0 and math.isfinite(speed)):
        raise DescriptionError(f"parameter no_load_speed is {said!r}", location=where, valid="a number above zero")
    if not math.isfinite(effort):
        raise DescriptionError(
            "a no_load_speed, but no effort", location=where, valid="an effort in the joint's limits"
        )
    return speed


def add_servos(spec: mujoco.MjSpec, model: Model, name: str, scalars: Sequence[Scalar]) -> None:
    """An actuator for each scalar joint that takes commands; without force until it is commanded."""
    for scalar in scalars:
        if not command_modes(model, scalar.name):
            continue
        servo = spec.add_actuator(name=scalar.element)
        servo.trntype = mujoco.mjtTrn.mjTRN_JOINT
        servo.target = scalar.element
        servo.set_to_pid(kp=0.0, kv=0.0, ctrlspec=ALL_INPUTS)
        limit = effort_limit(scalar.axis)
        if math.isfinite(limit):
            servo.forcelimited = mujoco.mjtLimited.mjLIMITED_TRUE
            servo.forcerange = [-limit, limit]


def default_gains(
    mode: CommandMode,
    inertia: float,
    effort: float,
    mass: float,
    timestep: float,
    rest: Rest = FAST,
    give: float = GIVE,
) -> Gains:
    """Gains that suit a joint.

    A leg weighs little beside what it carries: on the ground its knee turns the robot, not the shank.  So a free
    robot's servos are made for the larger of both inertias, but no stiffer than that their effort, or the weight at the
    lever of the mass they carry, is reached at an error of ``give``.  The integral stays slow against the time in
    which the damping brings that mass to rest (Routh's criterion of the loop with a factor of two to spare).

    Args:
        mode: Of the command.
        inertia: The joint's own inertia at rest, its subtree rigid [kg m² or kg].
        effort: Its limit [N m or N].
        mass: Of the whole model [kg]; bounds the integral where the effort has no limit.
        timestep: Physics step [s].
        rest: What it carries when its far end stands on the ground.
        give: See above [rad or m].
    """
    windup = effort if math.isfinite(effort) else GRAVITY * mass
    if mode == "position":
        need = min(effort, GRAVITY * math.sqrt(rest.mass * rest.inertia))
        inertia = max(inertia, min(rest.inertia, need / (give * POSITION_BANDWIDTH**2)))
        p, d = inertia * POSITION_BANDWIDTH**2, 2.0 * inertia * POSITION_BANDWIDTH
        slow = 4.0 * rest.inertia / d if d > 0.0 else 0.0
        return Gains(p, p / max(POSITION_RESET, slow), d, windup)
    if mode == "velocity":
        p = inertia / max(VELOCITY_TIME, timestep)
        return Gains(p, p / VELOCITY_RESET, 0.0, windup)
    return Gains(0.0)


def pressing_gains(inertia: float, effort: float, mass: float, timestep: float, speed: float) -> Gains:
    """Gains of a position servo that presses on what it meets, as a gripper's does.

    Args:
        inertia: The joint's own inertia at rest [kg m² or kg].
        effort: Its limit [N m or N].
        mass: Of the whole model [kg]; bounds the integral where the effort has no limit.
        timestep: Physics step [s].
        speed: The joint's limit, at which its set-point moves [rad/s or m/s].
    """
    frequency = min(PRESS_STEP / timestep, PRESS_BANDWIDTH)
    p, d = inertia * frequency**2, 2.0 * inertia * frequency
    windup = effort if math.isfinite(effort) else GRAVITY * mass
    return Gains(p, p * frequency / PRESS_RESET, d, windup, speed if speed > 0.0 else math.inf)


def overridden(
    gains: Gains, mode: CommandMode, interface: JointInterface | None, model: str, *, pressing: bool = False
) -> Gains:
    """``gains`` with what the joint's ``ros2_control`` parameters say.

    The names are gazebo_ros2_control's: ``pos_kp, pos_ki, pos_kd, pos_max_integral_error`` and ``vel_…``; and ours,
    ``pos_ramp`` and ``vel_ramp`` [rad/s, rad/s²], ``pos_cycle`` [s], and ``pos_bandwidth`` [rad/s], which makes a
    position servo as many times faster than the default as it is more than `POSITION_BANDWIDTH`.  The last two are not
    of servos that are ``pressing``.

    Raises:
        DescriptionError: a value is no number, or negative.
    """
    if interface is None or mode == "effort":
        return gains
    prefix = "pos_" if mode == "position" else "vel_"
    values: dict[str, float] = {}
    for name, text in interface.parameters:
        if name.startswith(prefix):
            try:
                values[name.removeprefix(prefix)] = float(text)
            except ValueError:
                values[name.removeprefix(prefix)] = -1.0
            if not values[name.removeprefix(prefix)] >= 0.0:
                raise DescriptionError(
                    f"parameter {name} of joint {interface.joint} is {text!r}",
                    location=f"model {model}",
                    valid="a number, zero or larger",
                )
    if pressing:
        values = {name: value for name, value in values.items() if name not in ("bandwidth", "cycle")}
    faster = values.get("bandwidth", POSITION_BANDWIDTH) / POSITION_BANDWIDTH
    i = values.get("ki", gains.i * faster**3)
    windup = i * values["max_integral_error"] if "max_integral_error" in values else gains.windup
    return Gains(
        values.get("kp", gains.p * faster**2),
        i,
        values.get("kd", gains.d * faster),
        windup,
        values.get("ramp", gains.ramp) or math.inf,
        values.get("cycle", 0.0),
    )
