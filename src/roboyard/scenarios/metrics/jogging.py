"""How joints followed that were driven at speeds."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from roboyard.scenarios.metrics.collector import Collector, Handler, Value
from roboyard.scenarios.metrics.reaching import Arm

_HOLDS = 0.5
"""A commanded speed holds for so long unless a newer one comes: the default of nodes that move joints [s]."""
_STANDS = 0.005
"""What is slower stands [rad/s or m/s]."""
_SETTLES = 0.2
"""So long after a joint should stand a jog is judged [s]."""


@dataclass(slots=True)
class _Jog:
    """A joint that is driven: from where, how far by now, how fast it is told to be, and since when."""

    begin: float
    way: float
    speed: float
    at_ns: int
    moved_ns: int


class Jogging(Collector):
    """Joints driven by number and speed, against the integral of what was commanded, as they are measured.

    A speed holds until the next one, or until it is too old.  What a joint is behind while it gets faster it gains
    while it slows down, so that the integral is where a joint ends that was driven at one speed from rest to rest.

    ``jogs``: how many; ``jog_error_max`` [rad or m]: farthest that a joint ended from there; ``jog_stop_max`` [s]:
    longest time from the last command to standstill.
    """

    names = ("jogs", "jog_error_max", "jog_stop_max")

    def __init__(self, topic: str, namespace: str, arm: Arm | None) -> None:
        self._topics = (topic, f"{namespace}/joint_states")
        self._arm = arm
        self._under_way: dict[str, _Jog] = {}
        self._positions: dict[str, float] = {}
        self._errors: list[float] = []
        self._stops: list[float] = []

    def handlers(self) -> Mapping[str, Handler]:
        """Commands, and where joints are."""
        return dict(zip(self._topics, (self._on_command, self._on_joints), strict=True))

    def _on_command(self, message: Any, time_ns: int) -> None:
        joints = () if self._arm is None else self._arm.joints()
        if not 1 <= message.id <= len(joints) or joints[message.id - 1] not in self._positions:
            return
        name = joints[message.id - 1]
        jog = self._under_way.get(name)
        if jog is None:
            here = self._positions[name]
            self._under_way[name] = _Jog(here, 0.0, float(message.value), time_ns, time_ns)
            return
        jog.way += jog.speed * min((time_ns - jog.at_ns) * 1e-9, _HOLDS)
        jog.speed, jog.at_ns = float(message.value), time_ns

    def _on_joints(self, message: Any, time_ns: int) -> None:
        self._positions.update(zip(message.name, map(float, message.position), strict=False))
        if not self._under_way:
            return
        speeds = dict(zip(message.name, map(float, message.velocity), strict=False))
        for name, jog in list(self._under_way.items()):
            if abs(speeds.get(name, 0.0)) > _STANDS:
                jog.moved_ns = time_ns
            if time_ns - max(jog.moved_ns, jog.at_ns + round(_HOLDS * 1e9)) > round(_SETTLES * 1e9):
                way = jog.way + jog.speed * _HOLDS
                self._errors.append(abs(self._positions[name] - jog.begin - way))
                self._stops.append(max(0.0, (jog.moved_ns - jog.at_ns) * 1e-9))
                del self._under_way[name]

    def result(self) -> dict[str, Value]:
        """How far off, and how long it took to stop, at worst; None until a jog has ended."""
        return {
            "jogs": len(self._errors),
            "jog_error_max": max(self._errors, default=None),
            "jog_stop_max": max(self._stops, default=None),
        }

    def save_state(self) -> dict[str, Any]:
        """All but the truth, which the run has; jogs as plain data."""
        plain = copy.deepcopy({key: value for key, value in vars(self).items() if key not in ("_arm", "_under_way")})
        jogs = {name: (j.begin, j.way, j.speed, j.at_ns, j.moved_ns) for name, j in self._under_way.items()}
        return plain | {"jogs": jogs}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Counterpart of `save`."""
        super().load_state({key: value for key, value in saved.items() if key != "jogs"})
        self._under_way = {name: _Jog(*values) for name, values in saved["jogs"].items()}
