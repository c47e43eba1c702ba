"""Cameras: the state is caught at the moment of measuring, and the picture made of it when somebody wants it."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from roboyard.description.sensors import T_SENSOR_OPTICAL, CameraSpec, Sensor
from roboyard.errors import DescriptionError
from roboyard.geometry import SE3
from roboyard.simulation.randomness import generator
from roboyard.simulation.scene import Posture, Scene
from roboyard.simulation.sensors.base import Host, SimulatedSensor
from roboyard.simulation.sensors.cameras.depth_noise import expect_depth_noise, measured_depth
from roboyard.simulation.sensors.cameras.light import expect_exposure, exposed, grey_of, infrared_of, luminance
from roboyard.simulation.sensors.cameras.stereo import disparity

ALL = frozenset(("image", "depth", "infrared", "right", "disparity"))
"""What a reading can hold."""


@dataclass(frozen=True, slots=True)
class CameraReading:
    """What a camera saw at one moment; None: it has none of this, or nobody wanted it.

    Attributes:
        time_ns: When; all pixels at once.
        spec: Lenses and limits.
        colour: (h, w, 3) uint8 RGB, or (h, w) grey; of the left eye of a pair.
        depth: (h, w) float32 along the axis of the depth camera (left eye) [m]; ``inf`` too far, ``-inf`` too near,
            not a number: could not be measured (REP 118).
        infrared: (h, w) uint8, as the depth camera sees it.
        right: As ``colour``, of the right eye.
        disparity: (h, w) float32 [px], −1 where unknown; of a pair.
    """

    time_ns: int
    spec: CameraSpec
    colour: NDArray[np.uint8] | None = None
    depth: NDArray[np.float32] | None = None
    infrared: NDArray[np.uint8] | None = None
    right: NDArray[np.uint8] | None = None
    disparity: NDArray[np.float32] | None = None


@dataclass(frozen=True, slots=True)
class Shot:
    """Everything a picture depends on.

    Attributes:
        time_ns: When it was taken.
        scene: The world as it looks.
        posture: Where everything was.
        T_world_optical: Pose of the camera's optical frame.
        seed: What its noise is drawn from: the run's seed and names.
    """

    time_ns: int
    scene: Scene
    posture: Posture
    T_world_optical: SE3
    seed: tuple[int, str, str]


class Camera(SimulatedSensor[CameraReading]):
    """A camera of any kind; what it has is in its description.

    Noise is drawn anew for each picture from the run's seed, the camera's name and the picture's time: a picture is
    the same however many others were looked at.
    """

    kind: ClassVar[str] = "camera"

    def __init__(self, host: Host, robot: str, sensor: Sensor) -> None:
        super().__init__(host, robot, sensor)
        if not isinstance(sensor.spec, CameraSpec):
            raise DescriptionError(f"sensor {sensor.name} is a camera without a camera's description", location=robot)
        self.spec = sensor.spec
        if sensor.spec.depth is not None:
            expect_depth_noise(sensor.spec.depth_noise, sensor.spec.baseline)
        if sensor.spec.color is not None:
            expect_exposure(sensor.spec.exposure, sensor.spec.noise)

    def shoot(self) -> Shot:
        """Catch the present state."""
        data = self.host.data
        T_world_sensor = SE3.from_rotation_matrix(data.site_xmat[self.site].reshape(3, 3), data.site_xpos[self.site])
        return Shot(
            self.host.time_ns,
            self.host.scene(),
            Posture.of(data),
            T_world_sensor @ T_SENSOR_OPTICAL,
            (self.host.seed, self.robot, self.sensor.name),
        )

    def develop(self, shot: Shot, wanted: frozenset[str] = ALL) -> Future[CameraReading]:
        """Have the picture made in the studio, beside whatever goes on here."""
        return self.host.studio.submit(develop, shot, self.spec, wanted)

    def measure(self, time_ns: int, elapsed_ns: int) -> CameraReading:
        """Take a picture and wait for it."""
        return self.develop(self.shoot()).result()


class DepthCamera(Camera):
    """Depth only."""

    kind = "depth_camera"


class RgbdCamera(Camera):
    """Colour and depth."""

    kind = "rgbd_camera"


class StereoCamera(Camera):
    """A rectified pair of eyes."""

    kind = "stereo_camera"


def develop(room: Any, shot: Shot, spec: CameraSpec, wanted: frozenset[str]) -> CameraReading:
    """The picture of a shot; ``room`` is that of a `Studio`."""
    seed, robot, name = shot.seed
    rng = generator(seed, robot, name, "picture", str(shot.time_ns))
    pictures, depths, chance = rng.spawn(3)
    room.enter(shot.scene, shot.posture)
    T_left = shot.T_world_optical
    colour = depth = infrared = right = shifted = None
    seen = None
    wants_depth = spec.depth is not None and not wanted.isdisjoint(("depth", "disparity", "infrared"))
    structured = spec.depth_noise.uses_pattern and "depth" in wanted and room.uneven
    if spec.color is not None and ("image" in wanted or (wants_depth and not spec.has_separate_depth_lens)):
        seen = room.view(
            spec.color, T_left, spec.near, colour="image" in wanted or "infrared" in wanted or bool(spec.baseline),
            returned=structured and not spec.has_separate_depth_lens,
        )  # fmt: skip
        if "image" in wanted:
            colour = _picture(seen.colour, spec, pictures)
    if spec.depth is not None and wants_depth:
        if seen is None or spec.has_separate_depth_lens:
            T_depth = T_left @ spec.T_color_depth if spec.color is not None else T_left
            seen = room.view(
                spec.depth, T_depth, min(spec.near, spec.depth_near), colour="infrared" in wanted, returned=structured
            )
        if "infrared" in wanted and spec.infrared:
            infrared = infrared_of(seen.colour, seen.depth)
        if not wanted.isdisjoint(("depth", "disparity")):
            depth = measured_depth(
                seen.depth, spec.depth, spec.depth_noise, depths, near=spec.depth_near, far=spec.depth_far,
                baseline=spec.baseline, returned=seen.returned,
                luminance=luminance(seen.colour) if spec.baseline else None,
            )  # fmt: skip
    if spec.baseline and spec.color is not None:
        if "right" in wanted:
            other = room.view(spec.color, T_left @ SE3(translation=(spec.baseline, 0.0, 0.0)), spec.near)
            right = _picture(other.colour, spec, chance)
        if "disparity" in wanted and depth is not None:
            shifted = _still(disparity(depth, spec.color, spec.baseline))
    shown = _still(depth) if depth is not None and "depth" in wanted else None
    return CameraReading(shot.time_ns, spec, colour, shown, _maybe_still(infrared), right, shifted)


def _picture(seen: NDArray[np.uint8], spec: CameraSpec, rng: np.random.Generator) -> NDArray[np.uint8]:
    lens = spec.color
    picture = exposed(seen, lens, spec.exposure, spec.noise, rng) if lens is not None else seen
    shown: NDArray[np.uint8] = _still(grey_of(picture) if spec.is_grayscale else picture)
    return shown


def _still(array: Any) -> Any:
    array.flags.writeable = False
    return array


def _maybe_still(array: Any) -> Any:
    return None if array is None else _still(array)
