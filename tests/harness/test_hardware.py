"""Fake joints solve their first-order equation exactly and fail as they are told."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.hardware import FakeHardware

from roboyard.errors import InputError, UnknownNameError
from roboyard.hardware.interface import Hardware, JointCommand


class Clock:
    def __init__(self) -> None:
        self.time_ns = 0

    def __call__(self) -> int:
        return self.time_ns

    def advance(self, seconds: float) -> None:
        self.time_ns += round(seconds * 1e9)


def command(mode: str, **values: float) -> JointCommand:
    return JointCommand(mode, tuple(values), np.array(list(values.values())))  # type: ignore[arg-type]


@given(st.floats(0.01, 2.0), st.lists(st.floats(0.001, 0.5), min_size=1, max_size=5), st.floats(-2.0, 2.0))
def test_position_follows_exponential_however_it_is_read(tau: float, steps: list[float], target: float) -> None:
    clock = Clock()
    hardware = FakeHardware(["a"], clock, time_constant=tau)
    hardware.write(command("position", a=target))
    for step in steps:
        clock.advance(step)
        reading = hardware.read()
    t = clock() * 1e-9
    assert reading.position == pytest.approx([target * (1.0 - math.exp(-t / tau))], abs=1e-9)
    assert reading.velocity == pytest.approx([target * math.exp(-t / tau) / tau], abs=1e-6 + 1e-6 * abs(target) / tau)


@given(st.floats(0.01, 2.0), st.floats(-2.0, 2.0))
def test_velocity_response_integrates_to_its_position(tau: float, target: float) -> None:
    clock = Clock()
    hardware = FakeHardware(["a"], clock, time_constant=tau)
    hardware.write(command("velocity", a=target))
    clock.advance(1.0)
    want = target * (1.0 - tau * (1.0 - math.exp(-1.0 / tau)))
    assert hardware.position == pytest.approx([want], abs=1e-9)
    assert hardware.velocity == pytest.approx([target * (1.0 - math.exp(-1.0 / tau))], abs=1e-9)


def test_without_time_constant_joints_are_there_at_once() -> None:
    clock = Clock()
    hardware = FakeHardware(["a", "b"], clock, position=[0.5, 0.0])
    assert isinstance(hardware, Hardware)
    hardware.write(command("velocity", b=2.0))
    hardware.write(command("position", a=1.0))
    clock.advance(0.25)
    reading = hardware.read()
    assert reading.time_ns == 250_000_000
    assert reading.position == pytest.approx([1.0, 0.5])
    assert reading.velocity == pytest.approx([0.0, 2.0])
    assert [(item.time_ns, item.mode, item.joints) for item in hardware.written] == [
        (0, "velocity", ("b",)),
        (0, "position", ("a",)),
    ]
    assert hardware.set_points == {"a": 1.0, "b": 2.0}
    assert [row.tolist() for row in hardware.history] == [[0.5, 0.0], [0.5, 0.0], [1.0, 0.0]]


def test_stuck_joints_stay_and_offsets_show_in_readings_only() -> None:
    clock = Clock()
    hardware = FakeHardware(["a", "b"], clock)
    hardware.stuck.add("a")
    hardware.offset["b"] = 0.1
    hardware.write(command("position", a=1.0, b=1.0))
    clock.advance(1.0)
    assert hardware.position == pytest.approx([0.0, 1.0])
    assert hardware.read().position == pytest.approx([0.0, 1.1])
    hardware.place("a", 0.3)
    clock.advance(1.0)
    assert hardware.position[0] == 0.3


def test_efforts_are_reported_and_move_nothing() -> None:
    hardware = FakeHardware(["a"], Clock())
    hardware.write(command("effort", a=3.0))
    reading = hardware.read()
    assert (reading.effort[0], reading.position[0]) == (3.0, 0.0)


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (command("velocity", wheel=1.0), UnknownNameError),
        (command("velocity", a=1.0), UnknownNameError),
        (command("position", a=math.nan), InputError),
    ],
    ids=["unknown joint", "other mode", "not finite"],
)
def test_bad_commands_are_refused_and_change_nothing(bad: JointCommand, error: type[Exception]) -> None:
    hardware = FakeHardware(["a", "passive"], Clock(), modes={"a": ["position"]})
    assert hardware.command_modes("passive") == ()
    with pytest.raises(error):
        hardware.write(bad)
    assert hardware.written == []
    assert not hardware.position.any()


def test_errors_of_the_bus_are_raised() -> None:
    hardware = FakeHardware(["a"], Clock())
    hardware.read_error, hardware.write_error = OSError("no answer"), OSError("cable")
    with pytest.raises(OSError, match="no answer"):
        hardware.read()
    with pytest.raises(OSError, match="cable"):
        hardware.write(command("position", a=1.0))
