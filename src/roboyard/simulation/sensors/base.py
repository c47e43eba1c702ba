"""What every simulated sensor is: bound to the engine, read at an instant, saved and restored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.description.model import World
from roboyard.description.sensors import Sensor
from roboyard.simulation.actuation import Servos
from roboyard.simulation.assembly import Placement
from roboyard.simulation.contacts import ContactWatch
from roboyard.simulation.instant import Instant
from roboyard.simulation.randomness import generator, plain_state, restore_generator
from roboyard.simulation.scene import Scene
from roboyard.simulation.sensors.noise import Corruption
from roboyard.simulation.sensors.outage import Outages

if TYPE_CHECKING:
    from roboyard.simulation.sensors.cameras.studio import Studio


class Power(Protocol):
    """Who has power."""

    def powered(self, model: str) -> bool:
        """Whether a model has power."""
        ...


class Host(Protocol):
    """What a sensor sees of the simulation it is in."""

    seed: int

    @property
    def model(self) -> mujoco.MjModel:
        """The engine's model."""
        ...

    @property
    def data(self) -> mujoco.MjData:
        """The engine's data."""
        ...

    @property
    def instant(self) -> Instant:
        """The present, evaluated on demand."""
        ...

    @property
    def time_ns(self) -> int:
        """The present [ns]."""
        ...

    @property
    def timestep_ns(self) -> int:
        """Physics step [ns]."""
        ...

    @property
    def servos(self) -> Servos:
        """Joint servos."""
        ...

    @property
    def watch(self) -> ContactWatch:
        """Names of geoms."""
        ...

    @property
    def models(self) -> Mapping[str, Any]:
        """Everything in it by name."""
        ...

    @property
    def world(self) -> World:
        """Description of the place."""
        ...

    @property
    def faults(self) -> Power:
        """What is wrong."""
        ...

    @property
    def studio(self) -> Studio:
        """Where pictures are made."""
        ...

    def scene(self) -> Scene:
        """The world as it looks."""
        ...

    def sensors(self, name: str) -> tuple[Any, ...]:
        """The sensors of a model."""
        ...

    def placement(self, name: str) -> Placement:
        """Addresses of a model."""
        ...


R = TypeVar("R")


class SimulatedSensor(ABC, Generic[R]):
    """A sensor of one model.

    `read` depends on nothing but the present state and the sensor's own noise, and changes nothing in the simulation.
    Reading twice at one instant gives the same reading.

    A sensor kind is a subclass with `measure`, registered in `roboyard.simulation.sensors.registry`.

    Args:
        host: The simulation.
        robot: Name of the model it sits on.
        sensor: Its description.
    """

    kind: ClassVar[str]

    def __init__(self, host: Host, robot: str, sensor: Sensor) -> None:
        self.host, self.robot, self.sensor = host, robot, sensor
        self.period_ns = round(1e9 / sensor.update_rate) if sensor.update_rate > 0.0 else 0
        self.rng = generator(host.seed, robot, sensor.name)
        self.noise: Corruption | None = None
        self._outages = Outages(sensor.outage, generator(host.seed, robot, sensor.name, "outage"))
        self._read_ns: int | None = None
        self._reading: R | None = None
        self._before: tuple[int | None, Any, Any] = (None, None, None)

    @property
    def random(self) -> bool:
        """Whether measuring draws random numbers; kinds with failures of their own that do so override this."""
        return self.noise is not None and self.noise.random

    def read(self) -> R:
        """The measurement at this instant; the object is frozen and its arrays are read-only."""
        now = self.host.time_ns
        if self._reading is None or self._read_ns != now:
            self._before = self._snapshot() if self.random else (self._read_ns, None, None)
            elapsed_ns = now - self._read_ns if self._read_ns is not None else 0
            self._reading = self.measure(now, elapsed_ns)
            self._read_ns = now
        return self._reading

    def is_out(self) -> bool:
        """Whether it says nothing now: a random outage."""
        return self._outages.at(self.host.time_ns)

    def noisy(self, values: NDArray[np.float64], elapsed_ns: int) -> NDArray[np.float64]:
        """``values`` (n,) with the sensor's noise; see `Corruption.apply`."""
        return values if self.noise is None else self.noise.apply(values, elapsed_ns)

    @abstractmethod
    def measure(self, time_ns: int, elapsed_ns: int) -> R:
        """Measure now; ``elapsed_ns`` is the time since the measurement before (0 for the first)."""

    def bind(self) -> None:
        """Find the addresses in the compiled model anew (called whenever models come or go)."""
        placement = self.host.placement(self.robot)
        self.site = placement.sites[self.sensor.name]
        self.body = placement.links[self.sensor.link].body

    # -- state ---------------------------------------------------------------------------------------------------------
    def noise_state(self) -> dict[str, Any]:
        """Biases and the like, as plain data; kinds that have more override this and `restore_noise`."""
        return self.noise.save_state() if self.noise is not None else {}

    def restore_noise(self, saved: dict[str, Any]) -> None:
        """Counterpart of `noise_state`."""
        if self.noise is not None:
            self.noise.load_state(saved)

    def save_state(self) -> dict[str, Any]:
        """Generator, biases and time of the last measurement."""
        # What was measured at this instant is not kept: from the state before it, the same is measured again.
        again = self._read_ns is not None and self._read_ns == self.host.time_ns
        read_ns, rng, noise = self._before if again and self.random else self._snapshot()
        return {
            "again": again,
            "read_ns": self._before[0] if again else read_ns,
            "generator": plain_state(rng),
            "noise": noise,
            "outages": self._outages.save_state(),
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Continue from `save`; to be called after the physical state is back."""
        self._reading = None
        self._read_ns = saved["read_ns"]
        restore_generator(self.rng, saved["generator"])
        self.restore_noise(saved["noise"])
        self._outages.load_state(saved["outages"])
        if saved["again"]:
            self.read()

    def _snapshot(self) -> tuple[int | None, Any, Any]:
        return self._read_ns, self.rng.bit_generator.state, self.noise_state()


def frozen(array: NDArray[np.float64]) -> NDArray[np.float64]:
    """The array, made read-only."""
    array.flags.writeable = False
    return array
