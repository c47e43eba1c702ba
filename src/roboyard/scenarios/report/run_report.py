"""Writes the report of a run from its folder."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from roboyard.description import World
from roboyard.errors import InputError, RecordingError, RoboyardError
from roboyard.evaluation.collector import MetricCollector, RobotContext
from roboyard.evaluation.message_checks import MessageChecker
from roboyard.evaluation.plugin import page_sections, robot_resources
from roboyard.evaluation.robot_trace import RobotTrace, read_robot_trace
from roboyard.evaluation.section import ReportSection, SectionBuilder, SectionContext
from roboyard.evaluation.topics import RobotTopics
from roboyard.grids.floor_plan import FloorPlan, TopDownMap
from roboyard.record import Recording, open_recording
from roboyard.scenarios.ground_truth import compare_depth_images
from roboyard.scenarios.report.scene_images import SceneImageRenderer
from roboyard.scenarios.run_folder import RunFolder
from roboyard.scenarios.world.free_space import top_down_map
from roboyard.simulation import Simulation
from roboyard.simulation.ground_truth_maps import make_floor_plan

CollectorT = TypeVar("CollectorT", bound=MetricCollector)

_WARN_LEVEL = 30
"""Level of rcl_interfaces/Log from which the report shows a line."""
_LEVELS = {30: "warn", 40: "error", 50: "fatal"}


def write_report(folder: RunFolder, world: World | Simulation | None = None) -> Path:
    """Write report.html from the files of a run folder and return its path; the report omits what is missing there.

    Args:
        folder: Run folder with metrics.json and whatever other files there are.
        world: World of the floor plan, at the end of a run its simulation; None: the floor plan is what the folder has.

    Raises:
        InputError: The folder holds no metrics, or they are damaged.
        RunError: The report cannot be written.
    """
    from roboyard.scenarios.report.page import render_page  # imported after the run, which needs no Jinja

    document = folder.read_metrics()
    traces: list[RobotTrace] = []
    log: list[tuple[float, str, str, str]] = []
    sections: list[ReportSection] = []
    top_down = None
    if folder.recording.is_file():
        try:
            with open_recording(folder.recording) as recording:
                top_down = _top_down_map(folder, world, (*document["robots"], *recorded_person_names(recording)), log)
                traces = [
                    read_robot_trace(recording, name, robot["namespace"], robot["topics"])
                    for name, robot in document["robots"].items()
                ]
                log += _read_log(recording)
                sections = _sections(recording, traces, document["robots"], top_down, world, log)
        except RecordingError as error:
            log.append((0.0, "error", "report", f"the recording cannot be read: {error}"))
    scenario = folder.scenario.read_text("utf-8") if folder.scenario.is_file() else ""
    video = folder.video.name if folder.video.is_file() else None
    depth_comparisons = compare_depth_images(world) if isinstance(world, Simulation) else []
    page = render_page(document, traces, top_down, sections, depth_comparisons, log=log, scenario=scenario, video=video)
    folder.write_text(folder.report, page)
    return folder.report


def _sections(
    recording: Recording,
    traces: list[RobotTrace],
    robots: dict[str, Any],
    top_down: TopDownMap | None,
    world: World | Simulation | None,
    log: list[tuple[float, str, str, str]],
) -> list[ReportSection]:
    """Build the sections of all robots in the order of the page; one that fails leaves a line in ``log``."""
    sections: list[ReportSection] = []
    people = recorded_person_names(recording)
    for trace, robot in zip(traces, robots.values(), strict=True):
        topics = RobotTopics.for_robot(trace.robot, robot["namespace"], robot["topics"])
        context = RobotContext(trace.robot, topics, resources=robot_resources())
        with _moment_renderer(world, recording, context, people) as render_moment:
            section_context = SectionContext(
                context, recording, trace, robot, RecordedCollectors(context, recording, people), top_down,
                _floor_plan_source(world), render_moment, people,
            )  # fmt: skip
            built = [_build_section(section.build, section_context, log) for section in page_sections()]
        for section in filter(None, built):
            title = f"{section.title}: {trace.robot}" if len(traces) > 1 else section.title
            sections.append(replace(section, title=title))
    return sections


def recorded_person_names(recording: Recording) -> tuple[str, ...]:
    """Return the names of the people whose true bodies were recorded."""
    topics = (topic for topic in recording.topics if topic.startswith("/truth/") and topic.endswith("/body"))
    return tuple(topic.split("/")[2] for topic in topics)


@contextmanager
def _moment_renderer(
    world: World | Simulation | None, recording: Recording, robot: RobotContext, people: tuple[str, ...]
) -> Iterator[Callable[[float, str, str], str] | None]:
    """Give what renders a moment beside a robot, made when it is needed; None without a simulation."""
    if not isinstance(world, Simulation):
        yield None
        return
    renderers: list[SceneImageRenderer] = []

    def render_moment(time: float, person: str, body_part: str) -> str:
        if not renderers:
            renderers.append(SceneImageRenderer(world, recording, robot.name, robot.namespace, people))
        return renderers[0].render_moment(time, person, body_part)

    try:
        yield render_moment
    finally:
        for renderer in renderers:
            renderer.close()


class RecordedCollectors:
    """Collectors of one robot that are evaluated over its recording, each once: a `CollectorLookup`.

    Args:
        robot: What is known of the robot without its simulation.
        recording: Open.
        people: Names of the people in it.
    """

    def __init__(self, robot: RobotContext, recording: Recording, people: tuple[str, ...]) -> None:
        self._robot, self._recording, self._people = robot, recording, people
        self._collectors: dict[type[MetricCollector], MetricCollector | None] = {}

    def __call__(self, collector_class: type[CollectorT]) -> CollectorT | None:
        """Return the collector of a class; None where the robot has none.

        Raises:
            RecordingError: The recording is damaged.
        """
        if collector_class not in self._collectors:
            self._collectors[collector_class] = self._evaluate(collector_class)
        collector = self._collectors[collector_class]
        return collector if isinstance(collector, collector_class) else None

    def _evaluate(self, collector_class: type[MetricCollector]) -> MetricCollector | None:
        collector = collector_class.create(self._robot)
        if collector is None:
            return None
        handlers = dict(collector.subscriptions())
        for person in self._people:
            handlers |= collector.on_person_added(person)
        checker = MessageChecker()
        checker.check_stamps(collector.truth_topics)
        topics = [topic for topic in handlers if topic in self._recording.topics]
        for item in self._recording.messages(topics) if topics else ():
            if checker.find_problem(item.topic, item.message, item.time_ns) is None:
                handlers[item.topic](item.message, item.time_ns)
        collector.finish(self._recording.end_ns)
        return collector


def _build_section(
    build: SectionBuilder, context: SectionContext, log: list[tuple[float, str, str, str]]
) -> ReportSection | None:
    """Build a section; None, and a line in ``log``, where messages of a user's node cannot be drawn."""
    try:
        return build(context)
    except RecordingError:
        raise
    except (RoboyardError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        text = f"a section of the report of {context.trace.robot} cannot be built: {error}"
        log.append((0.0, "warn", "report", text))
        return None


def _top_down_map(
    folder: RunFolder, world: World | Simulation | None, actors: Collection[str], log: list[tuple[float, str, str, str]]
) -> TopDownMap | None:
    """Return the world from above.

    A simulation's map also has what can move or came during the run, and is stored in the folder for later reports.
    Without a simulation it is the map in the folder, or that of the world's fixed obstacles; None without any.
    """
    if isinstance(world, Simulation):
        try:
            found = top_down_map(world, excluded_actors=actors)
        except RoboyardError:  # a world that cannot be seen from above is no reason to have no report
            return None
        folder.write_top_down_map(found)
        return found
    try:
        stored = folder.read_top_down_map()
    except InputError as error:
        stored = None
        log.append((0.0, "warn", "report", str(error)))
    if stored is not None or world is None:
        return stored
    try:
        return top_down_map(world)
    except RoboyardError:
        return None


def _floor_plan_source(world: World | Simulation | None) -> Callable[[float], FloorPlan] | None:
    """Return what cuts the fixed obstacles of the world, by the side of a cell [m]; None without a world."""
    if world is None:
        return None
    source = world.world.model if isinstance(world, Simulation) else world
    return lambda resolution: make_floor_plan(source, resolution=resolution)


def _read_log(recording: Recording) -> list[tuple[float, str, str, str]]:
    if "/rosout" not in recording.topics:
        return []
    entries: list[tuple[float, str, str, str]] = []
    for item in recording.messages(["/rosout"]):
        message: Any = item.message
        if message.level >= _WARN_LEVEL:
            entries.append((item.time_ns * 1e-9, _LEVELS.get(message.level, "error"), message.name, message.msg))
    return entries
