"""A run: a world with robots and their nodes on one clock, from Python.

run = Run("arena", seed=7)
rover = run.add_robot("rover", pose=(0, 0, 0))
rover.drive(0.5, 0.2)
run.run_for(10)
print(rover.truth.pose)
run.report("runs/first")
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from roboyard.bringup import catalog
from roboyard.bringup.derivation import derive_package_from_model
from roboyard.bringup.joint_groups import RobotJoints
from roboyard.bringup.robot_config import RobotPackage
from roboyard.bringup.robot_loader import load_robot
from roboyard.bringup.robot_nodes import create_node
from roboyard.bus import Bus, Graph, Node, Publisher, graph
from roboyard.compute import wait_for_kernels
from roboyard.compute.wall_clock import wall_seconds
from roboyard.description import Model, World, load_model, load_world
from roboyard.description.extent import PoseLike, to_world_pose
from roboyard.errors import InputError, RoboyardError, RunError, UnknownNameError
from roboyard.evaluation.collector import GroundTruthProvider, MetricValue
from roboyard.geometry import SE2, SE3
from roboyard.grids.terrain import Terrain
from roboyard.people import BodyDimensions, make_person_model
from roboyard.people.actor_player import ActorPlayer
from roboyard.people.clip import AnimationClip
from roboyard.people.clip_library import read_clip
from roboyard.record import Recorder
from roboyard.scenarios.evaluator import Evaluator
from roboyard.scenarios.ground_truth import SimulatedGroundTruth
from roboyard.scenarios.nodes.ground_truth import GroundTruthMapNode
from roboyard.scenarios.provenance import collect_provenance
from roboyard.scenarios.result import (
    RunMeasurements,
    ScenarioHeader,
    build_metrics_document,
    cost_tables,
    frame_counts_to_dict,
)
from roboyard.scenarios.robot_handle import RobotHandle, robot_namespace
from roboyard.scenarios.run_folder import RunFolder, prepare_folder
from roboyard.scenarios.schema import RecordConfig
from roboyard.simulation import ModelOptions, Simulation
from roboyard.simulation.moving_devices import PLUGIN_FILENAME, read_moving_device
from roboyard.simulation.nodes import ActorNode, DeviceNode, PersonNode, SimulationNode

if TYPE_CHECKING:
    from roboyard.description.model import ActorScript
    from roboyard.scenarios.people import PersonConfig


class Run:
    """A world on a clock; a context manager.

    Args:
        world: A world's name, a path to .sdf, .world or .xml, or a ``World``.
        seed: Of every random generator.
        timestep: Of the physics [s]; None: the world's own, at most 2 ms.
        out: Folder of recording and report: new or empty.  None: a temporary folder; `report` moves its files into
            the report's folder, else they are removed at the end.
        record: What is recorded: topics to exclude and the rate of cameras' images; True: `RecordConfig` with its
            defaults; False: nothing.
        base_folder: Folder that relative paths are looked up in first.
        name: Of the run, in recording and report; None: the world's.

    Attributes:
        bus: Where all nodes talk.
        simulation: The physics.
        world: Its description.
        robots: By name, the first is the main one.
        all_robots: Those that were removed too.
        devices: What moves by itself, by name.
        people: Who is there, by name.
        terrain: Uneven ground that a scenario has laid; None without.
        objects: Names of what a scenario has laid out.
        ground_truth: The true state of its world, for evaluation only.
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
        record: bool | RecordConfig = True,
        base_folder: Path | None = None,
        name: str | None = None,
    ) -> None:
        self.base_folder = base_folder
        self.world = world if isinstance(world, World) else load_world(catalog.WORLDS.resolve(str(world), base_folder))
        self.name = name or self.world.name
        self.seed = seed
        self.simulation = Simulation(self.world, seed=seed, timestep=timestep)
        self.bus = Bus(seed=seed)
        self.robots: dict[str, RobotHandle] = {}
        self.all_robots: dict[str, RobotHandle] = {}
        self.objects: tuple[str, ...] = ()
        self.terrain: Terrain | None = None
        self.devices: dict[str, DeviceNode] = {}
        self.people: dict[str, PersonNode] = {}
        self.ground_truth: GroundTruthProvider = SimulatedGroundTruth(self.simulation, self.robots)
        self.evaluation = Evaluator(self.bus.log.warn)
        self.wall_seconds, self.start_ns, self._bridges = 0.0, 0, ExitStack()
        self.events: list[dict[str, Any]] = []
        self.folder: RunFolder | None = None
        self.graph: Graph | None = None
        self._temporary_folder: Path | None = None
        self.recorder: Recorder | None = None
        self._publishers: dict[str, Publisher] = {}
        self._is_closed = False
        self.bus.add_message_observer(self.evaluation.on_published)
        try:
            recorded = RecordConfig() if record is True else record or None
            if recorded is not None:
                self._start_recording(out, recorded.exclude_topics)
            camera_rate = 0.0 if recorded is None else recorded.camera_rate
            node = SimulationNode(simulation=self.simulation, camera_record_rate=camera_rate)
            self.simulation_node = self.bus.add(node, "simulation")
            for model_name, handle in self.simulation.models.items():
                if read_moving_device(handle.model) is not None:
                    self._start_device(model_name, handle.model)
            spawn_sdf_actors(self)
        except BaseException:
            self.close()
            raise

    def _start_recording(self, out: str | Path | None, exclude_topics: Sequence[str]) -> None:
        if out is None:
            self._temporary_folder = Path(tempfile.mkdtemp(prefix="roboyard-"))
        self.folder = RunFolder(self._temporary_folder) if self._temporary_folder else prepare_folder(out or "")
        metadata = collect_provenance().metadata() | {"run": self.name, "seed": str(self.seed)}
        self.recorder = Recorder(self.bus, self.folder.recording, exclude=exclude_topics, metadata=metadata)

    # -- what is in it -------------------------------------------------------------------------------------------------
    def add_robot(
        self,
        model: str | Path | Model | RobotPackage,
        name: str | None = None,
        *,
        pose: PoseLike = (0.0, 0.0, 0.0),
        namespace: str | None = None,
        nodes: str | Sequence[str] = "default",
        xacro_args: dict[str, str] | None = None,
        repair: bool = False,
        fixed_base: bool = False,
    ) -> RobotHandle:
        """Put a robot into the world and bring it up; also during the run.

        Args:
            model: A robot's name, a path to .yaml, .urdf, .xacro or .sdf, a ``Model`` or a ``RobotPackage``.
            name: In the run; None: the model's.
            pose: (x, y, yaw) or ``SE2``: standing on the ground; (x, y, z, roll, pitch, yaw) or ``SE3``: T_world_model
                as it is [m, rad].
            namespace: Of its topics; None: the root for the first robot, its own name for further ones.
            nodes: "default", "all", "none", or names of nodes that its package offers.
            xacro_args: For xacro.
            repair: Mend faults of the description that can be mended; ``handle.model.repairs`` lists each.
            fixed_base: Bolt it down where it is put: an arm whose description has no link ``world`` tips over
                otherwise.

        Raises:
            UnknownNameError: no such robot or node.
            DescriptionError, ConfigError: its files are not right.
            InputError: the name is taken.
        """
        if isinstance(model, Model):
            package = derive_package_from_model(model, model.source or Path(f"{model.name}.sdf"))
            description = model
        else:
            load = partial(load_robot, base_folder=self.base_folder, arguments=xacro_args, repair=repair)
            package = model if isinstance(model, RobotPackage) else load(str(model))
            description = package.load_model(xacro_args, repair=repair)
        if fixed_base:
            description = description.fixed_to_world()
        joints = RobotJoints.from_package(package, description)
        name = name or package.name
        if name in self.all_robots:
            raise InputError(f"there is or was already a robot {name!r}", valid="another name")
        node_names = package.select_nodes(nodes if isinstance(nodes, str) else tuple(nodes))
        namespace = robot_namespace(namespace, name, is_first=not self.robots)
        self.simulation.add(
            joints.model,
            name,
            to_world_pose(pose, description),
            namespace,
            ModelOptions(robot=True, base=package.config.base_motion, off_ground_links=joints.links_off_ground),
        )
        return self._start_robot(RobotHandle(self, name, namespace, joints, package), node_names)

    def activate_model(
        self, name: str, *, namespace: str | None = None, nodes: str | Sequence[str] = "default"
    ) -> RobotHandle:
        """Bring up a robot that stands in the world already, as its plugins say; see `add_robot`.

        Raises:
            UnknownNameError: the world has no such model, or the robot no such node.
            DescriptionError: its plugins make no sense.
            InputError: it is up already.
        """
        if name in self.all_robots:
            raise InputError(f"the robot {name!r} is up already", valid="another model of the world")
        handle = self.simulation.models.get(name)
        if handle is None:
            raise UnknownNameError(
                f"the world has no model {name!r}", valid=", ".join(self.simulation.models) or "none"
            )
        package = derive_package_from_model(
            handle.model, handle.model.source or self.world.source or Path(f"{name}.sdf")
        )
        node_names = package.select_nodes(nodes if isinstance(nodes, str) else tuple(nodes))
        namespace = robot_namespace(namespace, re.sub("[^A-Za-z0-9_]", "_", name), is_first=not self.robots)
        joints = RobotJoints.from_package(package, handle.model)
        self.simulation.register_robot(name, namespace, base=package.config.base_motion, model=joints.model)
        return self._start_robot(RobotHandle(self, name, namespace, joints, package), node_names)

    def has_robot(self, robot: RobotHandle) -> bool:
        """Whether the robot is in the run now."""
        return self.robots.get(robot.name) is robot

    def _start_robot(self, robot: RobotHandle, nodes: Sequence[str]) -> RobotHandle:
        self.robots[robot.name] = self.all_robots[robot.name] = robot
        self.evaluation.add_robot(robot.evaluation_context)
        robot.start_nodes(*nodes)
        for finding in robot.package.findings:
            self.bus.log.info(f"{robot.name}: {finding}")
        return robot

    def add_object(self, model: Model, name: str | None = None, pose: PoseLike = (0.0, 0.0, 0.0)) -> str:
        """Put an object without nodes into the world, and return its name."""
        return self.simulation.add(model, name, to_world_pose(pose, model), options=ModelOptions(robot=False)).name

    def add_device(
        self, model: str | Path | Model, name: str, pose: PoseLike = (0.0, 0.0, 0.0), initial_command: float = 0.0
    ) -> Node:
        """Put a moving device into the world: a conveyor belt, a door or a turntable.

        Args:
            model: Its name (``conveyor``, ``door``, ``sliding_door``, ``turntable``), a path to a file with such a
                plugin, or a ``Model``.
            name: In the run; its topics are ``/<name>/command`` and ``/<name>/state``.
            pose: As for robots.
            initial_command: First command: a belt's speed [m/s], a turntable's rate [rad/s], how far a door is open
                (0 to 1).

        Raises:
            UnknownNameError, InputError: there is no such device, the model has no moving device, or the name is taken.
            DescriptionError: its file is not right.
        """
        description = (
            model if isinstance(model, Model) else load_model(catalog.DEVICES.resolve(str(model), self.base_folder))
        )
        if read_moving_device(description) is None:
            raise InputError(
                f"model {description.name} has no moving device",
                location=name if isinstance(model, Model) else str(model),
                valid=f"a plugin {PLUGIN_FILENAME}",
            )
        self.add_object(description, name, pose)
        try:
            return self._start_device(name, description, initial_command)
        except BaseException:
            self.simulation.remove(name)
            raise

    def add_person(self, name: str, person: PersonConfig | None = None, **settings: Any) -> PersonNode:
        """Put a person into the world: a ``PersonEntry``, or its values by name. Raises as `people.add_person`."""
        from roboyard.scenarios import people

        return people.add_person(self, name, person or people.PersonConfig(**settings))

    def add_person_node(self, name: str, node: PersonNode) -> PersonNode:
        """Start the node of a person whose body is in the simulation, and evaluate the person from now on."""
        self.people[name] = self.bus.add(node, name)
        self.evaluation.add_person(name)
        return node

    def _start_device(self, name: str, model: Model, initial_command: float = 0.0) -> Node:
        device = read_moving_device(model)
        node = DeviceNode(simulation=self.simulation, device=device, model=name, initial_command=initial_command)
        self.devices[name] = self.bus.add(node, re.sub(r"[^A-Za-z0-9_]", "_", name))
        return node

    def remove(self, name: str) -> None:
        """Take a robot or thing out of the world.

        Raises:
            UnknownNameError: nothing is called so.
        """
        if name in self.robots and self.robots[name].nodes:
            self.robots[name].remove()
            return
        for nodes in (self.devices, self.people):
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
        instance = (
            node
            if isinstance(node, Node)
            else create_node(node, options.pop("parameters", {}), {}, base_folder=self.base_folder)
        )
        return self.bus.add(instance, name, namespace=namespace, **options)

    def publish(self, topic: str, message: Any) -> None:
        """Send a message on an absolute topic in the name of ``script``."""
        publisher = self._publishers.get(topic)
        if publisher is None:
            publisher = self._publishers[topic] = self.bus.publisher(topic, type(message), "/script")
        publisher.publish(message)

    def open_bridge(self, bridge: Callable[[Run], AbstractContextManager[object]]) -> object:
        """Open a bridge to others until the run ends; gives what opening gave."""
        return self._bridges.enter_context(bridge(self))

    # -- time ----------------------------------------------------------------------------------------------------------
    @property
    def time(self) -> float:
        """Simulated time [s]."""
        return self.bus.now_ns * 1e-9

    def run_for(self, duration: float) -> None:
        """Run that much simulated time.

        Raises:
            NodeError: a node failed; the recording up to there is complete.
        """
        self.advance_to(self.bus.now_ns + round(duration * 1e9))

    def run_until(self, predicate: Callable[[], bool], timeout: float) -> bool:
        """Run until ``predicate()`` holds, e.g. ``goal.done``, looked at whenever an instant is complete.

        Gives up after ``timeout`` [s of simulated time]; returns whether it held.
        """
        return self.advance_to(self.bus.now_ns + round(timeout * 1e9), predicate)

    def advance_to(self, time_ns: int, predicate: Callable[[], bool] | None = None) -> bool:
        """Run up to ``time_ns`` [ns]; see ``run_until``."""
        if self._is_closed:
            raise RunError("the run has ended", valid="a new Run")
        wait_for_kernels()
        start = wall_seconds()
        try:
            return self.bus.executor.run_until(time_ns, predicate)
        finally:
            self.wall_seconds += wall_seconds() - start

    # -- end -----------------------------------------------------------------------------------------------------------
    @property
    def n_recorded(self) -> int:
        """Messages recorded so far."""
        return self.recorder.count if self.recorder else 0

    def finish(self) -> None:
        """End recording and metrics; the run cannot continue, but the ground truth can still be read."""
        if self._is_closed:
            return
        self._is_closed = True
        self._bridges.close()
        self.evaluation.finish(self.bus.now_ns)
        self.graph = graph(self.bus)
        try:
            self.bus.close()
        finally:
            if self.recorder is not None:
                appearance = self.simulation.renderer  # only now is it known whether anything was drawn
                self.recorder.close({"renderer": appearance.backend} if appearance.is_used else None)

    # -- results -------------------------------------------------------------------------------------------------------
    def totals(self) -> dict[str, MetricValue]:
        """Return the metrics of the run as a whole so far; no real-time factor before time has passed."""
        wall = self.wall_seconds
        frame_counts = [
            counts for cameras in self.simulation_node.camera_frames().values() for counts in cameras.values()
        ]
        return {
            "sim_time": self.time,
            "wall_time": wall,
            **({"real_time_factor": (self.time - self.start_ns * 1e-9) / wall} if wall > 0.0 else {}),
            "messages": self.evaluation.messages,
            "frames_missed": sum(counts.dropped for counts in frame_counts),
        }

    def measure(self) -> RunMeasurements:
        """What metrics.json states about the finished run, its robots, messages, nodes and topics."""
        metrics, frames = self.evaluation.metrics_by_robot(), self.simulation_node.camera_frames()
        return RunMeasurements(
            totals=self.totals(),
            n_recorded=self.n_recorded,
            robots={
                name: self._measure_robot(robot, metrics[name], frames.get(name, {}))
                for name, robot in self.all_robots.items()
            },
            rejected=self.evaluation.rejected_messages(),
            events=self.events,
            costs=cost_tables(self.graph, self.wall_seconds),
            provenance=collect_provenance(
                self.simulation.renderer.backend if any(frames.values()) else "none"
            ).to_dict(),
        )

    def _measure_robot(
        self, robot: RobotHandle, metrics: Mapping[str, MetricValue], frames: Mapping[str, Any]
    ) -> dict[str, Any]:
        return {
            "model": robot.package.name,
            "namespace": robot.namespace,
            "topics": dict(robot.package.config.topics),
            "findings": list(robot.package.findings),
            "metrics": metrics,
            **self.evaluation.details(robot.name),
            "cameras": {camera: frame_counts_to_dict(counts) for camera, counts in frames.items()},
        }

    def report(self, folder: str | Path | None = None) -> Path:
        """End the run and write recording, metrics and report into ``folder`` (new or empty).

        Args:
            folder: None: the ``out`` of the constructor.

        Returns:
            The report's path.

        Raises:
            InputError: no folder was named, or it holds something.
        """
        from roboyard.scenarios.report import write_report  # the page's libraries load after the run

        report_folder = (
            prepare_folder(folder) if folder is not None else None if self._temporary_folder else self.folder
        )
        if report_folder is None:
            raise InputError("no folder for the report", valid='run.report("runs/first"), or Run(out=...)')
        self.finish()
        if self.folder is not None and report_folder.path != self.folder.path:
            for file in sorted(self.folder.path.iterdir()):  # the recording, and what nodes saved
                shutil.move(str(file), str(report_folder.path / file.name))
            self.folder = report_folder
        header = ScenarioHeader(name=self.name, world=self.world.name, seed=self.seed)
        report_folder.write_json(report_folder.metrics, build_metrics_document(header, self.measure()))
        return write_report(report_folder, world=self.simulation)

    def close(self) -> None:
        """End the run and let go of the physics; what was recorded without a place to stay is removed."""
        try:
            self.finish()
        finally:
            self.simulation.close()
            if self._temporary_folder is not None:
                shutil.rmtree(self._temporary_folder, ignore_errors=True)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *raised: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class SceneInfo:
    """What a viewer asks for.

    Attributes:
        robots: Names of the models that are robots, the main one first.
        people: Names of the models that are people.
        frames: Where frames lie in the world that are put there on purpose, as that of the true floor plan.
    """

    robots: tuple[str, ...]
    people: tuple[str, ...]
    frames: dict[str, SE3]


def scene_info(run: Run) -> SceneInfo:
    """Of a run as it stands now."""
    map_nodes = [node for node in run.bus.nodes.values() if isinstance(node, GroundTruthMapNode)]
    frames = {node.frame(node.config.map_frame): SE3.identity() for node in map_nodes}
    return SceneInfo(tuple(run.robots), tuple(person.config.model for person in run.people.values()), frames)


ACTOR_HEIGHT = 1.75
"""Of actors [m]."""


def spawn_sdf_actors(run: Run) -> None:
    """Have each actor of the run's world follow its script.

    An animation whose file is missing or broken is reported in the log and replaced by the built-in walk.
    """
    for name, handle in run.simulation.models.items():
        script = handle.model.actor_script
        if script is None:
            continue
        T_world_actor = run.simulation.ground_truth(name).T_world_base
        pose = SE2.from_se3(T_world_actor)
        body = make_person_model(BodyDimensions.from_height(ACTOR_HEIGHT), name)
        run.simulation.remove(name)
        run.simulation.add(
            body.model, name, pose.to_se3(), options=ModelOptions(robot=False, compliant_parts=body.compliant_parts)
        )
        actor_player = ActorPlayer(
            body.skeleton, script, _load_actor_clips(run, name, script), (pose.x, pose.y, pose.theta)
        )
        node = ActorNode(simulation=run.simulation, actor_player=actor_player, model=name)
        run.bus.add(node, re.sub(r"[^A-Za-z0-9_]", "_", name))


def _load_actor_clips(run: Run, actor: str, script: ActorScript) -> dict[str, AnimationClip]:
    clips = {}
    for clip in script.clips:
        if clip.file is None:
            continue
        try:
            clips[clip.name] = read_clip(clip.file)
        except RoboyardError as error:
            run.bus.log.warn(f"actor {actor}, animation {clip.name!r}: {error}")
    return clips
