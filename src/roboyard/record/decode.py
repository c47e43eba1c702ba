"""Turns the bytes of a recording into messages by the definitions that the recording itself carries.

A type that Roboyard knows with the same fields becomes its own class; an unknown one is registered; one that is known
but looks different in the recording (another ROS distribution) is read by the recording's definition into a class of
its own.  ROS 1 messages become the ROS 2 messages of the same name where there is one.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Any

import zstandard
from rosbags.convert.converter import is_same_wireformat, migrate_bytes
from rosbags.interfaces.typing import Typesdict
from rosbags.serde import SerdeError
from rosbags.typesys import Stores, TypesysError, get_types_from_idl, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from roboyard import messages
from roboyard.errors import MessageError, RecordingError, RoboyardError, UnknownNameError
from roboyard.record.compressed import ZSTD
from roboyard.record.mcap_blocks import MAX_CHUNK
from roboyard.record.recording import Connection, Decode, brief

_MAX_DEFINITION = 1 << 20
_TYPE = re.compile(r"^[A-Za-z]\w*/(msg|srv|action)/[A-Za-z]\w*$", re.ASCII)
_RENAMED = {"tf/msg/tfMessage": "tf2_msgs/msg/TFMessage"}
_DAMAGE = (
    SerdeError,
    MessageError,
    struct.error,
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    AssertionError,
    ArithmeticError,
    MemoryError,
    RecursionError,
)
"""What rosbags is seen to raise on damaged bytes."""


def normal_type(name: str) -> str:
    """ "pkg/Name" as "pkg/msg/Name"; a full name stays."""
    return name.replace("/", "/msg/") if name.count("/") == 1 else name


def decoder(connection: Connection, where: str, warnings: list[str]) -> Decode:
    """What decodes the messages of ``connection``.

    Args:
        connection: Its type, definition and encoding.
        where: The recording, for errors.
        warnings: Gets a sentence when the type differs from the one Roboyard knows.

    Raises:
        RecordingError: encoding or type is unknown, or the definition cannot be read.
    """
    name = connection.type
    if connection.encoding not in ("cdr", "ros1"):
        raise RecordingError(
            f"topic {connection.topic} is encoded as '{connection.encoding}'", where=where, valid="cdr or ros1"
        )
    if not _TYPE.match(name):
        raise RecordingError(f"topic {connection.topic} has the type '{name}'", where=where, valid="package/msg/Name")
    try:
        decode = _ros1(connection) if connection.encoding == "ros1" else _cdr(connection, warnings)
    except (TypesysError, RoboyardError, KeyError, ValueError, AssertionError, RecursionError) as error:
        known = isinstance(error, TypesysError | RoboyardError)
        reason = brief(error) if known else f"{type(error).__name__}: {brief(error)}"
        raise RecordingError(f"the definition of {name} cannot be used: {reason}", where=where) from error

    def guarded(data: bytes) -> Any:
        try:
            return decode(unpacked(data))
        except _DAMAGE as error:
            raise RecordingError(
                f"a message of {len(data)} bytes on {connection.topic} is no {name}: {brief(error)}", where=where
            ) from error

    return guarded


def unpacked(data: bytes) -> bytes:
    """A message, unpacked if ``ros2 bag record --compression-mode message`` compressed it; no CDR begins as zstd does.

    Raises:
        ValueError: it is damaged or too large.
    """
    if not data.startswith(ZSTD):
        return data
    try:
        with zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(data) as reader:
            plain = reader.read(MAX_CHUNK + 1)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error
    if len(plain) > MAX_CHUNK:
        raise ValueError(f"unpacks to more than {MAX_CHUNK} bytes")
    return plain


def definitions(text: str, form: str, name: str) -> Typesdict:
    """Fields of ``name`` and of the types nested in it.

    Raises:
        TypesysError: the text is no such definition.
    """
    if len(text) > _MAX_DEFINITION:
        raise TypesysError(f"it is {len(text)} characters long")
    if not text.strip() and form == "":
        return {}
    if form in ("ros2msg", "ros1msg", ""):
        return get_types_from_msg(text, name)
    if form not in ("ros2idl", "omgidl"):
        raise TypesysError(f"it is written as '{form}'")
    types: Typesdict = {}
    separator = "=" * 80 + "\n"
    parts = text.split(separator)[1:] if text.startswith(separator + "IDL: ") else ["\n" + text]
    for part in parts:
        types.update(get_types_from_idl(part.partition("\n")[2]))
    return types


def _known(name: str) -> Typesdict | None:
    """Fields of a type, and of those nested in it, as Roboyard knows them; None when it does not."""
    text = _schema(name)
    return None if text is None else get_types_from_msg(text, name)


def _schema(name: str) -> str | None:
    try:
        return str(messages.schema(name))
    except (MessageError, UnknownNameError):
        return None


def _same(first: Typesdict, second: Typesdict) -> bool:
    return all(first[name][1] == second[name][1] for name in first if name in second)


def _ours(name: str) -> Decode:
    messages.message_type(name)
    deserialize = messages.deserialize
    return lambda data: deserialize(data, name)


def foreign_definition(connection: Connection) -> Typesdict | None:
    """The recording's own definition when Roboyard's class does not fit its messages; None when it does.

    A type that is new here is registered.

    Raises:
        TypesysError: there is no definition, or it cannot be read.
        MessageError: it cannot be registered.
    """
    name, text = connection.type, connection.definition
    if text and text == _schema(name):
        return None
    found = definitions(text, connection.definition_format, name)
    known = _known(name)
    if not found:
        if known is None:
            raise TypesysError("the recording has no definition of it and Roboyard does not know it")
        return None
    if known is not None:
        return None if name in found and _same(found, known) else found
    if connection.definition_format == "ros2msg" and _fits(found):
        messages.register(text, name)
        return None
    return found


def own_definition(connection: Connection) -> str | None:
    """The recording's definition as ROS 2 text, where messages are of a class of its own; None where ours fits.

    Raises:
        RecordingError: it cannot be used.
    """
    try:
        foreign = foreign_definition(connection) if connection.encoding == "cdr" else None
        if foreign is None:
            return None
        return str(_store(foreign).generate_msgdef(connection.type, ros_version=2)[0])
    except (TypesysError, RoboyardError, KeyError, ValueError) as error:
        raise RecordingError(f"the definition of {connection.type} cannot be used: {brief(error)}") from error


def _cdr(connection: Connection, warnings: list[str]) -> Decode:
    name = connection.type
    foreign = foreign_definition(connection)
    if foreign is None:
        return _ours(name)
    if _known(name) is not None:
        warnings.append(f"{name} differs from ROS 2 Jazzy's and is read by the recording's own definition")
    store = _store(foreign)
    store.get_msgdef(name)  # raises KeyError when a nested type is missing
    return lambda data: store.deserialize_cdr(data, name)


def _fits(found: Typesdict) -> bool:
    """Whether every type in ``found`` that Roboyard knows is the same there."""
    for name in sorted(found):
        known = _known(name)
        if known is not None and known[name][1] != found[name][1]:
            return False
    return True


def _store(types: Typesdict) -> Typestore:
    for name in types:
        if not _TYPE.match(name):
            raise TypesysError(f"'{name}' is no type name")
    store = get_typestore(Stores.EMPTY)
    store.register(types)
    return store


def _ros1(connection: Connection) -> Decode:
    source_name = connection.type
    name = _RENAMED.get(source_name, source_name)
    source = _store(definitions(connection.definition, "ros1msg", source_name))
    source.get_msgdef(source_name)  # raises KeyError when a nested type is missing
    if _known(name) is None:
        messages.register(_as_ros2(source, source_name), name)
    target = _store(get_types_from_msg(messages.schema(name), name))
    convert: Callable[[bytes], memoryview]
    if is_same_wireformat(source, target, source_name, name):
        convert = _straight(target, name)
    else:
        convert = _by_fields(source, target, source_name, name)
    deserialize = messages.deserialize
    return lambda data: deserialize(bytes(convert(data)), name)


def _straight(target: Typestore, name: str) -> Callable[[bytes], memoryview]:
    return lambda data: target.ros1_to_cdr(data, name)


def _by_fields(source: Typestore, target: Typestore, old: str, new: str) -> Callable[[bytes], memoryview]:
    cache: dict[str, object] = {}
    return lambda data: migrate_bytes(source, target, old, new, cache, data, src_is2=False, dst_is2=True)


def _as_ros2(source: Typestore, name: str) -> str:
    """Definition text of a ROS 1 type as ROS 2 would have it: the header without its sequence number."""
    types = get_types_from_msg(source.generate_msgdef(name, ros_version=2)[0], name)
    header = _known("std_msgs/msg/Header") or {}
    return str(_store({**types, **header}).generate_msgdef(name, ros_version=2)[0])
