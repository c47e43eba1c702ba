"""A node's transforms on /tf, and on the latched /tf_static, which always holds all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from roboyard.geometry import SE2, SE3

if TYPE_CHECKING:
    from roboyard.bus.node import Node
    from roboyard.bus.topics import Publisher


class Broadcaster:
    """Publishes a node's transforms; the publishers are made at first use."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._fixed: dict[str, tuple[SE3, str]] = {}
        self._moving_publisher: Publisher | None = None
        self._fixed_publisher: Publisher | None = None

    def send(self, told: Sequence[tuple[SE2 | SE3, str, str]], time_ns: int, *, static: bool) -> None:
        """Publish (T_parent_child, parent, child) of one moment in one message."""
        from roboyard.messages import message_type
        from roboyard.messages.convert import tf_message

        transforms = [(pose.to_se3() if isinstance(pose, SE2) else pose, parent, child) for pose, parent, child in told]
        kind = message_type("tf2_msgs/msg/TFMessage")
        if static:
            self._fixed.update({child: (pose, parent) for pose, parent, child in transforms})
            if self._fixed_publisher is None:
                self._fixed_publisher = self._node.publisher("/tf_static", kind, latched=True)
            everything = [(pose, parent, child) for child, (pose, parent) in self._fixed.items()]
            self._fixed_publisher.publish(tf_message(everything, time_ns))
            return
        if self._moving_publisher is None:
            self._moving_publisher = self._node.publisher("/tf", kind)
        self._moving_publisher.publish(tf_message(transforms, time_ns))
