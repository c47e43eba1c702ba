"""`Simulation`: a world with models, stepped exactly, readable at each step, and changeable while it runs.

`Simulation` owns the `PhysicsWorld` and all parts that act on it: sensors, hardware, velocity bases, grasps, faults and
the renderer.  Each `Simulation.add` and `Simulation.remove` makes another world, to which `Simulation._install_world`
binds these parts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from roboyard.compute import expect_kernels
from roboyard.description.model import Model, World
from roboyard.errors import InputError, UnknownNameError
from roboyard.geometry import SE3
from roboyard.hardware import BaseMotion, Hardware, VelocityBase
from roboyard.physics.compiled_world import LinkCompliance, ModelEntry
from roboyard.physics.compiler.world import compile_world
from roboyard.physics.contacts import ContactEpisode
from roboyard.physics.grasps import GraspConstraints
from roboyard.physics.kernels.contacts import find_geom_contacts
from roboyard.physics.kernels.step import compute_accelerations, evaluate_with_contact_modifiers, run_steps
from roboyard.physics.settings import PhysicsSettings
from roboyard.physics.visual_scene import VisualScene
from roboyard.physics.world import GroundTruth, PhysicsWorld, body_velocity
from roboyard.sensors import SensorContext, SimulatedSensor, make_sensor
from roboyard.sensors.proprioception import EncoderReading, JointEncoder
from roboyard.simulation.faults import FaultManager
from roboyard.simulation.hardware import SimulatedHardware, SimulatedVelocityBase

if TYPE_CHECKING:
    from roboyard.rendering.backends import Backend
    from roboyard.sensors.cameras.render_thread import RenderThread

R = TypeVar("R")
S = TypeVar("S", bound=SimulatedSensor[Any])

MAX_COORDINATE = 1e6
"""Models are at most this far from the origin [m]: squares of larger coordinates lose digits."""
STATE_VERSION = 9


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """What a simulation needs to know of a model besides its description.

    Attributes:
        robot: Whether the model is a robot, whose ground truth is published; None: if it has sensors, interfaces, or
            joints and a plugin.
        base: Motion of the velocity base that its free root link becomes (see `Simulation.velocity_base`), or None.
        off_ground_links: Links whose contacts with the ground are contact episodes, such as an arm's.
        compliant_parts: Compliant parts by link, or None.  A model with compliant parts is kinematic:
            `PhysicsWorld.compliant_bodies` moves it, and contact forces displace its parts.

    Raises:
        InputError: There is no such motion of a base.
    """

    robot: bool | None = None
    base: BaseMotion | None = None
    off_ground_links: frozenset[str] = frozenset()
    compliant_parts: Mapping[str, LinkCompliance] | None = None

    def __post_init__(self) -> None:
        if self.base is not None and self.base not in get_args(BaseMotion):
            raise InputError(f"motion of a base {self.base!r}", valid=f"{', '.join(get_args(BaseMotion))} or None")


DEFAULT_MODEL_OPTIONS = ModelOptions()


class Simulation:
    """A physics world with simulated sensors, hardware, people's grasps and faults.

    The state after `step` is complete: positions, velocities and contacts belong to `time_ns`; accelerations and forces
    are evaluated for that same moment when they are first read, and reading changes no later step.

    Args:
        environment: Description of the world.
        seed: Seed of all sensor noise; each sensor has its own generator, seeded by its names.
        timestep: Physics step [s]; None: the world's ``max_step_size`` if that is smaller than 2 ms, else 2 ms.
        settings: Settings of the physics engine; ``timestep`` replaces theirs.
        sensor_kinds: Sensor kinds besides the registered ones, by name.
        renderer: Backend that renders the images of cameras: "gl", "rays", or "auto": OpenGL where it works.

    Attributes:
        faults: Starts and ends faults.
        grasps: Objects that people hold.
        surface_velocities: Velocity of the surface of (model, link) in the link's frame [m/s]; see
            `set_surface_velocity`.

    Raises:
        DescriptionError: MuJoCo rejects the world.
        ConfigError: The time step is out of range.
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
        self.environment, self.seed = environment, seed
        self._sensor_kinds = dict(sensor_kinds or {})
        self._entries = [ModelEntry(item.name, item.model, item.T_world_model) for item in environment.models]
        self._handles = {item.name: ModelHandle(item.name, "", item.model) for item in environment.models}
        self._hardware: dict[str, SimulatedHardware] = {}
        self._velocity_bases: dict[str, SimulatedVelocityBase] = {}
        self._sensors: dict[str, tuple[SimulatedSensor[Any], ...]] = {}
        self._listeners: list[Callable[[], None]] = []
        self.surface_velocities: dict[tuple[str, str], tuple[float, float, float]] = {}
        world = self._create_world(self._entries)
        self._world = world
        self._lock = world.lock
        self.renderer = SimulationRenderer(environment, self.settings, world, renderer)
        self.grasps = GraspConstraints(world)
        self.faults = FaultManager(seed, world, self._update_surfaces)
        self._install_world(world)

    # -- models --------------------------------------------------------------------------------------------------------
    def add(
        self,
        model: Model,
        name: str | None = None,
        T_world_model: SE3 | None = None,
        namespace: str = "",
        options: ModelOptions = DEFAULT_MODEL_OPTIONS,
    ) -> ModelHandle:
        """Add ``model`` to the world, also while the simulation runs; the state of everything else does not change.

        Args:
            model: Description of the model.
            name: Name of the model; None: the name of its description.
            T_world_model: Pose of the model; None: the world's origin.
            namespace: Namespace of the model's topics and frames.
            options: What the description does not say.

        Raises:
            InputError: The name is taken or empty, or the pose is farther than `MAX_COORDINATE` from the origin.
            UnknownNameError: The options name a link that the model does not have.
            DescriptionError: MuJoCo rejects the model; the world is then as it was.
        """
        name = name if name is not None else model.name
        if not name:
            raise InputError("the name of the model is empty", valid="a name")
        if T_world_model is not None and max(map(abs, T_world_model.xyz)) > MAX_COORDINATE:
            raise InputError(
                f"model {name!r} at {tuple(map(float, T_world_model.xyz))}",
                valid=f"coordinates below {MAX_COORDINATE:g} m",
            )
        if name in self._handles:
            raise InputError(f"there is already a model named {name!r}", valid=f"taken: {', '.join(self._handles)}")
        link_names = [link.name for link in model.links]
        unknown_links = {*options.off_ground_links, *(options.compliant_parts or ())} - set(link_names)
        if unknown_links:
            raise UnknownNameError(
                f"model {name!r} has no link {min(unknown_links)!r}", valid=f"links: {', '.join(link_names)}"
            )
        entry = ModelEntry(
            name,
            model,
            T_world_model or SE3.identity(),
            options.base,
            options.off_ground_links,
            options.compliant_parts,
        )
        previous_world = self.world
        world = self._create_world([*self._entries, entry], previous_world)
        self._entries.append(entry)
        self._handles[name] = ModelHandle(name, namespace, model, options.robot)
        try:
            self._install_world(world)
            self._notify_listeners()
        except Exception:  # an invalid sensor or topic name: the simulation is as before
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

        Args:
            name: Name of the model.
            namespace: Namespace of the robot's topics and frames.
            base: Velocities that the model's root link takes as commands; see `ModelOptions`.
            model: The same model with other interfaces and gains; None: as it is.

        Raises:
            UnknownNameError: no model has this name.
            DescriptionError: MuJoCo rejects the model.
        """
        self._check_model_exists(name)
        index = next(i for i, entry in enumerate(self._entries) if entry.name == name)
        model = model or self._entries[index].model
        if base is not None or model is not self._entries[index].model:
            entries = list(self._entries)
            entries[index] = replace(entries[index], base=base, model=model)
            world = self._create_world(entries, self.world)
            self._entries = entries
            self._install_world(world)
        self._handles[name] = replace(self._handles[name], namespace=namespace, model=model, robot=True)
        self._notify_listeners()
        return self._handles[name]

    def remove(self, name: str) -> None:
        """Remove a model; the state of everything else does not change. Raises UnknownNameError."""
        self._check_model_exists(name)
        entries = [entry for entry in self._entries if entry.name != name]
        world = self._create_world(entries, self.world)
        self._entries = entries
        del self._handles[name]
        for parts_by_model in (self._hardware, self._velocity_bases, self._sensors):
            parts_by_model.pop(name, None)
        self.surface_velocities = {key: velocity for key, velocity in self.surface_velocities.items() if key[0] != name}
        self._install_world(world)
        self._notify_listeners()

    def on_models_changed(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call ``callback()`` after every `add` and `remove`; return a function that ends this."""
        self._listeners.append(callback)
        return lambda: self._listeners.remove(callback)

    @property
    def models(self) -> dict[str, ModelHandle]:
        """All models by name, in the order in which they were added."""
        return dict(self._handles)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Parts of the descriptions that the physics, or the visual scene once it exists, cannot represent."""
        warnings = self.world.compiled.warnings
        return (*warnings, *(warning for warning in self.renderer.warnings if warning not in warnings))

    # -- time ----------------------------------------------------------------------------------------------------------
    @property
    def time_ns(self) -> int:
        """Time of the present state [ns]."""
        return self.world.time_ns

    @property
    def timestep_ns(self) -> int:
        """Physics step [ns]."""
        return self.settings.timestep_ns

    def step(self, n: int = 1) -> None:
        """Execute ``n`` physics steps.

        Raises:
            InputError: ``n`` is no whole number, or negative.
            RunError: The state became infinite, or MuJoCo ran out of memory.
        """
        if n < 0 or n % 1 != 0:
            raise InputError(f"{n!r} physics steps", valid="a whole number, 0 or more")
        sample_stride = self.faults.delayed_sample_stride
        if not sample_stride:
            self.world.step(n, self.grasps.table)
            return
        while n > 0:
            batch_steps = min(n, sample_stride)
            self.world.step(batch_steps, self.grasps.table)
            self.faults.sample_delayed_encoders()
            n -= batch_steps

    def advance_to(self, time_ns: int) -> None:
        """Execute the steps that end at or before ``time_ns`` [ns]."""
        self.step(max(0, time_ns // self.timestep_ns - self.world.step_count))

    def set_surface_velocity(self, name: str, link: str, velocity: tuple[float, float, float]) -> None:
        """Set the velocity of a static link's surface, such as a conveyor belt's.

        Args:
            name: Name of the model.
            link: Name of its link.
            velocity: Velocity of the surface, in the link's frame [m/s]; zero stops it.

        Raises:
            UnknownNameError: no model has this name.
            InputError: the model has no such link, or the link itself can move.
        """
        self._check_model_exists(name)
        previous_velocities = dict(self.surface_velocities)
        self.surface_velocities[(name, link)] = velocity
        try:
            self._update_surfaces()
        except InputError:
            self.surface_velocities = previous_velocities
            raise

    # -- reading -------------------------------------------------------------------------------------------------------
    def hardware(self, name: str) -> Hardware:
        """Return the hardware interface of a model's joints. Raises UnknownNameError."""
        self._check_model_exists(name)
        if name not in self._hardware:
            self._hardware[name] = SimulatedHardware(
                name, self.world, self._encoders(name), self._read_encoder, self._evaluate
            )
        return self._hardware[name]

    def velocity_base(self, name: str) -> VelocityBase | None:
        """Return the velocity base of a model, or None if it has none. Raises UnknownNameError."""
        self._check_model_exists(name)
        return self._velocity_bases.get(name)

    def sensors(self, name: str) -> tuple[SimulatedSensor[Any], ...]:
        """Return the sensors of a model whose kinds this simulation knows. Raises UnknownNameError."""
        self._check_model_exists(name)
        return self._sensors[name]

    def ground_truth(self, name: str) -> GroundTruth:
        """Return true pose, velocity and contacts of a model; callable from any thread. Raises UnknownNameError."""
        return self.world.ground_truth(name)

    def contact_episodes(self, name: str | None = None) -> tuple[ContactEpisode, ...]:
        """Return the contact episodes of a model, or of all models (None). Raises UnknownNameError."""
        if name is not None:
            self._check_model_exists(name)
        return self.world.contacts.episodes(name)

    @property
    def world(self) -> PhysicsWorld:
        """The compiled world and its state; another object after every `add` and `remove`."""
        return self._world

    def visual_scene(self) -> VisualScene:
        """The visual scene of the present state, for a renderer: ``scene.model``, ``scene.data``; valid until models
        change."""
        return self.renderer.visual_scene()

    @property
    def render_thread(self) -> RenderThread:
        """The thread that renders the images of cameras."""
        return self.renderer.render_thread

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """Return everything that the next steps depend on as plain data; `load_state` continues from it bit for bit.

        Readings that sensor faults store are not plain data: they are as the sensors return them.
        """
        return {
            "version": STATE_VERSION,
            "timestep_ns": self.timestep_ns,
            "models": list(self._handles),
            "world": self.world.save_state(),
            "sensors": {
                name: {sensor.sensor.name: sensor.save_state() for sensor in sensors}
                for name, sensors in self._sensors.items()
            },
            "surface_velocities": [[*key, *velocity] for key, velocity in self.surface_velocities.items()],
            "grasps": self.grasps.save_state(),
            "faults": self.faults.save_state(),
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Continue from `save_state`; a state that cannot be loaded changes nothing.

        Raises:
            InputError: The state belongs to other models, another time step or version, or parts of it are missing.
        """
        if not isinstance(saved, dict) or saved.get("version") != STATE_VERSION:
            saved_version = saved.get("version") if isinstance(saved, dict) else None
            raise InputError(f"saved state of version {saved_version!r}", valid=f"version {STATE_VERSION}")
        if saved.get("models") != list(self._handles):
            saved_models = ", ".join(map(str, saved.get("models") or ())) or "nothing"
            raise InputError(f"saved state of the models {saved_models}", valid=f"here are {', '.join(self._handles)}")
        if saved.get("timestep_ns") != self.timestep_ns:
            raise InputError(
                f"saved state with a step of {saved.get('timestep_ns')} ns", valid=f"{self.timestep_ns} ns"
            )
        with self._lock:
            previous_state = self.save_state()
            try:
                self._apply_state(saved)
            except (KeyError, ValueError, TypeError, AttributeError, IndexError) as error:
                self._apply_state(previous_state)
                reason = f"it has no {error}" if isinstance(error, KeyError) else str(error)
                raise InputError(f"saved state cannot be read: {reason}", valid="what save() gave") from None

    def _apply_state(self, saved: dict[str, Any]) -> None:
        self.world.load_state(saved["world"])
        self._bind_velocity_bases(self.world)
        self.surface_velocities = {(model, link): (x, y, z) for model, link, x, y, z in saved["surface_velocities"]}
        self.grasps.load_state(saved["grasps"])
        self.faults.load_state(saved["faults"])
        self._update_surfaces()
        for name, sensors in self._sensors.items():
            for sensor in sensors:
                sensor.load_state(saved["sensors"][name][sensor.sensor.name])

    def close(self) -> None:
        """Release the memory of the physics and of the renderer."""
        with self._lock:
            self.renderer.close()
            for parts_by_model in (self._hardware, self._velocity_bases, self._sensors):
                parts_by_model.clear()
            self._world.close()

    # -- inside --------------------------------------------------------------------------------------------------------
    def _check_model_exists(self, name: str) -> None:
        if name not in self._handles:
            raise UnknownNameError(f"no model named {name!r}", valid=f"models: {', '.join(self._handles) or 'none'}")

    def _create_world(self, entries: Sequence[ModelEntry], previous: PhysicsWorld | None = None) -> PhysicsWorld:
        """Compile these models; the state of all models in ``previous`` continues."""
        return PhysicsWorld(compile_world(self.environment, entries, self.settings), self.settings, previous)

    def _install_world(self, world: PhysicsWorld) -> None:
        """Run ``world`` from now on: bind all parts to it, each of which finds its addresses anew."""
        with self._lock:
            self._world = world
            self.renderer.bind(world)
            self._bind_sensors(world)
            for name, hardware in self._hardware.items():
                hardware.bind(world, self._encoders(name))
            self.grasps.bind(world)
            self.faults.bind(world, self._sensors)
            has_moving_surface = any(any(velocity) for velocity in self.surface_velocities.values())
            self._update_surfaces(evaluate=self.faults.has_changed_constraints or has_moving_surface)
            self._bind_velocity_bases(world)

    def _bind_sensors(self, world: PhysicsWorld) -> None:
        """Bind all sensors to the world; sensors of new models are created."""
        context = SensorContext(
            world, self.seed, self.environment, self.renderer, self._sensors_of_class, self.faults.is_powered
        )
        for name, addresses in world.compiled.addresses.items():
            if name not in self._sensors:
                created_sensors = (
                    make_sensor(context, name, sensor, self._sensor_kinds) for sensor in addresses.entry.model.sensors
                )
                self._sensors[name] = tuple(sensor for sensor in created_sensors if sensor is not None)
            for sensor in self._sensors[name]:
                sensor.bind(context)

    def _bind_velocity_bases(self, world: PhysicsWorld) -> None:
        """Bind the velocity bases to the world; they continue with the commands in its state."""
        for name, addresses in world.compiled.addresses.items():
            if name in self._velocity_bases:
                self._velocity_bases[name].bind(world)
            elif (base_motion := addresses.entry.base) is not None:
                self._velocity_bases[name] = SimulatedVelocityBase(name, base_motion, world)

    def _update_surfaces(self, *, evaluate: bool = True) -> None:
        """Give friction patches and surface velocities to the world, and evaluate it."""
        world = self.world
        world.surfaces.set_overrides(world.compiled, self.faults.friction_patches, self.surface_velocities)
        if evaluate:
            self._evaluate()

    def _evaluate(self) -> None:
        self.world.evaluate(self.grasps.table)

    def _sensors_of_class(self, sensor_class: type[S]) -> list[S]:
        """Sensors of a class, of all models."""
        return [sensor for sensors in self._sensors.values() for sensor in sensors if isinstance(sensor, sensor_class)]

    def _encoders(self, name: str) -> list[JointEncoder]:
        return [sensor for sensor in self._sensors[name] if isinstance(sensor, JointEncoder)]

    def _read_encoder(self, encoder: JointEncoder) -> EncoderReading:
        """The present reading of an encoder, or its last one where a fault silences it."""
        reading: EncoderReading = self.faults.read_through_faults(encoder, use_last_reading=True)
        return reading

    def _notify_listeners(self) -> None:
        for listener in tuple(self._listeners):
            listener()


@dataclass(frozen=True, slots=True)
class ModelHandle:
    """A model of a simulation: name, namespace on the bus, and description."""

    name: str
    namespace: str
    model: Model
    robot: bool | None = None

    @property
    def is_robot(self) -> bool:
        """Whether the model is a robot: ``robot`` if it is given, else if it can measure or act."""
        if self.robot is not None:
            return self.robot
        return bool(self.model.sensors or self.model.interfaces or (self.model.joints and self.model.plugins))


class SimulationRenderer:
    """The visual scene of a simulation and its render thread, both created on first use.

    Args:
        environment: Description of the world, for its lights and sky.
        settings: Settings of the engine.
        world: The world that is drawn, until `bind` names its successor.
        backend: The requested backend.

    Attributes:
        is_used: Whether an image was ever requested, also before a saved state that the run continues.
    """

    def __init__(self, environment: World, settings: PhysicsSettings, world: PhysicsWorld, backend: Backend) -> None:
        self._environment, self._settings, self._requested_backend = environment, settings, backend
        self._render_thread: RenderThread | None = None
        self.is_used = False
        self.bind(world)

    def bind(self, world: PhysicsWorld) -> None:
        """Draw ``world`` from now on (called when models change)."""
        self._world = world
        self._visual_scene: VisualScene | None = None

    def visual_scene(self) -> VisualScene:
        """The visual scene of the present state; valid until models change."""
        if self._visual_scene is None:
            entries = [addresses.entry for addresses in self._world.compiled.addresses.values()]
            self._visual_scene = VisualScene(self._environment, entries, self._settings)
        self._visual_scene.copy_poses(self._world.data)
        return self._visual_scene

    @property
    def warnings(self) -> tuple[str, ...]:
        """Parts of the descriptions that the visual scene cannot represent; empty until it exists."""
        return self._visual_scene.compiled.warnings if self._visual_scene is not None else ()

    def submit(self, work: Callable[..., R], *args: Any) -> Future[R]:
        """Execute ``work(worker, *args)`` in the render thread; see `RenderThread.submit`."""
        return self.render_thread.submit(work, *args)

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
        """Release the renderer and end its thread."""
        self._visual_scene = None
        if self._render_thread is not None:
            self._render_thread.close()
            self._render_thread = None
