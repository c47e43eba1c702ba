"""Parameter files of ROS nodes: of ROS 2, with ``ros__parameters``, and plain ones of ROS 1."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import yaml

from roboyard.config.configuration import Config
from roboyard.config.parameter import parameter
from roboyard.errors import ConfigError

_MAX_BYTES = 1_000_000
_MAX_VALUES = 10_000
_KEY = "ros__parameters"
_SCIENTIFIC = re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+")


class RosNodeConfig(Config):
    """Configuration of a node that also reads parameter files of the ROS node that it replaces.

    Attributes:
        ros_names: Names of the node in such files.
        ignored: Names of parameters there that do not change the result; the node does not warn of them.
    """

    ros_names: ClassVar[tuple[str, ...]] = ()
    ignored: ClassVar[frozenset[str]] = frozenset({"use_sim_time", "save_pose_rate", "print_diagnostics", "debug"})

    params_file: str = parameter(
        "", doc="ROS parameter file with this node's section; relative to the folder in which the run starts."
    )
    params_section: str = parameter("", doc="Name of the node in params_file, where it differs from the usual names.")

    @classmethod
    def read_ros_file(cls, path: Path, section: str = "") -> tuple[dict[str, Any], tuple[str, ...]]:
        """Read the keyword arguments of the configuration from a ROS parameter file.

        Args:
            path: The file.
            section: Name of the node in the file; empty: one of ``ros_names``.

        Returns:
            The values by key, and the names of parameters that this configuration neither has nor ignores.

        Raises:
            ConfigError: as for `read_ros_parameters`.
        """
        names = {alias: name for name, item in cls.descriptors().items() for alias in item.info.aliases}
        keys = cls.keys()
        values = {
            names.get(key, key): value
            for key, value in read_ros_parameters(path, (section,) if section else cls.ros_names).items()
        }
        unknown = tuple(sorted(key for key in values if key not in keys and key not in cls.ignored))
        return {key: value for key, value in values.items() if key in keys}, unknown


def read_ros_parameters(path: Path, nodes: tuple[str, ...]) -> dict[str, Any]:
    """Read a node's parameters from a ROS parameter file.

    Args:
        path: The file.
        nodes: Names that the node's section may have; ``/**`` fits every node, and namespaces before are passed over.
            A file without any ``ros__parameters`` is one of ROS 1: its sections are named alike, or it has none.

    Returns:
        Values by name; names of nested ones are joined by ``_`` (``initial_pose.x`` is ``initial_pose_x``).

    Raises:
        ConfigError: it cannot be read, is no mapping, or has no section for the node.
    """
    data = _read(path)
    sections = _sections(data, "")
    if sections:
        fitting = [values for name, values in sections if name.split("/")[-1] in (*nodes, "**")]
        if not fitting:
            found = ", ".join(sorted({name for name, _ in sections}))
            raise ConfigError(f"has no section for {nodes[0]}", location=str(path), valid=f"sections there: {found}")
        selected = fitting
    else:
        inner = next((data[name] for name in nodes if isinstance(data.get(name), Mapping)), data)
        selected = [inner]
    values: dict[str, Any] = {}
    for section in selected:
        values.update(_flat(section, "", str(path), 0))
    return values


def _read(path: Path) -> Mapping[str, Any]:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise ConfigError("is too long for a parameter file", location=str(path), valid=f"{_MAX_BYTES} bytes")
        data = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read: {error}", location=str(path), valid="a parameter file of ROS") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ConfigError(f"is no YAML: {first}", location=str(path), valid="a parameter file of ROS") from error
    if not isinstance(data, Mapping):
        raise ConfigError("is no mapping", location=str(path), valid="node: {ros__parameters: {…}}")
    return data


def _sections(data: Mapping[str, Any], name: str, depth: int = 0) -> list[tuple[str, Mapping[str, Any]]]:
    """All ``ros__parameters`` with the names above them; what fits more nodes comes first."""
    found: list[tuple[str, Mapping[str, Any]]] = []
    for key, value in data.items():
        if isinstance(value, Mapping) and depth < 20:
            if key == _KEY:
                found.append((name, value))
            else:
                found += _sections(value, f"{name}/{key}".replace("//", "/"), depth + 1)
    return sorted(found, key=lambda item: "**" not in item[0]) if depth == 0 else found


def _number(value: Any) -> Any:
    """``1e-9``, which YAML 1.1 takes for text and ROS for a number."""
    return float(value) if isinstance(value, str) and _SCIENTIFIC.fullmatch(value) else value


def _flat(data: Mapping[str, Any], above: str, location: str, depth: int) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in data.items():
        name = f"{above}{key}".replace(".", "_")
        if isinstance(value, Mapping):
            if depth >= 10:
                raise ConfigError("is nested too deeply", location=location, valid="10 levels")
            values.update(_flat(value, f"{name}_", location, depth + 1))
        else:
            values[name] = [_number(item) for item in value] if isinstance(value, list) else _number(value)
        if len(values) > _MAX_VALUES:
            raise ConfigError("has too many values", location=location, valid=f"{_MAX_VALUES}")
    return values
