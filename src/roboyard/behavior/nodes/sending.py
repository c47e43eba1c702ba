"""Leaves that send a goal to an action server and run until it is done."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from roboyard.behavior.errors import NodeError
from roboyard.behavior.kinds import StatefulAction
from roboyard.behavior.ports import Port, input_port, output_port
from roboyard.behavior.status import FAILURE, RUNNING, SUCCESS, Status
from roboyard.bus import ActionClient, GoalFuture, Node
from roboyard.bus.actions.client import GoalRejectedError
from roboyard.config import read_text
from roboyard.errors import RoboyardError


class Desk(Protocol):
    """What leaves need of the node that runs their tree."""

    node: Node

    def client(self, name: str, kind: Any) -> ActionClient:
        """The client of an action; one for all leaves."""

    def follow(self, goal: GoalFuture) -> None:
        """Keep a goal that is under way, so that it can be taken up again after a restart."""

    def goal(self, key: bytes) -> GoalFuture | None:
        """A goal that is under way or was, by its number."""


class OnBus:
    """A leaf with a desk; made by `register`, without one for looking at trees only."""

    desk: ClassVar[Desk | None] = None

    def on_desk(self) -> Desk:
        """The desk.

        Raises:
            NodeError: the tree is on no bus.
        """
        if self.desk is None:
            raise NodeError("the tree is on no bus", valid="a tree that a `tree_mission` node runs")
        return self.desk


ERRORS: dict[str, Port] = {
    "error_code_id": output_port(object, doc="0, or 1 where it failed"),
    "error_msg": output_port(str, doc="why it failed"),
}
SERVER = input_port(str, doc="The action's name, if it is another one")
TIMEOUT = input_port(object, doc="Not used: nothing is waited for but simulated time")


def plain(text: str) -> Any:
    """Fields from ``a: 1, b: {c: 2}``: braces about all of it would make the port an entry's name."""
    return read_text(f"{{{text}}}", "the port").plain()


class SendGoal(OnBus, StatefulAction):
    """A leaf that sends a goal; derive and give ``server``, ``type`` and ``goal``.

    Attributes:
        why: It failed last.
    """

    fields = ("_key",)
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
            raise NodeError("the action has no client")
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
            return self._failed(goal.reason if rejected and goal.reason else str(goal.error))
        self._say(0, "")
        self.take(goal.result)
        return SUCCESS if goal.succeeded else self._failed(goal.reason or goal.status.name.lower())

    def on_halted(self) -> None:
        """See `StatefulAction.on_halted`."""
        goal = self.on_desk().goal(self._key)
        if goal is not None and not goal.done():
            goal.cancel()

    def _failed(self, why: str) -> Status:
        self.on_desk().node.log.info(f"{self.path}: {why}")
        self.why = why
        self._say(1, why)
        return FAILURE

    def _say(self, code: int, why: str) -> None:
        for port, value in (("error_code_id", code), ("error_msg", why)):
            if port in self.outputs:
                self.output(port, value)
