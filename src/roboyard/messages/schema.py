"""Definitions as text, and the hashes by which ROS 2 compares types."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from typing import Any

from roboyard.messages.classes import full_name
from roboyard.messages.message_definition import EMPTY_MEMBER, MessageDefinition, MessageField
from roboyard.messages.parser import make_definition
from roboyard.messages.type_registry import definition_of, type_registry

# type_description_interfaces/msg/FieldType: constants of the value types, and offsets of arrays and sequences
_TYPE_IDS = {
    "int8": 2, "uint8": 3, "int16": 4, "uint16": 5, "int32": 6, "uint32": 7, "int64": 8, "uint64": 9,
    "float32": 10, "float64": 11, "char": 3, "bool": 15, "byte": 16, "string": 17,
}  # fmt: skip
_NESTED, _BOUNDED_STRING = 1, 21
_ARRAY, _BOUNDED, _UNBOUNDED = 48, 96, 144


def schema(name: str) -> str:
    """Return the definition as in recordings (MCAP's ``ros2msg``): its own text, then every type it refers to.

    Raises:
        MessageError: The type is unknown.
    """
    return _schema(full_name(name))


def type_hash(name: str) -> str:
    """Return the hash ``RIHS01_…`` of a message, service or action (REP 2016).

    Raises:
        MessageError: The type is unknown.
    """
    owner = name.removesuffix("_Event").removesuffix("_SendGoal").removesuffix("_GetResult")
    if type_registry().has_interface(owner):
        return _type_hash(name)
    return _type_hash(full_name(name))


@cache
def _schema(name: str) -> str:
    needed: dict[str, str] = {}

    def text(name: str) -> str:
        definition = definition_of(name)
        lines = [f"{c.type} {c.name}={c.value}" for c in definition.constants]
        for field in definition.fields:
            if field.name == EMPTY_MEMBER:
                continue
            if field.is_message and field.type not in needed:
                needed[field.type] = ""
                needed[field.type] = text(field.type)
            lines.append(f"{_short(field.type_text())} {field.name}")
        return "\n".join([*lines, ""])

    head = text(name)
    return head + "".join(f"{'=' * 80}\nMSG: {_short(key)}\n{value}" for key, value in needed.items())


def _short(name: str) -> str:
    return name.replace("/msg/", "/")


@cache
def _type_hash(name: str) -> str:
    described: dict[str, Any] = {}

    def describe(name: str) -> None:
        if name in described:
            return
        described[name] = {}  # before its fields, to keep the order
        definition = _interface_struct(name) or definition_of(name)
        for field in definition.fields:
            if field.is_message:
                describe(field.type)
        described[name] = {"type_name": name, "fields": [_describe_field(field) for field in definition.fields]}

    describe(name)
    description = {
        "type_description": described[name],
        "referenced_type_descriptions": [value for key, value in sorted(described.items()) if key != name],
    }
    return "RIHS01_" + hashlib.sha256(json.dumps(description).encode()).hexdigest()


def _describe_field(field: MessageField) -> dict[str, Any]:
    base = _NESTED if field.is_message else _BOUNDED_STRING if field.string_capacity else _TYPE_IDS[field.type]
    offset = {"one": 0, "array": _ARRAY, "sequence": _BOUNDED if field.size else _UNBOUNDED}[field.arity]
    return {
        "name": field.name,
        "type": {
            "type_id": base + offset,
            "capacity": field.size,
            "string_capacity": field.string_capacity,
            "nested_type_name": field.type if field.is_message else "",
        },
    }


def _interface_struct(name: str) -> MessageDefinition | None:
    """Return the structure with which ROS 2 describes a service or action itself; it is never sent."""
    parts: dict[str, str] = {}
    if name.endswith("_Event"):
        service = name.removesuffix("_Event")
        fields = [
            MessageField("info", "service_msgs/msg/ServiceEventInfo"),
            MessageField("request", f"{service}_Request", "sequence", 1),
            MessageField("response", f"{service}_Response", "sequence", 1),
        ]
        return make_definition(name, fields)
    if type_registry().get(name) is not None:
        return None
    if "/srv/" in name or name.endswith(("_SendGoal", "_GetResult")):
        parts = {f"{part}_message": f"{name}_{part.title()}" for part in ("request", "response", "event")}
    elif "/action/" in name:
        parts = {part: f"{name}_{part.title()}" for part in ("goal", "result", "feedback")}
        parts |= {"send_goal_service": f"{name}_SendGoal", "get_result_service": f"{name}_GetResult"}
        parts |= {"feedback_message": f"{name}_FeedbackMessage"}
    return make_definition(name, [MessageField(label, kind) for label, kind in parts.items()]) if parts else None
