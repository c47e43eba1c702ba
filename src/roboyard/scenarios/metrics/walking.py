"""How a robot on legs walked."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from roboyard.compute import expect_kernels
from roboyard.description import Model
from roboyard.errors import InputError
from roboyard.geometry import wrap_angle
from roboyard.geometry.constants import GRAVITY
from roboyard.scenarios.metrics.collector import Collector, Handler, Value
from roboyard.scenarios.metrics.motors import Motors
from roboyard.scenarios.metrics.walking_kernels import follow_feet, footing, power_and_saturated
from roboyard.walking.walker import Walker

_FALLEN = 0.7
"""A body tilted by more has fallen [rad]."""
_SUNK = 1.0 / 3.0
"""A body that is lower above the feet that touch than this share of its stance's height has fallen."""
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
    ``min_stability_margin`` [m] from above, ``min_tilt`` [rad] until it tips over in space.  ``falls``: how often it
    tilted by more than 0.7 rad, or sank while it walked below a third of its stance's height above the feet that touch;
    ``belly_touches``: how often its belly came to touch something while it walked.  ``body_height`` [m] at the end.
    ``movements`` that it played to their end.
    """

    names = (
        "distance", "speed", "heading_error", "cost_of_transport", "saturated_fraction", "slips",
        "min_stability_margin", "min_tilt", "falls", "belly_touches", "body_height", "movements",
    )  # fmt: skip

    def __init__(self, truth_topic: str, namespace: str, legged: Legged | None) -> None:
        if legged is not None:
            expect_kernels(follow_feet, power_and_saturated)
        self._topic, self._namespace, self._legged = truth_topic, namespace, legged
        self._walked = False
        self._pose: tuple[float, float, float, float, float, float, float] | None = None
        self._begun: tuple[int, float, float, float] | None = None
        self._fast: tuple[int, float, float] | None = None
        self._last: tuple[int, float, float, float] | None = None
        self._turned = self._energy = self._spent = 0.0
        self._state_ns = self._joints_ns = 0
        self._going = False
        self._playing, self._movements = False, 0
        self._samples = self._full = self._sums = self._sum_full = 0
        self._margin = self._tilt = math.inf
        self._falls, self._down, self._sunk, self._slips = 0, False, False, 0
        self._belly_touches, self._on_belly_now = 0, False
        self._names: list[str] = []
        self._where = np.zeros(0, np.int64)
        self._footing = footing(0 if legged is None else len(legged.walker.legs))

    def handlers(self) -> Mapping[str, Handler]:
        """Nothing, without legs."""
        if self._legged is None:
            return {}
        own = f"{self._namespace}/"
        feet = {f"{own}feet/{leg.name}": partial(self._on_foot, i) for i, leg in enumerate(self._legged.walker.legs)}
        return {
            self._topic: self._on_truth, f"{own}joint_states": self._on_joints, f"{own}gait/state": self._on_state,
            f"{own}belly": self._on_belly, **feet,
        }  # fmt: skip

    def _on_truth(self, message: Any, time_ns: int) -> None:
        p, q = message.pose.pose.position, message.pose.pose.orientation
        self._pose = p.x, p.y, p.z, q.w, q.x, q.y, q.z
        fallen = self._sunk or 1.0 - 2.0 * (q.x * q.x + q.y * q.y) < math.cos(_FALLEN)
        self._falls += fallen and not self._down
        self._down = fallen

    def _on_belly(self, message: Any, time_ns: int) -> None:
        touches = bool(message.states)
        self._belly_touches += touches and not self._on_belly_now and self._walked
        self._on_belly_now = touches

    def _on_foot(self, leg: int, message: Any, time_ns: int) -> None:
        self._footing.touching[leg] = bool(message.states)

    def _on_state(self, state: Any, time_ns: int) -> None:
        twist = state.twist
        going = bool(twist.linear.x or twist.linear.y or twist.angular.z) and state.phase == "walking"
        self._walked = state.phase == "walking"
        self._movements += self._playing and state.phase != "playing"
        self._playing = state.phase == "playing"
        if self._walked:
            self._margin, self._tilt = min(self._margin, state.margin), min(self._tilt, state.tilt)
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
            self._where = np.array(
                [self._names.index(name) for name in legged.walker.joints if name in known], np.int64
            )
        if len(self._where) < len(legged.walker.joints):
            return
        if self._begun is not None:
            if not (np.isfinite(message.effort).all() and np.isfinite(message.velocity).all()):
                raise InputError("an effort or velocity is not finite", valid="finite numbers, which energy needs")
            power, full = power_and_saturated(legged.motors.rows, self._where, message.effort, message.velocity)
            self._energy += power * (time_ns - self._joints_ns) * 1e-9
            self._samples += len(self._where)
            self._full += full
            self._joints_ns = time_ns
        self._sunk = False
        if self._walked:
            rows, pose = legged.walker.rows, self._pose
            slips, height = follow_feet(rows, self._where, message.position, pose, self._footing, _SLIP)
            self._slips += slips
            self._sunk = height < _SUNK * legged.walker.stance_height

    def save_state(self) -> dict[str, Any]:
        """All it knows; legs are no data."""
        return copy.deepcopy({name: value for name, value in vars(self).items() if name != "_legged"})

    def result(self) -> dict[str, Value]:
        """All None of a robot without legs."""
        if self._legged is None or self._pose is None:
            return dict.fromkeys(self.names)
        margin, tilt = (value if math.isfinite(value) else None for value in (self._margin, self._tilt))
        found: dict[str, Value] = dict.fromkeys(self.names)
        found |= {
            "slips": self._slips,
            "min_stability_margin": margin,
            "min_tilt": tilt,
            "falls": self._falls,
            "belly_touches": self._belly_touches,
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
            found["cost_of_transport"] = self._spent / (self._legged.motors.mass * GRAVITY * distance)
        if self._fast is not None and last[0] > self._fast[0]:
            way = math.hypot(last[1] - self._fast[1], last[2] - self._fast[2])
            found["speed"] = way / ((last[0] - self._fast[0]) * 1e-9)
        return found


def _yaw(pose: tuple[float, ...]) -> float:
    w, x, y, z = pose[3:]
    return math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
