"""The node that runs a behaviour tree as a robot's mission."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from roboyard.behavior.errors import ExecutionError, TreeError, TreeNodeError
from roboyard.behavior.factory import Factory
from roboyard.behavior.node import TreeNode
from roboyard.behavior.nodes.desk import DeskNode
from roboyard.behavior.nodes.held_tree import HeldTree
from roboyard.behavior.nodes.leaves import bind
from roboyard.behavior.show import as_text
from roboyard.behavior.status import IDLE, RUNNING, Status
from roboyard.behavior.tree import Tree, load_tree
from roboyard.config import Config, parameter
from roboyard.errors import ConfigError, RunError
from roboyard.messages import msg


class TreeMissionNodeConfig(Config):
    """Configuration of `TreeMissionNode`."""

    file: str = parameter("", doc="File of the tree.")
    tree: str = parameter("", doc="Name of a tree in the file; empty: the file's main tree.")
    rate: float = parameter(10.0, unit="Hz", low=0.1, high=1000.0, doc="Rate of the ticks.")
    start: float = parameter(1.0, unit="s", low=0.0, high=1e6, doc="Time of the first tick.")
    repeat: bool = parameter(False, runtime=True, doc="Begin anew after success.")
    mock: bool = parameter(False, doc="Replace unknown node types by stand-ins.")
    groot: int = parameter(0, low=0, high=65534, doc="Port for Groot2, such as 1667, and the one after it; 0: none.")


class TreeMissionNode(DeskNode[TreeMissionNodeConfig]):
    """Ticks a behaviour tree from a file until it has succeeded or failed.

    actions, services: as the tree's leaves name them (client)
    out: ~/status (std_msgs/String): the root's status, latched
    out: ~/tree (std_msgs/String): the tree as text, latched
    out: ~/events (std_msgs/String): what changed in a tick, JSON: [[uid, path, before, after], …]
    in: ~/hooks (std_msgs/String): changes of breakpoints, by Groot2, JSON: {kind, body}
    service: ~/state (std_srvs/Trigger): where each node stands, JSON: [[uid, status], …]
    """

    def setup(self) -> None:
        """Read the tree and connect its leaves."""
        self.open_desk()
        self._changes: list[tuple[int, str, str, str]] = []
        self._status = IDLE
        if not self.config.file:
            raise ConfigError("no tree", location=f"{self.full_name}: file", valid="a file of trees in XML")
        factory = Factory(plugins=True)
        bind(factory, self)
        self._tree = load_tree(self.config.file, factory, main=self.config.tree or None, mock=self.config.mock)
        self._tree.watch(self._note)
        self._groot = HeldTree(self, self._tree, self.config.groot, self._settle) if self.config.groot else None
        self._status_out = self.publisher("~/status", msg.String, latched=True)
        self._events_out = self.publisher("~/events", msg.String)
        self.publisher("~/tree", msg.String, latched=True).publish(msg.String(data=as_text(self._tree)))
        self.timer(rate=self.config.rate, callback=self._tick)

    def running_tree(self) -> Tree | None:
        """See `DeskNode.running_tree`."""
        return self._tree

    # -- ticks ---------------------------------------------------------------------------------------------------------
    def _note(self, node: TreeNode, before: Status, after: Status) -> None:
        self._changes.append((node.uid, node.path, before.name, after.name))
        if self._groot is not None:
            self._groot.monitor.note(node, before, after)

    def _tick(self) -> None:
        ended = self._status is not IDLE and self._status is not RUNNING
        if self.now < self.config.start - 1e-9 or (
            ended and not (self.config.repeat and self._status is Status.SUCCESS)
        ):
            return
        if self._groot is not None:
            self._groot.tick()
        else:
            self._settle(lambda: self._tree.tick_once(self.now_ns))

    def _settle(self, result: Callable[[], Status]) -> None:
        """Say what a tick came to."""
        try:
            status = result()
        except (ExecutionError, TreeNodeError) as error:
            self._tree.halt()
            self.log.error(str(error))
            raise RunError(f"the tree failed: {error}", location=self.full_name) from error
        finally:
            self._tell()
        if status is not self._status:
            self._status = status
            self._status_out.publish(msg.String(data=status.name))
            if status is not RUNNING:
                self.log.info(f"the tree {self._tree.name} ended: {status.name}")
        self.forget_goals(self._tree)

    def _tell(self) -> None:
        if self._changes:
            self._events_out.publish(msg.String(data=json.dumps(self._changes)))
            self._changes.clear()

    def close(self) -> None:
        """Watch no more."""
        self._tree.watch(None)
        if self._groot is not None:
            self._groot.close()

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        if self._groot is not None and self._groot.held:
            raise RunError("held at a breakpoint", location=f"node {self.full_name}", valid="save when it was let go")
        try:
            tree = self._tree.save_state()
        except TreeNodeError as error:
            raise RunError(f"cannot be saved: {error}", location=f"node {self.full_name}", valid=error.valid) from None
        return super().save_state() | {"tree": tree, "status": self._status.name}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        super().load_state(state)
        try:
            self._tree.load_state(state["tree"])
        except (TreeNodeError, TreeError) as error:
            raise RunError(str(error), location=f"node {self.full_name}") from None
        self._status = Status[state["status"]]
