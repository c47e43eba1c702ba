"""Work that can be held in its middle: on a thread of its own, which runs strictly in turn with whoever has it done."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Semaphore
from typing import Generic, TypeVar

T = TypeVar("T")


class _Dropped(BaseException):
    """The work is not wanted any more."""


class Strand(Generic[T]):
    """One piece of work at a time.

    Attributes:
        held: Whether work waits in its middle.
    """

    def __init__(self) -> None:
        self.held = False
        self._dropped = False
        self._there, self._back = Semaphore(0), Semaphore(0)
        self._pool = ThreadPoolExecutor(1, "strand")
        self._work: Future[T] = Future()

    def begin(self, work: Callable[[], T]) -> bool:
        """Do work until it is done, or held; whether it is done."""
        self._work = self._pool.submit(self._do, work)
        self._back.acquire()
        return not self.held

    def resume(self) -> bool:
        """Go on with work that is held; whether it is done."""
        self.held = False
        self._there.release()
        self._back.acquire()
        return not self.held

    def result(self) -> T:
        """What the work came to; raises what it raised."""
        return self._work.result()

    def hold(self) -> None:
        """Called by the work: wait until it is resumed."""
        self.held = True
        self._back.release()
        self._there.acquire()
        if self._dropped:
            raise _Dropped

    def close(self) -> None:
        """Give up work that is held, and do none any more."""
        if self.held:
            self._dropped = True
            self.resume()
        self._pool.shutdown()

    def _do(self, work: Callable[[], T]) -> T:
        try:
            return work()
        finally:
            self._back.release()
