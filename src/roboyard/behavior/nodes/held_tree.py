"""A tree that Groot2 watches, and may hold at breakpoints: simulated time stands still while it does.

Requests that change hooks come in by the run's port for inputs, as what people do: they are stamped with simulated time
and recorded, and a run that is repeated with its inputs is held and let go at the same places.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

from roboyard.behavior.groot import Monitor
from roboyard.behavior.hooks import GrootError, Hooks
from roboyard.behavior.nodes.groot_server import GrootServer
from roboyard.behavior.nodes.strand import Strand
from roboyard.behavior.status import Status
from roboyard.behavior.tree import Tree
from roboyard.bus import Node
from roboyard.bus.external_inputs import ExternalInput
from roboyard.messages import msg, serialize

_ANSWER_S = 2.0


class HeldTree:
    """Ticks a tree for a mission, with Groot2 beside it.

    Args:
        node: The mission, which listens to the topic ``~/hooks`` (std_msgs/String) for this.
        tree: Its tree.
        port: See `GrootServer`.
        settle: Called with a function that gives what a tick came to, or raises what it raised.

    Raises:
        InputError: as `GrootServer`.
    """

    def __init__(self, node: Node, tree: Tree, port: int, settle: Callable[[Callable[[], Status]], None]) -> None:
        self._node, self._tree, self._settle = node, tree, settle
        self._strand: Strand[Status] = Strand()
        self._outcomes: SimpleQueue[str] = SimpleQueue()
        self._paused = False
        self.hooks = Hooks(tree, self._strand.hold, lambda uid: self._server.tell(uid))
        self.monitor = Monitor(tree, lambda: node.now_ns, self.hooks, self._ask)
        self._server = GrootServer(self.monitor, port, self._heard)
        node.subscribe("~/hooks", msg.String, self._on_change)

    @property
    def held(self) -> bool:
        """Whether it waits at a breakpoint."""
        return self._strand.held

    def tick(self) -> None:
        """Tick the tree once, unless it is held."""
        if self.held:
            return
        now_ns = self._node.now_ns
        if self.hooks:
            self._let(lambda: self._strand.begin(lambda: self._tree.tick_once(now_ns)))
        else:
            self._settle(lambda: self._tick(now_ns))

    def _tick(self, now_ns: int) -> Status:
        with self.monitor.lock:
            return self._tree.tick_once(now_ns)

    def _let(self, go: Callable[[], bool]) -> None:
        """Go on with a tick, to its end or to a breakpoint."""
        executor = self._node.bus.executor
        with self.monitor.lock:
            done = go()
        if done:
            if self._paused:
                self._paused = executor.paused = False
            self._settle(self._strand.result)
            return
        self._node.log.info(f"held at the breakpoint of {self.hooks.held_at}")
        if self._server.there and not executor.paused:
            self._paused = executor.paused = True

    # -- requests ------------------------------------------------------------------------------------------------------
    def _ask(self, kind: str, body: str) -> None:
        """From the server's thread: have hooks changed, and wait for what comes of it."""
        while not self._outcomes.empty():
            self._outcomes.get()
        self._push(kind, body)
        try:
            outcome = self._outcomes.get(timeout=_ANSWER_S)
        except Empty:
            raise GrootError("the run has not come to it yet") from None
        if outcome:
            raise GrootError(outcome)

    def _push(self, kind: str, body: str) -> None:
        said = serialize(msg.String(data=json.dumps({"kind": kind, "body": body})))
        topic = self._node.resolve("~/hooks")
        self._node.bus.inputs.put(ExternalInput("publish", topic, "std_msgs/msg/String", "groot", said))

    def _heard(self, there: bool) -> None:
        if self.hooks:
            self._push("E" if there else "X", "")

    def _on_change(self, message: Any) -> None:
        outcome = ""
        try:
            said = json.loads(message.data)
            with self.monitor.lock:
                self.hooks.change(str(said["kind"]), str(said["body"]))
        except GrootError as error:
            outcome = str(error)
        except (ValueError, TypeError, KeyError) as error:
            self._node.log.warn(f"no request that changes hooks: {error}", throttle=1.0)
            return
        self._outcomes.put(outcome)
        if self.held:
            self._let(self._strand.resume)

    def close(self) -> None:
        """Watch no more."""
        self._strand.close()
        self._server.close()
