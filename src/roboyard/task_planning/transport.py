"""Transport by one gripper: actions whose costs follow from distances, and the heuristic for them.

Conditions: ``robot`` (a place), ``hand`` (an object or "nothing"), ``on PLACE`` (an object or "nothing"). A place
    holds one object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import product

import numpy as np
from numpy.typing import NDArray

from roboyard.task_planning.domain import Fact, NoPlanError, PlanningAction, PlanningDomain, Value, WorldState
from roboyard.task_planning.transport_costs import (
    OBJECT_AT_PLACE,
    OBJECT_IN_HAND,
    OTHER_FACT,
    ROBOT_AT_PLACE,
    TransportCosts,
    allocate_workspace,
)

EMPTY_HAND = "nothing"
Distance = Callable[[str, str], float]
"""Between two places; infinite where there is no way."""


@dataclass(frozen=True)
class TransportModel:
    """Objects and places of transport by one gripper, and the costs.

    Attributes:
        places: Names of the places.
        objects: Names of the objects.
        distance: Between two places; satisfies the triangle inequality.
        cost_per_distance: Cost of a distance of 1.
        handling_cost: Cost of picking an object or of putting it down.
    """

    places: tuple[str, ...]
    objects: tuple[str, ...]
    distance: Distance
    cost_per_distance: float = 1.0
    handling_cost: float = 1.0

    def domain(self) -> PlanningDomain:
        """Return the actions drive, take and put."""
        cached_distance = cache(self.distance)

        def cost(binding: Mapping[str, str]) -> float:
            length = cached_distance(binding["from"], binding["to"])
            if length == float("inf"):
                raise NoPlanError(f"there is no way from {binding['from']} to {binding['to']}")
            return max(self.cost_per_distance * length, 1e-6)

        parameters = {"object": self.objects, "place": self.places}
        drive = PlanningAction(
            "drive", {"robot": "$to"}, {"robot": "$from"}, {"to": self.places, "from": self.places}, cost
        )
        pick = PlanningAction(
            "take",
            {"hand": "$object", "on $place": EMPTY_HAND},
            {"robot": "$place", "hand": EMPTY_HAND, "on $place": "$object"},
            parameters,
            self.handling_cost,
        )
        put = PlanningAction(
            "put",
            {"on $place": "$object", "hand": EMPTY_HAND},
            {"robot": "$place", "hand": "$object", "on $place": EMPTY_HAND},
            parameters,
            self.handling_cost,
        )
        return PlanningDomain((drive, pick, put), heuristic=partial(transport_costs, self))


def transport_costs(model: TransportModel, world: WorldState, facts: Sequence[Fact]) -> TransportCosts:
    """Return the costs of a state of the world and of facts that may be desired, for the heuristic."""
    places = {place_index: index for index, place_index in enumerate(model.places)}
    distances = np.array([[model.distance(a, b) for b in places] for a in places], dtype=float)
    drive_costs = model.cost_per_distance * np.where(np.isfinite(distances), distances, 1e9)
    conditions = {f"on {place_index}": index for place_index, index in places.items()}
    robot, object_in_hand = places.get(world.get("robot"), -1), world.get("hand", EMPTY_HAND)  # type: ignore[call-overload]
    object_indices: dict[Value, int] = {} if object_in_hand == EMPTY_HAND else {object_in_hand: 0}
    fact_kind = np.full(len(facts), OTHER_FACT)
    place_index, object_index = np.full(len(facts), -1), np.full(len(facts), -1)
    for index, (name, value) in enumerate(facts):
        if name == "robot":
            fact_kind[index], place_index[index] = ROBOT_AT_PLACE, places.get(value, -1)  # type: ignore[call-overload]
        elif name == "hand" or name in conditions:
            fact_kind[index], place_index[index] = (
                OBJECT_IN_HAND if name == "hand" else OBJECT_AT_PLACE,
                conditions.get(name, -1),
            )
            if value != EMPTY_HAND:
                object_index[index] = object_indices.setdefault(value, len(object_indices))
    place_by_object = {world[on]: index for on, index in conditions.items() if on in world}
    start_place = np.array(
        [
            robot if name_of_object == object_in_hand else place_by_object.get(name_of_object, -1)
            for name_of_object in object_indices
        ],
        np.int64,
    )
    return TransportCosts(
        fact_kind,
        place_index,
        object_index,
        start_place,
        drive_costs,
        _detour_costs(drive_costs),
        float(model.handling_cost),
        robot,
        object_indices.get(object_in_hand, -1),
        *allocate_workspace(max(len(places), len(object_indices))),
    )


def _detour_costs(drive_costs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the costs from each place to each other one by at least one further place."""
    count = len(drive_costs)
    found = np.full((count, count), 1e9)
    for a, b in product(range(count), repeat=2):
        others = [place for place in range(count) if place not in (a, b)]
        min_cost = min((drive_costs[a, z] + drive_costs[z, b] for z in others), default=1e9)
        found[a, b] = min_cost if a == b else min(min_cost, 2.0 * drive_costs[a, b] + drive_costs[b, a])
    return found
