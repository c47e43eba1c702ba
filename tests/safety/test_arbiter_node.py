"""The arbiter node on a bus."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from tests.harness.bus import BusHarness, twist

from roboyard.errors import ConfigError
from roboyard.messages import srv
from roboyard.safety.nodes import ArbiterNode

SOURCES = {
    "teleop": {"priority": 100, "timeout": 0.5},
    "navigator": {"priority": 50, "timeout": "300 ms"},
    "homing": {"priority": 50, "timeout": 1.0},
}


class ArbiterHarness(BusHarness):
    """A bus with an arbiter whose clients send forward speeds."""

    def __init__(self, **parameters: object) -> None:
        super().__init__()
        self.node = self.add(ArbiterNode(sources=SOURCES, **parameters), "arbiter")

    def send_speed(self, source: str, speed: float) -> None:
        """Publish a command in the name of a node, and deliver it."""
        self.send("/cmd_vel", twist(speed), source=f"/{source}")

    @property
    def output(self) -> list[tuple[float, float]]:
        """What came out: (time [s], forward speed [m/s])."""
        return [(item.time_ns * 1e-9, item.message.linear.x) for item in self.published("/cmd_vel_out")]

    @property
    def speeds(self) -> list[float]:
        """The forward speeds that came out [m/s]."""
        return [speed for _, speed in self.output]

    @property
    def owners(self) -> list[str]:
        """The owners that the arbiter published."""
        return self.published("/arbiter/owner").data


@pytest.fixture
def arbiter() -> Iterator[ArbiterHarness]:
    with ArbiterHarness() as arbiter:
        yield arbiter


def test_owner_passes_until_its_timeout(arbiter: ArbiterHarness) -> None:
    arbiter.send_speed("teleop", 0.3)
    arbiter.run_for(0.4)
    arbiter.send_speed("teleop", 0.4)
    arbiter.run_for(3.0)
    assert arbiter.output == [(0.0, 0.3), (pytest.approx(0.4), 0.4), (pytest.approx(0.9), 0.0)]
    assert arbiter.owners == ["", "/teleop", ""]


def test_priority_takes_over_and_waiting_source_inherits(arbiter: ArbiterHarness) -> None:
    arbiter.send_speed("homing", 0.1)
    arbiter.run_for(0.1)
    arbiter.send_speed("teleop", 0.2)
    arbiter.send_speed("navigator", 0.9)
    arbiter.send_speed("homing", 0.15)
    arbiter.run_for(0.55)
    assert arbiter.output == [(0.0, 0.1), (pytest.approx(0.1), 0.2), (pytest.approx(0.6), 0.15)]
    assert arbiter.owners == ["", "/homing", "/teleop", "/homing"]


def test_shorter_timeout_moves_the_check_forward(arbiter: ArbiterHarness) -> None:
    arbiter.send_speed("homing", 0.1)  # would be looked at after 1 s
    arbiter.send_speed("teleop", 0.2)
    arbiter.node._arbiter.release("/homing", 0)
    arbiter.run_for(0.6)
    assert arbiter.output[-1] == (pytest.approx(0.5), 0.0)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_non_finite_commands_are_refused_and_logged_once(arbiter: ArbiterHarness, bad: float) -> None:
    arbiter.send_speed("navigator", 0.1)
    for _ in range(10):
        arbiter.send_speed("teleop", bad)
    arbiter.run_for(1.0)
    assert arbiter.speeds == [0.1, 0.0]
    assert sum("not finite" in line for line in arbiter.log_lines) == 1


def test_refused_commands_do_not_extend_ownership(arbiter: ArbiterHarness) -> None:
    arbiter.send_speed("teleop", 0.3)
    for _ in range(8):
        arbiter.run_for(0.1)
        arbiter.send_speed("teleop", math.nan)
    assert arbiter.output == [(0.0, 0.3), (pytest.approx(0.5), 0.0)]


def test_unknown_publishers_come_last_or_are_refused(arbiter: ArbiterHarness) -> None:
    arbiter.send_speed("x", 0.7)
    arbiter.send_speed("navigator", 0.1)
    assert arbiter.speeds == [0.7, 0.1]
    with ArbiterHarness(accept_unknown=False) as strict:
        strict.send_speed("x", 0.7)
        assert not strict.output
        assert any("ignored a command of /x" in line for line in strict.log_lines)


def test_stop_service_holds_until_released(arbiter: ArbiterHarness) -> None:
    arbiter.run_for(0.001)
    arbiter.send_speed("teleop", 0.3)
    arbiter.start_call("/arbiter/stop", srv.SetBool, data=True)
    arbiter.run_for(0.1)
    arbiter.send_speed("teleop", 0.4)
    arbiter.run_for(0.1)
    assert arbiter.speeds == [0.3, 0.0]
    arbiter.start_call("/arbiter/stop", srv.SetBool, data=False)
    arbiter.run_for(0.01)
    assert arbiter.speeds == [0.3, 0.0, 0.4]


def test_arbiter_health_reports_problems_and_recovers(arbiter: ArbiterHarness) -> None:
    def health() -> tuple[str, str]:
        return arbiter.node.health.level, arbiter.node.health.text

    assert health() == ("ok", "no active source")
    arbiter.send_speed("teleop", 0.3)
    assert health() == ("ok", "active source: /teleop")
    arbiter.send_speed("navigator", math.nan)
    assert health()[0] == "warn"
    arbiter.send_speed("teleop", 0.3)
    assert health() == ("ok", "active source: /teleop")
    arbiter.start_call("/arbiter/stop", srv.SetBool, data=True)
    arbiter.run_for(2.0)
    assert health() == ("warn", "stopped by ~stop")


def test_owner_topic_is_latched(arbiter: ArbiterHarness) -> None:
    arbiter.send_speed("teleop", 0.3)
    assert arbiter.bus.topics["/arbiter/owner"].latched
    assert arbiter.bus.topics["/arbiter/owner"].publishers[0].last.data == "/teleop"


def test_loaded_arbiter_still_stops_in_time(arbiter: ArbiterHarness) -> None:
    arbiter.send_speed("teleop", 0.3)
    arbiter.run_for(0.2)
    state = arbiter.node.save_state()
    with ArbiterHarness() as other:
        other.run_for(0.2)
        other.node.load_state(state)
        other.run_for(1.0)
        assert other.output == [(pytest.approx(0.5), 0.0)]


@pytest.mark.parametrize(
    "bad", ["fast", {"priority": "high"}, {"timeout": 0.0}, {"timeout": float("nan")}, {"rank": 1}]
)
def test_invalid_source_parameter_is_named(bad: object) -> None:
    with pytest.raises(ConfigError, match="sources.teleop"):
        ArbiterNode(sources={"teleop": bad})
