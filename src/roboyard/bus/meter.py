"""Measures what callbacks cost, and names their node when they fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from roboyard.bus.pacing import perf_ns
from roboyard.errors import RunError, describe_exception

_EXIT_ADVICE = "a callback returns; `duration` or `until` of the scenario, or /set_simulation_state, ends the run"


class NodeError(RunError):
    """A node's callback raised, or called ``sys.exit``; says which node, on what, and at what simulated time.

    Attributes:
        node: Full name of the node.
        occasion: What it was doing: "topic /scan", "timer 50 Hz", "service /reset".
        time_ns: Simulated time [ns].
    """

    def __init__(self, node: str, occasion: str, time_ns: int, cause: BaseException) -> None:
        self.node = node
        self.occasion = occasion
        self.time_ns = time_ns
        exits = isinstance(cause, SystemExit)
        super().__init__(
            describe_exception(cause),
            where=f"node {node}, {occasion}, at {time_ns / 1e9:.6f} s",
            valid=_EXIT_ADVICE if exits else None,
        )


def timer_occasion(seconds: float, callback: Callable[[], None], name: str | None) -> str:
    """What a timer's calls are named: by its rate, and by its name or else the callback's."""
    called = getattr(callback, "__name__", "").strip("_")
    what = name if name is not None else called if called.isidentifier() else ""
    return f"timer {1.0 / seconds:g} Hz {what}".rstrip()


class Meter:
    """Runs one callback of one node and keeps count of its wall time.

    Attributes:
        node: Full name of the node.
        occasion: What triggers the callback.
        budget_ns: Simulated time the callback may take before a report flags it (a timer's period); 0 = none stated.
        count: Number of calls.
        total_ns: Wall time spent in all of them [ns].
        max_ns: Wall time of the longest [ns].
    """

    __slots__ = ("budget_ns", "callback", "clock", "count", "max_ns", "node", "occasion", "total_ns")

    def __init__(
        self, node: str, occasion: str, callback: Callable[..., Any], clock: Callable[[], int], budget_ns: int = 0
    ) -> None:
        self.node = node
        self.occasion = occasion
        self.callback = callback
        self.clock = clock
        self.budget_ns = budget_ns
        self.count = 0
        self.total_ns = 0
        self.max_ns = 0

    def __call__(self, *args: Any) -> Any:
        """Run the callback; see ``run``."""
        return self.run(self.callback, *args)

    def run(self, callback: Callable[..., Any], *args: Any) -> Any:
        """Run ``callback(*args)`` on this meter's account.

        Raises:
            NodeError: it raised, or called ``sys.exit``.
        """
        start = perf_ns()
        try:
            return callback(*args)
        except NodeError:
            raise
        except (Exception, SystemExit) as error:
            raise NodeError(self.node, self.occasion, self.clock(), error) from error
        finally:
            spent = perf_ns() - start
            self.count += 1
            self.total_ns += spent
            if spent > self.max_ns:
                self.max_ns = spent
