"""Parameters of a run's nodes: told, and set by the service that every node has."""

from __future__ import annotations

import math
from typing import Any

from roboyard.bus import Bus
from roboyard.bus.parameter_services import ros_parameters, to_value
from roboyard.errors import InputError, RoboyardError
from roboyard.messages import message_type, service_type
from roboyard.view.sender import Sender
from roboyard.view.show import Reply
from roboyard.view.wire import ViewMessage, text, word

_SET = "rcl_interfaces/srv/SetParameters"


class ParameterHand:
    """Tells and sets parameters.

    Args:
        bus: Of the run.
        sender: Into it.
    """

    ops = frozenset({"parameters", "set_parameter"})
    free = frozenset({"parameters"})

    def __init__(self, bus: Bus, sender: Sender) -> None:
        self._bus, self._sender = bus, sender

    def command(self, said: dict[str, Any], viewer: int, reply: Reply) -> None:
        """Tell a node's parameters, or set one.

        Raises:
            InputError: there is no such node, or the value is none.
        """
        name = word(said, "node")
        if name not in self._bus.nodes:
            raise InputError(f"there is no node {name}", valid=", ".join(self._bus.nodes))
        if said["op"] == "parameters":
            self._bus.inputs.run_on_executor(lambda: self._tell(name, said, reply))
            return
        request = service_type(_SET).Request(parameters=[self._parameter(said)])
        self._sender.call(f"{name}/set_parameters", _SET, request, said, reply)

    def _tell(self, name: str, said: dict[str, Any], reply: Reply) -> None:
        """On the run's thread."""
        node = self._bus.nodes.get(name)
        if node is None:
            return
        parameters = node.config.parameters()
        rows = []
        for key, value in sorted(ros_parameters(node).items()):
            info = parameters[key][0].info
            rows.append(
                {
                    "name": key, "value": _plain(value), "fixed": not info.runtime, "about": info.doc,
                    "unit": info.constraint.unit, "choices": list(info.constraint.choices),
                }
            )  # fmt: skip
        reply(ViewMessage(text("parameters", id=said.get("id"), node=name, parameters=rows)))

    def _parameter(self, said: dict[str, Any]) -> Any:
        value = said.get("value")
        if not isinstance(value, (bool, int, float, str, list)) or (
            isinstance(value, float) and not math.isfinite(value)
        ):
            raise InputError(f"{value!r:.60} is no value of a parameter", valid="a number, a text, true, false, a list")
        try:
            told = to_value(tuple(value) if isinstance(value, list) else value)
        except (RoboyardError, TypeError, ValueError, OverflowError):
            raise InputError(
                f"{value!r:.60} is no value of a parameter", valid="a list of values of one kind"
            ) from None
        return message_type("rcl_interfaces/msg/Parameter")(name=word(said, "name"), value=told)


def _plain(value: Any) -> Any:
    """As JSON has it."""
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return value if isinstance(value, (bool, int, float, str)) or value is None else str(value)
