"""Plug-ins of runs: their order, and errors of packages that declare something twice."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from roboyard.config import parse_yaml
from roboyard.errors import ConfigError
from roboyard.evaluation import Metric, MetricCollector, PageSection, RobotContext, RunPlugin
from roboyard.evaluation.plugin import (
    RUN_METRICS,
    RUN_PLUGINS,
    collector_classes,
    page_sections,
    robot_metrics,
    robot_resources,
    scenario_keys,
    shown_metrics,
)
from roboyard.evaluation.scenario_key import ScenarioKey
from roboyard.evaluation.topics import RobotTopics
from roboyard.scenarios.loading import load_scenario
from roboyard.scenarios.schema import complete_config_class, load_config


def make_collector(*names: str, overrides: tuple[str, ...] = (), position: int = 1000) -> type[MetricCollector]:
    """Return a class of collectors that declare metrics and measure nothing."""

    class Collector(MetricCollector):
        @classmethod
        def create(cls, robot: RobotContext) -> MetricCollector:
            return cls()

        def subscriptions(self) -> Mapping[str, object]:
            return {}

        def values(self) -> dict[str, float]:
            return {}

    Collector.metrics = tuple(Metric(name) for name in names)
    Collector.overrides = overrides
    Collector.position = position
    return Collector


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch):
    """Give a function that adds a plug-in beside those of the package."""

    def add(*collectors: type[MetricCollector], name: str = "user", **parts: object) -> None:
        plugin = RunPlugin(name, collectors, **parts)  # type: ignore[arg-type]
        monkeypatch.setitem(RUN_PLUGINS._built_in, name, plugin)

    return add


def test_every_metric_is_declared_completely() -> None:
    units = {"", "m", "rad", "s", "m/s", "N", "N/m²", "mm", "1/h", "ratio", "count", "boolean", "text"}
    for metric in (*RUN_METRICS, *robot_metrics()):
        assert metric.unit in units, metric
        assert metric.doc.endswith("."), metric
        assert not metric.doc[0].islower(), metric


def test_metrics_and_sections_follow_their_positions(install) -> None:
    first, last = make_collector("early", position=5), make_collector("late")
    sections = (PageSection(lambda _: None, 45), PageSection(lambda _: None))
    install(last, first, sections=sections)
    names = [metric.name for metric in robot_metrics()]
    assert names[:2] == ["early", "path_length"]
    assert names[-1] == "late"
    positions = [section.position for section in page_sections()]
    assert positions == sorted(positions)
    assert page_sections()[-1] is sections[1]
    assert collector_classes()[-1] is last


def test_metric_of_a_name_that_is_taken_is_refused(install) -> None:
    install(make_collector("path_length"))
    with pytest.raises(ConfigError, match=r"metric 'path_length'.*declared by run plug-in simulation already"):
        collector_classes()
    install(make_collector("sim_time"))
    with pytest.raises(ConfigError, match=r"metric 'sim_time'.*declared by the run already"):
        collector_classes()


def test_override_of_an_unknown_metric_is_refused(install) -> None:
    install(make_collector("own", overrides=("path_lenght",)))
    with pytest.raises(ConfigError, match=r"overrides 'path_lenght', which no collector declares"):
        collector_classes()


def test_resource_that_is_offered_twice_is_refused(install) -> None:
    install(resources={"arm_truth": lambda _: None})
    with pytest.raises(ConfigError, match=r"the resource 'arm_truth' is offered twice"):
        robot_resources()


def test_entry_point_of_something_else_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RUN_PLUGINS._built_in, "user", make_collector("own"))
    with pytest.raises(ConfigError, match=r"is no run plug-in"):
        collector_classes()


def test_resource_is_created_once_at_its_first_use() -> None:
    created_for: list[str] = []

    def make(robot: RobotContext) -> str:
        created_for.append(robot.name)
        return robot.namespace

    context = RobotContext("rover", RobotTopics.for_robot("rover", "/rover"), resources={"place": make})
    assert created_for == []
    assert (context.resource("place"), context.resource("place"), context.resource("other")) == (
        "/rover",
        "/rover",
        None,
    )
    assert created_for == ["rover"]


@pytest.mark.parametrize(("unit", "value", "text"), [
    ("m", 0.03086, "0.0309 m"), ("count", 2417, "2,417"), ("ratio", 0.9312, "93.1%"), ("boolean", True, "true"),
    ("text", "no_path", "no_path"), ("", 12.0, "12"), ("s", 0.0, "0 s"),
])  # fmt: skip
def test_value_is_shown_with_its_unit(unit: str, value: float | bool | str, text: str) -> None:
    assert Metric("any", unit).format_value(value) == text


def test_shown_metrics_begin_with_those_of_the_run() -> None:
    names = [metric.name for metric in shown_metrics()]
    assert names[:3] == ["sim_time", "real_time_factor", "messages"]
    assert {"path_length", "contacts"} <= set(names)


def make_key(name: str) -> ScenarioKey[float]:
    """Return a scenario key that changes nothing."""
    return type("Key", (ScenarioKey,), {"key": name, "config": float, "doc": "a number"})()


@pytest.mark.parametrize("name", ["movement", "two words", "class"])
def test_scenario_key_that_is_taken_or_no_name_is_refused(install, name: str) -> None:
    install(scenario_keys=(make_key(name),))
    with pytest.raises(ConfigError, match=rf"the scenario key '{name}' .*") as caught:
        scenario_keys()
    assert str(caught.value).startswith("run plug-in ")


def test_scenario_key_of_the_schema_itself_is_refused(install) -> None:
    install(scenario_keys=(make_key("robots"),))
    with pytest.raises(ConfigError, match=r"contributes the scenario key 'robots', which there is already"):
        complete_config_class()


def test_scenario_with_a_contributed_key_states_its_value(install) -> None:
    install(scenario_keys=(make_key("altitude"),))
    stated = load_config(parse_yaml("{world: empty, duration: 1, altitude: 3}", "mine.yaml"))
    assert stated.plugin_values() == {"altitude": 3.0}
    assert stated == load_config(parse_yaml("{world: empty, duration: 1, altitude: 3.0}", "mine.yaml"))
    assert load_config(parse_yaml("{world: empty, duration: 1}", "mine.yaml")).plugin_values() == {}
    with pytest.raises(ConfigError, match=r"mine.yaml:1, altitude: is the text 'high'"):
        load_config(parse_yaml("{world: empty, duration: 1, altitude: high}", "mine.yaml"))


def test_paths_of_a_contributed_key_hold_for_scenarios_in_other_folders(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "lift.xml").touch()
    (tmp_path / "base" / "base.yaml").write_text("{world: empty, duration: 1, movement: lift.xml}")
    (tmp_path / "mine.yaml").write_text("extends: base/base.yaml")
    loaded = load_scenario(tmp_path / "mine.yaml")
    assert loaded.config.plugin_values() == {"movement": str(tmp_path / "base" / "lift.xml")}
