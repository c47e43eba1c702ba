"""Importing the package and asking the command for help must not pay for what they do not use."""

import importlib.util
import os
import subprocess
import sys
from importlib import resources

import pytest

HEAVY = {"numpy", "mujoco", "numba", "scipy", "matplotlib", "rosbags", "lxml", "trimesh", "embreex", "foxglove",
         "jinja2", "mcap", "yaml", "imageio_ffmpeg", "cv2", "websockets"}  # fmt: skip


LIBRARY = resources.files("roboyard.scenarios.library")
COMPILED = {"numba", "mujoco", "scipy", "matplotlib", "gtsam", "coal", "ompl", "cv2", "trimesh", "embreex", "PIL"}
"""What physics, kernels, planners and pictures need."""


def imported(*arguments: str) -> set[str]:
    """Top-level names of all modules that a fresh interpreter imports for these arguments."""
    return {name.partition(".")[0] for name in modules(*arguments)}


SHOW = """
import atexit, runpy, sys
atexit.register(lambda: print(*sys.modules, sep="\\n", file=sys.stderr))
kind, what, *sys.argv[1:] = sys.argv[1:]
exec(what) if kind == "-c" else runpy.run_module(what, run_name="__main__", alter_sys=True)
"""
"""Runs what it is given as Python's own options do, and says in the end which modules there are."""


def modules(*arguments: str) -> set[str]:
    """Full names of all modules that a fresh interpreter imports for these arguments and for itself."""
    done = subprocess.run(
        [sys.executable, "-c", SHOW, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ) | {"TERM": "dumb"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return set(done.stderr.split())


def test_measure_finds_heavy_imports() -> None:
    assert "numpy" in imported("-c", "import numpy")


def test_package_imports_nothing_heavy() -> None:
    assert not imported("-c", "import roboyard") & HEAVY


def test_help_imports_nothing_heavy() -> None:
    if importlib.util.find_spec("roboyard.cli.main") is None:
        pytest.skip("the command is not there yet")
    found = imported("-c", "import sys; sys.argv = ['roboyard', '--help']; from roboyard.cli.main import main; main()")
    assert not found & HEAVY


@pytest.mark.parametrize("kind", ["", "robots", "worlds", "devices", "scenarios", "nodes", "sensors", "runs"])
def test_list_assembles_no_world_and_imports_no_node(kind: str) -> None:
    found = modules("-m", "roboyard", "list", *filter(None, [kind]))
    assert not {name.partition(".")[0] for name in found} & COMPILED
    simulated_world = ("simulation", "people", "sensors", "physics", "rendering")
    prefixes = (*(f"roboyard.{room}." for room in simulated_world), "roboyard.scenarios.assembly")
    assert not [name for name in found if name.startswith(prefixes)]
    assert not [name for name in found if ".nodes." in name]


@pytest.mark.parametrize(
    ("verb", "allowed"),
    [
        (["interface", "list"], {"numpy"}),
        (["interface", "show", "geometry_msgs/msg/Twist"], {"numpy"}),
        (["topic", "list", "--help"], set()),
        (["check", "tree", str(LIBRARY / "missions" / "homing.xml")], {"numpy"}),
        (["show", "tree", str(LIBRARY / "missions" / "homing.xml")], {"numpy"}),
        (["check", "world", "empty"], {"numpy", "mujoco", "numba", "scipy"}),
    ],
)
def test_command_imports_only_its_packages(verb: list[str], allowed: set[str]) -> None:
    assert imported("-m", "roboyard", *verb) & (COMPILED | {"numpy", "rosbags", "jinja2"}) <= allowed | {"rosbags"}


def test_command_imports_no_other_command() -> None:
    found = {name for name in modules("-m", "roboyard", "list", "robots") if name.startswith("roboyard.cli.commands.")}
    assert found == {"roboyard.cli.commands.catalog"}


def test_rover_run_imports_nothing_of_other_robots() -> None:
    """Nodes, planners and reports are imported for who uses them: arms, legs and cameras are no concern of a rover."""
    code = (
        "from roboyard.scenarios import build_run, load_scenario, resolve_scenario;"
        "build_run(resolve_scenario(load_scenario('rover-homing')), record=False).close()"
    )
    found = modules("-c", code)
    assert {"mujoco", "numba"} <= {name.partition(".")[0] for name in found}
    assert not {name.partition(".")[0] for name in found} & COMPILED - {"mujoco", "numba", "scipy"}
    others = ("vision.", "manipulation.planning.", "walking.free_gait.", "mapping.slam", "scenarios.report.page")
    for unused in (*(f"roboyard.{name}" for name in others), "scipy.interpolate", "scipy.optimize"):
        assert not [name for name in found if name.startswith(unused)], unused
