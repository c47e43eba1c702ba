"""Reads the parameter files that ROS users have: of ROS 2, with ``ros__parameters``, and plain ones of ROS 1."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from roboyard.errors import ConfigError

_MOST_BYTES = 1_000_000
_MOST_VALUES = 10_000
_KEY = "ros__parameters"
_SCIENTIFIC = re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+")


def ros_parameters(path: Path, nodes: tuple[str, ...]) -> dict[str, Any]:
    """A node's parameters in a ROS parameter file.

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
            raise ConfigError(f"has nothing for {nodes[0]}", location=str(path), valid=f"sections there: {found}")
        chosen = fitting
    else:
        inner = next((data[name] for name in nodes if isinstance(data.get(name), Mapping)), data)
        chosen = [inner]
    values: dict[str, Any] = {}
    for section in chosen:
        values.update(_flat(section, "", str(path), 0))
    return values


def _read(path: Path) -> Mapping[str, Any]:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ConfigError("is too long for a parameter file", location=str(path), valid=f"{_MOST_BYTES} bytes")
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


def _flat(data: Mapping[str, Any], above: str, where: str, depth: int) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in data.items():
        name = f"{above}{key}".replace(".", "_")
        if isinstance(value, Mapping):
            if depth >= 10:
                raise ConfigError("is nested too deeply", location=where, valid="10 levels")
            values.update(_flat(value, f"{name}_", where, depth + 1))
        else:
            values[name] = [_number(item) for item in value] if isinstance(value, list) else _number(value)
        if len(values) > _MOST_VALUES:
            raise ConfigError("has too many values", location=where, valid=f"{_MOST_VALUES}")
    return values
