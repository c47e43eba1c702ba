"""Services and actions: what `.srv` and `.action` texts define, and the wire types ROS 2 derives from them."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache

from roboyard.errors import MessageError, UnknownNameError
from roboyard.messages.store import DEFINITIONS, message_type, register


@dataclass(frozen=True, slots=True)
class ServiceType:
    """A service's two messages; ``name`` is "pkg/srv/Name"."""

    name: str
    Request: type
    Response: type


@dataclass(frozen=True, slots=True)
class ActionType:
    """An action's three messages and its wire types; ``name`` is "pkg/action/Name"."""

    name: str
    Goal: type
    Result: type
    Feedback: type
    SendGoal: ServiceType
    GetResult: ServiceType
    FeedbackMessage: type


@cache
def service_type(name: str) -> ServiceType:
    """The service "pkg/srv/Name" (or an action's "pkg/action/Name_SendGoal", "…_GetResult").

    Raises:
        UnknownNameError: no such service.
    """
    package, kind, short = _split(name)
    if kind == "action":
        action, _, part = short.rpartition("_")
        whole = action_type(f"{package}/action/{action}")
        if part in ("SendGoal", "GetResult"):
            found: ServiceType = getattr(whole, part)
            return found
    _define(name, package, "srv", short, ("Request", "Response"))
    return _service(name)


@cache
def action_type(name: str) -> ActionType:
    """The action "pkg/action/Name".

    Raises:
        UnknownNameError: no such action.
    """
    package, _, short = _split(name)
    _define(name, package, "action", short, ("Goal", "Result", "Feedback"))
    uuid = "unique_identifier_msgs/UUID goal_id\n"
    local = f"{package}/action/{short}"
    register(f"{uuid}{local}_Goal goal", f"{name}_SendGoal_Request")
    register("bool accepted\nbuiltin_interfaces/Time stamp", f"{name}_SendGoal_Response")
    register(uuid, f"{name}_GetResult_Request")
    register(f"int8 status\n{local}_Result result", f"{name}_GetResult_Response")
    register(f"{uuid}{local}_Feedback feedback", f"{name}_FeedbackMessage")
    return ActionType(
        name,
        message_type(f"{name}_Goal"),
        message_type(f"{name}_Result"),
        message_type(f"{name}_Feedback"),
        _service(f"{name}_SendGoal"),
        _service(f"{name}_GetResult"),
        message_type(f"{name}_FeedbackMessage"),
    )


def _service(name: str) -> ServiceType:
    return ServiceType(name, message_type(f"{name}_Request"), message_type(f"{name}_Response"))


def _split(name: str) -> tuple[str, str, str]:
    parts = name.split("/")
    if len(parts) != 3 or not all(parts):
        raise MessageError(f"'{name}' is not an interface name", valid="e.g. 'std_srvs/srv/SetBool'")
    return parts[0], parts[1], parts[2]


def _define(name: str, package: str, kind: str, short: str, parts: tuple[str, ...]) -> None:
    """Register the messages between the '---' lines of a definition file."""
    file = DEFINITIONS / package / kind / f"{short}.{kind}"
    known = sorted(f"{path.parts[-3]}/{kind}/{path.stem}" for path in DEFINITIONS.glob(f"*/{kind}/*.{kind}"))
    if name not in known:
        near = get_close_matches(name, known, 3, 0.5) or known
        raise UnknownNameError(
            f"{'service' if kind == 'srv' else kind} '{name}' is unknown", valid="e.g. " + ", ".join(near[:3])
        )
    texts = _sections(file.read_text())
    if len(texts) != len(parts):
        raise MessageError(f"definition of '{name}' has {len(texts)} parts", valid=f"{len(parts)} parted by '---'")
    for part, text in zip(parts, texts, strict=True):
        register(text, f"{name}_{part}")


def _sections(text: str) -> list[str]:
    sections: list[list[str]] = [[]]
    for line in text.splitlines():
        if line.strip() == "---":
            sections.append([])
        else:
            sections[-1].append(line)
    return ["\n".join(lines) for lines in sections]
