"""Written messages are read back unchanged; bytes depend on messages only; a full disk ends a recording in order."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tests.full_disk import full_disk
from tests.record.samples import write_items

import roboyard as ry
from roboyard.errors import MessageError, RecordingError, RoboyardError
from roboyard.messages import serialize, type_name
from roboyard.record import McapWriter, open_recording

ROOT = Path(__file__).parents[2]

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
floats = st.floats(allow_nan=False, width=64)
vectors = st.builds(lambda x, y, z: ry.msg.Vector3(x, y, z), floats, floats, floats)
messages = st.one_of(
    st.builds(lambda data: ry.msg.String(data=data), texts),
    st.builds(lambda linear, angular: ry.msg.Twist(linear, angular), vectors, vectors),
    st.builds(
        lambda ranges: ry.msg.LaserScan(ranges=ranges),
        hnp.arrays(np.float32, st.integers(0, 50), elements=st.floats(0, 100, width=32)),
    ),
    st.builds(lambda n: ry.msg.JointState(name=n, position=np.arange(len(n), dtype=float)), st.lists(texts)),
    st.builds(lambda: ry.msg.Bool(data=True)),
)
times = st.integers(0, 5 * 10**9)
items = st.lists(st.tuples(times, st.sampled_from(["/a", "/b/c"]), st.sampled_from(["", "/n", "/m/n"]), messages))


@given(items)
def test_read_messages_are_those_written(tmp_path_factory: pytest.TempPathFactory, written: list[Any]) -> None:
    path = tmp_path_factory.mktemp("mcap") / "r.mcap"
    named = [(t, f"{topic}/{type(m).__name__}", publisher, m) for t, topic, publisher, m in written]
    with McapWriter(path, {"a": "1", "ü": "2"}) as writer:
        for time_ns, topic, publisher, message in named:
            writer.write(writer.channel(topic, type_name(type(message)), publisher), time_ns, serialize(message))
    with open_recording(path) as recording:
        read_messages = list(recording.messages())
        assert recording.is_complete
        assert recording.warnings == []
        assert recording.metadata == {"a": "1", "ü": "2"}
        assert recording.count == len(written)
    expected = sorted(named, key=lambda item: item[0])  # stable: messages of one instant keep their order
    assert [(m.time_ns, m.topic, m.publisher) for m in read_messages] == [item[:3] for item in expected]
    assert all(m.message == item[3] for m, item in zip(read_messages, expected, strict=True))
    if expected:
        assert (recording.start_ns, recording.end_ns) == (expected[0][0], expected[-1][0])


def test_reader_selects_time_range_and_topics(recording_file: Path, items: list[Any]) -> None:
    with open_recording(recording_file) as recording:
        selected = list(recording.messages(["/scan", "/words"], start_ns=700_000_000, end_ns=2 * 10**9))
    expected = [i for i in items if i[1] in ("/scan", "/words") and 700_000_000 <= i[0] <= 2 * 10**9]
    assert [(m.time_ns, m.topic, m.message) for m in selected] == [(i[0], i[1], i[3]) for i in expected]


def test_topic_info_has_count_rate_publishers_latching(recording_file: Path) -> None:
    with open_recording(recording_file) as recording:
        topics = recording.topics
    assert list(topics) == ["/cmd_vel", "/scan", "/tf_static", "/words"]
    assert topics["/cmd_vel"].publishers == ("/navigator", "/teleop")
    assert topics["/scan"].count == 30
    assert topics["/scan"].frequency == pytest.approx(10.0)
    assert topics["/tf_static"].latched
    assert not topics["/scan"].latched
    assert topics["/tf_static"].frequency is None
    assert "float32[] ranges" in topics["/scan"].schema


def test_unknown_topic_is_named_with_similar_names(recording_file: Path) -> None:
    with open_recording(recording_file) as recording, pytest.raises(RoboyardError, match="/scan"):
        recording.messages(["/scann"])


def test_writer_refuses_unknown_type(tmp_path: Path) -> None:
    with McapWriter(tmp_path / "r.mcap") as writer, pytest.raises((MessageError, RoboyardError)):
        writer.channel("/a", "no_msgs/msg/Such")


def test_writer_does_not_overwrite_without_permission(recording_file: Path) -> None:
    before = recording_file.read_bytes()
    with pytest.raises(RecordingError, match="exists"):
        McapWriter(recording_file)
    assert recording_file.read_bytes() == before
    McapWriter(recording_file, overwrite=True).close()
    assert recording_file.stat().st_size < len(before)


def test_replaced_file_stays_until_the_first_chunk(tmp_path: Path, items: list[Any]) -> None:
    reference, path = tmp_path / "reference.mcap", tmp_path / "r.mcap"
    write_items(reference, items)
    path.write_bytes(b"the old content")
    path.chmod(0o640)
    with McapWriter(path, {"seed": "7", "scenario": "test"}, overwrite=True) as writer:
        for time_ns, topic, publisher, message in items:
            channel = writer.channel(topic, type_name(type(message)), publisher, latched=topic == "/tf_static")
            writer.write(channel, time_ns, serialize(message))
            if time_ns < 10**9:
                assert path.read_bytes() == b"the old content"
            else:
                with open_recording(path) as recording:  # the file is readable after the first chunk, as after a kill
                    assert recording.count == sum(item[0] < time_ns // 10**9 * 10**9 for item in items)
                    assert not recording.is_complete
    assert path.read_bytes() == reference.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o640
    assert sorted(file.name for file in tmp_path.iterdir()) == ["r.mcap", "reference.mcap"]


@pytest.mark.parametrize("size", [20, 700], ids=["in the header", "in the first chunk"])
def test_replaced_file_stays_when_the_disk_is_full(tmp_path: Path, items: list[Any], size: int) -> None:
    path = tmp_path / "r.mcap"
    path.write_bytes(b"the old content")
    with full_disk(size), pytest.raises(RecordingError, match=r"r\.mcap: cannot be written.*old file is unchanged"):
        write_items(path, items, overwrite=True)
    assert path.read_bytes() == b"the old content"
    assert list(tmp_path.iterdir()) == [path]


def test_replaced_file_stays_after_an_error_before_the_first_message(tmp_path: Path) -> None:
    path = tmp_path / "r.mcap"
    path.write_bytes(b"the old content")

    def record_interrupted(*texts: str) -> None:
        with McapWriter(path, overwrite=True) as writer:
            channel = writer.channel("/words", "std_msgs/msg/String", "/n")
            for text in texts:
                writer.write(channel, 0, serialize(ry.msg.String(data=text)))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        record_interrupted()
    assert path.read_bytes() == b"the old content"
    with pytest.raises(KeyboardInterrupt):
        record_interrupted("x")
    with open_recording(path) as recording:
        assert (recording.is_complete, recording.count) == (True, 1)
    assert list(tmp_path.iterdir()) == [path]


def test_missing_folder_is_a_recording_error(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="cannot be created"):
        McapWriter(tmp_path / "none" / "r.mcap")


def test_chunk_is_written_every_simulated_second(tmp_path: Path) -> None:
    path = tmp_path / "r.mcap"
    writer = McapWriter(path)
    channel = writer.channel("/words", "std_msgs/msg/String", "/n")
    for tenth in range(35):
        writer.write(channel, tenth * 10**8, serialize(ry.msg.String(data=str(tenth))))
        with open_recording(path) as recording:  # while it is being written
            assert recording.count == tenth // 10 * 10
            assert not recording.is_complete
    writer.flush_before(4 * 10**9)
    with open_recording(path) as recording:
        assert recording.count == 35
    writer.close()
    writer.close()
    with open_recording(path) as recording:
        assert recording.is_complete


WRITER_SCRIPT = """
import sys
sys.path.insert(0, sys.argv[2])
from tests.record.samples import make_messages, write_items
write_items(sys.argv[1], make_messages())
"""


def test_bytes_depend_on_messages_only(tmp_path: Path, recording_file: Path) -> None:
    contents = [recording_file.read_bytes()]
    for seed in ("1", "2"):
        folder = tmp_path / seed
        folder.mkdir()
        path = folder / f"{seed}.mcap"
        environment = {**os.environ, "PYTHONHASHSEED": seed, "HOME": str(folder)}
        command = [sys.executable, "-c", WRITER_SCRIPT, str(path), str(ROOT)]
        subprocess.run(command, env=environment, cwd=folder, check=True)
        contents.append(path.read_bytes())
    assert contents[0] == contents[1] == contents[2]
    assert str(tmp_path).encode() not in contents[0]


class LimitedFile(io.RawIOBase):
    """A file on a disk of limited capacity."""

    name = "small"

    def __init__(self, capacity: int) -> None:
        self.file = io.BytesIO()
        self.capacity = capacity

    def write(self, data: Any) -> int:
        """Write as many bytes as fit, as POSIX does, and raise `OSError` if none fit."""
        n_bytes = min(len(data), self.capacity - self.file.tell())
        if n_bytes <= 0:
            raise OSError(28, "No space left on device")
        return self.file.write(bytes(data)[:n_bytes])

    def seek(self, offset: int, whence: int = 0) -> int:
        return self.file.seek(offset, whence)

    def truncate(self, size: int | None = None) -> int:
        return self.file.truncate(size)

    def close(self) -> None:
        """Do nothing: the test reads the content later."""


def test_full_disk_keeps_the_messages_written_before(tmp_path: Path, items: list[Any]) -> None:
    file = LimitedFile(1 << 30)
    write_all(file, items)
    size = len(file.file.getvalue())
    for capacity in range(0, size, 97):
        file = LimitedFile(capacity)
        errors = write_all(file, items)
        assert len(errors) == 1, capacity
        assert "No space left" in str(errors[0])
        data = file.file.getvalue()
        assert len(data) <= capacity
        if not data:
            continue
        path = tmp_path / "r.mcap"
        path.write_bytes(data)
        with open_recording(path) as recording:
            messages = [(m.time_ns, m.topic, m.message) for m in recording.messages()]
            end_ns = recording.end_ns
        expected = [(i[0], i[1], i[3]) for i in items[: len(messages)]]
        assert messages == expected
        if messages:
            assert f"until {end_ns / 1e9:.3f} s" in str(errors[0])


def write_all(file: LimitedFile, items: list[Any]) -> list[RecordingError]:
    """Write the items; return the errors."""
    errors: list[RecordingError] = []
    try:
        writer = McapWriter(file)
    except RecordingError as error:
        return [error]
    for time_ns, topic, publisher, message in items:
        channel = writer.channel(topic, type_name(type(message)), publisher)
        try:
            writer.write(channel, time_ns, serialize(message))
        except RecordingError as error:
            errors.append(error)
    try:
        writer.close()
    except RecordingError as error:
        errors.append(error)
    return errors


SIZE_LIMIT_SCRIPT = """
import resource, sys
sys.path.insert(0, sys.argv[2])
from tests.record.samples import make_messages, write_items
from roboyard.errors import RecordingError
messages = make_messages(seconds=20)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    write_items(sys.argv[1], messages)
except RecordingError as error:
    print(error)
"""


def test_file_size_limit_is_a_one_line_error(tmp_path: Path) -> None:
    path = tmp_path / "r.mcap"
    command = [sys.executable, "-c", SIZE_LIMIT_SCRIPT, str(path), str(ROOT)]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "File too large" in run.stdout
    assert run.stdout.count("\n") == 1
    assert run.stderr == ""
    with open_recording(path) as recording:
        assert len(list(recording.messages())) > 30
