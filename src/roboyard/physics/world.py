"""`PhysicsWorld`: one compiled world with its state: steps, lazy evaluation of accelerations, poses of models, ground
truth, contact points, saved states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, field
from threading import RLock
from typing import Any, NamedTuple, TypeVar

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.description.joint_interfaces import initial_positions
from roboyard.errors import InputError, RunError, UnknownNameError
from roboyard.geometry import SE2, SE3
from roboyard.geometry.arrays import Vec3
from roboyard.physics.compiled_world import CompiledWorld, FrictionPatch, LinkAddress, ModelAddresses
from roboyard.physics.compiler.loop_joints import close_loops
from roboyard.physics.compliant_bodies import CompliantBodyTable
from roboyard.physics.contacts import ContactEpisode, ContactMonitor, ContactPoint
from roboyard.physics.kernels import servos as servo_kernels
from roboyard.physics.kernels import step
from roboyard.physics.kernels.contact_modifiers import SurfaceArrays
from roboyard.physics.kernels.contacts import contact_points_in_frame, find_geom_contacts
from roboyard.physics.kernels.grasps import NO_GRASPS
from roboyard.physics.kernels.step import compute_accelerations, free_rotation_trees
from roboyard.physics.mujoco_memory import engine_addresses, mujoco_object_function, state_views
from roboyard.physics.servos import ServoBank
from roboyard.physics.settings import PhysicsSettings

T = TypeVar("T")


@dataclass(slots=True)
class SurfaceTables:
    """The surfaces of one compiled world: arrays as in `SurfaceArrays`, and friction patches and velocities from names.

    Attributes:
        friction: (geoms, 3) the engine's coefficients.
        anisotropy: (geoms, 9), see `FRICTION1`; no rows if no surface has one.
        ground: (geoms,) whether a geom is ground.
        patches: (n, 7) friction patches.
        surface_velocities: (geoms, 3) velocity of each geom's surface in the world [m/s]; no rows if none moves.
    """

    friction: NDArray[np.float64]
    anisotropy: NDArray[np.float64]
    ground: NDArray[np.bool_]
    patches: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 7)))
    surface_velocities: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 3)))

    @classmethod
    def from_compiled(cls, compiled: CompiledWorld) -> SurfaceTables:
        """The surfaces of a compiled world, without friction patches and moving surfaces."""
        geoms = compiled.geoms
        return cls(np.ascontiguousarray(compiled.model.geom_friction, float), geoms.anisotropy, geoms.is_ground)

    @property
    def arrays(self) -> SurfaceArrays:
        """The arrays as the physics step takes them."""
        return SurfaceArrays(self.patches, self.surface_velocities, self.friction, self.anisotropy, self.ground)

    def set_overrides(
        self, compiled: CompiledWorld, patches: list[FrictionPatch], surface_velocities: dict[tuple[str, str], Vec3]
    ) -> None:
        """Replace the friction patches and the surface velocities.

        Args:
            compiled: The compiled world.
            patches: All friction patches.
            surface_velocities: Velocity of the surface of each (model, link), in the link's frame [m/s].

        Raises:
            InputError: there is no such link, or the link itself can move.
        """
        self.patches = np.array([patch.to_row() for patch in patches], float).reshape(-1, 7)
        moving = {key: velocity for key, velocity in surface_velocities.items() if any(velocity)}
        self.surface_velocities = np.zeros((len(compiled.geoms.model_index) if moving else 0, 3))
        for (model, link), velocity in moving.items():
            addresses = compiled.addresses.get(model)
            if addresses is None or link not in addresses.links:
                raise InputError(f"no link {link!r} of a model {model!r}", location="moving surface")
            address = addresses.links[link]
            if address.body:
                raise InputError(f"link {link!r} of {model!r} moves itself", valid="a link that stands still")
            geoms = [
                geom
                for geom, owner in enumerate(compiled.geoms.model_index)
                if owner == addresses.index and compiled.geoms.link_names[geom] == link
            ]
            self.surface_velocities[geoms] = address.T_body_link.rotation_matrix() @ np.asarray(velocity, float)


_ORIGIN, _AXES = np.zeros(3), np.eye(3)

_object_velocity = mujoco_object_function("mj_objectVelocity")
_BODY = int(mujoco.mjtObj.mjOBJ_XBODY)


@dataclass(frozen=True, slots=True)
class GroundTruth:
    """True state of a model's root link, or of a single link.

    Attributes:
        time_ns: Time of the state [ns].
        T_world_base: Pose of the link in the world.
        linear_velocity: (3,) velocity of the link's origin, in the link's frame [m/s].
        angular_velocity: (3,) angular velocity in the link's frame [rad/s].
        contacts: Contact points of the whole model, also with the ground; empty for a single link.
    """

    time_ns: int
    T_world_base: SE3
    linear_velocity: NDArray[np.float64]
    angular_velocity: NDArray[np.float64]
    contacts: tuple[ContactPoint, ...] = ()

    @property
    def pose(self) -> SE3:
        """``T_world_base``."""
        return self.T_world_base


@kernel(examples=lambda: [(0, 0, 0)])
def body_velocity(model: int, data: int, body: int) -> NDArray[np.float64]:
    """Angular and linear velocity (6,) of a body in its own frame [rad/s, m/s]; zero for the world's body.

    Args:
        model: Address of MuJoCo's model.
        data: Address of MuJoCo's data, velocities evaluated.
        body: Number of the body.
    """
    velocity = np.zeros(6)
    if body > 0:
        _object_velocity(model, data, _BODY, body, velocity.ctypes.data, 1)
    return velocity


def link_pose(data: mujoco.MjData, address: LinkAddress) -> SE3:
    """``T_world_link``."""
    if address.body == 0:
        return address.T_body_link
    return SE3(
        tuple(data.xquat[address.body].tolist()), tuple(data.xpos[address.body].tolist())
    )  # its own body is the link


_WIDTHS = {  # positions and velocities of a joint, by its type
    int(mujoco.mjtJoint.mjJNT_FREE): (7, 6),
    int(mujoco.mjtJoint.mjJNT_BALL): (4, 3),
    int(mujoco.mjtJoint.mjJNT_SLIDE): (1, 1),
    int(mujoco.mjtJoint.mjJNT_HINGE): (1, 1),
}


class FreeJointAddress(NamedTuple):
    """Address of a free joint: its pose (7 numbers) in ``qpos`` and its velocity (6 numbers) in ``qvel``."""

    qpos: int
    dof: int


def initialize_joints(compiled: CompiledWorld, data: mujoco.MjData) -> None:
    """Set joints to the initial positions of their descriptions, or the nearest limit, and close loops."""
    for addresses in compiled.addresses.values():
        model = addresses.entry.model
        initial_states = {interface.joint: dict(interface.initial) for interface in model.interfaces}
        positions = initial_positions(model, ((address.name, address.axis.limits) for address in addresses.joints))
        for address in addresses.joints:
            data.qpos[address.qpos] = positions[address.name]
            data.qvel[address.dof] = initial_states.get(address.name, {}).get("velocity", data.qvel[address.dof])
    close_loops(compiled, data)


def copy_state(old: CompiledWorld, old_data: mujoco.MjData, new: CompiledWorld, data: mujoco.MjData) -> None:
    """Copy positions, velocities, warm starts, controls and applied forces of everything both worlds hold."""
    for joint in range(new.model.njnt):
        name = new.model.joint(joint).name
        old_id = mujoco.mj_name2id(old.model, mujoco.mjtObj.mjOBJ_JOINT, name)
        if old_id < 0:
            continue
        positions, velocities = _WIDTHS[int(new.model.jnt_type[joint])]
        _copy(data.qpos, new.model.jnt_qposadr[joint], old_data.qpos, old.model.jnt_qposadr[old_id], positions)
        for array_name in ("qvel", "qacc_warmstart", "qfrc_applied"):
            old_values, new_values = getattr(old_data, array_name), getattr(data, array_name)
            _copy(new_values, new.model.jnt_dofadr[joint], old_values, old.model.jnt_dofadr[old_id], velocities)
    for actuator in range(new.model.nactuator):
        name = new.model.actuator(actuator).name
        old_id = mujoco.mj_name2id(old.model, mujoco.mjtObj.mjOBJ_ACTUATOR, name)
        if old_id >= 0:
            width = int(new.model.actuator_ctrlnum[actuator])
            source = old.model.actuator_ctrladr[old_id]
            _copy(data.ctrl, new.model.actuator_ctrladr[actuator], old_data.ctrl, source, width)
    for body in range(new.model.nbody):
        old_id = mujoco.mj_name2id(old.model, mujoco.mjtObj.mjOBJ_BODY, new.model.body(body).name)
        if old_id >= 0:
            data.xfrc_applied[body] = old_data.xfrc_applied[old_id]


def _copy(target, target_start, source, source_start, width) -> None:  # type: ignore[no-untyped-def]
    target[target_start : target_start + width] = source[source_start : source_start + width]


_STATE_SIGNATURE = int(mujoco.mjtState.mjSTATE_INTEGRATION)


class PhysicsWorld:
    """One compilation of a world with its state; adding or removing a model makes another one.

    The state after `step` is complete: positions, velocities and contacts are evaluated for `time_ns`.  Accelerations,
    contact forces and actuator forces of that same state are evaluated when `ensure_accelerations` is first called, as
    the next step would evaluate them, without integrating; the solver's warm start is put back afterwards, so reading
    them makes no difference to the next step.

    Args:
        compiled: The compiled world.
        settings: Settings of the engine that it was compiled with.
        previous: The world whose time, and whose state of all models in both, the new one continues; None: the new
            world starts at time 0 in the initial state of its descriptions.

    Attributes:
        servos: State of all joint servos.
        contacts: Names of geoms, and the contact episodes.
        surfaces: Friction patches, and velocities of static surfaces.
        lock: Held by whoever changes the state, or reads values that must belong to one moment.
        timestep_ns: Physics step [ns].
        step_count: Steps taken since the start.
        revision: How often the state or a command has changed.
        rotation_trees: See `free_rotation_trees`.
    """

    def __init__(
        self, compiled: CompiledWorld, settings: PhysicsSettings, previous: PhysicsWorld | None = None
    ) -> None:
        data = mujoco.MjData(compiled.model)
        self._compiled: CompiledWorld | None = compiled
        self._data: mujoco.MjData | None = data
        self.timestep_ns, self.step_count, self.revision = settings.timestep_ns, 0, 0
        self.lock = RLock()  # kernels let other threads run, and write where those might read
        self.servos = ServoBank.from_compiled(compiled)
        initialize_joints(compiled, data)
        self._compliant_bodies: CompliantBodyTable | None = CompliantBodyTable.from_compiled(compiled, data)
        if previous is not None:
            self.lock, self.step_count = previous.lock, previous.step_count
            self.compliant_bodies.copy_from(previous.compliant_bodies)
            copy_state(previous.compiled, previous.data, compiled, data)
            self.servos.restore_from(previous.servos, compiled.model)
        self.contacts: ContactMonitor = ContactMonitor(
            compiled, self.timestep_ns, previous.contacts if previous is not None else None
        )
        data.time = self.time_ns * 1e-9
        self.surfaces = SurfaceTables.from_compiled(compiled)
        self._engine, self._state_views = engine_addresses(compiled.model, data), state_views(compiled.model, data)
        self.rotation_trees = free_rotation_trees(compiled.model)
        self._is_evaluated = False
        saved_warm_start = np.zeros(compiled.model.nv)
        self._acceleration_arguments = (
            compiled.model._address, data._address, self.contacts.layout, data.qacc_warmstart, saved_warm_start
        )  # fmt: skip
        self.evaluate()

    @property
    def compiled(self) -> CompiledWorld:
        """The compiled world: model, addresses by model name, tables of geoms, warnings. Raises RunError if closed."""
        return _require_open(self._compiled)

    @property
    def model(self) -> mujoco.MjModel:
        """MuJoCo's model."""
        return self.compiled.model

    @property
    def data(self) -> mujoco.MjData:
        """MuJoCo's data. Raises RunError if closed."""
        return _require_open(self._data)

    @property
    def compliant_bodies(self) -> CompliantBodyTable:
        """Kinematic bodies that contact forces displace, such as people's. Raises RunError if closed."""
        return _require_open(self._compliant_bodies)

    @property
    def time_ns(self) -> int:
        """Time of the present state [ns]."""
        return self.step_count * self.timestep_ns

    def addresses(self, name: str) -> ModelAddresses:
        """Addresses of a model in MuJoCo's arrays. Raises UnknownNameError."""
        addresses = self.compiled.addresses
        if name not in addresses:
            raise UnknownNameError(f"no model named {name!r}", valid=f"models: {', '.join(addresses) or 'none'}")
        return addresses[name]

    # -- time ----------------------------------------------------------------------------------------------------------
    def step(self, n: int = 1, grasps: NDArray[np.float64] = NO_GRASPS) -> None:
        """Take ``n`` physics steps in compiled code (see `run_steps`, which lists what happens in a step).

        Args:
            n: Number of steps.
            grasps: See `apply_grasp_forces`.

        Raises:
            RunError: the state became infinite or the engine ran out of memory; the time is that of the last step.
        """
        with self.lock:
            while n > 0:
                n_steps, end_reason = self._run_steps(n, grasps)
                n -= n_steps
                self.step_count += n_steps
                self.data.time = self.time_ns * 1e-9  # the engine adds steps up, with rounding
                self.mark_changed()
                if end_reason == step.EPISODE_TABLE_FULL:
                    self.contacts.grow_table()
                elif end_reason == step.LOW_MEMORY:
                    raise RunError(
                        f"the physics engine is out of memory at {self.time_ns * 1e-9:.3f} s: too many contacts"
                    )
                elif end_reason == step.DIVERGED:
                    raise RunError(
                        f"the physics diverged at {self.time_ns * 1e-9:.3f} s (a position or speed became infinite)",
                        valid="smaller gains, a smaller timestep, or heavier links",
                    )

    def _run_steps(self, n: int, grasps: NDArray[np.float64]) -> tuple[int, int]:
        """Take up to ``n`` steps; return how many were taken, and why the loop ended."""
        tables = step.StepTables(
            self.servos.tables,
            self.contacts.tables,
            self.surfaces.arrays,
            self.compliant_bodies.arrays,
            self.rotation_trees,
        )
        n_steps, self.contacts.episode_count, end_reason = step.run_steps(
            self._engine,
            self._state_views,
            tables,
            grasps,
            self.contacts.episode_count,
            self.step_count,
            n,
            self.timestep_ns * 1e-9,
        )
        return n_steps, end_reason

    def evaluate(self, grasps: NDArray[np.float64] = NO_GRASPS) -> None:
        """Evaluate positions, velocities and contacts after the state was set from outside.

        ``grasps``: see `apply_grasp_forces`.
        """
        with self.lock:
            step.evaluate_with_contact_modifiers(
                self._engine, self.surfaces.arrays, self.compliant_bodies.arrays, grasps
            )
            self.mark_changed()

    def ensure_accelerations(self) -> None:
        """Make ``qacc``, ``cacc``, contact forces and actuator forces those of the present state."""
        with self.lock:  # the engine has one workspace
            if not self._is_evaluated:
                compute_accelerations(*self._acceleration_arguments)
                self._is_evaluated = True

    def mark_changed(self) -> None:
        """Note that the state or a command has changed: accelerations and forces must be evaluated anew."""
        with self.lock:
            self._is_evaluated = False
            self.revision += 1

    # -- poses of models -----------------------------------------------------------------------------------------------
    def free_joint(self, name: str) -> FreeJointAddress:
        """Address of the free joint of a model's root link.

        Raises:
            UnknownNameError: no model has this name.
            InputError: the model has no free root link.
        """
        addresses, model = self.addresses(name), self.model
        body = addresses.links[addresses.root].body
        joint = int(model.body_jntadr[body]) if body > 0 else -1
        if joint < 0 or int(model.jnt_type[joint]) != int(mujoco.mjtJoint.mjJNT_FREE):
            raise InputError(
                f"model {name!r} cannot be moved: it is fixed to the world or to another model",
                valid="a model with a free root link",
            )
        return FreeJointAddress(int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint]))

    def set_pose(self, name: str, T_world_base: SE3) -> None:
        """Set the pose of a model's root link in the world, at rest; its joints stay as they are.

        The model moves instantly: its sensors do not measure the motion.

        Raises:
            UnknownNameError: no model has this name.
            InputError: the model has no free root link.
        """
        qpos_address, dof_address = self.free_joint(name)
        model, data = self.model, self.data
        with self.lock:
            data.qpos[qpos_address : qpos_address + 3] = T_world_base.translation
            data.qpos[qpos_address + 3 : qpos_address + 7] = T_world_base.rotation
            data.qvel[dof_address : dof_address + 6] = 0.0
            mujoco.mj_fwdPosition(model, data)
            mujoco.mj_fwdVelocity(model, data)
            self.mark_changed()

    def set_planar_pose(self, name: str, pose: SE2) -> None:
        """Set the planar pose of a model as `set_pose` does, at its present height and upright.

        Raises:
            UnknownNameError: no model has this name.
            InputError: the model has no free root link.
        """
        self.set_pose(name, pose.to_se3(float(self.data.qpos[self.free_joint(name).qpos + 2])))

    # -- ground truth --------------------------------------------------------------------------------------------------
    def ground_truth(self, name: str, *, with_contacts: bool = True) -> GroundTruth:
        """Pose and velocity of a model's root link, and the contacts of the model. Raises UnknownNameError."""
        with self.lock:
            addresses = self.addresses(name)
            root = self.link_ground_truth(addresses.links[addresses.root])
            if not with_contacts:
                return root
            contact_points = self.find_contacts(self.contacts.geom_models == addresses.index)
            return GroundTruth(
                root.time_ns, root.T_world_base, root.linear_velocity, root.angular_velocity, contact_points
            )

    def link_ground_truth(self, address: LinkAddress) -> GroundTruth:
        """Pose and velocity of one link."""
        data = self.data
        velocity = body_velocity(self.model._address, data._address, address.body)
        velocity.flags.writeable = False
        return GroundTruth(self.time_ns, link_pose(data, address), velocity[3:], velocity[:3])

    def find_contacts(
        self,
        geoms: NDArray[np.bool_],
        *,
        ground: bool = True,
        origin: NDArray[np.float64] = _ORIGIN,
        axes: NDArray[np.float64] = _AXES,
    ) -> tuple[ContactPoint, ...]:
        """Contacts in which one of ``geoms`` takes part, in the engine's order.

        Args:
            geoms: Mask over all geoms.
            ground: Also those with the ground.
            origin: (3,) origin of the frame in which the points are given, in the world [m].
            axes: (3, 3) axes of that frame in the world, as columns.
        """
        data, monitor = self.data, self.contacts
        contact_ids = find_geom_contacts(data._address, monitor.layout, geoms, monitor.ground, ground)
        if not len(contact_ids):
            return ()
        self.ensure_accelerations()
        pairs, values = contact_points_in_frame(data._address, monitor.layout, contact_ids, geoms, origin, axes)
        names = monitor.geom_names
        return tuple(
            [
                ContactPoint(names[geom], names[other_geom], (x, y, z), (nx, ny, nz), depth, (fx, fy, fz))
                for (geom, other_geom), (x, y, z, nx, ny, nz, depth, fx, fy, fz) in zip(
                    pairs.tolist(), values.tolist(), strict=True
                )
            ]
        )

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """State of the physics as plain data: all that the next steps depend on, and the contact episodes so far."""
        model, data = self.model, self.data
        physics = np.zeros(mujoco.mj_stateSize(model, _STATE_SIGNATURE))
        mujoco.mj_getState(model, data, physics, _STATE_SIGNATURE)
        return {
            "steps": self.step_count,
            "physics": physics.tolist(),
            "servo_modes": self.servos.ints[:, servo_kernels.MODE].tolist(),
            "servos": self.servos.floats.tolist(),
            "compliant_bodies": self.compliant_bodies.save_state(),
            "contact_episodes": [list(astuple(episode)) for episode in self.contacts.episodes()],
        }

    def load_state(self, saved: Mapping[str, Any]) -> None:
        """Restore the state that `save_state` returned; the caller calls `evaluate` when grasps are restored too.

        Raises:
            KeyError, TypeError, ValueError: the state cannot be read, or belongs to other models.
        """
        model, servos = self.model, self.servos
        physics = np.array(saved["physics"], float)
        if len(physics) != mujoco.mj_stateSize(model, _STATE_SIGNATURE):
            raise ValueError("its models are of another build")
        with self.lock:
            mujoco.mj_setState(model, self.data, physics, _STATE_SIGNATURE)
            servos.ints[:, servo_kernels.MODE] = saved["servo_modes"]
            servos.floats[:] = np.array(saved["servos"], float).reshape(servos.floats.shape)
            for servo in servos.servos.values():
                servos.apply_gains(servo, model)
            self.step_count = int(saved["steps"])
            self.data.time = self.time_ns * 1e-9
            self.compliant_bodies.load_state(saved["compliant_bodies"])
            self.contacts.restore_episodes(tuple(ContactEpisode(*values) for values in saved["contact_episodes"]))
            self.mark_changed()

    def close(self) -> None:
        """Free MuJoCo's data and model, also while other objects refer to this world; reading it raises RunError."""
        with self.lock:
            if self._data is not None:
                self._compiled = self._data = self._compliant_bodies = None
                del self._engine, self._state_views, self._acceleration_arguments


def _require_open(part: T | None) -> T:
    """Return a part of a world. Raises RunError where the world is closed."""
    if part is None:
        raise RunError("the simulation is closed")
    return part
