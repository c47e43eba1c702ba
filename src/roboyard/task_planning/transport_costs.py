"""Lower bound of transport costs: an admissible heuristic for the search, compiled.

An object is carried from its place to its desired place. The drives without an object lead from the robot's place
and from places where objects are put down to places where objects are picked and to the robot's desired place:
they cost no less than the cheapest assignment of the former to the latter. From the place where an object is
put down the robot cannot pick what had to be removed before (the object itself, or what occupied the place):
such a drive passes a third place, where something was put down temporarily. And in each cycle of objects that
exchange their places, one object is put down once more.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel

OTHER_FACT: Final = 0
ROBOT_AT_PLACE: Final = 1
OBJECT_IN_HAND: Final = 2
OBJECT_AT_PLACE: Final = 3

Indices = NDArray[np.int64]
Costs = NDArray[np.float64]


class TransportCosts(NamedTuple):
    """Costs and workspace of the transport heuristic.

    Attributes:
        fact_kind: Kind of each fact: place of the robot, object in the gripper, object at a place, or another one.
        fact_place: Place of each fact; -1 without one.
        fact_object: Object of each fact; -1 without one, or for no object.
        start_place: Place of each object, of the held one that of the robot; -1 if it is not known.
        drive_costs, detour_costs: Costs of a drive between two places, directly and by a third place.
        handling_cost: Cost of picking an object or of putting it down.
        robot_place: Place of the robot; -1 if it is not known, then there is no bound.
        object_in_hand: The held object, or -1.
        empty_drives: (4, n) starts and ends of drives without an object, and the objects before and after them.
        transport_links: (2, n) for each place the one to which its object is carried; and marks of visited places.
        empty_drive_costs: (n, n) costs of drives without an object.
        potentials: (3, n) of the assignment's rows and columns, and reduced costs.
        assignment: (4, n) of its columns: row, previous column, whether it is visited; which rows are unassigned.
    """

    fact_kind: Indices
    fact_place: Indices
    fact_object: Indices
    start_place: Indices
    drive_costs: Costs
    detour_costs: Costs
    handling_cost: float
    robot_place: int
    object_in_hand: int
    empty_drives: Indices
    transport_links: Indices
    empty_drive_costs: Costs
    potentials: Costs
    assignment: Indices


def no_transport_costs(n_facts: int) -> TransportCosts:
    """Return the costs where nothing is known about transport."""
    no_indices, table = np.zeros(0, np.int64), np.zeros((0, 0))
    return TransportCosts(
        np.zeros(n_facts, np.int64),
        no_indices,
        no_indices,
        no_indices,
        table,
        table,
        0.0,
        -1,
        -1,
        *allocate_workspace(0),
    )


def allocate_workspace(size: int) -> tuple[Indices, Indices, Costs, Costs, Indices]:
    """Allocate the workspace for a number of places and objects."""
    n = size + 3
    empty_drives, transport_links, assignment = (np.zeros((rows, n), np.int64) for rows in (4, 2, 4))
    return empty_drives, transport_links, np.zeros((n, n)), np.zeros((3, n)), assignment


def example_transport_costs() -> TransportCosts:
    """Return costs with the argument types of the kernels."""
    return no_transport_costs(1)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(example_transport_costs(), 1, 1)])
def assignment_cost(transport: TransportCosts, n_rows: int, n_columns: int) -> float:
    """Return the cost of the cheapest assignment of each row of ``empty_drive_costs`` to a column of its own; there are
    no more rows than columns.

    Shortest augmenting paths: Kuhn 1955, Munkres 1957, with the potentials of Jonker and Volgenant.
    """
    costs, reduced_cost = transport.empty_drive_costs, transport.potentials[2]
    row_potential, column_potential = transport.potentials[0], transport.potentials[1]
    row_of_column, previous_column, is_visited, is_unassigned = (
        transport.assignment[0],
        transport.assignment[1],
        transport.assignment[2],
        transport.assignment[3],
    )
    for j in range(n_columns + 1):
        row_of_column[j], column_potential[j] = 0, 0.0
    for i in range(1, n_rows + 1):
        cheapest = 1
        for j in range(2, n_columns + 1):
            if costs[i - 1, j - 1] < costs[i - 1, cheapest - 1]:
                cheapest = j
        row_potential[i] = costs[i - 1, cheapest - 1]
        if row_of_column[cheapest] == 0:  # most rows have their cheapest column, and need no path
            row_of_column[cheapest], is_unassigned[i] = i, 0
        else:
            is_unassigned[i] = 1
    for i in range(1, n_rows + 1):
        if not is_unassigned[i]:
            continue
        row_of_column[0], column = i, 0
        for j in range(n_columns + 1):
            reduced_cost[j], is_visited[j] = math.inf, 0
        while row_of_column[column] != 0:
            is_visited[column] = 1
            row, min_reduced_cost, next_column = row_of_column[column], math.inf, 0
            for j in range(1, n_columns + 1):
                if is_visited[j]:
                    continue
                reduced = costs[row - 1, j - 1] - row_potential[row] - column_potential[j]
                if reduced < reduced_cost[j]:
                    reduced_cost[j], previous_column[j] = reduced, column
                if reduced_cost[j] < min_reduced_cost:
                    min_reduced_cost, next_column = reduced_cost[j], j
            for j in range(n_columns + 1):
                if is_visited[j]:
                    row_potential[row_of_column[j]] += min_reduced_cost
                    column_potential[j] -= min_reduced_cost
                else:
                    reduced_cost[j] -= min_reduced_cost
            column = next_column
        while column != 0:
            row_of_column[column] = row_of_column[previous_column[column]]
            column = previous_column[column]
    total = 0.0
    for j in range(1, n_columns + 1):
        if row_of_column[j] != 0:
            total += costs[row_of_column[j] - 1, j - 1]
    return total


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(example_transport_costs(),)])
def count_round_trips(transport: TransportCosts) -> int:
    """Count the cycles of places whose objects are exchanged."""
    next_place, visited_from = transport.transport_links[0], transport.transport_links[1]
    n_round_trips, n_places = 0, transport.drive_costs.shape[0]
    for place in range(n_places):
        visited_from[place] = -1
    for start in range(n_places):
        place_on_trip = start
        while next_place[place_on_trip] >= 0 and visited_from[place_on_trip] < 0:
            visited_from[place_on_trip] = start
            place_on_trip = next_place[place_on_trip]
        n_round_trips += next_place[place_on_trip] >= 0 and visited_from[place_on_trip] == start
    return n_round_trips


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(example_transport_costs(), np.zeros(1, np.int64))])
def transport_lower_bound(transport: TransportCosts, desired_facts: NDArray[np.int64]) -> float:
    """Return a lower bound of the cost of reaching desired facts (indices, or -1)."""
    if transport.robot_place < 0:
        return 0.0
    final_place, final_object_in_hand = -1, -1
    for fact in desired_facts:
        if fact >= 0 and transport.fact_kind[fact] == ROBOT_AT_PLACE:
            final_place = transport.fact_place[fact]
        elif fact >= 0 and transport.fact_kind[fact] == OBJECT_IN_HAND:
            final_object_in_hand = transport.fact_object[fact]
    if final_object_in_hand >= 0 and final_place < 0:
        return 0.0
    drive_starts, drive_ends, object_put_before, object_picked_next, target_of_place = (
        transport.empty_drives[0],
        transport.empty_drives[1],
        transport.empty_drives[2],
        transport.empty_drives[3],
        transport.transport_links[0],
    )
    for place in range(transport.drive_costs.shape[0]):
        target_of_place[place] = -1
    cost, n_picked, n_put = 0.0, 0, 0
    for fact in desired_facts:
        if fact < 0 or transport.fact_object[fact] < 0:
            continue
        object_index, end_place = (
            transport.fact_object[fact],
            transport.fact_place[fact] if transport.fact_kind[fact] == OBJECT_AT_PLACE else final_place,
        )
        start_place = transport.start_place[object_index]
        if start_place < 0 or (
            start_place == end_place
            and (object_index == transport.object_in_hand) == (object_index == final_object_in_hand)
        ):
            continue
        cost += transport.drive_costs[start_place, end_place]
        if object_index != transport.object_in_hand:
            drive_ends[n_picked], object_picked_next[n_picked] = start_place, object_index
            n_picked += 1
        if object_index != final_object_in_hand:
            drive_starts[n_put], object_put_before[n_put] = end_place, object_index
            n_put += 1
            if object_index != transport.object_in_hand:
                target_of_place[start_place] = end_place
    n_handlings = n_picked + n_put + 2 * count_round_trips(transport)
    if transport.object_in_hand < 0:
        drive_starts[n_put], object_put_before[n_put] = transport.robot_place, -1
        n_put += 1
    if final_place >= 0 and final_object_in_hand < 0:
        drive_ends[n_picked], object_picked_next[n_picked] = final_place, -2
        n_picked += 1
    if 0 < n_picked <= n_put:
        for i in range(n_picked):
            for j in range(n_put):
                from_place, to_place, is_independent = (
                    drive_starts[j],
                    drive_ends[i],
                    object_put_before[j] < 0 or object_picked_next[i] < 0,
                )
                needs_detour = not is_independent and (
                    object_put_before[j] == object_picked_next[i] or from_place == to_place
                )
                transport.empty_drive_costs[i, j] = (
                    transport.detour_costs[from_place, to_place]
                    if needs_detour
                    else transport.drive_costs[from_place, to_place]
                )
        cost += assignment_cost(transport, n_picked, n_put)
    return cost + transport.handling_cost * n_handlings
