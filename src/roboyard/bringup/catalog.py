"""Registries of what a scenario can name: robots, worlds, devices, objects and scenarios (files), and nodes (classes).

An installed package offers folders of files through the entry-point groups ``roboyard.robots``, ``roboyard.worlds``,
``roboyard.devices``, ``roboyard.objects`` and ``roboyard.scenarios`` (value: a module, or a package of modules, in
whose folder the files lie), node classes through ``roboyard.nodes`` (value: ``module:Class``), and worlds that it
generates or reads from collections through ``roboyard.world_sources``. Roboyard's own are registered the same way.
"""

from __future__ import annotations

import importlib.util
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING

from roboyard.config.registry import Registry, unknown_name_error
from roboyard.errors import ConfigError, InputError

if TYPE_CHECKING:
    from roboyard.bus import Node

WORLD_SUFFIXES = (".sdf", ".world", ".xml")
DESCRIPTION_SUFFIXES = (".urdf", ".xacro", ".sdf", ".xml", ".launch")
_PATH_SUFFIXES = (".yaml", ".yml", *WORLD_SUFFIXES, *DESCRIPTION_SUFFIXES)
_COMMENT = re.compile(r"<!--(.*?)-->", re.DOTALL)
_SUMMARY = re.compile(r"^summary:\s*(.+)$", re.MULTILINE)
_SUMMARY_BYTES = 4096
"""The summary of a file is looked for in so many of its first bytes."""


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A file that has a name.

    Attributes:
        name: Its name.
        path: Path of the file.
        summary: One line on what it is.
        origin: Name of the distribution that brings it.
    """

    name: str
    path: Path
    summary: str
    origin: str


class FileRegistry(Mapping[str, CatalogEntry]):
    """Files of one kind by name, from the folders that installed packages register.

    The folders are searched anew on every access, so that a file added during a session is found.

    Args:
        kind: Kind of the files, for errors: "robot".
        group: Group of the entry points with which packages register folders.
        list_files: Lists the files of this kind in a folder.
    """

    def __init__(self, kind: str, *, group: str, list_files: Callable[[Path], Iterable[Path]]) -> None:
        self.kind = kind
        self.group = group
        self._list_files = list_files

    def __getitem__(self, name: str) -> CatalogEntry:
        """Return the entry of a name.

        Raises:
            UnknownNameError: There is none of this name.
        """
        files = self._files()
        if name not in files:
            raise unknown_name_error(self.kind, name, list(files), "or a path to a file")
        path, origin = files[name]
        return CatalogEntry(name, path, _read_summary(path), origin)

    def __contains__(self, name: object) -> bool:
        return name in self._files()

    def __iter__(self) -> Iterator[str]:
        return iter(self._files())

    def __len__(self) -> int:
        return len(self._files())

    def entries(self) -> list[CatalogEntry]:
        """Return all entries; unlike `values`, this searches the folders once and not for each entry."""
        return [CatalogEntry(name, path, _read_summary(path), origin) for name, (path, origin) in self._files().items()]

    def resolve(self, reference: str, base_folder: Path | None = None) -> Path:
        """Return the path of a file of this kind.

        Args:
            reference: A registered name; or a path, if it contains "/" or has the suffix of such a file.
            base_folder: Folder that relative paths start from, before the working directory.

        Raises:
            UnknownNameError: There is none of this name.
            InputError: There is no such file.
        """
        if "/" in reference or Path(reference).suffix in _PATH_SUFFIXES:
            return find_file(reference, base_folder)
        files = self._files()
        if reference not in files:
            raise unknown_name_error(self.kind, reference, list(files), "or a path to a file")
        return files[reference][0]

    def has_path(self, path: Path) -> bool:
        """Return whether a path is that of a registered file."""
        return any(path.samefile(registered) for registered, _ in self._files().values() if registered.is_file())

    def _files(self) -> dict[str, tuple[Path, str]]:
        """Path and distribution of each file by name; the first package wins a name."""
        found: dict[str, tuple[Path, str]] = {}
        for point in _entry_points(self.group):
            origin = point.dist.name if point.dist else ""
            for folder in _entry_point_folders(point):
                for path in self._list_files(folder):
                    found.setdefault(path.stem, (path, origin))
        return found


class WorldSource(ABC):
    """A collection of worlds that are numbered, not named: ``COLLECTION#NUMBER``."""

    @abstractmethod
    def contains(self, name: str) -> bool:
        """Return whether this source knows the collection of such a name; the number need not exist."""

    @abstractmethod
    def resolve(self, name: str, base_folder: Path | None) -> Path:
        """Return the path of a world's file; a source may write that file first.

        Args:
            name: Name that `contains` accepted.
            base_folder: Folder that relative paths start from, before the working directory.

        Raises:
            InputError: There is no such collection, or no such number in it.
        """


class WorldRegistry(FileRegistry):
    """Worlds by name: files, and the numbered worlds of `WORLD_SOURCES`."""

    def resolve(self, reference: str, base_folder: Path | None = None) -> Path:
        """Return the path of a world; see `FileRegistry.resolve` and `WorldSource.resolve`."""
        if "#" in reference:
            for source_name in WORLD_SOURCES.names():
                source = WORLD_SOURCES[source_name]()
                if source.contains(reference):
                    return source.resolve(reference, base_folder)
        return super().resolve(reference, base_folder)


def _list_robots(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*/*.yaml") if path.stem == path.parent.name)


def _list_worlds(folder: Path) -> list[Path]:
    paths = [*folder.glob("*"), *(path for path in folder.glob("*/*") if path.stem == path.parent.name)]
    return sorted(path for path in paths if path.suffix in WORLD_SUFFIXES and path.is_file())


def _list_sdf_models(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.sdf"))


def _list_scenarios(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.yaml"))


def _node_base_class() -> type:
    from roboyard.bus import Node  # `roboyard list robots` needs no bus

    return Node


ROBOTS = FileRegistry("robot", group="roboyard.robots", list_files=_list_robots)
"""Robots: ``NAME/NAME.yaml`` in the registered folders."""
WORLDS = WorldRegistry("world", group="roboyard.worlds", list_files=_list_worlds)
"""Worlds: ``NAME.sdf``, ``.world`` or ``.xml`` in the registered folders, or in a folder NAME of them."""
DEVICES = FileRegistry("device", group="roboyard.devices", list_files=_list_sdf_models)
"""Devices that move: conveyor belts, doors, turntables; ``NAME.sdf``."""
OBJECTS = FileRegistry("object", group="roboyard.objects", list_files=_list_sdf_models)
"""Objects that stand or lie about: ``NAME.sdf``."""
SCENARIOS = FileRegistry("scenario", group="roboyard.scenarios", list_files=_list_scenarios)
"""Scenarios: ``NAME.yaml``."""
WORLD_SOURCES: Registry[type[WorldSource]] = Registry(
    "world source", group="roboyard.world_sources", base=lambda: WorldSource
)
"""Sources of numbered worlds."""
NODES: Registry[type[Node]] = Registry("node", group="roboyard.nodes", base=_node_base_class)
"""Classes of nodes."""


def find_file(name: str, base_folder: Path | None = None) -> Path:
    """Return the path of an existing file.

    Args:
        name: Path, absolute or relative; or ``package://name/path`` of a ROS workspace.
        base_folder: Folder that a relative path starts from, before the working directory.

    Raises:
        InputError: There is no such file.
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
    """Return the path of a file of a package that ROS_PACKAGE_PATH or AMENT_PREFIX_PATH leads to."""
    from roboyard.description.resources import Resources

    resolved = Resources(environment=os.environ).resolve(uri)
    if resolved.path is None:
        reason = f": {resolved.problem}" if resolved.problem else ""
        raise InputError(
            f"there is no file {uri}{reason}", valid="a package that ROS_PACKAGE_PATH or AMENT_PREFIX_PATH leads to"
        )
    return resolved.path


def resolve_node_class(node_type: str, base_folder: Path | None = None) -> type[Node]:
    """Return the class of a node.

    Args:
        node_type: A registered name, ``module:Class`` or ``file.py:Class``.
        base_folder: Folder that the path of a file starts from, before the working directory.

    Raises:
        UnknownNameError: There is no such name, module, file or class.
        InputError: There is no such file.
        ConfigError: It is no node, or its module fails on import.
    """
    file_name, _, attribute = node_type.rpartition(":")
    return NODES.resolve(f"{find_file(file_name, base_folder)}:{attribute}" if file_name.endswith(".py") else node_type)


@lru_cache(maxsize=8)
def _entry_points(group: str) -> tuple[EntryPoint, ...]:
    return tuple(sorted(entry_points(group=group), key=lambda point: (point.name, point.value)))


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
    """Return one line: ``summary:`` of a YAML file, the first comment of an XML file; "" without."""
    try:
        with path.open("rb") as file:
            beginning = file.read(_SUMMARY_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
    summary_match = (_SUMMARY if path.suffix == ".yaml" else _COMMENT).search(beginning)
    return " ".join(summary_match[1].split()).strip("'\"") if summary_match else ""
