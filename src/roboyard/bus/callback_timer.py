"""Measures the wall time of callbacks, and adds the node and the trigger to their exceptions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from roboyard.compute.wall_clock import perf_ns
from roboyard.errors import RunError, describe_exception

_EXIT_ADVICE = "callbacks must return; `duration` or `until` of the scenario, or /set_simulation_state, ends the run"


class NodeError(RunError):
    """A callback of a node raised an exception or called ``sys.exit``; states the node, the trigger and the simulated
    time.

    Attributes:
        node: Full name of the node.
        trigger: Trigger of the callback: "topic /scan", "timer 50 Hz", "service /reset".
        time_ns: Simulated time [ns].
    """

    def __init__(self, node: str, trigger: str, time_ns: int, cause: BaseException) -> None:
        self.node = node
        self.trigger = trigger
        self.time_ns = time_ns
        is_exit = isinstance(cause, SystemExit)
        super().__init__(
            describe_exception(cause),
            location=f"node {node}, {trigger}, at {time_ns / 1e9:.6f} s",
            valid=_EXIT_ADVICE if is_exit else None,
        )


def timer_label(seconds: float, callback: Callable[[], None], name: str | None) -> str:
    """Return the label of a timer: its rate, and its name or else the callback's name."""
    callback_name = getattr(callback, "__name__", "").strip("_")
    timer_name = name if name is not None else callback_name if callback_name.isidentifier() else ""
    return f"timer {1.0 / seconds:g} Hz {timer_name}".rstrip()


class CallbackTimer:
    """Runs one callback of one node and records its wall time.

    Attributes:
        node: Full name of the node.
        trigger: Trigger of the callback.
        deadline_ns: Simulated time the callback may take before a report flags it (a timer's period); 0 = no deadline.
        count: Number of calls.
        total_ns: Total wall time of the calls [ns].
        max_ns: Wall time of the longest call [ns].
    """

    __slots__ = ("callback", "clock", "count", "deadline_ns", "max_ns", "node", "total_ns", "trigger")

    def __init__(
        self, node: str, trigger: str, callback: Callable[..., Any], clock: Callable[[], int], deadline_ns: int = 0
    ) -> None:
        self.node = node
        self.trigger = trigger
        self.callback = callback
        self.clock = clock
        self.deadline_ns = deadline_ns
        self.count = 0
        self.total_ns = 0
        self.max_ns = 0

    def __call__(self, *args: Any) -> Any:
        """Run the callback; see `run`."""
        return self.run(self.callback, *args)

    def run(self, callback: Callable[..., Any], *args: Any) -> Any:
        """Run ``callback(*args)`` and add its wall time to this timer.

        Raises:
            NodeError: The callback raised an exception or called ``sys.exit``.
        """
        start_ns = perf_ns()
        try:
            return callback(*args)
        except NodeError:
            raise
        except (Exception, SystemExit) as error:
            raise NodeError(self.node, self.trigger, self.clock(), error) from error
        finally:
            spent_ns = perf_ns() - start_ns
            self.count += 1
            self.total_ns += spent_ns
            if spent_ns > self.max_ns:
                self.max_ns = spent_ns
