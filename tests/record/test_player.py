"""A bus recorded, replayed and recorded again; inputs repeated."""

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
    open_recording,
    recorded_inputs,
)
from roboyard.record.player import shift_time_stamps


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    record_robot(tmp_path / "r.mcap")
    return tmp_path / "r.mcap"


def test_recorder_keeps_every_message_and_its_publisher(tmp_path: Path) -> None:
    path = tmp_path / "r.mcap"
    received, _ = record_robot(path)
    with open_recording(path) as recording:
        scans = list(recording.messages(["/rover/scan"]))
        assert [(m.time_ns, m.message, m.publisher) for m in scans] == received
        topics = recording.topics
        assert "/rover/image" not in topics  # raw pictures are not recorded unasked
        assert topics["/tf_static"].latched
        assert topics["/tf"].count == 100
        assert topics["/clock"].publishers == ("/roboyard",)
        assert recording.metadata == {"seed": "3"}


def test_recorder_chooses_topics_by_name_and_pattern(tmp_path: Path) -> None:
    record_robot(tmp_path / "a.mcap", topics=["/rover/*", "/clock"], exclude_types=())
    record_robot(tmp_path / "b.mcap", exclude=["/tf*"])
    with open_recording(tmp_path / "a.mcap") as recording:
        assert list(recording.topics) == ["/clock", "/rover/image", "/rover/scan"]
    with open_recording(tmp_path / "b.mcap") as recording:
        assert not any(name.startswith("/tf") for name in recording.topics)


def test_late_recorder_gets_latched_messages(tmp_path: Path) -> None:
    path = tmp_path / "r.mcap"
    with BusHarness() as harness:
        harness.add(SensorRobot(), "robot", namespace="rover")
        harness.run_for(1.0)
        with Recorder(harness.bus, path):
            harness.run_for(1.0)
        harness.run_for(1.0)
    with open_recording(path) as recording:
        assert [m.time_ns for m in recording.messages(["/tf_static"])] == [10**9]
        assert recording.end_ns == 2 * 10**9


def test_equal_runs_record_equal_bytes(tmp_path: Path) -> None:
    record_robot(tmp_path / "a.mcap")
    record_robot(tmp_path / "b.mcap")
    assert (tmp_path / "a.mcap").read_bytes() == (tmp_path / "b.mcap").read_bytes()


def test_quiet_recording_is_readable_after_a_second(tmp_path: Path) -> None:
    path = tmp_path / "r.mcap"
    with BusHarness() as harness, Recorder(harness.bus, path, topics=["/tf_static"]):
        harness.add(SensorRobot(), "robot", namespace="rover")
        harness.run_for(1.5)
        with open_recording(path) as recording:
            assert recording.count == 1


class FullDisk:
    """A file that takes 5000 bytes."""

    name = "disk"

    def __init__(self) -> None:
        self.size = 0

    def write(self, data: bytes | memoryview, /) -> int:
        if self.size + len(data) > 5000:
            raise OSError(28, "No space left on device")
        self.size += len(data)
        return len(data)

    def seek(self, offset: int, /) -> int:
        return offset

    def truncate(self) -> int:
        return 0

    def close(self) -> None:
        pass


def test_full_disk_ends_the_run_with_one_error() -> None:
    with BusHarness() as harness:
        recorder = Recorder(harness.bus, FullDisk())
        harness.add(SensorRobot(), "robot", namespace="rover")
        with pytest.raises(RecordingError, match="disk: cannot be written: No space left on device"):
            harness.run_for(60.0)
        assert harness.bus.now_ns < 10 * 10**9
        harness.run_for(1.0)  # the bus is in order
        recorder.close()  # and the error is not told twice


# -- replay ------------------------------------------------------------------------------------------------------------


def test_nodes_run_on_a_replay_as_on_the_robot(tmp_path: Path) -> None:
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


def test_recording_of_a_replay_holds_the_same(tmp_path: Path, recorded: Path) -> None:
    again = tmp_path / "again.mcap"
    with (
        open_recording(recorded) as recording,
        BusHarness() as harness,
        Recorder(harness.bus, again, exclude=["/clock"]),
    ):
        RecordingPlayer(harness.bus, recording)
        harness.bus.executor.run_until(recording.end_ns)
    with open_recording(recorded) as first, open_recording(again) as second:
        assert list(second.messages()) == [m for m in first.messages() if m.topic != "/clock"]


def test_replay_renames_and_excludes_topics(recorded: Path) -> None:
    with open_recording(recorded) as recording, BusHarness() as harness:
        RecordingPlayer(
            harness.bus, recording, topics=["/rover/*", "/tf"], exclude=["/tf"], rename={"/rover/scan": "/old/scan"}
        )
        harness.bus.executor.run_until(recording.end_ns)
        assert harness.bus.topics["/old/scan"].count == 20 + 1
        assert harness.bus.topics["/tf"].count == 0
        with pytest.raises(UnknownNameError):
            RecordingPlayer(harness.bus, recording, rename={"/none": "/x"})


def test_replay_from_a_later_time_begins_with_latched(recorded: Path) -> None:
    with open_recording(recorded) as recording, BusHarness() as harness:
        replay = RecordingPlayer(harness.bus, recording, start_ns=10**9, end_ns=15 * 10**8)
        scans, positions = make_subscribers(harness)
        harness.bus.executor.run_until(recording.end_ns)
        assert replay.is_finished
    assert [item.time_ns for item in scans] == [t * 10**8 for t in range(10, 16)]
    assert positions.positions[0] == pytest.approx(1.2)  # the laser's static place is known from before


def test_replay_needs_a_bus_of_the_recordings_time(tmp_path: Path, items: list[Any]) -> None:
    path = tmp_path / "r.mcap"
    start = 1_700_000_000 * 10**9
    write_items(path, [(time_ns + start, *rest) for time_ns, *rest in items])
    with open_recording(path) as recording:
        with BusHarness() as harness, pytest.raises(RecordingError, match=f"start_ns={start}"):
            RecordingPlayer(harness.bus, recording)
        with BusHarness(start_ns=recording.start_ns) as harness:
            replay = RecordingPlayer(harness.bus, recording)
            harness.bus.executor.run_until(recording.end_ns)
            assert replay.count == len(items)
        with BusHarness(start_ns=recording.start_ns + 1) as harness, pytest.raises(RecordingError, match="stands at"):
            RecordingPlayer(harness.bus, recording)


def test_closed_replay_stops(recorded: Path) -> None:
    with open_recording(recorded) as recording, BusHarness() as harness:
        replay = RecordingPlayer(harness.bus, recording)
        harness.run_for(0.5)
        count = replay.count
        replay.close()
        harness.run_for(1.0)
        assert replay.count == count
        assert harness.bus.topics["/rover/scan"].publishers == []


def test_replay_without_messages_is_refused(recorded: Path) -> None:
    with (
        open_recording(recorded) as recording,
        BusHarness() as harness,
        pytest.raises(RecordingError, match="nothing to replay"),
    ):
        RecordingPlayer(harness.bus, recording, topics=["/clock"])


def test_replay_loop_repeats_everything_moved_in_time(recorded: Path) -> None:
    """Each pass is the first one, later: times, stamps and what buffers make of them."""
    with open_recording(recorded) as recording, BusHarness() as harness:
        replay = RecordingPlayer(harness.bus, recording, loop=True)
        harness.bus.executor.run_until(3 * (recording.end_ns + 10**8))
        length = recording.end_ns - recording.start_ns
        assert replay.n_passes == 3
        assert not replay.is_finished
        plain = [item for item in harness.wire() if item[1] in recording.topics and item[1] != "/clock"]
        count = recording.count - recording.topics["/clock"].count
        first, second = plain[:count], plain[count : 2 * count]
        period = second[0][0] - first[0][0]
        assert period > length
        for (time_a, topic_a, node_a, data_a), (time_b, topic_b, node_b, data_b) in zip(first, second, strict=True):
            assert (time_b - time_a, topic_a, node_a) == (period, topic_b, node_b)
            message = deserialize(data_a, recording.topics[topic_a].type)
            shift_time_stamps(message, period)
            assert serialize(message) == data_b, topic_a


@given(by=st.integers(-(10**9), 10**18))
def test_stamps_moved_there_and_back_are_unchanged(by: int) -> None:
    message = ry.msg.TFMessage(transforms=[ry.msg.TransformStamped() for _ in range(3)])
    for number, transform in enumerate(message.transforms[1:], 1):
        transform.header.stamp = time_to_msg(number * 2 * 10**9)
    before = serialize(message)
    shift_time_stamps(message, by)
    moved = [to_nanoseconds(item.header.stamp) for item in message.transforms]
    assert moved == [0, 2 * 10**9 + by, 4 * 10**9 + by], "a stamp of 0 means none"
    shift_time_stamps(message, -by)
    assert serialize(message) == before


def test_replay_excludes_publishers(recording_file: Path) -> None:
    with open_recording(recording_file) as recording, BusHarness() as harness:
        replay = RecordingPlayer(harness.bus, recording, exclude_publishers=["/teleop"])
        harness.bus.executor.run_until(recording.end_ns)
        counts = {c.publisher: c.count for c in recording.channels}
        assert counts["/teleop"]
        assert replay.count == recording.count - counts["/teleop"]
        sources = [source for _, _, source, _ in harness.wire()]
        assert "/teleop" not in sources
        assert sources.count("/navigator") == counts["/navigator"]


def test_replay_refuses_one_name_for_two_types(recorded: Path) -> None:
    with (
        open_recording(recorded) as recording,
        BusHarness() as harness,
        pytest.raises(RecordingError, match=r"/rover/scan .* and /tf .* cannot both be /tf"),
    ):
        RecordingPlayer(harness.bus, recording, rename={"/rover/scan": "/tf"})


# -- inputs ------------------------------------------------------------------------------------------------------------


def test_recorded_inputs_repeat_an_interactive_run(tmp_path: Path) -> None:
    def play(path: Path, inputs: list[tuple[int, ExternalInput]] | None) -> None:
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

    play(tmp_path / "a.mcap", None)
    with open_recording(tmp_path / "a.mcap") as recording:
        inputs = recorded_inputs(recording)
        assert [item.target for _, item in inputs] == ["/cmd_vel", "/cmd_vel"]
        assert recording.topics["/cmd_vel"].publishers == ("/keyboard",)
    play(tmp_path / "b.mcap", inputs)
    assert (tmp_path / "a.mcap").read_bytes() == (tmp_path / "b.mcap").read_bytes()


def test_recording_without_inputs_has_none(recorded: Path) -> None:
    with open_recording(recorded) as recording:
        assert recorded_inputs(recording) == []
