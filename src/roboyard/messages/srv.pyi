# Made by `python -m roboyard.messages.stubs`: do not edit.
# ruff: noqa: N801 - packages are named as in ROS

from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from roboyard.messages import msg

class CancelGoal:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]
        goal_info: msg.GoalInfo = ...

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]
        ERROR_NONE: ClassVar[int]
        ERROR_REJECTED: ClassVar[int]
        ERROR_UNKNOWN_GOAL_ID: ClassVar[int]
        ERROR_GOAL_TERMINATED: ClassVar[int]
        return_code: int = ...
        goals_canceling: list[msg.GoalInfo] = ...

class AddTwoInts:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]
        a: int = ...
        b: int = ...

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]
        sum: int = ...

class ApplyPlanningScene:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]
        scene: msg.PlanningScene = ...

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]
        success: bool = ...

class GetCartesianPath:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]
        header: msg.Header = ...
        start_state: msg.RobotState = ...
        group_name: str = ...
        link_name: str = ...
        waypoints: list[msg.Pose] = ...
        max_step: float = ...
        jump_threshold: float = ...
        prismatic_jump_threshold: float = ...
        revolute_jump_threshold: float = ...
        avoid_collisions: bool = ...
        path_constraints: msg.Constraints = ...
        max_velocity_scaling_factor: float = ...
        max_acceleration_scaling_factor: float = ...
        cartesian_speed_limited_link: str = ...
        max_cartesian_speed: float = ...

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]
        start_state: msg.RobotState = ...
        solution: msg.RobotTrajectory = ...
        fraction: float = ...
        error_code: msg.MoveItErrorCodes = ...

class GetMotionPlan:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]
        motion_plan_request: msg.MotionPlanRequest = ...

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]
        motion_plan_response: msg.MotionPlanResponse = ...

class GetPlanningScene:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]
        components: msg.PlanningSceneComponents = ...

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]
        scene: msg.PlanningScene = ...

class GetPositionFK:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]
        header: msg.Header = ...
        fk_link_names: list[str] = ...
        robot_state: msg.RobotState = ...

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]
        pose_stamped: list[msg.PoseStamped] = ...
        fk_link_names: list[str] = ...
        error_code: msg.MoveItErrorCodes = ...

class GetPositionIK:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]
        ik_request: msg.PositionIKRequest = ...

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]
        solution: msg.RobotState = ...
        error_code: msg.MoveItErrorCodes = ...

class GetStateValidity:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]
        robot_state: msg.RobotState = ...
        group_name: str = ...
        constraints: msg.Constraints = ...

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]
        valid: bool = ...
        contacts: list[msg.ContactInformation] = ...
        cost_sources: list[msg.CostSource] = ...
        constraint_result: list[msg.ConstraintEvalResult] = ...

class ServoCommandType:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]
        JOINT_JOG: ClassVar[int]
        TWIST: ClassVar[int]
        POSE: ClassVar[int]
        command_type: int = ...

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]
        success: bool = ...

class ClearCostmapAroundRobot:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]
        reset_distance: float = ...

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]
        response: msg.Empty = ...

class ClearCostmapExceptRegion:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]
        reset_distance: float = ...

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]
        response: msg.Empty = ...

class ClearEntireCostmap:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]
        request: msg.Empty = ...

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]
        response: msg.Empty = ...

class _nav2_msgs_LoadMap:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]
        map_url: str = ...

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]
        RESULT_SUCCESS: ClassVar[int]
        RESULT_MAP_DOES_NOT_EXIST: ClassVar[int]
        RESULT_INVALID_MAP_DATA: ClassVar[int]
        RESULT_INVALID_MAP_METADATA: ClassVar[int]
        RESULT_UNDEFINED_FAILURE: ClassVar[int]
        map: msg.OccupancyGrid = ...
        result: int = ...

class _nav2_msgs_SaveMap:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]
        map_topic: str = ...
        map_url: str = ...
        image_format: str = ...
        map_mode: str = ...
        free_thresh: float = ...
        occupied_thresh: float = ...

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]
        result: bool = ...

class SetInitialPose:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]
        pose: msg.PoseWithCovarianceStamped = ...

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]

class GetMap:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]
        map: msg.OccupancyGrid = ...

class GetPlan:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]
        start: msg.PoseStamped = ...
        goal: msg.PoseStamped = ...
        tolerance: float = ...

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]
        plan: msg.Path = ...

class LoadMap:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]
        map_url: str = ...

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]
        RESULT_SUCCESS: ClassVar[int]
        RESULT_MAP_DOES_NOT_EXIST: ClassVar[int]
        RESULT_INVALID_MAP_DATA: ClassVar[int]
        RESULT_INVALID_MAP_METADATA: ClassVar[int]
        RESULT_UNDEFINED_FAILURE: ClassVar[int]
        map: msg.OccupancyGrid = ...
        result: int = ...

class SetMap:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]
        map: msg.OccupancyGrid = ...
        initial_pose: msg.PoseWithCovarianceStamped = ...

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]
        success: bool = ...

class BoundingBoxQuery:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]
        min: msg.Point = ...
        max: msg.Point = ...

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]

class GetOctomap:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]
        map: msg.Octomap = ...

class DescribeParameters:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]
        names: list[str] = ...

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]
        descriptors: list[msg.ParameterDescriptor] = ...

class GetParameterTypes:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]
        names: list[str] = ...

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]
        types: NDArray[np.uint8] = ...

class GetParameters:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]
        names: list[str] = ...

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]
        values: list[msg.ParameterValue] = ...

class ListParameters:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]
        DEPTH_RECURSIVE: ClassVar[int]
        prefixes: list[str] = ...
        depth: int = ...

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]
        result: msg.ListParametersResult = ...

class SetParameters:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]
        parameters: list[msg.Parameter] = ...

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]
        results: list[msg.SetParametersResult] = ...

class SetParametersAtomically:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]
        parameters: list[msg.Parameter] = ...

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]
        result: msg.SetParametersResult = ...

class EndFault:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]
        name: str = ...

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]
        success: bool = ...
        message: str = ...

class InjectFault:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]
        fault: str = ...

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]
        success: bool = ...
        message: str = ...
        name: str = ...

class DeleteEntity:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]
        entity: str = ...

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]
        result: msg.Result = ...

class GetEntities:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]
        filters: msg.EntityFilters = ...

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]
        result: msg.Result = ...
        entities: list[str] = ...

class GetEntitiesStates:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]
        filters: msg.EntityFilters = ...

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]
        result: msg.Result = ...
        entities: list[str] = ...
        states: list[msg.EntityState] = ...

class GetEntityState:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]
        entity: str = ...

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]
        result: msg.Result = ...
        state: msg.EntityState = ...

class GetSimulationState:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]
        state: msg.SimulationState = ...
        result: msg.Result = ...

class ResetSimulation:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]
        SCOPE_DEFAULT: ClassVar[int]
        SCOPE_TIME: ClassVar[int]
        SCOPE_STATE: ClassVar[int]
        SCOPE_SPAWNED: ClassVar[int]
        SCOPE_ALL: ClassVar[int]
        scope: int = ...

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]
        result: msg.Result = ...

class SetEntityState:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]
        entity: str = ...
        state: msg.EntityState = ...
        set_pose: bool = ...
        set_twist: bool = ...
        set_acceleration: bool = ...

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]
        INVALID_POSE: ClassVar[int]
        result: msg.Result = ...

class SetSimulationState:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]
        state: msg.SimulationState = ...

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]
        ALREADY_IN_TARGET_STATE: ClassVar[int]
        STATE_TRANSITION_ERROR: ClassVar[int]
        INCORRECT_TRANSITION: ClassVar[int]
        result: msg.Result = ...

class SpawnEntity:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]
        name: str = ...
        allow_renaming: bool = ...
        entity_resource: msg.Resource = ...
        entity_namespace: str = ...
        initial_pose: msg.PoseStamped = ...

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]
        NAME_NOT_UNIQUE: ClassVar[int]
        NAME_INVALID: ClassVar[int]
        UNSUPPORTED_FORMAT: ClassVar[int]
        NO_RESOURCE: ClassVar[int]
        NAMESPACE_INVALID: ClassVar[int]
        RESOURCE_PARSE_ERROR: ClassVar[int]
        MISSING_ASSETS: ClassVar[int]
        UNSUPPORTED_ASSETS: ClassVar[int]
        INVALID_POSE: ClassVar[int]
        result: msg.Result = ...
        entity_name: str = ...

class StepSimulation:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]
        steps: int = ...

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]
        result: msg.Result = ...

class _slam_toolbox_SaveMap:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]
        name: msg.String = ...

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]
        RESULT_SUCCESS: ClassVar[int]
        RESULT_NO_MAP_RECEIEVD: ClassVar[int]
        RESULT_UNDEFINED_FAILURE: ClassVar[int]
        result: int = ...

class SerializePoseGraph:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]
        filename: str = ...

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]
        RESULT_SUCCESS: ClassVar[int]
        RESULT_FAILED_TO_WRITE_FILE: ClassVar[int]
        result: int = ...

class Empty:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]

class SetBool:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]
        data: bool = ...

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]
        success: bool = ...
        message: str = ...

class Trigger:
    name: ClassVar[str]

    @dataclass(slots=True)
    class Request:
        __msgtype__: ClassVar[str]

    @dataclass(slots=True)
    class Response:
        __msgtype__: ClassVar[str]
        success: bool = ...
        message: str = ...

class action_msgs:
    CancelGoal: TypeAlias = CancelGoal

class example_interfaces:
    AddTwoInts: TypeAlias = AddTwoInts

class moveit_msgs:
    ApplyPlanningScene: TypeAlias = ApplyPlanningScene
    GetCartesianPath: TypeAlias = GetCartesianPath
    GetMotionPlan: TypeAlias = GetMotionPlan
    GetPlanningScene: TypeAlias = GetPlanningScene
    GetPositionFK: TypeAlias = GetPositionFK
    GetPositionIK: TypeAlias = GetPositionIK
    GetStateValidity: TypeAlias = GetStateValidity
    ServoCommandType: TypeAlias = ServoCommandType

class nav2_msgs:
    ClearCostmapAroundRobot: TypeAlias = ClearCostmapAroundRobot
    ClearCostmapExceptRegion: TypeAlias = ClearCostmapExceptRegion
    ClearEntireCostmap: TypeAlias = ClearEntireCostmap
    LoadMap: TypeAlias = _nav2_msgs_LoadMap
    SaveMap: TypeAlias = _nav2_msgs_SaveMap
    SetInitialPose: TypeAlias = SetInitialPose

class nav_msgs:
    GetMap: TypeAlias = GetMap
    GetPlan: TypeAlias = GetPlan
    LoadMap: TypeAlias = LoadMap
    SetMap: TypeAlias = SetMap

class octomap_msgs:
    BoundingBoxQuery: TypeAlias = BoundingBoxQuery
    GetOctomap: TypeAlias = GetOctomap

class rcl_interfaces:
    DescribeParameters: TypeAlias = DescribeParameters
    GetParameterTypes: TypeAlias = GetParameterTypes
    GetParameters: TypeAlias = GetParameters
    ListParameters: TypeAlias = ListParameters
    SetParameters: TypeAlias = SetParameters
    SetParametersAtomically: TypeAlias = SetParametersAtomically

class roboyard_msgs:
    EndFault: TypeAlias = EndFault
    InjectFault: TypeAlias = InjectFault

class simulation_interfaces:
    DeleteEntity: TypeAlias = DeleteEntity
    GetEntities: TypeAlias = GetEntities
    GetEntitiesStates: TypeAlias = GetEntitiesStates
    GetEntityState: TypeAlias = GetEntityState
    GetSimulationState: TypeAlias = GetSimulationState
    ResetSimulation: TypeAlias = ResetSimulation
    SetEntityState: TypeAlias = SetEntityState
    SetSimulationState: TypeAlias = SetSimulationState
    SpawnEntity: TypeAlias = SpawnEntity
    StepSimulation: TypeAlias = StepSimulation

class slam_toolbox:
    SaveMap: TypeAlias = _slam_toolbox_SaveMap
    SerializePoseGraph: TypeAlias = SerializePoseGraph

class std_srvs:
    Empty: TypeAlias = Empty
    SetBool: TypeAlias = SetBool
    Trigger: TypeAlias = Trigger

def __getattr__(name: str) -> Any: ...  # types that users register
