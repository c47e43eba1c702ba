"""Registry of all message definitions in this process: ROS 2 Jazzy, the package's own, and user-registered types.

It also resolves short names: ``Twist`` or ``geometry_msgs/Twist`` means ``geometry_msgs/msg/Twist``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from roboyard.config.content_cache import ContentCache, content_key
from roboyard.errors import MessageError, similar_names
from roboyard.messages.message_definition import (
    EMPTY_MEMBER,
    Constant,
    MessageDefinition,
    MessageField,
    from_data,
    to_data,
)
from roboyard.messages.parser import check_type_name, make_definition, parse_msg, parse_parts

# Preferred packages of a bare name that several packages define.
PACKAGE_PREFERENCE = (
    "std_msgs", "geometry_msgs", "sensor_msgs", "nav_msgs", "builtin_interfaces", "tf2_msgs", "std_srvs",
    "visualization_msgs", "diagnostic_msgs", "trajectory_msgs", "action_msgs",
)  # fmt: skip


def resolve_type_name(name: str, kind: str, type_names: Sequence[str]) -> str:
    """Resolve `name` to a full name.

    Args:
        name: ``package/msg/Name``, ``package/Name`` or ``Name``.
        kind: ``msg``, ``srv`` or ``action``.
        type_names: Full names to choose from.

    Raises:
        MessageError: The name is unknown (the error lists similar ones), or ambiguous (it lists the candidates).
    """
    parts = name.split("/")
    if len(parts) == 3 and name in type_names:
        return name
    if len(parts) == 2 and f"{parts[0]}/{kind}/{parts[1]}" in type_names:
        return f"{parts[0]}/{kind}/{parts[1]}"
    if len(parts) == 1:
        candidates = [full for full in type_names if full.rsplit("/", 1)[1] == name]
        if len(candidates) == 1:
            return candidates[0]
        for package in PACKAGE_PREFERENCE:
            if (full := f"{package}/{kind}/{name}") in candidates:
                return full
        if candidates:
            raise MessageError(f"'{name}' is ambiguous", valid=f"one of {', '.join(sorted(candidates))}")
    kind_text = {"msg": "message type", "srv": "service type", "action": "action type"}[kind]
    raise MessageError(f"unknown {kind_text} '{name[:200]}'", valid=suggest_types(name, type_names))


def suggest_types(name: str, type_names: Sequence[str]) -> str:
    """Return names similar to `name`, for the end of an error message."""
    short: dict[str, list[str]] = {}
    for full in type_names:
        short.setdefault(full.rsplit("/", 1)[1].lower(), []).append(full)
    tail = name[:200].rsplit("/", 1)[-1]
    matches = [full for key in similar_names(tail.lower(), short, count=5) for full in short[key]][:5]
    if not matches and "/" in name:
        package = name.split("/", 1)[0] + "/"
        matches = [full for full in type_names if full.startswith(package)][:5]
    kind = type_names[0].split("/")[1] if type_names else "msg"
    return f"similar: {', '.join(matches)}" if matches else f"a package/{kind}/Name; register() adds types"


SERVICE_PARTS = ("Request", "Response")
ACTION_PARTS = ("Goal", "Result", "Feedback")
_UUID, _TIME = "unique_identifier_msgs/msg/UUID", "builtin_interfaces/msg/Time"
_QUATERNION = "geometry_msgs/msg/Quaternion"
_MAX_VALUES = 4_000_000
_MAX_DEPTH = 50


class TypeRegistry:
    """Definitions by full name, parsed on first use; one registry per process, thread-safe."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._definitions: dict[str, MessageDefinition] = {}
        self._unread: dict[str, str] = {}  # text by full name of a message, service or action
        self._parsed: dict[str, Any] = {}  # definitions as plain data by the same names, where they are cached
        self._jazzy: dict[str, Any] = {}
        self._interfaces: set[str] = set()  # services and actions that were parsed
        self._load_index()

    # -- look-up
    # --------------------------------------------------------------------------------------------------------
    def get(self, name: str) -> MessageDefinition | None:
        """Return the definition of a full name; parts of services and actions are found under their own names."""
        found = self._definitions.get(name)
        if found is not None:
            return found
        with self.lock:
            owner = name if name in self._unread else interface_of_part(name)
            if owner in self._unread:
                self._read(owner)
            elif name in self._jazzy and name not in self._definitions:
                self._definitions[name] = _from_rosbags(name, self._jazzy[name])
            return self._definitions.get(name)

    def require(self, name: str, location: str | None = None) -> MessageDefinition:
        """Return the definition as `get` does.

        Raises:
            MessageError: The type is unknown; the error lists similar names.
        """
        found = self.get(name)
        if found is None:
            raise MessageError(
                f"unknown type '{name[:200]}'", location=location, valid=suggest_types(name, self.message_names())
            )
        return found

    def has_interface(self, name: str) -> bool:
        """Return whether a service or action of this full name exists; parses it."""
        with self.lock:
            if name in self._unread:
                self._read(name)
            return name in self._interfaces

    def message_names(self) -> list[str]:
        """Return the full names of message types, sorted, without the parts of services and actions."""
        names = [*self._jazzy, *self._definitions, *self._unread]
        return sorted({name for name in names if "/msg/" in name})

    def interface_names(self, kind: str) -> list[str]:
        """Return the full names of services (``srv``) or actions (``action``), sorted."""
        return sorted(name for name in {*self._interfaces, *self._unread} if f"/{kind}/" in name)

    # -- registration
    # --------------------------------------------------------------------------------------------------------
    def register(self, text: str, name: str) -> None:
        """Register a message, service or action by its text.

        Raises:
            MessageError: The text is malformed, refers to unknown types, or another definition has this name.
        """
        check_type_name(name)
        with self.lock:
            self._add(self._parse(text, name), name)

    def register_folder(self, path: Path) -> tuple[str, ...]:
        """Register every ``<package>/{msg,srv,action}/Name.*`` under `path`; types may refer to each other.

        Returns:
            The full names, sorted.
        """
        found: dict[str, str] = {}
        for suffix in ("msg", "srv", "action"):
            for file in sorted(path.rglob(f"{suffix}/*.{suffix}")):
                name = f"{file.parent.parent.resolve().name}/{suffix}/{file.stem}"
                try:
                    found[name] = file.read_text("utf-8")
                except (OSError, UnicodeDecodeError) as error:
                    raise MessageError(f"cannot be read: {error}", location=str(file)) from error
        if not found:
            raise MessageError(
                "no definitions found in the folder", location=str(path), valid="<package>/msg/Name.msg, srv/, action/"
            )
        with self.lock:
            definitions = [item for name, text in found.items() for item in self._parse(text, name)]
            self._add(definitions, *found)
        return tuple(sorted(found))

    def _parse(self, text: str, name: str) -> list[MessageDefinition]:
        kind = name.split("/")[1]
        if kind == "srv":
            return parse_parts(text, tuple(f"{name}_{part}" for part in SERVICE_PARTS), name)
        if kind == "action":
            return [
                *parse_parts(text, tuple(f"{name}_{part}" for part in ACTION_PARTS), name),
                *action_wire_types(name),
            ]
        return parse_msg(text, name)

    def _add(self, definitions: list[MessageDefinition], *names: str) -> None:
        """Add definitions, all or none."""
        new: dict[str, MessageDefinition] = {}
        for item in definitions:
            existing = new.get(item.name) or self.get(item.name)
            if existing is not None and not existing.is_equivalent(item):
                raise MessageError(
                    "another definition has this name", location=item.name, valid="equal fields, or another name"
                )
            if existing is None:
                new[item.name] = item
        for item in new.values():
            for field in item.fields:
                if field.is_message and field.type not in new and self.get(field.type) is None:
                    location = f"{item.name}.{field.name}"
                    raise MessageError(
                        f"unknown type '{field.type}'",
                        location=location,
                        valid=suggest_types(field.type, self.message_names()),
                    )
        _check_sizes(new, self.get)
        self._definitions.update(new)
        self._interfaces.update(name for name in names if "/msg/" not in name)

    # -- built-in definitions ------------------------------------------------------------------------------------------
    def _load_index(self) -> None:
        """Find the standard and the package's own definitions: read them from the cache, or parse and cache them."""
        texts = _package_texts()
        cache = ContentCache("messages")
        key = content_key(
            [*_parser_sources(), *(part.encode() for name, text in sorted(texts.items()) for part in (name, text))]
        )
        found = cache.read(key)
        if found is None:
            found = self._parse_package_definitions(texts)
            cache.write(key, found)
        self._jazzy, self._parsed = found["standard"], found["own"]
        self._unread = {name: text for name, text in texts.items() if name not in self._jazzy}

    def _parse_package_definitions(self, texts: dict[str, str]) -> dict[str, Any]:
        """Parse all definitions of this package, as plain data."""
        from rosbags.typesys.stores import ros2_jazzy

        package_definitions: dict[str, Any] = {}
        for name, text in texts.items():
            if name not in ros2_jazzy.FIELDDEFS:
                try:
                    package_definitions[name] = [to_data(item) for item in self._parse(text, name)]
                except MessageError:
                    continue  # reported when the type is used
        return {"standard": ros2_jazzy.FIELDDEFS, "own": package_definitions}

    def _read(self, name: str) -> None:
        """Parse one of the package's own files, and before it the types it refers to."""
        text = self._unread.pop(name)
        data = self._parsed.get(name)
        self._add(self._parse(text, name) if data is None else list(map(from_data, data)), name)


def _package_texts() -> dict[str, str]:
    """Return the texts of the package's own files by full name."""
    found: dict[str, str] = {}
    for package in files(__package__).joinpath("definitions").iterdir():
        for folder in package.iterdir():
            for file in folder.iterdir():
                found[f"{package.name}/{folder.name}/{file.name.rsplit('.', 1)[0]}"] = file.read_text("utf-8")
    return found


def _parser_sources() -> list[bytes]:
    """Return the code that parses definitions, and the standard definitions, which rosbags stores as code."""
    local = [
        files(__package__).joinpath(f"{module}.py").read_bytes()
        for module in ("type_registry", "parser", "message_definition")
    ]
    rosbags = find_spec("rosbags")
    folders = rosbags.submodule_search_locations if rosbags is not None else None
    external = [file for folder in folders or () for file in sorted(Path(folder, "typesys").rglob("*.py"))]
    return [*local, *(file.read_bytes() for file in external)]


def interface_of_part(name: str) -> str:
    """Return the service or action of a part: ``a/srv/B`` for ``a/srv/B_Request``."""
    for part in (*SERVICE_PARTS, *ACTION_PARTS, "FeedbackMessage", "Event"):
        if name.endswith(f"_{part}"):
            owner = name.removesuffix(f"_{part}")
            if "/action/" in owner:
                owner = owner.removesuffix("_SendGoal").removesuffix("_GetResult")
            return owner
    return name


def action_wire_types(name: str) -> list[MessageDefinition]:
    """Return the messages that transport an action: of two services and the feedback
    (design.ros2.org/articles/actions).
    """
    goal_id = MessageField("goal_id", _UUID)
    return [
        make_definition(f"{name}_SendGoal_Request", [goal_id, MessageField("goal", f"{name}_Goal")]),
        make_definition(f"{name}_SendGoal_Response", [MessageField("accepted", "bool"), MessageField("stamp", _TIME)]),
        make_definition(f"{name}_GetResult_Request", [goal_id]),
        make_definition(
            f"{name}_GetResult_Response", [MessageField("status", "int8"), MessageField("result", f"{name}_Result")]
        ),
        make_definition(f"{name}_FeedbackMessage", [goal_id, MessageField("feedback", f"{name}_Feedback")]),
    ]


def _from_rosbags(name: str, entry: Any) -> MessageDefinition:
    constants, content = entry
    fields = []
    for label, (node, inner) in content:
        arity, size = "one", 0
        if node in (3, 4):  # rosbags.interfaces.Nodetype: ARRAY, SEQUENCE
            arity, size = ("array" if node == 3 else "sequence"), inner[1]
            node, inner = inner[0]
        base, string_capacity = inner if node == 1 else (inner, 0)
        # rosbags stores no default values; among the standard messages only the quaternion has one
        default = 1.0 if name == _QUATERNION and label == "w" else None
        fields.append(MessageField(label, base, arity, size, string_capacity, default))  # type: ignore[arg-type]
    return MessageDefinition(
        name,
        tuple(fields) or (MessageField(EMPTY_MEMBER, "uint8"),),
        tuple(Constant(label, arity, value) for label, arity, value in constants),
    )


def _check_sizes(new: dict[str, MessageDefinition], find_definition: Callable[[str], MessageDefinition | None]) -> None:
    """Check that a message does not contain itself, and that its default value is not too large."""
    sizes: dict[str, int] = {}

    def size(name: str, parents: tuple[str, ...]) -> int:
        if name in parents or len(parents) > _MAX_DEPTH:
            problem = "contains itself" if name in parents else "is nested too deeply"
            raise MessageError(problem, location=" > ".join((*parents, name))[:300])
        if name not in sizes:
            definition = new.get(name) or find_definition(name)
            total = 0
            for field in definition.fields if definition else ():
                element_size = size(field.type, (*parents, name)) if field.is_message else 1
                total += element_size * {"one": 1, "array": field.size, "sequence": 0}[field.arity]
            if total > _MAX_VALUES:
                raise MessageError(f"the message has {total} values", location=name, valid=f"at most {_MAX_VALUES}")
            sizes[name] = total
        return sizes[name]

    for name in new:
        size(name, ())


_type_registry: TypeRegistry | None = None
_type_registry_lock = threading.Lock()


def type_registry() -> TypeRegistry:
    """Return the registry of this process, created on first use."""
    global _type_registry
    if _type_registry is None:
        with _type_registry_lock:
            if _type_registry is None:
                _type_registry = TypeRegistry()
    return _type_registry


def definition_of(name: str) -> MessageDefinition:
    """Return the definition of a type that is known to exist."""
    return type_registry().require(name)
