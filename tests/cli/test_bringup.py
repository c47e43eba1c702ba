"""`roboyard bringup`: servos that are asked, driven and let go, and one clear error for all that can be wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Command


def test_servos_are_checked(command: Command) -> None:
    found = command("bringup", "akrobat", "--emulate", "--check", "--json").json
    assert found["ok"]
    assert [one["id"] for one in found["servos"]][:4] == [11, 12, 13, 21]
    result = command("bringup", "akrobat", "--emulate", "--check", "--fault", "0:overheat:32")
    assert result.code == 1
    assert "m32" in result.out
    assert "the servo is overheating" in result.out


def test_servos_are_released(command: Command) -> None:
    assert command("bringup", "akrobat", "--emulate", "--torque-off").out == "torque off: 18 servos\n"


@pytest.mark.slow
def test_drive_ends_when_a_servo_fails(command: Command) -> None:
    result = command("bringup", "akrobat", "--emulate", "--duration", "20", "--fault", "1.2:overload:42", "--json")
    assert result.code == 1
    assert "servo 42 (joint m42): the servo is overloaded (all servos hold their positions)" in result.json["error"]
    assert "node" not in result.json["error"]
    assert "Traceback" not in result.error


@pytest.mark.parametrize(
    ("arguments", "option_words"),
    [
        (("akrobat",), "exactly one of --port and --emulate"),
        (("akrobat", "--emulate", "--port", "/dev/ttyUSB0"), "exactly one of --port and --emulate"),
        (("akrobat", "--port", "/dev/nothing"), "/dev/nothing: cannot be opened: No such file"),
        (("akrobat", "--port", "/dev/null"), "not a serial port"),
        (("akrobat", "--port", "/dev/null", "--fault", "1:mute"), "--fault requires emulated servos"),
        (("akrobat", "--emulate", "--fault", "1:jump"), "'1:jump'.*SECONDS:FAULT"),
        (("akrobat", "--emulate", "--fault", "1:mute:99"), "unknown servo 99.*one of 11, 12"),
        (("akrobat", "--emulate", "--check", "--torque-off"), "one of them"),
        (("rover", "--emulate"), "names no servos"),
        (("nobody", "--emulate"), "no robot 'nobody'"),
    ],
)
def test_drive_refuses_bad_input(command: Command, arguments: tuple[str, ...], option_words: str) -> None:
    import re

    result = command("bringup", *arguments)
    assert result.code == 2
    assert re.search(option_words, result.error)
    assert "\n" not in result.error


def test_drive_never_overwrites_folders_or_leaves_empty_ones(command: Command) -> None:
    Path("full").mkdir()
    Path("full/x").write_text("x")
    assert "not empty" in command("bringup", "akrobat", "--emulate", "--out", "full").error
    assert command("bringup", "akrobat", "--port", "/dev/nothing", "--out", "new").code == 2
    assert not Path("new").exists()
