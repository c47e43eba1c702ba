"""People walk where a viewer says; feet and plans of legs are drawn; tasks are pursued that were not on the list."""

import numpy as np
import pytest
from tests.view.conftest import Stage

from roboyard.messages import msg
from roboyard.scenarios import Run, RunControl
from roboyard.view import View
from roboyard.view.legs import Support, plan_drawing, support_drawing


def test_person_walks_to_the_clicked_point(stage: Stage) -> None:
    stage.run.add_person("anna", pose=(2.0, 1.0, 0.0))
    client = stage.start(rate=0.0).client().control()
    answer = client.ask("walk", person="anna", clip="walk", at=[2.0, -1.0])
    assert answer["op"] == "done", answer
    for _ in range(3000):
        if np.hypot(*np.subtract(stage.run.people["anna"].person.pose[:2], (2.0, -1.0))) < 0.1:
            break
        client.next()
    assert stage.run.people["anna"].person.pose[:2] == pytest.approx((2.0, -1.0), abs=0.1)
    for _ in range(200):  # who still walks is busy
        answer = client.ask("animate", person="anna", clip="wave")
        if answer["op"] == "done":
            break
    assert answer["op"] == "done", answer
    assert client.ask("animate", person="nobody", clip="wave")["op"] == "refused"
    assert client.ask("animate", person="anna", clip="fly")["op"] == "refused"
    assert client.ask("task", node="/drive", goal="tea")["op"] == "refused"


def test_drawn_feet_are_at_the_feet_of_the_hexapod() -> None:
    with Run("empty", record=False) as run:
        run.add_robot("akrobat")
        stage = Stage(run, View(0), RunControl())
        try:
            client = stage.start(rate=1.0).client()
            client.send("want", topic="/gait/state", on=True)
            drawn = client.wait_for("draw", topic="/gait/state")
            while len(drawn["parts"][1]) < 6 * 12:
                drawn = client.wait_for("draw", topic="/gait/state")
        finally:
            stage.close()
        feet = np.frombuffer(drawn["parts"][1], np.float32).reshape(-1, 3)
        assert len(feet) == 6
        x, y, _ = run.simulation.ground_truth("akrobat").pose.translation
        assert (feet[:, 0].max() > x, feet[:, 0].min() < x, feet[:, 1].max() > y, feet[:, 1].min() < y) == (True,) * 4
        assert np.ptp(feet[:, 2]) < 0.08


def test_support_polygon_encloses_stance_feet() -> None:
    angles = np.array([2.0, 0.1, 4.0, 1.0, 5.5, 3.0])
    feet = np.column_stack([np.cos(angles), np.sin(angles), np.zeros(6)])
    drawing = support_drawing(Support(feet, (True, True, True, False, True, True)))
    corners = np.asarray(drawing.arrays[0])
    turns = np.cross(
        np.roll(corners, -1, axis=0) - corners, np.roll(corners, -2, axis=0) - np.roll(corners, -1, axis=0)
    )
    assert len(corners) == 5
    assert (turns[:, 2] > 0.0).all(), "convex, counter-clockwise"
    assert support_drawing(msg.GaitState()).head["shape"] == "none"


def test_step_plan_drawing_shows_footholds() -> None:
    swing = msg.FootSwing(leg=3)
    swing.target.x, swing.target.z = 0.5, 0.1
    plan = msg.FootstepPlan(body_path=[msg.Point(0.0, 0.0, 0.1), msg.Point(1.0, 0.0, 0.1)], swings=[swing])
    track, holds = plan_drawing(plan).arrays
    assert np.asarray(track).shape == (2, 3)
    assert np.asarray(holds).tolist() == [[pytest.approx(0.5), 0.0, pytest.approx(0.1), 3.0]]
