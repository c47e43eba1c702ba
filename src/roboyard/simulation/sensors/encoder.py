"""Joint encoders: quantised position, noisy velocity, effort."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.description.sensors import EncoderSpec, Sensor
from roboyard.errors import DescriptionError
from roboyard.simulation.sensors.base import Host, SimulatedSensor, frozen
from roboyard.simulation.sensors.noise import Corruption


@dataclass(frozen=True, slots=True)
class EncoderReading:
    """Joint states.

    Attributes:
        time_ns: When.
        joints: Names.
        position: (n,) [rad or m], in whole steps if the encoder has a resolution.
        turned: (n,) whole turns on top of that [rad], which whoever reads an absolute encoder all the time has counted;
            zero for others.
        velocity: (n,) [rad/s or m/s].
        effort: (n,) actuator effort [N m or N].
    """

    time_ns: int
    joints: tuple[str, ...]
    position: NDArray[np.float64]
    turned: NDArray[np.float64]
    velocity: NDArray[np.float64]
    effort: NDArray[np.float64]


class Encoder(SimulatedSensor[EncoderReading]):
    """Encoders on some or all scalar joints of a model."""

    kind = "encoder"

    def __init__(self, host: Host, robot: str, sensor: Sensor) -> None:
        super().__init__(host, robot, sensor)
        if not isinstance(sensor.spec, EncoderSpec):
            raise DescriptionError(
                f"sensor {sensor.name} is an encoder without an encoder's description", location=robot
            )
        self._spec = sensor.spec
        places = host.placement(robot).joints
        names = {place.name for place in places}
        missing = [joint for joint in sensor.spec.joints if joint not in names]
        if missing:
            raise DescriptionError(
                f"encoder {sensor.name} names joints that cannot move: {', '.join(missing)}",
                location=robot,
                valid=f"joints: {', '.join(sorted(names))}",
            )
        self.joints = sensor.spec.joints or tuple(place.name for place in places)
        self._slipped, self._seen = np.zeros(len(self.joints)), np.zeros(len(self.joints))
        self._step = 2.0 * math.pi / sensor.spec.resolution if sensor.spec.resolution > 0 else 0.0
        self.noise = Corruption([sensor.spec.noise] * len(self.joints), self.rng)

    def bind(self) -> None:
        """Find the joints' addresses."""
        placement = self.host.placement(self.robot)
        self.body = placement.links[self.sensor.link].body if self.sensor.link in placement.links else 0
        places = {place.name: place for place in placement.joints}
        self._qpos = np.array([places[joint].qpos for joint in self.joints], int)
        self._dof = np.array([places[joint].dof for joint in self.joints], int)
        self._turns = np.array([not places[joint].prismatic for joint in self.joints], bool)

    def measure(self, time_ns: int, elapsed_ns: int) -> EncoderReading:
        """Read all joints."""
        data = self.host.data
        self.host.instant.accelerations()
        position = data.qpos[self._qpos]
        if self._spec.miscount_probability > 0.0:
            self._miscount(position)
            position = position + self._slipped
        if self._step > 0.0:
            # A count is passed, not approached: the encoder shows the last one passed.
            position = np.where(self._turns, np.floor(position / self._step) * self._step, position)
        turned = np.zeros_like(position)
        if self._spec.absolute:
            shown = np.where(self._turns, position % (2.0 * math.pi), position)
            position, turned = shown, position - shown
        velocity = self.noisy(data.qvel[self._dof], elapsed_ns)
        effort = data.qfrc_actuator[self._dof]
        return EncoderReading(time_ns, self.joints, frozen(position), frozen(turned), frozen(velocity), frozen(effort))

    @property
    def random(self) -> bool:
        """Whether it has noise or miscounts."""
        return super().random or self._spec.miscount_probability > 0.0

    def _miscount(self, position: NDArray[np.float64]) -> None:
        """Lose a step or count it twice, each of those passed since the last look with the same probability."""
        step = self._step or 2.0 * math.pi / 4096
        passed = np.abs(np.floor(position / step) - np.floor(self._seen / step)).astype(int)
        wrong = self.rng.binomial(passed, self._spec.miscount_probability)
        self._slipped = self._slipped + step * (wrong - 2 * self.rng.binomial(wrong, 0.5))
        self._seen = position

    def noise_state(self) -> dict[str, Any]:
        """Biases and what was miscounted so far."""
        return {**super().noise_state(), "slipped": self._slipped.tolist(), "seen": self._seen.tolist()}

    def restore_noise(self, saved: dict[str, Any]) -> None:
        """Counterpart of `noise_state`."""
        super().restore_noise(saved)
        self._slipped, self._seen = np.array(saved["slipped"], float), np.array(saved["seen"], float)
