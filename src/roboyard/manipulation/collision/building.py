"""From a robot, what it carries and what stands around it to the arrays of the collision kernels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from roboyard.description import Model
from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.kinematics.chain import Chain
from roboyard.kinematics.chain_kernels import ChainArrays
from roboyard.manipulation.collision.bodies import Bodies
from roboyard.manipulation.collision.boxes_tree import box_tree
from roboyard.manipulation.collision.obstacles import Attached, Obstacle, Voxels
from roboyard.manipulation.collision.solids import BOX, Solid, Solids, gathered, joined, solids_of
from roboyard.manipulation.groups import Groups

PART: Final = "#"
"""Between an object's name and the number of a further shape of it."""
_MARKS: Final = ("::", PART, " ")
"""Between the name of a whole and that of its part."""


@dataclass(frozen=True, eq=False)
class Part:
    """A solid of the robot.

    Attributes:
        name: Of the link, or of what it carries.
        frame: Of the chain, that it rides on.
        solid: In that frame.
    """

    name: str
    frame: int
    solid: Solid


def parts_of(model: Model, chain: Chain, attached: Mapping[str, Attached]) -> tuple[Part, ...]:
    """Solids of all links and of what they carry, from the base on. Raises DescriptionError."""
    found = []
    for link in model.links:
        frame, matrix = chain.link_mounts[link.name]
        T = SE3.from_matrix(matrix)
        for shape in link.collisions:
            where = f"{model.name}, {link.name}"
            if shape.surface.collide:
                solids = solids_of(shape.geometry, T @ shape.T_link_geom, where, hull=True)
                found += [Part(link.name, frame, solid) for solid in solids]
    for thing in attached.values():
        frame, matrix = chain.link_mounts[thing.link]
        T = SE3.from_matrix(matrix) @ thing.T_link
        found += [Part(thing.name, frame, solid) for solid in solids_of(thing.geometry, T, thing.name, hull=True)]
    return tuple(sorted(found, key=lambda part: part.frame))


def allowed_pairs(
    groups: Groups, attached: Mapping[str, Attached], further: Iterable[tuple[str, str]], chain: Chain
) -> frozenset[tuple[str, str]]:
    """Pairs of names, in both orders, that may touch."""
    pairs = [*groups.allowed, *further]
    for thing in attached.values():
        pairs += [(thing.name, link) for link in thing.touches]
    return frozenset(pair for one, other in pairs for pair in ((one, other), (other, one)))


@dataclass(frozen=True, eq=False)
class RobotSide:
    """What of `Bodies` is the robot's: the same whatever stands around it.

    Attributes:
        rows: The chain.
        names: (n) of the link, or of what is carried, that each solid is of.
        links: The solids.
        frame: (n,) the chain's frame that each rides on.
        local: (n, 4, 4) its pose there.
        reach: (n, m) see `Bodies`.
        pairs: (p, 2) see `Bodies`.
        shell: Radius of a ball about the base that no solid ever leaves [m].
        allowed: Pairs of names, in both orders, that may touch.
        touchable: All names in them.
        may: (n,) which solids may touch what is called so, as far as it was asked for.
    """

    rows: ChainArrays
    names: tuple[str, ...]
    links: Solids
    frame: NDArray[np.int64]
    local: Array
    reach: Array
    pairs: NDArray[np.int64]
    shell: float
    allowed: frozenset[tuple[str, str]]
    touchable: frozenset[str]
    may: dict[str, NDArray[np.bool_]] = field(default_factory=dict)

    def may_touch(self, name: str) -> NDArray[np.bool_]:
        """(n,) which solids may touch an obstacle."""
        if name not in self.may:
            known = not self.touchable.isdisjoint(wholes(name))
            self.may[name] = np.array([known and may_touch(self.allowed, part, name) for part in self.names], np.bool_)
        return self.may[name]


def robot_side(chain: Chain, parts: Sequence[Part], allowed: frozenset[tuple[str, str]]) -> RobotSide:
    """Of a robot's solids. Raises InputError: a joint slides without limits."""
    links = gathered([part.solid for part in parts])
    frame = np.array([part.frame for part in parts], dtype=np.int64)
    local = np.array([part.solid.T.matrix() for part in parts]).reshape(-1, 4, 4)
    return RobotSide(
        chain.arrays, tuple(part.name for part in parts), links, frame, local,
        reaches(chain.arrays, links, frame, local, chain.robot), _pairs(parts, allowed),
        _shell(chain.arrays, links, frame, local), allowed, frozenset(name for pair in allowed for name in pair),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class WorldSide:
    """What stands around, in the base of a chain.

    Attributes:
        solids: All of it.
        placed: (w, 4, 4) their poses.
        owners: (w) of the obstacle that each is part of.
        low: (w, 3) least corners of the boxes round them [m].
        high: (w, 3) greatest ones.
    """

    solids: Solids
    placed: Array
    owners: tuple[str, ...]
    low: Array
    high: Array

    def __add__(self, other: WorldSide) -> WorldSide:
        """With further ones."""
        return WorldSide(
            joined(self.solids, other.solids),
            np.concatenate([self.placed, other.placed]),
            self.owners + other.owners,
            np.concatenate([self.low, other.low]),
            np.concatenate([self.high, other.high]),
        )


def world_side(obstacles: Iterable[Obstacle | Voxels], T_base_world: SE3) -> WorldSide:
    """Of obstacles. Raises DescriptionError: a shape cannot be used."""
    solids, placed, owners = _world(obstacles, T_base_world)
    return WorldSide(solids, placed, tuple(owners), *_boxes(solids, placed))


def wholes(name: str) -> tuple[str, ...]:
    """A name and those of what it is part of: an object of several shapes, a model of the world, somebody.

    >>> wholes("fixture::link::plate"), wholes("tray#2"), wholes("anna left_hand")
    (('fixture::link::plate', 'fixture'), ('tray#2', 'tray'), ('anna left_hand', 'anna'))
    """
    return (name, *(whole for mark in _MARKS if (whole := name.partition(mark)[0]) != name))


def may_touch(allowed: frozenset[tuple[str, str]], one: str, other: str) -> bool:
    """Whether two may touch, or what they are part of."""
    return any((a, b) in allowed for a in wholes(one) for b in wholes(other))


def make_bodies(robot: RobotSide, world: WorldSide, margin: float) -> tuple[Bodies, tuple[str, ...]]:
    """Arrays for the kernels, and the name of the obstacle that each solid of the world is part of.

    Obstacles that the robot cannot reach are left out.
    """
    near = _within(world.low, world.high, robot.shell + margin)
    solids, placed = _chosen(world.solids, near), world.placed[near]
    names = tuple(world.owners[i] for i in np.flatnonzero(near).tolist())
    tree = box_tree(world.low[near], world.high[near])
    may = np.zeros((len(robot.names), len(names)), dtype=np.bool_)
    for k, name in enumerate(names):
        may[:, k] = robot.may_touch(name)
    bodies = Bodies(
        robot.rows, robot.links, robot.frame, robot.local, robot.reach, robot.pairs, solids, placed, tree, may, margin
    )
    return bodies, names


def reaches(rows: ChainArrays, links: Solids, frame: NDArray[np.int64], local: Array, where: str) -> Array:
    """(n, m) how far a solid's points move at most for each unit of each moving joint. Raises InputError."""
    n, m = len(frame), len(rows.rotation_per_unit)
    spans = np.linalg.norm(rows.origins[:, :3, 3], axis=1)
    slides = np.zeros(m)
    for k in range(m):
        if rows.translation_per_unit[k] != 0.0:
            ends = rows.multiplier[k] * np.array([rows.lower[rows.driving_joint[k]], rows.upper[rows.driving_joint[k]]])
            slides[k] = float(np.abs(rows.translation_per_unit[k] * (ends + rows.offset[k])).max())
            if not math.isfinite(slides[k]) and k + 1 < m:
                raise InputError(f"moving joint {k} slides without limits", location=where, valid="a range")
    found = np.zeros((n, m))
    for i in range(n):
        far = float(np.linalg.norm(local[i, :3, 3])) + links.outer[i]
        for k in range(frame[i] - 1, -1, -1):
            found[i, k] = (
                math.hypot(far, rows.translation_per_unit[k])
                if rows.rotation_per_unit[k]
                else abs(rows.translation_per_unit[k])
            )
            far += spans[k] + slides[k]
    return found


def _shell(rows: ChainArrays, links: Solids, frame: NDArray[np.int64], local: Array) -> float:
    """Radius of a ball about the base that the robot never leaves [m]."""
    far = np.linalg.norm(local[:, :3, 3], axis=1) + links.outer
    spans = np.linalg.norm(rows.origins[:, :3, 3], axis=1)
    for k in range(len(rows.rotation_per_unit)):
        travel = np.array([rows.lower[rows.driving_joint[k]], rows.upper[rows.driving_joint[k]]]) * rows.multiplier[k]
        slid = (
            float(np.abs(rows.translation_per_unit[k] * (travel + rows.offset[k])).max())
            if rows.translation_per_unit[k]
            else 0.0
        )
        far = far + np.where(frame > k, spans[k] + slid, 0.0)
    return float(far.max(initial=0.0))


def _within(low: Array, high: Array, radius: float) -> NDArray[np.bool_]:
    gap = np.maximum(np.maximum(low, -high), 0.0)
    return np.asarray((gap**2).sum(axis=1) <= radius**2)


def _world(obstacles: Iterable[Obstacle | Voxels], T_base_world: SE3) -> tuple[Solids, Array, list[str]]:
    solids: list[Solid] = []
    owners: list[str] = []
    clouds: list[Voxels] = []
    for one in obstacles:
        if isinstance(one, Voxels):
            clouds.append(one)
            continue
        found = solids_of(one.geometry, T_base_world @ one.T_world, one.name)
        solids += found
        owners += [one.name] * len(found)
    placed = [np.array([solid.T.matrix() for solid in solids]).reshape(-1, 4, 4)]
    world = gathered(solids)
    for cloud in clouds:
        count = len(cloud.middles)
        poses = np.tile(T_base_world.matrix(), (count, 1, 1))
        poses[:, :3, 3] = T_base_world @ cloud.middles
        placed.append(poses)
        owners += [cloud.name] * count
        world = _with_cubes(world, count, cloud.size / 2.0)
    return world, np.concatenate(placed), owners


def _with_cubes(solids: Solids, count: int, half: float) -> Solids:
    """Solids and ``count`` cubes; only links' balls are asked for, so these have none."""
    zeros = np.zeros(count, np.int64)
    return solids._replace(
        kind=np.concatenate([solids.kind, np.full(count, BOX, np.int64)]),
        size=np.concatenate([solids.size, np.full((count, 3), half)]),
        radius=np.concatenate([solids.radius, np.zeros(count)]),
        outer=np.concatenate([solids.outer, np.full(count, half * math.sqrt(3.0))]),
        first=np.concatenate([solids.first, zeros]),
        many=np.concatenate([solids.many, zeros]),
        ball_first=np.concatenate([solids.ball_first, zeros]),
        ball_count=np.concatenate([solids.ball_count, zeros]),
    )


def _chosen(solids: Solids, which: NDArray[np.bool_]) -> Solids:
    """Some solids; points and balls stay where they are."""
    each = ("kind", "size", "radius", "outer", "first", "many", "ball_first", "ball_count")
    return solids._replace(**{name: getattr(solids, name)[which] for name in each})


def _boxes(solids: Solids, placed: Array) -> tuple[Array, Array]:
    """Least and greatest corners of the axis-aligned boxes round solids that stand somewhere."""
    half = np.einsum("nij,nj->ni", np.abs(placed[:, :3, :3]), solids.size) + solids.radius[:, None]
    middle = placed[:, :3, 3]
    return middle - half, middle + half


def _pairs(parts: Sequence[Part], allowed: frozenset[tuple[str, str]]) -> NDArray[np.int64]:
    found = [
        (i, j)
        for i, one in enumerate(parts)
        for j, other in enumerate(parts)
        if one.frame < other.frame and one.name != other.name and not may_touch(allowed, one.name, other.name)
    ]
    return np.array(found, dtype=np.int64).reshape(-1, 2)
