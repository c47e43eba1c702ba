"""Results that come later, on the executor's one thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from roboyard.errors import RoboyardError, RunError


class Future:
    """A result to come.  Not thread-safe: made, resolved and read on the executor's thread."""

    __slots__ = ("_callbacks", "_error", "_is_done", "_result", "description")

    def __init__(self, description: str = "result") -> None:
        self.description = description
        self._is_done = False
        self._result: Any = None
        self._error: RoboyardError | None = None
        self._callbacks: list[Callable[[Future], None]] = []

    def done(self) -> bool:
        """Whether there is a result or an error."""
        return self._is_done

    @property
    def result(self) -> Any:
        """The result.

        Raises:
            RunError: not done yet.
            RoboyardError: what made it fail.
        """
        if not self._is_done:
            raise RunError(f"{self.description} is not there yet", valid="run the bus until .done()")
        if self._error is not None:
            raise self._error
        return self._result

    @property
    def error(self) -> RoboyardError | None:
        """Why it failed; None when it did not (yet)."""
        return self._error

    def add_done_callback(self, callback: Callable[[Future], None]) -> None:
        """Call ``callback(self)`` once done; at once if it is."""
        if self._is_done:
            callback(self)
        else:
            self._callbacks.append(callback)

    def set_result(self, result: Any) -> None:
        """Give the result; later calls do nothing."""
        self._finish(result, None)

    def set_error(self, error: RoboyardError) -> None:
        """Give an error instead of a result; later calls do nothing."""
        self._finish(None, error)

    def _finish(self, result: Any, error: RoboyardError | None) -> None:
        if self._is_done:
            return
        self._is_done, self._result, self._error = True, result, error
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)

    def deliver(self, message: Any, source: str) -> None:
        """Be resolved by the queue: an error fails it, anything else is the result."""
        if isinstance(message, RoboyardError):
            self.set_error(message)
        else:
            self.set_result(message)
