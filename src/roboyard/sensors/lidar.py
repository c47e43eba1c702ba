"""Lidar with one or several layers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.description.sensors import LidarSpec, Sensor
from roboyard.errors import DescriptionError
from roboyard.sensors.optics import OPTICAL_GEOM_GROUPS, OpticalSurfaces, make_optics_table, trace_reflections
from roboyard.sensors.ray_casting import BeamGrid, BeamPattern
from roboyard.sensors.sensor import SensorContext, SimulatedSensor, make_read_only


@dataclass(frozen=True, slots=True)
class LidarReading:
    """One sweep.

    Attributes:
        time_ns: When; all beams at once.
        ranges: (layers, samples) [m]; ``inf`` where nothing came back, ``-inf`` where something is nearer than the
            least range (REP 117).
        spec: Angles and limits.
    """

    time_ns: int
    ranges: NDArray[np.float64]
    spec: LidarSpec


def make_beam_pattern(spec: LidarSpec) -> BeamPattern:
    """Return the beams of a lidar."""
    return BeamPattern(
        spec.samples, spec.angle_min, spec.angle_max, spec.range_max, spec.vertical_samples, spec.vertical_angle_min,
        spec.vertical_angle_max,
    )  # fmt: skip


def beam_directions(spec: LidarSpec) -> NDArray[np.float64]:
    """Return unit vectors (layers · samples, 3) in the sensor frame, layers from below, samples counter-clockwise."""
    return make_beam_pattern(spec).directions()


class Lidar(SimulatedSensor[LidarReading]):
    """Lidar: `BeamGrid` casts its beams, and mirrors and panes reflect or transmit them (see `optics`)."""

    kind = "lidar"

    def __init__(self, context: SensorContext, robot: str, sensor: Sensor) -> None:
        super().__init__(context, robot, sensor)
        if not isinstance(sensor.spec, LidarSpec):
            raise DescriptionError(f"sensor {sensor.name} is a lidar without a lidar's description", location=robot)
        s = self.spec = sensor.spec
        self.beams = BeamGrid(make_beam_pattern(s))
        self._shape = (s.vertical_samples, s.samples)
        noise = s.noise
        self._bias = noise.mean + (
            self.rng.normal(noise.bias_mean, noise.bias_stddev) if noise.bias_mean or noise.bias_stddev else 0.0
        )

    @property
    def is_random(self) -> bool:
        """Whether the lidar has noise, dropouts or false echoes."""
        return (
            self.spec.noise.stddev > 0.0
            or self.spec.false_echo_probability > 0.0
            or self.spec.dropout_probability > 0.0
        )

    def bind(self, context: SensorContext) -> None:
        """Find the site, the shapes that beams can hit, and which of them are mirrors or glass."""
        super().bind(context)
        self.beams.bind(context.world, self.robot, self.site, self.body)
        optics = make_optics_table(context.world.compiled)
        self._surfaces = OpticalSurfaces(optics, OPTICAL_GEOM_GROUPS, self.body if self.body > 0 else -1)
        self._is_all_opaque = not optics[self.beams.target_geoms].any()

    def measure(self, time_ns: int, elapsed_ns: int) -> LidarReading:
        """Cast all beams."""
        spec = self.spec
        true_ranges = self.cast()
        if spec.false_echo_probability > 0.0 or spec.dropout_probability > 0.0:
            true_ranges = self._add_random_errors(true_ranges)
        ranges = true_ranges + self._bias
        if spec.noise.stddev > 0.0:
            ranges += spec.noise.stddev * self.rng.standard_normal(len(ranges))
        if spec.resolution > 0.0:
            ranges = np.round(ranges / spec.resolution) * spec.resolution
        ranges = np.clip(ranges, spec.range_min, spec.range_max)
        ranges[np.isinf(true_ranges)] = np.inf
        ranges[true_ranges < spec.range_min] = -np.inf
        return LidarReading(time_ns, make_read_only(ranges.reshape(self._shape)), spec)

    def cast(self) -> NDArray[np.float64]:
        """Return the path lengths (beams,) [m], infinite where no echo returns; the next call overwrites them."""
        path_lengths = self.beams.cast()
        if not self._is_all_opaque:
            model, data = self.context.world.model, self.context.world.data
            trace_reflections(
                model._address,
                data._address,
                self.position,
                self.beams.world_directions,
                self.beams.hits,
                self._surfaces,
                self.spec.range_max,
            )
        return path_lengths

    def _add_random_errors(self, true_ranges: NDArray[np.float64]) -> NDArray[np.float64]:
        """Draw dropouts and false echoes."""
        spec, draws = self.spec, self.rng.random((2, len(true_ranges)))
        true_ranges = np.where(draws[0] < spec.dropout_probability, np.inf, true_ranges)
        false_ranges = self.rng.uniform(spec.range_min, np.minimum(true_ranges, spec.range_max))
        return np.where(draws[1] < spec.false_echo_probability, false_ranges, true_ranges)

    def save_noise(self) -> dict[str, float]:
        """The constant bias."""
        return {"bias": float(self._bias)}

    def load_noise(self, saved: dict[str, float]) -> None:
        """Counterpart of `save_noise`."""
        self._bias = saved["bias"]
