"""Messages that metrics cannot be computed from: found before a collector gets them, counted and reported once."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

import numpy as np

from roboyard.messages.convert import is_finite_twist
from roboyard.messages.time import to_nanoseconds

RejectionReason = Literal["not finite", "stamped in the future", "stamped too early", "malformed"]
_MAX_CLOCK_OFFSET_NS: Final = 1_000_000
"""A stamp may be so far ahead of the run's clock: other programs compute times in floating point [ns]."""
_MAX_GAP_NS: Final = 1_000_000_000
"""A metric is not measured over a part of the run if only rejected messages came for longer than this [ns]."""


@dataclass(slots=True)
class RejectedMessages:
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
    reason: RejectionReason
    text: str
    count: int
    first_ns: int
    last_ns: int
    metrics_by_robot: dict[str, list[str]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """As metrics.json has it."""
        return {
            "topic": self.topic, "reason": self.reason, "text": self.text, "count": self.count,
            "first": self.first_ns * 1e-9, "last": self.last_ns * 1e-9, "metrics": self.metrics_by_robot,
        }  # fmt: skip


class MessageChecker:
    """Decides which messages metrics are computed from, and keeps account of the others.

    A message is rejected if a number that metrics use is not finite.  On topics whose stamps are compared with those of
    the truth it is also rejected if its stamp is in the future of the run's clock, before that of the message before
    it, or before that of the newest truth.

    Args:
        report: Called with one line for the first message of each topic and reason.
    """

    def __init__(self, warn: Callable[[str], None] | None = None) -> None:
        self._warn = warn
        self._truth_topics: dict[str, str] = {}
        self._first_stamp_ns: dict[str, int] = {}
        self._last_stamp_ns: dict[str, int] = {}
        self._rejections: dict[tuple[str, str], RejectedMessages] = {}
        self._rejected_since_ns: dict[str, int] = {}
        self._longest_gaps: dict[str, tuple[int, int]] = {}

    @property
    def rejections(self) -> list[RejectedMessages]:
        """Everything that was rejected, in the order in which it first happened."""
        return list(self._rejections.values())

    def check_stamps(self, truth_topics: Mapping[str, str]) -> None:
        """From now on look at the stamps of topics, each of which is held against a topic with the truth."""
        self._truth_topics.update(truth_topics)
        self._truth_topics.update(dict.fromkeys(truth_topics.values(), ""))

    def find_problem(self, topic: str, message: Any, time_ns: int) -> tuple[RejectionReason, str] | None:
        """Why a message cannot be used; None if it can.

        Args:
            topic: Its topic.
            message: The message.
            time_ns: When it was published, by the run's clock [ns].
        """
        number_name = find_nonfinite_number(message)
        if number_name:
            return "not finite", f"{number_name} is not finite"
        truth_topic = self._truth_topics.get(topic)
        if truth_topic is None:
            return None
        stamp_ns = to_nanoseconds(message.header.stamp)
        if stamp_ns > time_ns + _MAX_CLOCK_OFFSET_NS:
            return "stamped in the future", f"its stamp is {(stamp_ns - time_ns) * 1e-9:.4g} s ahead of the clock"
        if stamp_ns < self._last_stamp_ns.get(topic, stamp_ns):
            lag = (self._last_stamp_ns[topic] - stamp_ns) * 1e-9
            return "stamped too early", f"its stamp is {lag:.4g} s before that of the message before it"
        if self._first_stamp_ns.get(truth_topic, stamp_ns) <= stamp_ns < self._last_stamp_ns.get(truth_topic, stamp_ns):
            lag = (self._last_stamp_ns[truth_topic] - stamp_ns) * 1e-9
            return "stamped too early", f"its stamp is {lag:.4g} s before the newest truth, which it is compared with"
        self._first_stamp_ns.setdefault(topic, stamp_ns)
        self._last_stamp_ns[topic] = stamp_ns
        return None

    def accept(self, topic: str) -> None:
        """A message of this topic was used: what follows is another part of the run."""
        self._rejected_since_ns.pop(topic, None)

    def reject(
        self, topic: str, reason: RejectionReason, text: str, time_ns: int, metrics_by_robot: Mapping[str, list[str]]
    ) -> None:
        """A message of this topic was not used.

        Args:
            topic: Its topic.
            reason: Why, in a word or three.
            text: The same in a sentence.
            time_ns: When it was published [ns].
            robots: Names of the metrics that rest on the topic, by robot.
        """
        rejection = self._rejections.get((topic, reason))
        if rejection is None:
            rejection = self._rejections[(topic, reason)] = RejectedMessages(topic, reason, text, 0, time_ns, time_ns)
            if self._warn is not None:
                self._warn(f"metrics do not use a message on {topic}: {text}; more of these are only counted")
        rejection.count += 1
        rejection.last_ns = time_ns
        for robot, names in metrics_by_robot.items():
            metrics = rejection.metrics_by_robot.setdefault(robot, [])
            metrics += [name for name in names if name not in metrics]
        start_ns = self._rejected_since_ns.setdefault(topic, time_ns)
        gap = self._longest_gaps.get(topic)
        if gap is None or time_ns - start_ns > gap[1] - gap[0]:
            self._longest_gaps[topic] = start_ns, time_ns

    def rejection_reasons(self) -> dict[str, dict[str, str]]:
        """By robot and metric, why a criterion must not rest on the metric.

        That is so if it uses a topic with numbers that are not finite, or with messages that nothing can be read from,
        or if for more than a second, or ever, only messages came that had to be rejected.
        """
        reasons: dict[str, dict[str, str]] = {}
        for rejection in self._rejections.values():
            start, end = self._longest_gaps[rejection.topic]
            if rejection.reason in ("not finite", "malformed"):
                text = f"messages on {rejection.topic} rejected ({rejection.count}): {rejection.text}"
            elif rejection.topic not in self._last_stamp_ns:
                text = f"messages on {rejection.topic} {rejection.reason}: all {rejection.count} of them"
            elif end - start > _MAX_GAP_NS:
                interval = f"{start * 1e-9:.4g} s to {end * 1e-9:.4g} s"
                text = f"not measured from {interval}: messages on {rejection.topic} {rejection.reason}"
            else:
                continue
            for robot, names in rejection.metrics_by_robot.items():
                for name in names:
                    reasons.setdefault(robot, {}).setdefault(name, text)
        return reasons

    def save_state(self) -> dict[str, Any]:
        """All it knows, as plain data."""
        return {
            "first": dict(self._first_stamp_ns),
            "newest": dict(self._last_stamp_ns),
            "since": dict(self._rejected_since_ns),
            "gaps": dict(self._longest_gaps),
            "rows": [asdict(row) for row in self._rejections.values()],
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Counterpart of `save`."""
        self._first_stamp_ns, self._last_stamp_ns = dict(state["first"]), dict(state["newest"])
        self._rejected_since_ns = dict(state["since"])
        self._longest_gaps = {topic: (int(gap[0]), int(gap[1])) for topic, gap in state["gaps"].items()}
        rows = [RejectedMessages(**row) for row in state["rows"]]
        self._rejections = {(row.topic, row.reason): row for row in rows}


def find_nonfinite_number(message: Any) -> str:
    """Which number of a message that metrics use is not finite; "" if all are, or the type is none of those checked.

    Covariances are not looked at, nor velocities and efforts of joint states, which many drivers leave undefined.
    """
    check = _CHECKS.get(message.__class__.__name__)
    if check is None:
        return ""
    return check(message)


def _check_pose(pose: Any, name: str = "the pose") -> str:
    p, q = pose.position, pose.orientation
    return "" if math.isfinite(p.x + p.y + p.z + q.w + q.x + q.y + q.z) else name


def _check_odometry(message: Any) -> str:
    return _check_pose(message.pose.pose) or _check_twist(message.twist.twist)


def _check_joint_state(message: Any) -> str:
    return "" if np.isfinite(message.position).all() else "a joint's position"


def _check_map(message: Any) -> str:
    info = message.info
    return _check_pose(info.origin, "the map's origin") or (
        "" if math.isfinite(info.resolution) else "the map's cell size"
    )


def _check_navigation_status(message: Any) -> str:
    return _check_pose(message.goal, "the goal") or ("" if math.isfinite(message.elapsed) else "its time")


def _check_path(message: Any) -> str:
    return next(filter(None, (_check_pose(item.pose, "a pose of the path") for item in message.poses[-1:])), "")


def _check_transforms(message: Any) -> str:
    for item in message.transforms:
        t, q = item.transform.translation, item.transform.rotation
        if not math.isfinite(t.x + t.y + t.z + q.w + q.x + q.y + q.z):
            return f"the pose of {item.child_frame_id}"
    return ""


def _check_twist(message: Any) -> str:
    return "" if is_finite_twist(message) else "the twist"


def _check_person_body(message: Any) -> str:
    if not (np.isfinite(message.radii).all() and np.isfinite(message.lengths).all()):
        return "a part's size"
    if any(_check_pose(pose) for pose in message.poses):
        return "a part's pose"
    vectors = (*message.velocities, *message.peak_forces)
    return "" if all(math.isfinite(v.x + v.y + v.z) for v in vectors) else "a part's velocity or force"


_CHECKS: Final[Mapping[str, Callable[[Any], str]]] = {
    "Odometry": _check_odometry,
    "PoseWithCovarianceStamped": lambda message: _check_pose(message.pose.pose),
    "JointState": _check_joint_state,
    "OccupancyGrid": _check_map,
    "NavigationStatus": _check_navigation_status,
    "Path": _check_path,
    "PersonBody": _check_person_body,
    "TFMessage": _check_transforms,
    "Twist": _check_twist,
    "IDAndFloat": lambda message: "" if math.isfinite(message.value) else "the value",
}
"""What is looked at, by the class of messages."""
