"""`SimulatedSensor`: the base class of simulated sensors; `SensorContext`: what they may use of the simulation; noise
model, random outages."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from roboyard.compute.random import generator_state, make_generator, restore_generator
from roboyard.description.model import World
from roboyard.description.sensors import Noise, Outage, Sensor
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.physics.visual_scene import VisualScene
from roboyard.physics.world import PhysicsWorld


class NoiseModel:
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
        self._mean, self._stddev, self._resolution = column("mean"), column("stddev"), column("precision")
        self._drift_stddev, self._correlation_time = (
            column("dynamic_bias_stddev"),
            column("dynamic_bias_correlation_time"),
        )
        self._bias = np.zeros(len(channels))
        bias_stddev, bias_mean = column("bias_stddev"), column("bias_mean")
        if bias_stddev.any() or bias_mean.any():
            self._bias = rng.normal(bias_mean, bias_stddev) * np.where(rng.random(len(channels)) < 0.5, -1.0, 1.0)
        self._has_drift, self._has_white_noise, self._has_rounding = (
            self._drift_stddev.any(),
            self._stddev.any(),
            self._resolution.any(),
        )
        self._drifting_bias = rng.normal(0.0, self._drift_stddev) if self._has_drift else np.zeros(len(channels))
        self._offset = self._mean + self._bias

    @property
    def is_random(self) -> bool:
        """Whether it draws random numbers."""
        return bool(self._has_drift or self._has_white_noise)

    def apply(self, values: Array, elapsed_ns: int) -> Array:
        """``values`` (n,) with noise; ``elapsed_ns`` since the call before moves the drifting biases on."""
        out = values + self._offset
        if self._has_drift:
            decay = np.exp(
                -elapsed_ns * 1e-9 / np.where(self._correlation_time > 0.0, self._correlation_time, math.inf)
            )
            new_drift = self._rng.standard_normal(len(out)) * self._drift_stddev * np.sqrt(1.0 - decay * decay)
            self._drifting_bias = decay * self._drifting_bias + new_drift
            out += self._drifting_bias
        if self._has_white_noise:
            out += self._stddev * self._rng.standard_normal(len(out))
        if self._has_rounding:
            step = np.where(self._resolution > 0.0, self._resolution, 1.0)
            out = np.where(self._resolution > 0.0, np.round(out / step) * step, out)
        return np.asarray(out)

    def save_state(self) -> dict[str, Any]:
        """Biases as plain data."""
        return {"bias": self._bias.tolist(), "drifting_bias": self._drifting_bias.tolist()}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Counterpart of `save_state`."""
        self._bias, self._drifting_bias = np.array(saved["bias"], float), np.array(saved["drifting_bias"], float)
        self._offset = self._mean + self._bias


class RandomOutage:
    """Alternates between intervals with and without data, both of exponentially distributed length.

    Args:
        spec: Mean lengths.
        rng: Draws them; its own, so that the noise stays the same with and without outages.
    """

    def __init__(self, spec: Outage, rng: np.random.Generator) -> None:
        self._spec, self._rng = spec, rng
        self._is_silent, self._until_ns = True, 0  # the first change is at once, to working
        if spec.mean_interval <= 0.0:
            self._is_silent, self._until_ns = False, -1

    def is_silent_at(self, time_ns: int) -> bool:
        """Return whether there is no data at ``time_ns``, which must not decrease."""
        while 0 <= self._until_ns <= time_ns:
            self._is_silent = not self._is_silent
            mean = self._spec.mean_duration if self._is_silent else self._spec.mean_interval
            self._until_ns += max(1, round(self._rng.exponential(mean) * 1e9))
        return self._is_silent

    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        return {
            "is_silent": self._is_silent,
            "until_ns": self._until_ns,
            "generator": generator_state(dict(self._rng.bit_generator.state)),
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Counterpart of `save_state`."""
        self._is_silent, self._until_ns = saved["is_silent"], saved["until_ns"]
        restore_generator(self._rng, saved["generator"])


R = TypeVar("R")


class CameraRenderer(Protocol):
    """What cameras use to render their images."""

    def visual_scene(self) -> VisualScene:
        """The visual scene of the present state."""
        ...

    def submit(self, work: Callable[..., R], *args: Any) -> Future[R]:
        """Execute ``work(worker, *args)`` in the thread that renders images; see `RenderThread.submit`."""
        ...


@dataclass(frozen=True, slots=True)
class SensorContext:
    """What a sensor may use of the simulation.  It holds until models are added or removed: `SimulatedSensor.bind`
    then receives another one.

    Attributes:
        world: The compiled world and its state: MuJoCo's model and data, addresses, contacts, time.
        seed: Seed of the simulation, from which each sensor derives its own random numbers.
        environment: Description of the world, with its magnetic field and geodetic origin.
        renderer: Renders the images of cameras.
        peers: Returns all sensors of a class, of all models.
        is_powered: Returns whether the model of this name has power.
    """

    world: PhysicsWorld
    seed: int
    environment: World
    renderer: CameraRenderer
    peers: Callable[[type[Any]], Iterable[Any]]
    is_powered: Callable[[str], bool]


class SimulatedSensor(ABC, Generic[R]):
    """A sensor of one model.

    `read` depends on nothing but the present state and the sensor's own noise, and changes nothing in the simulation.
    Reading twice at one instant gives the same reading.

    A sensor kind is a subclass with `measure`, registered in `roboyard.sensors.registry`.

    Args:
        context: What the sensor may use of the simulation, until `bind` receives another context.
        robot: Name of the model it sits on.
        sensor: Its description.

    Attributes:
        site: MuJoCo's site of the sensor, after `bind`.
        body: MuJoCo's body that carries the sensor, after `bind`.
        position: (3,) present position in the world [m]: a view of MuJoCo's memory, not to be written.
        rotation: (3, 3) present rotation, world from sensor frame: a view as well.
    """

    kind: ClassVar[str]

    def __init__(self, context: SensorContext, robot: str, sensor: Sensor) -> None:
        self.context, self.robot, self.sensor = context, robot, sensor
        self.period_ns = round(1e9 / sensor.update_rate) if sensor.update_rate > 0.0 else 0
        self.rng = make_generator(context.seed, robot, sensor.name)
        self.noise: NoiseModel | None = None
        self._outage = RandomOutage(sensor.outage, make_generator(context.seed, robot, sensor.name, "outage"))
        self._read_ns: int | None = None
        self._reading: R | None = None
        self._previous_state: tuple[int | None, Any, Any] = (None, None, None)

    @property
    def is_random(self) -> bool:
        """Whether measuring draws random numbers; kinds with failures of their own that do so override this."""
        return self.noise is not None and self.noise.is_random

    def read(self) -> R:
        """The measurement at this instant; the object is frozen and its arrays are read-only."""
        now = self.context.world.time_ns
        if self._reading is None or self._read_ns != now:
            self._previous_state = self._snapshot() if self.is_random else (self._read_ns, None, None)
            elapsed_ns = now - self._read_ns if self._read_ns is not None else 0
            self._reading = self.measure(now, elapsed_ns)
            self._read_ns = now
        return self._reading

    def has_outage(self) -> bool:
        """Return whether the sensor is in a random outage now."""
        return self._outage.is_silent_at(self.context.world.time_ns)

    def add_noise(self, values: NDArray[np.float64], elapsed_ns: int) -> NDArray[np.float64]:
        """``values`` (n,) with the sensor's noise; see `NoiseModel.apply`."""
        return values if self.noise is None else self.noise.apply(values, elapsed_ns)

    @abstractmethod
    def measure(self, time_ns: int, elapsed_ns: int) -> R:
        """Measure now; ``elapsed_ns`` is the time since the measurement before (0 for the first)."""

    def bind(self, context: SensorContext) -> None:
        """Use ``context`` from now on, and find the sensor's addresses in its world.

        The simulation calls it before the first measurement, and whenever models are added or removed.
        """
        self.context = context
        addresses = context.world.addresses(self.robot)
        self.site = addresses.sites[self.sensor.name]
        self.body = addresses.links[self.sensor.link].body
        self.position = context.world.data.site_xpos[self.site]
        self.rotation = context.world.data.site_xmat[self.site].reshape(3, 3)

    def T_world_sensor(self) -> SE3:
        """Return the present pose of the sensor in the world."""
        return SE3.from_rotation_matrix(self.rotation, self.position)

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_noise(self) -> dict[str, Any]:
        """Biases and the like, as plain data; kinds that have more override this and `load_noise`."""
        return self.noise.save_state() if self.noise is not None else {}

    def load_noise(self, saved: dict[str, Any]) -> None:
        """Counterpart of `save_noise`."""
        if self.noise is not None:
            self.noise.load_state(saved)

    def save_state(self) -> dict[str, Any]:
        """Generator, biases and time of the last measurement."""
        # What was measured at this instant is not kept: from the state before it, the same is measured again.
        is_measured_now = self._read_ns is not None and self._read_ns == self.context.world.time_ns
        read_ns, rng, noise = self._previous_state if is_measured_now and self.is_random else self._snapshot()
        return {
            "is_measured_now": is_measured_now,
            "read_ns": self._previous_state[0] if is_measured_now else read_ns,
            "generator": generator_state(rng),
            "noise": noise,
            "outage": self._outage.save_state(),
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Continue from `save_state`; to be called after the physical state is back."""
        self._reading = None
        self._read_ns = saved["read_ns"]
        restore_generator(self.rng, saved["generator"])
        self.load_noise(saved["noise"])
        self._outage.load_state(saved["outage"])
        if saved["is_measured_now"]:
            self.read()

    def _snapshot(self) -> tuple[int | None, Any, Any]:
        return self._read_ns, self.rng.bit_generator.state, self.save_noise()


def make_read_only(array: NDArray[np.float64]) -> NDArray[np.float64]:
    """The array, made read-only."""
    array.flags.writeable = False
    return array
