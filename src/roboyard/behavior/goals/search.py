"""The cheapest way to what is wanted: A* backwards, from what is wanted to what is there, compiled.

What is wanted is a row with a number for each condition: the fact that it shall be, or -1.  An action that brings
something of it about, and spoils nothing, leads to what is wanted before it.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.behavior.goals.legs import Legs, least_cost, sample_legs
from roboyard.compute import kernel, read_only

Numbers = NDArray[np.int64]
Costs = NDArray[np.float64]
Bits = NDArray[np.uint64]
_ROOM: Final = 1024
"""For sets of wants at first; a power of two."""


class Ops(NamedTuple):
    """Actions, in numbers.

    Attributes:
        needs, effects: (n, k) facts, and -1 to fill up.
        cost: (n,).
        first, makers: Numbers of actions that bring a fact about: ``makers[first[fact]:first[fact + 1]]``.
        name: (f,) which condition each fact is a value of.
        bars: (n, w) facts as bits, none of which may be wanted after an action: it makes them otherwise, or they never
            hold together with what it needs.
        start: (f,) whether a fact holds now.
    """

    needs: Numbers
    effects: Numbers
    cost: Costs
    first: Numbers
    makers: Numbers
    name: Numbers
    bars: Bits
    start: NDArray[np.bool_]


def _sample_ops() -> Ops:
    table, row = np.zeros((1, 1), np.int64), np.zeros(1, np.int64)
    bars = read_only(np.zeros((1, 1), np.uint64))
    return Ops(table, table, np.zeros(1), np.zeros(2, np.int64), row, row, bars, np.ones(1, np.bool_))


def _sample_heap() -> tuple[Costs, Numbers]:
    return np.zeros((2, 2)), np.zeros((2, 2), np.int64)


@kernel(examples=lambda: [(_sample_ops(),)])
def dearest_need(ops: Ops) -> Costs:
    """For each fact what it costs at least to bring it about: of all needs only the dearest counts (h_max)."""
    least = np.full(ops.start.shape[0], math.inf)
    least[ops.start] = 0.0
    changed = True
    while changed:
        changed = False
        for op in range(ops.cost.shape[0]):
            reached = 0.0
            for fact in ops.needs[op]:
                if fact >= 0:
                    reached = max(reached, least[fact])
            reached += ops.cost[op]
            for fact in ops.effects[op]:
                if fact >= 0 and reached < least[fact]:
                    least[fact], changed = reached, True
    return least


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(np.zeros(1, np.int64), np.zeros(1, np.uint64))])
def set_bits(wants: Numbers, bits: Bits) -> None:
    """Write what is wanted as bits."""
    for word in range(bits.shape[0]):
        bits[word] = 0
    for fact in wants:
        if fact >= 0:
            bits[fact >> 6] |= np.uint64(1) << np.uint64(fact & 63)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(_sample_ops(), np.zeros(1, np.uint64), 0)])
def barred(ops: Ops, bits: Bits, op: int) -> bool:
    """Whether an action cannot be what was done last before something is as it is wanted."""
    found = np.uint64(0)
    for word in range(bits.shape[0]):
        found |= bits[word] & ops.bars[op, word]
    return bool(found != 0)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(_sample_ops(), *(np.zeros(1, np.int64),) * 2, 0)])
def regress(ops: Ops, wants: Numbers, before: Numbers, op: int) -> None:
    """Write what is wanted before an action that is not barred."""
    for name in range(wants.shape[0]):
        before[name] = wants[name]
    for fact in ops.effects[op]:
        if fact >= 0:
            before[ops.name[fact]] = -1
    for fact in ops.needs[op]:
        if fact >= 0:
            before[ops.name[fact]] = fact


@kernel(
    no_refcount=True,
    forceinline=True,
    examples=lambda: [(np.zeros(1, np.int64), np.zeros((1, 1), np.int64), np.zeros(1, np.int64))],
)
def place_of(table: Numbers, states: Numbers, wants: Numbers) -> int:
    """Where in a table of numbers of states one is, or belongs; the table is never full."""
    names, last = wants.shape[0], table.shape[0] - 1
    mixed = np.uint64(1469598103934665603)
    for fact in wants:
        mixed = (mixed ^ np.uint64(fact + 2)) * np.uint64(1099511628211)
    mixed ^= mixed >> np.uint64(29)
    at = np.int64(mixed & np.uint64(last))
    while table[at] >= 0:
        same = 0
        while same < names and states[table[at], same] == wants[same]:
            same += 1
        if same == names:
            break
        at = (at + 1) & last
    return int(at)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(*_sample_heap(), 0, 1)])
def sooner(keys: Costs, items: Numbers, a: int, b: int) -> bool:
    """Whether entry a goes before b: less in sum, then nearer to what is there, then older."""
    if keys[a, 0] != keys[b, 0]:
        return bool(keys[a, 0] < keys[b, 0])
    if keys[a, 1] != keys[b, 1]:
        return bool(keys[a, 1] > keys[b, 1])
    return bool(items[a, 0] < items[b, 0])


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(*_sample_heap(), 0, 1)])
def swap(keys: Costs, items: Numbers, a: int, b: int) -> None:
    """Have two entries change places."""
    for k in range(2):
        keys[a, k], keys[b, k] = keys[b, k], keys[a, k]
        items[a, k], items[b, k] = items[b, k], items[a, k]


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(*_sample_heap(), 1)])
def rise(keys: Costs, items: Numbers, at: int) -> None:
    """Bring the entry at the end to its place."""
    while at > 0 and sooner(keys, items, at, (at - 1) // 2):
        swap(keys, items, at, (at - 1) // 2)
        at = (at - 1) // 2


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(*_sample_heap(), 1)])
def sink(keys: Costs, items: Numbers, size: int) -> None:
    """Bring the entry at the front to its place."""
    at = 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and sooner(keys, items, child + 1, child):
            child += 1
        if not sooner(keys, items, child, at):
            break
        swap(keys, items, child, at)
        at = child


@kernel(
    no_refcount=True,
    forceinline=True,
    examples=lambda: [(_sample_ops(), np.zeros(1), sample_legs(), np.zeros(1, np.int64))],
)
def bounded(ops: Ops, least: Costs, legs: Legs, wants: Numbers) -> float:
    """At least so much it costs to get to what is wanted."""
    most = least_cost(legs, wants)
    for fact in wants:
        if fact >= 0:
            most = max(most, least[fact])
    return most


@kernel(examples=lambda: [(_sample_ops(), np.zeros(1), sample_legs(), np.zeros(1, np.int64), 1)])
def search(
    ops: Ops, least: Costs, legs: Legs, wanted: Numbers, budget: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], int, int]:
    """Go back from what is wanted, ``least`` as `dearest_need` has it.

    Returns:
        Actions from the first to the last, (steps, names) what is wanted after each, how many sets of wants were
        looked at, and whether there is a way (1), none (0), or the budget is spent (-1).
    """
    names = wanted.shape[0]
    states, table = np.empty((_ROOM, names), np.int64), np.full(2 * _ROOM, -1, np.int64)
    cost, bound = np.empty(_ROOM), np.empty(_ROOM)
    came = np.empty((_ROOM, 2), np.int64)
    keys, items = np.empty((_ROOM, 2)), np.empty((_ROOM, 2), np.int64)
    tried = np.full(ops.cost.shape[0], -1, np.int64)
    before, bits = np.empty(names, np.int64), np.empty(ops.bars.shape[1], np.uint64)
    states[0], cost[0], bound[0], came[0] = wanted, 0.0, bounded(ops, least, legs, wanted), -1
    table[place_of(table, states, wanted)] = 0
    keys[0, 0], keys[0, 1], items[0] = bound[0], 0.0, 0
    known, size, pushed, looked_at, goal = 1, 1, 1, 0, -1
    while size > 0:
        so_far, node = keys[0, 1], items[0, 1]
        size -= 1
        swap(keys, items, 0, size)
        sink(keys, items, size)
        if so_far > cost[node]:
            continue
        here, goal = states[node].copy(), node
        for fact in here:
            if fact >= 0 and not ops.start[fact]:
                goal = -1
        if goal >= 0:
            break
        looked_at += 1
        if looked_at > budget:
            return np.empty(0, np.int64), np.empty((0, names), np.int64), looked_at, -1
        set_bits(here, bits)
        for fact in here:
            if fact < 0:
                continue
            for number in range(ops.first[fact], ops.first[fact + 1]):
                op = ops.makers[number]
                if tried[op] == looked_at or barred(ops, bits, op):
                    continue
                tried[op] = looked_at
                regress(ops, here, before, op)
                price = so_far + ops.cost[op]
                at = place_of(table, states, before)
                other = table[at]
                if other >= 0 and cost[other] <= price:
                    continue
                if other < 0:
                    if known == cost.shape[0]:  # twice the room
                        states, came = np.concatenate((states, states)), np.concatenate((came, came))
                        cost, bound = np.concatenate((cost, cost)), np.concatenate((bound, bound))
                        table = np.full(4 * known, -1, np.int64)
                        for old in range(known):
                            table[place_of(table, states, states[old])] = old
                        at = place_of(table, states, before)
                    other = known
                    table[at], states[other], bound[other] = other, before, bounded(ops, least, legs, before)
                    known += 1
                cost[other], came[other, 0], came[other, 1] = price, op, node
                if size == keys.shape[0]:
                    keys, items = np.concatenate((keys, keys)), np.concatenate((items, items))
                keys[size, 0], keys[size, 1] = price + bound[other], price
                items[size, 0], items[size, 1] = pushed, other
                rise(keys, items, size)
                size += 1
                pushed += 1
    steps, at = 0, goal
    while at >= 0 and came[at, 0] >= 0:
        steps, at = steps + 1, came[at, 1]
    way, wants = np.empty(steps, np.int64), np.empty((steps, names), np.int64)
    at = goal
    for number in range(steps):
        way[number], wants[number] = came[at, 0], states[came[at, 1]]
        at = came[at, 1]
    return way, wants, looked_at, 1 if goal >= 0 else 0
