"""Pose graphs in the text format of g2o, which gtsam, Ceres's examples and others read.

Lines (source: https://github.com/RainerKuemmerle/g2o/wiki/File-Format)::

    VERTEX_SE2 id x y theta
    EDGE_SE2 from to x y theta  I_xx I_xy I_xt I_yy I_yt I_tt

The information is in the frame of the pose that is measured, not as in ``PoseGraph`` in that of the pose that measures.
Times of nodes and what closes a loop are not part of the format; we write them as comments, ``# TIME id seconds`` and
``# LOOP from to``, which other programs pass over.  There is no ``FIX``: gtsam stops reading at one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import InputError
from roboyard.geometry import wrap_angle
from roboyard.geometry.se2_arrays import relative
from roboyard.mapping.pose_graph import PoseGraph
from roboyard.mapping.text_files import nanoseconds, numbers, read_lines, seconds, write_lines

_VERTEX: Final = "VERTEX_SE2 id x y theta"
_EDGE: Final = "EDGE_SE2 from to x y theta and 6 numbers of information"
_UPPER: Final = np.triu_indices(3)
_MAX_NODES: Final = 5_000_000


def write_g2o(path: Path | str, graph: PoseGraph) -> None:
    """Write a graph; what ``read_g2o`` gives back is equal, the information to rounding and all else to the last bit.

    Raises:
        InputError: the file cannot be written.
    """

    turned = _turned(graph.information, -graph.measurements[:, 2])

    def lines() -> Iterator[str]:
        for index, (x, y, theta) in enumerate(graph.poses.tolist()):
            yield f"VERTEX_SE2 {index} {x!r} {y!r} {theta!r}"
        for (i, j), measured, information in zip(
            graph.pairs.tolist(), graph.measurements.tolist(), turned, strict=True
        ):
            values = [*measured, *information[_UPPER].tolist()]
            yield f"EDGE_SE2 {i} {j} {' '.join(map(repr, values))}"
        for index, time_ns in enumerate(graph.times_ns.tolist()):
            yield f"# TIME {index} {seconds(time_ns)}"
        for i, j in graph.pairs[graph.loops].tolist():
            yield f"# LOOP {i} {j}"

    write_lines(path, lines())


def read_g2o(path: Path | str) -> PoseGraph:
    """Read a graph in the plane, gzipped or not.

    Nodes are numbered anew from 0 in the order of their ids.  Where the file tells no times, node k has k seconds, and
    every edge that does not join neighbours closes a loop.

    Raises:
        InputError: it cannot be read, is a graph in space, or a line is malformed (with its number).
    """
    reader = _Reader(str(path))
    for number, line in read_lines(path):
        words = line.split()
        if words:
            reader.line(words, f"{path}:{number}")
    return reader.graph()


def squared_error(graph: PoseGraph) -> float:
    """Sum over the edges of ``e^T I e``, where e is the error of the measurement (chi squared)."""
    errors = edge_errors(graph)
    return float(np.einsum("ni,nij,nj->", errors, graph.information, errors))


def edge_errors(graph: PoseGraph) -> NDArray[np.float64]:
    """What each measurement is wrong by (m, 3), in the frame of the pose that measures: x, y [m], theta [rad]."""
    first, second = (graph.poses[graph.pairs[:, side]] for side in (0, 1))
    errors = relative(first, second) - graph.measurements
    errors[:, 2] = wrap_angle(errors[:, 2])
    return errors


def _turned(information: NDArray[np.float64], angles: NDArray[np.float64]) -> NDArray[np.float64]:
    """Information (m, 3, 3) in frames in which the old ones are turned by ``angles`` (m,)."""
    c, s = np.cos(angles), np.sin(angles)
    turn = np.zeros((len(angles), 3, 3))
    turn[:, 0, 0] = turn[:, 1, 1] = c
    turn[:, 1, 0], turn[:, 0, 1], turn[:, 2, 2] = s, -s, 1.0
    return turn @ information @ turn.transpose(0, 2, 1)


class _Reader:
    def __init__(self, where: str) -> None:
        self.where = where
        self.vertices: dict[int, tuple[float, float, float]] = {}
        self.times: dict[int, int] = {}
        self.edges: list[tuple[int, int]] = []
        self.places: list[str] = []
        self.measured: list[list[float]] = []
        self.information: list[list[float]] = []
        self.loops: set[tuple[int, int]] = set()

    def line(self, words: list[str], where: str) -> None:
        kind = words[0]
        if kind == "VERTEX_SE2":
            index = _index(words, 1, where)
            x, y, theta = numbers(words[2:], 3, where, _VERTEX)
            if index in self.vertices:
                raise InputError(f"node {index} is there twice", location=where)
            if len(self.vertices) >= _MAX_NODES:
                raise InputError(f"more than {_MAX_NODES} nodes", location=where)
            self.vertices[index] = (x, y, wrap_angle(theta))
        elif kind == "EDGE_SE2":
            values = numbers(words[3:], 9, where, _EDGE)
            self.edges.append((_index(words, 1, where), _index(words, 2, where)))
            self.places.append(where)
            self.measured.append(values[:3])
            self.information.append(values[3:])
        elif words[:2] == ["#", "TIME"] and len(words) == 4:
            self.times[_index(words, 2, where)] = nanoseconds(words[3], where)
        elif words[:2] == ["#", "LOOP"] and len(words) == 4:
            self.loops.add((_index(words, 2, where), _index(words, 3, where)))
        elif kind.startswith(("VERTEX_SE3", "EDGE_SE3")):
            raise InputError(
                "is a graph in space", location=where, valid="a graph in the plane, of VERTEX_SE2 and EDGE_SE2"
            )
        elif kind[0] != "#" and kind not in ("FIX", "PARAMS_SE2OFFSET"):
            raise InputError(f"'{kind[:40]}' is no line of a pose graph", location=where, valid=f"{_VERTEX}; {_EDGE}")

    def graph(self) -> PoseGraph:
        if not self.vertices:
            raise InputError("holds no pose graph", location=self.where, valid=_VERTEX)
        ids = sorted(self.vertices)
        number = {index: k for k, index in enumerate(ids)}
        pairs = np.zeros((len(self.edges), 2), dtype=np.int64)
        for k, (i, j) in enumerate(self.edges):
            if i not in number or j not in number:
                raise InputError(f"an edge from {i} to {j}, of which one is no node", location=self.places[k])
            pairs[k] = number[i], number[j]
        information = np.zeros((len(pairs), 3, 3))
        if len(pairs):
            upper = np.array(self.information)
            information[:, _UPPER[0], _UPPER[1]] = upper
            information[:, _UPPER[1], _UPPER[0]] = upper
        told = len(self.times) == len(ids) and set(self.times) == set(ids)
        if told:
            loops = np.array([edge in self.loops for edge in self.edges], dtype=np.bool_)
        else:
            loops = np.abs(pairs[:, 1] - pairs[:, 0]) != 1
        measured = np.array(self.measured, dtype=np.float64).reshape(-1, 3)
        return PoseGraph(
            np.array([self.times[index] if told else k * 10**9 for k, index in enumerate(ids)], dtype=np.int64),
            np.array([self.vertices[index] for index in ids], dtype=np.float64),
            pairs,
            measured,
            _turned(information, measured[:, 2]),
            loops,
        )


def _index(words: list[str], at: int, where: str) -> int:
    word = words[at] if at < len(words) else ""
    if not (word.isascii() and word.isdecimal() and len(word) < 19):
        raise InputError(f"'{word[:40]}' is no number of a node", location=where, valid=f"{_VERTEX}; {_EDGE}")
    return int(word)
