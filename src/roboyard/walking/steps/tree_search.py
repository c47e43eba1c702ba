"""Monte-Carlo tree search: a tree of beginnings, each judged by plans that are drawn on from it to their end.

Which beginning is gone on with is weighed by how good the plans from it were, and how seldom it was tried (UCT, Kocsis
and Szepesvári 2006); it has the more children the more often it was (progressive widening, Couëtoux et al. 2011).
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from roboyard.compute import kernel
from roboyard.walking.steps.advance import DRAWS, advance
from roboyard.walking.steps.draws import key_of, uniform
from roboyard.walking.steps.events import ALIVE, ARRIVED
from roboyard.walking.steps.herd import PlanningContext, copy_plan, sample_world
from roboyard.walking.steps.rig_kernels import Limbs, sample_limbs
from roboyard.walking.steps.search import CANDIDATES, EVENTS_TRIED, Search, make_search, next_key, start, take
from roboyard.walking.steps.stretch import left_over

NODES: Final = 128
"""Of a tree, at most; the last plan is the one that is drawn on."""
ROWS: Final = 8_000
"""Of the log."""
_STRETCH: Final = 6
"""Events from a node to its children."""
_CURIOUS: Final = 0.3
_WAYS: Final = 32


@kernel(examples=lambda: [(sample_world(), sample_limbs(), make_search(2, 1, 2), np.uint64(1), 1)])
def explore_tree(world: PlanningContext, limbs: Limbs, search: Search, seed: np.uint64, events: int) -> None:
    """Go on with trees until so many more events were tried; a tree ends when it is full."""
    herd, ways, log, one = search.herd, search.ways, search.log, search.herd.events.shape[0] - 1
    parent, visits, total = np.empty(one, np.int64), np.empty(one), np.empty(one)
    children, draws, goal = np.empty(one), np.empty(DRAWS), search.tally[EVENTS_TRIED] + events
    while search.tally[EVENTS_TRIED] < goal:
        key = next_key(search, seed)
        if not start(world, search, 0, key_of(key, 0), _WAYS):
            continue
        whole, nodes, quickest, runs = left_over(world, ways, herd, 0), 1, math.inf, 0
        whole = max(whole, math.hypot(world.goal[0] - world.start[0], world.goal[1] - world.start[1]), 1e-3)
        parent[0], visits[0], total[0], children[0] = -1, 0.0, 0.0, 0.0
        while nodes < one and runs < 2 * one:
            own = key_of(key, 1 + runs)
            runs += 1
            node = 0
            while children[node] > 0.0 and children[node] >= 1.0 + math.sqrt(visits[node]):
                best, most = node, -math.inf
                for k in range(1, nodes):
                    if parent[k] == node:
                        value = total[k] / visits[k] + _CURIOUS * math.sqrt(math.log(visits[node] + 1.0) / visits[k])
                        if value > most:
                            best, most = k, value
                node = best
            copy_plan(herd, node, one)
            search.tally[CANDIDATES] += 1
            state, child, event = ALIVE, node, 0
            kept = log.used[0]
            while state == ALIVE:
                step = key_of(own, event)
                for m in range(DRAWS):
                    draws[m] = uniform(step, m)
                state = advance(world, ways, herd, log, one, draws, event < _STRETCH)
                search.tally[EVENTS_TRIED] += 1
                event += 1
                if event == _STRETCH and state == ALIVE:
                    child = nodes
                    nodes += 1
                    copy_plan(herd, one, child)
                    parent[child], visits[child], total[child], children[child] = node, 0.0, 0.0, 0.0
                    children[node] += 1.0
                    kept = log.used[0]
            worth = 0.5 * (1.0 - min(left_over(world, ways, herd, one) / whole, 1.0))
            if state == ARRIVED:
                cost = take(world, limbs, search, one, True)
                quickest = min(quickest, cost)
                if math.isfinite(cost):
                    worth = 0.5 + 0.5 * quickest / cost
            log.used[0] = kept
            while child >= 0:
                visits[child] += 1.0
                total[child] += worth
                child = parent[child]
