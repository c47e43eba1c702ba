"""What became of things and skills when something had gone wrong, by what is true."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from roboyard.geometry import SE3
from roboyard.messages.convert import pose_to_se3, transform_to_se3
from roboyard.scenarios.metrics.collector import Collector, Handler, Value
from roboyard.scenarios.thing_truth import MOVING, STILL

_SETTLES_NS = 1_200_000_000
"""So long after a fault its doings move things, not the robot [ns]."""
_STANDS, _LIES = math.cos(math.radians(10.0)), 0.5
"""Cosine of the tilt of what stands, at least, and of what lies, at most."""
_LOW = 0.02
"""What is no higher stands or lies on the floor [m]."""
_AT_PLACE = 0.01
"""So near to the middle of a place or bay a thing stands on it [m]."""
_LEFT = 0.015
"""So near to where it was before a thing is where it was, or was put back [m]."""
_CARRIED = 0.02
"""What is so much farther along the floor a fifth of a second later was put there by others [m]."""
_STILL = 5e-4
"""What moves less in a fifth of a second stands still [m]."""
_RESTS = 3
"""After so many rests between which nothing was done nothing more is expected."""
Pose = tuple[float, float, float, float]
"""x, y, z [m], cosine of the tilt."""


class Aftermath(Collector):
    """Things, by the truth, and skills, by what they said, in the end and after faults.

    ``things_placed``: that stand upright on a place, or where one was. ``things_safe``: on a place, in a bay, or
    where they stood before. ``things_lying``: that lie on the floor. ``things_held``: that are off the floor and in
    no bay. ``things_astray``: all others that are still there. ``things_fallen``: times that one fell over which no
    fault had laid down. ``lying_touched``: times that the robot touched one that lay. ``recover_seconds``: from the
    last begin of a fault to the next pick, stow, unstow or place that was done. ``quiet_seconds``: longest time
    without a word from skills under way. ``at_rest``: whether the outermost skill has ended, or the loop rests for
    the third time since anything was done; ``ended_by``: the cause of that. ``causes``: all that skills stated
    since the first fault, or from the start where there is none.
    """

    names = (
        "things_placed", "things_safe", "things_lying", "things_held", "things_astray", "things_fallen",
        "lying_touched", "recover_seconds", "quiet_seconds", "at_rest", "ended_by", "causes",
    )  # fmt: skip

    def __init__(self, namespace: str, truth: str, contacts: str) -> None:
        self._topics = (f"{namespace}/skills/events", MOVING, STILL, "/rosout", truth, contacts)
        self._things: dict[str, Pose] = {}
        self._homes: dict[str, Pose] = {}
        self._lain: dict[str, int] = {}  # since when [ns]
        self._marks: dict[str, tuple[float, float]] = {}
        self._bays: dict[int, tuple[float, float]] = {}
        self._root = (SE3.identity().translation.tolist(), SE3.identity().rotation.tolist())
        self._fault_ns: int | None = None
        self._told_ns: int | None = None
        self._touched_ns = -_SETTLES_NS
        self._heard = self._at_rest = False
        self._ended_by = ""
        self._causes: list[str] = []
        self._recovered: float | None = None
        self._quiet = 0.0
        self._fallen = self._touched = self._rests = 0

    def handlers(self) -> Mapping[str, Handler]:
        """Events of skills, true places of things and robot, contacts, and what the node of faults logs."""
        takes = (
            self._on_event, self._on_things, self._on_marks, self._on_log, self._on_truth, self._on_contacts,
        )  # fmt: skip
        return dict(zip(self._topics, takes, strict=True))

    # -- the truth -----------------------------------------------------------------------------------------------------
    def _on_truth(self, message: Any, time_ns: int) -> None:
        if self._heard:  # else nobody needs it
            pose = pose_to_se3(message.pose.pose)
            self._root = (pose.translation.tolist(), pose.rotation.tolist())

    def _on_log(self, message: Any, time_ns: int) -> None:
        if str(message.name).rpartition("/")[2] == "faults" and not str(message.msg).startswith("over: "):
            if self._fault_ns is None:
                self._causes.clear()
            self._fault_ns, self._recovered = time_ns, None

    def _on_marks(self, message: Any, time_ns: int) -> None:
        for one in message.transforms:  # one that is gone is still where the hand was bound for
            self._marks[str(one.child_frame_id)] = one.transform.translation.x, one.transform.translation.y

    def _on_things(self, message: Any, time_ns: int) -> None:
        before, self._things = self._things, {}
        meddled = self._fault_ns is not None and time_ns - self._fault_ns <= _SETTLES_NS
        for one in message.transforms:
            pose = transform_to_se3(one.transform)
            x, y, z = (float(value) for value in pose.translation)
            now, name = (x, y, z, float(pose.rotation_matrix()[2, 2])), str(one.child_frame_id)
            self._things[name] = now
            then = before.get(name)
            if then is None or (max(then[2], z) < _LOW and _apart(then, now) > _CARRIED):
                self._homes[name] = now
            if now[3] > _STANDS and then is not None and _apart(then, now) + abs(then[2] - z) < _STILL:
                self._lain.pop(name, None)  # what is carried as it lay has not got up, however it is turned
            elif _lies(now) and name not in self._lain:
                self._lain[name] = time_ns
                self._fallen += not meddled

    def _on_contacts(self, message: Any, time_ns: int) -> None:
        for state in message.states if self._lain else ():
            lain = self._lain.get(str(state.collision2_name).partition("::")[0], time_ns)
            if time_ns - lain > _SETTLES_NS:
                self._touched += time_ns - self._touched_ns > _SETTLES_NS
                self._touched_ns = time_ns

    # -- the skills ----------------------------------------------------------------------------------------------------
    def _on_event(self, message: Any, time_ns: int) -> None:
        self._heard = True
        self.finish(time_ns)
        self._told_ns = time_ns
        ends, outermost = message.event == "finished", not message.parent_id
        if message.skill == "release" and message.bay and message.has_position:
            self._bays[int(message.bay)] = message.position.x, message.position.y
        done = ends and message.success and message.skill in ("pick", "place", "stow", "unstow")
        if outermost and message.event in ("started", "phase", "finished"):
            self._rests += message.phase == "resting"
            self._at_rest = ends or (message.phase == "resting" and self._rests >= _RESTS)
            self._ended_by = str(message.error_code) if ends else "rests" if self._at_rest else ""
        if done:
            self._rests = 0
        if self._fault_ns is not None and time_ns <= self._fault_ns:
            return
        if message.error_code and message.event in ("recovered", "finished") and message.error_code not in self._causes:
            self._causes.append(str(message.error_code))
        if done and self._fault_ns is not None and self._recovered is None:
            self._recovered = (time_ns - self._fault_ns) * 1e-9

    def finish(self, time_ns: int) -> None:
        """Silence up to now counts."""
        if self._told_ns is not None and not self._at_rest:
            self._quiet = max(self._quiet, (time_ns - self._told_ns) * 1e-9)

    # -- what came of it -----------------------------------------------------------------------------------------------
    def result(self) -> dict[str, Value]:
        """None where nobody told of any skill."""
        if not self._heard:
            return dict.fromkeys(self.names)
        states = [self._state(name, pose) for name, pose in self._things.items()]
        return {
            "things_placed": states.count("placed"),
            "things_safe": states.count("placed") + states.count("safe"),
            "things_lying": states.count("lying"),
            "things_held": states.count("held"),
            "things_astray": states.count("astray"),
            "things_fallen": self._fallen,
            "lying_touched": self._touched,
            "recover_seconds": self._recovered,
            "quiet_seconds": self._quiet,
            "at_rest": self._at_rest,
            "ended_by": self._ended_by,
            "causes": ", ".join(self._causes),
        }

    def _state(self, name: str, pose: Pose) -> str:
        x, y, z, upright = pose
        if _lies(pose):
            return "lying"
        u, v, _ = (SE3(self._root[1], self._root[0]).inverse() @ np.array((x, y, z))).tolist()
        stands = upright > _STANDS
        if stands and any(math.dist((u, v), bay) <= _AT_PLACE for bay in self._bays.values()):
            return "safe"
        if z > _LOW:
            return "held"
        if stands and any(math.dist((x, y), mark) <= _AT_PLACE for mark in self._marks.values()):
            return "placed"
        return "safe" if stands and _apart(pose, self._homes[name]) <= _LEFT else "astray"


def _lies(pose: Pose) -> bool:
    return pose[3] <= _LIES and pose[2] <= _LOW


def _apart(one: Pose, other: Pose) -> float:
    return math.hypot(one[0] - other[0], one[1] - other[1])
