"""What a node that was left out served, asked of whoever serves it outside.

A call becomes a message on ``/external/requests``, which bridges forward to the other side.  The response enters
through the queue of external inputs as a message on ``/external/responses``.  Both are recorded, so ``--replay-inputs``
repeats a run without the other side.  The services of an action are called like all others; its feedback is a topic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from roboyard.bus import Bus, ExternalInput, Future, Node
from roboyard.bus.actions import endpoint
from roboyard.bus.external_inputs import EXTERNAL_REQUEST_TOPIC, EXTERNAL_RESPONSE_TOPIC
from roboyard.config import Config, parameter
from roboyard.errors import MessageError, RunError
from roboyard.messages import deserialize, message_type, serialize, service_type, time_to_msg

if TYPE_CHECKING:
    from roboyard.bus.executor import ScheduledEvent

NAME: Final = "external"
NODE: Final = f"/{NAME}"
_REQUEST, _RESPONSE = "roboyard_msgs/msg/ExternalRequest", "roboyard_msgs/msg/ExternalResponse"
_OF_PARAMETERS: Final = "rcl_interfaces/"
_SEND, _CANCEL, _RESULT = (endpoint("", part) for part in ("send_goal", "cancel_goal", "get_result"))


class ExternalError(RunError):
    """Nobody outside has answered a call, or not as its service must."""


@dataclass(slots=True)
class _Call:
    """A call under way: what is called, with what, whoever waits, and the end of patience."""

    service: str
    type: str
    request: Any
    future: Future
    given_up: ScheduledEvent | None = None


class ExternalConfig(Config):
    """Configuration of `External`."""

    patience: float = parameter(30.0, unit="s", low=0.1, high=86_400.0, runtime=True)


class External(Node[ExternalConfig]):
    """Stands for nodes that were left out, towards those who call their services and actions.

    A call that nobody outside has answered in time fails; a goal is cancelled then, since somebody may take it up yet.
    Results of goals may take as long as they take.

    in: /external/responses   out: /external/requests
    """

    state_fields = ("_number",)

    def setup(self) -> None:
        """Hear of what comes back."""
        self._number = 0
        self._calls: dict[int, _Call] = {}
        self._left_out: dict[str, str] = {}
        self._asked = self.publisher(EXTERNAL_REQUEST_TOPIC, message_type(_REQUEST))
        self.subscribe(EXTERNAL_RESPONSE_TOPIC, message_type(_RESPONSE), self._on_answer, with_source=True)

    def stand_for(self, node: str, services: Mapping[str, Any]) -> None:
        """Serve in the place of ``node``.

        Args:
            node: Its name, for what is said when nobody answers.
            services: Types by name.
        """
        for name, kind in services.items():
            self._left_out[name] = node
            self.service(name, kind, partial(self._ask, name, kind))

    def _ask(self, name: str, kind: Any, request: Any) -> Future:
        patient = name.endswith(_RESULT)
        number = self._take_out(name, kind.name, request, patient=patient)
        call = self._calls[number] = _Call(name, kind.name, request, Future(f"answer of {name}"))
        if not patient:
            call.given_up = self.call_after(self.config.patience, lambda: self._give_up(number))
        return call.future

    def _take_out(self, name: str, kind: str, request: Any, *, patient: bool) -> int:
        """Have bridges take a call to the other side; gives its number."""
        self._number += 1
        until_ns = 0 if patient else self.now_ns + round(self.config.patience * 1e9)
        data = np.frombuffer(serialize(request), dtype=np.uint8)
        self._asked.publish(
            self._asked.topic.type(
                service=name, type=kind, call_id=self._number, deadline=time_to_msg(until_ns), request=data
            )
        )
        return self._number

    def _give_up(self, number: int) -> None:
        call = self._calls.pop(number)
        node = self._left_out[call.service]
        error = ExternalError(
            f"nobody outside has answered {call.service} within {self.config.patience:g} s",
            location=f"{node} was left out",
            valid="a foreign node that serves it, and a bridge to it",
        )  # fmt: skip
        self.log.warn(str(error), throttle=10.0)
        if call.service.endswith(_SEND):
            cancel = service_type("action_msgs/srv/CancelGoal")
            request = cancel.Request()
            request.goal_info.goal_id = call.request.goal_id
            name = call.service.removesuffix(_SEND) + _CANCEL
            self._take_out(name, cancel.name, request, patient=False)  # whatever comes back, nobody waits for it
        call.future.set_error(error)

    def _on_answer(self, message: Any, source: str) -> None:
        call = self._calls.pop(int(message.call_id), None)
        if call is None:
            return  # too late, a second one, or of a goal that was given up
        if call.given_up is not None:
            call.given_up.cancel()
        try:
            if message.error:
                raise ExternalError(message.error, location=call.service)
            response = deserialize(bytes(message.response), f"{call.type}_Response")
        except (ExternalError, MessageError) as error:
            self.log.warn(f"{source}: {error}", throttle=10.0)
            call.future.set_error(error)
        else:
            call.future.set_result(response)


def stand_in(bus: Bus, node: Node, patience: float | None = None) -> External | None:
    """Take ``node`` off the bus; what it served is asked outside from now on.

    Args:
        bus: Where.
        node: To be left out.
        patience: How long a call may take [simulated s]; None: 30 s. That of the first node that is left out counts.

    Returns:
        Who stands for it; None if it served nothing but its parameters.
    """
    full_name = node.full_name
    served = {
        name: service.type
        for name, service in bus.services.items()
        if service.node == full_name and not service.type.name.startswith(_OF_PARAMETERS)
    }
    bus.remove(node)
    if not served:
        return None
    external = bus.nodes.get(NODE)
    if not isinstance(external, External):
        external = bus.add(External(**({} if patience is None else {"patience": patience})), NAME)
    external.stand_for(full_name, served)
    return external


def answer(number: int, source: str, response: bytes = b"", error: str = "") -> ExternalInput:
    """What comes back for a call, as an input of the run.

    Args:
        number: Of the call.
        source: The foreign node that has answered, or the bridge.
        response: As CDR.
        error: Why there is none.
    """
    message = message_type(_RESPONSE)(call_id=number, error=error, response=np.frombuffer(response, dtype=np.uint8))
    return ExternalInput("publish", EXTERNAL_RESPONSE_TOPIC, _RESPONSE, source, serialize(message))
