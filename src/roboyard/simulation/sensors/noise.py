"""The noise model of descriptions, for any number of channels at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.description.sensors import Noise

Array = NDArray[np.float64]


class Corruption:
    """Adds noise to ``n`` channels: white noise, a constant bias, a drifting bias, and rounding.

    The drifting bias is a first-order Gauss-Markov process: over a time ``t`` it keeps ``exp(-t / T)`` of itself and
    gains what keeps its spread at ``dynamic_bias_stddev``.

    Args:
        channels: Noise of each channel.
        rng: Draws the constant biases now and everything else later.
    """

    def __init__(self, channels: Sequence[Noise], rng: np.random.Generator) -> None:
        def column(name: str) -> Array:
            return np.array([getattr(channel, name) for channel in channels], float)

        self._rng = rng
        self._mean, self._std, self._step = column("mean"), column("stddev"), column("precision")
        self._drift, self._time = column("dynamic_bias_stddev"), column("dynamic_bias_correlation_time")
        self._bias = np.zeros(len(channels))
        spread, centre = column("bias_stddev"), column("bias_mean")
        if spread.any() or centre.any():
            self._bias = rng.normal(centre, spread) * np.where(rng.random(len(channels)) < 0.5, -1.0, 1.0)
        self._wander = rng.normal(0.0, self._drift) if self._drift.any() else np.zeros(len(channels))

    def apply(self, values: Array, elapsed_ns: int) -> Array:
        """``values`` (n,) with noise; ``elapsed_ns`` since the call before moves the drifting biases on."""
        out = values + (self._mean + self._bias)
        if self._drift.any():
            time = np.where(self._time > 0.0, self._time, math.inf)
            kept = np.exp(-elapsed_ns * 1e-9 / time)
            self._wander = kept * self._wander + self._rng.normal(0.0, self._drift * np.sqrt(1.0 - kept * kept))
            out += self._wander
        if self._std.any():
            out += self._rng.normal(0.0, self._std)
        if self._step.any():
            step = np.where(self._step > 0.0, self._step, 1.0)
            out = np.where(self._step > 0.0, np.round(out / step) * step, out)
        return np.asarray(out)

    def save(self) -> dict[str, Any]:
        """Biases as plain data."""
        return {"bias": self._bias.tolist(), "wander": self._wander.tolist()}

    def load(self, saved: dict[str, Any]) -> None:
        """Counterpart of `save`."""
        self._bias, self._wander = np.array(saved["bias"], float), np.array(saved["wander"], float)
