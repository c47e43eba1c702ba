"""Disc detector node: detections per image, and an action that returns the consensus of several images."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from roboyard.bus import Node, TransformError
from roboyard.bus.actions import GoalHandle
from roboyard.compute import expect_kernels
from roboyard.config import Config, parameter
from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.messages import action, msg
from roboyard.messages.convert import image_to_msg, jpeg_to_msg, make_header
from roboyard.messages.convert.detections import make_detection, make_detection_array
from roboyard.vision.calibration.hand_eye import load_camera_mount
from roboyard.vision.discs.annotation import draw_discs, draw_predicted_paths
from roboyard.vision.discs.disc_detector import DiscConfig, detect_discs, validate_candidates
from roboyard.vision.discs.disc_pose import DiscPair, LocatedDisc, find_disc_pairs, locate_discs
from roboyard.vision.discs.disc_tracking import ConsensusDetection, DiscTrack, find_consensus, track_discs
from roboyard.vision.discs.ellipse import fit_ellipse
from roboyard.vision.discs.radial_symmetry import vote_radial_symmetry
from roboyard.vision.nodes.camera_subscriber import CameraImage, CameraSubscriber, CameraTopics

_PREDICTION_TIME = 4
"""Time for which the paths of moving discs are predicted and drawn [s]."""
_OPTIONS_OF_GOALS = {
    "polarity": "polarity",
    "mode": "mode",
    "diameter": "diameter",
    "diameter_tolerance": "diameter_tolerance",
    "distance": "pair_distance",
    "distance_tolerance": "pair_distance_tolerance",
    "sensitivity": "sensitivity",
    "radius_min": "radius_min",
    "radius_max": "radius_max",
}
"""Field of the action's goal, and the option of `DiscConfig` that it overrides unless it is empty or 0."""


@dataclass(frozen=True, eq=False)
class DiscDetections:
    """Discs, and pairs of discs, of one image."""

    discs: list[LocatedDisc]
    pairs: list[DiscPair]


@dataclass(eq=False)
class DetectionRequest:
    """A goal of the action in progress.

    Attributes:
        handle: Handle of the goal.
        config: Properties of the discs.
        num_images: Number of images of the request.
        min_agreeing: Number of these images that must agree.
        frame_id: Frame of the result; empty: the camera's.
        start_ns: Start time.
        deadline_ns: Time at which it times out.
        detections: Detections (n, 9) of each image: position, normal, diameter, distance, whether depth was measured.
        times_ns: Times of these images.
        n_without_depth: Number of images without any valid depth.
        error: Cause and text if the newest image could not be used.
        last_image: The last image and its detections.
        T_frame_camera: Pose of the camera at that image.
    """

    handle: GoalHandle
    config: DiscConfig
    num_images: int
    min_agreeing: int
    frame_id: str
    start_ns: int
    deadline_ns: int
    detections: list[np.ndarray]
    n_without_depth: int = 0
    error: tuple[str, str] = ("", "")
    last_image: tuple[CameraImage, DiscDetections] | None = None
    T_frame_camera: SE3 = field(default_factory=SE3.identity)
    times_ns: list[int] = field(default_factory=list)


class DiscDetectorNodeConfig(Config):
    """Configuration of `DiscDetectorNode`."""

    image_topic: str = parameter("image", doc="Topic of the images.")
    info_topic: str = parameter("camera_info", high=math.inf, doc="Topic of their camera_info.")
    depth_topic: str = parameter("depth_registered/image", doc="Topic of the depth images; empty: none.")
    depth_info_topic: str = parameter("", doc="Topic of the depth camera's camera_info, if depth is not registered.")
    rate: float = parameter(
        2.0, unit="Hz", low=0.01, high=100.0, runtime=True, doc="Rate of the images processed for the topics."
    )
    camera_mount_file: str = parameter(
        "", doc="File that `roboyard calibrate hand-eye` wrote; empty: the description's pose."
    )
    camera_mount_frame: str = parameter("", doc="Frame of the flange or base to which the file's pose refers.")
    disc: DiscConfig = parameter(factory=DiscConfig, doc="Discs to be detected.")
    num_images: int = parameter(5, low=1, high=100, runtime=True, doc="Number of images of a detection request.")
    min_agreeing: int = parameter(
        3, low=1, high=100, runtime=True, doc="Smallest number of images that agree on a position."
    )
    association_distance: float = parameter(
        0.01, unit="m", low=1e-4, high=1.0, runtime=True, doc="Largest distance between detections of the same disc."
    )
    outlier_distance: float = parameter(
        0.001, unit="m", low=1e-5, high=1.0, runtime=True, doc="Largest distance of a detection from the median."
    )
    timeout: float = parameter(5.0, unit="s", low=0.05, high=1000.0, runtime=True, doc="Longest duration of a request.")


class DiscDetectorNode(Node[DiscDetectorNodeConfig]):
    """Detects marked discs.

    in: image (sensor_msgs/Image), camera_info, depth_registered/image; or unregistered depth, with
        depth_info_topic and /tf between the two; names by parameters
    out: discs (vision_msgs/Detection3DArray, in the camera's optical frame), discs/image (annotated image),
        with subscribers, at most ``rate`` times per second; discs/image/compressed: the last image of each request
    action: look (roboyard_msgs/LookForDiscs): positions of discs or pairs in several images, in a given frame

    It subscribes to the camera while it has a request or a subscriber.

    Causes for which a request ends without positions: view_empty, disagreement, camera_silent, camera_info_silent,
    depth_silent, depth_info_silent, depth_unknown, wrong_encoding, no_transform, too_slow, canceled.
    """

    state_fields = ("_last_detection_ns",)

    def setup(self) -> None:
        """Advertise the topics and the action."""
        self._last_detection_ns = -(10**18)
        self._request: DetectionRequest | None = None
        if bool(self.config.camera_mount_file) != bool(self.config.camera_mount_frame):
            raise ConfigError(
                "one of camera_mount_file and camera_mount_frame", location=self.full_name, valid="both or none"
            )
        self._T_mount_camera = (
            load_camera_mount(self.config.camera_mount_file) if self.config.camera_mount_file else None
        )
        self._detection_publisher = self.publisher("discs", msg.vision_msgs.Detection3DArray)
        self._annotation_publisher = self.publisher("discs/image", msg.Image)
        self._result_image_publisher = self.publisher("discs/image/compressed", msg.CompressedImage)
        topics = CameraTopics(
            self.config.image_topic, self.config.info_topic, self.config.depth_topic, self.config.depth_info_topic
        )
        self._camera = CameraSubscriber(self, topics, self._on_image)
        self.action_server("look", action.LookForDiscs, self._on_goal, on_goal_restored=self._start_request)
        self.timer(0.05, self._monitor_camera)
        expect_kernels(vote_radial_symmetry, validate_candidates, fit_ellipse)
        self.report_health("ok", "waits for images")

    # -- images --------------------------------------------------------------------------------------------------------
    def _on_image(self, image: CameraImage) -> None:
        request = self._request
        is_due = image.time_ns - self._last_detection_ns >= round(0.9e9 / self.config.rate)
        if request is not None and image.time_ns >= request.start_ns:
            detections = detect(image, request.config)
            request.last_image = (image, detections)
            self._add_detections(request, image, detections)
        elif is_due and self._has_subscribers():
            detections = detect(image, self.config.disc)
        else:
            return
        self._last_detection_ns = image.time_ns
        self._publish_detections(image, detections, request.config if request is not None else self.config.disc)

    def _has_subscribers(self) -> bool:
        return bool(self._detection_publisher.topic.subscriptions or self._annotation_publisher.topic.subscriptions)

    def _publish_detections(self, image: CameraImage, detections: DiscDetections, config: DiscConfig) -> None:
        if self._detection_publisher.topic.subscriptions:
            make = partial(make_detection, image.frame_id, image.time_ns)
            messages = [
                make(
                    pose_from_normal(one.position, one.normal),
                    (one.diameter, one.diameter, 0.0),
                    f"{config.polarity}_disc",
                    max(0.0, 1.0 - 0.5 * one.disc.rejection_score),
                )
                for one in detections.discs
            ]
            self._detection_publisher.publish(make_detection_array(image.frame_id, image.time_ns, messages))
        if self._annotation_publisher.topic.subscriptions:
            annotated = draw_discs(image.image, detections.discs, detections.pairs)
            self._annotation_publisher.publish(image_to_msg(annotated, image.frame_id, image.time_ns))
        self.report_health("ok", f"{len(detections.discs)} discs detected", pairs=len(detections.pairs))

    # -- detection requests --------------------------------------------------------------------------------------------
    def _on_goal(self, handle: GoalHandle) -> None:
        try:
            self._request_config(handle.goal)
        except InputError as error:
            handle.reject(str(error), "bad_option")
            return
        handle.accept()
        self._start_request(handle)

    def _start_request(self, handle: GoalHandle) -> None:
        goal = handle.goal
        num_images = int(goal.num_images) or self.config.num_images
        min_agreeing = min(int(goal.min_agreeing) or self.config.min_agreeing, num_images)
        deadline_ns = self.now_ns + round(1e9 * (float(goal.timeout) or self.config.timeout))
        self._request = DetectionRequest(
            handle,
            self._request_config(goal),
            num_images,
            min_agreeing,
            str(goal.frame_id),
            self.now_ns,
            deadline_ns,
            [],
        )
        handle.on_cancel = lambda _: self._finish_request("canceled", "a client canceled the request")
        self._camera.set_enabled()

    def _request_config(self, goal: Any) -> DiscConfig:
        overrides: dict[str, Any] = {
            option: getattr(goal, name) for name, option in _OPTIONS_OF_GOALS.items() if getattr(goal, name)
        }
        if not 0.0 <= float(goal.timeout) <= 1000.0:
            raise InputError(f"timeout {goal.timeout:g} s", location=f"node {self.full_name}", valid="0 to 1000 s")
        return replace(self.config.disc, **overrides)

    def _add_detections(self, request: DetectionRequest, image: CameraImage, detections: DiscDetections) -> None:
        T = SE3.identity()
        if request.frame_id and request.frame_id != image.frame_id:
            try:
                T = self._camera_pose(request.frame_id, image)
            except TransformError as error:
                request.error = ("no_transform", str(error))
                return
        request.error = ("", "")
        request.n_without_depth += (
            image.depth is not None and not (np.isfinite(image.depth) & (image.depth > 0.0)).any()
        )
        rows = [
            [*(T @ one.position), *(T.rotation_matrix() @ first.normal), one.diameter, distance, float(first.has_depth)]
            for one, first, distance in (
                [(pair, pair.first, pair.distance) for pair in detections.pairs]
                if request.config.mode == "pair"
                else [(disc, disc, 0.0) for disc in detections.discs]
            )
        ]  # fmt: skip
        request.detections.append(np.array(rows, dtype=np.float64).reshape(-1, 9))
        request.times_ns.append(image.time_ns)
        request.T_frame_camera = T
        request.frame_id = request.frame_id or image.frame_id
        request.handle.publish_feedback(action.LookForDiscs.Feedback(num_images=len(request.detections)))
        if len(request.detections) >= request.num_images:
            self._finish_request()

    def _camera_pose(self, frame_id: str, image: CameraImage) -> SE3:
        """Pose of the camera in a frame: by its calibrated mount, otherwise by /tf. Raises TransformError."""
        if self._T_mount_camera is None:
            return self.transforms.lookup(frame_id, image.frame_id, image.time_ns)
        return (
            self.transforms.lookup(frame_id, self.frame(self.config.camera_mount_frame), image.time_ns)
            @ self._T_mount_camera
        )

    def _monitor_camera(self) -> None:
        request = self._request
        self._camera.set_enabled(request is not None or self._has_subscribers())
        if request is not None and self.now_ns >= request.deadline_ns:
            elapsed = (self.now_ns - request.start_ns) * 1e-9
            progress = f"{len(request.detections)} of {request.num_images} images in {elapsed:g} s"
            stale_topic = self._camera.find_stale_topic(request.start_ns)
            cause, text = next(
                (error for error in (self._camera.error, request.error, stale_topic) if error[0]), ("too_slow", "")
            )
            self._finish_request(cause, f"{progress}: {text}" if text else progress)
        elif self._camera.error[0]:
            self.report_health("error", self._camera.error[1], cause=self._camera.error[0])

    def _finish_request(self, cause: str = "", text: str = "") -> None:
        request, self._request = self._request, None
        if request is None or not request.handle.is_active:
            return
        result = action.LookForDiscs.Result(error_code=cause, message=text, num_images=len(request.detections))
        result.header = make_header(request.frame_id, self.now_ns)
        if not cause:
            self._fill_result(request, result)
        if request.last_image is not None:
            self._publish_annotated(request, *request.last_image, result)
        if result.error_code:
            self.report_health("warn", result.message, cause=result.error_code)
        if cause == "canceled":
            request.handle.set_canceled(result, text)
        elif cause:
            request.handle.abort(result, text, cause)
        else:
            request.handle.succeed(result)

    def _publish_annotated(
        self, request: DetectionRequest, image: CameraImage, detections: DiscDetections, result: Any
    ) -> None:
        """Publish the last image with the detections and the predicted paths."""
        annotated = draw_discs(image.image, detections.discs, detections.pairs)
        if result.velocities:
            positions = np.array([[p.x, p.y, p.z] for p in result.positions])
            velocities = np.array([[v.x, v.y, v.z] for v in result.velocities])
            predicted = positions[:, None] + np.arange(_PREDICTION_TIME + 1.0)[:, None] * velocities[:, None]
            draw_predicted_paths(
                annotated,
                image.camera_model.project(request.T_frame_camera.inverse() @ predicted.reshape(-1, 3)).reshape(
                    predicted.shape[0], -1, 2
                ),
            )
        self._result_image_publisher.publish(jpeg_to_msg(annotated, image.frame_id, image.time_ns))

    def _fill_result(self, request: DetectionRequest, result: Any) -> None:
        """Fill in the consensus positions, or the cause why there are none."""
        found: list[ConsensusDetection] | list[DiscTrack]
        if request.handle.goal.may_move:
            times = [(time_ns - request.times_ns[-1]) * 1e-9 for time_ns in request.times_ns]
            tracks = track_discs(
                request.detections,
                times,
                association_distance=self.config.association_distance,
                outlier_distance=self.config.outlier_distance,
                min_agreeing=request.min_agreeing,
            )
            tracks.sort(key=lambda one: float(np.linalg.norm(one.mean[:3])))
            result.velocities = [msg.Vector3(x=x, y=y) for x, y in (one.velocity.tolist() for one in tracks)]
            result.header = make_header(request.frame_id, request.times_ns[-1])
            found = tracks
        else:
            found = find_consensus(
                request.detections,
                association_distance=self.config.association_distance,
                outlier_distance=self.config.outlier_distance,
                min_agreeing=request.min_agreeing,
            )
            found.sort(key=lambda one: float(np.linalg.norm(one.mean[:3])))
        table = np.array([one.mean for one in found]).reshape(-1, 9)
        sizes = np.maximum(np.linalg.norm(table[:, 3:6], axis=1, keepdims=True), 1e-9)
        result.positions = [msg.Point(x=x, y=y, z=z) for x, y, z in table[:, :3].tolist()]
        result.normals = [msg.Vector3(x=x, y=y, z=z) for x, y, z in (table[:, 3:6] / sizes).tolist()]
        result.diameters, result.distances = table[:, 6].copy(), table[:, 7].copy()
        result.is_measured = table[:, 8] > 0.5
        result.num_agreeing = np.array([one.n_agreeing for one in found], dtype=np.uint32)
        if request.n_without_depth == len(request.detections):
            result.error_code, result.message = "depth_unknown", "no pixel of the depth images is valid"
        elif not found and any(len(rows) for rows in request.detections):
            result.error_code, result.message = (
                "disagreement",
                f"no position on which {request.min_agreeing} of {request.num_images} images agree",
            )
        elif not found:
            result.error_code, result.message = (
                "view_empty",
                f"no such disc was detected in {request.num_images} images",
            )


def detect(image: CameraImage, config: DiscConfig) -> DiscDetections:
    """Detect the discs of one image, and pairs if the configuration requests them."""
    located = locate_discs(detect_discs(image.image, config), image.camera_model, image.depth, config)
    return DiscDetections(located, find_disc_pairs(located, config) if config.mode == "pair" else [])


def pose_from_normal(position: Array, normal: Array) -> SE3:
    """Return a pose whose z axis is the normal; its rotation about that axis is arbitrary."""
    side = np.cross([0.0, 1.0, 0.0], normal)
    if np.linalg.norm(side) < 1e-3:
        side = np.cross([1.0, 0.0, 0.0], normal)
    side /= np.linalg.norm(side)
    return SE3.from_rotation_matrix(np.stack([side, np.cross(normal, side), normal], axis=1), position)
