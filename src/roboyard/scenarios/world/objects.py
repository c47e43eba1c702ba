"""Objects of a scenario: placed at poses, or sampled in annular sectors by the seed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from roboyard.bringup.catalog import OBJECTS
from roboyard.config import parameter
from roboyard.description import Model, World, load_model
from roboyard.description.extent import POSE_FORMAT, Pose, to_world_pose
from roboyard.description.model import PlacedModel
from roboyard.errors import ConfigError, InputError, RoboyardError
from roboyard.geometry import SE2
from roboyard.scenarios.world.appearance import AppearanceConfig, apply_appearance
from roboyard.simulation.randomness import generator


@dataclass(frozen=True, kw_only=True)
class SectorConfig:
    """Part of a ring on the ground."""

    center: tuple[float, float] = parameter((0.0, 0.0), unit="m", doc="[x, y] of its middle")
    radius: tuple[float, float] = parameter(unit="m", low=0.0, high=1000.0, doc="[inner, outer]")
    angle_range: tuple[float, float] = parameter(
        (-math.pi, math.pi), unit="rad", doc="[from, to], counterclockwise from x"
    )

    def __post_init__(self) -> None:
        if self.radius[0] > self.radius[1] or self.angle_range[0] > self.angle_range[1]:
            raise ConfigError(
                f"radius {list(self.radius)}, angle_range {list(self.angle_range)}", valid="the smaller one first"
            )


@dataclass(frozen=True, kw_only=True)
class ObjectConfig:
    """Things that are there from the beginning: at a place, or drawn at random by the seed."""

    model: str = parameter(doc="`disc_cylinder`, `heavy_cylinder`, `place_marker`, `shelf`, or a path to a file")
    pose: Pose | None = parameter(None, doc=f"{POSE_FORMAT} in m and rad")
    sector: SectorConfig | None = parameter(None, doc="where it is drawn instead")
    count: int = parameter(1, low=1, high=1000, doc="how many are drawn; they are called NAME_1, NAME_2, …")
    min_spacing: float = parameter(0.06, unit="m", low=0.0, high=100.0, doc="between the middles of what is drawn")
    surface_height: float = parameter(
        0.0, unit="m", low=-100.0, high=100.0, doc="of what those that are drawn stand on"
    )
    max_yaw: float = parameter(math.pi, unit="rad", low=0.0, high=math.pi, doc="each is turned by as much, either way")

    def __post_init__(self) -> None:
        if (self.pose is None) == (self.sector is None):
            raise ConfigError("neither or both of 'pose' and 'sector'", valid="one of them")
        if self.pose is not None and self.count != 1:
            raise ConfigError(f"{self.count} things at one place", valid="count 1, or a sector")


def add_objects_and_appearance(
    world: World, objects: Mapping[str, ObjectConfig], appearance: AppearanceConfig, seed: int, base: Path | None = None
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
    return apply_appearance(
        replace(world, models=(*world.models, *_place_objects(world, objects, seed, base))), appearance, seed
    )


def _place_objects(
    world: World, objects: Mapping[str, ObjectConfig], seed: int, base: Path | None
) -> list[PlacedModel]:
    placed: list[PlacedModel] = []
    occupied: list[tuple[float, float]] = []
    names = {model_entry.name for model_entry in world.models}
    for name, entry in objects.items():
        location = f"objects.{name}"
        try:
            model = load_model(OBJECTS.resolve(entry.model, base))
            poses = (
                [entry.pose]
                if entry.pose is not None
                else _sample_object_poses(entry, generator(seed, f"things.{name}"), occupied)
            )
        except ConfigError:
            raise
        except RoboyardError as error:
            raise type(error)(error.message, location=error.location or location, valid=error.valid) from error
        for number, pose in enumerate(poses, 1):
            unique_name = f"{name}_{number}" if entry.count > 1 else name
            if unique_name in names:
                raise ConfigError(
                    f"there is something called {unique_name!r} already", location=location, valid="another name"
                )
            names.add(unique_name)
            placed.append(PlacedModel(unique_name, _with_name(model, unique_name), to_world_pose(pose, model)))
    return placed


def _with_name(model: Model, name: str) -> Model:
    return replace(model, name=name)


def _sample_object_poses(
    config: ObjectConfig, rng: np.random.Generator, occupied: list[tuple[float, float]]
) -> list[Pose]:
    """Poses of an entry's things; adds their middles to ``taken``."""
    sector = config.sector
    if sector is None:
        return []
    poses = sample_poses(
        rng,
        AnnularSector(sector.center, sector.radius, sector.angle_range),
        config.count,
        config.min_spacing,
        occupied,
        config.max_yaw,
    )
    occupied += [(pose.x, pose.y) for pose in poses]
    return [(pose.x, pose.y, config.surface_height, 0.0, 0.0, pose.theta) for pose in poses]


_MAX_ATTEMPTS, _MAX_LAYOUTS = 100, 200
"""Draws for one thing until it has room, and how often all begin anew."""


@dataclass(frozen=True, slots=True)
class AnnularSector:
    """Part of a ring in the plane.

    Attributes:
        about: Its middle (x, y) [m].
        radius: Inner and outer [m].
        bearing: From and to, counterclockwise [rad].
    """

    center: tuple[float, float]
    radius: tuple[float, float]
    angle_range: tuple[float, float] = (-math.pi, math.pi)

    def sample(self, rng: np.random.Generator) -> tuple[float, float]:
        """A place in it (x, y) [m], each part of its area as likely as any other of its size."""
        low, high = self.radius
        r = math.sqrt(rng.uniform(low * low, high * high))
        angle = rng.uniform(*self.angle_range)
        return self.center[0] + r * math.cos(angle), self.center[1] + r * math.sin(angle)


def sample_poses(
    rng: np.random.Generator,
    sector: AnnularSector,
    count: int,
    min_spacing: float,
    occupied: Sequence[tuple[float, float]] = (),
    max_yaw: float = math.pi,
) -> list[SE2]:
    """Poses of things that lie about.

    Args:
        rng: Draws them.
        sector: Where.
        count: How many.
        apart: Least distance between middles, also to those ``taken`` [m].
        taken: Middles of what lies there already (x, y) [m].
        turn: Each is turned by as much at most, either way [rad].

    Raises:
        InputError: there is no room for so many.
    """
    for _ in range(0 if _is_covered(sector, min_spacing, occupied) else _MAX_LAYOUTS):
        positions = _sample_layout(rng, sector, count, min_spacing, occupied)
        if len(positions) == count:
            return [SE2(x, y, float(rng.uniform(-max_yaw, max_yaw))) for x, y in positions]
    raise InputError(
        f"no room for {count} things {min_spacing:g} m apart", valid="fewer, nearer to each other, or a larger sector"
    )


def _is_covered(sector: AnnularSector, min_spacing: float, occupied: Sequence[tuple[float, float]]) -> bool:
    """Whether all of a sector is too near to one place."""
    return any(math.dist(position, sector.center) + sector.radius[1] < min_spacing for position in occupied)


def _sample_layout(
    rng: np.random.Generator,
    sector: AnnularSector,
    count: int,
    min_spacing: float,
    occupied: Sequence[tuple[float, float]],
) -> list[tuple[float, float]]:
    """One after the other while there is room: ``count`` middles, or fewer."""
    positions: list[tuple[float, float]] = []
    for _ in range(count):
        for _ in range(_MAX_ATTEMPTS):
            x, y = sector.sample(rng)
            if all(math.hypot(x - u, y - v) >= min_spacing for u, v in (*occupied, *positions)):
                positions.append((x, y))
                break
        else:
            break
    return positions
