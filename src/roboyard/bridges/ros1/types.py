"""ROS 1's types: their definitions and md5 sums, and the way between their bytes and ours.

ROS 1 Noetic's own types are what they are there; tables of `extra` add those that Noetic keeps in further packages.
Any other type of ours becomes the ROS 1 type of the same fields: headers get their sequence number, ``Time`` and
``Duration`` become ROS 1's own, bounds of sequences go.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from threading import RLock
from typing import Any, Final

from rosbags.convert.converter import is_same_wireformat, migrate_bytes
from rosbags.interfaces.typing import Typesdict
from rosbags.serde import SerdeError
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from roboyard.bridges.ros1.extra import ACTIONS, MESSAGES
from roboyard.bridges.ros1.log import encode_log
from roboyard.errors import MessageError
from roboyard.messages import ActionType, ServiceType, message_type, schema, serialize

Encode = Callable[[Any], bytes]
Decode = Callable[[bytes], bytes]

_LOG: Final = "rcl_interfaces/msg/Log"
_DAMAGE: Final = (SerdeError, MessageError, LookupError, ValueError, TypeError, AssertionError, ArithmeticError,
                  MemoryError, OverflowError, AttributeError)  # fmt: skip
_BOUND: Final = re.compile(r"<=\d+")
_TIMES: Final = {"builtin_interfaces/msg/Time": "time", "builtin_interfaces/msg/Duration": "duration"}


@dataclass(frozen=True, slots=True)
class Ros1Type:
    """A message as ROS 1 has it.

    Attributes:
        name: ``package/Name``.
        md5: By which peers compare types.
        definition: Its text, with those of the types in it.
        encode: Our message into ROS 1's bytes. Raises MessageError.
        decode: ROS 1's bytes into CDR of ours. Raises MessageError.
    """

    name: str
    md5: str
    definition: str = field(repr=False)
    encode: Encode = field(repr=False)
    decode: Decode = field(repr=False)


@dataclass(frozen=True, slots=True)
class Ros1Service:
    """A service as ROS 1 has it.

    Attributes:
        name: ``package/Name``.
        md5: By which peers compare types.
        request: What is asked.
        response: What is answered.
    """

    name: str
    md5: str
    request: Ros1Type
    response: Ros1Type


@dataclass(frozen=True, slots=True)
class Ros1Action:
    """An action as actionlib has it: five topics, three of them of types of their own.

    Attributes:
        name: ``package/Name``.
        goal: ``…ActionGoal``; its bytes are a header, an id, and those of ``goal_part``.
        result: ``…ActionResult``; a header, a status, and ``result_part``.
        feedback: ``…ActionFeedback``; a header, a status, and ``feedback_part``.
    """

    name: str
    goal: Ros1Type
    result: Ros1Type
    feedback: Ros1Type
    goal_part: Ros1Type
    result_part: Ros1Type
    feedback_part: Ros1Type


class _Stores:
    """Both families of types, which grow as they are asked for."""

    def __init__(self) -> None:
        self.lock = RLock()
        self.ros1: Typestore = get_typestore(Stores.ROS1_NOETIC)
        self.ros2: Typestore = get_typestore(Stores.ROS2_JAZZY)
        for name, text in MESSAGES.items():
            self.add(text, name)

    def add(self, text: str, name: str) -> None:
        """Take a ROS 1 definition in, with those behind it that are not there yet."""
        found = get_types_from_msg(_BOUND.sub("", text), name)
        self.ros1.register({key: value for key, value in found.items() if key not in self.ros1.fielddefs})

    def find(self, ours: str, name: str) -> None:
        """Have our type ``ours`` in both families, in ROS 1's as ``name``."""
        text, key = schema(ours), _key(ours)
        if key not in self.ros2.fielddefs:
            new: Typesdict = get_types_from_msg(text, key)
            self.ros2.register({key: value for key, value in new.items() if key not in self.ros2.fielddefs})
        if name not in self.ros1.fielddefs:
            self.add(text, name)


@cache
def _stores() -> _Stores:
    return _Stores()


def _key(name: str) -> str:
    """Under which rosbags keeps a type: parts of services and actions as if they were messages."""
    package, _, short = name.split("/")
    return f"{package}/msg/{short}"


def ros1_type(ours: str) -> Ros1Type:
    """ROS 1's type for one of our messages, by its full name.

    Raises:
        MessageError: there is no such type.
    """
    return _log() if ours == _LOG else _plain(ours)


@cache
def ros1_service(service: ServiceType) -> Ros1Service:
    """ROS 1's type for one of our services."""
    request, response = _plain(f"{service.name}_Request"), _plain(f"{service.name}_Response")
    text = "".join(_md5_text(_key(f"{service.name}_{part}")).strip() for part in ("Request", "Response"))
    return Ros1Service(service.name.replace("/srv/", "/"), _md5(text), request, response)


@cache
def ros1_action(action: ActionType) -> Ros1Action:
    """actionlib's types for one of our actions."""
    package, _, short = action.name.split("/")
    parts, wholes = [], []
    stores = _stores()
    known = ACTIONS.get(action.name, {})
    for part, head in (("Goal", "GoalID goal_id"), ("Result", "GoalStatus status"), ("Feedback", "GoalStatus status")):
        inner, outer = f"{package}/msg/{short}{part}", f"{package}/msg/{short}Action{part}"
        with stores.lock:
            if part in known and inner not in stores.ros1.fielddefs:
                stores.add(known[part], inner)
        parts.append(_plain(f"{action.name}_{part}", inner))
        with stores.lock:
            text = f"std_msgs/Header header\nactionlib_msgs/{head}\n{package}/{short}{part} {part.lower()}\n"
            types = get_types_from_msg(text, outer)
            stores.ros1.register({key: value for key, value in types.items() if key not in stores.ros1.fielddefs})
            wholes.append(_make(outer, _refuse, _refuse))
    return Ros1Action(f"{package}/{short}", *wholes, *parts)


def _refuse(_: Any) -> bytes:
    raise MessageError("an action's message is put together from its parts")


@cache
def _plain(ours: str, name: str = "") -> Ros1Type:
    name = name or _key(ours)
    message_type(ours)  # raises MessageError
    stores = _stores()
    with stores.lock:
        try:
            stores.find(ours, name)
            encode, decode = _ways(stores, ours, name)
            return _make(name, encode, decode)
        except _DAMAGE as error:
            raise MessageError(f"{ours} cannot be a ROS 1 type: {error}") from error


@cache
def _log() -> Ros1Type:
    return _make("rosgraph_msgs/msg/Log", encode_log, _refuse)


def _make(name: str, encode: Encode, decode: Decode) -> Ros1Type:
    stores = _stores()
    definition, _ = stores.ros1.generate_msgdef(name, ros_version=1)
    return Ros1Type(name.replace("/msg/", "/"), _md5(_md5_text(name).strip()), definition, encode, decode)


def _ways(stores: _Stores, ours: str, name: str) -> tuple[Encode, Decode]:
    """Both ways between bytes: straight where only headers differ, else field by field."""
    ros1, ros2, ours = stores.ros1, stores.ros2, _key(ours)
    there: dict[str, object] = {}
    back: dict[str, object] = {}
    if is_same_wireformat(ros1, ros2, name, ours):

        def encode(message: Any) -> bytes:
            return bytes(ros2.cdr_to_ros1(serialize(message), ours))

        def convert(data: bytes) -> bytes:
            return bytes(ros2.ros1_to_cdr(data, ours))

    else:

        def encode(message: Any) -> bytes:
            data = serialize(message)
            return bytes(migrate_bytes(ros2, ros1, ours, name, there, data, src_is2=True, dst_is2=False))

        def convert(data: bytes) -> bytes:
            return bytes(migrate_bytes(ros1, ros2, name, ours, back, data, src_is2=False, dst_is2=True))

    def decode(data: bytes) -> bytes:
        try:
            return convert(data)
        except _DAMAGE as error:
            raise MessageError(f"{len(data)} bytes are no {name.replace('/msg/', '/')}: {error}") from error

    return encode, decode


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _md5_text(name: str) -> str:
    """What ROS 1 takes the md5 sum of: constants, then fields, messages among them by their own sums."""
    constants, fields = _stores().ros1.fielddefs[name]
    lines = [f"{kind} {label}={value}" for label, kind, value in constants]
    for label, (node, inner) in fields:
        suffix = ""
        if node in (3, 4):  # rosbags.interfaces.Nodetype: ARRAY, SEQUENCE
            suffix = f"[{inner[1]}]" if node == 3 else "[]"
            node, inner = inner[0]
        if node == 1:
            if label != "structure_needs_at_least_one_member":
                lines.append(f"{inner[0]}{suffix} {label}")
        elif inner in _TIMES:
            lines.append(f"{_TIMES[inner]}{suffix} {label}")
        else:  # an array of messages is written as one message
            lines.append(f"{_md5(_md5_text(inner).strip())} {label}")
    return "\n".join(lines)
