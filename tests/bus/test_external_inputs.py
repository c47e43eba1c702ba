"""External inputs are replayed exactly, and cannot stop the clock or the run."""

from __future__ import annotations

from collections import Counter
from threading import Event, Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.bus import BusHarness

import roboyard as ry
from roboyard.bus.external_inputs import INPUT_TOPIC, MAX_INPUTS_PER_INSTANT, ExternalInput
from roboyard.errors import InputError
from roboyard.messages import serialize


class EchoNode(ry.Node):
    """Publishes three replies to each word, two in the same instant and one 0.05 s later, and one to each call."""

    def setup(self) -> None:
        self.out = self.publisher("echo", ry.msg.String)
        self.subscribe("word", ry.msg.String, self.on_word)
        self.service("ask", ry.srv.Trigger, self.on_request)
        self.timer(0.1, lambda: self.out.publish(ry.msg.String(data="tick")))

    def on_word(self, word: object) -> None:
        self.out.publish(ry.msg.String(data=f"{word.data}!"))
        self.call_after(0.0, lambda: self.out.publish(ry.msg.String(data=f"{word.data}?")))
        self.call_after(0.05, lambda: self.out.publish(ry.msg.String(data=f"{word.data}.")))

    def on_request(self, request: object) -> object:
        self.out.publish(ry.msg.String(data="asked"))
        return ry.srv.Trigger.Response(success=True)


def word(text: str) -> ExternalInput:
    return ExternalInput("publish", "/word", "std_msgs/msg/String", "/me", serialize(ry.msg.String(data=text)))


CALL = ExternalInput("call", "/ask", "std_srvs/srv/Trigger", "/me", serialize(ry.srv.Trigger.Request()))
MALFORMED = ExternalInput("publish", "/word", "std_msgs/msg/String", "/me", b"\x00\x01\x00\x00\xff")
inputs = st.one_of(st.text("abc", max_size=2).map(word), st.just(CALL), st.just(MALFORMED))


@given(st.lists(st.tuples(st.integers(0, 9), st.lists(inputs, max_size=4)), max_size=6))
def test_run_replayed_from_recorded_inputs_is_identical(inputs_by_time: list[tuple[int, list[ExternalInput]]]) -> None:
    def run(
        live: bool, recorded: list[tuple[int, ExternalInput]]
    ) -> tuple[list[object], list[tuple[int, ExternalInput]]]:
        messages: list[object] = []
        accepted: list[tuple[int, ExternalInput]] = []
        with BusHarness((EchoNode(), "echo")) as harness:
            bus = harness.bus

            def observe(topic: object, m: object, node: str, time_ns: int) -> None:
                messages.append((time_ns, topic.name, node, serialize(m)))
                if topic.name == INPUT_TOPIC:
                    accepted.append((time_ns, ExternalInput(m.operation, m.target, m.type, m.source, bytes(m.data))))

            bus.add_message_observer(observe)
            bus.inputs.schedule(recorded)
            for tenth, items in inputs_by_time if live else ():
                bus.executor.schedule(
                    tenth * 10**8, lambda items=items: [bus.inputs.put(item) for item in items] and None
                )
            harness.run_for(1.0)
        return messages, accepted

    first, recorded = run(True, [])
    assert len(recorded) == sum(len(items) for _, items in inputs_by_time)
    assert run(False, recorded) == (first, recorded)


def test_input_flood_delays_neither_clock_nor_queries(harness: BusHarness) -> None:
    harness.add(EchoNode(), "echo")
    bus, is_finished, query_times = harness.bus, Event(), []

    def flood() -> None:
        while not is_finished.is_set():
            bus.inputs.put(word("x"))

    thread = Thread(target=flood)
    thread.start()
    try:
        harness.at(0.5, lambda: bus.inputs.run_on_executor(lambda: query_times.append(bus.now_ns)))
        harness.run_for(1.0)
    finally:
        is_finished.set()
        thread.join()
    assert query_times == [5 * 10**8]
    start_ns = harness.now_ns
    harness.run_for(2.0)
    counts = Counter(item.time_ns for item in harness.published(INPUT_TOPIC) if item.time_ns > start_ns)
    assert max(counts.values(), default=0) <= MAX_INPUTS_PER_INSTANT
    assert bus.inputs.accepted > MAX_INPUTS_PER_INSTANT


def test_paused_run_accepts_every_input(harness: BusHarness) -> None:
    bus = harness.bus
    harness.add(EchoNode(), "echo")
    for _ in range(3 * MAX_INPUTS_PER_INSTANT):
        bus.inputs.put(word("x"))
    bus.inputs.run_on_executor(lambda: setattr(bus.executor, "paused", False))
    bus.executor.paused = True
    harness.run_for(0.01)
    assert bus.inputs.accepted == 3 * MAX_INPUTS_PER_INSTANT


@pytest.mark.parametrize("topic", [INPUT_TOPIC, "/clock"])
def test_inputs_to_topics_of_the_run_are_refused(harness: BusHarness, topic: str) -> None:
    harness.bus.inputs.put(ExternalInput("publish", topic, "std_msgs/msg/String", "/me", serialize(ry.msg.String())))
    harness.deliver()
    assert (harness.bus.inputs.accepted, harness.bus.inputs.rejected) == (0, 1)


@pytest.mark.parametrize("text", ["\ud800", "a\nb", "x" * 1000, "\0"])
def test_input_names_must_be_printable_and_short(text: str) -> None:
    for field in ({"target": text}, {"type": text}, {"source": text}):
        values = {"operation": "publish", "target": "/a", "type": "b", "source": "c", "data": b""} | field
        with pytest.raises(InputError, match="printable"):
            ExternalInput(**values)


def test_invalid_transform_is_logged_and_ignored(harness: BusHarness) -> None:
    item = ry.msg.TransformStamped(child_frame_id="base")
    item.header.frame_id, item.transform.rotation.w = "odom", 0.0
    data = serialize(ry.msg.TFMessage(transforms=[item]))
    harness.bus.inputs.put(ExternalInput("publish", "/tf", "tf2_msgs/msg/TFMessage", "/me", data))
    harness.run_for(0.1)
    assert harness.bus.transforms.parents() == {}
    assert len(harness.log_lines) == 1
    assert "transform from 'odom' to 'base' ignored" in harness.log_lines[0]
