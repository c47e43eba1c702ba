"""Leaves of behavior trees that detect marked discs and objects."""

from __future__ import annotations

import math
from fnmatch import fnmatchcase
from typing import Any, ClassVar

import numpy as np

from roboyard.behavior.basic_types import UINT8, NodeStatus
from roboyard.behavior.nodes.leaf_host import ACTION_PORTS, ActionLeaf
from roboyard.behavior.nodes.topic_leaves import TopicLeaf
from roboyard.behavior.ports import input_port, output_port
from roboyard.bus import TransformError
from roboyard.messages import action, msg, to_nanoseconds
from roboyard.messages.convert import pose_to_se3


class DetectDiscs(ActionLeaf):
    """Detects marked discs with a camera; fails without a detection."""

    ports: ClassVar = {
        "polarity": input_port(str, "", "white or black; empty: as the node is set"),
        "mode": input_port(str, "", "single or pair; empty: as the node is set"),
        "frame": input_port(str, "", "Of the positions; empty: the camera's"),
        "num_images": input_port(UINT8, 0, "Number of pictures; 0: as the node is set"),
        "timeout": input_port(float, 0.0, "After which it has failed [s]; 0: as the node is set"),
        "positions": output_port(list, doc="(x, y, z) of each [m], the nearest to the frame's origin first"),
        "count": output_port(int, doc="How many"),
        **ACTION_PORTS,
    }
    action_name = "look"
    action_type = property(lambda _: action.LookForDiscs)

    def make_goal(self) -> Any:
        """See `ActionLeaf.make_goal`."""
        return action.LookForDiscs.Goal(
            polarity=self.get_input("polarity"), mode=self.get_input("mode"), frame_id=self.get_input("frame"),
            num_images=self.get_input("num_images"), timeout=self.get_input("timeout"),
        )  # fmt: skip

    def on_result(self, result: Any) -> None:
        """See `ActionLeaf.on_result`."""
        found = [(point.x, point.y, point.z) for point in result.positions]
        for port, value in (("positions", found), ("count", len(found))):
            if port in self.outputs:
                self.set_output(port, value)


class FindObject(TopicLeaf):
    """Finds an object by its detections, by name or by position; fails if it is not detected in time."""

    ports: ClassVar = {
        "object_id": input_port(str, doc="The name or number that the detector gives it; part_* is any that begins so"),
        "topic": input_port(str, "fiducials", "Of vision_msgs/Detection3DArray"),
        "depth_offset": input_port(float, 0.0, "Its middle lies so far behind what is seen of it, level [m]"),
        "num_detections": input_port(int, 3, "Sightings, of which the median counts"),
        "search_position": input_port(list[float], doc="x;y;z [m]: only what lies there", optional=True),
        "search_radius": input_port(float, 0.1, "So near [m]"),
        "frame": input_port(str, "base_link", "Of the position"),
        "timeout": input_port(float, 5.0, "After which it has failed [s]"),
        "position": output_port(list[float], doc="x;y;z of its middle [m]"),
        "yaw": output_port(float, doc="Of its x axis about z [rad]"),
        "object": output_port(str, doc="Its name"),
    }
    state_fields = (*TopicLeaf.state_fields, "_poses", "_object_name")

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        super().setup()
        self._poses: list[list[float]] = []
        self._object_name = ""

    def topic_type(self) -> Any:
        """See `TopicLeaf.topic_type`."""
        return msg.vision_msgs.Detection3DArray

    def on_start(self) -> NodeStatus:
        """See `StatefulActionNode.on_start`."""
        self._poses, self._object_name = [], ""
        return super().on_start()

    def on_message(self, message: Any) -> bool:
        """See `TopicLeaf.on_message`."""
        node = self.require_host().node
        pattern, frame = self.get_input("object_id"), node.frame(self.get_input("frame"))
        for detection in message.detections:
            if not fnmatchcase(detection.id, self._object_name or pattern):
                continue
            try:
                T = node.transforms.lookup(frame, detection.header.frame_id, to_nanoseconds(detection.header.stamp))
            except TransformError as error:
                node.log.info(f"{self.path}: {error}")
                return False
            pose = T @ pose_to_se3(detection.bbox.center)
            outward = pose.rotation_matrix()[:2, 2]
            inward = -outward / max(float(np.linalg.norm(outward)), 1e-9)
            x, y, z = pose.translation.tolist()
            depth_offset = self.get_input("depth_offset")
            center = [x + depth_offset * float(inward[0]), y + depth_offset * float(inward[1]), z]
            if "search_position" in self.inputs and math.dist(
                center, self.get_input("search_position")
            ) > self.get_input("search_radius"):
                continue
            x_axis = pose.rotation_matrix()[:, 0]
            self._object_name = str(detection.id)
            self._poses.append([*center, math.atan2(float(x_axis[1]), float(x_axis[0]))])
            break
        if len(self._poses) < self.get_input("num_detections"):
            return False
        x, y, z, yaw = np.median(np.array(self._poses), axis=0).tolist()
        for port, value in (("position", [x, y, z]), ("yaw", yaw), ("object", self._object_name)):
            if port in self.outputs:
                self.set_output(port, value)
        return True

    def on_timeout(self) -> str:
        """See `TopicLeaf.on_timeout`."""
        return f"{self.get_input('object_id')} is not detected"
