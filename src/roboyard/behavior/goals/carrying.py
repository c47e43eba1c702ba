"""Things that one hand carries from place to place: actions whose costs are geometry, and a bound of them.

Conditions: ``robot`` (a place), ``hand`` (a thing or "nothing"), ``on PLACE`` (a thing or "nothing").  A place has room
for one thing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from scipy.optimize import linear_sum_assignment

from roboyard.behavior.goals.domain import Action, Domain, Impossible, World

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
        return Domain((drive, take, put), bound=partial(JoinedWays, self))


class JoinedWays:
    """From a world: ways with a thing in the hand, and at least so much without one as it takes to join them.

    A thing is carried from where it is to where it is wanted, whatever lies between.  The ways without one go from
    where the robot is and where things are set down to where things are and where the robot is wanted: they cost no
    less than the cheapest assignment of those to these.  From where a thing is set down nobody can go to take what had
    to be away before (itself; what lay there): such a way leads past a third place, where something was set down for
    the time being.  And of things that each want another one's place, round and round, one is set down once more.
    """

    def __init__(self, carrying: Carrying, world: World) -> None:
        places = carrying.places
        self._number = number = {place: index for index, place in enumerate(places)}
        table = np.array([[carrying.distance(a, b) for b in places] for a in places], dtype=float)
        self._ways = ways = carrying.drive * np.where(np.isfinite(table), table, 1e9)
        self._past = np.array([[_past(ways, a, b) for b in range(len(places))] for a in range(len(places))])
        self._handle = carrying.handle
        self._where = {f"on {place}": number[place] for place in places}
        self._robot = number.get(world.get("robot"))  # type: ignore[call-overload]
        self._held = world.get("hand", NOTHING)
        self._lies = {
            world[on]: place for on, place in self._where.items() if world.get(on, NOTHING) != NOTHING
        }  # fmt: skip

    def __call__(self, wants: World) -> float:
        """At least so much it costs to get to what is wanted."""
        where, lies, held, robot = self._where, self._lies, self._held, self._robot
        last = self._number.get(wants.get("robot"))  # type: ignore[call-overload]
        in_hand = wants.get("hand", NOTHING)
        if robot is None or (in_hand != NOTHING and last is None):
            return 0.0
        wanted = [(thing, where[on]) for on, thing in wants.items() if thing != NOTHING and on in where]
        if in_hand != NOTHING:
            wanted.append((in_hand, last))
        cost = 0.0
        begins: list[int] = []
        taken: list[int] = []
        ends: list[int] = []
        put: list[int] = []
        leads: dict[int, int] = {}
        for index, (thing, end) in enumerate(wanted):
            begin = robot if thing == held else lies.get(thing)
            if begin is None or (begin == end and (thing == held) == (thing == in_hand)):
                continue
            cost += self._ways[begin, end]
            if thing != held:
                begins.append(begin)
                taken.append(index)
            if thing != in_hand:
                ends.append(end)
                put.append(index)
                if thing != held:
                    leads[begin] = end
        handled = len(begins) + len(ends) + 2 * _rounds(leads)
        if held == NOTHING:
            ends.append(robot)
            put.append(-1)
        if last is not None and in_hand == NOTHING:
            begins.append(last)
            taken.append(-2)
        if begins and len(begins) <= len(ends):
            a, b = np.array(ends)[:, None], np.array(begins)
            late = (np.array(put)[:, None] == np.array(taken)) | (a == b)
            if held == NOTHING:
                late[-1] = False
            if last is not None and in_hand == NOTHING:
                late[:, -1] = False
            costs = np.where(late, self._past[a, b], self._ways[a, b])
            rows, columns = linear_sum_assignment(costs)
            cost += costs[rows, columns].sum()
        return float(cost + self._handle * handled)


def _past(ways: np.ndarray, a: int, b: int) -> float:
    """From a to b past at least one other place."""
    others = [place for place in range(len(ways)) if place not in (a, b)]
    least = min((ways[a, z] + ways[z, b] for z in others), default=1e9)
    return float(least if a == b else min(least, 2.0 * ways[a, b] + ways[b, a]))


def _rounds(leads: dict[int, int]) -> int:
    """How many times one gets back to where one began."""
    rounds, seen = 0, set()
    for begin in leads:
        at, own = begin, set()
        while at in leads and at not in seen:
            seen.add(at)
            own.add(at)
            at = leads[at]
        rounds += at in own
    return rounds
