"""Conformance test of skills, of this package and of others: `check_skill`, with `ScriptedCell` as a simple cell."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NoReturn, Protocol

from roboyard.errors import InputError
from roboyard.manipulation.skills.arm_geometry import ArmGeometry
from roboyard.manipulation.skills.config import SkillConfig
from roboyard.manipulation.skills.requests import (
    ABORTED,
    SUCCESS,
    ArmMotionRequest,
    DetectDiscsRequest,
    GripperRequest,
    JointTarget,
    NamedTarget,
    SkillRequest,
    SkillResult,
    SkillResultCode,
    TargetDetection,
    failures_of,
)
from roboyard.manipulation.skills.skill import (
    Skill,
    SkillContext,
    SkillMemory,
    SkillStack,
    phase_graph,
    skill_from_dict,
    to_dict,
)

_MAX_REQUESTS: Final = 3000
"""Number of requests after which a skill counts as endless."""
_STEPS_AFTER_FAILURE: Final = 60
"""Number of requests for which an endless skill is followed after a failure."""


class SkillCell(Protocol):
    """What a skill acts on in the test: it executes requests and gives the inputs of the steps.

    Attributes:
        memory: Memory of the skills; the test replaces it by copies.
    """

    memory: SkillMemory

    def execute(self, request: SkillRequest) -> SkillResult:
        """Execute a request and return its result; the same requests have the same results."""

    def context(self) -> SkillContext:
        """Return the inputs of the next step."""


@dataclass
class ScriptedCell:
    """A cell in which every request succeeds, and every detection finds the same discs.

    Attributes:
        arm: Geometry of the arm.
        joints: Positions of its joints [rad].
        config: Configuration of the skills.
        memory: Memory of the skills.
        detections: Result of every detection.
        is_holding: Whether the fingers measure an object: since they were closed.
    """

    arm: ArmGeometry
    joints: tuple[float, ...]
    config: SkillConfig
    memory: SkillMemory
    detections: tuple[TargetDetection, ...] = ()
    is_holding: bool = False

    def execute(self, request: SkillRequest) -> SkillResult:
        """Execute a request: motions to joint positions move the joints, the gripper holds what it closes on."""
        if isinstance(request, DetectDiscsRequest):
            if not self.detections:
                return SkillResult(SkillResultCode.VIEW_EMPTY, "there are no discs in the cell")
            return SkillResult(detections=self.detections)
        if isinstance(request, GripperRequest):
            self.is_holding = request.opening < 2.0 * self.config.object_radius
        if isinstance(request, ArmMotionRequest):
            target = request.targets[0]
            if isinstance(target, JointTarget):
                self.joints = target.positions
            elif isinstance(target, NamedTarget):
                self.joints = tuple(self.arm.poses[target.name])
        return SUCCESS

    def context(self) -> SkillContext:
        """Return the inputs of the next step."""
        return SkillContext(self.config, self.memory, self.arm, self.joints, self.is_holding)


def check_skill(
    make_skill: Callable[[], Skill], make_cell: Callable[[], SkillCell], *, is_endless: bool = False
) -> None:
    """Test a skill against the contract of `Skill`.

    Checked are that every phase can be reached, that the skill ends in the cell, that its events match, that a copy
    from plain data at any step makes the same requests and has the same result, that the skill ends with a defined
    result whichever failure of `REQUEST_FAILURES` any of its requests has, once or always, and that a cancellation ends
    it at any step.

    Args:
        make_skill: Returns the skill, ready to start; called for every run.
        make_cell: Returns a new cell in the same state.
        is_endless: Whether the skill may continue without end after a failure, as a loop does.

    Raises:
        InputError: The skill breaks its contract; the message says how.
    """
    _SkillCheck(make_skill, make_cell, is_endless).run_all()


@dataclass
class _SkillRun:
    """A run of a skill in a cell.

    Attributes:
        requests: The requests with the phase that made each, in their order.
        result: Result of the skill; None: it made too many requests.
    """

    requests: list[tuple[str, SkillRequest]] = field(default_factory=list)
    result: SkillResult | None = None


@dataclass(frozen=True)
class _FailAt:
    """Which requests fail: the one of a step, or all of a phase."""

    failure: SkillResult
    step: int = -1
    phase: str = ""

    def failure_at(self, step: int, phase: str) -> SkillResult | None:
        """Return the failure of a request; None: it is executed."""
        return self.failure if step == self.step or phase == self.phase else None


class _SkillCheck:
    def __init__(self, make_skill: Callable[[], Skill], make_cell: Callable[[], SkillCell], is_endless: bool) -> None:
        self._make_skill, self._make_cell, self._is_endless = make_skill, make_cell, is_endless
        self._name = type(make_skill()).__name__

    def run_all(self) -> None:
        """Check every promise in turn."""
        self._check_phases()
        undisturbed = self._run()
        if undisturbed.result is None:
            self._report(f"makes more than {_MAX_REQUESTS} requests")
        self._check_copies(undisturbed)
        self._check_cancellation(len(undisturbed.requests))
        self._check_failures(undisturbed)

    def _check_phases(self) -> None:
        skill_type = type(self._make_skill())
        graph, reached, new = phase_graph(skill_type), {"start"}, ["start"]
        if "start" not in graph:
            self._report("has no phase 'start'")
        while new:
            for target in graph[new.pop()]:
                if target not in reached:
                    reached.add(target)
                    new.append(target)
        if unreachable := [name for name in graph if name not in reached]:
            self._report(f"cannot reach the phases {', '.join(unreachable)}")

    def _run(self, fail: _FailAt | None = None, max_requests: int = _MAX_REQUESTS) -> _SkillRun:
        """Run the skill, with failures instead of some of the cell's results."""
        cell, stack, run = self._make_cell(), SkillStack(), _SkillRun()
        action = stack.start(self._make_skill(), cell.context())
        while not isinstance(action, SkillResult):
            if len(run.requests) >= max_requests:
                return run
            skill = stack.skills[-1]
            phase = f"{skill.name}.{skill.phase}"
            run.requests.append((phase, action))
            failure = fail.failure_at(len(run.requests) - 1, phase) if fail is not None else None
            result = failure or cell.execute(action)
            action = stack.on_result(cell.context(), result)
        self._check_end(stack, cell, action)
        run.result = action
        return run

    def _check_end(self, stack: SkillStack, cell: SkillCell, result: SkillResult) -> None:
        if not isinstance(result.code, SkillResultCode):
            self._report(f"ends with the code {result.code!r}, which is none of SkillResultCode")
        if not result.is_success and not result.message:
            self._report(f"ends with {result.code.value} without a message")
        if stack.is_busy:
            self._report("has a result while skills are running")
        started = [event.skill_id for event in stack.events if event.kind == "started"]
        finished = [event.skill_id for event in stack.events if event.kind == "finished"]
        if sorted(started) != sorted(finished) or len(set(started)) != len(started):
            self._report("has skills that do not finish exactly once")
        try:
            stack.on_result(cell.context(), SUCCESS)
        except InputError:
            return
        self._report("makes a request after its end")

    def _check_copies(self, undisturbed: _SkillRun) -> None:
        """Continue from copies of all data at every step."""
        cell, stack = self._make_cell(), SkillStack()
        action = stack.start(self._make_skill(), cell.context())
        for phase, request in undisturbed.requests:
            if repr(action) != repr(request):  # as text: a NaN does not equal another one
                self._report(f"does not continue equally after it was saved and restored before {phase}: {action}")
            restored = SkillStack()
            restored.skills = [skill_from_dict(copy.deepcopy(to_dict(skill))) for skill in stack.skills]
            cell.memory = SkillMemory(**copy.deepcopy(to_dict(cell.memory)))
            stack = restored
            result = cell.execute(request)
            action = stack.on_result(cell.context(), result)
        if repr(action) != repr(undisturbed.result):
            self._report(f"ends with {action} after it was saved and restored, instead of {undisturbed.result}")

    def _check_cancellation(self, n_requests: int) -> None:
        for step in range(n_requests):
            for code in ABORTED:
                run = self._run(_FailAt(self._failure(code), step=step))
                if run.result is None or run.result.code is not code or len(run.requests) != step + 1:
                    self._report(f"goes on after it was {code.value} at {run.requests[step][0]}")

    def _check_failures(self, undisturbed: _SkillRun) -> None:
        """Let the requests of each phase fail with each code, the first time or always."""
        first_steps = {phase: k for k, (phase, _) in reversed(list(enumerate(undisturbed.requests)))}
        for failing, first in first_steps.items():
            for code in failures_of(type(undisturbed.requests[first][1])):
                failure, limit = (
                    self._failure(code),
                    first + _STEPS_AFTER_FAILURE if self._is_endless else _MAX_REQUESTS,
                )
                once = self._run(_FailAt(failure, step=first), limit)
                if once.result is None and not self._is_endless:
                    self._report(f"does not end after {code.value} at {failing}")
                always = self._run(_FailAt(failure, phase=failing), limit)
                if always.result is None and not self._is_endless:
                    self._report(f"does not end when {failing} always fails with {code.value}")

    @staticmethod
    def _failure(code: SkillResultCode) -> SkillResult:
        return SkillResult(code, "failure of the conformance test")

    def _report(self, violation: str) -> NoReturn:
        raise InputError(violation, location=self._name, valid="the contract of Skill")
