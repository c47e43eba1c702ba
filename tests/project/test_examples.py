"""Packages under examples do what they show: beside Roboyard their parts are found, and their own tests pass."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = sorted(path.parent for path in (ROOT / "examples").glob("*/pyproject.toml"))


def installed(package: Path, folder: Path) -> dict[str, str]:
    """The environment in which the package is there as `pip install --editable` would have it, without its tools."""
    project = tomllib.loads((package / "pyproject.toml").read_text("utf-8"))["project"]
    info = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = project["entry-points"].items()
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items()) for group, points in groups
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))
    return {**os.environ, "PYTHONPATH": os.pathsep.join((str(package / "src"), str(folder)))}


def test_examples_exist() -> None:
    assert PACKAGES


@pytest.mark.slow
@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_tests_of_an_example_pass(package: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", str(package / "pyproject.toml")]
    done = subprocess.run(
        [*command, str(package / "tests")], env=installed(package, tmp_path), cwd=tmp_path, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=280, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
