"""A complete run with robot, physics and sensor noise that is loaded from a snapshot continues bit by bit."""

from __future__ import annotations

import pickle

import pytest

import roboyard as ry
from roboyard.messages import serialize

END_NS = 3 * 10**9


class CurveDriver(ry.Node):
    """Drives in curves, and pauses long enough that the command arbiter times out."""

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
    run, messages = ry.Run("arena", seed=7), []
    run.add_robot("rover", pose=(0, 0, 0)).start_nodes()
    run.bus.add(CurveDriver(), "teleop")
    run.bus.add_message_observer(
        lambda topic, message, node, time_ns: messages.append((time_ns, topic.name, node, serialize(message)))
    )
    return run, messages


@pytest.fixture(scope="module")
def uninterrupted() -> list[tuple[int, str, str, bytes]]:
    """All messages of a run that is not saved."""
    run, messages = start_run()
    run.bus.executor.run_until(END_NS)
    run.close()
    return messages


@pytest.mark.parametrize(
    "snapshot_ns", [1_000_000_000, 1_503_000_000, 2_000_000_001], ids=["1 s", "between steps", "1 ns later"]
)
def test_loaded_run_continues_with_identical_messages(
    uninterrupted: list[tuple[int, str, str, bytes]], snapshot_ns: int
) -> None:
    first, _ = start_run()
    first.bus.executor.run_until(snapshot_ns)
    saved = pickle.loads(pickle.dumps(first.bus.save_state()))
    first.close()
    second, messages = start_run()
    messages.clear()
    second.bus.load_state(saved)
    second.bus.executor.run_until(END_NS)
    second.close()
    assert len({topic for _, topic, _, _ in messages}) > 10
    assert messages == [item for item in uninterrupted if item[0] > snapshot_ns]
