"""Topic impairments drop messages with the given probability or delay them; message observers see every message."""

from __future__ import annotations

from tests.harness.bus import BusHarness, Traffic

import roboyard as ry
from roboyard.bus.topics import TopicImpairment
from roboyard.scenarios.snapshot_file import decode_snapshot, encode_snapshot


class NumberPublisher(ry.Node):
    """Publishes 1, 2, 3, … at 100 Hz."""

    state_fields = ("count",)

    def setup(self) -> None:
        self.count = 0
        self.out = self.publisher("words", ry.msg.UInt32)
        self.timer(0.01, self.tick)

    def tick(self) -> None:
        self.count += 1
        self.out.publish(ry.msg.UInt32(data=self.count))


def make_impaired(*impairments: tuple[float, int]) -> tuple[BusHarness, Traffic]:
    """Return a bus with a publisher on a topic with (loss, delay [ns]) impairments, and the received messages."""
    harness = BusHarness((NumberPublisher(), "publisher"), seed=5)
    received = harness.record("/words", ry.msg.UInt32)
    topic = harness.bus.topics["/words"]
    for k, (loss, delay_ns) in enumerate(impairments):
        topic.impairments.append(TopicImpairment(loss, delay_ns, harness.bus.random(f"d{k}")))
    return harness, received


def test_message_loss_drops_its_fraction() -> None:
    harness, received = make_impaired((0.3, 0))
    harness.run_for(20.0)
    topic = harness.bus.topics["/words"]
    assert len(harness.published("/words")) == topic.count == 2000
    assert abs(len(received) / 2000 - 0.7) < 0.04
    assert topic.impairments[0].dropped_count == 2000 - len(received)
    assert all(item.time_ns == 10_000_000 * item.message.data for item in received)


def test_message_losses_multiply_up_to_total_loss() -> None:
    harness, received = make_impaired((1.0, 0))
    harness.run_for(1.0)
    assert received == []
    harness, received = make_impaired((0.5, 0), (0.5, 0))
    harness.run_for(20.0)
    assert abs(len(received) / 2000 - 0.25) < 0.04


def test_message_delays_add_up_and_keep_order() -> None:
    harness, received = make_impaired((0.0, 25_000_000), (0.0, 10_000_000))
    harness.run_for(1.0)
    assert received.data == list(range(1, 97))
    assert all(item.time_ns == 10_000_000 * item.message.data + 35_000_000 for item in received)


def test_delayed_messages_are_part_of_the_snapshot() -> None:
    uninterrupted, expected = make_impaired((0.2, 35_000_000))
    uninterrupted.run_for(1.0)
    first, received = make_impaired((0.2, 35_000_000))
    first.run_for(0.503)
    saved = decode_snapshot(*encode_snapshot(first.bus.save_state()))
    random = first.bus.topics["/words"].impairments[0].rng.bit_generator.state
    second, remaining = make_impaired((0.2, 35_000_000))
    second.bus.load_state(saved)
    second.bus.topics["/words"].impairments[0].rng.bit_generator.state = random
    second.run_until(1.0)
    assert len(received) < 45
    assert received + remaining == expected


def test_message_loss_repeats_with_equal_seeds() -> None:
    runs = []
    for _ in range(2):
        harness, received = make_impaired((0.5, 1_000_000))
        harness.run_for(2.0)
        runs.append(received)
    assert runs[0] == runs[1]
