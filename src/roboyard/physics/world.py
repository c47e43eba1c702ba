"""`PhysicsWorld`: one compiled world with its state; stepping, evaluation on demand, poses of models, ground truth,
contact points."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import RLock
from typing import TYPE_CHECKING, Protocol

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.description.joint_interfaces import initial_positions
from roboyard.errors import InputError
from roboyard.geometry import SE2, SE3
from roboyard.geometry.arrays import Vec3
from roboyard.physics.compiled_world import CompiledWorld, FrictionPatch, LinkAddress, ModelAddresses
from roboyard.physics.compiler.loop_joints import close_loops
from roboyard.physics.compliant_bodies import CompliantBodyTable
from roboyard.physics.contacts import ContactMonitor, ContactPoint
from roboyard.physics.kernels import step
from roboyard.physics.kernels.contact_modifiers import SurfaceArrays
from roboyard.physics.kernels.contacts import contact_points_in_frame, find_geom_contacts
from roboyard.physics.kernels.grasps import NO_GRASPS
from roboyard.physics.kernels.step import compute_accelerations, free_rotation_trees
from roboyard.physics.mujoco_memory import (
    EngineAddresses,
    StateViews,
    engine_addresses,
    mujoco_object_function,
    state_views,
)
from roboyard.physics.servos import ServoBank
from roboyard.physics.settings import PhysicsSettings

if TYPE_CHECKING:
    from roboyard.sensors.sensor import SensorContext
    from roboyard.simulation.simulation import Simulation


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
        """Of a compiled world in which nothing is slippery and no surface moves."""
        geoms = compiled.geoms
        return cls(np.ascontiguousarray(compiled.model.geom_friction, float), geoms.anisotropy, geoms.is_ground)

    @property
    def arrays(self) -> SurfaceArrays:
        """The arrays as the physics step takes them."""
        return SurfaceArrays(self.patches, self.surface_velocities, self.friction, self.anisotropy, self.ground)

    def set_overrides(
        self, compiled: CompiledWorld, patches: list[FrictionPatch], surface_velocities: dict[tuple[str, str], Vec3]
    ) -> None:
        """Take these patches, and these velocities [m/s] of the surfaces of (model, link), in the link's frame.

        Raises:
            InputError: a link is not there, or it moves itself.
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


class LazyEvaluation:
    """Lazy evaluation of accelerations and forces for the current state: once, when first needed.

    The step loop leaves the state with positions and velocities evaluated.  Accelerations, contact forces and actuator
    efforts of that same state are found as the next step would, without integrating; the solver's starting point is put
    back afterwards, so reading them makes no difference to the next step.  Only one thread does so at a time:
    the engine has one workspace.

    Attributes:
        revision: How often the state or a command has changed.
        lock: Held by whoever changes the state, or wants all of it from one moment.
    """

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData, layout: NDArray[np.int64], lock: RLock) -> None:
        self._model, self._data, self._layout, self.lock = model, data, layout, lock
        self._is_evaluated, self.revision = False, 0
        self._warm_start, self._saved_warm_start = data.qacc_warmstart, np.zeros(model.nv)

    def mark_changed(self) -> None:
        """The state or a command changed."""
        with self.lock:
            self._is_evaluated = False
            self.revision += 1

    def ensure_accelerations(self) -> None:
        """Make ``qacc``, ``cacc``, contact forces and actuator forces those of the present state."""
        with self.lock:
            if not self._is_evaluated:
                compute_accelerations(
                    self._model._address, self._data._address, self._layout, self._warm_start, self._saved_warm_start
                )
                self._is_evaluated = True


class ContactSource(Protocol):
    """What of a simulation is needed to look at its contacts."""

    @property
    def data(self) -> mujoco.MjData:
        """The engine's data."""
        ...

    @property
    def contacts(self) -> ContactMonitor:
        """Names of geoms."""
        ...

    @property
    def instant(self) -> LazyEvaluation:
        """The present."""
        ...


_ORIGIN, _AXES = np.zeros(3), np.eye(3)


def find_contacts(
    host: ContactSource,
    geoms: NDArray[np.bool_],
    *,
    ground: bool = True,
    origin: NDArray[np.float64] = _ORIGIN,
    axes: NDArray[np.float64] = _AXES,
) -> tuple[ContactPoint, ...]:
    """Contacts in which one of ``geoms`` takes part, in the engine's order.

    Args:
        host: The simulation.
        geoms: Mask over all geoms.
        ground: Also those with the ground.
        origin: (3,) of the frame that they are seen from, in the world [m]; the world's own unless given.
        axes: (3, 3) of that frame in the world, as columns.
    """
    data, monitor = host.data, host.contacts
    contact_ids = find_geom_contacts(data._address, monitor.layout, geoms, monitor.ground, ground)
    if not len(contact_ids):
        return ()
    host.instant.ensure_accelerations()
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


_object_velocity = mujoco_object_function("mj_objectVelocity")
_BODY = int(mujoco.mjtObj.mjOBJ_XBODY)


@dataclass(frozen=True, slots=True)
class GroundTruth:
    """True state of a model's root link, or of the link asked for.

    Attributes:
        time_ns: When.
        T_world_base: Pose of the link.
        linear_velocity: (3,) of the link's origin, in the link's frame [m/s].
        angular_velocity: (3,) in the link's frame [rad/s].
        contacts: Touches of the whole model, its own ground contacts included; empty for a single link.
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
    """Angular and linear velocity (6,) of a body in its own frame [rad/s, m/s]; 0 of the world.

    Args:
        model: Address of the engine's model.
        data: Address of its data, velocities evaluated.
        body: Its number.
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


def link_ground_truth(host: SensorContext, address: LinkAddress) -> GroundTruth:
    """Pose and velocity of one link."""
    data = host.data
    velocity = body_velocity(host.model._address, data._address, address.body)
    velocity.flags.writeable = False
    return GroundTruth(host.time_ns, link_pose(data, address), velocity[3:], velocity[:3])


def model_ground_truth(host: SensorContext, addresses: ModelAddresses, *, with_contacts: bool = True) -> GroundTruth:
    """Pose and velocity of a model's root link, and its contacts."""
    root = link_ground_truth(host, addresses.links[addresses.root])
    if not with_contacts:
        return root
    contact_points = find_contacts(host, host.contacts.geom_models == addresses.index)
    return GroundTruth(root.time_ns, root.T_world_base, root.linear_velocity, root.angular_velocity, contact_points)


_WIDTHS = {  # positions and velocities of a joint, by its type
    int(mujoco.mjtJoint.mjJNT_FREE): (7, 6),
    int(mujoco.mjtJoint.mjJNT_BALL): (4, 3),
    int(mujoco.mjtJoint.mjJNT_SLIDE): (1, 1),
    int(mujoco.mjtJoint.mjJNT_HINGE): (1, 1),
}


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


def free_joint_addresses(simulation: Simulation, name: str) -> tuple[int, int]:
    """Addresses of the pose (7 numbers) and the velocity (6 numbers) of a model with a free root link.

    Raises:
        UnknownNameError: nothing is called so.
        InputError: it is fixed to the world, or its base moves on joints.
    """
    addresses, model = simulation.addresses(name), simulation.model
    body = addresses.links[addresses.root].body
    joint = int(model.body_jntadr[body]) if body > 0 else -1
    if joint < 0 or int(model.jnt_type[joint]) != int(mujoco.mjtJoint.mjJNT_FREE):
        raise InputError(
            f"model {name!r} cannot be moved: it is fixed to the world or to another model",
            valid="a model with a free root link",
        )
    return int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])


def set_planar_pose(simulation: Simulation, name: str, pose: SE2) -> None:
    """Set the planar pose of a model, at its present height, upright and at rest; its joints stay as they are.

    The model moves instantly: its sensors do not measure the motion.

    Raises:
        UnknownNameError: nothing is called so.
        InputError: it is fixed to the world, or its base moves on joints.
    """
    qpos_address, _ = free_joint_addresses(simulation, name)
    set_pose(simulation, name, pose.to_se3(float(simulation.data.qpos[qpos_address + 2])))


def set_pose(simulation: Simulation, name: str, T_world_base: SE3) -> None:
    """Set the pose of a model's root link in the world, at rest; its joints stay as they are.

    The model moves instantly: its sensors do not measure the motion.

    Raises:
        UnknownNameError: nothing is called so.
        InputError: it is fixed to the world, or its base moves on joints.
    """
    qpos_address, dof_address = free_joint_addresses(simulation, name)
    model, data = simulation.model, simulation.data
    with simulation.instant.lock:
        data.qpos[qpos_address : qpos_address + 3] = T_world_base.translation
        data.qpos[qpos_address + 3 : qpos_address + 7] = T_world_base.rotation
        data.qvel[dof_address : dof_address + 6] = 0.0
        mujoco.mj_fwdPosition(model, data)
        mujoco.mj_fwdVelocity(model, data)
        simulation.instant.mark_changed()


@dataclass(frozen=True, slots=True)
class PhysicsWorld:
    """Everything that belongs to one compilation; adding or removing a model makes a new one.

    ``engine`` and ``state`` are where kernels find the model and the data; ``rotation_trees`` see
    `free_rotation_trees`.
    """

    compiled: CompiledWorld
    data: mujoco.MjData
    servos: ServoBank
    contacts: ContactMonitor
    instant: LazyEvaluation
    surfaces: SurfaceTables
    compliant_bodies: CompliantBodyTable
    engine: EngineAddresses
    state: StateViews
    rotation_trees: NDArray[np.int32]

    @property
    def model(self) -> mujoco.MjModel:
        """The engine's model."""
        return self.compiled.model

    def evaluate(self, grasps: NDArray[np.float64] = NO_GRASPS) -> None:
        """Evaluate positions, velocities and contacts after the state was set from outside.

        ``grasps``: see `apply_grasp_forces`.
        """
        with self.instant.lock:
            step.evaluate_with_contact_modifiers(
                self.engine, self.surfaces.arrays, self.compliant_bodies.arrays, grasps
            )
            self.instant.mark_changed()

    def advance(self, steps: int, first_step: int, dt: float, grasps: NDArray[np.float64]) -> tuple[int, int]:
        """Take physics steps in one tight loop.

        Args:
            steps: How many are wanted.
            first_step: How many were taken since the start.
            dt: Step [s].
            grasps: See `apply_grasp_forces`.

        Returns:
            How many were taken, and why it ended (see `run_steps`).
        """
        tables = step.StepTables(
            self.servos.tables,
            self.contacts.tables,
            self.surfaces.arrays,
            self.compliant_bodies.arrays,
            self.rotation_trees,
        )
        n_steps, self.contacts.episode_count, end_reason = step.run_steps(
            self.engine, self.state, tables, grasps, self.contacts.episode_count, first_step, steps, dt
        )
        if end_reason == step.EPISODE_TABLE_FULL:
            self.contacts.grow_table()
        return n_steps, end_reason


def create_physics_world(
    compiled: CompiledWorld, settings: PhysicsSettings, time_ns: int, lock: RLock, previous: PhysicsWorld | None = None
) -> PhysicsWorld:
    """Run ``compiled`` from now on, with the state of what ``previous`` held too; ``lock``: see `LazyEvaluation`."""
    data = mujoco.MjData(compiled.model)
    servos = ServoBank.from_compiled(compiled)
    initialize_joints(compiled, data)
    compliant_bodies = CompliantBodyTable.from_compiled(compiled, data)
    if previous is not None:
        compliant_bodies.copy_from(previous.compliant_bodies)
        copy_state(previous.compiled, previous.data, compiled, data)
        servos.restore_from(previous.servos, compiled.model)
    contacts = ContactMonitor(compiled, settings.timestep_ns, previous.contacts if previous is not None else None)
    data.time = time_ns * 1e-9
    instant = LazyEvaluation(compiled.model, data, contacts.layout, lock)
    rotation_trees = free_rotation_trees(compiled.model)
    physics_world = PhysicsWorld(
        compiled,
        data,
        servos,
        contacts,
        instant,
        SurfaceTables.from_compiled(compiled),
        compliant_bodies,
        engine_addresses(compiled.model, data),
        state_views(compiled.model, data),
        rotation_trees,
    )
    physics_world.evaluate()
    return physics_world
