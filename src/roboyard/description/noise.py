"""Noise as descriptions state it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Noise:
    """Gaussian noise with a constant and a drifting bias; all zero = ideal.

    Attributes:
        mean: Added to every value [the value's unit].
        stddev: White noise per sample [the value's unit].
        bias_mean: Mean of the bias drawn once at start.
        bias_stddev: Spread of that bias (its sign is random, as in SDF).
        dynamic_bias_stddev: Stationary spread of a first-order Gauss-Markov bias.
        dynamic_bias_correlation_time: Its time constant [s].
        precision: Output is quantised to this step; 0 = not.
    """

    mean: float = 0.0
    stddev: float = 0.0
    bias_mean: float = 0.0
    bias_stddev: float = 0.0
    dynamic_bias_stddev: float = 0.0
    dynamic_bias_correlation_time: float = 0.0
    precision: float = 0.0
