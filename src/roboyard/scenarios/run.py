"""A run: a world with robots and their nodes on one clock, from Python.

run = Run("arena", seed=7)
rover = run.add("rover", at=(0, 0, 0))
rover.drive(0.5, 0.2)
run.run_for(10)
print(rover.truth.pose)
run.report("runs/first")
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from roboyard.bus import Bus, Graph, Node, Publisher, graph
from roboyard.compute import wait_for_kernels
from roboyard.compute.wall_clock import wall_seconds
from roboyard.description import Model, World, load_model, load_world
from roboyard.errors import InputError, RunError, UnknownNameError
from roboyard.grids.terrain import Terrain
from roboyard.record import Recorder
from roboyard.scenarios import catalog
from roboyard.scenarios.actors import bring_to_life
from roboyard.scenarios.bringup import package_of
from roboyard.scenarios.depth_looks import depth_seen
from roboyard.scenarios.metrics import Evaluation
from roboyard.scenarios.node_factory import make_node
from roboyard.scenarios.places import Place, place
from roboyard.scenarios.provenance import provenance
from roboyard.scenarios.robot_groups import KnownJoints
from roboyard.scenarios.robot_handle import RobotHandle
from roboyard.scenarios.robot_package import RobotPackage
from roboyard.scenarios.run_folder import RunFolder, given_folder
from roboyard.scenarios.true_shapes import TrueShapes
from roboyard.simulation import Simulation
from roboyard.simulation.furniture import FILENAME, furniture_of
from roboyard.simulation.nodes import FurnitureNode, PersonNode, SimulationNode

if TYPE_CHECKING:
    from roboyard.scenarios.people import PersonEntry


class Run:
    """A world on a clock; a context manager.

    Args:
        world: A world's name, a path to .sdf, .world or .xml, or a ``World``.
        seed: Of every random generator.
        timestep: Of the physics [s]; None: the world's own, at most 2 ms.
        out: Folder for recording and report: new or empty.  None: kept only if ``report`` is told where.
        record: False records nothing.
        exclude: Topics not to record; patterns as ``/truth/*``.
        cameras: Compressed pictures of each camera that are recorded a second [Hz]; 0: none.
        base: Folder that relative paths are looked up in first.
        name: Of the run, in recording and report; None: the world's.

    Attributes:
        bus: Where all nodes talk.
        simulation: The physics.
        world: Its description.
        robots: By name, the first is the main one.
        known_robots: Those that were removed too.
        furniture: What moves by itself, by name.
        people: Who is there, by name.
        terrain: Uneven ground that a scenario has laid; None without.
        things: Names of what a scenario has laid out.
        evaluation: Its metrics so far.
        events: What happened to it from outside: faults that began and ended, things that came and went.
        folder: Where the recording lies; None if nothing is recorded.
        recorder: Writes the recording; None if nothing is recorded.
        start_ns: Where the clock began: zero, or where a saved state stood [ns].
        graph: Nodes, topics and what they cost, once it has ended.
        wall_seconds: Wall time spent running so far.

    Raises:
        UnknownNameError, InputError: there is no such world, or ``out`` is not empty.
        DescriptionError: the world cannot be read or built.
        RecordingError, RunError: the recording cannot be written.
    """

    def __init__(
        self,
        world: str | Path | World,
        *,
        seed: int = 0,
        timestep: float | None = None,
        out: str | Path | None = None,
        record: bool = True,
        exclude: Sequence[str] = (),
        cameras: float = 2.0,
        base: Path | None = None,
        name: str | None = None,
    ) -> None:
        self.base = base
        self.world = world if isinstance(world, World) else load_world(catalog.find("world", str(world), base))
        self.name = name or self.world.name
        self.seed = seed
        self.simulation = Simulation(self.world, seed=seed, timestep=timestep)
        self.bus = Bus(seed=seed)
        self.robots: dict[str, RobotHandle] = {}
        self.known_robots: dict[str, RobotHandle] = {}
        self.things: tuple[str, ...] = ()
        self.terrain: Terrain | None = None
        self.furniture: dict[str, FurnitureNode] = {}
        self.people: dict[str, PersonNode] = {}
        self.evaluation = Evaluation(self.bus.log.warn)
        self.wall_seconds, self.start_ns, self._attached = 0.0, 0, ExitStack()
        self.events: list[dict[str, Any]] = []
        self.folder: RunFolder | None = None
        self.graph: Graph | None = None
        self._temporary: Path | None = None
        self.recorder: Recorder | None = None
        self._publishers: dict[str, Publisher] = {}
        self._closed = False
        self.bus.add_message_observer(self.evaluation.tap)
        try:
            if record:
                self._record(out, exclude)
            node = SimulationNode(simulation=self.simulation, record_cameras=cameras if record else 0.0)
            self.simulation_node = self.bus.add(node, "simulation")
            for name_of, handle in self.simulation.models.items():
                if furniture_of(handle.model) is not None:
                    self._bring_up(name_of, handle.model)
            bring_to_life(self)
        except BaseException:
            self.close()
            raise

    def _record(self, out: str | Path | None, exclude: Sequence[str]) -> None:
        if out is None:
            self._temporary = Path(tempfile.mkdtemp(prefix="roboyard-"))
        self.folder = RunFolder(self._temporary) if self._temporary else given_folder(out or "")
        metadata = provenance().metadata() | {"run": self.name, "seed": str(self.seed)}
        self.recorder = Recorder(self.bus, self.folder.recording, exclude=exclude, metadata=metadata)

    # -- what is in it -------------------------------------------------------------------------------------------------
    def add(
        self,
        model: str | Path | Model | RobotPackage,
        name: str | None = None,
        *,
        at: Place = (0.0, 0.0, 0.0),
        namespace: str | None = None,
        nodes: str | Sequence[str] = "default",
        arguments: dict[str, str] | None = None,
        repair: bool = False,
        fixed: bool = False,
    ) -> RobotHandle:
        """Put a robot into the world and bring it up; also while the run goes on.

        Args:
            model: A robot's name, a path to .yaml, .urdf, .xacro or .sdf, a ``Model`` or a ``RobotPackage``.
            name: In the run; None: the model's.
            at: (x, y, yaw) or ``SE2``: standing on the ground; (x, y, z, roll, pitch, yaw) or ``SE3``: T_world_model
                as it is [m, rad].
            namespace: Of its topics; None: the root for the first robot, its own name for further ones.
            nodes: "default", "all", "none", or names of nodes that its package offers.
            arguments: For xacro.
            repair: Mend faults of the description that can be mended; ``handle.model.repairs`` lists each.
            fixed: Bolt it down where it is put: an arm whose description has no link ``world`` tips over otherwise.

        Raises:
            UnknownNameError: no such robot or node.
            DescriptionError, ConfigError: its files are not right.
            InputError: the name is taken.
        """
        if isinstance(model, Model):
            package = package_of(model, model.source or Path(f"{model.name}.sdf"))
            description = model
        else:
            find = partial(catalog.find_robot, base=self.base, arguments=arguments, repair=repair)
            package = model if isinstance(model, RobotPackage) else find(str(model))
            description = package.load_model(arguments, repair=repair)
        if fixed:
            description = description.fixed_to_world()
        joints = KnownJoints.of(package, description)
        name = name or package.name
        if name in self.known_robots:
            raise InputError(f"there is or was already a robot {name!r}", valid="another name")
        chosen = package.select(nodes if isinstance(nodes, str) else tuple(nodes))
        namespace = self._namespace(namespace, name)
        self.simulation.add(
            joints.model, name, place(at, description), namespace, robot=True, base=package.file.base,
            aloft=joints.aloft,
        )  # fmt: skip
        return self._robot(RobotHandle(self, name, namespace, joints, package), chosen)

    def wake(self, name: str, *, namespace: str | None = None, nodes: str | Sequence[str] = "default") -> RobotHandle:
        """Bring up a robot that stands in the world already, as its plugins say; see `add`.

        Raises:
            UnknownNameError: the world has no such model, or the robot no such node.
            DescriptionError: its plugins make no sense.
            InputError: it is up already.
        """
        if name in self.known_robots:
            raise InputError(f"the robot {name!r} is up already", valid="another model of the world")
        handle = self.simulation.models.get(name)
        if handle is None:
            raise UnknownNameError(
                f"the world has no model {name!r}", valid=", ".join(self.simulation.models) or "none"
            )
        package = package_of(handle.model, handle.model.source or self.world.source or Path(f"{name}.sdf"))
        chosen = package.select(nodes if isinstance(nodes, str) else tuple(nodes))
        namespace = self._namespace(namespace, re.sub("[^A-Za-z0-9_]", "_", name))
        joints = KnownJoints.of(package, handle.model)
        self.simulation.adopt(name, namespace, base=package.file.base, model=joints.model)
        return self._robot(RobotHandle(self, name, namespace, joints, package), chosen)

    def _namespace(self, given: str | None, name: str) -> str:
        """Of a robot's topics: as given, else the root for the first robot, its own name for further ones."""
        said = given if given is not None else name if self.robots else ""
        return f"/{said.strip('/')}" if said.strip("/") else ""

    def _robot(self, robot: RobotHandle, nodes: Sequence[str]) -> RobotHandle:
        self.robots[robot.name] = self.known_robots[robot.name] = robot
        shapes = TrueShapes(self.simulation, self.robots)
        plan, seen = partial(shapes.plan, robot.scan_height), partial(depth_seen, self.simulation, robot.name)
        about = robot.true_arm, robot.legged
        self.evaluation.add_robot(robot.name, robot.topics, plan, robot.outline, shapes.surfaces, seen, *about)
        robot.bring_up(*nodes)
        for finding in robot.package.findings:
            self.bus.log.info(f"{robot.name}: {finding}")
        return robot

    def add_object(self, model: Model, name: str | None = None, at: Place = (0.0, 0.0, 0.0)) -> str:
        """Put a thing without nodes into the world; gives its name."""
        return self.simulation.add(model, name, place(at, model), robot=False).name

    def add_furniture(
        self, model: str | Path | Model, name: str, at: Place = (0.0, 0.0, 0.0), start: float = 0.0
    ) -> Node:
        """Put furniture that moves into the world: a conveyor belt, a door, a turntable.

        Args:
            model: Its name (``conveyor``, ``door``, ``sliding_door``, ``turntable``), a path to a file with such a
                plugin, or a ``Model``.
            name: In the run; its topics are ``/<name>/command`` and ``/<name>/state``.
            at: As for robots.
            start: First command: a belt's speed [m/s], a turntable's rate [rad/s], how far a door is open (0 to 1).

        Raises:
            UnknownNameError, InputError: there is no such furniture, nothing of the model moves, or the name is taken.
            DescriptionError: its file is not right.
        """
        made = model if isinstance(model, Model) else load_model(catalog.find_furniture(str(model), self.base))
        if furniture_of(made) is None:
            raise InputError(f"nothing of {made.name} moves", location=str(model), valid=f"a plugin {FILENAME}")
        self.add_object(made, name, at)
        try:
            return self._bring_up(name, made, start)
        except BaseException:
            self.simulation.remove(name)
            raise

    def add_person(self, name: str, person: PersonEntry | None = None, **said: Any) -> PersonNode:
        """Put somebody into the world: a ``PersonEntry``, or its values by name. Raises as `people.add_person`."""
        from roboyard.scenarios import people

        return people.add_person(self, name, person or people.PersonEntry(**said))

    def _bring_up(self, name: str, model: Model, start: float = 0.0) -> Node:
        moving = furniture_of(model)
        node = FurnitureNode(simulation=self.simulation, furniture=moving, model=name, start=start)
        self.furniture[name] = self.bus.add(node, re.sub(r"[^A-Za-z0-9_]", "_", name))
        return node

    def remove(self, name: str) -> None:
        """Take a robot or thing out of the world.

        Raises:
            UnknownNameError: nothing is called so.
        """
        if name in self.robots and self.robots[name].nodes:
            self.robots[name].remove()
            return
        for nodes in (self.furniture, self.people):
            if name in nodes:
                self.bus.remove(nodes.pop(name))
        self.simulation.remove(name)
        self.robots.pop(name, None)

    def resources(self) -> dict[str, Any]:
        """What nodes that belong to no robot may be handed, by name."""
        folder = {} if self.folder is None else {"run_folder": self.folder.path}
        return {"simulation": self.simulation, "world": self.world, **folder}

    def add_node(self, node: Node | str, name: str, *, namespace: str = "", **options: Any) -> Node:
        """Start a node that belongs to no robot: one made already, or ``module:Class`` or ``file.py:Class``."""
        made = node if isinstance(node, Node) else make_node(node, options.pop("parameters", {}), {}, base=self.base)
        return self.bus.add(made, name, namespace=namespace, **options)

    def publish(self, topic: str, message: Any) -> None:
        """Send a message on an absolute topic in the name of ``script``."""
        publisher = self._publishers.get(topic)
        if publisher is None:
            publisher = self._publishers[topic] = self.bus.publisher(topic, type(message), "/script")
        publisher.publish(message)

    def attach(self, make: Callable[[Run], AbstractContextManager[object]]) -> object:
        """Open a bridge to others until the run ends; gives what opening gave."""
        return self._attached.enter_context(make(self))

    # -- time ----------------------------------------------------------------------------------------------------------
    @property
    def time(self) -> float:
        """Simulated time [s]."""
        return self.bus.now_ns * 1e-9

    def run_for(self, seconds: float) -> None:
        """Run that much simulated time.

        Raises:
            NodeError: a node failed; the recording up to there is complete.
        """
        self.advance(self.bus.now_ns + round(seconds * 1e9))

    def until(self, predicate: Callable[[], bool], timeout: float) -> bool:
        """Run until ``predicate()`` holds, e.g. ``goal.done``, looked at whenever an instant is complete.

        Gives up after ``timeout`` [s of simulated time]; returns whether it held.
        """
        return self.advance(self.bus.now_ns + round(timeout * 1e9), predicate)

    def advance(self, time_ns: int, until: Callable[[], bool] | None = None) -> bool:
        """Run up to ``time_ns`` [ns]; see ``until``."""
        if self._closed:
            raise RunError("the run has ended", valid="a new Run")
        wait_for_kernels()
        start = wall_seconds()
        try:
            return self.bus.executor.run_until(time_ns, until)
        finally:
            self.wall_seconds += wall_seconds() - start

    # -- end -----------------------------------------------------------------------------------------------------------
    @property
    def recorded(self) -> int:
        """Messages recorded so far."""
        return self.recorder.count if self.recorder else 0

    def finish(self) -> None:
        """End recording and metrics; the run cannot go on, but truth can still be read."""
        if self._closed:
            return
        self._closed = True
        self._attached.close()
        self.evaluation.finish(self.bus.now_ns)
        self.graph = graph(self.bus)
        try:
            self.bus.close()
        finally:
            if self.recorder is not None:
                appearance = self.simulation.looks  # only now is it known whether anything was drawn
                self.recorder.close({"renderer": appearance.renderer} if appearance.used else None)

    def report(self, folder: str | Path | None = None) -> Path:
        """End the run and write recording, metrics and report into ``folder`` (new or empty).

        Args:
            folder: None: the ``out`` of the constructor.

        Returns:
            The report's path.

        Raises:
            InputError: no folder was named, or it holds something.
        """
        from roboyard.scenarios.outcome import write_script_report

        target = given_folder(folder) if folder is not None else None if self._temporary else self.folder
        if target is None:
            raise InputError("no folder for the report", valid='run.report("runs/first"), or Run(out=...)')
        self.finish()
        if self.folder is not None and target.path != self.folder.path:
            for file in sorted(self.folder.path.iterdir()):  # the recording, and what nodes saved
                shutil.move(str(file), str(target.path / file.name))
            self.folder = target
        return write_script_report(self, target)

    def close(self) -> None:
        """End the run and let go of the physics; what was recorded without a place to stay is removed."""
        try:
            self.finish()
        finally:
            self.simulation.close()
            if self._temporary is not None:
                shutil.rmtree(self._temporary, ignore_errors=True)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *raised: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()
