"""Goals pursued one after the other: planned, carried out by a tree, watched, and planned anew where need be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from roboyard.behavior.blackboard import Blackboard
from roboyard.behavior.factory import Factory
from roboyard.behavior.goals.as_tree import as_xml, entry
from roboyard.behavior.goals.domain import Domain, Goal, Impossible, Value, bound_to, holds
from roboyard.behavior.goals.file import Place, Tasks, Way
from roboyard.behavior.goals.planner import Plan, make_plan
from roboyard.behavior.goals.problem import Problem, Step
from roboyard.behavior.node import TreeNode, Watcher
from roboyard.behavior.status import FAILURE, RUNNING, SUCCESS, Status
from roboyard.behavior.tree import Tree, read_tree
from roboyard.config import Config, parameter

ELSEWHERE = "elsewhere"
"""What a condition is whose value has no name; as a place it is where the robot is."""


_BLOCKED_NS = 60_000_000_000
"""Time for which another way is taken than by a step that failed too often [ns]."""


class RetryConfig(Config):
    """How often a step is tried."""

    tries: int = parameter(2, low=1, high=1000, doc="Number of attempts at a step before another way is taken.")
    most: int = parameter(
        6, low=1, high=1000,
        doc="Number of failures of a step, or of a condition, after which its task is given up.",
    )  # fmt: skip
    rest: float = parameter(1.0, unit="s", low=0.0, high=1e4, doc="Time after a failure.")


@dataclass(frozen=True)
class Event:
    """Something that somebody who watches wants to know.

    Attributes:
        task: Number of the task.
        goal: Its goal.
        what: ``plans``, ``does`` (a step begins), ``did``, ``fails``, ``changes`` (the world, so that the plan is none
            any more), ``leaves`` (for a goal that is worth more), ``reached`` or ``impossible``.
        why: In words.
        steps: Of the plan.
        action: Whose step begins or ends.
    """

    task: int
    goal: str
    what: str
    why: str = ""
    steps: tuple[str, ...] = ()
    action: str = ""


class Pursuit:
    """Pursues goals of a file of tasks.

    The task that is worth most goes first, of equals the first.  When another one is worth more than that under way,
    and possible, it is turned to.  A plan is given up when a step fails, or when something that the rest of it needs
    does not hold any more; then a new one is made from the world as it is.

    Attributes:
        world: Conditions as they are believed to be.
        results: For each task that is over "" or why it is impossible.
        plan: The plan under way.
        tree: Its tree.
        events: What happened since somebody took it away.
    """

    def __init__(
        self,
        tasks: Tasks,
        goals: Sequence[str],
        factory: Factory,
        *,
        way: Way | None = None,
        retries: RetryConfig | None = None,
        watcher: Watcher | None = None,
    ) -> None:
        self.tasks = tasks
        self.goals = [tasks.goal(name) for name in goals]
        self.world: dict[str, Value] = tasks.start()
        self.results: dict[int, str] = {}
        self.plan: Plan | None = None
        self.tree: Tree | None = None
        self.events: list[Event] = []
        self._factory, self._way, self._watcher = factory, way, watcher
        self._retries = retries or RetryConfig()
        self._current: int | None = None
        self._needed: list[dict[str, Value]] = []
        self._done, self._failed, self._reason = 0, -1, ""
        self._tried: dict[str, int] = {}
        self._blocked: dict[str, int] = {}
        self._due_ns = 0
        self._passed_over: dict[int, dict[str, Value]] = {}
        self._here: Place | None = None

    def add(self, name: str) -> None:
        """Pursue one more goal of the file. Raises as `Tasks.goal`."""
        self.goals.append(self.tasks.goal(name))

    # -- a tick --------------------------------------------------------------------------------------------------------
    def tick(self, now_ns: int, sensed: Mapping[str, Value], here: Place | None = None) -> Status:
        """Go on.

        Args:
            now_ns: The time [ns].
            sensed: Conditions as they are seen to be; others are what actions made them.
            here: Where the robot is in the map, if that is known.

        Returns:
            `RUNNING`; when all tasks are over `SUCCESS`, or `FAILURE` if one was impossible.
        """
        self.world.update(sensed)
        self._here = here
        if now_ns < self._due_ns:
            return RUNNING
        self._look_about(now_ns)
        if self._current is None:
            best = self._best()
            if best is None:
                over = len(self.results) == len(self.goals)
                return RUNNING if not over else FAILURE if any(self.results.values()) else SUCCESS
            self._begin(best)
        if self.plan is None and not self._make(now_ns):
            return RUNNING
        self._run(now_ns)
        return RUNNING

    def halt(self) -> None:
        """Stop what is under way; it is planned anew with the next tick."""
        if self.tree is not None:
            self.tree.halt()
        self._forget()

    def _forget(self) -> None:
        if self.tree is not None:
            self.tree.close()
        self.plan = self.tree = None

    def _best(self) -> int | None:
        open_tasks = [(goal.worth(self.world), -n) for n, goal in enumerate(self.goals) if n not in self.results]
        worth, number = max(open_tasks, default=(0.0, 0))
        return -number if worth > 0.0 else None

    def _look_about(self, now_ns: int) -> None:
        """Whether the plan is still one, and its goal the best."""
        if self._current is None:
            return
        best = self._best()
        better = best is not None and self._worth(best) > self._worth(self._current)
        if best is not None and better and self._passed_over.get(best) != self.world:
            self._passed_over[best] = dict(self.world)
            if self._possible(best, now_ns):
                self._say("leaves", f"{self.goals[best].name} is worth more")
                self._end()
        if self._current is not None and self.plan is not None and self._done < len(self.plan.steps):
            changing = self.plan.steps[self._done].effects if self._is_running() else {}
            for name, value in self._needed[self._done].items():
                if name not in changing and self.world.get(name) != value:
                    self._changed(f"{name} is {self.world.get(name)}, and {value} is needed")
                    return

    def _changed(self, why: str) -> None:
        """The plan is none any more; where that happens again and again, neither is the task."""
        self._say("changes", why)
        self._tried[why] = self._tried.get(why, 0) + 1
        if self._current is not None and self._tried[why] >= self._retries.most:
            goal = self.goals[self._current].name
            self._end(f"{goal} is impossible, because {why}, {self._tried[why]} times")
        else:
            self.halt()

    def _is_running(self) -> bool:
        return self.tree is not None and self.tree.root.status is RUNNING

    def _worth(self, number: int) -> float:
        return self.goals[number].worth(self.world)

    def _possible(self, number: int, now_ns: int) -> bool:
        try:
            make_plan(self._domain(), self._begun(number), self.goals[number], blocked=self._blocks(now_ns))
        except Impossible:
            return False
        return True

    # -- tasks begin and end -------------------------------------------------------------------------------------------
    def _begun(self, number: int) -> dict[str, Value]:
        return {**self.world, **self.tasks.goals[self.goals[number].name].begins}

    def _begin(self, number: int) -> None:
        self._current = number
        self.world = self._begun(number)
        self._tried.clear()
        self._blocked.clear()

    def _end(self, why: str | None = None) -> None:
        """Leave the task under way; ``why`` it is impossible, "" if it is done, None to come back to it."""
        if self._current is not None and why is not None:
            self.results[self._current] = why
            self._say("impossible" if why else "reached", why)
        self.halt()
        self._current = None

    def _say(self, what: str, why: str = "", action: str = "") -> None:
        number = -1 if self._current is None else self._current
        steps = tuple(step.name for step in self.plan.steps) if what == "plans" and self.plan is not None else ()
        self.events.append(Event(number, self.goals[number].name, what, why, steps, action))

    # -- plans ---------------------------------------------------------------------------------------------------------
    def _domain(self) -> Domain:
        tasks = self.tasks if self._here is None else self.tasks.with_places({ELSEWHERE: self._here})
        return tasks.domain(self._way)

    def _blocks(self, now_ns: int) -> frozenset[str]:
        return frozenset(name for name, until in self._blocked.items() if until > now_ns)

    def _make(self, now_ns: int) -> bool:
        if self._current is None:
            return False
        goal = self.goals[self._current]
        blocked = sorted(self._blocks(now_ns), key=lambda name: self._blocked[name])
        while True:
            try:
                plan = make_plan(self._domain(), self.world, goal, blocked=frozenset(blocked))
                break
            except Impossible as error:
                if not blocked:
                    self._end(error.message)
                    return False
                del blocked[0]  # no other way: the one that failed longest ago, once more
        self._set(plan)
        self._say("plans")
        if not plan.steps:
            self._end("")
            return False
        return True

    def _set(self, plan: Plan) -> Tree:
        self.plan = plan
        self._done, self._failed, self._reason = 0, -1, ""
        needed: list[dict[str, Value]] = [dict(plan.goal.wants)]
        for step in reversed(plan.steps):
            before = {name: value for name, value in needed[-1].items() if step.effects.get(name, _OTHER) != value}
            needed.append({**before, **step.needs})
        self._needed = needed[::-1]
        board = Blackboard()
        for name, value in self.world.items():
            board.set(entry(name), value)
        source = f"the plan for {plan.goal.name}"
        self.tree = read_tree(as_xml(plan, self._domain()), self._factory, blackboard=board, source=source)
        self.tree.watch(self._note)
        return self.tree

    def _note(self, node: TreeNode, before: Status, after: Status) -> None:
        if self._watcher is not None:
            self._watcher(node, before, after)
        if self.tree is None:
            return
        if after is FAILURE and not node.children:
            self._reason = str(getattr(node, "why", "")) or f"{node.type_name} failed"
        steps = self.tree.root.children
        if node not in steps or self.plan is None:
            return
        number = steps.index(node)
        step = self.plan.steps[number]
        if after is RUNNING:
            self._say("does", step.name, step.action.name)
        elif after is SUCCESS:
            self._done = number + 1
            self._blocked.pop(step.name, None)
            self._say("did", step.name, step.action.name)
        elif after is FAILURE:
            self._failed = number

    # -- steps ---------------------------------------------------------------------------------------------------------
    def _run(self, now_ns: int) -> None:
        tree, plan = self.tree, self.plan
        if tree is None or plan is None:
            return
        board, done = tree.blackboard, self._done
        for name, value in self.world.items():
            if board.get(entry(name)) != value:
                board.set(entry(name), value)
        status = tree.tick_once(now_ns)
        for step in plan.steps[done : self._done]:
            self.world.update(step.effects)
        if status is FAILURE:
            self._failure(plan, now_ns)
        elif status is SUCCESS:
            if holds(plan.goal.wants, self.world):
                self._end("")
            else:
                self.halt()

    def _failure(self, plan: Plan, now_ns: int) -> None:
        step = plan.steps[max(self._failed, 0)]
        retries = self._retries
        self._tried[step.name] = self._tried.get(step.name, 0) + 1
        self._say("fails", f"{step.name}: {self._reason or 'its needs do not hold'}", step.action.name)
        if self._tried[step.name] >= retries.most:
            why = f"{plan.goal.name} is impossible, because {step.name} failed"
            self._end(f"{why} {self._tried[step.name]} times: {self._reason}")
            return
        if self._tried[step.name] % retries.tries == 0:
            self._blocked[step.name] = now_ns + _BLOCKED_NS
        self._due_ns = now_ns + round(retries.rest * 1e9)
        self.halt()

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """State as plain data.

        Raises:
            NodeError: a node of the tree cannot be saved.
        """
        plan = self.plan
        return {
            "world": dict(self.world), "results": dict(self.results), "current": self._current,
            "steps": None if plan is None else [(step.action.name, dict(step.binding)) for step in plan.steps],
            "serves": None if plan is None else [dict(served) for served in plan.serves],
            "tree": None if self.tree is None else self.tree.save_state(),
            "done": self._done, "reason": self._reason, "tried": dict(self._tried),
            "blocked": dict(self._blocked), "due_ns": self._due_ns, "here": self._here,
            "passed_over": {number: dict(world) for number, world in self._passed_over.items()},
        }  # fmt: skip

    def load_state(self, saved: Mapping[str, Any]) -> None:
        """Take back what ``save`` gave, on a pursuit of the same tasks."""
        self.world, self.results = dict(saved["world"]), dict(saved["results"])
        self._current, self._here = saved["current"], saved["here"]
        self._forget()
        if saved["steps"] is not None and self._current is not None:
            domain = self._domain()
            steps = tuple(_step(domain, name, binding) for name, binding in saved["steps"])
            goal = self.goals[self._current]
            tree = self._set(Plan(goal, steps, tuple(saved["serves"]), sum(step.cost for step in steps)))
            tree.load_state(saved["tree"])
        self._done, self._reason = saved["done"], saved["reason"]
        self._tried, self._blocked, self._due_ns = dict(saved["tried"]), dict(saved["blocked"]), saved["due_ns"]
        self._passed_over = {number: dict(world) for number, world in saved["passed_over"].items()}


_OTHER = object()


def _step(domain: Domain, name: str, binding: Mapping[str, Any]) -> Step:
    action = next(action for action in domain.actions if action.name == name)
    return Step(action, binding, bound_to(action.needs, binding), bound_to(action.effects, binding), 0.0)


def rehearsed(tasks: Tasks, goals: Sequence[str], factory: Factory) -> list[Tree]:
    """For each action that may be of use for goals the tree of one step: so errors in files show before anything runs.

    Raises:
        InputError: an action is carried out by what is no tree, or by nodes that there are not.
    """
    domain, world = tasks.domain(), tasks.start()
    found: dict[str, Step] = {}
    for name in goals:
        for step in Problem(domain, world, tasks.goal(name).wants).steps:
            found.setdefault(step.action.name, step)
    plans = [Plan(Goal(step.name, step.effects), (step,), (dict(step.effects),), step.cost) for step in found.values()]
    return [
        read_tree(as_xml(plan, domain, world), factory, source=f"action {plan.steps[0].action.name}") for plan in plans
    ]
