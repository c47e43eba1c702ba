"""A run as viewers see it: poses and drawings agree with the run, and the run does not notice."""

import hashlib
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.view.conftest import Client, Stage

from roboyard.description import load_model
from roboyard.geometry import SE2, SE3
from roboyard.messages import msg
from roboyard.messages.convert import grid_to_msg, pose_stamped
from roboyard.scenarios import Control, Run, load_spec, run_scenario
from roboyard.view import View
from roboyard.view.wire import packed, unpacked

SCENARIO = """\
world: arena
robots: {rover: {model: rover}}
operator: [{drive: {v: 0.4, w: 0.3, for: 10}}]
duration: 3.0
"""


def floats(part: bytes) -> np.ndarray:
    return np.frombuffer(part, np.float32)


def test_heads_and_arrays_come_back() -> None:
    parts = [b"abc", np.arange(5, dtype=np.float32), b""]
    head, found = unpacked(packed({"op": "x", "bad": math.nan, "umlaut": "ü"}, parts))
    assert head == {"op": "x", "bad": None, "umlaut": "ü", "sizes": [3, 20, 0]}
    assert found == [b"abc", parts[1].tobytes(), b""]  # type: ignore[union-attr]


def test_a_viewer_sees_bodies_where_they_truly_are(stage: Stage) -> None:
    client = stage.start(rate=1.0).client()
    scene = client.until("scene")
    assert "rover" in scene["robots"]
    assert len(scene["geoms"]) > 20
    stage.run.robots["rover"].drive(0.3, 0.2)
    client.control()
    assert client.ask("pause")["op"] == "done"
    client.until("poses", paused=True)
    time = client.until("poses", paused=True)
    rows = floats(time["parts"][0]).reshape(-1, 7)
    index = next(i for i, name in enumerate(scene["bodies"]) if name.startswith("rover"))
    truth = stage.run.robots["rover"].truth
    assert truth.time_ns * 1e-9 == pytest.approx(time["t"], abs=0.0025)
    assert np.allclose(rows[index, :3], truth.pose.translation, atol=1e-3)


def test_a_step_is_as_long_as_it_says(stage: Stage) -> None:
    client = stage.start(rate=1.0).client()
    client.control()
    assert client.ask("step", seconds=0.5)["op"] == "refused"
    client.ask("pause")
    start = client.until("poses", paused=True)["t"]
    client.ask("step", seconds=0.5)
    for _ in range(200):
        now = client.until("poses")["t"]
        if now >= start + 0.5:
            break
    assert now == pytest.approx(start + 0.5, abs=1e-6)


def test_scans_lie_on_what_they_have_hit(stage: Stage) -> None:
    """The room's walls are vertical: a scan's points in the world keep away from the robot and stay in the room."""
    client = stage.start(rate=1.0).client()
    client.say("want", topic="/scan", on=True)
    drawn = client.until("draw", topic="/scan")
    points = floats(drawn["parts"][0]).reshape(-1, 3)
    x, y, z, w, qx, qy, qz = drawn["pose"]
    there = SE3((w, qx, qy, qz), (x, y, z)) @ points.astype(float)
    hit = stage.run.simulation.truth("rover").pose.translation
    assert len(points) > 100
    assert np.linalg.norm(there[:, :2] - hit[:2], axis=1).min() > 0.1
    assert np.ptp(there[:, 2]) < 0.02


def test_frames_of_the_robot_begin_where_it_truly_is(stage: Stage) -> None:
    """The rover stands elsewhere than its odometry begins: what is drawn in odom is put beside the truth."""
    stage.run.remove("rover")
    stage.run.add("rover", "other", at=(1.0, 0.5, 0.7))
    client = stage.start(rate=1.0).client()
    client.say("want", topic="transforms", on=True)
    for _ in range(100):
        frames = client.until("transforms")["frames"]
        if "odom" in frames:
            break
    T_world_odom = SE3(frames["odom"][3:], frames["odom"][:3])
    assert (T_world_odom.x, T_world_odom.y) == pytest.approx((1.0, 0.5), abs=0.02)
    assert T_world_odom.yaw == pytest.approx(0.7, abs=0.02)


def test_maps_keep_their_cells(stage: Stage) -> None:
    cells = np.arange(12, dtype=np.int8).reshape(3, 4)
    grid = grid_to_msg(cells, 0.5, SE2(1.0, 2.0, 0.0), "world", 0)
    stage.run.bus.publisher("/plan_of_it", msg.OccupancyGrid, "/test", latched=True).publish(grid)
    client = stage.start().client()
    client.say("want", topic="/plan_of_it", on=True)
    drawn = client.until("draw", topic="/plan_of_it")
    assert (drawn["width"], drawn["height"], drawn["cell"]) == (4, 3, 0.5)
    assert np.array_equal(np.frombuffer(drawn["parts"][0], np.int8).reshape(3, 4), cells)


def test_who_comes_later_gets_the_newest_and_who_wants_nothing_gets_nothing(stage: Stage) -> None:
    publisher = stage.run.bus.publisher("/here", msg.PoseStamped, "/test")
    publisher.publish(pose_stamped(SE2(1.0, 0.0, 0.0), "world", 0))
    first = stage.start().client()
    publisher_missed = first.until("graph")["topics"]
    assert all(name != "/here" or count == 1 for name, _, count, *_ in publisher_missed)
    second = stage.client()
    second.say("want", topic="/here", on=True)
    second.say("want", topic="/scan", on=True)
    second.until("draw", topic="/scan")
    second.say("want", topic="/scan", on=False)
    second.say("ping", id=5)
    second.until("pong")
    seen = [second.next() for _ in range(60)]
    assert all(one.get("topic") != "/scan" for one in seen[2:]), "one may have been on its way"


def test_what_cannot_be_drawn_is_said_and_ends_nothing(stage: Stage) -> None:
    grid = msg.OccupancyGrid(data=np.zeros(7, np.int8))
    grid.info.width, grid.info.height = 3, 3
    stage.run.bus.publisher("/broken", msg.OccupancyGrid, "/test", latched=True).publish(grid)
    client = stage.start().client()
    client.say("want", topic="/broken", on=True)
    assert client.until("draw", topic="/broken")["shape"] == "none"
    assert client.until("poses")


def test_the_log_is_told_from_its_beginning(stage: Stage) -> None:
    client = stage.start(rate=1.0).client()
    client.until("poses")
    stage.run.bus.inputs.query(lambda: stage.run.bus.log.warn("a wheel came off"))
    assert client.until("log", text="a wheel came off")["level"] == "warn"
    assert stage.client().until("log", text="a wheel came off")


def test_models_that_come_are_seen(stage: Stage) -> None:
    client = stage.start(rate=1.0).client()
    before = client.until("scene")["number"]
    box = (
        "<sdf version='1.9'><model name='crate'><link name='l'><collision name='c'><geometry><box><size>1 1 1</size>"
        "</box></geometry></collision></link></model></sdf>"
    )
    stage.run.bus.inputs.query(lambda: stage.run.add_object(load_model(box), "crate", at=(3, 3, 0)) and None)
    after = client.until("scene")
    assert after["number"] > before
    assert any(geom["name"].startswith("crate") for geom in after["geoms"])
    assert client.until("poses", number=after["number"])


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def run_of(path: Path, out: Path, view: View | None) -> Any:
    control = Control()

    def started(run: Run) -> None:
        if view is not None:
            view.begin(run, "test", 3.0, control)

    return run_scenario(load_spec(path), out=out, report=False, serve=False, control=control, started=started)


def test_a_passive_viewer_changes_no_byte(tmp_path: Path) -> None:
    scenario = tmp_path / "small.yaml"
    scenario.write_text(SCENARIO)
    alone = run_of(scenario, tmp_path / "alone", None)
    with View(0) as view:
        client = Client(view)
        for topic in ("/scan", "/odom", "transforms"):
            client.say("want", topic=topic, on=True)
        seen = run_of(scenario, tmp_path / "seen", view)
        assert client.until("poses")
        client.close()
    assert alone.success == seen.success
    assert digest(tmp_path / "alone/recording.mcap") == digest(tmp_path / "seen/recording.mcap")
