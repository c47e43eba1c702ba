"""Registries of files, and files named by a ROS package of a workspace."""

from __future__ import annotations

from pathlib import Path

import pytest

from roboyard.bringup.catalog import ROBOTS, SCENARIOS, WORLDS, FileRegistry, find_file
from roboyard.errors import InputError


@pytest.mark.parametrize("variable", ["AMENT_PREFIX_PATH", "ROS_PACKAGE_PATH"])
def test_packages_of_a_workspace_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    package = tmp_path / ("share" if variable.startswith("AMENT") else "src") / "mine_description"
    (package / "urdf").mkdir(parents=True)
    (package / "package.xml").write_text("<package format='2'><name>mine_description</name></package>")
    (package / "urdf" / "mine.urdf").write_text("<robot name='mine'><link name='base'/></robot>")
    monkeypatch.delenv("ROS_PACKAGE_PATH", raising=False)
    monkeypatch.delenv("AMENT_PREFIX_PATH", raising=False)
    with pytest.raises(InputError, match="there is no file package://mine_description"):
        find_file("package://mine_description/urdf/mine.urdf")
    monkeypatch.setenv(variable, str(tmp_path if variable.startswith("AMENT") else tmp_path / "src"))
    found = find_file("package://mine_description/urdf/mine.urdf")
    assert found.samefile(package / "urdf" / "mine.urdf")
    with pytest.raises(InputError, match="other.urdf"):
        find_file("package://mine_description/urdf/other.urdf")


@pytest.mark.parametrize("registry", [ROBOTS, WORLDS, SCENARIOS], ids=lambda registry: registry.kind)
def test_entries_are_the_values(registry: FileRegistry) -> None:
    assert registry.entries() == list(registry.values())
