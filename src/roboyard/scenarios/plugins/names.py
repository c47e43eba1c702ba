"""One name for each simulator plugin, whichever generation and spelling a file uses.

Gazebo Classic says ``libgazebo_ros_diff_drive.so`` or ``libDiffDrivePlugin.so``, Ignition
``libignition-gazebo-diff-drive-system.so`` or ``ignition-gazebo6-diff-drive-system``, Gazebo Sim
``gz-sim-diff-drive-system``, or only the class, ``gz::sim::systems::DiffDrive``.  All are ``diff-drive`` here.
"""

from __future__ import annotations

import re

from roboyard.description.model import Plugin

_NEW = re.compile(r"^(?:lib)?(?:ignition-gazebo|gz-sim)\d*-(.+?)(?:-system)?(?:\.so|\.dylib|\.dll)?$")
_CLASSIC = re.compile(r"^lib(?:hector_)?gazebo_ros_(.+?)\.so$")
_OLD = re.compile(r"^lib(\w+?)Plugin\.so$")
_CLASS = re.compile(r"^(?:gz::sim|ignition::gazebo)::systems::(?:v\d+::)?(\w+)$")
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# Where the generations differ in more than spelling.
_SAME = {
    "skid-steer-drive": "diff-drive",
    "diff-drive-mod": "diff-drive",
    "skid-steer": "diff-drive",
    "ackermann-drive": "ackermann-steering",
    "planar-move": "planar-move",
    "p3d": "p3d",
    "joint-pose-trajectory": "joint-trajectory-controller",
}


_BAD = re.compile(r"[^A-Za-z0-9_/]")
_DIGIT = re.compile(r"(^|/)(?=[0-9])")


def as_topic(text: str) -> str:
    """``text`` as a name that ROS allows; "" if nothing of it is left.

    Simulators allow any sign in a topic, and parts that begin with a digit.
    """
    absolute = "/" if text.strip().startswith("/") else ""
    parts = [part for part in _BAD.sub("_", text.strip().lstrip("~").replace("::", "/")).split("/") if part.strip("_")]
    return _DIGIT.sub(r"\1_", absolute + "/".join(parts)) if parts else ""


def canonical(plugin: Plugin) -> str:
    """The plugin's name in lower case with hyphens, e.g. ``diff-drive``; else its bare file name."""
    file = plugin.filename.replace("\\", "/").rsplit("/", 1)[-1]
    for pattern, text in ((_NEW, file), (_CLASSIC, file), (_CLASS, plugin.name), (_OLD, file)):
        found = pattern.match(text)
        if found is not None:
            name = found[1] if pattern is not _CLASS else "-".join(_WORDS.split(found[1]))
            if pattern is _OLD:
                name = "-".join(_WORDS.split(name))
            name = name.lower().replace("_", "-")
            return _SAME.get(name, name)
    return file.removeprefix("lib").removesuffix(".so").lower().replace("_", "-")
