"""`roboyard bringup`: servos that are asked, driven and let go, and one clear error for all that can be wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Command


def test_servos_are_checked(command: Command) -> None:
    found = command("bringup", "akrobat", "--emulate", "--check", "--json").json
    assert found["ok"]
    assert [one["id"] for one in found["servos"]][:4] == [11, 12, 13, 21]
    done = command("bringup", "akrobat", "--emulate", "--check", "--fault", "0:overheat:32")
    assert done.code == 1
    assert "m32" in done.out
    assert "the servo is overheating" in done.out


def test_servos_are_released(command: Command) -> None:
    assert command("bringup", "akrobat", "--emulate", "--torque-off").out == "let go: 18 servos\n"


@pytest.mark.slow
def test_drive_ends_when_a_servo_fails(command: Command) -> None:
    done = command("bringup", "akrobat", "--emulate", "--duration", "20", "--fault", "1.2:overload:42", "--json")
    assert done.code == 1
    assert "servo 42 (joint m42): the servo is overloaded (all servos hold their positions)" in done.json["error"]
    assert "node" not in done.json["error"]
    assert "Traceback" not in done.error


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (("akrobat",), "either --port or --emulate"),
        (("akrobat", "--emulate", "--port", "/dev/ttyUSB0"), "either --port or --emulate"),
        (("akrobat", "--port", "/dev/nothing"), "/dev/nothing: cannot be opened: No such file"),
        (("akrobat", "--port", "/dev/null"), "not a serial port"),
        (("akrobat", "--port", "/dev/null", "--fault", "1:mute"), "--fault is of emulated servos"),
        (("akrobat", "--emulate", "--fault", "1:jump"), "'1:jump'.*SECONDS:FAULT"),
        (("akrobat", "--emulate", "--fault", "1:mute:99"), "unknown servo 99.*one of 11, 12"),
        (("akrobat", "--emulate", "--check", "--torque-off"), "one of them"),
        (("rover", "--emulate"), "names no servos"),
        (("nobody", "--emulate"), "no robot 'nobody'"),
    ],
)
def test_drive_refuses_bad_input(command: Command, arguments: tuple[str, ...], wanted: str) -> None:
    import re

    done = command("bringup", *arguments)
    assert done.code == 2
    assert re.search(wanted, done.error)
    assert "\n" not in done.error


def test_drive_never_overwrites_folders_or_leaves_empty_ones(command: Command) -> None:
    Path("full").mkdir()
    Path("full/x").write_text("x")
    assert "not empty" in command("bringup", "akrobat", "--emulate", "--out", "full").error
    assert command("bringup", "akrobat", "--port", "/dev/nothing", "--out", "new").code == 2
    assert not Path("new").exists()
