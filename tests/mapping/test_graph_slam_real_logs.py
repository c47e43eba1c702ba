"""Graph SLAM on logs of real robots, with the defaults."""

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.harness.profiles import sample_count

from roboyard.geometry import SE2
from roboyard.geometry.se2_arrays import relative
from roboyard.mapping import GraphSlam, LaserScan, PoseTrajectory, read_log, read_relations, relation_errors

pytestmark = pytest.mark.slow


def first_scans(path: Path, fraction: float) -> list[LaserScan]:
    """The scans with which a log begins, that fraction of them; profile ``nightly`` takes the whole log."""
    scans = list(read_log(path).scans)
    return scans[: sample_count(len(scans), fraction)]


def mapped(scans: list[LaserScan]) -> PoseTrajectory:
    slam = GraphSlam()
    for scan in scans:
        slam.process(scan)
    slam.finish()
    return slam.trajectory()


def motion_differences(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Distances [m] between two trajectories' motions, from any pose to any other."""
    rng = np.random.default_rng(0)
    i, j = rng.integers(0, len(first), (2, 2000))
    return np.linalg.norm(relative(first[i], first[j])[:, :2] - relative(second[i], second[j])[:, :2], axis=1)


def without_sign(scans: list[LaserScan]) -> list[LaserScan]:
    """As if odometry lost its sign in every third stretch of 60 scans."""
    changed, odometry_pose = [scans[0]], scans[0].odometry or SE2()
    for k, (before, scan) in enumerate(itertools.pairwise(scans), 1):
        if before.odometry is not None and scan.odometry is not None:
            step = before.odometry.inverse() @ scan.odometry
            odometry_pose = odometry_pose @ (SE2(-step.x, -step.y, step.theta) if k // 60 % 3 == 2 else step)
        changed.append(replace(scan, odometry=odometry_pose))
    return changed


def test_intel_map_equals_gmapping_and_survives_a_bad_pose(external_data: Path) -> None:
    folder = external_data / "slam"
    scans = first_scans(folder / "intel.clf.gz", 0.4)
    relations = read_relations(folder / "relations" / "intel.relations")
    errors = relation_errors(mapped(scans), relations)
    assert errors.translational.mean < 0.086
    assert errors.rotational_deg.mean < 1.88
    assert relation_errors(mapped(without_sign(scans)), relations).translational.mean < 0.2


def test_full_rate_log_needs_no_odometry(external_data: Path) -> None:
    scans = first_scans(external_data / "slam" / "mit-csail.clf.gz", 0.4)
    plain, blind = mapped(scans), mapped([replace(scan, odometry=None) for scan in scans])
    assert np.median(motion_differences(plain.poses, blind.poses)) < 0.15


@pytest.mark.parametrize(("name", "limit"), [("seattle", 0.2), ("freiburg-101", 0.2), ("belgioioso", 0.4)])
def test_sparse_logs_agree_with_gmapping(name: str, limit: float, external_data: Path) -> None:
    from roboyard.record.carmen_log import CarmenRecording

    path = external_data / "slam" / f"{name}-corrected.log.gz"
    found = mapped(list(read_log(path).scans))
    poses = {}
    for item in CarmenRecording(path).messages(topics=["/corrected_pose"]):
        pose = item.message.pose
        yaw = 2.0 * np.arctan2(pose.orientation.z, pose.orientation.w)
        poses[item.time_ns] = (pose.position.x, pose.position.y, yaw)
    is_known = [time in poses for time in found.times_ns.tolist()]
    gmapping_poses = np.array([poses[time] for time in found.times_ns[is_known].tolist()])
    assert len(gmapping_poses) > 0.9 * len(found)
    assert motion_differences(found.poses[is_known], gmapping_poses).mean() < limit
