"""Speed scaling of an arm beside people: by zones, by speed and separation monitoring (SSM), or by power and force
limiting (PFL).

Manually driven arms take their speed scaling from `SpeedScalingWatchdog`, which gives zero while the monitor is silent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from roboyard.compute import expect_kernels
from roboyard.config import Config, parameter
from roboyard.control.trajectory import sample_lookahead
from roboyard.errors import ConfigError
from roboyard.geometry.arrays import Array, Flags
from roboyard.kinematics import Chain
from roboyard.people.skeleton import segment_name
from roboyard.safety.collaborative.capsule_distance import compute_capsule_distances
from roboyard.safety.collaborative.capsules import SWINGING_PARTS, LinkCapsules, PersonCapsules
from roboyard.safety.collaborative.contact_limits import max_contact_speeds
from roboyard.safety.collaborative.hand_guiding import find_guiding_person
from roboyard.safety.collaborative.separation import (
    PartSelection,
    PersonMotionModel,
    SeparationParameters,
    compute_speed_scalings,
    compute_speed_scalings_kernel,
    find_critical_pair,
    find_critical_pair_kernel,
    speed_scaling_for_braking,
    stopping_time,
)

N_LOOKAHEAD_SAMPLES = 10
"""Number of sampled moments of the planned motion."""
_SAMPLE_INDICES = np.arange(N_LOOKAHEAD_SAMPLES, dtype=np.float64)
_MIN_LOOKAHEAD_TIME = 0.1
"""Smallest lookahead, as time at full speed [s]."""


class CollaborativeMode(Enum):
    """Modes of collaborative operation.

    `OFF`: people are ignored. `ZONES`: by people's distance from the robot's base. `SSM`: speed and separation
    monitoring. `PFL`: power and force limiting: closer than the separation distance only at speeds at which contacts
    keep the limits.
    """

    OFF = "off"
    ZONES = "zones"
    SSM = "ssm"
    PFL = "pfl"


class CollaborativeSafetyConfig(Config):
    """Configuration of `CollaborativeSafetyMonitor`."""

    reaction_delay: float = parameter(
        0.08, unit="s", low=0.0, high=5.0, doc="Time from a decision until the arm begins to brake by it."
    )
    margin: float = parameter(
        0.05, unit="m", low=0.0, high=2.0, doc="Additional distance, for motion between the sampled moments."
    )
    foot_swing_margin: float = parameter(
        0.35,
        unit="m",
        low=0.0,
        high=2.0,
        doc="Distance by which a foot may swing ahead of a walking person, faster than the assumed speed.",
    )
    slow_radius: float = parameter(
        3.0,
        unit="m",
        low=0.0,
        high=100.0,
        doc="Radius of the zone around the base in which the arm moves at slow_speed_scaling.",
    )
    stop_radius: float = parameter(
        1.8, unit="m", low=0.0, high=100.0, doc="Radius of the zone around the base in which the arm stops."
    )
    slow_speed_scaling: float = parameter(0.25, low=0.0, high=1.0, doc="Speed scaling in the slow zone.")
    hysteresis: float = parameter(
        0.1, unit="m", low=0.0, high=10.0, doc="Additional distance at which a person has left a zone."
    )
    contact_limit_fraction: float = parameter(
        0.8, low=0.01, high=1.0, doc="Fraction of the limits of force and pressure that is used."
    )
    restart_speed_scaling: float = parameter(
        0.1, low=0.0, high=1.0, doc="Speed scaling that must be allowed for restart_time before a stop ends."
    )
    restart_time: float = parameter(
        0.3,
        unit="s",
        low=0.0,
        high=60.0,
        doc="Time for which restart_speed_scaling must be allowed before a stop ends.",
    )
    recovery_rate: float = parameter(
        2.0, unit="1/s", low=0.01, high=1e3, doc="Rate at which the speed scaling rises again."
    )
    lookahead_time: float = parameter(
        1.5, unit="s", low=0.1, high=10.0, doc="Largest lookahead, as time at full speed."
    )

    def validate(self) -> None:
        """Check the order of the zones."""
        if self.slow_radius < self.stop_radius:
            raise ConfigError(
                f"slow_radius of {self.slow_radius:g} m is smaller than stop_radius of {self.stop_radius:g} m",
                valid="slow_radius at least stop_radius",
            )


_DEFAULT_CONFIG, _DEFAULT_SEPARATION = CollaborativeSafetyConfig(), SeparationParameters()


class PlannedMotion(NamedTuple):
    """Measured state of the joints and their planned motion at full speed.

    Attributes:
        q: (n,) measured positions.
        velocity: (n,) measured velocities.
        predict: Gives positions and velocities (k, n) at full speed, for times (k,) from now on along the path [s];
            None where the motion is unknown: then the joints are assumed to keep their velocities.
    """

    q: Array
    velocity: Array
    predict: Callable[[Array], tuple[Array, Array]] | None = None


@dataclass(frozen=True, slots=True)
class SpeedScalingDecision:
    """Allowed speed scaling of an arm.

    Attributes:
        speed_scaling: 0 to 1.
        is_stopped: Whether this is a protective stop.
        min_separation: Distance of the pair of parts with the least margin [m]; infinite without people.
        protective_distance: The distance which that pair should keep at the present speeds [m].
        robot_link: Robot link of that pair.
        person: Name of the person of that pair.
        body_part: Body part of that pair.
        reason: Reason of the speed scaling; empty at full speed.
    """

    speed_scaling: float
    is_stopped: bool = False
    min_separation: float = math.inf
    protective_distance: float = 0.0
    robot_link: str = ""
    person: str = ""
    body_part: str = ""
    reason: str = ""


def _sample_times(end: float) -> Array:
    """Return `N_LOOKAHEAD_SAMPLES` times from 0 to ``end`` [s]."""
    times: Array = _SAMPLE_INDICES * (end / (N_LOOKAHEAD_SAMPLES - 1))
    times[-1] = end
    return times


class CollaborativeSafetyMonitor:
    """Decides periodically on the speed scaling of an arm.

    Args:
        chain: The arm's joints.
        capsules: Capsules on the robot's links.
        deceleration: (n,) decelerations of the joints in a stop [rad/s² or m/s²].
        effective_mass: Effective mass of the robot in a contact [kg], see `max_contact_speeds`.
        mode: Mode of collaborative operation.
        config: Zones, margins and restart.
        separation: Parameters of the protective separation distance.

    Attributes:
        mode: Mode of collaborative operation; it may be changed.
    """

    def __init__(
        self,
        chain: Chain,
        capsules: LinkCapsules,
        deceleration: Array,
        effective_mass: float,
        mode: CollaborativeMode = CollaborativeMode.SSM,
        config: CollaborativeSafetyConfig = _DEFAULT_CONFIG,
        separation: SeparationParameters = _DEFAULT_SEPARATION,
    ) -> None:
        expect_kernels(compute_speed_scalings_kernel, find_critical_pair_kernel, sample_lookahead)
        self.mode = mode
        self._chain, self._capsules = chain, capsules.without_fixed()
        self._deceleration, self._effective_mass = deceleration, effective_mass
        self.config, self.separation = config, separation
        self._part_limits_cache: tuple[tuple[str, ...], Array, Array] = ((), np.zeros(0), np.zeros((0, 0)))
        self._speed_scaling, self._is_stopped, self._clear_since_ns, self._zone = 1.0, False, -1, 0
        self._last_ns = -1

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return {
            "pace": self._speed_scaling,
            "stopped": self._is_stopped,
            "well_ns": self._clear_since_ns,
            "zone": self._zone,
            "last_ns": self._last_ns,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        self._speed_scaling, self._is_stopped, self._clear_since_ns = state["pace"], state["stopped"], state["well_ns"]
        self._zone, self._last_ns = state["zone"], state["last_ns"]

    def stop(self, now_ns: int, reason: str) -> SpeedScalingDecision:
        """Return a protective stop for another reason, such as a silent sensor."""
        return self._apply_recovery(now_ns, 0.0, SpeedScalingDecision(0.0, reason=reason))

    def update(
        self, now_ns: int, motion: PlannedMotion, people: PersonCapsules, age: float, *,
        is_handover: bool = False, is_hand_guided: bool = False,
    ) -> SpeedScalingDecision:  # fmt: skip
        """Return the speed scaling that is allowed from now on.

        Args:
            now_ns: Time [ns].
            motion: The arm's.
            people: In the base frame of the chain, as they were measured; without parts: no person is there.
            age: Age of that measurement [s].
            is_handover: Whether a person takes or gives an object by intention: contacts are allowed within the limits.
            is_hand_guided: Whether a person guides the arm by hand: contacts with that person only are allowed within
                the limits.
        """
        if not people.parts:
            self._zone = 0
            return self._apply_recovery(now_ns, 1.0, SpeedScalingDecision(1.0))
        if self.separation.person_speed == 0.0:
            people = people.with_pelvis_velocity()
        critical_pair = self._critical_pair(motion, people)
        if self.mode is CollaborativeMode.OFF:
            return self._apply_recovery(now_ns, 1.0, critical_pair)
        allows_contact = np.full(len(people.parts), is_handover or self.mode is CollaborativeMode.PFL)
        if is_hand_guided:
            allows_contact |= self._is_guiding(motion, people)
        is_zone_mode = self.mode is CollaborativeMode.ZONES
        allowed, reason = self._scaling_by_zone(people, ~allows_contact) if is_zone_mode else (1.0, "")
        is_counted = allows_contact if is_zone_mode else np.ones_like(allows_contact)
        if is_counted.any():
            allowed, reason = min(
                (allowed, reason), self._scaling_along_path(motion, people, age, is_counted, allows_contact)
            )
        return self._apply_recovery(now_ns, allowed, replace(critical_pair, reason=reason if allowed < 1.0 else ""))

    # -- separation ----------------------------------------------------------------------------------------------------
    def _lookahead_times(self, motion: PlannedMotion) -> tuple[float, Array]:
        """Return the longest time that the arm takes to stop from full speed, and the moments ahead to check [s]."""
        stop_time = float(stopping_time(motion.velocity, self._deceleration))
        if motion.predict is not None:
            speeds = motion.predict(_sample_times(self.config.lookahead_time))[1]
            stop_time = max(stop_time, float(stopping_time(speeds, self._deceleration).max()))
        return stop_time, _sample_times(
            min(self.config.lookahead_time, max(_MIN_LOOKAHEAD_TIME, self.config.reaction_delay + stop_time))
        )

    def _critical_pair(self, motion: PlannedMotion, people: PersonCapsules) -> SpeedScalingDecision:
        """Return the pair of parts with the smallest margin at the present speeds."""
        stop_time = float(stopping_time(motion.velocity, self._deceleration))
        i, j, distance, protective_distance = find_critical_pair(
            self._chain,
            self._capsules,
            motion.q,
            motion.velocity,
            stop_time,
            people,
            PersonMotionModel.from_parameters(self.separation),
        )
        return SpeedScalingDecision(
            1.0, False, distance, protective_distance, self._capsules.links[i], people.people[j], people.parts[j]
        )

    def _is_guiding(self, motion: PlannedMotion, people: PersonCapsules) -> Flags:
        """Return which capsules (b,) belong to the person who guides the arm by hand."""
        distances = compute_capsule_distances(
            self._chain, self._capsules, motion.q[None], motion.velocity[None], people
        )
        person_distances = sorted(
            zip(distances.distance[0].min(axis=0).tolist(), people.people, strict=True), reverse=True
        )
        guiding_person = find_guiding_person(
            {person: distance for distance, person in person_distances}
        )  # the nearest part of each is the last
        return np.array([person == guiding_person for person in people.people])

    def _scaling_along_path(
        self, motion: PlannedMotion, people: PersonCapsules, age: float, is_counted: Flags, allows_contact: Flags
    ) -> tuple[float, str]:
        """Return the largest present speed scaling from which the scaling allowed at every moment ahead can be reached.

        ``is_counted`` (b,) states which person capsules are monitored, ``allows_contact`` (b,) which of them may be
        touched within the contact limits.
        """
        stop_time, times = self._lookahead_times(motion)
        if motion.predict is not None:
            q, velocity = motion.predict(times)
        else:
            q, velocity = motion.q[None] + np.outer(times, motion.velocity), np.tile(motion.velocity, (len(times), 1))
        scalings = compute_speed_scalings(
            self._chain, self._capsules, q, velocity, stopping_time(velocity, self._deceleration), people,
            PersonMotionModel.from_parameters(self.separation, age + self.config.reaction_delay, self.config.margin),
            PartSelection(is_counted, allows_contact, *self._part_limits(people.parts)),
        )  # fmt: skip
        interval_scalings = scalings.scaling.copy()  # between two moments the smaller scaling applies
        interval_scalings[:-1] = np.minimum(interval_scalings[:-1], scalings.scaling[1:])
        scaling, sample_index = speed_scaling_for_braking(
            interval_scalings, times, stop_time, self.config.reaction_delay
        )
        if scaling >= 1.0:
            return 1.0, ""
        if scalings.scaling[sample_index] > interval_scalings[sample_index]:
            sample_index += 1
        i, j = scalings.pair[sample_index].tolist()
        body_part = f"{people.people[j]}'s {people.parts[j].replace('_', ' ')}"
        time_text = f" in {times[sample_index]:.2f} s" if sample_index else ""
        return scaling, f"{self._capsules.links[i]} {scalings.distance[sample_index]:.2f} m from {body_part}{time_text}"

    def _part_limits(self, parts: tuple[str, ...]) -> tuple[Array, Array]:
        """Return swing margins of body parts (b,) [m], and contact speeds with the robot's capsules (n, b) [m/s]."""
        if self._part_limits_cache[0] != parts:
            swing_margin = np.array(
                [self.config.foot_swing_margin if segment_name(part) in SWINGING_PARTS else 0.0 for part in parts]
            )
            max_contact_speed = max_contact_speeds(
                parts, self._capsules.radii, self._effective_mass, self.config.contact_limit_fraction
            )
            self._part_limits_cache = (parts, swing_margin, max_contact_speed)
        return self._part_limits_cache[1], self._part_limits_cache[2]

    # -- zones ---------------------------------------------------------------------------------------------------------
    def _scaling_by_zone(self, people: PersonCapsules, is_counted: Flags) -> tuple[float, str]:
        """Return the scaling for the horizontal distance between the robot's base and the nearest monitored capsule."""
        if not is_counted.any():
            self._zone = 0
            return 1.0, ""
        start, axis = people.ends[:, 0, :2], people.ends[:, 1, :2] - people.ends[:, 0, :2]
        fraction = -(start * axis).sum(axis=1) / np.maximum((axis * axis).sum(axis=1), 1e-12)
        distances = np.linalg.norm(start + np.clip(fraction, 0.0, 1.0)[:, None] * axis, axis=1) - people.radii
        distances[~is_counted] = np.inf
        nearest = int(np.argmin(distances))
        radii = (self.config.slow_radius, self.config.stop_radius)
        edges = (radius + (self.config.hysteresis if self._zone > k else 0.0) for k, radius in enumerate(radii))
        self._zone = sum(float(distances[nearest]) < edge for edge in edges)
        scaling = (1.0, self.config.slow_speed_scaling, 0.0)[self._zone]
        zone = ("", "slow", "stop")[self._zone]
        return scaling, f"{people.people[nearest]} {distances[nearest]:.2f} m from the base, zone {zone}"

    # -- stops and restarts --------------------------------------------------------------------------------------------
    def _apply_recovery(self, now_ns: int, allowed: float, decision: SpeedScalingDecision) -> SpeedScalingDecision:
        """Return the decision with a slowly rising speed scaling, and with a stop until the restart conditions hold."""
        elapsed = 0.0 if self._last_ns < 0 else (now_ns - self._last_ns) * 1e-9
        self._last_ns = now_ns
        if allowed <= 0.0:
            self._is_stopped, self._clear_since_ns = True, -1
        elif self._is_stopped:
            is_clear = allowed >= min(self.config.restart_speed_scaling, 1.0)
            self._clear_since_ns = -1 if not is_clear else now_ns if self._clear_since_ns < 0 else self._clear_since_ns
            if is_clear and (now_ns - self._clear_since_ns) * 1e-9 >= self.config.restart_time:
                self._is_stopped = False
        self._speed_scaling = (
            0.0 if self._is_stopped else min(allowed, self._speed_scaling + self.config.recovery_rate * elapsed)
        )
        return replace(decision, speed_scaling=self._speed_scaling, is_stopped=self._is_stopped)


class SpeedScalingWatchdog:
    """The speed scaling that the safety monitor allowed last; zero while the monitor is silent.

    Args:
        timeout: Time without a message after which the monitor is silent [s].
    """

    def __init__(self, timeout: float) -> None:
        self._timeout_ns = round(timeout * 1e9)
        self._scaling, self._updated_ns = 0.0, -(10**18)

    def set_scaling(self, scaling: float, now_ns: int) -> None:
        """Take the scaling of the monitor; a value that is not from 0 to 1 allows no motion."""
        self._scaling, self._updated_ns = (scaling if 0.0 <= scaling <= 1.0 else 0.0), now_ns

    def scaling(self, now_ns: int) -> float:
        """Return the allowed speed scaling, from 0 to 1."""
        return self._scaling if now_ns - self._updated_ns <= self._timeout_ns else 0.0

    def save_state(self) -> tuple[float, int]:
        """Return the state as plain data."""
        return self._scaling, self._updated_ns

    def load_state(self, saved: tuple[float, int]) -> None:
        """Restore what `save_state` returned."""
        self._scaling, self._updated_ns = saved


def extrapolate_motion(q: Array, velocity: Array) -> Callable[[Array], tuple[Array, Array]]:
    """Return the motion of joints that keep the commanded velocities, for `PlannedMotion.predict`.

    Args:
        q: (n,) joint positions.
        velocity: (n,) commanded joint velocities.
    """

    def predict(times: Array) -> tuple[Array, Array]:
        return q[None] + np.outer(times, velocity), np.tile(velocity, (len(times), 1))

    return predict
