"""Reader of a simulator plugin's settings, which records unused ones; canonical names of plugins and topics.

Gazebo Classic says ``libgazebo_ros_diff_drive.so`` or ``libDiffDrivePlugin.so``, Ignition
``libignition-gazebo-diff-drive-system.so`` or ``ignition-gazebo6-diff-drive-system``, Gazebo Sim
``gz-sim-diff-drive-system``, or only the class, ``gz::sim::systems::DiffDrive``.  All are ``diff-drive`` here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from roboyard.description.model import Model, Plugin, XmlElement
from roboyard.errors import DescriptionError

_GZ_SIM_FILE = re.compile(r"^(?:lib)?(?:ignition-gazebo|gz-sim)\d*-(.+?)(?:-system)?(?:\.so|\.dylib|\.dll)?$")
_GAZEBO_ROS_FILE = re.compile(r"^lib(?:hector_)?gazebo_ros_(.+?)\.so$")
_GAZEBO_CLASSIC_FILE = re.compile(r"^lib(\w+?)Plugin\.so$")
_GZ_SIM_CLASS = re.compile(r"^(?:gz::sim|ignition::gazebo)::systems::(?:v\d+::)?(\w+)$")
_WORD_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# Where the generations differ in more than spelling.
_SYNONYMS = {
    "skid-steer-drive": "diff-drive",
    "diff-drive-mod": "diff-drive",
    "skid-steer": "diff-drive",
    "ackermann-drive": "ackermann-steering",
    "planar-move": "planar-move",
    "p3d": "p3d",
    "joint-pose-trajectory": "joint-trajectory-controller",
}


_INVALID_CHARACTER = re.compile(r"[^A-Za-z0-9_/]")
_LEADING_DIGIT = re.compile(r"(^|/)(?=[0-9])")


def to_topic_name(text: str) -> str:
    """Return a topic's name as ROS allows it; "" if nothing remains.

    Simulators allow any character in a topic, and parts that begin with a digit.
    """
    absolute = "/" if text.strip().startswith("/") else ""
    parts = [
        part
        for part in _INVALID_CHARACTER.sub("_", text.strip().lstrip("~").replace("::", "/")).split("/")
        if part.strip("_")
    ]
    return _LEADING_DIGIT.sub(r"\1_", absolute + "/".join(parts)) if parts else ""


def canonical_plugin_name(plugin: Plugin) -> str:
    """Return the plugin's name in lower case with hyphens, such as ``diff-drive``; else its file name."""
    file = plugin.filename.replace("\\", "/").rsplit("/", 1)[-1]
    for pattern, text in (
        (_GZ_SIM_FILE, file),
        (_GAZEBO_ROS_FILE, file),
        (_GZ_SIM_CLASS, plugin.name),
        (_GAZEBO_CLASSIC_FILE, file),
    ):
        match = pattern.match(text)
        if match is not None:
            name = match[1] if pattern is not _GZ_SIM_CLASS else "-".join(_WORD_BOUNDARY.split(match[1]))
            if pattern is _GAZEBO_CLASSIC_FILE:
                name = "-".join(_WORD_BOUNDARY.split(name))
            name = name.lower().replace("_", "-")
            return _SYNONYMS.get(name, name)
    return file.removeprefix("lib").removesuffix(".so").lower().replace("_", "-")


_TRUE, _FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off")
_MAX_SHOWN_LENGTH = 60


def plugin_location(model: Model, plugin: Plugin) -> str:
    """Return file, line and name of a plugin, for messages."""
    return f"{plugin.element.file or model.source or model.name}:{plugin.element.line}, plugin {plugin.name}"


class PluginReader:
    """Reader of the parameters of one plugin.

    Args:
        model: Model that has the plugin.
        plugin: The plugin.
        location: Its location, where that is not a line of the description.

    Attributes:
        location: File, line and name, for messages.
    """

    def __init__(self, model: Model, plugin: Plugin, location: str = "") -> None:
        self.model, self.plugin = model, plugin
        self.location = location or plugin_location(model, plugin)
        self._used_tags: set[str] = set()
        self._findings: list[str] = []
        self._joints = [joint.name for joint in model.joints]

    # -- values --------------------------------------------------------------------------------------------------------
    def has(self, *tags: str) -> bool:
        """Return whether one of the parameters is stated."""
        return any(self.plugin.element.find(tag) is not None for tag in tags)

    def find_all(self, *tags: str) -> list[XmlElement]:
        """Return all elements with one of these tags, tag by tag."""
        self._used_tags.update(tags)
        return [child for tag in tags for child in self.plugin.element.find_all(tag)]

    def text(self, *tags: str) -> str | None:
        """Return the first of these parameters with a text."""
        return next((child.text.strip() for child in self.find_all(*tags) if child.text.strip()), None)

    def number(self, *tags: str) -> float | None:
        """Return a parameter as a number.

        Raises:
            DescriptionError: It is no number, or not finite.
        """
        text = self.text(*tags)
        return None if text is None else self._parse_number(tags[0], text)

    def numbers(self, *tags: str) -> tuple[float, ...]:
        """Return all numbers of a repeated or listed parameter."""
        return tuple(self._parse_number(tags[0], part) for child in self.find_all(*tags) for part in child.text.split())

    def flag(self, *tags: str, default: bool) -> bool:
        """Return a parameter as a boolean.

        Raises:
            DescriptionError: It is neither true nor false.
        """
        text = self.text(*tags)
        if text is None:
            return default
        if text.lower() not in (*_TRUE, *_FALSE):
            raise DescriptionError(
                f"{tags[0]} {text[:_MAX_SHOWN_LENGTH]!r}", location=self.location, valid="true or false"
            )
        return text.lower() in _TRUE

    def joints(self, *tags: str) -> tuple[str, ...]:
        """Return names of joints.

        Raises:
            DescriptionError: There is no joint of a name.
        """
        return tuple(dict.fromkeys(self._resolve_joint(child.text.strip()) for child in self.find_all(*tags)))

    def _resolve_joint(self, name: str) -> str:
        """Return the joint of a name; in a nested model, which prefixes the names of joints, by the end of the name."""
        nested = [joint for joint in self._joints if joint.endswith(f"::{name}")]
        if name not in self._joints and len(nested) != 1:
            raise DescriptionError(
                f"there is {'no' if not nested else 'more than one'} joint {name[:_MAX_SHOWN_LENGTH]!r}",
                location=self.location,
                valid=f"joints: {', '.join(self._joints) or 'none'}",
            )
        return name if name in self._joints else nested[0]

    def topic(self, *tags: str) -> str | None:
        """Return the name of a topic as ROS allows it."""
        text = self.text(*tags)
        return None if text is None else to_topic_name(text) or None

    def remapped_topic(self, name: str) -> str | None:
        """Return the name that ``<ros><remapping>name:=…`` gives a topic."""
        for ros in self.find_all("ros"):
            for one in (*ros.find_all("remapping"), *ros.find_all("argument")):
                source, arrow, target = one.text.strip().partition(":=")
                if arrow and source.strip("/~") == name:
                    return to_topic_name(target) or None
        return None

    # -- what is left --------------------------------------------------------------------------------------------------
    def add_finding(self, text: str) -> None:
        """Add a finding about the plugin."""
        self._findings.append(text)

    def mark_ignored(self, tags: Sequence[str], reason: str) -> None:
        """Mark parameters as known but not followed, with a finding if they are stated."""
        stated_tags = [tag for tag in tags if self.plugin.element.find(tag) is not None]
        self._used_tags.update(tags)
        if stated_tags:
            self._findings.append(f"{_list_tags(stated_tags)} not followed: {reason}")

    def findings(self) -> tuple[str, ...]:
        """Return all findings, and one about the parameters that no mapper read."""
        self._report_namespace()
        unused_tags = list(dict.fromkeys(c.tag for c in self.plugin.element.children if c.tag not in self._used_tags))
        texts = [
            *self._findings,
            *([f"{_list_tags(unused_tags)} not followed: nothing here does that"] if unused_tags else []),
        ]
        return tuple(f"{self.location}: {note}" for note in texts)

    def _report_namespace(self) -> None:
        namespace = self.text("robotNamespace", "robot_namespace")
        for ros in self.find_all("ros"):
            for child in ros.children:
                if child.tag == "namespace":
                    namespace = child.text.strip() or namespace
        if namespace and namespace.strip("/"):
            self._findings.append(
                f"namespace {namespace[:_MAX_SHOWN_LENGTH]!r} not followed: the run or scenario names it"
            )

    def _parse_number(self, tag: str, text: str) -> float:
        try:
            value = float(text)
        except ValueError as error:
            raise DescriptionError(
                f"{tag} {text[:_MAX_SHOWN_LENGTH]!r} is not a number", location=self.location
            ) from error
        if not math.isfinite(value):
            raise DescriptionError(f"{tag} {text[:_MAX_SHOWN_LENGTH]!r} is not finite", location=self.location)
        return value


def _list_tags(tags: Sequence[str]) -> str:
    return ", ".join(f"<{tag[:_MAX_SHOWN_LENGTH]}>" for tag in tags)
