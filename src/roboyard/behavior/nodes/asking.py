"""Leaves that call services and wait for messages."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from roboyard.behavior.errors import TreeNodeError
from roboyard.behavior.kinds import StatefulAction
from roboyard.behavior.nodes.sending import TIMEOUT, OnBus, check_fields, filled
from roboyard.behavior.ports import input_port, output_port
from roboyard.behavior.status import FAILURE, RUNNING, SUCCESS, Status
from roboyard.bus import Future
from roboyard.messages import message_type, msg, service_type, srv


class CallService(OnBus, StatefulAction):
    """Calls any service, and fails where its answer says ``success: false``."""

    ports: ClassVar = {
        "service_name": input_port(str, doc="Its name"),
        "service_type": input_port(str, "std_srvs/srv/Trigger", "As std_srvs/srv/SetBool"),
        "request": input_port(str, "", "The request's fields, as data: true"),
        "server_timeout": TIMEOUT,
    }
    state_fields = ("_asked",)

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._asked = False
        self.why = ""
        self._answer: Future | None = None
        self._client = None
        if "request" in self.ports:
            check_fields(self, self._type().Request, "request")
        if self.desk is not None:
            self._client = self.desk.node.service_client(self._name(), self._type())

    def _name(self) -> str:
        return self.inputs.get("service_name", "")

    def _type(self) -> Any:
        return service_type(self.inputs.get("service_type", "std_srvs/srv/Trigger"))

    def _request(self) -> Any:
        return filled(self, self._type().Request, "request")

    def on_start(self) -> Status:
        """See `StatefulAction.on_start`."""
        self.on_desk()
        if self._client is None:
            raise TreeNodeError("the service has no client")
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
            self.why = str(self._answer.error)
            self.on_desk().node.log.info(f"{self.path}: {self.why}")
            return FAILURE
        if getattr(self._answer.result, "success", True):
            return SUCCESS
        self.why = getattr(self._answer.result, "message", "") or "the answer was no"
        self.on_desk().node.log.info(f"{self.path}: {self.why}")
        return FAILURE

    def on_halted(self) -> None:
        """See `StatefulAction.on_halted`."""
        self._answer = None


class Listening(OnBus, StatefulAction):
    """A leaf that listens to a topic until what it waits for has come; derive and give ``hears`` and ``take``.

    It has the ports ``topic`` and ``timeout``, after which it has failed [s].

    Attributes:
        why: It failed last.
    """

    state_fields: ClassVar[tuple[str, ...]] = ("_came", "_until_ns")

    def hears(self) -> Any:
        """The messages' type."""
        raise NotImplementedError

    def take(self, message: Any) -> bool:
        """Take a message; whether it was what is waited for."""
        raise NotImplementedError

    def too_late(self) -> str:
        """Why it failed, in words."""
        return f"nothing came on {self.input('topic')}"

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._came = False
        self._until_ns = 0
        self.why = ""
        self._subscription: Any = None

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
            self.why = self.too_late()
        return SUCCESS if self._came else FAILURE

    def on_halted(self) -> None:
        """See `StatefulAction.on_halted`."""
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            self.on_desk().node.release_endpoint(subscription)

    def _listen(self) -> None:
        self._subscription = self.on_desk().node.subscribe(self.input("topic"), self.hears(), self._take)

    def _take(self, message: Any) -> None:
        self._came = self._came or self.take(message)

    def load_state(self, saved: dict[str, Any]) -> None:
        """See `TreeNode.load`."""
        super().load_state(saved)
        if self.status is RUNNING and not self._came:
            self._listen()


class WaitForMessage(Listening):
    """Waits for the next message on a topic: a camera's picture, say, which is taken only while somebody listens."""

    ports: ClassVar = {
        "topic": input_port(str, doc="Its name"),
        "type": input_port(str, doc="As sensor_msgs/msg/Image"),
        "timeout": input_port(float, 5.0, "After which it has failed [s]"),
        "message": output_port(object, doc="The message"),
    }

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        super().setup()
        self._kind = message_type(self.inputs["type"]) if "type" in self.inputs else msg.String

    def hears(self) -> Any:
        """See `Listening.hears`."""
        return self._kind

    def take(self, message: Any) -> bool:
        """See `Listening.take`."""
        if "message" in self.outputs:
            self.output("message", message)
        return True


class FeelPull(Listening):
    """Waits until somebody pulls at what fingers hold: until the force on one of them has changed."""

    ports: ClassVar = {
        "topic": input_port(str, "finger_left/force", "Of geometry_msgs/WrenchStamped"),
        "force": input_port(float, 2.0, "So much it changes [N]"),
        "timeout": input_port(float, 30.0, "After which it has failed [s]"),
    }
    state_fields = (*Listening.state_fields, "_first")

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        super().setup()
        self._first: list[float] = []

    def hears(self) -> Any:
        """See `Listening.hears`."""
        return msg.WrenchStamped

    def on_start(self) -> Status:
        """See `StatefulAction.on_start`."""
        self._first = []
        return super().on_start()

    def take(self, message: Any) -> bool:
        """See `Listening.take`."""
        force = [message.wrench.force.x, message.wrench.force.y, message.wrench.force.z]
        self._first = self._first or force
        return bool(math.dist(force, self._first) >= self.input("force"))

    def too_late(self) -> str:
        """See `Listening.too_late`."""
        return "nobody pulled"


class ClearEntireCostmap(CallService):
    """Clears the navigator's costmaps."""

    ports: ClassVar = {
        "service_name": input_port(str, doc="Nav2's name; both are cleared", optional=True),
        "plugins": input_port(object, doc="Not used", optional=True),
        "server_timeout": TIMEOUT,
    }

    def _name(self) -> str:
        return "clear_costmaps"

    def _type(self) -> Any:
        return srv.Empty

    def _request(self) -> Any:
        return srv.Empty.Request()
