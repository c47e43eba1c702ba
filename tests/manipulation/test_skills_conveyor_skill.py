"""Skills on conveyors in a simulated cell: the tool is at the object when it grasps; impossible goals have a code."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roboyard.bringup.joint_groups import load_joint_groups
from roboyard.errors import ConfigError
from roboyard.manipulation.skills import (
    SUCCESS,
    ArmGeometry,
    ArmMotionRequest,
    ConveyorTrackingRequest,
    DelayRequest,
    DetectDiscsRequest,
    GripperRequest,
    JointTarget,
    NamedTarget,
    Point,
    SkillConfig,
    SkillContext,
    SkillGoal,
    SkillMemory,
    SkillRequest,
    SkillResult,
    SkillResultCode,
    SkillStack,
    TargetDetection,
    conveyor_lanes,
    make_skill,
    skill_from_dict,
    to_dict,
)
from roboyard.manipulation.skills.conveyor import tracking_duration
from roboyard.manipulation.skills.skill import GraspedObject

GROUPS = load_joint_groups("youbot_arm")
POSES = {name: GROUPS.group().poses[name] for name in ("view_left", "view_right", "rest", "load_check")}
BARE = ArmGeometry.create(GROUPS)
BODY = ArmGeometry(BARE.chain, BARE.T_root_base, POSES, ((-0.135, 0.159, -0.03),))
TOP, FLOOR = -0.017, -0.058
CONFIG = SkillConfig(
    view_poses=("view_left", "view_right"),
    conveyor_areas=("left", "right"),
    approach_height=0.045,
    reach_range=(0.11, 0.22),
    wait_timeout=5.0,
    conveyors=(0.92, 0.165, -0.08, 0.165, 0.09, -0.5, -0.165, 0.5, -0.165, 0.09),
)


@dataclass
class ConveyorCell:
    """A cell in which time passes: objects on the conveyors move, and the arm is where it was commanded to be."""

    objects: list[Point] = field(default_factory=list)
    carriers: list[Point] = field(default_factory=list)
    speed: float = 0.03
    reported_speed: float | None = None
    time_ns: int = 5_000_000_000
    grasped_object: Point | None = None
    joints: tuple[float, ...] = POSES["rest"]
    stops_after: int = 10**9
    tracking_requests: list[ConveyorTrackingRequest] = field(default_factory=list)
    place_errors: list[float] = field(default_factory=list)
    n_requests: int = 0

    def position_now(self, point: Point, direction: float) -> Point:
        return point[0] + direction * self.speed * (self.time_ns * 1e-9), point[1], point[2]

    def execute(self, request: SkillRequest) -> SkillResult:
        self.n_requests += 1
        if self.n_requests == self.stops_after:
            self.reported_speed = 0.0
        match request:
            case DetectDiscsRequest(polarity, _, n_images, _):
                self.time_ns += n_images * 66_000_000
                direction, points = (-1.0, self.objects) if polarity == "white" else (1.0, self.carriers)
                positions = [self.position_now(one, direction) for one in points]
                positions = [one for one in positions if abs(one[0] - 0.024) < 0.3]
                detections = tuple(
                    TargetDetection(one, 0.02, 0.0, (direction * self.speed, 0.0), self.time_ns) for one in positions
                )
                self.time_ns += 50_000_000
                return (
                    SkillResult(detections=detections)
                    if detections
                    else SkillResult(SkillResultCode.VIEW_EMPTY, "nothing")
                )
            case ArmMotionRequest(targets):
                self.time_ns += 2_000_000_000
                match targets[0]:
                    case JointTarget(values):
                        self.joints = values
                    case NamedTarget(name):
                        self.joints = POSES[name]
            case DelayRequest(seconds):
                self.time_ns += round(seconds * 1e9)
            case ConveyorTrackingRequest():
                return self._track(request)
            case _:
                pass
        return SUCCESS

    def _track(self, request: ConveyorTrackingRequest) -> SkillResult:
        assert request.start_time_ns >= self.time_ns + 200_000_000, "too late to be planned"
        self.tracking_requests.append(request)
        if self.reported_speed is not None and abs(self.reported_speed - self.speed) > 0.003:
            return SkillResult(SkillResultCode.CONVEYOR_SPEED_CHANGED, "it stopped")
        self.time_ns = request.grip_time_ns
        tip = request.tool_poses[1].target.position
        if request.gripper_request.opening < 0.02:
            graspable = [one for one in self.objects if math.dist(self.position_now(one, -1.0)[:2], tip[:2]) < 0.003]
            if graspable:
                self.grasped_object = graspable[0]
                self.objects.remove(graspable[0])
        else:
            self.place_errors = [math.dist(self.position_now(one, 1.0)[:2], tip[:2]) for one in self.carriers]
            self.grasped_object = None
        self.time_ns = request.tool_poses[-1].time_ns
        return SUCCESS

    def context(self, memory: SkillMemory) -> SkillContext:
        speed = self.speed if self.reported_speed is None else self.reported_speed
        conveyor_speeds = {"left": speed, "right": speed}
        return SkillContext(
            CONFIG, memory, BODY, self.joints, self.grasped_object is not None, 0.0, (), self.time_ns, conveyor_speeds
        )


def run(cell: ConveyorCell, name: str, memory: SkillMemory, max_requests: int = 400) -> SkillResult:
    stack = SkillStack()
    action = stack.start(make_skill(name, SkillGoal(), CONFIG, 1), cell.context(memory))
    for _ in range(max_requests):
        if isinstance(action, SkillResult):
            return action
        stack.skills = [
            skill_from_dict(copy.deepcopy(to_dict(one))) for one in stack.skills
        ]  # a saved state goes on the same
        result = cell.execute(action)
        action = stack.on_result(cell.context(memory), result)
    raise AssertionError("it does not end")


def upstream(x: float, lateral_offset: float = 0.0, speed: float = 0.03) -> Point:
    """Return an object that is at x in the first detection."""
    return x + 8.6 * speed, 0.165 + lateral_offset, TOP


@settings(max_examples=10, deadline=None)
@given(st.floats(0.008, 0.055), st.floats(0.1, 0.3), st.floats(-0.015, 0.015))
def test_pick_from_a_conveyor_grips_at_the_predicted_place(speed, x, lateral_offset):
    cell, memory = ConveyorCell([upstream(x, lateral_offset, speed)], speed=speed), SkillMemory("left")
    out = run(cell, "pick", memory)
    if not out.is_success:  # only what cannot be met in time is let go
        assert out.code in (
            SkillResultCode.OUT_OF_REACH,
            SkillResultCode.TOO_FAST,
            SkillResultCode.NOT_REACHABLE,
            SkillResultCode.VIEW_EMPTY,
        )
        assert not cell.tracking_requests
        return
    assert cell.grasped_object is not None
    (request,) = cell.tracking_requests
    times = [request.start_time_ns, *(one.time_ns for one in request.tool_poses)]
    assert all(later > sooner for sooner, later in pairwise(times))
    for tool_pose in request.tool_poses:
        assert BODY.horizontal_distance(tool_pose.target.position) <= CONFIG.reach_range[1] + 1e-9
    low = request.tool_poses[1:3]
    assert {one.target.position[2] for one in low} == {TOP - CONFIG.grasp_depth}
    assert all(one.velocity == (-speed, 0.0) for one in low)
    assert memory.grasped_object is not None
    assert not memory.is_tool_low


def test_pick_from_a_conveyor_succeeds_at_usual_speeds():
    for speed in (0.01, 0.02, 0.03, 0.04, 0.05):
        cell = ConveyorCell([upstream(0.31, 0.0, speed)], speed=speed)
        assert run(cell, "pick", SkillMemory("left")).is_success, speed


def test_pick_from_a_conveyor_takes_the_first_reachable_object():
    cell = ConveyorCell([upstream(0.31), upstream(0.02), upstream(0.24)])
    assert run(cell, "pick", SkillMemory("left")).is_success
    assert cell.grasped_object == upstream(0.24)


def test_place_on_a_conveyor_meets_the_passing_carrier():
    carrier = (-0.2 - 5.0 * 0.03, -0.165, FLOOR)
    cell, memory = (
        ConveyorCell(carriers=[carrier], grasped_object=(0.0, 0.0, 0.0)),
        SkillMemory("right", grasped_object=GraspedObject((0.0, 0.2, 0.0), 1)),
    )
    out = run(cell, "place", memory)
    assert out.is_success
    assert cell.place_errors[0] < 1e-6
    assert memory.grasped_object is None
    assert out.position is not None
    assert math.dist(out.position[:2], cell.position_now(carrier, 1.0)[:2]) < 1e-6


def test_place_on_a_conveyor_skips_an_occupied_carrier():
    one, other = (-0.15 - 0.15, -0.165, FLOOR), (-0.28 - 0.15, -0.165, FLOOR)
    cell, memory = (
        ConveyorCell(carriers=[one, other], grasped_object=(0.0, 0.0, 0.0)),
        SkillMemory("right", grasped_object=GraspedObject((0.0, 0.2, 0.0), 1)),
    )
    execute = cell.execute

    def execute_with_object(request: SkillRequest) -> SkillResult:
        result = execute(request)
        if isinstance(request, DetectDiscsRequest) and request.polarity == "white":
            place = cell.position_now(one, 1.0)
            return SkillResult(
                detections=(TargetDetection((*place[:2], place[2] + 0.045), 0.02, 0.0, (0.03, 0.0), cell.time_ns),)
            )
        return result

    cell.execute = execute_with_object  # type: ignore[method-assign]
    assert run(cell, "place", memory).is_success
    assert cell.place_errors[1] < 1e-6


# -- what goes wrong ---------------------------------------------------------------------------------------------------
def test_pick_from_too_fast_a_conveyor_reports_both_speeds():
    out = run(ConveyorCell([upstream(0.3, 0.0, 0.2)], speed=0.2), "pick", SkillMemory("left"))
    assert out.code is SkillResultCode.TOO_FAST
    assert "0.200" in out.message
    possible = float(out.message.rsplit(" ", 1)[1])
    assert possible == pytest.approx(0.25 / tracking_duration(CONFIG), rel=0.3)


def test_pick_of_an_object_leaving_the_reach_ends_in_time():
    cell = ConveyorCell([upstream(0.0)])
    out = run(cell, "pick", SkillMemory("left"))
    assert out.code in (SkillResultCode.OUT_OF_REACH, SkillResultCode.VIEW_EMPTY)
    assert not cell.tracking_requests
    assert cell.time_ns < 40e9


def test_pick_from_a_conveyor_without_speed_reports_it():
    assert (
        run(ConveyorCell([upstream(0.2)], reported_speed=math.nan), "pick", SkillMemory("left")).code
        is SkillResultCode.CONVEYOR_UNKNOWN
    )


@pytest.mark.parametrize("after", range(2, 14))
def test_conveyor_stop_at_any_time_ends_the_pick_with_a_code(after):
    cell, memory = ConveyorCell([upstream(0.25)], stops_after=after), SkillMemory("left")
    out = run(cell, "pick", memory)
    assert out.is_success or out.code in (
        SkillResultCode.CONVEYOR_SPEED_CHANGED,
        SkillResultCode.OUT_OF_REACH,
        SkillResultCode.VIEW_EMPTY,
    )
    assert (memory.grasped_object is not None) == (cell.grasped_object is not None) == out.is_success


def test_conveyor_lanes_are_obstacles_except_while_tracking():
    cell, memory = ConveyorCell([upstream(0.25)]), SkillMemory("left")
    lanes: list[tuple[str, int]] = []
    execute = cell.execute

    def execute_and_store_lanes(request: SkillRequest) -> SkillResult:
        lanes.append((type(request).__name__, len(conveyor_lanes(CONFIG, memory))))
        return execute(request)

    cell.execute = execute_and_store_lanes  # type: ignore[method-assign]
    assert run(cell, "pick", memory).is_success
    assert [count for name, count in lanes if name == "ConveyorTrackingRequest"] == [0]
    assert [count for name, count in lanes if name == "GripperRequest"] == [1]
    assert conveyor_lanes(CONFIG, memory)[0][5] == TOP


def test_object_on_a_stopped_conveyor_is_grasped_as_at_rest():
    cell, memory = ConveyorCell([(0.1, 0.165, TOP)], speed=0.0), SkillMemory("left")
    stack = SkillStack()
    action = stack.start(make_skill("pick", SkillGoal(), CONFIG, 1), cell.context(memory))
    for _ in range(60):
        if isinstance(action, SkillResult | GripperRequest):
            break
        action = stack.on_result(cell.context(memory), cell.execute(action))
    assert "grasp" in [one.name for one in stack.skills]


@pytest.mark.parametrize("after", range(1, 9))
def test_gripper_does_not_descend_to_a_conveyor_that_started(after):
    cell, memory = ConveyorCell([(0.1, 0.165, TOP)], speed=0.0), SkillMemory("left")
    stack, n_requests, lows = SkillStack(), 0, []
    action = stack.start(make_skill("pick", SkillGoal(), CONFIG, 1), cell.context(memory))
    for _ in range(80):
        if isinstance(action, SkillResult):
            break
        if isinstance(action, ArmMotionRequest) and action.is_guarded:
            lows.append((cell.speed, action.conveyor_area))
        if stack.skills[-1].name == "grasp":
            n_requests += 1
            cell.speed = 0.03 if n_requests >= after else 0.0
        action = stack.on_result(cell.context(memory), cell.execute(action))
    assert set(lows) <= {(0.0, "left")}, "it went down to where nothing is any more"
    assert lows or after <= 3  # who carries the way down out watches that field's belt


def test_skill_config_refuses_invalid_conveyors():
    for bad in ((0.0,) * 5, (math.nan, 0.0, 1.0, 0.0, 0.1), (0.0, 0.0, 0.01, 0.0, 0.1), (0.0, 1.0)):
        with pytest.raises(ConfigError, match="conveyor"):
            replace(CONFIG, conveyor_areas=("left",), conveyors=bad)
    with pytest.raises(ConfigError, match="no work area 'lefd'"):
        replace(CONFIG, conveyor_areas=("lefd", "right"))


def test_conveyor_tracking_needs_tool_poses_within_joint_limits():
    high, memory = ConveyorCell([(*upstream(0.3)[:2], TOP + 0.1)]), SkillMemory("left")
    assert not run(high, "pick", memory).is_success
    assert memory.recoveries > 0
    assert not high.tracking_requests
