"""All definitions known to this process: ROS 2 Jazzy's, our own files, and what users register."""

from __future__ import annotations

import threading
from collections.abc import Callable
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from roboyard.config.content_cache import ContentCache, content_key
from roboyard.errors import MessageError
from roboyard.messages.names import near
from roboyard.messages.structure import EMPTY_MEMBER, Constant, Definition, Field, from_data, to_data
from roboyard.messages.text import check_name, make_definition, parse_msg, parse_parts

SERVICE_PARTS = ("Request", "Response")
ACTION_PARTS = ("Goal", "Result", "Feedback")
_UUID, _TIME = "unique_identifier_msgs/msg/UUID", "builtin_interfaces/msg/Time"
_QUATERNION = "geometry_msgs/msg/Quaternion"
_MAX_VALUES = 4_000_000
_MAX_DEPTH = 50


class Library:
    """Definitions by full name, read when first asked for; one a process, safe to use from threads."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._definitions: dict[str, Definition] = {}
        self._unread: dict[str, str] = {}  # full name of a message, service or action -> its text
        self._parsed: dict[str, Any] = {}  # the same names -> their definitions as plain data, where they are cached
        self._jazzy: dict[str, Any] = {}
        self._interfaces: set[str] = set()  # services and actions read
        self._load_index()

    # -- asking --------------------------------------------------------------------------------------------------------
    def get(self, name: str) -> Definition | None:
        """The definition of that full name; parts of services and actions are found under their own names."""
        found = self._definitions.get(name)
        if found is not None:
            return found
        with self.lock:
            owner = name if name in self._unread else interface_of(name)
            if owner in self._unread:
                self._read(owner)
            elif name in self._jazzy and name not in self._definitions:
                self._definitions[name] = _from_rosbags(name, self._jazzy[name])
            return self._definitions.get(name)

    def need(self, name: str, where: str | None = None) -> Definition:
        """As ``get``.

        Raises:
            MessageError: unknown; names near ones.
        """
        found = self.get(name)
        if found is None:
            raise MessageError(f"unknown type '{name[:200]}'", where=where, valid=near(name, self.messages()))
        return found

    def has_interface(self, name: str) -> bool:
        """Whether a service or action of that full name exists; reads it."""
        with self.lock:
            if name in self._unread:
                self._read(name)
            return name in self._interfaces

    def messages(self) -> list[str]:
        """Full names of message types, sorted; without the parts of services and actions."""
        every = [*self._jazzy, *self._definitions, *self._unread]
        return sorted({name for name in every if "/msg/" in name})

    def interfaces(self, kind: str) -> list[str]:
        """Full names of services (``srv``) or actions (``action``), sorted."""
        return sorted(name for name in {*self._interfaces, *self._unread} if f"/{kind}/" in name)

    # -- adding --------------------------------------------------------------------------------------------------------
    def register(self, text: str, name: str) -> None:
        """Add a message, service or action by its text.

        Raises:
            MessageError: malformed, names unknown types, or another definition of that name exists.
        """
        check_name(name)
        with self.lock:
            self._admit(self._parse(text, name), name)

    def register_folder(self, path: Path) -> tuple[str, ...]:
        """Add every ``<package>/{msg,srv,action}/Name.*`` under ``path``; types may refer to each other.

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
                    raise MessageError(f"cannot be read: {error}", where=str(file)) from error
        if not found:
            raise MessageError("no definitions here", where=str(path), valid="<package>/msg/Name.msg, srv/, action/")
        with self.lock:
            definitions = [item for name, text in found.items() for item in self._parse(text, name)]
            self._admit(definitions, *found)
        return tuple(sorted(found))

    def _parse(self, text: str, name: str) -> list[Definition]:
        kind = name.split("/")[1]
        if kind == "srv":
            return parse_parts(text, tuple(f"{name}_{part}" for part in SERVICE_PARTS), name)
        if kind == "action":
            return [*parse_parts(text, tuple(f"{name}_{part}" for part in ACTION_PARTS), name), *action_wire(name)]
        return parse_msg(text, name)

    def _admit(self, definitions: list[Definition], *names: str) -> None:
        """Take definitions in, all or none."""
        new: dict[str, Definition] = {}
        for item in definitions:
            known = new.get(item.name) or self.get(item.name)
            if known is not None and not known.same(item):
                raise MessageError(
                    "is already defined otherwise", where=item.name, valid="the same fields, or another name"
                )
            if known is None:
                new[item.name] = item
        for item in new.values():
            for field in item.fields:
                if field.nested and field.type not in new and self.get(field.type) is None:
                    where = f"{item.name}.{field.name}"
                    raise MessageError(
                        f"unknown type '{field.type}'", where=where, valid=near(field.type, self.messages())
                    )
        _check_sizes(new, self.get)
        self._definitions.update(new)
        self._interfaces.update(name for name in names if "/msg/" not in name)

    # -- what comes with us ------------------------------------------------------------------------------------------
    def _load_index(self) -> None:
        """Find the standard definitions and our own: read from the cache, or parsed and put there."""
        texts = _own_texts()
        cache = ContentCache("messages")
        key = content_key(
            [*_parser_sources(), *(part.encode() for name, text in sorted(texts.items()) for part in (name, text))]
        )
        found = cache.read(key)
        if found is None:
            found = self._plain_definitions(texts)
            cache.write(key, found)
        self._jazzy, self._parsed = found["standard"], found["own"]
        self._unread = {name: text for name, text in texts.items() if name not in self._jazzy}

    def _plain_definitions(self, texts: dict[str, str]) -> dict[str, Any]:
        """All definitions that come with this package, as plain data."""
        from rosbags.typesys.stores import ros2_jazzy

        own: dict[str, Any] = {}
        for name, text in texts.items():
            if name not in ros2_jazzy.FIELDDEFS:
                try:
                    own[name] = [to_data(item) for item in self._parse(text, name)]
                except MessageError:
                    continue  # said when somebody asks for it
        return {"standard": ros2_jazzy.FIELDDEFS, "own": own}

    def _read(self, name: str) -> None:
        """Take in one of our own files, and before it the types it refers to."""
        text = self._unread.pop(name)
        data = self._parsed.get(name)
        self._admit(self._parse(text, name) if data is None else list(map(from_data, data)), name)


def _own_texts() -> dict[str, str]:
    """The texts of our own files by full name."""
    found: dict[str, str] = {}
    for package in files(__package__).joinpath("definitions").iterdir():
        for folder in package.iterdir():
            for file in folder.iterdir():
                found[f"{package.name}/{folder.name}/{file.name.rsplit('.', 1)[0]}"] = file.read_text("utf-8")
    return found


def _parser_sources() -> list[bytes]:
    """The code that parses definitions, and the standard definitions, which rosbags holds as code."""
    own = [files(__package__).joinpath(f"{module}.py").read_bytes() for module in ("library", "text", "structure")]
    rosbags = find_spec("rosbags")
    folders = rosbags.submodule_search_locations if rosbags is not None else None
    foreign = [file for folder in folders or () for file in sorted(Path(folder, "typesys").rglob("*.py"))]
    return [*own, *(file.read_bytes() for file in foreign)]


def interface_of(name: str) -> str:
    """The service or action that a part's name belongs to: ``a/srv/B_Request`` is of ``a/srv/B``."""
    for part in (*SERVICE_PARTS, *ACTION_PARTS, "FeedbackMessage", "Event"):
        if name.endswith(f"_{part}"):
            owner = name.removesuffix(f"_{part}")
            if "/action/" in owner:
                owner = owner.removesuffix("_SendGoal").removesuffix("_GetResult")
            return owner
    return name


def action_wire(name: str) -> list[Definition]:
    """The messages that carry an action: two services' and the feedback's (design.ros2.org/articles/actions)."""
    goal_id = Field("goal_id", _UUID)
    return [
        make_definition(f"{name}_SendGoal_Request", [goal_id, Field("goal", f"{name}_Goal")]),
        make_definition(f"{name}_SendGoal_Response", [Field("accepted", "bool"), Field("stamp", _TIME)]),
        make_definition(f"{name}_GetResult_Request", [goal_id]),
        make_definition(f"{name}_GetResult_Response", [Field("status", "int8"), Field("result", f"{name}_Result")]),
        make_definition(f"{name}_FeedbackMessage", [goal_id, Field("feedback", f"{name}_Feedback")]),
    ]


def _from_rosbags(name: str, entry: Any) -> Definition:
    constants, content = entry
    fields = []
    for label, (node, inner) in content:
        kind, size = "one", 0
        if node in (3, 4):  # rosbags.interfaces.Nodetype: ARRAY, SEQUENCE
            kind, size = ("array" if node == 3 else "sequence"), inner[1]
            node, inner = inner[0]
        base, bound = inner if node == 1 else (inner, 0)
        # rosbags keeps no default values; among the standard messages only the quaternion has one
        default = 1.0 if name == _QUATERNION and label == "w" else None
        fields.append(Field(label, base, kind, size, bound, default))  # type: ignore[arg-type]
    return Definition(
        name,
        tuple(fields) or (Field(EMPTY_MEMBER, "uint8"),),
        tuple(Constant(label, kind, value) for label, kind, value in constants),
    )


def _check_sizes(new: dict[str, Definition], known: Callable[[str], Definition | None]) -> None:
    """A message cannot contain itself, nor be so large that its default value is a burden."""
    sizes: dict[str, int] = {}

    def size(name: str, above: tuple[str, ...]) -> int:
        if name in above or len(above) > _MAX_DEPTH:
            what = "contains itself" if name in above else "is nested too deep"
            raise MessageError(what, where=" > ".join((*above, name))[:300])
        if name not in sizes:
            definition = new.get(name) or known(name)
            total = 0
            for field in definition.fields if definition else ():
                one = size(field.type, (*above, name)) if field.nested else 1
                total += one * {"one": 1, "array": field.size, "sequence": 0}[field.kind]
            if total > _MAX_VALUES:
                raise MessageError(f"holds {total} values", where=name, valid=f"at most {_MAX_VALUES}")
            sizes[name] = total
        return sizes[name]

    for name in new:
        size(name, ())


_library: Library | None = None
_library_lock = threading.Lock()


def library() -> Library:
    """The library of this process, made when first asked for."""
    global _library
    if _library is None:
        with _library_lock:
            if _library is None:
                _library = Library()
    return _library
