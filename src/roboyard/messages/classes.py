"""Makes the one class of each message type: a slot dataclass whose fields all have defaults."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from roboyard.errors import MessageError
from roboyard.messages.library import type_registry
from roboyard.messages.reading import empty_array
from roboyard.messages.structure import DTYPES, EMPTY_MEMBER, MessageDefinition, MessageField

_classes: dict[str, type[Any]] = {}


def message_class(name: str) -> type[Any]:
    """The class of a full type name, made when first asked for.

    Raises:
        MessageError: unknown.
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
    """``package/msg/Name`` of a message class or a message.

    Raises:
        MessageError: it is neither.
    """
    name = getattr(message_type, "__msgtype__", None)
    if not isinstance(name, str):
        raise MessageError(f"{message_type!r}"[:200] + " is no message", valid="e.g. ry.msg.Twist()")
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
    """A message from its values in order; how pickle and copy make one."""
    return message_class(name)(*values)


def _default(field: MessageField) -> tuple[Any, Any, Any]:
    """Default value, annotation, and a function that makes the default if it may not be shared."""
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
