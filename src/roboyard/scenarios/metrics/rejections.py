"""Messages that metrics cannot be computed from: found before any collector gets them, counted, and reported once."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

import numpy as np

from roboyard.messages.convert import is_finite_twist
from roboyard.messages.time import to_nanoseconds

Reason = Literal["not finite", "stamped in the future", "stamped too early", "malformed"]
_MAX_CLOCK_DIFFERENCE_NS: Final = 1_000_000
"""A stamp may be so far ahead of the run's clock: other programs compute times in floating point [ns]."""
_MAX_GAP_NS: Final = 1_000_000_000
"""A metric is not measured over a part of the run if only rejected messages came for longer than this [ns]."""


@dataclass(slots=True)
class Rejection:
    """Rejected messages of one topic, for one reason.

    Attributes:
        topic: Their topic.
        reason: Why they were rejected, in a word or three.
        text: The first of them in a sentence.
        count: How many there were.
        first_ns: Time of the first [ns].
        last_ns: Time of the last [ns].
        robots: Names of the metrics that rest on them, by robot.
    """

    topic: str
    reason: Reason
    text: str
    count: int
    first_ns: int
    last_ns: int
    robots: dict[str, list[str]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """As metrics.json has it."""
        return {
            "topic": self.topic, "reason": self.reason, "text": self.text, "count": self.count,
            "first": self.first_ns * 1e-9, "last": self.last_ns * 1e-9, "metrics": self.robots,
        }  # fmt: skip


class MessageChecker:
    """Decides which messages metrics are computed from, and keeps account of the others.

    A message is rejected if a number that metrics use is not finite.  On topics whose stamps are compared with those of
    the truth it is also rejected if its stamp is in the future of the run's clock, before that of the message before
    it, or before that of the newest truth.

    Args:
        report: Called with one line for the first message of each topic and reason.
    """

    def __init__(self, report: Callable[[str], None] | None = None) -> None:
        self._report = report
        self._truth_of: dict[str, str] = {}
        self._first: dict[str, int] = {}
        self._newest: dict[str, int] = {}
        self._rows: dict[tuple[str, str], Rejection] = {}
        self._since: dict[str, int] = {}
        self._gaps: dict[str, tuple[int, int]] = {}

    @property
    def rejections(self) -> list[Rejection]:
        """Everything that was rejected, in the order in which it first happened."""
        return list(self._rows.values())

    def compare_stamps(self, truth_of: Mapping[str, str]) -> None:
        """From now on look at the stamps of topics, each of which is held against a topic with the truth."""
        self._truth_of.update(truth_of)
        self._truth_of.update(dict.fromkeys(truth_of.values(), ""))

    def fault_of(self, topic: str, message: Any, time_ns: int) -> tuple[Reason, str] | None:
        """Why a message cannot be used; None if it can.

        Args:
            topic: Its topic.
            message: The message.
            time_ns: When it was published, by the run's clock [ns].
        """
        name = nonfinite_number(message)
        if name:
            return "not finite", f"{name} is not finite"
        truth = self._truth_of.get(topic)
        if truth is None:
            return None
        moment = to_nanoseconds(message.header.stamp)
        if moment > time_ns + _MAX_CLOCK_DIFFERENCE_NS:
            return "stamped in the future", f"its stamp is {(moment - time_ns) * 1e-9:.4g} s ahead of the clock"
        if moment < self._newest.get(topic, moment):
            late = (self._newest[topic] - moment) * 1e-9
            return "stamped too early", f"its stamp is {late:.4g} s before that of the message before it"
        if self._first.get(truth, moment) <= moment < self._newest.get(truth, moment):
            late = (self._newest[truth] - moment) * 1e-9
            return "stamped too early", f"its stamp is {late:.4g} s before the newest truth, which it is compared with"
        self._first.setdefault(topic, moment)
        self._newest[topic] = moment
        return None

    def accept(self, topic: str) -> None:
        """A message of this topic was used: what follows is another part of the run."""
        self._since.pop(topic, None)

    def reject(self, topic: str, reason: Reason, text: str, time_ns: int, robots: Mapping[str, list[str]]) -> None:
        """A message of this topic was not used.

        Args:
            topic: Its topic.
            reason: Why, in a word or three.
            text: The same in a sentence.
            time_ns: When it was published [ns].
            robots: Names of the metrics that rest on the topic, by robot.
        """
        row = self._rows.get((topic, reason))
        if row is None:
            row = self._rows[(topic, reason)] = Rejection(topic, reason, text, 0, time_ns, time_ns)
            if self._report is not None:
                self._report(f"metrics do not use a message on {topic}: {text}; more of these are only counted")
        row.count += 1
        row.last_ns = time_ns
        for robot, names in robots.items():
            metrics = row.robots.setdefault(robot, [])
            metrics += [name for name in names if name not in metrics]
        since = self._since.setdefault(topic, time_ns)
        gap = self._gaps.get(topic)
        if gap is None or time_ns - since > gap[1] - gap[0]:
            self._gaps[topic] = since, time_ns

    def rejection_reasons(self) -> dict[str, dict[str, str]]:
        """By robot and metric, why a criterion must not rest on the metric.

        That is so if it uses a topic with numbers that are not finite, or with messages that nothing can be read from,
        or if for more than a second, or ever, only messages came that had to be rejected.
        """
        found: dict[str, dict[str, str]] = {}
        for row in self._rows.values():
            start, end = self._gaps[row.topic]
            if row.reason in ("not finite", "malformed"):
                text = f"messages on {row.topic} rejected ({row.count}): {row.text}"
            elif row.topic not in self._newest:
                text = f"messages on {row.topic} {row.reason}: all {row.count} of them"
            elif end - start > _MAX_GAP_NS:
                span = f"{start * 1e-9:.4g} s to {end * 1e-9:.4g} s"
                text = f"not measured from {span}: messages on {row.topic} {row.reason}"
            else:
                continue
            for robot, names in row.robots.items():
                for name in names:
                    found.setdefault(robot, {}).setdefault(name, text)
        return found

    def save_state(self) -> dict[str, Any]:
        """All it knows, as plain data."""
        return {
            "first": dict(self._first), "newest": dict(self._newest), "since": dict(self._since),
            "gaps": dict(self._gaps), "rows": [asdict(row) for row in self._rows.values()],
        }  # fmt: skip

    def load_state(self, saved: Mapping[str, Any]) -> None:
        """Counterpart of `save`."""
        self._first, self._newest = dict(saved["first"]), dict(saved["newest"])
        self._since = dict(saved["since"])
        self._gaps = {topic: (int(gap[0]), int(gap[1])) for topic, gap in saved["gaps"].items()}
        rows = [Rejection(**row) for row in saved["rows"]]
        self._rows = {(row.topic, row.reason): row for row in rows}


def nonfinite_number(message: Any) -> str:
    """Which number of a message that metrics use is not finite; "" if all are, or the type is none of those checked.

    Covariances are not looked at, nor velocities and efforts of joint states, which many drivers leave undefined.
    """
    check = _CHECKS.get(message.__class__.__name__)
    if check is None:
        return ""
    return check(message)


def _of_pose(pose: Any, name: str = "the pose") -> str:
    p, q = pose.position, pose.orientation
    return "" if math.isfinite(p.x + p.y + p.z + q.w + q.x + q.y + q.z) else name


def _of_odometry(message: Any) -> str:
    return _of_pose(message.pose.pose) or _of_twist(message.twist.twist)


def _of_joint_state(message: Any) -> str:
    return "" if np.isfinite(message.position).all() else "a joint's position"


def _of_map(message: Any) -> str:
    info = message.info
    return _of_pose(info.origin, "the map's origin") or (
        "" if math.isfinite(info.resolution) else "the map's cell size"
    )


def _of_drive(message: Any) -> str:
    return _of_pose(message.goal, "the goal") or ("" if math.isfinite(message.elapsed) else "its time")


def _of_path(message: Any) -> str:
    return next(filter(None, (_of_pose(item.pose, "a pose of the path") for item in message.poses[-1:])), "")


def _of_transforms(message: Any) -> str:
    for item in message.transforms:
        t, q = item.transform.translation, item.transform.rotation
        if not math.isfinite(t.x + t.y + t.z + q.w + q.x + q.y + q.z):
            return f"the pose of {item.child_frame_id}"
    return ""


def _of_twist(message: Any) -> str:
    return "" if is_finite_twist(message) else "the twist"


def _of_body(message: Any) -> str:
    if not (np.isfinite(message.radii).all() and np.isfinite(message.lengths).all()):
        return "a part's size"
    if any(_of_pose(pose) for pose in message.poses):
        return "a part's pose"
    vectors = (*message.velocities, *message.peak_forces)
    return "" if all(math.isfinite(v.x + v.y + v.z) for v in vectors) else "a part's velocity or force"


_CHECKS: Final[Mapping[str, Callable[[Any], str]]] = {
    "Odometry": _of_odometry,
    "PoseWithCovarianceStamped": lambda message: _of_pose(message.pose.pose),
    "JointState": _of_joint_state,
    "OccupancyGrid": _of_map,
    "NavigationStatus": _of_drive,
    "Path": _of_path,
    "PersonBody": _of_body,
    "TFMessage": _of_transforms,
    "Twist": _of_twist,
    "IDAndFloat": lambda message: "" if math.isfinite(message.value) else "the value",
}
"""What is looked at, by the class of messages."""
