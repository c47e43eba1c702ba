"""Following of joint trajectories at a pace that can change, always on their path and within the joints' limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from roboyard.control.limits import JointBounds
from roboyard.control.profile import advance_on_profile, greatest_profile, no_efforts
from roboyard.control.trajectories import JointSample, Trajectory
from roboyard.errors import InputError
from roboyard.geometry.arrays import Array

Verdict = Literal["moving", "done", "path violated", "goal violated"]
_STEP = 0.005
"""Of the places at which limits are looked after [s]."""
_LEAST, _MOST = 8, 20_000
"""Such places between two way points, and in all."""
_ROUNDING = 1e-6
_INSTANT = 1e-4
"""What an acceleration changes in this time is no jump of speed [s]."""


@dataclass(frozen=True, slots=True)
class Tolerances:
    """How far joints may be off, (n,) each [rad or m]; infinite: as far as they like.

    Attributes:
        path: On the way.
        goal: At the end.
        goal_time: How long after the end they may still be on their way there [s].
    """

    path: Array
    goal: Array
    goal_time: float = 0.0


class Course:
    """A trajectory and how fast each place of it may be passed, so that no joint's acceleration is exceeded.

    The pace is 1 where the trajectory is followed as it says.  Where it asks for more than the joints can do it is
    less, down to a stop at corners between straight lines; the path is kept.  What nobody states is no limit to what a
    trajectory says itself, only to how its pace changes.

    Args:
        trajectory: Of two points at least, from time 0 on.
        begin: (n,) speeds of the joints when it begins.
        bounds: Of its joints.
        joints: Their names.

    Raises:
        InputError: it leaves the joints' range, or is faster than they are, also between its points.
    """

    def __init__(self, trajectory: Trajectory, begin: Array, bounds: JointBounds, joints: Sequence[str]) -> None:
        self.trajectory = trajectory
        spacing = max(_STEP, trajectory.end / _MOST)
        counts = [max(_LEAST, math.ceil((b - a) / spacing)) for a, b in pairwise(trajectory.times.tolist())]
        pieces = [np.linspace(a, b, n + 1) for (a, b), n in zip(pairwise(trajectory.times), counts, strict=True)]
        self._places = np.concatenate([*[piece[:-1] for piece in pieces], trajectory.times[-1:]])
        piece = np.repeat(np.arange(len(counts)), counts)
        left, right = (trajectory.on_pieces(times, piece) for times in (self._places[:-1], self._places[1:]))
        _check(left, self._places[:-1], bounds, joints)
        _check(right, self._places[1:], bounds, joints)
        steps = np.diff(self._places)
        pace = np.ones((len(steps), 1))  # one more joint, whose speed is the pace
        self._first = np.hstack([left.velocity, left.velocity, pace])
        self._last = np.hstack([right.velocity, right.velocity, pace])
        # The joints twice: with their accelerations at the beginning of an interval, and with those at its end.
        self._bend = np.hstack([left.acceleration, right.acceleration, np.zeros_like(pace)])
        own = np.abs(np.vstack([left.acceleration, right.acceleration])).max(axis=0) * (1.0 + _ROUNDING)
        most = np.where(bounds.stated, bounds.acceleration, np.maximum(bounds.acceleration, own))
        self._acceleration = np.array([*most, *most, math.inf])
        before, after = np.vstack([begin, right.velocity]), np.vstack([left.velocity, np.zeros_like(begin)])
        sudden = np.abs(after - before) > bounds.acceleration * _INSTANT
        rests = np.asarray(sudden[:, bounds.stated].any(axis=1))
        velocity = np.array([*np.full(2 * len(joints), math.inf), 1.0])
        self._greatest = greatest_profile(
            self._first, self._last, self._bend, steps, velocity, self._acceleration, rests, no_efforts(len(steps))
        )

    @property
    def end(self) -> float:
        """The last place [s]."""
        return self.trajectory.end

    @property
    def as_it_says(self) -> bool:
        """Whether it may begin at full pace."""
        return bool(self._greatest[0] >= 1.0 - 1e-9)

    @property
    def first_pace(self) -> float:
        """The pace at which it may begin."""
        return math.sqrt(min(float(self._greatest[0]), 1.0))

    def advance(self, place: float, pace: float, wanted: float, dt: float) -> tuple[float, float, float]:
        """Place [s], pace and its rate [1/s] after ``dt`` seconds in which the pace goes to ``wanted`` (0 to 1)."""
        then, after, rate = advance_on_profile(
            self._first, self._last, self._bend, self._places, self._greatest, self._acceleration,
            place, pace, wanted, dt,
        )  # fmt: skip
        if then == place < self.end and wanted > 0.0:
            return self._crept(place, wanted, dt), 0.0, 0.0
        if wanted == 0.0 and after > 0.0:
            speeds = np.abs(self.trajectory.sample(float(then)).velocity) * after
            if (speeds <= self._acceleration[: speeds.size] * _INSTANT).all():
                return float(then), 0.0, 0.0
        return float(then), float(after), float(rate)

    def _crept(self, place: float, wanted: float, dt: float) -> float:
        """A little farther: from a stop so short before a corner that both lie between two places."""
        i = int(np.searchsorted(self._places, place, side="right")) - 1
        slope = np.maximum(np.abs(self._first[i]), np.abs(self._last[i]))
        allowed = np.divide(self._acceleration * dt, slope, out=np.full_like(slope, math.inf), where=slope > 0.0)
        return min(place + min(wanted, float(allowed.min())) * dt, float(self._places[i + 1]))

    def sample(self, place: float, pace: float, rate: float = 0.0) -> JointSample:
        """The joints at a place that is passed at a pace, which changes at a rate [1/s]."""
        at = self.trajectory.sample(place)
        return JointSample(at.position, at.velocity * pace, at.acceleration * pace**2 + at.velocity * rate)


def _check(samples: JointSample, times: Array, bounds: JointBounds, joints: Sequence[str]) -> None:
    low, high = bounds.lower - _ROUNDING, bounds.upper + _ROUNDING
    outside = (samples.position < low) | (samples.position > high)
    if outside.any():
        i, k = np.argwhere(outside)[0]
        raise InputError(
            f"joint {joints[k]} would be at {samples.position[i, k]:.4g} after {times[i]:.3g} s",
            valid=f"from {bounds.lower[k]:.4g} to {bounds.upper[k]:.4g}",
        )
    fast = np.abs(samples.velocity) > bounds.speed * (1.0 + _ROUNDING)
    if fast.any():
        i, k = np.argwhere(fast)[0]
        raise InputError(
            f"joint {joints[k]} would move at {samples.velocity[i, k]:.4g} a second after {times[i]:.3g} s",
            valid=f"at most {bounds.speed[k]:.4g}; give it more time",
        )


class Follower:
    """A course being followed.

    Commands are for a moment ahead, that at which the drives get there; ``look`` judges by what was commanded for now.

    Args:
        course: See there.
        tolerances: See there.
        wait: Before it begins [s].
        begin_ns: For when the first command would be [ns].

    Attributes:
        wanted: Where the joints should be at the last look.
        error: (n,) of that, less their actual positions.
        place: Of the last look, on the trajectory [s].
    """

    def __init__(self, course: Course, tolerances: Tolerances, wait: float, begin_ns: int) -> None:
        self.course, self.tolerances = course, tolerances
        self._wait = wait
        self._now = (0.0, course.first_pace, 0.0)
        self._trail = [(begin_ns, 0.0, 0.0)]
        self._ended_ns: int | None = None
        self.place = 0.0
        self.wanted = course.sample(0.0, 0.0)
        self.error = np.zeros_like(self.wanted.position)

    @property
    def commanded(self) -> JointSample:
        """The last command."""
        return self.course.sample(*((0.0, 0.0, 0.0) if self._wait > 0.0 else self._now))

    @property
    def ahead(self) -> float:
        """The place of the last command [s]."""
        return 0.0 if self._wait > 0.0 else self._now[0]

    @property
    def standing(self) -> bool:
        """Whether the last command is to stand."""
        place, pace, _ = self._now
        return self._wait > 0.0 or pace == 0.0 or place >= self.course.end

    def command(self, due_ns: int, dt: float, pace: float) -> JointSample:
        """Go on for ``dt`` seconds at ``pace`` (0 to 1), or as near to it as limits allow; the command for then."""
        waited = min(self._wait, dt) if pace > 0.0 else dt if self._wait > 0.0 else 0.0
        if pace > 0.0:
            self._wait -= waited
        if dt - waited > 1e-12:
            self._now = self.course.advance(*self._now[:2], pace, dt - waited)
        self._trail.append((due_ns, *self._now[:2]))
        return self.commanded

    def look(self, now_ns: int, actual: Array) -> Verdict:
        """Judge the joints' actual positions (n,); updates ``wanted``, ``error`` and ``place``."""
        while len(self._trail) > 1 and self._trail[1][0] <= now_ns:
            self._trail.pop(0)
        due_ns, self.place, pace = self._trail[0]
        if len(self._trail) > 1 and now_ns > due_ns:
            then_ns, place, then = self._trail[1]
            share = (now_ns - due_ns) / (then_ns - due_ns)
            self.place, pace = self.place + share * (place - self.place), pace + share * (then - pace)
        self.wanted = self.course.sample(self.place, pace)
        self.error = self.wanted.position - actual
        off = np.abs(self.error)
        if self.place < self.course.end:
            return "path violated" if (off > self.tolerances.path).any() else "moving"
        if not (off > self.tolerances.goal).any():
            return "done"
        if self._ended_ns is None:
            self._ended_ns = now_ns
        late = (now_ns - self._ended_ns) * 1e-9 > self.tolerances.goal_time
        return "goal violated" if late else "moving"

    def worst(self, tolerance: Array) -> int:
        """The joint that is farthest beyond ``tolerance`` (n,)."""
        return int(np.argmax(np.abs(self.error) - tolerance))

    def save_state(self) -> dict[str, Any]:
        """How far it is, as plain data."""
        return {"wait": self._wait, "now": self._now, "trail": list(self._trail), "ended_ns": self._ended_ns}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        self._wait, self._now, self._ended_ns = state["wait"], tuple(state["now"]), state["ended_ns"]
        self._trail = [tuple(one) for one in state["trail"]]
