"""The noise model of descriptions, for any number of channels at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from roboyard.description.sensors import Noise
from roboyard.geometry.arrays import Array


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
        self._drifts, self._white, self._rounds = self._drift.any(), self._std.any(), self._step.any()
        self._wander = rng.normal(0.0, self._drift) if self._drifts else np.zeros(len(channels))
        self._offset = self._mean + self._bias

    @property
    def random(self) -> bool:
        """Whether it draws random numbers."""
        return bool(self._drifts or self._white)

    def apply(self, values: Array, elapsed_ns: int) -> Array:
        """``values`` (n,) with noise; ``elapsed_ns`` since the call before moves the drifting biases on."""
        out = values + self._offset
        if self._drifts:
            kept = np.exp(-elapsed_ns * 1e-9 / np.where(self._time > 0.0, self._time, math.inf))
            fresh = self._rng.standard_normal(len(out)) * self._drift * np.sqrt(1.0 - kept * kept)
            self._wander = kept * self._wander + fresh
            out += self._wander
        if self._white:
            out += self._std * self._rng.standard_normal(len(out))
        if self._rounds:
            step = np.where(self._step > 0.0, self._step, 1.0)
            out = np.where(self._step > 0.0, np.round(out / step) * step, out)
        return np.asarray(out)

    def save_state(self) -> dict[str, Any]:
        """Biases as plain data."""
        return {"bias": self._bias.tolist(), "wander": self._wander.tolist()}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Counterpart of `save`."""
        self._bias, self._wander = np.array(saved["bias"], float), np.array(saved["wander"], float)
        self._offset = self._mean + self._bias
