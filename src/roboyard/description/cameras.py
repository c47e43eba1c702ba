"""Cameras as descriptions declare them: what takes the pictures, how it errs, what its topics and frames are called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from roboyard.description.noise import Noise
from roboyard.geometry import SE3, CameraModel

if TYPE_CHECKING:
    from roboyard.description.sensors import Sensor

CAMERA_KINDS = ("camera", "depth_camera", "rgbd_camera", "stereo_camera")

T_SENSOR_OPTICAL = SE3.from_rotation_matrix(np.array([[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]]))
"""A sensor looks along its x with z up; an optical frame along its z with y down (REP 103)."""

DepthModel = Literal["ideal", "gaussian", "khoshelham", "nguyen", "handa", "stereo"]
DEPTH_MODELS: tuple[DepthModel, ...] = ("ideal", "gaussian", "khoshelham", "nguyen", "handa", "stereo")


@dataclass(frozen=True, slots=True)
class Exposure:
    """How light becomes numbers.

    Attributes:
        gain: Of the light.
        auto: Choose the gain of each picture so that its mean comes out middle grey; times ``gain``.
        vignetting: Share of the light that the corners lose.
        full_well: Electrons at white, which make shot noise; 0: none.
        read_noise: Electrons that reading adds, with a full well.
    """

    gain: float = 1.0
    auto: bool = False
    vignetting: float = 0.0
    full_well: float = 0.0
    read_noise: float = 0.0


@dataclass(frozen=True, slots=True)
class DepthNoise:
    """How depth errs; what each model does is told in ``roboyard.simulation.sensors.cameras.depth_noise``.

    Attributes:
        model: Which.
        noise: Of ``gaussian`` [m].
        baseline: From the depth camera to the projector of its pattern, along the rows to the right [m]: what that
            does not light is not measured; 0: no shadow.
        disparity_stddev: Standard deviation of ``stereo`` [px].
        near_blur_distance: Nearer than this a pattern is measured with a spread that grows [m].
    """

    model: DepthModel = "ideal"
    noise: Noise = Noise()
    baseline: float = 0.0
    disparity_stddev: float = 0.0
    near_blur_distance: float = 0.0

    @property
    def uses_pattern(self) -> bool:
        """Whether it measures by a projected pattern."""
        return self.model in ("khoshelham", "nguyen", "handa")


@dataclass(frozen=True, slots=True)
class CameraSpec:
    """A camera for colour, depth, infrared, both eyes of a stereo pair, or several of these in one housing.

    Attributes:
        color: Lens of the colour camera, of the left one of a pair; None: it has none.
        depth: Lens of the depth (and infrared) camera; None: it has none.
        near: Nothing nearer is seen [m].
        far: Nor farther [m].
        depth_near: Depth is measured from here [m].
        depth_far: To here [m].
        T_color_depth: Pose of the depth camera's optical frame in the colour camera's.
        baseline: From the left camera of a stereo pair to the right one [m]; 0: no pair.
        noise: Of colours, whose values go from 0 to 1.
        exposure: See there.
        depth_noise: See there.
        infrared: Whether the depth camera's picture is given too.
        is_grayscale: Grey pictures instead of colours.
        depth_in_mm: Depth in whole millimetres instead of metres.
        optical_frame: Frame id of the pictures; empty: after the sensor's frame.
        topics: (output, topic) where the description names one; see ``camera_topics``.
    """

    color: CameraModel | None = None
    depth: CameraModel | None = None
    near: float = 0.1
    far: float = 100.0
    depth_near: float = 0.1
    depth_far: float = 10.0
    T_color_depth: SE3 = SE3.identity()
    baseline: float = 0.0
    noise: Noise = Noise()
    exposure: Exposure = Exposure()
    depth_noise: DepthNoise = DepthNoise()
    infrared: bool = False
    is_grayscale: bool = False
    depth_in_mm: bool = False
    optical_frame: str = ""
    topics: tuple[tuple[str, str], ...] = ()

    @property
    def has_separate_depth_lens(self) -> bool:
        """Whether colour and depth are seen from different places or through different lenses."""
        if self.color is None or self.depth is None:
            return False
        return self.color != self.depth or not self.T_color_depth.almost_equal(SE3.identity(), 1e-9)


def camera_topics(sensor: Sensor, spec: CameraSpec) -> dict[str, str]:
    """Topic of each output of a camera, relative to its robot; without those that it does not have.

    The outputs: image, info, depth, depth_info, registered (depth as the colour camera would see it), infrared,
    infrared_info, points, depth_points (as the depth camera sees them, without colours), right, right_info,
    disparity.  A topic whose last part says "image" is the picture's own.
    """
    base, named_topics = sensor.topic or sensor.name, dict(spec.topics)
    parent, _, last = base.rpartition("/")
    is_image_topic = "image" in last and sensor.kind in ("camera", "depth_camera")
    if is_image_topic:
        base = parent

    def subtopic(name: str) -> str:
        return f"{base}/{name}" if base else name

    topics: dict[str, str] = {}
    if sensor.kind == "stereo_camera":
        topics = {"image": subtopic("left/image"), "info": subtopic("left/camera_info"),
                  "right": subtopic("right/image"), "right_info": subtopic("right/camera_info"),
                  "disparity": subtopic("disparity"), "depth": subtopic("depth/image"),
                  "points": subtopic("points")}  # fmt: skip
    elif spec.color is not None:
        topics = {"image": sensor.topic if is_image_topic else subtopic("image"), "info": subtopic("camera_info")}
    if spec.depth is not None and sensor.kind in ("depth_camera", "rgbd_camera"):
        is_depth_only = is_image_topic and spec.color is None
        topics["depth"] = sensor.topic if is_depth_only else subtopic("depth/image")
        topics["depth_info"] = subtopic("camera_info" if is_depth_only else "depth/camera_info")
        if spec.color is not None:
            topics["registered"] = subtopic("depth_registered/image")
        topics["points"] = subtopic("points")
        if spec.has_separate_depth_lens:
            topics["depth_points"] = subtopic("depth/points")
    if spec.depth is not None and spec.infrared:
        topics["infrared"], topics["infrared_info"] = subtopic("ir/image"), subtopic("ir/camera_info")
    return {output: named_topics.get(output, topic) for output, topic in topics.items()}


@dataclass(frozen=True, slots=True)
class CameraFrames:
    """Frame ids of a camera's pictures, without the robot's prefix."""

    color: str
    depth: str
    right: str


def camera_frames(sensor: Sensor, spec: CameraSpec) -> CameraFrames:
    """Names of the optical frames: as the description says, else ``camera_optical_frame`` for ``camera_link``."""
    base_name = spec.optical_frame or sensor.frame
    for suffix in ("_optical_frame", "_optical", "_link", "_frame"):
        base_name = base_name.removesuffix(suffix)
    optical = spec.optical_frame or f"{base_name}_optical_frame"
    used_frames = {sensor.frame}
    optical = optical if optical not in used_frames else f"{optical}_optical"
    depth = f"{base_name}_depth_optical_frame" if spec.has_separate_depth_lens else optical
    return CameraFrames(optical, depth, f"{base_name}_right_optical_frame")


def optical_poses(sensor: Sensor, spec: CameraSpec) -> list[tuple[SE3, str]]:
    """(T_link_frame, frame id) of each optical frame."""
    frames = camera_frames(sensor, spec)
    T_link_color = sensor.T_link_sensor @ T_SENSOR_OPTICAL
    poses = [(T_link_color, frames.color)]
    if spec.has_separate_depth_lens:
        poses.append((T_link_color @ spec.T_color_depth, frames.depth))
    if spec.baseline:
        poses.append((T_link_color @ SE3(translation=(spec.baseline, 0.0, 0.0)), frames.right))
    return poses
