"""Pose graphs in g2o's format: what is written comes back, and public graphs have the error that gtsam sees."""

import gzip
from pathlib import Path
from typing import Any

import gtsam
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.files import temporary_folder

from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.geometry.se2_arrays import compose, relative
from roboyard.mapping import PoseGraph
from roboyard.mapping.pose_graph import chi_squared, edge_residuals, read_g2o, write_g2o

seeds = st.integers(0, 2**32 - 1)


def some_graph(seed: int, n: int = 12) -> PoseGraph:
    rng = np.random.default_rng(seed)
    poses = np.column_stack([rng.normal(size=(n, 2)) * 5, rng.uniform(-3, 3, n)])
    edges = np.array([*zip(range(n - 1), range(1, n), strict=True), (0, n - 1), (2, n - 2)])
    roots = rng.normal(size=(len(edges), 3, 3))
    measured = relative(poses[edges[:, 0]], poses[edges[:, 1]])
    is_loop = np.arange(len(edges)) >= n - 1
    times = np.cumsum(rng.integers(1, 2**40, n))
    return PoseGraph(times, poses, edges, measured, roots @ roots.transpose(0, 2, 1), is_loop)


@given(seed=seeds)
def test_g2o_roundtrip_keeps_the_graph(seed: int) -> None:
    graph = some_graph(seed)
    with temporary_folder() as folder:
        write_g2o(folder / "g", graph)
        (folder / "g.gz").write_bytes(gzip.compress((folder / "g").read_bytes()))
        for file in ("g", "g.gz"):
            read_back = read_g2o(folder / file)
            for field in ("times_ns", "poses", "edges", "measurements", "is_loop"):
                assert np.array_equal(getattr(read_back, field), getattr(graph, field)), field
            assert np.allclose(read_back.information, graph.information, rtol=1e-9, atol=1e-9)


@given(seeds, st.tuples(st.floats(-5, 5), st.floats(-5, 5), st.floats(-3, 3)))
def test_consistent_graph_has_zero_error_in_any_frame(seed: int, T: tuple[float, float, float]) -> None:
    graph = some_graph(seed)
    transformed = PoseGraph(graph.times_ns, compose(T, graph.poses), graph.edges, graph.measurements, graph.information,
                      graph.is_loop)  # fmt: skip
    assert np.abs(edge_residuals(transformed)).max() < 1e-9
    wrong = graph.measurements + np.array([0.1, 0.0, 0.0])
    off = PoseGraph(graph.times_ns, graph.poses, graph.edges, wrong, graph.information, graph.is_loop)
    assert chi_squared(off) == pytest.approx(graph.information[:, 0, 0].sum() * 0.01, rel=1e-6)


def read_with_gtsam(graph: PoseGraph, path: Path) -> tuple[Any, Any]:
    write_g2o(path, graph)
    return gtsam.readG2o(str(path), False)


def information_at_measured_pose(graph: PoseGraph) -> np.ndarray:
    """Information (m, 3, 3) in the frame of the pose that is measured, where gtsam has it."""
    rotations = [SE2(0, 0, theta).matrix() for theta in graph.measurements[:, 2]]
    return np.array([rotation.T @ each @ rotation for rotation, each in zip(rotations, graph.information, strict=True)])


@pytest.mark.parametrize("name", ["INTEL", "MITb"])
def test_gtsam_computes_the_same_graph_error(name: str, external_data: Path, tmp_path: Path) -> None:
    graph = read_g2o(external_data / "slam" / "g2o" / f"input_{name}_g2o.g2o.gz")
    factors, values = read_with_gtsam(graph, tmp_path / "g")
    assert (factors.size(), values.size()) == (len(graph.edges), len(graph.poses))
    found = relative(graph.measurements, relative(graph.poses[graph.edges[:, 0]], graph.poses[graph.edges[:, 1]]))
    logs = np.array([SE2(*row).log() for row in found])  # gtsam's coordinates of an error
    error = np.einsum("ni,nij,nj->", logs, information_at_measured_pose(graph), logs)
    assert error == pytest.approx(2.0 * factors.error(values), rel=1e-9)


def test_graph_solved_by_gtsam_has_gtsams_error(external_data: Path, tmp_path: Path) -> None:
    graph = read_g2o(external_data / "slam" / "g2o" / "input_INTEL_g2o.g2o.gz")
    factors, values = read_with_gtsam(graph, tmp_path / "g")
    rough = gtsam.NonlinearFactorGraph()
    sigmas = 1.0 / np.sqrt(np.einsum("nii->ni", information_at_measured_pose(graph)))
    for (i, j), measured, sigma in zip(graph.edges.tolist(), graph.measurements, sigmas, strict=True):
        noise = gtsam.noiseModel.Diagonal.Sigmas(sigma)
        rough.add(gtsam.BetweenFactorPose2(i, j, gtsam.Pose2(*measured), noise))
    prior = gtsam.PriorFactorPose2(0, values.atPose2(0), gtsam.noiseModel.Diagonal.Sigmas(np.full(3, 1e-3)))
    for part in (rough, factors):
        part.add(prior)
    start = gtsam.lago.initialize(rough)  # the odometry that the file holds is too far off
    solved = gtsam.LevenbergMarquardtOptimizer(factors, start).optimize()
    poses = np.array([[p.x(), p.y(), p.theta()] for p in (solved.atPose2(k) for k in range(len(graph.poses)))])
    best = PoseGraph(graph.times_ns, poses, graph.edges, graph.measurements, graph.information, graph.is_loop)
    assert chi_squared(best) == pytest.approx(2.0 * factors.error(solved), rel=0.01)
    assert chi_squared(best) < 400.0 < 1e6 < chi_squared(graph)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "holds no pose graph"),
        ("VERTEX_SE3:QUAT 0 0 0 0 0 0 0 1\n", "g:1: is a graph in space"),
        ("VERTEX_SE2 0 0 0\n", "g:1: 2 numbers"),
        ("VERTEX_SE2 0 0 0 nan\n", "not finite"),
        ("VERTEX_SE2 x 0 0 0\n", "'x' is no number of a node"),
        ("VERTEX_SE2 -1 0 0 0\n", "'-1' is no number of a node"),
        ("VERTEX_SE2 0 0 0 0\nVERTEX_SE2 0 0 0 0\n", "g:2: node 0 is there twice"),
        ("VERTEX_SE2 0 0 0 0\nEDGE_SE2 0 1 0 0 0 1 0 0 1 0 1\n", "g:2: an edge from 0 to 1"),
        ("hello\n", "'hello' is no line"),
    ],
)
def test_invalid_g2o_files_are_refused(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "g").write_text(text)
    with pytest.raises(InputError, match=words):
        read_g2o(tmp_path / "g")


def test_external_g2o_vertices_are_renumbered(tmp_path: Path) -> None:
    lines = ["EDGE_SE2 7 3 1 0 0 1 0 0 1 0 1", "VERTEX_SE2 7 1 0 0", "VERTEX_SE2 3 0 0 9", "FIX 3"]
    (tmp_path / "g").write_text("\n".join(lines))
    graph = read_g2o(tmp_path / "g")
    assert graph.edges.tolist() == [[1, 0]]
    assert graph.times_ns.tolist() == [0, 10**9]
    assert graph.poses[0, 2] == pytest.approx(9 - 2 * np.pi)
    assert graph.is_loop.tolist() == [False]
