"""Reads a plugin's parameters, and remembers which nobody asked for."""

from __future__ import annotations

import math
from collections.abc import Sequence

from roboyard.description.model import Model, Plugin, XmlElement
from roboyard.errors import DescriptionError
from roboyard.scenarios.plugins.names import as_topic

_TRUE, _FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off")
_SHOWN = 60


def place_of(model: Model, plugin: Plugin) -> str:
    """File, line and name of a plugin, for messages."""
    return f"{plugin.element.file or model.source or model.name}:{plugin.element.line}, plugin {plugin.name}"


class PluginReader:
    """The parameters of one plugin.

    Args:
        model: Whose.
        plugin: Which.
        where: Its place, where that is not a line of the description.

    Attributes:
        where: File, line and name, for messages.
    """

    def __init__(self, model: Model, plugin: Plugin, where: str = "") -> None:
        self.model, self.plugin = model, plugin
        self.where = where or place_of(model, plugin)
        self._asked: set[str] = set()
        self._notes: list[str] = []
        self._joints = [joint.name for joint in model.joints]

    # -- values --------------------------------------------------------------------------------------------------------
    def has(self, *tags: str) -> bool:
        """Whether one of the parameters is given."""
        return any(self.plugin.element.find(tag) is not None for tag in tags)

    def all(self, *tags: str) -> list[XmlElement]:
        """Every element with one of these tags, tag by tag."""
        self._asked.update(tags)
        return [child for tag in tags for child in self.plugin.element.find_all(tag)]

    def text(self, *tags: str) -> str | None:
        """The first of these parameters that says something."""
        return next((child.text.strip() for child in self.all(*tags) if child.text.strip()), None)

    def number(self, *tags: str) -> float | None:
        """A parameter as a number.

        Raises:
            DescriptionError: it is none, or not finite.
        """
        text = self.text(*tags)
        return None if text is None else self._number(tags[0], text)

    def numbers(self, *tags: str) -> tuple[float, ...]:
        """All numbers of a repeated or listed parameter."""
        return tuple(self._number(tags[0], part) for child in self.all(*tags) for part in child.text.split())

    def flag(self, *tags: str, default: bool) -> bool:
        """A parameter as yes or no.

        Raises:
            DescriptionError: it is neither.
        """
        text = self.text(*tags)
        if text is None:
            return default
        if text.lower() not in (*_TRUE, *_FALSE):
            raise DescriptionError(f"{tags[0]} {text[:_SHOWN]!r}", location=self.where, valid="true or false")
        return text.lower() in _TRUE

    def joints(self, *tags: str) -> tuple[str, ...]:
        """Names of joints.

        Raises:
            DescriptionError: there is none of a name.
        """
        return tuple(dict.fromkeys(self._joint(child.text.strip()) for child in self.all(*tags)))

    def _joint(self, name: str) -> str:
        """The joint that a plugin calls ``name``: in a nested model, whose names got its prefix, by the name's end."""
        nested = [joint for joint in self._joints if joint.endswith(f"::{name}")]
        if name not in self._joints and len(nested) != 1:
            raise DescriptionError(
                f"there is {'no' if not nested else 'more than one'} joint {name[:_SHOWN]!r}",
                location=self.where,
                valid=f"joints: {', '.join(self._joints) or 'none'}",
            )
        return name if name in self._joints else nested[0]

    def topic(self, *tags: str) -> str | None:
        """A parameter that names a topic, as ROS allows it."""
        text = self.text(*tags)
        return None if text is None else as_topic(text) or None

    def remapped(self, name: str) -> str | None:
        """Where ``<ros><remapping>name:=…`` puts a topic."""
        for ros in self.all("ros"):
            for one in (*ros.find_all("remapping"), *ros.find_all("argument")):
                source, arrow, target = one.text.strip().partition(":=")
                if arrow and source.strip("/~") == name:
                    return as_topic(target) or None
        return None

    # -- what is left --------------------------------------------------------------------------------------------------
    def note(self, text: str) -> None:
        """Say something about the plugin."""
        self._notes.append(text)

    def ignore(self, tags: Sequence[str], why: str) -> None:
        """Parameters that are known and not followed; said if they are given."""
        given = [tag for tag in tags if self.plugin.element.find(tag) is not None]
        self._asked.update(tags)
        if given:
            self._notes.append(f"{_listed(given)} not followed: {why}")

    def findings(self) -> tuple[str, ...]:
        """Everything said, and the parameters that nobody asked for."""
        self._look_at_ros()
        rest = list(dict.fromkeys(c.tag for c in self.plugin.element.children if c.tag not in self._asked))
        notes = [*self._notes, *([f"{_listed(rest)} not followed: nothing here does that"] if rest else [])]
        return tuple(f"{self.where}: {note}" for note in notes)

    def _look_at_ros(self) -> None:
        namespace = self.text("robotNamespace", "robot_namespace")
        for ros in self.all("ros"):
            for child in ros.children:
                if child.tag == "namespace":
                    namespace = child.text.strip() or namespace
        if namespace and namespace.strip("/"):
            self._notes.append(f"namespace {namespace[:_SHOWN]!r} not followed: the run or scenario names it")

    def _number(self, tag: str, text: str) -> float:
        try:
            value = float(text)
        except ValueError as error:
            raise DescriptionError(f"{tag} {text[:_SHOWN]!r} is not a number", location=self.where) from error
        if not math.isfinite(value):
            raise DescriptionError(f"{tag} {text[:_SHOWN]!r} is not finite", location=self.where)
        return value


def _listed(tags: Sequence[str]) -> str:
    return ", ".join(f"<{tag[:_SHOWN]}>" for tag in tags)
