"""Objects of a scenario: placed at poses, or sampled in annular sectors by the seed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from roboyard.bringup.catalog import OBJECTS
from roboyard.compute.random import make_generator
from roboyard.config import parameter
from roboyard.description import Model, World, load_model
from roboyard.description.extent import POSE_FORMAT, Pose, to_world_pose
from roboyard.description.model import PlacedModel
from roboyard.errors import ConfigError, InputError, RoboyardError
from roboyard.geometry import SE2
from roboyard.scenarios.world.appearance import AppearanceConfig, apply_appearance


@dataclass(frozen=True, kw_only=True)
class SectorConfig:
    """Annular sector on the ground."""

    center: tuple[float, float] = parameter((0.0, 0.0), unit="m", doc="[x, y] of the center")
    radius: tuple[float, float] = parameter(unit="m", low=0.0, high=1000.0, doc="[inner, outer] radius")
    angle_range: tuple[float, float] = parameter(
        (-math.pi, math.pi), unit="rad", doc="[from, to] bearing, counterclockwise from x"
    )

    def __post_init__(self) -> None:
        if self.radius[0] > self.radius[1] or self.angle_range[0] > self.angle_range[1]:
            raise ConfigError(
                f"radius {list(self.radius)}, angle_range {list(self.angle_range)}",
                location="radius, angle_range",
                valid="the smaller one first",
            )


@dataclass(frozen=True, kw_only=True)
class ObjectConfig:
    """Objects that are in the world from the beginning: at a pose, or sampled by the seed."""

    model: str = parameter(doc="`disc_cylinder`, `heavy_cylinder`, `place_marker`, `shelf`, or a path to a file")
    pose: Pose | None = parameter(None, doc=f"{POSE_FORMAT} in m and rad")
    sector: SectorConfig | None = parameter(None, doc="sector in which poses are drawn by the seed, instead of `pose`")
    count: int = parameter(1, low=1, high=1000, doc="number of objects in the sector; they are named NAME_1, NAME_2, …")
    min_spacing: float = parameter(
        0.06, unit="m", low=0.0, high=100.0, doc="least distance between the centers of objects in the sector"
    )
    surface_height: float = parameter(
        0.0, unit="m", low=-100.0, high=100.0, doc="height of the surface on which objects in the sector stand"
    )
    max_yaw: float = parameter(
        math.pi, unit="rad", low=0.0, high=math.pi, doc="largest rotation of objects in the sector, to either side"
    )

    def __post_init__(self) -> None:
        if (self.pose is None) == (self.sector is None):
            raise ConfigError(
                "exactly one of 'pose' and 'sector' is required", location="sector, pose", valid="one of them"
            )
        if self.pose is not None and self.count != 1:
            raise ConfigError(f"{self.count} objects at one pose", location="count, pose", valid="count 1, or a sector")


def add_objects_and_appearance(
    world: World, objects: Mapping[str, ObjectConfig], appearance: AppearanceConfig, seed: int, base: Path | None = None
) -> World:
    """Return the world with a scenario's objects, light and floor; the same for the same seed.

    Args:
        world: World of the file.
        objects: Objects by name.
        appearance: Light and floor.
        seed: Seed of the run.
        base_folder: Folder in which relative paths of objects are looked up first.

    Raises:
        ConfigError: A name is taken, there is no free space, or the world has no floor whose texture could change.
        UnknownNameError, InputError, DescriptionError: The file of an object does not exist or is not valid.
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
                else _sample_object_poses(entry, make_generator(seed, f"things.{name}"), occupied)
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
    """Return the poses of an entry's objects, and add their positions to ``taken``."""
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
"""Number of draws for one object until it has free space, and number of layouts that are tried."""


@dataclass(frozen=True, slots=True)
class AnnularSector:
    """Annular sector in the plane.

    Attributes:
        center: Center (x, y) [m].
        radius: Inner and outer radius [m].
        bearing: First and last bearing, counterclockwise [rad].
    """

    center: tuple[float, float]
    radius: tuple[float, float]
    angle_range: tuple[float, float] = (-math.pi, math.pi)

    def sample(self, rng: np.random.Generator) -> tuple[float, float]:
        """Return a position (x, y) [m], uniformly distributed over the area."""
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
    """Sample poses in a sector.

    Args:
        rng: Random generator.
        sector: Sector of the positions.
        count: Number of poses.
        min_distance: Least distance between positions, also from those ``taken`` [m].
        taken: Positions (x, y) of other objects [m].
        max_rotation: Largest rotation to either side [rad].

    Raises:
        InputError: The sector has no space for this number of objects.
    """
    for _ in range(0 if _is_covered(sector, min_spacing, occupied) else _MAX_LAYOUTS):
        positions = _sample_layout(rng, sector, count, min_spacing, occupied)
        if len(positions) == count:
            return [SE2(x, y, float(rng.uniform(-max_yaw, max_yaw))) for x, y in positions]
    raise InputError(
        f"no space for {count} objects {min_spacing:g} m apart", valid="fewer, nearer to each other, or a larger sector"
    )


def _is_covered(sector: AnnularSector, min_spacing: float, occupied: Sequence[tuple[float, float]]) -> bool:
    """Return whether all of a sector is too near to one position."""
    return any(math.dist(position, sector.center) + sector.radius[1] < min_spacing for position in occupied)


def _sample_layout(
    rng: np.random.Generator,
    sector: AnnularSector,
    count: int,
    min_spacing: float,
    occupied: Sequence[tuple[float, float]],
) -> list[tuple[float, float]]:
    """Sample ``count`` positions one after the other, or fewer if there is no space."""
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
