"""rosapi: what clients of rosbridge ask about the graph."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from roboyard.bridges.gateway import Seen
from roboyard.bridges.web import json_number
from roboyard.errors import InputError
from roboyard.messages.message_definition import EMPTY_MEMBER
from roboyard.messages.type_registry import definition_of

Answer = Callable[[Seen, dict[str, Any]], dict[str, Any]]


def answer(service: str, seen: Seen, arguments: dict[str, Any]) -> dict[str, Any]:
    """What rosapi answers. Raises InputError."""
    handler = _HANDLERS.get(service.removeprefix("/rosapi/"))
    if handler is None:
        raise InputError(
            f"there is no service {service[:80]}", valid=", ".join(f"/rosapi/{name}" for name in _HANDLERS)
        )
    return handler(seen, arguments)


def is_rosapi(service: str) -> bool:
    """Whether it is one of these."""
    return service.startswith("/rosapi/")


def find_parameter(seen: Seen, name: str) -> tuple[str, str]:
    """Node and parameter of ``/node/parameter`` or ``/node:parameter``. Raises InputError."""
    for node, values in seen.parameters.items():
        for label in values:
            if name in (f"{node}/{label}", f"{node}:{label}", f"{node}/{label.replace('.', '/')}"):
                return node, label
    raise InputError(f"there is no parameter {name[:80]}", valid="/node/parameter")


def _topics(seen: Seen, said: dict[str, Any]) -> dict[str, Any]:
    shown = {name: about.type for name, about in seen.topics.items() if "/_action/" not in name}
    return {"topics": list(shown), "types": list(shown.values()), "typedefs_full_text": []}


def _topics_for_type(seen: Seen, said: dict[str, Any]) -> dict[str, Any]:
    wanted = _full(str(said.get("type", "")))
    return {"topics": [name for name, about in seen.topics.items() if about.type == wanted]}


def _topic_type(seen: Seen, said: dict[str, Any]) -> dict[str, Any]:
    about = seen.topics.get(str(said.get("topic", "")))
    return {"type": about.type if about else ""}


def _services(seen: Seen, said: dict[str, Any]) -> dict[str, Any]:
    return {"services": list(seen.services)}


def _services_for_type(seen: Seen, said: dict[str, Any]) -> dict[str, Any]:
    wanted = str(said.get("type", "")).replace("/srv/", "/")
    return {"services": [name for name, (kind, _) in seen.services.items() if kind.replace("/srv/", "/") == wanted]}


def _service_type(seen: Seen, said: dict[str, Any]) -> dict[str, Any]:
    return {"type": seen.services.get(str(said.get("service", "")), ("", ""))[0]}


def _service_node(seen: Seen, said: dict[str, Any]) -> dict[str, Any]:
    return {"node": seen.services.get(str(said.get("service", "")), ("", ""))[1]}


def _nodes(seen: Seen, said: dict[str, Any]) -> dict[str, Any]:
    return {"nodes": list(seen.parameters)}


def _node_details(seen: Seen, said: dict[str, Any]) -> dict[str, Any]:
    node = str(said.get("node", ""))
    return {
        "publishing": [name for name, about in seen.topics.items() if node in about.publishers],
        "subscribing": [name for name, about in seen.topics.items() if node in about.subscribers],
        "services": [name for name, (_, owner) in seen.services.items() if owner == node],
    }


def _publishers(seen: Seen, said: dict[str, Any]) -> dict[str, Any]:
    about = seen.topics.get(str(said.get("topic", "")))
    return {"publishers": sorted(about.publishers) if about else []}


def _subscribers(seen: Seen, said: dict[str, Any]) -> dict[str, Any]:
    about = seen.topics.get(str(said.get("topic", "")))
    return {"subscribers": sorted(about.subscribers) if about else []}


def _action_servers(seen: Seen, said: dict[str, Any]) -> dict[str, Any]:
    return {"action_servers": list(seen.actions)}


def _action_type(seen: Seen, said: dict[str, Any]) -> dict[str, Any]:
    return {"type": seen.actions.get(str(said.get("action", "")), ("", ""))[0]}


def _time(seen: Seen, said: dict[str, Any]) -> dict[str, Any]:
    seconds, nanoseconds = divmod(seen.time_ns, 1_000_000_000)
    return {"time": {"sec": seconds, "nanosec": nanoseconds}}


def _version(seen: Seen, said: dict[str, Any]) -> dict[str, Any]:
    return {"version": 2, "distro": "jazzy"}


def _parameter_names(seen: Seen, said: dict[str, Any]) -> dict[str, Any]:
    return {"names": [f"{node}:{name}" for node, values in seen.parameters.items() for name in values]}


def _get_parameter(seen: Seen, said: dict[str, Any]) -> dict[str, Any]:
    try:
        node, label = find_parameter(seen, str(said.get("name", "")))
    except InputError as error:
        default = said.get("default") or said.get("default_value")
        return {"value": str(default) if default else "null", "successful": False, "reason": str(error)}
    return {"value": json.dumps(json_number(seen.parameters[node][label])), "successful": True, "reason": ""}


def _has_parameter(seen: Seen, said: dict[str, Any]) -> dict[str, Any]:
    try:
        find_parameter(seen, str(said.get("name", "")))
    except InputError:
        return {"exists": False}
    return {"exists": True}


def _message_details(seen: Seen, said: dict[str, Any]) -> dict[str, Any]:
    return {"typedefs": _typedefs(_full(str(said.get("type", ""))))}


def _request_details(seen: Seen, said: dict[str, Any]) -> dict[str, Any]:
    return {"typedefs": _typedefs(f"{_full(str(said.get('type', '')), 'srv')}_Request")}


def _response_details(seen: Seen, said: dict[str, Any]) -> dict[str, Any]:
    return {"typedefs": _typedefs(f"{_full(str(said.get('type', '')), 'srv')}_Response")}


def _full(name: str, kind: str = "msg") -> str:
    return name.replace("/", f"/{kind}/") if name.count("/") == 1 else name


def _typedefs(name: str) -> list[dict[str, Any]]:
    """A type and those in it, each with its fields as rosapi tells them. Raises MessageError."""
    found: dict[str, dict[str, Any]] = {}
    waiting = [name]
    while waiting:
        kind = waiting.pop()
        if kind in found:
            continue
        definition = definition_of(kind)
        fields = [field for field in definition.fields if field.name != EMPTY_MEMBER]
        found[kind] = {
            "type": kind.replace("/msg/", "/").replace("/srv/", "/"),
            "fieldnames": [field.name for field in fields],
            "fieldtypes": [field.type.replace("/msg/", "/") for field in fields],
            "fieldarraylen": [{"one": -1, "array": field.size, "sequence": 0}[field.arity] for field in fields],
            "examples": ["[]" if field.arity != "one" else "{}" if field.is_message else "0" for field in fields],
            "constnames": [constant.name for constant in definition.constants],
            "constvalues": [str(constant.value) for constant in definition.constants],
        }
        waiting += [field.type for field in fields if field.is_message]
    return list(found.values())


_HANDLERS: dict[str, Answer] = {
    "topics": _topics,
    "topics_for_type": _topics_for_type,
    "topic_type": _topic_type,
    "services": _services,
    "services_for_type": _services_for_type,
    "service_type": _service_type,
    "service_node": _service_node,
    "nodes": _nodes,
    "node_details": _node_details,
    "publishers": _publishers,
    "subscribers": _subscribers,
    "action_servers": _action_servers,
    "action_type": _action_type,
    "get_time": _time,
    "get_ros_version": _version,
    "get_param_names": _parameter_names,
    "get_param": _get_parameter,
    "has_param": _has_parameter,
    "message_details": _message_details,
    "service_request_details": _request_details,
    "service_response_details": _response_details,
}
