"""What there is to choose from: robots, worlds, scenarios and nodes, from every installed package and from files.

A package offers folders of files through the entry-point groups ``roboyard.robots``, ``roboyard.worlds`` and
``roboyard.scenarios`` (value: a module or folder of modules that holds the files), and single node classes through
``roboyard.nodes`` (value: ``module:Class``).  Roboyard's own are registered the same way.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from roboyard.config.registry import Registry, unknown_name_error
from roboyard.errors import ConfigError, InputError

if TYPE_CHECKING:
    from roboyard.bus import Node

Kind = Literal["robot", "world", "scenario"]
WORLD_SUFFIXES = (".sdf", ".world", ".xml")
DESCRIPTION_SUFFIXES = (".urdf", ".xacro", ".sdf", ".xml", ".launch")
_COMMENT = re.compile(r"<!--(.*?)-->", re.DOTALL)
_SUMMARY = re.compile(r"^summary:\s*(.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """One thing to choose.

    Attributes:
        name: What it is called.
        path: Its file.
        summary: One line on what it is.
        origin: Name of the distribution that brings it.
    """

    name: str
    path: Path
    summary: str
    origin: str


def robots() -> dict[str, CatalogEntry]:
    """All installed robots by name: `<name>/<name>.yaml` in the registered folders."""
    return _collect(
        "roboyard.robots", lambda folder: sorted(p for p in folder.glob("*/*.yaml") if p.stem == p.parent.name)
    )


def worlds() -> dict[str, CatalogEntry]:
    """All installed worlds by name: `<name>.sdf`, `.world` or `.xml`, in the registered folders or a folder each."""

    def find(folder: Path) -> list[Path]:
        paths = [*folder.glob("*"), *(p for p in folder.glob("*/*") if p.stem == p.parent.name)]
        return sorted(p for p in paths if p.suffix in WORLD_SUFFIXES and p.is_file())

    return _collect("roboyard.worlds", find)


def devices() -> dict[str, CatalogEntry]:
    """All installed furniture that moves, by name: `<name>.sdf` in the folders of devices."""
    return _collect("roboyard.devices", lambda folder: sorted(folder.glob("*.sdf")))


def find_device(name: str, base_folder: Path | None = None) -> Path:
    """The file of a piece of furniture, by its name or a path. Raises UnknownNameError, InputError."""
    if _is_path(name):
        return find_file(name, base_folder)
    entries = devices()
    if name not in entries:
        raise unknown_name_error("device", name, list(entries), "or a path to a file")
    return entries[name].path


def objects() -> dict[str, CatalogEntry]:
    """All installed things that stand or lie about, by name: `<name>.sdf` in the folders of objects."""
    return _collect("roboyard.objects", lambda folder: sorted(folder.glob("*.sdf")))


def find_object(name: str, base_folder: Path | None = None) -> Path:
    """The file of a thing, by its name or a path. Raises UnknownNameError, InputError."""
    if _is_path(name):
        return find_file(name, base_folder)
    entries = objects()
    if name not in entries:
        raise unknown_name_error("object", name, list(entries), "or a path to a file")
    return entries[name].path


def scenarios() -> dict[str, CatalogEntry]:
    """All installed scenarios by name: `<name>.yaml` in the registered folders."""
    return _collect("roboyard.scenarios", lambda folder: sorted(folder.glob("*.yaml")))


def find_catalog_file(kind: Kind, name: str, base_folder: Path | None = None) -> Path:
    """The file of a robot, world or scenario.

    Args:
        kind: Which of the three.
        name: Its name, or a path if it contains "/" or a suffix; relative to ``base_folder``, else to the working
            directory.
            Worlds of the BARN benchmark have numbers: ``FILE.npz#12``, or ``barn#12`` for one made in its manner.
        base_folder: Folder of the file that mentions it.

    Raises:
        UnknownNameError: there is none of this name.
        InputError: there is no such file.
    """
    if kind == "world" and "#" in name:
        from roboyard.scenarios.world.barn import barn_world_sdf, is_barn_world

        if is_barn_world(name):
            return barn_world_sdf(name, base_folder)
    if _is_path(name):
        return find_file(name, base_folder)
    entries = {"robot": robots, "world": worlds, "scenario": scenarios}[kind]()
    if name not in entries:
        raise unknown_name_error(kind, name, list(entries), "or a path to a file")
    return entries[name].path


def find_file(name: str, base_folder: Path | None = None) -> Path:
    """A file by path: as it stands, or relative to ``base_folder`` first; or ``package://name/path`` of a ROS
    workspace.

    Raises:
        InputError: it is not there.
    """
    if name.startswith("package://"):
        return _find_in_ros_package(name)
    path = Path(name).expanduser()
    for candidate in [*([base_folder / path] if base_folder is not None and not path.is_absolute() else []), path]:
        if candidate.is_file():
            return candidate
    if path.exists():
        path_kind = "a folder" if path.is_dir() else "no regular file"
        raise InputError(f"{name} is {path_kind}", valid="a file")
    raise InputError(
        f"there is no file {name}", valid="a path that exists" + (f", e.g. beside {base_folder}" if base_folder else "")
    )


def _find_in_ros_package(uri: str) -> Path:
    """A file of a package that ROS_PACKAGE_PATH or AMENT_PREFIX_PATH leads to."""
    from roboyard.description.resources import Resources

    resolved = Resources(environment=os.environ).resolve(uri)
    if resolved.path is None:
        reason = f": {resolved.problem}" if resolved.problem else ""
        raise InputError(
            f"there is no file {uri}{reason}", valid="a package that ROS_PACKAGE_PATH or AMENT_PREFIX_PATH leads to"
        )
    return resolved.path


def resolve_node_class(node_type: str, base_folder: Path | None = None) -> type[Node]:
    """The class of a node by registered name, ``module:Class`` or ``file.py:Class``.

    Raises:
        UnknownNameError: no such name, module, file or class.
        ConfigError: it is no node, or its module fails on import.
    """
    file_name, _, attribute = node_type.rpartition(":")
    return NODES.resolve(f"{find_file(file_name, base_folder)}:{attribute}" if file_name.endswith(".py") else node_type)


def _node_base_class() -> type:
    from roboyard.bus import Node

    return Node


NODES: Registry[type[Node]] = Registry("node", group="roboyard.nodes", base=_node_base_class)


# -- how it is found -------------------------------------------------------------------------------------------------
def _is_path(name: str) -> bool:
    return "/" in name or Path(name).suffix in (".yaml", ".yml", *WORLD_SUFFIXES, *DESCRIPTION_SUFFIXES)


@lru_cache(maxsize=8)
def _entry_points(group: str) -> tuple[EntryPoint, ...]:
    return tuple(sorted(entry_points(group=group), key=lambda point: (point.name, point.value)))


def _collect(group: str, list_files: Callable[[Path], list[Path]]) -> dict[str, CatalogEntry]:
    entries: dict[str, CatalogEntry] = {}
    for point in _entry_points(group):
        origin = point.dist.name if point.dist else ""
        for folder in _entry_point_folders(point):
            for path in list_files(folder):
                name = path.stem
                entries.setdefault(name, CatalogEntry(name, path, _read_summary(path), origin))
    return entries


def _entry_point_folders(point: EntryPoint) -> Iterator[Path]:
    try:
        spec = importlib.util.find_spec(point.value)
    except (ImportError, ValueError) as error:
        raise ConfigError(
            f"cannot be found: {error}", location=f"entry point {point.name} of group {point.group}"
        ) from error
    if spec is not None and spec.submodule_search_locations:
        yield from map(Path, spec.submodule_search_locations)
    elif spec is not None and spec.origin:
        yield Path(spec.origin).parent


def _read_summary(path: Path) -> str:
    """One line: `summary:` of a YAML, the first comment of an XML file."""
    try:
        with path.open("rb") as file:
            beginning = file.read(4096).decode("utf-8", "replace")
    except OSError:
        return ""
    summary_match = (_SUMMARY if path.suffix == ".yaml" else _COMMENT).search(beginning)
    return " ".join(summary_match[1].split()).strip("'\"") if summary_match else ""
