"""Simulated hardware: joints and velocity base of a simulated model, with the interfaces that real drivers have.

A velocity base takes a velocity as its command.  A servo for each component acts on the root link in the link's axes,
``force = gain · (commanded - present)``, implicit in velocity: it is stable with any gain.  The velocity is never
overwritten, so contacts, gravity and other bodies still act on the link.  The force of a planar base is limited to
three times its weight, which drags its wheels over the ground but does not push it through a wall; a free base has no
limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import mujoco
import numpy as np

from roboyard.description.joint_interfaces import command_modes
from roboyard.description.model import CommandMode
from roboyard.errors import DescriptionError, InputError, UnknownNameError
from roboyard.geometry.arrays import Vec3
from roboyard.hardware.interface import BaseMotion, JointCommand, JointStates
from roboyard.physics.compiled_world import scoped_name
from roboyard.physics.compiler.actuators import VELOCITY_BASE_AXES
from roboyard.physics.servos import ServoGroup
from roboyard.physics.world import PhysicsWorld
from roboyard.sensors.proprioception import EncoderReading, JointEncoder


class SimulatedHardware:
    """Joints of one model.

    Readings come from the model's encoders, and are exact for joints without an encoder.  Whole revolutions of absolute
    encoders are counted, as drivers do.  Commands reach the servos within the physics step.

    Args:
        name: Name of the model.
        world: The world that holds the model, until `bind` names its successor.
        encoders: The encoders of the model.
        read_encoder: Returns the present reading of an encoder, with the faults that act on it.
        evaluate: Evaluates the world again, after a command has changed what the constraints of a joint are.
    """

    def __init__(
        self,
        name: str,
        world: PhysicsWorld,
        encoders: Sequence[JointEncoder],
        read_encoder: Callable[[JointEncoder], EncoderReading],
        evaluate: Callable[[], None],
    ) -> None:
        self._name, self._read_encoder, self._evaluate = name, read_encoder, evaluate
        self.bind(world, encoders)

    def bind(self, world: PhysicsWorld, encoders: Sequence[JointEncoder]) -> None:
        """Find the joints in ``world`` (called when models change)."""
        self._world = world
        addresses = world.addresses(self._name)
        self._joint_addresses = addresses.joints
        self._names = tuple(address.name for address in addresses.joints)
        self._qpos = np.array([address.qpos for address in addresses.joints], int)
        self._dofs = np.array([address.dof for address in addresses.joints], int)
        self._modes = {name: command_modes(addresses.entry.model, name) for name in self._names}
        self._servo_groups: dict[tuple[CommandMode, tuple[str, ...]], ServoGroup] = {}
        self._cached_states: tuple[int, JointStates] | None = None  # with the revision of the world that they hold for
        self._encoders = [
            (encoder, np.array([self._names.index(joint) for joint in encoder.joints])) for encoder in encoders
        ]

    @property
    def joint_names(self) -> tuple[str, ...]:
        """All scalar joints, in file order."""
        return self._names

    def command_modes(self, joint: str) -> tuple[CommandMode, ...]:
        """Return the modes in which ``joint`` takes commands (empty: passive). Raises UnknownNameError."""
        if joint not in self._modes:
            raise UnknownNameError(
                f"{self._name} has no joint {joint!r}", valid=f"joints: {', '.join(self._names) or 'none'}"
            )
        return self._modes[joint]

    def read(self) -> JointStates:
        """Return positions, velocities and efforts of the joints at the present time."""
        world, cached = self._world, self._cached_states
        if cached is not None and cached[0] == world.revision and not self._encoders:
            return cached[1]
        data = world.data
        world.ensure_accelerations()
        position, velocity = data.qpos[self._qpos], data.qvel[self._dofs]
        for encoder, joint_indices in self._encoders:
            reading = self._read_encoder(encoder)
            position[joint_indices], velocity[joint_indices] = (
                reading.position + reading.revolution_offset,
                reading.velocity,
            )
        joint_states = JointStates(world.time_ns, position, velocity, data.qfrc_actuator[self._dofs])
        for array in (joint_states.position, joint_states.velocity, joint_states.effort):
            array.flags.writeable = False
        self._cached_states = world.revision, joint_states
        return joint_states

    def write(self, command: JointCommand) -> None:
        """Set new set-points immediately.

        Raises:
            UnknownNameError: A joint is unknown or does not take this mode.
            InputError: A value is not finite, an effort is negative or not for positions, or there are not as
                many values as joints.
        """
        if len(command.joints) != len(command.setpoints):
            raise InputError(f"{len(command.setpoints)} values for {len(command.joints)} joints", location=self._name)
        group_key = (command.mode, tuple(command.joints))
        world = self._world
        servos = world.servos
        if group_key not in self._servo_groups:  # control loops ask for the same again and again
            self._check_modes(command)
            self._servo_groups[group_key] = servos.make_group(self._name, *group_key)
        setpoints = np.asarray(command.setpoints, float)
        # what goes on counts from the next step on: forces of the present moment are what they were
        is_group_updated = command.max_effort is None and servos.set_group_setpoints(
            self._servo_groups[group_key], setpoints
        )
        if not is_group_updated:
            if not np.isfinite(setpoints).all():
                raise InputError(f"set-points {setpoints.tolist()}", location=self._name, valid="finite numbers")
            max_efforts = [math.inf] * len(setpoints) if command.max_effort is None else self._check_efforts(command)
            model, data = world.model, world.data
            for joint, value, max_effort in zip(command.joints, setpoints.tolist(), max_efforts, strict=True):
                servos.command(servos.servos[(self._name, joint)], command.mode, value, model, data, max_effort)
        if servos.needs_evaluation:
            self._evaluate()
            servos.needs_evaluation = False
        if not is_group_updated:
            world.mark_changed()

    def _check_efforts(self, command: JointCommand) -> list[float]:
        """Check and return the effort limit of each joint of a position command."""
        efforts: list[float] = np.asarray(command.max_effort, float).tolist()
        if command.mode != "position":
            raise InputError(f"efforts of {command.mode} commands", location=self._name, valid="of position commands")
        if len(efforts) != len(command.joints):
            raise InputError(f"{len(efforts)} efforts for {len(command.joints)} joints", location=self._name)
        if not all(effort >= 0.0 and math.isfinite(effort) for effort in efforts):
            raise InputError(f"efforts {efforts}", location=self._name, valid="finite numbers, 0 or more")
        return efforts

    def _check_modes(self, command: JointCommand) -> None:
        for joint in command.joints:
            allowed_modes = self.command_modes(joint)
            if command.mode not in allowed_modes:
                raise UnknownNameError(
                    f"joint {joint!r} of {self._name} takes no {command.mode} commands",
                    valid=f"modes: {', '.join(allowed_modes) or 'none, it is passive'}",
                )


_VELOCITY_TIME_CONSTANT = 0.001
"""Time constant of a velocity base's servo [s]; full friction reduces the velocity by this times gravity."""
_MAX_FORCE_TO_WEIGHT = 3.0
"""Highest force of a planar base divided by its weight in the gravity of its world."""
_ENGAGED_FLAG = 1.0
"""Value of the position input of an engaged servo, which has no position gain: saved controls contain it."""


class SimulatedVelocityBase:
    """The root link of one model, which was added with ``ModelOptions(base=…)``.

    Args:
        name: Name of the model.
        kind: Components of the velocity that the base takes.
        world: The world that holds the model, until `bind` names its successor.
    """

    def __init__(self, name: str, kind: BaseMotion, world: PhysicsWorld) -> None:
        self._name, self._kind = name, kind
        self.bind(world)

    @property
    def kind(self) -> BaseMotion:
        """Components of the velocity that the base takes."""
        return self._kind

    def bind(self, world: PhysicsWorld) -> None:
        """Find the actuators in ``world``, and continue with the command in its state.

        The simulation calls it when models change, and when a state was loaded.
        """
        self._world = world
        model = world.model
        names = [scoped_name(self._name, f"base/{axis}") for axis in VELOCITY_BASE_AXES[self._kind]]
        actuators = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_ACTUATOR, name) for name in names]
        if min(actuators) < 0:
            raise DescriptionError(f"model {self._name} has no body that flies", valid="a root link that is not fixed")
        self._actuators, self._control_addresses = (
            actuators,
            [int(model.actuator_ctrladr[actuator]) for actuator in actuators],
        )
        body = int(model.site(scoped_name(self._name, "base")).bodyid[0])
        weight = float(model.body_subtreemass[body]) * float(np.linalg.norm(model.opt.gravity))
        gyration_radius = math.sqrt(self._yaw_inertia(body) / float(model.body_subtreemass[body]))
        for actuator, axis in zip(actuators, VELOCITY_BASE_AXES[self._kind], strict=True):
            if self._kind == "planar":
                limit = _MAX_FORCE_TO_WEIGHT * weight * (gyration_radius if axis > 2 else 1.0)
                model.actuator_forcelimited[actuator] = 1
                model.actuator_forcerange[actuator] = -limit, limit
        self._gains = [
            (self._yaw_inertia(body) if axis > 2 else float(model.body_subtreemass[body])) / _VELOCITY_TIME_CONSTANT
            for axis in VELOCITY_BASE_AXES[self._kind]
        ]
        self._update_gains()

    def set_velocity(self, linear: Vec3, angular: Vec3) -> None:
        """Set new velocities immediately, in the root link's axes.

        Raises:
            InputError: A value is not finite.
        """
        velocities = (*linear, *angular)
        if not all(map(math.isfinite, velocities)):
            raise InputError(f"velocities {velocities}", location=self._name, valid="finite numbers")
        ctrl = self._world.data.ctrl
        for control_address, axis in zip(self._control_addresses, VELOCITY_BASE_AXES[self._kind], strict=True):
            ctrl[control_address], ctrl[control_address + 1] = _ENGAGED_FLAG, velocities[axis]
        self._update_gains()
        self._world.mark_changed()

    def release(self) -> None:
        """End the command: the servos exert no force."""
        for control_address in self._control_addresses:
            self._world.data.ctrl[control_address : control_address + 2] = 0.0
        self._update_gains()
        self._world.mark_changed()

    def _update_gains(self) -> None:
        model, ctrl = self._world.model, self._world.data.ctrl
        for actuator, control_address, gain in zip(self._actuators, self._control_addresses, self._gains, strict=True):
            model.actuator_biasprm[actuator, 2] = -gain if ctrl[control_address] == _ENGAGED_FLAG else 0.0

    def _yaw_inertia(self, body: int) -> float:
        """Return an upper bound of the moment of inertia about the vertical through the center of mass [kg m²]."""
        model = self._world.model
        tree_bodies = [
            body_id for body_id in range(model.nbody) if model.body_rootid[body_id] == model.body_rootid[body]
        ]
        intrinsic_inertia = float(sum(max(model.body_inertia[body_id]) for body_id in tree_bodies))
        offsets = [
            self._world.data.xipos[body_id, :2] - self._world.data.subtree_com[body, :2] for body_id in tree_bodies
        ]
        offset_inertia = sum(
            float(model.body_mass[body_id]) * float(offset @ offset)
            for body_id, offset in zip(tree_bodies, offsets, strict=True)
        )
        return intrinsic_inertia + offset_inertia
