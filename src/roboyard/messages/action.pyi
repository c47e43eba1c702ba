# Made by `python -m roboyard.messages.stubs`: do not edit.
# ruff: noqa: N801 - packages are named as in ROS

from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from roboyard.messages import msg

class FollowJointTrajectory:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Goal:
        __msgtype__: ClassVar[str]
        trajectory: msg.JointTrajectory = ...
        multi_dof_trajectory: msg.MultiDOFJointTrajectory = ...
        path_tolerance: list[msg.JointTolerance] = ...
        component_path_tolerance: list[msg.JointComponentTolerance] = ...
        goal_tolerance: list[msg.JointTolerance] = ...
        component_goal_tolerance: list[msg.JointComponentTolerance] = ...
        goal_time_tolerance: msg.Duration = ...

    @dataclass(slots=True)
    class Result:
        __msgtype__: ClassVar[str]
        SUCCESSFUL: ClassVar[int]
        INVALID_GOAL: ClassVar[int]
        INVALID_JOINTS: ClassVar[int]
        OLD_HEADER_TIMESTAMP: ClassVar[int]
        PATH_TOLERANCE_VIOLATED: ClassVar[int]
        GOAL_TOLERANCE_VIOLATED: ClassVar[int]
        error_code: int = ...
        error_string: str = ...

    @dataclass(slots=True)
    class Feedback:
        __msgtype__: ClassVar[str]
        header: msg.Header = ...
        joint_names: list[str] = ...
        desired: msg.JointTrajectoryPoint = ...
        actual: msg.JointTrajectoryPoint = ...
        error: msg.JointTrajectoryPoint = ...
        multi_dof_joint_names: list[str] = ...
        multi_dof_desired: msg.MultiDOFJointTrajectoryPoint = ...
        multi_dof_actual: msg.MultiDOFJointTrajectoryPoint = ...
        multi_dof_error: msg.MultiDOFJointTrajectoryPoint = ...

    class SendGoal:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...
            goal: FollowJointTrajectory.Goal = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            accepted: bool = ...
            stamp: msg.Time = ...

    class GetResult:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            status: int = ...
            result: FollowJointTrajectory.Result = ...

    @dataclass(slots=True)
    class FeedbackMessage:
        __msgtype__: ClassVar[str]
        goal_id: msg.UUID = ...
        feedback: FollowJointTrajectory.Feedback = ...

class GripperCommand:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Goal:
        __msgtype__: ClassVar[str]
        command: msg.GripperCommand = ...

    @dataclass(slots=True)
    class Result:
        __msgtype__: ClassVar[str]
        position: float = ...
        effort: float = ...
        stalled: bool = ...
        reached_goal: bool = ...

    @dataclass(slots=True)
    class Feedback:
        __msgtype__: ClassVar[str]
        position: float = ...
        effort: float = ...
        stalled: bool = ...
        reached_goal: bool = ...

    class SendGoal:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...
            goal: GripperCommand.Goal = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            accepted: bool = ...
            stamp: msg.Time = ...

    class GetResult:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            status: int = ...
            result: GripperCommand.Result = ...

    @dataclass(slots=True)
    class FeedbackMessage:
        __msgtype__: ClassVar[str]
        goal_id: msg.UUID = ...
        feedback: GripperCommand.Feedback = ...

class Fibonacci:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Goal:
        __msgtype__: ClassVar[str]
        order: int = ...

    @dataclass(slots=True)
    class Result:
        __msgtype__: ClassVar[str]
        sequence: NDArray[np.int32] = ...

    @dataclass(slots=True)
    class Feedback:
        __msgtype__: ClassVar[str]
        sequence: NDArray[np.int32] = ...

    class SendGoal:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...
            goal: Fibonacci.Goal = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            accepted: bool = ...
            stamp: msg.Time = ...

    class GetResult:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            status: int = ...
            result: Fibonacci.Result = ...

    @dataclass(slots=True)
    class FeedbackMessage:
        __msgtype__: ClassVar[str]
        goal_id: msg.UUID = ...
        feedback: Fibonacci.Feedback = ...

class MoveBase:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Goal:
        __msgtype__: ClassVar[str]
        target_pose: msg.PoseStamped = ...

    @dataclass(slots=True)
    class Result:
        __msgtype__: ClassVar[str]

    @dataclass(slots=True)
    class Feedback:
        __msgtype__: ClassVar[str]
        base_position: msg.PoseStamped = ...

    class SendGoal:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...
            goal: MoveBase.Goal = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            accepted: bool = ...
            stamp: msg.Time = ...

    class GetResult:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            status: int = ...
            result: MoveBase.Result = ...

    @dataclass(slots=True)
    class FeedbackMessage:
        __msgtype__: ClassVar[str]
        goal_id: msg.UUID = ...
        feedback: MoveBase.Feedback = ...

class ExecuteTrajectory:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Goal:
        __msgtype__: ClassVar[str]
        trajectory: msg.RobotTrajectory = ...
        controller_names: list[str] = ...

    @dataclass(slots=True)
    class Result:
        __msgtype__: ClassVar[str]
        error_code: msg.MoveItErrorCodes = ...

    @dataclass(slots=True)
    class Feedback:
        __msgtype__: ClassVar[str]
        state: str = ...

    class SendGoal:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...
            goal: ExecuteTrajectory.Goal = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            accepted: bool = ...
            stamp: msg.Time = ...

    class GetResult:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            status: int = ...
            result: ExecuteTrajectory.Result = ...

    @dataclass(slots=True)
    class FeedbackMessage:
        __msgtype__: ClassVar[str]
        goal_id: msg.UUID = ...
        feedback: ExecuteTrajectory.Feedback = ...

class MoveGroup:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Goal:
        __msgtype__: ClassVar[str]
        request: msg.MotionPlanRequest = ...
        planning_options: msg.PlanningOptions = ...

    @dataclass(slots=True)
    class Result:
        __msgtype__: ClassVar[str]
        error_code: msg.MoveItErrorCodes = ...
        trajectory_start: msg.RobotState = ...
        planned_trajectory: msg.RobotTrajectory = ...
        executed_trajectory: msg.RobotTrajectory = ...
        planning_time: float = ...

    @dataclass(slots=True)
    class Feedback:
        __msgtype__: ClassVar[str]
        state: str = ...

    class SendGoal:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...
            goal: MoveGroup.Goal = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            accepted: bool = ...
            stamp: msg.Time = ...

    class GetResult:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            status: int = ...
            result: MoveGroup.Result = ...

    @dataclass(slots=True)
    class FeedbackMessage:
        __msgtype__: ClassVar[str]
        goal_id: msg.UUID = ...
        feedback: MoveGroup.Feedback = ...

class BackUp:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Goal:
        __msgtype__: ClassVar[str]
        target: msg.Point = ...
        speed: float = ...
        time_allowance: msg.Duration = ...

    @dataclass(slots=True)
    class Result:
        __msgtype__: ClassVar[str]
        NONE: ClassVar[int]
        UNKNOWN: ClassVar[int]
        TIMEOUT: ClassVar[int]
        TF_ERROR: ClassVar[int]
        INVALID_INPUT: ClassVar[int]
        COLLISION_AHEAD: ClassVar[int]
        total_elapsed_time: msg.Duration = ...
        error_code: int = ...
        error_msg: str = ...

    @dataclass(slots=True)
    class Feedback:
        __msgtype__: ClassVar[str]
        distance_traveled: float = ...

    class SendGoal:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...
            goal: BackUp.Goal = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            accepted: bool = ...
            stamp: msg.Time = ...

    class GetResult:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            status: int = ...
            result: BackUp.Result = ...

    @dataclass(slots=True)
    class FeedbackMessage:
        __msgtype__: ClassVar[str]
        goal_id: msg.UUID = ...
        feedback: BackUp.Feedback = ...

class ComputePathThroughPoses:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Goal:
        __msgtype__: ClassVar[str]
        goals: list[msg.PoseStamped] = ...
        start: msg.PoseStamped = ...
        planner_id: str = ...
        use_start: bool = ...

    @dataclass(slots=True)
    class Result:
        __msgtype__: ClassVar[str]
        NONE: ClassVar[int]
        UNKNOWN: ClassVar[int]
        INVALID_PLANNER: ClassVar[int]
        TF_ERROR: ClassVar[int]
        START_OUTSIDE_MAP: ClassVar[int]
        GOAL_OUTSIDE_MAP: ClassVar[int]
        START_OCCUPIED: ClassVar[int]
        GOAL_OCCUPIED: ClassVar[int]
        TIMEOUT: ClassVar[int]
        NO_VALID_PATH: ClassVar[int]
        NO_VIAPOINTS_GIVEN: ClassVar[int]
        path: msg.Path = ...
        planning_time: msg.Duration = ...
        error_code: int = ...
        error_msg: str = ...

    @dataclass(slots=True)
    class Feedback:
        __msgtype__: ClassVar[str]

    class SendGoal:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...
            goal: ComputePathThroughPoses.Goal = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            accepted: bool = ...
            stamp: msg.Time = ...

    class GetResult:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            status: int = ...
            result: ComputePathThroughPoses.Result = ...

    @dataclass(slots=True)
    class FeedbackMessage:
        __msgtype__: ClassVar[str]
        goal_id: msg.UUID = ...
        feedback: ComputePathThroughPoses.Feedback = ...

class ComputePathToPose:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Goal:
        __msgtype__: ClassVar[str]
        goal: msg.PoseStamped = ...
        start: msg.PoseStamped = ...
        planner_id: str = ...
        use_start: bool = ...

    @dataclass(slots=True)
    class Result:
        __msgtype__: ClassVar[str]
        NONE: ClassVar[int]
        UNKNOWN: ClassVar[int]
        INVALID_PLANNER: ClassVar[int]
        TF_ERROR: ClassVar[int]
        START_OUTSIDE_MAP: ClassVar[int]
        GOAL_OUTSIDE_MAP: ClassVar[int]
        START_OCCUPIED: ClassVar[int]
        GOAL_OCCUPIED: ClassVar[int]
        TIMEOUT: ClassVar[int]
        NO_VALID_PATH: ClassVar[int]
        path: msg.Path = ...
        planning_time: msg.Duration = ...
        error_code: int = ...
        error_msg: str = ...

    @dataclass(slots=True)
    class Feedback:
        __msgtype__: ClassVar[str]

    class SendGoal:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...
            goal: ComputePathToPose.Goal = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            accepted: bool = ...
            stamp: msg.Time = ...

    class GetResult:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            status: int = ...
            result: ComputePathToPose.Result = ...

    @dataclass(slots=True)
    class FeedbackMessage:
        __msgtype__: ClassVar[str]
        goal_id: msg.UUID = ...
        feedback: ComputePathToPose.Feedback = ...

class DockRobot:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Goal:
        __msgtype__: ClassVar[str]
        use_dock_id: bool = ...
        dock_id: str = ...
        dock_pose: msg.PoseStamped = ...
        dock_type: str = ...
        max_staging_time: float = ...
        navigate_to_staging_pose: bool = ...

    @dataclass(slots=True)
    class Result:
        __msgtype__: ClassVar[str]
        NONE: ClassVar[int]
        DOCK_NOT_IN_DB: ClassVar[int]
        DOCK_NOT_VALID: ClassVar[int]
        FAILED_TO_STAGE: ClassVar[int]
        FAILED_TO_DETECT_DOCK: ClassVar[int]
        FAILED_TO_CONTROL: ClassVar[int]
        FAILED_TO_CHARGE: ClassVar[int]
        TIMEOUT: ClassVar[int]
        UNKNOWN: ClassVar[int]
        success: bool = ...
        error_code: int = ...
        num_retries: int = ...
        error_msg: str = ...

    @dataclass(slots=True)
    class Feedback:
        __msgtype__: ClassVar[str]
        NONE: ClassVar[int]
        NAV_TO_STAGING_POSE: ClassVar[int]
        INITIAL_PERCEPTION: ClassVar[int]
        CONTROLLING: ClassVar[int]
        WAIT_FOR_CHARGE: ClassVar[int]
        RETRY: ClassVar[int]
        state: int = ...
        docking_time: msg.Duration = ...
        num_retries: int = ...

    class SendGoal:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...
            goal: DockRobot.Goal = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            accepted: bool = ...
            stamp: msg.Time = ...

    class GetResult:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            status: int = ...
            result: DockRobot.Result = ...

    @dataclass(slots=True)
    class FeedbackMessage:
        __msgtype__: ClassVar[str]
        goal_id: msg.UUID = ...
        feedback: DockRobot.Feedback = ...

class DriveOnHeading:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Goal:
        __msgtype__: ClassVar[str]
        target: msg.Point = ...
        speed: float = ...
        time_allowance: msg.Duration = ...

    @dataclass(slots=True)
    class Result:
        __msgtype__: ClassVar[str]
        NONE: ClassVar[int]
        UNKNOWN: ClassVar[int]
        TIMEOUT: ClassVar[int]
        TF_ERROR: ClassVar[int]
        COLLISION_AHEAD: ClassVar[int]
        INVALID_INPUT: ClassVar[int]
        total_elapsed_time: msg.Duration = ...
        error_code: int = ...
        error_msg: str = ...

    @dataclass(slots=True)
    class Feedback:
        __msgtype__: ClassVar[str]
        distance_traveled: float = ...

    class SendGoal:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...
            goal: DriveOnHeading.Goal = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            accepted: bool = ...
            stamp: msg.Time = ...

    class GetResult:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            status: int = ...
            result: DriveOnHeading.Result = ...

    @dataclass(slots=True)
    class FeedbackMessage:
        __msgtype__: ClassVar[str]
        goal_id: msg.UUID = ...
        feedback: DriveOnHeading.Feedback = ...

class FollowPath:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Goal:
        __msgtype__: ClassVar[str]
        path: msg.Path = ...
        controller_id: str = ...
        goal_checker_id: str = ...
        progress_checker_id: str = ...

    @dataclass(slots=True)
    class Result:
        __msgtype__: ClassVar[str]
        NONE: ClassVar[int]
        UNKNOWN: ClassVar[int]
        INVALID_CONTROLLER: ClassVar[int]
        TF_ERROR: ClassVar[int]
        INVALID_PATH: ClassVar[int]
        PATIENCE_EXCEEDED: ClassVar[int]
        FAILED_TO_MAKE_PROGRESS: ClassVar[int]
        NO_VALID_CONTROL: ClassVar[int]
        CONTROLLER_TIMED_OUT: ClassVar[int]
        result: msg.Empty = ...
        error_code: int = ...
        error_msg: str = ...

    @dataclass(slots=True)
    class Feedback:
        __msgtype__: ClassVar[str]
        distance_to_goal: float = ...
        speed: float = ...

    class SendGoal:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...
            goal: FollowPath.Goal = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            accepted: bool = ...
            stamp: msg.Time = ...

    class GetResult:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            status: int = ...
            result: FollowPath.Result = ...

    @dataclass(slots=True)
    class FeedbackMessage:
        __msgtype__: ClassVar[str]
        goal_id: msg.UUID = ...
        feedback: FollowPath.Feedback = ...

class FollowWaypoints:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Goal:
        __msgtype__: ClassVar[str]
        number_of_loops: int = ...
        goal_index: int = ...
        poses: list[msg.PoseStamped] = ...

    @dataclass(slots=True)
    class Result:
        __msgtype__: ClassVar[str]
        NONE: ClassVar[int]
        UNKNOWN: ClassVar[int]
        TASK_EXECUTOR_FAILED: ClassVar[int]
        missed_waypoints: list[msg.MissedWaypoint] = ...
        error_code: int = ...
        error_msg: str = ...

    @dataclass(slots=True)
    class Feedback:
        __msgtype__: ClassVar[str]
        current_waypoint: int = ...

    class SendGoal:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...
            goal: FollowWaypoints.Goal = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            accepted: bool = ...
            stamp: msg.Time = ...

    class GetResult:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            status: int = ...
            result: FollowWaypoints.Result = ...

    @dataclass(slots=True)
    class FeedbackMessage:
        __msgtype__: ClassVar[str]
        goal_id: msg.UUID = ...
        feedback: FollowWaypoints.Feedback = ...

class NavigateThroughPoses:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Goal:
        __msgtype__: ClassVar[str]
        poses: list[msg.PoseStamped] = ...
        behavior_tree: str = ...

    @dataclass(slots=True)
    class Result:
        __msgtype__: ClassVar[str]
        NONE: ClassVar[int]
        error_code: int = ...
        error_msg: str = ...

    @dataclass(slots=True)
    class Feedback:
        __msgtype__: ClassVar[str]
        current_pose: msg.PoseStamped = ...
        navigation_time: msg.Duration = ...
        estimated_time_remaining: msg.Duration = ...
        number_of_recoveries: int = ...
        distance_remaining: float = ...
        number_of_poses_remaining: int = ...

    class SendGoal:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...
            goal: NavigateThroughPoses.Goal = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            accepted: bool = ...
            stamp: msg.Time = ...

    class GetResult:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            status: int = ...
            result: NavigateThroughPoses.Result = ...

    @dataclass(slots=True)
    class FeedbackMessage:
        __msgtype__: ClassVar[str]
        goal_id: msg.UUID = ...
        feedback: NavigateThroughPoses.Feedback = ...

class NavigateToPose:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Goal:
        __msgtype__: ClassVar[str]
        pose: msg.PoseStamped = ...
        behavior_tree: str = ...

    @dataclass(slots=True)
    class Result:
        __msgtype__: ClassVar[str]
        NONE: ClassVar[int]
        UNKNOWN: ClassVar[int]
        FAILED_TO_LOAD_BEHAVIOR_TREE: ClassVar[int]
        TF_ERROR: ClassVar[int]
        TIMEOUT: ClassVar[int]
        error_code: int = ...
        error_msg: str = ...

    @dataclass(slots=True)
    class Feedback:
        __msgtype__: ClassVar[str]
        current_pose: msg.PoseStamped = ...
        navigation_time: msg.Duration = ...
        estimated_time_remaining: msg.Duration = ...
        number_of_recoveries: int = ...
        distance_remaining: float = ...

    class SendGoal:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...
            goal: NavigateToPose.Goal = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            accepted: bool = ...
            stamp: msg.Time = ...

    class GetResult:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            status: int = ...
            result: NavigateToPose.Result = ...

    @dataclass(slots=True)
    class FeedbackMessage:
        __msgtype__: ClassVar[str]
        goal_id: msg.UUID = ...
        feedback: NavigateToPose.Feedback = ...

class Spin:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Goal:
        __msgtype__: ClassVar[str]
        target_yaw: float = ...
        time_allowance: msg.Duration = ...

    @dataclass(slots=True)
    class Result:
        __msgtype__: ClassVar[str]
        NONE: ClassVar[int]
        UNKNOWN: ClassVar[int]
        TIMEOUT: ClassVar[int]
        TF_ERROR: ClassVar[int]
        COLLISION_AHEAD: ClassVar[int]
        total_elapsed_time: msg.Duration = ...
        error_code: int = ...
        error_msg: str = ...

    @dataclass(slots=True)
    class Feedback:
        __msgtype__: ClassVar[str]
        angular_distance_traveled: float = ...

    class SendGoal:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...
            goal: Spin.Goal = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            accepted: bool = ...
            stamp: msg.Time = ...

    class GetResult:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            status: int = ...
            result: Spin.Result = ...

    @dataclass(slots=True)
    class FeedbackMessage:
        __msgtype__: ClassVar[str]
        goal_id: msg.UUID = ...
        feedback: Spin.Feedback = ...

class UndockRobot:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Goal:
        __msgtype__: ClassVar[str]
        dock_type: str = ...
        max_undocking_time: float = ...

    @dataclass(slots=True)
    class Result:
        __msgtype__: ClassVar[str]
        NONE: ClassVar[int]
        DOCK_NOT_VALID: ClassVar[int]
        FAILED_TO_CONTROL: ClassVar[int]
        TIMEOUT: ClassVar[int]
        UNKNOWN: ClassVar[int]
        success: bool = ...
        error_code: int = ...
        error_msg: str = ...

    @dataclass(slots=True)
    class Feedback:
        __msgtype__: ClassVar[str]

    class SendGoal:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...
            goal: UndockRobot.Goal = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            accepted: bool = ...
            stamp: msg.Time = ...

    class GetResult:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            status: int = ...
            result: UndockRobot.Result = ...

    @dataclass(slots=True)
    class FeedbackMessage:
        __msgtype__: ClassVar[str]
        goal_id: msg.UUID = ...
        feedback: UndockRobot.Feedback = ...

class Wait:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Goal:
        __msgtype__: ClassVar[str]
        time: msg.Duration = ...

    @dataclass(slots=True)
    class Result:
        __msgtype__: ClassVar[str]
        total_elapsed_time: msg.Duration = ...
        error_code: int = ...
        error_msg: str = ...

    @dataclass(slots=True)
    class Feedback:
        __msgtype__: ClassVar[str]
        time_left: msg.Duration = ...

    class SendGoal:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...
            goal: Wait.Goal = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            accepted: bool = ...
            stamp: msg.Time = ...

    class GetResult:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            status: int = ...
            result: Wait.Result = ...

    @dataclass(slots=True)
    class FeedbackMessage:
        __msgtype__: ClassVar[str]
        goal_id: msg.UUID = ...
        feedback: Wait.Feedback = ...

class ActorAnimation:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Goal:
        __msgtype__: ClassVar[str]
        animation_name: str = ...
        animation_speed: float = ...
        has_target: bool = ...
        target: msg.Point = ...
        hand: str = ...
        grasp_object: str = ...
        release: bool = ...
        hold_timeout: float = ...

    @dataclass(slots=True)
    class Result:
        __msgtype__: ClassVar[str]
        success: bool = ...
        message: str = ...

    @dataclass(slots=True)
    class Feedback:
        __msgtype__: ClassVar[str]
        state: str = ...
        progress: float = ...

    class SendGoal:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...
            goal: ActorAnimation.Goal = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            accepted: bool = ...
            stamp: msg.Time = ...

    class GetResult:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            status: int = ...
            result: ActorAnimation.Result = ...

    @dataclass(slots=True)
    class FeedbackMessage:
        __msgtype__: ClassVar[str]
        goal_id: msg.UUID = ...
        feedback: ActorAnimation.Feedback = ...

class ActorMovement:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Goal:
        __msgtype__: ClassVar[str]
        animation_name: str = ...
        animation_distance: float = ...
        velocity: float = ...
        target: msg.Pose = ...

    @dataclass(slots=True)
    class Result:
        __msgtype__: ClassVar[str]
        success: bool = ...
        message: str = ...
        pose: msg.Pose = ...

    @dataclass(slots=True)
    class Feedback:
        __msgtype__: ClassVar[str]
        state: str = ...
        pose: msg.Pose = ...

    class SendGoal:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...
            goal: ActorMovement.Goal = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            accepted: bool = ...
            stamp: msg.Time = ...

    class GetResult:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            status: int = ...
            result: ActorMovement.Result = ...

    @dataclass(slots=True)
    class FeedbackMessage:
        __msgtype__: ClassVar[str]
        goal_id: msg.UUID = ...
        feedback: ActorMovement.Feedback = ...

class Explore:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Goal:
        __msgtype__: ClassVar[str]
        stay_at_end: bool = ...

    @dataclass(slots=True)
    class Result:
        __msgtype__: ClassVar[str]
        error_code: str = ...
        status: msg.ExplorationStatus = ...

    @dataclass(slots=True)
    class Feedback:
        __msgtype__: ClassVar[str]
        status: msg.ExplorationStatus = ...

    class SendGoal:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...
            goal: Explore.Goal = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            accepted: bool = ...
            stamp: msg.Time = ...

    class GetResult:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            status: int = ...
            result: Explore.Result = ...

    @dataclass(slots=True)
    class FeedbackMessage:
        __msgtype__: ClassVar[str]
        goal_id: msg.UUID = ...
        feedback: Explore.Feedback = ...

class LookForDiscs:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Goal:
        __msgtype__: ClassVar[str]
        polarity: str = ...
        mode: str = ...
        diameter: float = ...
        diameter_tolerance: float = ...
        distance: float = ...
        distance_tolerance: float = ...
        sensitivity: float = ...
        radius_min: float = ...
        radius_max: float = ...
        frame_id: str = ...
        num_images: int = ...
        min_agreeing: int = ...
        timeout: float = ...
        may_move: bool = ...

    @dataclass(slots=True)
    class Result:
        __msgtype__: ClassVar[str]
        error_code: str = ...
        message: str = ...
        header: msg.Header = ...
        positions: list[msg.Point] = ...
        velocities: list[msg.Vector3] = ...
        normals: list[msg.Vector3] = ...
        diameters: NDArray[np.float64] = ...
        distances: NDArray[np.float64] = ...
        num_agreeing: NDArray[np.uint32] = ...
        is_measured: NDArray[np.bool_] = ...
        num_images: int = ...

    @dataclass(slots=True)
    class Feedback:
        __msgtype__: ClassVar[str]
        num_images: int = ...

    class SendGoal:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...
            goal: LookForDiscs.Goal = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            accepted: bool = ...
            stamp: msg.Time = ...

    class GetResult:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            status: int = ...
            result: LookForDiscs.Result = ...

    @dataclass(slots=True)
    class FeedbackMessage:
        __msgtype__: ClassVar[str]
        goal_id: msg.UUID = ...
        feedback: LookForDiscs.Feedback = ...

class RunSkill:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Goal:
        __msgtype__: ClassVar[str]
        polarity: str = ...
        mode: str = ...
        num_images: int = ...
        field: str = ...
        bay: int = ...
        has_position: bool = ...
        position: msg.Point = ...
        objects: int = ...

    @dataclass(slots=True)
    class Result:
        __msgtype__: ClassVar[str]
        success: bool = ...
        view_empty: bool = ...
        error_code: str = ...
        message: str = ...
        recoveries: int = ...
        header: msg.Header = ...
        positions: list[msg.Point] = ...
        load: NDArray[np.int8] = ...
        placed: int = ...

    @dataclass(slots=True)
    class Feedback:
        __msgtype__: ClassVar[str]
        skill: str = ...
        phase: str = ...

    class SendGoal:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...
            goal: RunSkill.Goal = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            accepted: bool = ...
            stamp: msg.Time = ...

    class GetResult:
        name: ClassVar[str]

        @dataclass(slots=True)
        class Request:
            __msgtype__: ClassVar[str]
            goal_id: msg.UUID = ...

        @dataclass(slots=True)
        class Response:
            __msgtype__: ClassVar[str]
            status: int = ...
            result: RunSkill.Result = ...

    @dataclass(slots=True)
    class FeedbackMessage:
        __msgtype__: ClassVar[str]
        goal_id: msg.UUID = ...
        feedback: RunSkill.Feedback = ...

class control_msgs:
    FollowJointTrajectory: TypeAlias = FollowJointTrajectory
    GripperCommand: TypeAlias = GripperCommand

class example_interfaces:
    Fibonacci: TypeAlias = Fibonacci

class move_base_msgs:
    MoveBase: TypeAlias = MoveBase

class moveit_msgs:
    ExecuteTrajectory: TypeAlias = ExecuteTrajectory
    MoveGroup: TypeAlias = MoveGroup

class nav2_msgs:
    BackUp: TypeAlias = BackUp
    ComputePathThroughPoses: TypeAlias = ComputePathThroughPoses
    ComputePathToPose: TypeAlias = ComputePathToPose
    DockRobot: TypeAlias = DockRobot
    DriveOnHeading: TypeAlias = DriveOnHeading
    FollowPath: TypeAlias = FollowPath
    FollowWaypoints: TypeAlias = FollowWaypoints
    NavigateThroughPoses: TypeAlias = NavigateThroughPoses
    NavigateToPose: TypeAlias = NavigateToPose
    Spin: TypeAlias = Spin
    UndockRobot: TypeAlias = UndockRobot
    Wait: TypeAlias = Wait

class roboyard_msgs:
    ActorAnimation: TypeAlias = ActorAnimation
    ActorMovement: TypeAlias = ActorMovement
    Explore: TypeAlias = Explore
    LookForDiscs: TypeAlias = LookForDiscs
    RunSkill: TypeAlias = RunSkill

def __getattr__(name: str) -> Any: ...  # types that users register
