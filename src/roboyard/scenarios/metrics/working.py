"""How a robot and people work: what was done, how long it took, who was idle."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from roboyard.scenarios.metrics.collector import Collector, Handler, Value
from roboyard.scenarios.thing_truth import MOVING

CYCLE = "cycle"
"""The task that a robot's work is counted by."""
NEAR = 0.03
"""A thing that was brought somewhere is truly as near to where it was to be [m]."""
PAUSE = 0.5
"""A shorter rest is no idleness: somebody plans, or changes over [s]."""
_SETTLED_NS = 400_000_000
_MOVES = 0.01
"""Faster joints move [rad/s or m/s]."""
_IDLE = ("idle", "setup")

Spans = list[list[float]]
"""[from, to] in order [s]."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of work.

    Attributes:
        actor: Who does it.
        task: What kind of work.
        begun: When [s].
        ended: When; None while it is under way [s].
        done: Whether it was said to be done.
        right: Whether the thing was truly where it was to be, where that was said.
        thing: Its name, or empty.
        place: Where it was to be, or empty [m].
    """

    actor: str
    task: str
    begun: float
    ended: float | None = None
    done: bool = False
    right: bool = True
    thing: str = ""
    place: tuple[float, ...] = ()

    @property
    def good(self) -> bool:
        """Whether it was done, and truly so."""
        return self.ended is not None and self.done and self.right


class Working(Collector):
    """What missions tell of work (roboyard_msgs/WorkEvent), against where things truly are, and who moved when.

    ``cycles``: pieces of the robot's work that were done, and truly so; ``cycle_time``: what one took in the mean [s];
    ``throughput``: of them an hour; ``work_ended``: pieces of anybody's work that came to an end; ``work_done``: the
    share of them that was done, and truly so; ``work_wrong``: said to be done though the thing was not there;
    ``robot_idle``, ``human_idle``: the share of time in which the robot did not move, and in which people stood idle,
    rests below 0.5 s not counted; ``concurrent_activity``: in which both were active.
    """

    names = (
        "cycles", "cycle_time", "throughput", "work_ended", "work_done", "work_wrong", "robot_idle", "human_idle",
        "concurrent_activity",
    )  # fmt: skip

    def __init__(self, namespace: str) -> None:
        self._topics = ("/work", f"{namespace}/joint_states")
        self.pieces: list[Piece] = []
        self.active: dict[str, Spans] = {"": []}
        self.end = 0.0
        self._things: dict[str, tuple[float, float, float]] = {}
        self._pending: list[tuple[int, int]] = []
        self._doing: dict[str, str] = {}

    def handlers(self) -> Mapping[str, Handler]:
        """Work, joints, and where things truly are."""
        work, joints = self._topics
        return {work: self._on_work, joints: self._on_joints, MOVING: self._on_things}

    def meet_person(self, name: str) -> Mapping[str, Handler]:
        """What somebody does."""
        self.active[name] = []
        return {f"/{name}/state": lambda message, time_ns: self._on_person(name, message, time_ns)}

    # -- activity ------------------------------------------------------------------------------------------------------
    def _on_joints(self, message: Any, time_ns: int) -> None:
        if len(message.velocity) and float(abs(message.velocity).max()) > _MOVES:
            _extend(self.active[""], time_ns * 1e-9, time_ns * 1e-9)

    def _on_person(self, name: str, message: Any, time_ns: int) -> None:
        time = time_ns * 1e-9
        if self._doing.get(name, "idle") not in _IDLE:
            _extend(self.active[name], time, time)
        if message.state not in _IDLE:
            _extend(self.active[name], time, time)
        self._doing[name] = str(message.state)

    # -- work ----------------------------------------------------------------------------------------------------------
    def _on_work(self, message: Any, time_ns: int) -> None:
        time, actor, task = time_ns * 1e-9, str(message.actor), str(message.task)
        if message.state == "started":
            self.pieces.append(Piece(actor, task, time))
            return
        open_ = [k for k, one in enumerate(self.pieces) if (one.actor, one.task, one.ended) == (actor, task, None)]
        if not open_:
            return
        number, done, thing = open_[-1], message.state == "done", str(message.object)
        at = message.goal_points[0] if done and thing and len(message.goal_points) else None
        place = () if at is None else (float(at.x), float(at.y), float(at.z))
        self.pieces[number] = replace(
            self.pieces[number], ended=time, done=done, right=not place, thing=thing, place=place
        )
        if place:
            self._pending.append((time_ns, number))

    def _on_things(self, message: Any, time_ns: int) -> None:
        self._judge(time_ns)
        places = ((one.child_frame_id, one.transform.translation) for one in message.transforms)
        self._things = {str(name): (float(at.x), float(at.y), float(at.z)) for name, at in places}

    def _judge(self, time_ns: int) -> None:
        """Look where things are that were set down long enough ago."""
        while self._pending and self._pending[0][0] + _SETTLED_NS <= time_ns:
            number = self._pending.pop(0)[1]
            piece = self.pieces[number]
            there = self._things.get(piece.thing)
            right = there is not None and math.dist(there, piece.place) <= NEAR
            self.pieces[number] = replace(piece, right=right)

    def finish(self, time_ns: int) -> None:
        """See `Collector.finish`."""
        self._judge(time_ns + _SETTLED_NS)
        self.end = time_ns * 1e-9

    def result(self) -> dict[str, Value]:
        """The numbers; None where nobody tells of work."""
        if not self.pieces:
            return dict.fromkeys(self.names)
        cycles = [one for one in self.pieces if one.task == CYCLE and one.good]
        ended = [one for one in self.pieces if one.ended is not None]
        robot = self.active[""]
        people = [spans for name, spans in self.active.items() if name]
        end = self.end or max(one.ended or one.begun for one in self.pieces)
        somebody = joined([span for spans in people for span in spans])
        return {
            "cycles": len(cycles),
            "cycle_time": sum((one.ended or 0.0) - one.begun for one in cycles) / len(cycles) if cycles else None,
            "throughput": 3600.0 * len(cycles) / end if end > 0.0 else None,
            "work_ended": len(ended),
            "work_done": sum(one.good for one in ended) / len(ended) if ended else None,
            "work_wrong": sum(one.done and not one.right for one in ended),
            "robot_idle": 1.0 - lasting(robot) / end if end > 0.0 else None,
            "human_idle": 1.0 - sum(map(lasting, people)) / (end * len(people)) if people and end > 0.0 else None,
            "concurrent_activity": lasting(common(robot, somebody)) / end if people and end > 0.0 else None,
        }


def _extend(spans: Spans, start: float, end: float) -> None:
    """Add a span that is not before the others; one that follows soon goes on with the last."""
    if spans and start - spans[-1][1] < PAUSE:
        spans[-1][1] = max(spans[-1][1], end)
    else:
        spans.append([start, end])


def joined(spans: Sequence[Sequence[float]]) -> Spans:
    """Times in which any of some spans is, in order."""
    found: Spans = []
    for start, end in sorted((one[0], one[1]) for one in spans):
        if found and start <= found[-1][1]:
            found[-1][1] = max(found[-1][1], end)
        else:
            found.append([start, end])
    return found


def common(one: Spans, other: Spans) -> Spans:
    """Times that are in both, each in order and without overlaps."""
    found, i, j = [], 0, 0
    while i < len(one) and j < len(other):
        start, end = max(one[i][0], other[j][0]), min(one[i][1], other[j][1])
        if start < end:
            found.append([start, end])
        if one[i][1] < other[j][1]:
            i += 1
        else:
            j += 1
    return found


def lasting(spans: Spans) -> float:
    """How long they last together [s]."""
    return sum(end - start for start, end in spans)
