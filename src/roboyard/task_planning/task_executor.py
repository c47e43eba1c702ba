"""Executes tasks one after the other: plans, executes the plan as a tree, monitors it, and replans."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from roboyard.behavior.basic_types import FAILURE, RUNNING, SUCCESS, NodeStatus
from roboyard.behavior.blackboard import Blackboard
from roboyard.behavior.factory import NodeFactory
from roboyard.behavior.tree import Tree, read_tree
from roboyard.behavior.tree_node import StatusChangeCallback, TreeNode
from roboyard.config import Config, parameter
from roboyard.task_planning.domain import (
    NoPlanError,
    PlanningDomain,
    PlanningGoal,
    Value,
    is_satisfied,
    substitute,
)
from roboyard.task_planning.plan_tree import blackboard_key, plan_to_xml
from roboyard.task_planning.planner import GroundedProblem, PlanStep, TaskPlan, make_plan
from roboyard.task_planning.task_file import PathLength, Place, TaskFile

UNKNOWN_PLACE = "elsewhere"
"""Value of a condition that is near no named place or pose; as a place it is the pose of the robot."""


_BLOCK_TIME_NS = 60_000_000_000
"""Time for which plans avoid a step that has failed too often [ns]."""


class RetryConfig(Config):
    """How often steps are repeated."""

    max_attempts: int = parameter(
        2, low=1, high=1000, doc="Number of attempts of a step before another plan avoids it."
    )
    max_failures: int = parameter(
        6, low=1, high=1000,
        doc="Number of failures of a step, or of equal invalidations, after which the task is infeasible.",
    )  # fmt: skip
    retry_delay: float = parameter(1.0, unit="s", low=0.0, high=1e4, doc="Time between a failure and the next attempt.")


@dataclass(frozen=True)
class TaskEvent:
    """An event of the execution of tasks.

    Attributes:
        task: Number of the task.
        goal: Its goal.
        kind: ``planned``, ``started`` (a step), ``succeeded``, ``failed``, ``invalidated`` (a change of the world
            made the plan invalid), ``preempted`` (by a goal of higher priority), ``reached`` or ``infeasible``.
        reason: In words.
        steps: Steps of the plan.
        action: Action of the step that starts or ends.
    """

    task: int
    goal: str
    kind: str
    reason: str = ""
    steps: tuple[str, ...] = ()
    action: str = ""


@dataclass
class TaskState:
    """State of the execution of tasks, apart from the plan; plain data, which is saved.

    Attributes:
        world: Believed values of conditions.
        results: For each finished task "" or the reason why it is infeasible.
        current: Number of the present task.
        n_finished_steps: Number of steps of the plan that have succeeded.
        failure_reason: Reason of the last failure of a leaf.
        n_failures: Number of failures of each step, and of each invalidation, in the present task.
        blocked_until_ns: Time until which a step is not used, by name [ns].
        retry_time_ns: Time of the next attempt [ns].
        robot_pose: Last known pose of the robot in the map.
        rejected_in_state: For each task that did not preempt the present one, the state of the world then.
    """

    world: dict[str, Value]
    results: dict[int, str] = field(default_factory=dict)
    current: int | None = None
    n_finished_steps: int = 0
    failure_reason: str = ""
    n_failures: dict[str, int] = field(default_factory=dict)
    blocked_until_ns: dict[str, int] = field(default_factory=dict)
    retry_time_ns: int = 0
    robot_pose: Place | None = None
    rejected_in_state: dict[int, dict[str, Value]] = field(default_factory=dict)


class TaskExecutor:
    """Executes goals of a task file.

    The task of the highest priority is executed first, of equals the first one. A feasible task of higher priority
    preempts the present one. When a step fails, or a condition that the rest of the plan requires is not true
    any more, a new plan is made from the present state.

    Attributes:
        state: See `TaskState`.
        plan: The present plan.
        tree: Its tree.
        events: Events since the list was last cleared.
    """

    def __init__(
        self,
        tasks: TaskFile,
        goals: Sequence[str],
        factory: NodeFactory,
        *,
        path_length: PathLength | None = None,
        retries: RetryConfig | None = None,
        status_callback: StatusChangeCallback | None = None,
    ) -> None:
        self.tasks = tasks
        self.goals = [tasks.goal(name) for name in goals]
        self.state = TaskState(tasks.initial_world_state())
        self.plan: TaskPlan | None = None
        self.tree: Tree | None = None
        self.events: list[TaskEvent] = []
        self._factory, self._path_length, self._status_callback = factory, path_length, status_callback
        self._retries = retries or RetryConfig()
        self._needed_after_step: list[dict[str, Value]] = []
        self._failed_step = -1

    def add_goal(self, name: str) -> None:
        """Add one more goal of the file. Raises as `TaskFile.goal`."""
        self.goals.append(self.tasks.goal(name))

    # -- a tick --------------------------------------------------------------------------------------------------------
    def tick(self, now_ns: int, observed: Mapping[str, Value], robot_pose: Place | None = None) -> NodeStatus:
        """Perform one step of the execution.

        Args:
            now_ns: Time [ns].
            observed: Observed values of conditions; others are changed by the effects of actions only.
            robot_pose: Pose of the robot in the map, if it is known.

        Returns:
            `RUNNING`; when all tasks are finished `SUCCESS`, or `FAILURE` if one was infeasible.
        """
        self.state.world.update(observed)
        self.state.robot_pose = robot_pose
        if now_ns < self.state.retry_time_ns:
            return RUNNING
        self._check_plan(now_ns)
        if self.state.current is None:
            best = self._select_task()
            if best is None:
                is_finished = len(self.state.results) == len(self.goals)
                return RUNNING if not is_finished else FAILURE if any(self.state.results.values()) else SUCCESS
            self._start_task(best)
        if self.plan is None and not self._make_plan(now_ns):
            return RUNNING
        self._run_plan(now_ns)
        return RUNNING

    def halt(self) -> None:
        """Halt the present plan; the next tick makes a new one."""
        if self.tree is not None:
            self.tree.halt()
        self._drop_plan()

    def _drop_plan(self) -> None:
        if self.tree is not None:
            self.tree.close()
        self.plan = self.tree = None

    def _select_task(self) -> int | None:
        open_tasks = [
            (goal.priority_in(self.state.world), -n) for n, goal in enumerate(self.goals) if n not in self.state.results
        ]
        priority, number = max(open_tasks, default=(0.0, 0))
        return -number if priority > 0.0 else None

    def _check_plan(self, now_ns: int) -> None:
        """Check whether the plan is still valid, and its goal the best one."""
        if self.state.current is None:
            return
        best = self._select_task()
        is_better = best is not None and self._priority(best) > self._priority(self.state.current)
        if best is not None and is_better and self.state.rejected_in_state.get(best) != self.state.world:
            self.state.rejected_in_state[best] = dict(self.state.world)
            if self._is_feasible(best, now_ns):
                self._record_event("preempted", f"{self.goals[best].name} has a higher priority")
                self._end_task()
        if (
            self.state.current is not None
            and self.plan is not None
            and self.state.n_finished_steps < len(self.plan.steps)
        ):
            changing = self.plan.steps[self.state.n_finished_steps].effects if self._is_running() else {}
            for name, value in self._needed_after_step[self.state.n_finished_steps].items():
                if name not in changing and self.state.world.get(name) != value:
                    self._on_invalidated(f"{name} is {self.state.world.get(name)}, but {value} is required")
                    return

    def _on_invalidated(self, reason: str) -> None:
        """Drop an invalid plan; if the same change recurs too often, the task is infeasible."""
        self._record_event("invalidated", reason)
        self.state.n_failures[reason] = self.state.n_failures.get(reason, 0) + 1
        if self.state.current is not None and self.state.n_failures[reason] >= self._retries.max_failures:
            goal = self.goals[self.state.current].name
            self._end_task(f"{goal} is impossible, because {reason}, {self.state.n_failures[reason]} times")
        else:
            self.halt()

    def _is_running(self) -> bool:
        return self.tree is not None and self.tree.root.status is RUNNING

    def _priority(self, number: int) -> float:
        return self.goals[number].priority_in(self.state.world)

    def _is_feasible(self, number: int, now_ns: int) -> bool:
        try:
            make_plan(
                self._domain(), self._state_at_start(number), self.goals[number], blocked=self._blocked_steps(now_ns)
            )
        except NoPlanError:
            return False
        return True

    # -- tasks begin and end -------------------------------------------------------------------------------------------
    def _state_at_start(self, number: int) -> dict[str, Value]:
        return {**self.state.world, **self.tasks.goals[self.goals[number].name].initial_facts}

    def _start_task(self, number: int) -> None:
        self.state.current = number
        self.state.world = self._state_at_start(number)
        self.state.n_failures.clear()
        self.state.blocked_until_ns.clear()

    def _end_task(self, failure: str | None = None) -> None:
        """End the present task with a failure, with "" as reached, or with None to resume it later."""
        if self.state.current is not None and failure is not None:
            self.state.results[self.state.current] = failure
            self._record_event("infeasible" if failure else "reached", failure)
        self.halt()
        self.state.current = None

    def _record_event(self, kind: str, reason: str = "", action: str = "") -> None:
        number = -1 if self.state.current is None else self.state.current
        steps = tuple(step.name for step in self.plan.steps) if kind == "planned" and self.plan is not None else ()
        self.events.append(TaskEvent(number, self.goals[number].name, kind, reason, steps, action))

    # -- plans ---------------------------------------------------------------------------------------------------------
    def _domain(self) -> PlanningDomain:
        tasks = (
            self.tasks
            if self.state.robot_pose is None
            else self.tasks.with_places({UNKNOWN_PLACE: self.state.robot_pose})
        )
        return tasks.domain(self._path_length)

    def _blocked_steps(self, now_ns: int) -> frozenset[str]:
        return frozenset(name for name, until in self.state.blocked_until_ns.items() if until > now_ns)

    def _make_plan(self, now_ns: int) -> bool:
        if self.state.current is None:
            return False
        goal = self.goals[self.state.current]
        blocked = sorted(self._blocked_steps(now_ns), key=lambda name: self.state.blocked_until_ns[name])
        while True:
            try:
                plan = make_plan(self._domain(), self.state.world, goal, blocked=frozenset(blocked))
                break
            except NoPlanError as error:
                if not blocked:
                    self._end_task(error.message)
                    return False
                del blocked[0]  # no other way: the one that failed longest ago, once more
        self._set_plan(plan)
        self._record_event("planned")
        if not plan.steps:
            self._end_task("")
            return False
        return True

    def _set_plan(self, plan: TaskPlan) -> Tree:
        self.plan = plan
        self.state.n_finished_steps, self._failed_step, self.state.failure_reason = 0, -1, ""
        needed: list[dict[str, Value]] = [dict(plan.goal.desired_state)]
        for step in reversed(plan.steps):
            required_before = {
                name: value for name, value in needed[-1].items() if step.effects.get(name, _NO_EFFECT) != value
            }
            needed.append({**required_before, **step.preconditions})
        self._needed_after_step = needed[::-1]
        blackboard = Blackboard()
        for name, value in self.state.world.items():
            blackboard.set(blackboard_key(name), value)
        source = f"the plan for {plan.goal.name}"
        self.tree = read_tree(plan_to_xml(plan, self._domain()), self._factory, blackboard=blackboard, source=source)
        self.tree.set_status_callback(self._on_status_change)
        return self.tree

    def _on_status_change(self, node: TreeNode, previous: NodeStatus, status: NodeStatus) -> None:
        if self._status_callback is not None:
            self._status_callback(node, previous, status)
        if self.tree is None:
            return
        if status is FAILURE and not node.children:
            self.state.failure_reason = str(getattr(node, "failure_reason", "")) or f"{node.type_name} failed"
        steps = self.tree.root.children
        if node not in steps or self.plan is None:
            return
        number = steps.index(node)
        step = self.plan.steps[number]
        if status is RUNNING:
            self._record_event("started", step.name, step.action.name)
        elif status is SUCCESS:
            self.state.n_finished_steps = number + 1
            self.state.blocked_until_ns.pop(step.name, None)
            self._record_event("succeeded", step.name, step.action.name)
        elif status is FAILURE:
            self._failed_step = number

    # -- steps ---------------------------------------------------------------------------------------------------------
    def _run_plan(self, now_ns: int) -> None:
        tree, plan = self.tree, self.plan
        if tree is None or plan is None:
            return
        blackboard, n_finished_before = tree.blackboard, self.state.n_finished_steps
        for name, value in self.state.world.items():
            if blackboard.get(blackboard_key(name)) != value:
                blackboard.set(blackboard_key(name), value)
        status = tree.tick_once(now_ns)
        for step in plan.steps[n_finished_before : self.state.n_finished_steps]:
            self.state.world.update(step.effects)
        if status is FAILURE:
            self._on_failure(plan, now_ns)
        elif status is SUCCESS:
            if is_satisfied(plan.goal.desired_state, self.state.world):
                self._end_task("")
            else:
                self.halt()

    def _on_failure(self, plan: TaskPlan, now_ns: int) -> None:
        step = plan.steps[max(self._failed_step, 0)]
        retry_config = self._retries
        self.state.n_failures[step.name] = self.state.n_failures.get(step.name, 0) + 1
        self._record_event(
            "failed",
            f"{step.name}: {self.state.failure_reason or 'its preconditions are not satisfied'}",
            step.action.name,
        )
        if self.state.n_failures[step.name] >= retry_config.max_failures:
            reason = f"{plan.goal.name} is impossible, because {step.name} failed"
            self._end_task(f"{reason} {self.state.n_failures[step.name]} times: {self.state.failure_reason}")
            return
        if self.state.n_failures[step.name] % retry_config.max_attempts == 0:
            self.state.blocked_until_ns[step.name] = now_ns + _BLOCK_TIME_NS
        self.state.retry_time_ns = now_ns + round(retry_config.retry_delay * 1e9)
        self.halt()

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data.

        Raises:
            TreeNodeError: A node of the tree cannot be saved.
        """
        plan = self.plan
        return {
            **asdict(self.state),
            "steps": None if plan is None else [(step.action.name, dict(step.binding)) for step in plan.steps],
            "purposes": None if plan is None else [dict(served) for served in plan.purposes],
            "tree": None if self.tree is None else self.tree.save_state(),
        }

    def load_state(self, saved: Mapping[str, Any]) -> None:
        """Restore the result of `save_state`, on an executor of the same tasks."""
        state = TaskState(**{one.name: copy.deepcopy(saved[one.name]) for one in fields(TaskState)})
        self._drop_plan()
        self.state = state
        if saved["steps"] is not None and state.current is not None:
            domain = self._domain()
            steps = tuple(_restore_step(domain, name, binding) for name, binding in saved["steps"])
            goal = self.goals[state.current]
            n_finished_steps, failure_reason = state.n_finished_steps, state.failure_reason
            tree = self._set_plan(TaskPlan(goal, steps, tuple(saved["purposes"]), sum(step.cost for step in steps)))
            tree.load_state(saved["tree"])
            state.n_finished_steps, state.failure_reason = n_finished_steps, failure_reason


_NO_EFFECT = object()


def _restore_step(domain: PlanningDomain, name: str, binding: Mapping[str, Any]) -> PlanStep:
    action = next(action for action in domain.actions if action.name == name)
    return PlanStep(
        action, binding, substitute(action.preconditions, binding), substitute(action.effects, binding), 0.0
    )


def validate_action_trees(tasks: TaskFile, goals: Sequence[str], factory: NodeFactory) -> list[Tree]:
    """Build the tree of one step for each action that may be of use for goals, so that errors in files are found before
    the execution.

    Raises:
        InputError: The behavior of an action is no tree, or uses unknown node types.
    """
    domain, world = tasks.domain(), tasks.initial_world_state()
    found: dict[str, PlanStep] = {}
    for name in goals:
        for step in GroundedProblem(domain, world, tasks.goal(name).desired_state).steps:
            found.setdefault(step.action.name, step)
    plans = [
        TaskPlan(PlanningGoal(step.name, step.effects), (step,), (dict(step.effects),), step.cost)
        for step in found.values()
    ]
    return [
        read_tree(plan_to_xml(plan, domain, world), factory, source=f"action {plan.steps[0].action.name}")
        for plan in plans
    ]
