"""Setting a node's parameter from outside."""

from __future__ import annotations

from typing import Any

from roboyard.bus.parameter_services import to_value
from roboyard.messages import message_type, serialize, service_type


def request_of(node: str, name: str, value: Any) -> tuple[str, str, bytes]:
    """Service, its type, and the request as CDR that sets ``name`` of ``node``. Raises MessageError."""
    kind = service_type("rcl_interfaces/srv/SetParameters")
    parameter = message_type("rcl_interfaces/msg/Parameter")(name=name, value=to_value(value))
    return f"{node}/set_parameters", kind.name, serialize(kind.Request(parameters=[parameter]))


def like(before: Any, value: Any) -> Any:
    """What somebody set, as the kind that it was: whole numbers where fractions belong, lists as tuples."""
    if isinstance(before, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, list):
        first = next(iter(before), None) if isinstance(before, tuple) else None
        return tuple(like(first, item) for item in value)
    return value
