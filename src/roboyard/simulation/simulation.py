"""`Simulation`: a world with models, stepped exactly, readable at each step, and changeable while it runs.

Also the handle of a model, the visual scene and render thread of a simulation (both created on first use), and the
complete state of
a simulation as plain data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from threading import RLock
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np

from roboyard.compute import expect_kernels
from roboyard.description.model import Model, World
from roboyard.errors import InputError, RunError, UnknownNameError
from roboyard.geometry import SE3
from roboyard.hardware import BaseMotion, Hardware, VelocityBase
from roboyard.physics.compiled_world import CompliantPart, ModelAddresses, ModelEntry
from roboyard.physics.compiler.world import compile_world
from roboyard.physics.compliant_bodies import CompliantBodyTable
from roboyard.physics.contacts import ContactEpisode, ContactMonitor
from roboyard.physics.grasps import GraspConstraints
from roboyard.physics.kernels import servos as servo_kernels
from roboyard.physics.kernels import step
from roboyard.physics.kernels.contacts import find_geom_contacts
from roboyard.physics.kernels.step import compute_accelerations, evaluate_with_contact_modifiers, run_steps
from roboyard.physics.servos import ServoBank
from roboyard.physics.settings import PhysicsSettings
from roboyard.physics.visual_scene import VisualScene
from roboyard.physics.world import (
    GroundTruth,
    LazyEvaluation,
    PhysicsWorld,
    body_velocity,
    create_physics_world,
    model_ground_truth,
)
from roboyard.sensors import SimulatedSensor, make_sensor
from roboyard.simulation.faults import FaultManager
from roboyard.simulation.hardware import SimulatedHardware, SimulatedVelocityBase

if TYPE_CHECKING:
    from roboyard.rendering.backends import Backend
    from roboyard.sensors.cameras.render_thread import RenderThread


MAX_COORDINATE = 1e6
"""Farther from the origin no model is put [m]: what the engine reckons with in the square loses its digits there."""


class Simulation:
    """A world of rigid bodies.

    The state after `step` is complete: positions, velocities and contacts belong to `time_ns`; what needs
    accelerations (inertial sensors, forces) is evaluated for that same moment when it is first read, and reading
    changes nothing that comes after.

    Args:
        environment: Description of the world.
        seed: Of all sensor noise; each sensor has its own generator, seeded by its names.
        timestep: Physics step [s]; None takes the world's ``max_step_size`` if that is smaller than 2 ms, else 2 ms.
        settings: How the engine is set; ``timestep`` overrides its step.
        sensor_kinds: Sensor kinds besides the registered ones, by name.
        renderer: Of cameras: "gl", "rays", or "auto": OpenGL where it works.

    Attributes:
        faults: The active faults; it starts and ends them.
        grasps: Objects that people hold.
        surface_velocities: Velocity of the surface of (model, link) in the link's frame [m/s]; see
            `set_surface_velocity`.

    Raises:
        DescriptionError: the world cannot be built.
        ConfigError: the step is out of range.
    """

    def __init__(
        self,
        environment: World,
        seed: int = 0,
        timestep: float | None = None,
        settings: PhysicsSettings | None = None,
        sensor_kinds: Mapping[str, type[SimulatedSensor[Any]]] | None = None,
        renderer: Backend = "auto",
    ) -> None:
        expect_kernels(
            compute_accelerations, evaluate_with_contact_modifiers, run_steps, find_geom_contacts, body_velocity
        )
        base_settings = settings or PhysicsSettings()
        effective_timestep = timestep or min(
            base_settings.timestep, environment.physics.max_step_size or base_settings.timestep
        )
        self.settings = base_settings.with_timestep(effective_timestep)
        self._timestep_ns = self.settings.timestep_ns  # asked for at every look at the clock
        self.environment, self.seed = environment, seed
        self._sensor_kinds, self._step_count = dict(sensor_kinds or {}), 0
        self._entries = [ModelEntry(item.name, item.model, item.T_world_model) for item in environment.models]
        self._handles = {item.name: ModelHandle(item.name, "", item.model) for item in environment.models}
        self._hardware: dict[str, SimulatedHardware] = {}
        self._lock = RLock()  # kernels let other threads run, and write where they might read
        self._velocity_bases: dict[str, SimulatedVelocityBase] = {}
        self._sensors: dict[str, tuple[SimulatedSensor[Any], ...]] = {}
        self.renderer = SimulationRenderer(renderer)
        self._listeners: list[Callable[[], None]] = []
        self._world: PhysicsWorld | None = None
        self.surface_velocities: dict[tuple[str, str], tuple[float, float, float]] = {}
        self.faults = FaultManager(self)
        self.grasps = GraspConstraints(self)
        self._install_world(
            create_physics_world(compile_world(environment, self._entries, self.settings), self.settings, 0, self._lock)
        )

    # -- models --------------------------------------------------------------------------------------------------------
    def add(
        self,
        model: Model,
        name: str | None = None,
        T_world_model: SE3 | None = None,
        namespace: str = "",
        *,
        robot: bool | None = None,
        base: BaseMotion | None = None,
        off_ground_links: Iterable[str] = (),
        compliant_parts: Mapping[str, CompliantPart] | None = None,
    ) -> ModelHandle:
        """Put ``model`` into the world, also while it runs; everything else keeps its state to the last bit.

        ``robot`` says whether its truth is published; None: if it can act or sense.  ``base`` makes its body one that
        takes velocities (see `velocity_base`).  Contacts of the links ``off_ground_links`` with the ground are
        episodes too.  A model with
        ``compliant_parts`` is kinematic: `compliant_bodies` moves it, and contact forces displace it.

        Raises:
            InputError: the name is taken, or empty; or the place is farther than `FAR`.
            DescriptionError: the engine refuses the model.  Whatever refuses it, the world is as it was.
        """
        name = name if name is not None else model.name
        if not name:
            raise InputError("a model needs a name")
        if T_world_model is not None and max(map(abs, T_world_model.xyz)) > MAX_COORDINATE:
            raise InputError(
                f"model {name!r} at {tuple(map(float, T_world_model.xyz))}",
                valid=f"coordinates below {MAX_COORDINATE:g} m",
            )
        if name in self._handles:
            raise InputError(f"there is already a model named {name!r}", valid=f"taken: {', '.join(self._handles)}")
        entry = ModelEntry(
            name, model, T_world_model or SE3.identity(), base, frozenset(off_ground_links), compliant_parts
        )
        compiled_world = compile_world(self.environment, [*self._entries, entry], self.settings)
        previous_world = self.world
        self._entries.append(entry)
        self._handles[name] = ModelHandle(name, namespace, model, robot)
        try:
            self._install_world(
                create_physics_world(compiled_world, self.settings, self.time_ns, self._lock, previous_world)
            )
            self._notify_listeners()
        except Exception:  # a gain, a sensor, a topic's name that cannot be: as if it had never been asked for
            self._entries.remove(entry)
            del self._handles[name]
            for parts_by_model in (self._hardware, self._velocity_bases, self._sensors):
                parts_by_model.pop(name, None)
            self._install_world(previous_world)
            self._notify_listeners()
            raise
        return self._handles[name]

    def register_robot(
        self, name: str, namespace: str = "", *, base: BaseMotion | None = None, model: Model | None = None
    ) -> ModelHandle:
        """Register a model of the world as a robot.

        ``base`` as in `add`; ``model`` is the same with other interfaces and gains.

        Raises:
            UnknownNameError: nothing is called so.
            DescriptionError: the engine refuses it.
        """
        self._check_model_exists(name)
        index = next(i for i, entry in enumerate(self._entries) if entry.name == name)
        model = model or self._entries[index].model
        if base is not None or model is not self._entries[index].model:
            entries = list(self._entries)
            entries[index] = replace(entries[index], base=base, model=model)
            compiled_world = compile_world(self.environment, entries, self.settings)
            self._entries = entries
            self._install_world(
                create_physics_world(compiled_world, self.settings, self.time_ns, self._lock, self.world)
            )
        self._handles[name] = replace(self._handles[name], namespace=namespace, model=model, robot=True)
        self._notify_listeners()
        return self._handles[name]

    def remove(self, name: str) -> None:
        """Remove a model; everything else keeps its state. Raises UnknownNameError."""
        self._check_model_exists(name)
        entries = [entry for entry in self._entries if entry.name != name]
        compiled_world = compile_world(self.environment, entries, self.settings)
        self._entries = entries
        del self._handles[name]
        for parts_by_model in (self._hardware, self._velocity_bases, self._sensors):
            parts_by_model.pop(name, None)
        self.surface_velocities = {key: velocity for key, velocity in self.surface_velocities.items() if key[0] != name}
        self._install_world(create_physics_world(compiled_world, self.settings, self.time_ns, self._lock, self.world))
        self._notify_listeners()

    def on_models_changed(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Have ``callback()`` run after every `add` and `remove`; returns a function that takes it back."""
        self._listeners.append(callback)
        return lambda: self._listeners.remove(callback)

    @property
    def models(self) -> dict[str, ModelHandle]:
        """All models by name, in the order they came."""
        return dict(self._handles)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Parts of the descriptions that the physics cannot represent."""
        return self.world.compiled.warnings

    # -- time ----------------------------------------------------------------------------------------------------------
    @property
    def time_ns(self) -> int:
        """Time of the present state [ns]."""
        return self._step_count * self._timestep_ns

    @property
    def timestep_ns(self) -> int:
        """Physics step [ns]."""
        return self._timestep_ns

    def step(self, n: int = 1) -> None:
        """Take ``n`` physics steps.

        Raises:
            RunError: the state became infinite or the engine ran out of memory.
        """
        remaining_steps, sample_stride = n, self.faults.delayed_sample_stride
        while remaining_steps > 0:
            batch_steps = min(remaining_steps, sample_stride) if sample_stride else remaining_steps
            with self._lock:
                steps_taken, stop_reason = self.world.advance(
                    batch_steps, self._step_count, self._timestep_ns * 1e-9, self.grasps.table
                )
                self.set_step_count(self._step_count + steps_taken)
            remaining_steps -= steps_taken
            if stop_reason == step.LOW_MEMORY:
                raise RunError(f"the physics engine is out of memory at {self.time_ns * 1e-9:.3f} s: too many contacts")
            elif stop_reason == step.DIVERGED:
                raise RunError(
                    f"the physics diverged at {self.time_ns * 1e-9:.3f} s (a position or speed became infinite)",
                    valid="smaller gains, a smaller timestep, or heavier links",
                )
            if sample_stride:
                self.faults.sample_delayed_encoders()

    def advance_to(self, time_ns: int) -> None:
        """Take the steps that end at or before ``time_ns``."""
        self.step(max(0, time_ns // self._timestep_ns - self._step_count))

    def set_surface_velocity(self, name: str, link: str, velocity: tuple[float, float, float]) -> None:
        """Set the velocity of a static link's surface, such as a conveyor belt's.

        Args:
            name: The model.
            link: Its link.
            velocity: Of its surface, in the link's frame [m/s]; zero stops it.

        Raises:
            UnknownNameError: no such model; InputError: no such link, or it moves itself.
        """
        self._check_model_exists(name)
        previous_velocities = dict(self.surface_velocities)
        self.surface_velocities[(name, link)] = velocity
        try:
            self.faults.bind(evaluate=True)
        except InputError:
            self.surface_velocities = previous_velocities
            raise

    # -- reading -------------------------------------------------------------------------------------------------------
    def hardware(self, name: str) -> Hardware:
        """The joints of a model, as control sees them. Raises UnknownNameError."""
        self._check_model_exists(name)
        if name not in self._hardware:
            self._hardware[name] = SimulatedHardware(self, name)
        return self._hardware[name]

    def velocity_base(self, name: str) -> VelocityBase | None:
        """The body of a model that was added as a base, as control sees it; else None. Raises UnknownNameError."""
        self._check_model_exists(name)
        return self._velocity_bases.get(name)

    def sensors(self, name: str) -> tuple[SimulatedSensor[Any], ...]:
        """The sensors of a model, those of kinds that this simulation knows. Raises UnknownNameError."""
        self._check_model_exists(name)
        return self._sensors[name]

    def ground_truth(self, name: str) -> GroundTruth:
        """True pose, velocity and contacts of a model; from any thread, between two steps. Raises UnknownNameError."""
        with self._lock:
            return model_ground_truth(self, self.addresses(name))

    def contact_episodes(self, name: str | None = None) -> tuple[ContactEpisode, ...]:
        """Times in which a model (or any) touched others. Raises UnknownNameError."""
        if name is not None:
            self._check_model_exists(name)
        return self.world.contacts.episodes(name)

    def addresses(self, name: str) -> ModelAddresses:
        """Addresses of a model inside the engine. Raises UnknownNameError."""
        self._check_model_exists(name)
        return self.world.compiled.addresses[name]

    @property
    def world(self) -> PhysicsWorld:
        """The compiled world and its state; another object after every `add` and `remove`."""
        if self._world is None:
            raise RunError("the simulation is closed")
        return self._world

    @property
    def model(self) -> mujoco.MjModel:
        """The engine's model; another object after every `add` and `remove`."""
        return self.world.model

    @property
    def data(self) -> mujoco.MjData:
        """The engine's data; another object after every `add` and `remove`."""
        return self.world.data

    def visual_scene(self) -> VisualScene:
        """The visual scene of the present state, for a renderer: ``scene.model``, ``scene.data``; valid until models
        change."""
        return self.renderer.visual_scene(self.environment, self._entries, self.settings, self.data)

    @property
    def render_thread(self) -> RenderThread:
        """The thread that renders the images of cameras."""
        return self.renderer.render_thread

    @property
    def instant(self) -> LazyEvaluation:
        """Evaluates the accelerations of the present state on first use."""
        return self.world.instant

    @property
    def compliant_bodies(self) -> CompliantBodyTable:
        """Compliant kinematic bodies, such as people's: their motion is set here."""
        return self.world.compliant_bodies

    @property
    def servos(self) -> ServoBank:
        """State of all joint servos."""
        return self.world.servos

    @property
    def contacts(self) -> ContactMonitor:
        """Names of geoms, and the contact episodes."""
        return self.world.contacts

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """The complete state as plain data; `load_state` continues from it bit for bit."""
        return collect_state(self)

    def load_state(self, saved: dict[str, Any]) -> None:
        """Go back to a saved state; the simulation must hold the same models.

        Raises:
            InputError: models or step differ.
        """
        with self._lock:
            restore_state(self, saved)

    def set_step_count(self, step_count: int) -> None:
        """Set the clock of a state that has changed."""
        self._step_count = step_count
        self.data.time = self.time_ns * 1e-9  # the engine adds steps up, with rounding
        self.instant.mark_changed()

    def close(self) -> None:
        """Free the memory of the physics and of the renderer."""
        with self._lock:
            self.renderer.close()
            for parts_by_model in (self._hardware, self._velocity_bases, self._sensors):
                parts_by_model.clear()
            self._world = None

    # -- inside --------------------------------------------------------------------------------------------------------
    def _check_model_exists(self, name: str) -> None:
        if name not in self._handles:
            raise UnknownNameError(f"no model named {name!r}", valid=f"models: {', '.join(self._handles) or 'none'}")

    def _install_world(self, world: PhysicsWorld) -> None:
        """Make ``world`` the world that runs, and bind everything to its addresses."""
        with self._lock:
            self._world = world
            self.renderer.discard_scene()
            for name, addresses in world.compiled.addresses.items():
                if name not in self._sensors:
                    created_sensors = (
                        make_sensor(self, name, sensor, self._sensor_kinds) for sensor in addresses.entry.model.sensors
                    )
                    self._sensors[name] = tuple(sensor for sensor in created_sensors if sensor is not None)
                for sensor in self._sensors[name]:
                    sensor.bind()
            for hardware in self._hardware.values():
                hardware.bind()
            self.grasps.bind()
            self.faults.bind()
            self.bind_velocity_bases()

    def bind_velocity_bases(self) -> None:
        """Bind the velocity bases to the world; they continue with the commands in its state (loading a state calls
        this)."""
        for name, addresses in self.world.compiled.addresses.items():
            if name in self._velocity_bases:
                self._velocity_bases[name].bind()
            elif (base_motion := addresses.entry.base) is not None:
                self._velocity_bases[name] = SimulatedVelocityBase(self, name, base_motion)

    def _notify_listeners(self) -> None:
        for listener in tuple(self._listeners):
            listener()


@dataclass(frozen=True, slots=True)
class ModelHandle:
    """A model that was added: its name, its namespace on the bus, its description."""

    name: str
    namespace: str
    model: Model
    robot: bool | None = None

    @property
    def is_robot(self) -> bool:
        """Whether it counts as a robot: as said, else if it has sensors, or joints with an interface or a plugin."""
        if self.robot is not None:
            return self.robot
        return bool(self.model.sensors or self.model.interfaces or (self.model.joints and self.model.plugins))


class SimulationRenderer:
    """The visual scene of a simulation and its render thread, both created on first use.

    Args:
        backend: The requested one.
    """

    def __init__(self, backend: Backend) -> None:
        self._requested_backend = backend
        self._visual_scene: VisualScene | None = None
        self._render_thread: RenderThread | None = None
        self.is_used = False
        """Whether an image was ever requested, also before a saved state that the run continues."""

    def visual_scene(
        self, environment: World, entries: Sequence[ModelEntry], settings: PhysicsSettings, data: mujoco.MjData
    ) -> VisualScene:
        """The visual scene, posed like ``data``; compiled anew after `discard_scene`."""
        if self._visual_scene is None:
            self._visual_scene = VisualScene(environment, entries, settings)
        self._visual_scene.copy_poses(data)
        return self._visual_scene

    def discard_scene(self) -> None:
        """Discard the visual scene: the models have changed."""
        self._visual_scene = None

    @property
    def render_thread(self) -> RenderThread:
        """The thread that renders images."""
        if self._render_thread is None:
            from roboyard.sensors.cameras.render_thread import RenderThread

            self._render_thread = RenderThread(self._requested_backend)
            self.is_used = True
        return self._render_thread

    @property
    def backend(self) -> str:
        """The backend in use: "gl" or "rays". Raises ConfigError where "gl" was requested and does not work."""
        from roboyard.rendering.backends import resolve_backend

        return resolve_backend(self._requested_backend)

    def close(self) -> None:
        """Free both."""
        self._visual_scene = None
        if self._render_thread is not None:
            self._render_thread.close()
            self._render_thread = None


STATE_VERSION = 6
_STATE_SIGNATURE = int(mujoco.mjtState.mjSTATE_INTEGRATION)


def collect_state(simulation: Simulation) -> dict[str, Any]:
    """Everything that the next steps depend on: the states of physics, servos and sensors, past contacts, faults.

    Plain data, except for readings that faults of sensors hold back, which are as sensors give them.
    """
    model, data = simulation.model, simulation.data
    physics = np.zeros(mujoco.mj_stateSize(model, _STATE_SIGNATURE))
    mujoco.mj_getState(model, data, physics, _STATE_SIGNATURE)
    servos = simulation.servos
    return {
        "version": STATE_VERSION,
        "timestep_ns": simulation.timestep_ns,
        "models": list(simulation.models),
        "steps": simulation.time_ns // simulation.timestep_ns,
        "physics": physics.tolist(),
        "servo_modes": servos.ints[:, servo_kernels.MODE].tolist(),
        "servos": servos.floats.tolist(),
        "contact_episodes": [list(astuple(episode)) for episode in simulation.contact_episodes()],
        "sensors": {
            name: {sensor.sensor.name: sensor.save_state() for sensor in simulation.sensors(name)}
            for name in simulation.models
        },
        "surface_velocities": [[*key, *velocity] for key, velocity in simulation.surface_velocities.items()],
        "compliant_bodies": simulation.compliant_bodies.save_state(),
        "grasps": simulation.grasps.save_state(),
        "faults": simulation.faults.save_state(),
    }


def restore_state(simulation: Simulation, saved: dict[str, Any]) -> None:
    """Continue from `collect_state`; a state that cannot be loaded changes nothing.

    Raises:
        InputError: the state belongs to other models, another step, or another version, or parts of it are missing.
    """
    if not isinstance(saved, dict) or saved.get("version") != STATE_VERSION:
        saved_version = saved.get("version") if isinstance(saved, dict) else None
        raise InputError(f"saved state of version {saved_version!r}", valid=f"version {STATE_VERSION}")
    if saved.get("models") != list(simulation.models):
        saved_models = ", ".join(map(str, saved.get("models") or ())) or "nothing"
        raise InputError(f"saved state of the models {saved_models}", valid=f"here are {', '.join(simulation.models)}")
    if saved.get("timestep_ns") != simulation.timestep_ns:
        raise InputError(
            f"saved state with a step of {saved.get('timestep_ns')} ns", valid=f"{simulation.timestep_ns} ns"
        )
    previous_state = collect_state(simulation)
    try:
        _apply_state(simulation, saved)
    except (KeyError, ValueError, TypeError, AttributeError, IndexError) as error:
        _apply_state(simulation, previous_state)
        reason = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise InputError(f"saved state cannot be read: {reason}", valid="what save() gave") from None


def _apply_state(simulation: Simulation, saved: dict[str, Any]) -> None:
    model, data = simulation.model, simulation.data
    physics = np.array(saved["physics"], float)
    if len(physics) != mujoco.mj_stateSize(model, _STATE_SIGNATURE):
        raise ValueError("its models are of another build")
    mujoco.mj_setState(model, data, physics, _STATE_SIGNATURE)
    servos = simulation.servos
    servos.ints[:, servo_kernels.MODE] = saved["servo_modes"]
    servos.floats[:] = np.array(saved["servos"], float).reshape(servos.floats.shape)
    for servo in servos.servos.values():
        servos.apply_gains(servo, model)
    simulation.bind_velocity_bases()
    simulation.set_step_count(int(saved["steps"]))
    simulation.surface_velocities = {(model, link): (x, y, z) for model, link, x, y, z in saved["surface_velocities"]}
    simulation.compliant_bodies.load_state(saved["compliant_bodies"])
    simulation.grasps.load_state(saved["grasps"])
    simulation.faults.load_state(saved["faults"])
    simulation.world.evaluate(simulation.grasps.table)
    simulation.contacts.restore_episodes(tuple(ContactEpisode(*values) for values in saved["contact_episodes"]))
    for name in simulation.models:
        for sensor in simulation.sensors(name):
            sensor.load_state(saved["sensors"][name][sensor.sensor.name])
