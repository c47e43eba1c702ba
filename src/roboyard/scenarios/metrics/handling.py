"""How an arm's picking and placing went, by what its skills said and by where the things truly are."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from roboyard.geometry import SE3
from roboyard.messages.convert import pose_to_se3, transform_to_se3, vector_to_array
from roboyard.scenarios.metrics.collector import Collector, Handler, Value
from roboyard.scenarios.thing_truth import MOVING, STILL

_UNTRIED = (
    "view_empty",
    "disagreement",
    "cancelled",
    "preempted",
    "covered",
    "bay_full",
    "hand_full",
    "nothing_loaded",
)
"""Causes for which nothing was gone for."""
_SETTLE_NS = 600_000_000
"""After it has been put down a thing is judged where it lies then [ns]."""
_NEAR = 0.03
"""A thing or mark belongs to a place that is named if it is as near [m]."""
_STANDS = math.cos(math.radians(10.0))
_PLACED = 0.01
"""What stands farther from where it should has not been placed [m]."""
_RISEN = 0.015
"""What was picked is higher by more than when the skill began [m]."""
_APART_NS = 200_000_000
_LOW = 0.02
"""What is no higher stands on the floor [m]."""


@dataclass(slots=True)
class Handled:
    """One pick or place.

    Attributes:
        time: When it ended [s].
        skill: pick or place.
        seconds: How long it took [s].
        done: What the skill says.
        cause: Why not.
        text: The same in a sentence.
        bay: Where the thing came from or went to; 0: unknown.
        thing: Which it truly was; empty: unknown.
        error: From where it should stand to where it stands, in the plane [m]; None: not measured.
        stands: Whether it stands upright there.
        risen: Of a pick: whether something is truly up.
    """

    time: float
    skill: str
    seconds: float
    done: bool
    cause: str
    text: str
    bay: int
    thing: str = ""
    error: float | None = None
    stands: bool = True
    risen: bool = True

    @property
    def good(self) -> bool:
        """Done, and in truth so."""
        return self.done and self.stands and self.risen and (self.error is None or self.error <= _PLACED)


class Handling(Collector):
    """Picks and places from the events of skills; where things stand, by the truth.

    ``picks``, ``places``: that something was gone for, or brought; not those that found nothing in view or were
    cancelled.  ``picks_ok``, ``places_ok``: that were done; what was picked is truly up, what was placed stands
    upright, within 10 mm of where it should.  ``place_error_mean_mm``, ``place_error_p95_mm``: from the middle between
    two discs, or the place that was asked for, to the thing's true middle, 0.6 s after it was put down; where a mark
    moves, from where it is then.
    ``objects_per_hour``: placed, from the first skill's begin to the last place's end.  ``recoveries``: things that
    went wrong and were mended.  ``collisions``: times that the robot touched anything with anything but its fingers, or
    with its fingers what cannot be moved; what stands upright on its root link, in a bay, touches that rightly.
    """

    names = (
        "picks", "picks_ok", "places", "places_ok", "place_error_mean_mm", "place_error_p95_mm", "objects_per_hour",
        "recoveries", "collisions",
    )  # fmt: skip

    def __init__(self, namespace: str, truth: str, contacts: str) -> None:
        self._topics = (f"{namespace}/skills/events", MOVING, STILL, truth, contacts)
        self.handled: list[Handled] = []
        self._waiting: list[
            tuple[int, int, str, tuple[float, float]]
        ] = []  # row, when to judge, which mark, where else
        self._begun: dict[int, float] = {}
        self._lay: dict[str, float] = {}  # heights when the last pick began
        self._things: dict[str, tuple[float, float, float, float]] = {}  # x, y, z, cosine of its tilt
        self._trunk = ""
        self._marks: dict[str, tuple[float, float]] = {}
        self._root = (SE3.identity().translation.tolist(), SE3.identity().rotation.tolist())
        self._first: float | None = None
        self._last = 0.0
        self._recoveries = self._collisions = 0
        self._touching: list[tuple[str, str]] = []
        self._apart: dict[tuple[str, str], int] = {}
        self._heard = False

    def handlers(self) -> Mapping[str, Handler]:
        """Events of skills, truth of things, robot and contacts."""
        takes = (self._on_event, self._on_things, self._on_marks, self._on_truth, self._on_contacts)
        return dict(zip(self._topics, takes, strict=True))

    def _on_things(self, message: Any, time_ns: int) -> None:
        self._judge(time_ns)
        self._things = {}
        for one in message.transforms:
            pose = transform_to_se3(one.transform)
            x, y, z = (float(value) for value in pose.translation)
            self._things[one.child_frame_id] = (x, y, z, float(pose.rotation_matrix()[2, 2]))

    def _on_marks(self, message: Any, time_ns: int) -> None:
        self._marks = {
            str(t.child_frame_id): (t.transform.translation.x, t.transform.translation.y) for t in message.transforms
        }

    def _on_truth(self, message: Any, time_ns: int) -> None:
        if self._heard:  # else nobody needs it
            self._trunk = str(message.child_frame_id).rpartition("/")[2]
            pose = pose_to_se3(message.pose.pose)
            self._root = (pose.translation.tolist(), pose.rotation.tolist())
        if self._waiting:
            self._judge(time_ns)

    def _on_event(self, message: Any, time_ns: int) -> None:
        self._heard = True
        time = time_ns * 1e-9
        if self._first is None:
            self._first = time
        self._judge(time_ns)
        if message.event == "started":
            self._begun[int(message.id)] = time
            if message.skill == "pick":
                self._lay = {name: place[2] for name, place in self._things.items()}
        elif message.event == "recovered":
            self._recoveries += 1
        elif message.event == "finished":
            begun = self._begun.pop(int(message.id), time)
            if message.skill in ("pick", "place") and (message.success or message.error_code not in _UNTRIED):
                self._ended(message, time_ns, time - begun)

    def _ended(self, message: Any, time_ns: int, seconds: float) -> None:
        row = Handled(
            time_ns * 1e-9, str(message.skill), seconds, bool(message.success), str(message.error_code),
            str(message.message), int(message.bay),
        )  # fmt: skip
        self.handled.append(row)
        if message.success and message.skill == "pick" and self._lay:
            risen = {name: place[2] - self._lay.get(name, place[2]) for name, place in self._things.items()}
            highest = max(risen, key=lambda name: risen[name], default="")
            row.risen = bool(highest) and risen[highest] > _RISEN
            row.thing = highest if row.risen else ""
        if message.success and message.skill == "place":
            self._last = row.time
            if message.has_position:
                self._waiting.append((len(self.handled) - 1, time_ns + _SETTLE_NS, *self._wanted(message.position)))

    def _wanted(self, position: Any) -> tuple[str, tuple[float, float]]:
        """Where the thing should stand in the world: on the mark that is meant, else exactly where it was said."""
        T_world_root = SE3(self._root[1], self._root[0])
        x, y, _ = (float(value) for value in T_world_root @ vector_to_array(position))
        near = {name: math.hypot(u - x, v - y) for name, (u, v) in self._marks.items()}
        mark = min(near, key=lambda name: near[name], default="")
        return mark if mark and near[mark] <= _NEAR else "", (x, y)

    def _judge(self, time_ns: int) -> None:
        while self._waiting and time_ns >= self._waiting[0][1]:
            number, _, mark, said = self._waiting.pop(0)
            x, y = self._marks.get(mark, said)
            row = self.handled[number]
            if not self._things:
                continue
            name, (u, v, _, upright) = min(
                self._things.items(), key=lambda item: math.hypot(item[1][0] - x, item[1][1] - y)
            )
            row.thing, row.error, row.stands = name, math.hypot(u - x, v - y), upright > _STANDS

    def _on_contacts(self, message: Any, time_ns: int) -> None:
        pairs = sorted(
            {(str(one.collision1_name), str(one.collision2_name)) for one in message.states if self._is_collision(one)}
        )
        for pair in self._touching:
            self._apart[pair] = time_ns
        for pair in pairs:
            last = self._apart.get(pair)
            if pair not in self._touching and (last is None or time_ns - last > _APART_NS):
                self._collisions += 1
        self._touching = pairs

    def _is_collision(self, state: Any) -> bool:
        own, other = str(state.collision1_name), str(state.collision2_name)
        thing = self._things.get(other.partition("::")[0])
        if thing is None:
            return True
        stands_on_it = own.split("::")[1:2] == [self._trunk] and thing[2] > _LOW and thing[3] > _STANDS
        return not (stands_on_it or "finger" in own)

    def finish(self, time_ns: int) -> None:
        """What was put down last is judged where it stands now."""
        self._judge(time_ns + _SETTLE_NS)

    def result(self) -> dict[str, Value]:
        """None where nobody told of any skill; then ``recoveries`` are the navigator's."""
        if not self._heard:
            return dict.fromkeys(name for name in self.names if name != "recoveries")
        picks = [row for row in self.handled if row.skill == "pick"]
        places = [row for row in self.handled if row.skill == "place"]
        good = [row for row in places if row.good]
        errors = np.array([1e3 * row.error for row in places if row.done and row.error is not None])
        hours = (self._last - (self._first or 0.0)) / 3600.0
        return {
            "picks": len(picks),
            "picks_ok": sum(row.good for row in picks),
            "places": len(places),
            "places_ok": len(good),
            "place_error_mean_mm": float(errors.mean()) if len(errors) else None,
            "place_error_p95_mm": float(np.percentile(errors, 95)) if len(errors) else None,
            "objects_per_hour": len(good) / hours if hours > 0.0 else None,
            "recoveries": self._recoveries,
            "collisions": self._collisions,
        }

    def save_state(self) -> dict[str, Any]:
        """All but the names of topics; rows as plain data."""
        saved = {key: value for key, value in vars(self).items() if key not in ("_topics", "handled")}
        return copy.deepcopy({**saved, "rows": [asdict(row) for row in self.handled]})

    def load_state(self, saved: dict[str, Any]) -> None:
        """Counterpart of `save`."""
        own = copy.deepcopy(saved)
        self.handled = [Handled(**row) for row in own.pop("rows")]
        vars(self).update(own)
