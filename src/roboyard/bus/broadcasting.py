"""A node's transforms on /tf, and on the latched /tf_static, which always holds all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from roboyard.geometry import SE2, SE3

if TYPE_CHECKING:
    from roboyard.bus.node import Node
    from roboyard.bus.topics import Publisher


class TransformBroadcaster:
    """Publishes a node's transforms; the publishers are made at first use."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._static_transforms: dict[str, tuple[SE3, str]] = {}
        self._dynamic_publisher: Publisher | None = None
        self._static_publisher: Publisher | None = None

    def send(self, transforms: Sequence[tuple[SE2 | SE3, str, str]], time_ns: int, *, static: bool) -> None:
        """Publish (T_parent_child, parent, child) of one moment in one message."""
        from roboyard.messages import message_type
        from roboyard.messages.convert import transforms_to_msg

        se3_transforms = [
            (pose.to_se3() if isinstance(pose, SE2) else pose, parent, child) for pose, parent, child in transforms
        ]
        tf_type = message_type("tf2_msgs/msg/TFMessage")
        if static:
            self._static_transforms.update({child: (pose, parent) for pose, parent, child in se3_transforms})
            if self._static_publisher is None:
                self._static_publisher = self._node.publisher("/tf_static", tf_type, latched=True)
            all_static = [(pose, parent, child) for child, (pose, parent) in self._static_transforms.items()]
            self._static_publisher.publish(transforms_to_msg(all_static, time_ns))
            return
        if self._dynamic_publisher is None:
            self._dynamic_publisher = self._node.publisher("/tf", tf_type)
        self._dynamic_publisher.publish(transforms_to_msg(se3_transforms, time_ns))
