"""Clips as key poses: a YAML file a clip.

```yaml
summary: Waving with the right hand
period: 2.4 s
keys:
  - {at: 0.0}
  - at: 0.3
    pose: {right_upper_arm: [-150, -20, 0], right_forearm: [0, -30, 0]}
  - {at: 1.0}
```

A part's three numbers are roll, pitch and yaw in degrees about x (ahead), y (left) and z (up) against the part that it
hangs on, from standing upright with hanging arms: to pitch an arm by -90 is to hold it out ahead, to roll the left one
by 90 to hold it out aside.  Parts that a key does not name are at rest there, or move as the clip that is the file's
``base`` has them.  From key to key a part turns without a jerk.  The body stands on its lower foot.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from roboyard.config import ValueConstraint, load, parameter
from roboyard.errors import ConfigError
from roboyard.geometry import quaternions
from roboyard.geometry.arrays import Array
from roboyard.simulation.people import anthropometry as a
from roboyard.simulation.people.clip import Clip, Hand, grounded, identity_turns, resting
from roboyard.simulation.people.skeleton import INDEX, PARTS

RATE = 50.0
"""Samples of a clip [1/s]."""
_Angles = Annotated[tuple[float, float, float], ValueConstraint(low=-360.0, high=360.0)]
_Share = Annotated[tuple[float, float], ValueConstraint(low=0.0, high=1.0)]


@dataclass(frozen=True)
class KeyPose:
    """A pose at a moment."""

    at: float = parameter(low=0.0, high=1.0, doc="share of the period")
    pose: dict[str, _Angles] = parameter({}, doc="roll, pitch and yaw of parts [deg]")
    shift: tuple[float, float] = parameter(
        (0.0, 0.0), low=-1.0, high=1.0, doc="of the pelvis ahead and left [statures]"
    )


@dataclass(frozen=True)
class KeyPoses:
    """A clip's file."""

    period: float = parameter(unit="s", low=0.1, high=120.0, doc="of one round")
    keys: tuple[KeyPose, ...] = parameter(doc="poses, in the order of time; the first at 0, the last at 1")
    loop: bool = parameter(False, doc="whether it goes on with its beginning after its end")
    base: str | None = parameter(
        None, doc="clip that the other parts move by: walk or turn; the period is then its own"
    )
    hand: Hand | None = parameter(None, doc="which hand reaches for a place")
    reach: _Share = parameter((0.5, 0.5), doc="shares of the period between which the hand is there")
    summary: str = parameter("", doc="one line")

    def __post_init__(self) -> None:
        times = [key.at for key in self.keys]
        if len(times) < 2 or times[0] != 0.0 or times[-1] != 1.0 or any(b <= a for a, b in pairwise(times)):
            raise ConfigError(f"keys at {times}", valid="at least two, rising from 0 to 1")
        for key in self.keys:
            for part in key.pose:
                if part not in INDEX:
                    raise ConfigError(f"no part {part!r} of the body", valid=", ".join(PARTS))
        if self.reach[0] > self.reach[1]:
            raise ConfigError(f"reach from {self.reach[0]:g} to {self.reach[1]:g}", valid="the smaller one first")


def read_key_poses(path: Path, bases: dict[str, Clip]) -> Clip:
    """The clip of a file; its name is the file's.

    Args:
        path: Of it.
        bases: Clips that it may rest on, by name.

    Raises:
        ConfigError: it says something that cannot be; with file and line.
    """
    told = load(KeyPoses, path)
    if told.base is not None and told.base not in bases:
        raise ConfigError(f"no clip {told.base!r} to rest on", location=f"{path}, base", valid=", ".join(bases))
    return make_clip(path.stem, told, bases[told.base] if told.base else None)


def make_clip(name: str, told: KeyPoses, base: Clip | None = None) -> Clip:
    """The clip that key poses tell."""
    period = told.period if base is None else base.period
    n = base.frames if base else max(round(period * RATE), 2)
    phases = np.arange(n) / (n if told.loop or base else n - 1)
    turns = identity_turns(n) if base is None else base.turns.copy()
    root = np.tile([0.0, 0.0, a.HIP], (n, 1)) if base is None else base.root.copy()
    named = list(dict.fromkeys(part for key in told.keys for part in key.pose))
    times = np.array([key.at for key in told.keys])
    for part in named:
        angles = np.radians([key.pose.get(part, (0.0, 0.0, 0.0)) for key in told.keys])
        turns[:, INDEX[part]] = _between(times, quaternions.from_rpy(angles), phases)
    if base is not None:
        return replace(base, name=name, turns=turns, summary=told.summary)
    k, u = _places(times, phases)
    shifts = np.array([key.shift for key in told.keys])
    root[:, :2] = shifts[k] + u[:, None] * (shifts[k + 1] - shifts[k])
    root = grounded(root, turns, every=True)
    rests = resting(root, turns, period, told.loop)
    return Clip(name, root, turns, rests, period, told.loop, hand=told.hand, reach=told.reach, summary=told.summary)


def _places(times: Array, phases: Array) -> tuple[NDArray[np.intp], Array]:
    """Which key each phase follows, and its smooth share of the way to the next one."""
    k = np.clip(np.searchsorted(times, phases, side="right") - 1, 0, len(times) - 2)
    u = np.clip((phases - times[k]) / (times[k + 1] - times[k]), 0.0, 1.0)
    return k, u**3 * (10.0 - 15.0 * u + 6.0 * u**2)


def _between(times: Array, keys: Array, phases: Array) -> Array:
    """(n, 4) orientations between those of the keys."""
    k, u = _places(times, phases)
    return quaternions.slerp(keys[k], keys[k + 1], u)
