"""Runs say which kernels they are going to call, so that these are compiled before the clock runs, on all cores."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from roboyard.scenarios import catalog

RUN_ALL = """
import json, sys
from roboyard.compute import expected_kernels
from roboyard.compute.jit import listen_to_first_calls
from roboyard.scenarios import load_spec, run_scenario

unexpected = []

def note(call):
    if call.name.startswith("roboyard.") and call.name not in expected_kernels():
        unexpected.append([scenario, call.name])

with listen_to_first_calls(note):
    for scenario in sys.argv[1:]:
        run_scenario(load_spec(scenario, smoke=True), keep=False, serve=False, video=False)
print(json.dumps({"unexpected": unexpected, "expected": len(expected_kernels())}))
"""
ON_DEMAND = {"roboyard.grids.registration._fill_cloud", "roboyard.grids.registration._register"}
"""Point clouds of cameras: made when somebody subscribes, which nobody knows before."""


def unexpected_kernels(scenarios: list[str], folder: Path) -> list[list[str]]:
    """Scenario and name of each kernel that runs call without having said so."""
    done = subprocess.run(
        [sys.executable, "-c", RUN_ALL, *scenarios], capture_output=True, text=True, check=False, cwd=folder
    )
    assert done.returncode == 0, done.stderr[-2000:]
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["expected"] > 10
    return [item for item in result["unexpected"] if item[1] not in ON_DEMAND]


def test_rover_and_walker_call_only_expected_kernels(tmp_path: Path) -> None:
    assert unexpected_kernels(["rover-homecoming", "akrobat-free"], tmp_path) == []


@pytest.mark.slow
def test_scenarios_call_only_expected_kernels(tmp_path: Path) -> None:
    assert unexpected_kernels(sorted(catalog.scenarios()), tmp_path) == []
