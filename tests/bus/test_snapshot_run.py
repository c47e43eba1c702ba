"""A whole run, rover and physics and noise included, that is loaded goes on bit by bit."""

from __future__ import annotations

import pickle

import pytest

import roboyard as ry
from roboyard.messages import serialize

END_NS = 3 * 10**9


class CurveDriver(ry.Node):
    """Drives in curves, and stops publishing now and then, so that the arbiter's time-out passes."""

    state_fields = ("count",)

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


def start_run() -> tuple[ry.Run, list[tuple[int, str, str, bytes]]]:
    run, seen = ry.Run("arena", seed=7), []
    run.add("rover", at=(0, 0, 0)).bring_up()
    run.bus.add(CurveDriver(), "teleop")
    run.bus.add_message_observer(
        lambda topic, message, node, time_ns: seen.append((time_ns, topic.name, node, serialize(message)))
    )
    return run, seen


@pytest.fixture(scope="module")
def whole() -> list[tuple[int, str, str, bytes]]:
    run, seen = start_run()
    run.bus.executor.run_until(END_NS)
    run.close()
    return seen


@pytest.mark.parametrize(
    "moment_ns", [1_000_000_000, 1_503_000_000, 2_000_000_001], ids=["1 s", "between steps", "1 ns later"]
)
def test_loaded_run_goes_on_bit_by_bit(whole: list[tuple[int, str, str, bytes]], moment_ns: int) -> None:
    first, _ = start_run()
    first.bus.executor.run_until(moment_ns)
    saved = pickle.loads(pickle.dumps(first.bus.save_state()))
    first.close()
    second, seen = start_run()
    seen.clear()
    second.bus.load_state(saved)
    second.bus.executor.run_until(END_NS)
    second.close()
    assert len({topic for _, topic, _, _ in seen}) > 10
    assert seen == [item for item in whole if item[0] > moment_ns]
