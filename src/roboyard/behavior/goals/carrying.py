"""Things that one hand carries from place to place: actions whose costs are geometry, and a bound of them.

Conditions: ``robot`` (a place), ``hand`` (a thing or "nothing"), ``on PLACE`` (a thing or "nothing").  A place has room
for one thing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import product

import numpy as np
from numpy.typing import NDArray

from roboyard.behavior.goals.domain import Action, Domain, Fact, Impossible, Value, World
from roboyard.behavior.goals.legs import HAND, ON, OTHER, ROBOT, Legs, room

NOTHING = "nothing"
Distance = Callable[[str, str], float]
"""Between two places; infinite where there is no way."""


@dataclass(frozen=True)
class Carrying:
    """What is carried where, and what it costs.

    Attributes:
        places: Their names.
        things: Theirs.
        distance: Between places, never longer than by way of a third one.
        drive: Of a distance of 1.
        handle: Of taking something or setting it down.
    """

    places: tuple[str, ...]
    things: tuple[str, ...]
    distance: Distance
    drive: float = 1.0
    handle: float = 1.0

    def domain(self) -> Domain:
        """Drive, take and put."""
        way = cache(self.distance)

        def cost(binding: Mapping[str, str]) -> float:
            length = way(binding["from"], binding["to"])
            if length == float("inf"):
                raise Impossible(f"there is no way from {binding['from']} to {binding['to']}")
            return max(self.drive * length, 1e-6)

        both = {"thing": self.things, "place": self.places}
        drive = Action("drive", {"robot": "$to"}, {"robot": "$from"}, {"to": self.places, "from": self.places}, cost)
        take = Action(
            "take",
            {"hand": "$thing", "on $place": NOTHING},
            {"robot": "$place", "hand": NOTHING, "on $place": "$thing"},
            both,
            self.handle,
        )
        put = Action(
            "put",
            {"on $place": "$thing", "hand": NOTHING},
            {"robot": "$place", "hand": "$thing", "on $place": NOTHING},
            both,
            self.handle,
        )
        return Domain((drive, take, put), bound=partial(joined_ways, self))


def joined_ways(carrying: Carrying, world: World, facts: Sequence[Fact]) -> Legs:
    """What the bound of costs is told, of a world and of facts that may be wanted."""
    places = {place: number for number, place in enumerate(carrying.places)}
    table = np.array([[carrying.distance(a, b) for b in places] for a in places], dtype=float)
    ways = carrying.drive * np.where(np.isfinite(table), table, 1e9)
    where = {f"on {place}": number for place, number in places.items()}
    robot, held = places.get(world.get("robot"), -1), world.get("hand", NOTHING)  # type: ignore[call-overload]
    things: dict[Value, int] = {} if held == NOTHING else {held: 0}
    kind = np.full(len(facts), OTHER)
    place, thing = np.full(len(facts), -1), np.full(len(facts), -1)
    for number, (name, value) in enumerate(facts):
        if name == "robot":
            kind[number], place[number] = ROBOT, places.get(value, -1)  # type: ignore[call-overload]
        elif name == "hand" or name in where:
            kind[number], place[number] = HAND if name == "hand" else ON, where.get(name, -1)
            if value != NOTHING:
                thing[number] = things.setdefault(value, len(things))
    lies = {world[on]: number for on, number in where.items() if on in world}
    begin = np.array([robot if one == held else lies.get(one, -1) for one in things], np.int64)
    return Legs(
        kind, place, thing, begin, ways, _past(ways), float(carrying.handle), robot, things.get(held, -1),
        *room(max(len(places), len(things))),
    )  # fmt: skip


def _past(ways: NDArray[np.float64]) -> NDArray[np.float64]:
    """From each place to each past at least one other place."""
    count = len(ways)
    found = np.full((count, count), 1e9)
    for a, b in product(range(count), repeat=2):
        others = [place for place in range(count) if place not in (a, b)]
        least = min((ways[a, z] + ways[z, b] for z in others), default=1e9)
        found[a, b] = least if a == b else min(least, 2.0 * ways[a, b] + ways[b, a])
    return found
