"""The collision monitor's node: on a bus with what sensors say, and on the rover in a world."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from tests.harness.bus import BusHarness, twist

from roboyard.bus import NodeError
from roboyard.errors import ConfigError
from roboyard.geometry import SE3
from roboyard.messages import msg, time_to_msg, to_nanoseconds
from roboyard.messages.convert.clouds import cloud_to_msg
from roboyard.messages.convert.scans import ScanGeometry, scan_to_msg
from roboyard.safety.nodes import CollisionMonitorNode

FOOTPRINT = ((0.25, 0.2), (-0.25, 0.2), (-0.25, -0.2), (0.25, -0.2))


class CollisionHarness(BusHarness):
    """A bus with a collision monitor on a robot at rest."""

    def __init__(self, **parameters: object) -> None:
        super().__init__()
        laser = SE3.from_xyz_rpy((0.1, 0.0, 0.1), (0.0, 0.0, 0.0))
        self.set_transform(laser, "base_link", "laser", static=True)
        self.node = self.add(CollisionMonitorNode(**{"footprint": FOOTPRINT, **parameters}), "monitor")

    def drive(self, seconds: float, speed: float | None = 0.3, ranges=None, frame: str = "laser", age: float = 0.0):
        """Publish a command and a scan every 0.1 s; None leaves them out."""
        for _ in range(round(seconds / 0.1)):
            self.set_transform(SE3.identity(), "odom", "base_link")
            if ranges is not None:
                geometry = ScanGeometry(-1.5, 3.0 / (len(ranges) - 1), 0.1, 10.0)
                scan = scan_to_msg(ranges, geometry, frame=frame, time_ns=self.now_ns - round(age * 1e9))
                self.publish("/scan", scan, source="/laser")
            if speed is not None:
                self.publish("/cmd_vel_in", twist(speed), source="/teleop")
            self.run_for(0.1)

    @property
    def output(self) -> list[tuple[float, float]]:
        """What came out: (time [s], forward speed [m/s])."""
        return [(item.time_ns * 1e-9, item.message.linear.x) for item in self.published("/cmd_vel_out")]

    @property
    def states(self) -> list[tuple[int, str]]:
        """The monitor's states: (action, polygon)."""
        messages = self.published("/collision_monitor_state").messages
        return [(message.action_type, message.polygon_name) for message in messages]

    @property
    def health(self) -> tuple[str, str]:
        """Level and text."""
        return self.node.health.level, self.node.health.text


OPEN = np.full(31, math.inf)
BLOCKED = np.full(31, 0.19)


@pytest.fixture
def monitor() -> Iterator[CollisionHarness]:
    with CollisionHarness() as monitor:
        yield monitor


def test_node_passes_commands_and_overrides_with_reason(monitor: CollisionHarness) -> None:
    monitor.drive(1.0, ranges=OPEN)
    assert monitor.output[-1][1] == 0.3
    assert monitor.health == ("ok", "commands pass")
    monitor.drive(1.0, ranges=BLOCKED)
    assert monitor.output[-1][1] < 0.02
    assert monitor.health[0] == "warn"
    assert "closer than 0.05 m" in monitor.health[1]
    assert monitor.states[-1] in ((1, "footprint"), (3, "footprint"))
    assert any("closer than 0.05 m" in line for line in monitor.log_lines)
    monitor.drive(1.0, -0.3, ranges=BLOCKED)
    assert monitor.output[-1][1] == -0.3, "backing out is always possible"
    assert monitor.states[-1] == (0, "")


def test_silent_sensor_stops_the_robot_in_time(monitor: CollisionHarness) -> None:
    monitor.drive(1.0, ranges=OPEN)
    monitor.drive(1.5)
    stopped = next(time for time, speed in monitor.output if time > 0.9 and speed == 0.0)
    assert stopped - 0.9 <= 0.5 + 1.0 / 25.0 + 1e-9  # source_timeout and a period after the last scan
    assert monitor.health[0] == "error"
    assert "scan silent" in monitor.health[1]
    assert monitor.states[-1] == (1, "sensors")
    monitor.drive(0.5, ranges=OPEN)
    assert monitor.output[-1][1] == 0.3


def test_nothing_moves_before_the_first_scan(monitor: CollisionHarness) -> None:
    monitor.drive(0.3)
    assert {speed for _, speed in monitor.output} == {0.0}


@pytest.mark.parametrize(
    ("scan", "reason"),
    [
        ({"ranges": np.full(31, np.nan)}, "none of which measured"),
        ({"ranges": np.full(31, 0.01)}, "none of which measured"),
        ({"ranges": OPEN, "frame": "lazer"}, "'lazer' is unknown"),
        ({"ranges": OPEN, "age": 0.7}, "stamped 0.70 s ago"),
        ({"ranges": OPEN, "age": -1.0}, "ahead of time"),
    ],
)
def test_invalid_sensor_data_stops_the_robot_with_reason(monitor: CollisionHarness, scan, reason) -> None:
    monitor.drive(1.0, ranges=OPEN)
    monitor.drive(1.5, **scan)
    assert monitor.output[-1][1] == 0.0
    assert monitor.health[0] == "error"
    assert reason in monitor.health[1]


def test_single_invalid_beams_are_ignored(monitor: CollisionHarness) -> None:
    ranges = OPEN.copy()
    ranges[::2] = np.nan
    monitor.drive(1.0, ranges=ranges)
    assert monitor.output[-1][1] == 0.3


def test_non_finite_commands_are_refused_and_old_ones_end(monitor: CollisionHarness) -> None:
    monitor.drive(0.5, ranges=OPEN)
    monitor.drive(1.0, math.nan, ranges=OPEN)
    assert monitor.output[-1][1] == 0.0
    assert all(math.isfinite(speed) for _, speed in monitor.output)
    assert any("not finite" in line for line in monitor.log_lines)
    count = len(monitor.output)
    monitor.drive(1.0, None, ranges=OPEN)
    assert len(monitor.output) == count, "nobody commands: nothing is said"


def test_clouds_and_sonar_ranges_stop_the_robot_too() -> None:
    with CollisionHarness(scan_topics=(), cloud_topics=("cloud",), range_topics=("sonar",)) as monitor:

        def drive(points, distance: float) -> float:
            for _ in range(5):
                monitor.publish("/cloud", cloud_to_msg(np.array(points), "laser", monitor.now_ns))
                echo = msg.Range(field_of_view=0.3, min_range=0.05, max_range=3.0, range=distance)
                echo.header.frame_id, echo.header.stamp = "laser", time_to_msg(monitor.now_ns)
                monitor.publish("/sonar", echo)
                monitor.drive(0.1)
            return monitor.output[-1][1]

        distant = [[5.0, 0.0, 0.3]]
        assert drive(distant, math.inf) == 0.3
        assert drive([[0.19, 0.0, 0.3]], math.inf) < 0.02
        assert drive([[0.19, 0.0, 2.3]], math.inf) == 0.3, "higher than the robot"
        assert drive(distant, 0.19) < 0.02
        assert drive(distant, 2.0) == 0.3
        drive(distant, math.nan)  # single ones are left out; after half a second without a measurement it stops
        drive(distant, math.nan)
        assert monitor.output[-1][1] == 0.0
        assert "sonar silent" in monitor.health[1]


def test_zones_are_read_from_parameters() -> None:
    zone = {"action": "slowdown", "slowdown_ratio": 0.4, "radius": "300 cm", "min_points": 2}
    with CollisionHarness(zones={"near": zone}) as monitor:
        monitor.drive(1.0, ranges=np.full(31, 2.0))
        assert monitor.output[-1][1] == pytest.approx(0.12)
        assert monitor.states[-1] == (2, "near")


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"footprint": ()}, "polygon"),
        ({"footprint": "round"}, "resource .footprint. is a str"),
        ({"footprint": ((0, 0), (1, 1), (1, 0), (0, 1))}, "crosses itself"),
        ({"scan_topics": ()}, "no sensor"),
        ({"zones": ("near",)}, "zones: is a list"),
        ({"zones": {"near": {"action": "halt"}}}, "slowdown, stop"),
        ({"zones": {"near": {"action": "stop", "size": 3}}}, "unknown key 'size'"),
        ({"zones": {"near": {"action": "stop", "radius": "wide"}}}, "wide"),
        ({"zones": {"near": {"action": "stop", "radius": 1, "points": [[0, 0], [1, 0], [0, 1]]}}}, "one of them"),
        ({"zones": {"near": {}}}, "action. is missing"),
        ({"zones": {"near": {"action": "slowdown", "slowdown_ratio": 2}}}, "0 to 1"),
        ({"zones": {"near": {"action": "stop", "points": [[0, 0], [1, 0]]}}}, "at least 3"),
        ({"rate": 0.0}, "rate: 0 Hz is below 1 Hz"),
        ({"margin": -1.0}, "margin: -1 m is below 0 m"),
        ({"min_height": 2.0}, "max_height"),
    ],
)
def test_invalid_monitor_parameters_are_refused(bad, words) -> None:
    with pytest.raises((ConfigError, NodeError), match=words.replace("'", ".")):
        CollisionHarness(**bad)


def test_scan_that_waits_for_its_transform_is_saved(monitor: CollisionHarness) -> None:
    monitor.run_for(1.0)
    scan = scan_to_msg(BLOCKED, ScanGeometry(-1.5, 0.1, 0.1, 10.0), frame="laser", time_ns=monitor.now_ns)
    monitor.send("/scan", scan, source="/laser")
    with monitor.snapshot_roundtrip(CollisionHarness) as loaded:
        assert isinstance(loaded, CollisionHarness)
        loaded.set_transform(SE3.identity(), "odom", "base_link", time_ns=to_nanoseconds(scan.header.stamp))
        loaded.set_transform(SE3.identity(), "odom", "base_link")
        loaded.drive(0.3, ranges=None)
        level, text = loaded.health
        assert level == "warn"
        assert "silent" not in text


def test_sensor_without_transforms_stops_the_robot_with_reason(monitor: CollisionHarness) -> None:
    monitor.drive(2.0, ranges=OPEN, frame="moon")
    assert "'moon'" in monitor.health[1]
    assert all(speed == 0.0 for _, speed in monitor.output)


def test_loaded_collision_monitor_goes_on(monitor: CollisionHarness) -> None:
    monitor.drive(1.0, ranges=BLOCKED)
    state = monitor.node.save_state()
    with CollisionHarness() as other:
        other.run_for(1.0)
        other.set_transform(SE3.identity(), "odom", "base_link")
        other.node.load_state(state)
        other.run_for(0.3)
        assert other.output
        assert all(speed < 0.02 for _, speed in other.output)
