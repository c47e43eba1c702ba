"""The parameter services every ROS 2 node has, for ours: list, get, describe, set, all or one by one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from roboyard.bus.parameter_values import NOT_SET, from_value, to_value
from roboyard.errors import RoboyardError
from roboyard.messages import message_type, service_type

if TYPE_CHECKING:
    from roboyard.bus.node import Node


def serve_parameters(node: Node) -> None:
    """Let ``node`` serve its parameters under ``~/…``, as rcl_interfaces defines it."""
    for name, handler in _HANDLERS.items():
        kind = service_type(f"rcl_interfaces/srv/{''.join(word.title() for word in name.split('_'))}")
        node.service(f"~{name}", kind, _bind_handler(node, kind, handler))


def _bind_handler(node: Node, kind: Any, handler: Callable[[Node, Any, Any], Any]) -> Callable[[Any], Any]:
    return lambda request: handler(node, request, kind.Response())


def _list(node: Node, request: Any, response: Any) -> Any:
    names = sorted(node.parameters())
    prefixes = list(request.prefixes)
    response.result.names = [n for n in names if not prefixes or any(n == p or n.startswith(p + ".") for p in prefixes)]
    return response


def _get(node: Node, request: Any, response: Any) -> Any:
    values, empty = node.parameters(), message_type("rcl_interfaces/msg/ParameterValue")
    response.values = [to_value(values[name]) if name in values else empty() for name in request.names]
    return response


def _get_types(node: Node, request: Any, response: Any) -> Any:
    values = node.parameters()
    kinds = [to_value(values[name]).type if name in values else NOT_SET for name in request.names]
    response.types = np.array(kinds, dtype=np.uint8)
    return response


def _describe(node: Node, request: Any, response: Any) -> Any:
    descriptor_type = message_type("rcl_interfaces/msg/ParameterDescriptor")
    float_range_type = message_type("rcl_interfaces/msg/FloatingPointRange")
    integer_range_type = message_type("rcl_interfaces/msg/IntegerRange")
    parameters = node.parameters_declared()
    for name in request.names:
        item = descriptor_type(name=name)
        if name in parameters:
            param = parameters[name]
            item.type = to_value(param.default).type
            item.description = param.doc
            item.additional_constraints = param.describe()
            item.read_only = param.fixed
            is_bounded = math.isfinite(param.low) or math.isfinite(param.high)
            if is_bounded and isinstance(param.default, float):
                item.floating_point_range = [float_range_type(from_value=param.low, to_value=param.high)]
            elif is_bounded and isinstance(param.default, int):
                limit = float(2**63 - 1)
                low, high = max(param.low, -limit), min(param.high, limit)
                item.integer_range = [integer_range_type(from_value=int(low), to_value=int(min(high, 2**63 - 1025)))]
        response.descriptors.append(item)
    return response


def _set(node: Node, request: Any, response: Any) -> Any:
    result_type = message_type("rcl_interfaces/msg/SetParametersResult")
    for item in request.parameters:
        try:
            node.set_parameter(item.name, from_value(item.value))
        except RoboyardError as error:
            response.results.append(result_type(successful=False, reason=str(error)))
        else:
            response.results.append(result_type(successful=True))
    return response


def _set_atomically(node: Node, request: Any, response: Any) -> Any:
    before = node.parameters()
    response.result.successful = True
    for item in request.parameters:
        try:
            node.set_parameter(item.name, from_value(item.value))
        except RoboyardError as error:
            response.result.successful, response.result.reason = False, str(error)
            break
    if not response.result.successful:
        for name, value in before.items():
            if node.parameters()[name] != value:
                node.set_parameter(name, value)
    return response


_HANDLERS = {
    "list_parameters": _list,
    "get_parameters": _get,
    "get_parameter_types": _get_types,
    "describe_parameters": _describe,
    "set_parameters": _set,
    "set_parameters_atomically": _set_atomically,
}
