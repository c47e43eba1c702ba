"""Descriptions of robots and worlds by name or file, for conversion."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from roboyard.bringup.catalog import ROBOTS, WORLDS
from roboyard.description import load_model, load_world
from roboyard.description.write.conversion import DescriptionFormat, DescriptionSource

DescriptionKind = Literal["robot", "world"]


def find_description(
    name: str, to: DescriptionFormat, kind: DescriptionKind | None, *, repair: bool = False
) -> DescriptionSource:
    """Find and load the description of a robot or world.

    Args:
        name: A file, a robot's YAML file, or the name of an installed robot or world.
        to: The format into which it will be converted; URDF holds robots only.
        kind: How to read a file; None: by its content.
        repair: Repair what can be repaired.

    Raises:
        InputError: There is no such file.
        UnknownNameError: There is no such robot or world.
        DescriptionError: The description has a fault.
    """
    if name in ROBOTS:
        kind = "robot"
    elif name in WORLDS:
        kind = "world"
    path = (WORLDS if kind == "world" else ROBOTS).resolve(name)
    if path.suffix in (".yaml", ".yml"):
        from roboyard.bringup.robot_loader import load_robot_file

        package = load_robot_file(path)
        return DescriptionSource(package.load_model(repair=repair), package.description)
    if kind is None:
        kind = "robot" if to == "urdf" or not _describes_world(path) else "world"
    load = load_world if kind == "world" else load_model
    return DescriptionSource(load(path, repair=repair), path)


def _describes_world(path: Path) -> bool:
    """Return whether a file describes a world: by its root element in SDF, by bodies beside others in MJCF."""
    from roboyard.description.load import read_file
    from roboyard.description.xml import parse_xml

    root, _ = parse_xml(read_file(path)[1], str(path))
    if root.tag == "mujoco":
        inside = [child.tag for section in root.children_with_tag("worldbody") for child in section.children]
        return inside.count("body") > 1 or "geom" in inside or "light" in inside
    return root.child("world") is not None
