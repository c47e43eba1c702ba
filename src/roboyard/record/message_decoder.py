"""Decodes the messages of a recording with the message definitions that the recording contains.

A type that Roboyard defines with the same fields becomes Roboyard's class.  An unknown type is registered.  A known
type with different fields in the recording (another ROS distribution) is decoded by the recording's definition into a
separate class.  ROS 1 messages become the ROS 2 messages of the same name where these exist.
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
from roboyard.record.compressed_files import ZSTD
from roboyard.record.mcap_format import MAX_CHUNK
from roboyard.record.recording import MessageDecoder, RecordedChannel, short_error_text

_MAX_DEFINITION = 1 << 20
_TYPE = re.compile(r"^[A-Za-z]\w*/(msg|srv|action)/[A-Za-z]\w*$", re.ASCII)
_ROS2_TYPE_NAMES = {"tf/msg/tfMessage": "tf2_msgs/msg/TFMessage"}
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
"""Exceptions that rosbags raises on damaged bytes."""


def normalize_type_name(name: str) -> str:
    """Convert "pkg/Name" to "pkg/msg/Name"; a full name is returned unchanged."""
    return name.replace("/", "/msg/") if name.count("/") == 1 else name


def make_decoder(channel: RecordedChannel, location: str, warnings: list[str]) -> MessageDecoder:
    """Return the decoder for the messages of `channel`.

    Args:
        channel: Channel with type, definition and encoding.
        location: Name of the recording in error messages.
        warnings: List that receives a sentence if the type differs from Roboyard's.

    Raises:
        RecordingError: Encoding or type is unknown, or the definition cannot be read.
    """
    name = channel.type
    if channel.encoding not in ("cdr", "ros1"):
        raise RecordingError(
            f"topic {channel.topic} has the unknown encoding '{channel.encoding}'",
            location=location,
            valid="cdr or ros1",
        )
    if not _TYPE.match(name):
        raise RecordingError(
            f"topic {channel.topic} has the invalid type '{name}'", location=location, valid="package/msg/Name"
        )
    try:
        decode = _ros1_decoder(channel) if channel.encoding == "ros1" else _cdr_decoder(channel, warnings)
    except (TypesysError, RoboyardError, KeyError, ValueError, AssertionError, RecursionError) as error:
        is_definition_error = isinstance(error, TypesysError | RoboyardError)
        reason = (
            short_error_text(error) if is_definition_error else f"{type(error).__name__}: {short_error_text(error)}"
        )
        raise RecordingError(f"the definition of {name} cannot be used: {reason}", location=location) from error

    def decode_checked(data: bytes) -> Any:
        try:
            return decode(decompress_message(data))
        except _DAMAGE as error:
            raise RecordingError(
                f"a message of {len(data)} bytes on {channel.topic} is not a valid {name}: {short_error_text(error)}",
                location=location,
            ) from error

    return decode_checked


def decompress_message(data: bytes) -> bytes:
    """Decompress a message from ``ros2 bag record --compression-mode message``; uncompressed CDR is returned unchanged.

    CDR never starts with the magic bytes of zstd.

    Raises:
        ValueError: The data is damaged or too large.
    """
    if not data.startswith(ZSTD):
        return data
    try:
        with zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(data) as reader:
            plain = reader.read(MAX_CHUNK + 1)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error
    if len(plain) > MAX_CHUNK:
        raise ValueError(f"the decompressed message is larger than {MAX_CHUNK} bytes")
    return plain


def parse_definition(text: str, definition_format: str, name: str) -> Typesdict:
    """Parse the fields of `name` and of the types nested in it.

    Raises:
        TypesysError: The text is not such a definition.
    """
    if len(text) > _MAX_DEFINITION:
        raise TypesysError(f"the text has {len(text)} characters")
    if not text.strip() and definition_format == "":
        return {}
    if definition_format in ("ros2msg", "ros1msg", ""):
        return get_types_from_msg(text, name)
    if definition_format not in ("ros2idl", "omgidl"):
        raise TypesysError(f"the format '{definition_format}' is unknown")
    types: Typesdict = {}
    separator = "=" * 80 + "\n"
    parts = text.split(separator)[1:] if text.startswith(separator + "IDL: ") else ["\n" + text]
    for part in parts:
        types.update(get_types_from_idl(part.partition("\n")[2]))
    return types


def _roboyard_definition(name: str) -> Typesdict | None:
    """Return the fields of a type and of its nested types as Roboyard defines them; None if unknown."""
    text = _roboyard_definition_text(name)
    return None if text is None else get_types_from_msg(text, name)


def _roboyard_definition_text(name: str) -> str | None:
    try:
        return str(messages.schema(name))
    except (MessageError, UnknownNameError):
        return None


def _equal_definitions(first: Typesdict, second: Typesdict) -> bool:
    return all(first[name][1] == second[name][1] for name in first if name in second)


def _roboyard_decoder(name: str) -> MessageDecoder:
    messages.message_type(name)
    deserialize = messages.deserialize
    return lambda data: deserialize(data, name)


def recorded_definition_override(channel: RecordedChannel) -> Typesdict | None:
    """Return the recording's definition if Roboyard's class does not fit its messages; None if it fits.

    A type that is unknown to Roboyard is registered.

    Raises:
        TypesysError: The definition is missing or cannot be read.
        MessageError: The type cannot be registered.
    """
    name, text = channel.type, channel.definition
    if text and text == _roboyard_definition_text(name):
        return None
    found = parse_definition(text, channel.definition_format, name)
    roboyard_definition = _roboyard_definition(name)
    if not found:
        if roboyard_definition is None:
            raise TypesysError("the recording has no definition of it, and Roboyard does not define it")
        return None
    if roboyard_definition is not None:
        return None if name in found and _equal_definitions(found, roboyard_definition) else found
    if channel.definition_format == "ros2msg" and _is_compatible(found):
        messages.register(text, name)
        return None
    return found


def recorded_definition_override_text(channel: RecordedChannel) -> str | None:
    """Return the recording's definition as ROS 2 text if messages have a separate class; None if Roboyard's fits.

    Raises:
        RecordingError: The definition cannot be used.
    """
    try:
        incompatible = recorded_definition_override(channel) if channel.encoding == "cdr" else None
        if incompatible is None:
            return None
        return str(_store(incompatible).generate_msgdef(channel.type, ros_version=2)[0])
    except (TypesysError, RoboyardError, KeyError, ValueError) as error:
        raise RecordingError(f"the definition of {channel.type} cannot be used: {short_error_text(error)}") from error


def _cdr_decoder(channel: RecordedChannel, warnings: list[str]) -> MessageDecoder:
    name = channel.type
    incompatible = recorded_definition_override(channel)
    if incompatible is None:
        return _roboyard_decoder(name)
    if _roboyard_definition(name) is not None:
        warnings.append(f"{name} differs from the type of ROS 2 Jazzy; the recording's own definition is used")
    store = _store(incompatible)
    store.get_msgdef(name)  # raises KeyError when a nested type is missing
    return lambda data: store.deserialize_cdr(data, name)


def _is_compatible(found: Typesdict) -> bool:
    """Return whether every type in `found` that Roboyard defines has the same definition there."""
    for name in sorted(found):
        definition = _roboyard_definition(name)
        if definition is not None and definition[name][1] != found[name][1]:
            return False
    return True


def _store(types: Typesdict) -> Typestore:
    for name in types:
        if not _TYPE.match(name):
            raise TypesysError(f"'{name}' is not a type name")
    store = get_typestore(Stores.EMPTY)
    store.register(types)
    return store


def _ros1_decoder(channel: RecordedChannel) -> MessageDecoder:
    source_name = channel.type
    name = _ROS2_TYPE_NAMES.get(source_name, source_name)
    source = _store(parse_definition(channel.definition, "ros1msg", source_name))
    source.get_msgdef(source_name)  # raises KeyError when a nested type is missing
    if _roboyard_definition(name) is None:
        messages.register(_as_ros2(source, source_name), name)
    target = _store(get_types_from_msg(messages.schema(name), name))
    convert: Callable[[bytes], memoryview]
    if is_same_wireformat(source, target, source_name, name):
        convert = _copy_bytes(target, name)
    else:
        convert = _convert_by_fields(source, target, source_name, name)
    deserialize = messages.deserialize
    return lambda data: deserialize(bytes(convert(data)), name)


def _copy_bytes(target: Typestore, name: str) -> Callable[[bytes], memoryview]:
    return lambda data: target.ros1_to_cdr(data, name)


def _convert_by_fields(source: Typestore, target: Typestore, old: str, new: str) -> Callable[[bytes], memoryview]:
    cache: dict[str, object] = {}
    return lambda data: migrate_bytes(source, target, old, new, cache, data, src_is2=False, dst_is2=True)


def _as_ros2(source: Typestore, name: str) -> str:
    """Return the definition text of a ROS 1 type in ROS 2 form: the header without its sequence number."""
    types = get_types_from_msg(source.generate_msgdef(name, ros_version=2)[0], name)
    header = _roboyard_definition("std_msgs/msg/Header") or {}
    return str(_store({**types, **header}).generate_msgdef(name, ros_version=2)[0])
