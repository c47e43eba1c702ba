"""Topics that metrics and report sections of a robot read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

OBJECT_POSES_TOPIC, PLACE_POSES_TOPIC = "/truth/objects", "/truth/places"
"""Topics: things that are moved; marks, as places drawn on the floor, or on carriers that a plugin calls so."""


@dataclass(frozen=True, slots=True)
class RobotTopics:
    """Where a robot's truth and its own opinion are published, and what it is told to do (absolute names).

    ``command`` is what anybody wants of it, ``drive`` what arbitration lets through; ``filtered`` is fused odometry,
    ``located`` where a localisation in a map says it is; ``map`` and ``path`` come from a SLAM node, ``navigation``
    is how the navigator says its drives go, ``exploration`` how an explorer says it stands, ``octree`` its map
    of space, ``jog`` what drives single joints of its arm.
    """

    truth: str
    contacts: str
    odometry: str
    command: str
    drive: str
    filtered_odometry: str = "/odometry/filtered"
    localization: str = "/amcl_pose"
    map: str = "/map"
    path: str = "/path"
    navigation: str = "/navigator/status"
    namespace: str = ""
    exploration: str = "/exploration"
    octree: str = "/octomap_full"
    jog: str = "/move_velocity"

    @classmethod
    def for_robot(cls, robot: str, namespace: str = "", remappings: Mapping[str, str] | None = None) -> RobotTopics:
        """The standard names: truth goes by the robot's name, the rest by its namespace.

        Args:
            robot: Name in the run.
            namespace: "" or "/name".
            moved: Topics that lie elsewhere: {"odom": "base/odom"}.
        """

        def resolve(name: str) -> str:
            name = (remappings or {}).get(name, name)
            return name if name.startswith("/") else f"{namespace}/{name}"

        truth = f"/truth/{robot}"
        return cls(
            f"{truth}/odom", f"{truth}/contacts", resolve("odom"), resolve("cmd_vel"), resolve("cmd_vel_out"),
            resolve("odometry/filtered"), resolve("amcl_pose"), resolve("map"), resolve("path"),
            resolve("navigator/status"), namespace, resolve("exploration"), resolve("octomap_full"),
            resolve("move_velocity"),
        )  # fmt: skip
