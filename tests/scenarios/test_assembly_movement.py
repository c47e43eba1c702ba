"""Scenarios with a movement file: the robot plays it after standing up, and invalid files are refused before."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from roboyard.config import read_yaml
from roboyard.errors import InputError, RoboyardError
from roboyard.scenarios import load_scenario, run_scenario
from roboyard.scenarios.assembly import build_run
from roboyard.scenarios.resolve import resolve_scenario
from roboyard.scenarios.run_options import RunOptions
from roboyard.walking.errors import FootOutOfReachError, LegJointLimitError
from roboyard.walking.foot_movement import FootMovement, format_movement

STEP = "<step><x>0</x><y>0</y><z>0</z></step>"


def foot(number: int, steps: int = 1) -> str:
    return f'<foot number="{number}">{STEP * steps}</foot>'


def lifted(leg: int, to: tuple[float, float, float]) -> str:
    steps = np.zeros((6, 3, 3))
    steps[leg, 1] = to
    return format_movement(FootMovement(steps))


def test_robot_rises_and_plays_a_movement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lift.xml").write_text(lifted(0, (0.0, 0.0, 0.03)))
    spec = load_scenario("akrobat-movement-file", overrides=["movement=lift.xml", "duration=2.2"])
    outcome = run_scenario(spec, RunOptions(write_files=False, write_report=False, serve=False))
    assert outcome.state == "done"
    assert outcome.metrics["movements"] == 1
    assert outcome.metrics["falls"] == 0
    assert outcome.success
    repeated = tmp_path / "again.yaml"
    repeated.write_text(resolve_scenario(spec).to_yaml())
    assert Path(read_yaml(repeated).to_data()["movement"]) == tmp_path / "lift.xml"


FEET = "".join(foot(k) for k in range(6))


@pytest.mark.parametrize(
    ("text", "kind", "pattern"),
    [
        ("<movement>" + FEET.replace(foot(3), "") + "</movement>", InputError, "bad.xml.*foot 3 is missing"),
        ("<movement>" + FEET.replace(foot(5), "") + "</movement>", InputError, "bad.xml.*5 feet .6, as akrobat has"),
        ("<movement>" + FEET.replace(foot(3), foot(3, 2)) + "</movement>", InputError, "bad.xml.*foot 3 has 2 steps"),
        ("<movement>" + FEET.replace(">0<", ">nan<", 1) + "</movement>", InputError, "bad.xml.*<x> is 'nan'"),
        (f"<walk>{FEET}</walk>", InputError, "bad.xml.*root is <walk>"),
        (lifted(3, (0.0, 0.0, 1.0)), FootOutOfReachError, "bad.xml.*leg rm.*step 1.*out of reach"),
        (lifted(2, (0.17, -0.1, 0.0)), LegJointLimitError, "bad.xml.*leg lm.*step 1.*needs m31 at"),
    ],
)
def test_invalid_movement_is_refused_before_the_run(
    tmp_path: Path, text: str, kind: type[RoboyardError], pattern: str
) -> None:
    path = tmp_path / "bad.xml"
    path.write_text(text)
    with pytest.raises(kind, match=pattern) as caught:
        build_run(
            resolve_scenario(load_scenario("akrobat-movement-file", overrides=[f"movement={path}"])), record=False
        )
    assert str(caught.value).count("\n") == 0


def test_robot_that_cannot_play_movements_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m.xml").write_text(lifted(0, (0.0, 0.0, 0.03)))
    with pytest.raises(InputError, match="rover plays none .a robot on legs"):
        build_run(
            resolve_scenario(load_scenario("rover-drive", overrides=[f"movement={tmp_path / 'm.xml'}"])), record=False
        )
    with pytest.raises(InputError, match="movement: there is no file nothing.xml"):
        build_run(
            resolve_scenario(load_scenario("akrobat-movement-file", overrides=["movement=nothing.xml"])), record=False
        )
