"""The node that executes a behavior tree, and its connection to Groot2.

While the tree waits at a breakpoint, the simulated time stands still. Requests that change hooks are external
inputs of the run: they are stamped with simulated time and recorded, so a run that is replayed with its inputs
waits at the same places.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Empty, SimpleQueue
from threading import Semaphore
from typing import Any, Generic, TypeVar

from roboyard.behavior.basic_types import IDLE, RUNNING, NodeStatus
from roboyard.behavior.errors import InvalidTreeError, TreeNodeError
from roboyard.behavior.groot import GrootError, GrootHooks, GrootRequestHandler
from roboyard.behavior.nodes.groot_server import GrootServer
from roboyard.behavior.nodes.leaf_host import LeafHostNode, create_host_factory
from roboyard.behavior.tree import Tree, load_tree
from roboyard.behavior.tree_drawing import tree_to_text
from roboyard.behavior.tree_node import ExecutionError, TreeNode
from roboyard.bus import Node
from roboyard.bus.external_inputs import ExternalInput
from roboyard.config import Config, parameter
from roboyard.errors import ConfigError, RunError
from roboyard.messages import msg, serialize

T = TypeVar("T")


class _WorkCanceled(BaseException):
    """The work was canceled."""


class SteppedThread(Generic[T]):
    """A thread that executes one piece of work at a time, strictly in turn with its caller.

    Attributes:
        is_paused: Whether the work waits before its end.
    """

    def __init__(self) -> None:
        self.is_paused = False
        self._is_canceled = False
        self._resume_signal, self._return_signal = Semaphore(0), Semaphore(0)
        self._pool = ThreadPoolExecutor(1, "strand")
        self._work: Future[T] = Future()

    def start(self, work: Callable[[], T]) -> bool:
        """Execute work until it is finished or paused; return whether it is finished."""
        self._work = self._pool.submit(self._run_work, work)
        self._return_signal.acquire()
        return not self.is_paused

    def resume(self) -> bool:
        """Continue paused work; return whether it is finished."""
        self.is_paused = False
        self._resume_signal.release()
        self._return_signal.acquire()
        return not self.is_paused

    def result(self) -> T:
        """Return the result of the work, or raise its error."""
        return self._work.result()

    def pause(self) -> None:
        """Called by the work: wait until it is resumed."""
        self.is_paused = True
        self._return_signal.release()
        self._resume_signal.acquire()
        if self._is_canceled:
            raise _WorkCanceled

    def close(self) -> None:
        """Cancel paused work, and accept no more."""
        if self.is_paused:
            self._is_canceled = True
            self.resume()
        self._pool.shutdown()

    def _run_work(self, work: Callable[[], T]) -> T:
        try:
            return work()
        finally:
            self._return_signal.release()


_RESPONSE_TIMEOUT = 2.0


class DebuggableTree:
    """Ticks the tree of a node that Groot2 observes.

    Args:
        node: The mission, which listens to the topic ``~/hooks`` (std_msgs/String) for this.
        tree: Its tree.
        port: See `GrootServer`.
        on_result: Called with a function that gives what a tick came to, or raises what it raised.

    Raises:
        InputError: as `GrootServer`.
    """

    def __init__(
        self, node: Node, tree: Tree, port: int, on_result: Callable[[Callable[[], NodeStatus]], None]
    ) -> None:
        self._node, self._tree, self._on_result = node, tree, on_result
        self._thread: SteppedThread[NodeStatus] = SteppedThread()
        self._outcomes: SimpleQueue[str] = SimpleQueue()
        self._has_paused_executor = False
        self.hooks = GrootHooks(tree, self._thread.pause, lambda uid: self._server.notify_breakpoint(uid))
        self.monitor = GrootRequestHandler(tree, lambda: node.now_ns, self.hooks, self._request_hook_change)
        self._server = GrootServer(self.monitor, port, self._on_connection_change)
        node.subscribe("~/hooks", msg.String, self._on_hook_change)

    @property
    def is_paused(self) -> bool:
        """Whether it waits at a breakpoint."""
        return self._thread.is_paused

    def tick(self) -> None:
        """Tick the tree once, unless it waits at a breakpoint."""
        if self.is_paused:
            return
        now_ns = self._node.now_ns
        if self.hooks:
            self._advance(lambda: self._thread.start(lambda: self._tree.tick_once(now_ns)))
        else:
            self._on_result(lambda: self._tick(now_ns))

    def _tick(self, now_ns: int) -> NodeStatus:
        with self.monitor.lock:
            return self._tree.tick_once(now_ns)

    def _advance(self, step: Callable[[], bool]) -> None:
        """Continue a tick, to its end or to a breakpoint."""
        executor = self._node.bus.executor
        with self.monitor.lock:
            is_finished = step()
        if is_finished:
            if self._has_paused_executor:
                self._has_paused_executor = executor.paused = False
            self._on_result(self._thread.result)
            return
        self._node.log.info(f"waiting at the breakpoint of {self.hooks.paused_at}")
        if self._server.is_connected and not executor.paused:
            self._has_paused_executor = executor.paused = True

    # -- requests ------------------------------------------------------------------------------------------------------
    def _request_hook_change(self, kind: str, body: str) -> None:
        """Request a change of hooks from the server's thread, and wait for its outcome."""
        while not self._outcomes.empty():
            self._outcomes.get()
        self._publish_hook_change(kind, body)
        try:
            outcome = self._outcomes.get(timeout=_RESPONSE_TIMEOUT)
        except Empty:
            raise GrootError("the run has not executed the request yet") from None
        if outcome:
            raise GrootError(outcome)

    def _publish_hook_change(self, kind: str, body: str) -> None:
        data = serialize(msg.String(data=json.dumps({"kind": kind, "body": body})))
        topic = self._node.resolve("~/hooks")
        self._node.bus.inputs.put(ExternalInput("publish", topic, "std_msgs/msg/String", "groot", data))

    def _on_connection_change(self, is_connected: bool) -> None:
        if self.hooks:
            self._publish_hook_change("E" if is_connected else "X", "")

    def _on_hook_change(self, message: Any) -> None:
        outcome = ""
        try:
            request = json.loads(message.data)
            with self.monitor.lock:
                self.hooks.change(str(request["kind"]), str(request["body"]))
        except GrootError as error:
            outcome = str(error)
        except (ValueError, TypeError, KeyError) as error:
            self._node.log.warn(f"invalid request of Groot2: {error}", throttle=1.0)
            return
        self._outcomes.put(outcome)
        if self.is_paused:
            self._advance(self._thread.resume)

    def close(self) -> None:
        """Stop observing the tree."""
        self._thread.close()
        self._server.close()


class TreeExecutorNodeConfig(Config):
    """Configuration of `TreeExecutorNode`."""

    file: str = parameter("", doc="File of the tree.")
    tree: str = parameter("", doc="Name of a tree in the file; empty: the file's main tree.")
    rate: float = parameter(10.0, unit="Hz", low=0.1, high=1000.0, doc="Rate of the ticks.")
    start_time: float = parameter(1.0, unit="s", low=0.0, high=1e6, doc="Time of the first tick.")
    repeat: bool = parameter(False, runtime=True, doc="Whether the tree starts again after success.")
    mock: bool = parameter(False, doc="Replace unknown node types by mocks.")
    groot_port: int = parameter(
        0, low=0, high=65534, doc="Port for Groot2, such as 1667; the next port is used too; 0: none."
    )


class TreeExecutorNode(LeafHostNode[TreeExecutorNodeConfig]):
    """Ticks a behavior tree from a file until it has succeeded or failed.

    actions, services: as the tree's leaves name them (client)
    out: ~/status (std_msgs/String): the root's status, latched
    out: ~/tree (std_msgs/String): the tree as text, latched
    out: ~/events (std_msgs/String): changes of statuses in a tick, JSON: [[uid, path, before, after], …]
    in: ~/hooks (std_msgs/String): changes of breakpoints, by Groot2, JSON: {kind, body}
    service: ~/state (std_srvs/Trigger): status of each node, JSON: [[uid, status], …]
    """

    def setup(self) -> None:
        """Read the tree and connect its leaves."""
        self.create_leaf_host()
        self._changes: list[tuple[int, str, str, str]] = []
        self._status = IDLE
        if not self.config.file:
            raise ConfigError("no tree", location=f"{self.full_name}: file", valid="a file of trees in XML")
        factory = create_host_factory(self)
        self._tree = load_tree(self.config.file, factory, main=self.config.tree or None, mock=self.config.mock)
        self._tree.set_status_callback(self._on_status_change)
        self._groot = (
            DebuggableTree(self, self._tree, self.config.groot_port, self._on_tick_result)
            if self.config.groot_port
            else None
        )
        self._status_out = self.publisher("~/status", msg.String, latched=True)
        self._events_out = self.publisher("~/events", msg.String)
        self.publisher("~/tree", msg.String, latched=True).publish(msg.String(data=tree_to_text(self._tree)))
        self.timer(rate=self.config.rate, callback=self._tick)

    def running_tree(self) -> Tree | None:
        """See `LeafHostNode.running_tree`."""
        return self._tree

    # -- ticks ---------------------------------------------------------------------------------------------------------
    def _on_status_change(self, node: TreeNode, previous: NodeStatus, status: NodeStatus) -> None:
        self._changes.append((node.uid, node.path, previous.name, status.name))
        if self._groot is not None:
            self._groot.monitor.record(node, previous, status)

    def _tick(self) -> None:
        is_finished = self._status is not IDLE and self._status is not RUNNING
        if self.now < self.config.start_time - 1e-9 or (
            is_finished and not (self.config.repeat and self._status is NodeStatus.SUCCESS)
        ):
            return
        if self._groot is not None:
            self._groot.tick()
        else:
            self._on_tick_result(lambda: self._tree.tick_once(self.now_ns))

    def _on_tick_result(self, result: Callable[[], NodeStatus]) -> None:
        """Publish the result of a tick."""
        try:
            status = result()
        except (ExecutionError, TreeNodeError) as error:
            self._tree.halt()
            self.log.error(str(error))
            raise RunError(f"the tree failed: {error}", location=self.full_name) from error
        finally:
            self._publish_changes()
        if status is not self._status:
            self._status = status
            self._status_out.publish(msg.String(data=status.name))
            if status is not RUNNING:
                self.log.info(f"the tree {self._tree.name} ended: {status.name}")
        self.drop_finished_goals(self._tree)

    def _publish_changes(self) -> None:
        if self._changes:
            self._events_out.publish(msg.String(data=json.dumps(self._changes)))
            self._changes.clear()

    def close(self) -> None:
        """Stop observing the tree."""
        self._tree.set_status_callback(None)
        if self._groot is not None:
            self._groot.close()

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        if self._groot is not None and self._groot.is_paused:
            raise RunError(
                "the tree waits at a breakpoint",
                location=f"node {self.full_name}",
                valid="save after the breakpoint is unlocked",
            )
        try:
            tree = self._tree.save_state()
        except TreeNodeError as error:
            raise RunError(f"cannot be saved: {error}", location=f"node {self.full_name}", valid=error.valid) from None
        return super().save_state() | {"tree": tree, "status": self._status.name}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore the result of `save_state`."""
        super().load_state(state)
        try:
            self._tree.load_state(state["tree"])
        except (TreeNodeError, InvalidTreeError) as error:
            raise RunError(str(error), location=f"node {self.full_name}") from None
        self._status = NodeStatus[state["status"]]
