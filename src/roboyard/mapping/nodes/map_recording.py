"""SLAM over a whole recording, with the processing time of each scan."""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path

import numpy as np

from roboyard.compute.wall_clock import perf_ns
from roboyard.errors import MessageError
from roboyard.geometry import SE2
from roboyard.mapping.evaluation.trajectory_error import Relations
from roboyard.mapping.mapping_report import MappingResult
from roboyard.mapping.nodes.recorded_frames import PoseSamples
from roboyard.mapping.nodes.scan_log import ODOMETRY_TYPE, TRUTH_PREFIX, ScanLog
from roboyard.mapping.slam import SavesSlamMap, Slam, make_slam
from roboyard.mapping.trajectory import PoseTrajectory
from roboyard.messages import to_nanoseconds
from roboyard.messages.convert import pose_to_se2
from roboyard.record import open_recording


def compile_kernels(algorithm: str, log: ScanLog) -> None:
    """Compile the kernels of an algorithm on the first scans, so that measured processing times do not include it."""
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
    """Process all scans of a log by a SLAM algorithm; return the map, the trajectory, the graph and their cost.

    Args:
        log: The scans.
        slam: The algorithm, as `roboyard.mapping.slam.make_slam` creates it.
        algorithm: Name of the algorithm, for the result.
        resolution: Side of a map cell [m].
        relations: Relative poses that were verified by hand, which the result is compared with.
        truth: True trajectory, which the result is compared with.
        progress: Function that is called after each scan with the number of processed scans and the current pose.
        stop: Function that is asked before each scan; True ends the mapping with the map so far.
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
        warnings=(*log.warnings, *slam.warnings),
        truth=truth,
        relations=relations,
        peak_memory_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0,
    )


def save_slam_map(slam: Slam, folder: Path) -> dict[str, Path]:
    """Write the map of an algorithm that saves maps; return the file by name, or nothing for other algorithms.

    Raises:
        InputError: The file cannot be written.
    """
    return {"pose_graph": slam.save_map(folder / "pose_graph.npz")} if isinstance(slam, SavesSlamMap) else {}


def read_truth(log: ScanLog) -> PoseTrajectory | None:
    """Return the true trajectory of the robot of a simulated recording; None if it is not recorded or there are
    several robots.

    Raises:
        RecordingError: The recording cannot be read.
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
