"""Laws of mapped places in files: kept whole, continued, localised in, and refused when damaged."""

import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.files import temporary_folder
from tests.mapping.corridor_drive import drive, simulate_scans

from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.mapping import GraphLocalizer, GraphSlam, LaserScan, load_pose_graph_map, save_pose_graph_map


@pytest.fixture(scope="module")
def true_poses() -> list[SE2]:
    return drive()


@pytest.fixture(scope="module")
def map_file(true_poses: list[SE2], tmp_path_factory: pytest.TempPathFactory) -> Path:
    slam = GraphSlam()
    for scan in simulate_scans(true_poses):
        slam.process(scan)
    slam.finish()
    return slam.save_map(tmp_path_factory.mktemp("places") / "ring.npz")


def later_scans(true_poses: list[SE2], **settings: object) -> list[LaserScan]:
    """Scans of another drive: other noise."""
    return list(simulate_scans(true_poses, seed=7, **settings))  # type: ignore[arg-type]


def test_graph_file_roundtrip_keeps_the_graph(map_file: Path, tmp_path: Path) -> None:
    original = load_pose_graph_map(map_file)
    read_back = load_pose_graph_map(save_pose_graph_map(tmp_path / "again.npz", original))
    assert [node.pose for node in read_back.nodes] == [node.pose for node in original.nodes]
    assert all(np.array_equal(a.scan.ends, b.scan.ends) for a, b in zip(read_back.nodes, original.nodes, strict=True))
    assert all(np.array_equal(a.surfels, b.surfels) for a, b in zip(read_back.submaps, original.submaps, strict=True))
    assert [(e.first, e.second, e.measurement, e.is_loop) for e in read_back.edges] == [
        (e.first, e.second, e.measurement, e.is_loop) for e in original.edges
    ]
    slam = GraphSlam.resume_from(map_file)
    assert np.array_equal(slam.graph().poses, GraphSlam.resume_from(tmp_path / "again.npz").graph().poses)
    assert (slam.occupancy(0.1).cells > 50).any()


@pytest.mark.parametrize("has_start_pose", [True, False])
def test_loaded_map_continues_at_a_given_or_found_pose(
    has_start_pose: bool, map_file: Path, true_poses: list[SE2]
) -> None:
    origin = true_poses[0].inverse()
    part = true_poses[70:170]
    true_start = origin @ part[0]
    start = true_start @ SE2(0.3, -0.2, 0.1) if has_start_pose else None
    slam = GraphSlam.resume_from(map_file, start=start)
    before = len(slam.graph().poses)
    for scan in later_scans(part):
        pose = slam.process(scan)
    slam.finish()
    assert not slam.warnings
    assert pose.distance(origin @ part[-1]) < 0.08
    assert len(slam.graph().poses) > before
    found = slam.trajectory()
    assert max(found.pose(k).distance(origin @ part[k]) for k in range(len(part))) < 0.08


@pytest.mark.parametrize("odometry", [True, False])
def test_localization_finds_the_robot_and_keeps_the_map(odometry: bool, map_file: Path, true_poses: list[SE2]) -> None:
    pose_graph_map = load_pose_graph_map(map_file)
    before = [node.pose for node in pose_graph_map.nodes]
    localizer = GraphLocalizer(pose_graph_map)
    part = true_poses[40:260]
    origin = true_poses[0].inverse()
    errors = []
    for scan, truth in zip(later_scans(part, odometry=odometry), part, strict=True):
        pose = localizer.process(scan)
        errors.append(np.inf if pose is None else pose.distance(origin @ truth))
    assert np.median(errors) < 0.03
    assert np.max(errors[20:]) < 0.1
    assert [node.pose for node in pose_graph_map.nodes] == before


def test_localization_recovers_from_a_kidnapped_robot(map_file: Path, true_poses: list[SE2]) -> None:
    localizer = GraphLocalizer(map_file, start=SE2())
    scans = later_scans(true_poses[:30] + true_poses[150:260])
    for scan in scans:
        pose = localizer.process(scan)
    assert pose is not None
    assert pose.distance(true_poses[0].inverse() @ true_poses[259]) < 0.1


def test_localization_uses_a_given_start_pose(map_file: Path, true_poses: list[SE2]) -> None:
    origin = true_poses[0].inverse()
    localizer = GraphLocalizer(map_file, start=origin @ true_poses[100] @ SE2(0.2, 0.1, -0.1))
    poses = [localizer.process(scan) for scan in later_scans(true_poses[100:120])]
    assert poses[-1] is not None
    assert poses[-1].distance(origin @ true_poses[119]) < 0.05


def test_empty_graph_file_is_valid(tmp_path: Path) -> None:
    path = GraphSlam().save_map(tmp_path / "nothing.npz")
    assert not load_pose_graph_map(path).nodes
    slam = GraphSlam.resume_from(path)
    for scan in simulate_scans(drive()[:20]):
        slam.process(scan)
    assert len(slam.trajectory()) == 20
    assert GraphLocalizer(path).process(next(simulate_scans(drive()[:1]))) is None


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_damaged_graph_files_are_refused_or_read(map_file: Path, data: st.DataObject) -> None:
    content = bytearray(map_file.read_bytes())
    for _ in range(data.draw(st.integers(1, 5))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.one_of(st.just(len(content)), st.integers(0, len(content))))
    with temporary_folder() as folder:
        path = folder / "x.npz"
        path.write_bytes(content[:cut])
        try:
            load_pose_graph_map(path)
        except InputError as error:
            assert str(path) in str(error)


def test_dangling_graph_indices_are_refused(map_file: Path, tmp_path: Path) -> None:
    with np.load(map_file) as archive:
        arrays = {name: archive[name] for name in archive.files}
    for name, value in (("pairs", 10**6), ("anchors", -1), ("poses", np.nan), ("cell_counts", 3)):
        changed = {key: array.copy() for key, array in arrays.items()}
        changed[name].flat[0] = value
        path = tmp_path / f"{name}.npz"
        np.savez(path, **changed)
        with pytest.raises(InputError, match=name):
            load_pose_graph_map(path)
    with zipfile.ZipFile(tmp_path / "other.npz", "w") as archive:
        archive.writestr("readme.txt", "hello")
    for path in (tmp_path / "other.npz", tmp_path / "missing.npz", tmp_path):
        with pytest.raises(InputError):
            load_pose_graph_map(path)
