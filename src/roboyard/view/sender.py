"""Sends what viewers do into the run, through the port for inputs: stamped, recorded, repeated by
``--replay-inputs``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from roboyard.bus import Bus, ExternalInput
from roboyard.bus.actions import endpoint
from roboyard.bus.services import Future
from roboyard.errors import InputError, RoboyardError
from roboyard.messages import serialize, type_name
from roboyard.messages.convert.action_goals import uuid_of_text, uuid_to_msg
from roboyard.view.show import Reply
from roboyard.view.wire import ViewMessage, text

SOURCE = "view"


class Sender:
    """Publishes messages and calls services in the name of whoever steers.

    Args:
        bus: Of the run.
    """

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._n_goals = 0

    def publish(self, topic: str, message: Any, source: str = SOURCE) -> None:
        """Publish a message.

        Raises:
            InputError: too many inputs wait already.
        """
        self._push(ExternalInput("publish", topic, type_name(type(message)), source, serialize(message)))

    def call(
        self,
        service: str,
        kind: str,
        request: Any,
        said: dict[str, Any],
        reply: Reply,
        told: Callable[[Any], str] | None = None,
    ) -> None:
        """Call a service, and tell who asked what came of it.

        Args:
            service: Absolute name.
            kind: Its type.
            request: For it.
            said: What the viewer said; its ``id`` comes back.
            reply: To the viewer.
            told: What to say of the response; None: whether it was done.

        Raises:
            InputError: nobody serves it, or too many inputs wait already.
        """
        if service not in self._bus.services:
            raise InputError(f"nobody serves {service} in this run")

        def answer(done: Future) -> None:
            """On the run's thread."""
            try:
                if told is not None:
                    reply(ViewMessage(told(done.result)))
                    return
                trouble, more = _outcome(done.result)
            except RoboyardError as error:
                trouble, more = str(error), {}
            values = {"id": said.get("id"), "to": said["op"]}
            frame = text("refused", what=trouble, **values) if trouble else text("done", **values, **more)
            reply(ViewMessage(frame))

        self._push(
            ExternalInput(
                "call", service, kind, SOURCE, serialize(request), reply=lambda future: future.add_done_callback(answer)
            )
        )

    def send_goal(self, action: str, kind: Any, goal: Any, said: dict[str, Any], reply: Reply) -> None:
        """Send a goal to an action, and report to the viewer whether it was accepted.

        Args:
            action: Absolute name.
            kind: Type of the action.
            goal: Goal message.
            said: Command of the viewer; its ``id`` is returned.
            reply: Sends a message to the viewer.

        Raises:
            InputError: No node serves the action, or too many inputs are waiting.
        """
        self._n_goals += 1
        goal_id = uuid_to_msg(uuid_of_text(f"{SOURCE} {self._n_goals} {self._bus.now_ns}"))
        request = kind.SendGoal.Request(goal_id=goal_id, goal=goal)
        self.call(endpoint(action, "send_goal"), kind.SendGoal.name, request, said, reply)

    def _push(self, item: ExternalInput) -> None:
        if not self._bus.inputs.put(item):
            raise InputError("the run has too many inputs waiting", valid="try again later")


def _outcome(response: Any) -> tuple[str, dict[str, Any]]:
    """What went wrong, "" if nothing did, and what else the response says."""
    if hasattr(response, "accepted"):
        return ("" if response.accepted else "the goal was rejected"), {}
    result = getattr(response, "result", None)
    if result is not None and hasattr(result, "error_message"):  # simulation_interfaces
        return ("" if result.result == 1 else result.error_message or "it failed"), {}
    results = getattr(response, "results", None)
    if results:  # rcl_interfaces
        failed = [one.reason for one in results if not one.successful]
        return (failed[0] if failed else ""), {}
    if hasattr(response, "success"):
        more = {"name": str(response.name)} if hasattr(response, "name") else {}
        return ("" if response.success else response.message or "it failed"), more
    return "", {}
