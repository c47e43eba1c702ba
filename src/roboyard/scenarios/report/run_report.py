"""Writes the report of a run from its folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from roboyard.description import World
from roboyard.errors import RecordingError, RoboyardError
from roboyard.evaluation.plugin import FloorPlanProvider
from roboyard.evaluation.robot_trace import RobotTrace, read_robot_trace
from roboyard.evaluation.section import ReportSection, SectionBuilder, SectionContext
from roboyard.evaluation.topics import RobotTopics
from roboyard.grids.floor_plan import TopDownMap
from roboyard.record import Recording, open_recording
from roboyard.scenarios.ground_truth import compare_depth_images
from roboyard.scenarios.run_folder import RunFolder
from roboyard.scenarios.world.free_space import top_down_map
from roboyard.simulation import Simulation
from roboyard.simulation.floor_plan import floor_plan

_WARN_LEVEL = 30
"""Level of rcl_interfaces/Log from which the report shows a line."""
_LEVELS = {30: "warn", 40: "error", 50: "fatal"}


def write_report(folder: RunFolder, world: World | Simulation | None = None) -> Path:
    """Write report.html from what lies in the folder; what is missing there is missing in the report.

    Args:
        folder: With metrics.json, and whatever else there is.
        world: For the floor plan; None: none is drawn.

    Returns:
        Its path.

    Raises:
        InputError: the folder holds no metrics, or they are damaged.
        RunError: the report cannot be written.
    """
    from roboyard.scenarios.report.page import render_page  # not before the run that is told of

    document = folder.read_metrics()
    traces: list[RobotTrace] = []
    log: list[tuple[float, str, str, str]] = []
    sections: list[ReportSection] = []
    top_down = _top_down_map(world)
    if folder.recording.is_file():
        try:
            with open_recording(folder.recording) as recording:
                traces = [
                    read_robot_trace(recording, name, robot["namespace"], robot["topics"])
                    for name, robot in document["robots"].items()
                ]
                log = _read_log(recording)
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
    """What the parts of the report have to show of each robot; what cannot be drawn is said in ``log``."""
    from roboyard.scenarios.report.sections import SECTION_BUILDERS

    sections: list[ReportSection] = []
    plan = _floor_plan_source(world)
    for trace, robot in zip(traces, robots.values(), strict=True):
        topics = RobotTopics.for_robot(trace.robot, robot["namespace"], robot["topics"])
        context = SectionContext(
            recording, trace, topics, top_down, plan, robot, world if isinstance(world, Simulation) else None
        )
        for section in filter(
            None, (_build_section(build_section, context, log) for build_section in SECTION_BUILDERS)
        ):
            title = f"{section.title}: {trace.robot}" if len(traces) > 1 else section.title
            sections.append(replace(section, title=title))
    return sections


def _build_section(
    build: SectionBuilder, context: SectionContext, log: list[tuple[float, str, str, str]]
) -> ReportSection | None:
    """A part of the report; None, and a line in ``log``, where messages of foreign nodes cannot be drawn."""
    try:
        return build(context)
    except RecordingError:
        raise
    except (RoboyardError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        log.append((0.0, "warn", "report", f"a part of the report of {context.trace.robot} cannot be drawn: {error}"))
        return None


def _top_down_map(world: World | Simulation | None) -> TopDownMap | None:
    if world is None:
        return None
    try:
        return top_down_map(world)
    except RoboyardError:  # a world that cannot be seen from above is no reason to have no report
        return None


def _floor_plan_source(world: World | Simulation | None) -> FloorPlanProvider | None:
    """Cuts of what stands still in the world."""
    if world is None:
        return None
    source = world.model if isinstance(world, Simulation) else world
    return lambda resolution: floor_plan(source, resolution=resolution)


def _read_log(recording: Recording) -> list[tuple[float, str, str, str]]:
    if "/rosout" not in recording.topics:
        return []
    entries: list[tuple[float, str, str, str]] = []
    for item in recording.messages(["/rosout"]):
        message: Any = item.message
        if message.level >= _WARN_LEVEL:
            entries.append((item.time_ns * 1e-9, _LEVELS.get(message.level, "error"), message.name, message.msg))
    return entries
