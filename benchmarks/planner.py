"""Global planners: optimal on public maps, quick on large ones, never cut short, as short as any direction allows.

Maps are looked for in ``--maps``, else in ``movingai``, ``nav2_maps`` and ``nav2_planner_bench`` of the folder that
ROBOYARD_DATA names: MovingAI's (``x.map`` with ``x.map.scen`` or ``x.scen``) and map_server's (``x.yaml`` with its
picture), each also as ``.gz``.  Times are those of one core (processor time, least of several); costs are inflated as
a robot of 0.2 m would have it, and a metre beside a wall costs up to four times one in the open.
"""

from __future__ import annotations

import gzip
import math
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from roboyard.errors import InputError
from roboyard.geometry import SE2, polygons
from roboyard.grids import FREE, OCCUPIED, GridFrame, OccupancyGrid
from roboyard.mapping import load_map
from roboyard.navigation import (
    Costmap,
    GridSearch,
    InflationLayer,
    LayeredCostmap,
    NavigationError,
    StaticLayer,
    Traversal,
    WavePlanner,
)
from roboyard.navigation.costmap import INSCRIBED, LETHAL

SIDE = 1000
PAIRS = 12
UNIFORM, COSTED = Traversal(cost_weight=0.0), Traversal()
WAVE, SEARCH = WavePlanner(COSTED), GridSearch(COSTED)
NAVFN_POTENTIAL, NAVFN_PATH, NAVFN_LONGEST = 25.0, 23.0, 4001
"""The real navfn in C++: 14 to 25 ms and 3 to 23 ms on four maps; it cuts a path of 17,671 cells at 4,001."""
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
        raise ImportError("no maps: --maps or ROBOYARD_DATA has to name a folder")
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
    return Costmap(cells, GridFrame(1.0, cells.shape))


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


def large(name: str, cells: NDArray[np.int8], resolution: float = 0.05) -> tuple[str, Costmap]:
    """A map of 1000 x 1000 cells with inflated costs: the upper left part of it, or it and its mirror images."""
    rows, columns = cells.shape
    more = ((0, max(SIDE - rows, 0)), (0, max(SIDE - columns, 0)))
    grid = np.pad(cells, more, mode="symmetric")[:SIDE, :SIDE]
    frame = GridFrame(resolution, grid.shape)
    static = StaticLayer()
    static.take(OccupancyGrid(np.ascontiguousarray(grid), frame))
    layers = LayeredCostmap(frame, [static, InflationLayer(0.2, 0.55)])
    layers.update()
    return name, layers.costmap()


def made_up() -> Iterator[tuple[str, NDArray[np.int8]]]:
    """Maps that need no data: rooms with doors, boxes on open ground."""
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
    yield "rooms", rooms
    yield "boxes", boxes


def large_maps(folder: Path | None) -> Iterator[tuple[str, Costmap]]:
    for name, cells in made_up():
        yield large(name, cells)
    try:
        places = folders(folder)
    except ImportError:
        return
    for octile in octile_maps(places):
        yield large(octile.name, np.where(octile.costmap.cells == LETHAL, OCCUPIED, FREE).astype(np.int8))
    for name, grid in server_maps(places):
        yield large(name, grid.cells, grid.frame.resolution)


def pairs(costmap: Costmap, seed: int = 0) -> list[tuple[SE2, SE2]]:
    """Starts and goals far from each other, a way between them."""
    rng = np.random.default_rng(seed)
    free = np.argwhere(costmap.cells < INSCRIBED)
    found: list[tuple[SE2, SE2]] = []
    for _ in range(40):
        if len(found) == PAIRS or not len(free):
            break
        start = free[rng.integers(len(free))]
        potential = WavePlanner(UNIFORM).potential(costmap, SE2(*costmap.frame.points(start)))
        reached = np.argwhere(np.isfinite(potential) & (costmap.cells < INSCRIBED))
        far = reached[potential[tuple(reached.T)] > 0.5 * potential[tuple(reached.T)].max(initial=0.0)]
        if len(reached) > 0.05 * len(free) and len(far):
            ends = costmap.frame.points(np.stack([start, far[rng.integers(len(far))]]))
            found.append((SE2(*ends[0]), SE2(*ends[1])))
    return found


def optimal(nightly: bool, folder: Path | None = None) -> Figures:
    """MovingAI's problems: every line of every scenario."""
    figures, details = [], []
    right = {"A*": 0, "Dijkstra": 0}
    total = 0
    for octile in octile_maps(folders(folder)):
        if not len(octile.problems):
            continue
        total += len(octile.problems)
        for label, planner in (("A*", GridSearch(UNIFORM)), ("Dijkstra", GridSearch(UNIFORM, directed=False))):

            def solve(problem: NDArray[np.float64], planner=planner, costmap=octile.costmap) -> bool:
                x0, y0, x1, y1, length = problem
                try:
                    path = planner.plan(costmap, SE2(x0 + 0.5, y0 + 0.5), SE2(x1 + 0.5, y1 + 0.5))
                except NavigationError:
                    return False
                return math.isclose(path.length, length, rel_tol=2e-5, abs_tol=2e-5)  # files give six digits

            begun = time.perf_counter()
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                solved = sum(pool.map(solve, octile.problems))
            right[label] += solved
            details.append(
                f"{octile.name}: {label} optimal in {solved} of {len(octile.problems)}, "
                f"{1e3 * (time.perf_counter() - begun) / len(octile.problems):.1f} ms a problem"
            )
    if not total:
        raise ImportError("no MovingAI map with scenarios in the folder")
    for label, count in right.items():
        figures.append(
            {"name": f"{label}, optimal octile length in {total} problems", "value": round(100.0 * count / total, 4),
             "unit": "%", "target": ">= 100"}
        )  # fmt: skip
    return {"figures": figures, "details": details}


def speed(nightly: bool, folder: Path | None = None) -> Figures:
    """Times on maps of 1000 x 1000 cells, beside peers."""
    figures, details = [], []
    potentials, paths = {}, {}
    for name, costmap in large_maps(folder):
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
        {"name": f"full potential of 1000 x 1000 costs, slowest of {len(potentials)} maps ({slowest})",
         "value": round(potentials[slowest], 1), "unit": "ms", "target": "<= 25",
         "peer": "navfn in C++, slowest of four maps", "peer_value": NAVFN_POTENTIAL}
    )  # fmt: skip
    figures.append(
        {"name": f"A* from point to point there, slowest map's median ({worst})",
         "value": round(float(np.median(paths[worst])), 1), "unit": "ms", "target": "<= 15",
         "peer": "navfn in C++, slowest of four maps", "peer_value": NAVFN_PATH}
    )  # fmt: skip
    everything = np.concatenate(list(paths.values()))
    figures.append(
        {"name": f"A* from point to point there, median of all {len(everything)}",
         "value": round(float(np.median(everything)), 1), "unit": "ms", "target": "<= 15"}
    )  # fmt: skip
    return {"figures": figures + peers(large(*next(made_up()))[1]), "details": details}


def peers(costmap: Costmap) -> list[dict[str, Any]]:
    """The same in the rooms by what one would otherwise take."""
    (start, goal), *_ = pairs(costmap)
    ours = milliseconds(lambda: WAVE.potential(costmap, start))
    astar = milliseconds(lambda: SEARCH.plan(costmap, start, goal))
    weights = COSTED.weights(costmap.cells)[1:-1, 1:-1]
    first, last = (tuple(int(i) for i in costmap.frame.cells(pose.xy)) for pose in (start, goal))
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
    cells[2 * passes, columns - 121 :] = LETHAL
    cells[2 * passes, : columns - 121] = 0
    costmap = Costmap(cells, GridFrame(0.05, cells.shape))
    last = (2 * passes, 120)
    steps = passes * (columns - 1) + 2 * passes + 120
    start, goal = (SE2(*costmap.frame.points(np.array(cell))) for cell in ((0, 0), last))
    figures = []
    planners = {
        "A*": GridSearch(UNIFORM),
        "Dijkstra": GridSearch(UNIFORM, directed=False),
        "navfn's wave": WavePlanner(UNIFORM, taut=False),
        "any direction": WavePlanner(UNIFORM),
    }
    for label, planner in planners.items():
        path = planner.plan(costmap, start, goal)
        figure = {"name": f"a way of {steps + 1} cells by {label}, share that is there", "unit": "",
                  "value": round(path.length / (steps * 0.05), 4), "target": ">= 0.97"}  # fmt: skip
        figures.append(figure)
    figures[2] |= {"peer": "navfn in C++", "peer_value": round(NAVFN_LONGEST / 17671, 4)}
    return {"figures": figures, "details": []}


def field(rng: np.random.Generator) -> tuple[Costmap, list[NDArray[np.float64]]]:
    """Convex polygons on open ground of 20 x 20 m, as cells of 5 cm."""
    frame = GridFrame(0.05, (400, 400))
    middles = frame.points(np.stack(np.meshgrid(np.arange(400), np.arange(400), indexing="ij"), axis=-1))
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
    """Over the graph of corners that see each other."""
    corners = np.concatenate([start[None], goal[None], *shapes])
    share = np.linspace(0.0, 1.0, 800)[1:-1, None]
    graph = np.zeros((len(corners), len(corners)))
    shrunk = [s.mean(axis=0) + (s - s.mean(axis=0)) * 0.999 for s in shapes]
    for i in range(len(corners)):
        for j in range(i):
            line = corners[i] + share * (corners[j] - corners[i])
            if not any(polygons.contains(s, line).any() for s in shrunk):
                graph[i, j] = np.linalg.norm(corners[i] - corners[j])
    return float(dijkstra(csr_array(graph), directed=False, indices=0)[1])


def any_direction(nightly: bool) -> Figures:
    """Ways of any direction beside the true shortest among polygons."""
    rng = np.random.default_rng(11)
    ratios = []
    for _ in range(40 if nightly else 8):
        costmap, shapes = field(rng)
        free = np.argwhere(costmap.cells == 0)
        for _ in range(4):
            start, goal = costmap.frame.points(free[rng.integers(len(free), size=2)])
            if np.linalg.norm(goal - start) < 5.0:
                continue
            path = WavePlanner(UNIFORM).plan(costmap, SE2(*start), SE2(*goal))
            ratios.append(path.length / true_shortest(shapes, start, goal))
    return {
        "figures": [{"name": f"length over the true shortest, worst of {len(ratios)}", "value": round(max(ratios), 4),
                     "target": "<= 1.02"}],
        "details": [f"any direction: mean {np.mean(ratios):.4f}, least {min(ratios):.4f} of the true shortest "
                    "(cells round off polygons' corners)"],
    }  # fmt: skip


PARTS = (speed, optimal, long_way, any_direction)
"""Measured one after the other; each without what it misses."""


if __name__ == "__main__":
    for part in PARTS:
        print(part(False))
