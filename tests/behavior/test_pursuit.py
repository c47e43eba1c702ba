"""Pursuit of goals: failures, changes and more useful goals cause new plans; a saved pursuit continues identically."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from tests.harness.bus import BusHarness

from roboyard.behavior import Factory, StatefulAction, Status, input_port
from roboyard.behavior.goals import Pursuit, RetryConfig, Tasks, load_tasks
from roboyard.behavior.goals.file import SenseOf
from roboyard.behavior.goals.pursuit import rehearsed
from roboyard.behavior.nodes.goal_mission import GoalMissionNode
from roboyard.behavior.nodes.senses import Senses
from roboyard.bus import Node
from roboyard.errors import InputError
from roboyard.messages import msg

FILE = """
places: {dock: [0, 0, 0], desk: [4, 0, 0], shelf: [0, 3, 0]}
world: {robot: dock, hand: nothing, on desk: nothing, on shelf: cup, on dock: nothing, bell: false}
values: {bell: [true, false]}
actions:
  drive:
    choices: {to: places, from: places}
    needs: {robot: $from}
    effects: {robot: $to}
    cost: {base: 1 s, way: [$from, $to], speed: 1 m/s}
    does: <Step what="drive $to"/>
  pick:
    choices: {place: places, thing: [cup]}
    needs: {robot: $place, on $place: $thing, hand: nothing}
    effects: {hand: $thing, on $place: nothing}
    does: <Step what="pick $thing"/>
  put:
    choices: {place: places, thing: [cup]}
    needs: {robot: $place, on $place: nothing, hand: $thing}
    effects: {on $place: $thing, hand: nothing}
    does: <Step what="put $thing"/>
  carry by another:
    needs: {robot: dock, on shelf: cup}
    effects: {on desk: cup, on shelf: nothing}
    cost: 100
    does: <Step what="call"/>
  answer: {needs: {robot: dock}, effects: {bell: false}, does: <Step what="answer"/>}
goals:
  fetch: {wants: {on desk: cup}}
  answer: {wants: {bell: false}, usability: 5, when: {bell: true}}
  home: {wants: {robot: dock}}
  moon: {wants: {robot: moon}}
"""


class Step(StatefulAction):
    """An action of two ticks that logs its start, and fails as often as ``fails`` says."""

    ports: ClassVar = {"what": input_port(str)}
    state_fields: ClassVar = ("remaining",)
    log: ClassVar[list[str]] = []
    fails: ClassVar[dict[str, int]] = {}

    def setup(self) -> None:
        self.remaining = 0

    def on_start(self) -> Status:
        self.log.append(self.input("what"))
        self.remaining = 2
        return Status.RUNNING

    def on_running(self) -> Status:
        self.remaining -= 1
        if self.remaining:
            return Status.RUNNING
        what = self.input("what")
        if self.fails.get(what, 0) > 0:
            self.fails[what] -= 1
            return Status.FAILURE
        return Status.SUCCESS

    def on_halted(self) -> None:
        self.log.append(f"stop {self.input('what')}")


@pytest.fixture
def tasks(tmp_path: Path) -> Tasks:
    file = tmp_path / "tasks.yaml"
    file.write_text(FILE)
    Step.log.clear()
    Step.fails.clear()
    return load_tasks(file)


def start_pursuit(tasks: Tasks, *goals: str) -> Pursuit:
    factory = Factory()
    factory.register(Step)
    assert len(rehearsed(tasks, goals, factory)) <= len(tasks.actions)
    return Pursuit(tasks, goals, factory, retries=RetryConfig(rest=0.2))


def run_pursuit(pursuit: Pursuit, ticks: int = 400, sensed: Any = lambda tick: {}, start: int = 0) -> Status:
    status = Status.RUNNING
    for tick in range(start, ticks):
        status = pursuit.tick(tick * 100_000_000, sensed(tick))
        if status is not Status.RUNNING:
            break
    return status


def event_kinds(pursuit: Pursuit) -> list[str]:
    return [event.what for event in pursuit.events if event.what not in ("does", "did")]


def test_pursuit_reaches_its_goals_by_plans(tasks: Tasks) -> None:
    pursuit = start_pursuit(tasks, "fetch", "home")
    assert run_pursuit(pursuit) is Status.SUCCESS
    assert Step.log == ["drive shelf", "pick cup", "drive desk", "put cup", "drive dock"]
    assert event_kinds(pursuit) == ["plans", "reached"] * 2
    assert pursuit.world["on desk"] == "cup"


def test_failed_step_is_retried_then_replaced(tasks: Tasks) -> None:
    Step.fails["pick cup"] = 1
    pursuit = start_pursuit(tasks, "fetch")
    assert run_pursuit(pursuit) is Status.SUCCESS
    assert Step.log == ["drive shelf", "pick cup", "pick cup", "drive desk", "put cup"]
    Step.log.clear()
    Step.fails["pick cup"] = 100
    pursuit = start_pursuit(tasks, "fetch")
    assert run_pursuit(pursuit) is Status.SUCCESS
    assert Step.log == ["drive shelf", "pick cup", "pick cup", "drive dock", "call"]
    assert (
        next(event.why for event in pursuit.events if event.what == "fails")
        == "pick (place shelf, thing cup): Step failed"
    )


def test_least_recently_failed_step_is_tried_first(tasks: Tasks) -> None:
    Step.fails.update({"pick cup": 4, "call": 2})
    pursuit = start_pursuit(tasks, "fetch")
    assert run_pursuit(pursuit) is Status.SUCCESS
    failed = [event.why.split(" ")[0] for event in pursuit.events if event.what == "fails"]
    assert failed == ["pick", "pick", "carry", "carry", "pick", "pick"]
    assert Step.log[-1] == "call"  # although picking is cheaper


def test_failures_are_counted_per_step(tasks: Tasks) -> None:
    Step.fails.update(dict.fromkeys(("drive shelf", "pick cup", "drive desk", "put cup"), 5))
    factory = Factory()
    factory.register(Step)
    retries = RetryConfig(tries=100, most=6, rest=0.0)
    pursuit = Pursuit(tasks, ("fetch",), factory, retries=retries)
    assert run_pursuit(pursuit) is Status.SUCCESS
    assert event_kinds(pursuit).count("fails") == 20
    Step.fails["pick cup"] = 6
    pursuit = Pursuit(tasks, ("fetch",), factory, retries=retries)
    assert run_pursuit(pursuit) is Status.FAILURE
    assert "pick (place shelf, thing cup) failed 6 times" in pursuit.results[0]


def test_goal_that_always_fails_is_abandoned_with_the_cause(tasks: Tasks) -> None:
    Step.fails.update({"pick cup": 100, "call": 100})
    pursuit = start_pursuit(tasks, "fetch", "home")
    assert run_pursuit(pursuit) is Status.FAILURE
    assert "fetch is impossible, because" in pursuit.results[0]
    assert pursuit.results[1] == ""


def test_impossible_goal_is_reported_and_the_next_one_started(tasks: Tasks) -> None:
    pursuit = start_pursuit(tasks, "moon", "home")
    assert run_pursuit(pursuit) is Status.FAILURE
    assert "moon is impossible, because no action makes robot = moon" in pursuit.results[0]
    assert pursuit.results[1] == ""


def test_goal_of_higher_usability_preempts_and_the_other_resumes(tasks: Tasks) -> None:
    pursuit = start_pursuit(tasks, "fetch", "answer")

    def sensed(tick: int) -> dict[str, Any]:
        return {"bell": True} if tick == 4 else {}

    assert run_pursuit(pursuit, sensed=sensed) is Status.SUCCESS
    assert Step.log == [
        "drive shelf", "pick cup", "stop pick cup", "drive dock", "answer", "drive shelf", "pick cup", "drive desk",
        "put cup",
    ]  # fmt: skip
    assert event_kinds(pursuit)[:2] == ["plans", "leaves"]


def test_change_that_invalidates_the_plan_causes_replanning(tasks: Tasks) -> None:
    def moved(tick: int) -> dict[str, Any]:
        return {"on shelf": "nothing", "on dock": "cup"} if tick == 2 else {}

    pursuit = start_pursuit(tasks, "fetch")
    assert run_pursuit(pursuit, sensed=moved) is Status.SUCCESS
    assert event_kinds(pursuit)[1] == "changes"
    assert Step.log[:2] == ["drive shelf", "stop drive shelf"]
    assert pursuit.world["on dock"] == "nothing"
    Step.log.clear()
    pursuit = start_pursuit(tasks, "fetch")
    assert run_pursuit(pursuit, sensed=lambda tick: {"on desk": "cup"} if tick == 2 else {}) is Status.SUCCESS
    assert "put cup" not in Step.log


def test_goal_is_abandoned_if_one_change_recurs_too_often(tasks: Tasks) -> None:
    pursuit = start_pursuit(tasks, "fetch")
    assert run_pursuit(pursuit, sensed=lambda tick: {"robot": "dock"} if tick % 4 == 3 else {}) is Status.FAILURE
    assert "robot is dock, and shelf is needed, 6 times" in pursuit.results[0]
    assert event_kinds(pursuit).count("changes") == 6


def test_nearby_places_are_resolved_to_the_believed_one(tasks: Tasks) -> None:
    tasks = replace(tasks, senses={"robot": SenseOf(near=0.3)})
    senses = Senses(SimpleNamespace(frame=str), tasks, None, "map", "base_link")  # type: ignore[arg-type]
    places = {"desk": (4.0, 0.0, 0.0), "point 1": (4.1, 0.0, 0.0)}
    for x, believed, expected in (
        (4.08, "dock", "point 1"), (4.08, "desk", "desk"), (4.02, "point 1", "point 1"), (4.35, "desk", "point 1"),
        (5.0, "desk", "elsewhere"),
    ):  # fmt: skip
        assert senses((x, 0.0, 0.0), places, {"robot": believed}) == {"robot": expected}


@pytest.mark.parametrize("seed", range(8))
def test_random_failures_are_recovered_from(tasks: Tasks, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for what in ("drive desk", "drive shelf", "drive dock", "pick cup", "put cup"):
        Step.fails[what] = int(rng.integers(0, 2))
    pursuit = start_pursuit(tasks, "fetch", "home")
    assert run_pursuit(pursuit) is Status.SUCCESS
    assert pursuit.world["on desk"] == "cup"
    assert pursuit.world["robot"] == "dock"


@pytest.mark.parametrize("saved_at", [1, 3, 6, 9, 14, 17])
def test_saved_pursuit_continues_identically(tasks: Tasks, saved_at: int) -> None:
    Step.fails["pick cup"] = 2
    uninterrupted = start_pursuit(tasks, "fetch", "home")
    assert run_pursuit(uninterrupted) is Status.SUCCESS
    log, events = list(Step.log), list(uninterrupted.events)
    Step.log.clear()
    Step.fails["pick cup"] = 2
    first = start_pursuit(tasks, "fetch", "home")
    run_pursuit(first, saved_at)
    saved = first.save_state()
    restored = start_pursuit(tasks, "fetch", "home")
    restored.load_state(saved)
    assert run_pursuit(restored, start=saved_at) is Status.SUCCESS
    assert Step.log == log
    assert first.events + restored.events == events


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("<Step what=\"call\"/>", "<Step what='call'", "action carry by another, does: is no XML"),
        ("wants: {robot: moon}", "wants: {}", "goal moon: it wants nothing"),
        ("effects: {on desk: cup, on shelf: nothing}", "effects: {on $spot: cup}", r"not known what \$spot"),
        ("way: [$from, $to]", "way: [$from]", "from and to"),
        ("bell: true}", "bell: [true]}", "the value"),
        ("drive $to", "drive $nowhere", r"\$nowhere stands for nothing"),
        ("effects: {robot: $to}", "effect: {robot: $to}", "effect"),
    ],
)  # fmt: skip
def test_invalid_task_files_are_refused(tmp_path: Path, old: str, new: str, error: str) -> None:
    file = tmp_path / "tasks.yaml"
    assert old in FILE
    file.write_text(FILE.replace(old, new))
    factory = Factory()
    factory.register(Step)
    with pytest.raises(InputError, match=error):
        rehearsed(load_tasks(file), ["fetch", "answer"], factory)


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
world: {{lamp: dark}}
actions:
  turn: {{effects: {{lamp: $to}}, does: '<RetryUntilSuccessful num_attempts="9"><Delay delay_msec="200">{words}</Delay>
    </RetryUntilSuccessful><PublishMessage topic="out" type="std_msgs/msg/String" fields="data: $to"/>'}}
goals: {{on: {{wants: {{lamp: bright}}, begins: {{lamp: dark}}}}, off: {{wants: {{lamp: dark}}}}}}
"""
    )
    source, mission = TextPublisher(), GoalMissionNode(file=str(file), goals=("on", "off", "on", "off"), start=0.5)
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
