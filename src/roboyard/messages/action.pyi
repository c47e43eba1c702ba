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

class control_msgs:
    FollowJointTrajectory: TypeAlias = FollowJointTrajectory
    GripperCommand: TypeAlias = GripperCommand

class example_interfaces:
    Fibonacci: TypeAlias = Fibonacci

class nav2_msgs:
    NavigateToPose: TypeAlias = NavigateToPose

def __getattr__(name: str) -> Any: ...  # types that users register
