"""What carrying things from place to place costs at least: a bound for the search, compiled.

A thing is carried from where it is to where it is wanted, whatever lies between.  The ways without one go from where
the robot is and where things are set down to where things are and where the robot is wanted: they cost no less than the
cheapest assignment of those to these.  From where a thing is set down nobody can go to take what had to be away before
(itself; what lay there): such a way leads past a third place, where something was set down for the time being.  And of
things that each want another one's place, round and round, one is set down once more.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel

OTHER: Final = 0
ROBOT: Final = 1
HAND: Final = 2
ON: Final = 3

Numbers = NDArray[np.int64]
Costs = NDArray[np.float64]


class Legs(NamedTuple):
    """What is carried, and room to reckon in.

    Attributes:
        kind: What each fact says: where the robot is, what is in the hand, what lies at a place, or nothing of that.
        place: Of each fact; -1 where it says none.
        thing: Of each fact; -1 where it says none, or nothing.
        begin: Where each thing is, the held one where the robot is; -1 where that is not known.
        ways, past: What driving from a place to another one costs; past a third one.
        handle: What taking or setting down costs.
        robot: Where it is; -1 where that is not known, and nothing is bounded.
        held: The thing in the hand, or -1.
        empty: (4, n) where ways without a thing begin and end, and which things they come from and are for.
        leads: (2, n) for each place that to which what lies there is carried; and from where one got there.
        costs: (n, n) of ways without a thing.
        prices: (3, n) of the assignment's rows and columns, and slack.
        matches: (4, n) of its columns: the row, the column before, whether it was come through; which rows wait.
    """

    kind: Numbers
    place: Numbers
    thing: Numbers
    begin: Numbers
    ways: Costs
    past: Costs
    handle: float
    robot: int
    held: int
    empty: Numbers
    leads: Numbers
    costs: Costs
    prices: Costs
    matches: Numbers


def no_legs(facts: int) -> Legs:
    """Where nothing is known about carrying."""
    none, table = np.zeros(0, np.int64), np.zeros((0, 0))
    return Legs(np.zeros(facts, np.int64), none, none, none, table, table, 0.0, -1, -1, *room(0))


def room(size: int) -> tuple[Numbers, Numbers, Costs, Costs, Numbers]:
    """Room for so many places and things."""
    n = size + 3
    empty, leads, matches = (np.zeros((rows, n), np.int64) for rows in (4, 2, 4))
    return empty, leads, np.zeros((n, n)), np.zeros((3, n)), matches


def sample_legs() -> Legs:
    """Of the types that the kernels meet."""
    return no_legs(1)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(sample_legs(), 1, 1)])
def assigned(legs: Legs, rows: int, columns: int) -> float:
    """The cheapest assignment of each row of ``costs`` to a column of its own; rows are at most as many as columns.

    Shortest augmenting paths: Kuhn 1955, Munkres 1957, with Jonker and Volgenant's potentials.
    """
    costs, slack = legs.costs, legs.prices[2]
    row_price, column_price = legs.prices[0], legs.prices[1]
    row_of, back, done, waits = legs.matches[0], legs.matches[1], legs.matches[2], legs.matches[3]
    for j in range(columns + 1):
        row_of[j], column_price[j] = 0, 0.0
    for i in range(1, rows + 1):
        cheapest = 1
        for j in range(2, columns + 1):
            if costs[i - 1, j - 1] < costs[i - 1, cheapest - 1]:
                cheapest = j
        row_price[i] = costs[i - 1, cheapest - 1]
        if row_of[cheapest] == 0:  # most rows have their cheapest column, and need no path
            row_of[cheapest], waits[i] = i, 0
        else:
            waits[i] = 1
    for i in range(1, rows + 1):
        if not waits[i]:
            continue
        row_of[0], at = i, 0
        for j in range(columns + 1):
            slack[j], done[j] = math.inf, 0
        while row_of[at] != 0:
            done[at] = 1
            row, least, following = row_of[at], math.inf, 0
            for j in range(1, columns + 1):
                if done[j]:
                    continue
                over = costs[row - 1, j - 1] - row_price[row] - column_price[j]
                if over < slack[j]:
                    slack[j], back[j] = over, at
                if slack[j] < least:
                    least, following = slack[j], j
            for j in range(columns + 1):
                if done[j]:
                    row_price[row_of[j]] += least
                    column_price[j] -= least
                else:
                    slack[j] -= least
            at = following
        while at != 0:
            row_of[at] = row_of[back[at]]
            at = back[at]
    total = 0.0
    for j in range(1, columns + 1):
        if row_of[j] != 0:
            total += costs[row_of[j] - 1, j - 1]
    return total


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(sample_legs(),)])
def rounds(legs: Legs) -> int:
    """How many times one gets back to where one began, from each place to where what lies there leads."""
    leads, seen = legs.leads[0], legs.leads[1]
    found, places = 0, legs.ways.shape[0]
    for place in range(places):
        seen[place] = -1
    for begin in range(places):
        at = begin
        while leads[at] >= 0 and seen[at] < 0:
            seen[at] = begin
            at = leads[at]
        found += leads[at] >= 0 and seen[at] == begin
    return found


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(sample_legs(), np.zeros(1, np.int64))])
def least_cost(legs: Legs, wants: NDArray[np.int64]) -> float:
    """At least so much it costs to get to what is wanted, numbers of facts or -1."""
    if legs.robot < 0:
        return 0.0
    last, in_hand = -1, -1
    for fact in wants:
        if fact >= 0 and legs.kind[fact] == ROBOT:
            last = legs.place[fact]
        elif fact >= 0 and legs.kind[fact] == HAND:
            in_hand = legs.thing[fact]
    if in_hand >= 0 and last < 0:
        return 0.0
    ends, begins, whose, whom, leads = legs.empty[0], legs.empty[1], legs.empty[2], legs.empty[3], legs.leads[0]
    for place in range(legs.ways.shape[0]):
        leads[place] = -1
    cost, taken, put = 0.0, 0, 0
    for fact in wants:
        if fact < 0 or legs.thing[fact] < 0:
            continue
        thing, end = legs.thing[fact], legs.place[fact] if legs.kind[fact] == ON else last
        begin = legs.begin[thing]
        if begin < 0 or (begin == end and (thing == legs.held) == (thing == in_hand)):
            continue
        cost += legs.ways[begin, end]
        if thing != legs.held:
            begins[taken], whom[taken] = begin, thing
            taken += 1
        if thing != in_hand:
            ends[put], whose[put] = end, thing
            put += 1
            if thing != legs.held:
                leads[begin] = end
    handled = taken + put + 2 * rounds(legs)
    if legs.held < 0:
        ends[put], whose[put] = legs.robot, -1
        put += 1
    if last >= 0 and in_hand < 0:
        begins[taken], whom[taken] = last, -2
        taken += 1
    if 0 < taken <= put:
        for i in range(taken):
            for j in range(put):
                a, b, free = ends[j], begins[i], whose[j] < 0 or whom[i] < 0
                late = not free and (whose[j] == whom[i] or a == b)
                legs.costs[i, j] = legs.past[a, b] if late else legs.ways[a, b]
        cost += assigned(legs, taken, put)
    return cost + legs.handle * handled
