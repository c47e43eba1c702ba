"""The message filter delivers messages when their transforms are known, in order, and accounts for all the others."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.bus import BusHarness

from roboyard.bus import DroppedMessage, DropReason, MessageFilter, Node, NodeError
from roboyard.geometry import SE3
from roboyard.messages import msg, to_nanoseconds
from roboyard.messages.convert import make_header

TIMEOUT = 0.5
MS = 1_000_000
TOPICS = ("front", "rear")


class FilterNode(Node):
    """Two topics of points, which must be known in `map` and `odom`, and what became of them."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = options
        self.delivered: list[tuple[int, str, int]] = []  # (time, topic, stamp)
        self.dropped: list[tuple[int, str, int, DropReason]] = []

    def setup(self) -> None:
        defaults: dict[str, Any] = {
            "target_frames": ("map", "odom"),
            "queue_size": 3,
            "timeout": TIMEOUT,
            "on_drop": self.on_drop,
        }
        self.filter = MessageFilter(self, self.on_message, **(defaults | self.options))
        for topic in TOPICS:
            self.filter.subscribe(topic, msg.PointStamped)

    def on_message(self, message: Any, topic: str) -> None:
        stamp_ns = to_nanoseconds(message.header.stamp)
        for frame in ("map", "odom"):  # raises if it is not known yet
            self.transforms.lookup(frame, message.header.frame_id, stamp_ns)
        self.delivered.append((self.now_ns, topic, stamp_ns))

    def on_drop(self, dropped: DroppedMessage) -> None:
        stamp_ns = to_nanoseconds(dropped.message.header.stamp)
        self.dropped.append((self.now_ns, dropped.topic, stamp_ns, dropped.reason))

    def save_state(self) -> dict[str, Any]:
        return super().save_state() | {"filter": self.filter.save_state()}

    def load_state(self, saved: dict[str, Any]) -> None:
        super().load_state(saved)
        self.filter.load_state(saved["filter"])


class FilterHarness(BusHarness):
    """A bus with a filter node; sensors sit on a base whose pose in `odom` comes by transforms of moments."""

    def __init__(self, *, start_ns: int = 0, **options: Any) -> None:
        super().__init__(start_ns=start_ns, debug=True)
        self.node = self.add(FilterNode(**options), "node")
        self.filter = self.node.filter
        self.set_transform(SE3.identity(), "map", "odom", static=True)
        self.set_transform(SE3.identity(), "base", "sensor", static=True)

    def drive(self, ms: int) -> None:
        """Tell the pose of the base at a moment, and let the filter try again."""
        self.set_transform(SE3(translation=(1e-3 * ms, 0.0, 0.0)), "odom", "base", time_ns=ms * MS)

    def measure(self, topic: str, ms: int, frame: str = "sensor") -> None:
        """Publish a message of a moment."""
        self.send(f"/{topic}", msg.PointStamped(header=make_header(frame, ms * MS)))

    def wait_until(self, ms: int) -> None:
        """Let time pass, and the filter try again."""
        self.run_until(1e-3 * ms)
        self.filter.process()

    @property
    def delivered(self) -> list[tuple[str, int]]:
        """Topics and stamps [ms] of what was delivered."""
        return [(topic, stamp_ns // MS) for _, topic, stamp_ns in self.node.delivered]

    @property
    def dropped(self) -> list[tuple[str, int, DropReason]]:
        """Topics, stamps [ms] and reasons of what was dropped."""
        return [(topic, stamp_ns // MS, reason) for _, topic, stamp_ns, reason in self.node.dropped]


steps = st.lists(
    st.one_of(
        st.tuples(st.just("wait"), st.integers(0, 300)),
        st.tuples(st.just("drive"), st.integers(-100, 100)),
        st.tuples(st.sampled_from(TOPICS), st.integers(-300, 200)),
        st.tuples(st.just("no frame"), st.just(0)),
        st.tuples(st.just("unknown frame"), st.integers(-300, 50)),
        st.tuples(st.sampled_from(["pause", "resume"]), st.just(0)),
    ),
    max_size=40,
)


def play(harness: FilterHarness, script: list[tuple[str, int]]) -> None:
    """Play steps at the present moment of a harness, and check after each what holds at all times."""
    node, messages = harness.node, harness.filter
    for step, value in script:
        ms = round(harness.now_ns / MS)
        delivered_before = len(node.delivered)
        if step == "wait":
            harness.wait_until(ms + value)
        elif step == "drive":
            harness.drive(max(ms + value, 0))
            messages.process()
        elif step == "pause":
            messages.pause()
        elif step == "resume":
            messages.resume()
        elif step == "no frame":
            harness.measure("front", ms, frame="")
        elif step == "unknown frame":
            harness.measure("rear", max(ms + value, 0), frame="elsewhere")
        else:
            harness.measure(step, max(ms + value, 0))
        if messages.is_paused:
            assert len(node.delivered) == delivered_before
        else:
            oldest_ns = [queue[0][0] for queue in messages.save_state()["waiting"].values() if queue]
            assert all(harness.now_ns - stamp_ns <= TIMEOUT * 1e9 for stamp_ns in oldest_ns), "waits beyond the timeout"
        assert messages.received_count == messages.delivered_count + len(node.dropped) + messages.waiting_count
        assert messages.delivered_count == len(node.delivered)
        assert sum(messages.dropped_counts.values()) == len(node.dropped)
        leaving = node.delivered[delivered_before:]
        assert [stamp_ns for _, _, stamp_ns in leaving] == sorted(stamp_ns for _, _, stamp_ns in leaving)


@given(steps)
def test_every_message_is_delivered_once_or_dropped_or_waits(script: list[tuple[str, int]]) -> None:
    with FilterHarness() as harness:
        play(harness, [("wait", 300), *script])  # checks after each step; deliveries check their transforms
        for now_ns, _, stamp_ns, reason in harness.node.dropped:
            if reason is DropReason.NO_TRANSFORM_FOUND:
                assert now_ns - stamp_ns > TIMEOUT * 1e9
            elif reason is DropReason.STAMPED_IN_FUTURE:
                assert stamp_ns > now_ns
        harness.filter.resume()
        harness.wait_until(round(harness.now_ns / MS) + 1000)
        assert harness.filter.waiting_count == 0
        assert harness.filter.received_count == len(harness.node.delivered) + len(harness.node.dropped)


@given(steps, steps)
def test_loaded_filter_continues_identically(before: list[tuple[str, int]], after: list[tuple[str, int]]) -> None:
    with FilterHarness() as harness:
        play(harness, [("wait", 300), *before])
        paused = harness.filter.is_paused
        with harness.snapshot_roundtrip(partial(FilterHarness, start_ns=harness.now_ns)) as loaded:
            assert isinstance(loaded, FilterHarness)
            assert loaded.filter.save_state() == harness.filter.save_state()
            loaded.filter.is_paused = paused
            delivered, dropped = len(harness.node.delivered), len(harness.node.dropped)
            for step in after:
                for each in (harness, loaded):
                    play_unchecked(each, step)
            assert loaded.node.delivered == harness.node.delivered[delivered:]
            assert loaded.node.dropped == harness.node.dropped[dropped:]
            assert loaded.filter.save_state() == harness.filter.save_state()


def play_unchecked(harness: FilterHarness, step: tuple[str, int]) -> None:
    """Play one step without the checks that need the node's whole past."""
    kind, value = step
    ms = round(harness.now_ns / MS)
    if kind in TOPICS:
        harness.measure(kind, max(ms + value, 0))
    elif kind == "drive":
        harness.drive(max(ms + value, 0))
        harness.filter.process()
    elif kind == "wait":
        harness.wait_until(ms + value)


def test_message_leaves_when_its_transform_is_known() -> None:
    with FilterHarness() as harness:
        harness.drive(0)
        harness.wait_until(100)
        harness.measure("front", 60)
        assert harness.delivered == []
        harness.drive(50)
        harness.filter.process()
        assert harness.delivered == []
        harness.drive(60)
        assert harness.delivered == []  # it is noticed at the next try
        harness.filter.process()
        assert harness.delivered == [("front", 60)]


def test_message_leaves_at_once_when_its_transform_is_known() -> None:
    with FilterHarness() as harness:
        harness.wait_until(100)
        harness.drive(50)
        harness.measure("rear", 50)
        assert harness.delivered == [("rear", 50)]


def test_waiting_messages_leave_in_order_of_stamps_over_all_topics() -> None:
    with FilterHarness() as harness:
        harness.wait_until(300)
        for topic, ms in (("front", 100), ("rear", 250), ("rear", 150), ("front", 200), ("front", 150)):
            harness.measure(topic, ms)
        harness.drive(0)
        harness.drive(220)
        harness.filter.process()
        assert harness.delivered == [("front", 100), ("rear", 150), ("front", 150), ("front", 200)]
        harness.drive(280)
        harness.filter.process()
        assert harness.delivered[4:] == [("rear", 250)]


def test_topics_do_not_wait_for_each_other() -> None:
    with FilterHarness() as harness:
        harness.wait_until(300)
        harness.drive(0)
        harness.drive(300)
        harness.measure("front", 100, frame="elsewhere")
        harness.measure("front", 150)
        harness.measure("rear", 200)
        assert harness.delivered == [("rear", 200)]
        harness.wait_until(601)
        assert harness.dropped == [("front", 100, DropReason.NO_TRANSFORM_FOUND)]
        assert harness.delivered == [("rear", 200), ("front", 150)]


def test_message_waits_until_it_is_older_than_the_timeout() -> None:
    with FilterHarness() as harness:
        harness.wait_until(100)
        harness.measure("front", 100)
        harness.wait_until(600)
        assert (harness.delivered, harness.dropped) == ([], [])
        harness.wait_until(601)
        assert harness.dropped == [("front", 100, DropReason.NO_TRANSFORM_FOUND)]


def test_old_message_is_delivered_when_its_transform_is_known() -> None:
    with FilterHarness() as harness:
        harness.drive(0)
        harness.drive(100)
        harness.wait_until(3000)
        harness.measure("front", 50)
        assert harness.delivered == [("front", 50)]


def test_full_queue_drops_its_oldest_message() -> None:
    with FilterHarness() as harness:
        harness.wait_until(300)
        for ms in (100, 110, 130, 120):
            harness.measure("front", ms)
        assert harness.dropped == [("front", 100, DropReason.QUEUE_FULL)]
        harness.measure("front", 90)  # the new one is the oldest
        assert harness.dropped[1:] == [("front", 90, DropReason.QUEUE_FULL)]
        assert harness.filter.waiting_count == 3


def test_unusable_headers_are_dropped_at_once() -> None:
    with FilterHarness() as harness:
        harness.wait_until(300)
        harness.measure("front", 401)
        harness.measure("rear", 300, frame="")
        harness.measure("rear", 400)  # what two clocks may differ by
        assert harness.dropped == [
            ("front", 401, DropReason.STAMPED_IN_FUTURE),
            ("rear", 300, DropReason.EMPTY_FRAME_ID),
        ]
        assert harness.filter.waiting_count == 1


def test_paused_filter_neither_delivers_nor_times_out() -> None:
    with FilterHarness() as harness:
        harness.filter.pause()
        harness.drive(0)
        harness.drive(200)
        harness.wait_until(200)
        harness.measure("front", 100)
        harness.measure("rear", 150, frame="elsewhere")
        harness.wait_until(2000)
        assert (harness.delivered, harness.dropped) == ([], [])
        harness.filter.resume()
        assert harness.delivered == [("front", 100)]
        assert harness.dropped == [("rear", 150, DropReason.NO_TRANSFORM_FOUND)]


def test_callback_that_pauses_keeps_the_others_waiting() -> None:
    with FilterHarness() as harness:
        harness.wait_until(300)
        for ms in (100, 120):
            harness.measure("front", ms)
        harness.drive(0)
        harness.drive(300)
        deliver = harness.node.on_message

        def deliver_and_pause(message: Any, topic: str) -> None:
            deliver(message, topic)
            harness.filter.pause()

        harness.filter._callback = deliver_and_pause
        harness.filter.process()
        assert harness.delivered == [("front", 100)]
        harness.filter.resume()
        assert harness.delivered == [("front", 100), ("front", 120)]


def test_timer_retries_without_a_message() -> None:
    with FilterHarness(retry_period=0.05) as harness:
        harness.run_until(0.1)
        harness.measure("front", 90)
        harness.drive(0)
        harness.drive(100)
        harness.run_until(0.149)
        assert harness.delivered == []
        harness.run_until(0.15)
        assert harness.delivered == [("front", 90)]


def test_source_frame_replaces_that_of_the_message() -> None:
    with FilterHarness(source_frame="base") as harness:
        harness.node.on_message = lambda message, topic: None  # type: ignore[method-assign]
        harness.wait_until(100)
        harness.drive(0)
        harness.measure("front", 50, frame="")
        harness.measure("rear", 50, frame="elsewhere")
        assert harness.filter.waiting_count == 2
        harness.drive(100)
        harness.filter._callback = lambda message, topic: None
        harness.filter.process()
        assert harness.filter.delivered_count == 2


def test_timeout_and_target_frames_may_change_while_the_node_runs() -> None:
    settings: dict[str, Any] = {"timeout": 0.5, "frames": ("map", "odom", "moon")}
    options = {"timeout": lambda: settings["timeout"], "target_frames": lambda: settings["frames"]}
    with FilterHarness(**options) as harness:
        harness.wait_until(100)
        harness.drive(0)
        harness.drive(100)
        harness.measure("front", 50)
        assert harness.filter.waiting_count == 1
        settings["frames"] = ("map", "odom")
        harness.filter.process()
        assert harness.delivered == [("front", 50)]
        harness.measure("front", 60, frame="elsewhere")
        settings["timeout"] = 0.01
        harness.filter.process()
        assert harness.dropped == [("front", 60, DropReason.NO_TRANSFORM_FOUND)]


def test_drops_are_reported_in_log_and_health_with_counts() -> None:
    with FilterHarness(on_drop=None) as harness:
        harness.wait_until(100)
        for ms in (50, 60):
            harness.measure("front", ms, frame="elsewhere")
        harness.wait_until(700)
        harness.measure("rear", 900)
        health = harness.node.health
        assert health is not None
        assert (health.level, health.text) == ("warn", "a message of /rear is left out: it is stamped in the future")
        assert dict(health.values) == {"no_transform_found": "2", "stamped_in_future": "1"}
        assert harness.log_lines == [  # once for the two that are alike
            "messages of /front are left out: no transform found",
            "messages of /rear are left out: stamped in the future",
        ]


@pytest.mark.parametrize(
    ("reason", "transform_error", "text"),
    [
        (DropReason.NO_TRANSFORM_FOUND, "frame 'x' is unknown", "frame 'x' is unknown"),
        (DropReason.QUEUE_FULL, "", "newer messages filled the queue"),
        (DropReason.QUEUE_FULL, "frame 'x' is unknown", "newer messages filled the queue: frame 'x' is unknown"),
        (DropReason.EMPTY_FRAME_ID, "", "its header has an empty frame_id"),
        (DropReason.STAMPED_IN_FUTURE, "", "it is stamped in the future"),
    ],
)
def test_dropped_message_says_why(reason: DropReason, transform_error: str, text: str) -> None:
    assert DroppedMessage(None, "scan", reason, transform_error).text == text


def test_queue_of_no_messages_is_refused() -> None:
    with pytest.raises(NodeError, match="1 or more"):
        FilterHarness(queue_size=0)
