"""The kinds of nodes that one derives one's own from."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from roboyard.behavior.errors import TreeNodeError
from roboyard.behavior.node import TreeNode
from roboyard.behavior.status import FAILURE, IDLE, RUNNING, SUCCESS, Kind, Status


class Condition(TreeNode):
    """A question; ``tick`` answers `SUCCESS` or `FAILURE` at once."""

    kind = Kind.CONDITION


class Leaf(TreeNode):
    """A leaf that does something, in whatever way."""

    kind = Kind.ACTION


class Action(Leaf):
    """Something that is done at once: ``tick`` never answers `RUNNING`."""

    def _goes_on(self, status: Status) -> None:
        super()._goes_on(status)
        raise TreeNodeError("SyncActionNode MUST never return RUNNING", valid="a StatefulAction, or a GeneratorAction")


class StatefulAction(Leaf):
    """Something that takes time: begun with ``on_start``, asked with ``on_running``, broken off with ``on_halted``."""

    def on_start(self) -> Status:
        """Begin; the answer is `RUNNING` if that is not all."""
        raise NotImplementedError

    def on_running(self) -> Status:
        """Go on."""
        raise NotImplementedError

    def on_halted(self) -> None:
        """Stop what is under way."""

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        status = self.status
        if status is IDLE:
            answer, caller = self.on_start(), "onStart"
        elif status is RUNNING:
            answer, caller = self.on_running(), "onRunning"
        else:
            return status
        if answer is IDLE:
            raise TreeNodeError(f"StatefulActionNode::{caller}() must not return IDLE")
        return answer

    def halt(self) -> None:
        """See `TreeNode.halt`."""
        if self.status is RUNNING:
            self.on_halted()
        self.reset()


class GeneratorAction(StatefulAction):
    """Something that takes time, written down as one generator: each ``yield`` is `RUNNING`, the status is returned.

    Being halted closes the generator, so that its ``finally`` is run.  A generator cannot be saved: a snapshot of a
    tree in which one is running fails with the node's name.
    """

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._running: Generator[None, None, Status] | None = None

    def run(self) -> Generator[None, None, Status]:
        """The work."""
        raise NotImplementedError

    def on_start(self) -> Status:
        """See `StatefulAction.on_start`."""
        self._running = self.run()
        return self.on_running()

    def on_running(self) -> Status:
        """See `StatefulAction.on_running`."""
        running = self._running
        if running is None:
            raise TreeNodeError(f"Node [{self.name}]: its generator is gone")
        try:
            next(running)
        except StopIteration as end:
            self._running = None
            return end.value  # type: ignore[no-any-return]
        return RUNNING

    def on_halted(self) -> None:
        """See `StatefulAction.on_halted`."""
        running, self._running = self._running, None
        if running is not None:
            running.close()

    def save_state(self) -> dict[str, Any]:
        """See `TreeNode.save`."""
        if self._running is not None:
            raise TreeNodeError(
                f"{self.path} is a generator that is running and cannot be saved", valid="save while it is not running"
            )
        return super().save_state()


class Control(TreeNode):
    """A node with children that it ticks in an order of its own."""

    kind = Kind.CONTROL

    def halt(self) -> None:
        """See `TreeNode.halt`."""
        self.reset_children()
        self.reset()

    def halt_child(self, index: int) -> None:
        """Halt one child if it is running, and reset it."""
        child = self.children[index]
        if child.status is RUNNING:
            child.halt_node()
        child.reset()

    def reset_children(self) -> None:
        """Halt the children that are running, and reset all."""
        for child in self.children:
            status = child.status
            if status is not IDLE:
                if status is RUNNING:
                    child.halt_node()
                if child.watched:
                    child.reset()
                else:  # as reset does it, without the call
                    child.status = IDLE


class Decorator(TreeNode):
    """A node with one child."""

    kind = Kind.DECORATOR

    @property
    def child(self) -> TreeNode:
        """The child."""
        return self.children[0]

    def halt(self) -> None:
        """See `TreeNode.halt`."""
        self.reset_child()
        self.reset()

    def reset_child(self) -> None:
        """Halt the child if it is running, and reset it."""
        child = self.children[0]
        if child.status is RUNNING:
            child.halt_node()
        child.reset()

    def execute(self) -> Status:
        """See `TreeNode.execute`; a child that is done is reset."""
        status = TreeNode.execute(self)  # super() would cost as much as a quarter of the tick
        child = self.children[0]
        if child.status is SUCCESS or child.status is FAILURE:
            child.reset()
        return status
