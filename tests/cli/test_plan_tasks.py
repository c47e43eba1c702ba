"""`roboyard plan tasks` and `check tasks` as somebody types them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Command

from roboyard.behavior import read_tree
from roboyard.task_planning import make_plan
from roboyard.task_planning.pddl import read_pddl

FILE = """
places: {dock: [0, 0, 0], desk: [3, 4, 0]}
initial_state: {robot: dock, arm: up}
actions:
  fold: {effects: {arm: folded}, cost: 2, behavior: <MoveArm pose="folded"/>}
  drive:
    parameters: {to: places, from: places}
    preconditions: {robot: $from, arm: folded}
    effects: {robot: $to}
    cost: {distance: [$from, $to], speed: 0.5 m/s}
    behavior: <NavigateToPose goal="$to_pose"/>
goals:
  desk: {desired_state: {robot: desk}}
  moon: {desired_state: {robot: moon}, priority: 0.5}
"""


@pytest.fixture
def file() -> str:
    Path("tasks.yaml").write_text(FILE)
    return "tasks.yaml"


def test_task_plan_has_reasons_and_a_tree(command: Command, file: str) -> None:
    result = command("plan", "tasks", file, "--explain", "--out", "plan.xml", "--json")
    assert result.code == 0, result
    assert result.json["cost"] == pytest.approx(12.0)
    assert [step["step"] for step in result.json["plan"]] == ["fold", "drive (to desk, from dock)"]
    assert "arm = folded for drive" in result.json["explanation"][0]
    assert len(read_tree(Path("plan.xml").read_text()).nodes) > 4
    displayed = command("plan", "tasks", file, "--set", "arm=folded")
    assert "1. drive (to desk, from dock), 10" in displayed.out
    assert "fold" not in displayed.out.replace("folded", "")


def test_impossible_goal_names_reason_and_suggestion(command: Command, file: str) -> None:
    result = command("plan", "tasks", file, "--goal", "moon")
    assert result.code == 1
    assert "moon is impossible, because no action makes robot = moon" in result.err
    assert "no single change" in result.err
    result = command("plan", "tasks", file, "--exclude-step", "fold", "--json")
    assert result.code == 1
    assert result.json["helpful_changes"] == ["arm = folded"]


def test_task_file_is_checked(command: Command, file: str) -> None:
    result = command("check", "tasks", file)
    assert result.code == 0, result
    assert "valid" in result.out
    assert "impossible" in result.out


@pytest.mark.parametrize(
    ("old", "new", "expected_text"),
    [
        ("desired_state: {robot: desk}", "desired: {robot: desk}", "tasks.yaml:13"),
        ("$to_pose", "$elsewhere_pose", "belongs to no place"),
        ('<NavigateToPose goal="$to_pose"/>', "<Fly/>", "Node not recognized: Fly"),
        ("speed: 0.5 m/s", "speed: 0", "speed"),
        ("arm: folded}\n    effects", "arm: [folded]}\n    effects", "the value"),
    ],
)
def test_bad_task_files_are_one_error(command: Command, file: str, old: str, new: str, expected_text: str) -> None:
    assert old in FILE
    Path(file).write_text(FILE.replace(old, new))
    result = command("check", "tasks", file)
    assert result.code == 2
    assert expected_text in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize(
    "words", [("--set", "arm"), ("--goal", "sun"), ("--set", "arm=[1]"), ("--out", "no/where.xml")]
)
def test_bad_task_options_are_refused(command: Command, file: str, words: tuple[str, str]) -> None:
    assert command("plan", "tasks", file, *words).code == 2


def test_goal_is_exported_as_pddl(command: Command, file: str) -> None:
    assert command("plan", "tasks", file, "--pddl", "out").code == 0
    domain, world, goal = read_pddl(Path("out/domain.pddl").read_text(), Path("out/problem.pddl").read_text())
    assert make_plan(domain, world, goal).cost == pytest.approx(12.0)
    assert "cannot be written" in command("plan", "tasks", file, "--pddl", f"{file}/out").error


def test_pddl_roundtrip_keeps_the_cost(command: Command, file: str) -> None:
    out = command("plan", "tasks", file, "--pddl", "out", "--json")
    back = command("plan", "tasks", "out/domain.pddl", "out/problem.pddl", "--json")
    assert back.code == 0, back
    assert back.json["cost"] == pytest.approx(out.json["cost"])
    assert len(back.json["plan"]) == len(out.json["plan"])


def test_bad_pddl_is_one_error(command: Command, file: str) -> None:
    command("plan", "tasks", file, "--pddl", "out")
    for words, expected_text in (
        (("out/domain.pddl",), "a domain requires a problem"),
        (("out/domain.pddl", "nowhere.pddl"), "nowhere.pddl: cannot be read"),
        (("out/domain.pddl", "out/domain.pddl"), "there is no goal"),
        (("out/domain.pddl", "out/problem.pddl", "--goal", "desk"), "the goal of the problem"),
        ((file, "--solver", "fast-downward-opt", "--exclude-step", "fold"), "one of them"),
    ):
        result = command("plan", "tasks", *words)
        assert result.code == 2, result
        assert expected_text in result.err
