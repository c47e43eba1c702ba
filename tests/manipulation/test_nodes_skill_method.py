"""Methods of the skill server: registered ones load with their settings, and one of a user's own runs its skills."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import pytest
from tests.harness.arms import ArmCell

from roboyard.bringup.joint_groups import load_joint_groups
from roboyard.bus import NodeError
from roboyard.config import load, parameter
from roboyard.errors import ConfigError
from roboyard.manipulation import errors
from roboyard.manipulation.nodes.skill_executor import (
    CODE_BY_DETECTION_ERROR,
    CODE_BY_MOTION_ERROR,
    CollisionAwareSkillMethodConfig,
)
from roboyard.manipulation.nodes.skill_method import SKILL_METHODS, SkillMethod, SkillMethodConfig, SkillServerContext
from roboyard.manipulation.nodes.skills import SkillServerNode, SkillServerNodeConfig
from roboyard.manipulation.nodes.thesis_method import ThesisSkillMethodConfig
from roboyard.manipulation.skills import (
    SUCCESS,
    DelayRequest,
    Skill,
    SkillContext,
    SkillGoal,
    SkillRequest,
    SkillResult,
    SkillResultCode,
    phase,
)
from roboyard.manipulation.skills.requests import REQUEST_FAILURES, ArmMotionRequest, DetectDiscsRequest
from roboyard.manipulation.skills.skill import NextAction
from roboyard.messages import action
from roboyard.vision.nodes import DiscDetectorNode


def test_methods_load_by_their_type_with_their_settings() -> None:
    config = load(SkillServerNodeConfig, {"method": {"type": "thesis", "focal_length": 554.3}})
    assert isinstance(config.method, ThesisSkillMethodConfig)
    assert config.method.focal_length == 554.3
    assert isinstance(SkillServerNodeConfig().method, CollisionAwareSkillMethodConfig)
    for name in SKILL_METHODS.names():
        assert load(SkillServerNodeConfig, {"method": {"type": name}}).method == SKILL_METHODS[name]()


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ({"type": "theses"}, "method.type.*thesis"),
        ({"type": "thesis", "contact_force": 3.0}, "contact_force"),
        ({"focal_length": 500.0}, "type"),
        ({"type": "collision_aware", "contact_force": -1.0}, "method.contact_force"),
    ],
)
def test_wrong_methods_and_settings_are_refused(method: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load(SkillServerNodeConfig, {"method": method})


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (ThesisSkillMethodConfig(view_azimuths=(1.0,)), "1 view azimuths.*one for each of 2 work areas"),
        (CollisionAwareSkillMethodConfig(conveyor_topics=("a", "b")), "2 topics for 0 conveyors"),
    ],
)
def test_methods_that_do_not_fit_the_skills_are_refused(method: SkillMethodConfig, message: str) -> None:
    with ArmCell("youbot_arm", ("joint_states", "robot_state")) as cell, pytest.raises(NodeError, match=message):
        cell.run.add_node(SkillServerNode(groups=load_joint_groups("youbot_arm"), method=method), "skills")


# -- a method of one's own ---------------------------------------------------------------------------------------------
@dataclass
class BlinkSkill(Skill):
    """Wait, a number of times."""

    name = "blink"
    n_left: int = 2

    @phase
    def _start(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase("wait", DelayRequest(0.1))

    @phase(on_failure="return")
    def _wait(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        self.n_left -= 1
        return self._start(context, SUCCESS) if self.n_left else SUCCESS


class DelayExecutor:
    """Executes delays; it ends a request when the server updates it the next time."""

    def __init__(self, server: SkillServerContext) -> None:
        self.is_holding = False
        self.n_started = 0
        self._server, self._request = server, False

    def start(self, request: SkillRequest) -> SkillResult | None:
        assert isinstance(request, DelayRequest)
        self.n_started, self._request = self.n_started + 1, True
        return None

    def cancel(self, result: SkillResult) -> None:
        self._request = False
        self._server.on_result(result)

    def update(self) -> None:
        if self._request:
            self._request = False
            self._server.on_result(SUCCESS)

    def save_state(self) -> dict[str, Any]:
        return {"request": self._request}

    def load_state(self, saved: dict[str, Any]) -> None:
        self._request = saved["request"]


class BlinkMethod(SkillMethod):
    """One skill."""

    skill_names = ("blink",)

    def __init__(self, server: SkillServerContext) -> None:
        self.executor: DelayExecutor = DelayExecutor(server)

    def create_skill(self, name: str, goal: SkillGoal) -> Skill:
        return BlinkSkill(goal.n_objects)

    def create_finish_skill(self, result: SkillResult) -> Skill:
        return BlinkSkill(1)

    def extend_context(self, context: SkillContext) -> SkillContext:
        return context


@dataclass(frozen=True, kw_only=True)
class BlinkConfig(SkillMethodConfig):
    """Blink."""

    type: str = parameter("blink", doc="Name of the method.")

    def make_method(self, server: SkillServerContext) -> SkillMethod:
        return BlinkMethod(server)


def test_a_method_of_ones_own_runs_its_skills() -> None:
    with ArmCell("youbot_arm", ("joint_states", "robot_state")) as cell:
        node: Any = SkillServerNode(groups=load_joint_groups("youbot_arm"), method=BlinkConfig())
        cell.run.add_node(node, "skills")
        result = cell.harness.wait_for(cell.harness.start_goal("/skills/blink", action.RunSkill, objects=3)).result
        assert result.success
        assert node._method.executor.n_started == 3


# -- tables of codes ---------------------------------------------------------------------------------------------------
def _subclasses(base: type) -> list[type]:
    found: list[type] = base.__subclasses__()
    return [*found, *(inner for one in found for inner in _subclasses(one))]


def test_every_cause_of_a_planning_error_has_a_result_code() -> None:
    causes = {one.cause for one in _subclasses(errors.PlanningError)} - {errors.PlanningError.cause}  # type: ignore[attr-defined]
    assert causes <= set(CODE_BY_MOTION_ERROR)
    others = {SkillResultCode.CANCELLED, SkillResultCode.PREEMPTED}
    assert set(CODE_BY_MOTION_ERROR.values()) - others <= set(REQUEST_FAILURES[ArmMotionRequest])


def test_every_error_code_of_a_detection_has_a_result_code() -> None:
    comment = " ".join((inspect.getdoc(DiscDetectorNode) or "").split())
    listed = comment.split("Causes for which a request ends without positions: ")[1].split(".")[0].split(", ")
    assert set(listed) == set(CODE_BY_DETECTION_ERROR)
    others = {SkillResultCode.CANCELLED}
    assert set(CODE_BY_DETECTION_ERROR.values()) - others <= set(REQUEST_FAILURES[DetectDiscsRequest])
