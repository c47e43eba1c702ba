"""Skills of the gripper: grasp an object, release the held object, and recover a safe start state."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Final

from roboyard.manipulation.skills.arm_geometry import feasible_yaws
from roboyard.manipulation.skills.conveyor import conveyor_area_here, conveyor_started
from roboyard.manipulation.skills.requests import (
    SUCCESS,
    ArmMotionRequest,
    DelayRequest,
    GripperRequest,
    JointTarget,
    Point,
    SceneUpdateRequest,
    SkillResult,
    SkillResultCode,
    ToolTarget,
)
from roboyard.manipulation.skills.skill import GraspedObject, NextAction, Skill, SkillContext, phase


def offset_vertically(point: Point, height: float) -> Point:
    """Return a point with a vertical offset [m]."""
    return point[0], point[1], point[2] + height


def objects_except(objects: list[Point], point: Point, radius: float) -> list[Point]:
    """Return the objects that are not at a position."""
    return [one for one in objects if max(abs(one[0] - point[0]), abs(one[1] - point[1])) > radius]


def objects_around(context: SkillContext, point: Point) -> list[Point]:
    """Return all objects around the arm that are not at a position."""
    return objects_except(context.memory.all_objects(), point, context.config.object_radius)


@dataclass
class VerticalApproachSkill(Skill):
    """Base of skills that descend vertically and always ascend again.

    Attributes:
        joints_above: Joint positions before the descent.
        final_result: Result of the skill, once the arm is above again.
    """

    joints_above: tuple[float, ...] = field(default=(), kw_only=True)
    final_result: SkillResult = field(default=SUCCESS, kw_only=True)

    def _return_unless_above(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        """End if the straight ascent succeeded, else return to the joint positions before the descent.

        An arm that a contact has displaced may find no straight path: with less than six joints, the tool cannot be
        rotated
        back to the vertical on it.
        """
        if result.is_success or not self.joints_above:
            return self._return_above(context, result)
        return_motion = ArmMotionRequest(
            (JointTarget(self.joints_above),),
            is_holding=context.memory.grasped_object is not None,
            speed_scaling=_RETURN_SPEED_SCALING,
        )
        return self.enter_phase("return_above", return_motion)

    @phase
    def _return_above(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        context.memory.is_tool_low = not result.is_success
        return self.final_result


@dataclass
class GraspSkill(VerticalApproachSkill):
    """Vertical grasp: descend, close the gripper, check for an object, lift.

    Without an object between the fingers, the gripper opens and the arm retreats.  An object that is too heavy is put
    down at the same place.

    Attributes:
        disc_position: Disc on the object.
        bay: Bay of the object, from 1 on; 0: a work area.
        previous_yaw: Yaw at which the object was released; the fingers prefer to close across it. None: the nearest
            yaw.
        candidate_yaws: Yaws that are still to be tried.
        efforts_above: Joint efforts before the descent.
    """

    name = "grasp"
    disc_position: Point
    bay: int = 0
    previous_yaw: float | None = None
    candidate_yaws: tuple[float, ...] = ()
    efforts_above: tuple[float, ...] = ()

    def subject(self) -> SkillResult:
        """What it deals with."""
        return SkillResult(position=self.disc_position, bay=self.bay)

    @phase
    def _start(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        config, neighbors = context.config, objects_around(context, self.disc_position)
        self.candidate_yaws = tuple(
            feasible_yaws(self.disc_position, context.arm.azimuth(self.disc_position), neighbors, config)
        )
        if not self.candidate_yaws:
            return SkillResult(SkillResultCode.TOO_CLOSE, "the fingers have no clearance beside other objects")
        if (previous_yaw := self.previous_yaw) is not None:
            self.candidate_yaws = tuple(sorted(self.candidate_yaws, key=lambda yaw: abs(math.cos(yaw - previous_yaw))))
        return self.enter_phase("update_scene", SceneUpdateRequest(tuple(neighbors)))

    @phase
    def _update_scene(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase("open_gripper", GripperRequest(context.config.open_width))

    @phase(on_failure="return")
    def _open_gripper(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        approaches = vertical_approaches(
            context,
            offset_vertically(self.disc_position, -context.config.grasp_depth),
            context.config.approach_height,
            self.candidate_yaws,
        )
        if not approaches:
            return SkillResult(
                SkillResultCode.NOT_REACHABLE, "no joint configuration allows a straight vertical approach"
            )
        return self.enter_phase("move_above", ArmMotionRequest(approaches, speed_scaling=context.config.speed_scaling))

    @phase(on_failure="return")
    def _move_above(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        self.candidate_yaws = (context.arm.tool_yaw(context.joints) if context.joints else self.candidate_yaws[0],)
        conveyor_area = "" if self.bay else conveyor_area_here(context)
        if (failure := conveyor_started(context, conveyor_area)) is not None:
            return failure
        self.efforts_above, self.joints_above, context.memory.is_tool_low = context.efforts, context.joints, True
        descent = self._straight_motion(context, -context.config.grasp_depth, is_holding=False)
        return self.enter_phase(
            "descend",
            replace(
                descent,
                is_guarded=True,
                conveyor_area=conveyor_area,
                speed_scaling=context.config.guarded_speed_scaling,
            ),
        )

    @phase
    def _descend(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        if not result.is_success:
            return self._retreat_with(context, result)
        context.memory.grasped_object = GraspedObject(
            self.disc_position, self.bay
        )  # unless the fingers measure no object
        return self.enter_phase("close_gripper", GripperRequest(context.config.closed_width, context.config.grip_force))

    @phase
    def _close_gripper(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        if not result.is_success or not context.is_holding:
            return self._let_go(
                context,
                SkillResult(SkillResultCode.GRASP_FAILED, result.message or "the fingers closed without an object"),
            )
        return self.enter_phase(
            "attach_object",
            SceneUpdateRequest(
                tuple(objects_around(context, self.disc_position)), grasped_object_extent(context, is_standing=True)
            ),
        )

    @phase
    def _attach_object(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase(
            "lift",
            self._straight_motion(
                context, context.config.approach_height - context.config.grasp_depth, is_holding=True
            ),
        )

    @phase
    def _lift(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        if result.is_success and self.efforts_above and context.efforts:
            mass = context.arm.estimate_mass(context.joints, self.efforts_above, context.efforts)
            if mass > context.config.max_payload:
                result = SkillResult(SkillResultCode.TOO_HEAVY, f"the estimated mass of the object is {mass:.1f} kg")
        if result.is_success:
            context.memory.objects = objects_except(
                context.memory.objects, self.disc_position, context.config.object_radius
            )
            context.memory.is_tool_low = False
            return self.enter_phase(
                "finish_lift",
                SceneUpdateRequest(tuple(objects_around(context, self.disc_position)), grasped_object_extent(context)),
            )
        self.final_result = result
        descent = self._straight_motion(
            context,
            context.config.release_height - context.config.grasp_depth,
            is_holding=result.code is not SkillResultCode.LOST,
        )
        return self.enter_phase("lower_object", replace(descent, is_guarded=result.code is SkillResultCode.LOST))

    @phase
    def _finish_lift(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return SUCCESS

    @phase
    def _lower_object(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        """The object stands again: it was not lifted higher than this.

        An object that is reported lost may still be between the fingers; if it is below them, they stop there.
        """
        if result.is_success or self.final_result.code is SkillResultCode.LOST:
            return self._let_go(context, self.final_result)
        return self.enter_phase("settle", DelayRequest(_JOINT_SETTLE_TIME))

    @phase
    def _settle(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        descent = self._straight_motion(
            context, context.config.release_height - context.config.grasp_depth, is_holding=True
        )
        return self.enter_phase("lower_object_again", descent)

    @phase
    def _lower_object_again(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return self._let_go(context, self.final_result)

    def _let_go(self, context: SkillContext, result: SkillResult) -> NextAction:
        """Open the gripper, with or without an object."""
        self.final_result, context.memory.grasped_object = result, None
        if result.code is SkillResultCode.TOO_HEAVY:  # it may have swung sideways
            current_position = (
                offset_vertically(context.arm.tool_position(context.joints), context.config.grasp_depth)
                if context.joints
                else self.disc_position
            )
            context.memory.ignored_objects += [self.disc_position, current_position]
        return self.enter_phase("detach_object", SceneUpdateRequest(tuple(objects_around(context, self.disc_position))))

    @phase
    def _detach_object(self, context: SkillContext, result: SkillResult) -> NextAction:
        return self.enter_phase("reopen_gripper", GripperRequest(context.config.open_width))

    @phase(on_failure="return")
    def _reopen_gripper(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return self._retreat_with(context, self.final_result)

    def _retreat_with(self, context: SkillContext, result: SkillResult) -> NextAction:
        self.final_result = result
        return self.enter_phase(
            "retreat",
            self._straight_motion(
                context, context.config.approach_height - context.config.grasp_depth, is_holding=False
            ),
        )

    @phase
    def _retreat(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return self._return_unless_above(context, result)

    def _straight_motion(self, context: SkillContext, height: float, *, is_holding: bool) -> ArmMotionRequest:
        target = ToolTarget(offset_vertically(self.disc_position, height), self.candidate_yaws[0])
        return ArmMotionRequest(
            (target,), is_holding=is_holding, is_straight=True, speed_scaling=context.config.linear_speed_scaling
        )


def grasped_object_extent(context: SkillContext, *, is_standing: bool = False) -> tuple[float, float]:
    """Return the extent of the held object above and below the tool's tip [m]; a little less below if it stands."""
    return context.config.grasp_depth, context.config.object_height - context.config.grasp_depth - (
        _STANDING_TOLERANCE if is_standing else 0.0
    )


def vertical_approaches(
    context: SkillContext, end_point: Point, height: float, yaws: tuple[float, ...]
) -> tuple[JointTarget, ...]:
    """Return joint positions above a point from which the tool can move straight down, in the order of the yaws."""
    return tuple(JointTarget(q) for q in context.arm.solve_vertical_path(end_point, height, yaws, context.joints))


_JOINT_SETTLE_TIME: Final = 1.0
"""Time in which joints that could not follow return to rest [s]."""
_RETURN_SPEED_SCALING: Final = 0.3
"""Velocity scaling of the return after a contact."""
_STANDING_TOLERANCE: Final = 0.012
"""Length of the lower end that is not checked for collisions, because the object stands on something [m]."""


@dataclass
class ReleaseSkill(VerticalApproachSkill):
    """Vertical release of the held object: descend, open the gripper, ascend.

    Until the gripper opens, the object stays grasped, whatever happens.  Both fingers may have shifted with it: the
    offset is measured by their joints and compensated.

    Attributes:
        floor_position: Position of the object's lower end.
        bay: Bay of this position, from 1 on; 0: a work area.
        candidate_yaws: Yaws that are still to be tried.
        speed_scaling: Velocity scaling of the motions.
        object_offset: Offset of the object from the tool's center, in x and y [m].
    """

    name = "release"
    floor_position: Point
    bay: int = 0
    candidate_yaws: tuple[float, ...] = ()
    speed_scaling: float = 1.0
    object_offset: tuple[float, float] = (0.0, 0.0)

    def subject(self) -> SkillResult:
        """What it deals with."""
        return SkillResult(position=self.floor_position, bay=self.bay)

    @phase
    def _start(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        if context.memory.grasped_object is None:
            return SkillResult(SkillResultCode.GRIPPER_EMPTY, "the gripper holds no object")
        neighbors = objects_around(context, self.floor_position)
        self.candidate_yaws = tuple(
            feasible_yaws(self.floor_position, context.arm.azimuth(self.floor_position), neighbors, context.config)
        )
        if not self.candidate_yaws:
            return SkillResult(SkillResultCode.TOO_CLOSE, "the fingers have no clearance beside other objects")
        return self.enter_phase("update_scene", SceneUpdateRequest(tuple(neighbors), grasped_object_extent(context)))

    @phase
    def _update_scene(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        approaches = vertical_approaches(
            context, self._tool_position(context, 0.0), context.config.approach_height, self.candidate_yaws
        )
        if not approaches:
            return SkillResult(
                SkillResultCode.NOT_REACHABLE, "no joint configuration allows a straight vertical approach"
            )
        return self.enter_phase(
            "move_above", ArmMotionRequest(approaches, is_holding=True, speed_scaling=context.config.speed_scaling)
        )

    @phase
    def _move_above(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        if not result.is_success:
            return _clear_if_lost(context, result)
        yaw = context.arm.tool_yaw(context.joints) if context.joints else self.candidate_yaws[0]
        self.candidate_yaws, self.joints_above = (yaw,), context.joints
        self.object_offset = context.grasp_offset * math.sin(yaw), -context.grasp_offset * math.cos(yaw)
        return self.enter_phase(
            "prepare_descent",
            SceneUpdateRequest(
                tuple(objects_around(context, self.floor_position)), grasped_object_extent(context, is_standing=True)
            ),
        )

    @phase
    def _prepare_descent(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        conveyor_area = "" if self.bay else conveyor_area_here(context)
        if (failure := conveyor_started(context, conveyor_area)) is not None:
            return failure
        context.memory.is_tool_low = True
        descent = self._straight_motion(context, context.config.release_height, is_holding=True)
        return self.enter_phase("descend", replace(descent, is_guarded=True, conveyor_area=conveyor_area))

    @phase
    def _descend(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        if not result.is_success:
            self.final_result = _clear_if_lost(context, result)
            return self.enter_phase(
                "back_off",
                self._straight_motion(
                    context, context.config.approach_height, is_holding=context.memory.grasped_object is not None
                ),
            )
        memory = context.memory
        memory.grasped_object = None
        if self.bay:
            memory.bay_yaws[self.bay - 1] = self.candidate_yaws[0]
        else:
            others = objects_except(memory.objects, self.floor_position, context.config.object_radius)
            memory.objects = [*others, offset_vertically(self.floor_position, context.config.object_height)]
        return self.enter_phase("open_gripper", GripperRequest(context.config.open_width))

    @phase(on_failure="return")
    def _open_gripper(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase(
            "detach_object", SceneUpdateRequest(tuple(objects_around(context, self.floor_position)))
        )

    @phase
    def _detach_object(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase(
            "retreat", self._straight_motion(context, context.config.approach_height, is_holding=False)
        )

    @phase
    def _retreat(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        context.memory.is_tool_low = not result.is_success
        return SUCCESS  # the object stands there, whatever the arm's state

    @phase
    def _back_off(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return self._return_unless_above(context, result)

    def _tool_position(self, context: SkillContext, height: float) -> Point:
        """Return the tool position with the object's lower end at a height above the floor position."""
        x, y, z = offset_vertically(
            self.floor_position, context.config.object_height - context.config.grasp_depth + height
        )
        return x - self.object_offset[0], y - self.object_offset[1], z

    def _straight_motion(self, context: SkillContext, height: float, *, is_holding: bool) -> ArmMotionRequest:
        target = ToolTarget(self._tool_position(context, height), self.candidate_yaws[0])
        return ArmMotionRequest(
            (target,), is_holding=is_holding, is_straight=True, speed_scaling=context.config.linear_speed_scaling
        )


def _clear_if_lost(context: SkillContext, result: SkillResult) -> SkillResult:
    """Return a result; a lost object is removed from the memory."""
    if result.code is SkillResultCode.LOST:
        context.memory.grasped_object = None
    return result


@dataclass
class RecoverStartSkill(Skill):
    """Bring the arm to a valid start state: the tool above the objects, the gripper empty or with a known object."""

    name = "recover_start"

    @phase
    def _start(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        memory = context.memory
        if memory.grasped_object is not None and not context.is_holding:
            context.report_recovery(SkillResultCode.LOST, "the held object is lost", memory.grasped_object.origin)
            memory.grasped_object = None
        if not memory.is_tool_low or not context.joints:
            return self._ascend(context, SUCCESS)
        if memory.grasped_object is not None:
            return self.enter_phase("ascend", self._ascent(context))
        return self.enter_phase("detach_object", SceneUpdateRequest())

    @phase
    def _detach_object(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        """The fingers may enclose an object: they open before the arm ascends."""
        return self.enter_phase("open_gripper", GripperRequest(context.config.open_width))

    @phase(on_failure="return")
    def _open_gripper(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase("ascend", self._ascent(context))

    @phase
    def _ascend(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        memory = context.memory
        memory.is_tool_low = False  # or there is no better recovery
        grasped_extent = grasped_object_extent(context) if memory.grasped_object is not None else None
        return self.enter_phase("update_scene", SceneUpdateRequest(tuple(memory.all_objects()), grasped_extent))

    @phase
    def _update_scene(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return SUCCESS

    def _ascent(self, context: SkillContext) -> ArmMotionRequest:
        target = ToolTarget(
            offset_vertically(context.arm.tool_position(context.joints), context.config.approach_height),
            context.arm.tool_yaw(context.joints),
        )
        return ArmMotionRequest(
            (target,),
            is_holding=context.memory.grasped_object is not None,
            is_straight=True,
            speed_scaling=context.config.linear_speed_scaling,
        )
