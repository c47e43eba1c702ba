"""The package as it is installed: its pins agree with the lock file, and a wheel carries everything."""

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import roboyard

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_version_is_the_same_everywhere() -> None:
    assert roboyard.__version__ == PROJECT["version"]


def test_every_requirement_is_locked_within_its_bounds() -> None:
    lines = (ROOT / "requirements.lock").read_text("utf-8").splitlines()
    pairs = [line.partition("  #")[0].split("==") for line in lines if "==" in line]
    locked = {canonicalize_name(name): version for name, version in pairs}
    wanted = [
        *PROJECT["dependencies"],
        *(text for extra in PROJECT["optional-dependencies"].values() for text in extra),
    ]
    for text in wanted:
        requirement = Requirement(text)
        if requirement.name == PROJECT["name"]:
            assert requirement.extras <= set(PROJECT["optional-dependencies"])
            continue
        version = locked.get(canonicalize_name(requirement.name))
        assert version is not None, f"{requirement.name} is not in requirements.lock: make lock"
        assert requirement.specifier.contains(version), f"{text} against {version} in requirements.lock: make lock"


def test_metadata_gives_ranges() -> None:
    """Whoever installs Roboyard beside other packages can resolve both; exact versions are the lock file's."""
    for text in (
        *PROJECT["dependencies"],
        *(text for one in PROJECT["optional-dependencies"].values() for text in one),
    ):
        assert not any(part.operator in ("==", "===") for part in Requirement(text).specifier), text


def test_versions_of_lerobot_are_within_range() -> None:
    """lerobot 0.4 and mujoco 4.0.0 were resolved together with Roboyard, and the tests of the rooms run with these."""
    needed = {"opencv-python-headless": "4.12.0.88", "numpy": "2.2.6", "mujoco-core": "4.0.0", "packaging": "25.0"}
    ranges = {requirement.name: requirement.specifier for requirement in map(Requirement, PROJECT["dependencies"])}
    for name, version in needed.items():
        assert ranges[name].contains(version), f"{name} {version}"


@pytest.mark.slow
def test_wheel_holds_every_file_of_the_package(tmp_path: Path) -> None:
    tracked = subprocess.run(["git", "ls-files", "src"], cwd=ROOT, capture_output=True, text=True, check=False)
    if tracked.returncode:
        pytest.skip("not a git clone")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT)]
    subprocess.run(command, check=True)
    names = set(zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist())
    missing = [name for name in tracked.stdout.splitlines() if name.removeprefix("src/") not in names]
    assert not missing
    assert "roboyard/requirements.lock" in names
