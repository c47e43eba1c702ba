"""How a robot on legs walked."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.description import Model
from roboyard.geometry import wrap_angle
from roboyard.scenarios.metrics.collector import Collector, Handler, Value
from roboyard.scenarios.metrics.motors import Motors
from roboyard.walking.walker import Walker

Array = NDArray[np.float64]

_GRAVITY = 9.81
_FALLEN = 0.7
"""A body tilted by more has fallen [rad]."""
_SLIP = 0.01
"""A foot that goes further on the ground while it stands has slipped [m]."""
_UNDER_WAY_NS = 2_000_000_000
"""Speed is judged from so long after it set out [ns]."""


@dataclass(frozen=True, eq=False)
class Legged:
    """What walking is judged with: the legs, and what moves them."""

    walker: Walker
    motors: Motors

    @classmethod
    def of(cls, walker: Walker, model: Model) -> Legged:
        """Of a robot's description."""
        return cls(walker, Motors.of(walker, model))


class Walking(Collector):
    """By truth, joint states, the feet's contacts and what the gait node says of itself.

    From when its legs first carry it until they last do: ``distance`` [m] between where it was and is, ``speed`` [m/s]
    on the way from two seconds after it set out, ``heading_error`` [rad] beside what its legs did of the turning
    wanted, ``cost_of_transport`` energy of the motors by weight and distance, ``saturated_fraction`` share of the
    joints' samples at all the effort there is, ``slips`` feet that went more than 10 mm while they stood,
    ``min_stability_margin`` [m].  ``falls``: how often it tilted by more than 0.7 rad, or its belly touched while it
    walked.  ``body_height`` [m] at the end.  ``movements`` that it played to their end.
    """

    names = (
        "distance", "speed", "heading_error", "cost_of_transport", "saturated_fraction", "slips",
        "min_stability_margin", "falls", "body_height", "movements",
    )  # fmt: skip

    def __init__(self, truth_topic: str, namespace: str, legged: Legged | None) -> None:
        self._topic, self._namespace, self._legged = truth_topic, namespace, legged
        self._walked = False
        self._pose: tuple[float, ...] | None = None
        self._begun: tuple[int, float, float, float] | None = None
        self._fast: tuple[int, float, float] | None = None
        self._last: tuple[int, float, float, float] | None = None
        self._turned = self._energy = self._spent = 0.0
        self._state_ns = self._joints_ns = 0
        self._going = False
        self._playing, self._movements = False, 0
        self._samples = self._full = self._sums = self._sum_full = 0
        self._margin = math.inf
        self._falls, self._down, self._slips = 0, False, 0
        self._names: list[str] = []
        self._where: list[int] = []
        self._touching: dict[str, bool] = {}
        self._stood: dict[str, tuple[float, float, bool]] = {}

    def handlers(self) -> Mapping[str, Handler]:
        """Nothing, without legs."""
        if self._legged is None:
            return {}
        own = f"{self._namespace}/"
        feet = {f"{own}feet/{leg.name}": partial(self._on_foot, leg.name) for leg in self._legged.walker.legs}
        return {
            self._topic: self._on_truth, f"{own}joint_states": self._on_joints, f"{own}gait/state": self._on_state,
            f"{own}belly": self._on_belly, **feet,
        }  # fmt: skip

    def _on_truth(self, message: Any, time_ns: int) -> None:
        p, q = message.pose.pose.position, message.pose.pose.orientation
        self._pose = p.x, p.y, p.z, q.w, q.x, q.y, q.z
        tilted = 1.0 - 2.0 * (q.x * q.x + q.y * q.y) < math.cos(_FALLEN)
        self._fall(tilted)

    def _fall(self, now: bool) -> None:
        if now and not self._down:
            self._falls += 1
        self._down = now

    def _on_belly(self, message: Any, time_ns: int) -> None:
        if message.states and self._walked:
            self._fall(True)

    def _on_foot(self, leg: str, message: Any, time_ns: int) -> None:
        self._touching[leg] = bool(message.states)

    def _on_state(self, state: Any, time_ns: int) -> None:
        twist = state.twist
        going = bool(twist.linear.x or twist.linear.y or twist.angular.z) and state.phase == "walking"
        self._walked = state.phase == "walking"
        self._movements += self._playing and state.phase != "playing"
        self._playing = state.phase == "playing"
        if self._walked:
            self._margin = min(self._margin, state.margin)
        if self._pose is None:
            return
        x, y = self._pose[:2]
        yaw = _yaw(self._pose)
        if going and self._begun is None:
            self._begun, self._state_ns, self._joints_ns = (time_ns, x, y, yaw), time_ns, time_ns
        if self._begun is not None and going:
            self._turned += twist.angular.z * (time_ns - self._state_ns) * 1e-9
            if self._fast is None and time_ns - self._begun[0] >= _UNDER_WAY_NS:
                self._fast = time_ns, x, y
            self._last = time_ns, x, y, yaw
            self._spent, self._sums, self._sum_full = self._energy, self._samples, self._full
        self._state_ns, self._going = time_ns, going

    def _on_joints(self, message: Any, time_ns: int) -> None:
        legged = self._legged
        if legged is None or self._pose is None:
            return
        if message.name != self._names:
            self._names = list(message.name)
            known = set(self._names)
            self._where = [self._names.index(name) for name in legged.walker.joints if name in known]
        if len(self._where) < len(legged.walker.joints):
            return
        if self._begun is not None:
            effort, speed = message.effort[self._where], message.velocity[self._where]
            self._energy += float(legged.motors.power(effort, speed).sum()) * (time_ns - self._joints_ns) * 1e-9
            self._samples += len(effort)
            self._full += int(legged.motors.saturated(effort, speed).sum())
            self._joints_ns = time_ns
        if self._walked:
            self._slide(legged.walker, message.position[self._where].reshape(-1, 3))

    def _slide(self, walker: Walker, q: Array) -> None:
        """Watch how far feet go while they stand."""
        if self._pose is None:
            return
        x, y, _, qw, qx, qy, qz = self._pose
        rows = (
            (x, 1.0 - 2.0 * (qy * qy + qz * qz), 2.0 * (qx * qy - qw * qz), 2.0 * (qx * qz + qw * qy)),
            (y, 2.0 * (qx * qy + qw * qz), 1.0 - 2.0 * (qx * qx + qz * qz), 2.0 * (qy * qz - qw * qx)),
        )
        for leg, (px, py, pz) in zip(walker.legs, walker.feet(q).tolist(), strict=True):
            if not self._touching.get(leg.name, False):
                self._stood.pop(leg.name, None)
                continue
            fx, fy = (start + a * px + b * py + c * pz for start, a, b, c in rows)
            sx, sy, slipped = self._stood.setdefault(leg.name, (fx, fy, False))
            if not slipped and math.hypot(fx - sx, fy - sy) > _SLIP:
                self._slips += 1
                self._stood[leg.name] = sx, sy, True

    def save(self) -> dict[str, Any]:
        """All it knows; legs are no data."""
        return copy.deepcopy({name: value for name, value in vars(self).items() if name != "_legged"})

    def result(self) -> dict[str, Value]:
        """All None of a robot without legs."""
        if self._legged is None or self._pose is None:
            return dict.fromkeys(self.names)
        margin = self._margin if math.isfinite(self._margin) else None
        found: dict[str, Value] = dict.fromkeys(self.names)
        found |= {
            "slips": self._slips,
            "min_stability_margin": margin,
            "falls": self._falls,
            "body_height": self._pose[2],
            "movements": self._movements,
        }
        if self._begun is None or self._last is None:
            return found
        start, last = self._begun, self._last
        distance = math.hypot(last[1] - start[1], last[2] - start[2])
        found["distance"] = distance
        found["heading_error"] = abs(wrap_angle(last[3] - start[3] - self._turned))
        found["saturated_fraction"] = self._sum_full / max(self._sums, 1)
        if distance > 0.0:
            found["cost_of_transport"] = self._spent / (self._legged.motors.mass * _GRAVITY * distance)
        if self._fast is not None and last[0] > self._fast[0]:
            way = math.hypot(last[1] - self._fast[1], last[2] - self._fast[2])
            found["speed"] = way / ((last[0] - self._fast[0]) * 1e-9)
        return found


def _yaw(pose: tuple[float, ...]) -> float:
    w, x, y, z = pose[3:]
    return math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
