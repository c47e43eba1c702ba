"""Worlds of the BARN benchmark (Perille et al. 2020), from its files or made in its manner, by number.

A world is a field of 30 x 30 cells of 15 cm, grown by a cellular automaton, between walls of cylinders.  The robot
starts in front of it, looks along y, and shall come to a place 10 m ahead, behind the field.  ``FILE.npz#NUMBER`` is a
world of a file with arrays ``cyl_NUMBER`` (n, 2), the cylinders' middles [m], and ``path_NUMBER`` (m, 2), cells of a
way through the field; ``barn#NUMBER`` is one of our making.
"""

from __future__ import annotations

import hashlib
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from roboyard.bringup.catalog import WorldSource, find_file
from roboyard.compute.kernel_folders import cache_root
from roboyard.config import write_atomic
from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry
from roboyard.navigation import Costmap, NavigationError
from roboyard.navigation.costmap import LETHAL
from roboyard.navigation.planners import GridSearchPlanner, TraversalCosts

CYLINDER_RADIUS, CELL_SIZE, FIELD_SIZE = 0.075, 0.15, 30
"""Of a cylinder [m], of a cell [m], and the field's side in cells."""
START, GOAL = SE2(-2.25, 3.0, np.pi / 2.0), SE2(-2.25, 13.0, np.pi / 2.0)
GOAL_TOLERANCE = 1.0
"""So near to the goal the benchmark calls it reached [m]."""
MAX_SPEED = 2.0
"""With which the optimal time is reckoned [m/s]."""
_PATH_ORIGIN = np.array([-4.575, 5.075])  # of the cells of paths in the benchmark's files
_FIRST_CELL = np.array([-4.425, 5.175])  # middle of the cell (0, 0) of a field of ours
_WORLD_NAME = re.compile(r"(?P<source>.+)#(?P<number>\d+)")
_PATH_CLEARANCE = 2  # cells that the reference path keeps clear of cylinders: 30 cm


@dataclass(frozen=True, slots=True)
class BarnWorld:
    """One world.

    Attributes:
        cylinders: (n, 2) their middles [m].
        way: (m, 2) a short way from the start through the field to the goal [m].
    """

    cylinders: NDArray[np.float64]
    reference_path: NDArray[np.float64]

    @property
    def optimal_time(self) -> float:
        """The time in which the way is driven at the highest speed [s]."""
        return float(np.hypot(*np.diff(self.reference_path, axis=0).T).sum()) / MAX_SPEED

    def score(self, success: bool, time: float) -> float:
        """The benchmark's: optimal time over time, between a half and an eighth; 0 without success."""
        optimal = self.optimal_time
        return optimal / min(max(time, 2.0 * optimal), 8.0 * optimal) if success else 0.0


def is_barn_world(name: str) -> bool:
    """Whether a world's name is one of these: ``FILE.npz#NUMBER``, ``barn#NUMBER``."""
    match = _WORLD_NAME.fullmatch(name)
    return match is not None and (match["source"] == "barn" or match["source"].endswith(".npz"))


def load_barn_world(name: str, base: Path | None = None) -> BarnWorld:
    """The world of this name.

    Args:
        name: ``FILE.npz#NUMBER`` or ``barn#NUMBER``.
        base: Folder that files are looked for in first.

    Raises:
        InputError: no such file, or no such number in it.
    """
    GridSearchPlanner.expect_kernels()
    match = _WORLD_NAME.fullmatch(name)
    if match is None:
        raise InputError(f"no world is called {name!r}", valid="FILE.npz#NUMBER or barn#NUMBER")
    number = int(match["number"])
    if match["source"] == "barn":
        return generate_barn_world(number)
    path = find_file(match["source"], base)
    available = barn_world_ids(path)
    if number not in available:
        raise InputError(
            f"no world {number}",
            location=str(path),
            valid=f"{len(available)} of them: {available[0]} … {available[-1]}",
        )
    with np.load(path, allow_pickle=False) as file:
        cylinders, cells = file[f"cyl_{number}"].astype(np.float64), file[f"path_{number}"].astype(np.float64)
    if cylinders.ndim != 2 or cylinders.shape[1] != 2 or not np.isfinite(cylinders).all() or cells.shape[1:] != (2,):
        raise InputError(
            f"world {number} has invalid arrays", location=str(path), valid="cyl_N (n, 2) [m], path_N (m, 2) cells"
        )
    return BarnWorld(cylinders, _reference_path(cells * CELL_SIZE + _PATH_ORIGIN))


def barn_world_ids(path: Path) -> list[int]:
    """Of the worlds in a file.

    Raises:
        InputError: it is no such file.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            names = set(file.files)
    except (OSError, ValueError, zipfile.BadZipFile, AttributeError) as error:
        raise InputError("holds no worlds", location=str(path), valid=".npz with cyl_N and path_N") from error
    ids = sorted(int(name[4:]) for name in names if re.fullmatch(r"cyl_\d+", name) and f"path_{name[4:]}" in names)
    if not ids:
        raise InputError("holds no worlds", location=str(path), valid=".npz with cyl_N and path_N")
    return ids


def generate_barn_world(number: int) -> BarnWorld:
    """A world of our making: cells filled at random, smoothed by their neighbours, and kept if there is a way."""
    from scipy.ndimage import convolve

    rng = np.random.default_rng([0xBA54, number])
    while True:
        field = rng.random((FIELD_SIZE, FIELD_SIZE)) < rng.choice([0.15, 0.2, 0.25, 0.3])
        for _ in range(int(rng.integers(2, 5))):
            n_neighbors = convolve(field.astype(np.int64), np.ones((3, 3), dtype=np.int64), mode="constant") - field
            field = (n_neighbors >= 5) | (field & (n_neighbors > 1))
        field[:, [0, -1]] = True
        cells = _shortest_path(field)
        if cells is not None:
            break
    rows, columns = np.nonzero(field)
    sides = [
        (-4.425 + CELL_SIZE * column, CYLINDER_RADIUS + CELL_SIZE * row)
        for column in (0, FIELD_SIZE - 1)
        for row in range(33)
    ]
    back = [(-4.425 + CELL_SIZE * column, CYLINDER_RADIUS) for column in range(1, FIELD_SIZE - 1)]
    cylinders = np.concatenate([np.column_stack([columns, rows]) * CELL_SIZE + _FIRST_CELL, sides, back])
    return BarnWorld(cylinders, _reference_path(cells * CELL_SIZE + _FIRST_CELL))


def _shortest_path(field: NDArray[np.bool_]) -> NDArray[np.float64] | None:
    """Cells (m, 2), column and row, of the shortest way up through a field that leaves room for a robot."""
    from scipy.ndimage import binary_dilation

    padded = np.pad(field, ((_PATH_CLEARANCE + 1, _PATH_CLEARANCE + 1), (0, 0)))
    inflated = binary_dilation(padded, iterations=_PATH_CLEARANCE)
    costs = Costmap(np.where(inflated, LETHAL, 0).astype(np.uint8), GridGeometry(1.0, inflated.shape))
    center = FIELD_SIZE / 2.0
    try:
        path = GridSearchPlanner(TraversalCosts(cost_weight=0.0)).plan(
            costs, SE2(center, 0.5, 0.0), SE2(center, inflated.shape[0] - 0.5, 0.0)
        )
    except NavigationError:
        return None
    cells = np.asarray(path.poses[:, :2] - 0.5 - np.array([0.0, _PATH_CLEARANCE + 1.0]))
    inside: NDArray[np.float64] = cells[(cells[:, 1] >= 0.0) & (cells[:, 1] <= FIELD_SIZE - 1.0)]
    return inside


def _reference_path(field_path: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.concatenate([START.xy[None], field_path, GOAL.xy[None]])


def barn_world_sdf(name: str, base: Path | None = None) -> Path:
    """An SDF file of the world, in the cache.

    Raises:
        InputError: as `barn_world`.
    """
    text = _to_sdf(load_barn_world(name, base))
    folder = cache_root().parent / "worlds"
    path = folder / f"barn-{hashlib.sha256(text.encode()).hexdigest()[:16]}.sdf"
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(path, text)
    return path


class BarnWorldSource(WorldSource):
    """Worlds of the BARN benchmark: ``FILE.npz#NUMBER``, or ``barn#NUMBER`` for a generated one."""

    def contains(self, name: str) -> bool:
        """Return whether a name is one of these; see `is_barn_world`."""
        return is_barn_world(name)

    def resolve(self, name: str, base_folder: Path | None) -> Path:
        """Return the path of the world's SDF file; see `barn_world_sdf`."""
        return barn_world_sdf(name, base_folder)


def _to_sdf(world: BarnWorld) -> str:
    shape = f"<geometry><cylinder><radius>{CYLINDER_RADIUS}</radius><length>0.6</length></cylinder></geometry>"
    gray_material = "<material><ambient>0.45 0.47 0.52 1</ambient><diffuse>0.45 0.47 0.52 1</diffuse></material>"
    pillars = "\n".join(
        f'<collision name="c{k}"><pose>{x:.6f} {y:.6f} 0.3 0 0 0</pose>{shape}</collision>'
        f'<visual name="v{k}"><pose>{x:.6f} {y:.6f} 0.3 0 0 0</pose>{shape}{gray_material}</visual>'
        for k, (x, y) in enumerate(world.cylinders)
    )
    template = (Path(__file__).parents[2] / "worlds" / "empty.sdf").read_text()
    return template.replace('name="empty"', 'name="barn"').replace(
        "</world>",
        f'<model name="pillars"><static>true</static><link name="link">\n{pillars}\n</link></model>\n</world>',
    )
