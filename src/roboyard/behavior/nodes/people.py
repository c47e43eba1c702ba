"""Leaves for people: walking somewhere and showing animations, what chance decides, and telling of work."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from roboyard.behavior.errors import PortError, TreeNodeError
from roboyard.behavior.kinds import Action, Control, StatefulAction
from roboyard.behavior.nodes.sending import COMMON, OnBus, SendGoal
from roboyard.behavior.ports import input_port
from roboyard.behavior.status import IDLE, RUNNING, SKIPPED, SUCCESS, Status
from roboyard.geometry import SE2
from roboyard.messages import action, msg
from roboyard.messages.convert import make_header, pose_to_msg


class ActorMovement(SendGoal):
    """Has a person walk somewhere."""

    ports: ClassVar = {
        "animation_name": input_port(str, "walk", "A clip that walks"),
        "animation_distance": input_port(float, 0.0, "That a round of it covers [m]; 0: as it does by itself"),
        "velocity": input_port(float, 0.0, "Of walking [m/s]; 0: as the clip at that distance goes"),
        "target": input_port(list[float], doc="x;y, or x;y;yaw for how they stand then [m, rad]"),
        **COMMON,
    }
    server = "movement"
    type = property(lambda _: action.ActorMovement)

    def goal(self) -> Any:
        """See `SendGoal.goal`."""
        place = self.input("target")
        if len(place) not in (2, 3):
            raise PortError(f"[target] has {len(place)} numbers", valid="x;y or x;y;yaw")
        target = pose_to_msg(SE2(place[0], place[1], place[2] if len(place) == 3 else 0.0))
        if len(place) == 2:
            target.orientation = msg.Quaternion(x=0.0, y=0.0, z=0.0, w=0.0)
        return action.ActorMovement.Goal(
            animation_name=self.input("animation_name"), animation_distance=self.input("animation_distance"),
            velocity=self.input("velocity"), target=target,
        )  # fmt: skip


class ActorAnimation(SendGoal):
    """Has a person show an animation; one that reaches can grasp an object, or release the held one."""

    ports: ClassVar = {
        "animation_name": input_port(str, doc="A clip"),
        "animation_speed": input_port(float, 1.0, "Times its own"),
        "target": input_port(list[float], doc="x;y;z [m] of the hand, or of the object that it holds", optional=True),
        "shift": input_port(
            list[float], "0;0;0", "Added to the target, in the world [m]: to grip an object by its end"
        ),
        "hand": input_port(str, "", "left or right; empty: the clip's own"),
        "grasp_object": input_port(str, "", "An object that the hand grasps there"),
        "release": input_port(bool, False, "The held object is released there"),
        "hold_timeout": input_port(
            float, 0.0, "The hand waits so long for others to release the object, or to take it [s]"
        ),
        **COMMON,
    }
    server = "animation"
    type = property(lambda _: action.ActorAnimation)

    def goal(self) -> Any:
        """See `SendGoal.goal`."""
        goal = action.ActorAnimation.Goal(
            animation_name=self.input("animation_name"), animation_speed=self.input("animation_speed"),
            hand=self.input("hand"), grasp_object=self.input("grasp_object"),
            release=self.input("release"), hold_timeout=self.input("hold_timeout"),
        )  # fmt: skip
        if "target" in self.inputs:
            target = self.input("target")
            shift = self.input("shift")
            if len(target) != 3 or len(shift) != 3:
                raise PortError(f"[target] has {len(target)}, [shift] {len(shift)} numbers", valid="x;y;z in m")
            goal.has_target, goal.target = True, msg.Point(*(a + b for a, b in zip(target, shift, strict=True)))
        return goal


class WeightedRandom(OnBus, Control):
    """Ticks one of its children, drawn by weight with the run's seed, until that is done, and answers as it does."""

    ports: ClassVar = {"weights": input_port(list[float], doc="One for each child, none below 0, as 3;1;1")}
    state_fields: ClassVar = ("_index",)

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._index = 0

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        if self.status is not RUNNING:
            self._index = self._drawn()
            self.set_status(RUNNING)
        answer = self.children[self._index].execute()
        if answer is RUNNING:
            return RUNNING
        if answer is IDLE:
            raise TreeNodeError(f"[{self.name}]: a child should not return IDLE")
        self.reset_children()
        return SKIPPED if answer is SKIPPED else answer

    def _drawn(self) -> int:
        weights = self.input("weights")
        fair = all(math.isfinite(weight) and weight >= 0.0 for weight in weights) and sum(weights) > 0.0
        if len(weights) != len(self.children) or not fair:
            raise PortError(
                f"[weights] are {weights} for {len(self.children)} children", valid="one for each, from 0 on"
            )
        left = float(self.on_desk().node.random.uniform(0.0, sum(weights)))
        for index, weight in enumerate(weights):
            left -= weight
            if left < 0.0:
                return index
        return max(index for index, weight in enumerate(weights) if weight > 0.0)


class RandomSleep(OnBus, StatefulAction):
    """Waits for a time that is drawn evenly between two, with the run's seed."""

    ports: ClassVar = {
        "low": input_port(float, doc="The least [s]"),
        "high": input_port(float, doc="The greatest [s]"),
    }
    state_fields: ClassVar = ("_until_ns",)

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._until_ns = 0

    def on_start(self) -> Status:
        """See `StatefulAction.on_start`."""
        low, high = self.input("low"), self.input("high")
        if not 0.0 <= low <= high < math.inf:
            raise PortError(f"[low] {low}, [high] {high}", valid="the lesser one first, from 0 on")
        self._until_ns = self.now_ns + round(float(self.on_desk().node.random.uniform(low, high)) * 1e9)
        return self.on_running()

    def on_running(self) -> Status:
        """See `StatefulAction.on_running`."""
        return RUNNING if self.now_ns < self._until_ns else SUCCESS


class TellWork(OnBus, Action):
    """Tells that somebody begins or ends a piece of work, so that a run can be judged by it."""

    ports: ClassVar = {
        "actor": input_port(str, doc="Who"),
        "task": input_port(str, doc="What kind of work"),
        "state": input_port(str, doc="started, done or failed"),
        "object": input_port(str, "", "That is worked on"),
        "goal_point": input_port(list[float], doc="x;y;z [m] of the object then, in the world", optional=True),
        "topic": input_port(str, "/work", "Of roboyard_msgs/WorkEvent"),
    }

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._out = None
        if self.desk is not None:
            self._out = self.desk.node.publisher(self.inputs.get("topic", "") or "/work", msg.WorkEvent)

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        node = self.on_desk().node
        points = [msg.Point(*self.input("goal_point"))] if "goal_point" in self.inputs else []
        if self._out is not None:
            self._out.publish(
                msg.WorkEvent(
                    header=make_header("world", node.now_ns), actor=self.input("actor"), task=self.input("task"),
                    state=self.input("state"), object=self.input("object"), goal_points=points,
                )
            )  # fmt: skip
        return SUCCESS
