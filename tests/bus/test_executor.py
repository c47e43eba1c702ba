"""The executor runs events in a total order, and its clock never runs backwards."""

from __future__ import annotations

from threading import Thread, Timer

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.bus.executor import LAST, LATE, SENSOR, TIMER, Executor
from roboyard.compute import wall_clock
from roboyard.errors import RunError

events = st.lists(st.tuples(st.integers(0, 50), st.sampled_from([SENSOR, TIMER, LATE, LAST])), max_size=40)


@given(events)
def test_events_run_in_order_of_time_priority_and_sequence(plan: list[tuple[int, int]]) -> None:
    executor, observed = Executor(), []
    for number, (time_ns, priority) in enumerate(plan):
        executor.schedule(
            time_ns, lambda key=(time_ns, priority, number): observed.append((key, executor.now_ns)), priority
        )
    executor.run_until(50)
    assert [key for key, _ in observed] == sorted(key for key, _ in observed)
    assert all(key[0] == now for key, now in observed)
    assert executor.now_ns == 50


@given(events, st.lists(st.integers(0, 60), max_size=8))
def test_run_in_several_parts_equals_one_run(plan: list[tuple[int, int]], stops: list[int]) -> None:
    def run(pieces: list[int]) -> list[int]:
        executor, observed = Executor(), []
        for number, (time_ns, priority) in enumerate(plan):
            executor.schedule(time_ns, lambda number=number: observed.append(number), priority)
        for stop in pieces:
            executor.run_until(stop)
        return observed

    assert run([60]) == run([*sorted(stops), 60])


@given(events)
def test_advance_callbacks_run_once_per_instant_before_its_events(plan: list[tuple[int, int]]) -> None:
    executor, log = Executor(), []
    executor.on_advance(lambda time_ns: log.append(("advance", time_ns)))
    for time_ns, priority in plan:
        executor.schedule(time_ns, lambda: log.append(("event", executor.now_ns)), priority)
    executor.run_until(100)
    advanced = [time_ns for kind, time_ns in log if kind == "advance"]
    assert advanced == sorted(set(advanced))
    assert advanced[-1] == 100
    latest = 0
    for kind, time_ns in log:
        latest = time_ns if kind == "advance" else latest
        assert time_ns == latest


def test_idle_callback_runs_at_the_end_and_before_each_wait() -> None:
    executor, log = Executor(), []
    unsubscribe = executor.on_idle(lambda: log.append(executor.now_ns))
    for time_ns in (0, 10_000_000, 20_000_000):
        executor.schedule(time_ns, lambda: None)
    executor.run_until(20_000_000)
    assert log == [20_000_000]  # without pacing the executor does not wait
    log.clear()
    executor.pacer.real_time_factor = 1.0
    for time_ns in (30_000_000, 80_000_000):
        executor.schedule(time_ns, lambda: None)
    executor.run_until(80_000_000)
    assert sorted(set(log)) == [20_000_000, 30_000_000, 80_000_000]
    unsubscribe()
    executor.run_until(90_000_000)
    assert log[-1] == 80_000_000


def test_canceled_event_does_not_run() -> None:
    executor, observed = Executor(), []
    event = executor.schedule(5, lambda: observed.append(1))
    event.cancel()
    assert executor.next_event_time_ns() is None
    executor.run_until(10)
    assert observed == []


def test_event_scheduled_in_the_past_runs_now() -> None:
    executor, observed = Executor(), []
    executor.run_until(10)
    executor.schedule(3, lambda: observed.append(executor.now_ns))
    executor.run_until(10)
    assert observed == [10]


def test_step_runs_one_instant_even_when_paused() -> None:
    executor, observed = Executor(), []
    for time_ns in (3, 3, 7):
        executor.schedule(time_ns, lambda: observed.append(executor.now_ns))
    executor.paused = True
    assert executor.step()
    assert observed == [3, 3]
    assert executor.step()
    assert observed == [3, 3, 7]
    assert not executor.step()
    assert executor.paused


def test_pause_stops_the_clock_until_resumed() -> None:
    executor = Executor()
    executor.paused = True
    executor.schedule(5, lambda: None)
    Thread(target=lambda: (setattr(executor, "paused", False), executor.wake.set())).start()
    executor.run_until(5)
    assert executor.now_ns == 5


def test_paused_run_at_its_end_returns() -> None:
    executor, observed = Executor(), []
    executor.schedule(5, lambda: setattr(executor, "paused", True))
    executor.schedule(5, lambda: observed.append(executor.now_ns))
    executor.run_until(5)
    assert observed == [5]


def test_stop_condition_is_checked_after_each_complete_instant() -> None:
    executor, observed = Executor(), []
    for time_ns in (1, 2, 2, 3):
        executor.schedule(time_ns, lambda: observed.append(executor.now_ns))
    assert executor.run_until(10, stop_condition=lambda: 2 in observed)
    assert observed == [1, 2, 2]
    assert executor.now_ns == 2


def test_stop_ends_the_run_at_the_current_instant() -> None:
    executor, observed = Executor(), []
    executor.schedule(1, executor.stop)
    executor.schedule(2, lambda: observed.append(2))
    executor.run_until(10)
    assert executor.now_ns == 1
    assert observed == []
    executor.run_until(10)
    assert observed == [2]


def test_callbacks_must_not_run_the_executor() -> None:
    executor = Executor()
    executor.schedule(1, lambda: executor.run_until(5))
    with pytest.raises(RunError, match="already running"):
        executor.run_until(10)


def test_set_time_moves_forward_and_skips_no_event() -> None:
    executor = Executor()
    executor.set_time(100)
    executor.schedule(200, lambda: None)
    for time_ns in (50, 300):
        with pytest.raises(RunError, match="cannot set the clock"):
            executor.set_time(time_ns)


class FakeWallClock:
    """Replaces the wall clock and the event that a paced run waits for; only waiting advances the clock."""

    def __init__(self) -> None:
        self.now_ns = 0

    def monotonic_ns(self) -> int:
        return self.now_ns

    def monotonic(self) -> float:
        return self.now_ns * 1e-9

    def wait(self, seconds: float) -> bool:
        self.now_ns += round(seconds * 1e9)
        return False


def test_run_with_a_real_time_factor_waits_for_the_wall_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeWallClock()
    monkeypatch.setattr(wall_clock, "time", clock)
    executor = Executor()
    executor.wake = clock  # type: ignore[assignment]
    executor.pacer.real_time_factor = 2.0
    moments: list[float] = []
    for tenth in (0.25, 0.5, 1.0):
        executor.schedule(round(tenth * 1e8), lambda: moments.append(clock.monotonic()))
    executor.run_for(0.1)
    assert moments == pytest.approx([0.0125, 0.025, 0.05])
    assert clock.monotonic() == pytest.approx(0.05)


class ReturningSubscription:
    """A subscription that queues each received message for itself again."""

    node = "/mirror"

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self.count = 0

    def deliver(self, message: object, source: str) -> None:
        self.count += 1
        self.executor.ready.append((self, message, "/other"))


def test_endless_message_loop_is_an_error_and_can_be_stopped() -> None:
    executor = Executor()
    subscription = ReturningSubscription(executor)
    executor.ready.append((subscription, "x", "/me"))
    with pytest.raises(RunError, match=r"at 0.000000 s: endless loop of messages, last from /other to /mirror"):
        executor.run_until(10)
    Timer(0.01, executor.stop).start()
    executor.run_until(10)
    assert executor.now_ns == 0


def test_endless_timer_loop_is_an_error() -> None:
    executor = Executor()

    def reschedule() -> None:
        executor.schedule(executor.now_ns, reschedule)

    executor.schedule(5, reschedule)
    with pytest.raises(RunError, match="at 0.000000 s: endless loop of timers"):
        executor.run_until(10)


def test_long_message_chain_at_one_instant_is_no_error() -> None:
    executor, received = Executor(), []

    class Relay:
        def deliver(self, message: int, source: str) -> None:
            received.append(message)
            if message:
                executor.ready.append((self, message - 1, ""))

    executor.ready.append((Relay(), 10_000, ""))
    executor.run_until(10)
    assert received == list(range(10_000, -1, -1))
