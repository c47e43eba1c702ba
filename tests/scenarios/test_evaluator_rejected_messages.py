"""Messages that metrics cannot be computed from are rejected, counted and reported, and fail criteria."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.scenarios import ScenarioBuilder
from tests.scenarios.test_evaluator import circle, odometry

from roboyard.evaluation.collector import RobotContext
from roboyard.evaluation.message_checks import find_nonfinite_number
from roboyard.evaluation.topics import RobotTopics
from roboyard.geometry import SE2
from roboyard.localization.evaluation import OdometryMetrics
from roboyard.messages import message_type, msg
from roboyard.scenarios import run_scenario
from roboyard.scenarios.criteria import Criterion
from roboyard.scenarios.evaluator import Evaluator
from roboyard.scenarios.run_options import RunObserver, RunOptions

STEP_NS = 20_000_000
TOPICS = RobotTopics.for_robot("a")
OFFSET = 0.1
"""What odometry is off in x at all times but the first [m]."""


def evaluation_of(
    add_bad_message: Callable[[Evaluator, int, int], None], steps: int = 150, reports: list[str] | None = None
) -> Evaluator:
    """Truth and odometry at 50 Hz; ``add_bad_message(evaluation, k, time_ns)`` says what else there is in a step."""
    found = Evaluator(None if reports is None else reports.append)
    found.add_robot(RobotContext("a", TOPICS))
    for k in range(steps):
        time_ns, truth = k * STEP_NS, circle(k * 0.02)
        found.process(TOPICS.truth, odometry(time_ns, truth, 1.0), time_ns)
        add_bad_message(found, k, time_ns)
        observed = truth if k == 0 else SE2(truth.x + OFFSET, truth.y, truth.theta)
        found.process(TOPICS.odometry, odometry(time_ns, observed), time_ns)
    found.finish(steps * STEP_NS)
    return found


@cache
def metrics_without_bad_messages() -> dict[str, Any]:
    return evaluation_of(lambda *_: None).metrics_by_robot()["a"]


def odometry_collector(evaluation: Evaluator) -> OdometryMetrics:
    return next(item for item in evaluation.robots["a"] if isinstance(item, OdometryMetrics))


@given(
    bad_index=st.integers(1, 148),
    stamp_s=st.one_of(st.floats(0.002, 1e6), st.floats(-3.0, -0.001)),
    error=st.floats(-10.0, 10.0),
)
@settings(max_examples=30, deadline=None)
def test_wrong_stamp_changes_no_metric_and_is_counted(bad_index: int, stamp_s: float, error: float) -> None:
    def add_bad_message(evaluation: Evaluator, k: int, time_ns: int) -> None:
        if k == bad_index:
            wrong = max(time_ns + round(stamp_s * 1e9), 0)
            evaluation.process(TOPICS.odometry, odometry(wrong, SE2(error, 0.0, 0.0)), time_ns)

    reports: list[str] = []
    found = evaluation_of(add_bad_message, reports=reports)
    assert found.metrics_by_robot()["a"] == metrics_without_bad_messages()
    rows = found.rejected_messages()
    assert [(row["topic"], row["count"]) for row in rows] == [(TOPICS.odometry, 1)]
    assert rows[0]["reason"] == ("stamped in the future" if stamp_s > 0.0 else "stamped too early")
    assert "odom_rmse" in rows[0]["metrics"]["a"]
    assert len(reports) == 1
    assert TOPICS.odometry in reports[0]
    assert found.rejection_reasons() == {}, "nothing is missing"


def test_criterion_fails_for_a_span_with_wrong_stamps() -> None:
    found = Evaluator()
    found.add_robot(RobotContext("a", TOPICS))
    for k in range(300):
        time_ns = k * STEP_NS
        found.process(TOPICS.truth, odometry(time_ns, circle(k * 0.02)), time_ns)
        wrong = 10**12 if 100 <= k < 200 else 0
        found.process(TOPICS.odometry, odometry(time_ns + wrong, circle(k * 0.02)), time_ns)
    metrics = found.flat_metrics({})
    assert metrics["odom_rmse"] == pytest.approx(0.0, abs=1e-9)
    result = Criterion("odom_rmse < 0.5").evaluate(metrics, "knows", found.rejection_reasons())
    assert result.passed is False
    assert "not measured from 2 s to 3.98 s" in result.reason
    assert "/odom" in result.reason
    assert Criterion("a.path_length >= 0").evaluate(metrics, "drives", found.rejection_reasons()).passed


def test_odometry_from_the_future_is_not_measured() -> None:
    collector = OdometryMetrics("/truth", "/odom")
    receive = collector.subscriptions()
    receive["/odom"](odometry(10**15, SE2(9.0, 0.0, 0.0)), 0)  # even where nobody checks stamps, it freezes nothing
    for k in range(50):
        receive["/truth"](odometry(k * STEP_NS, circle(k * 0.02)), k * STEP_NS)
        receive["/odom"](odometry(k * STEP_NS, circle(k * 0.02)), k * STEP_NS)
    assert collector.count == 50
    assert collector.values()["odom_rmse"] == pytest.approx(0.0, abs=1e-9)
    found = Evaluator()
    found.add_robot(RobotContext("a", TOPICS))
    for k in range(50):
        found.process(TOPICS.truth, odometry(k * STEP_NS, circle(k * 0.02)), k * STEP_NS)
        found.process(TOPICS.odometry, odometry(k * STEP_NS + 10**9, circle(k * 0.02)), k * STEP_NS)
    result = Criterion("odom_rmse < 0.5").evaluate(found.flat_metrics({}), "knows", found.rejection_reasons())
    assert (result.passed, found.rejected_messages()[0]["count"]) == (False, 50)
    assert result.reason.startswith("no value: odom_rmse; odom_rmse: messages on /odom stamped in the future")


def with_number(message: Any, path: str, value: float) -> Any:
    *parents, last = path.split(".")
    part = message
    for name in parents:
        part = getattr(part, name)
    setattr(part, last, value)
    return message


BAD = [math.nan, math.inf, -math.inf]
PATHS = ["position.x", "position.y", "position.z", "orientation.w", "orientation.x", "orientation.z"]


@pytest.mark.parametrize("value", BAD)
@pytest.mark.parametrize("path", [*(f"pose.pose.{path}" for path in PATHS), "twist.twist.linear.x"])
@pytest.mark.parametrize("topic", [TOPICS.odometry, TOPICS.filtered_odometry, TOPICS.truth])
def test_nonfinite_number_leaves_metrics_and_fails_criteria(topic: str, path: str, value: float) -> None:
    def add_bad_message(evaluation: Evaluator, k: int, time_ns: int) -> None:
        if k % 50 == 20:
            evaluation.process(topic, with_number(odometry(time_ns, SE2()), path, value), time_ns)

    found = evaluation_of(add_bad_message)
    metrics = found.flat_metrics({})
    json.dumps(metrics, allow_nan=False)
    assert found.metrics_by_robot()["a"] == metrics_without_bad_messages()
    assert [(row["topic"], row["reason"], row["count"]) for row in found.rejected_messages()] == [
        (topic, "not finite", 3)
    ]
    name = "filtered_rmse" if topic == TOPICS.filtered_odometry else "odom_rmse"
    result = Criterion(f"{name} < 0.5").evaluate(metrics, "knows", found.rejection_reasons())
    assert result.passed is False
    assert topic in result.reason
    assert "(3)" in result.reason


def joint_state(**values: float) -> Any:
    return msg.JointState(name=list(values), position=list(values.values()))


MESSAGES: dict[str, Callable[[float], Any]] = {
    "joints": lambda v: joint_state(one=0.0, two=v),
    "jog": lambda v: msg.IDAndFloat(id=1, value=v),
    "located": lambda v: with_number(msg.PoseWithCovarianceStamped(), "pose.pose.position.x", v),
    "map": lambda v: with_number(msg.OccupancyGrid(), "info.origin.position.x", v),
    "cell size": lambda v: with_number(msg.OccupancyGrid(), "info.resolution", v),
    "goal": lambda v: with_number(message_type("roboyard_msgs/msg/NavigationStatus")(), "goal.position.y", v),
    "path": lambda v: msg.Path(poses=[msg.PoseStamped(), with_number(msg.PoseStamped(), "pose.position.x", v)]),
    "things": lambda v: msg.TFMessage(transforms=[with_number(msg.TransformStamped(), "transform.translation.x", v)]),
    "body": lambda v: message_type("roboyard_msgs/msg/PersonBody")(poses=[with_number(msg.Pose(), "position.x", v)]),
    "command": lambda v: with_number(msg.Twist(), "linear.x", v),
}


@pytest.mark.parametrize("value", BAD)
@pytest.mark.parametrize("name", list(MESSAGES))
def test_nonfinite_numbers_are_found_in_messages(name: str, value: float) -> None:
    assert find_nonfinite_number(MESSAGES[name](value))
    assert not find_nonfinite_number(MESSAGES[name](0.5))


def test_undefined_efforts_and_velocities_are_accepted() -> None:
    state = joint_state(one=0.0)
    state.velocity = state.effort = [math.nan]
    assert not find_nonfinite_number(state)


def test_malformed_message_costs_only_its_metrics() -> None:
    def add_bad_message(evaluation: Evaluator, k: int, time_ns: int) -> None:
        if k == 10:
            evaluation.process(TOPICS.localization, msg.Float64(data=1.0), time_ns)

    found = evaluation_of(add_bad_message)
    assert found.rejected_messages()[0]["reason"] == "malformed"
    metrics, reasons = found.flat_metrics({}), found.rejection_reasons()
    assert not Criterion("localization_rmse < 1").evaluate(metrics, "", reasons).passed
    assert Criterion("odom_rmse < 1").evaluate(metrics, "", reasons).passed


def test_overflowing_metric_is_none() -> None:
    def add_bad_message(evaluation: Evaluator, k: int, time_ns: int) -> None:
        if k == 10:
            evaluation.process(TOPICS.odometry, odometry(time_ns, SE2(1e200, 0.0, 0.0)), time_ns)

    found = evaluation_of(add_bad_message)
    metrics = found.flat_metrics({})
    json.dumps(metrics, allow_nan=False)
    result = Criterion("odom_rmse > 0").evaluate(metrics, "", found.rejection_reasons())
    assert result.passed is False
    assert "inf" in result.reason


def test_rejections_are_saved_and_restored() -> None:
    def add_bad_message(evaluation: Evaluator, k: int, time_ns: int) -> None:
        if k in (20, 90):
            evaluation.process(TOPICS.odometry, odometry(time_ns + 10**9, SE2()), time_ns)

    complete = evaluation_of(add_bad_message)
    first = evaluation_of(add_bad_message, steps=60)
    second = Evaluator()
    second.add_robot(RobotContext("a", TOPICS))
    second.load_state(first.save_state())
    for k in range(60, 150):
        time_ns, truth = k * STEP_NS, circle(k * 0.02)
        second.process(TOPICS.truth, odometry(time_ns, truth, 1.0), time_ns)
        add_bad_message(second, k, time_ns)
        second.process(TOPICS.odometry, odometry(time_ns, SE2(truth.x + OFFSET, truth.y, truth.theta)), time_ns)
    assert second.rejected_messages() == complete.rejected_messages()
    assert second.metrics_by_robot() == complete.metrics_by_robot()


EVIL = '''\
import math

import roboyard as ry


class EvilConfig(ry.Config):
    kind: str = ry.parameter("future")


class Evil(ry.Node[EvilConfig]):
    """Publishes odometry that cannot be judged, ten times a second."""


    def setup(self):
        self.odom = self.publisher("odom", ry.msg.Odometry)
        self.joints = self.publisher("joint_states", ry.msg.JointState)
        self.pose = self.publisher("amcl_pose", ry.msg.PoseWithCovarianceStamped)
        self.timer(period=0.1, callback=self.tick)

    def tick(self):
        ahead = 3600 if self.config.kind == "future" else 0
        bad = {"nan": math.nan, "inf": math.inf, "future": 0.0}[self.config.kind]
        for out, message in ((self.odom, ry.msg.Odometry()), (self.pose, ry.msg.PoseWithCovarianceStamped())):
            message.header.frame_id = "odom" if out is self.odom else "map"
            message.header.stamp.sec = self.now_ns // 10**9 + ahead
            message.header.stamp.nanosec = self.now_ns % 10**9
            message.pose.pose.position.x = bad
            message.pose.pose.orientation.w = 1.0
            out.publish(message)
        if self.config.kind != "future":
            self.joints.publish(ry.msg.JointState(name=["left_wheel_joint"], position=[bad]))
'''


@pytest.mark.parametrize("kind", ["future", "nan", "inf"])
def test_run_with_an_evil_node_is_evaluated_and_reported(kind: str, tmp_path: Path) -> None:
    (tmp_path / "evil.py").write_text(EVIL)
    builder = ScenarioBuilder(duration=1.0).drive(0.5, duration=10.0)
    builder.criterion("covers_distance", "path_length > 0.1").criterion("knows", "odom_rmse < 0.5")
    builder.set(nodes={"evil": {"type": "evil.py:Evil", "robot": "rover", "parameters": {"kind": kind}}})
    lines: list[str] = []
    spec = builder.load(tmp_path)
    outcome = run_scenario(
        spec,
        RunOptions(out=tmp_path / "run", serve=False),
        observer=RunObserver(on_log=lambda record: lines.append(record.text)),
    )
    document = json.loads(outcome.files["metrics"].read_text(), parse_constant=pytest.fail)
    assert document["state"] == "done"
    assert document["criteria"]["covers_distance"]["passed"]
    rows = {row["topic"]: row for row in document["rejected"]}
    assert rows["/odom"]["count"] >= 9
    assert rows["/odom"]["reason"] == ("stamped in the future" if kind == "future" else "not finite")
    assert sum("metrics do not use a message on /odom" in line for line in lines) == 1
    assert document["criteria"]["knows"]["passed"] is (kind == "future")  # between its messages all was measured
    assert outcome.exit_code == (0 if kind == "future" else 1)
    assert document["odom_rmse"] < 0.05
    page = outcome.files["report"].read_text()
    assert "Messages that no metric uses" in page
    if kind != "future":
        assert "/odom" in document["criteria"]["knows"]["reason"]
