"""A recording holds what its bytes depend on, and differences are reported in one line."""

import json
from pathlib import Path

import pytest
from tests.harness.live_bus import run_cli
from tests.harness.scenarios import run_cached

import roboyard as ry
from roboyard.record import open_recording
from roboyard.scenarios import provenance as module
from roboyard.scenarios.execution import _read_inputs as read_inputs
from roboyard.scenarios.provenance import (
    collect_provenance,
    describe_changes_since,
    describe_differences,
    describe_untested_versions,
    lock_file,
    locked_versions,
    provenance_metadata,
)
from roboyard.scenarios.report.page import _provenance_rows as rows_of_page

DECIDING = {"python", "mujoco-core", "numba", "llvmlite", "numpy", "scipy", "rosbags", "zstandard", "pillow",
            "opencv-python-headless", "embreex"}  # fmt: skip


def test_recording_names_what_its_bytes_depend_on() -> None:
    with open_recording(run_cached().recording) as recording:
        found = dict(recording.metadata)
    assert {f"version.{name}" for name in DECIDING} <= set(found)
    assert "not installed" not in found.values()
    assert found["cpu_class"] == collect_provenance().cpu_class
    assert found["renderer"] == "none"
    assert describe_changes_since(found) == ""


def test_recording_names_the_renderer_of_its_images(tmp_path: Path) -> None:
    with ry.Run("arena", out=tmp_path / "run") as run:
        assert run.simulation.renderer.render_thread is not None  # as the first picture asks for it
        expected = run.simulation.renderer.backend
        run.run_for(0.1)
    with open_recording(tmp_path / "run" / "recording.mcap") as recording:
        assert recording.metadata["renderer"] == expected
        assert recording.metadata["version.numpy"] == collect_provenance().versions["numpy"]


def test_provenance_equals_itself() -> None:
    recorded = collect_provenance("rays").metadata()
    assert describe_differences(recorded, recorded) == ()
    assert describe_changes_since(recorded) == ""
    assert describe_changes_since({}) == ""
    assert provenance_metadata(collect_provenance("rays").to_dict()) == recorded


def test_differences_are_named_with_both_sides() -> None:
    current = collect_provenance().metadata()
    recorded = current | {"version.numpy": "0.1", "cpu_class": "x86_64 avx", "lock": "other", "seed": "7"}
    line = describe_changes_since(recorded)
    assert line == (
        f"made with the processor x86_64 avx (here {current['cpu_class']}), "
        f"numpy 0.1 (here {current['version.numpy']}): bytes may differ"
    )
    assert "\n" not in line


def test_other_lock_alone_is_reported() -> None:
    assert "other versions of further packages" in describe_changes_since(
        collect_provenance().metadata() | {"lock": "other"}
    )


def test_missing_entries_of_old_recordings_are_ignored() -> None:
    assert describe_changes_since({"version.numpy": collect_provenance().versions["numpy"]}) == ""


def test_renderer_counts_only_if_both_runs_drew_images(monkeypatch: pytest.MonkeyPatch) -> None:
    assert describe_changes_since(collect_provenance("gl").metadata()) == ""
    named = describe_differences(collect_provenance("gl").metadata(), collect_provenance("rays").metadata())
    assert named == ("the renderer gl (here rays)",)


def test_versions_not_tested_together_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    locked = locked_versions()
    assert locked["numpy"]
    assert describe_untested_versions({"numpy": locked["numpy"], "Python": "3.99", "unknown": "1"}) == ""
    line = describe_untested_versions({"numpy": "0.1", "scipy": locked["scipy"]})
    assert line == f"made with numpy 0.1 (tested: {locked['numpy']}): bytes may differ"
    rows = dict(rows_of_page({"provenance": {"versions": {"numpy": "0.1"}}}))
    assert rows["differs from the tested versions"] == line
    tested = rows_of_page({"provenance": {"versions": {"numpy": locked["numpy"]}}})
    assert "differs from the tested versions" not in dict(tested)
    monkeypatch.setattr(module, "lock_file", lambda: None)
    assert describe_untested_versions({"numpy": "0.1"}) == ""


def test_package_contains_the_lock_file() -> None:
    path = lock_file()
    assert path is not None
    assert path.parent == Path(ry.__file__).resolve().parent
    assert len(locked_versions()) > 50


def test_inputs_of_a_run_of_another_machine_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    file = run_cached().recording
    assert read_inputs(file)[1] == []
    real = module._version
    monkeypatch.setattr(module, "_version", lambda name: "9.9" if name == "numba" else real(name))
    (line,) = read_inputs(file)[1]
    assert line.startswith(f"{file}: made with numba ")
    assert line.endswith("(here 9.9): bytes may differ")


def test_report_of_another_machine_is_reported(tmp_path: Path) -> None:
    folder = run_cached().copy_to(tmp_path / "run")
    assert "bytes may differ" not in run_cli("report", folder).err
    file = folder / "metrics.json"
    document = json.loads(file.read_text())
    document["provenance"]["versions"]["scipy"] = "0.1"
    file.write_text(json.dumps(document))
    lines = [line for line in run_cli("report", folder).err.splitlines() if "bytes may differ" in line]
    assert len(lines) == 2
    assert all("scipy 0.1" in line for line in lines)
    assert len(run_cli("report", folder, "--json").json["notes"]) == 2
    assert "scipy 0.1 (tested:" in (folder / "report.html").read_text()
