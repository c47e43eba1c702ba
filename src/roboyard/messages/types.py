"""Message, service and action types by name."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from roboyard.errors import MessageError
from roboyard.messages.classes import message_class
from roboyard.messages.library import type_registry
from roboyard.messages.names import resolve_type_name, suggest_types


@dataclass(frozen=True, slots=True)
class ServiceType:
    """A service: what is asked and what is answered.

    Attributes:
        name: ``package/srv/Name``.
    """

    name: str

    @property
    def Request(self) -> type[Any]:
        """Message class; made when first asked for, since most services of a node are never called."""
        return message_class(f"{self.name}_Request")

    @property
    def Response(self) -> type[Any]:
        """Message class; made when first asked for."""
        return message_class(f"{self.name}_Response")


@dataclass(frozen=True, slots=True)
class ActionType:
    """An action, with the services and messages that carry it on the wire.

    Attributes:
        name: ``package/action/Name``.
        Goal: Message class.
        Result: Message class.
        Feedback: Message class.
        SendGoal: Service that asks for a goal: ``goal_id, goal`` to ``accepted, stamp``.
        GetResult: Service that waits for the end: ``goal_id`` to ``status, result``.
        FeedbackMessage: Message class ``goal_id, feedback``.
    """

    name: str
    Goal: type[Any] = field(repr=False)
    Result: type[Any] = field(repr=False)
    Feedback: type[Any] = field(repr=False)
    SendGoal: ServiceType = field(repr=False)
    GetResult: ServiceType = field(repr=False)
    FeedbackMessage: type[Any] = field(repr=False)


_by_name: dict[str, type[Any]] = {}
_services: dict[str, ServiceType] = {}
_actions: dict[str, ActionType] = {}


def message_type(name: str) -> type[Any]:
    """The class of a message type.

    Args:
        name: ``package/msg/Name``, ``package/Name``, or ``Name`` where that is clear; parts of services and actions
            by their full names, e.g. ``std_srvs/srv/SetBool_Request``.

    Raises:
        MessageError: unknown (lists near names) or ambiguous (lists the candidates).
    """
    found = _by_name.get(name)
    if found is None:
        found = _by_name[name] = message_class(full_name(name))
    return found


def full_name(name: str) -> str:
    """The full type name that ``name`` means; see ``message_type``.

    Raises:
        MessageError: unknown or ambiguous.
    """
    if not isinstance(name, str):
        raise MessageError(f"{name!r}"[:200] + " is no type name", valid="e.g. 'geometry_msgs/msg/Twist'")
    if type_registry().get(name) is not None:
        return name
    return resolve_type_name(name, "msg", type_registry().message_names())


def service_type(name: str) -> ServiceType:
    """A service type by ``package/srv/Name``, ``package/Name`` or ``Name``.

    Raises:
        MessageError: unknown or ambiguous.
    """
    found = _services.get(name)
    if found is None:
        full = _full_interface_name(name, "srv")
        found = _services.get(full) or ServiceType(full)
        _services[name] = _services[full] = found
    return found


def action_type(name: str) -> ActionType:
    """An action type by ``package/action/Name``, ``package/Name`` or ``Name``.

    Raises:
        MessageError: unknown or ambiguous.
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
    """Make a message, service or action type known.

    The same definition again changes nothing.

    Args:
        text: As in a ``.msg``, ``.srv`` or ``.action`` file; for messages also several definitions concatenated, as
            recordings hold them.
        name: ``package/msg/Name``, ``package/srv/Name`` or ``package/action/Name``.

    Raises:
        MessageError: bad name, malformed text (says the line), a field of unknown type, or another definition exists
            under that name.
    """
    type_registry().register(text, name)


def register_folder(path: str | Path) -> tuple[str, ...]:
    """Make all types under ``path`` known: ``<package>/msg/Name.msg``, ``srv/Name.srv``, ``action/Name.action``.

    Returns:
        Their full names, sorted.

    Raises:
        MessageError: no such folder, nothing in it, or a definition that ``register`` would refuse; then none is added.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise MessageError("is no folder", location=str(folder), valid="one with <package>/msg/Name.msg")
    return type_registry().register_folder(folder)


def type_names(kind: str = "msg") -> list[str]:
    """Full names of all known ``msg``, ``srv`` or ``action`` types, sorted."""
    return type_registry().message_names() if kind == "msg" else type_registry().interface_names(kind)


def _full_interface_name(name: str, kind: str) -> str:
    if not isinstance(name, str):
        raise MessageError(f"{name!r}"[:200] + " is no type name", valid=f"e.g. 'package/{kind}/Name'")
    full = resolve_type_name(name, kind, type_registry().interface_names(kind))
    if not type_registry().has_interface(full):
        raise MessageError(f"unknown type '{full}'", valid=suggest_types(full, type_registry().interface_names(kind)))
    return full
