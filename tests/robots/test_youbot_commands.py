"""The command topics of the youBot's driver, on both of its robots."""

from __future__ import annotations

import numpy as np
import pytest
from tests.harness.bus import BusHarness

import roboyard as ry

ARM = tuple(f"arm_joint_{k}" for k in range(1, 6))


def make_command(kind: str, values: dict[str, float], unit: str) -> object:
    """A message of the youBot's driver: values of joints with their unit."""
    rows = [ry.msg.JointValue(joint_uri=joint, unit=unit, value=value) for joint, value in values.items()]
    return ry.msg.JointPositions(positions=rows) if kind == "position" else ry.msg.JointVelocities(velocities=rows)


@pytest.mark.parametrize(("robot", "name"), [("youbot_arm", "youbot_arm"), ("youbot", "carrier")])
def test_driver_topics_move_arm_and_gripper(robot: str, name: str) -> None:
    with ry.Run("empty", record=False) as run:
        run.add_robot("rover", pose=(5.0, 5.0, 0.0))  # of two robots each has its namespace; joints keep their names
        added = run.add_robot(robot, name=name)
        space = f"{added.namespace}/arm_1"
        harness = BusHarness(bus=run.bus)

        def command(controller: str, kind: str, values: dict[str, float], unit: str) -> None:
            harness.publish(f"{space}/{controller}_controller/{kind}_command", make_command(kind, values, unit))

        places = {position.name: position.qpos for position in run.simulation.world.addresses(name).joints}

        def at(*joints: str) -> np.ndarray:
            return np.array([run.simulation.world.data.qpos[places[joint]] for joint in joints])

        run.run_for(0.3)
        start = at(*ARM)
        command("arm", "position", dict(zip(ARM, start + 0.3, strict=True)), "rad")
        run.run_for(1.2)
        assert at(*ARM) == pytest.approx(start + 0.3, abs=2e-3)
        for _ in range(10):
            command("arm", "velocity", {ARM[0]: 0.5}, "s^-1 rad")
            run.run_for(0.1)
        run.run_for(1.0)
        assert at(ARM[0])[0] == pytest.approx(start[0] + 0.3 + 0.5 * 1.4, abs=0.05), "over 0.5 s after the last"
        fingers = ("gripper_finger_joint_l", "gripper_finger_joint_r")
        command("gripper", "position", dict.fromkeys(fingers, 0.01), "m")
        run.run_for(1.0)
        assert at(*fingers) == pytest.approx([0.01, 0.01], abs=1e-3)
        resting = at(*ARM, *fingers)
        command("arm", "position", {"arm_joint_6": 1.0}, "rad")
        command("gripper", "position", dict.fromkeys(fingers, 0.0), "rad")
        run.run_for(0.5)
        assert at(*ARM, *fingers) == pytest.approx(resting, abs=1e-3)
