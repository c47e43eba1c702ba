"""Blackouts: how often the rover comes home by itself, and how soon it obeys when the operator is back.

Each seed is another day: a place in the arena or the corridor, a course that an operator drives, a moment at which he
falls silent (now and then while turning), moments at which he is heard again for a short while, and in two of three
runs a box that is put on the way home where it still leaves a way.  The whole simulation runs, with localisation,
navigator, tracker and goal controller; the rover is home if it truly stands within 0.3 m of where it began.
"""

from __future__ import annotations

import math
import tempfile
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from scipy.ndimage import label

from roboyard.bringup import catalog
from roboyard.compute import ProcessPool, count_usable_cores
from roboyard.description import load_world
from roboyard.geometry import SE2
from roboyard.grids import FREE, GridGeometry, OccupancyGrid, distance_transform
from roboyard.scenarios import load_scenario
from roboyard.scenarios.batch.statistics import wilson_interval
from roboyard.scenarios.batch.worker import TrialJob, TrialResult, run_trial
from roboyard.scenarios.ground_truth import ground_truth_map
from roboyard.simulation import Simulation
from roboyard.simulation.ground_truth_maps import make_floor_plan

WORLDS = ("arena", "corridor")
NEAR = 0.3
CLEAR = 0.55
"""Kept from everything by course and start [m]."""
ROVER = 0.32
"""The rover's half diagonal [m]."""
BOX_GAP = 0.5
"""A box leaves a way on which the rover's middle keeps so far from everything [m]."""
SPEED = 0.8
HEIGHTS = (0.1, 0.24)
"""At which the world is looked at [m]: the rover's bumper and its top."""


class Ground:
    """A world's free ground, what stands there loosely taken as it stands at first, and ways in it."""

    def __init__(self, world: str) -> None:
        simulation = Simulation(load_world(catalog.WORLDS.resolve(world)))
        maps = [ground_truth_map(simulation, height=h, resolution=0.1, interior_points=[(0.0, 0.0)]) for h in HEIGHTS]
        low = np.min([grid.geometry.T_map_grid.xy for grid in maps], axis=0)
        high = np.max([np.array(grid.geometry.T_map_grid.xy) + grid.geometry.extent for grid in maps], axis=0)
        self.frame = GridGeometry.covering(low, high, 0.1)
        x, y = self.frame.T_map_grid.xy
        edges = (x, x + self.frame.extent[0], y, y + self.frame.extent[1])
        free = np.ones(self.frame.shape, dtype=bool)
        for height, grid in zip(HEIGHTS, maps, strict=True):
            loose = make_floor_plan(
                simulation.world.model, height=height, resolution=0.1, bounds=edges, include_moving=True
            )
            free &= self._free(grid) & ~loose.occupied
        self.free = free
        self.clear = distance_transform(~free, 0.1)
        rooms, _ = label(self.clear > CLEAR)
        start = np.argwhere(rooms > 0)[np.argmin(np.hypot(*self.frame.cell_centers(np.argwhere(rooms > 0)).T))]
        self.rooms = np.argwhere(rooms == rooms[tuple(start)])
        simulation.close()

    def _free(self, grid: OccupancyGrid) -> np.ndarray:
        cells = np.stack(np.meshgrid(*map(np.arange, self.frame.shape), indexing="ij"), axis=-1)
        there = grid.geometry.cells_of_points(self.frame.cell_centers(cells))
        inside = grid.geometry.contains(there)
        there = np.where(inside[..., None], there, 0)
        return inside & (grid.cells[there[..., 0], there[..., 1]] == FREE)

    def place(self, random: np.random.Generator) -> np.ndarray:
        """A point with room about it."""
        return self.frame.cell_centers(self.rooms[random.integers(len(self.rooms))])

    def way(self, start: np.ndarray, end: np.ndarray, clear: np.ndarray, room: float) -> np.ndarray | None:
        """Points 0.1 m apart from start to end that keep ``room`` from everything; None if there is no way."""
        passable = clear > room
        first, last = (tuple(int(v) for v in self.frame.cells_of_points(p)) for p in (start, end))
        if not (passable[first] and passable[last]):
            return None
        distance = np.full(self.frame.shape, -1, dtype=np.int64)
        distance[last], ring = 0, [last]
        while ring and distance[first] < 0:  # rings about the end
            following = []
            for row, column in ring:
                for cell in _around(row, column):
                    if self.frame.contains(cell) and passable[cell] and distance[cell] < 0:
                        distance[cell] = distance[row, column] + 1
                        following.append(cell)
            ring = following
        if distance[first] < 0:
            return None
        cells = [first]
        while cells[-1] != last:
            steps = [
                c for c in _around(*cells[-1]) if self.frame.contains(c) and distance[c] == distance[cells[-1]] - 1
            ]
            cells.append(max(steps, key=lambda c: float(clear[c])))
        return self.frame.cell_centers(np.array(cells))


def _around(row: int, column: int) -> list[tuple[int, int]]:
    return [(row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)]


@cache
def ground(world: str) -> Ground:
    return Ground(world)


def day(seed: int) -> dict[str, Any]:
    """The scenario of a seed, as data."""
    random = np.random.default_rng(seed)
    place = ground(WORLDS[seed % len(WORLDS)])
    start, course = _course(place, random)
    way = float(np.hypot(*np.diff(course, axis=0).T).sum())
    heading = math.atan2(*(course[min(10, len(course) - 1)] - start)[::-1])
    driven = float(random.uniform(0.5, 1.0)) * way
    seconds = 1.0 + driven / SPEED
    steps: list[dict[str, Any]] = [
        {"wait": 1.0},
        {"follow": {"points": _thin(course), "speed": SPEED, "angular": 1.2, "timeout": round(seconds - 1.0, 2)}},
    ]
    if random.random() < 0.3:
        turn = float(random.choice([-1.0, 1.0]))
        steps.append({"drive": {"linear": 0.0, "angular": turn, "duration": round(float(random.uniform(0.3, 2.5)), 2)}})
    silent = 0.0
    for _ in range(int(random.integers(0, 4))):  # a link that flaps
        silence, heard = float(random.uniform(3.0, 20.0)), float(random.uniform(0.05, 3.0))
        steps += [{"link_loss": round(silence, 2)}, {"wait": round(heard, 2)}]
        silent += silence + heard
    limit = 40.0 + silent + driven / 0.3
    steps.append({"link_loss": round(limit, 1)})
    rover = load_scenario("rover-homing").config
    nodes = {
        name: {"type": n.type, "robot": n.robot, "parameters": dict(n.parameters)} for name, n in rover.nodes.items()
    }
    pose = {"initial_pose_x": float(start[0]), "initial_pose_y": float(start[1]), "initial_pose_yaw": heading}
    nodes["amcl"]["parameters"] |= {"set_initial_pose": True, **pose}
    nodes["homing_tracker"]["parameters"]["point_spacing"] = round(float(random.uniform(0.5, 2.0)), 2)
    return {
        "world": WORLDS[seed % len(WORLDS)],
        "robots": {"rover": {"model": "rover", "pose": [float(start[0]), float(start[1]), heading]}},
        "nodes": nodes,
        "operator": {"rover": {"steps": steps, "frame": "map", "command_noise": 0.05}},
        "faults": _box(place, course, driven, seconds, random),
        "duration": round(seconds + limit, 1),
        "stop_when": "returned",
        "criteria": {"home": f"returned and home_error <= {NEAR}", "touched_nothing": "contacts == 0"},
    }


def _course(place: Ground, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A start, and points 0.1 m apart of a way of 8 to 25 m through one or two places."""
    while True:
        stations = [place.place(random) for _ in range(int(random.integers(2, 4)))]
        legs = [place.way(a, b, place.clear, CLEAR) for a, b in pairwise(stations)]
        if all(leg is not None for leg in legs):
            points = _smooth(np.concatenate(legs))
            if 8.0 <= np.hypot(*np.diff(points, axis=0).T).sum() <= 25.0:
                return points[0], points


def _smooth(points: np.ndarray) -> np.ndarray:
    """Stairs of cells made a hand's way: the mean of 0.7 m about each point, ends kept."""
    if len(points) < 9:
        return points
    padded = np.concatenate([np.repeat(points[:1], 3, axis=0), points, np.repeat(points[-1:], 3, axis=0)])
    return np.stack([np.convolve(padded[:, k], np.full(7, 1 / 7), mode="valid") for k in (0, 1)], axis=1)


def _thin(points: np.ndarray) -> list[list[float]]:
    kept = points[5::5] if len(points) > 5 else points[-1:]
    return [[round(float(x), 3), round(float(y), 3)] for x, y in np.concatenate([kept, points[-1:]])]


def _box(
    place: Ground, course: np.ndarray, driven: float, seconds: float, random: np.random.Generator
) -> list[dict[str, Any]]:
    """A box on the first half of the way, put there once the robot is by; none in a third of the runs."""
    if random.random() < 1 / 3:
        return []
    along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(course, axis=0).T))])
    for _ in range(50):
        size = np.round(random.uniform(0.25, 0.6, 2), 2)
        at = course[int(np.searchsorted(along, random.uniform(1.2, max(1.3, 0.5 * driven))))] + random.normal(
            0, 0.15, 2
        )
        yaw = float(random.uniform(-math.pi, math.pi))
        if np.hypot(*(at - course[0])) < 1.2:
            continue
        last = course[(along > driven - 1.5) & (along <= driven + 0.2)]  # about where the rover then stands
        if np.hypot(*(last - at).T).min() < ROVER + 0.5 * np.hypot(*size) + 0.1:
            continue
        cells = np.argwhere(place.free)
        inside = np.abs(SE2(*at, yaw).inverse() @ place.frame.cell_centers(cells)) <= size / 2 + 0.05
        free = place.free.copy()
        free[tuple(cells[inside.all(axis=1)].T)] = False
        end = course[int(np.searchsorted(along, driven)) - 1]
        if place.way(end, course[0], distance_transform(~free, 0.1), BOX_GAP) is not None:
            moment = round(seconds + float(random.uniform(0.0, 3.5)), 2)
            pose = [*(round(float(v), 3) for v in at), 0.25, 0.0, 0.0, round(yaw, 3)]
            return [{"time": moment, "type": "spawn", "model": "box", "name": "box", "pose": pose,
                     "size": [*map(float, size), 0.5]}]  # fmt: skip
    return []


def run(nightly: bool, runs: int | None = None, seed: int = 0) -> dict[str, Any]:
    """Seeded blackouts; the share that came home, with its 95 % interval."""
    count = runs or (1000 if nightly else 100)
    with tempfile.TemporaryDirectory(prefix="roboyard-homing-") as folder:
        jobs = []
        for number in range(seed, seed + count):
            path = Path(folder) / f"day-{number}.yaml"
            path.write_text(yaml.safe_dump(day(number)))
            jobs.append(TrialJob(str(path), number, (), False, str(Path(folder) / f"run-{number}"), "none"))
        results = _all(jobs)
    return _figures(results)


def _all(jobs: list[TrialJob]) -> list[TrialResult]:
    """Results in the order of the jobs; few are under way at once, so that Ctrl-C ends them soon."""
    found: dict[int, TrialResult] = {}
    with ProcessPool(min(count_usable_cores(), len(jobs)), preload=("roboyard.scenarios.batch.worker",)) as pool:
        waiting = iter(jobs)
        running: dict[Future[TrialResult], TrialJob] = {}
        while True:
            while len(running) < 2 * pool.workers and (job := next(waiting, None)) is not None:
                running[pool.submit(run_trial, job)] = job
            if not running:
                return [found[job.seed] for job in jobs]
            ready, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in ready:
                found[running.pop(future).seed] = future.result()


def _figures(results: list[TrialResult]) -> dict[str, Any]:
    def metric(result: TrialResult, name: str) -> float:
        value = result.metrics.get(name)
        return math.nan if value is None else float(value)

    home = wilson_interval(sum(result.success for result in results), len(results))
    errors = [metric(r, "home_error") for r in results]
    contacts = [metric(r, "contacts") for r in results]
    latencies = [metric(r, "cancel_latency") for r in results]
    factors = [metric(r, "real_time_factor") for r in results]
    blackouts, skipped = (sum(metric(r, name) for r in results) for name in ("link_losses", "waypoints_skipped"))
    worst = np.nanmax(latencies) if not np.isnan(latencies).all() else None
    missed = [f"seed {r.seed}: {r.reason or _why(r)}" for r in results if not r.success]
    return {
        "figures": [
            {"name": f"home within {NEAR} m, nothing touched", "value": home.value, "target": ">= 0.99"},
            {"name": "contacts in all runs", "value": float(np.nansum(contacts)), "target": "<= 0"},
            {"name": "operator heard to goal cancelled, longest", "value": worst, "unit": "s", "target": "<= 0.1"},
            {"name": "distance from home, median", "value": float(np.nanmedian(errors)), "unit": "m"},
            {"name": "distance from home, largest", "value": float(np.nanmax(errors)), "unit": "m"},
            {"name": "real-time factor of a run, median", "value": float(np.nanmedian(factors))},
        ],
        "details": [
            f"home: {home}",
            f"{blackouts:.0f} blackouts, {skipped:.0f} points skipped",
            f"{np.sum(~np.isnan(latencies))} runs in which the operator broke a way home off",
            *missed,
        ],
    }


def _why(result: TrialResult) -> str:
    names = ("returned", "home_error", "contacts", "link_losses", "waypoints_skipped", "sim_time")
    return ", ".join(f"{name} {result.metrics.get(name)}" for name in names)
