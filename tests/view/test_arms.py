"""Arms by clicks: what is reachable, what would touch, a plan that is seen before it is followed."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.view.browser import Page, browser
from tests.view.conftest import Client, Stage

from roboyard.scenarios import Run, RunControl
from roboyard.view import View


@pytest.fixture
def arm() -> Iterator[Stage]:
    """The iisy among shelves, with its move node."""
    with Run("shelves", record=False) as run:
        run.add_robot(
            "iisy", "arm", pose=(-0.54, 0.0, 0.0), nodes=["joint_states", "robot_state", "arm", "gripper", "move_group"]
        )
        stage = Stage(run, View(0), RunControl())
        try:
            yield stage
        finally:
            stage.close()


def tool_pose(client: Client) -> list[float]:
    """Pose of the tool in the world, once the arm is known."""
    client.control()
    while "arm" not in (arms := client.wait_for("abilities")["arms"]):
        pass
    return list(arms["arm"]["at"])


def test_arm_pose_is_checked_planned_and_executed(arm: Stage) -> None:
    client = arm.start(rate=0.0).client()
    start = tool_pose(client)
    assert client.ask("ik", robot="arm", pose=start)["state"] == "reachable"
    far = [start[0] + 5.0, *start[1:]]
    assert client.ask("ik", robot="arm", pose=far)["state"] == "unreachable"
    assert "no plan" in client.ask("plan", robot="arm", pose=far)["what"]
    assert "nothing is planned" in client.ask("execute", robot="arm")["what"]

    goal = [start[0], start[1] + 0.12, start[2] + 0.1, *start[3:]]
    client.send("plan", id=77, robot="arm", pose=goal)
    seen: dict[str, dict[str, Any]] = {}
    while not {"done", "ghost"} <= set(seen):
        message = client.next()
        seen[message["op"]] = message
    answer, ghost = seen["done"], seen["ghost"]
    assert answer["duration"] > 0.1
    rows = np.frombuffer(ghost["parts"][0], np.float32).reshape(len(ghost["times"]), len(ghost["bodies"]), 7)
    assert ghost["times"][-1] == pytest.approx(answer["duration"])
    assert np.abs(rows[0] - rows[-1]).max() > 0.05
    assert np.linalg.norm(rows[:, :, 3:], axis=2) == pytest.approx(1.0, abs=1e-4)

    assert client.ask("execute", robot="arm")["op"] == "done"
    for _ in range(400):
        if np.allclose(tool_pose(client)[:3], goal[:3], atol=2e-3):
            break
    there = tool_pose(client)
    assert there[:3] == pytest.approx(goal[:3], abs=2e-3)

    end = client.wait_for("poses")
    now = np.frombuffer(end["parts"][0], np.float32).reshape(-1, 7)[ghost["bodies"]]
    assert np.abs(now[:, :3] - rows[-1, :, :3]).max() < 5e-3, "the ghost's end is where the arm came to"


@pytest.mark.slow
def test_arm_motion_is_stopped(arm: Stage) -> None:
    client = arm.start(rate=1.0).client()
    tool_pose(client)
    goal = tool_pose(client)
    goal[1] += 0.25
    assert client.ask("plan", robot="arm", pose=goal, speed=0.05)["op"] == "done"
    assert client.ask("execute", robot="arm")["op"] == "done"
    before = tool_pose(client)
    while np.allclose(tool_pose(client)[:3], before[:3], atol=2e-3):
        pass
    assert client.ask("halt", robot="arm")["op"] == "done"
    tool_pose(client)
    stood = tool_pose(client)
    assert np.allclose(tool_pose(client)[:3], stood[:3], atol=1e-3)
    assert not np.allclose(stood[:3], goal[:3], atol=2e-2)


@pytest.mark.parametrize(
    ("op", "values"),
    [
        ("ik", {}), ("ik", {"robot": "nobody", "pose": [0] * 7}), ("ik", {"robot": "arm", "pose": [0] * 7}),
        ("plan", {"robot": "arm", "pose": [0, 0, 0]}), ("plan", {"robot": "arm", "named": "upside down"}),
        ("execute", {"robot": "arm"}), ("grip", {"robot": "arm", "gripper": "/none", "position": 0.01}),
        ("plan", {"robot": "arm", "named": "home", "speed": 7}),
    ],
)  # fmt: skip
def test_impossible_arm_requests_are_refused(arm: Stage, op: str, values: dict[str, object]) -> None:
    client = arm.start(rate=0.0).client()
    tool_pose(client)
    answer = client.ask(op, **values)
    assert answer["op"] == "refused"
    assert answer["what"]


@pytest.mark.slow
def test_page_plans_and_executes_an_arm_goal(arm: Stage) -> None:
    with browser() as chromium:
        arm.start(rate=1.0)
        shown = Page(chromium, arm.view.url).ready()
        shown.wait("Object.keys(roboyard.arm.arms).length", 40)
        shown.page.click("[data-panel=arm]")
        shown.page.click("#arm-grab")
        shown.wait("roboyard.arm.state === 'reachable'", 60)
        shown.value("(roboyard.arm.target.position.y += 0.15, roboyard.arm.try(), 0)")
        goal = shown.value("roboyard.arm.target.position.toArray()")
        shown.wait("!roboyard.arm.trying && roboyard.arm.state === 'reachable'")
        shown.page.click("#arm-plan")
        shown.wait("roboyard.arm.planned")
        assert shown.value("roboyard.ghosts.all.has('own arm')")
        shown.page.click("#arm-execute")
        shown.wait(f"Math.hypot(...roboyard.arm.arms.arm.at.slice(0, 3).map((v, k) => v - {goal}[k])) < 0.003", 60)
        assert not shown.complaints
