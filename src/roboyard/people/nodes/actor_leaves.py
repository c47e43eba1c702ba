"""Leaves of behavior trees that have people walk and act, and that report work."""

from __future__ import annotations

from typing import Any, ClassVar

from roboyard.behavior.basic_types import SUCCESS, NodeStatus
from roboyard.behavior.errors import PortError
from roboyard.behavior.nodes.leaf_host import ACTION_PORTS, ActionLeaf, BusLeaf
from roboyard.behavior.ports import input_port
from roboyard.behavior.tree_node import SyncActionNode
from roboyard.geometry import SE2
from roboyard.messages import action, msg
from roboyard.messages.convert import make_header, pose_to_msg


class ActorMovement(ActionLeaf):
    """Has a person walk to a target."""

    ports: ClassVar = {
        "animation_name": input_port(str, "walk", "Walking clip."),
        "animation_distance": input_port(
            float, 0.0, "Distance that one period of the clip covers [m]; 0: that of the clip."
        ),
        "velocity": input_port(float, 0.0, "Walking speed [m/s]; 0: that of the clip."),
        "target": input_port(list[float], doc="Target `x;y`, or `x;y;yaw` with the final direction [m, rad]."),
        **ACTION_PORTS,
    }
    action_name = "movement"
    action_type = property(lambda _: action.ActorMovement)

    def make_goal(self) -> Any:
        """See `ActionLeaf.make_goal`."""
        target_numbers = self.get_input("target")
        if len(target_numbers) not in (2, 3):
            raise PortError(f"[target] has {len(target_numbers)} numbers", valid="x;y or x;y;yaw")
        target = pose_to_msg(
            SE2(target_numbers[0], target_numbers[1], target_numbers[2] if len(target_numbers) == 3 else 0.0)
        )
        if len(target_numbers) == 2:
            target.orientation = msg.Quaternion(x=0.0, y=0.0, z=0.0, w=0.0)
        return action.ActorMovement.Goal(
            animation_name=self.get_input("animation_name"), animation_distance=self.get_input("animation_distance"),
            velocity=self.get_input("velocity"), target=target,
        )  # fmt: skip


class ActorAnimation(ActionLeaf):
    """Has a person play an animation clip; a reaching clip can grasp an object, or release the held one."""

    ports: ClassVar = {
        "animation_name": input_port(str, doc="Name of the clip."),
        "animation_speed": input_port(float, 1.0, "Speed of the clip, as a factor."),
        "target": input_port(
            list[float], doc="Target `x;y;z` of the hand, or of the object that it holds [m].", optional=True
        ),
        "shift": input_port(
            list[float], "0;0;0", "Offset of the target in the world [m], as to grasp an object by its end."
        ),
        "hand": input_port(str, "", "`left` or `right`; empty: that of the clip."),
        "grasp_object": input_port(str, "", "Object that the hand grasps at the target."),
        "release": input_port(bool, False, "Whether the hand releases the held object at the target."),
        "hold_timeout": input_port(
            float, 0.0, "Longest time that the hand waits until others release or take the object [s]."
        ),
        **ACTION_PORTS,
    }
    action_name = "animation"
    action_type = property(lambda _: action.ActorAnimation)

    def make_goal(self) -> Any:
        """See `ActionLeaf.make_goal`."""
        goal = action.ActorAnimation.Goal(
            animation_name=self.get_input("animation_name"), animation_speed=self.get_input("animation_speed"),
            hand=self.get_input("hand"), grasp_object=self.get_input("grasp_object"),
            release=self.get_input("release"), hold_timeout=self.get_input("hold_timeout"),
        )  # fmt: skip
        if "target" in self.inputs:
            target = self.get_input("target")
            shift = self.get_input("shift")
            if len(target) != 3 or len(shift) != 3:
                raise PortError(f"[target] has {len(target)}, [shift] {len(shift)} numbers", valid="x;y;z in m")
            goal.has_target, goal.target = True, msg.Point(*(a + b for a, b in zip(target, shift, strict=True)))
        return goal


class ReportWork(BusLeaf, SyncActionNode):
    """Publishes that an actor starts or ends a piece of work, for the metrics of a run."""

    ports: ClassVar = {
        "actor": input_port(str, doc="Name of the robot or person."),
        "task": input_port(str, doc="Kind of work, as `cycle`."),
        "state": input_port(str, doc="`started`, `done` or `failed`."),
        "object": input_port(str, "", "Object of the work."),
        "goal_point": input_port(list[float], doc="Target `x;y;z` of the object in the world [m].", optional=True),
        "topic": input_port(str, "/work", "Topic of the events (roboyard_msgs/WorkEvent)."),
    }

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._publisher = None
        if self.host is not None:
            self._publisher = self.host.node.publisher(self.inputs.get("topic", "") or "/work", msg.WorkEvent)

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        node = self.require_host().node
        points = [msg.Point(*self.get_input("goal_point"))] if "goal_point" in self.inputs else []
        if self._publisher is not None:
            self._publisher.publish(
                msg.WorkEvent(
                    header=make_header("world", node.now_ns),
                    actor=self.get_input("actor"),
                    task=self.get_input("task"),
                    state=self.get_input("state"),
                    object=self.get_input("object"),
                    goal_points=points,
                )
            )
        return SUCCESS
