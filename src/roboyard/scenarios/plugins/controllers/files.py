"""Which files configure a robot's controllers: those its plugins name, else those that lie about in its packages."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from roboyard.description.model import Model
from roboyard.description.resources import Resources, find_bringup_packages
from roboyard.scenarios.plugins.controllers.settings import Controller, UnreadableError, read_controllers
from roboyard.scenarios.plugins.names import canonical

CONTROL = {
    "control", "gz-ros2-control", "gz-ros2-control-system", "ign-ros2-control", "ign-ros2-control-system",
    "gazebo-ros2-control",
}  # fmt: skip
"""Canonical names of the plugins that load controllers."""
_MOST_FILES = 200
_MOVING = ("drive", "steer", "tricycle", "wheel")


@dataclass(frozen=True)
class Found:
    """Controllers, whether their files were guessed, and what there is to say."""

    controllers: tuple[Controller, ...] = ()
    guessed: bool = False
    findings: tuple[str, ...] = ()


def find_controllers(model: Model) -> Found:
    """The controllers that belong to ``model``.

    Files that a plugin's ``<parameters>`` name count alone.  Without any, a robot that says which commands its joints
    take gets the file of its own package's ``config`` folder, or of a package for its control beside it, whose
    controllers fit its joints best.
    """
    named, findings = _named(model)
    if named:
        try:
            return Found(tuple(read_controllers(named)), False, tuple(findings))
        except UnreadableError as error:
            findings.append(f"{named[0]}: {error}: its controllers are not read")
    if not any(interface.commands for interface in model.interfaces) or model.source is None:
        return Found((), False, tuple(findings))
    best: tuple[int, tuple[Controller, ...]] = (0, ())
    for path in _beside(model.source):
        try:
            controllers = tuple(read_controllers([path]))
        except UnreadableError:
            continue
        score = _fit(model, controllers)
        if score > best[0]:
            best = (score, controllers)
    if best[1]:
        findings.append(
            f"controllers taken from {best[1][0].file}: no plugin names a file, and this one fits the joints"
        )
    return Found(best[1], True, tuple(findings))


def _named(model: Model) -> tuple[list[Path], list[str]]:
    resources = Resources((), os.environ)
    files: list[Path] = []
    findings = []
    for plugin in model.plugins:
        if plugin.element.tag == "ros2_control" or canonical(plugin) not in CONTROL:
            continue
        for child in plugin.element.children:
            text = child.text.strip()
            if child.tag not in ("parameters", "configuration") or not text:
                continue
            found = resources.resolve(_uri(text), model.source)
            where = f"{child.file or model.source or model.name}:{child.line}, plugin {plugin.name}"
            if found.path is None and model.source is not None:
                near = [one for one in _beside(model.source) if one.name == Path(text).name]
                if near:
                    files.append(near[0])
                    findings.append(f"{where}: {text[:120]}: {found.problem}; {near[0]} taken")
                    continue
            if found.path is None:
                findings.append(f"{where}: {text[:120]}: {found.problem}: no controllers are read")
            else:
                files.append(found.path)
    return list(dict.fromkeys(files)), findings


def _uri(text: str) -> str:
    """``$(find-pkg-share name)/path`` and ``$(find name)/path`` as package://name/path."""
    for word in ("$(find-pkg-share ", "$(find "):
        if text.startswith(word) and ")" in text:
            name, _, rest = text[len(word) :].partition(")")
            return f"package://{name.strip()}/{rest.lstrip('/')}"
    return text


def _beside(source: Path) -> Iterator[Path]:
    """YAML files that may configure controllers, those of the robot's own package first; in a fixed order."""
    seen = 0
    for folder in find_bringup_packages(source):
        for sub in ("config", "control", "params", "cfg", "bringup/config"):
            for path in sorted((folder / sub).glob("*.yaml")) + sorted((folder / sub).glob("*/*.yaml")):
                seen += 1
                if seen > _MOST_FILES:
                    return
                if path.is_file():
                    yield path


def _fit(model: Model, controllers: tuple[Controller, ...]) -> int:
    """How many of the model's joints the controllers name; 0 if one of theirs is not there. Drives count more."""
    joints = {joint.name for joint in model.joints}
    score = 0
    for one in controllers:
        for key, setting in one.settings.items():
            if not ("joint" in key.rpartition(".")[2] or "wheel" in key or "steer" in key):
                continue
            values = setting.value if isinstance(setting.value, list) else [setting.value]
            for value in values:
                if isinstance(value, str) and ("." not in key or key.startswith("traction")):
                    if value not in joints:
                        return 0
                    score += 3 if any(word in one.kind.lower() for word in _MOVING) else 1
    return score
