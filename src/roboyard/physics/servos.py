"""Joint servos: gains, command ranges, carried loads, and the state of all servos of a compiled world.

MuJoCo computes ``force = kp (u_pos - q) + kd (u_vel - v) + u_ff`` in each step, implicit in velocity and therefore
stable at any gain.  The gains select the mode of a servo; `roboyard.physics.kernels.servos` adds the integral part
through ``u_ff``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels
from roboyard.description.inertia import inertia_matrix
from roboyard.description.joint_interfaces import (
    POSITION_BANDWIDTH,
    VELOCITY_TIME,
    command_modes,
    command_range,
    effort_limit,
    safety_controller_parameters,
)
from roboyard.description.model import CommandMode, JointInterface
from roboyard.errors import DescriptionError, InputError
from roboyard.geometry.constants import GRAVITY
from roboyard.physics.compiled_world import CompiledWorld, JointAddress
from roboyard.physics.compiler.contact_properties import use_exact_contact_inertia
from roboyard.physics.kernels import servos as servo_kernels


class CarriedLoad(NamedTuple):
    """The rest of a free robot, which a joint moves while its far end is on the ground.

    Attributes:
        mass: Mass of the rest [kg].
        inertia: Inertia of the rest about the joint's axis [kg m²]; of prismatic joints its mass [kg].
    """

    mass: float
    inertia: float


_N_CONFIGURATIONS = 32
NO_CARRIED_LOAD = CarriedLoad(0.0, 0.0)
"""Load of a joint that never carries the rest of its robot."""


def carried_loads(model: mujoco.MjModel) -> list[CarriedLoad]:
    """Compute the load of each degree of freedom, all joints at zero: the rest of its robot.

    On a fixed base the load is what hangs on the joint, stretched out as far as possible: the first joint of an upright
    arm moves little inertia about its axis, and many times that once the arm reaches out.
    """
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    mujoco.mj_crb(model, data)
    loads = []
    for dof in range(model.nv):
        body = int(model.dof_bodyid[dof])
        root = int(model.body_rootid[body])
        first = int(model.body_jntadr[root])
        if first < 0 or model.jnt_type[first] != mujoco.mjtJoint.mjJNT_FREE:
            loads.append(CarriedLoad(0.0, _stretched_inertia(model, body)))
            continue
        if body == root:
            loads.append(NO_CARRIED_LOAD)
            continue
        spatial_inertia = data.crb[root] - data.crb[body]
        inertia = max(float(data.cdof[dof] @ _spatial_momentum(spatial_inertia, data.cdof[dof])), 0.0)
        loads.append(CarriedLoad(max(float(spatial_inertia[9]), 0.0), inertia))
    return loads


def min_joint_inertias(model: mujoco.MjModel) -> NDArray[np.float64]:
    """Compute (nv,) the smallest inertia about each degree of freedom among some configurations [kg m² or kg].

    The first joint of a folded arm moves a small part of what it moves when the arm reaches out.
    """
    data, rng, inertias = mujoco.MjData(model), np.random.default_rng(0), np.array(model.dof_M0)
    diagonal = model.M_rowadr + model.M_rownnz - 1
    is_scalar = np.isin(model.jnt_type, (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE))
    joints = np.flatnonzero(is_scalar & (model.jnt_limited != 0))
    low, high = model.jnt_range[joints].T
    for _ in range(_N_CONFIGURATIONS):
        data.qpos[model.jnt_qposadr[joints]] = rng.uniform(low, high)
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_crb(model, data)
        inertias = np.minimum(inertias, data.M[diagonal])
    return inertias


def _stretched_inertia(model: mujoco.MjModel, root: int) -> float:
    """Bound the inertia of a body with all its descendants about any axis through its joint from above [kg m²]."""
    distances = {root: 0.0}
    inertia = 0.0
    for body in range(root, model.nbody):  # numbered depth first: parents come before their children
        if body != root:
            parent = int(model.body_parentid[body])
            if parent not in distances:
                continue
            distances[body] = distances[parent] + float(np.linalg.norm(model.body_pos[body]))
        distance = distances[body] + float(np.linalg.norm(model.body_ipos[body]))
        inertia += float(model.body_mass[body]) * distance**2 + float(model.body_inertia[body].max())
    return inertia


def _spatial_momentum(inertia: NDArray[np.float64], velocity: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute a body's spatial momentum from MuJoCo's ten inertia numbers and its velocity (angular, linear)."""
    xx, yy, zz, xy, xz, yz = inertia[:6]
    mass_moment, mass = inertia[6:9], inertia[9]
    rotational_inertia = inertia_matrix((xx, yy, zz, xy, xz, yz))
    w, v = velocity[:3], velocity[3:]
    return np.concatenate([rotational_inertia @ w + np.cross(mass_moment, v), mass * v - np.cross(mass_moment, w)])


MAX_POSITION_ERROR, MAX_POSITION_ERROR_PRISMATIC = 0.02, 0.005
"""Position error at which a servo that carries its robot reaches its effort limit, or that of the weight [rad, m]."""
POSITION_INTEGRAL_TIME, VELOCITY_INTEGRAL_TIME = 0.5, 0.05
"""Integral times of the default servos [s]."""
FORCE_LIMITED_STEP_PHASE, FORCE_LIMITED_BANDWIDTH, FORCE_LIMITED_INTEGRAL_PHASE = 0.4, 200.0, 8.0
"""Of force-limited servos: the maximum natural frequency times the physics step, so that MuJoCo's damping suffices; the
maximum natural frequency [rad/s]; the integral time times that frequency: the effort is there within half a second."""


@dataclass(frozen=True, slots=True)
class ServoGains:
    """Gains of one mode of one joint.

    Attributes:
        p: Position: N m/rad; velocity: N m s/rad (N/m, N s/m for slides).
        i: Integral gain, per second of ``p``'s unit.
        d: Damping in position mode [N m s/rad].
        windup: Bound of the integral's contribution [N m or N].
        ramp: Bound of the set-point's rate; infinite = none.
        cycle: Time in which the set-point goes to a new position, with feed-forward (see `update_servos`) [s]; 0: at
            once.
    """

    p: float
    i: float = 0.0
    d: float = 0.0
    windup: float = math.inf
    ramp: float = math.inf
    cycle: float = 0.0


def no_load_speed(interface: JointInterface | None, max_effort: float, model: str) -> float:
    """Return the speed at which the motor of a joint has no effort left [rad/s or m/s]; 0: it always has all.

    Args:
        interface: The joint's interface of the description, with its parameter ``no_load_speed``.
        max_effort: Effort limit of the joint, which the motor has at standstill [N m or N].
        model: Name of the model, for errors.

    Raises:
        DescriptionError: it is no number above zero, or the joint's effort has no limit.
    """
    text = None if interface is None else dict(interface.parameters).get("no_load_speed")
    if interface is None or text is None:
        return 0.0
    location = f"model {model}, joint {interface.joint}"
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not (speed > 0.0 and math.isfinite(speed)):
        raise DescriptionError(f"parameter no_load_speed is {text!r}", location=location, valid="a number above zero")
    if not math.isfinite(max_effort):
        raise DescriptionError(
            "a no_load_speed, but no effort", location=location, valid="an effort in the joint's limits"
        )
    return speed


def default_gains(
    mode: CommandMode,
    inertia: float,
    max_effort: float,
    weight: float,
    timestep: float,
    carried_load: CarriedLoad = NO_CARRIED_LOAD,
    max_position_error: float = MAX_POSITION_ERROR,
) -> ServoGains:
    """Compute gains from the inertia and the load of a joint.

    A leg weighs little beside what it carries: on the ground its knee turns the robot, not the shank.  The gains of a
    free robot's servos are therefore computed from the larger of both inertias, but no stiffer than that their effort,
    or the weight at the lever of the mass they carry, is reached at an error of ``max_position_error``.  The integral
    is slow compared with the time in which the damping brings that mass to rest (Routh's criterion of the loop, with a
    factor of two to spare).  Stiffness is a property of the robot, which was built for the earth: it is computed with
    `GRAVITY` in every world.

    Args:
        mode: Of the command.
        inertia: The joint's own inertia at rest, its subtree rigid [kg m² or kg].
        max_effort: Its limit [N m or N].
        weight: Of the whole model [N]; bounds the integral where the effort has no limit.
        timestep: Physics step [s].
        carried_load: What it carries when its far end stands on the ground.
        max_position_error: See above [rad or m].
    """
    windup = max_effort if math.isfinite(max_effort) else weight
    if mode == "position":
        reaction_effort = min(max_effort, GRAVITY * math.sqrt(carried_load.mass * carried_load.inertia))
        inertia = max(
            inertia, min(carried_load.inertia, reaction_effort / (max_position_error * POSITION_BANDWIDTH**2))
        )
        p, d = inertia * POSITION_BANDWIDTH**2, 2.0 * inertia * POSITION_BANDWIDTH
        load_time = 4.0 * carried_load.inertia / d if d > 0.0 else 0.0
        return ServoGains(p, p / max(POSITION_INTEGRAL_TIME, load_time), d, windup)
    if mode == "velocity":
        p = inertia / max(VELOCITY_TIME, timestep)
        return ServoGains(p, p / VELOCITY_INTEGRAL_TIME, 0.0, windup)
    return ServoGains(0.0)


def force_limited_gains(
    inertia: float, max_effort: float, weight: float, timestep: float, max_speed: float
) -> ServoGains:
    """Compute the gains of a position servo with a limited force, such as a gripper's.

    Args:
        inertia: The joint's own inertia at rest [kg m² or kg].
        max_effort: Its limit [N m or N].
        weight: Of the whole model [N]; bounds the integral where the effort has no limit.
        timestep: Physics step [s].
        max_speed: The joint's limit, at which its set-point moves [rad/s or m/s].
    """
    frequency = min(FORCE_LIMITED_STEP_PHASE / timestep, FORCE_LIMITED_BANDWIDTH)
    p, d = inertia * frequency**2, 2.0 * inertia * frequency
    windup = max_effort if math.isfinite(max_effort) else weight
    return ServoGains(
        p, p * frequency / FORCE_LIMITED_INTEGRAL_PHASE, d, windup, max_speed if max_speed > 0.0 else math.inf
    )


def apply_parameter_overrides(
    gains: ServoGains, mode: CommandMode, interface: JointInterface | None, model: str, *, force_limited: bool = False
) -> ServoGains:
    """Return ``gains`` with the values that the joint's ``ros2_control`` parameters set.

    The names are those of gazebo_ros2_control: ``pos_kp, pos_ki, pos_kd, pos_max_integral_error`` and ``vel_…``; and
    of this package: ``pos_ramp`` and ``vel_ramp`` [rad/s, rad/s²], ``pos_cycle`` [s], and ``pos_bandwidth`` [rad/s],
    which makes a position servo faster than the default by its ratio to `POSITION_BANDWIDTH`.  The last two do not
    apply to servos that are ``force_limited``.

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
    if force_limited:
        values = {name: value for name, value in values.items() if name not in ("bandwidth", "cycle")}
    bandwidth_ratio = values.get("bandwidth", POSITION_BANDWIDTH) / POSITION_BANDWIDTH
    i = values.get("ki", gains.i * bandwidth_ratio**3)
    windup = i * values["max_integral_error"] if "max_integral_error" in values else gains.windup
    return ServoGains(
        values.get("kp", gains.p * bandwidth_ratio**2),
        i,
        values.get("kd", gains.d * bandwidth_ratio),
        windup,
        values.get("ramp", gains.ramp) or math.inf,
        values.get("cycle", 0.0),
    )


_MAX_STEP_DAMPING = 2.0
"""Maximum ``step * damping / inertia`` of a joint; with more it oscillates from step to step."""
_MODE_CODES: dict[CommandMode, int] = {
    "position": servo_kernels.POSITION,
    "velocity": servo_kernels.VELOCITY,
    "effort": servo_kernels.EFFORT,
}


@dataclass(slots=True)
class JointServo:
    """One commandable joint.

    Attributes:
        model: Name of its model.
        address: Its addresses in MuJoCo's arrays.
        gains: Gains of each mode.
        ranges: Minimum and maximum set-point of each mode.
        row: Its row in the tables.
        force_limited_gains: Gains of position commands with a limited effort.
        no_load_speed: Speed at which its motor has no effort left [rad/s or m/s]; 0: it always has all.
        min_inertia: Smallest inertia that it moves in any configuration [kg m² or kg].
    """

    model: str
    address: JointAddress
    gains: dict[CommandMode, ServoGains]
    ranges: dict[CommandMode, tuple[float, float]]
    row: int
    force_limited_gains: ServoGains
    no_load_speed: float
    min_inertia: float

    def needs_explicit_damping(self, gains: ServoGains, model: Any) -> bool:
        """Return whether MuJoCo's implicit damping is wrong for this joint, see `update_servos`.

        It is where the damping of a step exceeds the inertia at zero positions, or, once the effort is limited, a
        multiple of the smallest inertia.
        """
        step_damping = gains.d * float(model.opt.timestep)
        return (
            step_damping > float(model.dof_M0[self.address.dof]) or step_damping > _MAX_STEP_DAMPING * self.min_inertia
        )


@dataclass(frozen=True, slots=True, eq=False)
class ServoGroup:
    """Servos that are commanded together: code of their mode, their (n) rows, minimum and maximum set-points."""

    mode: int
    rows: NDArray[np.int64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


@dataclass(slots=True)
class ServoBank:
    """All servos of a compiled world.

    Attributes:
        servos: The servo of each (model, joint).
        needs_evaluation: Whether gains have changed the inertia since the present state was evaluated.
        ints: See `ServoTables`.
        floats: See `ServoTables`.
    """

    servos: dict[tuple[str, str], JointServo] = field(default_factory=dict)
    needs_evaluation: bool = False
    ints: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 4), np.int64))
    floats: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, servo_kernels.SERVO_COLUMNS)))

    @classmethod
    def from_compiled(cls, compiled: CompiledWorld) -> ServoBank:
        """Create the servos of a compiled world, all off.

        Raises:
            DescriptionError: a gain in a description is not a number.
        """
        bank = cls()
        step = float(compiled.model.opt.timestep)
        loads, min_inertias = carried_loads(compiled.model), min_joint_inertias(compiled.model)
        gravity = max(GRAVITY, float(np.linalg.norm(compiled.model.opt.gravity)))  # integrals act against friction, too
        for name, addresses in compiled.addresses.items():
            model = addresses.entry.model
            weight = gravity * model.mass
            for joint_address in addresses.joints:
                if joint_address.actuator < 0:
                    continue
                interface = next((i for i in model.interfaces if i.joint == joint_address.name), None)
                inertia, max_effort = float(compiled.model.dof_M0[joint_address.dof]), effort_limit(joint_address.axis)
                load, max_position_error = (
                    loads[joint_address.dof],
                    MAX_POSITION_ERROR_PRISMATIC if joint_address.is_prismatic else MAX_POSITION_ERROR,
                )
                gains = {
                    mode: apply_parameter_overrides(
                        default_gains(mode, inertia, max_effort, weight, step, load, max_position_error),
                        mode,
                        interface,
                        name,
                    )
                    for mode in command_modes(model, joint_address.name)
                }
                ranges = {mode: command_range(mode, joint_address.axis, interface) for mode in gains}
                limited_gains = force_limited_gains(
                    inertia, max_effort, weight, step, joint_address.axis.limits.velocity
                )
                limited_gains = apply_parameter_overrides(
                    limited_gains, "position", interface, name, force_limited=True
                )
                speed_without_load = no_load_speed(interface, max_effort, name)
                if speed_without_load:
                    use_exact_contact_inertia(compiled.model)
                servo = JointServo(
                    name,
                    joint_address,
                    gains,
                    ranges,
                    len(bank.servos),
                    limited_gains,
                    speed_without_load,
                    float(min_inertias[joint_address.dof]),
                )
                if "position" in gains and servo.needs_explicit_damping(gains["position"], compiled.model):
                    # MuJoCo's approximate contact inertia would not include the added inertia.
                    use_exact_contact_inertia(compiled.model)
                bank.servos[(name, joint_address.name)] = servo
        bank.ints = np.zeros((len(bank.servos), 4), np.int64)
        bank.floats = np.zeros((len(bank.servos), servo_kernels.SERVO_COLUMNS))
        for servo in bank.servos.values():
            bank.ints[servo.row, : servo_kernels.MODE] = servo.address.qpos, servo.address.dof, servo.address.ctrl
            bank.floats[servo.row, [servo_kernels.MAX_EFFORT, servo_kernels.JOINT_MAX_EFFORT]] = effort_limit(
                servo.address.axis
            )
            bank.floats[servo.row, servo_kernels.COMMANDED_MAX_EFFORT] = math.inf
            bank.floats[servo.row, servo_kernels.NO_LOAD_SPEED] = servo.no_load_speed
            described_joints = {joint.name: joint for joint in compiled.addresses[servo.model].entry.model.joints}
            if servo.address.name in described_joints:
                bank.floats[servo.row, servo_kernels.SOFT_LOW : servo_kernels.CYCLE_TIME] = (
                    safety_controller_parameters(described_joints[servo.address.name], step)
                )
        return bank

    @property
    def tables(self) -> servo_kernels.ServoTables:
        """The tables as the physics step takes them."""
        return servo_kernels.ServoTables(self.ints, self.floats)

    def command(
        self, servo: JointServo, mode: CommandMode, value: float, model: Any, data: Any, max_effort: float = math.inf
    ) -> None:
        """Set the set-point of a servo; a change of mode starts from the joint's present state.

        ``max_effort`` limits its effort on the way to a position [N m or N]; infinite: only the joint's limit applies.

        Raises:
            InputError: ``value`` is not finite.
        """
        if not math.isfinite(value):
            raise InputError(
                f"set-point {value} for joint {servo.address.name}", location=servo.model, valid="a finite number"
            )
        row, mode_code = servo.row, _MODE_CODES[mode]
        previous_max_effort, self.floats[row, servo_kernels.COMMANDED_MAX_EFFORT] = (
            float(self.floats[row, servo_kernels.COMMANDED_MAX_EFFORT]),
            max_effort,
        )
        if self.ints[row, servo_kernels.MODE] != mode_code or math.isinf(previous_max_effort) != math.isinf(max_effort):
            self._switch_mode(servo, mode, model, data)
        elif previous_max_effort != max_effort:
            self.apply_effort_limit(servo, model)
        low, high = servo.ranges[mode]
        self.floats[row, servo_kernels.TARGET] = min(max(value, low), high)
        self.floats[row, servo_kernels.CYCLE_TIME_LEFT] = self.floats[row, servo_kernels.CYCLE_TIME]
        if math.isfinite(max_effort):
            position = float(data.qpos[servo.address.qpos])
            gain, setpoint, integral = self.floats[
                row, [servo_kernels.P, servo_kernels.SETPOINT, servo_kernels.INTEGRAL]
            ]
            if (self.floats[row, servo_kernels.TARGET] - position) * (
                gain * (setpoint - position) + integral
            ) < 0.0:  # it lets go at once
                self.floats[row, [servo_kernels.SETPOINT, servo_kernels.INTEGRAL]] = position, 0.0

    def make_group(self, model: str, mode: CommandMode, joints: Sequence[str]) -> ServoGroup:
        """Return servos of joints that all have the mode, for `set_group_setpoints`."""
        expect_kernels(servo_kernels.write_setpoints)
        servos = [self.servos[(model, joint)] for joint in joints]
        ranges = np.array([servo.ranges[mode] for servo in servos]).reshape(-1, 2)
        low, high = np.ascontiguousarray(ranges.T)
        return ServoGroup(_MODE_CODES[mode], np.array([servo.row for servo in servos], np.int64), low, high)

    def set_group_setpoints(self, group: ServoGroup, values: NDArray[np.float64]) -> bool:
        """Set the set-points (n) of servos that all are in their mode already, with their whole effort.

        Returns:
            False if they are not, or a value is not finite: nothing is changed then, and each servo needs `command`.
        """
        return servo_kernels.write_setpoints(
            self.ints, self.floats, group.mode, group.rows, group.low, group.high, values
        )

    def _switch_mode(self, servo: JointServo, mode: CommandMode, model: Any, data: Any) -> None:
        address = servo.address
        gains = (
            servo.gains[mode]
            if math.isinf(self.floats[servo.row, servo_kernels.COMMANDED_MAX_EFFORT])
            else servo.force_limited_gains
        )
        start = {
            "position": float(data.qpos[address.qpos]),
            "velocity": float(data.qvel[address.dof]),
            "effort": 0.0,
        }[mode]
        self.ints[servo.row, servo_kernels.MODE] = _MODE_CODES[mode]
        self.floats[servo.row, : servo_kernels.MAX_EFFORT] = gains.p, gains.i, gains.d, gains.windup, gains.ramp
        self.floats[servo.row, servo_kernels.SETPOINT : servo_kernels.EXPLICIT_DAMPING] = start, 0.0
        dynamics = address.axis.dynamics
        self.floats[servo.row, servo_kernels.CYCLE_TIME : servo_kernels.JOINT_MAX_EFFORT] = (
            gains.cycle,
            0.0,
            dynamics.damping,
            dynamics.friction,
        )
        is_strong = mode == "position" and servo.needs_explicit_damping(gains, model)
        has_explicit_damping = is_strong or (mode != "effort" and servo.no_load_speed > 0.0)
        self.floats[servo.row, servo_kernels.EXPLICIT_DAMPING] = float(has_explicit_damping)
        data.ctrl[address.ctrl : address.ctrl + 3] = 0.0
        self.apply_gains(servo, model)

    def apply_gains(self, servo: JointServo, model: Any) -> None:
        """Write the gains and the effort limit of a servo's mode into MuJoCo's model."""
        address = servo.address
        mode, (p, d) = (
            self.ints[servo.row, servo_kernels.MODE],
            self.floats[servo.row, [servo_kernels.P, servo_kernels.D]],
        )
        kp, kv = {servo_kernels.POSITION: (p, d), servo_kernels.VELOCITY: (0.0, p)}.get(int(mode), (0.0, 0.0))
        armature = max(address.axis.dynamics.armature, 0.0)
        if self.floats[servo.row, servo_kernels.EXPLICIT_DAMPING] > 0.0:  # see `update_servos`
            armature += float(model.opt.timestep) * kv
            kp = kv = 0.0
        self.needs_evaluation |= float(model.dof_armature[address.dof]) != armature
        model.dof_armature[address.dof] = armature
        model.actuator_biasprm[address.actuator, 1:3] = -kp, -kv
        self.apply_effort_limit(servo, model)

    def apply_effort_limit(self, servo: JointServo, model: Any) -> None:
        """Limit a servo's effort by that of its joint and that of its command."""
        max_effort = min(
            float(self.floats[servo.row, servo_kernels.JOINT_MAX_EFFORT]),
            float(self.floats[servo.row, servo_kernels.COMMANDED_MAX_EFFORT]),
        )
        self.floats[servo.row, servo_kernels.MAX_EFFORT] = max_effort
        if math.isfinite(max_effort):
            model.actuator_forcerange[servo.address.actuator] = -max_effort, max_effort
        model.actuator_forcelimited[servo.address.actuator] = math.isfinite(max_effort)

    def efforts(self, addresses: list[JointAddress], data: Any) -> NDArray[np.float64]:
        """Return the actuator efforts of joints at the last evaluated accelerations [N m or N]."""
        return np.array([data.qfrc_actuator[address.dof] for address in addresses])

    def restore_from(self, previous: ServoBank, model: mujoco.MjModel) -> None:
        """Copy the state of the servos that existed before the world was compiled anew."""
        for key, servo in self.servos.items():
            previous_servo = previous.servos.get(key)
            if previous_servo is not None:
                self.ints[servo.row, servo_kernels.MODE] = previous.ints[previous_servo.row, servo_kernels.MODE]
                self.floats[servo.row] = previous.floats[previous_servo.row]
                self.apply_gains(servo, model)
