"""A pressed bumper: nothing passes, whoever commands, until it is open; a release lets one slow move away pass."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.harness.bus import BusHarness, twist
from tests.harness.models import static_box

import roboyard as ry
from roboyard.control import ZERO_TWIST, PlanarTwist
from roboyard.errors import ConfigError
from roboyard.geometry import SE3
from roboyard.messages import srv
from roboyard.safety import BumperConfig, BumperContact, BumperGuard, BumperState
from roboyard.simulation.faults import SensorFault

TWISTS = st.builds(PlanarTwist, st.floats(-1.0, 1.0), st.just(0.0), st.floats(-2.0, 2.0))
BEARINGS = st.floats(-math.pi, math.pi)
STEP = 20_000_000


def make_contact(bearing: float, radius: float = 0.3) -> BumperContact:
    c, s = math.cos(bearing), math.sin(bearing)
    return BumperContact(radius * c, radius * s, -c, -s)


@settings(max_examples=60, deadline=None)
@given(st.lists(BEARINGS, min_size=1, max_size=3), st.lists(TWISTS, min_size=1, max_size=10))
def test_bumper_contact_blocks_until_open_long_enough(bearings, commands) -> None:
    guard = BumperGuard(BumperConfig(clear_time=0.1))
    assert guard.filter_command(commands[0], 0.02, 0) == commands[0]
    guard.update_contacts([make_contact(one) for one in bearings], 0)
    for k, command in enumerate(commands):
        guard.update_contacts([make_contact(bearings[0])], k * STEP)
        assert guard.filter_command(command, 0.02, k * STEP) == ZERO_TWIST
    last = (len(commands) - 1) * STEP
    for k in range(5):
        guard.update_contacts([], last + k * STEP)
        assert guard.state is BumperState.BLOCKED
    guard.update_contacts([], last + 5 * STEP)
    assert guard.filter_command(commands[0], 0.02, last + 5 * STEP) == commands[0]


@settings(max_examples=200, deadline=None)
@given(BEARINGS, st.lists(st.floats(-1.2, 1.2), max_size=2), TWISTS)
def test_bumper_release_passes_slow_motion_away_only(first, more, command) -> None:
    guard = BumperGuard()
    contacts = [
        make_contact(first),
        *(make_contact(first + offset) for offset in more),
    ]  # all about: nothing leads out of those
    guard.update_contacts(contacts, 0)
    assert guard.release(0)
    allowed = guard.filter_command(command, 0.02, 0)
    assume(allowed != ZERO_TWIST)
    for p in contacts:
        vx, vy = allowed.vx - allowed.wz * p.y, allowed.vy + allowed.wz * p.x
        assert vx * p.nx + vy * p.ny > 0.0
        assert math.hypot(vx, vy) <= guard.config.release_speed + 1e-9
    assert allowed.vx * command.wz == pytest.approx(allowed.wz * command.vx, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(BEARINGS, st.floats(0.05, 1.0))
def test_bumper_release_is_bounded_in_distance(bearing, speed) -> None:
    guard = BumperGuard(BumperConfig(release_distance=0.1))
    p = make_contact(bearing)
    guard.update_contacts([p], 0)
    guard.release(0)
    command = PlanarTwist(speed * p.nx, speed * p.ny, 0.0)
    distance = 0.0
    for k in range(1000):
        allowed = guard.filter_command(command, 0.02, k * STEP)
        distance += math.hypot(allowed.vx, allowed.vy) * 0.02
        guard.update_contacts([p], k * STEP)
    assert distance == pytest.approx(0.1, abs=guard.config.release_speed * 0.02)
    assert guard.state is BumperState.BLOCKED


def test_bumper_release_ends_with_another_contact() -> None:
    guard = BumperGuard()
    assert not guard.release(0)
    guard.update_contacts([make_contact(0.0)], 0)
    assert guard.release(0)
    guard.update_contacts([make_contact(0.05)], STEP)
    assert guard.state is BumperState.RELEASED
    guard.update_contacts([make_contact(0.05), make_contact(math.pi)], 2 * STEP)
    assert guard.state is BumperState.BLOCKED
    assert guard.filter_command(PlanarTwist(-0.1, 0.0, 0.0), 0.02, 3 * STEP) == ZERO_TWIST


def test_loaded_bumper_guard_goes_on() -> None:
    first = BumperGuard()
    first.update_contacts([make_contact(0.3)], 5)
    first.release(7)
    first.filter_command(PlanarTwist(-0.2, 0.0, 0.0), 0.02, 9)
    second = BumperGuard()
    second.load_state(first.save_state())
    for k in range(600):
        assert first.filter_command(PlanarTwist(-0.2, 0.0, 0.0), 0.02, k * STEP) == second.filter_command(
            PlanarTwist(-0.2, 0.0, 0.0), 0.02, k * STEP
        )
    assert first.save_state() == second.save_state()


@pytest.mark.parametrize("name", ["clear_time", "release_speed", "release_distance", "release_time"])
@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_invalid_bumper_config_is_refused(name: str, bad: float) -> None:
    with pytest.raises(ConfigError, match=name):
        BumperConfig(**{name: bad})


# -- in physics --------------------------------------------------------------------------------------------------------
class DrivenBase(BusHarness):
    """A base in a simulated run, at arm's length before the corridor's wall, that a test drives."""

    def __init__(self, run: ry.Run) -> None:
        super().__init__(bus=run.bus)
        self.run = run
        self.robot = run.add_robot("scitos_base", pose=(0.0, 0.75, math.pi / 2))

    @property
    def states(self) -> list[str]:
        """States that the node published."""
        return self.published("/bumper_guard/state").data

    def drive(self, v: float, seconds: float, source: str = "/operator", w: float = 0.0) -> float:
        """Command a velocity for a while; returns how far the base moved [m]."""
        before = self.robot.truth.pose
        for _ in range(round(seconds * 20)):
            self.publish("/cmd_vel", twist(v, w), source=source)
            self.run.run_for(0.05)
        after = self.robot.truth.pose
        return math.hypot(after.x - before.x, after.y - before.y)

    def release(self) -> Any:
        """Call the release service."""
        return self.call("/bumper_guard/release", srv.Trigger)


def test_base_stops_at_a_wall_and_release_backs_it_off() -> None:
    with ry.Run("corridor", record=False) as run:
        base = DrivenBase(run)
        assert not base.release().success
        base.drive(0.2, 1.5)
        assert base.states == ["free", "blocked"]
        for source in ("/operator", "/navigator"):
            for v, w in ((0.2, 0.0), (-0.2, 0.0), (0.0, 0.7)):
                assert base.drive(v, 0.6, source, w) < 0.002
        assert base.release().success
        assert base.drive(0.2, 0.5) < 0.002  # into the wall: still nothing
        assert 0.005 < base.drive(-0.2, 0.3) <= 0.05 * 0.3 + 0.005
        base.drive(-0.2, 1.0)
        assert base.states == ["free", "blocked", "released", "free"]
        assert base.drive(-0.2, 1.0) > 0.15


def test_base_drives_on_when_the_obstacle_is_removed() -> None:
    with ry.Run("empty", record=False) as run:
        base = DrivenBase(run)
        crate = static_box("crate", (0.4, 0.4, 0.4), SE3.identity()).model
        run.add_object(crate, "crate", pose=(0.0, 1.4, 0.2, 0.0, 0.0, 0.0))
        base.drive(0.2, 2.5)
        assert base.states[-1] == "blocked"
        run.remove("crate")
        base.drive(0.2, 0.5)
        assert base.states[-1] == "free"
        assert base.drive(0.2, 1.0) > 0.15


def test_silent_bumper_blocks_the_base() -> None:
    with ry.Run("empty", record=False) as run:
        base = DrivenBase(run)
        base.drive(0.2, 0.5)
        run.simulation.faults.start("dumb", SensorFault("scitos_base", "bumper", "silent"))
        base.drive(0.2, 1.0)
        assert base.states[-1] == "blocked"
        assert base.drive(0.2, 0.5) < 0.003
        run.simulation.faults.end("dumb")
        assert base.drive(0.2, 1.0) > 0.1
