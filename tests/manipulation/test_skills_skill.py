"""Skills in a simulated cell: they do their tasks, end for any results, and open the gripper only at a release."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roboyard.bringup.joint_groups import load_joint_groups
from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.kinematics.ik import solve_ik
from roboyard.manipulation.skills import (
    SUCCESS,
    ArmGeometry,
    ArmMotionRequest,
    DelayRequest,
    DetectDiscsRequest,
    DriveRequest,
    FinishSkill,
    GripperRequest,
    JointTarget,
    NamedTarget,
    Point,
    SceneUpdateRequest,
    Skill,
    SkillConfig,
    SkillContext,
    SkillGoal,
    SkillMemory,
    SkillRequest,
    SkillResult,
    SkillResultCode,
    SkillStack,
    TargetDetection,
    ToolTarget,
    make_skill,
    skill_from_dict,
    to_dict,
)
from roboyard.manipulation.skills.arm_geometry import compute_finger_clearance, feasible_yaws
from roboyard.scenarios.snapshot_file import decode_snapshot, encode_snapshot

GROUPS = load_joint_groups("youbot_arm")
POSES = {name: GROUPS.group().poses[name] for name in ("view", "rest", "upright", "pick")}
GROUND = -0.032
BAYS = tuple((0.024 + 0.223 * math.cos(a), 0.223 * math.sin(a), GROUND) for a in np.radians((165.0, 150.0, 135.0)))
BARE = ArmGeometry.create(GROUPS)
BODY = ArmGeometry(BARE.chain, BARE.T_root_base, {**POSES, "load_check": POSES["upright"]}, BAYS)
CONFIG = SkillConfig(view_azimuths=(2.1642, 3.735), wait_timeout=6.0)
HEIGHT = CONFIG.object_height


@dataclass
class SimulatedCell:
    """A simulated cell with objects and places that executes the requests of skills.

    ``faults`` are taken one by one: each replaces an answer.
    """

    objects: list[Point]
    places: list[Point] = field(default_factory=list)
    config: SkillConfig = CONFIG
    heavy: list[Point] = field(default_factory=list)
    unreachable_bays: tuple[int, ...] = ()
    grasped_object: Point | None = None
    joints: tuple[float, ...] = POSES["view"]
    tool_position: Point = (0.0, 0.0, 0.5)
    work_area: str = "left"
    waited_time: float = 0.0
    requests: list[SkillRequest] = field(default_factory=list)

    def area_of(self, point: Point) -> str:
        """Return the work area of a point."""
        return "left" if point[1] > 0.0 else "right"

    def execute(self, request: SkillRequest) -> SkillResult:
        self.requests.append(request)
        match request:
            case DetectDiscsRequest(polarity, mode, _):
                return self._detect(polarity, mode)
            case ArmMotionRequest():
                return self._move(request)
            case GripperRequest(opening, _):
                return self._grip(opening)
            case DelayRequest(seconds):
                self.waited_time += seconds
            case DriveRequest(place):
                self.work_area = place or self.work_area
            case SceneUpdateRequest():
                pass
        return SUCCESS

    def _detect(self, polarity: str, mode: str) -> SkillResult:
        if mode == "pair":
            detections = [
                TargetDetection(one, 0.02, 0.052) for one in self.places if self.area_of(one) == self.work_area
            ]
        elif polarity == "white":
            detections = [
                TargetDetection(one, 0.02)
                for one in self.objects
                if self.area_of(one) == self.work_area or one[0] < -0.05
            ]
        else:
            empty = [bay for bay in BAYS if all(math.dist(bay[:2], one[:2]) > 0.01 for one in self.objects)]
            detections = [TargetDetection(one, 0.02) for one in empty]
        detections.sort(key=lambda one: math.dist(one.position, (0.0, 0.0, 0.0)))
        return (
            SkillResult(detections=tuple(detections))
            if detections
            else SkillResult(SkillResultCode.VIEW_EMPTY, "nothing")
        )

    def _move(self, request: ArmMotionRequest) -> SkillResult:
        for target in request.targets:
            match target:
                case NamedTarget(name):
                    self.joints, self.tool_position = tuple(BODY.poses[name]), (0.0, 0.0, 0.5)
                case JointTarget(values):
                    self.joints, self.tool_position = values, BODY.tool_position(values)
                case ToolTarget(position, yaw):
                    T = BODY.T_root_base.inverse() @ SE3.from_xyz_rpy(position, (math.pi, 0.0, yaw))
                    found = solve_ik(BODY.chain, T, self.joints)
                    bays = [BAYS[k - 1] for k in self.unreachable_bays]
                    if not found.is_solved or any(math.dist(position[:2], bay[:2]) < 0.01 for bay in bays):
                        continue
                    if (
                        request.is_holding
                        and self.grasped_object in self.heavy
                        and position[2] > self.tool_position[2] + 0.01
                    ):
                        return SkillResult(SkillResultCode.TOO_HEAVY, "too much for it")
                    self.joints, self.tool_position = tuple(found.best.tolist()), position
            return SUCCESS
        return SkillResult(SkillResultCode.NOT_REACHABLE, "out of reach")

    def _grip(self, opening: float) -> SkillResult:
        x, y, z = self.tool_position
        if opening > 0.02 and self.grasped_object is not None:
            self.objects.append((x, y, z + self.config.grasp_depth))
            self.grasped_object = None
        elif opening < 0.02 and self.grasped_object is None:
            top = (x, y, z + self.config.grasp_depth)
            graspable = [one for one in self.objects if math.dist(one, top) < 0.003]
            if graspable:
                self.grasped_object = graspable[0]
                self.objects.remove(graspable[0])
        return SUCCESS

    def context(self, memory: SkillMemory) -> SkillContext:
        return SkillContext(self.config, memory, BODY, self.joints, self.grasped_object is not None)


def run(cell: SimulatedCell, skill: Skill, memory: SkillMemory, max_requests: int = 5000) -> SkillResult:
    """Run a skill to its end."""
    stack = SkillStack()
    action = stack.start(skill, cell.context(memory))
    for _ in range(max_requests):
        if isinstance(action, SkillResult):
            return action
        result = cell.execute(action)
        action = stack.on_result(cell.context(memory), result)
    raise AssertionError("it does not end")


def disc_at(radius: float, azimuth: float) -> Point:
    """Return the disc of an object at a distance and azimuth from the first joint's axis."""
    x, y = 0.024 + radius * math.cos(azimuth), radius * math.sin(azimuth)
    return x, y, GROUND + HEIGHT


def create_skill(name: str, **goal: Any) -> Skill:
    return make_skill(name, SkillGoal(**goal), CONFIG, 3)


# -- what they are for -------------------------------------------------------------------------------------------------
def test_pick_takes_the_nearest_object() -> None:
    cell, memory = SimulatedCell([disc_at(0.26, 0.9), disc_at(0.22, 0.6)]), SkillMemory("left")
    assert run(cell, create_skill("pick"), memory).is_success
    assert cell.grasped_object == disc_at(0.22, 0.6)
    assert memory.grasped_object is not None
    assert memory.grasped_object.origin == pytest.approx(disc_at(0.22, 0.6))


def test_picked_object_is_stowed_unstowed_and_placed() -> None:
    place = (*disc_at(0.25, -0.7)[:2], GROUND)
    cell, memory = SimulatedCell([disc_at(0.24, 0.7)], [place]), SkillMemory("left")
    for name in ("pick", "stow"):
        assert run(cell, create_skill(name), memory).is_success
    assert memory.bay_states == [1, 0, 0]
    assert math.dist(cell.objects[0][:2], BAYS[0][:2]) < 1e-6
    assert run(cell, create_skill("unstow"), memory).is_success
    assert memory.bay_states == [0, 0, 0]
    cell.work_area = memory.work_area = "right"
    assert run(cell, create_skill("place"), memory).is_success
    assert math.dist(cell.objects[0][:2], place[:2]) < 1e-6
    assert abs(cell.objects[0][2] - HEIGHT - GROUND - CONFIG.release_height) < 1e-6


def test_loop_moves_all_objects_and_ends_at_rest() -> None:
    config = replace(CONFIG, pick_area="left", place_area="right")
    objects = [disc_at(0.2 + 0.025 * (k % 3), 0.35 + 0.2 * k) for k in range(6)]
    places = [(*disc_at(0.2 + 0.025 * (k % 3), -0.35 - 0.2 * k)[:2], GROUND) for k in range(6)]
    cell, memory = SimulatedCell(objects, places, config), SkillMemory("left")
    out = run(cell, make_skill("loop", SkillGoal(n_objects=6), config, 3), memory)
    assert out.is_success
    assert memory.recoveries == 0
    for place in places:
        assert min(math.dist(place[:2], one[:2]) for one in cell.objects) < 1e-6
    assert cell.joints == tuple(POSES["rest"])
    assert cell.grasped_object is None


def test_loop_with_full_load_and_no_free_place_waits() -> None:
    config = replace(CONFIG, pick_area="left", place_area="right")
    cell, memory = (
        SimulatedCell([disc_at(0.2 + 0.02 * k, 0.4 + 0.2 * k) for k in range(4)], [], config),
        SkillMemory("left"),
    )
    stack, n_drives = SkillStack(), 0
    action = stack.start(make_skill("loop", SkillGoal(), config, 3), cell.context(memory))
    for _ in range(700):
        assert not isinstance(action, SkillResult)
        n_drives += isinstance(action, DriveRequest)
        result = cell.execute(action)
        action = stack.on_result(cell.context(memory), result)
    assert memory.bay_states == [1, 1, 1]
    assert cell.waited_time > 20.0 * n_drives / 10.0  # minutes of waiting, not of driving


# -- on wheels ---------------------------------------------------------------------------------------------------------
@dataclass
class MobileCell(SimulatedCell):
    """The simulated cell with a robot that drives: positions of objects change as it moves.

    ``drive_errors`` is how far a drive to each field misses it, ``blocked`` counts drives that fail first.
    """

    work_area: str = ""
    drive_errors: dict[str, tuple[float, float]] = field(default_factory=dict)
    base_offset: tuple[float, float] = (0.0, 0.0)
    blocked: int = 0
    drives: list[DriveRequest] = field(default_factory=list)

    def execute(self, request: SkillRequest) -> SkillResult:
        if not isinstance(request, DriveRequest):
            return super().execute(request)
        assert self.grasped_object is None
        self.drives.append(request)
        if self.blocked:
            self.blocked -= 1
            return SkillResult(SkillResultCode.NOT_FOLLOWED, "something is in the way")
        x, y = self.drive_errors.get(request.area, (0.0, 0.0)) if request.area else (0.0, 0.0)
        self._move_base(request.offset[0] + x, request.offset[1] + y, request.area)
        self.work_area = request.area or self.work_area
        return SUCCESS

    def _move_base(self, x: float, y: float, place: str) -> None:
        """Move the objects of the work areas to their positions seen from the robot's new pose."""
        u, v = self.base_offset if not place else (0.0, 0.0)
        new_offset = (u + x, v + y)
        dx, dy = new_offset[0] - self.base_offset[0], new_offset[1] - self.base_offset[1]
        self.base_offset = new_offset
        stored_objects = [one for one in self.objects if any(math.dist(one[:2], bay[:2]) < 0.02 for bay in BAYS)]
        standing_objects = [one for one in self.objects if one not in stored_objects]
        self.objects = [*stored_objects, *((a - dx, b - dy, c) for a, b, c in standing_objects)]
        self.places = [(a - dx, b - dy, c) for a, b, c in self.places]


DRIVING = replace(CONFIG, is_mobile=True, pick_area="left", place_area="right", reach_range=(0.19, 0.27))


@settings(max_examples=8, deadline=None)
@given(st.floats(-0.15, 0.10), st.floats(-0.04, 0.04), st.integers(0, 3))
def test_loop_corrects_a_misplaced_base_and_delivers(x: float, y: float, blocked: int) -> None:
    objects = [disc_at(0.23 + 0.01 * (k % 2), 0.7 + 0.25 * k) for k in range(3)]
    places = [(*disc_at(0.23 + 0.01 * (k % 2), -0.7 - 0.25 * k)[:2], GROUND) for k in range(3)]
    wheels = MobileCell(objects, places, DRIVING, drive_errors={"left": (x, y), "right": (x, -y)}, blocked=blocked)
    out = run(wheels, make_skill("loop", SkillGoal(n_objects=3), DRIVING, 3), SkillMemory(""))
    assert out.is_success
    for place in wheels.places:
        assert min(math.dist(place[:2], one[:2]) for one in wheels.objects) < 1e-6
    assert wheels.grasped_object is None
    assert wheels.work_area == "start_end"


def test_loop_approaches_and_leaves_work_areas_by_approach_poses() -> None:
    wheels = MobileCell([disc_at(0.24, 0.7)], [(*disc_at(0.24, -0.7)[:2], GROUND)], DRIVING)
    assert run(wheels, make_skill("loop", SkillGoal(n_objects=1), DRIVING, 3), SkillMemory("")).is_success
    back = (-DRIVING.approach_distance, 0.0)
    to = [(DriveRequest(name, back), DriveRequest(name)) for name in ("left", "right")]
    assert [drive for drive in wheels.drives if drive.area or drive.offset == back] == [
        *to[0], DriveRequest(offset=back), *to[1], DriveRequest(offset=back), DriveRequest("start_end")
    ]  # fmt: skip


def test_loop_gives_up_an_unreachable_work_area_with_its_code() -> None:
    wheels = MobileCell([disc_at(0.24, 0.7)], [], DRIVING, blocked=10**6)
    stack, memory, waits = SkillStack(), SkillMemory(""), 0
    action = stack.start(make_skill("loop", SkillGoal(n_objects=1), DRIVING, 3), wheels.context(memory))
    while waits < 2:
        assert not isinstance(action, SkillResult)
        waits += isinstance(action, DelayRequest) and action.duration == DRIVING.idle_time
        action = stack.on_result(wheels.context(memory), wheels.execute(action))
    assert len(wheels.drives) < 2 * 2 * (DRIVING.max_attempts + 1) ** 2
    causes = {one.result.code for one in stack.events if one.kind == "recovered"}
    assert causes == {SkillResultCode.NOT_FOLLOWED}


def test_loop_leaves_an_object_that_driving_brings_no_nearer() -> None:
    class Stuck(MobileCell):
        def _move_base(self, x: float, y: float, place: str) -> None:
            """Do not move."""

    stuck = Stuck([disc_at(0.45, 0.7)], [], DRIVING)
    stack, memory = SkillStack(), SkillMemory("")
    action = stack.start(make_skill("loop", SkillGoal(n_objects=1), DRIVING, 3), stuck.context(memory))
    while not (isinstance(action, DelayRequest) and action.duration == DRIVING.idle_time):
        assert not isinstance(action, SkillResult)
        action = stack.on_result(stuck.context(memory), stuck.execute(action))
    assert 0 < sum(not drive.area and drive.offset != (-DRIVING.approach_distance, 0.0) for drive in stuck.drives) <= 30


# -- when something goes wrong -----------------------------------------------------------------------------------------
def test_pick_in_an_empty_view_reports_it() -> None:
    out = run(SimulatedCell([]), create_skill("pick"), SkillMemory("left"))
    assert out.is_empty
    assert not out.is_success


def test_pick_detects_again_when_the_object_disappears() -> None:
    cell, memory = SimulatedCell([disc_at(0.22, 0.6), disc_at(0.26, 0.9)]), SkillMemory("left")

    class CellWithRemoval(SimulatedCell):
        def _grip(self, opening: float) -> SkillResult:
            if opening < 0.02 and len(self.objects) == 2:
                self.objects.remove(disc_at(0.22, 0.6))
            return super()._grip(opening)

    removal_cell = CellWithRemoval(cell.objects)
    out = run(removal_cell, create_skill("pick"), memory)
    assert out.is_success
    assert removal_cell.grasped_object == disc_at(0.26, 0.9)
    assert out.recoveries == 1


def test_pick_puts_too_heavy_objects_down_and_avoids_them() -> None:
    heavy, light = disc_at(0.22, 0.6), disc_at(0.26, 0.9)
    cell, memory = SimulatedCell([heavy, light], heavy=[heavy]), SkillMemory("left")
    assert run(cell, create_skill("pick"), memory).is_success
    assert cell.grasped_object == light
    assert math.dist(cell.objects[0], heavy) < 0.003
    run(cell, create_skill("stow"), memory)
    assert run(cell, create_skill("pick"), memory).is_empty  # it does not try again


def test_stow_skips_unreachable_bays_and_fails_without_any() -> None:
    cell, memory = SimulatedCell([disc_at(0.22, 0.6)], unreachable_bays=(1,)), SkillMemory("left")
    run(cell, create_skill("pick"), memory)
    assert run(cell, create_skill("stow"), memory).bay == 2
    cell, memory = SimulatedCell([disc_at(0.22, 0.6)], unreachable_bays=(1, 2, 3)), SkillMemory("left")
    run(cell, create_skill("pick"), memory)
    out = run(cell, create_skill("stow"), memory)
    assert out.code in (SkillResultCode.NOT_REACHABLE, SkillResultCode.BAY_FULL)
    assert cell.grasped_object is not None
    run(cell, FinishSkill(), memory)
    assert math.dist(cell.objects[0], disc_at(0.22, 0.6)) < 0.003


def test_loop_without_reachable_bay_puts_back_and_rests() -> None:
    object_disc = disc_at(0.24, 0.7)
    cell, memory = SimulatedCell([object_disc], unreachable_bays=(1, 2, 3)), SkillMemory("left")
    stack = SkillStack()
    action = stack.start(make_skill("loop", SkillGoal(), CONFIG, 3), cell.context(memory))
    while cell.waited_time < 100.0:
        assert not isinstance(action, SkillResult)
        result = cell.execute(action)
        action = stack.on_result(cell.context(memory), result)
    assert sum(one.skill == "pick" and one.kind == "started" for one in stack.events) == 1
    assert cell.objects[0][:2] == pytest.approx(object_disc[:2], abs=1e-6)
    assert {one.result.code for one in stack.events if one.skill == "loop"} >= {SkillResultCode.NOT_REACHABLE}


def test_pick_prefers_an_object_with_clearance_for_the_fingers() -> None:
    center = disc_at(0.24, 0.7)
    ring = [
        (center[0] + 0.021 * math.cos(a), center[1] + 0.021 * math.sin(a), center[2])
        for a in np.arange(6) * math.pi / 3
    ]
    assert not feasible_yaws(center, 0.7, ring, CONFIG)
    cell = SimulatedCell([center, *ring, disc_at(0.26, 1.2)])
    assert run(cell, create_skill("pick"), SkillMemory("left")).is_success
    assert cell.grasped_object == disc_at(0.26, 1.2)


def test_place_skips_an_occupied_place() -> None:
    occupied_place, free_place = (*disc_at(0.20, -0.7)[:2], GROUND), (*disc_at(0.26, -0.9)[:2], GROUND)
    cell, memory = SimulatedCell([disc_at(0.24, 0.7)], [occupied_place, free_place]), SkillMemory("left")
    run(cell, create_skill("pick"), memory)
    cell.objects.append((*occupied_place[:2], GROUND + HEIGHT))
    cell.work_area = memory.work_area = "right"
    assert run(cell, create_skill("place"), memory).is_success
    assert math.dist(cell.objects[-1][:2], free_place[:2]) < 1e-6


@pytest.mark.parametrize("stops", range(1, 30, 4))
def test_skills_end_when_the_arm_is_canceled(stops: int) -> None:
    """There is no further request, and a held object stays in the gripper."""
    cell, memory, stack = (
        SimulatedCell([disc_at(0.22, 0.6)], [(*disc_at(0.25, -0.7)[:2], GROUND)]),
        SkillMemory("left"),
        SkillStack(),
    )
    action = stack.start(create_skill("loop"), cell.context(memory))
    for _ in range(stops):
        assert not isinstance(action, SkillResult)
        result = cell.execute(action)
        action = stack.on_result(cell.context(memory), result)
    before = cell.grasped_object
    action = stack.on_result(cell.context(memory), SkillResult(SkillResultCode.CANCELLED, "the arm was stopped"))
    assert isinstance(action, SkillResult)
    assert (action.code, action.message) == (SkillResultCode.CANCELLED, "the arm was stopped")
    assert not stack.is_busy
    assert cell.grasped_object == before


def test_stow_takes_another_bay_after_contact_in_a_full_one() -> None:
    """An object is put into the first bay after the inspection."""

    class Full(SimulatedCell):
        def _move(self, request: ArmMotionRequest) -> SkillResult:
            target = request.targets[0]
            if request.is_guarded and isinstance(target, ToolTarget) and request.is_holding:
                spot = (*target.position[:2], GROUND + HEIGHT)
                if any(math.dist(spot, one) < 0.01 for one in self.objects):
                    return SkillResult(SkillResultCode.BLOCKED, "something is there")
            return super()._move(request)

    cell, memory = Full([disc_at(0.22, 0.6)]), SkillMemory("left")
    assert run(cell, create_skill("pick"), memory).is_success
    assert run(cell, create_skill("check_load"), memory).is_success
    cell.objects.append((*BAYS[0][:2], GROUND + HEIGHT))
    out = run(cell, create_skill("stow"), memory)
    assert out.is_success
    assert out.bay == 2
    assert memory.bay_states == [1, 1, 0]
    assert out.recoveries == 1


# -- the fingers -------------------------------------------------------------------------------------------------------
@dataclass
class StuckGripperCell(SimulatedCell):
    """The simulated cell with fingers that do not open, a number of times from one opening on."""

    first: int = 1
    times: int = 1
    opened: int = 0
    stuck: bool = False

    def execute(self, request: SkillRequest) -> SkillResult:
        is_low = self.tool_position[2] < GROUND + HEIGHT
        assert not (self.stuck and is_low and isinstance(request, ArmMotionRequest)), (
            "the arm moves with an object that the fingers do not release"
        )
        if isinstance(request, GripperRequest) and request.opening > 0.02:
            self.opened += 1
            self.stuck = self.first <= self.opened < self.first + self.times
            if self.stuck:
                self.requests.append(request)
                return SkillResult(SkillResultCode.GRIPPER_STUCK, "they stand 20 mm apart")
        return super().execute(request)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 8), st.integers(1, 3))
def test_arm_waits_until_stuck_fingers_open(first: int, times: int) -> None:
    config = replace(CONFIG, pick_area="left", place_area="right")
    places = [(*disc_at(0.2, -0.7)[:2], GROUND), (*disc_at(0.25, -1.1)[:2], GROUND)]
    cell = StuckGripperCell([disc_at(0.24, 0.7), disc_at(0.2, 1.2)], places, config, first=first, times=times)
    memory = SkillMemory("left")
    run(cell, make_skill("loop", SkillGoal(n_objects=1), config, 3), memory)
    assert any(min(math.dist(place[:2], one[:2]) for one in cell.objects) < 1e-6 for place in places)


def test_loop_ends_in_place_when_fingers_never_open() -> None:
    cell, memory = StuckGripperCell([disc_at(0.24, 0.7)], [], first=2, times=10**6), SkillMemory("left")
    out = run(cell, make_skill("loop", SkillGoal(), CONFIG, 3), memory)
    assert out.code is SkillResultCode.GRIPPER_STUCK
    assert cell.stuck  # nothing was moved after that


@dataclass
class SlippingCell(SimulatedCell):
    """The simulated cell where the first lift loses its object, which hangs between the fingers."""

    lost: int = 1

    def execute(self, request: SkillRequest) -> SkillResult:
        if isinstance(request, ArmMotionRequest) and request.is_holding and request.is_straight and self.lost:
            self.lost -= 1
            self.requests.append(request)
            return SkillResult(SkillResultCode.LOST, "the gripper says: lost")
        return super().execute(request)


def test_object_lost_while_lifting_is_lowered_before_opening() -> None:
    object_disc = disc_at(0.24, 0.7)
    cell, memory = SlippingCell([object_disc]), SkillMemory("left")
    assert run(cell, create_skill("pick"), memory).is_success
    k = next(
        k for k, request in enumerate(cell.requests) if isinstance(request, ArmMotionRequest) and request.is_holding
    )
    lowering, opening = (
        cell.requests[k + 1],
        next(request for request in cell.requests[k + 1 :] if isinstance(request, GripperRequest)),
    )
    assert isinstance(lowering, ArmMotionRequest)
    assert lowering.is_guarded
    (target,) = lowering.targets
    assert isinstance(target, ToolTarget)
    assert target.position == pytest.approx(
        (*object_disc[:2], object_disc[2] - CONFIG.grasp_depth + CONFIG.release_height)
    )
    assert opening.opening == CONFIG.open_width


@dataclass
class BlockedPathCell(SimulatedCell):
    """The simulated cell where the descent touches an obstacle, and then no straight path leads up."""

    n_contacts: int = 1
    is_path_blocked: bool = False

    def execute(self, request: SkillRequest) -> SkillResult:
        if isinstance(request, ArmMotionRequest) and request.is_guarded and self.n_contacts:
            self.n_contacts, self.is_path_blocked = self.n_contacts - 1, True
            return SkillResult(SkillResultCode.BLOCKED, "8 N along the fingers")
        if isinstance(request, ArmMotionRequest) and self.is_path_blocked:
            if request.is_straight:
                self.requests.append(request)
                return SkillResult(SkillResultCode.IN_COLLISION, "the tool can follow the line for 0 % of it")
            self.is_path_blocked = False
            assert BODY.tool_position(request.targets[0].positions)[2] > GROUND + HEIGHT  # type: ignore[union-attr]
        return super().execute(request)


@pytest.mark.parametrize("is_holding", [False, True])
def test_blocked_descent_without_straight_retreat_goes_back_by_joints(is_holding: bool) -> None:
    place = (*disc_at(0.25, -0.7)[:2], GROUND)
    cell, memory = (
        BlockedPathCell([disc_at(0.24, 0.7)], [place], n_contacts=0 if is_holding else 1),
        SkillMemory("left"),
    )
    assert run(cell, create_skill("pick"), memory).is_success
    if is_holding:
        cell.n_contacts = 1
        assert run(cell, create_skill("stow"), memory).is_success
    assert not cell.is_path_blocked
    assert memory.recoveries == 1


# -- blind -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("code", [SkillResultCode.CAMERA_SILENT, SkillResultCode.NO_DEPTH])
def test_skills_without_camera_end_with_the_code_at_rest(code: SkillResultCode) -> None:
    class Blind(SimulatedCell):
        def _detect(self, polarity: str, mode: str) -> SkillResult:
            return SkillResult(code, "dark")

    for name in ("pick", "check_load", "look"):
        assert run(Blind([disc_at(0.22, 0.6)]), create_skill(name), SkillMemory("left")).code is code
    cell = Blind([disc_at(0.22, 0.6)])
    assert run(cell, create_skill("loop"), SkillMemory("left")).code is code
    assert cell.joints == tuple(POSES["rest"])


@pytest.mark.parametrize(
    ("name", "goal", "message"),
    [
        ("pik", {}, "pick"), ("pick", {"work_area": "middle"}, "left, right"), ("stow", {"bay": 4}, "1 to 3"),
        ("place", {"position": (math.nan, 0.0, 0.0)}, "finite"), ("look", {"polarity": "red"}, "white, black"),
        ("look", {"mode": "triple"}, "single, pair"),
    ],
)  # fmt: skip
def test_skill_goals_out_of_range_are_refused(name: str, goal: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        create_skill(name, **goal)


# -- whatever comes back -----------------------------------------------------------------------------------------------
class RandomExecutor:
    """Returns random results; the fingers may measure an object after they closed."""

    def __init__(self, data: st.DataObject) -> None:
        self.draw, self.is_holding = data.draw, False
        self.joints = tuple(POSES["view"])

    def execute(self, request: SkillRequest) -> SkillResult:
        if isinstance(request, SceneUpdateRequest | DelayRequest):
            return SUCCESS
        good = self.draw(st.integers(0, 3)) > 0
        if isinstance(request, DetectDiscsRequest) and good:
            count = self.draw(st.integers(0, 3))
            spots = [
                disc_at(0.12 + 0.07 * self.draw(st.integers(0, 3)), self.draw(st.integers(-8, 8)) / 5)
                for _ in range(count)
            ]
            found = [*spots, *(bay for bay in BAYS if self.draw(st.booleans()))]
            return (
                SkillResult(detections=tuple(TargetDetection(one) for one in found))
                if found
                else SkillResult(SkillResultCode.VIEW_EMPTY)
            )
        if isinstance(request, GripperRequest):
            self.is_holding = request.opening < 0.02 and self.draw(st.integers(0, 3)) > 0
        if isinstance(request, ArmMotionRequest) and request.is_holding:
            self.is_holding = self.is_holding and self.draw(st.integers(0, 9)) > 0
            if not self.is_holding:
                return SkillResult(SkillResultCode.LOST, "gone")
        if good:
            return SUCCESS
        return SkillResult(
            self.draw(st.sampled_from([cause for cause in SkillResultCode if cause is not SkillResultCode.SUCCESS])),
            "chaos",
        )

    def context(self, memory: SkillMemory) -> SkillContext:
        return SkillContext(CONFIG, memory, BODY, self.joints, self.is_holding)


ONE_BY_ONE = ("look", "align", "check_load", "pick", "place", "stow", "unstow")


def check_grip(stack: SkillStack, action: SkillRequest | SkillResult, is_holding: bool) -> None:
    """Check that fingers that measure an object open only at a release."""
    if isinstance(action, GripperRequest) and action.opening > 0.02 and is_holding:
        skill = stack.skills[-1]
        assert (skill.name, skill.phase) in (
            ("release", "open_gripper"),
            ("grasp", "reopen_gripper"),
            ("grasp", "open_gripper"),
        ) or (skill.name == "recover_start"), (skill.name, skill.phase)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_skills_end_with_a_code_for_any_results(data: st.DataObject) -> None:
    executor, memory = RandomExecutor(data), SkillMemory("left")
    for _ in range(3):
        name = data.draw(st.sampled_from(ONE_BY_ONE))
        stack = SkillStack()
        action = stack.start(create_skill(name), executor.context(memory))
        for _ in range(1500):
            if isinstance(action, SkillResult):
                break
            check_grip(stack, action, executor.is_holding)
            result = executor.execute(action)
            action = stack.on_result(executor.context(memory), result)
        assert isinstance(action, SkillResult), f"{name} does not end"
        assert not stack.skills
        started_ids = [event.skill_id for event in stack.events if event.kind == "started"]
        finished_ids = [event.skill_id for event in stack.events if event.kind == "finished"]
        assert sorted(started_ids) == sorted(finished_ids)


@settings(max_examples=25, deadline=None)
@given(st.data(), st.integers(0, 150))
def test_loop_aborted_at_any_step_finishes(data: st.DataObject, steps: int) -> None:
    executor, memory, stack = RandomExecutor(data), SkillMemory("left"), SkillStack()
    action = stack.start(create_skill("loop"), executor.context(memory))
    for _ in range(steps):
        if isinstance(action, SkillResult):
            break
        check_grip(stack, action, executor.is_holding)
        result = executor.execute(action)
        action = stack.on_result(executor.context(memory), result)
    if stack.skills:
        assert stack.abort(SkillResultCode.CANCELLED, "enough").code is SkillResultCode.CANCELLED
    action = stack.start(FinishSkill(SkillResult(SkillResultCode.CANCELLED)), executor.context(memory))
    for _ in range(200):
        if isinstance(action, SkillResult):
            break
        check_grip(stack, action, executor.is_holding)
        result = executor.execute(action)
        action = stack.on_result(executor.context(memory), result)
    assert isinstance(action, SkillResult)
    assert action.code in (
        SkillResultCode.CANCELLED,
        SkillResultCode.PREEMPTED,
    )  # whoever stops what it does ends that at once


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 120))
def test_loop_restored_from_a_saved_state_continues_equally(steps: int) -> None:
    config = replace(CONFIG, pick_area="left", place_area="right")
    cell = SimulatedCell([disc_at(0.22, 0.6), disc_at(0.26, 0.9)], [(*disc_at(0.25, -0.7)[:2], GROUND)], config)
    memory, stack = SkillMemory("left"), SkillStack()
    action = stack.start(make_skill("loop", SkillGoal(), config, 3), cell.context(memory))
    for _ in range(steps):
        assert not isinstance(action, SkillResult)
        result = cell.execute(action)
        action = stack.on_result(cell.context(memory), result)
    other, memory2, restored_cell = (
        SkillStack(),
        SkillMemory(**decode_snapshot(*encode_snapshot(to_dict(memory)))),
        copy.deepcopy(cell),
    )
    other.skills = [skill_from_dict(decode_snapshot(*encode_snapshot(to_dict(one)))) for one in stack.skills]
    restored_action = action
    for _ in range(60):
        assert action == restored_action
        assert not isinstance(action, SkillResult)
        assert not isinstance(restored_action, SkillResult)
        result = cell.execute(action)
        action = stack.on_result(cell.context(memory), result)
        result = restored_cell.execute(restored_action)
        restored_action = other.on_result(restored_cell.context(memory2), result)
    assert cell.objects == restored_cell.objects
    assert memory == memory2


# -- geometry ----------------------------------------------------------------------------------------------------------
@given(st.floats(-1.4, 1.4), st.floats(0.1, 0.4), st.floats(0.3, 5.5))
def test_joint1_angle_puts_a_point_in_the_arm_plane(bearing: float, radius: float, q1: float) -> None:
    q = np.array([q1, *POSES["view"][1:]])
    plane_azimuth = BODY.azimuth(BODY.tool_position([q1, *POSES["pick"][1:]]))
    point = disc_at(radius, plane_azimuth + bearing)
    new_q1 = q1 + BODY.joint1_angle_to(q, point)
    assert abs(BODY.joint1_angle_to([new_q1, *q[1:]], point)) < 1e-9
    assert abs(new_q1 - q1) == pytest.approx(abs(bearing), abs=1e-6)


@given(st.floats(-3.0, 3.0), st.floats(0.02, 0.1), st.floats(-3.0, 3.0))
def test_finger_clearance_agrees_with_sampled_geometry(yaw: float, distance: float, bearing: float) -> None:
    other = (distance * math.cos(bearing), distance * math.sin(bearing), 0.0)
    clearance = compute_finger_clearance((0.0, 0.0, 0.0), yaw, [other], CONFIG)
    c, s = math.cos(yaw), math.sin(yaw)
    thickness, width = CONFIG.finger_size
    points = [
        (c * x - s * y * side, s * x + c * y * side)
        for x in np.linspace(-width / 2, width / 2, 15)
        for y in np.linspace(CONFIG.open_width / 2, CONFIG.open_width / 2 + thickness, 13)
        for side in (-1.0, 1.0)
    ]
    sampled = min(math.dist(point, other[:2]) for point in points) - CONFIG.object_radius
    assert clearance <= sampled + 1e-9 <= clearance + 1.2e-3
