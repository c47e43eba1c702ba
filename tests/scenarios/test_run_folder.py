"""Run folders: numbered, never overwritten, one error when they cannot be written."""

import errno
import json
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from roboyard.errors import InputError, RunError
from roboyard.scenarios.provenance import collect_provenance, cpu_class, dependency_closure, installed_versions_hash
from roboyard.scenarios.run_folder import RunFolder, create_numbered_folder, make_write_error, prepare_folder


def test_run_folder_numbers_increase(tmp_path: Path) -> None:
    first = create_numbered_folder("rover-drive", tmp_path / "runs")
    (tmp_path / "runs" / "rover-drive-007").mkdir()
    (tmp_path / "runs" / "rover-drive-x").mkdir()
    second = create_numbered_folder("rover-drive", tmp_path / "runs")
    assert (first.path.name, second.path.name) == ("rover-drive-001", "rover-drive-008")
    assert create_numbered_folder("a/../b", tmp_path).path.parent == tmp_path


def test_existing_folders_are_never_overwritten(tmp_path: Path) -> None:
    folder = prepare_folder(tmp_path / "a" / "b")
    assert prepare_folder(folder.path).path == folder.path
    folder.write_text(folder.report, "x")
    with pytest.raises(InputError, match="not empty"):
        prepare_folder(folder.path)
    with pytest.raises(InputError, match="no folder"):
        prepare_folder(folder.report)


def test_files_are_whole_or_absent(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write_json(folder.metrics, {"success": True})
    assert folder.read_metrics() == {"success": True}
    with pytest.raises(ValueError, match="not JSON compliant"):
        folder.write_json(folder.metrics, {"x": float("nan")})
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.json"]
    (tmp_path / "metrics.json").write_text(json.dumps([1]))
    with pytest.raises(InputError, match="no metrics"):
        folder.read_metrics()
    with pytest.raises(InputError, match="holds no"):
        RunFolder(tmp_path / "elsewhere").read_metrics()


def test_full_disk_is_one_error(tmp_path: Path) -> None:
    assert "disk is full" in str(make_write_error(tmp_path, OSError(errno.ENOSPC, "No space left on device")))
    if Path("/dev/full").exists():
        folder = RunFolder(tmp_path)
        folder.report.symlink_to("/dev/full")
        with pytest.raises(RunError, match="disk is full"):
            folder.write_text(folder.report, "x" * 100_000)
        assert not folder.report.is_file()
        assert list(tmp_path.iterdir()) == [folder.report]


@dataclass
class Package:
    """What is asked of an installed distribution."""

    version: str
    requires: list[str]


def test_closure_contains_only_needed_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Markers decide, not what happens to lie about: another platform's needs, extras nobody asked for."""
    installed = {
        "root": Package(
            "1", ["a[fast]>=1", "other; sys_platform == 'nowhere'", "tool; extra == 'dev'", "B.b", "gone", "?!"]
        ),
        "a": Package("2", ["speed; extra == 'fast'", "slow; extra == 'slow'", "root"]),
        "b-b": Package("3", []),
        **{name: Package("4", []) for name in ("other", "tool", "speed", "slow", "unrelated")},
    }

    def distribution(name: str) -> Package:
        if name not in installed:
            raise PackageNotFoundError(name)
        return installed[name]

    monkeypatch.setattr("roboyard.scenarios.provenance.distribution", distribution)
    assert dependency_closure("Root") == {"root": "1", "a": "2", "b-b": "3", "speed": "4"}


def test_provenance_depends_on_required_packages() -> None:
    names = dependency_closure("roboyard")
    assert {"numpy", "mujoco-core", "llvmlite", "markupsafe"} <= set(names)  # direct and indirect
    # An extra's, not needed to run. (pytest is: gtsam's wheel asks for it.)
    assert not {"hypothesis", "pytest-xdist", "mkdocs-material", "ruff", "mypy"} & set(names)
    assert installed_versions_hash() == installed_versions_hash()
    assert len(installed_versions_hash()) == 64
    assert cpu_class().split()[0]
    assert collect_provenance("egl").to_dict()["renderer"] == "egl"
