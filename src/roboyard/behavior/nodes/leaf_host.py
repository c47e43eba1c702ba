"""The interface of leaves to the node that executes their tree, leaves that send goals to actions, and the base class
of such nodes."""

from __future__ import annotations

import json
import math
from typing import Any, ClassVar, Final, Protocol

from roboyard.behavior.basic_types import FAILURE, RUNNING, SUCCESS, NodeStatus, PortType, register_converter
from roboyard.behavior.errors import PortError, TreeNodeError
from roboyard.behavior.factory import NodeFactory
from roboyard.behavior.ports import Port, input_port, output_port, remapped_key
from roboyard.behavior.tree import Tree
from roboyard.behavior.tree_node import StatefulActionNode, TreeNode
from roboyard.bus import ActionClient, ConfigT, GoalFuture, Node, TransformError
from roboyard.bus.actions import GoalRejectedError
from roboyard.config import parse_yaml
from roboyard.errors import RoboyardError
from roboyard.geometry import SE2
from roboyard.messages import srv
from roboyard.messages.from_data import message_from_data


class LeafHost(Protocol):
    """Interface of the node that executes a tree, for the leaves of the tree."""

    node: Node

    def action_client_of(self, name: str, kind: Any) -> ActionClient:
        """Return the client of an action; all leaves share it."""

    def track_goal(self, goal: GoalFuture) -> None:
        """Keep an active goal, so that it is restored from a snapshot."""

    def goal(self, key: bytes) -> GoalFuture | None:
        """Return an active or finished goal by its ID."""

    def cancel_goals(self, name: str) -> None:
        """Cancel all active goals of an action."""


class BusLeaf:
    """A leaf with a host; without one the tree can be displayed, but not executed."""

    host: ClassVar[LeafHost | None] = None
    _owned_endpoints: tuple[Any, ...] = ()

    def require_host(self) -> LeafHost:
        """Return the host.

        Raises:
            TreeNodeError: The tree is not executed on a bus.
        """
        if self.host is None:
            raise TreeNodeError("the tree is on no bus", valid="a tree that a node `tree_executor` executes")
        return self.host

    def release_with_tree(self, item: Any) -> Any:
        """Release a subscription or publisher when the tree is closed."""
        self._owned_endpoints = (*self._owned_endpoints, item)
        return item

    def close(self) -> None:
        """See `TreeNode.close`."""
        for item in self._owned_endpoints:
            self.require_host().node.release_endpoint(item)
        self._owned_endpoints = ()

    def robot_pose(self) -> SE2 | None:
        """Return the pose of the robot in the map; None if it is not known."""
        node = self.require_host().node
        try:
            return SE2.from_se3(node.transforms.lookup(node.frame("map"), node.frame("base_link")))
        except TransformError:
            return None


ERROR_PORTS: dict[str, Port] = {
    "error_code_id": output_port(
        object, doc="0 after success; after a failure the error code of the server, or 1 without one."
    ),
    "error_msg": output_port(str, doc="Reason of the failure; empty after success."),
}
SERVER_PORT = input_port(str, doc="Name of the action; by default that of the leaf.", optional=True)
UNUSED_PORT = input_port(object, doc="Accepted for Nav2's files, and ignored.", optional=True)
UNUSED_OUTPUT = output_port(object, doc="Accepted for Nav2's files, and never set.")
TIMEOUT_PORT = input_port(
    object, doc="Accepted for Nav2's files, and ignored: servers respond in simulated time.", optional=True
)
ACTION_PORTS: dict[str, Port] = {"server_name": SERVER_PORT, "server_timeout": TIMEOUT_PORT, **ERROR_PORTS}
"""Ports of every leaf that sends a goal."""


def _parse_pose(text: str) -> SE2:
    """Parse a pose ``x;y;yaw``."""
    numbers = [float(part) for part in text.split(";")]
    if len(numbers) not in (2, 3) or not all(map(math.isfinite, numbers)):
        raise ValueError("x;y;yaw in m and rad")
    x, y, yaw = (*numbers, 0.0)[:3]
    return SE2(x, y, yaw)


def _parse_goal(text: str) -> SE2:
    """Parse one of several poses. Raises PortError."""
    try:
        return _parse_pose(text)
    except ValueError:
        raise PortError(f"Can't convert string [{text}] to a pose", valid="x;y;yaw|x;y;yaw in m and rad") from None


register_converter(SE2, _parse_pose)
POSE_LIST: Final = PortType("nav_msgs::msg::Goals", list, lambda text: [_parse_goal(part) for part in text.split("|")])
"""Several poses, ``x;y;yaw|x;y;yaw``."""
POSE_LIST_DOC = "Poses `x;y;yaw|x;y;yaw` in the map [m, rad]."


def parse_fields(text: str) -> Any:
    """Parse fields ``a: 1, b: {c: 2}``; in braces the text of a port would be the name of an entry."""
    return parse_yaml(f"{{{text}}}", "the port").to_data()


def message_from_port(leaf: TreeNode, kind: Any, port: str) -> Any:
    """Return a message of a type with the fields that a port states."""
    return message_from_data(kind, parse_fields(leaf.get_input(port)))


def check_fields(leaf: TreeNode, kind: Any, port: str) -> None:
    """Check that a message type has the fields that a port states; entries are checked in the tick.

    Raises:
        RoboyardError: it has not.
    """
    if remapped_key(port, leaf.inputs.get(port, "")) is None:
        message_from_port(leaf, kind, port)


def _error_code(result: Any) -> int:
    """Return the error code of the server, 0 without one.

    Results of Nav2 hold it as a number, those of MoveIt in a message; ours hold a word instead.
    """
    code = getattr(result, "error_code", 0)
    code = getattr(code, "val", code)
    return 0 if isinstance(code, str) else int(code)


class ActionLeaf(BusLeaf, StatefulActionNode):
    """A leaf that sends a goal to an action server and runs until it is finished; derive and declare ``action_name``,
    ``action_type`` and ``make_goal``.

    Attributes:
        failure_reason: Reason of the last failure.
    """

    state_fields: ClassVar[tuple[str, ...]] = ("_goal_id",)
    action_name: ClassVar[str] = ""

    @property
    def action_type(self) -> Any:
        """Return the type of the action."""
        raise NotImplementedError

    def make_goal(self) -> Any:
        """Return the goal message."""
        raise NotImplementedError

    def on_result(self, result: Any) -> None:
        """Write the result to output ports."""

    def setup(self) -> None:
        """Create the client, so that goals can be restored from a saved state."""
        self._goal_id = b""
        self.failure_reason = ""
        self._client = None if self.host is None else self.host.action_client_of(self._action_name(), self.action_type)

    def _action_name(self) -> str:
        text = self.inputs.get("server_name", "")
        return text or self.action_name

    def on_start(self) -> NodeStatus:
        """See `StatefulActionNode.on_start`."""
        host = self.require_host()
        if self._client is None:
            raise TreeNodeError("the action has no client")
        try:
            goal = self._client.send(self.make_goal())
        except RoboyardError as error:
            return self._fail(str(error))
        self._goal_id = goal.id
        host.track_goal(goal)
        return self.on_running()

    def on_running(self) -> NodeStatus:
        """See `StatefulActionNode.on_running`."""
        goal = self.require_host().goal(self._goal_id)
        if goal is None:
            return self._fail("the goal is lost")
        if not goal.done():
            return RUNNING
        if goal.error is not None:
            rejected = isinstance(goal.error, GoalRejectedError)
            return self._fail(goal.error_message if rejected and goal.error_message else str(goal.error))
        self._output_error(0, "")
        self.on_result(goal.result)
        if goal.succeeded:
            return SUCCESS
        return self._fail(goal.error_message or goal.status.name.lower(), _error_code(goal.result) or 1)

    def on_halted(self) -> None:
        """See `StatefulActionNode.on_halted`."""
        goal = self.require_host().goal(self._goal_id)
        if goal is not None and not goal.done():
            goal.cancel()

    def _fail(self, reason: str, code: int = 1) -> NodeStatus:
        self.require_host().node.log.info(f"{self.path}: {reason}")
        self.failure_reason = reason
        self._output_error(code, reason)
        return FAILURE

    def _output_error(self, code: int, reason: str) -> None:
        for port, value in (("error_code_id", code), ("error_msg", reason)):
            if port in self.outputs:
                self.set_output(port, value)


def create_host_factory(host: LeafHost) -> NodeFactory:
    """Return a factory with all registered node types, whose leaves on the bus use a host."""

    def bind(node_class: type[TreeNode]) -> type[TreeNode]:
        if not issubclass(node_class, BusLeaf):
            return node_class
        return type(node_class.__name__, (node_class,), {"host": host, "__module__": node_class.__module__})

    return NodeFactory(plugins=True, adapt=bind)


class LeafHostNode(Node[ConfigT]):
    """See `LeafHost`; call ``create_leaf_host`` before a tree is made.

    service: ~/state (std_srvs/Trigger): status of each node of its tree, JSON: [[number, status], …]
    """

    def create_leaf_host(self) -> None:
        """Initialize the clients and goals of leaves."""
        self.node: Node = self
        self._action_clients: dict[tuple[str, str], ActionClient] = {}
        self._goals: dict[bytes, GoalFuture] = {}
        self._n_finished_goals = 0
        self.service("~/state", srv.Trigger, self._on_state)

    def running_tree(self) -> Tree | None:
        """Return the tree that is executed now."""
        raise NotImplementedError

    def _on_state(self, request: Any) -> Any:
        tree = self.running_tree()
        statuses = [] if tree is None else [[uid, node.status.name] for uid, node in tree.nodes.items()]
        return srv.Trigger.Response(success=tree is not None, message=json.dumps(statuses))

    def action_client_of(self, name: str, kind: Any) -> ActionClient:
        """See `LeafHost.action_client_of`."""
        key = (name, kind.name)
        if key not in self._action_clients:
            self._action_clients[key] = self.action_client(name, kind, on_goal_restored=self.track_goal)
        return self._action_clients[key]

    def track_goal(self, goal: GoalFuture) -> None:
        """See `LeafHost.track_goal`."""
        self._goals[goal.id] = goal

    def goal(self, key: bytes) -> GoalFuture | None:
        """See `LeafHost.goal`."""
        return self._goals.get(key)

    def cancel_goals(self, name: str) -> None:
        """See `LeafHost.cancel_goals`."""
        for goal in self._goals.values():
            if goal.action == self.resolve(name) and not goal.done():
                goal.cancel()

    def drop_finished_goals(self, tree: Tree | None) -> None:
        """Keep only active goals, and the last goal of each node of the tree."""
        n_finished = sum(goal.done() for goal in self._goals.values())
        if n_finished == self._n_finished_goals:
            return  # looked through already
        nodes = () if tree is None else tree.nodes.values()
        latest_goals = {node.save_state()["_goal_id"] for node in nodes if "_goal_id" in node.state_fields}
        self._goals = {key: goal for key, goal in self._goals.items() if not goal.done() or key in latest_goals}
        self._n_finished_goals = sum(goal.done() for goal in self._goals.values())

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore the result of `save_state`."""
        self._goals.clear()
        self._n_finished_goals = 0
        super().load_state(state)
