"""Leaves that call services and wait for messages."""

from __future__ import annotations

from typing import Any, ClassVar

from roboyard.behavior.errors import NodeError
from roboyard.behavior.kinds import StatefulAction
from roboyard.behavior.nodes.sending import TIMEOUT, OnBus, plain
from roboyard.behavior.ports import input_port, output_port
from roboyard.behavior.status import FAILURE, RUNNING, SUCCESS, Status
from roboyard.bus import Future
from roboyard.bus.node_state import release
from roboyard.messages import message_type, msg, service_type, srv
from roboyard.messages.filling import fill


class CallService(OnBus, StatefulAction):
    """Calls any service, and fails where its answer says ``success: false``."""

    ports: ClassVar = {
        "service_name": input_port(str, doc="Its name"),
        "service_type": input_port(str, "std_srvs/srv/Trigger", "As std_srvs/srv/SetBool"),
        "request": input_port(str, "", "The request's fields, as data: true"),
        "server_timeout": TIMEOUT,
    }
    fields = ("_asked",)

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._asked = False
        self._answer: Future | None = None
        self._client = None
        if self.desk is not None:
            self._client = self.desk.node.service_client(self._name(), self._type())

    def _name(self) -> str:
        return self.inputs.get("service_name", "")

    def _type(self) -> Any:
        return service_type(self.inputs.get("service_type", "std_srvs/srv/Trigger"))

    def _request(self) -> Any:
        return fill(self._type().Request, plain(self.input("request")))

    def on_start(self) -> Status:
        """See `StatefulAction.on_start`."""
        self.on_desk()
        if self._client is None:
            raise NodeError("the service has no client")
        self._asked = True
        self._answer = self._client.call(self._request())
        return self.on_running()

    def on_running(self) -> Status:
        """See `StatefulAction.on_running`."""
        if self._answer is None:  # it was asked before a state was saved: ask again
            return self.on_start()
        if not self._answer.done():
            return RUNNING
        if self._answer.error is not None:
            self.on_desk().node.log.info(f"{self.path}: {self._answer.error}")
            return FAILURE
        return SUCCESS if getattr(self._answer.result, "success", True) else FAILURE

    def on_halted(self) -> None:
        """See `StatefulAction.on_halted`."""
        self._answer = None


class WaitForMessage(OnBus, StatefulAction):
    """Waits for the next message on a topic: a camera's picture, say, which is taken only while somebody listens."""

    ports: ClassVar = {
        "topic": input_port(str, doc="Its name"),
        "type": input_port(str, doc="As sensor_msgs/msg/Image"),
        "timeout": input_port(float, 5.0, "After which it has failed [s]"),
        "message": output_port(object, doc="The message"),
    }
    fields = ("_came", "_until_ns")

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._came = False
        self._until_ns = 0
        self.why = ""
        self._subscription: Any = None
        self._kind = message_type(self.inputs["type"]) if "type" in self.inputs else msg.String

    def on_start(self) -> Status:
        """See `StatefulAction.on_start`."""
        self.on_desk()
        self._came = False
        self._until_ns = self.now_ns + round(self.input("timeout") * 1e9)
        self._listen()
        return RUNNING

    def on_running(self) -> Status:
        """See `StatefulAction.on_running`."""
        if not self._came and self.now_ns < self._until_ns:
            return RUNNING
        self.on_halted()
        if not self._came:
            self.why = f"nothing came on {self.input('topic')}"
        return SUCCESS if self._came else FAILURE

    def on_halted(self) -> None:
        """See `StatefulAction.on_halted`."""
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            release(self.on_desk().node, subscription)

    def _listen(self) -> None:
        self._subscription = self.on_desk().node.subscribe(self.input("topic"), self._kind, self._take)

    def _take(self, message: Any) -> None:
        self._came = True
        if "message" in self.outputs:
            self.output("message", message)

    def load(self, saved: dict[str, Any]) -> None:
        """See `TreeNode.load`."""
        super().load(saved)
        if self.status is RUNNING and not self._came:
            self._listen()


class ClearEntireCostmap(CallService):
    """Clears the navigator's costmaps."""

    ports: ClassVar = {
        "service_name": input_port(str, doc="Nav2's name; both are cleared"),
        "plugins": input_port(object, doc="Not used"),
        "server_timeout": TIMEOUT,
    }

    def _name(self) -> str:
        return "clear_costmaps"

    def _type(self) -> Any:
        return srv.Empty

    def _request(self) -> Any:
        return srv.Empty.Request()
