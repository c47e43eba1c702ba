"""The collision monitor's node: on a bus with what sensors say, and on the rover in a world."""

from __future__ import annotations

import math

import numpy as np
import pytest

from roboyard.bus import Bus, NodeError
from roboyard.errors import ConfigError
from roboyard.geometry import SE3
from roboyard.messages import msg, stamp
from roboyard.messages.convert.clouds import cloud_to_msg
from roboyard.messages.convert.scans import scan_to_msg
from roboyard.safety.nodes import CollisionMonitorNode

FOOTPRINT = "[[0.25, 0.2], [-0.25, 0.2], [-0.25, -0.2], [0.25, -0.2]]"


class Bench:
    """A bus with a monitor, a robot that stands, and what came out."""

    def __init__(self, bus: Bus, **parameters: object) -> None:
        self.bus = bus
        bus.transforms.insert(SE3.from_xyz_rpy((0.1, 0.0, 0.1), (0.0, 0.0, 0.0)), "base_link", "laser", 0, static=True)
        self.node = bus.add(CollisionMonitorNode(**{"footprint": FOOTPRINT, **parameters}), "monitor")
        self.out: list[tuple[float, float]] = []
        self.states: list[tuple[int, str]] = []
        self.lines: list[str] = []
        self.command = bus.publisher("/cmd_vel_in", msg.Twist, "/teleop")
        self.scan = bus.publisher("/scan", msg.LaserScan, "/laser")
        bus.tap(self._see)
        bus.log_sinks.append(lambda record: self.lines.append(record.text))

    def _see(self, topic, message, node, time_ns) -> None:
        if topic.name == "/cmd_vel_out":
            self.out.append((time_ns * 1e-9, message.linear.x))
        if topic.name == "/collision_monitor_state":
            self.states.append((message.action_type, message.polygon_name))

    def run(self, seconds: float, speed: float | None = 0.3, ranges=None, frame: str = "laser", age: float = 0.0):
        for _ in range(round(seconds / 0.1)):
            self.bus.transforms.insert(SE3.identity(), "odom", "base_link", self.bus.now_ns)
            if ranges is not None:
                self.scan.publish(
                    scan_to_msg(
                        ranges, angle_min=-1.5, angle_increment=3.0 / (len(ranges) - 1), range_min=0.1, range_max=10.0,
                        frame=frame, time_ns=self.bus.now_ns - round(age * 1e9),
                    )
                )  # fmt: skip
            if speed is not None:
                self.command.publish(msg.Twist(linear=msg.Vector3(x=speed)))
            self.bus.executor.run_for(0.1)

    @property
    def health(self) -> tuple[str, str]:
        return self.node.health.level, self.node.health.text


OPEN = np.full(31, math.inf)
BLOCKED = np.full(31, 0.19)


@pytest.fixture
def bench():
    with Bus() as bus:
        yield Bench(bus)


def test_commands_pass_in_the_open_and_are_overruled_with_a_reason_before_something(bench: Bench) -> None:
    bench.run(1.0, ranges=OPEN)
    assert bench.out[-1][1] == 0.3
    assert bench.health == ("ok", "commands pass")
    bench.run(1.0, ranges=BLOCKED)
    assert bench.out[-1][1] < 0.02
    assert bench.health[0] == "warn"
    assert "nearer than 0.05 m" in bench.health[1]
    assert bench.states[-1] in ((1, "footprint"), (3, "footprint"))
    assert any("nearer than 0.05 m" in line for line in bench.lines)
    bench.run(1.0, -0.3, ranges=BLOCKED)
    assert bench.out[-1][1] == -0.3, "backing out is always possible"
    assert bench.states[-1] == (0, "")


def test_a_silent_sensor_stops_the_robot_in_time_and_says_so(bench: Bench) -> None:
    bench.run(1.0, ranges=OPEN)
    bench.run(1.5)
    stopped = next(time for time, speed in bench.out if time > 0.9 and speed == 0.0)
    assert stopped - 0.9 <= 0.5 + 1.0 / 25.0 + 1e-9  # source_timeout and a period after the last scan
    assert bench.health[0] == "error"
    assert "scan silent" in bench.health[1]
    assert bench.states[-1] == (1, "sensors")
    bench.run(0.5, ranges=OPEN)
    assert bench.out[-1][1] == 0.3


def test_before_it_sees_anything_nothing_moves(bench: Bench) -> None:
    bench.run(0.3)
    assert {speed for _, speed in bench.out} == {0.0}


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ({"ranges": np.full(31, np.nan)}, "none of which measured"),
        ({"ranges": np.full(31, 0.01)}, "none of which measured"),
        ({"ranges": OPEN, "frame": "lazer"}, "'lazer' is unknown"),
        ({"ranges": OPEN, "age": 0.7}, "stamped 0.70 s ago"),
        ({"ranges": OPEN, "age": -1.0}, "ahead of time"),
    ],
)
def test_what_a_sensor_says_amiss_is_refused_with_its_reason_and_stops_the_robot(bench: Bench, what, reason) -> None:
    bench.run(1.0, ranges=OPEN)
    bench.run(1.5, **what)
    assert bench.out[-1][1] == 0.0
    assert bench.health[0] == "error"
    assert reason in bench.health[1]


def test_single_beams_that_measured_nothing_do_no_harm(bench: Bench) -> None:
    ranges = OPEN.copy()
    ranges[::2] = np.nan
    bench.run(1.0, ranges=ranges)
    assert bench.out[-1][1] == 0.3


def test_a_command_that_is_not_finite_is_refused_and_an_old_one_is_over(bench: Bench) -> None:
    bench.run(0.5, ranges=OPEN)
    bench.run(1.0, math.nan, ranges=OPEN)
    assert bench.out[-1][1] == 0.0
    assert all(math.isfinite(speed) for _, speed in bench.out)
    assert any("not finite" in line for line in bench.lines)
    count = len(bench.out)
    bench.run(1.0, None, ranges=OPEN)
    assert len(bench.out) == count, "nobody commands: nothing is said"


def test_clouds_and_echoes_are_heeded_too() -> None:
    with Bus() as bus:
        bench = Bench(bus, scan_topics=(), cloud_topics=("cloud",), range_topics=("sonar",))
        cloud, sonar = bus.publisher("/cloud", msg.PointCloud2, "/c"), bus.publisher("/sonar", msg.Range, "/s")

        def run(points, distance: float) -> float:
            for _ in range(5):
                cloud.publish(cloud_to_msg(np.array(points), "laser", bus.now_ns))
                echo = msg.Range(field_of_view=0.3, min_range=0.05, max_range=3.0, range=distance)
                echo.header.frame_id, echo.header.stamp = "laser", stamp(bus.now_ns)
                sonar.publish(echo)
                bench.run(0.1)
            return bench.out[-1][1]

        far = [[5.0, 0.0, 0.3]]
        assert run(far, math.inf) == 0.3
        assert run([[0.19, 0.0, 0.3]], math.inf) < 0.02
        assert run([[0.19, 0.0, 2.3]], math.inf) == 0.3, "higher than the robot"
        assert run(far, 0.19) < 0.02
        assert run(far, 2.0) == 0.3
        run(far, math.nan)  # single ones are left out; after half a second without a measurement it stops
        run(far, math.nan)
        assert bench.out[-1][1] == 0.0
        assert "sonar silent" in bench.health[1]


def test_zones_come_as_texts() -> None:
    with Bus() as bus:
        bench = Bench(bus, zones=("{name: near, action: slowdown, ratio: 0.4, radius: 3.0, min_points: 2}",))
        bench.run(1.0, ranges=np.full(31, 2.0))
        assert bench.out[-1][1] == pytest.approx(0.12)
        assert bench.states[-1] == (2, "near")


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"footprint": ""}, "polygon"),
        ({"footprint": "round"}, "no outline"),
        ({"footprint": "[[0, 0], [1, 1], [1, 0], [0, 1]]"}, "crosses itself"),
        ({"scan_topics": ()}, "no sensor"),
        ({"zones": ("near",)}, "no zone"),
        ({"zones": ("{name: near, action: halt}",)}, "stop, slowdown"),
        ({"zones": ("{name: near, action: stop, size: 3}",)}, "unknown key 'size'"),
        ({"zones": ("{name: near, action: stop, radius: wide}",)}, "wide"),
        ({"zones": ("{name: near, action: slowdown, ratio: 2}",)}, "0 to 1"),
        ({"zones": ("{name: near, action: stop, points: [[0, 0], [1, 0]]}",)}, "at least 3"),
        ({"rate": 0.0}, "out of range"),
        ({"margin": -1.0}, "out of range"),
        ({"min_height": 2.0}, "max_height"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(bad, words) -> None:
    with pytest.raises((ConfigError, NodeError), match=words.replace("'", ".")), Bus() as bus:
        Bench(bus, **bad)


def test_a_saved_node_goes_on(bench: Bench) -> None:
    bench.run(1.0, ranges=BLOCKED)
    state = bench.node.save()
    with Bus() as bus:
        bus.executor.run_for(1.0)
        other = Bench(bus)
        bus.transforms.insert(SE3.identity(), "odom", "base_link", bus.now_ns)
        other.node.load(state)
        bus.executor.run_for(0.3)
        assert other.out
        assert all(speed < 0.02 for _, speed in other.out)
