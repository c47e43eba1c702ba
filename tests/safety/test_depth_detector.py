"""People from depth images: capsules around the measured points without the robot and the floor, and in a run."""

from __future__ import annotations

from collections import deque
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.bus import BusHarness

import roboyard as ry
from roboyard.bringup.joint_groups import load_joint_groups
from roboyard.bus import NodeError
from roboyard.geometry import SE3, CameraModel
from roboyard.messages import msg
from roboyard.messages.convert import camera_info_to_msg, image_to_msg, person_capsules_from_msg
from roboyard.messages.time import to_nanoseconds
from roboyard.record import open_recording
from roboyard.safety.collaborative.capsule_distance import compute_capsule_distances
from roboyard.safety.collaborative.capsules import LinkCapsules, OccupiedCells, PersonCapsules
from roboyard.safety.collaborative.depth_detector import (
    DepthDetectionConfig,
    DepthFrame,
    DepthPeopleDetector,
    mark_points_in_capsules,
)
from roboyard.safety.collaborative.people_tracker import PersonTrackingConfig
from roboyard.safety.nodes import DepthPeopleTrackerNode
from roboyard.scenarios import load_scenario, run_scenario
from roboyard.scenarios.run_options import RunOptions

CAMERA = CameraModel.from_field_of_view(120, 90, 1.2)
RAYS = CAMERA.ray_slopes()
CAMERA_POSE = SE3.from_rotation_matrix(np.array([[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]]), (0.0, 0.0, 1.2))
"""Looks along x from 1.2 m up."""
NO_CAPSULES = np.zeros((0, 2, 3)), np.zeros(0)
TRACKING = PersonTrackingConfig(background_learning_time=0.2, foreground_threshold=0.15, merge_distance=0.35)


def make_depth_image(*boxes: tuple[float, float, float, float, float], wall: float = 6.0) -> np.ndarray:
    """Of walls at x = 6 and of boards that face the camera: x, least and greatest y, least and greatest height."""
    depth = np.full((90, 120), wall, np.float32)
    with np.errstate(divide="ignore"):
        floor = np.where(RAYS[..., 1] > 0.0, 1.2 / RAYS[..., 1], np.inf)
    depth = np.minimum(depth, floor).astype(np.float32)
    for x, low, high, bottom, top in boxes:
        y, z = -RAYS[..., 0] * x, 1.2 - RAYS[..., 1] * x
        depth[(y >= low) & (y <= high) & (z >= bottom) & (z <= top) & (depth > x)] = x
    return depth


def after_learning(**detection: float) -> DepthPeopleDetector:
    people = DepthPeopleDetector(DepthDetectionConfig(**detection), TRACKING)
    for k in range(4):
        people.update(DepthFrame(0.1 * k, make_depth_image(), RAYS, CAMERA_POSE), *NO_CAPSULES)
    return people


def make_board(x: float, y: float) -> tuple[float, float, float, float, float]:
    return x, y - 0.2, y + 0.2, 0.1, 1.6


@given(st.integers(0, 60), st.floats(0.05, 0.5))
def test_cells_hold_every_point_of_squares_with_enough(count: int, cell_size: float) -> None:
    points = np.random.default_rng(count).uniform(-1.0, 1.0, (count, 3))
    cells = OccupiedCells.from_points(points, cell_size, 2)
    for point in points:
        is_same_cell = np.abs(cells.positions - point[:2]).max(axis=1) <= 0.5 * cell_size + 1e-9
        alone = (np.floor(points[:, :2] / cell_size) == np.floor(point[:2] / cell_size)).all(axis=1).sum() == 1
        assert alone or (is_same_cell & (cells.z_min <= point[2]) & (cells.z_max >= point[2])).any()


@given(st.floats(1.5, 4.0), st.floats(-0.5, 0.5))
def test_capsules_hold_observed_points_and_hidden_depth(x: float, y: float) -> None:
    (person,) = (
        after_learning().update(DepthFrame(1.0, make_depth_image(make_board(x, y)), RAYS, CAMERA_POSE), *NO_CAPSULES)
        or []
    )
    capsules = person.capsules
    centers, lengths = capsules.axis_centers_and_lengths()
    heights = np.stack([centers - 0.5 * lengths, centers + 0.5 * lengths], axis=1)
    ends = np.concatenate([np.repeat(capsules.positions[:, None], 2, axis=1), heights[..., None]], axis=2)
    along, up = np.meshgrid(np.linspace(y - 0.17, y + 0.17, 9), np.linspace(0.3, 1.5, 13))
    for behind in (0.0, 0.15):
        points = np.column_stack([np.full(along.size, x + behind), along.ravel(), up.ravel()])
        within = np.zeros(len(points), np.bool_)
        mark_points_in_capsules(points, ends, capsules.radii + 0.03, within)
        assert within.all()
    assert np.abs(capsules.positions - [x + 0.1, y]).max() < 0.4, "nor is it much more"
    assert person.track.position == pytest.approx((x, y), abs=0.1)


def test_small_or_low_objects_and_the_robot_are_no_person() -> None:
    people = after_learning()
    part, mat = (1.5, -0.05, 0.1, 0.9, 1.2), (1.5, -0.3, 0.3, 0.0, 0.1)
    assert people.update(DepthFrame(1.0, make_depth_image(part, mat), RAYS, CAMERA_POSE), *NO_CAPSULES) == []
    arm = np.array([[[2.0, 0.0, 0.0], [2.0, 0.0, 1.6]]]), np.array([0.3])
    assert people.update(DepthFrame(1.1, make_depth_image(make_board(2.0, 0.0)), RAYS, CAMERA_POSE), *arm) == []
    assert (
        len(
            people.update(DepthFrame(1.2, make_depth_image(make_board(2.0, 0.0)), RAYS, CAMERA_POSE), *NO_CAPSULES)
            or []
        )
        == 1
    )


def test_hidden_person_keeps_track_and_body() -> None:
    people = after_learning()
    for k in range(20):
        found = people.update(
            DepthFrame(1.0 + 0.1 * k, make_depth_image(make_board(2.5, -0.5 + 0.05 * k)), RAYS, CAMERA_POSE),
            *NO_CAPSULES,
        )
    before = found[0].capsules  # type: ignore[index]
    (hidden,) = people.update(DepthFrame(3.1, make_depth_image(), RAYS, CAMERA_POSE), *NO_CAPSULES) or []
    displacement = hidden.capsules.positions.mean(axis=0) - before.positions.mean(axis=0)
    assert displacement == pytest.approx([0.0, 0.1], abs=0.06), "half a metre a second for a fifth of a second"
    restored = DepthPeopleDetector(DepthDetectionConfig(), TRACKING)
    restored.load_state(people.save_state())
    for one in (people, restored):
        (last,) = one.update(DepthFrame(3.2, make_depth_image(), RAYS, CAMERA_POSE), *NO_CAPSULES) or []
        assert last.capsules.positions == pytest.approx(hidden.capsules.positions + np.array([0.0, 0.05]), abs=0.02)
    assert people.update(DepthFrame(9.0, make_depth_image(), RAYS, CAMERA_POSE), *NO_CAPSULES) == []


def test_covered_camera_reports_nothing() -> None:
    people = after_learning()
    assert (
        people.update(DepthFrame(1.0, np.full((90, 120), -np.inf, np.float32), RAYS, CAMERA_POSE), *NO_CAPSULES) is None
    )
    dazzled = make_depth_image()
    dazzled[:40] = np.nan
    assert people.update(DepthFrame(1.1, dazzled, RAYS, CAMERA_POSE), *NO_CAPSULES) is None
    assert people.update(DepthFrame(1.2, make_depth_image(), RAYS, CAMERA_POSE), *NO_CAPSULES) == []


# -- the node ----------------------------------------------------------------------------------------------------------
GROUPS = load_joint_groups("iisy")
JOINTS = GROUPS.chain("arm").joints


def test_depth_tracker_drops_invalid_images(harness: BusHarness) -> None:
    node = harness.add(DepthPeopleTrackerNode(description=GROUPS.model, joints=JOINTS), "tracker")
    output = harness.published("/tracked_people")

    def send(pixels: np.ndarray) -> str:
        info = camera_info_to_msg(120, 90, CAMERA.matrix, "lens", harness.now_ns)
        harness.publish("/depth/camera_info", info, source="/camera")
        harness.publish("/depth/image", image_to_msg(pixels, "lens", harness.now_ns), source="/camera")
        harness.run_for(0.1)
        return node.health.text

    assert "an image is ignored: frame" in send(make_depth_image())
    harness.set_transform(CAMERA_POSE, "base_link", "lens", static=True)
    assert "no joint states" in send(make_depth_image())
    harness.publish("/joint_states", msg.JointState(name=list(JOINTS), position=np.zeros(6), velocity=np.zeros(6)))
    assert "32FC1" in send(np.zeros((90, 120), np.uint8))
    assert "(90, 120)" in send(np.zeros((10, 10), np.float32))
    assert "too few" in send(np.full((90, 120), np.nan, np.float32))
    assert not output
    assert send(make_depth_image()) == send((1000.0 * make_depth_image()).astype(np.uint16)) == "0 people"
    assert len(output) == 2
    for wrong, error in (({"joints": ()}, "no joints"), ({"robot_pose": (1.0,)}, "3 or 6")):
        with pytest.raises((NodeError, ry.RoboyardError), match=error):
            harness.add(DepthPeopleTrackerNode(description=GROUPS.model, **{"joints": JOINTS, **wrong}), "other")


def test_camera_sees_people_no_farther_than_they_are(tmp_path: Path) -> None:
    spec = load_scenario("cell-approach", overrides=["person_sensing=depth_camera", "duration=6 s"])
    outcome = run_scenario(spec, RunOptions(out=tmp_path / "run", write_report=False, serve=False))
    assert outcome.state == "done", outcome.error
    chain = GROUPS.chain("arm")
    capsules = LinkCapsules.from_model(GROUPS.model, chain).without_fixed()
    true_bodies: dict[str, deque[tuple[int, object]]] = {name: deque(maxlen=20) for name in ("anna", "ben")}
    q, farther = np.zeros(6), []

    def gap(parts: tuple[str, ...], ends: np.ndarray, radii: np.ndarray) -> float:
        bodies = PersonCapsules(("x",) * len(parts), parts, ends, radii, np.zeros_like(ends))
        return float(compute_capsule_distances(chain, capsules, q[None], np.zeros((1, 6)), bodies).distance.min())

    with open_recording(tmp_path / "run") as recording:
        topics = ["/joint_states", "/tracked_people", *(f"/truth/{name}/body" for name in true_bodies)]
        for item in recording.messages(topics):
            if item.topic == "/joint_states":
                q = np.array([item.message.position[list(item.message.name).index(name)] for name in JOINTS])
            elif item.topic != "/tracked_people":
                true_bodies[item.topic.split("/")[2]].append((to_nanoseconds(item.message.header.stamp), item.message))
            elif item.time_ns > 1.5e9:
                stamp = to_nanoseconds(item.message.header.stamp)
                bodies = [min(samples, key=lambda one: abs(one[0] - stamp))[1] for samples in true_bodies.values()]
                measured, true = (
                    min((gap(*person_capsules_from_msg(body)) for body in people), default=9.0)
                    for people in (item.message.people, bodies)
                )
                farther.append(measured - true)
    assert len(farther) > 50
    assert np.max(farther) < 0.15, "what the guard reckons with: C and Zd"
    assert np.median(farther) > -0.25, "nor much nearer"
