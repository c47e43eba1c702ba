"""A reader is replaced when better quality is offered: what both bring is taken once, in order, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import roboyard as ry
from roboyard.messages import deserialize, serialize

pytest.importorskip("cyclonedds", reason="cyclonedds is not installed (pip install 'roboyard[ros2]')")

from roboyard.bridges.ros2 import names
from roboyard.bridges.ros2.dds import Endpoint, Quality, Sample
from roboyard.bridges.ros2.topics import Read

KIND = "std_msgs/msg/Int32"
GUID = b"writer"


class Reader:
    """One that is given what comes."""

    def __init__(self, quality: Quality) -> None:
        self.quality = quality
        self.waiting: list[Sample] = []

    def take(self) -> list[Sample]:
        found, self.waiting = self.waiting, []
        return found

    def writer_of(self, sample: Sample) -> bytes:
        return GUID

    def bring(self, number: int) -> None:
        self.waiting.append(Sample(serialize(ry.msg.Int32(data=number)), 1, 1000 + number))


class Participant:
    def __init__(self) -> None:
        self.readers: list[Reader] = []
        self.on_samples: Callable[[Any], None] = lambda _: None

    def reader(self, topic: str, kind: str, quality: Quality, on_samples: Callable[[Any], None], about: str) -> Reader:
        self.on_samples = on_samples
        self.readers.append(Reader(quality))
        return self.readers[-1]

    def forget(self, reader: Reader) -> None:
        self.readers.remove(reader)


class Gateway:
    def __init__(self) -> None:
        self.received: list[int] = []

    def flooded_by(self, source: str) -> bool:
        return False

    def publish(self, name: str, kind: str, source: str, data: bytes, *, latched: bool) -> None:
        self.received.append(deserialize(data, kind).data)


@given(st.data(), st.integers(0, 12), st.integers(0, 12), st.integers(1, 12), st.integers(0, 6))
def test_replaced_reader_gives_every_message_once_in_order(
    data: st.DataObject, before: int, both: int, after: int, lag: int
) -> None:
    """The old one hears 0 to before + both, the new one all from ``before`` on, but ``lag`` messages late."""
    participant, gateway = Participant(), Gateway()
    parts: Any = (participant, gateway)
    read = Read("/n", KIND, *parts, lambda guid: "/peer")
    (old,) = participant.readers
    offered = [Endpoint(GUID, b"peer", names.topic("/n"), names.dds_type(KIND), reliable=True, latched=False)]
    for number in range(before):
        old.bring(number)
        if data.draw(st.booleans()):
            participant.on_samples(old)
    assert read.update(offered)
    new = participant.readers[-1]
    late: list[int] = []
    for number in range(before, before + both + after):
        if number < before + both:
            old.bring(number)
        elif number == before + both:
            participant.on_samples(old)
            read.update(offered)
            assert participant.readers == [new]
        late.append(number)
        while len(late) > lag:
            new.bring(late.pop(0))
        for reader in data.draw(st.permutations(participant.readers)):
            if data.draw(st.booleans()):
                participant.on_samples(reader)
    for number in late:
        new.bring(number)
    participant.on_samples(new)
    assert gateway.received == list(range(before + both + after))
