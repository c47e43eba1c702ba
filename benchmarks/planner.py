"""Global planners: optimal on public maps, quick on large ones, never cut short, as short as any direction allows.

Maps are looked for in ``--data``, else in ``movingai``, ``nav2_maps`` and ``nav2_planner_bench`` of the folder that
ROBOYARD_DATA names: MovingAI's (``x.map`` with ``x.map.scen`` or ``x.scen``) and map_server's (``x.yaml`` with its
picture), each also as ``.gz``.  Where there are more maps or problems than fit the time, the figures say how many were
taken: of maps the first by name, of a map's problems the longest and then such as lie evenly between.  With
``--nightly`` all are.

Times are those of one core (processor time, least of several); costs are inflated as a robot of 0.2 m would have it,
and a metre beside a wall costs up to four times one in the open.
"""

from __future__ import annotations

import gzip
import itertools
import math
import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from roboyard.errors import InputError
from roboyard.geometry import SE2, polygons
from roboyard.grids import FREE, OCCUPIED, GridGeometry, OccupancyGrid, distance_transform
from roboyard.mapping import load_map
from roboyard.navigation import Costmap, Footprint, LayeredCostmap, NavigationError
from roboyard.navigation.costmap import INSCRIBED, LETHAL, InflationLayer, StaticLayer
from roboyard.navigation.errors import SearchBudgetExceededError
from roboyard.navigation.planners import (
    FastMarchingPlanner,
    GridSearchPlanner,
    HybridAStarPlanner,
    TraversalCosts,
)

SIDE = 1000
PAIRS = 12
SECONDS = 90.0
"""After which no further map or problem is begun, in each of the parts that look at files."""
UNIFORM, COSTED = TraversalCosts(cost_weight=0.0), TraversalCosts()
WAVE, SEARCH = FastMarchingPlanner(COSTED), GridSearchPlanner(COSTED)
NAVFN_POTENTIAL, NAVFN_PATH, NAVFN_LONGEST = 25.0, 23.0, 4001
"""The real navfn in C++, on a slower machine: 14 to 25 ms and 3 to 23 ms on four maps.

It cuts a path of 17,671 cells at 4,001.
"""
Figures = dict[str, Any]


@dataclass(frozen=True)
class Octile:
    """A MovingAI map and its problems: start column, row, goal column, row, optimal length."""

    name: str
    costmap: Costmap
    problems: NDArray[np.float64]


def milliseconds(work: Callable[[], Any], repeats: int = 7) -> float:
    """Least processor time of one run."""
    work()
    times = []
    for _ in range(repeats):
        begun = time.thread_time()
        work()
        times.append(time.thread_time() - begun)
    return 1e3 * min(times)


def folders(folder: Path | None) -> list[Path]:
    if folder is not None:
        return [folder]
    data = os.environ.get("ROBOYARD_DATA")
    if data is None:
        raise ImportError("no maps: --data or ROBOYARD_DATA has to name a folder")
    return [Path(data) / name for name in ("movingai", "nav2_maps", "nav2_planner_bench")]


def text_of(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode(errors="replace")


def octile_maps(places: list[Path]) -> Iterator[Octile]:
    """Maps that have problems beside them."""
    for place in places:
        for path in sorted((*place.rglob("*.map"), *place.rglob("*.map.gz"))):
            stem = path.name.removesuffix(".gz").removesuffix(".map")
            names = [f"{stem}{suffix}{packed}" for suffix in (".map.scen", ".scen") for packed in ("", ".gz")]
            listed = next((path.parent / name for name in names if (path.parent / name).is_file()), None)
            costmap = octile_map(text_of(path))
            rows = [] if listed is None else [line.split() for line in text_of(listed).splitlines()[1:] if line.strip()]
            yield Octile(stem, costmap, np.array([row[-5:] for row in rows], dtype=np.float64).reshape(-1, 5))


def octile_map(text: str) -> Costmap:
    lines = text.splitlines()
    height, width = (int(lines[i].split()[1]) for i in (1, 2))
    cells = np.full((height, width), LETHAL, dtype=np.uint8)
    for row, line in enumerate(lines[4 : 4 + height]):
        letters = np.frombuffer(line[:width].encode("latin-1"), dtype=np.uint8)
        cells[row, : len(letters)][np.isin(letters, np.frombuffer(b".GS", dtype=np.uint8))] = 0
    return Costmap(cells, GridGeometry(1.0, cells.shape))


def server_maps(places: list[Path]) -> Iterator[tuple[str, OccupancyGrid]]:
    """Maps of map_server; masks are no maps."""
    for place in places:
        for path in sorted(place.rglob("*.yaml")):
            if path.stem.endswith(("_keepout", "_speed", "_mask")):
                continue
            with tempfile.TemporaryDirectory() as scratch:
                for file in path.parent.iterdir():
                    if file.suffix == ".gz" and file.name.startswith(path.stem + "."):
                        (Path(scratch) / file.name.removesuffix(".gz")).write_bytes(gzip.decompress(file.read_bytes()))
                    elif file.is_file() and file.name.split(".")[0] == path.stem:
                        shutil.copy(file, scratch)
                try:
                    yield path.stem, load_map(Path(scratch) / path.name)
                except InputError:
                    try:
                        yield path.stem, load_map(path)
                    except InputError:
                        continue


def large(cells: NDArray[np.int8], resolution: float) -> Costmap:
    """A map of 1000 x 1000 cells with inflated costs: the upper left part of it, or it and its mirror images."""
    rows, columns = cells.shape
    more = ((0, max(SIDE - rows, 0)), (0, max(SIDE - columns, 0)))
    grid = np.pad(cells, more, mode="symmetric")[:SIDE, :SIDE]
    frame = GridGeometry(resolution, grid.shape)
    static = StaticLayer()
    static.set_map(OccupancyGrid(np.ascontiguousarray(grid), frame))
    layers = LayeredCostmap(frame, [static, InflationLayer(0.2, 0.55)])
    layers.update()
    return layers.snapshot()


def made_up() -> Iterator[tuple[str, NDArray[np.int8]]]:
    """Maps that need no data: rooms with doors, boxes and dots on open ground, a maze."""
    rng = np.random.default_rng(0)
    rooms, boxes = np.full((SIDE, SIDE), FREE, dtype=np.int8), np.full((SIDE, SIDE), FREE, dtype=np.int8)
    for k in range(100, SIDE, 100):
        rooms[k - 2 : k + 2] = rooms[:, k - 2 : k + 2] = OCCUPIED
    for r in range(0, SIDE, 100):
        for k in range(100, SIDE, 100):
            across, along = r + rng.integers(10, 70, 2)
            rooms[across : across + 25, k - 2 : k + 2] = FREE
            rooms[k - 2 : k + 2, along : along + 25] = FREE
    for _ in range(220):
        (r, c), (h, w) = rng.integers(0, SIDE - 40, 2), rng.integers(5, 40, 2)
        boxes[r : r + h, c : c + w] = OCCUPIED
    dots, maze = np.full((SIDE, SIDE), FREE, dtype=np.int8), np.full((SIDE, SIDE), FREE, dtype=np.int8)
    dots[rng.random((SIDE, SIDE)) < 0.002] = OCCUPIED
    for number, k in enumerate(range(25, SIDE, 25)):
        maze[k] = OCCUPIED
        maze[k, slice(-25, None) if number % 2 == 0 else slice(25)] = FREE
    yield from (("rooms", rooms), ("boxes", boxes), ("dots", dots), ("maze", maze))


def large_maps(folder: Path | None) -> Iterator[tuple[str, NDArray[np.int8], float]]:
    """Names, cells and their sizes [m]."""
    for name, cells in made_up():
        yield name, cells, 0.05
    try:
        places = folders(folder)
    except ImportError:
        return
    for octile in octile_maps(places):
        yield octile.name, np.where(octile.costmap.cells == LETHAL, OCCUPIED, FREE).astype(np.int8), 0.05
    for name, grid in server_maps(places):
        yield name, grid.cells, grid.geometry.resolution


def shown(what: str, total: float) -> Progress:
    """A bar at the bottom of the terminal, gone when all is done."""
    bar = Progress(console=Console(stderr=True), transient=True)
    bar.add_task(what, total=total)
    return bar


def pairs(costmap: Costmap, seed: int = 0) -> list[tuple[SE2, SE2]]:
    """Starts and goals far from each other, a way between them."""
    rng = np.random.default_rng(seed)
    free = np.argwhere(costmap.cells < INSCRIBED)
    found: list[tuple[SE2, SE2]] = []
    for _ in range(40):
        if len(found) == PAIRS or not len(free):
            break
        start = free[rng.integers(len(free))]
        potential = FastMarchingPlanner(UNIFORM).potential(costmap, SE2(*costmap.geometry.cell_centers(start)))
        reached = np.argwhere(np.isfinite(potential) & (costmap.cells < INSCRIBED))
        far = reached[potential[tuple(reached.T)] > 0.5 * potential[tuple(reached.T)].max(initial=0.0)]
        if len(reached) > 0.05 * len(free) and len(far):
            ends = costmap.geometry.cell_centers(np.stack([start, far[rng.integers(len(far))]]))
            found.append((SE2(*ends[0]), SE2(*ends[1])))
    return found


def soon(maps: list[Any], end: float) -> Iterator[Any]:
    """As many of the maps as begin in time."""
    with shown("maps of 1000 x 1000 cells", len(maps)) as bar:
        for item in bar.track(maps, task_id=bar.task_ids[0]):
            if time.monotonic() > end:
                break
            yield item


def spread(problems: NDArray[np.float64]) -> NDArray[np.float64]:
    """The longest first, then such that any first part of them lies evenly among all (van der Corput's sequence)."""
    ordered = problems[np.argsort(-problems[:, 4], kind="stable")]
    bits = max(len(ordered) - 1, 1).bit_length()
    turned = [int(f"{k:0{bits}b}"[::-1], 2) for k in range(2**bits)]
    return ordered[[k for k in turned if k < len(ordered)]]


def optimal(nightly: bool, folder: Path | None = None) -> Figures:
    """MovingAI's problems, by both ways of searching from cell to cell."""
    maps = [octile for octile in octile_maps(folders(folder)) if len(octile.problems)]
    if not maps:
        raise ImportError("no MovingAI map with scenarios in the folder")
    total = sum(len(octile.problems) for octile in maps)
    planners = {"A*": GridSearchPlanner(UNIFORM), "Dijkstra": GridSearchPlanner(UNIFORM, use_heuristic=False)}
    right, spent, tried, details = Counter[str](), Counter[str](), 0, []
    end = time.monotonic() + SECONDS
    with shown("MovingAI's problems", len(maps)) as bar, ThreadPoolExecutor(os.cpu_count()) as pool:
        for number, octile in enumerate(maps):
            until = math.inf if nightly else time.monotonic() + (end - time.monotonic()) / (len(maps) - number)
            here, count = Counter[str](), 0
            for part in np.array_split(spread(octile.problems), math.ceil(len(octile.problems) / 16)):
                for label, planner in planners.items():
                    solved = list(pool.map(lambda p, c=octile.costmap, a=planner: solve(c, a, p), part))
                    here[label] += sum(well for well, _ in solved)
                    spent[label] += sum(seconds for _, seconds in solved)
                count += len(part)
                bar.update(bar.task_ids[0], completed=number + count / len(octile.problems))
                if time.monotonic() > until:
                    break
            right += here
            tried += count
            found = " and ".join(f"{here[label]} by {label}" for label in planners)
            details.append(f"{octile.name}: optimal {found} of {count} (there are {len(octile.problems)})")
    figures = [
        {"name": f"optimal octile length by {label}, {tried} of {total} problems of {len(maps)} MovingAI maps",
         "value": round(100.0 * right[label] / tried, 4), "unit": "%", "target": ">= 100"}
        for label in planners
    ]  # fmt: skip
    details += [f"{label}: {1e3 * spent[label] / tried:.1f} ms a problem" for label in planners]
    return {"figures": figures, "details": details}


def solve(costmap: Costmap, planner: GridSearchPlanner, problem: NDArray[np.float64]) -> tuple[bool, float]:
    """Whether the way is as long as the file says, which gives six digits; and the processor time it took."""
    x0, y0, x1, y1, length = problem
    begun = time.thread_time()
    try:
        path = planner.plan(costmap, SE2(x0 + 0.5, y0 + 0.5), SE2(x1 + 0.5, y1 + 0.5))
    except NavigationError:
        return False, time.thread_time() - begun
    return math.isclose(path.length, length, rel_tol=2e-5, abs_tol=2e-5), time.thread_time() - begun


def speed(nightly: bool, folder: Path | None = None) -> Figures:
    """Times on maps of 1000 x 1000 cells, beside peers."""
    figures, details = [], []
    potentials, paths = {}, {}
    maps = list(large_maps(folder))
    for name, cells, resolution in soon(maps, math.inf if nightly else time.monotonic() + SECONDS):
        costmap = large(cells, resolution)
        ends = pairs(costmap)
        if not ends:
            details.append(f"{name}: nothing in it can be reached")
            continue
        potentials[name] = milliseconds(lambda c=costmap, e=ends: WAVE.potential(c, e[0][0]))
        steps = milliseconds(lambda c=costmap, e=ends: SEARCH.potential(c, e[0][0]), 3)
        times = [milliseconds(lambda s=start, g=goal, c=costmap: SEARCH.plan(c, s, g), 3) for start, goal in ends]
        paths[name] = times
        free = int(np.count_nonzero(costmap.cells < INSCRIBED))
        details.append(
            f"{name}: {free / 1e3:.0f} k free cells, potential {potentials[name]:.1f} ms "
            f"(over eight neighbours {steps:.1f}), A* median {np.median(times):.1f}, worst {max(times):.1f} ms, "
            f"way of any direction {milliseconds(lambda c=costmap, e=ends: WAVE.plan(c, *e[0]), 3):.1f} ms"
        )
    slowest = max(potentials, key=potentials.__getitem__)
    worst = max(paths, key=lambda name: float(np.median(paths[name])))
    figures.append(
        {"name": f"full potential of 1000 x 1000 costs, slowest of {len(potentials)} of {len(maps)} maps ({slowest})",
         "value": round(potentials[slowest], 1), "unit": "ms", "target": "<= 25",
         "peer": "navfn in C++, on a slower machine, slowest of four maps", "peer_value": NAVFN_POTENTIAL}
    )  # fmt: skip
    figures.append(
        {"name": f"A* from point to point there, slowest map's median ({worst})",
         "value": round(float(np.median(paths[worst])), 1), "unit": "ms", "target": "<= 15",
         "peer": "navfn in C++, on a slower machine, slowest of four maps", "peer_value": NAVFN_PATH}
    )  # fmt: skip
    everything = np.concatenate(list(paths.values()))
    figures.append(
        {"name": f"A* from point to point there, median of all {len(everything)}",
         "value": round(float(np.median(everything)), 1), "unit": "ms", "target": "<= 15"}
    )  # fmt: skip
    return {"figures": figures + peers(large(next(made_up())[1], 0.05)), "details": details}


def peers(costmap: Costmap) -> list[dict[str, Any]]:
    """The same in the rooms by what one would otherwise take."""
    (start, goal), *_ = pairs(costmap)
    ours = milliseconds(lambda: WAVE.potential(costmap, start))
    astar = milliseconds(lambda: SEARCH.plan(costmap, start, goal))
    ground = COSTED.make_grid(costmap.cells)
    weights = ground.weights[ground.cells][1:-1, 1:-1]
    first, last = (tuple(int(i) for i in costmap.geometry.cells_of_points(pose.xy)) for pose in (start, goal))
    figures = []
    for label, value, peer, measure in (
        ("A*", astar, "pyastar2d", _pyastar),
        ("full potential", ours, "scikit-fmm", _fast_marching),
        ("full potential", ours, "scipy (its graph made beforehand)", _scipy),
    ):
        figure = {"name": f"{label} in the rooms", "value": round(value, 1), "unit": "ms", "peer": peer}
        try:
            theirs = measure(weights, first, last)
            figure |= {"peer_value": round(theirs, 1), "ratio": round(theirs / value, 1), "target": "ratio >= 1"}
        except ImportError as error:
            figure |= {"missing": str(error)}
        figures.append(figure)
    return figures


def _pyastar(weights: NDArray[np.float32], first: tuple[int, ...], last: tuple[int, ...]) -> float:
    import pyastar2d

    costs = np.where(weights > 0.0, weights, np.inf).astype(np.float32)
    return milliseconds(lambda: pyastar2d.astar_path(costs, first, last, allow_diagonal=True), 3)


def _fast_marching(weights: NDArray[np.float32], first: tuple[int, ...], last: tuple[int, ...]) -> float:
    import skfmm

    phi = np.ma.MaskedArray(np.ones(weights.shape), weights == 0.0)
    phi[first] = -1.0
    pace = np.where(weights > 0.0, 1.0 / np.maximum(weights, 1e-3), 1.0)
    return milliseconds(lambda: skfmm.travel_time(phi, pace), 2)


def _scipy(weights: NDArray[np.float32], first: tuple[int, ...], last: tuple[int, ...]) -> float:
    rows, columns = weights.shape
    index = np.arange(rows * columns).reshape(rows, columns)
    ends, costs = [], []
    for here, there, length in (
        (np.s_[:, :-1], np.s_[:, 1:], 1.0),
        (np.s_[:-1], np.s_[1:], 1.0),
        (np.s_[:-1, :-1], np.s_[1:, 1:], math.sqrt(2.0)),
        (np.s_[1:, :-1], np.s_[:-1, 1:], math.sqrt(2.0)),
    ):
        free = (weights[here] > 0.0) & (weights[there] > 0.0)
        ends.append(np.stack([index[here][free], index[there][free]]))
        costs.append(0.5 * length * (weights[here][free] + weights[there][free]))
    pairs_of = np.concatenate(ends, axis=1)
    graph = csr_array((np.concatenate(costs), pairs_of), shape=(rows * columns, rows * columns))
    source = int(np.ravel_multi_index(first, weights.shape))
    return milliseconds(lambda: dijkstra(graph, directed=False, indices=source), 1)


def long_way(nightly: bool) -> Figures:
    """A way through a maze of 17,671 cells, end to end."""
    columns, passes = 351, 50
    cells = np.zeros((2 * passes + 1, columns), dtype=np.uint8)
    for k in range(passes):
        cells[2 * k + 1] = LETHAL
        cells[2 * k + 1, -1 if k % 2 == 0 else 0] = 0
    costmap = Costmap(cells, GridGeometry(0.05, cells.shape))
    last = (2 * passes, 70)
    steps = passes * (columns - 1) + 2 * passes + last[1]
    start, goal = (SE2(*costmap.geometry.cell_centers(np.array(cell))) for cell in ((0, 0), last))
    figures = []
    planners = {
        "A*": GridSearchPlanner(UNIFORM),
        "Dijkstra": GridSearchPlanner(UNIFORM, use_heuristic=False),
        "navfn's wave": FastMarchingPlanner(UNIFORM, pull_string=False),
        "any direction": FastMarchingPlanner(UNIFORM),
    }
    for label, planner in planners.items():
        path = planner.plan(costmap, start, goal)
        figure = {"name": f"a way of {steps + 1} cells by {label}, share that is there", "unit": "",
                  "value": round(path.length / (steps * 0.05), 4), "target": ">= 0.97"}  # fmt: skip
        figures.append(figure)
    figures[2] |= {"peer": "navfn in C++", "peer_value": round(NAVFN_LONGEST / (steps + 1), 4)}
    return {"figures": figures, "details": []}


def field(rng: np.random.Generator) -> tuple[Costmap, list[NDArray[np.float64]]]:
    """Convex polygons on open ground of 20 x 20 m, as cells of 5 cm."""
    frame = GridGeometry(0.05, (400, 400))
    middles = frame.cell_centers(np.stack(np.meshgrid(np.arange(400), np.arange(400), indexing="ij"), axis=-1))
    cells = np.zeros((400, 400), dtype=np.uint8)
    shapes: list[NDArray[np.float64]] = []
    while len(shapes) < 12:
        middle, radius, corners = rng.uniform(2.0, 18.0, 2), rng.uniform(0.4, 2.0), rng.integers(3, 8)
        if any(np.linalg.norm(middle - s.mean(axis=0)) < radius + 2.3 for s in shapes):
            continue
        angles = np.sort((np.arange(corners) + rng.uniform(0.0, 0.8, corners)) * 2.0 * math.pi / corners)
        shapes.append(middle + radius * np.column_stack([np.cos(angles), np.sin(angles)]))
        cells[polygons.contains(shapes[-1], middles)] = LETHAL
    return Costmap(cells, frame), shapes


def true_shortest(shapes: list[NDArray[np.float64]], start: NDArray[np.float64], goal: NDArray[np.float64]) -> float:
    """Over the graph of corners that see each other, past convex polygons."""
    corners = np.concatenate([start[None], goal[None], *shapes])
    here, there = (np.stack(ends) for ends in zip(*itertools.combinations(corners, 2), strict=True))
    free = np.ones(len(here), dtype=bool)
    for shape in shapes:
        # the part of each line, from share to share, that lies inside of all edges (Cyrus, Beck 1978)
        edges = np.roll(shape, -1, axis=0) - shape
        outward = np.column_stack([edges[:, 1], -edges[:, 0]])
        towards = (there - here) @ outward.T
        room = ((shape[None] - here[:, None]) * outward).sum(axis=2)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = room / towards
        leave = np.where(towards > 1e-12, share, 1.0).min(axis=1).clip(max=1.0)
        enter = np.where(towards < -1e-12, share, 0.0).max(axis=1).clip(min=0.0)
        beside = ((np.abs(towards) <= 1e-12) & (room <= 1e-12)).any(axis=1)
        free &= beside | (leave - enter <= 1e-9)
    graph = np.zeros((len(corners), len(corners)))
    graph[np.triu_indices(len(corners), 1)] = np.where(free, np.linalg.norm(there - here, axis=1), 0.0)
    return float(dijkstra(csr_array(graph), directed=False, indices=0)[1])


def any_direction(nightly: bool) -> Figures:
    """Ways of any direction beside the true shortest among polygons."""
    rng = np.random.default_rng(11)
    ratios = []
    for _ in range(40 if nightly else 8):
        costmap, shapes = field(rng)
        free = np.argwhere(costmap.cells == 0)
        for _ in range(4):
            start, goal = costmap.geometry.cell_centers(free[rng.integers(len(free), size=2)])
            if np.linalg.norm(goal - start) < 5.0:
                continue
            path = FastMarchingPlanner(UNIFORM).plan(costmap, SE2(*start), SE2(*goal))
            ratios.append(path.length / true_shortest(shapes, start, goal))
    return {
        "figures": [{"name": f"length over the true shortest, worst of {len(ratios)}", "value": round(max(ratios), 4),
                     "target": "<= 1.02"}],
        "details": [f"any direction: mean {np.mean(ratios):.4f}, least {min(ratios):.4f} of the true shortest "
                    "(cells round off polygons' corners)"],
    }  # fmt: skip


def drivable(nightly: bool) -> Figures:
    """Ways for cars among convex polygons."""
    rng = np.random.default_rng(5)
    radius, times, lost, tightest = 0.6, [], 0, math.inf
    car = HybridAStarPlanner(Footprint(polygons.rectangle(0.8, 0.5, (0.2, 0.0))), radius)
    for _ in range(40 if nightly else 8):
        costmap, _ = field(rng)
        walled = np.pad(costmap.cells, 1, constant_values=LETHAL) == LETHAL
        free = np.argwhere(distance_transform(walled)[1:-1, 1:-1] > 20)  # the outline is free however it is turned
        for _ in range(3):
            ends = costmap.geometry.cell_centers(free[rng.integers(len(free), size=2)])
            start, goal = (SE2(x, y, theta) for (x, y), theta in zip(ends, rng.uniform(-3.1, 3.1, 2), strict=True))
            try:
                path = car.plan(costmap, start, goal)
            except SearchBudgetExceededError:
                lost += 1
                continue
            times.append(milliseconds(lambda c=costmap, s=start, g=goal: car.plan(c, s, g), 2))
            steps = np.diff(path.poses, axis=0)
            turns = np.abs(np.remainder(steps[:, 2] + math.pi, 2.0 * math.pi) - math.pi)
            bending = turns > 1e-6
            circles = np.hypot(steps[:, 0], steps[:, 1])[bending] / (2.0 * np.sin(0.5 * turns[bending]))
            tightest = min(tightest, circles.min(initial=math.inf))
    return {
        "figures": [
            {"name": f"Hybrid-A* for a car on 20 x 20 m, {len(times)} ways, median", "unit": "ms",
             "value": round(float(np.median(times)), 1)},
            {"name": "the same, slowest", "unit": "ms", "value": round(max(times), 1)},
            {"name": "its tightest bend over the car's turning radius", "value": round(tightest / radius, 4),
             "unit": "", "target": ">= 0.999"},
        ],
        "details": [f"Hybrid-A*: {lost} of {lost + len(times)} ways were not found within {car.max_expansions} poses"],
    }  # fmt: skip


PARTS = (speed, optimal, long_way, any_direction, drivable)
"""Measured one after the other; each without what it misses."""


if __name__ == "__main__":
    for part in PARTS:
        print(part(False))
