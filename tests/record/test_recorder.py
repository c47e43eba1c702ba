"""The recorder writes every selected message of a bus with its publisher."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.harness.bus import BusHarness
from tests.record.samples import SensorRobot, record_robot

from roboyard.errors import RecordingError
from roboyard.record import (
    Recorder,
    open_recording,
)


def test_recorder_stores_every_message_with_its_publisher(tmp_path: Path) -> None:
    path = tmp_path / "r.mcap"
    received, _ = record_robot(path)
    with open_recording(path) as recording:
        scans = list(recording.messages(["/rover/scan"]))
        assert [(m.time_ns, m.message, m.publisher) for m in scans] == received
        topics = recording.topics
        assert "/rover/image" not in topics  # raw images are excluded by default
        assert topics["/tf_static"].latched
        assert topics["/tf"].count == 100
        assert topics["/clock"].publishers == ("/roboyard",)
        assert recording.metadata == {"seed": "3"}


def test_recorder_selects_topics_by_name_and_pattern(tmp_path: Path) -> None:
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


def test_recording_without_traffic_is_readable_after_a_second(tmp_path: Path) -> None:
    path = tmp_path / "r.mcap"
    with BusHarness() as harness, Recorder(harness.bus, path, topics=["/tf_static"]):
        harness.add(SensorRobot(), "robot", namespace="rover")
        harness.run_for(1.5)
        with open_recording(path) as recording:
            assert recording.count == 1


class FullDiskFile:
    """A file on a disk with space for 5000 bytes."""

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
        recorder = Recorder(harness.bus, FullDiskFile())
        harness.add(SensorRobot(), "robot", namespace="rover")
        with pytest.raises(RecordingError, match="disk: cannot be written: No space left on device"):
            harness.run_for(60.0)
        assert harness.bus.now_ns < 10 * 10**9
        harness.run_for(1.0)  # the bus can still run
        recorder.close()  # the error is not raised twice
