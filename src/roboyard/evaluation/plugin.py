"""What a package contributes to a run: metric collectors, report sections, resources of robots, scenario keys.

A package offers one `RunPlugin` by an entry point of the group ``roboyard.run_plugins``.  Roboyard's own rooms do the
same, so that a run knows no domain by name.
"""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from roboyard.config.registry import Registry
from roboyard.errors import ConfigError
from roboyard.evaluation.collector import Metric, MetricCollector, ResourceFactory
from roboyard.evaluation.scenario_key import ScenarioKey
from roboyard.evaluation.section import SectionBuilder

RUN_METRICS: Final = (
    Metric("sim_time", "s", "Simulated time at the end of the run.", summary_label="simulated"),
    Metric("wall_time", "s", "Wall time that simulating took, without building the run and writing its report."),
    Metric("real_time_factor", "", "Simulated time of the run divided by wall time.", summary_label="real-time factor"),
    Metric("messages", "count", "Messages that were published.", summary_label="messages"),
    Metric("frames_missed", "count", "Images of all cameras that were due and never came.", "lower"),
)
"""Metrics of a run as a whole.  Those without a better direction say nothing about robots; batches do not compare them.
"""


@dataclass(frozen=True, slots=True)
class PageSection:
    """A section of the report's page.

    Attributes:
        build: Builds it for one robot.
        position: Order on the page: sections with lower numbers come first.
    """

    build: SectionBuilder
    position: int = 1000


@dataclass(frozen=True, slots=True)
class RunPlugin:
    """What one package contributes to every run.

    Attributes:
        name: Of the plug-in, for messages.
        collectors: Classes of which each robot gets one collector, if it has something to measure.
        sections: Sections of the report.
        resources: What collectors and sections may ask a `RobotContext` for, by name.
        scenario_keys: Keys of scenario files.
    """

    name: str
    collectors: tuple[type[MetricCollector], ...] = ()
    sections: tuple[PageSection, ...] = ()
    resources: Mapping[str, ResourceFactory] = field(default_factory=dict)
    scenario_keys: tuple[ScenarioKey[Any], ...] = ()


RUN_PLUGINS: Registry[RunPlugin] = Registry("run plug-in", group="roboyard.run_plugins")


def run_plugins() -> tuple[RunPlugin, ...]:
    """Return the plug-ins of all installed packages, in the order of their names.

    Raises:
        ConfigError: A package does not offer what its entry point says.
    """
    plugins = []
    for name in RUN_PLUGINS.names():
        plugin = RUN_PLUGINS[name]
        if not isinstance(plugin, RunPlugin):
            raise ConfigError(
                f"is no run plug-in but {type(plugin).__name__}",
                location=f"entry point {name} of {RUN_PLUGINS.group}",
                valid="an object of the class RunPlugin",
            )
        plugins.append(plugin)
    return tuple(plugins)


def collector_classes() -> tuple[type[MetricCollector], ...]:
    """Return the collector classes of all plug-ins, in the order of their positions.

    Raises:
        ConfigError: Two of them declare a metric of the same name, or one overrides a metric that none declares.
    """
    owned = [(collector, plugin.name) for plugin in run_plugins() for collector in plugin.collectors]
    owners = {metric.name: "the run" for metric in RUN_METRICS}
    for collector, plugin_name in owned:
        for metric in collector.metrics:
            if metric.name in owners:
                raise ConfigError(
                    f"metric {metric.name!r} of {collector.__name__} is declared by {owners[metric.name]} already",
                    location=f"run plug-in {plugin_name}",
                    valid="a name that no other metric has, or `overrides`",
                )
            owners[metric.name] = f"run plug-in {plugin_name}"
    for collector, plugin_name in owned:
        for name in collector.overrides:
            if name not in owners:
                raise ConfigError(
                    f"{collector.__name__} overrides {name!r}, which no collector declares",
                    location=f"run plug-in {plugin_name}",
                    valid=", ".join(owners),
                )
    return tuple(collector for collector, _ in sorted(owned, key=lambda item: item[0].position))


def page_sections() -> tuple[PageSection, ...]:
    """Return the report sections of all plug-ins, in their order on the page.

    Raises:
        ConfigError: A package does not offer what its entry point says.
    """
    sections = (section for plugin in run_plugins() for section in plugin.sections)
    return tuple(sorted(sections, key=lambda section: section.position))


def robot_resources() -> dict[str, ResourceFactory]:
    """Return what plug-ins offer collectors and sections of each robot, by name.

    Raises:
        ConfigError: Two plug-ins offer a resource of the same name.
    """
    resources: dict[str, ResourceFactory] = {}
    for plugin in run_plugins():
        for name, factory in plugin.resources.items():
            if name in resources:
                raise ConfigError(
                    f"the resource {name!r} is offered twice",
                    location=f"run plug-in {plugin.name}",
                    valid="another name",
                )
            resources[name] = factory
    return resources


def scenario_keys() -> dict[str, ScenarioKey[Any]]:
    """Return the keys of scenario files that plug-ins contribute, by key, in the order of the plug-ins' names.

    Raises:
        ConfigError: Two plug-ins contribute one key, or a key is no name.
    """
    keys: dict[str, ScenarioKey[Any]] = {}
    for plugin in run_plugins():
        for scenario_key in plugin.scenario_keys:
            name = scenario_key.key
            if not name.isidentifier() or keyword.iskeyword(name):
                raise ConfigError(
                    f"the scenario key {name!r} is no name",
                    location=f"run plug-in {plugin.name}",
                    valid="letters, digits and '_', not starting with a digit, no keyword of Python",
                )
            if name in keys:
                raise ConfigError(
                    f"the scenario key {name!r} is contributed twice",
                    location=f"run plug-in {plugin.name}",
                    valid="another name",
                )
            keys[name] = scenario_key
    return keys


def preferred_direction(name: str) -> int:
    """Return whether small (-1) or large (+1) values of a metric are better by its declaration, or neither (0).

    Args:
        name: Of a metric of the run or of the first robot, or `robot.metric`; 0 for one that no plug-in declares.

    Raises:
        ConfigError: A run plug-in of an installed package is wrong.
    """
    is_of_robot, metric_name = "." in name, name.rpartition(".")[2]
    declared = robot_metrics() if is_of_robot else (*RUN_METRICS, *robot_metrics())
    better = next((metric.better for metric in declared if metric.name == metric_name), "")
    return {"lower": -1, "higher": 1, "": 0}[better]


def shown_metrics() -> tuple[Metric, ...]:
    """Return the metrics that the terminal's summary and the report's tiles show, those of the run first."""
    return tuple(metric for metric in (*RUN_METRICS, *robot_metrics()) if metric.summary_label)


def robot_metrics() -> tuple[Metric, ...]:
    """Return the metrics of each robot, in the order of metrics.json.  Raises ConfigError as `collector_classes`."""
    return tuple(metric for collector in collector_classes() for metric in collector.metrics)
