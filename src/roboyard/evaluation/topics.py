"""Topics that metrics and report sections of a robot read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

OBJECT_POSES_TOPIC, PLACE_POSES_TOPIC = "/truth/objects", "/truth/places"
"""Topics of the true poses of objects that can be moved, and of places: marked on the floor or on a moving carrier."""
EXTERNAL_REQUEST_TOPIC, EXTERNAL_RESPONSE_TOPIC = "/external/requests", "/external/responses"
"""Topics of service calls to nodes that run externally, and of their responses, as `roboyard.bus` publishes them."""


@dataclass(frozen=True, slots=True)
class RobotTopics:
    """Absolute names of the topics of one robot.

    Attributes:
        truth: Its true odometry.
        contacts: Its true contacts.
        odometry: Odometry of its wheels or legs.
        command: Velocity commands before arbitration.
        drive: Velocity commands after arbitration.
        filtered_odometry: Odometry fused from several sensors.
        localization: Its pose in a map.
        map: Occupancy map of a SLAM node.
        path: Path of a SLAM node.
        navigation: Status of the navigator.
        namespace: Of its topics, "" or "/name".
        exploration: Status of the explorer.
        octree: Octree map.
        jog: Velocity commands of single joints of its arm.
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
        """Return the standard names: the ground truth by the robot's name, the others in its namespace.

        Args:
            robot: Name in the run.
            namespace: "" or "/name".
            remappings: Topics with other names: {"odom": "base/odom"}.
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
