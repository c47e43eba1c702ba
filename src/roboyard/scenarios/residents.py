"""Robots that stand in a world's own file: which they are, and the names that a scenario gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from roboyard.description import World
from roboyard.errors import UnknownNameError
from roboyard.scenarios.plugins import map_plugins
from roboyard.simulation.furniture import furniture_of

RESIDENT = "world:"
"""A robot's model that begins so is the one of that name in the world."""


def resident(model: str) -> str:
    """Name in the world of a scenario's robot; empty for one that is put there."""
    return model.removeprefix(RESIDENT) if model.startswith(RESIDENT) else ""


def can_wake(world: World) -> tuple[str, ...]:
    """Models of the world whose plugins drive them or command their joints.

    Raises:
        DescriptionError: their plugins make no sense.
    """
    found = []
    for placed in world.models:
        if not placed.model.plugins or placed.model.static or furniture_of(placed.model) is not None:
            continue
        part = map_plugins(placed.model)
        if part.drives or part.groups or part.nodes:
            found.append(placed.name)
    return tuple(found)


def renamed(world: World, names: Mapping[str, str]) -> World:
    """The world with models called as ``names`` (old: new) says.

    Raises:
        UnknownNameError: the world has no such model, or another one has the new name already.
    """
    there = [placed.name for placed in world.models]
    for old, new in names.items():
        if old not in there:
            raise UnknownNameError(
                f"the world has no model {old!r}",
                location=str(world.source or world.name),
                valid=", ".join(there) or "none",
            )
        if new in there and new != old and new not in names:
            raise UnknownNameError(f"the world has a model {new!r} already", valid="another name for the robot")

    def end(name: str) -> str:
        model, colons, link = name.partition("::")
        return f"{names.get(model, model)}{colons}{link}"

    models = tuple(replace(placed, name=names.get(placed.name, placed.name)) for placed in world.models)
    joints = tuple(replace(joint, parent=end(joint.parent), child=end(joint.child)) for joint in world.joints)
    return replace(world, models=models, joints=joints)
