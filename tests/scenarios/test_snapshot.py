"""A run continues from a saved state, and its whole recording is the same, byte for byte."""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.processes import FreshProcesses
from tests.harness.scenarios import recording_digest, snapshot_requests

from roboyard.errors import InputError, RunError
from roboyard.messages import msg
from roboyard.record import open_recording
from roboyard.scenarios import load_scenario, run_scenario
from roboyard.scenarios.run_options import RunObserver, RunOptions, SnapshotRequest
from roboyard.scenarios.snapshot_file import decode_snapshot, encode_snapshot

SCENARIO = """\
world: empty
robots:
  rover: {model: rover}
  second: {model: rover, pose: [0, 2, 0]}
operator:
  rover: [{wander: {duration: 60}}]
  second: {command_noise: 0.1, steps: [{drive: {linear: 0.4, angular: 0.2, duration: 60}}]}
faults:
  - {time: 0.2 s, duration: 1 s, type: sensor_delay, sensor: lidar, delay: 0.3 s}
  - {time: 0.3 s, duration: 1 s, type: sensor_noise, sensor: imu, stddev: 0.1}
  - {time: 0.3 s, duration: 1 s, type: sensor_frozen, sensor: wheel_encoders}
  - {time: 0.3 s, duration: 1 s, type: joint_locked, joint: rear_left_wheel_joint}
  - {time: 0.3 s, duration: 1 s, type: message_loss, topic: /imu, probability: 0.4}
  - {time: 0.3 s, duration: 1 s, type: message_delay, topic: /second/cmd_vel, delay: 30 ms}
  - {time: 0.4 s, duration: 1 s, type: low_friction_area, pose: [0, 2, 0], size: [2, 2], friction: 0.1}
  - {time: 0.5 s, type: spawn, model: sphere, pose: [1, 1, 0.5, 0, 0, 0]}
  - {time: 0.6 s, type: spawn, model: box, pose: [0.9, 0, 0]}
  - {time: 1.0 s, type: remove, name: second}
  - {time: 1.2 s, type: remove, name: sphere_7}
duration: 1.8
criteria: {moves: path_length > 0.01}
"""
MOMENTS = (0.5, 0.7771, 1.1)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the scenario, its run in `whole` that was never saved, and states of another run of it."""
    folder = tmp_path_factory.mktemp("state")
    path = folder / "mine.yaml"
    path.write_text(SCENARIO)
    spec = load_scenario(path)
    outcome = run_scenario(spec, RunOptions(out=folder / "whole", write_report=False, serve=False))
    assert outcome.success, outcome.failure_reason
    states = snapshot_requests(folder, MOMENTS)
    run_scenario(
        spec,
        RunOptions(
            out=folder / "saving",
            snapshots=states,
            write_report=False,
            serve=False,
        ),
    )
    return folder


def test_saving_leaves_the_recording_unchanged(saved: Path) -> None:
    assert recording_digest(saved / "saving") == recording_digest(saved / "whole")


@pytest.fixture(scope="module")
def fresh_processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FreshProcesses]:
    """Copies of one interpreter, which has imported everything and run nothing."""
    processes = FreshProcesses(tmp_path_factory.mktemp("home"), hash_seed=5)
    yield processes
    processes.close()


@pytest.mark.parametrize("moment", MOMENTS)
def test_fresh_process_continues_to_the_same_bytes(
    saved: Path, moment: float, fresh_processes: FreshProcesses, tmp_path: Path
) -> None:
    run = fresh_processes.run(saved / "mine.yaml", tmp_path / "out", from_state=saved / f"{moment}.state")
    assert (run.state, run.reason) == ("done", "")
    assert recording_digest(tmp_path / "out") == recording_digest(saved / "whole")


def test_continued_run_has_the_metrics_of_the_whole_run(saved: Path, tmp_path: Path) -> None:
    spec = load_scenario(saved / "mine.yaml")
    outcome = run_scenario(
        spec, RunOptions(out=tmp_path / "out", from_snapshot=saved / "1.1.state", write_report=False, serve=False)
    )
    complete = run_scenario(spec, RunOptions(write_files=False, serve=False))
    assert outcome.metrics["robots"] == complete.metrics["robots"]
    assert outcome.metrics["events"] == complete.metrics["events"]
    counts = [{topic["name"]: topic["count"] for topic in o.metrics["topics"]} for o in (outcome, complete)]
    assert {name: count for name, count in counts[0].items() if "second" not in name} == {
        name: count for name, count in counts[1].items() if "second" not in name
    }


def test_continued_run_may_end_but_not_begin_differently(saved: Path, tmp_path: Path) -> None:
    state = saved / "0.7771.state"
    longer = load_scenario(saved / "mine.yaml", overrides=["duration=2", "criteria.moves=path_length > 100"])
    outcome = run_scenario(
        longer, RunOptions(out=tmp_path / "out", from_snapshot=state, write_report=False, serve=False)
    )
    assert (outcome.state, outcome.success) == ("done", False)
    with open_recording(tmp_path / "out") as recording:
        assert recording.end_ns == 2_000_000_000
    for override, text in (
        ("seed=4", "another scenario: seed"),
        ("world=arena", "another scenario: world"),
        ("robots.rover.pose=[1, 0, 0]", "another scenario: robots"),
        ("duration=0.7", "the run ends at 0.7 s"),
    ):
        spec = load_scenario(saved / "mine.yaml", overrides=[override])
        with pytest.raises(InputError, match=text):
            run_scenario(spec, RunOptions(out=tmp_path / "not", from_snapshot=state, serve=False))
        assert not (tmp_path / "not").exists()


def test_invalid_state_files_are_refused(saved: Path, tmp_path: Path) -> None:
    complete = (saved / "0.5.state").read_bytes()
    flipped = bytearray(complete)
    flipped[len(complete) // 2] ^= 1
    spec = load_scenario(saved / "mine.yaml")
    for content, text in (
        (None, "no such file"),
        (b"", "no saved state"),
        (b"\x00" * 100, "no saved state"),
        (complete[:1000], "checksum"),
        (bytes(flipped), "checksum"),
        (complete[:17], "checksum"),
        (complete.replace(b"STATE 1", b"STATE 9", 1), "no saved state"),
    ):
        path = tmp_path / "bad.state"
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(InputError, match=text) as caught:
            run_scenario(spec, RunOptions(out=tmp_path / "not", from_snapshot=path, serve=False))
        assert str(path) in str(caught.value)
        assert not (tmp_path / "not").exists()
    with pytest.raises(InputError, match="folder"):
        run_scenario(spec, RunOptions(out=tmp_path / "not", from_snapshot=tmp_path, serve=False))


WAITS = """\
from roboyard import Node


class Waits(Node):
    def setup(self):
        self.call_after(100.0, self.wake)

    def wake(self):
        pass
"""


def test_node_that_cannot_be_saved_is_named(tmp_path: Path) -> None:
    (tmp_path / "waits.py").write_text(WAITS)
    path = tmp_path / "mine.yaml"
    path.write_text("world: empty\nduration: 1\nnodes: {waits: {type: 'waits.py:Waits'}}\n")
    outcome = run_scenario(
        load_scenario(path),
        RunOptions(write_files=False, serve=False, snapshots=(SnapshotRequest(0.5, tmp_path / "x.state"),)),
    )
    assert outcome.state == "failed"
    assert "node /waits" in str(outcome.error)
    assert not (tmp_path / "x.state").exists()


WORKS = """\
from threading import Event

from roboyard import Node, msg

released = Event()


def work(number):
    assert released.wait(60.0)
    return 2 * number


class Works(Node):
    state_fields = ("count",)

    def setup(self):
        self.count = 0
        self.out = self.publisher("found", msg.Float64)
        self.timer(0.5, self.begin)

    def begin(self):
        self.count += 1
        released.clear()
        self.offload(work, self.count, latency=0.31, on_done=self.found)
        self.call_after(0.2, released.set)

    def found(self, future):
        self.out.publish(msg.Float64(data=float(future.result)))
"""


def test_saving_waits_for_offloaded_work(tmp_path: Path) -> None:
    (tmp_path / "works.py").write_text(WORKS)
    path, state = tmp_path / "mine.yaml", tmp_path / "x.state"
    path.write_text("world: empty\nduration: 2\nnodes: {works: {type: 'works.py:Works'}}\n")
    run_scenario(
        load_scenario(path),
        RunOptions(out=tmp_path / "whole", snapshots=(SnapshotRequest(0.6, state),), write_report=False, serve=False),
    )
    moments: list[float] = []
    run_scenario(
        load_scenario(path),
        RunOptions(out=tmp_path / "again", from_snapshot=state, write_report=False, serve=False),
        observer=RunObserver(on_started=lambda run: moments.append(run.time)),
    )
    assert moments == [pytest.approx(0.81)]
    assert recording_digest(tmp_path / "whole") == recording_digest(tmp_path / "again")
    with open_recording(tmp_path / "whole") as recording:
        assert [item.message.data for item in recording.messages(["/found"])] == [2.0, 4.0, 6.0]


# -- the codec ---------------------------------------------------------------------------------------------------------
numbers = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8) | st.binary(max_size=8)
)
keys = st.text(max_size=4) | st.integers() | st.tuples(st.text(max_size=3), st.integers())
plain = st.recursive(
    numbers,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(keys, inner, max_size=4)
        | st.tuples(inner, inner)
        | st.frozensets(st.integers(), max_size=4)
        | st.builds(deque, st.lists(inner, max_size=3), st.just(7))
    ),
    max_leaves=20,
)


@given(plain)
def test_encoded_values_are_decoded(value: Any) -> None:
    decoded = decode_snapshot(*encode_snapshot(value))
    assert decoded == value
    assert pickle.dumps(type(decoded)) == pickle.dumps(type(value))


def test_arrays_and_messages_keep_their_bits() -> None:
    array = np.array([[0.1, np.nan], [-0.0, np.inf]])
    twist = msg.Twist(linear=msg.Vector3(x=0.1))
    decoded = decode_snapshot(*encode_snapshot([array, twist, np.float64(0.3), np.int32(4)]))
    assert decoded[0].tobytes() == array.tobytes()
    assert decoded[0].shape == (2, 2)
    assert decoded[1] == twist
    assert decoded[2:] == [0.3, 4]
    with pytest.raises(RunError, match="is a function"):
        encode_snapshot({"a": test_arrays_and_messages_keep_their_bits})


@settings(max_examples=300)
@given(st.binary(max_size=80) | st.text(max_size=80).map(str.encode), st.binary(max_size=16))
def test_noise_is_refused_or_decoded(text: bytes, block: bytes) -> None:
    try:
        decode_snapshot(text, block)
    except InputError as error:
        assert str(error)


@pytest.mark.parametrize(
    "text",
    [
        '{"$record": ["os:system", {}]}',
        '{"$record": ["roboyard.scenarios.execution:run_scenario", {}]}',
        '{"$record": ["roboyard.bus.bus:Bus", {}]}',
        '{"$enum": ["roboyard.record.recorder:Recorder", 1]}',
        '{"$array": ["O", [1], 0, 8]}',
        '{"$array": ["<f8", [1000000000000], 0, 8]}',
        '{"$array": ["<f8", [-1, -1], 0, 8]}',
        '{"$bytes": [0, 1000]}',
        '{"$bytes": [-4, 4]}',
        '{"$what": 1}',
        "[" * 100_000,
    ],
)
def test_malicious_state_files_are_refused(text: str) -> None:
    with pytest.raises(InputError):
        decode_snapshot(text.encode(), b"12345678")
