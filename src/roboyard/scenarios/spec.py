"""From a scenario's name or file to a checked `Scenario`: overrides, the smoke variant, other robots and worlds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from roboyard.config import YamlNode, apply_override, dumps, load, read_yaml, yaml_from_data
from roboyard.errors import ConfigError
from roboyard.scenarios.catalog import find
from roboyard.scenarios.options import with_options
from roboyard.scenarios.overlay import laid_on
from roboyard.scenarios.residents import resident
from roboyard.scenarios.schema import Scenario

SMOKE_SECONDS = 5.0
"""Longest smoke variant [simulated s]."""


@dataclass(frozen=True, slots=True)
class Spec:
    """A scenario ready to run.

    Attributes:
        name: Of the scenario.
        scenario: What it says.
        base: Folder that its paths are relative to.
        smoke: Whether this is the smoke variant.
        tree: What was read, with the places where it was written; None for a scenario made in Python.
    """

    name: str
    scenario: Scenario
    base: Path
    smoke: bool = False
    tree: YamlNode | None = field(default=None, compare=False, repr=False)

    def place(self, path: str) -> str:
        """Where a key was written: "faults[0].robot" gives "mine.yaml:12"; the nearest place known, "" if none is."""
        node, found = self.tree, ""
        for name in re.findall(r"[^.\[\]]+", path):
            if node is None:
                break
            found = node.location or found
            if isinstance(node.value, dict):
                node = node.value.get(name)
            elif isinstance(node.value, list) and name.isdecimal() and int(name) < len(node.value):
                node = node.value[int(name)]
            else:
                break
        return node.location or found if node is not None else found

    def seeded(self, seed: int | None) -> Spec:
        """With another seed, and what the scenario draws drawn by it; None leaves both."""
        if seed is None:
            return self
        scenario = replace(self.scenario, seed=seed)
        return replace(self, scenario=_drawn(scenario, self.tree, self.smoke))

    def text(self) -> str:
        """As YAML."""
        return dumps(self.scenario)


def load_spec(
    name: str | Path,
    *,
    overrides: Sequence[str] = (),
    smoke: bool = False,
    robot: str | None = None,
    world: str | None = None,
) -> Spec:
    """Read a scenario.

    Args:
        name: Its name, or a path to its file.
        overrides: ``key.path=value``, as ``--set`` gives them; or an option's name and value.
        smoke: Take the smoke variant.
        robot: Instead of the main robot's model: a name, or a path (from the working directory).
        world: Instead of the world, likewise.

    Raises:
        UnknownNameError: no such scenario.
        ConfigError: it says something it may not.
        InputError: there is no such file.
    """
    path = find("scenario", str(name))
    node = read_yaml(path)
    if not isinstance(node.value, dict):
        raise ConfigError("is no scenario", location=str(path), valid="a mapping with world, robots, duration, …")
    if robot is not None or world is not None:
        node = _elsewhere(node, robot, world)
    if smoke:
        node = _smoke(node)
    node, rest = with_options(node, overrides)
    for text in rest:  # last: what the user says on the spot counts most
        node = apply_override(node, text)
    scenario = _drawn(_shortened(load(Scenario, node, source_name=str(path)), smoke), node, smoke)
    return Spec(path.stem if path.stem != "scenario" else path.parent.name, scenario, path.parent, smoke, node)


def _shortened(scenario: Scenario, smoke: bool) -> Scenario:
    return replace(scenario, duration=min(scenario.duration, SMOKE_SECONDS)) if smoke else scenario


def _drawn(scenario: Scenario, node: YamlNode | None, smoke: bool) -> Scenario:
    """The scenario with what it draws in place, drawn by its seed: each key by itself, whatever others there are.

    Raises:
        ConfigError: what is drawn makes no sense there.
    """
    if node is None or not scenario.draws:
        return scenario
    for key, (low, high) in scenario.draws.items():
        rng = np.random.default_rng([0xD4A3, scenario.seed, *key.encode()])
        number = f"{float(rng.uniform(low, high)):.6g}"
        node = apply_override(node, f"{key}='{number}'" if _is_text(node, key) else f"{key}={number}")
    return replace(_shortened(load(Scenario, node), smoke), seed=scenario.seed)


def _is_text(node: YamlNode, key: str) -> bool:
    """Whether the number at a key stands there as text. Raises ConfigError where nothing stands."""
    found: YamlNode | None = node
    for name in key.split("."):
        value = None if found is None else found.value
        if isinstance(value, dict):
            found = value.get(name)
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            found = value[int(name)]
        else:
            found = None
    if found is None:
        raise ConfigError(f"there is no {key} to draw", location="draws", valid="a number that the scenario gives")
    return isinstance(found.value, str)


def spec_of(scenario: Scenario, name: str = "scenario", base: Path | None = None) -> Spec:
    """A scenario made in Python; paths are relative to ``base``, by default the working directory."""
    return Spec(name, scenario, base or Path())


def _elsewhere(node: YamlNode, robot: str | None, world: str | None) -> YamlNode:
    """Another robot or world in place, with what the scenario itself wants to be different then."""
    node = laid_on(node, node.value.get("elsewhere", yaml_from_data({})))
    if world is not None:
        node = _with(node, "world", str(_from_here("world", world)))
    if robot is not None:
        robots = node.value.get("robots")
        if robots is None or not isinstance(robots.value, dict) or not robots.value:
            raise ConfigError("there is no robot to replace", location="--robot")
        main = next(iter(robots.value))
        entry = _with(robots.value[main], "model", str(_from_here("robot", robot)))
        entry.value.pop("arguments", None)  # those of the other model
        node = _with(node, "robots", YamlNode({**robots.value, main: entry}, robots.location, robots.key_location))
    return node


def _from_here(kind: str, name: str) -> str | Path:
    """Paths on the command line are the user's, not the scenario's."""
    if kind == "robot" and resident(name):
        return name
    path = find("world" if kind == "world" else "robot", name)
    return path.resolve() if "/" in name or path.name == name else name


def _smoke(node: YamlNode) -> YamlNode:
    """The scenario with what ``smoke`` says in place, criteria only if it names some."""
    entries = {key: child for key, child in node.value.items() if key != "criteria"}
    return laid_on(YamlNode(entries, node.location, node.key_location), node.value.get("smoke", yaml_from_data({})))


def _with(node: YamlNode, key: str, value: object) -> YamlNode:
    child = value if isinstance(value, YamlNode) else yaml_from_data(value, f"{key} given on the command line")
    return YamlNode({**node.value, key: child}, node.location, node.key_location)
