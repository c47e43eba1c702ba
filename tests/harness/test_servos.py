"""The emulated servos of tests behave as on a pseudo-terminal, whatever the machine does meanwhile."""

from __future__ import annotations

import time

import numpy as np
import pytest
from tests.harness.servos import EmulatedServos, emulated_servos, position_command

from roboyard.hardware.dynamixel.config import FaultLimits
from roboyard.hardware.dynamixel.emulation.bus import FaultInjection
from roboyard.hardware.dynamixel.emulation.servo import EmulatedServo
from roboyard.hardware.dynamixel.monitor import ServoFaultError


def drive(servos: EmulatedServos) -> tuple[list[float], list[bytes]]:
    """Two motions; what the joints report meanwhile, and the servos' tables at the end."""
    reported: list[float] = []
    for values in ((0.4, -0.2, 0.1), (-0.3, 0.3, 0.0)):
        servos.hardware.write(position_command(*values))
        for _ in range(10):
            servos.run(0.1)
            reported += servos.hardware.read().position.tolist()
    return reported, [bytes(servo.table) for servo in servos.emulated]


def test_servos_in_memory_do_what_those_on_a_terminal_do() -> None:
    with emulated_servos(terminal=True, reply_timeout=1.0) as servos:
        expected = drive(servos)
    with emulated_servos() as servos:
        assert drive(servos) == expected
        assert servos.port.statistics.responses == servos.port.statistics.sent


def test_slow_machine_changes_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servos take longer on the wall clock than the reply timeout; on the wire's own time they answer at once."""
    with emulated_servos(reply_timeout=0.001) as servos:
        expected = drive(servos)
    read = EmulatedServo.read

    def read_slowly(servo: EmulatedServo, address: int, size: int) -> object:
        time.sleep(0.0015)
        return read(servo, address, size)

    monkeypatch.setattr(EmulatedServo, "read", read_slowly)
    with emulated_servos(reply_timeout=0.001) as servos:
        assert drive(servos) == expected
        assert (servos.port.statistics.timeouts, servos.port.statistics.corrupt) == (0, 0)


def test_lost_answers_are_waited_for_on_the_wires_own_time() -> None:
    with emulated_servos(
        1, [FaultInjection(1.0, "mute", 1)], fault_limits=FaultLimits(max_missed_replies=100), reply_timeout=30.0
    ) as servos:
        servos.run(0.98)
        assert servos.port.statistics.timeouts == 0
        servos.run(0.2)
        assert servos.port.statistics.timeouts == 10  # half a minute each
        np.testing.assert_allclose(servos.angles, 0.0, atol=1e-12)


def test_unplugged_wire_is_a_port_that_is_gone() -> None:
    with emulated_servos(1, [FaultInjection(0.5, "unplug")]) as servos:
        assert servos.run_until_fault(2.0) == pytest.approx(0.5)
        with pytest.raises(ServoFaultError, match="serial port lost"):
            servos.hardware.read()
