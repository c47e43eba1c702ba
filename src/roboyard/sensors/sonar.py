"""Sonar: the nearest echo within a cone, interference by other pulses, and the compiled sound model."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels, kernel
from roboyard.description.sensors import Sensor, SonarSpec
from roboyard.errors import DescriptionError
from roboyard.geometry.constants import SPEED_OF_SOUND
from roboyard.sensors.ray_casting import BeamGrid, BeamPattern
from roboyard.sensors.sensor import NoiseModel, SensorContext, SimulatedSensor

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

EDGE_DISTANCE_RATIO = 0.15
"""A beam that is longer by more than this fraction than a plane through its neighbors has passed an edge, which echoes.
"""
MIN_FREE_FRACTION = 0.9
"""Fraction of a path that must be free for sound to travel along it; housings and the spacing of the beams take the
rest."""


class EchoPatches(NamedTuple):
    """The surfaces that a pulse falls on, one patch for each beam of a cone that hits something.

    Attributes:
        distances: (n,) from the pulse's origin [m].
        points: (n, 3) in the world [m].
        normals: (n, 3) of the surfaces, of unit length or zero; either side.
        edges: (n,) whether the patch lies at the edge of a surface, which scatters sound to all sides.
    """

    distances: FloatArray
    points: FloatArray
    normals: FloatArray
    edges: BoolArray


def _example_find_echo_patches() -> Iterator[tuple[Any, ...]]:
    yield np.ones((3, 3)), np.ones((3, 3, 3)), np.ones((3, 3), np.bool_), np.zeros(3), np.eye(3), 3.0


@kernel(examples=_example_find_echo_patches, error_model="numpy")
def find_echo_patches(
    distances: FloatArray,
    directions: FloatArray,
    cone: BoolArray,
    origin: FloatArray,
    rotation: FloatArray,
    max_range: float,
) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray]:
    """Return the fields of `EchoPatches` where the beams of a cone end.

    Args:
        distances: (rows, columns) of the beams [m]; infinite where a beam hits nothing.
        directions: (rows, columns, 3) their directions in the sensor's frame.
        cone: (rows, columns) which of them belong to the cone.
        origin: (3,) of the beams in the world [m].
        rotation: (3, 3) world from the sensor's frame.
        max_range: Length of the beams [m]; a surface that they do not hit may lie right behind.
    """
    rows, columns = distances.shape
    ends = np.zeros((rows, columns, 3))
    count = 0
    for r in range(rows):
        for c in range(columns):
            if math.isfinite(distances[r, c]):
                count += 1 if cone[r, c] else 0
                for k in range(3):
                    ends[r, c, k] = directions[r, c, k] * distances[r, c]
    lengths, points, normals, edges = (
        np.empty(count),
        np.empty((count, 3)),
        np.empty((count, 3)),
        np.zeros(count, np.bool_),
    )
    i = 0
    for r in range(rows):
        for c in range(columns):
            distance = distances[r, c]
            if not (cone[r, c] and math.isfinite(distance)):
                continue
            up, down, left, right = max(r - 1, 0), min(r + 1, rows - 1), max(c - 1, 0), min(c + 1, columns - 1)
            ax, ay, az = ends[down, c] - ends[up, c]
            bx, by, bz = ends[r, right] - ends[r, left]
            nx, ny, nz = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
            length = math.sqrt(nx * nx + ny * ny + nz * nz)
            scale = 1.0 / length if length > 0.0 else 1.0
            lengths[i] = distance
            for k in range(3):
                points[i, k] = (
                    origin[k]
                    + rotation[k, 0] * ends[r, c, 0]
                    + rotation[k, 1] * ends[r, c, 1]
                    + rotation[k, 2] * ends[r, c, 2]
                )
                normals[i, k] = scale * (rotation[k, 0] * nx + rotation[k, 1] * ny + rotation[k, 2] * nz)
            edges[i] = (
                _is_surface_edge(distances, r, c, 1, 0, max_range)
                or _is_surface_edge(distances, r, c, -1, 0, max_range)
                or _is_surface_edge(distances, r, c, 0, 1, max_range)
                or _is_surface_edge(distances, r, c, 0, -1, max_range)
            )
            i += 1
    return lengths, points, normals, edges


@kernel(error_model="numpy")
def _is_surface_edge(distances: FloatArray, r: int, c: int, down: int, right: int, max_range: float) -> bool:
    """Return whether a surface ends between a beam and its neighbor: the neighbor is longer than the surface allows.

    The inverse distance to a plane changes by equal amounts from beam to beam, but for the cosines of small angles.
    """
    rows, columns = distances.shape
    nr, nc = r + down, c + right
    if not (0 <= nr < rows and 0 <= nc < columns):
        return False
    inverse_distance, neighbor_inverse_distance = 1.0 / distances[r, c], 1.0 / min(distances[nr, nc], max_range)
    if neighbor_inverse_distance * (1.0 + EDGE_DISTANCE_RATIO) >= inverse_distance:
        return False
    br, bc, fr, fc = r - down, c - right, nr + down, nc + right
    if 0 <= br < rows and 0 <= bc < columns:
        expected = 2.0 * inverse_distance - 1.0 / min(distances[br, bc], max_range)
    elif 0 <= fr < rows and 0 <= fc < columns:
        expected = 0.5 * (inverse_distance + 1.0 / min(distances[fr, fc], max_range))
    else:
        expected = inverse_distance
    return bool(neighbor_inverse_distance * (1.0 + EDGE_DISTANCE_RATIO) < min(expected, inverse_distance))


class SoundReceiver(NamedTuple):
    """The receiver of a sonar.

    Attributes:
        position: (3,) in the world [m].
        rotation: (3, 3) world from the receiver's frame, which listens along x.
        half_angle: Of its cone [rad].
        max_incidence_angle: Largest tilt of a surface that reflects sound to it [rad].
        free_distances: (rows, columns) lengths of the receiver's own beams [m].
    """

    position: FloatArray
    rotation: FloatArray
    half_angle: float
    max_incidence_angle: float
    free_distances: FloatArray


_EXAMPLE_RECEIVER = SoundReceiver(np.zeros(3), np.eye(3), 0.26, 0.6, np.ones((3, 3)))


def _example_is_audible() -> Iterator[tuple[Any, ...]]:
    yield 1.0, 0.0, 0.0, 1.0, _EXAMPLE_RECEIVER


@kernel(examples=_example_is_audible, error_model="numpy")
def is_audible(x: float, y: float, z: float, distance: float, receiver: SoundReceiver) -> bool:
    """Return whether sound travels straight from a point to a receiver.

    Args:
        x: Offset of the point from the receiver along the world's x [m].
        y: Along y [m].
        z: Along z [m].
        distance: Length of the offset [m].
        receiver: Listens.
    """
    rotation, half_angle, free_distances = receiver.rotation, receiver.half_angle, receiver.free_distances
    rows, columns = free_distances.shape
    forward = rotation[0, 0] * x + rotation[1, 0] * y + rotation[2, 0] * z
    if forward < math.cos(half_angle) * distance:
        return False
    left = rotation[0, 1] * x + rotation[1, 1] * y + rotation[2, 1] * z
    up = rotation[0, 2] * x + rotation[1, 2] * y + rotation[2, 2] * z
    row = (math.asin(min(max(up / distance, -1.0), 1.0)) if distance > 0.0 else 0.0) + half_angle
    column = math.atan2(left, forward) + half_angle
    r = min(max(round(row / (2.0 * half_angle) * (rows - 1)), 0), rows - 1)
    c = min(max(round(column / (2.0 * half_angle) * (columns - 1)), 0), columns - 1)
    return bool(free_distances[int(r), int(c)] >= MIN_FREE_FRACTION * distance)


def _example_echo_path_lengths() -> Iterator[tuple[Any, ...]]:
    patches = EchoPatches(np.ones(2), np.ones((2, 3)), np.ones((2, 3)), np.ones(2, np.bool_))
    yield patches, np.zeros(3), _EXAMPLE_RECEIVER, False


@kernel(examples=_example_echo_path_lengths, error_model="numpy")
def echo_path_lengths(
    patches: EchoPatches, origin: FloatArray, receiver: SoundReceiver, is_sender: bool
) -> tuple[FloatArray, FloatArray]:
    """Compute the path lengths (n,) of sound by the patches to a receiver and their last legs (n,) [m].

    A patch reflects sound as a mirror does, up to a tilt of ``receiver.max_incidence_angle``; edges scatter it to all
    sides. Lengths are infinite where no sound arrives.

    Args:
        patches: What the pulse falls on.
        origin: (3,) of the pulse in the world [m].
        receiver: Listens.
        is_sender: The receiver sent the pulse itself: it receives sound from each echo patch.
    """
    lengths, points, normals, edges = patches
    position = receiver.position
    count = len(lengths)
    path_lengths, last_legs = np.full(count, np.inf), np.full(count, np.inf)
    min_cosine = math.cos(receiver.max_incidence_angle)
    for i in range(count):
        x, y, z = position[0] - points[i, 0], position[1] - points[i, 1], position[2] - points[i, 2]
        distance = math.sqrt(x * x + y * y + z * z)
        if not is_sender and not is_audible(-x, -y, -z, distance, receiver):
            continue
        if not edges[i]:
            ex, ey, ez = x, y, z
            if distance > 0.0:
                ex, ey, ez = x / distance, y / distance, z / distance
            ox, oy, oz = origin[0] - points[i, 0], origin[1] - points[i, 1], origin[2] - points[i, 2]
            length = math.sqrt(ox * ox + oy * oy + oz * oz)
            if length > 0.0:
                ex, ey, ez = ex + ox / length, ey + oy / length, ez + oz / length
            back = math.sqrt(ex * ex + ey * ey + ez * ez)
            along = abs(normals[i, 0] * ex + normals[i, 1] * ey + normals[i, 2] * ez)
            if along < min_cosine * (back if back > 0.0 else 1.0):
                continue
        last_legs[i] = lengths[i] if is_sender else distance
        path_lengths[i] = lengths[i] + last_legs[i]
    return path_lengths, last_legs


def detect_echo(path_lengths: FloatArray, energies: FloatArray, pulse_length: float, threshold: float) -> float:
    """Return the path length [m] after which a receiver that integrates energy detects an echo; infinite if never.

    Args:
        path_lengths: (n,) of the pulse's front to the receiver [m].
        energies: (n,) that arrive along them by the end of the pulse.
        pulse_length: Length of the pulse [m].
        threshold: Energy that is enough; 0: the first arrival.
    """
    if threshold <= 0.0 or not len(path_lengths):
        return float(np.min(path_lengths, initial=np.inf))
    instants = np.concatenate([path_lengths, path_lengths + pulse_length])
    order = np.argsort(instants, kind="stable")
    sorted_lengths, power = instants[order], np.cumsum(np.concatenate([energies, -energies])[order]) / pulse_length
    energy = np.concatenate([[0.0], np.cumsum(power[:-1] * np.diff(sorted_lengths))])
    above_threshold = np.flatnonzero(energy >= threshold)
    if not len(above_threshold):
        return np.inf
    k = int(above_threshold[0])  # not 0, where nothing is gained yet
    return float(sorted_lengths[k] - (energy[k] - threshold) / power[k - 1])


_N_BEAM_ROWS = 15
"""Beams across the cone: at 5 m and ±15° an object of 18 cm is not missed."""
_RANGE_MARGIN = 1.05
"""The path of sound is traced to this multiple of the range, since noise may shorten it."""
_BEAM_RANGE_FACTOR = 1.3
"""Beams have this multiple of the range, so that edges at the far end differ from surfaces that continue."""
_NO_DISTANCES = np.zeros((1, 1))
"""``SoundReceiver.free_distances`` of a receiver that hears its own pulse, which needs none."""


@dataclass(frozen=True, slots=True)
class SonarReading:
    """One echo.

    Attributes:
        time_ns: When the pulse was sent.
        range: Distance [m]; ``inf`` without an echo, ``-inf`` for an echo from nearer than the smallest range.
    """

    time_ns: int
    range: float


class Sonar(SimulatedSensor[SonarReading]):
    """Ultrasonic ranger.

    The beam is wide, so it measures the distance of an object but not its bearing. A smooth surface that is tilted
    too far reflects the pulse away; its edges return an echo.

    It takes each pulse that it receives for its own echo: also the pulse of another sonar of its frequency, directly or
    by one reflection, and the late echo of its own previous pulse. Sonars send at multiples of their periods, whether
    they are read or not. Objects are taken to be at rest while sound travels.
    """

    kind = "sonar"

    def __init__(self, context: SensorContext, robot: str, sensor: Sensor) -> None:
        super().__init__(context, robot, sensor)
        expect_kernels(echo_path_lengths, find_echo_patches)
        if not isinstance(sensor.spec, SonarSpec):
            raise DescriptionError(f"sensor {sensor.name} is a sonar without a sonar's description", location=robot)
        s = self.spec = sensor.spec
        h = s.half_angle
        pattern = BeamPattern(_N_BEAM_ROWS, -h, h, s.range_max * _BEAM_RANGE_FACTOR, _N_BEAM_ROWS, -h, h)
        self._beams = BeamGrid(pattern)
        self._cone = (self._beams.directions[:, 0] >= math.cos(h) - 1e-9).reshape(_N_BEAM_ROWS, _N_BEAM_ROWS)
        self._pulse_length = SPEED_OF_SOUND * s.burst_cycles / s.frequency
        self._start_ns = context.world.time_ns
        # Times from now [ns] of pulses that it could receive: over the longest path, and over none.
        max_path_length = 2.0 * s.range_max * _RANGE_MARGIN
        self._pulse_time_window = (
            math.ceil((2.0 * s.range_min - max_path_length) / SPEED_OF_SOUND * 1e9),
            math.floor(2.0 * s.range_max / SPEED_OF_SOUND * 1e9),
        )
        self.noise = NoiseModel((s.noise,), self.rng)

    @property
    def is_random(self) -> bool:
        """Whether the sonar has noise, dropouts or false echoes."""
        return super().is_random or self.spec.false_echo_probability > 0.0 or self.spec.dropout_probability > 0.0

    def bind(self, context: SensorContext) -> None:
        """Find the site and the shapes that can echo."""
        super().bind(context)
        self._beams.bind(context.world, self.robot, self.site, self.body)
        self._peers: tuple[Sonar, ...] | None = None
        self._echo_cache: tuple[int, EchoPatches, NDArray[np.float64]] | None = None

    def measure(self, time_ns: int, elapsed_ns: int) -> SonarReading:
        """Send a pulse."""
        s = self.spec
        echo_distance = self.echo()
        is_lost = s.dropout_probability > 0.0 and self.rng.random() < s.dropout_probability
        distance = math.inf if is_lost else echo_distance
        distance = min(distance, self._interference_distance(echo_distance))
        if s.false_echo_probability > 0.0 and self.rng.random() < s.false_echo_probability:
            distance = min(distance, self.rng.uniform(s.range_min, max(min(distance, s.range_max), s.range_min)))
        if math.isinf(distance):
            return SonarReading(time_ns, math.inf)
        noisy = float(self.add_noise(np.array([distance]), elapsed_ns)[0])
        if noisy < s.range_min:
            return SonarReading(time_ns, -math.inf)
        return SonarReading(time_ns, noisy if noisy <= s.range_max else math.inf)

    def echo(self) -> float:
        """Return the distance that the echo of its own pulse gives [m]; infinite for none."""
        self._echo_cache = None
        return 0.5 * self._first_path_length(self)

    # -- other pulses --------------------------------------------------------------------------------------------------
    def _interference_distance(self, echo_distance: float) -> float:
        """Return the distance [m] that the first sound of another pulse appears to have.

        Args:
            echo_distance: Distance by the echo of the pulse that it sends now [m].
        """
        s, nearest = self.spec, math.inf
        for other in self._audible_sonars():
            path_length = 2.0 * echo_distance if other is self else self._first_path_length(other)
            if math.isinf(path_length):
                continue
            for sent_ns in other._pulse_times(self, 2.0 * s.range_min - path_length, 2.0 * s.range_max - path_length):
                nearest = min(nearest, 0.5 * (path_length + SPEED_OF_SOUND * 1e-9 * sent_ns))
        return nearest

    def _pulse_times(self, receiver: Sonar, min_path_length: float, max_path_length: float) -> Iterator[int]:
        """Yield the times [ns] from now of its pulses whose sound may reach ``receiver`` within the range.

        Args:
            receiver: Listens; if it is the sender, it distinguishes the pulse of now.
            min_path_length: Shortest path of sound that counts [m].
            max_path_length: Longest [m].
        """
        now, period, step = self.context.world.time_ns, self.period_ns, self.context.world.timestep_ns
        low, high = (
            math.ceil(min_path_length / SPEED_OF_SOUND * 1e9),
            math.floor(max_path_length / SPEED_OF_SOUND * 1e9),
        )
        if receiver is self:  # it listens for the pulse of now; earlier pulses were sent at its period
            earliest = max(low, self._start_ns - now)
            yield from range(-period, earliest - 1, -period) if period else ()
        elif not period:
            yield from (0,) if low <= 0 <= high else ()
        else:
            start = self._start_ns + round(self.sensor.phase * 1e9)
            for number in range(max(1, (now + low - start) // period), (now + high + step - start) // period + 1):
                sent = (start + number * period) // step * step - now
                if low <= sent <= high:
                    yield sent

    def _audible_sonars(self) -> Iterator[Sonar]:
        """Yield itself and the sending sonars whose pulses it may receive and take for its own."""
        if self._peers is None:
            band = self.spec.frequency / self.spec.burst_cycles
            self._peers = tuple(
                peer for peer in self.context.peers(Sonar) if abs(peer.spec.frequency - self.spec.frequency) < band
            )
        now, step = self.context.world.time_ns, self.context.world.timestep_ns
        first, last = self._pulse_time_window
        for peer in self._peers:
            if peer is self:
                yield peer
                continue
            if peer.period_ns:  # could its newest pulse within the window be received by now?
                start = peer._start_ns + round(peer.sensor.phase * 1e9)
                number = (now + last + step - start) // peer.period_ns
                if number < 1 or (start + number * peer.period_ns) // step * step - now < first:
                    continue
            if self.context.is_powered(peer.robot) and not peer.has_outage():
                yield peer

    def _first_path_length(self, other: Sonar) -> float:
        """Return the path length [m] of the first sound of ``other`` that it receives; infinite for none."""
        s, is_sender = self.spec, other is self
        max_path_length = 2.0 * s.range_max * _RANGE_MARGIN
        patches, _ = other._find_patches()
        receiver = self._receiver(_NO_DISTANCES if is_sender else self._find_patches()[1])
        path_lengths, last_legs = echo_path_lengths(patches, other.position, receiver, is_sender)
        direct_path = 0.0 if is_sender else float(np.linalg.norm(other.position - receiver.position))
        has_direct_path = 0.0 < direct_path <= max_path_length and self._has_direct_path(other)
        in_range = path_lengths <= max_path_length
        path_lengths, last_legs = path_lengths[in_range], last_legs[in_range]
        if s.detection_threshold <= 0.0:
            first = float(path_lengths.min()) if len(path_lengths) else math.inf
            return min(first, direct_path) if has_direct_path else first
        energies = (s.range_max / np.maximum(last_legs, 1e-9)) ** 2 / other._cone.sum()
        if has_direct_path:
            path_lengths, energies = (
                np.append(path_lengths, direct_path),
                np.append(energies, (2.0 * s.range_max / direct_path) ** 2),
            )
        return detect_echo(path_lengths, energies, self._pulse_length, s.detection_threshold)

    def _has_direct_path(self, other: Sonar) -> bool:
        """Return whether each lies in the other's cone, and at least one has a free path to the other."""
        other_position, position = other.position, self.position
        if not (self._is_in_cone(other_position) and other._is_in_cone(position)):
            return False
        return self._can_receive_from(other_position) or other._can_receive_from(position)

    def _is_in_cone(self, point: NDArray[np.float64]) -> bool:
        """Return whether a point (3,) of the world lies in its cone."""
        direction = (point - self.position) @ self.rotation
        return bool(direction[0] >= math.cos(self.spec.half_angle) * np.linalg.norm(direction))

    def _can_receive_from(self, point: NDArray[np.float64]) -> bool:
        """Return whether a point (3,) of the world lies in its cone with nothing between."""
        x, y, z = (point - self.position).tolist()
        distance = math.sqrt(x * x + y * y + z * z)
        return bool(is_audible(x, y, z, distance, self._receiver(self._find_patches()[1])))

    # -- its own beams -------------------------------------------------------------------------------------------------
    def _receiver(self, free_distances: NDArray[np.float64]) -> SoundReceiver:
        return SoundReceiver(
            self.position, self.rotation, self.spec.half_angle, self.spec.max_incidence_angle, free_distances
        )

    def _find_patches(self) -> tuple[EchoPatches, NDArray[np.float64]]:
        """Return the patches that its pulse falls on now, and the lengths of all beams (rows, columns) [m]."""
        now = self.context.world.time_ns
        if self._echo_cache is None or self._echo_cache[0] != now:
            distances = self._beams.cast().reshape(_N_BEAM_ROWS, _N_BEAM_ROWS).copy()
            directions = self._beams.directions.reshape(_N_BEAM_ROWS, _N_BEAM_ROWS, 3)
            self._echo_cache = (
                now,
                EchoPatches(
                    *find_echo_patches(
                        distances,
                        directions,
                        self._cone,
                        self.position,
                        self.rotation,
                        self.spec.range_max * _BEAM_RANGE_FACTOR,
                    )
                ),
                distances,
            )
        return self._echo_cache[1], self._echo_cache[2]

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_noise(self) -> dict[str, Any]:
        """Return biases, and the time at which it was switched on."""
        return {**super().save_noise(), "start_ns": self._start_ns}

    def load_noise(self, saved: dict[str, Any]) -> None:
        """Counterpart of `save_noise`."""
        super().load_noise(saved)
        self._start_ns, self._echo_cache = int(saved["start_ns"]), None
