"""Laws of mapped places in files: kept whole, continued, localised in, and refused when damaged."""

import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.files import temporary_folder
from tests.mapping.simulated import drive, log

from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.mapping import GraphLocalizer, GraphSlam, Scan, read_place, write_place


@pytest.fixture(scope="module")
def way() -> list[SE2]:
    return drive()


@pytest.fixture(scope="module")
def saved(way: list[SE2], tmp_path_factory: pytest.TempPathFactory) -> Path:
    slam = GraphSlam()
    for scan in log(way):
        slam.process(scan)
    slam.finish()
    return slam.save(tmp_path_factory.mktemp("places") / "ring.npz")


def later(way: list[SE2], **settings: object) -> list[Scan]:
    """Scans of another drive: other noise."""
    return list(log(way, seed=7, **settings))  # type: ignore[arg-type]


def test_graph_file_roundtrip_keeps_the_graph(saved: Path, tmp_path: Path) -> None:
    place = read_place(saved)
    again = read_place(write_place(tmp_path / "again.npz", place))
    assert [node.pose for node in again.nodes] == [node.pose for node in place.nodes]
    assert all(np.array_equal(a.scan.ends, b.scan.ends) for a, b in zip(again.nodes, place.nodes, strict=True))
    assert all(np.array_equal(a.cells, b.cells) for a, b in zip(again.submaps, place.submaps, strict=True))
    assert [(e.first, e.second, e.measured, e.loop) for e in again.edges] == [
        (e.first, e.second, e.measured, e.loop) for e in place.edges
    ]
    slam = GraphSlam.load(saved)
    assert np.array_equal(slam.graph().poses, GraphSlam.load(tmp_path / "again.npz").graph().poses)
    assert (slam.occupancy(0.1).cells > 50).any()


@pytest.mark.parametrize("told", [True, False])
def test_loaded_map_continues_at_a_given_or_found_pose(told: bool, saved: Path, way: list[SE2]) -> None:
    origin = way[0].inverse()
    part = way[70:170]
    begin = origin @ part[0]
    start = begin @ SE2(0.3, -0.2, 0.1) if told else None
    slam = GraphSlam.load(saved, start=start)
    before = len(slam.graph().poses)
    for scan in later(part):
        pose = slam.process(scan)
    slam.finish()
    assert not slam.warnings
    assert pose.distance(origin @ part[-1]) < 0.08
    assert len(slam.graph().poses) > before
    found = slam.trajectory()
    assert max(found.pose(k).distance(origin @ part[k]) for k in range(len(part))) < 0.08


@pytest.mark.parametrize("odometry", [True, False])
def test_localization_finds_the_robot_and_keeps_the_map(odometry: bool, saved: Path, way: list[SE2]) -> None:
    place = read_place(saved)
    before = [node.pose for node in place.nodes]
    localizer = GraphLocalizer(place)
    part = way[40:260]
    origin = way[0].inverse()
    errors = []
    for scan, truth in zip(later(part, odometry=odometry), part, strict=True):
        pose = localizer.process(scan)
        errors.append(np.inf if pose is None else pose.distance(origin @ truth))
    assert np.median(errors) < 0.03
    assert np.max(errors[20:]) < 0.1
    assert [node.pose for node in place.nodes] == before


def test_localization_recovers_from_a_kidnapped_robot(saved: Path, way: list[SE2]) -> None:
    localizer = GraphLocalizer(saved, start=SE2())
    scans = later(way[:30] + way[150:260])
    for scan in scans:
        pose = localizer.process(scan)
    assert pose is not None
    assert pose.distance(way[0].inverse() @ way[259]) < 0.1


def test_localization_uses_a_given_start_pose(saved: Path, way: list[SE2]) -> None:
    origin = way[0].inverse()
    localizer = GraphLocalizer(saved, start=origin @ way[100] @ SE2(0.2, 0.1, -0.1))
    poses = [localizer.process(scan) for scan in later(way[100:120])]
    assert poses[-1] is not None
    assert poses[-1].distance(origin @ way[119]) < 0.05


def test_empty_graph_file_is_valid(tmp_path: Path) -> None:
    path = GraphSlam().save(tmp_path / "nothing.npz")
    assert not read_place(path).nodes
    slam = GraphSlam.load(path)
    for scan in log(drive()[:20]):
        slam.process(scan)
    assert len(slam.trajectory()) == 20
    assert GraphLocalizer(path).process(next(log(drive()[:1]))) is None


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_damaged_graph_files_are_refused_or_read(saved: Path, data: st.DataObject) -> None:
    whole = bytearray(saved.read_bytes())
    for _ in range(data.draw(st.integers(1, 5))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.one_of(st.just(len(whole)), st.integers(0, len(whole))))
    with temporary_folder() as folder:
        path = folder / "x.npz"
        path.write_bytes(whole[:cut])
        try:
            read_place(path)
        except InputError as error:
            assert str(path) in str(error)


def test_dangling_graph_indices_are_refused(saved: Path, tmp_path: Path) -> None:
    with np.load(saved) as archive:
        arrays = {name: archive[name] for name in archive.files}
    for name, value in (("pairs", 10**6), ("anchors", -1), ("poses", np.nan), ("cell_counts", 3)):
        changed = {key: array.copy() for key, array in arrays.items()}
        changed[name].flat[0] = value
        path = tmp_path / f"{name}.npz"
        np.savez(path, **changed)
        with pytest.raises(InputError, match=name):
            read_place(path)
    with zipfile.ZipFile(tmp_path / "other.npz", "w") as archive:
        archive.writestr("readme.txt", "hello")
    for path in (tmp_path / "other.npz", tmp_path / "missing.npz", tmp_path):
        with pytest.raises(InputError):
            read_place(path)
