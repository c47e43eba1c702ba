"""`roboyard check movement` and `roboyard show movement`: what a robot's feet would do, or why they cannot."""

from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Command

from roboyard.walking.foot_movement import FootMovement, format_movement


def written(name: str, foot: int, to: tuple[float, float, float]) -> str:
    """A movement of one foot and back."""
    steps = np.zeros((6, 3, 3))
    steps[foot, 1] = to
    Path(name).write_text(format_movement(FootMovement(steps)))
    return name


def test_movement_is_checked(command: Command) -> None:
    found = command("check", "movement", written("wave.xml", 0, (0.02, 0.0, 0.05)), "--json").json
    assert (found["robot"], found["feet"], found["steps"]) == ("akrobat", 6, 3)
    assert found["duration"] == pytest.approx(0.02 * sum(found["ticks"]))
    assert found["slowed"] == 2


def test_movement_is_shown_and_drawn(command: Command) -> None:
    file = written("wave.xml", 0, (0.02, 0.0, 0.05))
    result = command(
        "show", "movement", file, "--picture", "wave.png", "--robot", "lauron", "--interpolation", "spline"
    )
    assert result.code == 0
    assert "0 … 50" in result.out
    assert Path("wave.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize(
    ("arguments", "option_words"),
    [
        (("--robot", "rover"), "has no legs"),
        (("--robot", "nobody"), "no robot 'nobody'"),
        (("--interpolation", "jump"), "cosine or spline"),
    ],
)
def test_movement_commands_refuse_bad_input(command: Command, arguments: tuple[str, str], option_words: str) -> None:
    file = written("wave.xml", 0, (0.0, 0.0, 0.03))
    for subcommand in ("check", "show"):
        result = command(subcommand, "movement", file, *arguments)
        assert result.code == 2
        assert option_words in result.error


def test_image_of_unknown_format_is_refused(command: Command) -> None:
    result = command("show", "movement", written("wave.xml", 0, (0.0, 0.0, 0.03)), "--picture", "wave.doc")
    assert result.code == 2
    assert ".png or .svg" in result.error


def test_impossible_movement_names_step_and_leg(command: Command) -> None:
    result = command("check", "movement", written("high.xml", 3, (0.0, 0.0, 1.0)))
    assert result.code == 1
    assert "step 1" in result.error
    assert "leg rm of akrobat" in result.error
