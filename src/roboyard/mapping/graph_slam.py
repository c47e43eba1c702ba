"""Graph SLAM: scans are placed in submaps as they come, loops tie submaps together, and a pose graph settles it all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels
from roboyard.geometry import SE2
from roboyard.grids import OccupancyGrid
from roboyard.grids.ray_casting import count_hits_and_misses
from roboyard.mapping.anywhere import find_anywhere
from roboyard.mapping.graph_config import GraphSlamConfig
from roboyard.mapping.graph_file import MappedPlace, read_place, write_place
from roboyard.mapping.growing_graph import Edge, GrowingGraph, PoseGraphNode
from roboyard.mapping.local import LocalMatcher, Placed
from roboyard.mapping.loops import Loop, LoopFinder
from roboyard.mapping.matching.refine import apart
from roboyard.mapping.motion import Belief, Motion
from roboyard.mapping.pose_graph import PoseGraph
from roboyard.mapping.preparation import Preparation, Prepared
from roboyard.mapping.scan import Scan
from roboyard.mapping.submaps import SubmapChain
from roboyard.mapping.trajectory import Trajectory

_ELSEWHERE = 100.0
"""Way that may lie between two sessions in one map [m]."""
_DISAGREES = 4.0
"""Squared error of odometry, in variances, from which it and the scan contradict each other."""
_CONVINCED = 0.05
"""Share of such a contradiction that remains as uncertainty where the scan fits as well as ever."""
_MAX_WARNINGS = 10
_UNTIED = np.diag([1.0 / 3.0**2, 1.0 / 3.0**2, 1.0])
"""What is known about a part of the map that nothing ties to the rest: metres and a radian."""


class GraphSlam:
    """Graph SLAM, one scan at a time or whole logs; see ``roboyard.mapping.Slam``.

    Args:
        config: Settings.
    """

    def __init__(self, config: GraphSlamConfig | None = None) -> None:
        expect_kernels(count_hits_and_misses)
        self.config = config or GraphSlamConfig()
        self._warnings: list[str] = []
        self._counts: dict[str, int] = {}
        self._beams: dict[str, int] = {}
        self._last_times: dict[str, int] = {}
        self._lost = 0
        self._backward = 0
        self._loaded = 0  # nodes of a map that was loaded
        self._start: SE2 | None = None  # where the robot is said to begin in it
        self._first_pose: SE2 | None = None
        self._untied = False
        self._searched = 0.0
        self._searches = 0
        self._graph = GrowingGraph(self.config.optimising)
        self._chain = SubmapChain(self.config.submaps, self.config.preparation.reach)
        self._finder = LoopFinder(self.config.loops, self.config.refining, self._chain.half)
        self._preparation = Preparation(self.config.preparation)
        self._local = LocalMatcher(self.config.local, self.config.refining)
        self._motion = Motion(self.config.motion)
        self._T_local_base = SE2()
        self._T_local_node = SE2()
        self._last_node: dict[str, SE2] = {}  # where each laser last became a node, in the local frame
        self._path = 0.0
        self._doubt = 0.0
        self._slack = 0.0
        self._blind = 0.0
        self._part = 0
        self._times: list[int] = []
        self._at: list[tuple[int, SE2]] = []  # of each scan: a node, and T_node_base
        self._solved_size = 0
        self._unsolved = False

    def process(self, scan: Scan) -> SE2:
        """See ``Slam.process``.  A scan that repeats a stamp of its laser, or goes back in time, is left out."""
        if self._out_of_order(scan):
            return self._pose()
        prepared = self._preparation.prepare(scan, self._motion.twist)
        self._seen(scan, prepared)
        beliefs = self._motion.beliefs(scan.time_ns, scan.odometry)
        target = self._chain.target
        if target is None or not beliefs:
            if len(prepared.points) < self.config.local.fewest:
                self._warn("scans before the first with enough points, left out")
                return self._pose()
            self._motion.learn(scan.time_ns, scan.odometry, None, False, None)
            if self._loaded:
                self._begin_in_loaded(prepared)
            self._become_node(scan, prepared, None)
        else:
            self._place(scan, prepared, beliefs)
        if not self._times or scan.time_ns > self._times[-1]:
            self._times.append(scan.time_ns)
            self._at.append((len(self._graph.nodes) - 1, self._T_local_node.inverse() @ self._T_local_base))
        return self._pose()

    def _place(self, scan: Scan, prepared: Prepared, beliefs: list[Belief]) -> None:
        target = self._chain.target
        if target is None:
            return
        last = self._T_local_base
        in_anchor = target.T_local_anchor.inverse() @ last
        placed = self._local.place(prepared, target.surface, (target.number, target.version), in_anchor, beliefs)
        self._T_local_base = target.T_local_anchor @ placed.pose
        step = last.inverse() @ self._T_local_base
        self._path += float(np.hypot(step.x, step.y))
        told = next((belief.step for belief in beliefs if belief.odometry), None)
        if told is not None and placed.error is not None and placed.error > _DISAGREES:
            away = min(told.distance(step), 1.0)
            self._doubt += away
            self._slack += (away * (1.0 if not placed.usual else _CONVINCED)) ** 2
        if placed.match is None:
            self._blind += placed.belief.sigma_turn
        self._motion.learn(scan.time_ns, scan.odometry, step, placed.match is not None, placed.error)
        enough = len(prepared.points) >= self.config.local.fewest
        if placed.match is None and not placed.belief.odometry:
            self._lost += enough
            if self._lost >= self.config.patience:
                self._begin_part(scan, prepared)
            return
        self._lost = 0
        if enough and self._moved(scan.laser):
            self._become_node(scan, prepared, placed)

    def _begin_part(self, scan: Scan, prepared: Prepared) -> None:
        """The robot does not know how it got here: a part of the map of its own, until a loop ties it to the others."""
        seconds = (scan.time_ns - self._graph.nodes[0].time_ns) * 1e-9
        self._warnings.append(
            f"lost {seconds:.1f} s after the first scan: a part of the map begins there that nothing ties to the rest "
            "until a loop does"
        )
        self._chain.close()
        self._part = max(node.part for node in self._graph.nodes) + 1
        self._lost, self._untied = 0, True
        self._motion.forget(scan.time_ns, scan.odometry)
        number = len(self._graph.nodes)
        self._graph.add(Edge(number - 1, number, self._T_local_node.inverse() @ self._T_local_base, _UNTIED))
        self._become_node(scan, prepared, None)

    def _begin_in_loaded(self, prepared: Prepared) -> None:
        """Tie the first scan to the loaded map, where it is said to be or where it is found; else begin a part."""
        graph, submaps, number = self._graph, self._chain.all, len(self._graph.nodes)
        known, self._start = self._start, None
        self._T_local_node = self._T_local_base = SE2()
        loop = None
        if known is None:
            loop = find_anywhere(
                self._finder, graph, submaps, self._chain.finished(), prepared, number, self.config.anywhere
            )
        else:
            loop = self._finder.around(graph, submaps, self._chain.finished(), prepared, known, number)
        if loop is not None:
            submap = submaps[loop.submap]
            self._first_pose = graph.nodes[submap.anchor].pose @ loop.pose
            self._part = submap.part
            graph.add(Edge(submap.anchor, number, loop.pose, _softened(loop.information)))
            return
        self._first_pose = known or graph.nodes[0].pose
        self._untied = True
        graph.add(Edge(0, number, graph.nodes[0].pose.inverse() @ self._first_pose, _UNTIED))
        self._warnings.append(
            "the first scan was not found in the loaded map: a part begins that nothing ties to it yet"
        )

    def _pose(self) -> SE2:
        if self._first_pose is not None:
            return self._first_pose
        if not self._graph.nodes:
            return self._T_local_base
        return self._graph.nodes[-1].pose @ self._T_local_node.inverse() @ self._T_local_base

    def _out_of_order(self, scan: Scan) -> bool:
        last = self._last_times.get(scan.laser)
        if last is not None and scan.time_ns == last:
            self._warn("scans with the stamp of the one before, left out")
        elif self._last_times and scan.time_ns < max(self._last_times.values()):
            self._backward += 1
            if self._backward >= self.config.patience:
                self._set_back(scan.time_ns)
                self._last_times = {scan.laser: scan.time_ns}
                return False
            self._warn("scans whose stamps go back, left out")
        else:
            self._last_times[scan.laser] = scan.time_ns
            self._backward = 0
            return False
        return True

    def _set_back(self, time_ns: int) -> None:
        """Stamps stay behind: the clock was set back, or one stamp lay in the future."""
        self._warn("times the clock was set back; poses with later stamps were taken out of the trajectory")
        self._backward = 0
        while self._times and self._times[-1] >= time_ns:
            self._times.pop()
            self._at.pop()
        self._motion.set_back(time_ns)

    def _seen(self, scan: Scan, prepared: Prepared) -> None:
        beams = self._beams.setdefault(scan.laser, len(scan.ranges))
        if beams != len(scan.ranges):
            self._warn("scans with another number of beams than the laser's first; each is taken by its own angles")
        if len(prepared.points) < self.config.local.fewest:
            self._warn("scans with too few points to be placed; the robot is believed to have moved as before")

    def _warn(self, what: str) -> None:
        self._counts[what] = self._counts.get(what, 0) + 1

    @property
    def warnings(self) -> list[str]:
        """What was amiss with the scans so far, and what was done about it."""
        more = len(self._warnings) - _MAX_WARNINGS
        rest = [f"{more} more of that kind"] if more > 0 else []
        counted = [f"{count} {what}" for what, count in self._counts.items()]
        return counted + self._warnings[:_MAX_WARNINGS] + rest

    def finish(self) -> None:
        """See ``Slam.finish``."""
        if not self._graph.nodes:
            return
        unfinished = self._chain.snapshot()
        self._solve()
        for _ in range(self.config.rounds):
            self._tie()
            self._solve()
        self._finder.forget(unfinished)

    def place(self) -> MappedPlace:
        """What was mapped so far, complete: nodes, edges and submaps; not a copy."""
        self._chain.snapshot()
        edges = list(self._graph.edges.values())
        return MappedPlace(self._graph.nodes, edges, self._chain.all, self._preparation.save_state())

    def save(self, path: str | Path) -> Path:
        """Write what was mapped so far, for ``load`` and ``GraphLocalizer``.

        Raises:
            InputError: the file cannot be written.
        """
        return write_place(path, self.place())

    @classmethod
    def load(cls, path: str | Path, config: GraphSlamConfig | None = None, start: SE2 | None = None) -> GraphSlam:
        """Go on mapping where ``save`` left off, perhaps days later and elsewhere in the map.

        Args:
            path: The file.
            config: Settings, those of today.
            start: ``T_map_base`` at the first scan, some decimetres right; None searches the whole map for it.  Until
                the place is found the robot maps a part of its own.

        Raises:
            InputError: the file is none, or is damaged.
        """
        place = read_place(path)
        slam = cls(config)
        slam._preparation.load_state(place.nothing)
        slam._graph.nodes = place.nodes
        for edge in place.edges:
            slam._graph.add(edge)
        slam._chain.all = place.submaps
        if place.nodes:
            slam._path = max(node.path for node in place.nodes) + _ELSEWHERE
            slam._part = max(node.part for node in place.nodes) + 1
            slam._loaded, slam._start = len(place.nodes), start
            slam._solved_size = len(place.nodes)
        return slam

    def trajectory(self) -> Trajectory:
        """See ``Slam.trajectory``."""
        nodes = self._graph.nodes
        poses = [nodes[number].pose @ relative for number, relative in self._at]
        array = np.array([(pose.x, pose.y, pose.theta) for pose in poses]).reshape(-1, 3)
        return Trajectory(np.array(self._times, dtype=np.int64), array)

    def graph(self) -> PoseGraph:
        """See ``Slam.graph``."""
        return self._graph.pose_graph()

    def _moved(self, laser: str) -> bool:
        since = self._last_node.get(laser)
        if since is None:
            return True
        away, turned = apart(since, self._T_local_base)
        return away >= self.config.step or turned >= self.config.turn

    def _become_node(self, scan: Scan, prepared: Prepared, placed: Placed | None) -> None:
        graph, number = self._graph, len(self._graph.nodes)
        pose, self._first_pose = self._pose(), None
        doubts = self._doubt, self._slack, self._blind
        graph.nodes.append(PoseGraphNode(scan.time_ns, pose, prepared, self._path, self._part, *doubts))
        self._blind = 0.0
        if placed is not None:
            self._tie_locally(number, placed)
        self._T_local_node = self._T_local_base
        self._last_node[scan.laser] = self._T_local_base
        self._chain.insert(number, prepared, self._T_local_base, self._path, self._part)
        submaps = self._chain.all
        loops = self._finder.find(graph, submaps, self._chain.finished(), number)
        if self._untied and not any(loop.wide for loop in loops):
            loops += self._search_anywhere(number)
        self._accept(loops)
        if any(submaps[loop.submap].part != self._part for loop in loops):
            self._untied = False
        grown = number - self._solved_size
        if (self._unsolved and grown >= max(10.0, self.config.growth * number)) or any(loop.wide for loop in loops):
            self._solve()

    def _search_anywhere(self, number: int) -> list[Loop]:
        """While a part is tied to nothing: once a metre, look for it in all others."""
        if self._path - self._searched < 1.0:
            return []
        self._searched = self._path
        submaps = self._chain.all
        others = [k for k in self._chain.finished() if submaps[k].part != self._part]
        if len(others) > self.config.anywhere.submaps:  # by turns, so that no scan costs more in a larger map
            first = self._searches * self.config.anywhere.submaps % len(others)
            others = (others + others)[first : first + self.config.anywhere.submaps]
        self._searches += 1
        scan = self._graph.nodes[number].scan
        loop = find_anywhere(self._finder, self._graph, submaps, others, scan, number, self.config.anywhere)
        return [] if loop is None else self._finder.confirmed(self._graph, submaps, loop)

    def _tie_locally(self, number: int, placed: Placed) -> None:
        target = self._chain.target
        if target is None:
            return
        nodes, anchor = self._graph.nodes, self._chain.all[target.number].anchor
        slack = nodes[number].slack
        information = _softened(placed.information, slack - nodes[anchor].slack)
        self._graph.add(Edge(anchor, number, placed.pose, information))
        if anchor != number - 1:
            step = self._T_local_node.inverse() @ self._T_local_base
            turn = np.eye(3)
            turn[:2, :2] = (self._T_local_node.inverse() @ target.T_local_anchor).matrix()[:2, :2]
            information = turn @ _softened(placed.information, slack - nodes[number - 1].slack) @ turn.T
            self._graph.add(Edge(number - 1, number, step, 0.5 * information))

    def _accept(self, loops: list[Loop]) -> None:
        for loop in loops:
            anchor = self._chain.all[loop.submap].anchor
            self._graph.add(Edge(anchor, loop.node, loop.pose, _softened(loop.information), True, loop.wide))
            self._unsolved = True

    def _solve(self) -> None:
        self._graph.solve()
        self._solved_size = len(self._graph.nodes)
        self._unsolved = False

    def _tie(self) -> None:
        """Tie every node to the submaps that it overlaps."""
        graph, submaps = self._graph, self._chain.all
        tied = {(edge.first, edge.second) for edge in graph.edges.values()}
        anchors = np.array([graph.nodes[submap.anchor].pose @ submap.centre for submap in submaps])
        radii = np.array([s.radius for s in submaps])
        wanted: dict[int, list[int]] = {}
        for number, node in enumerate(graph.nodes):
            away = np.linalg.norm(anchors - node.pose.xy, axis=1)
            order = np.argsort(away, kind="stable")
            chosen = [int(k) for k in order if away[k] < radii[k]][: 2 * self.config.ties]
            chosen = [k for k in chosen if (submaps[k].anchor, number) not in tied and number not in submaps[k].nodes]
            for k in chosen[: self.config.ties]:
                wanted.setdefault(k, []).append(number)
        for k in sorted(wanted):
            anchor = graph.nodes[submaps[k].anchor].pose
            for number in wanted[k]:
                node = graph.nodes[number]
                start = anchor.inverse() @ node.pose
                match = self._finder.refine(submaps, k, node, start)
                if match is not None and apart(start, match.pose)[0] < 0.3:
                    self._accept([Loop(k, number, match.pose, match.information, False)])

    def occupancy(self, resolution: float) -> OccupancyGrid:
        """See ``Slam.occupancy``."""
        from roboyard.mapping.occupancy import draw

        nodes = self._graph.nodes
        return draw([node.pose for node in nodes], [node.scan for node in nodes], resolution)


def _softened(information: NDArray[np.float64], slack: float = 0.0) -> NDArray[np.float64]:
    """With the errors that no single match knows of: of the surfaces themselves, of the stamps, and ``slack`` [m²]."""
    floor = np.diag([1e-3, 1e-3, 1e-3])
    more = np.diag([0.01**2 + slack, 0.01**2 + slack, 0.003**2 + 0.02 * slack])
    result = np.linalg.inv(np.linalg.inv(information + floor) + more)
    return np.asarray(0.5 * (result + result.T))
