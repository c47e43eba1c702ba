"""From a run's folder to its report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from roboyard.description import World
from roboyard.errors import RecordingError, RoboyardError
from roboyard.record import Recording, open_recording
from roboyard.scenarios.depth_looks import look_again
from roboyard.scenarios.floor import Floor, floor_of
from roboyard.scenarios.metrics import RobotTopics
from roboyard.scenarios.metrics.mapping import Plan
from roboyard.scenarios.report.section import Part, Section, Source
from roboyard.scenarios.report.story import Story, read_story
from roboyard.scenarios.run_folder import RunFolder
from roboyard.simulation import Simulation
from roboyard.simulation.floor_plan import floor_plan

_WARN = 30
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
    from roboyard.scenarios.report.page import render  # not before the run that is told of

    document = folder.read_metrics()
    stories: list[Story] = []
    log: list[tuple[float, str, str, str]] = []
    sections: list[Section] = []
    floor = _floor(world)
    if folder.recording.is_file():
        try:
            with open_recording(folder.recording) as recording:
                stories = [
                    read_story(recording, name, robot["namespace"], robot["topics"])
                    for name, robot in document["robots"].items()
                ]
                log = _read_log(recording)
                sections = _sections(recording, stories, document["robots"], floor, world, log)
        except RecordingError as error:
            log.append((0.0, "error", "report", f"the recording cannot be read: {error}"))
    scenario = folder.scenario.read_text("utf-8") if folder.scenario.is_file() else ""
    video = folder.video.name if folder.video.is_file() else None
    looks = look_again(world) if isinstance(world, Simulation) else []
    page = render(document, stories, floor, sections, looks, log=log, scenario=scenario, video=video)
    folder.write_text(folder.report, page)
    return folder.report


def _sections(
    recording: Recording,
    stories: list[Story],
    robots: dict[str, Any],
    floor: Floor | None,
    world: World | Simulation | None,
    log: list[tuple[float, str, str, str]],
) -> list[Section]:
    """What the parts of the report have to show of each robot; what cannot be drawn is said in ``log``."""
    from roboyard.scenarios.report.parts import PARTS

    sections: list[Section] = []
    plan = _plan(world)
    for story, robot in zip(stories, robots.values(), strict=True):
        topics = RobotTopics.of(story.robot, robot["namespace"], robot["topics"])
        source = Source(recording, story, topics, floor, plan, robot, world if isinstance(world, Simulation) else None)
        for section in filter(None, (_drawn(part, source, log) for part in PARTS)):
            title = f"{section.title}: {story.robot}" if len(stories) > 1 else section.title
            sections.append(replace(section, title=title))
    return sections


def _drawn(part: Part, source: Source, log: list[tuple[float, str, str, str]]) -> Section | None:
    """A part of the report; None, and a line in ``log``, where messages of foreign nodes cannot be drawn."""
    try:
        return part(source)
    except RecordingError:
        raise
    except (RoboyardError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        log.append((0.0, "warn", "report", f"a part of the report of {source.story.robot} cannot be drawn: {error}"))
        return None


def _floor(world: World | Simulation | None) -> Floor | None:
    if world is None:
        return None
    try:
        return floor_of(world)
    except RoboyardError:  # a world that cannot be seen from above is no reason to have no report
        return None


def _plan(world: World | Simulation | None) -> Plan | None:
    """Cuts of what stands still in the world."""
    if world is None:
        return None
    source = world.model if isinstance(world, Simulation) else world
    return lambda resolution: floor_plan(source, resolution=resolution)


def _read_log(recording: Recording) -> list[tuple[float, str, str, str]]:
    if "/rosout" not in recording.topics:
        return []
    found: list[tuple[float, str, str, str]] = []
    for item in recording.messages(["/rosout"]):
        message: Any = item.message
        if message.level >= _WARN:
            found.append((item.time_ns * 1e-9, _LEVELS.get(message.level, "error"), message.name, message.msg))
    return found
