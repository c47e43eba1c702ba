"""The interface of metric collectors, and what they are given of the ground truth."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.grids.floor_plan import FloorPlan

DepthErrorProvider = Callable[[], tuple[float, float, float] | None]
"""Median errors of depth as measured and without the camera's own errors [m], and the share of pixels that have one, of
those that could; None where there is no depth camera, or nobody ever looked through it."""

FootprintPolygon = tuple[tuple[float, float], ...]

FloorPlanProvider = Callable[[float], FloorPlan]
"""The true floor plan, at the height at which the robot's lidar looks, with cells of a side [m]."""
SurfaceVoxelProvider = Callable[
    [NDArray[np.float64], tuple[int, int, int], float, float], tuple[NDArray[np.bool_], NDArray[np.bool_]]
]
"""Voxels that true surfaces touch and cross: of a box by its lowest corner [m], its voxels along x, y, z, their edge
[m] and the tolerance [m]."""

MetricValue = float | int | bool | str | None
"""A metric; None: it was not measured."""

MessageHandler = Callable[[Any, int], None]
"""Takes a message and the time it was published at [ns]."""


class MetricCollector(ABC):
    """Listens to some topics of one robot and gives metrics.

    It never publishes and keeps no more than it needs: a run of hours costs no more memory than one of seconds.

    Attributes:
        names: Metrics it gives, in the order of ``result``.
        truth_of: Topics whose messages are compared by their stamps, each with the topic of the truth.
    """

    metric_names: tuple[str, ...] = ()
    truth_topics: Mapping[str, str] = {}

    @abstractmethod
    def subscriptions(self) -> Mapping[str, MessageHandler]:
        """What it listens to: absolute topic names with what takes their messages."""

    def on_person_added(self, name: str) -> Mapping[str, MessageHandler]:
        """Somebody is there from now on; what is to be listened to for that."""
        return {}

    @abstractmethod
    def values(self) -> dict[str, MetricValue]:
        """The metrics so far."""

    def save_state(self) -> dict[str, Any]:
        """All it knows, as plain data; one whose attributes are no plain data overrides this and `load`."""
        return copy.deepcopy(vars(self))

    def load_state(self, state: dict[str, Any]) -> None:
        """Counterpart of `save`."""
        vars(self).update(copy.deepcopy(state))

    def finish(self, time_ns: int) -> None:  # noqa: B027 - most have nothing to conclude
        """The run ended at this time [ns]."""
