"""What became of a log: map, trajectory and graph, how good they are, and what they cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import InputError
from roboyard.grids import UNKNOWN, OccupancyGrid
from roboyard.mapping.evaluation.trajectory_error import AbsoluteError, RelativeError, absolute_error, relative_error
from roboyard.mapping.g2o import write_g2o
from roboyard.mapping.map_files import save_map
from roboyard.mapping.pose_graph import PoseGraph
from roboyard.mapping.relations import RelationErrors, Relations, relation_errors
from roboyard.mapping.trajectory import Trajectory
from roboyard.mapping.tum import write_tum

T = TypeVar("T")

MAP, TRAJECTORY, GRAPH, METRICS, REPORT = "map.yaml", "trajectory.tum", "graph.g2o", "metrics.json", "report.html"
_TRUTH_BEYOND_NS: Final = 50_000_000


@dataclass(frozen=True, slots=True)
class Mapped:
    """A mapped log.

    Attributes:
        name: Of the log.
        algorithm: Name of the algorithm.
        grid: The map.
        trajectory: ``T_map_base`` of the scans.
        graph: Of poses.
        odometry: The log's own odometry; without poses where there is none.
        costs: (n,) what each scan took [s].
        finishing: What came after the last scan: last loops, optimisation [s].
        total: Scans in the log; more than ``costs`` when it was interrupted.
        lasers: Names.
        warnings: About the log.
        truth: Where the robot was, of simulated logs; None for others.
        relations: Checked by hand; None where there are none.
        peak_memory_mb: Most memory the process had [MB].
    """

    name: str
    algorithm: str
    grid: OccupancyGrid
    trajectory: Trajectory
    graph: PoseGraph
    odometry: Trajectory
    costs: NDArray[np.float64]
    finishing: float
    total: int
    lasers: tuple[str, ...]
    warnings: tuple[str, ...]
    truth: Trajectory | None = None
    relations: Relations | None = None
    peak_memory_mb: float = 0.0

    @property
    def interrupted(self) -> bool:
        """Whether scans were left."""
        return len(self.costs) < self.total

    @property
    def seconds(self) -> float:
        """What it took [s]."""
        return float(self.costs.sum()) + self.finishing

    @property
    def duration(self) -> float:
        """Of what was mapped [s]."""
        times = self.trajectory.times_ns
        return float(times[-1] - times[0]) * 1e-9 if len(times) else 0.0


@dataclass(frozen=True, slots=True)
class Judged:
    """Errors of a mapped log, where there is something to compare with; else None.

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


def judge(mapped: Mapped) -> Judged:
    """Compare with relations and truth."""
    relations, truth = mapped.relations, mapped.truth
    absolute = relative = odometry_absolute = None
    if truth is not None:
        absolute = _known(lambda: absolute_error(mapped.trajectory, truth, beyond_ns=_TRUTH_BEYOND_NS))
        odometry_absolute = _known(lambda: absolute_error(mapped.odometry, truth, beyond_ns=_TRUTH_BEYOND_NS))
        relative = _known(lambda: relative_error(mapped.trajectory, truth))
    own = other = None
    if relations is not None:
        own = _known(lambda: relation_errors(mapped.trajectory, relations))
        other = _known(lambda: relation_errors(mapped.odometry, relations))
    return Judged(own, other, absolute, relative, odometry_absolute)


def metrics(mapped: Mapped, judged: Judged) -> dict[str, Any]:
    """All figures as plain data."""
    cells, resolution = mapped.grid.cells, mapped.grid.geometry.resolution
    costs = mapped.costs * 1e3
    result: dict[str, Any] = {
        "log": mapped.name,
        "algorithm": mapped.algorithm,
        "scans": len(mapped.costs),
        "scans_in_log": mapped.total,
        "interrupted": mapped.interrupted,
        "lasers": list(mapped.lasers),
        "duration": mapped.duration,
        "seconds": mapped.seconds,
        "real_time_factor": mapped.duration / mapped.seconds if mapped.seconds > 0.0 else None,
        "peak_memory_mb": mapped.peak_memory_mb,
        "scan_ms_median": float(np.median(costs)) if len(costs) else None,
        "scan_ms_p99": float(np.percentile(costs, 99)) if len(costs) else None,
        "way": mapped.trajectory.length,
        "nodes": len(mapped.graph.times_ns),
        "edges": len(mapped.graph.pairs),
        "loops": int(mapped.graph.loops.sum()),
        "map_rows": cells.shape[0],
        "map_columns": cells.shape[1],
        "resolution": resolution,
        "known_area": float((cells != UNKNOWN).sum()) * resolution**2,
        "warnings": list(mapped.warnings),
    }
    if judged.relations is not None:
        result |= _of_relations(judged.relations, "")
    if judged.odometry_relations is not None:
        result |= _of_relations(judged.odometry_relations, "odometry_")
    if judged.absolute is not None:
        result |= {
            "ate_rmse": judged.absolute.translational.rmse,
            "ate_mean": judged.absolute.translational.mean,
            "ate_max": judged.absolute.translational.maximum,
            "ate_rot_deg": judged.absolute.rotational_deg.mean,
        }
    if judged.relative is not None:
        result |= {
            "rpe_rmse": judged.relative.translational.rmse,
            "rpe_rot_deg": judged.relative.rotational_deg.rmse,
        }
    if judged.odometry_absolute is not None:
        result["odometry_ate_rmse"] = judged.odometry_absolute.translational.rmse
    return result


def write_files(mapped: Mapped, folder: Path) -> dict[str, Path]:
    """Write map, trajectory and graph into a folder; gives their paths by name.

    Raises:
        InputError: a file cannot be written.
    """
    paths = {"trajectory": folder / TRAJECTORY, "graph": folder / GRAPH}
    write_tum(paths["trajectory"], mapped.trajectory)
    write_g2o(paths["graph"], mapped.graph)
    if mapped.grid.cells.size:
        paths["map"] = save_map(folder / MAP, mapped.grid)
    return paths


def check_times(times_ns: Sequence[int], relations: Relations) -> None:
    """Whether relations are of a log's times at all, before hours of work on it.

    Raises:
        InputError: none is.
    """
    poses = np.zeros((len(times_ns), 3))
    relation_errors(Trajectory(np.asarray(times_ns, dtype=np.int64), poses), relations)


def _of_relations(errors: RelationErrors, prefix: str) -> dict[str, Any]:
    found = {
        "trans_m": errors.translational.mean,
        "trans_std": errors.translational.std,
        "trans_max": errors.translational.maximum,
        "rot_deg": errors.rotational_deg.mean,
        "relations": errors.used,
        "relations_total": errors.total,
    }
    return {f"{prefix}{name}": value for name, value in found.items()}


def _known(measure: Callable[[], T]) -> T | None:
    """What ``measure`` gives; None where the times have nothing in common."""
    try:
        return measure()
    except InputError:
        return None
