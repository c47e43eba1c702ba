"""People from depth pictures: columns that hold what was seen, the robot and the floor left out, and in a run."""

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
from roboyard.safety.body_columns import Cells
from roboyard.safety.capsules import LinkCapsules
from roboyard.safety.depth_people import DepthPeople, Shot, SightConfig, mark_near
from roboyard.safety.nearness import BodyCapsules, nearness
from roboyard.safety.nodes import DepthPeopleTrackerNode
from roboyard.safety.people_tracking import TrackingConfig
from roboyard.scenarios import load_scenario, run_scenario
from roboyard.scenarios.run_options import RunOptions

LENS = CameraModel.from_field_of_view(120, 90, 1.2)
RAYS = LENS.ray_slopes()
EYE = SE3.from_rotation_matrix(np.array([[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]]), (0.0, 0.0, 1.2))
"""Looks along x from 1.2 m up."""
NOBODY = np.zeros((0, 2, 3)), np.zeros(0)
TRACKING = TrackingConfig(learn=0.2, clearance=0.15, stride=0.35)


def picture(*boxes: tuple[float, float, float, float, float], wall: float = 6.0) -> np.ndarray:
    """Of walls at x = 6 and of boards that face the camera: x, least and greatest y, least and greatest height."""
    depth = np.full((90, 120), wall, np.float32)
    with np.errstate(divide="ignore"):
        floor = np.where(RAYS[..., 1] > 0.0, 1.2 / RAYS[..., 1], np.inf)
    depth = np.minimum(depth, floor).astype(np.float32)
    for x, low, high, bottom, top in boxes:
        y, z = -RAYS[..., 0] * x, 1.2 - RAYS[..., 1] * x
        depth[(y >= low) & (y <= high) & (z >= bottom) & (z <= top) & (depth > x)] = x
    return depth


def after_learning(**sight: float) -> DepthPeople:
    people = DepthPeople(SightConfig(**sight), TRACKING)
    for k in range(4):
        people.see(Shot(0.1 * k, picture(), RAYS, EYE), *NOBODY)
    return people


def board(x: float, y: float) -> tuple[float, float, float, float, float]:
    return x, y - 0.2, y + 0.2, 0.1, 1.6


@given(st.integers(0, 60), st.floats(0.05, 0.5))
def test_cells_hold_every_point_of_squares_with_enough(count: int, side: float) -> None:
    points = np.random.default_rng(count).uniform(-1.0, 1.0, (count, 3))
    cells = Cells.of(points, side, 2)
    for point in points:
        at = np.abs(cells.places - point[:2]).max(axis=1) <= 0.5 * side + 1e-9
        alone = (np.floor(points[:, :2] / side) == np.floor(point[:2] / side)).all(axis=1).sum() == 1
        assert alone or (at & (cells.lowest <= point[2]) & (cells.highest >= point[2])).any()


@given(st.floats(1.5, 4.0), st.floats(-0.5, 0.5))
def test_columns_hold_observed_points_and_hidden_depth(x: float, y: float) -> None:
    (seen,) = after_learning().see(Shot(1.0, picture(board(x, y)), RAYS, EYE), *NOBODY) or []
    columns = seen.columns
    middles, lengths = columns.middle_lines()
    heights = np.stack([middles - 0.5 * lengths, middles + 0.5 * lengths], axis=1)
    ends = np.concatenate([np.repeat(columns.places[:, None], 2, axis=1), heights[..., None]], axis=2)
    along, up = np.meshgrid(np.linspace(y - 0.17, y + 0.17, 9), np.linspace(0.3, 1.5, 13))
    for behind in (0.0, 0.15):
        points = np.column_stack([np.full(along.size, x + behind), along.ravel(), up.ravel()])
        within = np.zeros(len(points), np.bool_)
        mark_near(points, ends, columns.radii + 0.03, within)
        assert within.all()
    assert np.abs(columns.places - [x + 0.1, y]).max() < 0.4, "nor is it much more"
    assert seen.track.place == pytest.approx((x, y), abs=0.1)


def test_small_or_low_objects_and_the_robot_are_no_person() -> None:
    people = after_learning()
    part, mat = (1.5, -0.05, 0.1, 0.9, 1.2), (1.5, -0.3, 0.3, 0.0, 0.1)
    assert people.see(Shot(1.0, picture(part, mat), RAYS, EYE), *NOBODY) == []
    arm = np.array([[[2.0, 0.0, 0.0], [2.0, 0.0, 1.6]]]), np.array([0.3])
    assert people.see(Shot(1.1, picture(board(2.0, 0.0)), RAYS, EYE), *arm) == []
    assert len(people.see(Shot(1.2, picture(board(2.0, 0.0)), RAYS, EYE), *NOBODY) or []) == 1


def test_hidden_person_keeps_track_and_body() -> None:
    people = after_learning()
    for k in range(20):
        found = people.see(Shot(1.0 + 0.1 * k, picture(board(2.5, -0.5 + 0.05 * k)), RAYS, EYE), *NOBODY)
    before = found[0].columns  # type: ignore[index]
    (gone,) = people.see(Shot(3.1, picture(), RAYS, EYE), *NOBODY) or []
    moved = gone.columns.places.mean(axis=0) - before.places.mean(axis=0)
    assert moved == pytest.approx([0.0, 0.1], abs=0.06), "half a metre a second for a fifth of a second"
    again = DepthPeople(SightConfig(), TRACKING)
    again.load_state(people.save_state())
    for one in (people, again):
        (last,) = one.see(Shot(3.2, picture(), RAYS, EYE), *NOBODY) or []
        assert last.columns.places == pytest.approx(gone.columns.places + np.array([0.0, 0.05]), abs=0.02)
    assert people.see(Shot(9.0, picture(), RAYS, EYE), *NOBODY) == []


def test_covered_camera_reports_nothing() -> None:
    people = after_learning()
    assert people.see(Shot(1.0, np.full((90, 120), -np.inf, np.float32), RAYS, EYE), *NOBODY) is None
    dazzled = picture()
    dazzled[:40] = np.nan
    assert people.see(Shot(1.1, dazzled, RAYS, EYE), *NOBODY) is None
    assert people.see(Shot(1.2, picture(), RAYS, EYE), *NOBODY) == []


# -- the node ----------------------------------------------------------------------------------------------------------
GROUPS = load_joint_groups("iisy")
JOINTS = GROUPS.chain("arm").joints


def test_depth_tracker_drops_invalid_images(harness: BusHarness) -> None:
    node = harness.add(DepthPeopleTrackerNode(description=GROUPS.model, joints=JOINTS), "tracker")
    output = harness.published("/tracked_people")

    def send(pixels: np.ndarray) -> str:
        info = camera_info_to_msg(120, 90, LENS.matrix, "lens", harness.now_ns)
        harness.publish("/depth/camera_info", info, source="/camera")
        harness.publish("/depth/image", image_to_msg(pixels, "lens", harness.now_ns), source="/camera")
        harness.run_for(0.1)
        return node.health.text

    assert "a picture is left out: frame" in send(picture())
    harness.set_transform(EYE, "base_link", "lens", static=True)
    assert "no joint states" in send(picture())
    harness.publish("/joint_states", msg.JointState(name=list(JOINTS), position=np.zeros(6), velocity=np.zeros(6)))
    assert "32FC1" in send(np.zeros((90, 120), np.uint8))
    assert "(90, 120)" in send(np.zeros((10, 10), np.float32))
    assert "too little" in send(np.full((90, 120), np.nan, np.float32))
    assert not output
    assert send(picture()) == send((1000.0 * picture()).astype(np.uint16)) == "0 people"
    assert len(output) == 2
    for wrong, error in (({"joints": ()}, "no joints"), ({"place": (1.0,)}, "3 or 6")):
        with pytest.raises((NodeError, ry.RoboyardError), match=error):
            harness.add(DepthPeopleTrackerNode(description=GROUPS.model, **{"joints": JOINTS, **wrong}), "other")


def test_camera_sees_people_no_farther_than_they_are(tmp_path: Path) -> None:
    spec = load_scenario("cell-approach", overrides=["person_sensing=depth_camera", "duration=6 s"])
    outcome = run_scenario(spec, RunOptions(out=tmp_path / "run", write_report=False, serve=False))
    assert outcome.state == "done", outcome.error
    chain = GROUPS.chain("arm")
    capsules = LinkCapsules.of(GROUPS.model, chain).moving()
    told: dict[str, deque[tuple[int, object]]] = {name: deque(maxlen=20) for name in ("anna", "ben")}
    q, farther = np.zeros(6), []

    def gap(parts: tuple[str, ...], ends: np.ndarray, radii: np.ndarray) -> float:
        bodies = BodyCapsules(("x",) * len(parts), parts, ends, radii, np.zeros_like(ends))
        return float(nearness(chain, capsules, q[None], np.zeros((1, 6)), bodies).gap.min())

    with open_recording(tmp_path / "run") as recording:
        topics = ["/joint_states", "/tracked_people", *(f"/truth/{name}/body" for name in told)]
        for item in recording.messages(topics):
            if item.topic == "/joint_states":
                q = np.array([item.message.position[list(item.message.name).index(name)] for name in JOINTS])
            elif item.topic != "/tracked_people":
                told[item.topic.split("/")[2]].append((to_nanoseconds(item.message.header.stamp), item.message))
            elif item.time_ns > 1.5e9:
                stamp = to_nanoseconds(item.message.header.stamp)
                bodies = [min(kept, key=lambda one: abs(one[0] - stamp))[1] for kept in told.values()]
                seen, true = (
                    min((gap(*person_capsules_from_msg(body)) for body in people), default=9.0)
                    for people in (item.message.people, bodies)
                )
                farther.append(seen - true)
    assert len(farther) > 50
    assert np.max(farther) < 0.15, "what the guard reckons with: C and Zd"
    assert np.median(farther) > -0.25, "nor much nearer"
