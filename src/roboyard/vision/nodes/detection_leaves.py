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
        "polarity": input_port(str, "", "`white` or `black`; empty: the parameter of the node."),
        "mode": input_port(str, "", "`single` or `pair`; empty: the parameter of the node."),
        "frame": input_port(str, "", "Frame of the positions; empty: that of the camera."),
        "num_images": input_port(UINT8, 0, "Number of images; 0: the parameter of the node."),
        "timeout": input_port(float, 0.0, "Time after which the detection fails [s]; 0: the parameter of the node."),
        "positions": output_port(
            list, doc="Positions (x, y, z) of the discs [m], the nearest to the origin of the frame first."
        ),
        "count": output_port(int, doc="Number of discs."),
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
        "object_id": input_port(
            str, doc="Name or number that the detector gives the object; `part_*` matches any that begins so."
        ),
        "topic": input_port(str, "fiducials", "Topic of the detections (vision_msgs/Detection3DArray)."),
        "depth_offset": input_port(float, 0.0, "Horizontal distance of the center behind the detected marker [m]."),
        "num_detections": input_port(int, 3, "Number of detections, whose median is the result."),
        "search_position": input_port(
            list[float], doc="Position `x;y;z` near which the object is searched [m].", optional=True
        ),
        "search_radius": input_port(float, 0.1, "Radius of the search about `search_position` [m]."),
        "frame": input_port(str, "base_link", "Frame of the position."),
        "timeout": input_port(float, 5.0, "Time after which the leaf fails [s]."),
        "position": output_port(list[float], doc="Center `x;y;z` of the object [m]."),
        "yaw": output_port(float, doc="Direction of the x axis of the object about z [rad]."),
        "object": output_port(str, doc="Name of the object."),
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
