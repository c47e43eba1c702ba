"""A controller's settings out of YAML, each with the line it stands on, whichever of ROS's ways it is written in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from roboyard.config.yaml_tree import MAX_OPEN_BRACKETS, count_open_brackets

MAX_BYTES = 512 * 1024
_MAX_VALUES = 20_000
_MAX_DEPTH = 30
_TYPE = re.compile(r"\w{1,100}/\w{1,100}(/\w{1,100})?")
_KIND = re.compile(r"controller|broadcaster", re.I)


class UnreadableError(Exception):
    """The file is no YAML, or too much of it; the text says which."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A value and its line."""

    value: Any
    line: int


@dataclass(slots=True)
class Controller:
    """One controller.

    Attributes:
        name: Which is also the name of its node.
        type: As ``diff_drive_controller/DiffDriveController``.
        file: Where it is configured.
        line: Of its type.
        ros1: Whether it is written for ros_control of ROS 1.
        settings: By name; levels are joined by dots.
    """

    name: str
    type: str
    file: Path
    line: int
    ros1: bool
    settings: dict[str, Setting] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """The class alone."""
        return self.type.rpartition("/")[2]

    @property
    def package(self) -> str:
        """Who brings the class."""
        return self.type.partition("/")[0]

    @property
    def where(self) -> str:
        """File, line and name, for messages."""
        return f"{self.file}:{self.line}, controller {self.name}"


def read_controllers(files: list[Path]) -> list[Controller]:
    """The controllers of ``files``, in the order of their types; later files overrule earlier ones.

    A type stands among the controller manager's parameters or among the controller's own.

    Raises:
        UnreadableError: a file is no YAML, or too much of it.
    """
    written = [(file, path, setting) for file in files for path, setting in flat(file)]
    ros2 = {file for file, path, _ in written if "ros__parameters" in path}
    entries = [(file, [one for one in path if one != "ros__parameters"], setting) for file, path, setting in written]
    found: dict[str, Controller] = {}
    for file, path, setting in entries:
        if len(path) > 1 and path[-1] == "type" and isinstance(setting.value, str):
            kind = setting.value.strip()
            if _TYPE.fullmatch(kind) and _KIND.search(kind):
                found.setdefault(path[-2], Controller(path[-2], kind, file, setting.line, file not in ros2))
    for _, path, setting in entries:
        for index, word in enumerate(path[:-1]):
            if word in found:
                rest = path[index + 1 :]
                if rest != ["type"]:
                    found[word].settings[".".join(rest)] = setting
                break
    return list(found.values())


def flat(file: Path) -> Iterator[tuple[list[str], Setting]]:
    """Every value of a YAML file: the names that lead to it, the value (lists stay lists) and its line.

    Raises:
        UnreadableError: the file is no YAML, or too much of it.
    """
    try:
        data = file.read_bytes()
        if len(data) > MAX_BYTES:
            raise UnreadableError(f"it has more than {MAX_BYTES} bytes")
        if count_open_brackets(data) > MAX_OPEN_BRACKETS:
            raise UnreadableError(f"it has more than {MAX_OPEN_BRACKETS} brackets within each other")
        documents = list(yaml.compose_all(data, yaml.SafeLoader))
    except OSError as error:
        raise UnreadableError(f"it cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        raise UnreadableError("it is no valid YAML" + (f" (line {line + 1})" if line is not None else "")) from None
    left = [_MAX_VALUES]
    for document in documents:
        if document is not None:
            yield from _walk(document, [], left)


def _walk(node: yaml.Node, path: list[str], left: list[int]) -> Iterator[tuple[list[str], Setting]]:
    left[0] -= 1
    if left[0] < 0 or len(path) > _MAX_DEPTH:
        raise UnreadableError("it holds too much")
    line = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                # "/**/controller_manager" and "linear.x.max_velocity" are levels, too
                words = [word for part in str(key.value).split("/") for word in part.split(".")]
                yield from _walk(value, [*path, *(word for word in words if word and word != "**")], left)
    elif isinstance(node, yaml.SequenceNode):
        left[0] -= len(node.value)
        values = [_scalar(one) for one in node.value[:1000] if isinstance(one, yaml.ScalarNode)]
        yield path, Setting(values, line)
    elif isinstance(node, yaml.ScalarNode):
        yield path, Setting(_scalar(node), line)


def _scalar(node: yaml.ScalarNode) -> Any:
    text = str(node.value)
    match node.tag.rpartition(":")[2]:
        case "bool":
            return text.lower() in ("true", "yes", "on")
        case "int" | "float":
            return _number(text)
        case "null":
            return None
    # YAML 1.1 takes 1e-3 for a text; ROS takes it for a number
    return _number(text) if not node.style and re.fullmatch(r"[-+]?[0-9.]{1,30}[eE][-+]?[0-9]{1,4}", text) else text


def _number(text: str) -> Any:
    try:
        return float(text.replace("_", "").replace(".inf", "inf").replace(".nan", "nan").replace(".Inf", "inf"))
    except ValueError:
        return text
