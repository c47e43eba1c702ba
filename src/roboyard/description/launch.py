"""Launch files in XML, of ROS 1 and ROS 2, as far as they say what ``robot_description`` is.

Nothing is launched.  The parameter names a xacro file with its arguments, or a URDF; what stands round it is read over.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from roboyard.description.resources import Resources
from roboyard.description.values import fault
from roboyard.description.xml import Node

_PARAMETER: Final = "robot_description"
_SUBSTITUTION: Final = re.compile(r"\$\(([^()]*)\)")
_COMMAND: Final = re.compile(r"^\$\(command\s+(.*)\)$", re.DOTALL)
_XACRO: Final = "xacro"


def described_in(root: Node, resources: Resources, given: Mapping[str, str]) -> tuple[Path, dict[str, str]]:
    """The description that a launch file loads, and the arguments for it.

    Args:
        root: The ``<launch>``.
        resources: Find packages.
        given: Values for its ``<arg>``; those of other names go to the xacro file.

    Raises:
        DescriptionError: no ``robot_description`` is set there, or in a way that cannot be read.
    """
    values = dict(given)
    declared = set()
    for node in root.walk():
        if node.tag in ("arg", "let") and node.get("name"):
            declared.add(node.get("name"))
            text = node.get("value") or node.get("default")
            if node.get("name") not in values and (text or "default" in node.attributes):
                values[node.get("name")] = _substituted(text, node, resources, values)
        elif node.tag == "param" and node.get("name").strip("/") == _PARAMETER:
            path, arguments = _loaded(node, resources, values)
            return path, {**{key: value for key, value in given.items() if key not in declared}, **arguments}
    raise fault(
        f"the launch file sets no {_PARAMETER}", root, "the launch file, or the xacro file, that describes the robot"
    )


def _loaded(node: Node, resources: Resources, values: Mapping[str, str]) -> tuple[Path, dict[str, str]]:
    command = node.get("command")
    if not command and (found := _COMMAND.match(node.get("value").strip())):
        command = found[1].strip().strip("'\"")
    if command:
        try:
            words = shlex.split(_substituted(command, node, resources, values))
        except ValueError as error:
            raise fault(f"the command cannot be read: {error}", node, "xacro FILE name:=value") from None
        if not words or Path(words[0]).name not in (_XACRO, "xacro.py", "cat"):
            raise fault(f"{_PARAMETER} comes of the command '{command[:100]}'", node, "xacro FILE name:=value")
        files = [word for word in words[1:] if ":=" not in word and not word.startswith("-")]
        arguments = dict(word.split(":=", 1) for word in words[1:] if ":=" in word)
    else:
        files, arguments = [_substituted(node.get("textfile"), node, resources, values)], {}
    if len(files) != 1 or not files[0]:
        raise fault(f"{_PARAMETER} comes of no one file", node, "command='$(find xacro)/xacro FILE', or textfile=FILE")
    return Path(files[0]), arguments


def _substituted(text: str, node: Node, resources: Resources, values: Mapping[str, str]) -> str:
    """The text with what stands in ``$(…)``, innermost first. Raises DescriptionError."""

    def one(found: re.Match[str]) -> str:
        name, _, rest = found[1].strip().partition(" ")
        substitute = _SUBSTITUTES.get(name)
        if substitute is None:
            raise fault(f"$({found[1][:60]}) is not read", node, ", ".join(f"$({known} …)" for known in _SUBSTITUTES))
        return substitute(rest.strip(), node, resources, values)

    for _ in range(10):
        text, count = _SUBSTITUTION.subn(one, text)
        if not count:
            break
    return text


def _package(rest: str, node: Node, resources: Resources, values: Mapping[str, str]) -> str:
    if rest == _XACRO:
        return _XACRO
    folder = resources.package(rest, node.file)
    if folder is None:
        raise fault(f"the package '{rest[:60]}' is not found", node, "one in ROS_PACKAGE_PATH or AMENT_PREFIX_PATH")
    return str(folder)


def _argument(rest: str, node: Node, resources: Resources, values: Mapping[str, str]) -> str:
    if rest not in values:
        known = ", ".join(sorted(values)) or "there are none"
        raise fault(f"the argument '{rest[:60]}' has no value", node, f"a value for it; those with one: {known}")
    return values[rest]


def _variable(rest: str, node: Node, resources: Resources, values: Mapping[str, str]) -> str:
    name, _, default = rest.partition(" ")
    return os.environ.get(name, default.strip())


def _folder(rest: str, node: Node, resources: Resources, values: Mapping[str, str]) -> str:
    return str(Path(node.file).parent)


_Substitute = Callable[[str, Node, Resources, Mapping[str, str]], str]
_SUBSTITUTES: Final[dict[str, _Substitute]] = {
    "find": _package, "find-pkg-share": _package, "arg": _argument, "var": _argument, "env": _variable,
    "optenv": _variable, "dirname": _folder,
}  # fmt: skip
