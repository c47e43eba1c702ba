"""Leaves that send a goal to an action server and run until it is done."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Final, Protocol

from roboyard.behavior.errors import PortError, TreeNodeError
from roboyard.behavior.kinds import StatefulAction
from roboyard.behavior.node import TreeNode
from roboyard.behavior.ports import Port, input_port, output_port, remapped
from roboyard.behavior.status import FAILURE, RUNNING, SUCCESS, Status
from roboyard.behavior.types import PortType, converter
from roboyard.bus import ActionClient, GoalFuture, Node, TransformError
from roboyard.bus.actions import GoalRejectedError
from roboyard.config import parse_yaml
from roboyard.errors import RoboyardError
from roboyard.geometry import SE2
from roboyard.messages.from_data import message_from_data


class Desk(Protocol):
    """What leaves need of the node that runs their tree."""

    node: Node

    def client(self, name: str, kind: Any) -> ActionClient:
        """The client of an action; one for all leaves."""

    def follow(self, goal: GoalFuture) -> None:
        """Keep a goal that is under way, so that it can be taken up again after a restart."""

    def goal(self, key: bytes) -> GoalFuture | None:
        """A goal that is under way or was, by its number."""

    def cancel_goals(self, name: str) -> None:
        """Cancel all goals of an action that are under way."""


class OnBus:
    """A leaf with a desk; made by `register`, without one for looking at trees only."""

    desk: ClassVar[Desk | None] = None
    _kept: tuple[Any, ...] = ()

    def on_desk(self) -> Desk:
        """The desk.

        Raises:
            NodeError: the tree is on no bus.
        """
        if self.desk is None:
            raise TreeNodeError("the tree is on no bus", valid="a tree that a `tree_executor` node runs")
        return self.desk

    def keep(self, item: Any) -> Any:
        """Have a subscription or publisher released with the tree."""
        self._kept = (*self._kept, item)
        return item

    def close(self) -> None:
        """See `TreeNode.close`."""
        for item in self._kept:
            self.on_desk().node.release_endpoint(item)
        self._kept = ()

    def here(self) -> SE2 | None:
        """Where the robot is in the map; None if that is not known."""
        node = self.on_desk().node
        try:
            return SE2.from_se3(node.transforms.lookup(node.frame("map"), node.frame("base_link")))
        except TransformError:
            return None


ERRORS: dict[str, Port] = {
    "error_code_id": output_port(object, doc="0; where it failed the server's number, or 1 if it has none"),
    "error_msg": output_port(str, doc="why it failed"),
}
SERVER = input_port(str, doc="The action's name, if it is another one", optional=True)
UNUSED = input_port(object, doc="Not used", optional=True)
TIMEOUT = input_port(object, doc="Not used: nothing is waited for but simulated time", optional=True)
COMMON: dict[str, Port] = {"server_name": SERVER, "server_timeout": TIMEOUT, **ERRORS}
"""Ports of every leaf that sends a goal."""


def _pose(text: str) -> SE2:
    """A pose from ``x;y;yaw``."""
    numbers = [float(part) for part in text.split(";")]
    if len(numbers) not in (2, 3) or not all(map(math.isfinite, numbers)):
        raise ValueError("x;y;yaw in m and rad")
    x, y, yaw = (*numbers, 0.0)[:3]
    return SE2(x, y, yaw)


def _goal(text: str) -> SE2:
    """One of several poses. Raises PortError."""
    try:
        return _pose(text)
    except ValueError:
        raise PortError(f"Can't convert string [{text}] to a pose", valid="x;y;yaw|x;y;yaw in m and rad") from None


converter(SE2, _pose)
POSES: Final = PortType("nav_msgs::msg::Goals", list, lambda text: [_goal(part) for part in text.split("|")])
"""Several poses, ``x;y;yaw|x;y;yaw``."""


def plain(text: str) -> Any:
    """Fields from ``a: 1, b: {c: 2}``: braces about all of it would make the port an entry's name."""
    return parse_yaml(f"{{{text}}}", "the port").to_data()


def filled(leaf: TreeNode, kind: Any, port: str) -> Any:
    """A message of a type, with the fields that a port says."""
    return message_from_data(kind, plain(leaf.input(port)))


def check_fields(leaf: TreeNode, kind: Any, port: str) -> None:
    """Whether a type has the fields that a port says; an entry is looked at in the tick.

    Raises:
        RoboyardError: it has not.
    """
    if remapped(port, leaf.inputs.get(port, "")) is None:
        filled(leaf, kind, port)


def _number(result: Any) -> int:
    """The server's error number, 0 if it has none.

    Results of Nav2 hold it as a number, those of MoveIt in a message; ours hold a word instead.
    """
    code = getattr(result, "error_code", 0)
    code = getattr(code, "val", code)
    return 0 if isinstance(code, str) else int(code)


class SendGoal(OnBus, StatefulAction):
    """A leaf that sends a goal; derive and give ``server``, ``type`` and ``goal``.

    Attributes:
        why: It failed last.
    """

    state_fields: ClassVar[tuple[str, ...]] = ("_key",)
    server: ClassVar[str] = ""

    @property
    def type(self) -> Any:
        """The action's type."""
        raise NotImplementedError

    def goal(self) -> Any:
        """The goal message."""
        raise NotImplementedError

    def take(self, result: Any) -> None:
        """Put a result into ports."""

    def setup(self) -> None:
        """Open the client at once, so that it is there when a state is loaded."""
        self._key = b""
        self.why = ""
        self._client = None if self.desk is None else self.desk.client(self._server(), self.type)

    def _server(self) -> str:
        text = self.inputs.get("server_name", "")
        return text or self.server

    def on_start(self) -> Status:
        """See `StatefulAction.on_start`."""
        desk = self.on_desk()
        if self._client is None:
            raise TreeNodeError("the action has no client")
        try:
            goal = self._client.send(self.goal())
        except RoboyardError as error:
            return self._failed(str(error))
        self._key = goal.id
        desk.follow(goal)
        return self.on_running()

    def on_running(self) -> Status:
        """See `StatefulAction.on_running`."""
        goal = self.on_desk().goal(self._key)
        if goal is None:
            return self._failed("the goal is lost")
        if not goal.done():
            return RUNNING
        if goal.error is not None:
            rejected = isinstance(goal.error, GoalRejectedError)
            return self._failed(goal.error_message if rejected and goal.error_message else str(goal.error))
        self._say(0, "")
        self.take(goal.result)
        if goal.succeeded:
            return SUCCESS
        return self._failed(goal.error_message or goal.status.name.lower(), _number(goal.result) or 1)

    def on_halted(self) -> None:
        """See `StatefulAction.on_halted`."""
        goal = self.on_desk().goal(self._key)
        if goal is not None and not goal.done():
            goal.cancel()

    def _failed(self, why: str, code: int = 1) -> Status:
        self.on_desk().node.log.info(f"{self.path}: {why}")
        self.why = why
        self._say(code, why)
        return FAILURE

    def _say(self, code: int, why: str) -> None:
        for port, value in (("error_code_id", code), ("error_msg", why)):
            if port in self.outputs:
                self.output(port, value)
