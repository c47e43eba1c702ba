"""Measurements of many sources, in the order of their times, into one filter."""

from __future__ import annotations

import bisect
import math
from collections import deque
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry.arrays import Array
from roboyard.localization.kalman.config import FusionConfig, covariance_of
from roboyard.localization.kalman.filters import Ekf, KalmanFilter, Ukf
from roboyard.localization.kalman.state import OUT_OF_PLANE, SIZE, TWIST

_PLANE_VARIANCE = 1e-6
_MOST_PENDING = 10_000


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a source says of the state.

    Attributes:
        time_ns: When [ns].
        source: Name of the source, for counting.
        values: (15,) in the order of ``NAMES``.
        used: (15,) which of them count.
        covariance: (15, 15).
        threshold: Largest Mahalanobis distance at which it is believed.
    """

    time_ns: int
    source: str
    values: Array
    used: NDArray[np.bool_]
    covariance: Array
    threshold: float = math.inf


@dataclass(frozen=True, slots=True)
class Fused:
    """What is believed at a moment.

    Attributes:
        time_ns: The moment [ns].
        state: (15,).
        covariance: (15, 15).
    """

    time_ns: int
    state: Array
    covariance: Array


_Snapshot = tuple[dict[str, Any], int | None]
"""A filter's state and its time."""


@dataclass(frozen=True, slots=True)
class _Done:
    """A measurement that was taken: what became of it, and the filter after it."""

    measurement: Measurement
    outcome: str
    after: _Snapshot


FilterType = Literal["ekf", "ukf"]


class Fusion:
    """The filter with its clock, its queue and its memory.

    The first measurement sets the states that it measures; before it there is no estimate.

    Args:
        config: Configuration.
        filter_type: Extended or unscented Kalman filter.

    Attributes:
        counts: For each source how many measurements were "taken", "gated" (too far off) and "late": older than the
            memory and left out; or, without a memory, older than the state and taken as if they were of its time.
    """

    def __init__(self, config: FusionConfig | None = None, filter_type: FilterType = "ekf") -> None:
        self.config = config or FusionConfig()
        self._filter_type = filter_type
        self._noise = covariance_of(self.config.process_noise_covariance, "process_noise_covariance")
        self.counts: dict[str, dict[str, int]] = {}
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self._filter = self._fresh()
        self._time_ns: int | None = None
        self._queue: list[Measurement] = []
        self._done: deque[_Done] = deque()
        self._command: tuple[int, Array] | None = None

    def _fresh(self) -> KalmanFilter:
        c = self.config
        state = np.array(c.initial_state)
        covariance = covariance_of(c.initial_estimate_covariance, "initial_estimate_covariance")
        return Ekf(state, covariance) if self._filter_type == "ekf" else Ukf(
            state, covariance, alpha=c.alpha, kappa=c.kappa, beta=c.beta
        )  # fmt: skip

    # -- what comes in -------------------------------------------------------------------------------------------------
    def add(self, measurement: Measurement) -> None:
        """Queue a measurement; of more than ten thousand that nobody asks for the oldest is lost."""
        bisect.insort(self._queue, measurement, key=lambda item: item.time_ns)
        if len(self._queue) > _MOST_PENDING:
            self._count(self._queue.pop(0), "late")

    def command(self, time_ns: int, velocity: Array) -> None:
        """Take a commanded velocity (6,): linear, then angular, in the base's axes."""
        self._command = (time_ns, np.array(velocity, dtype=np.float64))

    def set_pose(self, time_ns: int, values: Array, covariance: Array) -> None:
        """Be at a pose (6,) with covariance (6, 6), at rest; everything else is forgotten."""
        self.reset()
        self._filter.state[:6] = values
        self._filter.covariance[:6, :6] = covariance
        self._time_ns = time_ns

    # -- what goes out -------------------------------------------------------------------------------------------------
    def advance(self, now_ns: int) -> None:
        """Take all queued measurements up to a moment, in order; predict on where none has come for too long."""
        self._go_back()
        while self._queue and self._queue[0].time_ns <= now_ns:
            self._take(self._queue.pop(0))
        if self._time_ns is not None and (now_ns - self._time_ns) * 1e-9 >= self.config.sensor_timeout:
            self._predict_to(now_ns)

    def at(self, time_ns: int) -> Fused | None:
        """The estimate predicted to a moment, without changing anything; None before the first measurement."""
        if self._time_ns is None:
            return None
        kept, before = self._filter.save_state(), self._time_ns
        self._predict_to(time_ns)
        found = Fused(time_ns, self._filter.state.copy(), self._filter.covariance.copy())
        self._filter.load_state(kept)
        self._time_ns = before
        return found

    @property
    def estimate(self) -> Fused | None:
        """The estimate at the last measurement or prediction."""
        if self._time_ns is None:
            return None
        return Fused(self._time_ns, self._filter.state.copy(), self._filter.covariance.copy())

    # -- steps ---------------------------------------------------------------------------------------------------------
    def _take(self, measurement: Measurement) -> None:
        if not self.config.smooth_lagged_data:
            self._count(measurement, self._apply(measurement))
            return
        outcome = self._apply(measurement)
        self._count(measurement, outcome)
        self._done.append(_Done(measurement, outcome, self._snapshot()))
        oldest = measurement.time_ns - round(self.config.history_length * 1e9)
        while self._done[0].measurement.time_ns < oldest:
            self._done.popleft()

    def _snapshot(self) -> _Snapshot:
        return self._filter.save_state(), self._time_ns

    def _restore(self, snapshot: _Snapshot) -> None:
        self._filter.load_state(snapshot[0])
        self._time_ns = snapshot[1]

    def _apply(self, measurement: Measurement) -> str:
        if self._time_ns is None:
            index = np.flatnonzero(measurement.used)
            self._filter.state[index] = measurement.values[index]
            self._filter.covariance[np.ix_(index, index)] = measurement.covariance[np.ix_(index, index)]
            self._time_ns = measurement.time_ns
            return "taken"
        late = measurement.time_ns < self._time_ns
        self._predict_to(measurement.time_ns)
        taken = self._filter.correct(
            measurement.values, measurement.used, measurement.covariance, measurement.threshold
        )
        self._flatten()
        return "gated" if not taken else "late" if late else "taken"

    def _predict_to(self, time_ns: int) -> None:
        if self._time_ns is None or time_ns <= self._time_ns:
            return
        dt = (time_ns - self._time_ns) * 1e-9
        noise = self._noise
        if self.config.dynamic_process_noise_covariance:
            speed = float(np.linalg.norm(self._filter.state[TWIST]))
            scale = np.ones(SIZE)
            scale[:6] = speed  # as robot_localization: the pose's noise grows with the speed
            noise = noise * scale[:, None] * scale
        push = None
        if self._command is not None and any(self.config.control.used):
            fresh = (time_ns - self._command[0]) * 1e-9 <= self.config.control.timeout
            push = self.config.control.push(self._filter.state[TWIST], self._command[1]) if fresh else None
        self._filter.predict(dt, noise, push)
        self._time_ns = time_ns
        self._flatten()

    def _flatten(self) -> None:
        """In the plane, what leaves it is 0, surely, and tells nothing of the rest."""
        if self.config.two_d_mode:
            state, covariance = self._filter.state, self._filter.covariance
            state[OUT_OF_PLANE] = 0.0
            covariance[OUT_OF_PLANE, :] = 0.0
            covariance[:, OUT_OF_PLANE] = 0.0
            covariance[OUT_OF_PLANE, OUT_OF_PLANE] = _PLANE_VARIANCE

    def _go_back(self) -> None:
        """If a queued measurement is older than the state, undo what came after it, and queue that again."""
        while self._queue and self._done and self._queue[0].time_ns < self._done[0].measurement.time_ns:
            self._count(self._queue.pop(0), "late")
        if not (self._queue and self._done) or self._time_ns is None or self._time_ns <= self._queue[0].time_ns:
            return
        first = self._queue[0].time_ns
        while self._done[-1].measurement.time_ns > first:
            undone = self._done.pop()
            bisect.insort_left(self._queue, undone.measurement, key=lambda item: item.time_ns)
            self._count(undone.measurement, undone.outcome, -1)
        self._restore(self._done[-1].after)

    def _count(self, measurement: Measurement, what: str, by: int = 1) -> None:
        counts = self.counts.setdefault(measurement.source, {"taken": 0, "gated": 0, "late": 0})
        counts[what] += by

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        return {
            "filter": self._filter.save_state(),
            "time_ns": self._time_ns,
            "queue": [_plain(item) for item in self._queue],
            "done": [(_plain(one.measurement), one.outcome, one.after) for one in self._done],
            "command": None if self._command is None else (self._command[0], self._command[1].copy()),
            "counts": {source: dict(counts) for source, counts in self.counts.items()},
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        self.reset()
        self._filter.load_state(state["filter"])
        self._time_ns = state["time_ns"]
        self._queue = [Measurement(*item) for item in state["queue"]]
        self._done = deque(_Done(Measurement(*item), *kept) for item, *kept in state["done"])
        self._command = None if state["command"] is None else (state["command"][0], np.array(state["command"][1]))
        self.counts = {source: dict(counts) for source, counts in state["counts"].items()}


def _plain(item: Measurement) -> tuple[Any, ...]:
    return item.time_ns, item.source, item.values.copy(), item.used.copy(), item.covariance.copy(), item.threshold
