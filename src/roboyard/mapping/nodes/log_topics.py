"""Which topics of a recording are read: lasers and odometry found by type, or named by the user."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from roboyard.errors import RecordingError
from roboyard.record.recording import Recording

SCANS: Final = ("sensor_msgs/msg/LaserScan", "sensor_msgs/msg/MultiEchoLaserScan")
ODOMETRY: Final = "nav_msgs/msg/Odometry"
TRANSFORMS: Final = ("/tf", "/tf_static")
TRUTH: Final = "/truth/"
NONE, FROM_TRANSFORMS = "none", "tf"


@dataclass(frozen=True, slots=True)
class LogTopics:
    """What to read of a recording.

    Attributes:
        scans: Topics of the lasers; all of the robot when empty.
        odometry: Topic of the odometry, "tf" for the transforms, "none" for none; chosen when empty: a topic of
            odometry of the frame that the lasers sit on, else the transforms.
    """

    scans: tuple[str, ...] = ()
    odometry: str = ""


def scan_topics(recording: Recording, wanted: LogTopics) -> list[str]:
    """Topics of scans to read.

    Raises:
        UnknownNameError: a wanted topic does not exist.
        RecordingError: there is no scan, or a wanted topic has other messages.
    """
    topics = recording.topics
    if wanted.scans:
        recording.channels_of(wanted.scans)
        for name in wanted.scans:
            if topics[name].type not in SCANS:
                raise RecordingError(
                    f"{name} carries {topics[name].type}", location=str(recording.path), valid=" or ".join(SCANS)
                )
        names = list(dict.fromkeys(wanted.scans))
    else:
        names = [
            name for name, topic in topics.items() if topic.type in SCANS and topic.count and not name.startswith(TRUTH)
        ]
    if not any(topics[name].count for name in names):
        there = ", ".join(f"{name} ({topic.type})" for name, topic in list(topics.items())[:8])
        raise RecordingError(
            "holds no scan of a laser", location=str(recording.path), valid=f"there is {there or 'nothing'}"
        )
    return names


def odometry_topics(recording: Recording, wanted: LogTopics) -> list[str]:
    """Topics of odometry that may be read, the likeliest first; empty when only transforms are left or none is wanted.

    Raises:
        UnknownNameError: the wanted topic does not exist.
        RecordingError: the wanted topic has other messages.
    """
    topics = recording.topics
    if wanted.odometry in (NONE, FROM_TRANSFORMS):
        return []
    if wanted.odometry:
        recording.channels_of((wanted.odometry,))
        if topics[wanted.odometry].type != ODOMETRY:
            raise RecordingError(
                f"{wanted.odometry} carries {topics[wanted.odometry].type}",
                location=str(recording.path),
                valid=ODOMETRY,
            )
        return [wanted.odometry]
    found = [
        name for name, topic in topics.items() if topic.type == ODOMETRY and topic.count and not name.startswith(TRUTH)
    ]
    return sorted(found, key=lambda name: (name.rpartition("/")[2] != "odom", len(name), name))
