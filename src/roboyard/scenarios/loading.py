"""Loads a scenario from its name or file: variants, options, overrides, values randomized by the seed."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np

from roboyard.bringup.catalog import ROBOTS, SCENARIOS, WORLDS
from roboyard.config import YamlNode, apply_override, dumps, load, parse_yaml, read_yaml, yaml_from_data
from roboyard.config.wording import did_you_mean
from roboyard.errors import ConfigError
from roboyard.scenarios.schema import OptionValue, ScenarioConfig, ScenarioOption

WORLD_MODEL_PREFIX = "world:"
"""A robot's model that begins so is the one of that name in the world."""


MAX_SMOKE_DURATION = 5.0
"""Longest smoke variant [simulated s]."""


@dataclass(frozen=True, slots=True)
class LoadedScenario:
    """A scenario ready to run.

    Attributes:
        name: Of the scenario.
        config: What it says.
        base_folder: Folder that its paths are relative to.
        is_smoke: Whether this is the smoke variant.
        source_tree: What was read, with the places where it was written; None for a scenario made in Python.
    """

    name: str
    config: ScenarioConfig
    base_folder: Path
    is_smoke: bool = False
    source_tree: YamlNode | None = field(default=None, compare=False, repr=False)

    def source_location(self, key: str) -> str:
        """Where a key was written: "faults[0].robot" gives "mine.yaml:12"; the nearest place known, "" if none is."""
        node, location = self.source_tree, ""
        for name in re.findall(r"[^.\[\]]+", key):
            if node is None:
                break
            location = node.location or location
            if isinstance(node.value, dict):
                node = node.value.get(name)
            elif isinstance(node.value, list) and name.isdecimal() and int(name) < len(node.value):
                node = node.value[int(name)]
            else:
                break
        return node.location or location if node is not None else location

    def with_seed(self, seed: int | None) -> LoadedScenario:
        """With another seed, and what the scenario draws drawn by it; None leaves both."""
        if seed is None:
            return self
        config = replace(self.config, seed=seed)
        return replace(self, config=_randomize(config, self.source_tree, self.is_smoke))

    def to_yaml(self) -> str:
        """As YAML."""
        return dumps(self.config)


def load_scenario(
    name: str | Path,
    *,
    overrides: Sequence[str] = (),
    smoke: bool = False,
    robot: str | None = None,
    world: str | None = None,
) -> LoadedScenario:
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
    path = SCENARIOS.resolve(str(name))
    node = read_yaml(path)
    if not isinstance(node.value, dict):
        raise ConfigError("is no scenario", location=str(path), valid="a mapping with world, robots, duration, …")
    if robot is not None or world is not None:
        node = _substitute(node, robot, world)
    if smoke:
        node = _apply_smoke_variant(node)
    node, key_overrides = apply_options(node, overrides)
    for override in key_overrides:  # last: what the user says on the spot counts most
        node = apply_override(node, override)
    config = _randomize(_limit_smoke_duration(load(ScenarioConfig, node, source_name=str(path)), smoke), node, smoke)
    return LoadedScenario(path.stem if path.stem != "scenario" else path.parent.name, config, path.parent, smoke, node)


def _limit_smoke_duration(config: ScenarioConfig, smoke: bool) -> ScenarioConfig:
    return replace(config, duration=min(config.duration, MAX_SMOKE_DURATION)) if smoke else config


def _randomize(config: ScenarioConfig, node: YamlNode | None, smoke: bool) -> ScenarioConfig:
    """The scenario with what it draws in place, drawn by its seed: each key by itself, whatever others there are.

    Raises:
        ConfigError: what is drawn makes no sense there.
    """
    if node is None or not config.randomize:
        return config
    for key, (low, high) in config.randomize.items():
        rng = np.random.default_rng([0xD4A3, config.seed, *key.encode()])
        value = f"{float(rng.uniform(low, high)):.6g}"
        node = apply_override(node, f"{key}='{value}'" if _is_text_value(node, key) else f"{key}={value}")
    return replace(_limit_smoke_duration(load(ScenarioConfig, node), smoke), seed=config.seed)


def _is_text_value(node: YamlNode, key: str) -> bool:
    """Whether the number at a key stands there as text. Raises ConfigError where nothing stands."""
    child: YamlNode | None = node
    for name in key.split("."):
        value = None if child is None else child.value
        if isinstance(value, dict):
            child = value.get(name)
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            child = value[int(name)]
        else:
            child = None
    if child is None:
        raise ConfigError(f"there is no {key} to draw", location="randomize", valid="a number that the scenario gives")
    return isinstance(child.value, str)


def scenario_from_config(
    config: ScenarioConfig, name: str = "scenario", base_folder: Path | None = None
) -> LoadedScenario:
    """A scenario made in Python; paths are relative to ``base_folder``, by default the working directory."""
    return LoadedScenario(name, config, base_folder or Path())


def _substitute(node: YamlNode, robot: str | None, world: str | None) -> YamlNode:
    """Another robot or world in place, with what the scenario itself wants to be different then."""
    node = merge_overrides(node, _variant(node, "substituted"))
    if world is not None:
        node = _replace_key(node, "world", str(_resolve_user_path("world", world)))
    if robot is not None:
        robots = node.value.get("robots")
        if robots is None or not isinstance(robots.value, dict) or not robots.value:
            raise ConfigError("there is no robot to replace", location="--robot")
        main_robot = next(iter(robots.value))
        entry = _replace_key(robots.value[main_robot], "model", str(_resolve_user_path("robot", robot)))
        entry.value.pop("xacro_args", None)  # those of the other model
        node = _replace_key(
            node, "robots", YamlNode({**robots.value, main_robot: entry}, robots.location, robots.key_location)
        )
    return node


def _resolve_user_path(kind: str, name: str) -> str | Path:
    """Paths on the command line are the user's, not the scenario's."""
    if kind == "robot" and world_model_name(name):
        return name
    path = (WORLDS if kind == "world" else ROBOTS).resolve(name)
    return path.resolve() if "/" in name or path.name == name else name


def _apply_smoke_variant(node: YamlNode) -> YamlNode:
    """The scenario with what ``variants.smoke`` says in place, criteria only if it names some."""
    entries = {key: child for key, child in node.value.items() if key != "criteria"}
    return merge_overrides(YamlNode(entries, node.location, node.key_location), _variant(node, "smoke"))


def _variant(node: YamlNode, name: str) -> YamlNode:
    """What a variant says; an empty mapping where the scenario has none of this name."""
    variants = node.value.get("variants")
    found = variants.value.get(name) if variants is not None and isinstance(variants.value, dict) else None
    return yaml_from_data({}) if found is None else found


def _replace_key(node: YamlNode, key: str, value: object) -> YamlNode:
    child = value if isinstance(value, YamlNode) else yaml_from_data(value, f"{key} given on the command line")
    return YamlNode({**node.value, key: child}, node.location, node.key_location)


def apply_options(node: YamlNode, assignments: Sequence[str]) -> tuple[YamlNode, list[str]]:
    """A scenario with its options' values in place, and the assignments that are of no option.

    An option may be called as a key of scenarios is: then a plain value is the option's, a mapping the key's.

    Args:
        node: The scenario as it was read.
        assignments: ``key.path=value``, as `--set` gives them; of two of one option the last counts.

    Raises:
        ConfigError: a value is not among those that are valid, or an option makes no sense.
    """
    entries = node.value.get("options") if isinstance(node.value, dict) else None
    if entries is None or not isinstance(entries.value, dict):
        return node, list(assignments)
    options = {
        name: load(ScenarioOption, option_node, source_name=f"options.{name}")
        for name, option_node in entries.value.items()
    }
    assigned: dict[str, OptionValue] = {}
    key_overrides = []
    for assignment in assignments:
        key, _, value = assignment.partition("=")
        name = key.removeprefix("options.").removesuffix(".default") if key.endswith(".default") else key
        parsed = parse_yaml(value, f"--set {name}").value if name in options and value.strip() else None
        if isinstance(parsed, OptionValue):
            assigned[name] = parsed
        else:
            key_overrides.append(assignment)
    for name, option in options.items():
        selected = assigned.get(name, option.selected)
        if selected is not None:
            location = f"--set {name}" if name in assigned else f"options.{name}.default"
            node = _apply_option(node, name, option, selected, location)
    return node, key_overrides


def _apply_option(node: YamlNode, name: str, option: ScenarioOption, value: OptionValue, location: str) -> YamlNode:
    if option.allowed_values and value not in option.allowed_values:
        allowed_texts = [str(allowed) for allowed in option.allowed_values]
        suggestion = did_you_mean(value, allowed_texts) if isinstance(value, str) else ""
        raise ConfigError(f"{value!r}{suggestion}", location=location, valid=", ".join(allowed_texts))
    if option.choices:
        node = merge_overrides(node, node.value["options"].value[name].value["choices"].value[str(value)])
    else:
        node = apply_override(node, f"{option.key}={json.dumps(value)}")
    return merge_overrides(node, yaml_from_data({"options": {name: {"default": value}}}, location))


_REPLACED_KEYS: Final = ("criteria", "operator", "smoke")
"""Keys that are replaced instead of added to."""


def merge_overrides(node: YamlNode, overrides: YamlNode) -> YamlNode:
    """``overrides`` laid on ``node``: mappings are joined, everything else is replaced, and so are those in
    ``_REPLACED_KEYS``.
    """
    if not isinstance(node.value, dict) or not isinstance(overrides.value, dict):
        return overrides
    entries = dict(node.value)
    for key, child in overrides.value.items():
        is_merged = key in entries and key not in _REPLACED_KEYS
        entries[key] = merge_overrides(entries[key], child) if is_merged else child
    return YamlNode(entries, node.location, node.key_location)


def world_model_name(model: str) -> str:
    """Name in the world of a scenario's robot; empty for one that is put there."""
    return model.removeprefix(WORLD_MODEL_PREFIX) if model.startswith(WORLD_MODEL_PREFIX) else ""
