"""`Simulation`: a world with models in it, stepped exactly, read at any step, changed while it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from threading import RLock
from typing import TYPE_CHECKING, Any

import mujoco

from roboyard.compute import expect_kernels
from roboyard.description.model import Model, World
from roboyard.errors import InputError, RunError, UnknownNameError
from roboyard.geometry import SE3
from roboyard.hardware import BaseMotion, Hardware, VelocityBase
from roboyard.simulation import stepping
from roboyard.simulation.actuation import Servos
from roboyard.simulation.assembly import Entry, Flesh, Placement, assemble
from roboyard.simulation.base import SimulatedBase
from roboyard.simulation.contact_loop import contacts_with
from roboyard.simulation.contacts import ContactWatch, Episode
from roboyard.simulation.faults import FaultTable
from roboyard.simulation.flesh import FleshTables
from roboyard.simulation.friction import evaluate_on, look_ahead
from roboyard.simulation.handle import Handle
from roboyard.simulation.hardware import SimulatedHardware
from roboyard.simulation.holds import Holds
from roboyard.simulation.instant import Instant
from roboyard.simulation.looks import Looks
from roboyard.simulation.running import Running, start
from roboyard.simulation.scene import Scene
from roboyard.simulation.sensors import SimulatedSensor, make_sensor
from roboyard.simulation.settings import PhysicsSettings
from roboyard.simulation.stepping import run
from roboyard.simulation.truth import Truth, truth_of, velocity_of_body

if TYPE_CHECKING:
    from roboyard.simulation.render.opening import Backend
    from roboyard.simulation.sensors.cameras.studio import Studio

FAR = 1e6
"""Farther from the origin no model is put [m]: what the engine reckons with in the square loses its digits there."""


class Simulation:
    """A world of rigid bodies.

    The state after `step` is complete: positions, velocities and contacts belong to `time_ns`; what needs
    accelerations (inertial sensors, forces) is evaluated for that same moment when it is first read, and reading
    changes nothing that comes after.

    Args:
        world: Place and furniture.
        seed: Of all sensor noise; each sensor draws from a generator of its own that its names select.
        timestep: Physics step [s]; None takes the world's ``max_step_size`` if that is smaller than 2 ms, else 2 ms.
        settings: How the engine is set; ``timestep`` overrides its step.
        kinds: Sensor kinds besides the registered ones, by name.
        renderer: Of cameras: "gl", "rays", or "auto": OpenGL where it works.

    Attributes:
        faults: What is wrong at present: begin and end it here.
        holds: What led bodies hold.
        belts: Velocity of the surface of (model, link) in the link's frame [m/s]; see `move_surface`.

    Raises:
        DescriptionError: the world cannot be built.
        ConfigError: the step is out of range.
    """

    def __init__(
        self,
        world: World,
        seed: int = 0,
        timestep: float | None = None,
        settings: PhysicsSettings | None = None,
        kinds: Mapping[str, type[SimulatedSensor[Any]]] | None = None,
        renderer: Backend = "auto",
    ) -> None:
        expect_kernels(look_ahead, evaluate_on, run, contacts_with, velocity_of_body)
        base = settings or PhysicsSettings()
        step = timestep or min(base.timestep, world.physics.max_step_size or base.timestep)
        self.settings = base.with_timestep(step)
        self._timestep_ns = self.settings.timestep_ns  # asked for at every look at the clock
        self.world, self.seed = world, seed
        self._kinds, self._steps = dict(kinds or {}), 0
        self._entries = [Entry(item.name, item.model, item.T_world_model) for item in world.models]
        self._handles = {item.name: Handle(item.name, "", item.model) for item in world.models}
        self._hardware: dict[str, SimulatedHardware] = {}
        self._state = RLock()  # kernels let other threads run, and write where they might read
        self._bases: dict[str, SimulatedBase] = {}
        self._sensors: dict[str, tuple[SimulatedSensor[Any], ...]] = {}
        self.looks = Looks(renderer)
        self._listeners: list[Callable[[], None]] = []
        self._running: Running | None = None
        self.belts: dict[tuple[str, str], tuple[float, float, float]] = {}
        self.faults = FaultTable(self)
        self.holds = Holds(self)
        self._put(start(assemble(world, self._entries, self.settings), self.settings, 0, self._state))

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
        aloft: Iterable[str] = (),
        flesh: Mapping[str, Flesh] | None = None,
    ) -> Handle:
        """Put ``model`` into the world, also while it runs; everything else keeps its state to the last bit.

        ``robot`` says whether its truth is published; None: if it can act or sense.  ``base`` makes its body one that
        takes velocities (see `base`).  Contacts of the links ``aloft`` with the ground are episodes too.  A model with
        ``flesh`` goes where it is led (see `flesh`), and gives way.

        Raises:
            InputError: the name is taken, or empty; or the place is farther than `FAR`.
            DescriptionError: the engine refuses the model.  Whatever refuses it, the world is as it was.
        """
        name = name if name is not None else model.name
        if not name:
            raise InputError("a model needs a name")
        if T_world_model is not None and max(map(abs, T_world_model.xyz)) > FAR:
            raise InputError(
                f"model {name!r} at {tuple(map(float, T_world_model.xyz))}", valid=f"coordinates below {FAR:g} m"
            )
        if name in self._handles:
            raise InputError(f"there is already a model named {name!r}", valid=f"taken: {', '.join(self._handles)}")
        entry = Entry(name, model, T_world_model or SE3.identity(), base, frozenset(aloft), flesh)
        assembled = assemble(self.world, [*self._entries, entry], self.settings)
        before = self.running
        self._entries.append(entry)
        self._handles[name] = Handle(name, namespace, model, robot)
        try:
            self._put(start(assembled, self.settings, self.time_ns, self._state, before))
            self._tell()
        except Exception:  # a gain, a sensor, a topic's name that cannot be: as if it had never been asked for
            self._entries.remove(entry)
            del self._handles[name]
            for table in (self._hardware, self._bases, self._sensors):
                table.pop(name, None)
            self._put(before)
            self._tell()
            raise
        return self._handles[name]

    def adopt(
        self, name: str, namespace: str = "", *, base: BaseMotion | None = None, model: Model | None = None
    ) -> Handle:
        """Make a robot of a model that stands in the world already.

        ``base`` as in `add`; ``model`` is the same with other interfaces and gains.

        Raises:
            UnknownNameError: nothing is called so.
            DescriptionError: the engine refuses it.
        """
        self._known(name)
        index = next(i for i, entry in enumerate(self._entries) if entry.name == name)
        model = model or self._entries[index].model
        if base is not None or model is not self._entries[index].model:
            entries = list(self._entries)
            entries[index] = replace(entries[index], base=base, model=model)
            assembled = assemble(self.world, entries, self.settings)
            self._entries = entries
            self._put(start(assembled, self.settings, self.time_ns, self._state, self.running))
        self._handles[name] = replace(self._handles[name], namespace=namespace, model=model, robot=True)
        self._tell()
        return self._handles[name]

    def remove(self, name: str) -> None:
        """Take a model out; everything else keeps its state. Raises UnknownNameError."""
        self._known(name)
        entries = [entry for entry in self._entries if entry.name != name]
        assembled = assemble(self.world, entries, self.settings)
        self._entries = entries
        del self._handles[name]
        for table in (self._hardware, self._bases, self._sensors):
            table.pop(name, None)
        self.belts = {key: velocity for key, velocity in self.belts.items() if key[0] != name}
        self._put(start(assembled, self.settings, self.time_ns, self._state, self.running))
        self._tell()

    def on_models_changed(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Have ``callback()`` run after every `add` and `remove`; returns a function that takes it back."""
        self._listeners.append(callback)
        return lambda: self._listeners.remove(callback)

    @property
    def models(self) -> dict[str, Handle]:
        """All models by name, in the order they came."""
        return dict(self._handles)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the engine could not represent of the descriptions."""
        return self.running.assembled.notes

    # -- time ----------------------------------------------------------------------------------------------------------
    @property
    def time_ns(self) -> int:
        """Time of the present state [ns]."""
        return self._steps * self._timestep_ns

    @property
    def timestep_ns(self) -> int:
        """Physics step [ns]."""
        return self._timestep_ns

    def step(self, n: int = 1) -> None:
        """Take ``n`` physics steps.

        Raises:
            RunError: the state became infinite or the engine ran out of memory.
        """
        left, stride = n, self.faults.stride
        while left > 0:
            ahead = min(left, stride) if stride else left
            with self._state:
                done, why = self.running.advance(ahead, self._steps, self._timestep_ns * 1e-9, self.holds.table)
                self.set_steps(self._steps + done)
            left -= done
            if why == stepping.LOW_MEMORY:
                raise RunError(f"the physics engine is out of memory at {self.time_ns * 1e-9:.3f} s: too many contacts")
            elif why == stepping.DIVERGED:
                raise RunError(
                    f"the physics diverged at {self.time_ns * 1e-9:.3f} s (a position or speed became infinite)",
                    valid="smaller gains, a smaller timestep, or heavier links",
                )
            if stride:
                self.faults.look()

    def advance_to(self, time_ns: int) -> None:
        """Take the steps that end at or before ``time_ns``."""
        self.step(max(0, time_ns // self._timestep_ns - self._steps))

    def move_surface(self, name: str, link: str, velocity: tuple[float, float, float]) -> None:
        """Let the surface of a link that stands still move, as a conveyor belt's does.

        Args:
            name: The model.
            link: Its link.
            velocity: Of its surface, in the link's frame [m/s]; zero stops it.

        Raises:
            UnknownNameError: no such model; InputError: no such link, or it moves itself.
        """
        self._known(name)
        before = dict(self.belts)
        self.belts[(name, link)] = velocity
        try:
            self.faults.rebind(look=True)
        except InputError:
            self.belts = before
            raise

    # -- reading -------------------------------------------------------------------------------------------------------
    def hardware(self, name: str) -> Hardware:
        """The joints of a model, as control sees them. Raises UnknownNameError."""
        self._known(name)
        if name not in self._hardware:
            self._hardware[name] = SimulatedHardware(self, name)
        return self._hardware[name]

    def base(self, name: str) -> VelocityBase | None:
        """The body of a model that was added as a base, as control sees it; else None. Raises UnknownNameError."""
        self._known(name)
        return self._bases.get(name)

    def sensors(self, name: str) -> tuple[SimulatedSensor[Any], ...]:
        """The sensors of a model, those of kinds that this simulation knows. Raises UnknownNameError."""
        self._known(name)
        return self._sensors[name]

    def truth(self, name: str) -> Truth:
        """True pose, velocity and contacts of a model; from any thread, between two steps. Raises UnknownNameError."""
        with self._state:
            return truth_of(self, self.placement(name))

    def contact_episodes(self, name: str | None = None) -> tuple[Episode, ...]:
        """Times in which a model (or any) touched others. Raises UnknownNameError."""
        if name is not None:
            self._known(name)
        return self.running.watch.episodes(name)

    def placement(self, name: str) -> Placement:
        """Addresses of a model inside the engine. Raises UnknownNameError."""
        self._known(name)
        return self.running.assembled.placements[name]

    @property
    def running(self) -> Running:
        """The compiled world and its state; another object after every `add` and `remove`."""
        if self._running is None:
            raise RunError("the simulation is closed")
        return self._running

    @property
    def model(self) -> mujoco.MjModel:
        """The engine's model; another object after every `add` and `remove`."""
        return self.running.model

    @property
    def data(self) -> mujoco.MjData:
        """The engine's data; another object after every `add` and `remove`."""
        return self.running.data

    def scene(self) -> Scene:
        """The world as it looks now, for a renderer: ``scene.model``, ``scene.data``; lives until models change."""
        return self.looks.scene(self.world, self._entries, self.settings, self.data)

    @property
    def studio(self) -> Studio:
        """Where the cameras' pictures are made."""
        return self.looks.studio

    @property
    def instant(self) -> Instant:
        """Evaluates what the present has not been asked for yet."""
        return self.running.instant

    @property
    def flesh(self) -> FleshTables:
        """Models that are led, and give way: lead them here."""
        return self.running.flesh

    @property
    def servos(self) -> Servos:
        """State of all joint servos."""
        return self.running.servos

    @property
    def watch(self) -> ContactWatch:
        """Names of geoms, and the contact episodes."""
        return self.running.watch

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """The complete state as plain data; `load` continues from it bit for bit."""
        from roboyard.simulation.state import save

        return save(self)

    def load_state(self, saved: dict[str, Any]) -> None:
        """Go back to a saved state; the simulation must hold the same models.

        Raises:
            InputError: models or step differ.
        """
        from roboyard.simulation.state import load

        with self._state:
            load(self, saved)

    def set_steps(self, steps: int) -> None:
        """Set the clock of a state that has changed."""
        self._steps = steps
        self.data.time = self.time_ns * 1e-9  # the engine adds steps up, with rounding
        self.instant.moved()

    def close(self) -> None:
        """Let go of the engine's memory."""
        with self._state:
            self.looks.close()
            for table in (self._hardware, self._bases, self._sensors):
                table.clear()
            self._running = None

    # -- inside --------------------------------------------------------------------------------------------------------
    def _known(self, name: str) -> None:
        if name not in self._handles:
            raise UnknownNameError(f"no model named {name!r}", valid=f"models: {', '.join(self._handles) or 'none'}")

    def _put(self, running: Running) -> None:
        """Make ``running`` the world that runs, and have everything find its addresses there."""
        with self._state:
            self._running = running
            self.looks.forget()
            for name, placement in running.assembled.placements.items():
                if name not in self._sensors:
                    made = (make_sensor(self, name, sensor, self._kinds) for sensor in placement.entry.model.sensors)
                    self._sensors[name] = tuple(sensor for sensor in made if sensor is not None)
                for sensor in self._sensors[name]:
                    sensor.bind()
            for hardware in self._hardware.values():
                hardware.bind()
            self.holds.rebind()
            self.faults.rebind()
            self.bind_bases()

    def bind_bases(self) -> None:
        """Have the bases go on as their controls say (loading a state does)."""
        for name, placement in self.running.assembled.placements.items():
            if name in self._bases:
                self._bases[name].bind()
            elif (kind := placement.entry.base) is not None:
                self._bases[name] = SimulatedBase(self, name, kind)

    def _tell(self) -> None:
        for listener in tuple(self._listeners):
            listener()
