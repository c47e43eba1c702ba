"""Local matching: where the robot is within the submap under construction."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels
from roboyard.geometry import SE2, wrap_angle
from roboyard.mapping.matching.cells import CellMap
from roboyard.mapping.matching.correlative import Tables, Window, search
from roboyard.mapping.matching.refine import Match, RefineConfig, apart, gauss_newton, refine
from roboyard.mapping.matching.sight import seen_through
from roboyard.mapping.motion import Belief
from roboyard.mapping.preparation import Prepared

_SIGMAS = 0.5, 0.25
"""Deviations of beliefs that a search takes into account, most [m] and [rad]."""
_SECTORS = 8
"""In which all directions are searched, to see whether more than one fits."""
_ENOUGH = 80
"""Points that such a search needs."""


@dataclass(frozen=True, slots=True)
class LocalConfig:
    """How a scan is placed.

    Attributes:
        clear: A fit from which a match near the belief is taken at once,
        usual: if it is no worse than this share of what was usual of late.
        convincing: From this share on a match is believed against odometry.
        lost: A fit below which the scan tells nothing.
        fewest: Points that a scan needs to tell anything.
        doubt: Surprise from which the belief is doubted and the surroundings are searched [half variances].
        most: Surprise beyond which it counts no more, so that no lie outweighs what the laser sees.
        widest: Largest search: metres to each side, and radians.
        through: What a share of beams through walls costs, against a match's cost.
        rescue: When nothing fits better than this and odometry is contradicted, all directions are searched,
        unusual: or than this share of what was usual of late, and more may have happened than was searched.
        rescued: What that search has to find: a fit, and at most a share of beams through walls,
        sure: and so much less cost than whatever else was found.
    """

    clear: float = 0.5
    usual: float = 0.92
    convincing: float = 0.96
    lost: float = 0.25
    fewest: int = 15
    doubt: float = 4.0
    most: float = 10.0
    widest: tuple[float, float] = (2.5, 0.8)
    through: float = 60.0
    rescue: float = 0.4
    unusual: float = 0.8
    rescued: tuple[float, float] = (0.35, 0.08)
    sure: float = 10.0


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a scan was placed.

    Attributes:
        pose: ``T_anchor_base``.
        information: (3, 3) what scan and belief together say, in the anchor's frame.
        match: The match, or None where the scan told nothing and the belief alone stands.
        belief: The belief that the pose agrees with best.
        error: How far off odometry was, as far as the scan can tell: squared, in variances, for each direction; None
            if it cannot be told.
        usual: Whether the scan fits as well as scans did of late.
    """

    pose: SE2
    information: NDArray[np.float64]
    match: Match | None
    belief: Belief
    error: float | None = None
    usual: bool = True


class LocalMatcher:
    """Places scans in a submap.

    Args:
        config: When to search.
        refining: How matches are refined.
    """

    def __init__(self, config: LocalConfig | None = None, refining: RefineConfig | None = None) -> None:
        expect_kernels(gauss_newton)
        self.config = config or LocalConfig()
        self.refining = refining or RefineConfig()
        self._usual_fit = 0.0
        self._tables: Tables | None = None
        self._tables_of: tuple[int, int] = (-1, -1)

    def place(self, scan: Prepared, surface: CellMap, key: tuple[int, int], last: SE2, beliefs: list[Belief]) -> Placed:
        """Place a scan.

        Args:
            scan: The scan.
            surface: Surfaces of the submap.
            key: Changes with the surfaces: number and version of the submap.
            last: ``T_anchor_base`` of the scan before.
            beliefs: What may have happened since, the most credible first.
        """
        config = self.config
        first = beliefs[0]
        if len(scan.points) < config.fewest:
            return self._lost(last, beliefs)
        matches = [self._from(scan, surface, last, first)]
        if not self._plain(matches[0], last, first):
            matches += [self._from(scan, surface, last, belief) for belief in beliefs[1:]]
            found = self._search(scan, surface, key, last, beliefs)
            if found is not None:
                nearest = min(beliefs, key=lambda belief: belief.surprise(last.inverse() @ found))
                weak = nearest.information(last.theta) * 0.05
                matches.append(
                    refine(surface, scan, found, self.refining, prior=found, prior_information=weak)
                )  # fmt: skip
        costs = [self._cost(match, surface, scan, last, beliefs) for match in matches] if len(matches) > 1 else [0.0]
        best = matches[int(np.argmin(costs))]
        step = last.inverse() @ best.pose
        if len(matches) > 1 and self._in_need(best, step, beliefs):
            best = self._rescue(scan, surface, key, last, beliefs, min(costs)) or best
            step = last.inverse() @ best.pose
        belief = min(beliefs, key=lambda belief: belief.surprise(step))
        if best.fit < config.lost:
            return self._lost(last, beliefs)
        usual = best.fit >= config.convincing * self._usual_fit
        self._usual_fit += 0.1 * (best.fit - self._usual_fit)
        surprise = belief.surprise(step)
        weight = min(1.0, config.doubt / surprise) if surprise > 0.0 else 1.0
        together = best.information + weight * belief.information(last.theta)
        return Placed(best.pose, together, best, belief, _odometry_error(best, last, beliefs), usual)

    @staticmethod
    def _lost(last: SE2, beliefs: list[Belief]) -> Placed:
        """Odometry alone stands; without it the robot is left where it was."""
        belief = next((belief for belief in beliefs if belief.odometry), beliefs[0])
        pose = last @ belief.step if belief.odometry else last
        return Placed(pose, belief.information(last.theta), None, belief)

    def _from(self, scan: Prepared, surface: CellMap, last: SE2, belief: Belief) -> Match:
        start = last @ belief.step
        return refine(
            surface, scan, start, self.refining, prior=start, prior_information=belief.information(last.theta)
        )

    def _plain(self, match: Match, last: SE2, belief: Belief) -> bool:
        least = max(self.config.clear, self.config.usual * self._usual_fit)
        return match.fit >= least and belief.surprise(last.inverse() @ match.pose) < self.config.doubt

    def _cost(self, match: Match, surface: CellMap, scan: Prepared, last: SE2, beliefs: list[Belief]) -> float:
        step = last.inverse() @ match.pose
        surprise = min(belief.surprise(step) for belief in beliefs)
        through = seen_through(surface, scan, match.pose)
        return match.data_cost + min(surprise, self.config.most) + self.config.through * through

    def _in_need(self, match: Match, step: SE2, beliefs: list[Belief]) -> bool:
        """Whether to look everywhere: the match is bad, and it contradicts odometry, or more may have happened since
        the last scan than the search looked through."""
        config = self.config
        told = next((belief for belief in beliefs if belief.odometry), None)
        contradicted = told is None or told.surprise(step) > config.doubt
        beyond = any(belief.sigma > _SIGMAS[0] or belief.sigma_turn > _SIGMAS[1] for belief in beliefs)
        return (match.fit < config.rescue and contradicted) or (match.fit < config.unusual * self._usual_fit and beyond)

    def _rescue(
        self, scan: Prepared, surface: CellMap, key: tuple[int, int], last: SE2, beliefs: list[Belief], cost: float
    ) -> Match | None:
        """A match without any belief: the robot was turned or carried, and odometry does not know.  It has to be
        better than the best so far, and than all others, by ``sure``."""
        config = self.config
        fit, through = config.rescued
        tables, points, step = self._tables_for(surface, key), scan.points, 2.0 * step_of(scan)
        points = points[:: max(1, len(points) // _ENOUGH)]
        sector = math.pi / _SECTORS
        found: list[tuple[float, Match]] = []
        for k in range(_SECTORS):
            middle = SE2(last.x, last.y, last.theta + 2.0 * sector * k)
            rough = search(tables, points, middle, Window(config.widest[0], sector, step), fit)
            if rough is None:
                continue
            match = refine(surface, scan, rough.pose, self.refining)
            if match.fit >= fit and seen_through(surface, scan, match.pose) <= through:
                found.append((self._cost(match, surface, scan, last, beliefs), match))
        if not found:
            return None
        least, best = min(found, key=lambda item: item[0])
        others = [worse for worse, match in found if sum(apart(best.pose, match.pose)) > 0.5]
        return best if least + config.sure < min([cost, *others]) else None

    def _tables_for(self, surface: CellMap, key: tuple[int, int]) -> Tables:
        if key != self._tables_of or self._tables is None:
            self._tables, self._tables_of = Tables.of(surface.means), key
        return self._tables

    def _search(
        self, scan: Prepared, surface: CellMap, key: tuple[int, int], last: SE2, beliefs: list[Belief]
    ) -> SE2 | None:
        middle = last @ beliefs[0].step
        across, turn = 0.3, 0.15
        for belief in beliefs:  # wide enough for all that may have happened
            away, turned = apart(middle, last @ belief.step)
            across = max(across, min(away, 2.0) + 2.5 * min(belief.sigma, _SIGMAS[0]))
            turn = max(turn, min(turned, 0.6) + 2.5 * min(belief.sigma_turn, _SIGMAS[1]))
        widest = self.config.widest
        found = search(
            self._tables_for(surface, key),
            scan.points,
            middle,
            Window(min(across, widest[0]), min(turn, widest[1]), step_of(scan)),
        )
        return None if found is None else found.pose


def _odometry_error(match: Match, last: SE2, beliefs: list[Belief]) -> float | None:
    belief = next((belief for belief in beliefs if belief.odometry), None)
    if belief is None:
        return None
    told = last @ belief.step
    off = np.array([match.pose.x - told.x, match.pose.y - told.y, wrap_angle(match.pose.theta - told.theta)])
    expected = np.diag([belief.plain_sigma**2, belief.plain_sigma**2, belief.plain_sigma_turn**2])
    seen = np.linalg.inv(match.information + np.diag([1e-2, 1e-2, 1e-2]))
    return float(off @ np.linalg.solve(expected + seen, off)) / 3.0


def step_of(scan: Prepared, resolution: float = 0.1) -> float:
    """By how much a search may turn from try to try so that far points move by about a cell [rad]."""
    if not len(scan.points):
        return math.radians(1.0)
    far = float(np.percentile(np.linalg.norm(scan.points, axis=1), 80.0))
    return min(max(resolution / max(far, 0.1), math.radians(0.5)), math.radians(3.0))
