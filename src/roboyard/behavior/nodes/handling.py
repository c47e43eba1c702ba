"""Leaves for arms: poses, grippers, looking, and skills that are done by themselves."""

from __future__ import annotations

from typing import Any, ClassVar

from roboyard.behavior.errors import PortError
from roboyard.behavior.nodes.sending import COMMON, SendGoal, check_fields, filled
from roboyard.behavior.ports import input_port, output_port
from roboyard.behavior.types import UINT8
from roboyard.messages import action, msg


class MoveArm(SendGoal):
    """Moves an arm to a pose that its groups name."""

    ports: ClassVar = {
        "pose": input_port(str, doc="A named pose of the group"),
        "speed": input_port(float, 1.0, "Share of the joints' speeds"),
        **COMMON,
    }
    server = "move_action"
    type = property(lambda _: action.MoveGroup)

    def goal(self) -> Any:
        """See `SendGoal.goal`."""
        goal = action.MoveGroup.Goal()
        goal.request.goal_constraints = [msg.moveit_msgs.Constraints(name=self.input("pose"))]
        goal.request.max_velocity_scaling_factor = self.input("speed")
        return goal


class Grip(SendGoal):
    """Opens or closes a gripper."""

    ports: ClassVar = {
        "position": input_port(float, doc="Of the fingers [m]"),
        "effort": input_port(float, 0.0, "At most [N]; 0: the gripper's own"),
        **COMMON,
    }
    server = "gripper/gripper_cmd"
    type = property(lambda _: action.GripperCommand)

    def goal(self) -> Any:
        """See `SendGoal.goal`."""
        goal = action.GripperCommand.Goal()
        goal.command.position = self.input("position")
        goal.command.max_effort = self.input("effort")
        return goal


class Look(SendGoal):
    """Looks for marked discs with a camera; fails where there is none."""

    ports: ClassVar = {
        "polarity": input_port(str, "", "white or black; empty: as the node is set"),
        "mode": input_port(str, "", "single or pair; empty: as the node is set"),
        "frame": input_port(str, "", "Of the positions; empty: the camera's"),
        "num_images": input_port(UINT8, 0, "Number of pictures; 0: as the node is set"),
        "timeout": input_port(float, 0.0, "After which it has failed [s]; 0: as the node is set"),
        "positions": output_port(list, doc="(x, y, z) of each [m], the nearest to the frame's origin first"),
        "count": output_port(int, doc="How many"),
        **COMMON,
    }
    server = "look"
    type = property(lambda _: action.LookForDiscs)

    def goal(self) -> Any:
        """See `SendGoal.goal`."""
        return action.LookForDiscs.Goal(
            polarity=self.input("polarity"), mode=self.input("mode"), frame_id=self.input("frame"),
            num_images=self.input("num_images"), timeout=self.input("timeout"),
        )  # fmt: skip

    def take(self, result: Any) -> None:
        """See `SendGoal.take`."""
        found = [(point.x, point.y, point.z) for point in result.positions]
        for port, value in (("positions", found), ("count", len(found))):
            if port in self.outputs:
                self.output(port, value)


_FIELD = input_port(str, "", "Which field; empty: the one that it is at")
_ERROR_CODE = output_port(str, doc="Why it failed, in one word")
_FULL = output_port(int, doc="Bays that are full, as far as they were seen")


class RunSkill(SendGoal):
    """Has an arm do something that it knows how to do: look, pick, place, stow …"""

    ports: ClassVar = {
        "skill": input_port(str, doc="Which one"),
        "wish": input_port(str, "", "Further fields of roboyard_msgs/RunSkill, as polarity: white"),
        "error_code": _ERROR_CODE,
        "full": _FULL,
        **COMMON,
    }
    type = property(lambda _: action.RunSkill)

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        super().setup()
        check_fields(self, self.type.Goal, "wish")

    def _server(self) -> str:
        return super()._server() or f"skills/{self.inputs.get('skill', '')}"

    def goal(self) -> Any:
        """See `SendGoal.goal`."""
        return filled(self, self.type.Goal, "wish")

    def take(self, result: Any) -> None:
        """See `SendGoal.take`."""
        for port, value in (("error_code", result.error_code), ("full", int(sum(state == 1 for state in result.load)))):
            if port in self.outputs:
                self.output(port, value)


class _Skill(RunSkill):
    """A skill with ports of its own in place of a wish."""

    skill: ClassVar[str] = ""

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        SendGoal.setup(self)

    def _server(self) -> str:
        return self.inputs.get("server_name", "") or f"skills/{self.skill}"

    def goal(self) -> Any:
        """See `SendGoal.goal`."""
        return action.RunSkill.Goal(field=self.input("field"))


class Pick(_Skill):
    """Has the arm grasp a thing that it looks for, and lift it."""

    ports: ClassVar = {"field": _FIELD, "error_code": _ERROR_CODE, "full": _FULL, **COMMON}
    skill = "pick"


class Place(_Skill):
    """Has the arm set down what it holds: at a position, or where it sees a place."""

    ports: ClassVar = {
        "field": _FIELD,
        "position": input_port(list[float], doc="x;y;z [m] in the frame of the robot's root", optional=True),
        "error_code": _ERROR_CODE,
        "full": _FULL,
        **COMMON,
    }
    skill = "place"

    def goal(self) -> Any:
        """See `SendGoal.goal`."""
        goal = super().goal()
        if "position" in self.inputs:
            place = self.input("position")
            if len(place) != 3:
                raise PortError(f"[position] has {len(place)} numbers", valid="x;y;z in m")
            goal.has_position, goal.position = True, msg.Point(x=place[0], y=place[1], z=place[2])
        return goal
