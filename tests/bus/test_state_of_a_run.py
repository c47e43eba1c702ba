"""A whole run, rover and physics and noise included, goes on from a saved state bit by bit."""

from __future__ import annotations

import pickle

import pytest

import roboyard as ry
from roboyard.messages import serialize

END_NS = 3 * 10**9


class Driver(ry.Node):
    """Drives in curves, and falls silent now and then, so that the arbiter's time-out strikes."""

    fields = ("count",)

    def setup(self) -> None:
        self.count = 0
        self.out = self.publisher("cmd_vel", ry.msg.Twist)
        self.timer(0.1, self.tick)

    def tick(self) -> None:
        self.count += 1
        if self.count % 20 < 12:
            command = ry.msg.Twist()
            command.linear.x, command.angular.z = 0.4, 0.3 * (self.count % 7 - 3)
            self.out.publish(command)


def start() -> tuple[ry.Run, list[tuple[int, str, str, bytes]]]:
    run, seen = ry.Run("arena", seed=7), []
    run.add("rover", at=(0, 0, 0)).bring_up()
    run.bus.add(Driver(), "teleop")
    run.bus.tap(lambda topic, message, node, time_ns: seen.append((time_ns, topic.name, node, serialize(message))))
    return run, seen


@pytest.fixture(scope="module")
def whole() -> list[tuple[int, str, str, bytes]]:
    run, seen = start()
    run.bus.executor.run_until(END_NS)
    run.close()
    return seen


@pytest.mark.parametrize("moment_ns", [1_000_000_000, 1_503_000_000, 2_000_000_001])
def test_a_run_goes_on_from_a_saved_state_bit_by_bit(whole: list[tuple[int, str, str, bytes]], moment_ns: int) -> None:
    first, _ = start()
    first.bus.executor.run_until(moment_ns)
    saved = pickle.loads(pickle.dumps(first.bus.save()))
    first.close()
    second, seen = start()
    seen.clear()
    second.bus.load(saved)
    second.bus.executor.run_until(END_NS)
    second.close()
    assert len({topic for _, topic, _, _ in seen}) > 10
    assert seen == [item for item in whole if item[0] > moment_ns]
