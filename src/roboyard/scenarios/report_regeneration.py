"""Regenerates the report of a run folder, and metrics of a run whose process was killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from roboyard.bringup.catalog import WORLDS
from roboyard.bringup.robot_loader import load_robot
from roboyard.bringup.robot_nodes import DescribedRobot
from roboyard.config import read_yaml
from roboyard.description import World, load_world
from roboyard.errors import InputError, RoboyardError
from roboyard.evaluation.collector import MetricValue, RobotContext
from roboyard.evaluation.topics import RobotTopics
from roboyard.record import open_recording
from roboyard.scenarios.criteria import CriterionResult
from roboyard.scenarios.evaluator import Evaluator
from roboyard.scenarios.faults.schedule import events_from_log
from roboyard.scenarios.report import write_report
from roboyard.scenarios.result import RunMeasurements, ScenarioHeader, build_metrics_document, cost_tables
from roboyard.scenarios.robot_handle import robot_namespace
from roboyard.scenarios.run_folder import RunFolder
from roboyard.scenarios.schema import ScenarioConfig, ScenarioRobotConfig, load_config

_PROVENANCE_KEYS = ("versions", "lock", "cpu_class", "cpu", "renderer")


def regenerate_report(path: str | Path) -> Path:
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
    config = _load_config(folder)
    if not folder.metrics.is_file():
        if config is None or not folder.recording.is_file():
            raise InputError(f"{path} is not the folder of a run", valid="one with metrics.json or recording.mcap")
        folder.write_json(folder.metrics, _build_document(folder, config))
    return write_report(folder, world=_load_world(config))


def _load_config(folder: RunFolder) -> ScenarioConfig | None:
    return load_config(folder.scenario) if folder.scenario.is_file() else None


def _load_world(config: ScenarioConfig | None) -> World | None:
    if config is None:
        return None
    try:
        return load_world(WORLDS.resolve(config.world))
    except RoboyardError:  # moved since: the report goes without a floor plan
        return None


def _robot_topics(config: ScenarioRobotConfig) -> dict[str, str]:
    """Standard names that lie elsewhere with this robot; none if its files are gone."""
    try:
        return dict(load_robot(config.model, arguments=config.xacro_args, repair=config.repair).config.topics)
    except RoboyardError:
        return {}


def _robot_context(name: str, config: ScenarioRobotConfig, topics: RobotTopics) -> RobotContext:
    """Return what is known of a robot without a simulation; without its description if its files are gone."""
    try:
        package = load_robot(config.model, arguments=config.xacro_args, repair=config.repair, use_calibration=False)
        model = package.load_model(config.xacro_args, repair=config.repair)
        legs = DescribedRobot(package, model).resource("legged_robot")
    except RoboyardError:
        return RobotContext(name, topics)
    return RobotContext(name, topics, model, resources={"legged_robot": lambda _: legs})


def _build_document(folder: RunFolder, config: ScenarioConfig) -> dict[str, Any]:
    """Return the content of metrics.json, as far as it follows from the recording."""
    origin = read_yaml(folder.scenario).to_data().get("provenance", {})
    evaluation = Evaluator()
    namespaces: dict[str, str] = {}
    topics: dict[str, dict[str, str]] = {}
    for index, (name, robot_config) in enumerate(config.robots.items()):
        namespaces[name] = robot_namespace(robot_config.namespace, name, is_first=index == 0)
        topics[name] = _robot_topics(robot_config)
        robot_topics = RobotTopics.for_robot(name, namespaces[name], topics[name])
        evaluation.add_robot(_robot_context(name, robot_config, robot_topics))
    fault_log: list[tuple[int, str]] = []
    with open_recording(folder.recording) as recording:
        for recorded in recording.messages():
            evaluation.process(recorded.topic, recorded.message, recorded.time_ns)
            if recorded.topic == "/rosout" and recorded.message.name == "/faults":
                fault_log.append((recorded.time_ns, recorded.message.msg))
        end_ns, count = recording.end_ns, recording.count
    evaluation.finish(end_ns)
    results = [CriterionResult(name, text, None, (), "killed") for name, text in config.criteria.items()]
    totals: dict[str, MetricValue] = {"sim_time": end_ns * 1e-9, "messages": count}
    measurements = RunMeasurements(
        totals=totals,
        n_recorded=count,
        robots={
            name: {
                "model": config.robots[name].model,
                "namespace": namespaces[name],
                "topics": topics[name],
                "findings": [],
                "metrics": metrics,
                **evaluation.details(name),
            }
            for name, metrics in evaluation.metrics_by_robot().items()
        },
        rejected=evaluation.rejected_messages(),
        events=events_from_log(config.faults, fault_log, end_ns),
        costs=cost_tables(None, 0.0),
        provenance={key: origin[key] for key in _PROVENANCE_KEYS if key in origin},
    )
    header = ScenarioHeader(
        name=origin.get("scenario", folder.path.name), summary=config.summary, world=config.world, seed=config.seed,
        is_smoke=bool(origin.get("smoke", False)),
    )  # fmt: skip
    return build_metrics_document(header, measurements, state="killed", results=results)
