"""Groups of robots: by name, from a file beside a description, and guessed."""

from __future__ import annotations

import shutil
from importlib import resources
from pathlib import Path

import pytest

from roboyard.errors import ConfigError
from roboyard.scenarios.robot_groups import find_groups

ROBOTS = Path(str(resources.files("roboyard") / "robots"))


@pytest.mark.parametrize("name", ["scitos_arm", "scitos"])
def test_packaged_robots_have_groups(name: str) -> None:
    assert "fingertips" in find_groups(name).group("arm").tools


def test_groups_file_beside_a_description_is_used(tmp_path: Path) -> None:
    for name in ("scitos_arm.urdf.xacro", "arm.xacro"):
        shutil.copy(ROBOTS / "scitos_arm" / name, tmp_path)
    path = str(tmp_path / "scitos_arm.urdf.xacro")
    assert find_groups(path).group().poses == {"zero": (0.0,) * 5}, "guessed"
    (tmp_path / "scitos_arm.groups.yaml").write_text("groups: {reach: {base: arm_base, tip: kinect}}")
    assert find_groups(path).group("reach").tip == "kinect"


def test_missing_groups_file_is_an_error(tmp_path: Path) -> None:
    for name in ("scitos_arm.urdf.xacro", "arm.xacro"):
        shutil.copy(ROBOTS / "scitos_arm" / name, tmp_path)
    (tmp_path / "a.yaml").write_text("description: scitos_arm.urdf.xacro\ngroups: nothing.yaml")
    with pytest.raises(ConfigError, match=r"there is no file nothing\.yaml"):
        find_groups(str(tmp_path / "a.yaml"))
