"""Detection of messages that metrics cannot be computed from, before a collector gets them."""

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
"""Largest lead of a stamp over the run's clock: other programs compute times in floating point [ns]."""
_MAX_GAP_NS: Final = 1_000_000_000
"""A metric is invalid if only rejected messages came for a longer time [ns]."""


@dataclass(slots=True)
class RejectedMessages:
    """Rejected messages of one topic, for one reason.

    Attributes:
        topic: Their topic.
        reason: Why they were rejected, in at most three words.
        text: What is wrong with the first of them, in a sentence.
        count: Their number.
        first_ns: Time of the first [ns].
        last_ns: Time of the last [ns].
        metrics_by_robot: Names of the metrics that use them, by robot.
    """

    topic: str
    reason: RejectionReason
    text: str
    count: int
    first_ns: int
    last_ns: int
    metrics_by_robot: dict[str, list[str]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return them as metrics.json has them."""
        return {
            "topic": self.topic, "reason": self.reason, "text": self.text, "count": self.count,
            "first": self.first_ns * 1e-9, "last": self.last_ns * 1e-9, "metrics": self.metrics_by_robot,
        }  # fmt: skip


class MessageChecker:
    """Decides which messages metrics are computed from, and counts the others.

    A message is rejected if a number that metrics use is not finite.  On topics whose stamps are compared with those of
    the ground truth it is also rejected if its stamp is ahead of the run's clock, before that of the previous message,
    or before that of the newest ground truth.

    Args:
        warn: Called with one line for the first rejected message of each topic and reason.
    """

    def __init__(self, warn: Callable[[str], None] | None = None) -> None:
        self._warn = warn
        self._truth_topics: dict[str, str] = {}
        self._first_stamp_ns: dict[str, int] = {}
        self._last_stamp_ns: dict[str, int] = {}
        self._rejections: dict[tuple[str, str], RejectedMessages] = {}
        self._rejected_since_ns: dict[str, int] = {}
        self._max_gaps: dict[str, tuple[int, int]] = {}

    @property
    def rejections(self) -> list[RejectedMessages]:
        """All rejected messages, in the order of the first ones."""
        return list(self._rejections.values())

    def check_stamps(self, truth_topics: Mapping[str, str]) -> None:
        """Check the stamps of topics from now on, each against those of a topic of the ground truth."""
        self._truth_topics.update(truth_topics)
        self._truth_topics.update(dict.fromkeys(truth_topics.values(), ""))

    def find_problem(self, topic: str, message: Any, time_ns: int) -> tuple[RejectionReason, str] | None:
        """Return reason and text of why a message cannot be used; None if it can.

        Args:
            topic: Its topic.
            message: The message.
            time_ns: Time of its publication by the run's clock [ns].
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
            return "stamped too early", f"its stamp is {lag:.4g} s before that of the previous message"
        if self._first_stamp_ns.get(truth_topic, stamp_ns) <= stamp_ns < self._last_stamp_ns.get(truth_topic, stamp_ns):
            lag = (self._last_stamp_ns[truth_topic] - stamp_ns) * 1e-9
            return "stamped too early", f"its stamp is {lag:.4g} s before that of the newest ground truth"
        self._first_stamp_ns.setdefault(topic, stamp_ns)
        self._last_stamp_ns[topic] = stamp_ns
        return None

    def accept(self, topic: str) -> None:
        """Note that a message of a topic was used, which ends a gap of rejected ones."""
        self._rejected_since_ns.pop(topic, None)

    def reject(
        self, topic: str, reason: RejectionReason, text: str, time_ns: int, metrics_by_robot: Mapping[str, list[str]]
    ) -> None:
        """Count a message that was not used.

        Args:
            topic: Its topic.
            reason: Why, in at most three words.
            text: The same in a sentence.
            time_ns: Time of its publication [ns].
            metrics_by_robot: Names of the metrics that use the topic, by robot.
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
        gap = self._max_gaps.get(topic)
        if gap is None or time_ns - start_ns > gap[1] - gap[0]:
            self._max_gaps[topic] = start_ns, time_ns

    def rejection_reasons(self) -> dict[str, dict[str, str]]:
        """Return by robot and metric why a criterion must not use the metric.

        That is so if the metric uses a topic with numbers that are not finite or with malformed messages, or a topic
        on which only rejected messages came, for more than a second or in the whole run.
        """
        reasons: dict[str, dict[str, str]] = {}
        for rejection in self._rejections.values():
            start, end = self._max_gaps[rejection.topic]
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
        """Return all counts and times as plain data."""
        return {
            "first": dict(self._first_stamp_ns),
            "newest": dict(self._last_stamp_ns),
            "since": dict(self._rejected_since_ns),
            "gaps": dict(self._max_gaps),
            "rows": [asdict(row) for row in self._rejections.values()],
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore what `save_state` returned."""
        self._first_stamp_ns, self._last_stamp_ns = dict(state["first"]), dict(state["newest"])
        self._rejected_since_ns = dict(state["since"])
        self._max_gaps = {topic: (int(gap[0]), int(gap[1])) for topic, gap in state["gaps"].items()}
        rows = [RejectedMessages(**row) for row in state["rows"]]
        self._rejections = {(row.topic, row.reason): row for row in rows}


def find_nonfinite_number(message: Any) -> str:
    """Return the name of a number that metrics use and that is not finite; "" if there is none.

    Only the types in the table below are checked.  Covariances are not, nor are velocities and efforts of joint states,
    which many drivers leave undefined.
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
"""Checks by class of message."""
