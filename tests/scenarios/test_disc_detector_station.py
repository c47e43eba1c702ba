"""The disc detector at the youBot's station detects objects, places and bays at their true positions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.harness.bus import BusHarness

from roboyard.bringup.joint_groups import load_joint_groups
from roboyard.geometry import SE3
from roboyard.messages import action
from roboyard.physics.world import link_pose
from roboyard.rendering.backends import available_backend
from roboyard.scenarios.assembly import build_run
from roboyard.scenarios.loading import LoadedScenario, load_scenario
from roboyard.scenarios.resolve import resolve_scenario

SCENARIO = """
world: pick_place_station
robots: {arm: {model: youbot_arm, nodes: [joint_states, robot_state, arm, disc_detector]}}
appearance: {light_scale: [0.7, 1.2], floor: [plain, wood, terrazzo, carpet]}
objects:
  object: {model: disc_cylinder, count: 3, sector: {center: [0.024, 0], radius: [0.19, 0.27], angle_range: [0.9, 2.2]}}
  place:
    model: place_marker
    count: 2
    min_spacing: 0.11
    sector: {center: [0.024, 0], radius: [0.19, 0.27], angle_range: [-2.2, -0.9]}
duration: 5
"""


def detect_discs(spec: LoadedScenario, pose: str, polarity: str, mode: str) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return the positions (n, 3) that the detector finds from an arm pose and the true ones by name, in world [m]."""
    joints = load_joint_groups("youbot_arm").group("arm").pose(pose)
    entry = spec.config.robots["arm"]
    entry.xacro_args["arm_pose"] = " ".join(str(value) for value in joints)
    with build_run(resolve_scenario(spec), record=False) as run:
        harness = BusHarness(bus=run.bus)
        harness.run_for(0.2)
        fields = {"polarity": polarity, "mode": mode, "num_images": 5, "frame_id": "arm_link_0", "sensitivity": 0.85}
        goal = harness.send_goal("/look", action.LookForDiscs, timeout=4.0, **fields)
        arm_links = run.simulation.world.addresses("arm").links
        T = link_pose(run.simulation.world.data, arm_links["arm_link_0"])
        found = [T @ np.array([p.x, p.y, p.z]) for p in goal.result.positions]
        truth = {name: np.asarray(run.simulation.ground_truth(name).T_world_base.translation) for name in run.objects}
        return np.array(found).reshape(-1, 3), truth


@pytest.fixture
def load_station(tmp_path: Path) -> Callable[[int], LoadedScenario]:
    """Return a function that loads the station's scenario with a seed."""
    (tmp_path / "station.yaml").write_text(SCENARIO)
    return lambda seed: load_scenario(tmp_path / "station.yaml").with_seed(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("renderer", ["auto", "rays"])
def test_objects_and_places_are_detected_at_their_true_positions(
    load_station: Callable[[int], LoadedScenario], seed: int, renderer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if renderer == "rays":
        monkeypatch.setattr("roboyard.rendering.backends.find_gl_platform", lambda: None)
        assert available_backend() == "rays"
    for pose, polarity, mode, name, height in (
        ("view_left", "white", "single", "object", 0.045),
        ("view_right", "black", "pair", "place", 0.0009),
    ):
        found, truth = detect_discs(load_station(seed), pose, polarity, mode)
        expected = [position + np.array([0.0, 0.0, height]) for key, position in truth.items() if key.startswith(name)]
        for position in expected:
            assert np.linalg.norm(found - position, axis=1).min() < 1e-3, (pose, seed)


def test_empty_bays_are_found_as_black_discs(load_station: Callable[[int], LoadedScenario]) -> None:
    found, _ = detect_discs(load_station(3), "load_check", "black", "single")
    with build_run(resolve_scenario(load_station(3)), record=False) as run:
        arm_links = run.simulation.world.addresses("arm").links
        bays = [link_pose(run.simulation.world.data, arm_links[f"bay_{k}"]).translation for k in (1, 2, 3)]
    for bay in bays:
        assert np.linalg.norm((found - bay)[:, :2], axis=1).min() < 1e-3


@pytest.mark.parametrize("speed", [0.05, 0.1])
def test_lying_cylinder_rolls_as_far_as_its_rolling_friction(speed: float, tmp_path: Path) -> None:
    radius, lever, gravity = 0.01, 0.0005, 9.81
    path = tmp_path / "rolls.yaml"
    path.write_text("""
world: pick_place_station
objects: {object: {model: disc_cylinder, sector: {radius: [0.2, 0.3], angle_range: [0, 1]}}}
duration: 5
""")
    with build_run(resolve_scenario(load_scenario(str(path))), record=False) as run:
        run.simulation.world.set_pose("object", SE3.from_xyz_rpy((0.0, 0.0, radius), (0.5 * np.pi, 0.0, 0.0)))
        run.run_for(0.2)
        _, velocity = run.simulation.world.free_joint("object")
        run.simulation.world.data.qvel[velocity] = speed
        run.simulation.world.data.qvel[velocity + 5] = 0.0
        start = run.simulation.ground_truth("object").T_world_base.translation.copy()
        run.run_for(3.0)
        pose, twist = (
            run.simulation.ground_truth("object").T_world_base,
            run.simulation.world.data.qvel[velocity : velocity + 3],
        )
    rolled = float(np.linalg.norm(pose.translation - start))
    # it slides until it rolls at two thirds of the speed, within a millimetre; then the lever slows mass and spin
    expected = (2.0 / 3.0 * speed) ** 2 / (2.0 * gravity * lever / radius / 1.5)
    assert np.linalg.norm(twist) < 1e-3
    assert 0.7 * expected < rolled < 1.5 * expected + 0.001
