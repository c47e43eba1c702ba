"""A run as viewers see it: poses and drawings agree with the run, and the run does not notice."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.harness.scenarios import ScenarioBuilder, recording_digest
from tests.view.conftest import Client, Stage

from roboyard.description import load_model
from roboyard.geometry import SE2, SE3
from roboyard.messages import msg
from roboyard.messages.convert import grid_to_msg, pose_stamped_to_msg
from roboyard.scenarios import Run, RunControl, load_scenario, run_scenario
from roboyard.scenarios.run_options import RunObserver, RunOptions
from roboyard.view import View
from roboyard.view.wire import packed, unpacked


def floats(part: bytes) -> np.ndarray:
    return np.frombuffer(part, np.float32)


def test_packed_header_and_arrays_roundtrip() -> None:
    parts = [b"abc", np.arange(5, dtype=np.float32), b""]
    head, found = unpacked(packed({"op": "x", "bad": math.nan, "umlaut": "ü"}, parts))
    assert head == {"op": "x", "bad": None, "umlaut": "ü", "sizes": [3, 20, 0]}
    assert found == [b"abc", parts[1].tobytes(), b""]  # type: ignore[union-attr]


def test_viewer_gets_true_poses_of_bodies(stage: Stage) -> None:
    client = stage.start(rate=1.0).client()
    scene = client.wait_for("scene")
    assert "rover" in scene["robots"]
    assert len(scene["geoms"]) > 20
    stage.run.robots["rover"].drive(0.3, 0.2)
    client.control()
    assert client.ask("pause")["op"] == "done"
    client.wait_for("poses", paused=True)
    time = client.wait_for("poses", paused=True)
    rows = floats(time["parts"][0]).reshape(-1, 7)
    index = next(i for i, name in enumerate(scene["bodies"]) if name.startswith("rover"))
    truth = stage.run.robots["rover"].truth
    assert truth.time_ns * 1e-9 == pytest.approx(time["t"], abs=0.0025)
    assert np.allclose(rows[index, :3], truth.pose.translation, atol=1e-3)


def test_step_has_the_requested_length(stage: Stage) -> None:
    client = stage.start(rate=1.0).client()
    client.control()
    assert client.ask("step", seconds=0.5)["op"] == "refused"
    client.ask("pause")
    start = client.wait_for("poses", paused=True)["t"]
    client.ask("step", seconds=0.5)
    for _ in range(200):
        now = client.wait_for("poses")["t"]
        if now >= start + 0.5:
            break
    assert now == pytest.approx(start + 0.5, abs=1e-6)


def test_scan_points_lie_on_hit_surfaces(stage: Stage) -> None:
    """The room's walls are vertical: a scan's points in the world keep away from the robot and stay in the room."""
    client = stage.start(rate=1.0).client()
    client.send("want", topic="/scan", on=True)
    drawn = client.wait_for("draw", topic="/scan")
    points = floats(drawn["parts"][0]).reshape(-1, 3)
    x, y, z, w, qx, qy, qz = drawn["pose"]
    there = SE3((w, qx, qy, qz), (x, y, z)) @ points.astype(float)
    hit = stage.run.simulation.ground_truth("rover").pose.translation
    assert len(points) > 100
    assert np.linalg.norm(there[:, :2] - hit[:2], axis=1).min() > 0.1
    assert np.ptp(there[:, 2]) < 0.02


def test_frames_of_the_robot_start_at_its_true_pose(stage: Stage) -> None:
    """The rover stands elsewhere than its odometry begins: what is drawn in odom is put beside the truth."""
    stage.run.remove("rover")
    stage.run.add_robot("rover", "other", pose=(1.0, 0.5, 0.7))
    client = stage.start(rate=1.0).client()
    client.send("want", topic="transforms", on=True)
    for _ in range(100):
        frames = client.wait_for("transforms")["frames"]
        if "odom" in frames:
            break
    T_world_odom = SE3(frames["odom"][3:], frames["odom"][:3])
    assert (T_world_odom.x, T_world_odom.y) == pytest.approx((1.0, 0.5), abs=0.02)
    assert T_world_odom.yaw == pytest.approx(0.7, abs=0.02)


def test_map_drawing_keeps_cells(stage: Stage) -> None:
    cells = np.arange(12, dtype=np.int8).reshape(3, 4)
    grid = grid_to_msg(cells, 0.5, SE2(1.0, 2.0, 0.0), "world", 0)
    stage.run.bus.publisher("/plan_of_it", msg.OccupancyGrid, "/test", latched=True).publish(grid)
    client = stage.start().client()
    client.send("want", topic="/plan_of_it", on=True)
    drawn = client.wait_for("draw", topic="/plan_of_it")
    assert (drawn["width"], drawn["height"], drawn["cell"]) == (4, 3, 0.5)
    assert np.array_equal(np.frombuffer(drawn["parts"][0], np.int8).reshape(3, 4), cells)


def test_late_viewer_gets_newest_messages_until_unsubscribed(stage: Stage) -> None:
    publisher = stage.run.bus.publisher("/here", msg.PoseStamped, "/test")
    publisher.publish(pose_stamped_to_msg(SE2(1.0, 0.0, 0.0), "world", 0))
    first = stage.start().client()
    publisher_missed = first.wait_for("graph")["topics"]
    assert all(name != "/here" or count == 1 for name, _, count, *_ in publisher_missed)
    second = stage.client()
    second.send("want", topic="/here", on=True)
    second.send("want", topic="/scan", on=True)
    second.wait_for("draw", topic="/scan")
    second.send("want", topic="/scan", on=False)
    second.send("ping", id=5)
    second.wait_for("pong")
    seen = [second.next() for _ in range(60)]
    assert all(one.get("topic") != "/scan" for one in seen[2:]), "one may have been on its way"


def test_undrawable_message_is_reported_and_the_view_goes_on(stage: Stage) -> None:
    grid = msg.OccupancyGrid(data=np.zeros(7, np.int8))
    grid.info.width, grid.info.height = 3, 3
    stage.run.bus.publisher("/broken", msg.OccupancyGrid, "/test", latched=True).publish(grid)
    client = stage.start().client()
    client.send("want", topic="/broken", on=True)
    assert client.wait_for("draw", topic="/broken")["shape"] == "none"
    assert client.wait_for("poses")


def test_viewers_get_the_log_from_its_beginning(stage: Stage) -> None:
    client = stage.start(rate=1.0).client()
    client.wait_for("poses")
    stage.run.bus.inputs.run_on_executor(lambda: stage.run.bus.log.warn("a wheel came off"))
    assert client.wait_for("log", text="a wheel came off")["level"] == "warn"
    assert stage.client().wait_for("log", text="a wheel came off")


def test_added_models_are_shown(stage: Stage) -> None:
    client = stage.start(rate=1.0).client()
    before = client.wait_for("scene")["number"]
    box = (
        "<sdf version='1.9'><model name='crate'><link name='l'><collision name='c'><geometry><box><size>1 1 1</size>"
        "</box></geometry></collision></link></model></sdf>"
    )
    stage.run.bus.inputs.run_on_executor(
        lambda: stage.run.add_object(load_model(box), "crate", pose=(3, 3, 0)) and None
    )
    after = client.wait_for("scene")
    assert after["number"] > before
    assert any(geom["name"].startswith("crate") for geom in after["geoms"])
    assert client.wait_for("poses", number=after["number"])


def run_with_view(path: Path, out: Path, view: View | None) -> Any:
    control = RunControl()

    def started(run: Run) -> None:
        if view is not None:
            view.begin(run, "test", 3.0, control)

    return run_scenario(
        load_scenario(path),
        RunOptions(out=out, write_report=False, serve=False),
        control=control,
        observer=RunObserver(on_started=started),
    )


def test_passive_viewer_changes_no_byte(tmp_path: Path) -> None:
    scenario = ScenarioBuilder(world="arena", duration=3.0).drive(0.4, 0.3, duration=10.0).write(tmp_path)
    alone = run_with_view(scenario, tmp_path / "alone", None)
    with View(0) as view:
        client = Client(view)
        for topic in ("/scan", "/odom", "transforms"):
            client.send("want", topic=topic, on=True)
        seen = run_with_view(scenario, tmp_path / "seen", view)
        assert client.wait_for("poses")
        client.close()
    assert alone.success == seen.success
    assert recording_digest(tmp_path / "alone") == recording_digest(tmp_path / "seen")
