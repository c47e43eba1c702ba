"""Sensor fusion: applies measurements of many sources to one Kalman filter, in the order of their times."""

from __future__ import annotations

import bisect
import math
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry.arrays import Array
from roboyard.localization.kalman.config import FusionConfig, covariance_from_values
from roboyard.localization.kalman.filters import STATE_ESTIMATORS, StateEstimator
from roboyard.localization.kalman.process_model import OUT_OF_PLANE_INDICES, STATE_SIZE, TWIST

_PLANE_VARIANCE = 1e-6
_MAX_QUEUE_SIZE = 10_000


@dataclass(frozen=True, slots=True)
class Measurement:
    """Measured states of a source.

    Attributes:
        time_ns: Time [ns].
        source: Name of the source, for the counts.
        values: (15,) in the order of ``STATE_NAMES``.
        used: (15,) which of them were measured.
        covariance: (15, 15).
        threshold: Largest Mahalanobis distance at which the measurement is accepted.
    """

    time_ns: int
    source: str
    values: Array
    used: NDArray[np.bool_]
    covariance: Array
    threshold: float = math.inf


@dataclass(frozen=True, slots=True)
class FusedEstimate:
    """State estimate at a time.

    Attributes:
        time_ns: Time [ns].
        state: (15,).
        covariance: (15, 15).
    """

    time_ns: int
    state: Array
    covariance: Array


_Snapshot = tuple[dict[str, Any], int | None]
"""A filter's state and its time."""


@dataclass(frozen=True, slots=True)
class _AppliedMeasurement:
    """A measurement that was applied, its outcome, and the filter after it."""

    measurement: Measurement
    outcome: str
    snapshot: _Snapshot


class SensorFusion:
    """Kalman filter with its clock, a queue of measurements, and a history for lagged data.

    The first measurement initializes the states that it measures; before it there is no estimate.

    Args:
        config: Configuration.
        filter_type: Name of the filter in `STATE_ESTIMATORS`: ekf, ukf, or a registered one.

    Attributes:
        counts: By source how many measurements were "taken" (accepted), "gated" (rejected by their distance) and
            "late": older than the history and dropped; or, without a history, older than the state and applied at its
            time.
    """

    def __init__(self, config: FusionConfig | None = None, filter_type: str = "ekf") -> None:
        self.config = config or FusionConfig()
        self._estimator_class = STATE_ESTIMATORS[filter_type]
        self._process_noise = covariance_from_values(self.config.process_noise_covariance, "process_noise_covariance")
        self.counts: dict[str, dict[str, int]] = {}
        self.reset()

    def reset(self) -> None:
        """Reset the filter, the queue and the history."""
        self._filter = self._new_filter()
        self._time_ns: int | None = None
        self._queue: list[Measurement] = []
        self._applied: deque[_AppliedMeasurement] = deque()
        self._control: tuple[int, Array] | None = None

    def _new_filter(self) -> StateEstimator:
        covariance = covariance_from_values(self.config.initial_estimate_covariance, "initial_estimate_covariance")
        return self._estimator_class(np.array(self.config.initial_state), covariance, self.config)

    # -- what comes in -------------------------------------------------------------------------------------------------
    def add(self, measurement: Measurement) -> None:
        """Queue a measurement; the queue holds at most ten thousand and drops the oldest."""
        bisect.insort(self._queue, measurement, key=lambda item: item.time_ns)
        if len(self._queue) > _MAX_QUEUE_SIZE:
            self._count(self._queue.pop(0), "late")

    def set_control(self, time_ns: int, velocity: Array) -> None:
        """Set the commanded velocity (6,): linear, then angular, in the base's axes."""
        self._control = (time_ns, np.array(velocity, dtype=np.float64))

    def set_pose(self, time_ns: int, values: Array, covariance: Array) -> None:
        """Reset the filter to a pose (6,) with covariance (6, 6), at rest."""
        self.reset()
        self._filter.state[:6] = values
        self._filter.covariance[:6, :6] = covariance
        self._time_ns = time_ns

    # -- what goes out -------------------------------------------------------------------------------------------------
    def advance(self, now_ns: int) -> None:
        """Apply all queued measurements up to a time, in order; predict if none has arrived for the sensor timeout."""
        self._rewind()
        while self._queue and self._queue[0].time_ns <= now_ns:
            self._apply_and_record(self._queue.pop(0))
        if self._time_ns is not None and (now_ns - self._time_ns) * 1e-9 >= self.config.sensor_timeout:
            self._predict_to(now_ns)

    def predict_at(self, time_ns: int) -> FusedEstimate | None:
        """Return the estimate predicted to a time, without changing the filter; None without measurements."""
        if self._time_ns is None:
            return None
        saved_filter, saved_time_ns = self._filter.save_state(), self._time_ns
        self._predict_to(time_ns)
        estimate = FusedEstimate(time_ns, self._filter.state.copy(), self._filter.covariance.copy())
        self._filter.load_state(saved_filter)
        self._time_ns = saved_time_ns
        return estimate

    @property
    def estimate(self) -> FusedEstimate | None:
        """The estimate at the last measurement or prediction."""
        if self._time_ns is None:
            return None
        return FusedEstimate(self._time_ns, self._filter.state.copy(), self._filter.covariance.copy())

    # -- steps ---------------------------------------------------------------------------------------------------------
    def _apply_and_record(self, measurement: Measurement) -> None:
        if not self.config.smooth_lagged_data:
            self._count(measurement, self._apply(measurement))
            return
        outcome = self._apply(measurement)
        self._count(measurement, outcome)
        self._applied.append(_AppliedMeasurement(measurement, outcome, self._snapshot()))
        oldest = measurement.time_ns - round(self.config.history_length * 1e9)
        while self._applied[0].measurement.time_ns < oldest:
            self._applied.popleft()

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
        is_late = measurement.time_ns < self._time_ns
        self._predict_to(measurement.time_ns)
        is_accepted = self._filter.correct(
            measurement.values, measurement.used, measurement.covariance, measurement.threshold
        )
        self._constrain_to_plane()
        return "gated" if not is_accepted else "late" if is_late else "taken"

    def _predict_to(self, time_ns: int) -> None:
        if self._time_ns is None or time_ns <= self._time_ns:
            return
        dt = (time_ns - self._time_ns) * 1e-9
        noise = self._process_noise
        if self.config.dynamic_process_noise_covariance:
            speed = float(np.linalg.norm(self._filter.state[TWIST]))
            scale = np.ones(STATE_SIZE)
            scale[:6] = speed  # as robot_localization: the pose's noise grows with the speed
            noise = noise * scale[:, None] * scale
        control_acceleration = None
        if self._control is not None and any(self.config.control.control_mask):
            is_recent = (time_ns - self._control[0]) * 1e-9 <= self.config.control.timeout
            control_acceleration = (
                self.config.control.acceleration_toward(self._filter.state[TWIST], self._control[1])
                if is_recent
                else None
            )
        self._filter.predict(dt, noise, control_acceleration)
        self._time_ns = time_ns
        self._constrain_to_plane()

    def _constrain_to_plane(self) -> None:
        """In 2D mode, set the states out of the plane to 0, with a small variance and no correlations."""
        if self.config.two_d_mode:
            state, covariance = self._filter.state, self._filter.covariance
            state[OUT_OF_PLANE_INDICES] = 0.0
            covariance[OUT_OF_PLANE_INDICES, :] = 0.0
            covariance[:, OUT_OF_PLANE_INDICES] = 0.0
            covariance[OUT_OF_PLANE_INDICES, OUT_OF_PLANE_INDICES] = _PLANE_VARIANCE

    def _rewind(self) -> None:
        """Undo measurements that are later than a queued one, and queue them again."""
        while self._queue and self._applied and self._queue[0].time_ns < self._applied[0].measurement.time_ns:
            self._count(self._queue.pop(0), "late")
        if not (self._queue and self._applied) or self._time_ns is None or self._time_ns <= self._queue[0].time_ns:
            return
        rewind_ns = self._queue[0].time_ns
        while self._applied[-1].measurement.time_ns > rewind_ns:
            undone = self._applied.pop()
            bisect.insort_left(self._queue, undone.measurement, key=lambda item: item.time_ns)
            self._count(undone.measurement, undone.outcome, -1)
        self._restore(self._applied[-1].snapshot)

    def _count(self, measurement: Measurement, outcome: str, change: int = 1) -> None:
        counts = self.counts.setdefault(measurement.source, {"taken": 0, "gated": 0, "late": 0})
        counts[outcome] += change

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return {
            "filter": self._filter.save_state(),
            "time_ns": self._time_ns,
            "queue": [_plain(item) for item in self._queue],
            "applied": [(_plain(applied.measurement), applied.outcome, applied.snapshot) for applied in self._applied],
            "control": None if self._control is None else (self._control[0], self._control[1].copy()),
            "counts": {source: dict(counts) for source, counts in self.counts.items()},
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore the state that ``save_state`` returned."""
        self.reset()
        self._filter.load_state(state["filter"])
        self._time_ns = state["time_ns"]
        self._queue = [Measurement(*item) for item in state["queue"]]
        self._applied = deque(
            _AppliedMeasurement(Measurement(*item), *remainder) for item, *remainder in state["applied"]
        )
        self._control = None if state["control"] is None else (state["control"][0], np.array(state["control"][1]))
        self.counts = {source: dict(counts) for source, counts in state["counts"].items()}


def _plain(item: Measurement) -> tuple[Any, ...]:
    return item.time_ns, item.source, item.values.copy(), item.used.copy(), item.covariance.copy(), item.threshold
