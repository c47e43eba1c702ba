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


def test_the_version_is_one() -> None:
    assert roboyard.__version__ == PROJECT["version"]


def test_every_requirement_is_locked_within_its_bounds() -> None:
    lines = (ROOT / "requirements.lock").read_text("utf-8").splitlines()
    locked = {canonicalize_name(line.split("==")[0]): line.split("==")[1] for line in lines if "==" in line}
    wanted = [
        *PROJECT["dependencies"],
        *(text for extra in PROJECT["optional-dependencies"].values() for text in extra),
    ]
    for text in wanted:
        requirement = Requirement(text)
        version = locked.get(canonicalize_name(requirement.name))
        assert version is not None, f"{requirement.name} is not in requirements.lock: make lock"
        assert requirement.specifier.contains(version), f"{text} against {version} in requirements.lock: make lock"


@pytest.mark.slow
def test_a_wheel_holds_every_file_of_the_package(tmp_path: Path) -> None:
    tracked = subprocess.run(["git", "ls-files", "src"], cwd=ROOT, capture_output=True, text=True, check=False)
    if tracked.returncode:
        pytest.skip("not a git clone")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT)]
    subprocess.run(command, check=True)
    names = set(zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist())
    missing = [name for name in tracked.stdout.splitlines() if name.removeprefix("src/") not in names]
    assert not missing
