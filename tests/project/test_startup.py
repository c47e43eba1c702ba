"""Importing the package and asking the command for help must not pay for what they do not use."""

import importlib.util
import os
import subprocess
import sys

import pytest

HEAVY = {"numpy", "mujoco", "numba", "scipy", "matplotlib", "rosbags", "lxml", "trimesh", "embreex", "foxglove",
         "jinja2", "mcap", "yaml", "imageio_ffmpeg", "cv2", "websockets"}  # fmt: skip


def imported(*arguments: str) -> set[str]:
    """Top-level names of all modules that a fresh interpreter imports for these arguments."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ) | {"TERM": "dumb"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}


def test_the_measure_sees_heavy_imports() -> None:
    assert "numpy" in imported("-c", "import numpy")


def test_importing_the_package_is_cheap() -> None:
    assert not imported("-c", "import roboyard") & HEAVY


def test_help_is_cheap() -> None:
    if importlib.util.find_spec("roboyard.cli.main") is None:
        pytest.skip("the command is not there yet")
    found = imported("-c", "import sys; sys.argv = ['roboyard', '--help']; from roboyard.cli.main import main; main()")
    assert not found & HEAVY
