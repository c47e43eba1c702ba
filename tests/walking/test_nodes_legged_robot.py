"""A controller that derives from `LeggedRobotNodeBase` stands up, measures its odometry, and is saved."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tests.walking.hexapods import model_named

from roboyard.geometry import SE3
from roboyard.messages import msg
from roboyard.scenarios.run import Run
from roboyard.walking.nodes.legged_robot import (
    GaitReport,
    LeggedRobotNodeBase,
    contact_force,
    roll_pitch_yaw,
    servo_compliance,
)


class Squat(LeggedRobotNodeBase):
    """Stands up, then moves the body up and down over its feet."""

    def setup(self) -> None:
        """Stand up."""
        super().setup()
        self._claim_joints()
        self._phase, self._transition = "rising", self._plan_stand_up()
        self._create_publishers("gait/state")
        self._subscribe_sensors()
        self._start_control_loop()

    def advance_setpoints(self, feet: np.ndarray, measured_joints: np.ndarray) -> None:
        """Follow the transition, then a sine of 20 mm."""
        if self._phase == "rising":
            self._joint_setpoints = self._next_transition_setpoints()
            return
        height = 0.02 * math.sin(2.0 * math.pi * self._ticks / self.config.rate)
        self._joint_setpoints = self.legged_robot.joints_at_body_pose(SE3.from_xyz_rpy((0.0, 0.0, height), (0, 0, 0)))

    def stance_mask(self) -> np.ndarray:
        """Return all feet."""
        return self._all_feet

    def gait_report(self) -> GaitReport:
        """Return the phase."""
        return GaitReport(self._phase, "squat", np.zeros(3))

    def on_transition_end(self, setpoints: np.ndarray) -> None:
        """Begin to squat."""
        self._phase = "squatting"


@pytest.fixture
def run() -> Any:
    with Run("empty", record=False) as started_run:
        robot = started_run.add_robot("akrobat", xacro_args={"profile": "fast"}, nodes="none")
        robot.add_node(Squat(**{name: robot.resources()[name] for name in Squat.resources_declared()}), "squat")
        yield started_run


def test_own_controller_moves_the_body_with_exact_odometry(run: Run) -> None:
    heights, errors = [], []
    robot = run.robots["akrobat"]
    run.run_for(1.5)
    node: Any = robot.nodes["squat"]
    for _ in range(20):
        run.run_for(0.1)
        heights.append(robot.truth.pose.z)
        errors.append(node._odometry.z - robot.truth.pose.z + 0.012)
    assert min(heights) == pytest.approx(0.149 - 0.02, abs=0.006)
    assert max(heights) == pytest.approx(0.149 + 0.02, abs=0.006)
    assert np.abs(errors).max() < 0.006
    assert node.save_state()["odometry"]["z"] == node._odometry.z


def test_orientation_and_contact_force_of_messages() -> None:
    w, x, y, z = SE3.from_xyz_rpy((0.0, 0.0, 0.0), (0.3, -0.2, 1.1)).quaternion
    assert roll_pitch_yaw(msg.Quaternion(w=w, x=x, y=y, z=z)) == pytest.approx((0.3, -0.2, 1.1))
    wrench = msg.Wrench(force=msg.Vector3(x=3.0, z=-4.0))
    contacts = msg.ContactsState(states=[msg.ContactState(total_wrench=wrench), msg.ContactState(total_wrench=wrench)])
    assert contact_force(contacts) == pytest.approx(10.0)


def test_compliance_is_that_of_servos_without_integral_term() -> None:
    model = model_named("akrobat")
    gains = {interface.joint: dict(interface.parameters) for interface in model.interfaces}
    joints = list(gains)[:3]
    expected = [1.0 / float(gains[joint]["pos_kp"]) for joint in joints]
    np.testing.assert_allclose(servo_compliance(model, joints), expected)
    assert servo_compliance(model, ["no such joint"]) == 0.0
