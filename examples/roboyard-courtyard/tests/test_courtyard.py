"""What a package owes its users: its parts are found by name, are right, and do what they promise."""

from pathlib import Path

import numpy as np
import pytest
from roboyard_courtyard.rambler import Rambler

import roboyard as ry
from roboyard.bringup.catalog import NODES, ROBOTS, SCENARIOS, WORLDS
from roboyard.scenarios import (
    BatchOptions,
    RunOptions,
    check_scenario,
    load_scenario,
    run_batch_and_report,
    run_scenario,
)


def test_all_parts_are_found_by_name() -> None:
    assert ROBOTS["wagon"].origin == "roboyard-courtyard"
    assert "courtyard" in WORLDS
    assert "courtyard-ramble" in SCENARIOS
    assert "rambler" in NODES
    assert check_scenario("courtyard-ramble").findings == ()


@pytest.mark.parametrize(("near", "turns"), [(3.0, False), (0.3, True)])
def test_it_turns_only_where_something_is_near(near: float, turns: bool) -> None:
    twists: list[ry.msg.Twist] = []

    class Room(ry.Node):
        """out: scan  in: cmd_vel"""

        def setup(self) -> None:
            self.scan = self.publisher("scan", ry.msg.LaserScan)
            self.subscribe("cmd_vel", ry.msg.Twist, twists.append)
            self.timer(0.1, self.look)

        def look(self) -> None:
            ranges = np.full(63, near, np.float32)
            self.scan.publish(ry.msg.LaserScan(angle_min=-3.1, angle_increment=0.1, range_max=9.0, ranges=ranges))

    with ry.Bus(seed=0) as bus:
        bus.add(Rambler(), name="rambler")
        bus.add(Room(), name="room")
        bus.executor.run_for(0.5)
    assert twists
    assert all((twist.angular.z != 0.0) == turns and (twist.linear.x > 0.0) != turns for twist in twists)


def test_it_rambles() -> None:
    outcome = run_scenario(load_scenario("courtyard-ramble", smoke=True), RunOptions(write_files=False, serve=False))
    assert outcome.success, outcome.failure_reason


def test_wherever_it_starts(tmp_path: Path) -> None:
    batch = run_batch_and_report(
        "courtyard-ramble", BatchOptions(runs=3, workers=1, out=tmp_path / "batch", stored_runs="none")
    )
    assert batch.success_rate.successes == 3
