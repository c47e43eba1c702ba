"""Loads a scenario, or its terrain, by name or file: variants, options, overrides, values randomized by the seed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from roboyard.bringup.catalog import ROBOTS, SCENARIOS, WORLDS
from roboyard.bringup.robot_config import ConfigSource
from roboyard.config import YamlNode, apply_override, dumps, load, parse_yaml, yaml_from_data
from roboyard.config.conversion import convert
from roboyard.config.wording import did_you_mean
from roboyard.config.yaml_tree import find_along_path, parse_scalar
from roboyard.errors import ConfigError, InputError, RoboyardError, UnknownNameError
from roboyard.grids.terrain import TERRAINS, TerrainConfig
from roboyard.scenarios.merge import locate_key, merge_trees, read_scenario_tree, replace_at, variant_tree
from roboyard.scenarios.schema import OptionValue, ScenarioConfig, ScenarioOption, load_config

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
        return "" if self.source_tree is None else find_along_path(self.source_tree, key)[0].location

    def robot_source(self, name: str) -> ConfigSource | None:
        """What the file says of a robot, for the locations of errors; None for a scenario made in Python."""
        if self.source_tree is None:
            return None
        entry, remaining_path = find_along_path(self.source_tree, f"robots.{name}")
        return None if remaining_path else ConfigSource(entry, f"robots.{name}", is_scenario=True)

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
    node = read_scenario_tree(path)
    if robot is not None or world is not None:
        node = _substitute(node, robot, world)
    if smoke:
        node = _apply_smoke_variant(node)
    return _load_tree(path, node, overrides, smoke)


def _load_tree(path: Path, node: YamlNode, overrides: Sequence[str], smoke: bool) -> LoadedScenario:
    """Make the scenario of a tree that has its variant in place, with options and overrides."""
    node, key_overrides = apply_options(node, overrides)
    for override in key_overrides:  # last: what the user says on the spot counts most
        node = apply_override(node, override)
    config = _randomize(_limit_smoke_duration(load_config(node, str(path)), smoke), node, smoke)
    return LoadedScenario(path.stem if path.stem != "scenario" else path.parent.name, config, path.parent, smoke, node)


def load_variants(name: str | Path, overrides: Sequence[str] = ()) -> Iterator[tuple[str, LoadedScenario]]:
    """Load a scenario once for each of its variants, and for each value of each option, in each variant.

    Args:
        name: The scenario's name, or a path to its file.
        overrides: As for `load_scenario`; they are given to every variant.

    Yields:
        What the variant is called, and the scenario as it is then.

    Raises:
        ConfigError: The scenario cannot be loaded in a variant, which the error's location names first.
    """
    path = SCENARIOS.resolve(str(name))
    tree = read_scenario_tree(path)
    trees = {"": tree}
    if variant_tree(tree, "smoke").value:
        trees["variants.smoke"] = _apply_smoke_variant(tree)
    if variant_tree(tree, "substituted").value:
        trees["variants.substituted"] = merge_trees(tree, variant_tree(tree, "substituted"))
    for variant, variant_root in trees.items():
        with errors_in_variant(variant):
            loaded = _load_tree(path, variant_root, overrides, variant == "variants.smoke")
        yield variant, loaded
        for option, declared in loaded.config.options.items():
            for value in declared.allowed_values:
                setting = f"{option}={json.dumps(value)}"
                description = ", ".join(filter(None, (variant, f"--set {setting}")))
                with errors_in_variant(description):
                    loaded = _load_tree(path, variant_root, (*overrides, setting), variant == "variants.smoke")
                yield description, loaded


@contextmanager
def errors_in_variant(description: str) -> Iterator[None]:
    """Name a variant in front of the location of errors; nothing is added for the scenario itself, ""."""
    try:
        yield
    except RoboyardError as error:
        error.location = ": ".join(filter(None, (description, error.location))) or None
        raise


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
        interval, _ = find_along_path(node, f"randomize.{key}")
        sampled: object = value if _is_text_value(node, key) else parse_scalar(value)
        node = replace_at(node, key, yaml_from_data(sampled, f"{interval.location}, randomize.{key}"))
    return replace(_limit_smoke_duration(load_config(node), smoke), seed=config.seed)


def _is_text_value(node: YamlNode, key: str) -> bool:
    """Whether the number at a key stands there as text, such as a xacro argument "1.5".

    A text with a unit, such as "1.5 s", is a number. Raises ConfigError where nothing stands.
    """
    child, remaining_path = find_along_path(node, key)
    if remaining_path:
        raise ConfigError(
            f"there is no {key} to draw",
            location=locate_key(node, f"randomize.{key}"),
            valid="a number that the scenario gives",
        )
    return isinstance(child.value, str) and not isinstance(parse_scalar(child.value), str)


def scenario_from_config(
    config: ScenarioConfig, name: str = "scenario", base_folder: Path | None = None
) -> LoadedScenario:
    """A scenario made in Python; paths are relative to ``base_folder``, by default the working directory."""
    return LoadedScenario(name, config, base_folder or Path())


def _substitute(node: YamlNode, robot: str | None, world: str | None) -> YamlNode:
    """Another robot or world in place, with what the scenario itself wants to be different then."""
    node = merge_trees(node, variant_tree(node, "substituted"))
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
    return merge_trees(YamlNode(entries, node.location, node.key_location), variant_tree(node, "smoke"))


def _replace_key(node: YamlNode, key: str, value: object) -> YamlNode:
    child = value if isinstance(value, YamlNode) else yaml_from_data(value, f"--{'robot' if key == 'model' else key}")
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
        name: convert(option_node, ScenarioOption, path=f"options.{name}")
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
            location = f"--set {name}" if name in assigned else locate_key(node, f"options.{name}.default")
            node = _apply_option(node, name, option, selected, location)
    return node, key_overrides


def _apply_option(node: YamlNode, name: str, option: ScenarioOption, value: OptionValue, location: str) -> YamlNode:
    if option.allowed_values and value not in option.allowed_values:
        allowed_texts = [str(allowed) for allowed in option.allowed_values]
        suggestion = did_you_mean(value, allowed_texts) if isinstance(value, str) else ""
        raise ConfigError(f"{value!r}{suggestion}", location=location, valid=", ".join(allowed_texts))
    if option.choices:
        node = merge_trees(node, node.value["options"].value[name].value["choices"].value[str(value)])
    else:
        node = replace_at(node, option.key, yaml_from_data(value, location))
    return replace_at(node, f"options.{name}.default", yaml_from_data(value, location))


def world_model_name(model: str) -> str:
    """Name in the world of a scenario's robot; empty for one that is put there."""
    return model.removeprefix(WORLD_MODEL_PREFIX) if model.startswith(WORLD_MODEL_PREFIX) else ""


def find_terrain(name: str, seed: int | None, overrides: Mapping[str, float]) -> tuple[TerrainConfig, int]:
    """Find a terrain.

    Args:
        name: Type of the terrain, or name or file of a scenario with a terrain.
        seed: Seed of the terrain; None: the scenario's, or 0.
        overrides: Keys of the terrain with other values.

    Returns:
        The terrain and its seed.

    Raises:
        InputError: The scenario has no terrain.
        UnknownNameError: There is no such type or scenario.
        ConfigError: A value is out of range.
    """
    if name in SCENARIOS or Path(name).is_file():
        config = load_scenario(name).config
        if config.terrain is None:
            raise InputError(f"scenario {name} has no terrain", valid="a scenario with the key terrain")
        settings, number = asdict(config.terrain), config.seed if seed is None else seed
    elif name in TERRAINS:
        settings, number = {"type": name}, seed or 0
    else:
        names = ", ".join(TERRAINS.names())
        raise UnknownNameError(f"unknown terrain {name!r}", valid=f"{names}, or a scenario with one")
    stated = {key: value for key, value in {**settings, **overrides}.items() if value is not None}
    return load(TerrainConfig, yaml_from_data(stated)), number
