"""SLAM over a whole recording, with the processing time of each scan."""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from roboyard.compute.wall_clock import perf_ns
from roboyard.errors import InputError, MessageError
from roboyard.geometry import SE2
from roboyard.mapping.evaluation.trajectory_error import Relations
from roboyard.mapping.mapping_report import MappingResult
from roboyard.mapping.nodes.recorded_frames import PoseSamples
from roboyard.mapping.nodes.scan_log import ODOMETRY_TYPE, TRUTH_PREFIX, ScanLog
from roboyard.mapping.slam import Slam
from roboyard.mapping.trajectory import PoseTrajectory
from roboyard.messages import to_nanoseconds
from roboyard.messages.convert import pose_to_se2
from roboyard.record import open_recording

ALGORITHMS: Final = ("graph", "rbpf")


def make_slam(algorithm: str, *, resume_from: Path | None = None, localize_in: Path | None = None) -> Slam:
    """An algorithm by its name, with its usual settings.

    Args:
        algorithm: Its name.
        resume_from: File of a pose graph map to extend; only for graph SLAM.
        localize_in: File of a pose graph map that does not change; the robot only localizes in it.

    Raises:
        InputError: The algorithm is unknown or cannot use a map, or a file is no pose graph map.
    """
    if (resume_from or localize_in) and algorithm != "graph":
        raise InputError(f"the algorithm {algorithm} has no pose graph maps", valid="graph")
    if resume_from and localize_in:
        raise InputError("--resume and --localize exclude each other", valid="one of the two")
    if localize_in:
        from roboyard.mapping.graph_slam.localization import LocalizationOnlySlam
        from roboyard.mapping.graph_slam.map_file import load_pose_graph_map

        return LocalizationOnlySlam(load_pose_graph_map(localize_in))
    if resume_from:
        from roboyard.mapping.graph_slam.graph_slam import GraphSlam

        return GraphSlam.resume_from(resume_from)
    if algorithm == "graph":
        from roboyard.mapping.graph_slam.graph_slam import GraphSlam

        return GraphSlam()
    if algorithm == "rbpf":
        from roboyard.mapping.rbpf.rbpf import RbpfSlam

        return RbpfSlam()
    raise InputError(f"no algorithm '{algorithm}'", valid=", ".join(ALGORITHMS))


def compile_kernels(algorithm: str, log: ScanLog) -> None:
    """Have the kernels compiled, so that what scans cost is measured without it."""
    slam = make_slam(algorithm)
    for scan in log.scans[:3]:
        slam.process(scan)


def map_log(
    log: ScanLog,
    slam: Slam,
    *,
    algorithm: str,
    resolution: float = 0.05,
    relations: Relations | None = None,
    truth: PoseTrajectory | None = None,
    progress: Callable[[int, SE2], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> MappingResult:
    """Give all scans of a log to a SLAM algorithm.

    Args:
        log: The scans.
        slam: The algorithm.
        algorithm: Its name.
        resolution: Side of the map's cells [m].
        relations: Checked by hand, to compare with.
        truth: Where the robot was, to compare with.
        progress: Called after each scan with the number done and the pose.
        stop: Asked before each scan whether to end with what there is.
    """
    costs: list[int] = []
    for scan in log:
        if stop is not None and stop() and costs:
            break
        start = perf_ns()
        pose = slam.process(scan)
        costs.append(perf_ns() - start)
        if progress is not None:
            progress(len(costs), pose)
    start = perf_ns()
    slam.finish()
    finish_time = (perf_ns() - start) * 1e-9
    slam_warnings: Any = getattr(slam, "warnings", ())
    return MappingResult(
        name=log.path.parent.resolve().name if log.path.name == "recording.mcap" else log.path.name,
        algorithm=algorithm,
        grid=slam.occupancy(resolution),
        trajectory=slam.trajectory(),
        graph=slam.graph(),
        odometry=log.odometry,
        scan_costs=np.array(costs, dtype=np.float64) * 1e-9,
        finish_time=finish_time,
        n_scans=len(log),
        lasers=log.lasers,
        warnings=(*log.warnings, *slam_warnings),
        truth=truth,
        relations=relations,
        peak_memory_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0,
    )


def save_slam_map(slam: Slam, folder: Path) -> dict[str, Path]:
    """Write the pose graph map of graph SLAM; return the file by name, or nothing for other algorithms.

    Raises:
        InputError: it cannot be written.
    """
    from roboyard.mapping.graph_slam.graph_slam import GraphSlam

    return {"pose_graph": slam.save_map(folder / "pose_graph.npz")} if isinstance(slam, GraphSlam) else {}


def read_truth(log: ScanLog) -> PoseTrajectory | None:
    """Return the true trajectory of the robot of a simulated recording; None if it is not recorded or there are
    several robots.

    Raises:
        RecordingError: the recording cannot be read.
    """
    with open_recording(log.path) as recording:
        names = [
            name
            for name, topic in recording.topics.items()
            if name.startswith(TRUTH_PREFIX) and topic.type == ODOMETRY_TYPE
        ]
        robots = {name: name.removeprefix(TRUTH_PREFIX).partition("/")[0] for name in names}
        if len(names) > 1:  # the robot whose name the lasers' topics begin with, or the one that has no such topics
            prefixed_names = [name for name in names if log.lasers and log.lasers[0].startswith(f"/{robots[name]}/")]
            unprefixed_names = [
                name for name in names if not any(t.startswith(f"/{robots[name]}/") for t in recording.topics)
            ]
            names = prefixed_names or unprefixed_names
        if len(names) != 1:
            return None
        samples = PoseSamples()
        for item in recording.messages(names):
            try:
                pose = pose_to_se2(item.message.pose.pose)
            except MessageError:
                continue
            samples.add(to_nanoseconds(item.message.header.stamp), pose.x, pose.y, pose.theta)
    times, poses = samples.arrays()
    is_ascending = np.diff(times, prepend=times[0] - 1 if len(times) else 0) > 0
    return PoseTrajectory(times[is_ascending], poses[is_ascending]) if is_ascending.all() and len(times) else None
