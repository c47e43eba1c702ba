"""Controllers of ros_control and ros2_control: find their YAML files and read their settings with line numbers."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from roboyard.bringup.plugins.reader import canonical_plugin_name
from roboyard.config.yaml_tree import MAX_OPEN_BRACKETS, count_open_brackets
from roboyard.description.model import Model
from roboyard.description.resources import Resources, find_bringup_packages

MAX_BYTES = 512 * 1024
_MAX_VALUES = 20_000
_MAX_DEPTH = 30
_TYPE_PATTERN = re.compile(r"\w{1,100}/\w{1,100}(/\w{1,100})?")
_CLASS_NAME_PATTERN = re.compile(r"controller|broadcaster", re.I)


class InvalidControllerFileError(Exception):
    """A file is no YAML file, or too large; the message says which."""


@dataclass(frozen=True, slots=True)
class ConfigValue:
    """A value and the line of its file."""

    value: Any
    line: int


@dataclass(slots=True)
class ControllerConfig:
    """Configuration of one controller.

    Attributes:
        name: Name, also of its node.
        type: Type, such as ``diff_drive_controller/DiffDriveController``.
        file: File that configures it.
        line: Line of its type.
        ros1: Whether the file is written for ros_control of ROS 1.
        settings: Settings by name; dots join nested names.
    """

    name: str
    type: str
    file: Path
    line: int
    ros1: bool
    settings: dict[str, ConfigValue] = field(default_factory=dict)

    @property
    def class_name(self) -> str:
        """Class of the controller, without the package."""
        return self.type.rpartition("/")[2]

    @property
    def package(self) -> str:
        """Package of the controller's class."""
        return self.type.partition("/")[0]

    @property
    def location(self) -> str:
        """File, line and name, for messages."""
        return f"{self.file}:{self.line}, controller {self.name}"


def read_controllers(files: list[Path]) -> list[ControllerConfig]:
    """Read the controllers of files, in the order of their types; later files override earlier ones.

    The controller manager's parameters or the controller's own state its type.

    Raises:
        InvalidControllerFileError: A file is no YAML file, or too large.
    """
    values = [(file, path, setting) for file in files for path, setting in flatten_yaml(file)]
    ros2_files = {file for file, path, _ in values if "ros__parameters" in path}
    entries = [(file, [one for one in path if one != "ros__parameters"], setting) for file, path, setting in values]
    controllers: dict[str, ControllerConfig] = {}
    for file, path, setting in entries:
        if len(path) > 1 and path[-1] == "type" and isinstance(setting.value, str):
            controller_type = setting.value.strip()
            if _TYPE_PATTERN.fullmatch(controller_type) and _CLASS_NAME_PATTERN.search(controller_type):
                controllers.setdefault(
                    path[-2], ControllerConfig(path[-2], controller_type, file, setting.line, file not in ros2_files)
                )
    for _, path, setting in entries:
        for index, level in enumerate(path[:-1]):
            if level in controllers:
                setting_path = path[index + 1 :]
                if setting_path != ["type"]:
                    controllers[level].settings[".".join(setting_path)] = setting
                break
    return list(controllers.values())


def flatten_yaml(file: Path) -> Iterator[tuple[list[str], ConfigValue]]:
    """Yield every value of a YAML file: its key path, the value (lists stay lists) and its line.

    Raises:
        InvalidControllerFileError: The file is no YAML file, or too large.
    """
    try:
        data = file.read_bytes()
        if len(data) > MAX_BYTES:
            raise InvalidControllerFileError(f"it has more than {MAX_BYTES} bytes")
        if count_open_brackets(data) > MAX_OPEN_BRACKETS:
            raise InvalidControllerFileError(f"it has more than {MAX_OPEN_BRACKETS} brackets within each other")
        documents = list(yaml.compose_all(data, yaml.SafeLoader))
    except OSError as error:
        raise InvalidControllerFileError(f"it cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        raise InvalidControllerFileError(
            "it is no valid YAML" + (f" (line {line + 1})" if line is not None else "")
        ) from None
    values_left = [_MAX_VALUES]
    for document in documents:
        if document is not None:
            yield from _walk(document, [], values_left)


def _walk(node: yaml.Node, path: list[str], values_left: list[int]) -> Iterator[tuple[list[str], ConfigValue]]:
    values_left[0] -= 1
    if values_left[0] < 0 or len(path) > _MAX_DEPTH:
        raise InvalidControllerFileError("it holds too much")
    line = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                # "/**/controller_manager" and "linear.x.max_velocity" are levels, too
                words = [word for part in str(key.value).split("/") for word in part.split(".")]
                yield from _walk(value, [*path, *(word for word in words if word and word != "**")], values_left)
    elif isinstance(node, yaml.SequenceNode):
        values_left[0] -= len(node.value)
        values = [_parse_scalar(one) for one in node.value[:1000] if isinstance(one, yaml.ScalarNode)]
        yield path, ConfigValue(values, line)
    elif isinstance(node, yaml.ScalarNode):
        yield path, ConfigValue(_parse_scalar(node), line)


def _parse_scalar(node: yaml.ScalarNode) -> Any:
    text = str(node.value)
    match node.tag.rpartition(":")[2]:
        case "bool":
            return text.lower() in ("true", "yes", "on")
        case "int" | "float":
            return _parse_number(text)
        case "null":
            return None
    # YAML 1.1 takes 1e-3 for a text; ROS takes it for a number
    return (
        _parse_number(text) if not node.style and re.fullmatch(r"[-+]?[0-9.]{1,30}[eE][-+]?[0-9]{1,4}", text) else text
    )


def _parse_number(text: str) -> Any:
    try:
        return float(text.replace("_", "").replace(".inf", "inf").replace(".nan", "nan").replace(".Inf", "inf"))
    except ValueError:
        return text


CONTROL_PLUGINS = {
    "control", "gz-ros2-control", "gz-ros2-control-system", "ign-ros2-control", "ign-ros2-control-system",
    "gazebo-ros2-control",
}  # fmt: skip
"""Canonical names of the plugins that load controllers."""
_MAX_FILES = 200
_DRIVE_WORDS = ("drive", "steer", "tricycle", "wheel")


@dataclass(frozen=True)
class DiscoveredControllers:
    """Controllers of a model, whether their files were inferred, and findings."""

    controllers: tuple[ControllerConfig, ...] = ()
    guessed: bool = False
    findings: tuple[str, ...] = ()


def find_controllers(model: Model) -> DiscoveredControllers:
    """Find the controllers of a model.

    If ``<parameters>`` of a plugin name files, only these are read. Otherwise, for a model whose interfaces state the
    commands of its joints, that file is read whose controllers match its joints best, of those in the ``config`` folder
    of its package or of a package for its control beside that.
    """
    named_files, findings = _files_named_by_plugins(model)
    if named_files:
        try:
            return DiscoveredControllers(tuple(read_controllers(named_files)), False, tuple(findings))
        except InvalidControllerFileError as error:
            findings.append(f"{named_files[0]}: {error}: its controllers are not read")
    if not any(interface.commands for interface in model.interfaces) or model.source is None:
        return DiscoveredControllers((), False, tuple(findings))
    best: tuple[int, tuple[ControllerConfig, ...]] = (0, ())
    for path in _candidate_files(model.source):
        try:
            controllers = tuple(read_controllers([path]))
        except InvalidControllerFileError:
            continue
        score = _score_joints(model, controllers)
        if score > best[0]:
            best = (score, controllers)
    if best[1]:
        findings.append(
            f"controllers taken from {best[1][0].file}: no plugin names a file, and this one fits the joints"
        )
    return DiscoveredControllers(best[1], True, tuple(findings))


def _files_named_by_plugins(model: Model) -> tuple[list[Path], list[str]]:
    resources = Resources((), os.environ)
    files: list[Path] = []
    findings = []
    for plugin in model.plugins:
        if plugin.element.tag == "ros2_control" or canonical_plugin_name(plugin) not in CONTROL_PLUGINS:
            continue
        for child in plugin.element.children:
            text = child.text.strip()
            if child.tag not in ("parameters", "configuration") or not text:
                continue
            resolved = resources.resolve(_to_package_uri(text), model.source)
            location = f"{child.file or model.source or model.name}:{child.line}, plugin {plugin.name}"
            if resolved.path is None and model.source is not None:
                same_name = [one for one in _candidate_files(model.source) if one.name == Path(text).name]
                if same_name:
                    files.append(same_name[0])
                    findings.append(f"{location}: {text[:120]}: {resolved.problem}; {same_name[0]} taken")
                    continue
            if resolved.path is None:
                findings.append(f"{location}: {text[:120]}: {resolved.problem}: no controllers are read")
            else:
                files.append(resolved.path)
    return list(dict.fromkeys(files)), findings


def _to_package_uri(text: str) -> str:
    """Return ``$(find-pkg-share name)/path`` and ``$(find name)/path`` as package://name/path."""
    for substitution in ("$(find-pkg-share ", "$(find "):
        if text.startswith(substitution) and ")" in text:
            name, _, relative_path = text[len(substitution) :].partition(")")
            return f"package://{name.strip()}/{relative_path.lstrip('/')}"
    return text


def _candidate_files(source: Path) -> Iterator[Path]:
    """Return YAML files that may configure controllers, those of the robot's package first; in a fixed order."""
    num_files = 0
    for folder in find_bringup_packages(source):
        for subfolder in ("config", "control", "params", "cfg", "bringup/config"):
            for path in sorted((folder / subfolder).glob("*.yaml")) + sorted((folder / subfolder).glob("*/*.yaml")):
                num_files += 1
                if num_files > _MAX_FILES:
                    return
                if path.is_file():
                    yield path


def _score_joints(model: Model, controllers: tuple[ControllerConfig, ...]) -> int:
    """Return how many joints of the model the controllers name; 0 if one names an unknown joint. Drives count more."""
    joints = {joint.name for joint in model.joints}
    score = 0
    for controller in controllers:
        for key, setting in controller.settings.items():
            if not ("joint" in key.rpartition(".")[2] or "wheel" in key or "steer" in key):
                continue
            values = setting.value if isinstance(setting.value, list) else [setting.value]
            for value in values:
                if isinstance(value, str) and ("." not in key or key.startswith("traction")):
                    if value not in joints:
                        return 0
                    score += 3 if any(word in controller.class_name.lower() for word in _DRIVE_WORDS) else 1
    return score
