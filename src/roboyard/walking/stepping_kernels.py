"""Kernels of stepping: one moment of all feet; see `stepping` for what it is about."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array
from roboyard.walking.gait_kernels import FEWEST, RAMP, arch_share, eased_share, ground_speed, held_by, moved_place

Mask = NDArray[np.bool_]

STILL: Final = 1e-4
"""Feet slower than this against the body stand [m/s]."""
_AT_HOME: Final = 2e-3
"""A foot so near to its place in the stance need not step when the body stands [m]."""
_SLACK: Final = 1.1
"""Feet that are down may leave their stride by this factor."""
_LEAVING: Final = 0.15
"""Share of a swing in which a foot may still feel the ground that it leaves."""
_NEARLY: Final = 0.005
"""A foot that feels ground when it is no higher above its place in the stance just sets down there [m]."""
_BENDING: Final = 0.1
"""How fast the end of a swing follows a change of the twist [m/s]."""
CLOCK, CYCLE = range(2)


class Numbers(NamedTuple):
    """What `Steps` and `Gait` say, as numbers."""

    stride: float
    lift: float
    acceleration: float
    margin: float
    depth: float
    search: float
    climb: float
    levelling: float
    duty: float
    upright: float


class Feet(NamedTuple):
    """State of all feet, changed in place.

    Attributes:
        place: (l, 3) where they shall be in the body [m].
        down: (l) which are on the ground.
        due: (l) whose turn to rise has come.
        clear: (l) which have felt no ground since they left it.
        turns: (l) so far.
        share: (l) of their swing.
        swing: (l) how long it lasts [s].
        start: (l, 2) where they rose [m].
        end: (l, 2) where they will be set down [m].
        drift: (l, 2) how far the ground moves meanwhile [m].
        height: (l) at which they rose [m].
        raised: (l) how much higher they go, having run into something [m].
        twist: (3,) what the body does.
        carried: (3,) how fast the feet that are down have just carried it.
        times: (2,) cycles so far; length of a cycle [s].
    """

    place: Array
    down: Mask
    due: Mask
    clear: Mask
    turns: NDArray[np.int64]
    share: Array
    swing: Array
    start: Array
    end: Array
    drift: Array
    height: Array
    raised: Array
    twist: Array
    carried: Array
    times: Array


def standing_feet(home: Array, cycle: float) -> Feet:
    """Feet (l, 3) of a body that stands."""
    l = len(home)  # noqa: E741
    flat = home[:, :2]
    no, zero = np.zeros(l, np.bool_), np.zeros(l)
    return Feet(
        home.copy(), np.ones(l, np.bool_), no, no.copy(), np.full(l, -1), zero, np.ones(l), flat.copy(), flat.copy(),
        np.zeros((l, 2)), home[:, 2].copy(), zero.copy(), np.zeros(3), np.zeros(3), np.array([0.0, cycle]),
    )  # fmt: skip


@kernel(examples=lambda: [(np.zeros((6, 3)), np.zeros(3))])
def fastest(home: Array, twist: Array) -> float:
    """How fast the fastest of feet (l, 3) goes against a body of a twist (3,) [m/s]."""
    most = 0.0
    for i in range(home.shape[0]):
        vx, vy = ground_speed(home[i, 0], home[i, 1], twist)
        most = max(most, math.hypot(vx, vy))
    return most


@kernel
def _ramp(feet: Feet, home: Array, wanted: Array, most: float) -> None:
    """Change the body's twist by as much as feet may be accelerated."""
    change = wanted - feet.twist
    size = fastest(home, change)
    feet.twist[:] = wanted if size <= most else feet.twist + change * (most / size)


@kernel
def _astray(feet: Feet, home: Array, i: int) -> bool:
    return math.hypot(feet.place[i, 0] - home[i, 0], feet.place[i, 1] - home[i, 1]) > _AT_HOME


@kernel
def _bearable(feet: Feet, home: Array, phases: Array, stride: float, dt: float) -> float:
    """Share of the twist at which all feet that are down are within their strides until their turn."""
    share, radius = 1.0, 0.5 * _SLACK * max(stride, 1e-6)
    for i in range(home.shape[0]):
        if not feet.down[i]:
            continue
        along = feet.times[CLOCK] - phases[i] - feet.turns[i]
        left = 0.0 if feet.due[i] else (1.0 - along) * feet.times[CYCLE]
        vx, vy = ground_speed(feet.place[i, 0], feet.place[i, 1], feet.twist)
        speed = math.hypot(vx, vy)
        if speed < STILL:
            continue
        x, y = feet.place[i, 0] - home[i, 0], feet.place[i, 1] - home[i, 1]
        ahead = (x * vx + y * vy) / speed
        room = ahead * ahead + radius * radius - x * x - y * y
        way = math.sqrt(room) - ahead if room > 0.0 else -ahead
        share = min(share, max(way, 0.0) / (speed * max(left, dt)))
    return share


@kernel
def _carry(feet: Feet, home: Array, levelling: float, tilt: Array, dt: float) -> None:
    """Move the feet that are down against the body, and bring it back to its height above them, and upright.

    ``tilt`` is how far it shall be turned back about its x and y axes [rad], a small angle.
    """
    sunk, count = 0.0, 0
    for i in range(home.shape[0]):
        if feet.down[i]:
            x, y = moved_place(feet.place[i, 0], feet.place[i, 1], feet.carried, dt)
            feet.place[i, 0], feet.place[i, 1] = x, y
            z = feet.place[i, 2]
            feet.place[i, 0] += tilt[1] * z
            feet.place[i, 1] -= tilt[0] * z
            feet.place[i, 2] += tilt[0] * y - tilt[1] * x
            sunk += home[i, 2] - feet.place[i, 2]
            count += 1
    if count > 0:
        feet.place[feet.down, 2] += sunk / count * min(levelling * dt, 1.0)


@kernel
def _aim(feet: Feet, home: Array, numbers: Numbers, i: int, out: Array) -> None:
    """Where a foot shall be set down (2), and how far the ground moves while it is in the air (2), as it looks now."""
    x, y = moved_place(home[i, 0], home[i, 1], feet.twist, -0.5 * numbers.duty * feet.times[CYCLE])
    dx, dy = x - home[i, 0], y - home[i, 1]
    share = min(1.0, 0.5 * numbers.stride / max(math.hypot(dx, dy), 1e-12))
    out[0], out[1] = home[i, 0] + share * dx, home[i, 1] + share * dy
    ax, ay = ground_speed(feet.start[i, 0], feet.start[i, 1], feet.twist)
    bx, by = ground_speed(out[0], out[1], feet.twist)
    out[2], out[3] = 0.5 * feet.swing[i] * (ax + bx), 0.5 * feet.swing[i] * (ay + by)


@kernel
def _settle(feet: Feet, home: Array, numbers: Numbers, i: int, bottom: float, felt: bool) -> None:
    """A foot is through with its swing: it stands, or searches the ground below."""
    lowest = home[i, 2] - numbers.depth
    if feet.share[i] > 1.0 + 1e-9:
        feet.place[i, 2] = max(min(bottom, home[i, 2]), lowest)
    feet.down[i] = felt or feet.place[i, 2] <= lowest + 1e-9


@kernel
def _fly(feet: Feet, home: Array, numbers: Numbers, i: int, felt: bool, known: bool, dt: float) -> None:
    """Move a foot that is in the air, and set it down when it is through, or feels the ground."""
    swing = feet.swing[i]
    feet.clear[i] = feet.clear[i] or (not felt and feet.share[i] > _LEAVING)
    hit = felt and feet.clear[i]
    if hit and feet.share[i] > 0.5 and feet.place[i, 2] - home[i, 2] > _NEARLY:
        feet.down[i] = True
        return
    if hit and feet.share[i] <= 0.5 and feet.raised[i] < numbers.climb:
        feet.raised[i] += numbers.lift / (0.5 * swing) * dt
    else:
        feet.share[i] += dt / swing
    share, aim = min(feet.share[i], 1.0), np.empty(4)
    _aim(feet, home, numbers, i, aim)
    most = _BENDING * dt
    for k in range(2):
        feet.end[i, k] += min(max(aim[k] - feet.end[i, k], -most), most)
        feet.drift[i, k] += min(max(aim[2 + k] - feet.drift[i, k], -most), most)
    low = feet.height[i] + (home[i, 2] - feet.height[i]) * share
    bottom = feet.place[i, 2] - numbers.search * dt
    done = eased_share(share, RAMP)
    for k in range(2):
        a, b, d = feet.start[i, k], feet.end[i, k], feet.drift[i, k]
        feet.place[i, k] = a + d * share + done * (b - a - d)
    feet.place[i, 2] = low + (numbers.lift + feet.raised[i]) * arch_share(share)
    if share >= 1.0:
        _settle(feet, home, numbers, i, bottom, felt or not known)


@kernel
def _held(feet: Feet, others: Mask, swing: float, margin: float) -> bool:
    """Whether some feet hold the body, now and when a swing is over."""
    if held_by(feet.place, others, 0.0, 0.0) < margin:
        return False
    later = feet.place.copy()
    for k in range(len(later)):
        later[k, 0], later[k, 1] = moved_place(later[k, 0], later[k, 1], feet.twist, swing)
    return float(held_by(later, others, 0.0, 0.0)) >= margin


@kernel
def _rise(feet: Feet, home: Array, phases: Array, numbers: Numbers, going: bool, dt: float) -> None:
    """Let feet rise whose turn it is, as far as the others hold the body until they are down again."""
    cycle = feet.times[CYCLE]
    swing, along = (1.0 - numbers.duty) * cycle, feet.times[CLOCK] - phases - feet.turns
    aim = np.empty(4)
    for i in np.argsort(-along, kind="mergesort"):
        if not (feet.due[i] and feet.down[i]):
            continue
        if not going and not _astray(feet, home, i):
            feet.due[i] = False
            continue
        others = feet.down.copy()
        others[i] = False
        if others.sum() < FEWEST or not _held(feet, others, swing, numbers.margin):
            continue
        feet.down[i] = feet.due[i] = feet.clear[i] = False
        late = along[i] * cycle
        feet.share[i] = late / swing if late <= dt else 0.0
        feet.raised[i], feet.swing[i], feet.height[i] = 0.0, swing, feet.place[i, 2]
        feet.start[i] = feet.place[i, :2]
        _aim(feet, home, numbers, i, aim)
        feet.end[i], feet.drift[i] = aim[:2], aim[2:]


def _example() -> list[tuple[object, ...]]:
    home = np.zeros((6, 3))
    feet, numbers, no = standing_feet(home, 1.0), Numbers(*[0.1] * 10), np.zeros(6, np.bool_)
    return [(feet, home, np.zeros(6), numbers, np.zeros(3), no, True, np.zeros(2), 0.02)]


@kernel(examples=_example)
def step_on(
    feet: Feet,
    home: Array,
    phases: Array,
    numbers: Numbers,
    wanted: Array,
    touching: Mask,
    known: bool,
    tilt: Array,
    dt: float,
) -> None:
    """One moment of all feet.

    Args:
        feet: Where they are, and what they do; changed.
        home: (l, 3) their places in the stance [m].
        phases: (l) of the gait.
        numbers: How they step.
        wanted: (3,) twist that legs can do, with the cycle that is in ``feet.times``.
        touching: (l) which feel ground.
        known: Whether anybody knows that.
        tilt: (2,) roll and pitch of the body [rad].
        dt: How long [s].
    """
    l = home.shape[0]  # noqa: E741
    _ramp(feet, home, wanted, numbers.acceleration * dt)
    feet.carried[:] = feet.twist * _bearable(feet, home, phases, numbers.stride, dt)
    _carry(feet, home, numbers.levelling, tilt * min(numbers.upright * dt, 1.0), dt)
    for i in range(l):
        if not feet.down[i]:
            _fly(feet, home, numbers, i, known and touching[i], known, dt)
    going, busy = bool(feet.twist.any()), False
    for i in range(l):
        busy = busy or not feet.down[i] or _astray(feet, home, i)
    if not going and not busy:
        feet.due[:] = False
        return
    feet.times[CLOCK] += dt / feet.times[CYCLE]
    for i in range(l):
        passed = math.floor(feet.times[CLOCK] - phases[i])
        feet.due[i] = feet.due[i] or (passed > feet.turns[i] and feet.down[i])
        feet.turns[i] = passed
    _rise(feet, home, phases, numbers, going, dt)
