"""The exact look at a whole plan: its joints by inverse kinematics, their speeds, what legs touch, how the body stands.

A plan is timed here: each gap between events lasts as long as the fastest joint needs.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array
from roboyard.walking.steps.draft import Draft, make_draft, poorness
from roboyard.walking.steps.extras import edges_without_one, leg_work, margin_without_one, share_loads
from roboyard.walking.steps.ground_kernels import cell_value, value_at
from roboyard.walking.steps.herd import EVENTS, SET, PlanningContext, sample_world
from roboyard.walking.steps.order import PASSING
from roboyard.walking.steps.rig_kernels import Limbs, leg_joints, sample_limbs
from roboyard.walking.steps.stretch import inside_by, polygon_edges
from roboyard.walking.steps.swing import RISE, swing_place

FINE: Final = 0.01
"""Time between two looks at a plan [s]."""
_COARSE: Final = 0.1
"""And while it is timed for the first time [s]."""
_GLANCE: Final = 0.06
"""And when most of what is wrong with a plan shows already [s]."""
_MIDDLE: Final = 0.04
"""And while each of its gaps is timed [s]."""
_TRAVEL: Final = 0.2
"""The body goes so far between two looks at a leg that stands, at most, in samples of its way: 2 mm."""
_PER_SAMPLE: Final = 3
"""Looks while the body goes from one sample of its way to the next, at least."""
_SHARE: Final = 0.87
"""Of the joints' speeds that is used."""
_PASSES: Final = 3
_SHRINK: Final = 0.4
"""Gaps become so much shorter in one of these passes, at most."""
_FINER: Final = 6
"""Passes after these in which gaps become longer only, at most: until none is too short by more than `_EVEN`.  Where
they become shorter as well, swings that go on over several gaps are too fast in one and then the other, for ever."""
_EVEN: Final = 1.1
EXACT: Final = 0.0
"""Gaps stay."""
_SHORTEST: Final = 1e-4
_BLINK: Final = 1e-7
"""Looks are farther apart [s]."""
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


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(np.zeros((2, 3)), 0.5, np.zeros(3))])
def way_place(way: Array, at: float, out: Array) -> None:
    """The body (3,) at a place of its way, in samples."""
    k = min(max(int(at), 0), way.shape[0] - 2)
    u = at - k
    for j in range(3):
        out[j] = way[k, j] * (1.0 - u) + way[k + 1, j] * u


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(sample_limbs(), 0, np.zeros(7), np.zeros(3))])
def knee_place(limbs: Limbs, i: int, q: Array, out: Array) -> None:
    """Where the knee of a leg is in the body (3,), of its joints (7,), see `leg_joints`."""
    H, K = limbs.legs.T_body_hip[i], limbs.legs.T_hip_knee[i]
    rx = q[5] * limbs.legs.thigh[i, 0] - q[6] * limbs.legs.thigh[i, 1]
    ry = q[6] * limbs.legs.thigh[i, 0] + q[5] * limbs.legs.thigh[i, 1]
    ax = K[0, 0] * rx + K[0, 1] * ry + K[0, 3]
    ay = K[1, 0] * rx + K[1, 1] * ry + K[1, 3]
    az = K[2, 0] * rx + K[2, 1] * ry + K[2, 3]
    bx, by = q[3] * ax - q[4] * ay, q[4] * ax + q[3] * ay
    for k in range(3):
        out[k] = H[k, 0] * bx + H[k, 1] * by + H[k, 2] * az + H[k, 3]


@kernel(
    no_refcount=True,
    forceinline=True,
    examples=lambda: [(sample_world(), sample_limbs(), np.zeros(3), np.zeros(3), 0, np.zeros(7), np.zeros(3))],
)
def limb_free(world: PlanningContext, limbs: Limbs, body: Array, foot: Array, leg: int, q: Array, knee: Array) -> bool:
    """Whether shank and thigh stay above the ground: foot (3,) and body in the world, joints (7,)."""
    task, per_cell = world.number, 1.0 / world.number.cell
    knee_place(limbs, leg, q, knee)
    kx = (body[0] + task.cos * knee[0] - task.sin * knee[1] - task.x) * per_cell
    ky = (body[1] + task.sin * knee[0] + task.cos * knee[1] - task.y) * per_cell
    kz = body[2] + knee[2]
    fx, fy = (foot[0] - task.x) * per_cell, (foot[1] - task.y) * per_cell
    for k in range(1, 5):  # the foot itself is looked at elsewhere
        u = 0.25 * k
        if foot[2] + u * (kz - foot[2]) - task.limb < cell_value(
            world.heights, fx + u * (kx - fx), fy + u * (ky - fy)
        ):  # fmt: skip
            return False
    hip = limbs.legs.T_body_hip[leg, :3, 3]
    hx = (body[0] + task.cos * hip[0] - task.sin * hip[1] - task.x) * per_cell
    hy = (body[1] + task.sin * hip[0] + task.cos * hip[1] - task.y) * per_cell
    z = 0.5 * (kz + body[2] + hip[2])
    return bool(z - task.limb >= cell_value(world.heights, 0.5 * (kx + hx), 0.5 * (ky + hy)))


class Room(NamedTuple):
    """Room that `sweep` works in.

    Attributes:
        feet: (1, l, 3) where feet that are down stand, or stood [m].
        down: (1, l) whether they are.
        rose: (l,) event at which a foot in the air rose.
        slow: (l,) by how much its joints would be too fast while it rises and comes down.
        times: (e + 2,) of the events [s].
        last: (l, 3) joints at the look before [rad].
        edges: (12, 3) of the polygon.
        along: (l,) feet along the body [m].
        few: (6, 7) body, foot, joints, knee, body when a foot rose, when it is set down; see `leg_joints`.
        loads: (l,) what feet carry, as shares of the weight.
        fewer: (l, 12, 3) edges of the polygons without a foot.
        counts: (l,) how many each.
    """

    feet: Array
    down: NDArray[np.bool_]
    rose: NDArray[np.int64]
    slow: Array
    times: Array
    last: Array
    edges: Array
    along: Array
    few: Array
    loads: Array
    fewer: Array
    counts: NDArray[np.int64]


@kernel(examples=lambda: [(6,)])
def make_room(legs: int) -> Room:
    """Room for so many legs."""
    return Room(
        np.zeros((1, legs, 3)), np.ones((1, legs), np.bool_), np.zeros(legs, np.int64), np.ones(legs),
        np.zeros(EVENTS + 2),
        np.zeros((legs, 3)), np.zeros((12, 3)), np.zeros(legs), np.zeros((6, 7)), np.zeros(legs),
        np.zeros((legs, 12, 3)), np.zeros(legs, np.int64),
    )  # fmt: skip


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(0.5, 1.0, 0.1)])
def next_corner(begin: float, far: float, share: float) -> float:
    """The share of a stretch ``far`` long, which begins at a place of the way [samples], where the next sample lies."""
    at = begin + share * far
    sample = math.floor(at) + 1.0 if far > 0.0 else math.ceil(at) - 1.0
    return (sample - begin) / far


@kernel(
    no_refcount=True,
    examples=lambda: [
        (sample_world(), sample_limbs(), np.zeros((2, 3)), make_draft(), 0.02, EXACT, make_room(1), np.zeros(6))
    ],
)
def sweep(
    world: PlanningContext, limbs: Limbs, way: Array, draft: Draft, period: float, shrink: float, room: Room, out: Array
) -> int:
    """Go through a plan as it is timed, and set each gap's time by its fastest joint, or look at it exactly.

    Args:
        world: See there.
        limbs: The legs.
        way: (n, 3) of the body.
        draft: The plan.
        period: Time between two looks, at most [s].
        shrink: A gap becomes so much shorter, at most.  EXACT: times stay, and what legs touch, how the body stands
            and whether feet keep in order is looked at instead.
        room: To work in.
        out: (6,) is filled: the greatest share of a joint's speed, the least margin [m], the mean of how near the body
            is to tipping (0 to 1), the duration [s]; the work of the joints beside raising the robot as fast as it can
            go, and how badly it would stand without a foot (0 to 1), both 0 where they have no weight.  Where something
            is wrong only the first: after how many events; those up to where a foot comes down, if it is its way there.

    Returns:
        GOOD, or what is wrong.
    """
    exact = shrink == EXACT
    task, legs, m = world.number, world.home.shape[0], draft.events[0]
    feet, down, rose, slow, times, last, edges, along = (
        room.feet, room.down, room.rose, room.slow, room.times, room.last, room.edges, room.along
    )  # fmt: skip
    body, foot, q, knee, rose_at, sets_at = (
        room.few[0], room.few[1], room.few[2], room.few[3], room.few[4], room.few[5]
    )  # fmt: skip
    heights, rates, ahead, bends, rows = world.heights, limbs.rates, limbs.ahead, limbs.knee, limbs.legs
    for leg in range(legs):
        down[0, leg], rose[leg], slow[leg] = True, -1, 1.0
        for k in range(3):
            feet[0, leg, k], last[leg, k] = world.feet[leg, k], 0.0
    times[0] = 0.0
    for k in range(m + 1):
        times[k + 1] = times[k] + draft.gap[k]
    worst, least, tipping, known, count, weakest = 0.0, math.inf, 0.0, False, 0, 0
    stands_well = 1.0 / (_COMFORT * task.margin)
    work, frail, late, works, fails = 0.0, 0.0, 0.0, exact and task.energy > 0.0, exact and task.leg_loss > 0.0
    for k in range(m + 1):
        gap = draft.gap[k]
        live, settled = k >= draft.events[2], k < draft.events[1]
        if exact:
            count = polygon_edges(feet, down, 0, -1, edges)
        if fails:
            edges_without_one(feet, down, room.fewer, room.counts)
        # what is too fast in settled gaps cannot be mended once the rest is timed
        parts = max(math.ceil(gap / (FINE if settled else period)), 1) if gap > 0.0 else 0
        if exact and parts > 0:  # where its way has a corner the body may turn within a period
            parts = max(parts, math.ceil(_PER_SAMPLE * abs(draft.at[k + 1] - draft.at[k])))
        if not live:  # it is over
            parts = -1
        begin, far, fastest, stride, share, stood = draft.at[k], draft.at[k + 1] - draft.at[k], 0.0, 1, 0.0, 0.0
        if parts > 0:
            stride = max(int(parts * _TRAVEL / max(abs(far), 1e-9)), 1)
        p = 0 if not known else 1
        while p <= parts:
            earlier, share = share, p / parts if parts > 0 else 0.0
            stands = p % stride == 0 or p == parts
            p += 1
            if exact and far != 0.0 and gap > 0.0:  # how fast joints turn changes where the body's way has a corner
                corner = next_corner(begin, far, earlier + _BLINK / gap)
                if corner < share - _BLINK / gap:
                    share, stands, p = corner, True, p - 1
            each = (share - earlier) * gap
            way_place(way, begin + share * far, body)
            now = times[k] + share * gap
            if exact:
                margin = inside_by(edges, count, body[0], body[1])
                if margin < least:
                    least, weakest = margin, k
                tipping += (1.0 - min(max(margin * stands_well, 0.0), 1.0)) * each
            if fails:
                margin = margin_without_one(room.fewer, room.counts, body[0], body[1])
                frail += (1.0 - min(max(margin * stands_well, 0.0), 1.0)) * each
            if works:
                share_loads(feet, down, body[0], body[1], room.loads)
            for leg in range(legs):
                if down[0, leg] and not stands:
                    continue
                ends, share_up, span, since = 1.0, 0.0, 0.0, share - earlier
                if down[0, leg]:
                    since = share - stood
                    for j in range(3):
                        foot[j] = feet[0, leg, j]
                else:
                    end = draft.mate[rose[leg]]
                    span = times[end + 1] - times[rose[leg] + 1]
                    way_place(way, draft.at[rose[leg] + 1], rose_at)
                    way_place(way, draft.at[end + 1], sets_at)
                    share_up = (now - times[rose[leg] + 1]) / max(span, 1e-9)
                    ends = min(1.0, draft.quick[end] / max(span, 1e-9))
                    swing_place(
                        feet[0, leg], draft.place[end], draft.top[end], share_up, ends, body, rose_at, sets_at, foot
                    )
                x, y = foot[0] - body[0], foot[1] - body[1]
                along[leg] = task.cos * foot[0] + task.sin * foot[1]
                if not leg_joints(
                    rows, bends, leg, task.cos * x + task.sin * y, task.cos * y - task.sin * x, foot[2] - body[2], q
                ):
                    out[0] = k
                    return REACH
                if exact:
                    if foot[2] < value_at(heights, task.x, task.y, task.cell, foot[0], foot[1]) - task.slack:
                        out[0] = k if down[0, leg] else draft.mate[rose[leg]] + 1
                        return GROUND
                    if not limb_free(world, limbs, body, foot, leg, q, knee):
                        out[0] = k if down[0, leg] else draft.mate[rose[leg]] + 1
                        return LIMB
                if works and known:
                    work += leg_work(limbs, leg, last[leg], q, room.loads[leg])
                if known and since > 0.0:
                    turned = 0.0
                    for j in range(3):
                        turned = max(turned, abs(q[j] - last[leg, j]) / (since * rates[leg, j]))
                    at_end = not down[0, leg] and ends < 1.0 and min(share_up, 1.0 - share_up) < RISE * ends
                    if at_end and not exact and draft.mate[rose[leg]] >= draft.events[1]:
                        # what helps is to rise or come down longer, rather than a longer swing
                        slow[leg] = max(slow[leg], turned / (_SHARE * gap))
                    elif settled and not exact and not down[0, leg] and draft.mate[rose[leg]] >= draft.events[1]:
                        # this gap stays as it is, but the foot may come down later
                        late = max(late, span * (turned / (_SHARE * gap) - 1.0))
                    else:
                        fastest = max(fastest, turned)
                for j in range(3):
                    last[leg, j] = q[j]
            if stands:
                stood = share
            if exact:
                for leg in range(legs):
                    before = ahead[leg]
                    if before >= 0:
                        least_gap = task.gap if down[0, leg] and down[0, before] else PASSING * task.gap
                        if along[before] - along[leg] < least_gap - 1e-9:
                            out[0] = k
                            return ORDER
            known = True
        if parts > 0:
            ratio = fastest / (_SHARE * gap)
            if settled:
                if exact and ratio > _HASTE:
                    out[0] = k
                    return HASTY
            else:
                worst = max(worst, ratio)
            if not exact and not settled:
                draft.gap[k] = max(gap * min(max(ratio, shrink), 3.0), _SHORTEST)
        if k < m:
            leg = draft.leg[k]
            if draft.kind[k] == SET:
                down[0, leg] = True
                draft.quick[k] *= slow[leg]
                for j in range(3):
                    feet[0, leg, j] = draft.place[k, j]
            else:
                down[0, leg] = False
                rose[leg], slow[leg] = k, 1.0
    if exact and least < task.margin - 1e-3:
        out[0] = weakest
        return TIPPING
    draft.gap[draft.events[1]] += late
    duration = max(times[m + 1], 1e-9)
    out[0], out[1], out[2], out[3] = worst, least, tipping / duration, times[m + 1]
    out[4], out[5] = work / (task.body_speed * duration), frail / duration
    return GOOD


@kernel(examples=lambda: [(sample_world(), sample_limbs(), np.zeros((2, 3)), make_draft(), np.zeros(6))])
def judge(world: PlanningContext, limbs: Limbs, way: Array, draft: Draft, out: Array) -> int:
    """Time a plan and look at it exactly.

    Args:
        world: See there.
        limbs: The legs.
        way: (n, 3) of the body.
        draft: Scheduled; its gaps are set so that all joints keep their speeds.
        out: (6,) is filled, see `sweep`; the first with the cost: the duration, longer by all that the rating weighs.

    Returns:
        GOOD, or what is wrong.
    """
    room = make_room(world.home.shape[0])
    if draft.events[1] == 0:  # most of what is wrong hardly depends on times, unless swings have begun already
        state = sweep(world, limbs, way, draft, _COARSE, EXACT, room, out)
        if state != GOOD:
            return state
    for _ in range(_PASSES):
        state = sweep(world, limbs, way, draft, _COARSE, _SHRINK, room, out)
        if state != GOOD:
            return state
    state = sweep(world, limbs, way, draft, _GLANCE, EXACT, room, out)
    if state != GOOD:
        return state
    for _ in range(_FINER):
        state = sweep(world, limbs, way, draft, _MIDDLE, 1.0, room, out)
        if state != GOOD:
            return state
        if out[0] <= _EVEN:
            break
    state = sweep(world, limbs, way, draft, FINE, EXACT, room, out)
    if state != GOOD:
        return state
    timed, out[3] = out[3], 0.0
    for k in range(draft.events[0] + 1):
        if k >= draft.events[1]:
            draft.gap[k] *= out[0]
            if k < draft.events[0] and draft.kind[k] == SET:
                draft.quick[k] *= out[0]
        out[3] += draft.gap[k]
    task = world.number
    out[4] *= timed / max(out[3], 1e-9)  # the work stays, however long it takes
    worse = task.tipping * out[2] + task.footing * poorness(world, draft) + task.energy * out[4]
    out[0] = out[3] * (1.0 + worse + task.leg_loss * out[5])
    return GOOD
