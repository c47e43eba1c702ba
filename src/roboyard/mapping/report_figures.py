"""The figures of a mapped log's report; colours are placeholders that the page's style sheet fills in."""

from __future__ import annotations

import io
import math
import re
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry.se2_arrays import compose, invert
from roboyard.grids import OCCUPIED_THRESHOLD, UNKNOWN
from roboyard.mapping.outcome import Judged, Mapped
from roboyard.mapping.pose_graph import PoseGraph
from roboyard.mapping.trajectory import Trajectory

_COLOURS: Final = {
    "ink": "#010101", "muted": "#020202", "grid": "#030303", "way": "#040404", "odometry": "#050505",
    "loop": "#060606", "panel": "#070707", "good": "#080808",
}  # fmt: skip
_INK, _MUTED, _GRID, _WAY, _ODOMETRY, _LOOP, _PANEL, _GOOD = _COLOURS.values()
_WIDTH: Final = 8.6
_HALF: Final = 4.6
_SETTINGS: Final[dict[str, Any]] = {
    "svg.hashsalt": "roboyard", "svg.fonttype": "none", "font.family": "DejaVu Sans", "font.size": 9.5,
    "text.color": _INK, "axes.facecolor": "none", "axes.edgecolor": _GRID, "axes.labelcolor": _MUTED,
    "axes.grid": True, "axes.axisbelow": True, "axes.spines.top": False, "axes.spines.right": False,
    "grid.color": _GRID, "grid.linewidth": 0.6, "xtick.color": _MUTED, "ytick.color": _MUTED,
    "xtick.major.size": 0, "ytick.major.size": 0, "figure.facecolor": "none", "legend.frameon": False,
    "legend.labelcolor": _INK, "lines.linewidth": 1.6, "lines.solid_capstyle": "round",
    "lines.solid_joinstyle": "round", "path.simplify_threshold": 0.15,
}  # fmt: skip
_MAX_POINTS: Final = 4000
_MAX_LOOPS: Final = 200
_FAR: Final = 0.1


def map_figure(mapped: Mapped) -> str:
    """The map with the way and the loops that were closed."""
    with _styled():
        figure, axes = _new(_map_height(mapped))
        _show_map(axes, mapped)
        poses, graph = _thin(mapped.trajectory.poses), mapped.graph
        for number, ends in enumerate(graph.poses[_shown_loops(graph)]):
            axes.plot(ends[:, 0], ends[:, 1], color=_LOOP, lw=0.6, alpha=0.45, label=None if number else "loop closed")
        axes.plot(poses[:, 0], poses[:, 1], color=_WAY, lw=0.9, alpha=0.85, label="way")
        if len(poses):
            axes.plot(*poses[0, :2], "o", ms=7, mfc=_PANEL, mec=_GOOD, mew=2, label="start")
            axes.plot(*poses[-1, :2], "s", ms=6, color=_WAY, label="end")
        _plan(axes)
        return _svg(figure, "Map with the way that the robot went")


def odometry_figure(mapped: Mapped) -> str:
    """The way beside what odometry alone says; "" without odometry."""
    if len(mapped.odometry) < 2 or len(mapped.trajectory) < 2:
        return ""
    laid = _laid(mapped.odometry, mapped.trajectory)
    both = np.vstack([laid[:, :2], mapped.trajectory.poses[:, :2]])
    with _styled():
        size = np.ptp(both, axis=0) + 2.0
        figure, axes = _new(float(np.clip(_WIDTH * size[1] / size[0], 2.4, 8.0)) + 0.6)
        odometry, way = _thin(laid), _thin(mapped.trajectory.poses)
        axes.plot(odometry[:, 0], odometry[:, 1], color=_ODOMETRY, lw=1.2, label="odometry alone")
        axes.plot(way[:, 0], way[:, 1], color=_WAY, lw=1.3, label="way")
        axes.plot(*way[0, :2], "o", ms=7, mfc=_PANEL, mec=_GOOD, mew=2, label="start")
        _plan(axes)
        return _svg(figure, "The way beside odometry alone")


def error_figure(mapped: Mapped, judged: Judged) -> str:
    """Errors over time, of relations or against the truth; "" where there is nothing to compare with."""
    with _styled():
        figure, (above, below) = _new(4.0, rows=2)
        start = int(mapped.trajectory.times_ns[0]) if len(mapped.trajectory) else 0
        if judged.absolute is not None:
            errors = judged.absolute
            time = (errors.times_ns - start) * 1e-9
            above.plot(time, 100.0 * errors.distances, color=_WAY)
            above.fill_between(time, 0.0, 100.0 * errors.distances, color=_WAY, alpha=0.12, lw=0)
            below.plot(time, np.degrees(errors.turns), color=_WAY)
            below.axhline(0.0, color=_MUTED, lw=0.8)
            above.set_ylabel("distance from truth [cm]")
            below.set_ylabel("direction [°]")
        elif judged.relations is not None:
            found = judged.relations
            time = (found.times_ns - start) * 1e-9
            above.plot(time, found.distances, ".", ms=2.5, color=_WAY, alpha=0.5, rasterized=len(time) > _MAX_POINTS)
            below.plot(time, np.degrees(np.abs(found.turns)), ".", ms=2.5, color=_WAY, alpha=0.5)
            for axes, values in ((above, found.distances), (below, np.degrees(np.abs(found.turns)))):
                axes.axhline(float(values.mean()), color=_INK, lw=1.0, ls=(0, (4, 2)))
                axes.set_ylim(0.0, max(1.2 * float(np.percentile(values, 99.5)), 1e-3))
            above.set_ylabel("error of a relation [m]")
            below.set_ylabel("its turn [°]")
        else:
            return ""
        above.set_ylim(bottom=0.0)
        below.set_xlabel("time [s]")
        return _svg(figure, "Errors over time")


def spread_figure(judged: Judged) -> str:
    """Share of relations with an error below a value, of the way and of odometry; "" without relations."""
    if judged.relations is None:
        return ""
    with _styled():
        figure, axes = _new(2.9, width=_HALF)
        for errors, colour, name in (
            (judged.odometry_relations, _ODOMETRY, "odometry alone"),
            (judged.relations, _WAY, "way"),
        ):
            if errors is not None:
                sizes = np.sort(errors.distances)
                share = 100.0 * np.arange(1, len(sizes) + 1) / len(sizes)
                part = np.unique(np.linspace(0, len(sizes) - 1, 400).astype(int))
                axes.plot(np.maximum(sizes[part], 1e-4), share[part], color=colour, label=name)
        axes.set_xscale("log")
        axes.set_xlabel("error in position [m]")
        axes.set_ylabel("relations [%]")
        axes.set_ylim(0.0, 102.0)
        axes.legend(loc="lower right")
        return _svg(figure, "Share of relations with a smaller error")


def cost_figure(mapped: Mapped) -> str:
    """What each scan cost as the map grew; "" without scans."""
    costs = mapped.costs * 1e3
    if len(costs) < 2:
        return ""
    with _styled():
        figure, axes = _new(2.9, width=_HALF if mapped.relations is not None else _WIDTH)
        number = np.arange(len(costs))
        part = slice(None, None, max(1, len(costs) // _MAX_POINTS))
        axes.plot(number[part], np.maximum(costs[part], 1e-3), ".", ms=2.0, color=_MUTED, alpha=0.6, label="each scan")
        edges = np.linspace(0, len(costs), min(40, len(costs)) + 1).astype(int)
        pairs = list(pairwise(edges.tolist()))
        axes.plot(
            [0.5 * (a + b) for a, b in pairs], [costs[a:b].mean() for a, b in pairs], color=_WAY, lw=2.0, label="mean"
        )
        axes.set_yscale("log")
        axes.set_xlabel("scan")
        axes.set_ylabel("cost [ms]")
        axes.legend(loc="upper right", ncols=2)
        return _svg(figure, "Cost of each scan")


def _shown_loops(graph: PoseGraph) -> NDArray[np.int64]:
    """Some of the loops (n, 2): those between visits that lie far apart in time, which tell most."""
    loops = graph.pairs[graph.loops]
    apart = np.abs(graph.times_ns[loops[:, 0]] - graph.times_ns[loops[:, 1]])
    span = int(graph.times_ns.max() - graph.times_ns.min()) if len(graph.times_ns) else 0
    far = loops[apart >= _FAR * span]
    thinned: NDArray[np.int64] = far[:: max(1, math.ceil(len(far) / _MAX_LOOPS))]
    return thinned


def _show_map(axes: Any, mapped: Mapped) -> None:
    """Draw the known part of the map as a picture: white free, dark occupied, transparent unknown."""
    from matplotlib.transforms import Affine2D

    cells, frame = mapped.grid.cells, mapped.grid.geometry
    if not cells.size:
        return
    share = np.clip(cells, 0, 100).astype(np.float64)[..., None] / 100.0
    colours = np.array([255.0, 255.0, 255.0]) * (1.0 - share) + np.array([24.0, 32.0, 40.0]) * share
    picture = np.zeros((*cells.shape, 4), dtype=np.uint8)
    picture[..., :3] = np.rint(colours)
    picture[..., 3] = np.where(cells == UNKNOWN, 0, 255)
    pose, (width, height) = frame.T_map_grid, frame.extent
    shown = axes.imshow(picture, origin="lower", extent=(0.0, width, 0.0, height), interpolation="none", zorder=0.5)
    shown.set_transform(Affine2D().rotate(pose.theta).translate(pose.x, pose.y) + axes.transData)
    low, high = _shown_box(mapped)
    axes.set_xlim(low[0], high[0])
    axes.set_ylim(low[1], high[1])


def _shown_box(mapped: Mapped) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Corners (2,) of what is worth being shown: walls and the way, without beams that left by the windows [m]."""
    cells, frame = mapped.grid.cells, mapped.grid.geometry
    walls = frame.cell_centers(np.argwhere(cells >= OCCUPIED_THRESHOLD))
    places = np.vstack([walls, mapped.trajectory.poses[:, :2]])
    if not len(places):
        return np.zeros(2), np.ones(2)
    return np.percentile(places, 0.2, axis=0) - 1.5, np.percentile(places, 99.8, axis=0) + 1.5


def _map_height(mapped: Mapped) -> float:
    low, high = _shown_box(mapped)
    width, height = high - low
    return float(np.clip(_WIDTH * height / width, 2.0, 11.0)) + 0.6


def _plan(axes: Any) -> None:
    axes.set_aspect("equal", adjustable="box")
    axes.set_xlabel("x [m]")
    axes.set_ylabel("y [m]")
    axes.grid(visible=False)
    axes.figure.legend(loc="outside lower center", ncols=5, handlelength=1.8)


def _laid(odometry: Trajectory, trajectory: Trajectory) -> NDArray[np.float64]:
    """Odometry (n, 3) moved so that it begins where the trajectory does."""
    there, known = odometry.at(trajectory.times_ns[:1], beyond_ns=10**12)
    T_map_odom = compose(trajectory.poses[0], invert(there[0]))
    return compose(T_map_odom, odometry.poses) if known.all() else odometry.poses


def _thin(poses: NDArray[np.float64]) -> NDArray[np.float64]:
    return poses[:: max(1, len(poses) // _MAX_POINTS)]


def _styled() -> Any:
    import matplotlib as mpl

    return mpl.rc_context(_SETTINGS)


def _new(height: float, rows: int = 1, width: float = _WIDTH) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, 1, sharex=True)


def _svg(figure: Any, label: str) -> str:
    """The figure as an SVG element that scales with the page; ``label`` is for screen readers."""
    out = io.BytesIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None}, transparent=True, dpi=150)
    text = out.getvalue().decode()
    text = text[text.index("<svg") :]
    for name, colour in _COLOURS.items():
        text = text.replace(colour, f"var(--{name})")
    text = re.sub(r' d="[^"]*"', lambda path: re.sub(r"(\d+\.\d)\d+", r"\1", path[0]), text)
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    head, rest = text.split(">", 1)
    head = re.sub(r' (width|height)="[^"]*"', "", head)
    return head.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1) + ">" + rest
