"""Recordings written as bags of ROS, and read again."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest
from tests.harness.bus import BusHarness

import roboyard as ry
from roboyard.bridges import bags
from roboyard.bridges.bags import BagKind, export
from roboyard.errors import RecordingError
from roboyard.messages import serialize
from roboyard.record import Recorder, open_recording


@pytest.fixture
def recording_file(tmp_path: Path) -> Path:
    """A latched word, and ten scans of one second."""
    path = tmp_path / "words.mcap"
    with BusHarness() as harness, Recorder(harness.bus, path):
        harness.publish("/words", ry.msg.String(data="hello"), source="/talker", latched=True)
        for number in range(1, 11):
            harness.run_until(0.1 * number)
            scan = ry.msg.LaserScan(header=ry.msg.Header(frame_id="laser"), ranges=[0.1 * number, 2.0])
            harness.publish("/scan", scan, source="/talker")
    return path


@pytest.mark.parametrize("kind", ["rosbag1", "rosbag2", "rosbag2-mcap"])
def test_bags_hold_the_recorded_messages(recording_file: Path, tmp_path: Path, kind: BagKind) -> None:
    out = tmp_path / ("a.bag" if kind == "rosbag1" else "a")
    done = export(recording_file, out, kind)
    assert not done.warnings
    with open_recording(recording_file) as first, open_recording(out) as second:
        assert {name: topic.count for name, topic in second.topics.items()} == {
            name: topic.count for name, topic in first.topics.items()
        }
        assert second.topics["/words"].latched
        ours = [(item.time_ns, item.topic, serialize(item.message)) for item in first.messages(["/scan", "/words"])]
        theirs = [(item.time_ns, item.topic, serialize(item.message)) for item in second.messages(["/scan", "/words"])]
        assert sorted(ours) == sorted(theirs)
        if kind == "rosbag1":
            assert second.topics["/scan"].publishers == ("/talker",)


def test_existing_files_are_replaced_only_on_request(recording_file: Path, tmp_path: Path) -> None:
    export(recording_file, tmp_path / "a", "rosbag2")
    with pytest.raises(RecordingError, match="exists already"):
        export(recording_file, tmp_path / "a", "rosbag2")
    export(recording_file, tmp_path / "a", "rosbag2-mcap", overwrite=True)
    assert (tmp_path / "a" / "a.mcap").is_file()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(RecordingError, match="exists already"):
        export(recording_file, tmp_path / "mine", "rosbag2", overwrite=True)
    with pytest.raises(RecordingError, match="is the recording itself"):
        export(tmp_path / "a", tmp_path / "a", "rosbag2", overwrite=True)
    assert (tmp_path / "a" / "a.mcap").is_file()
    assert (tmp_path / "mine" / "letter.txt").is_file()


@pytest.mark.parametrize("kind", ["rosbag1", "rosbag2", "rosbag2-mcap"])
def test_failed_export_keeps_the_old_bag(
    recording_file: Path, tmp_path: Path, kind: BagKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / ("a.bag" if kind == "rosbag1" else "a")
    export(recording_file, out, kind)
    (out if out.is_file() else out / "metadata.yaml").write_bytes(b"the old content")
    files = [out] if out.is_file() else sorted(out.iterdir())
    before = [file.read_bytes() for file in files]
    copy = bags._copy

    def fill_the_disk(recording: Any, bag: Any) -> None:
        copy(recording, bag)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(bags, "_copy", fill_the_disk)
    with pytest.raises(RecordingError, match=rf"{out}: cannot be written: No space left"):
        export(recording_file, out, kind, overwrite=True)
    assert [file.read_bytes() for file in files] == before
    assert sorted(tmp_path.iterdir()) == sorted([out, recording_file])
