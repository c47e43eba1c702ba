"""Bridges and the browser view of a run, from the options of the command line."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING

from roboyard.errors import InputError

if TYPE_CHECKING:
    from roboyard.bridges import Bridge
    from roboyard.compute.wall_clock import Pacer
    from roboyard.scenarios import Run
    from roboyard.view import View

_LOCAL_HOST = "127.0.0.1"
"""Address of the servers where the user names none: only this machine reaches them."""


@dataclass(slots=True)
class BridgeOptions:
    """Options of bridges, and the open bridges of the last run.

    Attributes:
        kinds: Names of the bridges: "ros2", "ros1", "foxglove", "rosbridge".
        topics: Patterns of the bridged topics; empty: all.
        host: Address that bridges listen on.
        port: Port of Foxglove or rosbridge; None: their default ports.
        external: Nodes that external nodes replace.
        external_timeout: Timeout of calls of their services [simulated s].
        allow_origins: Origins of web pages that may connect to Foxglove or rosbridge, in addition to the built-in ones.
        open_bridges: Bridges of the last run.
        pacer: Pacer of the last run.
    """

    kinds: tuple[str, ...] = ()
    topics: Sequence[str] = ()
    host: str = "127.0.0.1"
    port: int | None = None
    external: Sequence[str] = ()
    external_timeout: float = 30.0
    allow_origins: Sequence[str] = ()
    open_bridges: list[Bridge] = field(default_factory=list)
    pacer: Pacer | None = None

    @classmethod
    def from_options(
        cls,
        enabled_kinds: Mapping[str, bool],
        topics: Sequence[str],
        host: str,
        port: int | None,
        external: Sequence[str],
        external_timeout: float | None = None,
        allow_origins: Sequence[str] = (),
    ) -> BridgeOptions:
        """Make it from the options of the command line.

        Raises:
            InputError: The options contradict each other.
        """
        from roboyard.errors import InputError

        kinds = tuple(name for name, on in enabled_kinds.items() if on)
        web_servers = [name for name in kinds if name in ("foxglove", "rosbridge")]
        unused = (
            [f"--bridge-topics {topics[0]}"] if topics else [f"--bridge-host {host}"] if host != _LOCAL_HOST else []
        )
        if unused and not kinds:
            raise InputError(f"{unused[0]} requires a bridge", valid="with --ros2, --ros1, --foxglove or --rosbridge")
        if port is not None and len(web_servers) != 1:
            raise InputError(
                f"--bridge-port {port} requires exactly one server, got {len(web_servers)}",
                valid="with --foxglove or --rosbridge",
            )
        if external_timeout is not None and not external:
            raise InputError(
                f"--external-timeout {external_timeout:g} requires an external node", valid="with --external NODE"
            )
        if allow_origins and not web_servers:
            raise InputError(
                f"--allow-origin {allow_origins[0]} requires a server", valid="with --foxglove or --rosbridge"
            )
        if allow_origins:
            from roboyard.bridges.web_access import check_origin

            allow_origins = tuple(map(check_origin, allow_origins))
        return cls(
            kinds, topics, host, port, external, 30.0 if external_timeout is None else external_timeout, allow_origins
        )

    def attachments(self) -> list[Callable[[Run], AbstractContextManager[object]]]:
        """Return attachments for `run_scenario`: one replaces external nodes, the others open a bridge of each kind."""
        from roboyard.bridges import Attached

        self.open_bridges.clear()

        def opener(kind: str) -> Callable[[Run], AbstractContextManager[Bridge]]:
            def open_on(run: Run) -> AbstractContextManager[Bridge]:
                self.open_bridges.append(self._make_bridge(kind, run))
                return Attached(self.open_bridges[-1], run.bus)

            return open_on

        return [self._replace_nodes, *(opener(kind) for kind in self.kinds)]

    def _replace_nodes(self, run: Run) -> AbstractContextManager[None]:
        """Remove the nodes that external nodes replace."""
        self.pacer = run.bus.executor.pacer
        for name in self.external:
            replace_with_external(run, name, self.external_timeout)
        return nullcontext()

    def _make_bridge(self, kind: str, run: Run) -> Bridge:
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

    def summary_lines(self) -> list[str]:
        """Return a line with the message counts of each bridge, and one about real time."""
        lines = [f"{bridge.name}, {bridge.where}: {_format_counts(bridge)}" for bridge in self.open_bridges]
        if lines and self.pacer is not None and self.pacer.real_time_factor > 0.0:
            lost = f", {self.pacer.dropped_time:.1f} s skipped" if self.pacer.dropped_time else ""
            lines.append(
                f"{self.pacer.real_time_factor:g} × real time: at most {self.pacer.max_lag * 1e3:.0f} ms behind{lost}"
            )
        return lines


def replace_with_external(run: Run, name: str, timeout: float | None = None) -> None:
    """Remove a node from a run before its start; an external node takes its place and answers its services.

    Args:
        run: The run.
        name: Name of the node.
        timeout: Timeout of calls of its services [simulated s]; None: the default of `bridges.external`.

    Raises:
        UnknownNameError: The run has no such node.
    """
    from roboyard.bridges.external import NODE, stand_in
    from roboyard.errors import UnknownNameError

    full = f"/{name.lstrip('/')}"
    node, internal_nodes = run.bus.nodes.get(full), ("/roboyard", NODE)
    if node is None or full in internal_nodes:
        replaceable_nodes = ", ".join(other for other in run.bus.nodes if other not in internal_nodes)
        raise UnknownNameError(f"the run has no node {full}", location="--external", valid=replaceable_nodes)
    for robot in run.robots.values():
        for label in [label for label, internal_nodes in robot.nodes.items() if internal_nodes is node]:
            del robot.nodes[label]
    stand_in(run.bus, node, timeout)


def _format_counts(bridge: Bridge) -> str:
    counts = {"sent": 0, "received": 0, **bridge.counts}
    return ", ".join(f"{value:,} {name}" for name, value in counts.items())


@contextmanager
def open_view(is_enabled: bool, port: int | None, *, read_only: bool) -> Iterator[View | None]:
    """Open the view if it is enabled; print its address to the terminal only, since it contains the token.

    Args:
        is_enabled: Whether ``--view`` is given.
        port: ``--view-port``; None: the default port, or a free one.
        read_only: Do not accept control from the browser.

    Raises:
        InputError: Options of the view are given without it, or the port is in use.
    """
    if not is_enabled:
        if port is not None or read_only:
            raise InputError("--view-port and --read-only require a view", valid="--view")
        yield None
        return
    from roboyard.cli.terminal import print_note
    from roboyard.view import View

    with View(port, read_only=read_only) as view:
        print_note(f"view it at {view.url}")
        yield view


def wait_for_interrupt() -> None:
    """Wait for Ctrl-C or SIGTERM."""
    interrupted = Event()
    previous_handlers = {
        number: signal.signal(number, lambda *_: interrupted.set()) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        interrupted.wait()
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)
