"""The process's one type store: rosbags knows the definitions, our own slot dataclasses carry the values.

rosbags' classes have no defaults; ours do, and they replace rosbags' in its store, so that ``deserialize`` yields the
very class a user constructs.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.interfaces import Nodetype
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosbags.typesys.base import TypesysError
from rosbags.typesys.store import Typestore

from roboyard.errors import MessageError, UnknownNameError

DEFINITIONS = Path(__file__).parent / "definitions"

_DTYPES = {"bool": "bool", "byte": "uint8", "char": "uint8", "octet": "uint8"}


@cache
def typestore() -> Typestore:
    """ROS 2 Jazzy's messages and those of the ``definitions`` folder."""
    store = get_typestore(Stores.ROS2_JAZZY)
    types: dict[str, Any] = {}
    for file in sorted(DEFINITIONS.glob("*/msg/*.msg")):
        name = f"{file.parts[-3]}/msg/{file.stem}"
        if name not in store.fielddefs:
            types.update(get_types_from_msg(file.read_text(), name))
    store.register(types)
    return store


@cache
def message_type(name: str) -> type:
    """Our class for the message ``name`` ("pkg/msg/Name").

    Raises:
        UnknownNameError: no such type.
    """
    store = typestore()
    if name not in store.fielddefs:
        from difflib import get_close_matches

        near = get_close_matches(name, store.fielddefs, 3, 0.6)
        raise UnknownNameError(f"message type '{name}' is unknown", valid="near: " + ", ".join(near) if near else None)
    made = _make(name, store)
    store.types[name] = made
    store.cache.pop(name, None)
    return made


def definition(name: str) -> Any:
    """rosbags' field definitions: [(field, description), …]."""
    message_type(name)
    return typestore().fielddefs[name][1]


def _make(name: str, store: Typestore) -> type:
    """Build the class from source text: an ``__init__`` with plain assignments is several times faster than any loop."""
    constants, fields = store.fielddefs[name]
    scope: dict[str, Any] = {"_np": np}
    arguments, body, names = [], [], []
    for index, (field, description) in enumerate(fields):
        safe = field
        names.append(safe)
        literal, factory = _default(description, scope, index)
        arguments.append(f"{safe}={literal}")
        body.append(
            f"  self.{safe} = {safe}" if not factory else f"  self.{safe} = {factory} if {safe} is None else {safe}"
        )
    short = name.rsplit("/", 1)[1]
    init = f"def __init__(self, {', '.join(arguments)}):\n" + "\n".join(body or ["  pass"])
    exec(init, scope)  # noqa: S102 - text made from a parsed definition: names are identifiers, defaults are ours
    members: dict[str, Any] = {
        "__slots__": tuple(names),
        "__init__": scope["__init__"],
        "__msgtype__": name,
        "__eq__": _equal,
        "__hash__": None,
        "__repr__": _repr,
        "__module__": "roboyard.messages.msg",
        "__doc__": f"{name}: " + ", ".join(names),
        "__match_args__": tuple(names),
        **{key: value for key, _, value in constants},
    }
    return type(short, (), members)


def _default(description: Any, scope: dict[str, Any], index: int) -> tuple[str, str]:
    """Default of a field: a literal for the argument list, and a factory expression for what must be made anew."""
    kind, detail = description
    if kind == Nodetype.BASE:
        return {"string": "''", "bool": "False", "float32": "0.0", "float64": "0.0"}.get(detail[0], "0"), ""
    if kind == Nodetype.NAME:
        scope[f"_t{index}"] = message_type(detail)
        return "None", f"_t{index}()"
    (inner, inner_detail), length = detail
    if kind == Nodetype.SEQUENCE:
        length = 0
    if inner == Nodetype.BASE and inner_detail[0] != "string":
        dtype = _DTYPES.get(inner_detail[0], inner_detail[0])
        scope[f"_d{index}"] = np.dtype(dtype)
        return "None", f"_np.zeros({length}, _d{index})"
    if inner == Nodetype.BASE:
        return "None", f"[''] * {length}"
    scope[f"_t{index}"] = message_type(inner_detail)
    return "None", f"[_t{index}() for _ in range({length})]"


def _equal(self: Any, other: object) -> bool:
    if other.__class__ is not self.__class__:
        return NotImplemented
    for name in self.__slots__:
        mine, theirs = getattr(self, name), getattr(other, name)
        if isinstance(mine, np.ndarray) or isinstance(theirs, np.ndarray):
            if not np.array_equal(mine, theirs):
                return False
        elif mine != theirs:
            return False
    return True


def _repr(self: Any) -> str:
    return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self.__slots__)})"


def parse(text: str, name: str) -> dict[str, Any]:
    """rosbags' parse of one definition, under exactly ``name``; it knows messages and actions, not services.

    Raises:
        MessageError: syntax error.
    """
    package, _, short = name.split("/")
    as_message = f"{package}/msg/{short}"
    try:
        types: dict[str, Any] = get_types_from_msg(text, as_message)
    except (TypesysError, ValueError) as error:
        raise MessageError(f"definition of '{name}': {error}") from error
    types[name] = types.pop(as_message)
    return types


def register(text: str, name: str) -> None:
    """Make the message definition ``text`` known as ``name``; the same text again changes nothing.

    Raises:
        MessageError: syntax error, unknown field type, or another definition under this name.
    """
    store = typestore()
    try:
        store.register(parse(text, name))
    except (TypesysError, ValueError) as error:
        raise MessageError(f"definition of '{name}': {error}") from error
