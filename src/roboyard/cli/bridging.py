"""Bridges of a run, from the options of the command line."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from roboyard.bridges import Bridge
    from roboyard.scenarios import Run


@dataclass(slots=True)
class Bridging:
    """What was asked for.

    Attributes:
        ros1: A bridge to ROS 1.
        topics: Patterns of the topics that cross; none: all.
        host: Address that bridges listen on.
        opened: The bridges of the last run.
    """

    ros1: bool = False
    topics: Sequence[str] = ()
    host: str = "127.0.0.1"
    opened: list[Bridge] = field(default_factory=list)

    @property
    def wanted(self) -> bool:
        """Whether there is any."""
        return self.ros1

    def attach(self) -> list[Callable[[Run], AbstractContextManager[Bridge]]]:
        """For `run_scenario`: new bridges, one for each kind."""
        from roboyard.bridges import Attached, Ros1Bridge
        from roboyard.bridges.ros1 import MASTER

        self.opened.clear()
        if self.ros1:
            self.opened.append(
                Ros1Bridge(os.environ.get("ROS_MASTER_URI") or MASTER, topics=self.topics, host=self.host)
            )

        def opener(bridge: Bridge) -> Callable[[Run], AbstractContextManager[Bridge]]:
            return lambda run: Attached(bridge, run.bus)

        return [opener(bridge) for bridge in self.opened]

    def told(self) -> list[str]:
        """A line for each bridge: what crossed it."""
        return [f"{bridge.name}, {bridge.where}: {_counts(bridge)}" for bridge in self.opened]


def _counts(bridge: Bridge) -> str:
    counts = {"sent": 0, "received": 0, **bridge.counts}
    return ", ".join(f"{value:,} {name}" for name, value in counts.items())
