"""Fields of MoveIt's requests: each is read, met, reported or refused; none is ignored in silence."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tests.harness.arms import ARM_NODES, ArmCell, box_message

from roboyard.bus.actions import GoalRejectedError
from roboyard.errors import RoboyardError
from roboyard.geometry import SE3
from roboyard.manipulation.nodes.moveit_errors import ArmMotionError
from roboyard.manipulation.nodes.request_fields import FIELD_SUPPORT, FieldUse, field_table, is_set
from roboyard.messages import action, msg, srv
from roboyard.messages.convert import make_header, pose_stamped_to_msg, pose_to_msg

KINDS, SERVICES = msg.moveit_msgs, srv.moveit_msgs

MESSAGE_TYPES: dict[str, Any] = {
    **{name: getattr(KINDS, name) for name in FIELD_SUPPORT if hasattr(KINDS, name)},
    "JointState": msg.JointState,
    "PlanningScene.robot_state": KINDS.RobotState,
    "GetCartesianPath": SERVICES.GetCartesianPath.Request,
    "GetPositionFK": SERVICES.GetPositionFK.Request,
    "GetStateValidity": SERVICES.GetStateValidity.Request,
    "ExecuteTrajectory": action.ExecuteTrajectory.Goal,
}


@pytest.fixture(scope="module")
def cell() -> Iterator[ArmCell]:
    with ArmCell("youbot_arm", (*ARM_NODES, "move_group"), seed=3) as cell:
        yield cell


@pytest.fixture
def warnings(cell: ArmCell, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Warnings in the log of the move node."""
    node: Any = cell.robot.nodes["move_group"]
    texts: list[str] = []
    monkeypatch.setattr(node._reader, "_warn", texts.append)
    monkeypatch.setattr(type(node.log), "warn", lambda _, text, throttle=None: texts.append(text))
    return texts


def some_value(default: Any) -> Any:
    """A value other than the default of a field, of the same type."""
    if isinstance(default, np.ndarray):
        return np.ones(1, default.dtype)
    if isinstance(default, list):
        return ["something"]
    if dataclasses.is_dataclass(default):
        first = next(
            field.name
            for field in dataclasses.fields(default)
            if field.name not in ("header", "is_diff", "robot_state")
        )
        return dataclasses.replace(default, **{first: some_value(getattr(default, first))})  # type: ignore[type-var]
    return "something" if isinstance(default, str) else type(default)(1)


def pose_constraints(cell: ArmCell, **orientation: Any) -> Any:
    return cell.pose_goal(cell.tool_pose(cell.pose("pick")), "arm_link_0", **orientation)


def plan(cell: ArmCell, **fields: Any) -> str:
    """Read a MotionPlanRequest whose goal is a named pose unless the fields say otherwise."""
    node: Any = cell.robot.nodes["move_group"]
    request = KINDS.MotionPlanRequest(**{"goal_constraints": [cell.named_goal("view")]} | fields)
    start = node._reader.read_start_state(request.start_state)
    return (
        f"{node._reader.read_plan_request(request, 0)} {start.tolist() if request.start_state.joint_state.name else ''}"
    )


def timed_request(cell: ArmCell, **point: Any) -> str:
    """Read a request with one timed pose of the tool."""
    points = [
        KINDS.CartesianTrajectoryPoint(
            point=KINDS.CartesianPoint(**{"pose": pose_to_msg(cell.tool_pose())} | point),
            time_from_start=msg.Duration(sec=1),
        )
    ]
    trajectory = KINDS.CartesianTrajectory(header=make_header("", 10**12), points=points)
    generic = KINDS.GenericTrajectory(cartesian_trajectory=[trajectory])
    return plan(cell, planner_id="TIMED", goal_constraints=[], reference_trajectories=[generic])


def state(cell: ArmCell, **fields: Any) -> str:
    node: Any = cell.robot.nodes["move_group"]
    return str(node._reader.read_start_state(KINDS.RobotState(**fields)).round(1))


def joint_state(cell: ArmCell, **fields: Any) -> str:
    base = {"name": list(cell.chain.joints), "position": cell.pose("view")}
    return state(cell, joint_state=msg.JointState(**base | fields))


def cartesian_path(cell: ArmCell, **fields: Any) -> str:
    node: Any = cell.robot.nodes["move_group"]
    base = {"waypoints": [pose_to_msg(cell.tool_pose(cell.pose("pick")))], "avoid_collisions": True}
    return str(node._reader.read_cartesian_request(SERVICES.GetCartesianPath.Request(**base | fields)))


def inverse_kinematics(cell: ArmCell, **fields: Any) -> str:
    node: Any = cell.robot.nodes["move_group"]
    base = {"pose_stamped": pose_stamped_to_msg(cell.tool_pose(cell.pose("pick")), "arm_link_0", 0)}
    request = SERVICES.GetPositionIK.Request(ik_request=KINDS.PositionIKRequest(**base | fields))
    response = node._on_ik(request)
    if response.error_code.message:
        raise ArmMotionError(response.error_code.message, "bad_goal")
    return str(response.solution.joint_state.position.round(3))


def state_validity(cell: ArmCell, **fields: Any) -> str:
    node: Any = cell.robot.nodes["move_group"]
    return str(node._on_validity(SERVICES.GetStateValidity.Request(**fields)))


def move(cell: ArmCell, **options: Any) -> str:
    goal = cell.move(cell.named_goal("view"), options={"plan_only": True} | options)
    if isinstance(goal.error, GoalRejectedError):
        raise ArmMotionError(str(goal.error), "bad_goal")
    return str(goal.succeeded)


def scene(cell: ArmCell, **fields: Any) -> str:
    """Names in the scene after a scene message, which is not kept."""
    node: Any = cell.robot.nodes["move_group"]
    monitor = node._monitor
    changed = monitor.apply_diff(KINDS.PlanningScene(**{"is_diff": True} | fields), monitor.scene)
    return f"{sorted(changed.obstacles)} {changed.attached} {sorted(changed.allowed)}"


def world_object(cell: ArmCell, **fields: Any) -> str:
    box = dataclasses.replace(box_message("box", (0.1, 0.1, 0.1), SE3(), "arm_link_0"), **fields)
    return scene(cell, world=KINDS.PlanningSceneWorld(collision_objects=[box]))


def attached_object(cell: ArmCell, **fields: Any) -> str:
    box = box_message("box", (0.1, 0.1, 0.1), SE3(), "")
    attached = KINDS.AttachedCollisionObject(**{"link_name": "arm_link_5", "object": box} | fields)
    return scene(cell, robot_state=KINDS.RobotState(attached_collision_objects=[attached]))


REQUESTS: dict[str, Callable[..., str]] = {
    "MotionPlanRequest": plan,
    "PlanningOptions": move,
    "RobotState": state,
    "JointState": joint_state,
    "Constraints": lambda cell, **fields: plan(
        cell, goal_constraints=[dataclasses.replace(cell.named_goal("view"), **fields)]
    ),
    "JointConstraint": lambda cell, **fields: plan(
        cell,
        goal_constraints=[
            KINDS.Constraints(
                joint_constraints=[
                    dataclasses.replace(one, **fields) for one in cell.joint_goal(cell.pose("view")).joint_constraints
                ]
            )
        ],
    ),
    "PositionConstraint": lambda cell, **fields: plan(
        cell,
        goal_constraints=[
            dataclasses.replace(
                goal, position_constraints=[dataclasses.replace(goal.position_constraints[0], **fields)]
            )
            for goal in [pose_constraints(cell)]
        ],
    ),
    "OrientationConstraint": lambda cell, **fields: plan(
        cell,
        goal_constraints=[
            dataclasses.replace(
                goal, orientation_constraints=[dataclasses.replace(goal.orientation_constraints[0], **fields)]
            )
            for goal in [pose_constraints(cell)]
        ],
    ),
    "CartesianPoint": timed_request,
    "GetCartesianPath": cartesian_path,
    "PositionIKRequest": inverse_kinematics,
    "GetStateValidity": state_validity,
    "PlanningScene": scene,
    "PlanningScene.robot_state": lambda cell, **fields: scene(cell, robot_state=KINDS.RobotState(**fields)),
    "PlanningSceneWorld": lambda cell, **fields: scene(cell, world=KINDS.PlanningSceneWorld(**fields)),
    "AllowedCollisionMatrix": lambda cell, **fields: scene(
        cell, allowed_collision_matrix=KINDS.AllowedCollisionMatrix(**fields)
    ),
    "CollisionObject": world_object,
    "AttachedCollisionObject": attached_object,
}
"""Requests with some fields of one message set; what they return changes if what is planned changes."""


def fields_with(*uses: FieldUse) -> list[tuple[str, str]]:
    return [(kind, name) for kind, fields in FIELD_SUPPORT.items() for name, one in fields.items() if one.use in uses]


@pytest.mark.parametrize("kind", FIELD_SUPPORT)
def test_every_field_of_the_message_is_declared(kind: str) -> None:
    assert set(FIELD_SUPPORT[kind]) == {field.name for field in dataclasses.fields(MESSAGE_TYPES[kind])}


@pytest.mark.parametrize(("kind", "name"), fields_with(FieldUse.REJECTED, FieldUse.WARNED))
def test_field_without_effect_is_rejected_or_reported(cell: ArmCell, warnings: list[str], kind: str, name: str) -> None:
    request, support = REQUESTS[kind], FIELD_SUPPORT[kind][name]
    plain = request(cell)
    assert not warnings
    value = some_value(getattr(MESSAGE_TYPES[kind](), name))
    if support.use is FieldUse.REJECTED:
        with pytest.raises(ArmMotionError, match=f"{name} of .* is not supported") as rejected:
            request(cell, **{name: value})
        assert support.note in str(rejected.value)
    else:
        assert request(cell, **{name: value}) == plain
        assert any(f"{name} of" in text and support.note in text for text in warnings)


@pytest.mark.parametrize(("kind", "name"), fields_with(FieldUse.MET))
def test_field_that_is_met_changes_nothing(cell: ArmCell, warnings: list[str], kind: str, name: str) -> None:
    request = REQUESTS[kind]
    value = some_value(getattr(MESSAGE_TYPES[kind](), name))
    assert request(cell, **{name: value}) == request(cell)
    assert not warnings


def other_values(cell: ArmCell) -> dict[str, Any]:
    """Values of the fields of a MotionPlanRequest that are read; some are wrong, which is an effect as well."""
    return {
        "start_state": KINDS.RobotState(
            joint_state=msg.JointState(name=list(cell.chain.joints), position=cell.pose("pick"))
        ),
        "goal_constraints": [cell.named_goal("pick")],
        "path_constraints": KINDS.Constraints(joint_constraints=[KINDS.JointConstraint()]),
        "reference_trajectories": [KINDS.GenericTrajectory()],
        "planner_id": "LIN",
        "group_name": "legs",
        "num_planning_attempts": 3,
        "allowed_planning_time": 0.5,
        "max_velocity_scaling_factor": 0.3,
        "max_acceleration_scaling_factor": 0.3,
    }


@pytest.mark.parametrize(
    "name", [name for name, one in FIELD_SUPPORT["MotionPlanRequest"].items() if one.use is FieldUse.READ]
)
def test_field_that_is_read_changes_the_plan_request(cell: ArmCell, name: str) -> None:
    try:
        changed = plan(cell, **{name: other_values(cell)[name]})
    except ArmMotionError as error:
        changed = str(error)
    assert changed != plan(cell)


def test_timed_request_with_path_constraints_is_rejected(cell: ArmCell) -> None:
    constraints = dataclasses.replace(pose_constraints(cell), position_constraints=[])
    with pytest.raises(ArmMotionError, match="path constraints"):
        plan(cell, planner_id="TIMED", goal_constraints=[], path_constraints=constraints)


def test_difference_without_changes_is_no_difference(cell: ArmCell) -> None:
    diff = KINDS.PlanningScene(is_diff=True, robot_state=KINDS.RobotState(is_diff=True))
    assert move(cell, planning_scene_diff=diff) == "True"


def test_padding_is_refused_unless_it_changes_nothing(cell: ArmCell) -> None:
    neutral = {
        "link_padding": [KINDS.LinkPadding(link_name="arm_link_5")],
        "link_scale": [KINDS.LinkScale(link_name="arm_link_5", scale=1.0)],
    }
    assert scene(cell, **neutral) == scene(cell)
    with pytest.raises(ArmMotionError, match="padding or scale of 'arm_link_5'"):
        scene(cell, link_padding=[KINDS.LinkPadding(link_name="arm_link_5", padding=0.01)])


def test_matrix_allows_and_forbids_contacts(cell: ArmCell) -> None:
    def matrix(is_allowed: bool) -> Any:
        row = KINDS.AllowedCollisionEntry(enabled=np.array([is_allowed, is_allowed]))
        return KINDS.AllowedCollisionMatrix(entry_names=["arm_link_5", "box"], entry_values=[row, row])

    before = cell.harness.call("/get_planning_scene", SERVICES.GetPlanningScene).scene.allowed_collision_matrix
    assert "box" not in before.entry_names
    for is_allowed in (True, False):
        message = KINDS.PlanningScene(is_diff=True, allowed_collision_matrix=matrix(is_allowed))
        assert cell.harness.call("/apply_planning_scene", SERVICES.ApplyPlanningScene, scene=message).success
        now = cell.harness.call("/get_planning_scene", SERVICES.GetPlanningScene).scene.allowed_collision_matrix
        names = list(now.entry_names)
        allowed = "box" in names and bool(now.entry_values[names.index("box")].enabled[names.index("arm_link_5")])
        assert allowed == is_allowed


def test_contacts_that_the_description_allows_stay_allowed(cell: ArmCell, warnings: list[str]) -> None:
    one, other = min(cell.robot.groups.allowed_collisions)
    row = KINDS.AllowedCollisionEntry(enabled=np.array([False, False]))
    matrix = KINDS.AllowedCollisionMatrix(entry_names=[one, other], entry_values=[row, row])
    assert scene(cell, allowed_collision_matrix=matrix) == scene(cell)
    assert len(warnings) == 1
    assert "stay allowed" in warnings[0]


def test_scene_has_the_requested_components(cell: ArmCell) -> None:
    flags = KINDS.PlanningSceneComponents
    cell.add_box("crate", (0.1, 0.1, 0.1), (2.0, 0.0, 0.0), "arm_link_0")
    cell.run.run_for(0.02)

    def request_scene(components: int) -> Any:
        request = SERVICES.GetPlanningScene.Request(components=flags(components=components))
        return cell.harness.call("/get_planning_scene", SERVICES.GetPlanningScene, request).scene

    names = request_scene(flags.WORLD_OBJECT_NAMES)
    assert [one.id for one in names.world.collision_objects] == ["crate"]
    assert not names.world.collision_objects[0].primitives
    assert not names.robot_state.joint_state.name
    assert not names.allowed_collision_matrix.entry_names
    shapes = request_scene(flags.WORLD_OBJECT_GEOMETRY)
    assert len(shapes.world.collision_objects[0].primitives) == 1
    assert list(request_scene(flags.ROBOT_STATE).robot_state.joint_state.name) == list(cell.chain.joints)
    matrix = request_scene(flags.ALLOWED_COLLISION_MATRIX).allowed_collision_matrix
    assert len(matrix.entry_values) == len(matrix.entry_names) > 0
    everything = request_scene(0)
    assert everything.world.collision_objects[0].primitives
    assert everything.robot_state.joint_state.name
    cell.remove_object("crate")
    cell.run.run_for(0.02)


def test_other_controllers_are_rejected(cell: ArmCell) -> None:
    planned = cell.move(cell.named_goal("view"), options={"plan_only": True}).result.planned_trajectory
    for names, is_accepted in ((["arm/follow_joint_trajectory"], True), (["other"], False)):
        goal = cell.harness.send_goal(
            "/execute_trajectory", action.ExecuteTrajectory, trajectory=planned, controller_names=names
        )
        assert isinstance(goal.error, GoalRejectedError) != is_accepted


def test_constraints_of_a_state_are_refused_by_the_service(cell: ArmCell) -> None:
    request = SERVICES.GetStateValidity.Request(constraints=KINDS.Constraints(name="upright"))
    with pytest.raises(RoboyardError, match="constraints of GetStateValidity is not supported"):
        cell.harness.call("/check_state_validity", SERVICES.GetStateValidity, request)


def test_table_lists_every_field_that_is_not_simply_read() -> None:
    header, *rows = field_table()
    assert len(rows) == len(fields_with(FieldUse.REJECTED, FieldUse.WARNED, FieldUse.MET))
    assert all(len(row) == len(header) and row[-1] for row in rows)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.0, False), (float("nan"), True), ("", False), ([], False), ([0.0], True), (np.zeros(3), False),
        (np.array([0.0, 1.0]), True), (msg.Pose(), False), (msg.Pose(position=msg.Point(x=1.0)), True),
        (msg.PoseStamped(header=make_header("map", 5)), False), (msg.Quaternion(x=1.0, w=0.0), True),
        (msg.Quaternion(w=-1.0), False),
    ],
)  # fmt: skip
def test_value_is_set_if_it_says_anything(value: Any, expected: bool) -> None:
    assert is_set(value) == expected
