"""Pursuit of goals: failures, changes and more useful goals cause new plans; a saved pursuit continues identically."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from tests.harness.bus import BusHarness

from roboyard.behavior import NodeFactory, NodeStatus, StatefulActionNode, input_port
from roboyard.bus import Node
from roboyard.errors import InputError
from roboyard.messages import msg
from roboyard.task_planning import RetryConfig, TaskExecutor, TaskFile, load_tasks
from roboyard.task_planning.nodes.task_executor import StateObserver, TaskExecutorNode
from roboyard.task_planning.task_executor import validate_action_trees
from roboyard.task_planning.task_file import ObservationConfig

FILE = """
places: {dock: [0, 0, 0], desk: [4, 0, 0], shelf: [0, 3, 0]}
initial_state: {robot: dock, hand: nothing, on desk: nothing, on shelf: cup, on dock: nothing, bell: false}
value_domains: {bell: [true, false]}
actions:
  drive:
    parameters: {to: places, from: places}
    preconditions: {robot: $from}
    effects: {robot: $to}
    cost: {base: 1 s, distance: [$from, $to], speed: 1 m/s}
    behavior: <LoggedAction text="drive $to"/>
  pick:
    parameters: {place: places, object: [cup]}
    preconditions: {robot: $place, on $place: $object, hand: nothing}
    effects: {hand: $object, on $place: nothing}
    behavior: <LoggedAction text="pick $object"/>
  put:
    parameters: {place: places, object: [cup]}
    preconditions: {robot: $place, on $place: nothing, hand: $object}
    effects: {on $place: $object, hand: nothing}
    behavior: <LoggedAction text="put $object"/>
  carry by another:
    preconditions: {robot: dock, on shelf: cup}
    effects: {on desk: cup, on shelf: nothing}
    cost: 100
    behavior: <LoggedAction text="call"/>
  answer: {preconditions: {robot: dock}, effects: {bell: false}, behavior: <LoggedAction text="answer"/>}
goals:
  fetch: {desired_state: {on desk: cup}}
  answer: {desired_state: {bell: false}, priority: 5, when: {bell: true}}
  home: {desired_state: {robot: dock}}
  moon: {desired_state: {robot: moon}}
"""


class LoggedAction(StatefulActionNode):
    """An action of two ticks that logs its start, and fails as often as ``fails`` says."""

    ports: ClassVar = {"text": input_port(str)}
    state_fields: ClassVar = ("remaining",)
    log: ClassVar[list[str]] = []
    fails: ClassVar[dict[str, int]] = {}

    def setup(self) -> None:
        self.remaining = 0

    def on_start(self) -> NodeStatus:
        self.log.append(self.get_input("text"))
        self.remaining = 2
        return NodeStatus.RUNNING

    def on_running(self) -> NodeStatus:
        self.remaining -= 1
        if self.remaining:
            return NodeStatus.RUNNING
        text = self.get_input("text")
        if self.fails.get(text, 0) > 0:
            self.fails[text] -= 1
            return NodeStatus.FAILURE
        return NodeStatus.SUCCESS

    def on_halted(self) -> None:
        self.log.append(f"stop {self.get_input('text')}")


@pytest.fixture
def tasks(tmp_path: Path) -> TaskFile:
    file = tmp_path / "tasks.yaml"
    file.write_text(FILE)
    LoggedAction.log.clear()
    LoggedAction.fails.clear()
    return load_tasks(file)


def make_executor(tasks: TaskFile, *goals: str) -> TaskExecutor:
    factory = NodeFactory()
    factory.register(LoggedAction)
    assert len(validate_action_trees(tasks, goals, factory)) <= len(tasks.actions)
    return TaskExecutor(tasks, goals, factory, retries=RetryConfig(retry_delay=0.2))


def run_executor(
    executor: TaskExecutor, ticks: int = 400, observed: Any = lambda tick: {}, start: int = 0
) -> NodeStatus:
    status = NodeStatus.RUNNING
    for tick in range(start, ticks):
        status = executor.tick(tick * 100_000_000, observed(tick))
        if status is not NodeStatus.RUNNING:
            break
    return status


def event_kinds(executor: TaskExecutor) -> list[str]:
    return [event.kind for event in executor.events if event.kind not in ("started", "succeeded")]


def test_task_executor_reaches_its_goals_by_plans(tasks: TaskFile) -> None:
    executor = make_executor(tasks, "fetch", "home")
    assert run_executor(executor) is NodeStatus.SUCCESS
    assert LoggedAction.log == ["drive shelf", "pick cup", "drive desk", "put cup", "drive dock"]
    assert event_kinds(executor) == ["planned", "reached"] * 2
    assert executor.state.world["on desk"] == "cup"


def test_failed_step_is_retried_then_replaced(tasks: TaskFile) -> None:
    LoggedAction.fails["pick cup"] = 1
    executor = make_executor(tasks, "fetch")
    assert run_executor(executor) is NodeStatus.SUCCESS
    assert LoggedAction.log == ["drive shelf", "pick cup", "pick cup", "drive desk", "put cup"]
    LoggedAction.log.clear()
    LoggedAction.fails["pick cup"] = 100
    executor = make_executor(tasks, "fetch")
    assert run_executor(executor) is NodeStatus.SUCCESS
    assert LoggedAction.log == ["drive shelf", "pick cup", "pick cup", "drive dock", "call"]
    assert (
        next(event.reason for event in executor.events if event.kind == "failed")
        == "pick (place shelf, object cup): LoggedAction failed"
    )


def test_least_recently_failed_step_is_repeated_first(tasks: TaskFile) -> None:
    LoggedAction.fails.update({"pick cup": 4, "call": 2})
    executor = make_executor(tasks, "fetch")
    assert run_executor(executor) is NodeStatus.SUCCESS
    failed = [event.reason.split(" ")[0] for event in executor.events if event.kind == "failed"]
    assert failed == ["pick", "pick", "carry", "carry", "pick", "pick"]
    assert LoggedAction.log[-1] == "call"  # although picking is cheaper


def test_failures_are_counted_per_step(tasks: TaskFile) -> None:
    LoggedAction.fails.update(dict.fromkeys(("drive shelf", "pick cup", "drive desk", "put cup"), 5))
    factory = NodeFactory()
    factory.register(LoggedAction)
    retries = RetryConfig(max_attempts=100, max_failures=6, retry_delay=0.0)
    executor = TaskExecutor(tasks, ("fetch",), factory, retries=retries)
    assert run_executor(executor) is NodeStatus.SUCCESS
    assert event_kinds(executor).count("failed") == 20
    LoggedAction.fails["pick cup"] = 6
    executor = TaskExecutor(tasks, ("fetch",), factory, retries=retries)
    assert run_executor(executor) is NodeStatus.FAILURE
    assert "pick (place shelf, object cup) failed 6 times" in executor.state.results[0]


def test_goal_that_always_fails_is_abandoned_with_the_cause(tasks: TaskFile) -> None:
    LoggedAction.fails.update({"pick cup": 100, "call": 100})
    executor = make_executor(tasks, "fetch", "home")
    assert run_executor(executor) is NodeStatus.FAILURE
    assert "fetch is impossible, because" in executor.state.results[0]
    assert executor.state.results[1] == ""


def test_infeasible_goal_is_reported_and_the_next_one_started(tasks: TaskFile) -> None:
    executor = make_executor(tasks, "moon", "home")
    assert run_executor(executor) is NodeStatus.FAILURE
    assert "moon is impossible, because no action makes robot = moon" in executor.state.results[0]
    assert executor.state.results[1] == ""


def test_goal_of_higher_priority_preempts_and_the_other_resumes(tasks: TaskFile) -> None:
    executor = make_executor(tasks, "fetch", "answer")

    def observed(tick: int) -> dict[str, Any]:
        return {"bell": True} if tick == 4 else {}

    assert run_executor(executor, observed=observed) is NodeStatus.SUCCESS
    assert LoggedAction.log == [
        "drive shelf", "pick cup", "stop pick cup", "drive dock", "answer", "drive shelf", "pick cup", "drive desk",
        "put cup",
    ]  # fmt: skip
    assert event_kinds(executor)[:2] == ["planned", "preempted"]


def test_change_that_invalidates_the_plan_causes_replanning(tasks: TaskFile) -> None:
    def relocate_cup(tick: int) -> dict[str, Any]:
        return {"on shelf": "nothing", "on dock": "cup"} if tick == 2 else {}

    executor = make_executor(tasks, "fetch")
    assert run_executor(executor, observed=relocate_cup) is NodeStatus.SUCCESS
    assert event_kinds(executor)[1] == "invalidated"
    assert LoggedAction.log[:2] == ["drive shelf", "stop drive shelf"]
    assert executor.state.world["on dock"] == "nothing"
    LoggedAction.log.clear()
    executor = make_executor(tasks, "fetch")
    assert run_executor(executor, observed=lambda tick: {"on desk": "cup"} if tick == 2 else {}) is NodeStatus.SUCCESS
    assert "put cup" not in LoggedAction.log


def test_goal_is_abandoned_if_one_change_recurs_too_often(tasks: TaskFile) -> None:
    executor = make_executor(tasks, "fetch")
    assert (
        run_executor(executor, observed=lambda tick: {"robot": "dock"} if tick % 4 == 3 else {}) is NodeStatus.FAILURE
    )
    assert "robot is dock, but shelf is required, 6 times" in executor.state.results[0]
    assert event_kinds(executor).count("invalidated") == 6


def test_nearby_places_are_resolved_to_the_believed_one(tasks: TaskFile) -> None:
    tasks = replace(tasks, observations={"robot": ObservationConfig(near_place=0.3)})
    observer = StateObserver(SimpleNamespace(frame=str), tasks, None, "map", "base_link")  # type: ignore[arg-type]
    places = {"desk": (4.0, 0.0, 0.0), "point 1": (4.1, 0.0, 0.0)}
    for x, believed, expected in (
        (4.08, "dock", "point 1"), (4.08, "desk", "desk"), (4.02, "point 1", "point 1"), (4.35, "desk", "point 1"),
        (5.0, "desk", "elsewhere"),
    ):  # fmt: skip
        assert observer((x, 0.0, 0.0), places, {"robot": believed}) == {"robot": expected}


@pytest.mark.parametrize("seed", range(8))
def test_random_failures_are_recovered_from(tasks: TaskFile, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for text in ("drive desk", "drive shelf", "drive dock", "pick cup", "put cup"):
        LoggedAction.fails[text] = int(rng.integers(0, 2))
    executor = make_executor(tasks, "fetch", "home")
    assert run_executor(executor) is NodeStatus.SUCCESS
    assert executor.state.world["on desk"] == "cup"
    assert executor.state.world["robot"] == "dock"


@pytest.mark.parametrize("saved_at", [1, 3, 6, 9, 14, 17])
def test_saved_task_executor_continues_identically(tasks: TaskFile, saved_at: int) -> None:
    LoggedAction.fails["pick cup"] = 2
    uninterrupted = make_executor(tasks, "fetch", "home")
    assert run_executor(uninterrupted) is NodeStatus.SUCCESS
    log, events = list(LoggedAction.log), list(uninterrupted.events)
    LoggedAction.log.clear()
    LoggedAction.fails["pick cup"] = 2
    first = make_executor(tasks, "fetch", "home")
    run_executor(first, saved_at)
    saved = first.save_state()
    restored = make_executor(tasks, "fetch", "home")
    restored.load_state(saved)
    assert run_executor(restored, start=saved_at) is NodeStatus.SUCCESS
    assert LoggedAction.log == log
    assert first.events + restored.events == events


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("<LoggedAction text=\"call\"/>", "<LoggedAction text='call'", "action carry by another, behavior: is no XML"),
        ("desired_state: {robot: moon}", "desired_state: {}", "goal moon: the desired state is empty"),
        ("effects: {on desk: cup, on shelf: nothing}", "effects: {on $spot: cup}", r"values of \$spot are not"),
        ("distance: [$from, $to]", "distance: [$from]", "from and to"),
        ("bell: true}", "bell: [true]}", "the value"),
        ("drive $to", "drive $nowhere", r"\$nowhere is no variable"),
        ("effects: {robot: $to}", "effect: {robot: $to}", "effect"),
    ],
)  # fmt: skip
def test_invalid_task_files_are_refused(tmp_path: Path, old: str, new: str, error: str) -> None:
    file = tmp_path / "tasks.yaml"
    assert old in FILE
    file.write_text(FILE.replace(old, new))
    factory = NodeFactory()
    factory.register(LoggedAction)
    with pytest.raises(InputError, match=error):
        validate_action_trees(load_tasks(file), ["fetch", "answer"], factory)


class TextPublisher(Node):
    """Publishes a text at 10 Hz."""

    def setup(self) -> None:
        self.texts = self.publisher("texts", msg.String)
        self.timer(rate=10.0, callback=lambda: self.texts.publish(msg.String(data="well")))


def test_mission_drops_subscriptions_of_finished_plans(tmp_path: Path) -> None:
    words = '<LastMessage topic="texts" type="std_msgs/msg/String" field="data"/>'
    file = tmp_path / "tasks.yaml"
    file.write_text(
        f"""
initial_state: {{lamp: dark}}
actions:
  turn: {{effects: {{lamp: $to}}, behavior: '<RetryUntilSuccessful num_attempts="9">
    <Delay delay_msec="200">{words}</Delay></RetryUntilSuccessful>
    <PublishMessage topic="out" type="std_msgs/msg/String" fields="data: $to"/>'}}
goals:
  on: {{desired_state: {{lamp: bright}}, initial_facts: {{lamp: dark}}}}
  off: {{desired_state: {{lamp: dark}}}}
"""
    )
    source, mission = (
        TextPublisher(),
        TaskExecutorNode(file=str(file), goals=("on", "off", "on", "off"), start_time=0.5),
    )
    harness = BusHarness((source, "source"), (mission, "mission"), seed=3)
    received = harness.record("/out", msg.String)
    max_count = 0
    for _ in range(40):
        harness.run_for(0.1)
        max_count = max(max_count, len(source.texts.topic.subscriptions))
    assert received.data == ["bright", "dark", "bright", "dark"]
    assert max_count == 1
    assert not source.texts.topic.subscriptions
    for name in ("on", "nonsense"):  # after the end: one more goal, and an unknown one
        harness.publish("/mission/add", msg.String(data=name))
    harness.run_for(1.5)
    assert received.data[4:] == ["bright"]
    harness.close()
