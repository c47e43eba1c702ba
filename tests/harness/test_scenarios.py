"""Built scenarios run; a cached run is made once and guarded against changes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.harness.scenarios import ScenarioBuilder, recording_digest, run_cached, short_scenario, snapshot_requests

from roboyard.errors import RoboyardError
from roboyard.record import open_recording
from roboyard.scenarios import check_scenario, run_scenario
from roboyard.scenarios.run_options import RunObserver, RunOptions


def test_builder_writes_what_load_spec_reads(tmp_path: Path) -> None:
    builder = (
        ScenarioBuilder(duration=2.0)
        .robot("second", at=(0.0, 2.0, 0.0))
        .drive(0.4, 0.2, duration=1.0)
        .drive(-0.1)
        .with_fault("sensor_noise", time=0.3, duration="1 s", sensor="imu", stddev=0.1)
        .criterion("covers_distance", "path_length > 0.1")
        .set(seed=11)
    )
    spec = builder.load(tmp_path)
    assert spec.config.duration == 2.0
    assert set(spec.config.robots) == {"rover", "second"}
    assert list(spec.config.criteria) == ["covers_distance"]
    assert len(spec.config.faults) == 1
    assert check_scenario(builder.write(tmp_path)).scenario is not None


def test_builder_does_not_hide_mistakes(tmp_path: Path) -> None:
    with pytest.raises(RoboyardError, match="swiftness"):
        run_scenario(
            short_scenario().criterion("x", "swiftness > 1").load(tmp_path), RunOptions(write_files=False, serve=False)
        )


def test_short_scenario_succeeds_and_its_digest_repeats(tmp_path: Path) -> None:
    spec = short_scenario().load(tmp_path)
    digests = set()
    for name in ("first", "second"):
        assert run_scenario(spec, RunOptions(out=tmp_path / name, write_report=False, serve=False)).success
        digests.add(recording_digest(tmp_path / name))
    assert len(digests) == 1
    other = short_scenario().set(seed=99).write(tmp_path / "other.yaml")
    from roboyard.scenarios import load_scenario

    run_scenario(load_scenario(other), RunOptions(out=tmp_path / "third", write_report=False, serve=False))
    assert recording_digest(tmp_path / "third") not in digests


def test_run_cached_runs_once_and_is_complete() -> None:
    run = run_cached()
    assert run_cached() is run
    assert run.outcome.success
    assert set(run.outcome.files) >= {"recording", "metrics", "report"}
    with open_recording(run.path) as recording:
        assert recording.is_complete
        assert json.loads((run.path / "metrics.json").read_text())["recorded"] == recording.count
    assert run_cached("", 0.4).outcome.metrics["sim_time"] == pytest.approx(0.4)


def test_run_cached_fails_when_a_test_changed_it(tmp_path: Path) -> None:
    run = run_cached("", 0.3)
    copy = run.copy_to(tmp_path / "copy")
    (copy / "metrics.json").write_text("{}")
    assert run_cached("", 0.3) is run
    extra = run.path / "extra.txt"
    extra.write_text("")
    with pytest.raises(AssertionError, match=r"a test changed the shared run .*extra\.txt"):
        run_cached("", 0.3)
    extra.unlink()
    assert run_cached("", 0.3) is run
    shutil.rmtree(copy)


def test_snapshots_continue_at_their_times(tmp_path: Path) -> None:
    requests = snapshot_requests(tmp_path, (0.2, 0.4))
    scenario = short_scenario().load(tmp_path)
    run_scenario(scenario, RunOptions(write_files=False, serve=False, snapshots=requests))
    assert {path.name for path in tmp_path.glob("*.state")} == {"0.2.state", "0.4.state"}
    starts: list[float] = []
    for request in requests:
        options = RunOptions(write_files=False, serve=False, from_snapshot=request.path)
        run_scenario(scenario, options, observer=RunObserver(on_started=lambda run: starts.append(run.time)))
    assert starts == pytest.approx([0.2, 0.4], abs=0.01)
