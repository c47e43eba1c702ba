"""SLAM over a whole recording, with the processing time of each scan."""

from __future__ import annotations

import math
import resource
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from roboyard.compute.wall_clock import perf_ns
from roboyard.errors import InputError, MessageError
from roboyard.geometry import SE2
from roboyard.mapping.evaluation.trajectory_error import Relations
from roboyard.mapping.mapping_report import MappingResult
from roboyard.mapping.nodes.recorded_frames import PoseSamples
from roboyard.mapping.nodes.scan_log import ODOMETRY_TYPE, TRUTH_PREFIX, ScanLog, read_log
from roboyard.mapping.scan import LaserScan
from roboyard.mapping.slam import SavesSlamMap, Slam, make_slam
from roboyard.mapping.trajectory import PoseTrajectory
from roboyard.messages import to_nanoseconds
from roboyard.messages.convert import pose_to_se2
from roboyard.record import open_recording


def slam(
    log: Path | str | ScanLog | Iterable[LaserScan],
    *,
    algorithm: str = "graph",
    resolution: float = 0.05,
    relations: Relations | None = None,
    progress: Callable[[int, SE2], None] | None = None,
) -> MappingResult:
    """Build a map from a log of laser scans.

    Args:
        log: File or folder of a recording (CARMEN log, MCAP file, ROS 1 or ROS 2 bag, folder of a run), a log that
            `read_log` has read, or scans in the order of their times.
        algorithm: Name of the algorithm: ``graph`` for graph SLAM, ``rbpf`` for a Rao-Blackwellized particle filter.
        resolution: Side of the map's cells [m].
        relations: Verified relations between poses, which the result is compared with.
        progress: Called after each scan with the number of scans done and ``T_map_base``.

    Returns:
        The map ``grid``, the ``trajectory``, the pose ``graph``, and the true trajectory if the log holds it; ``save``
        writes them.

    Raises:
        RecordingError: The log cannot be read or holds no scan that can be used.
        InputError: There is no such algorithm, the resolution is not positive, or the scans are not in order.
    """
    if not (math.isfinite(resolution) and resolution > 0.0):
        raise InputError(f"resolution {resolution}", location="slam", valid="more than 0 m")
    algorithm_instance = make_slam(algorithm)
    if isinstance(log, (str, Path)):
        log = read_log(log)
    elif not isinstance(log, ScanLog):
        log = ScanLog.from_scans(log)
    truth = read_truth(log) if log.is_recorded else None
    return map_log(
        log, algorithm_instance, algorithm=algorithm, resolution=resolution, relations=relations, truth=truth,
        progress=progress,
    )  # fmt: skip


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
        slam_map=slam if isinstance(slam, SavesSlamMap) else None,
    )


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
