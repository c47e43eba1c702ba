"""Replay of a recording gives nodes the recorded messages, and recorded inputs repeat a run exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.bus import BusHarness
from tests.record.samples import SensorRobot, make_subscribers, record_robot, write_items

import roboyard as ry
from roboyard.bus import ExternalInput
from roboyard.errors import RecordingError, UnknownNameError
from roboyard.messages import deserialize, serialize, time_to_msg, to_nanoseconds
from roboyard.record import (
    Recorder,
    RecordingPlayer,
    TopicSelection,
    open_recording,
    recorded_inputs,
)
from roboyard.record.player import shift_time_stamps


def test_replay_gives_nodes_the_same_messages_as_the_run(tmp_path: Path) -> None:
    received, sampler = record_robot(tmp_path / "r.mcap")
    with open_recording(tmp_path / "r.mcap") as recording, BusHarness() as harness:
        replay = RecordingPlayer(harness.bus, recording)
        scans, positions = make_subscribers(harness)
        harness.bus.executor.run_until(recording.end_ns)
        assert replay.is_finished
        assert replay.count == recording.count - recording.topics["/clock"].count
        assert harness.bus.topics["/tf_static"].latched
    assert scans == received
    assert positions.positions == sampler.positions


def test_recording_of_a_replay_contains_the_same_messages(tmp_path: Path, robot_recording: Path) -> None:
    second_path = tmp_path / "again.mcap"
    with (
        open_recording(robot_recording) as recording,
        BusHarness() as harness,
        Recorder(harness.bus, second_path, exclude=["/clock"]),
    ):
        RecordingPlayer(harness.bus, recording)
        harness.bus.executor.run_until(recording.end_ns)
    with open_recording(robot_recording) as first, open_recording(second_path) as second:
        assert list(second.messages()) == [m for m in first.messages() if m.topic != "/clock"]


def test_replay_renames_and_excludes_topics(robot_recording: Path) -> None:
    with open_recording(robot_recording) as recording, BusHarness() as harness:
        RecordingPlayer(
            harness.bus,
            recording,
            TopicSelection(["/rover/*", "/tf"], exclude=["/tf"]),
            rename={"/rover/scan": "/old/scan"},
        )
        harness.bus.executor.run_until(recording.end_ns)
        assert harness.bus.topics["/old/scan"].count == 20 + 1
        assert harness.bus.topics["/tf"].count == 0
        with pytest.raises(UnknownNameError):
            RecordingPlayer(harness.bus, recording, rename={"/none": "/x"})


def test_replay_from_a_later_time_begins_with_latched_messages(robot_recording: Path) -> None:
    with open_recording(robot_recording) as recording, BusHarness() as harness:
        replay = RecordingPlayer(harness.bus, recording, start_ns=10**9, end_ns=15 * 10**8)
        scans, positions = make_subscribers(harness)
        harness.bus.executor.run_until(recording.end_ns)
        assert replay.is_finished
    assert [item.time_ns for item in scans] == [t * 10**8 for t in range(10, 16)]
    assert positions.positions[0] == pytest.approx(1.2)  # the earlier static transform of the laser is available


def test_replay_needs_a_bus_of_the_recordings_time(tmp_path: Path, items: list[Any]) -> None:
    path = tmp_path / "r.mcap"
    start = 1_700_000_000 * 10**9
    write_items(path, [(time_ns + start, *fields) for time_ns, *fields in items])
    with open_recording(path) as recording:
        with BusHarness() as harness, pytest.raises(RecordingError, match=f"start_ns={start}"):
            RecordingPlayer(harness.bus, recording)
        with BusHarness(start_ns=recording.start_ns) as harness:
            replay = RecordingPlayer(harness.bus, recording)
            harness.bus.executor.run_until(recording.end_ns)
            assert replay.count == len(items)
        with (
            BusHarness(start_ns=recording.start_ns + 1) as harness,
            pytest.raises(RecordingError, match="before the bus's time"),
        ):
            RecordingPlayer(harness.bus, recording)


def test_closed_replay_stops(robot_recording: Path) -> None:
    with open_recording(robot_recording) as recording, BusHarness() as harness:
        replay = RecordingPlayer(harness.bus, recording)
        harness.run_for(0.5)
        count = replay.count
        replay.close()
        harness.run_for(1.0)
        assert replay.count == count
        assert harness.bus.topics["/rover/scan"].publishers == []


def test_replay_without_messages_is_refused(robot_recording: Path) -> None:
    with (
        open_recording(robot_recording) as recording,
        BusHarness() as harness,
        pytest.raises(RecordingError, match="no messages to replay"),
    ):
        RecordingPlayer(harness.bus, recording, TopicSelection(["/clock"]))


def test_replay_loop_repeats_messages_shifted_in_time(robot_recording: Path) -> None:
    """Each pass equals the first one with all times and stamps shifted by the same period."""
    with open_recording(robot_recording) as recording, BusHarness() as harness:
        replay = RecordingPlayer(harness.bus, recording, loop=True)
        harness.bus.executor.run_until(3 * (recording.end_ns + 10**8))
        length = recording.end_ns - recording.start_ns
        assert replay.n_passes == 3
        assert not replay.is_finished
        replayed = [item for item in harness.wire() if item[1] in recording.topics and item[1] != "/clock"]
        count = recording.count - recording.topics["/clock"].count
        first, second = replayed[:count], replayed[count : 2 * count]
        period = second[0][0] - first[0][0]
        assert period > length
        for (time_a, topic_a, node_a, data_a), (time_b, topic_b, node_b, data_b) in zip(first, second, strict=True):
            assert (time_b - time_a, topic_a, node_a) == (period, topic_b, node_b)
            message = deserialize(data_a, recording.topics[topic_a].type)
            shift_time_stamps(message, period)
            assert serialize(message) == data_b, topic_a


@given(offset_ns=st.integers(-(10**9), 10**18))
def test_stamps_shifted_forth_and_back_are_unchanged(offset_ns: int) -> None:
    message = ry.msg.TFMessage(transforms=[ry.msg.TransformStamped() for _ in range(3)])
    for number, transform in enumerate(message.transforms[1:], 1):
        transform.header.stamp = time_to_msg(number * 2 * 10**9)
    before = serialize(message)
    shift_time_stamps(message, offset_ns)
    shifted_ns = [to_nanoseconds(item.header.stamp) for item in message.transforms]
    assert shifted_ns == [0, 2 * 10**9 + offset_ns, 4 * 10**9 + offset_ns], "a stamp of 0 means none"
    shift_time_stamps(message, -offset_ns)
    assert serialize(message) == before


def test_replay_excludes_publishers(recording_file: Path) -> None:
    with open_recording(recording_file) as recording, BusHarness() as harness:
        replay = RecordingPlayer(harness.bus, recording, TopicSelection(exclude_publishers=["/teleop"]))
        harness.bus.executor.run_until(recording.end_ns)
        counts = {c.publisher: c.count for c in recording.channels}
        assert counts["/teleop"]
        assert replay.count == recording.count - counts["/teleop"]
        sources = [source for _, _, source, _ in harness.wire()]
        assert "/teleop" not in sources
        assert sources.count("/navigator") == counts["/navigator"]


def test_replay_refuses_one_name_for_two_types(robot_recording: Path) -> None:
    with (
        open_recording(robot_recording) as recording,
        BusHarness() as harness,
        pytest.raises(RecordingError, match=r"/rover/scan .* and /tf .* cannot both be named /tf"),
    ):
        RecordingPlayer(harness.bus, recording, rename={"/rover/scan": "/tf"})


# -- inputs ------------------------------------------------------------------------------------------------------------


def test_recorded_inputs_repeat_an_interactive_run(tmp_path: Path) -> None:
    def record_run(path: Path, inputs: list[tuple[int, ExternalInput]] | None) -> None:
        with BusHarness() as harness, Recorder(harness.bus, path):
            harness.add(SensorRobot(), "robot", namespace="rover")
            if inputs is not None:
                harness.bus.inputs.schedule(inputs)
                harness.run_for(1.0)
                return
            for speed in (0.1, 0.2):
                harness.run_for(0.33)
                message = ry.msg.Twist()
                message.linear.x = speed
                harness.bus.inputs.put(
                    ExternalInput("publish", "/cmd_vel", "geometry_msgs/msg/Twist", "/keyboard", serialize(message))
                )
            harness.run_for(0.34)

    record_run(tmp_path / "a.mcap", None)
    with open_recording(tmp_path / "a.mcap") as recording:
        inputs = recorded_inputs(recording)
        assert [item.target for _, item in inputs] == ["/cmd_vel", "/cmd_vel"]
        assert recording.topics["/cmd_vel"].publishers == ("/keyboard",)
    record_run(tmp_path / "b.mcap", inputs)
    assert (tmp_path / "a.mcap").read_bytes() == (tmp_path / "b.mcap").read_bytes()


def test_recording_without_inputs_returns_no_inputs(robot_recording: Path) -> None:
    with open_recording(robot_recording) as recording:
        assert recorded_inputs(recording) == []
