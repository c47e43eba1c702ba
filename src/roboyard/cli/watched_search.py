"""A search that somebody watches: how far it is, its best so far, and its end by time or Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import FrameType
from typing import TYPE_CHECKING

from roboyard.compute.wall_clock import wall_seconds

if TYPE_CHECKING:
    from roboyard.walking.steps.plan import StepPlan

_EVERY = 2.0
"""Between two lines about it where none can be drawn again and again [s]."""


class Watch:
    """What a search asks and tells; from any of its threads.

    Args:
        budget: Events that it tries at most.
        seconds: How long it may take; None: as long as the budget lasts.
    """

    def __init__(self, budget: int, seconds: float | None) -> None:
        self.interrupted = False
        self._budget, self._seconds = budget, seconds
        self._begun = wall_seconds()
        self._now: dict[int, int] = {}
        self._best: StepPlan | None = None
        self._over: dict[int, int] = {}

    @property
    def elapsed(self) -> float:
        """How long it takes by now [s]."""
        return wall_seconds() - self._begun

    @property
    def late(self) -> bool:
        """Whether its time is over."""
        return self._seconds is not None and self.elapsed >= self._seconds

    def stop(self) -> bool:
        """Whether it shall end."""
        return self.interrupted or self.late

    def told(self, events: int, better: StepPlan | None) -> None:
        """So many events were tried in one part of the search, and a plan that is better than that part's others."""
        thread = threading.get_ident()
        if events < self._now.get(thread, 0):  # another part has begun
            self._over[thread] = self._over.get(thread, 0) + self._now[thread]
        self._now[thread] = events
        best = self._best
        if better is not None and (best is None or better.cost < best.cost):
            self._best = better

    @property
    def share(self) -> float:
        """How much of the time, or else of the budget, is used: 0 to 1."""
        used = self._events / self._budget if self._seconds is None else self.elapsed / self._seconds
        return min(used, 1.0)

    @property
    def _events(self) -> int:
        return sum(self._now.copy().values()) + sum(self._over.copy().values())

    def line(self) -> str:
        """How far it is, in a line."""
        best = self._best
        said = f"best {best.duration:.1f} s, {len(best.swings)} steps" if best is not None else "no plan yet"
        return f"{self.elapsed:.1f} s, {self._events} events, {said}"


@contextmanager
def watched(budget: int, seconds: float | None, *, quiet: bool) -> Iterator[Watch]:
    """Draw a search's progress until the context ends; meanwhile the first Ctrl-C or SIGTERM only ends the search.

    Args:
        budget: Events that it tries at most.
        seconds: How long it may take; None: as long as the budget lasts.
        quiet: Draw nothing.
    """
    from roboyard.cli.terminal import interactive

    watch = Watch(budget, seconds)

    def handle(number: int, _frame: FrameType | None) -> None:
        if watch.interrupted:
            raise KeyboardInterrupt
        watch.interrupted = True

    mine = threading.current_thread() is threading.main_thread()
    before = {n: signal.signal(n, handle) for n in (signal.SIGINT, signal.SIGTERM)} if mine else {}
    shown: AbstractContextManager[object]
    if quiet:
        shown = nullcontext()
    elif interactive():
        from roboyard.cli.progress_line import draw

        shown = draw(watch.line, lambda: watch.share, 8.0)
    else:
        shown = _lines(watch)
    try:
        with shown:
            yield watch
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _lines(watch: Watch) -> Iterator[None]:
    """Say a line about it now and then."""
    from roboyard.cli.terminal import note

    over = threading.Event()

    def say() -> None:
        while not over.wait(_EVERY):
            note(watch.line())

    thread = threading.Thread(target=say, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
