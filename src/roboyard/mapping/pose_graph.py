"""Pose graphs: as arrays, while they grow, their optimization by gtsam, and g2o files.

Lines of a g2o file (source: https://github.com/RainerKuemmerle/g2o/wiki/File-Format)::

    VERTEX_SE2 id x y theta
    EDGE_SE2 from to x y theta  I_xx I_xy I_xt I_yy I_yt I_tt

A g2o file gives the information matrix in the frame of the second node, `PoseGraph` in that of the first. Time stamps
of nodes and loop closures are not part of the format; they are written as comments, ``# TIME id seconds`` and ``# LOOP
from to``, which other programs ignore. No ``FIX`` line is written: gtsam stops reading at one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import InputError
from roboyard.geometry import SE2, wrap_angle
from roboyard.geometry.se2_arrays import relative
from roboyard.mapping.scan import PreprocessedScan
from roboyard.mapping.trajectory import format_seconds, parse_numbers, parse_time_ns, read_numbered_lines, write_lines


@dataclass(frozen=True, slots=True)
class PoseGraph:
    """A graph of poses in the plane.

    Attributes:
        times_ns: (n,) time of each node [ns].
        poses: (n, 3) ``T_map_node``: x, y [m], theta [rad].
        edges: (m, 2) nodes i and j of each edge.
        measurements: (m, 3) measured ``T_i_j``.
        information: (m, 3, 3) inverse covariance of the measurement, in the frame of i.
        is_loop: (m,) whether the edge is a loop closure; otherwise it connects neighbors in time.

    Raises:
        InputError: Shapes of arrays do not match, or an edge connects nodes that do not exist.
    """

    times_ns: NDArray[np.int64]
    poses: NDArray[np.float64]
    edges: NDArray[np.int64]
    measurements: NDArray[np.float64]
    information: NDArray[np.float64]
    is_loop: NDArray[np.bool_]

    def __post_init__(self) -> None:
        n, m = len(self.times_ns), len(self.edges)
        shapes = {
            "times_ns": (n,), "poses": (n, 3), "edges": (m, 2), "measurements": (m, 3),
            "information": (m, 3, 3), "is_loop": (m,),
        }  # fmt: skip
        for name, shape in shapes.items():
            if np.shape(getattr(self, name)) != shape:
                raise InputError(f"{name} of shape {np.shape(getattr(self, name))} in a pose graph", valid=f"{shape}")
        if m and (self.edges.min() < 0 or self.edges.max() >= n):
            raise InputError("an edge of a pose graph joins nodes that do not exist", valid=f"0 to {n - 1}")


@dataclass(frozen=True, slots=True)
class PoseGraphOptimizerConfig:
    """Parameters of the optimization of a pose graph.

    Attributes:
        max_iterations: Largest number of Levenberg-Marquardt iterations.
        loop_kernel: Width of the robust kernel of loop closures [standard deviations].
        outlier_threshold: Error after optimization above which a loop closure is removed as false [standard
            deviations].
    """

    max_iterations: int = 20
    loop_kernel: float = 2.0
    outlier_threshold: float = 12.0


class GraphOptimizer(Protocol):
    """Optimizer of a pose graph that grows: the part of graph SLAM that a class of your own can replace.

    The pose of node 0 is fixed. Nodes are numbered from 0 in the order of their poses.
    """

    def add(
        self,
        first: int,
        second: int,
        measurement: SE2,
        information: NDArray[np.float64],
        is_loop: bool,
        is_long_range: bool = False,
    ) -> int:
        """Add an edge; return its number, with which ``remove`` takes it out.

        Args:
            first: Node i.
            second: Node j.
            measurement: ``T_i_j``.
            information: (3, 3) inverse covariance of the measurement, in the frame of i.
            is_loop: Whether the edge is a loop closure, which may be false.
            is_long_range: Whether the loop closure was found by a search of a window, so that its error may be large.
        """
        ...

    def remove(self, edge: int) -> None:
        """Remove an edge; the numbers of the other edges do not change."""
        ...

    def solve(self, poses: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the poses (n, 3) that minimize the errors of all edges, starting from poses (n, 3) [m, rad]."""
        ...


class PoseGraphOptimizer:
    """Optimizer of a pose graph by gtsam's Levenberg-Marquardt method; it implements `GraphOptimizer`.

    Loop closures have a robust kernel: Cauchy's, whose influence vanishes for large errors, or, if their range is long,
    Huber's, whose influence stays constant.

    Args:
        config: Parameters.
    """

    def __init__(self, config: PoseGraphOptimizerConfig | None = None) -> None:
        self.config = config or PoseGraphOptimizerConfig()

    @cached_property
    def _gtsam(self) -> Any:
        """Return the library, imported at the first edge, since many mapping nodes are created and never run."""
        import gtsam

        return gtsam

    @cached_property
    def _factors(self) -> Any:
        return self._gtsam.NonlinearFactorGraph()

    def add(
        self,
        first: int,
        second: int,
        measurement: SE2,
        information: NDArray[np.float64],
        is_loop: bool,
        is_long_range: bool = False,
    ) -> int:
        """Add an edge; see `GraphOptimizer.add`."""
        gtsam = self._gtsam
        rotation = np.eye(3)
        rotation[:2, :2] = measurement.matrix()[:2, :2]
        information_in_second = rotation.T @ information @ rotation  # gtsam measures errors in the frame of j
        noise = gtsam.noiseModel.Gaussian.Information(0.5 * (information_in_second + information_in_second.T))
        if is_loop:
            kernels = gtsam.noiseModel.mEstimator
            kernel = (kernels.Huber if is_long_range else kernels.Cauchy).Create(self.config.loop_kernel)
            noise = gtsam.noiseModel.Robust.Create(kernel, noise)
        pose = gtsam.Pose2(measurement.x, measurement.y, measurement.theta)
        self._factors.push_back(gtsam.BetweenFactorPose2(first, second, pose, noise))
        return int(self._factors.size()) - 1

    def remove(self, edge: int) -> None:
        """Remove an edge; the numbers of the other edges do not change."""
        self._factors.remove(edge)

    def solve(self, poses: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the optimized poses (n, 3); see `GraphOptimizer.solve`."""
        gtsam = self._gtsam
        values = gtsam.Values()
        for key, (x, y, theta) in enumerate(poses.tolist()):
            values.insert(key, gtsam.Pose2(x, y, theta))
        parameters = gtsam.LevenbergMarquardtParams()
        parameters.setMaxIterations(self.config.max_iterations)
        parameters.setRelativeErrorTol(1e-4)
        parameters.setAbsoluteErrorTol(1e-3)
        parameters.setOrderingType("COLAMD")
        anchor_noise = gtsam.noiseModel.Isotropic.Sigma(3, 1e-6)
        factors = gtsam.NonlinearFactorGraph(self._factors)
        factors.push_back(gtsam.PriorFactorPose2(0, gtsam.Pose2(*poses[0].tolist()), anchor_noise))
        solved = gtsam.LevenbergMarquardtOptimizer(factors, values, parameters).optimize()
        matrix = np.asarray(gtsam.utilities.extractPose2(solved), dtype=np.float64)
        return matrix


def edge_mahalanobis_distances(
    poses: NDArray[np.float64],
    edges: NDArray[np.int64],
    measurements: NDArray[np.float64],
    information: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the error of each edge (m,) [standard deviations]."""
    if not len(edges):
        return np.zeros(0)
    first, second = poses[edges[:, 0]], poses[edges[:, 1]]
    c, s = np.cos(first[:, 2]), np.sin(first[:, 2])
    offset = second[:, :2] - first[:, :2]
    longitudinal, lateral = c * offset[:, 0] + s * offset[:, 1], c * offset[:, 1] - s * offset[:, 0]
    residuals = np.column_stack([longitudinal, lateral, second[:, 2] - first[:, 2]])
    residuals -= measurements
    residuals[:, 2] = np.arctan2(np.sin(residuals[:, 2]), np.cos(residuals[:, 2]))
    return np.asarray(np.sqrt(np.einsum("ni,nij,nj->n", residuals, information, residuals)))


@dataclass(slots=True)
class PoseGraphNode:
    """A scan that is part of the map.

    Attributes:
        time_ns: Time of the scan [ns].
        pose: Current estimate of ``T_map_base``.
        scan: The scan.
        distance: Distance driven until then [m].
        trajectory_id: Number of the connected trajectory that it belongs to.
        accumulated_disagreement: Sum of the disagreements of odometry and scans along the trajectory [m].
        position_variance: Sum of the position variances that these add [m²].
        heading_uncertainty: Heading uncertainty since the previous node over scans that matched nothing [rad].
    """

    time_ns: int
    pose: SE2
    scan: PreprocessedScan
    distance: float
    trajectory_id: int = 0
    accumulated_disagreement: float = 0.0
    position_variance: float = 0.0
    heading_uncertainty: float = 0.0


@dataclass(frozen=True, slots=True)
class PoseGraphEdge:
    """Measured ``T_first_second``, with its inverse covariance (3, 3) in the frame of ``first``.

    ``is_long_range`` marks a loop closure that a search of a window found, so that its error may be large.
    """

    first: int
    second: int
    measurement: SE2
    information: NDArray[np.float64]
    is_loop: bool = False
    is_long_range: bool = False


class PoseGraphBuilder:
    """Pose graph that grows, with the optimizer of its poses.

    Args:
        config: Parameters of the optimization.
        optimizer: Optimizer; None: `PoseGraphOptimizer`.
    """

    def __init__(self, config: PoseGraphOptimizerConfig | None = None, optimizer: GraphOptimizer | None = None) -> None:
        self.config = config or PoseGraphOptimizerConfig()
        self.nodes: list[PoseGraphNode] = []
        self.edges: dict[int, PoseGraphEdge] = {}
        self.solve_count = 0  # number of optimizations so far
        self._optimizer: GraphOptimizer = optimizer or PoseGraphOptimizer(self.config)

    def add(self, edge: PoseGraphEdge) -> int:
        """Add an edge; return its number."""
        number = self._optimizer.add(
            edge.first, edge.second, edge.measurement, edge.information, edge.is_loop, edge.is_long_range
        )
        self.edges[number] = edge
        return number

    def poses(self) -> NDArray[np.float64]:
        """Return the poses (n, 3) of all nodes [m, rad]."""
        return np.array([(node.pose.x, node.pose.y, node.pose.theta) for node in self.nodes]).reshape(-1, 3)

    def solve(self) -> int:
        """Optimize the poses of the nodes; return the number of loop closures that were removed as outliers."""
        if not self.edges:
            return 0
        poses = self._optimizer.solve(self.poses())
        graph, numbers = self._arrays(poses)
        residual_distances = edge_mahalanobis_distances(poses, graph.edges, graph.measurements, graph.information)
        false_loops = [
            number
            for k, number in enumerate(numbers)
            if graph.is_loop[k] and residual_distances[k] > self.config.outlier_threshold
        ]
        for number in false_loops:
            self._optimizer.remove(number)
            del self.edges[number]
        if false_loops:
            poses = self._optimizer.solve(poses)
        for node, pose in zip(self.nodes, poses.tolist(), strict=True):
            node.pose = SE2(*pose)
        self.solve_count += 1
        return len(false_loops)

    def pose_graph(self) -> PoseGraph:
        """Return the graph as arrays."""
        return self._arrays(self.poses())[0]

    def _arrays(self, poses: NDArray[np.float64]) -> tuple[PoseGraph, list[int]]:
        edges = list(self.edges.values())
        measurements = [(edge.measurement.x, edge.measurement.y, edge.measurement.theta) for edge in edges]
        graph = PoseGraph(
            times_ns=np.array([node.time_ns for node in self.nodes], dtype=np.int64),
            poses=poses,
            edges=np.array([(edge.first, edge.second) for edge in edges], dtype=np.int64).reshape(-1, 2),
            measurements=np.array(measurements, dtype=np.float64).reshape(-1, 3),
            information=np.array([edge.information for edge in edges], dtype=np.float64).reshape(-1, 3, 3),
            is_loop=np.array([edge.is_loop for edge in edges], dtype=np.bool_),
        )
        return graph, list(self.edges)


_VERTEX_FORMAT: Final = "VERTEX_SE2 id x y theta"
_EDGE_FORMAT: Final = "EDGE_SE2 from to x y theta and 6 numbers of information"
_UPPER_TRIANGLE: Final = np.triu_indices(3)
_MAX_NODES: Final = 5_000_000


def write_g2o(path: Path | str, graph: PoseGraph) -> None:
    """Write a graph; what ``read_g2o`` gives back is equal, the information to rounding and all else to the last bit.

    Raises:
        InputError: the file cannot be written.
    """

    rotated_information = _rotate_information(graph.information, -graph.measurements[:, 2])

    def lines() -> Iterator[str]:
        for index, (x, y, theta) in enumerate(graph.poses.tolist()):
            yield f"VERTEX_SE2 {index} {x!r} {y!r} {theta!r}"
        for (i, j), measurement, information in zip(
            graph.edges.tolist(), graph.measurements.tolist(), rotated_information, strict=True
        ):
            values = [*measurement, *information[_UPPER_TRIANGLE].tolist()]
            yield f"EDGE_SE2 {i} {j} {' '.join(map(repr, values))}"
        for index, time_ns in enumerate(graph.times_ns.tolist()):
            yield f"# TIME {index} {format_seconds(time_ns)}"
        for i, j in graph.edges[graph.is_loop].tolist():
            yield f"# LOOP {i} {j}"

    write_lines(path, lines())


def read_g2o(path: Path | str) -> PoseGraph:
    """Read a graph in the plane, gzipped or not.

    Nodes are numbered anew from 0 in the order of their ids.  In a file without time stamps, node k has the time of k
    seconds, and
    every edge that does not join neighbours closes a loop.

    Raises:
        InputError: it cannot be read, is a graph in space, or a line is malformed (with its number).
    """
    reader = _G2oReader(str(path))
    for line_number, line in read_numbered_lines(path):
        words = line.split()
        if words:
            reader.parse_line(words, f"{path}:{line_number}")
    return reader.build_graph()


def chi_squared(graph: PoseGraph) -> float:
    """Return chi squared: the sum of ``e^T I e`` over all edges, with the error e and the information I of the edge."""
    residuals = edge_residuals(graph)
    return float(np.einsum("ni,nij,nj->", residuals, graph.information, residuals))


def edge_residuals(graph: PoseGraph) -> NDArray[np.float64]:
    """Return the error of each measurement (m, 3), in the frame of the first node: x, y [m], theta [rad]."""
    first, second = (graph.poses[graph.edges[:, side]] for side in (0, 1))
    residuals = relative(first, second) - graph.measurements
    residuals[:, 2] = wrap_angle(residuals[:, 2])
    return residuals


def _rotate_information(information: NDArray[np.float64], angles: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the information (m, 3, 3) in frames from which the old ones are rotated by ``angles`` (m,) [rad]."""
    c, s = np.cos(angles), np.sin(angles)
    rotation = np.zeros((len(angles), 3, 3))
    rotation[:, 0, 0] = rotation[:, 1, 1] = c
    rotation[:, 1, 0], rotation[:, 0, 1], rotation[:, 2, 2] = s, -s, 1.0
    return rotation @ information @ rotation.transpose(0, 2, 1)


class _G2oReader:
    def __init__(self, location: str) -> None:
        self.location = location
        self.vertices: dict[int, tuple[float, float, float]] = {}
        self.times: dict[int, int] = {}
        self.edges: list[tuple[int, int]] = []
        self.edge_locations: list[str] = []
        self.measurements: list[list[float]] = []
        self.information: list[list[float]] = []
        self.loops: set[tuple[int, int]] = set()

    def parse_line(self, words: list[str], location: str) -> None:
        tag = words[0]
        if tag == "VERTEX_SE2":
            index = _parse_node_id(words, 1, location)
            x, y, theta = parse_numbers(words[2:], 3, location, _VERTEX_FORMAT)
            if index in self.vertices:
                raise InputError(f"node {index} is there twice", location=location)
            if len(self.vertices) >= _MAX_NODES:
                raise InputError(f"more than {_MAX_NODES} nodes", location=location)
            self.vertices[index] = (x, y, wrap_angle(theta))
        elif tag == "EDGE_SE2":
            values = parse_numbers(words[3:], 9, location, _EDGE_FORMAT)
            self.edges.append((_parse_node_id(words, 1, location), _parse_node_id(words, 2, location)))
            self.edge_locations.append(location)
            self.measurements.append(values[:3])
            self.information.append(values[3:])
        elif words[:2] == ["#", "TIME"] and len(words) == 4:
            self.times[_parse_node_id(words, 2, location)] = parse_time_ns(words[3], location)
        elif words[:2] == ["#", "LOOP"] and len(words) == 4:
            self.loops.add((_parse_node_id(words, 2, location), _parse_node_id(words, 3, location)))
        elif tag.startswith(("VERTEX_SE3", "EDGE_SE3")):
            raise InputError(
                "is a graph in space", location=location, valid="a graph in the plane, of VERTEX_SE2 and EDGE_SE2"
            )
        elif tag[0] != "#" and tag not in ("FIX", "PARAMS_SE2OFFSET"):
            raise InputError(
                f"'{tag[:40]}' is no line of a pose graph", location=location, valid=f"{_VERTEX_FORMAT}; {_EDGE_FORMAT}"
            )

    def build_graph(self) -> PoseGraph:
        if not self.vertices:
            raise InputError("holds no pose graph", location=self.location, valid=_VERTEX_FORMAT)
        ids = sorted(self.vertices)
        number = {index: k for k, index in enumerate(ids)}
        edges = np.zeros((len(self.edges), 2), dtype=np.int64)
        for k, (i, j) in enumerate(self.edges):
            if i not in number or j not in number:
                raise InputError(f"an edge from {i} to {j}, of which one is no node", location=self.edge_locations[k])
            edges[k] = number[i], number[j]
        information = np.zeros((len(edges), 3, 3))
        if len(edges):
            upper = np.array(self.information)
            information[:, _UPPER_TRIANGLE[0], _UPPER_TRIANGLE[1]] = upper
            information[:, _UPPER_TRIANGLE[1], _UPPER_TRIANGLE[0]] = upper
        has_times = len(self.times) == len(ids) and set(self.times) == set(ids)
        if has_times:
            is_loop = np.array([edge in self.loops for edge in self.edges], dtype=np.bool_)
        else:
            is_loop = np.abs(edges[:, 1] - edges[:, 0]) != 1
        measurements = np.array(self.measurements, dtype=np.float64).reshape(-1, 3)
        return PoseGraph(
            np.array([self.times[index] if has_times else k * 10**9 for k, index in enumerate(ids)], dtype=np.int64),
            np.array([self.vertices[index] for index in ids], dtype=np.float64),
            edges,
            measurements,
            _rotate_information(information, measurements[:, 2]),
            is_loop,
        )


def _parse_node_id(words: list[str], position: int, location: str) -> int:
    word = words[position] if position < len(words) else ""
    if not (word.isascii() and word.isdecimal() and len(word) < 19):
        raise InputError(
            f"'{word[:40]}' is no number of a node", location=location, valid=f"{_VERTEX_FORMAT}; {_EDGE_FORMAT}"
        )
    return int(word)
