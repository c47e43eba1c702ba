"""The thesis's skills: in a simulated cell they do what its listings do, end for any results, and can be saved."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roboyard.errors import ConfigError, InputError
from roboyard.manipulation.skills import (
    SUCCESS,
    ArmGeometry,
    DelayRequest,
    GripperRequest,
    SkillConfig,
    SkillMemory,
    SkillRequest,
    SkillResult,
    SkillResultCode,
    SkillStack,
    TargetDetection,
)

from roboyard.manipulation.skills import Skill, SkillGoal, to_dict, skill_from_dict  # isort: skip

from roboyard.bringup.joint_groups import load_joint_groups
from roboyard.manipulation.nodes.thesis_method import ThesisSkillMethodConfig
from roboyard.manipulation.skills.thesis_control import REST_POSE, ThesisConfig, ThesisJointScale, solve_point_down_ik
from roboyard.manipulation.skills.thesis_skills import (
    THESIS_SKILL_NAMES,
    ThesisContext,
    ThesisDetectRequest,
    ThesisFinishSkill,
    ThesisJointRequest,
    ThesisStopRequest,
    detections_on_places,
    make_thesis_skill,
    median_filter,
)
from roboyard.scenarios import load_scenario
from roboyard.scenarios.snapshot_file import decode_snapshot, encode_snapshot

GROUPS = load_joint_groups("youbot_arm")
BODY = ArmGeometry.create(GROUPS, bay_frames=("bay_1", "bay_2", "bay_3"))
SCALE = ThesisJointScale.from_chain(BODY.chain)
GROUND = -0.032
CONFIG = SkillConfig()


def measured_constants() -> ThesisConfig:
    """Return the constants that were measured on our arm."""
    entry = load_scenario("youbot-pick-place-loop", overrides=("method=thesis-trimmed",)).config.nodes["skills"]
    return ThesisSkillMethodConfig(**_tuples(entry.parameters["method"]))


def _tuples(data: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in data.items()}


@dataclass
class SimulatedThesisCell:
    """A simulated cell in the arm's frame at the view of a work area: objects and places, all ahead [m]."""

    thesis: ThesisConfig
    objects: list[tuple[float, float]]
    places: list[tuple[float, float]]
    is_bay_full: list[bool] = field(default_factory=lambda: [False] * 3)
    degrees: tuple[float, ...] = REST_POSE
    grasped_object: str = ""
    fingers: float = 20.0
    requests: list[SkillRequest] = field(default_factory=list)

    def execute(self, request: SkillRequest) -> SkillResult:
        self.requests.append(request)
        if isinstance(request, ThesisJointRequest):
            self.degrees = tuple(b if math.isnan(a) else a for a, b in zip(request.degrees, self.degrees, strict=True))
        elif isinstance(request, GripperRequest):
            self._grip(1e3 * request.opening)
        elif isinstance(request, ThesisDetectRequest):
            return SkillResult(detections=self._detect(request))
        return SUCCESS

    def _detect(self, request: ThesisDetectRequest) -> tuple[TargetDetection, ...]:
        first = self.degrees[0]
        if first == self.thesis.bay_view_azimuth and max(self.thesis.bay_disc_x) < 300.0:
            rows = zip(self.thesis.bay_disc_x, self.thesis.bay_disc_y, self.is_bay_full, strict=True)
            return tuple(
                TargetDetection((1e-3 * x, 1e-3 * y, 0.0))
                for x, y, full in rows
                if full == (request.polarity == "white")
            )
        positions = self.objects if request.mode == "single" else self.places
        self.degrees = (first, *self.degrees[1:])
        return tuple(
            TargetDetection((0.0, math.hypot(x, y), 0.045 if request.mode == "single" else 0.0)) for x, y in positions
        )

    def _grip(self, opening: float) -> None:
        closing, self.fingers = opening < self.fingers, opening
        bay = self.degrees[0] in self.thesis.bay_azimuths and self.degrees[1] < -20.0
        number = self.thesis.bay_azimuths.index(self.degrees[0]) if bay else -1
        if closing:
            if bay and self.is_bay_full[number]:
                self.is_bay_full[number], self.grasped_object = False, "thing"
            elif not bay and self.objects:
                self.objects.remove(min(self.objects, key=lambda one: math.hypot(*one)))
                self.grasped_object = "thing"
        elif self.grasped_object:
            self.grasped_object = ""
            if bay:
                assert not self.is_bay_full[number], "the bay is full already"
                self.is_bay_full[number] = True
            else:
                self.places.remove(min(self.places, key=lambda one: math.hypot(*one)))

    def context(self, memory: SkillMemory) -> ThesisContext:
        joints = tuple(SCALE.to_joints(self.degrees))
        return ThesisContext(CONFIG, memory, BODY, joints, thesis=self.thesis, floor_height=GROUND)


def run(
    cell: SimulatedThesisCell, skill: Skill, results: list[SkillResult] | None = None, max_requests: int = 5000
) -> tuple[SkillResult | None, list[Any], SkillMemory]:
    """Return the result of a skill (None: not within ``max_requests``), its events and the memory."""
    memory, stack, failures = SkillMemory("left"), SkillStack(), list(results or [])
    action = stack.start(skill, cell.context(memory))
    for _ in range(max_requests):
        if isinstance(action, SkillResult):
            return action, stack.events, memory
        assert isinstance(
            action, ThesisDetectRequest | ThesisJointRequest | GripperRequest | ThesisStopRequest | DelayRequest
        )
        result = cell.execute(action)
        action = stack.on_result(cell.context(memory), failures.pop(0) if failures else result)
    return None, stack.events, memory


def test_thesis_loop_moves_all_objects() -> None:
    cell = SimulatedThesisCell(
        measured_constants(), [(0.05, 0.2), (-0.1, 0.2), (0.0, 0.15), (0.1, 0.1)], [(0.0, 0.2)] * 4
    )
    outcome, events, memory = run(cell, make_thesis_skill("loop", SkillGoal(n_objects=4), CONFIG, 3))
    assert outcome is not None
    assert outcome.is_success
    assert not cell.objects
    assert not cell.places
    assert memory.bay_states == [0, 0, 0]
    finished_skills = [one.skill for one in events if one.kind == "finished" and one.result.is_success]
    assert finished_skills.count("pick") == finished_skills.count("stow") == finished_skills.count("place") == 4
    assert cell.degrees == REST_POSE
    stowed = [one.result.bay for one in events if one.kind == "finished" and one.skill == "stow"]
    assert stowed == [3, 2, 1, 3]  # the last that is empty


def test_thesis_loop_places_an_earlier_load_first() -> None:
    cell = SimulatedThesisCell(measured_constants(), [(0.0, 0.2)], [(0.0, 0.2)] * 2, is_bay_full=[True, False, True])
    _, events, _ = run(cell, make_thesis_skill("loop", SkillGoal(n_objects=2), CONFIG, 3))
    assert [one.skill for one in events if one.kind == "started"][:3] == ["loop", "check_load", "unstow"]
    assert cell.is_bay_full == [False, False, False]


def test_thesis_loop_order_depends_on_the_load() -> None:
    for loaded, order in (([True] * 3, "place"), ([True, True, False], "pick")):
        cell = SimulatedThesisCell(measured_constants(), [], [], is_bay_full=list(loaded))
        memory, stack = SkillMemory("left"), SkillStack()
        loop = make_thesis_skill("loop", SkillGoal(), CONFIG, 3)
        action = stack.start(loop, cell.context(memory))
        orders: list[str] = []
        while len(orders) < 2 and not isinstance(action, SkillResult):
            action = stack.on_result(cell.context(memory), cell.execute(action))
            if any(one.kind == "finished" and one.skill == "put_back" for one in stack.events):
                orders.append(loop.order)  # type: ignore[attr-defined]
            stack.events.clear()
        assert orders == [order] * 2
        assert cell.is_bay_full == loaded


def test_thesis_loop_without_known_bays_ends_at_rest() -> None:
    cell = SimulatedThesisCell(measured_constants(), [(0.0, 0.2)], [])
    cell.thesis = ThesisConfig(bay_disc_x=(900.0,) * 3, bay_disc_y=(900.0,) * 3)
    cell.is_bay_full = [False] * 3
    outcome, _, _ = run(cell, make_thesis_skill("loop", SkillGoal(), CONFIG, 3))
    assert outcome is not None
    assert outcome.code is SkillResultCode.VIEW_EMPTY
    assert sum(isinstance(one, ThesisDetectRequest) for one in cell.requests) == 12  # six looks for each colour
    assert cell.degrees == REST_POSE


@settings(max_examples=60, deadline=None)
@given(data=st.data(), name=st.sampled_from(["align", "check_load", "pick", "place", "stow", "unstow"]))
def test_thesis_skills_end_for_any_results_and_copies_continue(data: Any, name: str) -> None:
    causes = st.sampled_from(
        [SkillResultCode.SUCCESS, SkillResultCode.SUCCESS, SkillResultCode.TIMED_OUT, SkillResultCode.CAMERA_SILENT]
    )
    place = st.tuples(st.floats(-0.3, 0.3), st.floats(-0.1, 0.4), st.floats(-0.02, 0.06))
    detections = st.lists(place.map(TargetDetection), max_size=3).map(tuple)
    memory, stack = SkillMemory("left"), SkillStack()
    cell = SimulatedThesisCell(measured_constants(), [], [])
    action = stack.start(make_thesis_skill(name, SkillGoal(bay=2), CONFIG, 3), cell.context(memory))
    for _ in range(2000):
        if isinstance(action, SkillResult):
            return
        other = SkillStack()
        text, block = encode_snapshot([to_dict(one) for one in stack.skills])
        other.skills = [skill_from_dict(one) for one in decode_snapshot(text, block)]
        copied_memory = copy.deepcopy(memory)
        result = SkillResult(data.draw(causes), detections=data.draw(detections))
        action = stack.on_result(cell.context(memory), result)
        assert repr(other.on_result(cell.context(copied_memory), result)) == repr(
            action
        )  # repr: a NaN is another's equal
        assert copied_memory == memory
    assert name == "align"  # which may hunt, for 450 pictures
    raise AssertionError("it does not end")


def test_thesis_loop_ends_when_the_camera_is_silent() -> None:
    class Dark(SimulatedThesisCell):
        def execute(self, request: SkillRequest) -> SkillResult:
            found = super().execute(request)
            blind = isinstance(request, ThesisDetectRequest) and self.degrees[0] != self.thesis.bay_view_azimuth
            return SkillResult(SkillResultCode.CAMERA_SILENT, "dark") if blind else found

    outcome, events, _ = run(Dark(measured_constants(), [], []), make_thesis_skill("loop", SkillGoal(), CONFIG, 3))
    assert outcome is not None
    assert outcome.code is SkillResultCode.CAMERA_SILENT
    assert sum(one.kind == "recovered" for one in events) == 2


# -- the formulas ------------------------------------------------------------------------------------------------------
POINT = st.tuples(st.floats(-1.0, 1.0), st.floats(-1.0, 1.0), st.floats(-1.0, 1.0))


@given(st.lists(POINT, max_size=7), st.floats(1e-4, 0.5), st.randoms(use_true_random=False))
def test_median_filter_ignores_order_and_outliers(positions: list[Any], window: float, random: Any) -> None:
    mean = median_filter(positions, window)
    mixed = list(positions)
    random.shuffle(mixed)
    shuffled_mean = median_filter(mixed, window)
    assert (mean is None) == (shuffled_mean is None)
    if mean is not None and shuffled_mean is not None:
        np.testing.assert_allclose(mean, shuffled_mean, atol=1e-9)
        median_index = len(positions) // 2
        for axis in (0, 1):
            assert abs(mean[axis] - sorted(one[axis] for one in positions)[median_index]) < window
    one = (0.1, 0.2, 0.3)
    np.testing.assert_allclose(median_filter([one] * 5, window) or (0, 0, 0), one, rtol=1e-12)


def test_on_places_keeps_objects_on_the_nearest_place() -> None:
    objects = [
        TargetDetection((0.0, 0.2, 0.045)),
        TargetDetection((0.1, 0.2, 0.045)),
        TargetDetection((0.004, 0.204, 0.045)),
    ]
    places = [TargetDetection((0.0, 0.2, 0.0)), TargetDetection((0.1, 0.2, 0.0))]
    assert detections_on_places(objects, places, 0.005) == (objects[2],)
    assert detections_on_places(objects, places[1:], 0.005) == (objects[1],)
    assert detections_on_places(objects, [], 0.005) == ()


@given(st.floats(-160.0, 160.0), st.floats(-0.2, 0.2), st.floats(0.1, 0.3))
def test_places_in_the_arm_frame_turn_with_the_first_joint(azimuth: float, right: float, forward: float) -> None:
    joints = tuple(SCALE.to_joints((azimuth, *solve_point_down_ik(200.0, 30.0, as_programmed=False), 0.0)))
    context = ThesisContext(CONFIG, SkillMemory("left"), BODY, joints, floor_height=GROUND)
    x, y, z = context.to_root_frame((0.0, forward, 0.1)) or (0, 0, 0)
    u, v, _ = BODY.tool_position(joints)
    axis_position = BODY.T_root_base @ BODY.base_axis_position
    np.testing.assert_allclose(
        math.atan2(y - axis_position[1], x - axis_position[0]),
        math.atan2(v - axis_position[1], u - axis_position[0]),
        atol=1e-9,
    )
    assert z == pytest.approx(GROUND + 0.1)
    # to the right of the arm is where a growing first joint turns it
    place = context.to_root_frame((right, forward, 0.0))
    rotated_joints = tuple(SCALE.to_joints((azimuth + math.degrees(math.atan2(right, forward)), 0.0, 0.0, 0.0, 0.0)))
    expected = ThesisContext(CONFIG, SkillMemory("left"), BODY, rotated_joints, floor_height=GROUND).to_root_frame(
        (0.0, math.hypot(right, forward), 0.0)
    )
    if abs(azimuth + math.degrees(math.atan2(right, forward))) < 169.0:
        np.testing.assert_allclose(place, expected, atol=2e-4)  # its scale is not 1 to 1: 338 degrees are 334


def test_measured_thesis_constants_fit_the_arm() -> None:
    thesis = measured_constants()
    for bay in (1, 2, 3):
        joints = SCALE.to_joints(thesis.bay_angles(bay))
        x, y, z = BODY.tool_position(joints)
        u, v, floor = BODY.bay_position(bay)
        assert math.hypot(x - u, y - v) < 0.0025
        assert abs(z - floor - 0.030) < 0.001  # where the grip is of a thing of 45 mm that is held 15 mm below its top
        view_joints = tuple(SCALE.to_joints(thesis.view_angles(thesis.bay_view_azimuth)))
        bay_disc = (1e-3 * thesis.bay_disc_x[bay - 1], 1e-3 * thesis.bay_disc_y[bay - 1], 0.0)
        found = ThesisContext(CONFIG, SkillMemory("left"), BODY, view_joints, floor_height=GROUND).to_root_frame(
            bay_disc
        )
        assert found is not None
        assert math.dist(found, BODY.bay_position(bay)) < 0.004
    for out, height in ((170.0, 20.0), (250.0, 40.0)):
        joints = SCALE.to_joints((0.0, *solve_point_down_ik(out, height, as_programmed=thesis.as_programmed), 0.0))
        x, _, z = BODY.tool_position(joints)
        assert x - 0.024 == pytest.approx(1e-3 * out, abs=0.002)
        assert z - GROUND == pytest.approx(1e-3 * (height + 10.0), abs=0.001)


def test_thesis_skills_refuse_bad_goals_and_settings() -> None:
    for name, goal in (
        ("jump", SkillGoal()),
        ("pick", SkillGoal(work_area="up")),
        ("stow", SkillGoal(bay=4)),
        ("unstow", SkillGoal()),
    ):
        with pytest.raises(InputError):
            make_thesis_skill(name, goal, CONFIG, 3)
    for name in THESIS_SKILL_NAMES:
        make_thesis_skill(name, SkillGoal(bay=1), CONFIG, 3)
    with pytest.raises(ConfigError):
        ThesisConfig(bay_disc_x=(1.0,))
    assert isinstance(
        skill_from_dict(to_dict(ThesisFinishSkill(SkillResult(SkillResultCode.CANCELLED)))), ThesisFinishSkill
    )
