"""A scenario's setting: things laid out by its seed, light and floor, put into its world before anything moves."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np

from roboyard.config import ValueConstraint, parameter
from roboyard.description import Model, World, load_model
from roboyard.description.model import Light, Link, PlacedModel
from roboyard.errors import ConfigError, RoboyardError
from roboyard.scenarios.catalog import find_thing
from roboyard.scenarios.faults.kinds import POSE, Pose
from roboyard.scenarios.places import place
from roboyard.scenarios.scatter import Sector, scatter
from roboyard.scenarios.surfaces import Floor, floor_file
from roboyard.simulation.randomness import generator

FLOOR = "floor"
"""The visual whose surface ``looks.floor`` is."""
_Span = Annotated[tuple[float, float], ValueConstraint(low=0.0, high=100.0)]


@dataclass(frozen=True, kw_only=True)
class SectorEntry:
    """Part of a ring on the ground."""

    about: tuple[float, float] = parameter((0.0, 0.0), unit="m", doc="[x, y] of its middle")
    radius: tuple[float, float] = parameter(unit="m", low=0.0, high=1000.0, doc="[inner, outer]")
    bearing: tuple[float, float] = parameter((-math.pi, math.pi), unit="rad", doc="[from, to], counterclockwise from x")

    def __post_init__(self) -> None:
        if self.radius[0] > self.radius[1] or self.bearing[0] > self.bearing[1]:
            raise ConfigError(
                f"radius {list(self.radius)}, bearing {list(self.bearing)}", valid="the smaller one first"
            )


@dataclass(frozen=True, kw_only=True)
class ThingEntry:
    """Things that are there from the beginning: at a place, or drawn at random by the seed."""

    model: str = parameter(doc="`disc_cylinder`, `heavy_cylinder`, `place_symbol`, `shelf`, or a path to a file")
    at: Pose | None = parameter(None, doc=f"{POSE} in m and rad")
    sector: SectorEntry | None = parameter(None, doc="where it is drawn instead")
    count: int = parameter(1, low=1, high=1000, doc="how many are drawn; they are called NAME_1, NAME_2, …")
    apart: float = parameter(0.06, unit="m", low=0.0, high=100.0, doc="between the middles of what is drawn")
    height: float = parameter(0.0, unit="m", low=-100.0, high=100.0, doc="of what those that are drawn stand on")
    turn: float = parameter(math.pi, unit="rad", low=0.0, high=math.pi, doc="each is turned by as much, either way")

    def __post_init__(self) -> None:
        if (self.at is None) == (self.sector is None):
            raise ConfigError("neither or both of 'at' and 'sector'", valid="one of them")
        if self.at is not None and self.count != 1:
            raise ConfigError(f"{self.count} things at one place", valid="count 1, or a sector")


@dataclass(frozen=True)
class LooksEntry:
    """Light and floor."""

    light: float | _Span = parameter(
        1.0, low=0.0, high=100.0, doc="times the world's own; [from, to]: drawn by the seed"
    )
    floor: Floor | tuple[Floor, ...] | None = parameter(
        None, doc="of the visual `floor`: plain, wood, terrazzo, tiles or carpet; a list: drawn by the seed"
    )


def set_out(
    world: World, things: Mapping[str, ThingEntry], looks: LooksEntry, seed: int, base: Path | None = None
) -> World:
    """The world with a scenario's things, light and floor; the same for the same seed.

    Args:
        world: As its file says.
        things: By name.
        looks: Light and floor.
        seed: Of the run.
        base: Folder that paths of things are looked up in first.

    Raises:
        ConfigError: a name is taken, there is no room, or the world has no floor that could look otherwise.
        UnknownNameError, InputError, DescriptionError: a thing's file is not there or not right.
    """
    return _lit(replace(world, models=(*world.models, *_things(world, things, seed, base))), looks, seed)


def _things(world: World, things: Mapping[str, ThingEntry], seed: int, base: Path | None) -> list[PlacedModel]:
    found: list[PlacedModel] = []
    taken: list[tuple[float, float]] = []
    names = {placed.name for placed in world.models}
    for name, entry in things.items():
        where = f"things.{name}"
        try:
            model = load_model(find_thing(entry.model, base))
            poses = [entry.at] if entry.at is not None else _drawn(entry, generator(seed, where), taken)
        except ConfigError:
            raise
        except RoboyardError as error:
            raise type(error)(error.message, location=error.location or where, valid=error.valid) from error
        for number, pose in enumerate(poses, 1):
            called = f"{name}_{number}" if entry.count > 1 else name
            if called in names:
                raise ConfigError(f"there is something called {called!r} already", location=where, valid="another name")
            names.add(called)
            found.append(PlacedModel(called, _named(model, called), place(pose, model)))
    return found


def _named(model: Model, name: str) -> Model:
    return replace(model, name=name)


def _drawn(entry: ThingEntry, rng: np.random.Generator, taken: list[tuple[float, float]]) -> list[Pose]:
    """Poses of an entry's things; adds their middles to ``taken``."""
    sector = entry.sector
    if sector is None:
        return []
    poses = scatter(
        rng, Sector(sector.about, sector.radius, sector.bearing), entry.count, entry.apart, taken, entry.turn
    )
    taken += [(pose.x, pose.y) for pose in poses]
    return [(pose.x, pose.y, entry.height, 0.0, 0.0, pose.theta) for pose in poses]


def _lit(world: World, looks: LooksEntry, seed: int) -> World:
    rng = generator(seed, "looks")
    light = looks.light if isinstance(looks.light, float | int) else float(rng.uniform(*looks.light))
    if light != 1.0:
        ambient = _times(world.ambient, light)
        world = replace(world, lights=tuple(_dimmed(lamp, light) for lamp in world.lights), ambient=ambient)
    if looks.floor is None:
        return world
    choice = (looks.floor,) if isinstance(looks.floor, str) else looks.floor
    if not choice:
        raise ConfigError("an empty list", location="looks.floor", valid="at least one floor")
    texture = floor_file(choice[int(rng.integers(len(choice)))])
    models = tuple(replace(one, model=_floored(one.model, texture)) for one in world.models)
    if not any(visual.name == FLOOR for one in models for link in one.model.links for visual in link.visuals):
        raise ConfigError(
            f"world {world.name} has no visual {FLOOR!r}", location="looks.floor", valid="e.g. world station"
        )
    return replace(world, models=models)


def _floored(model: Model, texture: Path | None) -> Model:
    if texture is None or not any(visual.name == FLOOR for link in model.links for visual in link.visuals):
        return model
    return replace(model, links=tuple(_with_floor(link, texture) for link in model.links))


def _with_floor(link: Link, texture: Path) -> Link:
    visuals = tuple(
        replace(one, material=replace(one.material, rgba=(1.0, 1.0, 1.0, 1.0), texture=texture))
        if one.name == FLOOR
        else one
        for one in link.visuals
    )
    return replace(link, visuals=visuals)


def _dimmed(lamp: Light, light: float) -> Light:
    return replace(lamp, diffuse=_times(lamp.diffuse, light), specular=_times(lamp.specular, light))


def _times(colour: tuple[float, float, float, float], light: float) -> tuple[float, float, float, float]:
    r, g, b, a = colour
    return min(r * light, 1.0), min(g * light, 1.0), min(b * light, 1.0), a
