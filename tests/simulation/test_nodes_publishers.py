"""Delayed publications: each is published at its due time, once, in order, also after its state was restored."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.bus import BusHarness

from roboyard.bus import Node
from roboyard.config import Config
from roboyard.simulation.nodes.publishers import DelayedPublications

MILLISECOND = 1_000_000


class IdleNode(Node[Config]):
    """A node that does nothing by itself."""


class Recorder:
    """Collects what is published, with the time and the fault that delayed it."""

    def __init__(self, harness: BusHarness, name: str) -> None:
        self.node = harness.bus.add(IdleNode(), name)
        self.published: list[tuple[int, str, str]] = []
        self.delayed: DelayedPublications[str] = DelayedPublications(self.node, self._on_due)

    def _on_due(self, payload: str, delayed_by: str) -> None:
        self.published.append((self.node.now_ns, payload, delayed_by))

    def save_state(self, harness: BusHarness) -> list[tuple[int, int, str, Any]]:
        return self.delayed.save_state(harness.bus.executor.event_sequence(), lambda payload, _: payload.upper())


@settings(max_examples=25, deadline=None)
@given(delays=st.lists(st.integers(0, 40), min_size=1, max_size=8), saved_at=st.integers(0, 40))
def test_publications_are_due_in_order_also_after_restoring(delays: list[int], saved_at: int) -> None:
    with BusHarness() as harness:
        original, restored = Recorder(harness, "original"), Recorder(harness, "restored")
        for number, delay in enumerate(delays):
            original.delayed.schedule_after(delay * MILLISECOND, "fault" if number % 2 else "", f"m{number}")
        harness.run_for(saved_at * 1e-3)
        n_published = len(original.published)
        for _, due_ns, delayed_by, payload in sorted(original.save_state(harness)):
            restored.delayed.schedule(due_ns, delayed_by, payload.lower())
        harness.run_for(0.1)
        order = sorted(range(len(delays)), key=lambda number: (delays[number], number))
        expected = [(delays[k] * MILLISECOND, f"m{k}", "fault" if k % 2 else "") for k in order]
        assert original.published == expected
        assert restored.published == expected[n_published:]
        assert original.save_state(harness) == restored.save_state(harness) == []


def test_cancelled_publications_are_returned_and_never_published() -> None:
    with BusHarness() as harness:
        recorder = Recorder(harness, "recorder")
        for delay, payload in ((1, "first"), (5, "second"), (9, "third")):
            recorder.delayed.schedule_after(delay * MILLISECOND, "", payload)
        harness.run_for(0.002)
        assert recorder.delayed.cancel() == ["second", "third"]
        recorder.delayed.schedule_after(MILLISECOND, "late", "fourth")
        harness.run_for(0.02)
        assert [payload for _, payload, _ in recorder.published] == ["first", "fourth"]
