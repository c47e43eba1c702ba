"""Merges the YAML trees that make up a scenario: the file that it extends, its variants, options and overrides.

Each value keeps the location where it was written, so an error blames the file, or the option of the command line, that
really holds the value.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Final

from roboyard.bringup.catalog import SCENARIOS
from roboyard.config import YamlNode, read_yaml, yaml_from_data
from roboyard.config.yaml_tree import find_along_path
from roboyard.errors import ConfigError, RoboyardError
from roboyard.evaluation.plugin import scenario_keys
from roboyard.scenarios.schema import ScenarioConfig

REPLACED_KEYS: Final = ("criteria", "operator", "smoke")
"""Keys whose mappings replace those below them instead of being joined with them."""

_PATH_KEYS: Final = (
    "world", "mission", "mission.file", "operator", "operator.*", "robots.*.model", "devices.*.model",
    "objects.*.model", "people.*.mission", "people.*.mission.file", "people.*.animations.*", "nodes.*.type",
    "faults.*.model",
)  # fmt: skip
_PARTS_WITH_PATHS: Final = ("", "variants.smoke.", "variants.substituted.", "options.*.choices.*.")
"""Where the keys of a scenario occur in a scenario file: in itself and in the parts that are laid over it."""


def read_scenario_tree(path: Path) -> YamlNode:
    """Read a scenario file and lay it over the file that it extends, if it extends one.

    Raises:
        ConfigError: A file is no YAML mapping, or a file extends itself, perhaps through others.
        UnknownNameError, InputError: There is no scenario or file of the name after ``extends``.
    """
    return _read_tree(path, ())


def _read_tree(path: Path, extending: tuple[Path, ...]) -> YamlNode:
    tree = read_yaml(path)
    if not isinstance(tree.value, dict):
        raise ConfigError("is no scenario", location=str(path), valid="a mapping with world, robots, duration, …")
    base_name = tree.value.get("extends")
    if base_name is None or base_name.value is None:
        return tree
    location = f"{base_name.location}, extends"
    if not isinstance(base_name.value, str) or not base_name.value:
        raise ConfigError("is no name or path", location=location, valid="a scenario's name, or a path to its file")
    try:
        base_path = SCENARIOS.resolve(base_name.value, path.parent)
    except RoboyardError as error:
        error.location = location if error.location is None else f"{location}: {error.location}"
        raise
    chain = (*extending, path)
    if base_path.resolve() in [one.resolve() for one in chain]:
        names = " → ".join(one.name for one in (*chain, base_path))
        raise ConfigError(f"the scenario extends itself: {names}", location=location, valid="another file")
    base = _read_tree(base_path, chain)
    if base_path.parent.resolve() != path.parent.resolve():
        base = _with_absolute_paths(base, base_path.parent.resolve())
    entries = {key: child for key, child in tree.value.items() if key != "extends"}
    return merge_trees(base, YamlNode(entries, tree.location, tree.key_location, tree.size), blame_overlay=True)


def merge_trees(base: YamlNode, overlay: YamlNode, *, blame_overlay: bool = False) -> YamlNode:
    """Lay one tree over another: mappings are joined, all else is replaced, and so are the mappings of `REPLACED_KEYS`.

    Args:
        base: The tree below; it stays as it is.
        overlay: The tree whose values count more.
        blame_overlay: A joined mapping has the location of the overlay: a key that it lacks is missing there.
    """
    if not isinstance(base.value, dict) or not isinstance(overlay.value, dict):
        return overlay
    entries = dict(base.value)
    for key, child in overlay.value.items():
        is_joined = key in entries and key not in REPLACED_KEYS
        entries[key] = merge_trees(entries[key], child, blame_overlay=blame_overlay) if is_joined else child
    owner = overlay if blame_overlay else base
    return YamlNode(entries, owner.location, owner.key_location, base.size + overlay.size)


def variant_tree(tree: YamlNode, name: str) -> YamlNode:
    """Return what a variant of a scenario says; an empty mapping where the scenario has none of this name."""
    found, remaining_path = find_along_path(tree, f"variants.{name}")
    return yaml_from_data({}) if remaining_path or found.value is None else found


def replace_at(root: YamlNode, path: str, child: YamlNode) -> YamlNode:
    """Return the tree with the node at an existing key path replaced, or with a key added to the mapping on the way.

    Raises:
        ConfigError: The path leads through a single value, or an index is out of range.
    """
    name, _, remaining_path = path.partition(".")
    if isinstance(root.value, list) and name.isdecimal() and int(name) < len(root.value):
        items = list(root.value)
        items[int(name)] = replace_at(items[int(name)], remaining_path, child) if remaining_path else child
        return YamlNode(items, root.location, root.key_location, root.size)
    if root.value is not None and not isinstance(root.value, dict):
        raise ConfigError(f"{name!r} cannot be set inside the value {root.value!r:.40}", location=root.location)
    entries = dict(root.value or {})
    below = entries.get(name, YamlNode(None, child.location, child.key_location))
    entries[name] = replace_at(below, remaining_path, child) if remaining_path else child
    return YamlNode(entries, root.location, root.key_location, root.size)


@contextmanager
def errors_located_at(tree: YamlNode | None, key: str = "") -> Iterator[None]:
    """Give errors that name no file the location of a key in a scenario's tree.

    Args:
        tree: The merged tree; None for a scenario made in Python: errors then name the key alone.
        key: Path of the key that is read, such as "robots.rover"; "" where errors name their keys themselves.

    Raises:
        RoboyardError: What was raised within, with its location.
    """
    try:
        yield
    except RoboyardError as error:
        error.location = _locate_error(tree, key, error.location)
        raise


def _locate_error(tree: YamlNode | None, key: str, location: str | None) -> str | None:
    """Return the place of an error that was raised while a key was read, from the location that it has."""
    if not key:
        is_key = tree is not None and location is not None and not find_along_path(tree, location)[1]
        return locate_key(tree, location or "") if is_key else location
    if location is None or location == key:
        return locate_key(tree, key)
    if location.startswith(f"{key}."):
        return locate_key(tree, location)
    if _names_a_file(location):
        return location
    if tree is not None and not find_along_path(tree, f"{key}.{location}")[1]:
        return locate_key(tree, f"{key}.{location}")
    return f"{locate_key(tree, key)}: {location}"


def locate_key(tree: YamlNode | None, key: str) -> str:
    """Return where a key was written, with the key itself: "mine.yaml:12, robots.rover"; the key alone if unknown."""
    if tree is None:
        return key
    found, _ = find_along_path(tree, key)
    location = found.location
    return key if not location else location if location.endswith(f" {key}") else f"{location}, {key}"


def _names_a_file(location: str) -> bool:
    """Whether a location begins with a file, with or without a line, or with an option of the command line."""
    name = location.split(", ")[0].rpartition(":")
    path = name[0] if name[2].isdecimal() else location.split(", ")[0]
    return path.startswith("--") or "/" in path or Path(path).suffix in (".yaml", ".yml", ".xml", ".sdf", ".urdf")


def _with_absolute_paths(tree: YamlNode, folder: Path) -> YamlNode:
    """Return the tree with paths of files beside it made absolute, for a scenario in another folder."""
    path_keys = _path_keys(tree)
    for part in _PARTS_WITH_PATHS:
        for key in path_keys:
            tree = _make_absolute(tree, (part + key).split("."), folder)
    return tree


def _path_keys(tree: YamlNode) -> tuple[str, ...]:
    """Return the keys that hold paths, those of run plug-ins included; plug-ins are imported only if the tree has one.

    Raises:
        ConfigError: A run plug-in is wrong.
    """
    core_keys = {field.name for field in fields(ScenarioConfig)}
    if all(core_keys.issuperset(part.value) for part in _scenario_parts(tree) if isinstance(part.value, dict)):
        return _PATH_KEYS
    contributed = (
        f"{name}.{path}".rstrip(".")
        for name, scenario_key in scenario_keys().items()
        for path in scenario_key.path_keys
    )
    return (*_PATH_KEYS, *contributed)


def _scenario_parts(tree: YamlNode) -> Iterator[YamlNode]:
    """Iterate over a scenario and the parts that are laid over it: its variants, and the choices of its options."""
    yield tree
    for path in ("variants", "options"):
        section, remaining_path = find_along_path(tree, path)
        for child in section.value.values() if not remaining_path and isinstance(section.value, dict) else ():
            choices, remaining_path = find_along_path(child, "choices")
            if path == "variants":
                yield child
            elif not remaining_path and isinstance(choices.value, dict):
                yield from choices.value.values()


def _make_absolute(node: YamlNode, keys: list[str], folder: Path) -> YamlNode:
    if not keys:
        if not isinstance(node.value, str):
            return node
        for mark in ("#", ":"):  # worlds.npz#12, nodes.py:Class
            name, found_mark, remaining_path = node.value.partition(mark)
            if found_mark and (folder / name).is_file():
                return YamlNode(f"{folder / name}{mark}{remaining_path}", node.location, node.key_location)
        is_file = node.value and (folder / node.value).is_file()
        return YamlNode(str(folder / node.value), node.location, node.key_location) if is_file else node
    if isinstance(node.value, dict):
        entries = {
            name: _make_absolute(child, keys[1:], folder) if keys[0] in ("*", name) else child
            for name, child in node.value.items()
        }
        return YamlNode(entries, node.location, node.key_location, node.size)
    if isinstance(node.value, list) and keys[0] == "*":
        items = [_make_absolute(child, keys[1:], folder) for child in node.value]
        return YamlNode(items, node.location, node.key_location, node.size)
    return node
