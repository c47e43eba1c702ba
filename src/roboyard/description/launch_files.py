"""XML launch files of ROS 1 and ROS 2, from which the source of ``robot_description`` is read.

Nothing is launched.  The parameter names a xacro file with its arguments, or a URDF; all other content is ignored.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from roboyard.description.resources import Resources
from roboyard.description.xml import XmlNode
from roboyard.description.xml_values import error_at

_PARAMETER: Final = "robot_description"
_SUBSTITUTION: Final = re.compile(r"\$\(([^()]*)\)")
_COMMAND: Final = re.compile(r"^\$\(command\s+(.*)\)$", re.DOTALL)
_XACRO: Final = "xacro"


def find_robot_description(
    root: XmlNode, resources: Resources, launch_arguments: Mapping[str, str]
) -> tuple[Path, dict[str, str]]:
    """Find the description that a launch file loads, and its arguments.

    Args:
        root: The ``<launch>``.
        resources: Finds packages.
        launch_arguments: Values of its ``<arg>``; other names are passed to the xacro file.

    Raises:
        DescriptionError: The file does not set ``robot_description``, or in an unsupported way.
    """
    values = dict(launch_arguments)
    declared = set()
    for node in root.walk():
        if node.tag in ("arg", "let") and node.get("name"):
            declared.add(node.get("name"))
            text = node.get("value") or node.get("default")
            if node.get("name") not in values and (text or "default" in node.attributes):
                values[node.get("name")] = _substitute(text, node, resources, values)
        elif node.tag == "param" and node.get("name").strip("/") == _PARAMETER:
            path, arguments = _read_parameter(node, resources, values)
            return path, {**{key: value for key, value in launch_arguments.items() if key not in declared}, **arguments}
    raise error_at(
        f"the launch file does not set {_PARAMETER}",
        root,
        "the launch file, or the xacro file, that describes the robot",
    )


def _read_parameter(node: XmlNode, resources: Resources, values: Mapping[str, str]) -> tuple[Path, dict[str, str]]:
    command = node.get("command")
    if not command and (found := _COMMAND.match(node.get("value").strip())):
        command = found[1].strip().strip("'\"")
    if command:
        try:
            words = shlex.split(_substitute(command, node, resources, values))
        except ValueError as error:
            raise error_at(f"cannot parse the command: {error}", node, "xacro FILE name:=value") from None
        if not words or Path(words[0]).name not in (_XACRO, "xacro.py", "cat"):
            raise error_at(
                f"{_PARAMETER} is the output of the unsupported command '{command[:100]}'",
                node,
                "xacro FILE name:=value",
            )
        files = [word for word in words[1:] if ":=" not in word and not word.startswith("-")]
        arguments = dict(word.split(":=", 1) for word in words[1:] if ":=" in word)
    else:
        files, arguments = [_substitute(node.get("textfile"), node, resources, values)], {}
    if len(files) != 1 or not files[0]:
        raise error_at(
            f"{_PARAMETER} is not loaded from a file", node, "command='$(find xacro)/xacro FILE', or textfile=FILE"
        )
    return Path(files[0]), arguments


def _substitute(text: str, node: XmlNode, resources: Resources, values: Mapping[str, str]) -> str:
    """Replace all ``$(…)`` in the text, innermost first. Raises DescriptionError."""

    def replace_match(match: re.Match[str]) -> str:
        name, _, operand = match[1].strip().partition(" ")
        substitute = _SUBSTITUTES.get(name)
        if substitute is None:
            raise error_at(
                f"unknown substitution $({match[1][:60]})",
                node,
                ", ".join(f"$({keyword} …)" for keyword in _SUBSTITUTES),
            )
        return substitute(operand.strip(), node, resources, values)

    for _ in range(10):
        text, count = _SUBSTITUTION.subn(replace_match, text)
        if not count:
            break
    return text


def _find_package(operand: str, node: XmlNode, resources: Resources, values: Mapping[str, str]) -> str:
    if operand == _XACRO:
        return _XACRO
    folder = resources.find_package(operand, node.file)
    if folder is None:
        raise error_at(
            f"package '{operand[:60]}' not found", node, "a package in ROS_PACKAGE_PATH or AMENT_PREFIX_PATH"
        )
    return str(folder)


def _argument_value(operand: str, node: XmlNode, resources: Resources, values: Mapping[str, str]) -> str:
    if operand not in values:
        argument_names = ", ".join(sorted(values)) or "none"
        raise error_at(
            f"argument '{operand[:60]}' has no value", node, f"a value for it; arguments with a value: {argument_names}"
        )
    return values[operand]


def _environment_value(operand: str, node: XmlNode, resources: Resources, values: Mapping[str, str]) -> str:
    name, _, default = operand.partition(" ")
    return os.environ.get(name, default.strip())


def _launch_folder(operand: str, node: XmlNode, resources: Resources, values: Mapping[str, str]) -> str:
    return str(Path(node.file).parent)


_Substitute = Callable[[str, XmlNode, Resources, Mapping[str, str]], str]
_SUBSTITUTES: Final[dict[str, _Substitute]] = {
    "find": _find_package, "find-pkg-share": _find_package, "arg": _argument_value, "var": _argument_value,
    "env": _environment_value, "optenv": _environment_value, "dirname": _launch_folder,
}  # fmt: skip
