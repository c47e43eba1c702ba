"""Inspection of a recording: summary, topic rates and bandwidth, nodes and transforms."""

from __future__ import annotations

from pathlib import Path

import pytest

from roboyard.bus import TransformError
from roboyard.errors import RoboyardError
from roboyard.messages import serialize
from roboyard.record import (
    info,
    node_list,
    open_recording,
    tf_echo,
    tf_tree,
    topic_bw,
    topic_echo,
    topic_hz,
    topic_list,
)


def test_info_summarizes_the_recording(robot_recording: Path) -> None:
    with open_recording(robot_recording) as recording:
        summary = info(recording)
        assert (
            summary.message_count
            == sum(1 for _ in recording.raw_messages())
            == sum(topic.count for topic in topic_list(recording))
        )
    assert summary.format == "mcap"
    assert summary.size == robot_recording.stat().st_size
    assert summary.duration == pytest.approx(2.0)
    assert summary.nodes == ("/roboyard", "/rover/robot")
    assert [topic.name for topic in summary.topics] == sorted(topic.name for topic in summary.topics)


def test_topic_rates_bandwidth_and_echo(robot_recording: Path) -> None:
    with open_recording(robot_recording) as recording:
        rate = topic_hz(recording, "/tf")
        assert rate.mean == pytest.approx(50.0)
        assert (rate.min_interval, rate.max_interval) == pytest.approx((0.02, 0.02))
        assert topic_hz(recording, "/tf_static").mean is None
        bandwidth = topic_bw(recording, "/rover/scan")
        size = len(serialize(next(recording.messages(["/rover/scan"])).message))
        assert (bandwidth.min_size, bandwidth.max_size, bandwidth.bytes) == (size, size, 21 * size)
        assert bandwidth.bytes_per_second == pytest.approx(21 * size / 2.0)
        assert [m.time_ns for m in topic_echo(recording, "/rover/scan", count=2, start_ns=10**9)] == [10**9, 11 * 10**8]
        with pytest.raises(RoboyardError, match="/rover/scan"):
            topic_hz(recording, "/rover/skan")


def test_node_list_names_published_topics(robot_recording: Path) -> None:
    with open_recording(robot_recording) as recording:
        nodes = {node.name: node.publishes for node in node_list(recording)}
    assert nodes["/rover/robot"] == ("/rover/scan", "/tf", "/tf_static")


def test_tf_tree_and_transforms(robot_recording: Path) -> None:
    with open_recording(robot_recording) as recording:
        frames = {frame.name: frame for frame in tf_tree(recording)}
        assert {name: frame.parent for name, frame in frames.items()} == {
            "odom": None,
            "base_link": "odom",
            "laser": "base_link",
        }
        assert frames["base_link"].rate == pytest.approx(50.0)
        assert (frames["laser"].static, frames["base_link"].static) == (True, False)
        assert frames["laser"].publisher == "/rover/robot"
        assert tf_echo(recording, "odom", "laser", 1_010_000_000).x == pytest.approx(1.21)
        assert tf_echo(recording, "laser", "odom").x == pytest.approx(-2.2)
        with pytest.raises(TransformError):
            tf_echo(recording, "odom", "laser", 9 * 10**9)
