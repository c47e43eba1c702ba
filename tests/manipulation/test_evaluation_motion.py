"""The report of a run with an arm: its goals and its joints, and no section about driving."""

from pathlib import Path

import numpy as np
from tests.harness.bus import BusHarness

from roboyard.manipulation.evaluation.motion import read_arm_motion_trace
from roboyard.messages import action, msg
from roboyard.record import open_recording
from roboyard.scenarios import Run


def test_report_shows_goals_and_joints_of_an_arm(tmp_path: Path) -> None:
    with Run("empty", seed=1) as run:
        arm = run.add_robot("youbot_arm", nodes=["joint_states", "robot_state", "arm", "move_group"])
        harness = BusHarness(bus=run.bus)
        harness.run_for(0.2)
        for pose in ("view", "upright"):
            goal = action.MoveGroup.Goal()
            goal.request.goal_constraints = [msg.moveit_msgs.Constraints(name=pose)]
            assert harness.send_goal("/move_action", action.MoveGroup, goal, timeout=30.0).succeeded
        folder = run.report(tmp_path / "out").parent
    text = (folder / "report.html").read_text()
    assert "Motion of the arm" in text
    assert "Commanded and true speeds" not in text
    with open_recording(folder / "recording.mcap") as recording:
        found = read_arm_motion_trace(recording, "")
        assert found is not None
        assert read_arm_motion_trace(recording, "/nobody") is None
    assert found.outcomes == ("succeeded", "succeeded")
    assert found.joints == tuple(f"arm_joint_{k}" for k in range(1, 6))
    np.testing.assert_allclose(found.positions[-1], arm.groups.group("arm").pose("upright"), atol=0.01)
    assert found.states[-1][1] == "succeeded"
    assert len(found.planned_motions) == 2
    for times, points in found.planned_motions:
        moved_joints = np.array([np.interp(times, found.time, column) for column in found.positions.T]).T
        np.testing.assert_allclose(points[10:-10], moved_joints[10:-10], atol=0.05)  # states are recorded every 20 ms
    assert (np.diff(found.clearance[:, 0]) > 0.0).all()
    assert 0.0 < found.clearance[:, 1].min() <= found.clearance[:, 1].max() <= 0.5
