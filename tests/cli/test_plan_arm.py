"""`roboyard plan arm` as somebody types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner

from roboyard.cli.app import make_app
from roboyard.errors import InputError, UnknownNameError

runner = CliRunner()


def run_plan_arm(*words: str) -> tuple[int, dict[str, object]]:
    result = runner.invoke(make_app(["plan"]), ["plan", "arm", *words, "--json"])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, json.loads(result.output.splitlines()[-1])


@pytest.mark.slow
def test_arm_motion_is_planned_written_and_drawn(tmp_path: Path) -> None:
    file, image = tmp_path / "motion.json", tmp_path / "motion.png"
    code, found = run_plan_arm(
        "scitos_arm",
        "--goal",
        "joints 0.5 0 0.5 0 0",
        "--start",
        "folded",
        "--world",
        "arena",
        "--base-pose",
        "0 0 0.05 0",
        "--out",
        str(file),
        "--picture",
        str(image),
    )
    assert code == 0
    assert found["contacts"] == 0
    assert found["goal"] == [0.5, 0.0, 0.5, 0.0, 0.0]
    written = json.loads(file.read_text())
    assert written["joint_names"][0] == "arm_joint_1"
    assert written["points"][0]["positions"] == [0.0, 1.0, 2.3, -0.67, 0.0]
    assert written["points"][-1]["time_from_start"] == pytest.approx(found["duration"])
    assert Image.open(image).getcolors(10) is None


def test_missing_arm_motion_is_explained() -> None:
    code, found = run_plan_arm("scitos_arm", "--goal", "aim 3 0 0.5 1 0 0")
    assert (code, found["cause"]) == (1, "goal_unreachable")
    code, found = run_plan_arm("scitos_arm", "--goal", "joints 0 0 9 0 0")
    assert (code, found["cause"]) == (1, "goal_outside_limits")


@pytest.mark.parametrize(
    ("words", "kind", "expected"),
    [
        (["nobody", "--goal", "upright"], UnknownNameError, "nobody"),
        (["scitos_arm", "--goal", "uprigt"], UnknownNameError, "did you mean 'upright'"),
        (["scitos_arm", "--goal", "joints 1 2"], InputError, "--goal joints"),
        (["scitos_arm", "--goal", "1 2 3"], InputError, "--goal"),
        (["scitos_arm", "--goal", "upright", "--start", "1 2 nan 4 5"], InputError, "--start"),
        (["scitos_arm", "--goal", "upright", "--group", "leg"], UnknownNameError, "leg"),
        (["scitos_arm", "--goal", "upright", "--planner", "magic"], UnknownNameError, "magic"),
        (["scitos_arm", "--goal", "upright", "--world", "moon"], UnknownNameError, "moon"),
        (["scitos_arm", "--goal", "upright", "--base-pose", "1 2"], InputError, "--base-pose"),
        (["scitos_arm", "--goal", "upright", "--collision-margin", "-1"], InputError, "margin"),
        (["scitos_arm", "--goal", "upright", "--picture", "x.txt"], InputError, "picture"),
    ],
)
def test_plan_arm_refuses_bad_input(words: list[str], kind: type[Exception], expected: str) -> None:
    with pytest.raises(kind, match=expected):
        run_plan_arm(*words)
