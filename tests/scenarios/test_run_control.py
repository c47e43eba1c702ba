"""The clock loop that runs, replays and other programs share: slices, steps, requests and stops."""

from __future__ import annotations

from pathlib import Path

from roboyard.bus import Bus
from roboyard.scenarios.run_control import PROGRESS_PERIOD_NS, RunControl, run_in_slices

PERIOD = PROGRESS_PERIOD_NS


def slices(bus: Bus, control: RunControl, end_ns: int) -> list[int]:
    """Times at which the loop yields."""
    control.bind(bus)
    return [bus.now_ns for _ in run_in_slices(bus.executor, control, end_ns)]


def test_slices_end_at_multiples_of_the_period_and_at_the_end() -> None:
    with Bus(start_ns=PERIOD // 2) as bus:
        assert slices(bus, RunControl(), 5 * PERIOD // 2) == [PERIOD, 2 * PERIOD, 5 * PERIOD // 2]
        assert slices(bus, RunControl(), PERIOD) == []


def test_paused_run_makes_the_requested_steps_and_stays_paused() -> None:
    with Bus() as bus:
        times: list[int] = []
        bus.executor.run_until(0)
        bus.executor.schedule(7_000_000, lambda: times.append(bus.now_ns))
        control = RunControl(paused=True)
        control.step()  # the next instant that has events
        control.step(0.25)
        control.bind(bus)
        loop = run_in_slices(bus.executor, control, 10 * PERIOD)
        next(loop)
        assert (bus.now_ns, times) == (7_000_000, [7_000_000])
        next(loop)
        assert bus.now_ns == 7_000_000 + 250_000_000
        assert bus.executor.paused
        control.step(100.0)
        next(loop)
        assert bus.now_ns == 10 * PERIOD  # steps end at the end, too
        assert next(loop, "over") == "over"


def test_loop_yields_at_a_requested_snapshot_and_ends_when_it_is_stopped() -> None:
    with Bus() as bus:
        control = RunControl()
        control.request_snapshot(Path("state"), 0.03)
        for time_ns in (20_000_000, 30_000_000, 40_000_000):
            bus.executor.schedule(time_ns, lambda: None)
        control.bind(bus)
        loop = run_in_slices(bus.executor, control, 10 * PERIOD)
        next(loop)
        assert bus.now_ns == 30_000_000
        assert control.pop_snapshot_request() == (Path("state"), True)
        bus.executor.schedule(150_000_000, control.stop)
        assert len(list(loop)) == 2
        assert bus.now_ns == 150_000_000


def test_stop_of_the_executor_by_another_process_stops_the_control() -> None:
    with Bus() as bus:
        control = RunControl()
        bus.executor.schedule(20_000_000, bus.executor.stop)
        assert slices(bus, control, 10 * PERIOD) == [20_000_000]
        assert control.is_stopping


def test_condition_replaces_the_end() -> None:
    with Bus() as bus:
        control = RunControl()
        control.bind(bus)
        loop = run_in_slices(bus.executor, control, 10 * PERIOD, is_finished=lambda: bus.now_ns >= 2 * PERIOD)
        assert len(list(loop)) == 2
