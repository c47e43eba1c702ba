"""Every registered skill keeps the contract of `Skill`, and `check_skill` finds skills that break it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest
from tests.manipulation.test_skills_skill import BODY, CONFIG, GROUND, SimulatedCell, disc_at
from tests.manipulation.test_skills_thesis_skills import SimulatedThesisCell, measured_constants

from roboyard.errors import InputError
from roboyard.manipulation.skills import (
    SUCCESS,
    ArmMotionRequest,
    DelayRequest,
    GripperRequest,
    NamedTarget,
    Skill,
    SkillContext,
    SkillGoal,
    SkillMemory,
    SkillRequest,
    SkillResult,
    SkillResultCode,
    TargetDetection,
    make_skill,
    phase,
    skill_names,
)
from roboyard.manipulation.skills.conformance import ScriptedCell, check_skill
from roboyard.manipulation.skills.skill import GraspedObject, NextAction, phase_graph
from roboyard.manipulation.skills.thesis_skills import THESIS_SKILL_NAMES, make_thesis_skill

TWO_AREAS = replace(CONFIG, pick_area="left", place_area="right", wait_timeout=2.0, max_attempts=1)
PLACE = (*disc_at(0.25, -0.7)[:2], GROUND)


@dataclass
class Cell:
    """A simulated cell with the memory of its skills."""

    cell: SimulatedCell
    memory: SkillMemory

    def execute(self, request: SkillRequest) -> SkillResult:
        """Execute a request."""
        return self.cell.execute(request)

    def context(self) -> SkillContext:
        """Return the inputs of the next step."""
        return self.cell.context(self.memory)


def make_cell(name: str) -> Cell:
    """Return a cell in which the skill of a name succeeds."""
    cell, memory = SimulatedCell([disc_at(0.22, 0.6)], [PLACE], TWO_AREAS), SkillMemory("left")
    if name in ("place", "stow"):
        cell.grasped_object, cell.objects = cell.objects[0], []
        memory.grasped_object = GraspedObject(cell.grasped_object)
    if name == "place":
        cell.work_area = memory.work_area = "right"
    if name == "unstow":
        cell.objects = [(*BODY.bay_positions[1][:2], GROUND + TWO_AREAS.object_height)]
    return Cell(cell, memory)


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n == "loop" else n for n in skill_names()])
def test_every_registered_skill_conforms(name: str) -> None:
    goal = SkillGoal(n_objects=1 if name == "loop" else 0)
    check_skill(
        lambda: make_skill(name, goal, TWO_AREAS, len(BODY.bay_positions)),
        lambda: make_cell(name),
        is_endless=name == "loop",
    )


@dataclass
class ThesisCell:
    """A simulated cell of the thesis with the memory of its skills."""

    cell: SimulatedThesisCell
    memory: SkillMemory = field(default_factory=lambda: SkillMemory("left"))

    def execute(self, request: SkillRequest) -> SkillResult:
        """Execute a request."""
        return self.cell.execute(request)

    def context(self) -> SkillContext:
        """Return the inputs of the next step."""
        return self.cell.context(self.memory)


@pytest.mark.parametrize("name", THESIS_SKILL_NAMES)
def test_every_skill_of_the_thesis_conforms(name: str) -> None:
    thesis = measured_constants()

    def make_thesis_cell() -> ThesisCell:
        is_bay_full = [False, name == "unstow", False]
        cell = SimulatedThesisCell(thesis, [(0.05, 0.2)], [(0.0, 0.2)], is_bay_full)
        if name in ("place", "stow"):
            cell.grasped_object = "object"
        return ThesisCell(cell)

    goal = SkillGoal(bay=2 if name in ("stow", "unstow") else 0, n_objects=1)
    check_skill(lambda: make_thesis_skill(name, goal, CONFIG, 3), make_thesis_cell, is_endless=name == "loop")


# -- the test finds violations -----------------------------------------------------------------------------------------
def scripted_cell() -> ScriptedCell:
    """Return a cell with one disc."""
    return ScriptedCell(BODY, BODY.poses["view"], CONFIG, SkillMemory("left"), (TargetDetection(disc_at(0.22, 0.6)),))


def check(make: Callable[[], Skill]) -> None:
    check_skill(make, scripted_cell)


@dataclass
class WaveSkill(Skill):
    """Move to a pose and wait, a number of times."""

    name = "wave"
    n_waves: int = 2
    n_done: int = 0

    @phase
    def _start(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase("move", ArmMotionRequest((NamedTarget("upright"),)))

    @phase(on_failure="return")
    def _move(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase("wait", DelayRequest(1.0))

    @phase
    def _wait(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        self.n_done += 1
        return SUCCESS if self.n_done >= self.n_waves else self._start(context, SUCCESS)


def test_a_skill_of_ones_own_conforms() -> None:
    check(WaveSkill)
    assert phase_graph(WaveSkill) == {"start": ("move",), "move": ("wait",), "wait": ("move",)}


def test_a_phase_without_handler_is_refused_at_class_creation() -> None:
    with pytest.raises(InputError, match=r"Broken\._start: enters the phase 'mvoe'.*start, move"):

        @dataclass
        class Broken(Skill):
            name = "broken"

            @phase
            def _start(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
                return self.enter_phase("mvoe", DelayRequest(1.0))

            @phase
            def _move(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
                return SUCCESS

    with pytest.raises(InputError, match="computed phase"):

        @dataclass
        class Computed(Skill):
            name = "computed"

            @phase
            def _start(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
                return self.enter_phase(self.name, DelayRequest(1.0))


@dataclass
class UnreachablePhaseSkill(WaveSkill):
    """Has a phase that nothing enters."""

    @phase
    def _finish(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return SUCCESS


@dataclass
class ForgetfulSkill(WaveSkill):
    """Keeps a part of its state outside of its fields."""

    def __post_init__(self) -> None:
        self._n_hidden = 0

    @phase
    def _wait(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        self._n_hidden += 1
        return SUCCESS if self._n_hidden >= 3 else self._start(context, SUCCESS)


@dataclass
class StubbornSkill(WaveSkill):
    """Repeats a motion for ever."""

    @phase
    def _move(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return super()._move(context, result) if result.is_success else self._start(context, SUCCESS)


@dataclass
class EndlessSkill(WaveSkill):
    """Waves without end."""

    n_waves: int = 10**9


@dataclass
class SilentSkill(WaveSkill):
    """Fails without a message."""

    @phase
    def _wait(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return SkillResult(SkillResultCode.NOT_FOLLOWED)


@dataclass
class UndefinedCodeSkill(WaveSkill):
    """Ends with a code that nobody knows."""

    @phase
    def _wait(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return SkillResult("tired", "tired")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("skill_type", "message"),
    [
        (UnreachablePhaseSkill, "cannot reach the phases finish"),
        (ForgetfulSkill, "after it was saved and restored"),
        (StubbornSkill, "does not end when wave.move always fails"),
        (EndlessSkill, "more than"),
        (SilentSkill, "without a message"),
        (UndefinedCodeSkill, "none of SkillResultCode"),
    ],
)
def test_skills_that_break_the_contract_are_found(skill_type: type[Skill], message: str) -> None:
    with pytest.raises(InputError, match=message):
        check(skill_type)


def test_the_scripted_cell_holds_what_the_gripper_closes_on() -> None:
    cell = scripted_cell()
    check_skill(lambda: make_skill("pick", SkillGoal(), CONFIG, 3), scripted_cell)
    assert cell.execute(GripperRequest(CONFIG.closed_width)).is_success
    assert cell.context().is_holding
