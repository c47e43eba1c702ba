"""Contacts of an arm with the ground count; those of wheels and feet do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from roboyard.scenarios import load_scenario, run_scenario
from roboyard.scenarios.run_options import RunOptions

LIMP = """
world: empty
robots: {{robot: {{model: {model}, nodes: {nodes}}}}}
duration: 2.5 s
"""


@pytest.mark.parametrize(("nodes", "touches"), [("none", True), ("[arm, gripper]", False)])
def test_arm_without_drives_touches_the_ground(nodes: str, touches: bool, tmp_path: Path) -> None:
    (tmp_path / "limp.yaml").write_text(LIMP.format(model="youbot", nodes=nodes))
    spec = load_scenario(
        tmp_path / "limp.yaml", overrides=["robots.robot.xacro_args={arm_pose: '2.95 2.2 -2.9 3.2 2.92'}"]
    )
    done = run_scenario(spec, RunOptions(out=tmp_path / "run", write_report=False, serve=False))
    assert (done.metrics["contacts"] > 0) is touches
