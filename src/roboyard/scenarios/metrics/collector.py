"""What every collector of metrics is."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

Value = float | int | bool | str | None
"""A metric; None: it was not measured."""

Handler = Callable[[Any, int], None]
"""Takes a message and the time it was published at [ns]."""


class Collector(ABC):
    """Listens to some topics of one robot and gives metrics.

    It never publishes and keeps no more than it needs: a run of hours costs no more memory than one of seconds.

    Attributes:
        names: Metrics it gives, in the order of ``result``.
        truth_of: Topics whose messages are compared by their stamps, each with the topic of the truth.
    """

    names: tuple[str, ...] = ()
    truth_of: Mapping[str, str] = {}

    @abstractmethod
    def handlers(self) -> Mapping[str, Handler]:
        """What it listens to: absolute topic names with what takes their messages."""

    def meet_person(self, name: str) -> Mapping[str, Handler]:
        """Somebody is there from now on; what is to be listened to for that."""
        return {}

    @abstractmethod
    def result(self) -> dict[str, Value]:
        """The metrics so far."""

    def save_state(self) -> dict[str, Any]:
        """All it knows, as plain data; one whose attributes are no plain data overrides this and `load`."""
        return copy.deepcopy(vars(self))

    def load_state(self, saved: dict[str, Any]) -> None:
        """Counterpart of `save`."""
        vars(self).update(copy.deepcopy(saved))

    def finish(self, time_ns: int) -> None:  # noqa: B027 - most have nothing to conclude
        """The run ended at this time [ns]."""
