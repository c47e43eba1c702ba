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
    from roboyard.scenarios.robot_package import RobotPackage

Kind = Literal["robot", "world", "scenario"]
WORLD_SUFFIXES = (".sdf", ".world", ".xml")
DESCRIPTION_SUFFIXES = (".urdf", ".xacro", ".sdf", ".xml", ".launch")
_COMMENT = re.compile(r"<!--(.*?)-->", re.DOTALL)
_SUMMARY = re.compile(r"^summary:\s*(.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Entry:
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


def robots() -> dict[str, Entry]:
    """All installed robots by name: `<name>/<name>.yaml` in the registered folders."""
    return _collect(
        "roboyard.robots", lambda folder: sorted(p for p in folder.glob("*/*.yaml") if p.stem == p.parent.name)
    )


def worlds() -> dict[str, Entry]:
    """All installed worlds by name: `<name>.sdf`, `.world` or `.xml`, in the registered folders or a folder each."""

    def find(folder: Path) -> list[Path]:
        paths = [*folder.glob("*"), *(p for p in folder.glob("*/*") if p.stem == p.parent.name)]
        return sorted(p for p in paths if p.suffix in WORLD_SUFFIXES and p.is_file())

    return _collect("roboyard.worlds", find)


def furniture() -> dict[str, Entry]:
    """All installed furniture that moves, by name: `furniture/<name>.sdf` in the folders of worlds."""
    return _collect("roboyard.worlds", lambda folder: sorted((folder / "furniture").glob("*.sdf")))


def find_furniture(name: str, base: Path | None = None) -> Path:
    """The file of a piece of furniture, by its name or a path. Raises UnknownNameError, InputError."""
    if _is_path(name):
        return find_file(name, base)
    known = furniture()
    if name not in known:
        raise unknown_name_error("furniture", name, list(known), "or a path to a file")
    return known[name].path


def things() -> dict[str, Entry]:
    """All installed things that stand or lie about, by name: `things/<name>.sdf` in the folders of worlds."""
    return _collect("roboyard.worlds", lambda folder: sorted((folder / "things").glob("*.sdf")))


def find_thing(name: str, base: Path | None = None) -> Path:
    """The file of a thing, by its name or a path. Raises UnknownNameError, InputError."""
    if _is_path(name):
        return find_file(name, base)
    known = things()
    if name not in known:
        raise unknown_name_error("thing", name, list(known), "or a path to a file")
    return known[name].path


def scenarios() -> dict[str, Entry]:
    """All installed scenarios by name: `<name>.yaml` in the registered folders."""
    return _collect("roboyard.scenarios", lambda folder: sorted(folder.glob("*.yaml")))


def find(kind: Kind, name: str, base: Path | None = None) -> Path:
    """The file of a robot, world or scenario.

    Args:
        kind: Which of the three.
        name: Its name, or a path if it contains "/" or a suffix; relative to ``base``, else to the working directory.
            Worlds of the BARN benchmark have numbers: ``FILE.npz#12``, or ``barn#12`` for one made in its manner.
        base: Folder of the file that mentions it.

    Raises:
        UnknownNameError: there is none of this name.
        InputError: there is no such file.
    """
    if kind == "world" and "#" in name:
        from roboyard.scenarios.barn import is_numbered, world_file

        if is_numbered(name):
            return world_file(name, base)
    if _is_path(name):
        return find_file(name, base)
    known = {"robot": robots, "world": worlds, "scenario": scenarios}[kind]()
    if name not in known:
        raise unknown_name_error(kind, name, list(known), "or a path to a file")
    return known[name].path


def find_file(name: str, base: Path | None = None) -> Path:
    """A file by path: as it stands, or relative to ``base`` first; or ``package://name/path`` of a ROS workspace.

    Raises:
        InputError: it is not there.
    """
    if name.startswith("package://"):
        return _in_package(name)
    path = Path(name).expanduser()
    for candidate in [*([base / path] if base is not None and not path.is_absolute() else []), path]:
        if candidate.is_file():
            return candidate
    if path.exists():
        what = "a folder" if path.is_dir() else "no regular file"
        raise InputError(f"{name} is {what}", valid="a file")
    raise InputError(f"there is no file {name}", valid="a path that exists" + (f", e.g. beside {base}" if base else ""))


def _in_package(uri: str) -> Path:
    """A file of a package that ROS_PACKAGE_PATH or AMENT_PREFIX_PATH leads to."""
    from roboyard.description.resources import Resources

    found = Resources(environment=os.environ).resolve(uri)
    if found.path is None:
        why = f": {found.problem}" if found.problem else ""
        raise InputError(
            f"there is no file {uri}{why}", valid="a package that ROS_PACKAGE_PATH or AMENT_PREFIX_PATH leads to"
        )
    return found.path


def find_robot(
    name: str,
    base: Path | None = None,
    arguments: dict[str, str] | None = None,
    *,
    repair: bool = False,
    calibrated: bool = True,
) -> RobotPackage:
    """A robot's package, from its name, its YAML, or a bare description (then its nodes are derived from that).

    With ``repair`` faults of a bare description that can be mended do not keep it from being read.  The drive's stored
    calibration is in its nodes, unless ``calibrated`` is False.

    Raises:
        UnknownNameError, InputError: as ``find``; ConfigError, DescriptionError: the file is not right.
    """
    from roboyard.scenarios.calibrated import with_calibration
    from roboyard.scenarios.robot_package import load_robot

    path = find("robot", name, base)
    if path.suffix in (".yaml", ".yml"):
        package = load_robot(path)
    else:
        from roboyard.scenarios.bringup import derive_package

        package = derive_package(path, arguments or {}, repair=repair)
    return with_calibration(package) if calibrated else package


def node_class(use: str, base: Path | None = None) -> type[Node]:
    """The class of a node by registered name, ``module:Class`` or ``file.py:Class``.

    Raises:
        UnknownNameError: no such name, module, file or class.
        ConfigError: it is no node, or its module fails on import.
    """
    place, _, attribute = use.rpartition(":")
    return NODES.resolve(f"{find_file(place, base)}:{attribute}" if place.endswith(".py") else use)


def _node_base() -> type:
    from roboyard.bus import Node

    return Node


NODES: Registry[type[Node]] = Registry("node", group="roboyard.nodes", base=_node_base)


# -- how it is found -------------------------------------------------------------------------------------------------
def _is_path(name: str) -> bool:
    return "/" in name or Path(name).suffix in (".yaml", ".yml", *WORLD_SUFFIXES, *DESCRIPTION_SUFFIXES)


@lru_cache(maxsize=8)
def _points(group: str) -> tuple[EntryPoint, ...]:
    return tuple(sorted(entry_points(group=group), key=lambda point: (point.name, point.value)))


def _collect(group: str, find: Callable[[Path], list[Path]]) -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    for point in _points(group):
        origin = point.dist.name if point.dist else ""
        for folder in _folders(point):
            for path in find(folder):
                name = path.stem
                found.setdefault(name, Entry(name, path, _read_summary(path), origin))
    return found


def _folders(point: EntryPoint) -> Iterator[Path]:
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
            head = file.read(4096).decode("utf-8", "replace")
    except OSError:
        return ""
    match = (_SUMMARY if path.suffix == ".yaml" else _COMMENT).search(head)
    return " ".join(match[1].split()).strip("'\"") if match else ""
