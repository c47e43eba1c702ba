"""What all bridges have in common towards those who attach them."""

from __future__ import annotations

from collections import Counter
from types import TracebackType
from typing import Protocol

from roboyard.bus import Bus
from roboyard.errors import InputError


class BridgeError(InputError):
    """A bridge cannot be built: nobody is there on the other side, or its address is taken."""


class Bridge(Protocol):
    """Shows a run to others until it is closed; a context manager.

    Attributes:
        name: Of the bridge.
        where: Address at which it is reached, or reaches others.
        counts: What happened how often so far.
    """

    name: str
    where: str
    counts: Counter[str]

    def open(self, bus: Bus) -> None:
        """Begin; raises BridgeError."""

    def close(self) -> None:
        """End in order."""


class Attached:
    """A bridge that is open on a bus; a context manager."""

    def __init__(self, bridge: Bridge, bus: Bus) -> None:
        self.bridge = bridge
        bridge.open(bus)

    def __enter__(self) -> Bridge:
        return self.bridge

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bridge.close()
