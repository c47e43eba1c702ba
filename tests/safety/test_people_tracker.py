"""People from scans: legs that belong together, people followed through silence, and against the truth in a run."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.bus import BusHarness

from roboyard.bus import NodeError
from roboyard.geometry import SE3
from roboyard.messages.convert.scans import ScanGeometry, scan_to_msg
from roboyard.record import open_recording
from roboyard.safety.collaborative.people_tracker import (
    BackgroundModel,
    PeopleTracker,
    PersonTrackingConfig,
    cluster_points,
)
from roboyard.safety.nodes import PeopleTrackerNode
from roboyard.scenarios import load_scenario, run_scenario
from roboyard.scenarios.run_options import RunOptions

LEGS = np.array([[0.0, 0.1], [0.05, 0.1], [0.0, -0.1], [0.05, -0.1]])
DISTANT_LEGS = LEGS + np.array([2.0, 0.0])


@given(st.lists(st.tuples(st.floats(-3.0, 3.0), st.floats(-3.0, 3.0)), min_size=1, max_size=20), st.floats(0.05, 1.0))
def test_clusters_are_separated_by_gaps(points, max_gap) -> None:
    array = np.array(points)
    found = [array[rows] for rows in cluster_points(array, max_gap)]
    assert sorted(map(tuple, np.concatenate(found).tolist())) == sorted(map(tuple, array.tolist()))
    for i, one in enumerate(found):
        for other in found[i + 1 :]:
            assert np.linalg.norm(one[:, None] - other[None], axis=2).min() > max_gap
        if len(one) > 1:
            gaps = np.linalg.norm(one[:, None] - one[None], axis=2) + 10.0 * np.eye(len(one))
            assert gaps.min(axis=1).max() <= max_gap


@given(st.floats(-1.6, 1.6), st.floats(-1.6, 1.6))
def test_even_walk_is_one_track_with_its_speed(vx, vy) -> None:
    tracker = PeopleTracker(PersonTrackingConfig())
    for k in range(75):
        tracks = tracker.update(0.04 * k, LEGS + np.array([2.0 + 0.04 * k * vx, 0.04 * k * vy]))
    assert len(tracks) == 1
    assert tracks[0].track_id == 1
    assert tracks[0].velocity == pytest.approx((vx, vy), abs=0.02)
    assert math.dist(tracks[0].position, (2.025 + 2.96 * vx, 2.96 * vy)) < 0.02
    assert tracks[0].radius >= 0.1


def test_tracks_stay_separate_and_survive_occlusion() -> None:
    tracker = PeopleTracker(PersonTrackingConfig(track_timeout=0.5))
    for k in range(50):
        walking_legs = LEGS + np.array([0.0, 3.0 + 0.04 * k])
        both = np.vstack([DISTANT_LEGS, walking_legs]) if not 20 <= k < 30 else DISTANT_LEGS
        tracks = tracker.update(0.04 * k, both)
        assert [track.track_id for track in tracks] == [1, 2], "while it is hidden it is where it was expected"
    for k in range(50, 70):
        tracks = tracker.update(0.04 * k, DISTANT_LEGS)
    assert [track.track_id for track in tracks] == [1]
    restored = PeopleTracker(PersonTrackingConfig())
    restored.load_state(tracker.save_state())
    assert restored.update(2.8, LEGS) == tracker.update(2.8, LEGS)


def test_background_is_what_was_there_first() -> None:
    background = BackgroundModel(PersonTrackingConfig(background_learning_time=0.5, foreground_threshold=0.1))
    wall = np.full(10, 3.0)
    for k in range(11):
        assert not background.foreground(0.05 * k, wall + 0.01 * (-1) ** k).any()
    ranges = wall.copy()
    ranges[4] = 2.0
    assert background.foreground(1.0, ranges).tolist() == [k == 4 for k in range(10)]
    ranges[:] = np.inf
    assert not background.foreground(1.1, ranges).any(), "what goes away is nobody"
    assert background.foreground(1.2, wall).all(), "but who comes to where it was is somebody"


def test_background_tolerates_edge_and_range_noise() -> None:
    steps = np.where(np.arange(40) // 8 % 2 == 0, 2.0, 5.0)
    sure, lenient = (
        BackgroundModel(
            PersonTrackingConfig(background_learning_time=0.1, depth_noise_coefficient=coefficient, edge_blur=edge_blur)
        )
        for coefficient, edge_blur in ((0, 0), (0.01, 2))
    )
    rng = np.random.default_rng(0)
    wrong = [0, 0]
    for k in range(100):
        ranges = np.roll(steps, int(rng.integers(-1, 2)))
        ranges = ranges + rng.normal(size=40) * 0.003 * ranges**2
        for n, background in enumerate((sure, lenient)):
            wrong[n] += int(background.foreground(0.04 * k, ranges).sum())
    assert wrong[0] > 100
    assert wrong[1] == 0
    steps[20] = 1.5
    assert lenient.foreground(9.0, steps).tolist() == [n == 20 for n in range(40)]


def test_tracker_drops_bad_scans_and_refuses_bad_places(harness: BusHarness) -> None:
    harness.add(PeopleTrackerNode(), "tracker")
    output = harness.published("/tracked_people")

    def send(step: float) -> None:
        geometry = ScanGeometry(-1.0, step, 0.1, 9.0)
        scan = scan_to_msg(np.full(5, 2.0), geometry, frame="laser", time_ns=harness.now_ns)
        harness.publish("/scan", scan, source="/laser")
        harness.run_for(0.1)

    send(0.5)
    assert not output
    assert any("ignored a scan" in line for line in harness.log_lines)
    harness.set_transform(SE3.identity(), "base_link", "laser", static=True)
    send(math.nan)
    assert not output
    send(0.5)
    assert len(output) == 1
    with pytest.raises(NodeError, match="3 or 6"):
        harness.add(PeopleTrackerNode(robot_pose=(1.0,)), "other")


def test_scanner_sees_people_where_they_are(tmp_path: Path) -> None:
    spec = load_scenario("cell-approach", overrides=["person_sensing=laser_scanner", "duration=6 s"])
    outcome = run_scenario(spec, RunOptions(out=tmp_path / "run", write_report=False, serve=False))
    assert outcome.state == "done", outcome.error
    errors: list[float] = []
    anna = None
    with open_recording(tmp_path / "run") as recording:
        for item in recording.messages(["/truth/anna/pose", "/tracked_people"]):
            if item.topic == "/truth/anna/pose":
                anna = (item.message.pose.position.x, item.message.pose.position.y)
            elif anna is not None and item.time_ns > 1.5e9:
                positions = [(body.poses[0].position.x, body.poses[0].position.y) for body in item.message.people]
                errors.append(min((math.dist(anna, other) for other in positions), default=9.0))
    assert len(errors) > 100
    assert np.quantile(errors, 0.95) < 0.3, "legs are about the middle between the feet"
