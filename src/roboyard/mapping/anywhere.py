"""Where in a whole map a scan was taken, with nothing known beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from roboyard.geometry import SE2
from roboyard.mapping.growing_graph import GrowingGraph, PoseGraphNode
from roboyard.mapping.local import step_of
from roboyard.mapping.loops import Loop, LoopFinder
from roboyard.mapping.matching.correlative import Window, search
from roboyard.mapping.matching.refine import apart
from roboyard.mapping.matching.sight import seen_through
from roboyard.mapping.preparation import Prepared
from roboyard.mapping.submaps import Submap


@dataclass(frozen=True, slots=True)
class AnywhereConfig:
    """What makes a place credible that nothing else speaks for.

    Attributes:
        fit: Share of points that must lie on surfaces.
        overlap: Share of points that must be near one.
        through: Largest share of beams through walls.
        score: Fit that a search must find before refinement.
        rival: By how much the best must fit better than the best elsewhere.
        elsewhere: From this distance on another place is another [m].
        tried: Places that are refined, at most.
        submaps: Submaps searched at a time while mapping.
    """

    fit: float = 0.62
    overlap: float = 0.75
    through: float = 0.06
    score: float = 0.55
    rival: float = 0.06
    elsewhere: float = 0.7
    tried: int = 12
    submaps: int = 8


def find_anywhere(
    finder: LoopFinder, graph: GrowingGraph, submaps: list[Submap], among: Sequence[int], scan: Prepared, number: int,
    config: AnywhereConfig,
) -> Loop | None:  # fmt: skip
    """Search a scan in submaps at all positions and directions.

    Args:
        finder: Holds the submaps' tables.
        graph: The graph they belong to.
        submaps: All submaps.
        among: Numbers of those to be searched.
        scan: The scan.
        number: Of the scan's node, for the answer.
        config: What is credible.

    Returns:
        Where it is, or None where nothing fits well, or more than one place does.
    """
    if len(scan.points) < 20:
        return None
    points = scan.points[:: max(1, len(scan.points) // 100)]
    rough = []
    for k in among:
        submap = submaps[k]
        middle = SE2(submap.centre[0], submap.centre[1], 0.0)
        window = Window(submap.radius, np.pi, 1.5 * step_of(scan))
        found = search(finder.tables(submaps, k), points, middle, window, config.score)
        if found is not None:
            rough.append((-found.score, k, found.pose))
    rough.sort(key=lambda item: item[:2])
    fine: list[tuple[float, SE2, Loop]] = []
    probe = PoseGraphNode(0, SE2(), scan, 0.0)
    for _, k, pose in rough[: config.tried]:
        match = finder.refine(submaps, k, probe, pose)
        if match is None or match.overlap < config.overlap:
            continue
        worth = match.fit - seen_through(finder.load(submaps, k), scan, match.pose)
        place = graph.nodes[submaps[k].anchor].pose @ match.pose
        fine.append((worth, place, Loop(k, number, match.pose, match.information, True)))
    if not fine:
        return None
    worth, place, loop = max(fine, key=lambda item: item[0])
    surface = finder.load(submaps, loop.submap)
    if worth < config.fit or seen_through(surface, scan, loop.pose) > config.through:
        return None
    for other_worth, other, _ in fine:
        away, turned = apart(place, other)
        if (away > config.elsewhere or turned > 0.3) and other_worth > worth - config.rival:
            return None
    return loop
