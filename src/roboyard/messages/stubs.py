"""Generator of ``msg.pyi``, ``srv.pyi`` and ``action.pyi``, which give editors and type checkers every field.

python -m roboyard.messages.stubs
"""

from __future__ import annotations

from pathlib import Path

from roboyard.config import write_atomic
from roboyard.messages.classes import type_names
from roboyard.messages.message_definition import DTYPES, EMPTY_MEMBER, Constant, MessageField
from roboyard.messages.type_registry import ACTION_PARTS, SERVICE_PARTS, definition_of, resolve_type_name

_HEAD = """\
# Made by `python -m roboyard.messages.stubs`: do not edit.
# ruff: noqa: N801 - packages are named as in ROS

from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray
"""
_TAIL = "\ndef __getattr__(name: str) -> Any: ...  # types that users register\n"


def generate() -> dict[str, str]:
    """Return the content of the three stubs by file name, for built-in types without user-registered ones."""
    return {"msg.pyi": _messages(), "srv.pyi": _interfaces("srv"), "action.pyi": _interfaces("action")}


def main() -> None:
    """Write the stubs to the folder of this module."""
    for file, content in generate().items():
        write_atomic(Path(__file__).with_name(file), content)


def _messages() -> str:
    message_names = type_names("msg")
    parts = [_HEAD]
    packages: dict[str, list[str]] = {}
    for full in message_names:
        parts.append(_class(full, _stub_name(full, message_names), "", message_names, ""))
        packages.setdefault(full.split("/")[0], []).append(full)
    for package, members in packages.items():
        lines = [f"    {full.rsplit('/', 1)[1]}: TypeAlias = {_stub_name(full, message_names)}" for full in members]
        parts.append("\n".join([f"class {package}:", *lines, ""]))
    return "\n".join(parts) + _TAIL


def _interfaces(kind: str) -> str:
    interface_names, message_names = type_names(kind), type_names("msg")
    parts = [_HEAD + "\nfrom roboyard.messages import msg\n"]
    packages: dict[str, list[str]] = {}
    for full in interface_names:
        short = _stub_name(full, interface_names, kind)
        lines = [f"class {short}:", "    name: ClassVar[str]", ""]
        members = SERVICE_PARTS if kind == "srv" else ACTION_PARTS
        lines += [_class(f"{full}_{part}", part, "    ", message_names, "msg.") for part in members]
        if kind == "action":
            for service in ("SendGoal", "GetResult"):
                lines += [f"    class {service}:", "        name: ClassVar[str]", ""]
                lines += [
                    _class(f"{full}_{service}_{part}", part, "        ", message_names, "msg.", short)
                    for part in SERVICE_PARTS
                ]
            lines.append(_class(f"{full}_FeedbackMessage", "FeedbackMessage", "    ", message_names, "msg.", short))
        parts.append("\n".join(lines))
        packages.setdefault(full.split("/")[0], []).append(f"    {full.rsplit('/', 1)[1]}: TypeAlias = {short}")
    for package, lines in packages.items():
        parts.append("\n".join([f"class {package}:", *lines, ""]))
    return "\n".join(parts) + _TAIL


def _class(full: str, name: str, pad: str, message_names: list[str], prefix: str, owner: str = "") -> str:
    definition = definition_of(full)
    lines = [f"{pad}@dataclass(slots=True)", f"{pad}class {name}:", f"{pad}    __msgtype__: ClassVar[str]"]
    lines += [f"{pad}    {c.name}: ClassVar[{_constant(c)}]" for c in definition.constants]
    lines += [
        f"{pad}    {f.python_name}: {_annotation(f, message_names, prefix, owner)} = ..."
        for f in definition.fields
        if f.name != EMPTY_MEMBER
    ]
    return "\n".join([*lines, ""])


def _annotation(field: MessageField, message_names: list[str], prefix: str, owner: str) -> str:
    if field.is_primitive and field.arity != "one":
        kind = DTYPES[field.type]
        return f"NDArray[np.{'bool_' if kind == 'bool' else kind}]"
    if not field.is_message:
        base = _scalar(field.type)
    elif "/msg/" in field.type:
        base = prefix + _stub_name(field.type, message_names)
    else:  # the goal of an action, in the request that contains it
        base = f"{owner}.{field.type.rsplit('_', 1)[1]}"
    return base if field.arity == "one" else f"list[{base}]"


def _constant(constant: Constant) -> str:
    return _scalar(constant.type)


def _scalar(kind: str) -> str:
    return {"string": "str", "bool": "bool", "float32": "float", "float64": "float"}.get(kind, "int")


def _stub_name(full: str, full_names: list[str], kind: str = "msg") -> str:
    """Return the bare name if it means this type, else a name with its package."""
    from roboyard.errors import MessageError

    package, _, short = full.split("/")
    try:
        if resolve_type_name(short, kind, full_names) == full:
            return short
    except MessageError:
        pass
    return f"_{package}_{short}"


if __name__ == "__main__":
    main()
