"""Faults that wait for events of skills: they happen to the object of the skill, and repeat."""

from __future__ import annotations

import json
import math
from dataclasses import astuple
from pathlib import Path

import numpy as np
import pytest
from tests.harness.scenarios import recording_digest, snapshot_requests

import roboyard as ry
from roboyard.bus import Node
from roboyard.errors import ConfigError
from roboyard.messages import msg
from roboyard.scenarios import load_scenario, regenerate_report, run_scenario
from roboyard.scenarios.assembly import build_run
from roboyard.scenarios.resolve import resolve_scenario
from roboyard.scenarios.run_options import RunOptions

HEAD = """
world: pick_place_station
robots: {arm: {model: youbot_arm, nodes: [joint_states]}}
objects:
  one: {model: disc_cylinder, pose: [0.24, 0.05, 0]}
  two: {model: disc_cylinder, pose: [0.24, -0.05, 0]}
  place: {model: place_marker, pose: [0.1, 0.25, 0]}
nodes: {skills: {type: "%s:SkillPublisher", robot: arm}}
duration: 1.5
faults:
"""


class SkillPublisher(Node):
    """Publishes events of a grasp of the object ``one`` at 0.5 s, as skills do; and of its phase at 0.7 s."""

    def setup(self) -> None:
        self.events = self.publisher("skills/events", msg.SkillEvent)
        self.timer(period=0.1, callback=self.tick)

    def tick(self) -> None:
        step = round(self.now / 0.1)
        position = msg.Point(x=0.24, y=0.05, z=0.045)
        if step in (5, 7):
            kind, phase = ("started", "start") if step == 5 else ("phase", "descend")
            self.events.publish(
                msg.SkillEvent(skill="grasp", id=1, event=kind, phase=phase, has_position=True, position=position)
            )


@pytest.fixture
def write(tmp_path: Path):
    def make(faults: str) -> Path:
        path = tmp_path / "meddled.yaml"
        path.write_text(HEAD % __file__ + faults)
        return path

    return make


def run_with_faults(path: Path, seconds: float = 1.4) -> tuple[dict[str, tuple[np.ndarray, float]], list[dict]]:
    """Where things are then, and how upright; and what happened."""
    with build_run(resolve_scenario(load_scenario(path)), record=False) as run:
        run.run_for(seconds)
        found = {}
        for name in run.objects:
            if name in run.simulation.models:
                pose = run.simulation.ground_truth(name).T_world_base
                found[name] = (pose.translation, float(pose.rotation_matrix()[2, 2]))
        return found, [*run.events, {"models": list(run.simulation.models)}]


def test_fault_happens_at_the_event_of_the_skill(write):
    path = write("  - {time: 0 s, trigger: grasp.descend, type: knock_over}\n")
    upright, no_events = run_with_faults(path, 0.65)
    assert upright["one"][1] > 0.99
    assert no_events[:-1] == []
    found, events = run_with_faults(path)
    assert abs(found["one"][1]) < 0.1, "it lies"
    assert found["two"][1] > 0.99
    assert events[0]["time"] == pytest.approx(0.7)
    assert events[0] == {**events[0], "kind": "knock_over", "state": "occurred"}


def test_fault_does_not_happen_before_its_time(write):
    assert run_with_faults(write("  - {time: 0.8 s, trigger: grasp.descend, type: knock_over}\n"))[1][:-1] == []


def test_remove_object_removes_the_object(write):
    found, _ = run_with_faults(write("  - {time: 0 s, trigger: grasp, type: remove_object}\n"))
    assert list(found) == ["two", "place"]


def test_push_objects_together_moves_an_object_to_another(write):
    found, _ = run_with_faults(write("  - {time: 0 s, trigger: grasp, type: push_objects_together}\n"))
    assert math.dist(found["one"][0][:2], found["two"][0][:2]) == pytest.approx(0.02, abs=6e-4)
    assert found["one"][0][:2] == pytest.approx((0.24, 0.05), abs=1e-3)


def test_cover_place_puts_a_sheet_on_a_place(write):
    _, events = run_with_faults(write("  - {time: 0 s, trigger: grasp, type: cover_place}\n"))
    assert "sheet_1" in events[-1]["models"]


def test_drop_object_drops_the_object_below_the_gripper(write):
    found, _ = run_with_faults(write("  - {time: 0 s, trigger: grasp, type: drop_object, object: two}\n"))
    assert abs(found["two"][1]) < 0.5 or math.dist(found["two"][0][:2], (0.24, -0.05)) > 0.05


def test_erase_removes_a_place_and_occupy_fills_one(write):
    found, events = run_with_faults(
        write(
            "  - {time: 0 s, trigger: grasp, type: remove_place}\n"
            "  - {time: 0 s, trigger: grasp.descend, type: occupy_place}\n"
        ),
        0.702,
    )
    assert "place" not in events[-1]["models"]
    assert found["two"][0][:2] == pytest.approx((0.24, 0.05), abs=1e-2), "the farther of the two"
    assert [event["text"].split(" (")[0] for event in events[:-1]] == [
        "place was wiped out", "two was put where a thing shall stand",
    ]  # fmt: skip


def test_events_are_counted_and_missing_objects_reported(write):
    repeated = "  - {time: 0 s, trigger: grasp.descend, occurrence: 2, type: knock_over}\n"
    assert run_with_faults(write(repeated))[1][:-1] == [], "it comes but once"
    missing = (
        "  - {time: 0 s, trigger: grasp, type: remove_place}\n"
        "  - {time: 0 s, trigger: grasp.descend, type: cover_place}\n"
    )
    assert run_with_faults(write(missing))[1][1]["text"].startswith("cover_place: there is nothing")


def test_low_light_darkens_colors_but_not_depth(write):
    path = write("  - {time: 0 s, trigger: grasp, type: low_light, sensor: camera, brightness: 0.1}\n")
    with build_run(resolve_scenario(load_scenario(path)), record=False) as run:
        observed: dict[str, list[tuple[float, float]]] = {"/camera/rgb/image_raw": [], "/camera/depth/image": []}

        def record_image(image, topic) -> None:
            kind = np.uint8 if "rgb" in topic else np.float32
            values = np.frombuffer(bytes(image.data), kind).astype(float)
            observed[topic].append((run.time, float(np.nanmean(values[np.isfinite(values)]))))

        for topic in observed:
            run.bus.subscribe(topic, ry.msg.Image, "/t", lambda image, topic=topic: record_image(image, topic))
        run.run_for(1.0)
    for topic, low, high in (("/camera/rgb/image_raw", 0.07, 0.13), ("/camera/depth/image", 0.5, 2.0)):  # the arm sinks
        light = [value for time, value in observed[topic] if time < 0.5]
        dark = [value for time, value in observed[topic] if time > 0.7]
        assert low * np.mean(light) < np.mean(dark) < high * np.mean(light), topic


def test_depth_dropout_loses_only_depth(write):
    path = write("  - {time: 0 s, trigger: grasp, duration: 0.3 s, type: depth_dropout, sensor: camera}\n")
    with build_run(resolve_scenario(load_scenario(path)), record=False) as run:
        observed: list[tuple[float, float, int]] = []
        color_images: list[int] = []

        def record_depth(image) -> None:
            depth = np.frombuffer(bytes(image.data), np.float32)
            observed.append((run.time, float(np.isfinite(depth).mean()), len(color_images)))

        run.bus.subscribe("/camera/depth/image", ry.msg.Image, "/t", record_depth)
        run.bus.subscribe("/camera/rgb/image_raw", ry.msg.Image, "/t", lambda image: color_images.append(1))
        run.run_for(1.2)
    fraction = {round(time, 3): is_known for time, is_known, _ in observed}
    blind = [time for time, is_known in fraction.items() if is_known == 0.0]
    assert all(0.5 <= time <= 0.8 for time in blind)
    assert len(blind) >= 4
    assert all(is_known > 0.0 for time, is_known in fraction.items() if not 0.5 <= time <= 0.8)
    assert len(color_images) == len(observed), "color images continue"


def test_object_faults_repeat_and_are_reported_again(write, tmp_path):
    path = write(
        "  - {time: 0 s, trigger: grasp.descend, type: drop_object}\n"
        "  - {time: 0.2 s, duration: 0.4 s, type: sensor_dropout, sensor: camera}\n"
    )
    outcomes = [
        run_scenario(load_scenario(path), RunOptions(out=tmp_path / name, write_report=False, serve=False))
        for name in "ab"
    ]
    assert recording_digest(tmp_path / "a") == recording_digest(tmp_path / "b")
    events = outcomes[0].metrics["events"]
    assert [(e["kind"], e["state"]) for e in events] == [
        ("sensor_dropout", "started"), ("sensor_dropout", "finished"), ("drop_object", "occurred"),
    ]  # fmt: skip
    (tmp_path / "a/metrics.json").unlink()  # as if it had been killed
    regenerate_report(tmp_path / "a")
    repeated = json.loads((tmp_path / "a/metrics.json").read_text())["events"]
    assert [(e["kind"], e["state"], e["text"]) for e in repeated] == [
        (e["kind"], e["state"], e["text"]) for e in events
    ]
    assert [e["time"] for e in repeated] == pytest.approx([e["time"] for e in events], abs=1e-6)


@pytest.mark.slow
def test_object_faults_go_on_from_states(write, tmp_path):
    silent = "  - {time: 0 s, trigger: grasp, duration: 0.4 s, type: sensor_dropout, sensor: camera}\n"
    path = write(silent + "  - {time: 0 s, trigger: grasp.descend, type: knock_over}\n")
    complete = tmp_path / "whole"
    states = snapshot_requests(tmp_path, (0.3, 0.6, 0.8))
    run_scenario(
        load_scenario(path),
        RunOptions(out=complete, write_report=False, serve=False, snapshots=states),
    )
    for time, state in map(astuple, states):
        out = tmp_path / f"from{time}"
        run_scenario(load_scenario(path), RunOptions(out=out, write_report=False, serve=False, from_snapshot=state))
        assert recording_digest(out) == recording_digest(complete), time


@pytest.mark.parametrize(("fault", "message"), [
    ("{time: 0, trigger: grasp..low, type: drop_object}", "SKILL.PHASE"),
    ("{time: 1, type: drop_object, object: three}", "there are: one, two, place"),
    ("{time: 1, type: drop_object, robot: two}", "two has no gripper"),
    ("{time: 1, type: depth_dropout, sensor: finger_left}", "measures no depth"),
    ("{time: 1, type: low_light, sensor: finger_left}", "sees no colours"),
    ("{time: 1, type: call_service}", "no node serves /arm/stop"),
    ("{time: 1, type: drop_object, occurrence: 2}", "occurrence or trigger_delay without a trigger"),
])  # fmt: skip
def test_invalid_object_faults_are_refused(write, fault, message):
    with pytest.raises(ConfigError, match=message):
        build_run(resolve_scenario(load_scenario(write(f"  - {fault}\n"))), record=False)
