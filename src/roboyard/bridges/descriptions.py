"""Robots as URDF for those outside, who look for them under ``robot_description``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from roboyard.description import Model
from roboyard.description.write import write_urdf
from roboyard.errors import RoboyardError


@dataclass(frozen=True, slots=True)
class Descriptions:
    """Robots of a run.

    Attributes:
        texts: URDF by the name of topic or parameter.
        files: Meshes and textures that these name, by the URI by which they do: nothing else is handed out.
    """

    texts: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, Path] = field(default_factory=dict)


def describe(robots: Iterable[tuple[str, Model]]) -> Descriptions:
    """Write robots as URDF; one that URDF cannot hold is left out.

    Args:
        robots: Namespaces ("" or "/rover") and models.
    """
    texts: dict[str, str] = {}
    files: dict[str, Path] = {}

    def named(path: Path, uri: str) -> str:
        name = path.absolute().as_uri()
        files[name] = path.absolute()
        return name

    for namespace, model in robots:
        written = _written(model, named)
        if written:
            texts[f"{namespace}/robot_description"] = written
    return Descriptions(texts, files)


def _written(model: Model, named: Callable[[Path, str], str]) -> str:
    try:
        return write_urdf(model, named).text
    except RoboyardError:
        return ""
