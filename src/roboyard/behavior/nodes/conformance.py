"""Conformance tests of node types of behavior trees, of this package and of others: `check_tree_node`.

They test what `TreeNode` promises: a node is built into a tree on a bus whose actions, services and topics respond, its
children return scripted statuses, and the tree is ticked, halted, saved and restored.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, NoReturn

from roboyard.behavior.basic_types import FAILURE, IDLE, RUNNING, SUCCESS, NodeStatus, NodeType
from roboyard.behavior.blackboard import Blackboard
from roboyard.behavior.nodes.leaf_host import LeafHostNode, create_host_factory
from roboyard.behavior.ports import Port, input_port
from roboyard.behavior.tree import Tree, read_tree
from roboyard.behavior.tree_file import first_forbidden_character, is_allowed_port
from roboyard.behavior.tree_node import ExecutionError, GeneratorActionNode, StatefulActionNode, TreeNode
from roboyard.bus import Bus, GoalHandle, Node
from roboyard.config import Config
from roboyard.errors import InputError, RoboyardError

_RATE: Final = 10.0
"""Rate of the ticks [Hz]."""
_GOAL_TIME_NS: Final = 250_000_000
"""Time after which the environment ends a goal [ns]."""
_N_TICKS: Final = 14
_SAVE_TICKS: Final = (1, 2, 4, 7)
_HALT_TICKS: Final = (1, 3)
_CHILD_SCRIPTS: Final = ("RRS", "RF", "S", "F")
"""Statuses of a child in successive ticks: R is RUNNING, S SUCCESS, F FAILURE."""
_STATUSES: Final = {"R": RUNNING, "S": SUCCESS, "F": FAILURE}
_NODE_NAME: Final = "NodeUnderTest"

Trace = list[tuple[str, list[tuple[int, str, str]], str]]
"""For each tick the status of the tree, the changes (uid, before, after), and the blackboard."""


def check_tree_node(
    node_class: type[TreeNode],
    ports: Mapping[str, str] | None = None,
    *,
    n_children: int | None = None,
    entries: Mapping[str, Any] | None = None,
    has_memory: bool = False,
) -> None:
    """Test a node type against the contract of `TreeNode`.

    Checked are the declarations of ports, the error of an unknown port, the statuses and their changes, that the same
    ticks give the same result, that a tree restored at any tick continues as the uninterrupted one, that a saved state
    does not change later, and that `halt` leaves no node running, no goal active and no subscription open. After
    `halt` the node starts again.

    Args:
        node_class: The node type.
        ports: Texts of its ports; outputs that are not given are connected to entries of their name.
        n_children: Number of children; by default the smallest possible one, of control nodes at least two.
        entries: Values of entries of the blackboard.
        has_memory: Whether its behavior after `halt` depends on what it did before, as of a node that succeeds once.

    Raises:
        InputError: The node type breaks the contract; the message says how.
    """
    _TreeNodeCheck(node_class, ports or {}, n_children, entries or {}, has_memory).run_all()


class _TreeNodeCheck:
    def __init__(
        self,
        node_class: type[TreeNode],
        ports: Mapping[str, str],
        n_children: int | None,
        entries: Mapping[str, Any],
        has_memory: bool,
    ) -> None:
        self._class = node_class
        self._entries = entries
        self._has_memory = has_memory
        self._check_declaration()
        outputs = {name: f"{{{name}}}" for name, port in node_class.ports.items() if not port.is_input}
        self._ports = {**outputs, **ports}
        missing = [name for name, port in node_class.ports.items() if port.is_required and name not in self._ports]
        if missing:
            raise InputError(
                f"there is no text for the port {missing[0]}",
                location=f"check_tree_node({node_class.__name__})",
                valid=f"ports={{{missing[0]!r}: ...}}",
            )
        self._n_children = self._count_children(n_children)

    def _count_children(self, n_children: int | None) -> int:
        if self._class.node_type is NodeType.DECORATOR:
            return 1
        if self._class.node_type is not NodeType.CONTROL:
            return 0
        low = 1 if self._class.arity is None else self._class.arity[0]
        return max(low, 2) if n_children is None else n_children

    def run_all(self) -> None:
        """Check every promise in turn."""
        self._check_unknown_port()
        n_patterns = len(_CHILD_SCRIPTS) if self._n_children else 1
        for offset in range(n_patterns):
            scripts = [_CHILD_SCRIPTS[(offset + k) % len(_CHILD_SCRIPTS)] for k in range(self._n_children)]
            expected = self._run(scripts)
            self._check_trace(expected)
            if self._run(scripts) != expected:
                self._report("returns other statuses for the same ticks")
            self._check_halt_when_idle(scripts, expected)
            self._check_saving(scripts, expected)
            self._check_halting(scripts, expected)

    # -- declarations --------------------------------------------------------------------------------------------------
    def _check_declaration(self) -> None:
        if not isinstance(getattr(self._class, "node_type", None), NodeType):
            self._report("has no node_type: it derives from none of the base classes of nodes")
        for name, port in self._class.ports.items():
            if not isinstance(port, Port):
                self._report(f"declares the port {name} as {port!r:.60}, not by input_port, output_port or inout_port")
            if not is_allowed_port(name) or first_forbidden_character(name) is not None:
                self._report(f"declares the port {name}, whose name is reserved or has forbidden characters")
            if not port.doc.strip():
                self._report(f"does not document the port {name}")

    def _check_unknown_port(self) -> None:
        try:
            self._read({**self._ports, "no_such_port": "1"}, [_CHILD_SCRIPTS[0]] * self._n_children)
        except RoboyardError as error:
            if "no_such_port" in str(error):
                return
            self._report(f"is not read with its ports: {error}")
        self._report("accepts a port that it does not declare")

    def _read(self, ports: Mapping[str, str], scripts: Sequence[str]) -> Tree:
        with Bus() as bus:
            environment = bus.add(_Environment(), "environment")
            return bus.add(_TreeTicker(environment, self._class, _make_xml(ports, scripts), self._entries), "host").tree

    # -- runs ----------------------------------------------------------------------------------------------------------
    def _make_fixture(self, scripts: Sequence[str]) -> _TreeFixture:
        try:
            return _TreeFixture(self._class, _make_xml(self._ports, scripts), self._entries)
        except RoboyardError as error:
            self._report(f"is not built with its ports: {error}")

    def _run(self, scripts: Sequence[str]) -> Trace:
        with self._make_fixture(scripts) as fixture:
            fixture.advance(_N_TICKS)
            return fixture.host.trace

    def _check_trace(self, trace: Trace) -> None:
        last: dict[int, str] = {}
        for status, changes, _ in trace:
            if status.startswith("bug: "):
                self._report(f"raises an error that is no RoboyardError: {status.removeprefix('bug: ')}")
            if status == "IDLE":
                self._report("returns IDLE from a tick")
            for uid, before, after in changes:
                if last.get(uid, "IDLE") != before:
                    self._report(f"changes its status from {before}, though it was {last.get(uid, 'IDLE')}")
                last[uid] = after

    def _check_halt_when_idle(self, scripts: Sequence[str], expected: Trace) -> None:
        with self._make_fixture(scripts) as fixture:
            fixture.host.tree.halt()
            fixture.advance(_N_TICKS)
            if fixture.host.trace != expected:
                self._report("behaves otherwise after it was halted before the first tick")

    def _check_saving(self, scripts: Sequence[str], expected: Trace) -> None:
        for tick in _SAVE_TICKS:
            with self._make_fixture(scripts) as fixture, self._make_fixture(scripts) as other:
                fixture.advance(tick)
                if len(fixture.host.trace) < tick:
                    return  # an error ended the run
                try:
                    saved = fixture.bus.save_state()
                except RoboyardError as error:
                    if issubclass(self._class, GeneratorActionNode):
                        continue
                    self._report(f"cannot be saved after tick {tick}: {error}")
                before = repr(saved)
                fixture.advance(_N_TICKS - tick)
                if repr(saved) != before:
                    self._report("changes a state that was saved before: it returns objects that it modifies later")
                other.bus.load_state(copy.deepcopy(saved))
                other.advance(_N_TICKS - tick)
                if other.host.trace != expected[tick:]:
                    self._report(f"continues otherwise after it was saved and restored at tick {tick}")

    def _check_halting(self, scripts: Sequence[str], expected: Trace) -> None:
        for tick in _HALT_TICKS:
            with self._make_fixture(scripts) as fixture:
                n_endpoints = fixture.host.n_endpoints
                fixture.advance(tick)
                node = fixture.host.tree.root
                if node.status is not RUNNING or len(fixture.host.trace) < tick:
                    continue
                fixture.host.calls.clear()
                node.halt_node()  # as a parent does
                node.reset_status()
                running = [one.path for one in fixture.host.tree.nodes.values() if one.status is not IDLE]
                if running:
                    self._report(f"leaves {running[0]} {fixture.host.tree.find(running[0])[0].status.name} after halt")
                fixture.bus.executor.run_for(0.5 / _RATE)
                if fixture.environment.active_goals:
                    self._report("leaves a goal active after halt")
                if fixture.host.n_endpoints > n_endpoints:
                    self._report("leaves a subscription or a publisher open after halt")
                is_stateful = isinstance(node, StatefulActionNode)
                if is_stateful and "on_halted" not in fixture.host.calls:
                    self._report("does not call on_halted when it is halted")
                fixture.host.clear_record()
                fixture.advance(_N_TICKS - tick)
                if is_stateful and "on_start" not in fixture.host.calls:
                    self._report("does not call on_start in the first tick after halt")
                statuses, first_statuses = ([row[:2] for row in trace] for trace in (fixture.host.trace, expected))
                if not self._has_memory and statuses != first_statuses[: len(statuses)]:
                    self._report("does not start afresh after halt")

    def _report(self, violation: str) -> NoReturn:
        raise InputError(violation, location=self._class.__name__, valid="the contract of TreeNode")


def _make_xml(ports: Mapping[str, str], scripts: Sequence[str]) -> str:
    attributes = "".join(f' {name}="{_escape(text)}"' for name, text in ports.items())
    children = "".join(f'<ScriptedChild statuses="{statuses}"/>' for statuses in scripts)
    body = f"<{_NODE_NAME}{attributes}>{children}</{_NODE_NAME}>"
    return f'<root BTCPP_format="4"><BehaviorTree ID="Main">{body}</BehaviorTree></root>'


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")


class _TreeFixture:
    """A bus with an environment and the host of a tree."""

    def __init__(self, node_class: type[TreeNode], xml: str, entries: Mapping[str, Any]) -> None:
        self.bus = Bus(seed=1)
        self.environment = self.bus.add(_Environment(), "environment")
        self.host = self.bus.add(_TreeTicker(self.environment, node_class, xml, entries), "host")

    def advance(self, n_ticks: int) -> None:
        """Run for a number of ticks."""
        self.bus.executor.run_for(n_ticks / _RATE)

    def __enter__(self) -> _TreeFixture:
        return self

    def __exit__(self, *_: object) -> None:
        self.bus.close()


class _Environment(Node):
    """Ends each goal with success after some time, responds to services, and publishes on topics of subscribers."""

    def setup(self) -> None:
        self._servers: dict[tuple[str, str], Any] = {}
        self._publishers: dict[str, Any] = {}
        self.timer(rate=_RATE, callback=self._tick)

    @property
    def active_goals(self) -> list[GoalHandle]:
        """Goals that are neither finished nor canceled."""
        return [goal for server in self._servers.values() for goal in server.active_goals]

    def serve_action(self, name: str, kind: Any) -> None:
        """Offer an action of an absolute name."""
        if (name, kind.name) not in self._servers:
            self._servers[name, kind.name] = self.action_server(
                name, kind, self._on_goal, on_goal_restored=self._on_goal_restored
            )

    def serve(self, name: str, kind: Any) -> None:
        """Offer a service of an absolute name."""
        if name not in self.bus.services:
            self.service(name, kind, lambda _: kind.Response())

    def publish_on(self, name: str, kind: type) -> None:
        """Publish empty messages on an absolute topic."""
        if name not in self._publishers:
            self._publishers[name] = self.publisher(name, kind)

    def _on_goal(self, handle: GoalHandle) -> None:
        handle.accept()
        handle.on_cancel = GoalHandle.set_canceled

    def _on_goal_restored(self, handle: GoalHandle) -> None:
        handle.on_cancel = GoalHandle.set_canceled

    def _tick(self) -> None:
        for server in self._servers.values():
            for goal in server.active_goals:
                if self.now_ns - goal.accepted_ns >= _GOAL_TIME_NS:
                    goal.succeed(server.type.Result())
        for publisher in self._publishers.values():
            publisher.publish(publisher.topic.type())


class _ScriptedChild(StatefulActionNode):
    ports: ClassVar = {"statuses": input_port(str, doc="Statuses of successive ticks; the last one is repeated.")}
    state_fields: ClassVar[tuple[str, ...]] = ("_index",)

    def setup(self) -> None:
        self._index = 0

    def on_start(self) -> NodeStatus:
        self._index = 0
        return self._status()

    def on_running(self) -> NodeStatus:
        self._index += 1
        return self._status()

    def _status(self) -> NodeStatus:
        statuses = self.get_input("statuses")
        return _STATUSES[statuses[min(self._index, len(statuses) - 1)]]


class _TreeTicker(LeafHostNode[Config]):
    """Ticks the tree of one node type, and records what happens.

    Attributes:
        tree: The tree.
        trace: See `Trace`.
        calls: Names of the methods of the node under test that were called.
    """

    def __init__(
        self, environment: _Environment, node_class: type[TreeNode], xml: str, entries: Mapping[str, Any]
    ) -> None:
        super().__init__()
        self._environment, self._node_class, self._xml, self._initial_entries = environment, node_class, xml, entries

    def setup(self) -> None:
        self.create_leaf_host()
        self.trace: Trace = []
        self.calls: list[str] = []
        self._changes: list[tuple[int, str, str]] = []
        self._has_failed = False
        factory = create_host_factory(self)
        factory.register(_observe_calls(self._node_class, self.calls), _NODE_NAME)
        factory.register(_ScriptedChild, "ScriptedChild")
        blackboard = Blackboard()
        for name, value in self._initial_entries.items():
            blackboard.set(name, value)
        self.tree = read_tree(self._xml, factory, blackboard=blackboard, source=self._node_class.__name__)
        self.tree.set_status_callback(
            lambda node, before, after: self._changes.append((node.uid, before.name, after.name))
        )
        self.timer(rate=_RATE, callback=self._tick)

    def running_tree(self) -> Tree | None:
        """See `LeafHostNode.running_tree`."""
        return self.tree

    @property
    def n_endpoints(self) -> int:
        """Number of subscriptions and publishers that are open."""
        return len(self._endpoints)

    # -- the environment serves what leaves use ------------------------------------------------------------------------
    def action_client_of(self, name: str, kind: Any) -> Any:
        """See `LeafHost.action_client_of`."""
        self._environment.serve_action(self.resolve(name), kind)
        return super().action_client_of(name, kind)

    def service_client(self, name: str, service_type: Any) -> Any:
        """See `Node.service_client`."""
        self._environment.serve(self.resolve(name), service_type)
        return super().service_client(name, service_type)

    def subscribe(
        self, name: str, message_type: type, callback: Callable[..., None], *, with_source: bool = False
    ) -> Any:
        """See `Node.subscribe`."""
        self._environment.publish_on(self.resolve(name), message_type)
        return super().subscribe(name, message_type, callback, with_source=with_source)

    # -- ticks ---------------------------------------------------------------------------------------------------------
    def clear_record(self) -> None:
        """Forget trace and changes."""
        self.trace.clear()
        self._changes.clear()

    def _tick(self) -> None:
        if self._has_failed:
            return
        try:
            status = self.tree.tick_once(self.now_ns).name
        except ExecutionError as error:
            self._has_failed = True
            is_expected = isinstance(error.cause, RoboyardError)
            status = f"{'error' if is_expected else 'bug'}: {type(error.cause).__name__}: {error.message}"
        entries = repr(sorted((key, entry.value) for key, entry in self.tree.subtrees[0].blackboard))
        self.trace.append((status, list(self._changes), entries))
        self._changes.clear()
        self.drop_finished_goals(self.tree)

    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        return super().save_state() | {"tree": self.tree.save_state()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back the result of `save_state`."""
        super().load_state(state)
        self.tree.load_state(state["tree"])


def _observe_calls(node_class: type[TreeNode], calls: list[str]) -> type[TreeNode]:
    """Return the class with `on_start` and `on_halted` noting their calls."""
    if not issubclass(node_class, StatefulActionNode):
        return node_class

    def observe(name: str) -> Callable[..., Any]:
        def call(self: Any, *arguments: Any) -> Any:
            calls.append(name)
            return getattr(node_class, name)(self, *arguments)

        return call

    body = {name: observe(name) for name in ("on_start", "on_halted")}
    return type(node_class.__name__, (node_class,), {**body, "__module__": node_class.__module__})
