"""Bridges of a run, from the options of the command line."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from roboyard.bridges import Bridge
    from roboyard.compute.wall_clock import Pacer
    from roboyard.scenarios import Run


@dataclass(slots=True)
class Bridging:
    """What was asked for.

    Attributes:
        kinds: Names of the bridges: "ros2", "ros1", "foxglove", "rosbridge".
        topics: Patterns of the topics that cross; none: all.
        host: Address that bridges listen on.
        port: Where Foxglove or rosbridge listen; None: where they usually do.
        external: Nodes that are left out, since others take their places.
        patience: How long a call of what they served may take [simulated s].
        allow_origins: Origins of web pages that may connect to Foxglove or rosbridge, besides the known ones.
        opened: The bridges of the last run.
        pacer: What kept the last run to the wall's clock.
    """

    kinds: tuple[str, ...] = ()
    topics: Sequence[str] = ()
    host: str = "127.0.0.1"
    port: int | None = None
    external: Sequence[str] = ()
    patience: float = 30.0
    allow_origins: Sequence[str] = ()
    opened: list[Bridge] = field(default_factory=list)
    pacer: Pacer | None = None

    @classmethod
    def of(
        cls,
        wanted: Mapping[str, bool],
        topics: Sequence[str],
        host: str,
        port: int | None,
        external: Sequence[str],
        patience: float | None = None,
        allow_origins: Sequence[str] = (),
    ) -> Bridging:
        """Of the command line's options. Raises InputError."""
        from roboyard.errors import InputError

        kinds = tuple(name for name, on in wanted.items() if on)
        served = [name for name in kinds if name in ("foxglove", "rosbridge")]
        if port is not None and len(served) != 1:
            raise InputError(
                f"--bridge-port {port} is one port for {len(served)} servers", valid="with --foxglove or --rosbridge"
            )
        if patience is not None and not external:
            raise InputError(f"--external-wait {patience:g} waits for nobody", valid="with --external NODE")
        if allow_origins and not served:
            raise InputError(
                f"--allow-origin {allow_origins[0]} is for servers of web pages", valid="with --foxglove or --rosbridge"
            )
        if allow_origins:
            from roboyard.bridges.web_access import check_origin

            allow_origins = tuple(map(check_origin, allow_origins))
        return cls(kinds, topics, host, port, external, 30.0 if patience is None else patience, allow_origins)

    def attach(self) -> list[Callable[[Run], AbstractContextManager[object]]]:
        """For `run_scenario`: nodes are left out, then there are new bridges, one for each kind."""
        from roboyard.bridges import Attached

        self.opened.clear()

        def opener(kind: str) -> Callable[[Run], AbstractContextManager[Bridge]]:
            def open_on(run: Run) -> AbstractContextManager[Bridge]:
                self.opened.append(self._make(kind, run))
                return Attached(self.opened[-1], run.bus)

            return open_on

        return [self._leave_out, *(opener(kind) for kind in self.kinds)]

    def _leave_out(self, run: Run) -> AbstractContextManager[None]:
        """Take nodes off whose places others take."""
        self.pacer = run.bus.executor.pacer
        for name in self.external:
            leave_out(run, name, self.patience)
        return nullcontext()

    def _make(self, kind: str, run: Run) -> Bridge:
        from roboyard.bridges import FoxgloveBridge, Ros1Bridge, RosbridgeBridge, describe
        from roboyard.bridges.foxglove import PORT as FOXGLOVE
        from roboyard.bridges.ros1 import MASTER
        from roboyard.bridges.rosbridge import PORT as ROSBRIDGE

        robots = describe((robot.namespace, robot.model) for robot in run.robots.values())
        if kind == "ros2":
            from roboyard.bridges.ros2 import Ros2Bridge

            return Ros2Bridge(topics=self.topics, local=self.host in ("127.0.0.1", "localhost"), descriptions=robots)
        if kind == "ros1":
            master = os.environ.get("ROS_MASTER_URI") or MASTER
            return Ros1Bridge(master, topics=self.topics, host=self.host, descriptions=robots)
        if kind == "foxglove":
            return FoxgloveBridge(
                topics=self.topics, host=self.host, port=self.port or FOXGLOVE, allow_origins=self.allow_origins,
                descriptions=robots,
            )  # fmt: skip
        return RosbridgeBridge(
            topics=self.topics, host=self.host, port=self.port or ROSBRIDGE, allow_origins=self.allow_origins,
            descriptions=robots,
        )  # fmt: skip

    def told(self) -> list[str]:
        """A line for each bridge, what crossed it, and one about real time."""
        lines = [f"{bridge.name}, {bridge.where}: {_counts(bridge)}" for bridge in self.opened]
        if lines and self.pacer is not None and self.pacer.real_time_factor > 0.0:
            lost = f", {self.pacer.dropped_time:.1f} s given up" if self.pacer.dropped_time else ""
            lines.append(
                f"{self.pacer.real_time_factor:g} × real time: at most {self.pacer.max_lag * 1e3:.0f} ms behind{lost}"
            )
        return lines


def leave_out(run: Run, name: str, patience: float | None = None) -> None:
    """Take a node off a run that has not begun; what it served is asked outside. Raises UnknownNameError.

    Args:
        run: The run.
        name: The node's.
        patience: How long a call of what it served may take [simulated s]; None: as `bridges.external` has it.
    """
    from roboyard.bridges.external import NODE, stand_in
    from roboyard.errors import UnknownNameError

    full = f"/{name.lstrip('/')}"
    node, own = run.bus.nodes.get(full), ("/roboyard", NODE)
    if node is None or full in own:
        known = ", ".join(other for other in run.bus.nodes if other not in own)
        raise UnknownNameError(f"the run has no node {full}", location="--external", valid=known)
    for robot in run.robots.values():
        for label in [label for label, own in robot.nodes.items() if own is node]:
            del robot.nodes[label]
    stand_in(run.bus, node, patience)


def _counts(bridge: Bridge) -> str:
    counts = {"sent": 0, "received": 0, **bridge.counts}
    return ", ".join(f"{value:,} {name}" for name, value in counts.items())
