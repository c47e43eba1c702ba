"""The depth people tracker node: depth images of a fixed camera in, tracked people as capsules out."""

from __future__ import annotations

from collections import deque
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from roboyard.bus import TransformError, resource
from roboyard.config import parameter
from roboyard.description import Model
from roboyard.errors import ConfigError, MessageError
from roboyard.kinematics import build_chain
from roboyard.messages import msg
from roboyard.messages.convert import camera_model_from_msg, image_to_array
from roboyard.messages.time import is_in_future, to_nanoseconds
from roboyard.safety.collaborative.capsules import LinkCapsules, transform_ends
from roboyard.safety.collaborative.depth_detector import DepthDetectionConfig, DepthFrame, DepthPeopleDetector
from roboyard.safety.collaborative.people_tracker import PersonTrackingConfig
from roboyard.safety.nodes.people_tracker import TrackedPeopleNode, TrackedPeopleNodeConfig

_N_JOINT_STATES: Final = 64
"""Number of joint states that are kept, since images arrive late."""


class DepthPeopleTrackerNodeConfig(TrackedPeopleNodeConfig):
    """Configuration of `DepthPeopleTrackerNode`."""

    detection: DepthDetectionConfig = parameter(
        factory=DepthDetectionConfig, flatten="", doc="Detection of people in depth images."
    )
    tracking: PersonTrackingConfig = parameter(factory=PersonTrackingConfig, doc="Tracking of people.")

    camera: str = parameter("depth", doc="Namespace of the topics image and camera_info.")
    joints: tuple[str, ...] = parameter((), doc="Joints of the arm.")
    base_frame: str = parameter("base_link", doc="Link at the base of the arm.")
    tip: str = parameter("tool0", doc="Link at the end of the arm.")


class DepthPeopleTrackerNode(TrackedPeopleNode[DepthPeopleTrackerNodeConfig]):
    """Publishes the people in the view of a fixed depth camera.

    in: depth/image (sensor_msgs/Image, 32FC1 or 16UC1), depth/camera_info beside it, joint_states, /tf base → camera
    out: tracked_people (roboyard_msgs/TrackedPeople), at every image: each person as upright capsules around the
        measured points, stamped with the time of the image

    Everything measured during ``background_learning_time`` is background, see `PersonTrackingConfig`; points on the
    robot at the time of the image are ignored. An image without transform, without joint states at its time, or with
    too few measured pixels is ignored: subscribers then receive no message, as from a silent sensor.
    """

    description: Model = resource(Model)

    def setup(self) -> None:
        """Connect."""
        location = f"{self.full_name}, parameter"
        if not self.config.joints:
            raise ConfigError("no joints", location=f"{location} 'joints'", valid="names of the arm's")
        self.set_up_output()
        self._chain = build_chain(self.description, self.config.base_frame, self.config.tip, joints=self.config.joints)
        self._capsules = LinkCapsules.from_model(self.description, self._chain)
        self._detector = DepthPeopleDetector(self.config.detection, self.config.tracking)
        self._rays: NDArray[np.float32] | None = None
        self._joint_positions: deque[tuple[int, list[float]]] = deque(maxlen=_N_JOINT_STATES)
        self.subscribe("joint_states", msg.JointState, self._on_joints)
        self.subscribe(f"{self.config.camera}/camera_info", msg.CameraInfo, self._on_camera_info)
        self.subscribe(f"{self.config.camera}/image", msg.Image, self._on_image)

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return super().save_state() | {
            "people": self._detector.save_state(),
            "q": list(self._joint_positions),
            "rays": self._rays,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        super().load_state(state)
        self._detector.load_state(state["people"])
        self._joint_positions.extend((ns, list(q)) for ns, q in state["q"])
        self._rays = state["rays"]

    def _on_joints(self, message: Any) -> None:
        rows = [list(message.name).index(name) for name in self.config.joints if name in message.name]
        if len(rows) == len(self.config.joints) and np.isfinite(q := np.array(message.position)[rows]).all():
            time_ns = to_nanoseconds(message.header.stamp)
            if is_in_future(time_ns, self.now_ns):
                self.log.warn("ignored joint states that are stamped in the future", throttle=5.0)
                return
            self._joint_positions.append((time_ns, q.tolist()))

    def _on_camera_info(self, message: Any) -> None:
        if self._rays is None:
            try:
                self._rays = camera_model_from_msg(message).ray_slopes()
            except MessageError as error:
                self.report_health("error", f"images are ignored: {error}")

    def _on_image(self, message: Any) -> None:
        if self._rays is None:
            return
        time_ns = to_nanoseconds(message.header.stamp)
        try:
            depth = _depth_in_meters(image_to_array(message))
            if depth.shape != self._rays.shape[:2]:
                raise MessageError(f"depth of shape {depth.shape}", valid=f"{self._rays.shape[:2]}, as its camera_info")
            T_base_camera = self.transforms.lookup(self.frame(self.config.base_frame), message.header.frame_id, time_ns)
        except (MessageError, TransformError) as error:
            self.report_health("error", f"an image is ignored: {error}")
            return
        if not self._joint_positions or time_ns < self._joint_positions[0][0]:
            self.report_health("warn", "an image is ignored: no joint states at its time")
            return
        detections = self._detector.update(
            DepthFrame(time_ns * 1e-9, depth, self._rays, self._T_world_base @ T_base_camera),
            *self._robot_capsules(time_ns),
        )
        if detections is None:
            self.report_health("error", "an image is ignored: too few of its pixels were measured")
            return
        self.report_health("ok", f"{len(detections)} people")
        self.publish_people(((person.capsules, person.track) for person in detections), time_ns)

    def _robot_capsules(self, time_ns: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the robot's capsules at a time, in the world: ends (n, 2, 3) and radii (n,) [m]."""
        times, rows = (
            np.array([ns for ns, _ in self._joint_positions], dtype=np.float64),
            np.array([q for _, q in self._joint_positions]),
        )
        q = [float(np.interp(float(time_ns), times, rows[:, k])) for k in range(rows.shape[1])]
        frames = self._chain.frames(np.array(q))[self._capsules.frame_indices]
        ends = np.einsum("nij,nej->nei", frames[:, :3, :3], self._capsules.ends) + frames[:, None, :3, 3]
        return transform_ends(ends, self._T_world_base), self._capsules.radii


def _depth_in_meters(image: NDArray[Any]) -> NDArray[np.float32]:
    """Return the depth [m] of an image in meters, or in millimeters where zero is unknown. Raises MessageError."""
    if image.dtype == np.float32 and image.ndim == 2:
        return image
    if image.dtype == np.uint16 and image.ndim == 2:
        return np.where(image == 0, np.float32(np.nan), image * np.float32(1e-3))
    raise MessageError(f"a depth image of {image.dtype} {image.shape}", valid="32FC1 or 16UC1")
