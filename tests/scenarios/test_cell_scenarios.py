"""An arm and a person share a cell: coexistence, cooperation and collaboration on one part."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from roboyard.bringup.joint_groups import load_joint_groups
from roboyard.errors import ConfigError
from roboyard.messages.convert import vector_to_array
from roboyard.record import open_recording
from roboyard.scenarios import load_scenario, run_scenario
from roboyard.scenarios.run_options import RunOptions

NEST = np.array([0.48, 0.0, 0.77])
FOOT = np.array([0.0, 0.0, 0.72])


def run_shift(name: str, seconds: float, folder: Path, *overrides: str, seed: int = 0, report: bool = False) -> Any:
    spec = load_scenario(name, overrides=[f"duration={seconds}", *overrides]).with_seed(seed)
    return run_scenario(spec, RunOptions(out=folder / "run", write_report=report, serve=False))


def read_work(folder: Path) -> list[tuple[str, str, str]]:
    with open_recording(folder / "run") as recording:
        return [(m.message.actor, m.message.task, m.message.state) for m in recording.messages(["/work"])]


@pytest.mark.slow
def test_coexistence_is_measured_and_reported(tmp_path: Path) -> None:
    found = run_shift("cell-coexistence", 18.0, tmp_path, report=True).metrics
    assert found["cycles"] >= 1
    assert found["work_incorrect"] == 0
    assert found["limit_violations"] == 0
    assert 0.0 < found["concurrent_activity"] <= 1.0 - max(found["robot_idle"], found["human_idle"]) + 1e-9
    page = (tmp_path / "run" / "report.html").read_text()
    assert "Work of robot and people" in page
    approaches = found["robots"]["arm"]["approaches"]
    assert approaches
    assert page.count("data:image/jpeg") == min(len(approaches), 24)
    assert f"{approaches[0]['time']:.1f} s: " in page


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_cooperating_arm_and_person_never_meet_at_the_fixture(tmp_path: Path, seed: int) -> None:
    found = run_shift("cell-cooperation", 75.0, tmp_path, seed=seed).metrics
    assert found["cycles"] >= 2
    assert found["work_done"] == 1.0
    chain = load_joint_groups("iisy").chain("arm")
    hand_distance = tool_distance = math.inf
    nearest = math.inf
    with open_recording(tmp_path / "run") as recording:
        for item in recording.messages(["/joint_states", "/truth/anna/body"]):
            message = item.message
            if item.topic == "/joint_states":
                q = np.array([message.position[list(message.name).index(joint)] for joint in chain.joints])
                tool_distance = float(np.linalg.norm(chain.forward(q)[:3, 3] + FOOT - NEST))
            else:
                positions = [vector_to_array(message.poses[list(message.parts).index(f"{side}_hand")].position)
                          for side in ("left", "right")]  # fmt: skip
                hand_distance = min(float(np.linalg.norm(position - NEST)) for position in positions)
            nearest = min(nearest, max(hand_distance, tool_distance))
    assert nearest > 0.2  # whoever is there, the other one is farther away


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 3])
def test_part_goes_from_hand_to_gripper_and_back(tmp_path: Path, seed: int) -> None:
    found = run_shift("cell-collaboration", 60.0, tmp_path, seed=seed).metrics
    events = read_work(tmp_path)
    for piece in (("anna", "bring", "done"), ("arm", "cycle", "done"), ("anna", "fetch", "done")):
        assert piece in events
    assert found["work_done"] == 1.0
    assert found["handover_s"] > 1.0
    assert found["max_force_n"] < 30.0
    with open_recording(tmp_path / "run") as recording:
        grasped_objects = [tuple(m.message.held_objects) for m in recording.messages(["/anna/state"])]
    changes = [now for before, now in zip([(), *grasped_objects], grasped_objects, strict=False) if now != before]
    assert changes[:4] == [("part_1",), (), ("part_1",), ()]  # brought, handed over, taken back, laid down


def test_safety_is_chosen_by_name() -> None:
    for mode in ("off", "zones", "ssm", "pfl"):
        spec = load_scenario("cell-collaboration", overrides=[f"safety={mode}"])
        assert spec.config.robots["arm"].parameters["collaborative_safety"]["mode"] == mode
    with pytest.raises(ConfigError, match="off, zones, ssm, pfl"):
        load_scenario("cell-collaboration", overrides=["safety=sometimes"])
