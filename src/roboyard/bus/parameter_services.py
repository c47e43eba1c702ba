"""Parameter services of every ROS 2 node: list, get, get types, describe, set, set atomically.

Values are converted from and to rcl_interfaces/ParameterValue.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from roboyard.config import ValueConstraint
from roboyard.errors import MessageError, RoboyardError
from roboyard.messages import message_type, service_type

if TYPE_CHECKING:
    from roboyard.bus.parameters import Configurable


NOT_SET, BOOL, INTEGER, DOUBLE, STRING = 0, 1, 2, 3, 4
BYTES, BOOLS, INTEGERS, DOUBLES, STRINGS = 5, 6, 7, 8, 9
_SCALARS = (bool, int, float, str)


def to_value(value: Any) -> Any:
    """Convert a bool, int, float, str or a tuple of one of them to rcl_interfaces/ParameterValue.

    Raises:
        MessageError: ROS has no parameter of this type.
    """
    make = message_type("rcl_interfaces/msg/ParameterValue")
    if isinstance(value, bool):
        return make(type=BOOL, bool_value=value)
    if isinstance(value, int):
        return make(type=INTEGER, integer_value=value)
    if isinstance(value, float):
        return make(type=DOUBLE, double_value=value)
    if isinstance(value, str):
        return make(type=STRING, string_value=value)
    if isinstance(value, tuple):
        if all(isinstance(item, str) for item in value):
            return make(type=STRINGS, string_array_value=list(value))
        if all(isinstance(item, bool) for item in value):
            return make(type=BOOLS, bool_array_value=np.array(value, dtype=np.bool_))
        if all(isinstance(item, int) for item in value):
            return make(type=INTEGERS, integer_array_value=np.array(value, dtype=np.int64))
        if all(isinstance(item, float) for item in value):
            return make(type=DOUBLES, double_array_value=np.array(value, dtype=np.float64))
    raise MessageError(f"{value!r} cannot be a ROS parameter", valid="bool, int, float, str or a tuple of one of them")


def from_value(message: Any) -> Any:
    """Convert a ParameterValue to a Python value; arrays become tuples, "not set" becomes None.

    Raises:
        MessageError: The type number is unknown.
    """
    fields = {
        BOOL: "bool_value", INTEGER: "integer_value", DOUBLE: "double_value", STRING: "string_value",
        BYTES: "byte_array_value", BOOLS: "bool_array_value", INTEGERS: "integer_array_value",
        DOUBLES: "double_array_value", STRINGS: "string_array_value",
    }  # fmt: skip
    kind = int(message.type)
    if kind == NOT_SET:
        return None
    if kind not in fields:
        raise MessageError(f"parameter value of unknown type {kind}", valid="0 to 9, see rcl_interfaces/ParameterType")
    value = getattr(message, fields[kind])
    if isinstance(value, np.ndarray):
        return tuple(value.tolist())
    return tuple(value) if isinstance(value, list) else value


def serve_parameters(node: Configurable[Any], serve: Callable[[str, Any, Callable[[Any], Any]], object]) -> None:
    """Serve the parameters of `node` under ``~/…`` as rcl_interfaces defines it; `serve` creates each service."""
    for name, handler in _HANDLERS.items():
        kind = service_type(f"rcl_interfaces/srv/{''.join(word.title() for word in name.split('_'))}")
        serve(f"~{name}", kind, _bind_handler(node, kind, handler))


def _bind_handler(
    node: Configurable[Any], kind: Any, handler: Callable[[Configurable[Any], Any, Any], Any]
) -> Callable[[Any], Any]:
    return lambda request: handler(node, request, kind.Response())


def ros_parameters(node: Configurable[Any]) -> dict[str, Any]:
    """Return the values of the node's parameters that ROS can hold: scalars and tuples of one kind, by dotted name."""
    return {name: value for name, value in node.parameters().items() if _is_ros_value(value)}


def _is_ros_value(value: Any) -> bool:
    if type(value) is tuple:
        return any(all(type(item) is kind for item in value) for kind in _SCALARS)
    return type(value) in _SCALARS


def _list(node: Configurable[Any], request: Any, response: Any) -> Any:
    names = sorted(ros_parameters(node))
    prefixes = list(request.prefixes)
    response.result.names = [n for n in names if not prefixes or any(n == p or n.startswith(p + ".") for p in prefixes)]
    return response


def _get(node: Configurable[Any], request: Any, response: Any) -> Any:
    values, empty = ros_parameters(node), message_type("rcl_interfaces/msg/ParameterValue")
    response.values = [to_value(values[name]) if name in values else empty() for name in request.names]
    return response


def _get_types(node: Configurable[Any], request: Any, response: Any) -> Any:
    values = ros_parameters(node)
    kinds = [to_value(values[name]).type if name in values else NOT_SET for name in request.names]
    response.types = np.array(kinds, dtype=np.uint8)
    return response


def _describe(node: Configurable[Any], request: Any, response: Any) -> Any:
    descriptor_type = message_type("rcl_interfaces/msg/ParameterDescriptor")
    parameters = node.config.parameters()
    for name in request.names:
        item = descriptor_type(name=name)
        if name in parameters and _is_ros_value(parameters[name][1]):
            parameter, value = parameters[name]
            item.type = to_value(value).type
            item.description = parameter.info.doc
            item.additional_constraints = parameter.describe()
            item.read_only = not parameter.info.runtime
            _set_range(item, parameter.info.constraint)
        response.descriptors.append(item)
    return response


def _set_range(item: Any, constraint: ValueConstraint) -> None:
    """Set the range of a descriptor; an integer's open end is the largest number that both double and int64 hold."""
    low = -math.inf if constraint.low is None else constraint.low
    high = math.inf if constraint.high is None else constraint.high
    if not (math.isfinite(low) or math.isfinite(high)):
        return
    if item.type == DOUBLE:
        float_range_type = message_type("rcl_interfaces/msg/FloatingPointRange")
        item.floating_point_range = [float_range_type(from_value=low, to_value=high)]
    elif item.type == INTEGER:
        integer_range_type = message_type("rcl_interfaces/msg/IntegerRange")
        limit = float(2**63 - 1)
        low, high = max(low, -limit), min(high, limit)
        item.integer_range = [integer_range_type(from_value=int(low), to_value=int(min(high, 2**63 - 1025)))]


def _set(node: Configurable[Any], request: Any, response: Any) -> Any:
    result_type = message_type("rcl_interfaces/msg/SetParametersResult")
    for item in request.parameters:
        try:
            node.set_parameter(item.name, from_value(item.value))
        except RoboyardError as error:
            response.results.append(result_type(successful=False, reason=str(error)))
        else:
            response.results.append(result_type(successful=True))
    return response


def _set_atomically(node: Configurable[Any], request: Any, response: Any) -> Any:
    response.result.successful = True
    try:
        node.set_parameters({item.name: from_value(item.value) for item in request.parameters})
    except RoboyardError as error:
        response.result.successful, response.result.reason = False, str(error)
    return response


_HANDLERS = {
    "list_parameters": _list,
    "get_parameters": _get,
    "get_parameter_types": _get_types,
    "describe_parameters": _describe,
    "set_parameters": _set,
    "set_parameters_atomically": _set_atomically,
}
