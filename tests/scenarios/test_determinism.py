"""The promise: same scenario, seed, dependencies, CPU class and renderer give the same recording, byte for byte."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from roboyard.scenarios import load_spec, run_scenario
from roboyard.scenarios.catalog import scenarios

_CHILD = """
import sys
from roboyard.scenarios import load_spec, run_scenario
run_scenario(load_spec(sys.argv[1], smoke=True), out=sys.argv[2], report=False, serve=False)
"""


def digest(folder: Path) -> str:
    return hashlib.sha256((folder / "recording.mcap").read_bytes()).hexdigest()


SOONER = {"akrobat-free", "cell-collaboration", "corridor-free", "rover-homecoming", "scitos-tasks", "youbot-loop"}
"""One of each system, which are tried with the quick tests; the others with the slow ones."""
NAMES = [pytest.param(name, marks=[] if name in SOONER else [pytest.mark.slow]) for name in sorted(scenarios())]


@pytest.mark.parametrize("name", NAMES)
def test_smoke_runs_are_byte_identical(name: str, tmp_path: Path) -> None:
    """In a fresh process with other hash seed, folder, home and time zone, in this used one, and from the middle on."""
    home = tmp_path / "fresh"
    home.mkdir()
    environment = {**os.environ, "PYTHONHASHSEED": "77", "HOME": str(home), "TZ": "UTC+7"}
    # compiled kernels may be shared: what they compute is what is tested, not how long compiling takes
    environment.setdefault("XDG_CACHE_HOME", str(Path("~/.cache").expanduser()))
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, name, str(home / "out")],
        cwd=home, env=environment, capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr

    spec = load_spec(name, smoke=True)
    middle = spec.scenario.duration / 2.0 + 0.0123
    state = tmp_path / "state"
    here = run_scenario(spec, out=tmp_path / "here", save_states=[(middle, state)], report=False, serve=False)
    later = run_scenario(spec, out=tmp_path / "later", from_state=state, report=False, serve=False)
    digests = {
        "fresh": digest(home / "out"), "here": digest(tmp_path / "here"), "later": digest(tmp_path / "later")
    }  # fmt: skip
    assert len(set(digests.values())) == 1, digests
    assert later.metrics["criteria"] == here.metrics["criteria"]


def test_the_seed_matters(tmp_path: Path) -> None:
    for seed in (0, 1):
        spec = load_spec("rover-drive", smoke=True, overrides=["duration=0.5"]).seeded(seed)
        run_scenario(spec, out=tmp_path / str(seed), report=False, serve=False)
    assert digest(tmp_path / "0") != digest(tmp_path / "1")
