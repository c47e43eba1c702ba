"""Cameras: they capture the state when they measure, and render the images from this snapshot on request.

Geometry of a rectified stereo pair, left camera first: a point at depth Z has column u in the left image and u − f B
/ Z in the image of the right camera, the baseline B to its right: the disparity d = f B / Z is positive. In ROS's
projection matrix the right camera has the origin of the left one's frame at −B: P = K [I | −B, 0, 0], so P[0, 3] =
−f B, and

    Q = [[1, 0, 0, −cx], [0, 1, 0, −cy], [0, 0, 0, f], [0, 0, 1 / B, 0]]

takes (u, v, d, 1) to the point times d / B. (With T_x for the translation in P, −B, OpenCV writes −1 / T_x for 1 /
B: the two matrices need the same sign of T_x.)
"""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from roboyard.compute.random import make_generator
from roboyard.description.sensors import T_SENSOR_OPTICAL, CameraSpec, Sensor
from roboyard.errors import DescriptionError
from roboyard.geometry import SE3, CameraModel
from roboyard.geometry.arrays import Array
from roboyard.physics.visual_scene import SceneState, VisualScene
from roboyard.sensors.cameras.depth_noise import SurfaceImages, expect_depth_noise, measure_depth
from roboyard.sensors.cameras.exposure import (
    apply_exposure,
    compute_luminance,
    expect_exposure,
    render_infrared,
    to_gray,
)
from roboyard.sensors.sensor import SensorContext, SimulatedSensor


def make_projection_matrix(camera_model: CameraModel, baseline: float = 0.0) -> Array:
    """P (3, 4) [px] of the left camera (no ``baseline``) or the right one, for points in the left one's frame [m]."""
    return np.concatenate([camera_model.matrix, [[-camera_model.fx * baseline], [0.0], [0.0]]], axis=1)


def make_reprojection_matrix(camera_model: CameraModel, baseline: float) -> Array:
    """Q (4, 4): (u, v, d, 1) to homogeneous points in the left camera's frame; pixels must be square."""
    return np.array(
        [
            [1.0, 0.0, 0.0, -camera_model.cx],
            [0.0, camera_model.fx / camera_model.fy, 0.0, -camera_model.cy * camera_model.fx / camera_model.fy],
            [0.0, 0.0, 0.0, camera_model.fx],
            [0.0, 0.0, 1.0 / baseline, 0.0],
        ]
    )


def compute_disparity(depth: NDArray[np.float32], camera_model: CameraModel, baseline: float) -> NDArray[np.float32]:
    """Disparity (h, w) [px] of depth (h, w) [m]; −1 where depth is unknown, as image_proc writes it."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = camera_model.fx * baseline / depth
    return np.where(np.isfinite(depth) & (depth > 0.0), found, -1.0).astype(np.float32)


ALL_OUTPUTS = frozenset(("image", "depth", "infrared", "right", "disparity"))
"""Outputs that a reading can hold."""


@dataclass(frozen=True, slots=True)
class CameraReading:
    """Images of a camera at one moment; None: the camera has no such output, or it was not requested.

    Attributes:
        time_ns: When; all pixels at once.
        spec: Lenses and limits.
        color: (h, w, 3) uint8 RGB, or (h, w) gray; of the left eye of a pair.
        depth: (h, w) float32 along the axis of the depth camera (left eye) [m]; ``inf`` too far, ``-inf`` too near,
            not a number: could not be measured (REP 118).
        infrared: (h, w) uint8, as the depth camera sees it.
        right: As ``color``, of the right eye.
        disparity: (h, w) float32 [px], −1 where unknown; of a pair.
    """

    time_ns: int
    spec: CameraSpec
    color: NDArray[np.uint8] | None = None
    depth: NDArray[np.float32] | None = None
    infrared: NDArray[np.uint8] | None = None
    right: NDArray[np.uint8] | None = None
    disparity: NDArray[np.float32] | None = None


@dataclass(frozen=True, slots=True)
class CameraSnapshot:
    """Everything that an image depends on.

    Attributes:
        time_ns: Time of the snapshot.
        scene: The visual scene.
        state: Positions of all joints and kinematic bodies.
        T_world_optical: Pose of the camera's optical frame.
        seed: Seed of its noise: the run's seed, the robot's and the sensor's name.
    """

    time_ns: int
    scene: VisualScene
    state: SceneState
    T_world_optical: SE3
    seed: tuple[int, str, str]


class CameraSensor(SimulatedSensor[CameraReading]):
    """A camera of any kind; what it has is in its description.

    Noise is drawn anew for each image from the run's seed, the camera's name and the image's time: an image is
    the same however many others are rendered.
    """

    kind: ClassVar[str] = "camera"

    def __init__(self, context: SensorContext, robot: str, sensor: Sensor) -> None:
        super().__init__(context, robot, sensor)
        if not isinstance(sensor.spec, CameraSpec):
            raise DescriptionError(f"sensor {sensor.name} is a camera without a camera's description", location=robot)
        self.spec = sensor.spec
        if sensor.spec.has_depth:
            expect_depth_noise(sensor.spec.depth_noise, sensor.spec.baseline)
        if sensor.spec.has_color:
            expect_exposure(sensor.spec.exposure, sensor.spec.noise)

    def capture(self) -> CameraSnapshot:
        """Capture the current state."""
        data = self.context.world.data
        return CameraSnapshot(
            self.context.world.time_ns,
            self.context.renderer.visual_scene(),
            SceneState.from_data(data),
            self.T_world_sensor() @ T_SENSOR_OPTICAL,
            (self.context.seed, self.robot, self.sensor.name),
        )

    def render(self, snapshot: CameraSnapshot, outputs: frozenset[str] = ALL_OUTPUTS) -> Future[CameraReading]:
        """Render the snapshot in the render thread while the simulation continues."""
        return self.context.renderer.submit(render_camera_reading, snapshot, self.spec, outputs)

    def measure(self, time_ns: int, elapsed_ns: int) -> CameraReading:
        """Capture the state and wait for its images."""
        return self.render(self.capture()).result()


class DepthCamera(CameraSensor):
    """Depth only."""

    kind = "depth_camera"


class RgbdCamera(CameraSensor):
    """Color and depth."""

    kind = "rgbd_camera"


class StereoCamera(CameraSensor):
    """A rectified pair of eyes."""

    kind = "stereo_camera"


def render_camera_reading(
    worker: Any, snapshot: CameraSnapshot, spec: CameraSpec, outputs: frozenset[str]
) -> CameraReading:
    """The image of a shot; ``worker`` is that of a `RenderThread`."""
    seed, robot, name = snapshot.seed
    rng = make_generator(seed, robot, name, "picture", str(snapshot.time_ns))
    color_rng, depth_rng, right_rng = rng.spawn(3)
    worker.set_scene(snapshot.scene, snapshot.state)
    T_left = snapshot.T_world_optical
    color = depth = infrared = right = disparity_image = None
    view = None
    needs_depth = spec.has_depth and not outputs.isdisjoint(("depth", "disparity", "infrared"))
    uses_pattern = spec.depth_noise.uses_pattern and "depth" in outputs and worker.has_uneven_reflectance
    if spec.color is not None and ("image" in outputs or (needs_depth and not spec.has_separate_depth_lens)):
        view = worker.render_view(
            spec.color,
            T_left,
            spec.near,
            with_color="image" in outputs or "infrared" in outputs or bool(spec.baseline),
            with_reflectance=uses_pattern and not spec.has_separate_depth_lens,
        )
        if "image" in outputs:
            color = _expose_image(view.color, spec, color_rng)
    if spec.depth is not None and needs_depth:
        if view is None or spec.has_separate_depth_lens:
            T_depth = T_left @ spec.T_color_depth if spec.color is not None else T_left
            view = worker.render_view(
                spec.depth,
                T_depth,
                min(spec.near, spec.depth_near),
                with_color="infrared" in outputs,
                with_reflectance=uses_pattern,
            )
        if "infrared" in outputs and spec.infrared:
            infrared = render_infrared(view.color, view.depth)
        if not outputs.isdisjoint(("depth", "disparity")):
            depth = measure_depth(
                view.depth, spec.depth, spec.depth_noise, depth_rng, near=spec.depth_near, far=spec.depth_far,
                baseline=spec.baseline,
                surfaces=SurfaceImages(view.reflectance, compute_luminance(view.color) if spec.baseline else None),
            )  # fmt: skip
    if spec.baseline and spec.color is not None:
        if "right" in outputs:
            right_view = worker.render_view(spec.color, T_left @ SE3(translation=(spec.baseline, 0.0, 0.0)), spec.near)
            right = _expose_image(right_view.color, spec, right_rng)
        if "disparity" in outputs and depth is not None:
            disparity_image = _make_read_only(compute_disparity(depth, spec.color, spec.baseline))
    depth_output = _make_read_only(depth) if depth is not None and "depth" in outputs else None
    infrared_output = _make_read_only(infrared) if infrared is not None else None
    return CameraReading(snapshot.time_ns, spec, color, depth_output, infrared_output, right, disparity_image)


def _expose_image(color: NDArray[np.uint8], spec: CameraSpec, rng: np.random.Generator) -> NDArray[np.uint8]:
    camera_model = spec.color
    image = apply_exposure(color, camera_model, spec.exposure, spec.noise, rng) if camera_model is not None else color
    output: NDArray[np.uint8] = _make_read_only(to_gray(image) if spec.is_grayscale else image)
    return output


def _make_read_only(array: Any) -> Any:
    array.flags.writeable = False
    return array
