"""The bus harness reports what happened on the bus, and fails when what it waits for does not happen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.bus import (
    Abort,
    BusHarness,
    FakeActionServer,
    FakeService,
    Hold,
    Outcome,
    Reject,
    Succeed,
    check_snapshot_continues,
    twist,
)

from roboyard.bus import Bus, Node
from roboyard.bus.topics import TopicImpairment
from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.messages import action, msg, srv
from roboyard.messages.convert.action_goals import GoalStatus

Fibonacci = action.Fibonacci


class Counter(Node):
    """Publishes 1, 2, 3, … at 10 Hz; ``skip`` keeps it from going on where it was."""

    state_fields = ("count",)

    def __init__(self, fields: tuple[str, ...] = ("count",)) -> None:
        super().__init__()
        self.state_fields = fields
        self.count = 0

    def setup(self) -> None:
        self.out = self.publisher("count", msg.Int32)
        self.timer(0.1, self.tick)

    def tick(self) -> None:
        self.count += 1
        self.out.publish(msg.Int32(data=self.count))
        if self.count == 5:
            self.log.warn("five")


@pytest.fixture
def harness():
    with BusHarness() as harness:
        yield harness


def test_publish_delivers_to_subscriptions_with_source(harness: BusHarness) -> None:
    traffic = harness.record("/words", msg.String)
    harness.publish("/words", msg.String(data="a"))
    assert not traffic
    harness.deliver()
    harness.at(1.5, lambda: harness.publish("/words", msg.String(data="b"), source="/other"))
    harness.run_for(2.0)
    assert [(item.time_ns, item.message.data, item.source) for item in traffic] == [
        (0, "a", "/test"),
        (1_500_000_000, "b", "/other"),
    ]
    assert (traffic.data, traffic.times) == (["a", "b"], [0.0, 1.5])
    assert traffic.last.data == harness.last("/words").data == "b"


def test_record_sees_what_arrives_and_published_what_was_sent(harness: BusHarness) -> None:
    harness.add(Counter(), "counter")
    received = harness.record("/count", msg.Int32)
    harness.bus.topics["/count"].impairments.append(TopicImpairment(0.0, 250_000_000, harness.bus.random("d")))
    harness.run_until(1.0)
    assert harness.published("/count").data == list(range(1, 11))
    assert received.times == pytest.approx([0.1 * k + 0.25 for k in range(1, 8)])


def test_last_without_message_fails_with_log(harness: BusHarness) -> None:
    harness.add(Counter(), "counter")
    harness.run_until(0.5)
    with pytest.raises(AssertionError, match=r"nothing was published on /nothing\nlog:\n +0.500 warn  /counter: five"):
        harness.last("/nothing")


def test_spin_until_ends_at_the_first_instant_that_holds(harness: BusHarness) -> None:
    counter = harness.add(Counter(), "counter")
    harness.spin_until(lambda: counter.count >= 3)
    assert (counter.count, harness.now_ns) == (3, 300_000_000)
    harness.spin_until(lambda: counter.count >= 3)
    assert harness.now_ns == 300_000_000


def test_spin_until_fails_after_timeout_with_log(harness: BusHarness) -> None:
    counter = harness.add(Counter(), "counter")
    with pytest.raises(pytest.fail.Exception, match=r"hundred did not hold within 2 s(.|\n)*/counter: five"):
        harness.spin_until(lambda: counter.count >= 100, timeout=2.0, expected="hundred")
    assert harness.now_ns == 2_000_000_000


def test_call_returns_response_and_raises_refusal(harness: BusHarness) -> None:
    service = harness.add(FakeService("lamp", srv.SetBool, srv.SetBool.Response(success=True)), "lamp")
    assert harness.call("/lamp", srv.SetBool, data=True).success
    assert harness.call("/lamp", srv.SetBool, srv.SetBool.Request(data=False)).success
    assert [request.data for request in service.requests] == [True, False]
    service.refuse = "the lamp is broken"
    with pytest.raises(InputError, match="the lamp is broken"):
        harness.call("/lamp", srv.SetBool, data=True)


def test_call_without_answer_fails_after_timeout(harness: BusHarness) -> None:
    class Silent(Node):
        def setup(self) -> None:
            from roboyard.bus import Future

            self.service("later", srv.Trigger, lambda request: Future("never"))

    harness.add(Silent(), "silent")
    with pytest.raises(pytest.fail.Exception, match="did not hold within 0.5 s"):
        harness.call("/later", srv.Trigger, timeout=0.5)


def test_goal_succeeds_after_its_time_with_feedback(harness: BusHarness) -> None:
    feedback = [Fibonacci.Feedback(sequence=[k]) for k in (1, 2, 3)]
    ended: list[int] = []
    server = FakeActionServer(
        "count",
        Fibonacci,
        Succeed(2.0, Fibonacci.Result(sequence=[7]), feedback),
        on_end=lambda goal: ended.append(goal.order),
    )
    harness.add(server, "server")
    goal = harness.send_goal("/count", Fibonacci, order=5)
    assert harness.now_ns == 2_000_000_000
    assert goal.succeeded
    assert list(goal.result.sequence) == [7]
    assert [list(item.sequence) for item in goal.feedback] == [[1], [2], [3]]
    assert [goal.order for goal in server.goals] == ended == [5]


@pytest.mark.parametrize(
    ("outcome", "accepted", "status", "reason"),
    [
        (Reject("too far", "far"), False, GoalStatus.UNKNOWN, "too far"),
        (Abort(1.0, "blocked", "obstacle"), True, GoalStatus.ABORTED, "blocked"),
    ],
    ids=["reject", "abort"],
)
def test_goal_that_fails_gives_reason(
    harness: BusHarness, outcome: Outcome, accepted: bool, status: GoalStatus, reason: str
) -> None:
    harness.add(FakeActionServer("count", Fibonacci, outcome), "server")
    goal = harness.send_goal("/count", Fibonacci, order=1)
    assert (goal.accepted, goal.status, goal.error_message) == (accepted, status, reason)
    assert not goal.succeeded
    assert (goal.error is None) == accepted, "an aborted goal has a result"


def test_held_goal_runs_until_canceled(harness: BusHarness) -> None:
    server = harness.add(FakeActionServer("count", Fibonacci, Hold()), "server")
    goal = harness.start_goal("/count", Fibonacci, order=4)
    harness.run_for(100.0)
    assert not goal.done()
    goal.cancel()
    harness.wait_for(goal, timeout=1.0)
    assert goal.status is GoalStatus.CANCELED
    assert [goal.order for goal in server.canceled] == [4]


def test_scripts_decide_goal_by_goal(harness: BusHarness) -> None:
    harness.add(FakeActionServer("row", Fibonacci, [Reject(), Abort(), Succeed()]), "row")
    harness.add(FakeActionServer("odd", Fibonacci, lambda goal: Succeed() if goal.order % 2 else Reject("even")), "odd")
    row = [harness.send_goal("/row", Fibonacci, order=k).status for k in range(4)]
    assert row == [GoalStatus.UNKNOWN, GoalStatus.ABORTED, GoalStatus.SUCCEEDED, GoalStatus.SUCCEEDED]
    assert [harness.send_goal("/odd", Fibonacci, order=k).succeeded for k in range(4)] == [False, True, False, True]


def test_goal_without_server_ends_with_error(harness: BusHarness) -> None:
    goal = harness.send_goal("/nothing", Fibonacci, order=1)
    assert "no server for service /nothing" in str(goal.error)


def test_transforms_are_set_directly_or_published(harness: BusHarness) -> None:
    harness.set_transform(SE2(1.0, 0.0, 0.0), "map", "odom")
    assert harness.bus.transforms.lookup("map", "odom").x == 1.0
    assert not harness.published("/tf")
    harness.publish_transforms((SE2(0.0, 2.0, 0.0), "base_link", "laser"), static=True)
    harness.publish_transforms((SE2(3.0, 0.0, 0.0), "odom", "base_link"))
    harness.deliver()
    assert harness.bus.transforms.lookup("map", "laser").translation == pytest.approx([4.0, 2.0, 0.0])
    assert (len(harness.published("/tf")), len(harness.published("/tf_static"))) == (1, 1)


def test_an_external_bus_stays_open() -> None:
    with Bus() as bus:
        with BusHarness(bus=bus) as harness:
            harness.send("/cmd_vel", twist(0.1, 0.2, 0.3))
        assert not bus.is_closing
        sent = harness.last("/cmd_vel")
        assert (sent.linear.x, sent.linear.y, sent.angular.z) == (0.1, 0.3, 0.2)


def make_counting() -> BusHarness:
    """Counts, and sends a goal every 0.7 s to a server that ends it after 1 s, so that states hold goals."""
    harness = BusHarness((Counter(), "counter"))

    class Sender(Node):
        def setup(self) -> None:
            self.goals = self.action_client("count_to", Fibonacci, on_goal_restored=lambda goal: None)
            self.timer(0.7, lambda: self.goals.send(Fibonacci.Goal(order=3)))

    feedback = [Fibonacci.Feedback(sequence=[k]) for k in (1, 2)]
    script = [Succeed(1.0, feedback=feedback), Abort(0.4, "no"), Reject("never"), Succeed(0.2)]
    harness.add(FakeActionServer("count_to", Fibonacci, script, preempt=False), "server")
    harness.add(Sender(), "sender")
    return harness


@given(st.floats(0.0, 3.9))
def test_snapshot_law_holds_for_fake_servers(moment: float) -> None:
    def observe(harness: BusHarness) -> tuple[int, int]:
        return harness.bus.nodes["/counter"].count, len(harness.bus.nodes["/server"].goals)

    check_snapshot_continues(make_counting, [moment], 4.0, observe=observe)


def test_snapshot_law_fails_for_a_node_that_loses_state() -> None:
    with pytest.raises(AssertionError, match=r"saved at 0.55 s, the bus goes on with other messages"):
        check_snapshot_continues(lambda: BusHarness((Counter(fields=()), "counter")), [0.55], 1.0)


def test_snapshot_law_fails_for_a_different_end() -> None:
    with pytest.raises(AssertionError, match=r"saved at 0.5 s, the bus ends differently"):
        check_snapshot_continues(
            lambda: BusHarness((Counter(), "counter")), [0.5], 1.0, observe=lambda harness: len(harness.wire())
        )


def test_snapshot_roundtrip_goes_on_from_the_moment() -> None:
    def make() -> BusHarness:
        return BusHarness((Counter(), "counter"))

    with make() as first:
        first.run_until(0.5)
        with first.snapshot_roundtrip(make) as second:
            assert second.now_ns == first.now_ns
            second.run_until(1.0)
            assert second.published("/count").data == [6, 7, 8, 9, 10]
