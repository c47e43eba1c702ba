"""Message classes generated from definitions, services and actions, and their look-up by name.

A message class is a dataclass with slots whose fields all have defaults.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from roboyard.errors import MessageError
from roboyard.messages.message_definition import DTYPES, EMPTY_MEMBER, MessageDefinition, MessageField, empty_array
from roboyard.messages.type_registry import resolve_type_name, suggest_types, type_registry

_classes: dict[str, type[Any]] = {}


def message_class(name: str) -> type[Any]:
    """Return the class of a full type name, created on first use.

    Raises:
        MessageError: The type is unknown.
    """
    found = _classes.get(name)
    if found is None:
        registry = type_registry()
        with registry.lock:
            found = _classes.get(name)
            if found is None:
                found = _classes[name] = _make_class(registry.require(name))
    return found


def type_name(message_type: type[Any] | Any) -> str:
    """Return ``package/msg/Name`` of a message class or a message.

    Raises:
        MessageError: It is neither a message class nor a message.
    """
    name = getattr(message_type, "__msgtype__", None)
    if not isinstance(name, str):
        raise MessageError(f"{message_type!r}"[:200] + " is not a message", valid="e.g. ry.msg.Twist()")
    return name


def _make_class(definition: MessageDefinition) -> type[Any]:
    names: dict[str, Any] = {"_zeros": np.zeros, "_same": _equal_arrays}
    arguments, lines = [], []
    fields: list[tuple[str, Any, Any]] = []
    for index, field in enumerate(definition.fields):
        default, annotation, make_default = _default(field)
        label = field.python_name
        names[f"_d{index}"] = default if make_default is None else make_default
        if make_default is None:
            arguments.append(f"{label}=_d{index}")
            lines.append(f"    _s.{label} = {label}")
            spec = dataclasses.field(default=default, repr=field.name != EMPTY_MEMBER)
        else:
            arguments.append(f"{label}=None")
            lines.append(f"    _s.{label} = _d{index}() if {label} is None else {label}")
            spec = dataclasses.field(default_factory=make_default)
        fields.append((label, annotation, spec))
    compared = [
        f"_same(_s.{f.python_name}, _o.{f.python_name})"
        if f.is_primitive and f.arity != "one"
        else f"_s.{f.python_name} == _o.{f.python_name}"
        for f in definition.fields
    ]
    values = "".join(f"_s.{f.python_name}, " for f in definition.fields)
    source = "\n".join(
        [
            f"def __init__(_s, {', '.join(arguments)}):",
            *lines,
            "def __eq__(_s, _o):",
            "    if _o.__class__ is not _s.__class__: return NotImplemented",
            f"    return {' and '.join(compared)}",
            "def __reduce__(_s):",
            f"    return _restore, (_s.__msgtype__, ({values}))",
        ]
    )
    names["_restore"] = rebuild_message
    exec(compile(source, f"<roboyard {definition.name}>", "exec"), names)  # noqa: S102  names come from checked definitions
    body: dict[str, Any] = {c.name: c.value for c in definition.constants}
    body |= {key: names[key] for key in ("__init__", "__eq__", "__reduce__")}
    body |= {
        "__module__": "roboyard.messages.msg",
        "__msgtype__": definition.name,
        "__hash__": None,
        "__doc__": _doc(definition),
    }
    short = definition.name.rsplit("/", 1)[1]
    new_class: type[Any] = dataclasses.make_dataclass(short, fields, namespace=body, init=False, eq=False, slots=True)
    return new_class


def rebuild_message(name: str, values: tuple[Any, ...]) -> Any:
    """Rebuild a message from its values in order; used by pickle and copy."""
    return message_class(name)(*values)


def _default(field: MessageField) -> tuple[Any, Any, Any]:
    """Return default value, annotation, and a function that creates the default if it must not be shared."""
    if field.is_primitive and field.arity != "one":
        dtype = DTYPES[field.type]
        if field.default:
            values = np.array(field.default, dtype)
            return None, np.ndarray, values.copy
        if field.arity == "sequence":
            empty = empty_array(dtype)
            return None, np.ndarray, lambda: empty
        size = field.size
        return None, np.ndarray, lambda: np.zeros(size, dtype)
    if field.is_message:
        nested = message_class(field.type)
        if field.arity == "one":
            return None, nested, nested
        if field.arity == "array":
            size = field.size
            return None, list, lambda: [nested() for _ in range(size)]
        return None, list, list
    if field.arity != "one":
        start = (
            list(field.default)
            if isinstance(field.default, tuple)
            else [""] * (field.size if field.arity == "array" else 0)
        )
        return None, list, start.copy
    if field.type == "string":
        return field.default or "", str, None
    if field.type == "bool":
        return bool(field.default), bool, None
    if field.type.startswith("float"):
        return float(field.default or 0.0), float, None  # type: ignore[arg-type]
    return field.default or 0, int, None


def _equal_arrays(a: Any, b: Any) -> bool:
    return a is b or bool(np.array_equal(a, b))


def _doc(definition: MessageDefinition) -> str:
    lines = [f"{f.type_text()} {f.name}" for f in definition.fields if f.name != EMPTY_MEMBER]
    return "\n".join([f"{definition.name}", "", *lines])


@dataclasses.dataclass(frozen=True, slots=True)
class ServiceType:
    """Service type: its request and response messages.

    Attributes:
        name: ``package/srv/Name``.
    """

    name: str

    @property
    def Request(self) -> type[Any]:
        """Request class; created on first use, because most services of a node are never called."""
        return message_class(f"{self.name}_Request")

    @property
    def Response(self) -> type[Any]:
        """Response class; created on first use."""
        return message_class(f"{self.name}_Response")


@dataclasses.dataclass(frozen=True, slots=True)
class ActionType:
    """Action type, with the services and messages that transport it.

    Attributes:
        name: ``package/action/Name``.
        Goal: Message class of the goal.
        Result: Message class of the result.
        Feedback: Message class of the feedback.
        SendGoal: Service that sends a goal: ``goal_id, goal`` to ``accepted, stamp``.
        GetResult: Service that waits for the result: ``goal_id`` to ``status, result``.
        FeedbackMessage: Message class ``goal_id, feedback``.
    """

    name: str
    Goal: type[Any] = dataclasses.field(repr=False)
    Result: type[Any] = dataclasses.field(repr=False)
    Feedback: type[Any] = dataclasses.field(repr=False)
    SendGoal: ServiceType = dataclasses.field(repr=False)
    GetResult: ServiceType = dataclasses.field(repr=False)
    FeedbackMessage: type[Any] = dataclasses.field(repr=False)


_by_name: dict[str, type[Any]] = {}
_services: dict[str, ServiceType] = {}
_actions: dict[str, ActionType] = {}


def message_type(name: str) -> type[Any]:
    """Return the class of a message type.

    Args:
        name: ``package/msg/Name``, ``package/Name``, or ``Name`` if it is unambiguous; parts of services and actions by
            their full names, e.g. ``std_srvs/srv/SetBool_Request``.

    Raises:
        MessageError: The type is unknown (the error lists similar names) or ambiguous (it lists the candidates).
    """
    found = _by_name.get(name)
    if found is None:
        found = _by_name[name] = message_class(full_name(name))
    return found


def full_name(name: str) -> str:
    """Return the full type name of `name`; see `message_type`.

    Raises:
        MessageError: The type is unknown or ambiguous.
    """
    if not isinstance(name, str):
        raise MessageError(f"{name!r}"[:200] + " is not a type name", valid="e.g. 'geometry_msgs/msg/Twist'")
    if type_registry().get(name) is not None:
        return name
    return resolve_type_name(name, "msg", type_registry().message_names())


def service_type(name: str) -> ServiceType:
    """Return a service type by ``package/srv/Name``, ``package/Name`` or ``Name``.

    Raises:
        MessageError: The type is unknown or ambiguous.
    """
    found = _services.get(name)
    if found is None:
        full = _full_interface_name(name, "srv")
        found = _services.get(full) or ServiceType(full)
        _services[name] = _services[full] = found
    return found


def action_type(name: str) -> ActionType:
    """Return an action type by ``package/action/Name``, ``package/Name`` or ``Name``.

    Raises:
        MessageError: The type is unknown or ambiguous.
    """
    found = _actions.get(name)
    if found is None:
        full = _full_interface_name(name, "action")
        found = _actions.get(full) or ActionType(
            full,
            message_class(f"{full}_Goal"),
            message_class(f"{full}_Result"),
            message_class(f"{full}_Feedback"),
            ServiceType(f"{full}_SendGoal"),
            ServiceType(f"{full}_GetResult"),
            message_class(f"{full}_FeedbackMessage"),
        )
        _actions[name] = _actions[full] = found
    return found


def register(text: str, name: str) -> None:
    """Register a message, service or action type.

    Registering an equal definition again changes nothing.

    Args:
        text: Content of a ``.msg``, ``.srv`` or ``.action`` file; for messages also several concatenated definitions,
            as in recordings.
        name: ``package/msg/Name``, ``package/srv/Name`` or ``package/action/Name``.

    Raises:
        MessageError: The name is invalid, the text is malformed (the error states the line), the type of a field is
            unknown, or another definition has this name.
    """
    type_registry().register(text, name)


def register_folder(path: str | Path) -> tuple[str, ...]:
    """Register all types under `path`: ``<package>/msg/Name.msg``, ``srv/Name.srv``, ``action/Name.action``.

    Returns:
        Their full names, sorted.

    Raises:
        MessageError: The folder does not exist or has no definitions, or `register` would reject one; then none is
            added.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise MessageError("is not a folder", location=str(folder), valid="a folder with <package>/msg/Name.msg")
    return type_registry().register_folder(folder)


def type_names(kind: str = "msg") -> list[str]:
    """Return the full names of all known ``msg``, ``srv`` or ``action`` types, sorted."""
    return type_registry().message_names() if kind == "msg" else type_registry().interface_names(kind)


def _full_interface_name(name: str, kind: str) -> str:
    if not isinstance(name, str):
        raise MessageError(f"{name!r}"[:200] + " is not a type name", valid=f"e.g. 'package/{kind}/Name'")
    full = resolve_type_name(name, kind, type_registry().interface_names(kind))
    if not type_registry().has_interface(full):
        raise MessageError(f"unknown type '{full}'", valid=suggest_types(full, type_registry().interface_names(kind)))
    return full
