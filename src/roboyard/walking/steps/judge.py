"""The exact look at a whole plan: its joints by inverse kinematics, their speeds, what legs touch, how the body stands.

A plan is timed here: each gap between events lasts as long as the fastest joint needs.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.walking.leg_kernels import MOST
from roboyard.walking.steps.advance import inside_by, polygon_edges
from roboyard.walking.steps.draft import HOLD, LEAD, RISE, Draft, make_draft, poorness
from roboyard.walking.steps.ground_kernels import value_at
from roboyard.walking.steps.herd import SET, World, sample_world
from roboyard.walking.steps.rig_kernels import Limbs, leg_joints, sample_limbs

Array = NDArray[np.float64]

FINE: Final = 0.01
"""Time between two looks at a plan [s]."""
_COARSE: Final = 0.08
"""And while it is timed [s]."""
_SHARE: Final = 0.9
"""Of the joints' speeds that is used."""
_PASSES: Final = 4
_SHORTEST: Final = 1e-4
_COMFORT: Final = 2.5
"""From so many least margins on a body stands well."""
GOOD: Final = 0
REACH: Final = 1
GROUND: Final = 2
LIMB: Final = 3
TIPPING: Final = 4
ORDER: Final = 5
HASTY: Final = 6
"""A foot that has risen already would have to be faster than it can."""
_HASTE: Final = 1.1


@kernel(examples=lambda: [(0.5,)])
def eased(share: float) -> float:
    """0 to 1 as a share goes from 0 to 1, by half a cosine, as the thesis's playback."""
    return 0.5 - 0.5 * math.cos(math.pi * min(max(share, 0.0), 1.0))


@kernel(examples=lambda: [(np.zeros(3), np.zeros(3), 0.1, 0.5, *(np.zeros(3),) * 4)])
def swing_place(
    start: Array, end: Array, top: float, share: float, body: Array, body_start: Array, body_end: Array, out: Array
) -> None:
    """Where a foot in the air is (3,) at a share of its swing: up, across, down, overlapping.

    Once off the ground it goes evenly as the body sees it, rather than as the ground does, so that its leg reaches all
    its way however unevenly the body goes meanwhile.
    """
    along = eased((share - HOLD) / (1.0 - 2.0 * HOLD))
    rise, lead = eased(min(share, 1.0 - share) / RISE), eased(min(share, 1.0 - share) / LEAD)
    for k in range(2):
        ahead = body[k] - body_start[k] - along * (body_end[k] - body_start[k])
        out[k] = start[k] + along * (end[k] - start[k]) + lead * ahead
    low = start[2] if share < 0.5 else end[2]
    out[2] = low + (top - low) * rise


@kernel(examples=lambda: [(np.zeros((2, 3)), 0.5, np.zeros(3))])
def way_place(way: Array, at: float, out: Array) -> None:
    """The body (3,) at a place of its way, in samples."""
    k = min(max(int(at), 0), way.shape[0] - 2)
    u = at - k
    for j in range(3):
        out[j] = way[k, j] * (1.0 - u) + way[k + 1, j] * u


@kernel(examples=lambda: [(sample_limbs(), 0, np.zeros(3), np.zeros(3))])
def knee_place(limbs: Limbs, i: int, q: Array, out: Array) -> None:
    """Where the knee of a leg is in the body (3,), of its joints (3,)."""
    H, K = limbs.legs.T_body_hip[i], limbs.legs.T_hip_knee[i]
    c, s = math.cos(q[1]), math.sin(q[1])
    rx = c * limbs.legs.thigh[i, 0] - s * limbs.legs.thigh[i, 1]
    ry = s * limbs.legs.thigh[i, 0] + c * limbs.legs.thigh[i, 1]
    ax = K[0, 0] * rx + K[0, 1] * ry + K[0, 3]
    ay = K[1, 0] * rx + K[1, 1] * ry + K[1, 3]
    az = K[2, 0] * rx + K[2, 1] * ry + K[2, 3]
    c, s = math.cos(q[0]), math.sin(q[0])
    bx, by = c * ax - s * ay, s * ax + c * ay
    for k in range(3):
        out[k] = H[k, 0] * bx + H[k, 1] * by + H[k, 2] * az + H[k, 3]


@kernel(examples=lambda: [(sample_world(), sample_limbs(), np.zeros(3), np.zeros(3), 0, np.zeros(3), np.zeros(3))])
def limb_free(world: World, limbs: Limbs, body: Array, foot: Array, leg: int, q: Array, knee: Array) -> bool:
    """Whether shank and thigh stay above the ground: foot (3,) and body in the world, joints (3,)."""
    task = world.number
    knee_place(limbs, leg, q, knee)
    kx = body[0] + task.cos * knee[0] - task.sin * knee[1]
    ky = body[1] + task.sin * knee[0] + task.cos * knee[1]
    kz = body[2] + knee[2]
    for k in range(1, 5):  # the foot itself is looked at elsewhere
        u = 0.25 * k
        x, y, z = foot[0] + u * (kx - foot[0]), foot[1] + u * (ky - foot[1]), foot[2] + u * (kz - foot[2])
        if z - task.limb < value_at(world.heights, task.x, task.y, task.cell, x, y):
            return False
    hip = limbs.legs.T_body_hip[leg, :3, 3]
    hx, hy = body[0] + task.cos * hip[0] - task.sin * hip[1], body[1] + task.sin * hip[0] + task.cos * hip[1]
    x, y, z = 0.5 * (kx + hx), 0.5 * (ky + hy), 0.5 * (kz + body[2] + hip[2])
    return bool(z - task.limb >= value_at(world.heights, task.x, task.y, task.cell, x, y))


@kernel(examples=lambda: [(sample_world(), sample_limbs(), np.zeros((2, 3)), make_draft(), 0.02, True, np.zeros(4))])
def sweep(world: World, limbs: Limbs, way: Array, draft: Draft, period: float, exact: bool, out: Array) -> int:
    """Go through a plan as it is timed, and set each gap's time by its fastest joint, unless ``exact``.

    Args:
        world: See there.
        limbs: The legs.
        way: (n, 3) of the body.
        draft: The plan.
        period: Time between two looks, at most [s].
        exact: Also look for what legs touch, how the body stands and whether feet keep in order; times stay.
        out: (4,) is filled: the greatest share of a joint's speed, the least margin [m], the mean of how near the body
            is to tipping (0 to 1), the duration [s].

    Returns:
        GOOD, or what is wrong.
    """
    task, legs, m = world.number, world.home.shape[0], draft.events[0]
    feet, down = world.feet.copy(), np.ones(legs, np.bool_)
    rose = np.full(legs, -1, np.int64)
    times = np.zeros(m + 2)
    for k in range(m + 1):
        times[k + 1] = times[k] + draft.gap[k]
    q, last, work = np.zeros(3), np.zeros((legs, 3)), np.empty((MOST, 3))
    body, foot, local, knee, edges = np.empty(3), np.empty(3), np.empty(3), np.empty(3), np.empty((12, 3))
    stance, held = np.zeros((1, legs, 3)), np.zeros((1, legs), np.bool_)
    along, rose_at, sets_at = np.empty(legs), np.empty(3), np.empty(3)
    worst, least, tipping, known, count = 0.0, math.inf, 0.0, False, 0
    for k in range(m + 1):
        gap = draft.gap[k]
        live, settled = k >= draft.events[2], k < draft.events[1]
        if exact:
            stance[0], held[0] = feet, down
            count = polygon_edges(stance, held, 0, -1, edges)
        parts = max(math.ceil(gap / period), 1) if gap > 0.0 else 0
        if not live:  # it is over
            parts = -1
        fastest = 0.0
        for p in range(0 if not known else 1, parts + 1):
            share = p / parts if parts > 0 else 0.0
            way_place(way, draft.at[k] + share * (draft.at[k + 1] - draft.at[k]), body)
            now = times[k] + share * gap
            if exact:
                margin = inside_by(edges, count, body[0], body[1])
                least = min(least, margin)
                tipping += (1.0 - min(max(margin / (_COMFORT * task.margin), 0.0), 1.0)) * gap / max(parts, 1)
            for leg in range(legs):
                if down[leg]:
                    foot[:] = feet[leg]
                else:
                    end = draft.mate[rose[leg]]
                    span = times[end + 1] - times[rose[leg] + 1]
                    way_place(way, draft.at[rose[leg] + 1], rose_at)
                    way_place(way, draft.at[end + 1], sets_at)
                    share_up = (now - times[rose[leg] + 1]) / max(span, 1e-9)
                    swing_place(feet[leg], draft.place[end], draft.top[end], share_up, body, rose_at, sets_at, foot)
                x, y = foot[0] - body[0], foot[1] - body[1]
                local[0], local[1] = task.cos * x + task.sin * y, task.cos * y - task.sin * x
                local[2] = foot[2] - body[2]
                along[leg] = task.cos * foot[0] + task.sin * foot[1]
                if not leg_joints(limbs.legs, limbs.knee, leg, local, work, q):
                    return REACH
                if exact:
                    if foot[2] < value_at(world.heights, task.x, task.y, task.cell, foot[0], foot[1]) - 1e-3:
                        return GROUND
                    if not limb_free(world, limbs, body, foot, leg, q, knee):
                        return LIMB
                if known and parts > 0 and p > 0:
                    for j in range(3):
                        fastest = max(fastest, abs(q[j] - last[leg, j]) / limbs.rates[leg, j])
                last[leg] = q
            if exact:
                for leg in range(legs):
                    before = limbs.ahead[leg]
                    if before >= 0 and along[before] - along[leg] < task.gap - 1e-9:
                        return ORDER
            known = True
        if parts > 0:
            ratio = fastest * parts / (_SHARE * gap)
            if settled:
                if exact and ratio > _HASTE:
                    return HASTY
            else:
                worst = max(worst, ratio)
            if not exact and not settled:
                draft.gap[k] = max(gap * min(max(ratio, 0.4), 3.0), _SHORTEST)
        if k < m:
            leg = draft.leg[k]
            if draft.kind[k] == SET:
                down[leg] = True
                feet[leg] = draft.place[k]
            else:
                down[leg] = False
                rose[leg] = k
    if exact and least < task.margin - 1e-3:
        return TIPPING
    out[0], out[1], out[2], out[3] = worst, least, tipping / max(times[m + 1], 1e-9), times[m + 1]
    return GOOD


@kernel(examples=lambda: [(sample_world(), sample_limbs(), np.zeros((2, 3)), make_draft(), np.zeros(4))])
def judge(world: World, limbs: Limbs, way: Array, draft: Draft, out: Array) -> int:
    """Time a plan and look at it exactly.

    Args:
        world: See there.
        limbs: The legs.
        way: (n, 3) of the body.
        draft: Scheduled; its gaps are set so that all joints keep their speeds.
        out: (4,) is filled, see `sweep`; the first with the cost: the duration, longer the nearer to tipping and the
            poorer the ground.

    Returns:
        GOOD, or what is wrong.
    """
    for _ in range(_PASSES):
        state = sweep(world, limbs, way, draft, _COARSE, False, out)
        if state != GOOD:
            return state
    state = sweep(world, limbs, way, draft, FINE, True, out)
    if state != GOOD:
        return state
    out[3] = 0.0
    for k in range(draft.events[0] + 1):
        if k >= draft.events[1]:
            draft.gap[k] *= out[0]
        out[3] += draft.gap[k]
    out[0] = out[3] * (1.0 + world.number.tipping * out[2] + world.number.footing * poorness(world, draft))
    return GOOD
