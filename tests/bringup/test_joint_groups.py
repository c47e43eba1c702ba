"""Groups of robots: by name, from a file beside a description, and guessed."""

from __future__ import annotations

import shutil
from importlib import resources
from pathlib import Path

import pytest

from roboyard.bringup.joint_groups import load_joint_groups
from roboyard.errors import ConfigError

ROBOTS = Path(str(resources.files("roboyard") / "robots"))


@pytest.mark.parametrize("name", ["scitos_arm", "scitos"])
def test_packaged_robots_have_groups(name: str) -> None:
    assert "fingertips" in load_joint_groups(name).group("arm").tools


def test_groups_file_next_to_a_description_is_used(tmp_path: Path) -> None:
    for name in ("scitos_arm.urdf.xacro", "arm.xacro"):
        shutil.copy(ROBOTS / "scitos_arm" / name, tmp_path)
    path = str(tmp_path / "scitos_arm.urdf.xacro")
    assert load_joint_groups(path).group().poses == {"zero": (0.0,) * 5}, "guessed"
    (tmp_path / "scitos_arm.groups.yaml").write_text("groups: {reach: {base: arm_base, tip: kinect}}")
    assert load_joint_groups(path).group("reach").tip == "kinect"


def test_missing_groups_file_is_an_error(tmp_path: Path) -> None:
    for name in ("scitos_arm.urdf.xacro", "arm.xacro"):
        shutil.copy(ROBOTS / "scitos_arm" / name, tmp_path)
    (tmp_path / "a.yaml").write_text("description: scitos_arm.urdf.xacro\njoint_groups: nothing.yaml")
    with pytest.raises(ConfigError, match=r"there is no file nothing\.yaml"):
        load_joint_groups(str(tmp_path / "a.yaml"))
