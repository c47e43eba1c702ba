"""Where the robot may be by now, before the scan is looked at: odometry as evidence, not as truth.

Odometry may lose its sign, jump, freeze, be scaled wrongly, or be absent.  So it competes with the supposition that the
robot goes on as it did, and it is trusted as far as it agreed with the scans of late.  What is wrong with it all the
time (wheels of another size or distance, a drift to one side) is learnt from the scans and set right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry import SE2, wrap_angle


@dataclass(frozen=True, slots=True)
class MotionConfig:
    """What is believed about motion.

    Attributes:
        odometry_noise: Standard deviation of a step by odometry, at rest [m] and [rad].
        odometry_share: And in proportion to the step.
        acceleration: By which the robot may depart from going on as before [m/s²] and [rad/s²].
        fastest: No robot is faster [m/s]; odometry that says so jumped.
        memory: Weight of what was believed so far about odometry's errors, against the newest.
        distrust: Most by which its deviations are scaled up.
        gains: Standard deviations of odometry's lasting errors before anything was seen: of the scale of its way, of
            the scale of its turns, and of a turn in proportion to the way [rad/m].
        wander: By which these grow with each scan, in proportion.
    """

    odometry_noise: tuple[float, float] = (0.02, 0.015)
    odometry_share: float = 0.1
    acceleration: tuple[float, float] = (0.6, 1.2)
    fastest: float = 3.0
    memory: float = 0.85
    distrust: float = 12.0
    gains: tuple[float, float, float] = (0.1, 0.1, 0.05)
    wander: float = 0.02


@dataclass(frozen=True, slots=True)
class Belief:
    """A supposed motion since the last scan: ``T_last_base``, its standard deviations [m], [rad], and what these would
    be without distrust."""

    step: SE2
    sigma: float
    sigma_turn: float
    odometry: bool
    plain_sigma: float = 0.0
    plain_sigma_turn: float = 0.0

    def information(self, direction: float) -> NDArray[np.float64]:
        """(3, 3) in a frame in which the last pose looks into ``direction`` [rad]; the same for all directions."""
        return np.diag([1.0 / self.sigma**2, 1.0 / self.sigma**2, 1.0 / self.sigma_turn**2])

    def surprise(self, step: SE2) -> float:
        """Half the squared distance of a step from this belief [variances]."""
        turn = float(wrap_angle(step.theta - self.step.theta))
        away = self.step.distance(step)
        return 0.5 * ((away / self.sigma) ** 2 + (turn / self.sigma_turn) ** 2)


class Motion:
    """Predicts steps, and learns how far odometry can be trusted.

    Args:
        config: What is believed.
    """

    def __init__(self, config: MotionConfig | None = None) -> None:
        self.config = config or MotionConfig()
        self.twist: NDArray[np.float64] = np.zeros(3)
        self.distrust = 1.0
        self._gains: NDArray[np.float64] = np.array([1.0, 1.0, 0.0])  # of way and turn, and turn by way
        self._gains_covariance: NDArray[np.float64] = np.diag(np.square(self.config.gains))
        self._time_ns: int | None = None
        self._seen_ns = 0  # when a scan last told where the robot is
        self._odometry: SE2 | None = None

    def beliefs(self, time_ns: int, odometry: SE2 | None) -> list[Belief]:
        """What may have happened since the last scan, the most credible first; empty before the first."""
        if self._time_ns is None:
            return []
        config = self.config
        seconds = max((time_ns - self._seen_ns) * 1e-9, 1e-3)
        found = []
        lasting = min(seconds, 2.0)
        steady = SE2.exp(self.twist * lasting)
        if odometry is not None and self._odometry is not None:
            step = self._set_right(self._odometry.inverse() @ odometry)
            length, turn = math.hypot(step.x, step.y), abs(step.theta)
            if length <= config.fastest * max(seconds, 0.2) + 0.5:
                share = config.odometry_share
                sigma = config.odometry_noise[0] + share * length
                sigma_turn = config.odometry_noise[1] + share * turn + 0.05 * length
                more = self.distrust - 1.0
                expected = math.hypot(steady.x, steady.y)
                frozen = expected if 2.0 * length < expected else 0.0  # if it errs, then by all that it does not tell
                wide, wide_turn = sigma + more * (sigma + share * frozen), sigma_turn + more * sigma_turn
                found.append(Belief(step, wide, wide_turn, True, sigma, sigma_turn))
        grown = 0.5 * lasting * lasting
        speed = math.hypot(self.twist[0], self.twist[1])
        sigma = min(0.02 + grown * config.acceleration[0] + 0.1 * speed * lasting, 1.5)
        sigma_turn = min(0.02 + grown * config.acceleration[1] + 0.1 * abs(self.twist[2]) * lasting, 1.0)
        found.append(Belief(steady, sigma, sigma_turn, False))
        if self.distrust > 3.0:
            found.sort(key=lambda belief: belief.sigma)
        return found

    def learn(self, time_ns: int, odometry: SE2 | None, step: SE2 | None, told: bool, error: float | None) -> None:
        """Take in what happened.

        Args:
            time_ns: Of the scan [ns].
            odometry: At the scan.
            step: ``T_last_base`` as found, None for the first scan.
            told: Whether the scan told it; else it was only believed.
            error: How far off odometry was for its plain deviations, squared and in variances for each direction; None
                if that cannot be told.
        """
        if told and error is not None and step is not None and odometry is not None and self._odometry is not None:
            self._learn_gains(self._odometry.inverse() @ odometry, step)
        known = told or (odometry is not None and self._odometry is not None)
        if step is not None:
            seconds = max((time_ns - self._seen_ns) * 1e-9, 1e-3)
            if not known:
                self.twist = 0.5 * self.twist
            elif seconds < 5.0:
                share = 1.0 if seconds > 0.2 else max(0.2, seconds / 0.2)
                self.twist = self.twist + share * (step.log() / seconds - self.twist)
            else:
                self.twist = np.zeros(3)
            if error is not None:
                memory = self.config.memory
                newest = min(error, 4.0 * self.config.distrust**2)
                squared = memory * self.distrust**2 + (1.0 - memory) * newest
                self.distrust = min(max(1.0, math.sqrt(squared)), self.config.distrust)
        self._time_ns, self._odometry = time_ns, odometry
        if known or step is None:
            self._seen_ns = time_ns

    def _set_right(self, step: SE2) -> SE2:
        """Odometry's step without its lasting errors."""
        vx, vy, turn = step.log()
        way, turning, veering = self._gains
        return SE2.exp((way * vx, way * vy, turning * turn + veering * vx))

    def _learn_gains(self, told: SE2, found: SE2) -> None:
        """A step of a Kalman filter; what surprises much counts little: odometry jumped, or the match is false."""
        vx, _, turn = told.log()
        seen = found.log()
        covariance = self._gains_covariance + np.diag(np.square(np.array(self.config.gains) * self.config.wander))
        at_rest, share = self.config.odometry_noise, self.config.odometry_share
        for value, row, noise in (
            (seen[0], np.array([vx, 0.0, 0.0]), at_rest[0] + share * abs(vx)),
            (seen[2], np.array([0.0, turn, vx]), at_rest[1] + share * abs(turn) + 0.05 * abs(vx)),
        ):
            off = value - row @ self._gains
            variance = row @ covariance @ row + noise**2
            variance *= max(1.0, off * off / (4.0 * variance))
            gain = covariance @ row / variance
            self._gains = self._gains + gain * off
            covariance = covariance - np.outer(gain, row @ covariance)
        limits = np.square(self.config.gains)
        self._gains_covariance = covariance * min(1.0, float(np.min(limits / np.diag(covariance))))

    def forget(self, time_ns: int, odometry: SE2 | None) -> None:
        """Begin anew at a scan whose place is not known from what was before."""
        self.twist = np.zeros(3)
        self._time_ns, self._seen_ns, self._odometry = time_ns, time_ns, odometry

    def set_back(self, time_ns: int) -> None:
        """The clock shows ``time_ns`` [ns] now; how long the last step took is taken for half a second."""
        self._time_ns = self._seen_ns = time_ns - 500_000_000
