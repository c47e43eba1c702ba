"""What pace an arm may have beside people: by zones, by separation, or by how hard it would touch them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from roboyard.compute import expect_kernels
from roboyard.config import Config, parameter
from roboyard.control.trajectories import sample_ahead
from roboyard.errors import ConfigError
from roboyard.geometry.arrays import Array, Flags
from roboyard.kinematics import Chain
from roboyard.people.skeleton import segment_name
from roboyard.safety import separation as ssm
from roboyard.safety.capsules import LinkCapsules
from roboyard.safety.contact_limits import contact_speeds
from roboyard.safety.guiding import guide
from roboyard.safety.nearness import SWINGING, BodyCapsules, nearness
from roboyard.safety.paces import Heeded, Seen, fill_paces, find_spare, least_spare, paces_on
from roboyard.safety.separation import SeparationRules

SAMPLES = 10
"""Of the way ahead."""
_COUNTED = np.arange(SAMPLES, dtype=np.float64)
_LEAST = 0.1
"""How far ahead it looks at least, as time at full pace [s]."""


class Mode(Enum):
    """How people are kept safe.

    `OFF`: as if nobody were there.  `ZONES`: by how far they are from the robot's base.  `SSM`: speed and separation
    monitoring.  `PFL`: power and force limiting: nearer than that only so fast that a touch is none too hard.
    """

    OFF = "off"
    ZONES = "zones"
    SSM = "ssm"
    PFL = "pfl"


class GuardConfig(Config):
    """How an arm behaves beside people."""

    delay: float = parameter(
        0.08, unit="s", low=0.0, high=5.0, doc="Time from a judgement until the arm begins to brake by it."
    )
    margin: float = parameter(
        0.05, unit="m", low=0.0, high=2.0, doc="Additional distance, for what happens between the judged moments."
    )
    swing: float = parameter(
        0.35,
        unit="m",
        low=0.0,
        high=2.0,
        doc="Distance by which a foot may swing ahead of a person who walks, faster than people are assumed to be.",
    )
    slow_radius: float = parameter(
        3.0, unit="m", low=0.0, high=100.0, doc="Radius of the zone about the base in which the arm moves at slow_pace."
    )
    stop_radius: float = parameter(
        1.8, unit="m", low=0.0, high=100.0, doc="Radius of the zone about the base in which the arm stands."
    )
    slow_pace: float = parameter(0.25, low=0.0, high=1.0, doc="Pace in the slow zone.")
    hysteresis: float = parameter(
        0.1, unit="m", low=0.0, high=10.0, doc="Additional distance at which somebody has left a zone."
    )
    force_share: float = parameter(
        0.8, low=0.01, high=1.0, doc="Share of the limits of force and pressure that is used."
    )
    restart_pace: float = parameter(
        0.1, low=0.0, high=1.0, doc="Pace that must be allowed for restart_time before a stop ends."
    )
    restart_time: float = parameter(
        0.3, unit="s", low=0.0, high=60.0, doc="Time for which restart_pace must be allowed before a stop ends."
    )
    rise: float = parameter(2.0, unit="1/s", low=0.01, high=1e3, doc="Rate at which the pace rises again.")
    horizon: float = parameter(1.5, unit="s", low=0.1, high=10.0, doc="Farthest look ahead, as time at full pace.")

    def validate(self) -> None:
        """Check the order of the zones."""
        if self.slow_radius < self.stop_radius:
            raise ConfigError(
                f"slow_radius {self.slow_radius:g} m within stop_radius {self.stop_radius:g} m", valid="the larger one"
            )


_USUAL, _RULES = GuardConfig(), SeparationRules()


class Motion(NamedTuple):
    """Where the joints are, and what they will do at full pace.

    Attributes:
        q: (n,) measured positions.
        velocity: (n,) measured speeds.
        ahead: Gives positions and speeds (k, n) at full pace, so many seconds (k,) farther on the way; None where
            nobody knows: then the joints are taken to go on as they do.
    """

    q: Array
    velocity: Array
    ahead: Callable[[Array], tuple[Array, Array]] | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an arm may do.

    Attributes:
        pace: 0 to 1.
        stopped: Whether this is a protective stop.
        separation: Of the pair of parts that has least to spare [m]; infinite where nobody is.
        protective: The distance which that pair should keep at the present speeds [m].
        part: The robot's part.
        person: Who.
        body_part: And their part.
        reason: Why the pace is what it is; empty at full pace.
    """

    pace: float
    stopped: bool = False
    separation: float = math.inf
    protective: float = 0.0
    part: str = ""
    person: str = ""
    body_part: str = ""
    reason: str = ""


def _moments(end: float) -> Array:
    """(SAMPLES,) moments from now to ``end`` [s]."""
    times: Array = _COUNTED * (end / (SAMPLES - 1))
    times[-1] = end
    return times


class PersonGuard:
    """Judges again and again.

    Args:
        chain: The arm's joints.
        capsules: Its parts.
        deceleration: (n,) what its joints brake with [rad/s² or m/s²].
        mass: That an impact meets [kg], see `contact_speeds`.
        config: See there.
        rules: See there.

    Attributes:
        mode: May change.
    """

    def __init__(
        self, chain: Chain, capsules: LinkCapsules, deceleration: Array, mass: float,
        mode: Mode = Mode.SSM, config: GuardConfig = _USUAL, rules: SeparationRules = _RULES,
    ) -> None:  # fmt: skip
        expect_kernels(fill_paces, find_spare, sample_ahead)
        self.mode = mode
        self._chain, self._capsules = chain, capsules.moving()
        self._deceleration, self._mass = deceleration, mass
        self.config, self.rules = config, rules
        self._known: tuple[tuple[str, ...], Array, Array] = ((), np.zeros(0), np.zeros((0, 0)))
        self._pace, self._stopped, self._well_ns, self._zone = 1.0, False, -1, 0
        self._last_ns = -1

    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        return {"pace": self._pace, "stopped": self._stopped, "well_ns": self._well_ns, "zone": self._zone,
                "last_ns": self._last_ns}  # fmt: skip

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        self._pace, self._stopped, self._well_ns = state["pace"], state["stopped"], state["well_ns"]
        self._zone, self._last_ns = state["zone"], state["last_ns"]

    def stop(self, now_ns: int, reason: str) -> Verdict:
        """A protective stop for another reason: a sensor that is silent."""
        return self._settled(now_ns, 0.0, Verdict(0.0, reason=reason))

    def judge(
        self, now_ns: int, motion: Motion, people: BodyCapsules, age: float, *,
        handover: bool = False, guided: bool = False,
    ) -> Verdict:  # fmt: skip
        """What pace is allowed from now on.

        Args:
            now_ns: Time [ns].
            motion: The arm's.
            people: In the base of the chain, as they were seen; nobody: none.
            age: How long ago they were [s].
            handover: Somebody takes or gives a thing by intention: touching is allowed, within the limits.
            guided: Somebody guides it by hand: the same holds for them, and for nobody else.
        """
        if not people.parts:
            self._zone = 0
            return self._settled(now_ns, 1.0, Verdict(1.0))
        if self.rules.person_speed == 0.0:
            people = people.striding()
        told = self._told(motion, people)
        if self.mode is Mode.OFF:
            return self._settled(now_ns, 1.0, told)
        gentle = np.full(len(people.parts), handover or self.mode is Mode.PFL)
        if guided:
            gentle |= self._guides(motion, people)
        zones = self.mode is Mode.ZONES
        allowed, reason = self._by_zone(people, ~gentle) if zones else (1.0, "")
        counted = gentle if zones else np.ones_like(gentle)
        if counted.any():
            allowed, reason = min((allowed, reason), self._by_way(motion, people, age, counted, gentle))
        return self._settled(now_ns, allowed, replace(told, reason=reason if allowed < 1.0 else ""))

    # -- separation ----------------------------------------------------------------------------------------------------
    def _look_ahead(self, motion: Motion) -> tuple[float, Array]:
        """How long the arm takes to stop from full pace on the way ahead, and the moments to look at."""
        stopping = float(ssm.stopping_time(motion.velocity, self._deceleration))
        if motion.ahead is not None:
            speeds = motion.ahead(_moments(self.config.horizon))[1]
            stopping = max(stopping, float(ssm.stopping_time(speeds, self._deceleration).max()))
        return stopping, _moments(min(self.config.horizon, max(_LEAST, self.config.delay + stopping)))

    def _told(self, motion: Motion, people: BodyCapsules) -> Verdict:
        """The pair of parts that has least to spare now, at the speeds of now."""
        stopping = float(ssm.stopping_time(motion.velocity, self._deceleration))
        i, j, gap, protective = least_spare(
            self._chain, self._capsules, motion.q, motion.velocity, stopping, people, Seen.of(self.rules)
        )
        return Verdict(1.0, False, gap, protective, self._capsules.links[i], people.people[j], people.parts[j])

    def _guides(self, motion: Motion, people: BodyCapsules) -> Flags:
        """(b,) whose parts are those of who guides the arm by hand."""
        near = nearness(self._chain, self._capsules, motion.q[None], motion.velocity[None], people)
        gaps = sorted(zip(near.gap[0].min(axis=0).tolist(), people.people, strict=True), reverse=True)
        who = guide({person: gap for gap, person in gaps})  # the nearest part of each is the last
        return np.array([person == who for person in people.people])

    def _by_way(
        self, motion: Motion, people: BodyCapsules, age: float, counted: Flags, gentle: Flags
    ) -> tuple[float, str]:
        """The pace of now, so that everywhere ahead what is allowed there can be kept.

        ``counted`` (b,) says whose parts count, ``gentle`` (b,) which may be touched within the limits.
        """
        stopping, times = self._look_ahead(motion)
        if motion.ahead is not None:
            q, velocity = motion.ahead(times)
        else:
            q, velocity = motion.q[None] + np.outer(times, motion.velocity), np.tile(motion.velocity, (len(times), 1))
        found = paces_on(
            self._chain, self._capsules, q, velocity, ssm.stopping_time(velocity, self._deceleration), people,
            Seen.of(self.rules, age + self.config.delay, self.config.margin),
            Heeded(counted, gentle, *self._limits_of(people.parts)),
        )  # fmt: skip
        least = found.least.copy()  # between two moments what the stricter of them allows
        least[:-1] = np.minimum(least[:-1], found.least[1:])
        pace, place = ssm.pace_to_brake(least, times, stopping, self.config.delay)
        if pace >= 1.0:
            return 1.0, ""
        if found.least[place] > least[place]:
            place += 1
        i, j = found.pair[place].tolist()
        who = f"{people.people[j]}'s {people.parts[j].replace('_', ' ')}"
        ahead = f" in {times[place]:.2f} s" if place else ""
        return pace, f"{self._capsules.links[i]} {found.gap[place]:.2f} m from {who}{ahead}"

    def _limits_of(self, parts: tuple[str, ...]) -> tuple[Array, Array]:
        """How far each part may swing ahead (b,) [m], and how fast it and the robot's may meet (n, b) [m/s]."""
        if self._known[0] != parts:
            swing = np.array([self.config.swing if segment_name(part) in SWINGING else 0.0 for part in parts])
            touch = contact_speeds(parts, self._capsules.radii, self._mass, self.config.force_share)
            self._known = (parts, swing, touch)
        return self._known[1], self._known[2]

    # -- zones ---------------------------------------------------------------------------------------------------------
    def _by_zone(self, people: BodyCapsules, counted: Flags) -> tuple[float, str]:
        """By the distance on the floor between the robot's base and the nearest part of anybody who counts."""
        if not counted.any():
            self._zone = 0
            return 1.0, ""
        start, along = people.ends[:, 0, :2], people.ends[:, 1, :2] - people.ends[:, 0, :2]
        share = -(start * along).sum(axis=1) / np.maximum((along * along).sum(axis=1), 1e-12)
        distances = np.linalg.norm(start + np.clip(share, 0.0, 1.0)[:, None] * along, axis=1) - people.radii
        distances[~counted] = np.inf
        nearest = int(np.argmin(distances))
        radii = (self.config.slow_radius, self.config.stop_radius)
        edges = (radius + (self.config.hysteresis if self._zone > k else 0.0) for k, radius in enumerate(radii))
        self._zone = sum(float(distances[nearest]) < edge for edge in edges)
        pace = (1.0, self.config.slow_pace, 0.0)[self._zone]
        zone = ("", "slow", "stop")[self._zone]
        return pace, f"{people.people[nearest]} {distances[nearest]:.2f} m from the base, zone {zone}"

    # -- stops and restarts --------------------------------------------------------------------------------------------
    def _settled(self, now_ns: int, allowed: float, verdict: Verdict) -> Verdict:
        """With the pace that goes up slowly, and a stop that lasts until it is well again for a while."""
        since = 0.0 if self._last_ns < 0 else (now_ns - self._last_ns) * 1e-9
        self._last_ns = now_ns
        if allowed <= 0.0:
            self._stopped, self._well_ns = True, -1
        elif self._stopped:
            well = allowed >= min(self.config.restart_pace, 1.0)
            self._well_ns = -1 if not well else now_ns if self._well_ns < 0 else self._well_ns
            if well and (now_ns - self._well_ns) * 1e-9 >= self.config.restart_time:
                self._stopped = False
        self._pace = 0.0 if self._stopped else min(allowed, self._pace + self.config.rise * since)
        return replace(verdict, pace=self._pace, stopped=self._stopped)
