"""A report made again from a run's folder: after an update of Roboyard, or for a run whose process was killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from roboyard.config import load, read_yaml
from roboyard.description import World, load_world
from roboyard.errors import InputError, RoboyardError
from roboyard.record import open_recording
from roboyard.scenarios.catalog import find, find_robot
from roboyard.scenarios.document import criterion
from roboyard.scenarios.expressions import Verdict
from roboyard.scenarios.faults.agenda import events_by
from roboyard.scenarios.metrics import Evaluation, RobotTopics
from roboyard.scenarios.metrics.walking import Legged
from roboyard.scenarios.report import write_report
from roboyard.scenarios.robot_legs import legs_of
from roboyard.scenarios.run_folder import RunFolder
from roboyard.scenarios.schema import RobotEntry, Scenario


def rewrite_report(path: str | Path) -> Path:
    """Write report.html of a run anew.

    Where metrics.json is missing because the process was killed, the metrics are computed again from the recording.

    Args:
        path: The run's folder.

    Returns:
        The report's path.

    Raises:
        InputError: it is not the folder of a run.
        RecordingError: its recording cannot be read.
    """
    folder = RunFolder(Path(path))
    if not folder.path.is_dir():
        raise InputError(f"there is no folder {path}", valid="the folder of a run, e.g. runs/rover-drive-001")
    scenario = _scenario(folder)
    if not folder.metrics.is_file():
        if scenario is None or not folder.recording.is_file():
            raise InputError(f"{path} is not the folder of a run", valid="one with metrics.json or recording.mcap")
        folder.write_json(folder.metrics, _document(folder, scenario))
    return write_report(folder, world=_world(scenario))


def _scenario(folder: RunFolder) -> Scenario | None:
    return load(Scenario, folder.scenario) if folder.scenario.is_file() else None


def _world(scenario: Scenario | None) -> World | None:
    if scenario is None:
        return None
    try:
        return load_world(find("world", scenario.world))
    except RoboyardError:  # moved since: the report goes without a floor plan
        return None


def _topics(entry: RobotEntry) -> dict[str, str]:
    """Standard names that lie elsewhere with this robot; none if its files are gone."""
    try:
        return dict(find_robot(entry.model, arguments=entry.arguments, repair=entry.repair).file.topics)
    except RoboyardError:
        return {}


def _legged(entry: RobotEntry) -> Legged | None:
    """Legs and motors of a robot; None if it has none, or its files are gone."""
    try:
        package = find_robot(entry.model, arguments=entry.arguments, repair=entry.repair, calibrated=False)
        model = package.load_model(entry.arguments, repair=entry.repair)
        legs = legs_of(package, model)
    except RoboyardError:
        return None
    return None if legs is None else Legged.of(legs, model)


def _document(folder: RunFolder, scenario: Scenario) -> dict[str, Any]:
    """What metrics.json would have said, as far as the recording tells."""
    about = read_yaml(folder.scenario).to_data().get("run", {})
    evaluation = Evaluation()
    namespaces: dict[str, str] = {}
    topics: dict[str, dict[str, str]] = {}
    legged: dict[str, Legged | None] = {}
    for index, (name, entry) in enumerate(scenario.robots.items()):
        given = entry.namespace if entry.namespace is not None else ("" if index == 0 else name)
        namespaces[name] = f"/{given.strip('/')}" if given.strip("/") else ""
        topics[name] = _topics(entry)
        legged[name] = _legged(entry)
        evaluation.add_robot(name, RobotTopics.of(name, namespaces[name], topics[name]), legs=legged[name])
    told: list[tuple[int, str]] = []
    with open_recording(folder.recording) as recording:
        for item in recording.messages():
            evaluation.take(item.topic, item.message, item.time_ns)
            if item.topic == "/rosout" and item.message.name == "/faults":
                told.append((item.time_ns, item.message.msg))
        end_ns, count = recording.end_ns, recording.count
    evaluation.finish(end_ns)
    robots = evaluation.by_robot()
    verdicts = [Verdict(name, text, None, (), "killed") for name, text in scenario.criteria.items()]
    return {
        "scenario": about.get("scenario", folder.path.name),
        "summary": scenario.summary,
        "world": scenario.world,
        "seed": scenario.seed,
        "smoke": bool(about.get("smoke", False)),
        "state": "killed",
        "success": False,
        "error": None,
        "criteria": {verdict.name: criterion(verdict) for verdict in verdicts},
        "sim_seconds": end_ns * 1e-9,
        "wall_seconds": None,
        "real_time_factor": None,
        "messages": count,
        "frames_missed": None,
        "recorded": count,
        **next(iter(robots.values()), {}),
        "robots": {
            name: {
                "model": scenario.robots[name].model,
                "namespace": namespaces[name],
                "topics": topics[name],
                "findings": [],
                "metrics": metrics,
                **({} if (legs := legged[name]) is None else {"motors": legs.motors.to_dict()}),
            }
            for name, metrics in robots.items()
        },
        "rejected": evaluation.rejected(),
        "nodes": [],
        "offloads": [],
        "topics": [],
        "inputs": {},
        "events": events_by(scenario.faults, told, end_ns),
        "provenance": {k: about[k] for k in ("versions", "lock", "cpu_class", "cpu", "renderer") if k in about},
    }
