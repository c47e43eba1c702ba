"""How far a robot's depth camera is from the truth."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from roboyard.scenarios.metrics.collector import Collector, Handler, Value

Sight = Callable[[], tuple[float, float, float] | None]
"""Median errors of depth as measured and without the camera's own errors [m], and the share of pixels that have one, of
those that could; None where there is no depth camera, or nobody ever looked through it."""


class DepthQuality(Collector):
    """What the robot's first depth camera says at the end of the run, against exact rays through the same lens.

    ``depth_error``: median distance of measured depth from the truth [m]; ``depth_error_ideal``: the same without the
    camera's noise, which is the renderer's own; ``depth_coverage``: share of the pixels with something within the
    camera's range that were measured.

    Args:
        sight: Looks through it.
    """

    names = ("depth_error", "depth_error_ideal", "depth_coverage")

    def __init__(self, sight: Sight | None) -> None:
        self._sight = sight
        self._found: dict[str, Value] = dict.fromkeys(self.names)

    def handlers(self) -> Mapping[str, Handler]:
        """Nothing: it looks itself."""
        return {}

    def finish(self, time_ns: int) -> None:
        """Look through the camera."""
        seen = None if self._sight is None else self._sight()
        if seen is not None:
            self._found = dict(zip(self.names, (v if math.isfinite(v) else None for v in seen), strict=True))

    def result(self) -> dict[str, Value]:
        """All None before the end, and where nobody ever looked through such a camera."""
        return dict(self._found)

    def save_state(self) -> dict[str, Any]:
        """Nothing: what it finds is of the end."""
        return {}
