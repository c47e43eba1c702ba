"""The result of mapping a log: map, trajectory, pose graph, their errors and the processing time; written as files
and one self-contained page.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from roboyard.config import write_atomic
from roboyard.errors import InputError
from roboyard.geometry.se2_arrays import compose, invert
from roboyard.grids import OCCUPIED_THRESHOLD, UNKNOWN, OccupancyGrid
from roboyard.mapping.evaluation.trajectory_error import (
    AbsoluteError,
    ErrorStatistics,
    RelationErrors,
    Relations,
    RelativeError,
    absolute_error,
    relation_errors,
    relative_error,
)
from roboyard.mapping.map_files import save_map
from roboyard.mapping.pose_graph import PoseGraph, write_g2o
from roboyard.mapping.slam import SavesSlamMap, find_slam_algorithm
from roboyard.mapping.trajectory import PoseTrajectory, write_tum

T = TypeVar("T")

MAP_FILE, TRAJECTORY_FILE, GRAPH_FILE, METRICS_FILE, REPORT_FILE, POSE_GRAPH_FILE = (
    "map.yaml",
    "trajectory.tum",
    "graph.g2o",
    "metrics.json",
    "report.html",
    "pose_graph.npz",
)
_MAX_EXTRAPOLATION_NS: Final = 50_000_000


@dataclass(frozen=True, slots=True)
class MappingResult:
    """Result of mapping a log: map, trajectory, pose graph, and processing times.

    Attributes:
        name: Name of the log.
        algorithm: Name of the algorithm.
        grid: The map.
        trajectory: ``T_map_base`` of the scans.
        graph: The pose graph.
        odometry: Odometry of the log; without poses if there is none.
        scan_costs: (n,) processing time of each scan [s].
        finish_time: Processing time after the last scan: last loop closures and optimization [s].
        n_scans: Number of scans in the log; larger than that of ``scan_costs`` after an interruption.
        lasers: Names of the lasers.
        warnings: Irregularities of the log and of its scans.
        truth: True trajectory of a simulated log; None for others.
        relations: Verified relations; None without them.
        peak_memory_mb: Largest memory of the process [MB].
        slam_map: The algorithm, which writes the map that it can resume from; None if it cannot.
    """

    name: str
    algorithm: str
    grid: OccupancyGrid
    trajectory: PoseTrajectory
    graph: PoseGraph
    odometry: PoseTrajectory
    scan_costs: NDArray[np.float64]
    finish_time: float
    n_scans: int
    lasers: tuple[str, ...]
    warnings: tuple[str, ...]
    truth: PoseTrajectory | None = None
    relations: Relations | None = None
    peak_memory_mb: float = 0.0
    slam_map: SavesSlamMap | None = None

    def save(self, folder: Path | str) -> dict[str, Path]:
        """Write the map, the trajectory, the pose graph, the metrics and the report into a folder.

        Args:
            folder: Folder to write to; it is created if it does not exist.

        Returns:
            Paths of the files by name: map, trajectory, graph, metrics, report, and pose_graph of graph SLAM.

        Raises:
            InputError: A file cannot be written.
        """
        folder = Path(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot be made: {error.strerror or error}", location=str(folder)) from error
        return write_mapping_report(self, folder)[1]

    @property
    def is_interrupted(self) -> bool:
        """Return whether scans remain that were not processed."""
        return len(self.scan_costs) < self.n_scans

    @property
    def processing_time(self) -> float:
        """Return the processing time of all scans [s]."""
        return float(self.scan_costs.sum()) + self.finish_time

    @property
    def duration(self) -> float:
        """Return the duration of the processed part of the log [s]."""
        times = self.trajectory.times_ns
        return float(times[-1] - times[0]) * 1e-9 if len(times) else 0.0


@dataclass(frozen=True, slots=True)
class MappingErrors:
    """Errors of a mapped log; None without a reference.

    Attributes:
        relations: Of the trajectory.
        odometry_relations: Of odometry alone.
        absolute: Against the truth.
        relative: Against the truth, over one second.
        odometry_absolute: Of odometry alone.
    """

    relations: RelationErrors | None = None
    odometry_relations: RelationErrors | None = None
    absolute: AbsoluteError | None = None
    relative: RelativeError | None = None
    odometry_absolute: AbsoluteError | None = None


def evaluate_mapping(result: MappingResult) -> MappingErrors:
    """Compare with relations and truth."""
    relations, truth = result.relations, result.truth
    absolute = relative = odometry_absolute = None
    if truth is not None:
        absolute = _compute_if_comparable(
            lambda: absolute_error(result.trajectory, truth, max_extrapolation_ns=_MAX_EXTRAPOLATION_NS)
        )
        odometry_absolute = _compute_if_comparable(
            lambda: absolute_error(result.odometry, truth, max_extrapolation_ns=_MAX_EXTRAPOLATION_NS)
        )
        relative = _compute_if_comparable(lambda: relative_error(result.trajectory, truth))
    trajectory_errors = odometry_errors = None
    if relations is not None:
        trajectory_errors = _compute_if_comparable(lambda: relation_errors(result.trajectory, relations))
        odometry_errors = _compute_if_comparable(lambda: relation_errors(result.odometry, relations))
    return MappingErrors(trajectory_errors, odometry_errors, absolute, relative, odometry_absolute)


def mapping_metrics(result: MappingResult, errors: MappingErrors) -> dict[str, Any]:
    """Return all metrics as plain data."""
    cells, resolution = result.grid.cells, result.grid.geometry.resolution
    costs = result.scan_costs * 1e3
    values: dict[str, Any] = {
        "log": result.name,
        "algorithm": result.algorithm,
        "scans": len(result.scan_costs),
        "scans_in_log": result.n_scans,
        "interrupted": result.is_interrupted,
        "lasers": list(result.lasers),
        "duration": result.duration,
        "seconds": result.processing_time,
        "real_time_factor": result.duration / result.processing_time if result.processing_time > 0.0 else None,
        "peak_memory_mb": result.peak_memory_mb,
        "scan_ms_median": float(np.median(costs)) if len(costs) else None,
        "scan_ms_p99": float(np.percentile(costs, 99)) if len(costs) else None,
        "way": result.trajectory.length,
        "nodes": len(result.graph.times_ns),
        "edges": len(result.graph.edges),
        "loops": int(result.graph.is_loop.sum()),
        "map_rows": cells.shape[0],
        "map_columns": cells.shape[1],
        "resolution": resolution,
        "known_area": float((cells != UNKNOWN).sum()) * resolution**2,
        "warnings": list(result.warnings),
    }
    if errors.relations is not None:
        values |= _relation_metrics(errors.relations, "")
    if errors.odometry_relations is not None:
        values |= _relation_metrics(errors.odometry_relations, "odometry_")
    if errors.absolute is not None:
        values |= {
            "ate_rmse": errors.absolute.translational.rmse,
            "ate_mean": errors.absolute.translational.mean,
            "ate_max": errors.absolute.translational.maximum,
            "ate_rot_deg": errors.absolute.rotational_deg.mean,
        }
    if errors.relative is not None:
        values |= {
            "rpe_rmse": errors.relative.translational.rmse,
            "rpe_rot_deg": errors.relative.rotational_deg.rmse,
        }
    if errors.odometry_absolute is not None:
        values["odometry_ate_rmse"] = errors.odometry_absolute.translational.rmse
    return values


def write_map_files(result: MappingResult, folder: Path) -> dict[str, Path]:
    """Write map, trajectory and graph into a folder; gives their paths by name.

    Raises:
        InputError: a file cannot be written.
    """
    paths = {"trajectory": folder / TRAJECTORY_FILE, "graph": folder / GRAPH_FILE}
    write_tum(paths["trajectory"], result.trajectory)
    write_g2o(paths["graph"], result.graph)
    if result.grid.cells.size:
        paths["map"] = save_map(folder / MAP_FILE, result.grid)
    if result.slam_map is not None:
        paths["pose_graph"] = result.slam_map.save_map(folder / POSE_GRAPH_FILE)
    return paths


def check_relation_times(times_ns: Sequence[int], relations: Relations) -> None:
    """Check that relations are within the times of a log, before it is mapped.

    Raises:
        InputError: none is.
    """
    poses = np.zeros((len(times_ns), 3))
    relation_errors(PoseTrajectory(np.asarray(times_ns, dtype=np.int64), poses), relations)


def _relation_metrics(errors: RelationErrors, prefix: str) -> dict[str, Any]:
    values = {
        "trans_m": errors.translational.mean,
        "trans_std": errors.translational.std,
        "trans_max": errors.translational.maximum,
        "rot_deg": errors.rotational_deg.mean,
        "relations": errors.n_used,
        "relations_total": errors.n_total,
    }
    return {f"{prefix}{name}": value for name, value in values.items()}


def _compute_if_comparable(compute: Callable[[], T]) -> T | None:
    """Return the result of ``compute``, or None if the times do not overlap."""
    try:
        return compute()
    except InputError:
        return None


def write_mapping_report(
    result: MappingResult, folder: Path, version: str = ""
) -> tuple[dict[str, Any], dict[str, Path]]:
    """Write map, trajectory, graph, figures and page into a folder.

    Args:
        result: What to write.
        folder: Where to; it exists.
        version: Of Roboyard, for the page.

    Returns:
        All figures, and the files' paths by name.

    Raises:
        InputError: a file cannot be written.
    """
    errors = evaluate_mapping(result)
    metrics = mapping_metrics(result, errors)
    paths = write_map_files(result, folder)
    for name, file, text in (
        ("metrics", METRICS_FILE, json.dumps(metrics, indent=1, allow_nan=False, ensure_ascii=False) + "\n"),
        ("report", REPORT_FILE, render_page(result, errors, metrics, version)),
    ):
        paths[name] = folder / file
        try:
            write_atomic(paths[name], text)
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", location=str(paths[name])) from error
    return metrics, paths


def render_page(result: MappingResult, errors: MappingErrors, metrics: dict[str, Any], version: str = "") -> str:
    """Return the report as HTML."""
    from jinja2 import Environment

    template = Environment(autoescape=True).from_string(files(__package__).joinpath("report.html").read_text("utf-8"))
    rows, reference, note = _error_rows(errors)
    scan_summary = f"{metrics['scans']:,} scans over {_format_time(result.duration)}"
    return template.render(
        name=result.name,
        algorithm=find_slam_algorithm(result.algorithm).title,
        scans=scan_summary,
        lasers=", ".join(result.lasers),
        interrupted=f"{metrics['scans']:,} of {result.n_scans:,} scans" if result.is_interrupted else "",
        tiles=_tiles(result, errors, metrics),
        figures={
            "map": map_figure(result),
            "odometry": odometry_figure(result),
            "error": error_figure(result, errors),
            "spread": cumulative_error_figure(errors),
            "cost": cost_figure(result),
        },
        errors=rows,
        errors_of=reference,
        errors_note=note,
        warnings=result.warnings,
        figures_table=[(key, _format_value(value)) for key, value in metrics.items() if not isinstance(value, list)],
        version=version,
    )


def _tiles(result: MappingResult, errors: MappingErrors, metrics: dict[str, Any]) -> list[tuple[str, str]]:
    tiles = []
    if errors.relations is not None:
        tiles.append(("mean position error", f"{100 * errors.relations.translational.mean:.1f} cm"))
        tiles.append(("mean heading error", f"{errors.relations.rotational_deg.mean:.2f}°"))
    if errors.absolute is not None:
        tiles.append(("ATE, rms", f"{100 * errors.absolute.translational.rmse:.1f} cm"))
    factor = metrics["real_time_factor"]
    tiles += [
        ("path", f"{metrics['way']:,.0f} m"),
        ("map", f"{result.grid.geometry.extent[0]:.0f} × {result.grid.geometry.extent[1]:.0f} m"),
        ("loop closures", f"{metrics['loops']:,}"),
        ("real time", f"{factor:,.0f} ×" if factor else "–"),
        ("per scan, median", f"{metrics['scan_ms_median']:.1f} ms" if metrics["scan_ms_median"] is not None else "–"),
    ]
    return tiles


def _error_rows(errors: MappingErrors) -> tuple[list[list[str]], str, str]:
    """Return the rows of the table of errors, their subject, and a note."""
    rows: list[list[str]] = []
    if errors.relations is not None:
        relations = errors.relations
        rows += _pair("path", relations.translational, relations.rotational_deg)
        if errors.odometry_relations is not None:
            odometry = errors.odometry_relations
            rows += _pair("odometry alone", odometry.translational, odometry.rotational_deg)
        note = (
            f"{relations.n_used:,} of {relations.n_total:,} relations are used: the others are at times without "
            "a scan nearby. "
            "Measured as in Kümmerle et al. 2009."
        )
        return rows, "verified relations", note
    if errors.absolute is not None:
        rows += _pair("path", errors.absolute.translational, errors.absolute.rotational_deg)
        if errors.relative is not None:
            rows += _pair("path, over 1 s (RPE)", errors.relative.translational, errors.relative.rotational_deg)
        if errors.odometry_absolute is not None:
            other_error = errors.odometry_absolute
            rows += _pair("odometry alone", other_error.translational, other_error.rotational_deg)
        return rows, "against the truth", "After alignment in the plane (ATE)."
    return rows, "", ""


def _pair(name: str, distance: ErrorStatistics, angle: ErrorStatistics) -> list[list[str]]:
    return [
        [f"{name}, position", *_row(distance, "m", 4)],
        [f"{name}, heading", *_row(angle, "°", 2)],
    ]


def _row(s: ErrorStatistics, unit: str, digits: int) -> list[str]:
    values = (s.mean, s.std, s.median, s.rmse, s.maximum)
    return [*(f"{value:.{digits}f} {unit}" for value in values), f"{s.count:,}"]


def _format_time(seconds: float) -> str:
    minutes, remaining = divmod(round(seconds), 60)
    return f"{minutes} min {remaining} s" if minutes else f"{seconds:.1f} s"


def _format_value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    return "–" if value is None else str(value)


_COLORS: Final = {
    "ink": "#010101", "muted": "#020202", "grid": "#030303", "way": "#040404", "odometry": "#050505",
    "loop": "#060606", "panel": "#070707", "good": "#080808",
}  # fmt: skip
_INK_COLOR, _MUTED_COLOR, _GRID_COLOR, _TRAJECTORY_COLOR, _ODOMETRY_COLOR, _LOOP_COLOR, _PANEL_COLOR, _START_COLOR = (
    _COLORS.values()
)
_WIDTH: Final = 8.6
_HALF_WIDTH: Final = 4.6
_SETTINGS: Final[dict[str, Any]] = {
    "svg.hashsalt": "roboyard", "svg.fonttype": "none", "font.family": "DejaVu Sans", "font.size": 9.5,
    "text.color": _INK_COLOR, "axes.facecolor": "none", "axes.edgecolor": _GRID_COLOR, "axes.labelcolor": _MUTED_COLOR,
    "axes.grid": True, "axes.axisbelow": True, "axes.spines.top": False, "axes.spines.right": False,
    "grid.color": _GRID_COLOR, "grid.linewidth": 0.6, "xtick.color": _MUTED_COLOR, "ytick.color": _MUTED_COLOR,
    "xtick.major.size": 0, "ytick.major.size": 0, "figure.facecolor": "none", "legend.frameon": False,
    "legend.labelcolor": _INK_COLOR, "lines.linewidth": 1.6, "lines.solid_capstyle": "round",
    "lines.solid_joinstyle": "round", "path.simplify_threshold": 0.15,
}  # fmt: skip
_MAX_POINTS: Final = 4000
_MAX_LOOPS: Final = 200
_MIN_LOOP_TIME_FRACTION: Final = 0.1


def map_figure(result: MappingResult) -> str:
    """Return a figure of the map with the path and the loop closures."""
    with _styled():
        figure, axes = _new_figure(_map_height(result))
        _draw_map(axes, result)
        poses, graph = _decimate(result.trajectory.poses), result.graph
        for number, ends in enumerate(graph.poses[_select_loops(graph)]):
            axes.plot(
                ends[:, 0], ends[:, 1], color=_LOOP_COLOR, lw=0.6, alpha=0.45, label=None if number else "loop closure"
            )
        axes.plot(poses[:, 0], poses[:, 1], color=_TRAJECTORY_COLOR, lw=0.9, alpha=0.85, label="path")
        if len(poses):
            axes.plot(*poses[0, :2], "o", ms=7, mfc=_PANEL_COLOR, mec=_START_COLOR, mew=2, label="start")
            axes.plot(*poses[-1, :2], "s", ms=6, color=_TRAJECTORY_COLOR, label="end")
        _set_plan_axes(axes)
        return _svg(figure, "Map with the way that the robot went")


def odometry_figure(result: MappingResult) -> str:
    """Return a figure of the path and of odometry alone; "" without odometry."""
    if len(result.odometry) < 2 or len(result.trajectory) < 2:
        return ""
    aligned_odometry = _align_start(result.odometry, result.trajectory)
    both = np.vstack([aligned_odometry[:, :2], result.trajectory.poses[:, :2]])
    with _styled():
        size = np.ptp(both, axis=0) + 2.0
        figure, axes = _new_figure(float(np.clip(_WIDTH * size[1] / size[0], 2.4, 8.0)) + 0.6)
        odometry, poses = _decimate(aligned_odometry), _decimate(result.trajectory.poses)
        axes.plot(odometry[:, 0], odometry[:, 1], color=_ODOMETRY_COLOR, lw=1.2, label="odometry alone")
        axes.plot(poses[:, 0], poses[:, 1], color=_TRAJECTORY_COLOR, lw=1.3, label="path")
        axes.plot(*poses[0, :2], "o", ms=7, mfc=_PANEL_COLOR, mec=_START_COLOR, mew=2, label="start")
        _set_plan_axes(axes)
        return _svg(figure, "The way beside odometry alone")


def error_figure(result: MappingResult, mapping_errors: MappingErrors) -> str:
    """Return a figure of the errors over time, of relations or against the truth; "" without either."""
    with _styled():
        figure, (above, below) = _new_figure(4.0, rows=2)
        start = int(result.trajectory.times_ns[0]) if len(result.trajectory) else 0
        if mapping_errors.absolute is not None:
            errors = mapping_errors.absolute
            time = (errors.times_ns - start) * 1e-9
            above.plot(time, 100.0 * errors.distances, color=_TRAJECTORY_COLOR)
            above.fill_between(time, 0.0, 100.0 * errors.distances, color=_TRAJECTORY_COLOR, alpha=0.12, lw=0)
            below.plot(time, np.degrees(errors.angles), color=_TRAJECTORY_COLOR)
            below.axhline(0.0, color=_MUTED_COLOR, lw=0.8)
            above.set_ylabel("distance from truth [cm]")
            below.set_ylabel("heading error [°]")
        elif mapping_errors.relations is not None:
            relations = mapping_errors.relations
            time = (relations.times_ns - start) * 1e-9
            above.plot(
                time,
                relations.distances,
                ".",
                ms=2.5,
                color=_TRAJECTORY_COLOR,
                alpha=0.5,
                rasterized=len(time) > _MAX_POINTS,
            )
            below.plot(time, np.degrees(np.abs(relations.angles)), ".", ms=2.5, color=_TRAJECTORY_COLOR, alpha=0.5)
            for axes, values in ((above, relations.distances), (below, np.degrees(np.abs(relations.angles)))):
                axes.axhline(float(values.mean()), color=_INK_COLOR, lw=1.0, ls=(0, (4, 2)))
                axes.set_ylim(0.0, max(1.2 * float(np.percentile(values, 99.5)), 1e-3))
            above.set_ylabel("error of a relation [m]")
            below.set_ylabel("its heading error [°]")
        else:
            return ""
        above.set_ylim(bottom=0.0)
        below.set_xlabel("time [s]")
        return _svg(figure, "Errors over time")


def cumulative_error_figure(mapping_errors: MappingErrors) -> str:
    """Return a figure of the cumulative distribution of the relations' errors, of path and odometry; "" without
    relations.
    """
    if mapping_errors.relations is None:
        return ""
    with _styled():
        figure, axes = _new_figure(2.9, width=_HALF_WIDTH)
        for errors, color, name in (
            (mapping_errors.odometry_relations, _ODOMETRY_COLOR, "odometry alone"),
            (mapping_errors.relations, _TRAJECTORY_COLOR, "way"),
        ):
            if errors is not None:
                sizes = np.sort(errors.distances)
                percentages = 100.0 * np.arange(1, len(sizes) + 1) / len(sizes)
                sampled = np.unique(np.linspace(0, len(sizes) - 1, 400).astype(int))
                axes.plot(np.maximum(sizes[sampled], 1e-4), percentages[sampled], color=color, label=name)
        axes.set_xscale("log")
        axes.set_xlabel("error in position [m]")
        axes.set_ylabel("relations [%]")
        axes.set_ylim(0.0, 102.0)
        axes.legend(loc="lower right")
        return _svg(figure, "Share of relations with a smaller error")


def cost_figure(result: MappingResult) -> str:
    """Return a figure of the processing time of each scan; "" without scans."""
    costs = result.scan_costs * 1e3
    if len(costs) < 2:
        return ""
    with _styled():
        figure, axes = _new_figure(2.9, width=_HALF_WIDTH if result.relations is not None else _WIDTH)
        number = np.arange(len(costs))
        part = slice(None, None, max(1, len(costs) // _MAX_POINTS))
        axes.plot(
            number[part], np.maximum(costs[part], 1e-3), ".", ms=2.0, color=_MUTED_COLOR, alpha=0.6, label="each scan"
        )
        edges = np.linspace(0, len(costs), min(40, len(costs)) + 1).astype(int)
        pairs = list(pairwise(edges.tolist()))
        axes.plot(
            [0.5 * (a + b) for a, b in pairs],
            [costs[a:b].mean() for a, b in pairs],
            color=_TRAJECTORY_COLOR,
            lw=2.0,
            label="mean",
        )
        axes.set_yscale("log")
        axes.set_xlabel("scan")
        axes.set_ylabel("processing time [ms]")
        axes.legend(loc="upper right", ncols=2)
        return _svg(figure, "Cost of each scan")


def _select_loops(graph: PoseGraph) -> NDArray[np.int64]:
    """Select loop closures (n, 2) between visits far apart in time."""
    loops = graph.edges[graph.is_loop]
    time_gaps = np.abs(graph.times_ns[loops[:, 0]] - graph.times_ns[loops[:, 1]])
    span = int(graph.times_ns.max() - graph.times_ns.min()) if len(graph.times_ns) else 0
    distant_loops = loops[time_gaps >= _MIN_LOOP_TIME_FRACTION * span]
    selected: NDArray[np.int64] = distant_loops[:: max(1, math.ceil(len(distant_loops) / _MAX_LOOPS))]
    return selected


def _draw_map(axes: Any, result: MappingResult) -> None:
    """Draw the known part of the map as a picture: white free, dark occupied, transparent unknown."""
    from matplotlib.transforms import Affine2D

    cells, geometry = result.grid.cells, result.grid.geometry
    if not cells.size:
        return
    darkness = np.clip(cells, 0, 100).astype(np.float64)[..., None] / 100.0
    colors = np.array([255.0, 255.0, 255.0]) * (1.0 - darkness) + np.array([24.0, 32.0, 40.0]) * darkness
    image = np.zeros((*cells.shape, 4), dtype=np.uint8)
    image[..., :3] = np.rint(colors)
    image[..., 3] = np.where(cells == UNKNOWN, 0, 255)
    pose, (width, height) = geometry.T_map_grid, geometry.extent
    artist = axes.imshow(image, origin="lower", extent=(0.0, width, 0.0, height), interpolation="none", zorder=0.5)
    artist.set_transform(Affine2D().rotate(pose.theta).translate(pose.x, pose.y) + axes.transData)
    low, high = _visible_box(result)
    axes.set_xlim(low[0], high[0])
    axes.set_ylim(low[1], high[1])


def _visible_box(result: MappingResult) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return two corners (2,) of the visible part: walls and path, without beams that left through windows [m]."""
    cells, geometry = result.grid.cells, result.grid.geometry
    walls = geometry.cell_centers(np.argwhere(cells >= OCCUPIED_THRESHOLD))
    points = np.vstack([walls, result.trajectory.poses[:, :2]])
    if not len(points):
        return np.zeros(2), np.ones(2)
    return np.percentile(points, 0.2, axis=0) - 1.5, np.percentile(points, 99.8, axis=0) + 1.5


def _map_height(result: MappingResult) -> float:
    low, high = _visible_box(result)
    width, height = high - low
    return float(np.clip(_WIDTH * height / width, 2.0, 11.0)) + 0.6


def _set_plan_axes(axes: Any) -> None:
    axes.set_aspect("equal", adjustable="box")
    axes.set_xlabel("x [m]")
    axes.set_ylabel("y [m]")
    axes.grid(visible=False)
    axes.figure.legend(loc="outside lower center", ncols=5, handlelength=1.8)


def _align_start(odometry: PoseTrajectory, trajectory: PoseTrajectory) -> NDArray[np.float64]:
    """Return odometry (n, 3), moved so that it starts at the start of the trajectory."""
    start_pose, is_known = odometry.interpolate(trajectory.times_ns[:1], max_extrapolation_ns=10**12)
    T_map_odom = compose(trajectory.poses[0], invert(start_pose[0]))
    return compose(T_map_odom, odometry.poses) if is_known.all() else odometry.poses


def _decimate(poses: NDArray[np.float64]) -> NDArray[np.float64]:
    return poses[:: max(1, len(poses) // _MAX_POINTS)]


def _styled() -> Any:
    import matplotlib as mpl

    return mpl.rc_context(_SETTINGS)


def _new_figure(height: float, rows: int = 1, width: float = _WIDTH) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, 1, sharex=True)


def _svg(figure: Any, label: str) -> str:
    """Return the figure as an SVG element that scales with the page; ``label`` is for screen readers."""
    out = io.BytesIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None}, transparent=True, dpi=150)
    text = out.getvalue().decode()
    text = text[text.index("<svg") :]
    for name, color in _COLORS.items():
        text = text.replace(color, f"var(--{name})")
    text = re.sub(r' d="[^"]*"', lambda path: re.sub(r"(\d+\.\d)\d+", r"\1", path[0]), text)
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    head, body = text.split(">", 1)
    head = re.sub(r' (width|height)="[^"]*"', "", head)
    return head.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1) + ">" + body
