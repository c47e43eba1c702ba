"""Backward A*: from the desired state to the initial state, compiled.

A desired state is a row with an index for each condition: the fact that is desired, or -1. An action that achieves
one of them, and destroys none, leads to the state that is desired before it.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel, read_only
from roboyard.task_planning.transport_costs import (
    TransportCosts,
    example_transport_costs,
    transport_lower_bound,
)

Indices = NDArray[np.int64]
Costs = NDArray[np.float64]
Bits = NDArray[np.uint64]
_INITIAL_CAPACITY: Final = 1024
"""For sets of wants at first; a power of two."""


class GroundActions(NamedTuple):
    """Ground actions as arrays.

    Attributes:
        preconditions, effects: (n, k) facts, filled up with -1.
        cost: (n,).
        first_achiever, achievers: Actions with a fact among their effects:
            ``achievers[first_achiever[fact]:first_achiever[fact + 1]]``.
        condition: (f,) condition of each fact.
        excluded_facts: (n, w) facts as bits, none of which may be desired after an action: it changes them, or they
            are never true together with its preconditions.
        is_initially_true: (f,) whether a fact is true now.
    """

    preconditions: Indices
    effects: Indices
    cost: Costs
    first_achiever: Indices
    achievers: Indices
    condition: Indices
    excluded_facts: Bits
    is_initially_true: NDArray[np.bool_]


def _example_actions() -> GroundActions:
    table, row = np.zeros((1, 1), np.int64), np.zeros(1, np.int64)
    excluded_facts = read_only(np.zeros((1, 1), np.uint64))
    return GroundActions(
        table, table, np.zeros(1), np.zeros(2, np.int64), row, row, excluded_facts, np.ones(1, np.bool_)
    )


def _example_heap() -> tuple[Costs, Indices]:
    return np.zeros((2, 2)), np.zeros((2, 2), np.int64)


@kernel(examples=lambda: [(_example_actions(),)])
def max_precondition_cost(actions: GroundActions) -> Costs:
    """Return a lower bound of the cost of each fact: of all preconditions only the most expensive one counts
    (h_max)."""
    min_cost = np.full(actions.is_initially_true.shape[0], math.inf)
    min_cost[actions.is_initially_true] = 0.0
    changed = True
    while changed:
        changed = False
        for action in range(actions.cost.shape[0]):
            action_cost = 0.0
            for fact in actions.preconditions[action]:
                if fact >= 0:
                    action_cost = max(action_cost, min_cost[fact])
            action_cost += actions.cost[action]
            for fact in actions.effects[action]:
                if fact >= 0 and action_cost < min_cost[fact]:
                    min_cost[fact], changed = action_cost, True
    return min_cost


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(np.zeros(1, np.int64), np.zeros(1, np.uint64))])
def set_bits(desired_facts: Indices, bits: Bits) -> None:
    """Write the desired facts as bits."""
    for word in range(bits.shape[0]):
        bits[word] = 0
    for fact in desired_facts:
        if fact >= 0:
            bits[fact >> 6] |= np.uint64(1) << np.uint64(fact & 63)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(_example_actions(), np.zeros(1, np.uint64), 0)])
def is_redundant_after(actions: GroundActions, bits: Bits, action: int) -> bool:
    """Return whether an action cannot be the last one before a desired state."""
    overlap = np.uint64(0)
    for word in range(bits.shape[0]):
        overlap |= bits[word] & actions.excluded_facts[action, word]
    return bool(overlap != 0)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(_example_actions(), *(np.zeros(1, np.int64),) * 2, 0)])
def regress(actions: GroundActions, desired_facts: Indices, before: Indices, action: int) -> None:
    """Write the desired facts before an action that is not redundant."""
    for condition in range(desired_facts.shape[0]):
        before[condition] = desired_facts[condition]
    for fact in actions.effects[action]:
        if fact >= 0:
            before[actions.condition[fact]] = -1
    for fact in actions.preconditions[action]:
        if fact >= 0:
            before[actions.condition[fact]] = fact


@kernel(
    no_refcount=True,
    forceinline=True,
    examples=lambda: [(np.zeros(1, np.int64), np.zeros((1, 1), np.int64), np.zeros(1, np.int64))],
)
def state_index(table: Indices, states: Indices, desired_facts: Indices) -> int:
    """Return the slot of a state in a hash table of state indices, which is never full."""
    n_conditions, mask = desired_facts.shape[0], table.shape[0] - 1
    hash_value = np.uint64(1469598103934665603)
    for fact in desired_facts:
        hash_value = (hash_value ^ np.uint64(fact + 2)) * np.uint64(1099511628211)
    hash_value ^= hash_value >> np.uint64(29)
    slot = np.int64(hash_value & np.uint64(mask))
    while table[slot] >= 0:
        n_equal = 0
        while n_equal < n_conditions and states[table[slot], n_equal] == desired_facts[n_equal]:
            n_equal += 1
        if n_equal == n_conditions:
            break
        slot = (slot + 1) & mask
    return int(slot)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(*_example_heap(), 0, 1)])
def has_lower_cost(keys: Costs, items: Indices, a: int, b: int) -> bool:
    """Return whether entry a precedes entry b: lower sum, then nearer to the initial state, then older."""
    if keys[a, 0] != keys[b, 0]:
        return bool(keys[a, 0] < keys[b, 0])
    if keys[a, 1] != keys[b, 1]:
        return bool(keys[a, 1] > keys[b, 1])
    return bool(items[a, 0] < items[b, 0])


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(*_example_heap(), 0, 1)])
def heap_swap(keys: Costs, items: Indices, a: int, b: int) -> None:
    """Swap two entries."""
    for k in range(2):
        keys[a, k], keys[b, k] = keys[b, k], keys[a, k]
        items[a, k], items[b, k] = items[b, k], items[a, k]


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(*_example_heap(), 1)])
def heap_sift_up(keys: Costs, items: Indices, index: int) -> None:
    """Move the last entry up to its place."""
    while index > 0 and has_lower_cost(keys, items, index, (index - 1) // 2):
        heap_swap(keys, items, index, (index - 1) // 2)
        index = (index - 1) // 2


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(*_example_heap(), 1)])
def heap_sift_down(keys: Costs, items: Indices, size: int) -> None:
    """Move the first entry down to its place."""
    index = 0
    while 2 * index + 1 < size:
        child = 2 * index + 1
        if child + 1 < size and has_lower_cost(keys, items, child + 1, child):
            child += 1
        if not has_lower_cost(keys, items, child, index):
            break
        heap_swap(keys, items, child, index)
        index = child


@kernel(
    no_refcount=True,
    forceinline=True,
    examples=lambda: [(_example_actions(), np.zeros(1), example_transport_costs(), np.zeros(1, np.int64))],
)
def lower_bound(actions: GroundActions, min_costs: Costs, transport: TransportCosts, desired_facts: Indices) -> float:
    """Return a lower bound of the cost of reaching desired facts."""
    max_bound = transport_lower_bound(transport, desired_facts)
    for fact in desired_facts:
        if fact >= 0:
            max_bound = max(max_bound, min_costs[fact])
    return max_bound


@kernel(examples=lambda: [(_example_actions(), np.zeros(1), example_transport_costs(), np.zeros(1, np.int64), 1)])
def search_backward(
    actions: GroundActions, min_costs: Costs, transport: TransportCosts, desired_facts: Indices, budget: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], int, int]:
    """Search backwards from desired facts, with ``min_costs`` of `max_precondition_cost`.

    Returns:
        Actions from the first to the last, (steps, conditions) what is desired after each, the number of expanded
            states, and whether there is a plan (1), none (0), or the budget is exceeded (-1).
    """
    n_conditions = desired_facts.shape[0]
    states, table = np.empty((_INITIAL_CAPACITY, n_conditions), np.int64), np.full(2 * _INITIAL_CAPACITY, -1, np.int64)
    cost, bound = np.empty(_INITIAL_CAPACITY), np.empty(_INITIAL_CAPACITY)
    parents = np.empty((_INITIAL_CAPACITY, 2), np.int64)
    keys, items = np.empty((_INITIAL_CAPACITY, 2)), np.empty((_INITIAL_CAPACITY, 2), np.int64)
    last_expansion = np.full(actions.cost.shape[0], -1, np.int64)
    before, bits = np.empty(n_conditions, np.int64), np.empty(actions.excluded_facts.shape[1], np.uint64)
    states[0], cost[0], bound[0], parents[0] = (
        desired_facts,
        0.0,
        lower_bound(actions, min_costs, transport, desired_facts),
        -1,
    )
    table[state_index(table, states, desired_facts)] = 0
    keys[0, 0], keys[0, 1], items[0] = bound[0], 0.0, 0
    n_states, heap_size, n_pushed, n_expanded, goal_node = 1, 1, 1, 0, -1
    while heap_size > 0:
        node_cost, node = keys[0, 1], items[0, 1]
        heap_size -= 1
        heap_swap(keys, items, 0, heap_size)
        heap_sift_down(keys, items, heap_size)
        if node_cost > cost[node]:
            continue
        node_facts, goal_node = states[node].copy(), node
        for fact in node_facts:
            if fact >= 0 and not actions.is_initially_true[fact]:
                goal_node = -1
        if goal_node >= 0:
            break
        n_expanded += 1
        if n_expanded > budget:
            return np.empty(0, np.int64), np.empty((0, n_conditions), np.int64), n_expanded, -1
        set_bits(node_facts, bits)
        for fact in node_facts:
            if fact < 0:
                continue
            for index in range(actions.first_achiever[fact], actions.first_achiever[fact + 1]):
                action = actions.achievers[index]
                if last_expansion[action] == n_expanded or is_redundant_after(actions, bits, action):
                    continue
                last_expansion[action] = n_expanded
                regress(actions, node_facts, before, action)
                new_cost = node_cost + actions.cost[action]
                slot = state_index(table, states, before)
                successor = table[slot]
                if successor >= 0 and cost[successor] <= new_cost:
                    continue
                if successor < 0:
                    if n_states == cost.shape[0]:  # twice the room
                        states, parents = np.concatenate((states, states)), np.concatenate((parents, parents))
                        cost, bound = np.concatenate((cost, cost)), np.concatenate((bound, bound))
                        table = np.full(4 * n_states, -1, np.int64)
                        for state in range(n_states):
                            table[state_index(table, states, states[state])] = state
                        slot = state_index(table, states, before)
                    successor = n_states
                    table[slot], states[successor], bound[successor] = (
                        successor,
                        before,
                        lower_bound(actions, min_costs, transport, before),
                    )
                    n_states += 1
                cost[successor], parents[successor, 0], parents[successor, 1] = new_cost, action, node
                if heap_size == keys.shape[0]:
                    keys, items = np.concatenate((keys, keys)), np.concatenate((items, items))
                keys[heap_size, 0], keys[heap_size, 1] = new_cost + bound[successor], new_cost
                items[heap_size, 0], items[heap_size, 1] = n_pushed, successor
                heap_sift_up(keys, items, heap_size)
                heap_size += 1
                n_pushed += 1
    n_steps, slot = 0, goal_node
    while slot >= 0 and parents[slot, 0] >= 0:
        n_steps, slot = n_steps + 1, parents[slot, 1]
    plan_actions, desired_after = np.empty(n_steps, np.int64), np.empty((n_steps, n_conditions), np.int64)
    slot = goal_node
    for index in range(n_steps):
        plan_actions[index], desired_after[index] = parents[slot, 0], states[parents[slot, 1]]
        slot = parents[slot, 1]
    return plan_actions, desired_after, n_expanded, 1 if goal_node >= 0 else 0
