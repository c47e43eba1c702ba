"""Maps a whole log, and measures what each scan costs."""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from roboyard.compute.wall_clock import perf_ns
from roboyard.errors import InputError, MessageError
from roboyard.geometry import SE2
from roboyard.mapping.nodes.log_frames import Samples
from roboyard.mapping.nodes.log_topics import ODOMETRY, TRUTH
from roboyard.mapping.nodes.logs import ScanLog
from roboyard.mapping.outcome import Mapped
from roboyard.mapping.relations import Relations
from roboyard.mapping.slam import Slam
from roboyard.mapping.trajectory import Trajectory
from roboyard.messages import to_nanoseconds
from roboyard.messages.convert import pose_to_se2
from roboyard.record import open_recording

ALGORITHMS: Final = ("graph", "rbpf")


def make_slam(algorithm: str, *, go_on: Path | None = None, located: Path | None = None) -> Slam:
    """An algorithm by its name, with its usual settings.

    Args:
        algorithm: Its name.
        go_on: File of a mapped place to go on mapping in; only graph SLAM can.
        located: File of a mapped place that stays as it is; the robot is only located in it.

    Raises:
        InputError: there is none of that name, it cannot go on, or a file is none.
    """
    if (go_on or located) and algorithm != "graph":
        raise InputError(f"the algorithm {algorithm} has no mapped places", valid="graph")
    if go_on and located:
        raise InputError("a place is either gone on with or left as it is", valid="one of the two")
    if located:
        from roboyard.mapping.graph_file import read_place
        from roboyard.mapping.located import LocatedDrive

        return LocatedDrive(read_place(located))
    if go_on:
        from roboyard.mapping.graph_slam import GraphSlam

        return GraphSlam.load(go_on)
    if algorithm == "graph":
        from roboyard.mapping.graph_slam import GraphSlam

        return GraphSlam()
    if algorithm == "rbpf":
        from roboyard.mapping.rbpf import RbpfSlam

        return RbpfSlam()
    raise InputError(f"no algorithm '{algorithm}'", valid=", ".join(ALGORITHMS))


def warm_up(algorithm: str, log: ScanLog) -> None:
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
    truth: Trajectory | None = None,
    progress: Callable[[int, SE2], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Mapped:
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
    finishing = (perf_ns() - start) * 1e-9
    own: Any = getattr(slam, "warnings", ())
    return Mapped(
        name=log.path.parent.resolve().name if log.path.name == "recording.mcap" else log.path.name,
        algorithm=algorithm,
        grid=slam.occupancy(resolution),
        trajectory=slam.trajectory(),
        graph=slam.graph(),
        odometry=log.odometry,
        costs=np.array(costs, dtype=np.float64) * 1e-9,
        finishing=finishing,
        total=len(log),
        lasers=log.lasers,
        warnings=(*log.warnings, *own),
        truth=truth,
        relations=relations,
        peak_memory_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0,
    )


def write_place_of(slam: Slam, folder: Path) -> dict[str, Path]:
    """Write what is needed to go on with graph SLAM; gives the file by name, or nothing for other algorithms.

    Raises:
        InputError: it cannot be written.
    """
    from roboyard.mapping.graph_slam import GraphSlam

    return {"place": slam.save(folder / "place.npz")} if isinstance(slam, GraphSlam) else {}


def read_truth(log: ScanLog) -> Trajectory | None:
    """Where the robot of a simulated recording was; None where nobody recorded it, or for several robots.

    Raises:
        RecordingError: the recording cannot be read.
    """
    with open_recording(log.path) as recording:
        names = [name for name, topic in recording.topics.items() if name.startswith(TRUTH) and topic.type == ODOMETRY]
        robots = {name: name.removeprefix(TRUTH).partition("/")[0] for name in names}
        if len(names) > 1:  # the robot whose name the lasers' topics begin with, or the one that has no such topics
            own = [name for name in names if log.lasers and log.lasers[0].startswith(f"/{robots[name]}/")]
            bare = [name for name in names if not any(t.startswith(f"/{robots[name]}/") for t in recording.topics)]
            names = own or bare
        if len(names) != 1:
            return None
        samples = Samples()
        for item in recording.messages(names):
            try:
                pose = pose_to_se2(item.message.pose.pose)
            except MessageError:
                continue
            samples.add(to_nanoseconds(item.message.header.stamp), pose.x, pose.y, pose.theta)
    times, poses = samples.arrays()
    ascending = np.diff(times, prepend=times[0] - 1 if len(times) else 0) > 0
    return Trajectory(times[ascending], poses[ascending]) if ascending.all() and len(times) else None
