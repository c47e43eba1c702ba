"""Parses ``.msg``, ``.srv`` and ``.action`` text into message definitions (docs.ros.org: About ROS 2 interfaces)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from roboyard.errors import MessageError
from roboyard.messages.message_definition import (
    EMPTY_MEMBER,
    INTEGER_RANGES,
    STRUCT_CODES,
    Constant,
    MessageDefinition,
    MessageField,
    Scalar,
)

_NAME = re.compile(r"[a-z][a-z0-9_]*/(msg|srv|action)/[A-Za-z][A-Za-z0-9_]*")
_MAX_TEXT = 1_000_000
_MAX_ARRAY = 1_000_000  # larger fixed lengths are mistakes: every default message would contain them


def check_type_name(name: str, location: str | None = None) -> str:
    """Return `name` if it is a full type name.

    Raises:
        MessageError: It is not a full type name.
    """
    if not _NAME.fullmatch(name):
        raise MessageError(f"'{name[:200]}' is not a type name", location=location, valid="package_name/msg/TypeName")
    return name


def parse_msg(text: str, name: str) -> list[MessageDefinition]:
    """Parse the text of a message: its own definition first, then those appended after ``===`` and ``MSG:`` lines.

    Args:
        text: Content of a ``.msg`` file, or several concatenated as in recordings.
        name: Full name of the first definition.

    Raises:
        MessageError: The name or the text is malformed; the error states the line.
    """
    from rosbags.typesys import TypesysError
    from rosbags.typesys.msg import MSGParser

    check_type_name(name)
    _check_text(text, name)
    package, kind, short = name.split("/")
    try:  # the parser resolves references without a package in the name's folder, which must be msg
        parsed = MSGParser(f"MSG: {package}/msg/{short}\n{_tidy(text)}").specification()
    except (TypesysError, ValueError, RecursionError) as error:
        raise _syntax_error(text, name) from error
    definitions = []
    for index, item in enumerate(parsed):
        full_name = f"{package}/{kind}/{short}" if index == 0 else item.name
        check_type_name(full_name, location=name)
        fields = [
            MessageField(
                field.name,
                field.typ.ref.name if isinstance(field.typ.ref.name, str) else field.typ.ref.name.value,
                "one" if field.typ.cardinality.value == "scalar" else field.typ.cardinality.value,
                field.typ.size,
                field.typ.str_size,
                tuple(field.value) if isinstance(field.value, list) else field.value,
            )
            for field in item.fields
        ]
        constants = [Constant(c.name, c.typ.value, c.value) for c in item.constants]
        definitions.append(make_definition(full_name, fields, constants))
    return definitions


def parse_parts(text: str, names: tuple[str, ...], interface_name: str) -> list[MessageDefinition]:
    """Parse a ``.srv`` or ``.action`` file, whose parts are separated by lines of ``---``.

    Raises:
        MessageError: The number of parts is wrong, or the text is malformed.
    """
    _check_text(text, interface_name)
    parts = re.split(r"(?m)^---[ \t]*$", text.replace("\r\n", "\n"))
    if len(parts) != len(names):
        raise MessageError(
            f"the text has {len(parts)} parts between '---' lines",
            location=interface_name,
            valid=f"{len(names)} for a {interface_name.split('/')[1]}",
        )
    return [parse_msg(part, name)[0] for part, name in zip(parts, names, strict=True)]


def make_definition(name: str, fields: Iterable[MessageField], constants: Iterable[Constant] = ()) -> MessageDefinition:
    """Make a definition after checking its names and values.

    Raises:
        MessageError: A name occurs twice, a fixed length is out of range, or a value does not fit its type.
    """
    fields, constants = tuple(fields), tuple(constants)
    labels: set[str] = set()
    for label in [f.python_name for f in fields] + [c.name for c in constants]:
        if label in labels:
            raise MessageError(f"'{label}' is defined twice", location=name)
        labels.add(label)
    for field in fields:
        if field.arity == "array" and not 0 < field.size <= _MAX_ARRAY:
            raise MessageError(
                f"array length {field.size} is out of range",
                location=f"{name}.{field.name}",
                valid=f"1 to {_MAX_ARRAY}",
            )
    constants = tuple(replace(c, value=_checked_value(c.value, c.type, f"{name}.{c.name}")) for c in constants)
    fields = tuple(replace(f, default=_default(f, name)) for f in fields)
    return MessageDefinition(name, fields or (MessageField(EMPTY_MEMBER, "uint8"),), constants)


def _default(field: MessageField, name: str) -> Scalar | tuple[Scalar, ...] | None:
    location, value = f"{name}.{field.name}", field.default
    if value is None:
        return None
    if field.is_message:
        raise MessageError(
            f"{field.type} cannot have a default value", location=location, valid="no default value for messages"
        )
    if field.arity == "one":
        if isinstance(value, tuple):
            raise MessageError("the default of a single value is a list", location=location)
        return _checked_value(value, field.type, location)
    if not isinstance(value, tuple):  # the parser reads an empty list as a string
        if value != "[]":
            raise MessageError("the default of a list is a single value", location=location, valid="[a, b, c]")
        value = ()
    if field.size and (len(value) > field.size or (field.arity == "array" and len(value) < field.size)):
        raise MessageError(f"the default has {len(value)} values", location=location, valid=field.type_text())
    return tuple(_checked_value(item, field.type, location) for item in value)


def _checked_value(value: Scalar, type_name: str, location: str) -> Scalar:
    """Check `value` and convert it to the type `type_name`."""
    if type_name == "string":
        return value if isinstance(value, str) else str(value)
    if type_name == "bool" and (isinstance(value, bool) or value in (0, 1)):
        return bool(value)
    if type_name in INTEGER_RANGES and isinstance(value, int) and not isinstance(value, bool):
        low, high = INTEGER_RANGES[type_name]
        if low <= value <= high:
            return value
    if type_name.startswith("float") and not isinstance(value, bool):
        try:
            return float(value)
        except (ValueError, OverflowError):
            pass
    raise MessageError(f"{value!r} is not a valid {type_name}", location=location)


def _check_text(text: str, name: str) -> None:
    if not isinstance(text, str) or len(text) > _MAX_TEXT or "\0" in text:
        raise MessageError(
            "the definition text is empty or too long", location=name, valid=f"text of at most {_MAX_TEXT} characters"
        )


def _tidy(text: str) -> str:
    return text.replace("\r\n", "\n").rstrip() + "\n"


def _syntax_error(text: str, name: str) -> MessageError:
    """Return the syntax error with its line: the first one that cannot be parsed alone."""
    from rosbags.typesys import TypesysError
    from rosbags.typesys.msg import MSGParser

    primitives = ", ".join([*STRUCT_CODES, "string"])
    for number, line in enumerate(_tidy(text).splitlines(), 1):
        if line.startswith("===") or line.startswith("MSG:"):
            continue
        try:
            MSGParser(f"MSG: a/msg/A\n{line}\n").specification()
        except (TypesysError, ValueError, RecursionError):
            return MessageError(
                f"cannot parse {line.strip()[:80]!r}",
                location=f"{name}, line {number}",
                valid=f"'type name', 'type name default' or 'type NAME=constant'; types: {primitives}, package/Name",
            )
    return MessageError("cannot parse the definition", location=name)
