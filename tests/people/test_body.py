"""People's bodies: dimensions and masses, contact forces, and how range sensors and cameras perceive them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.models import lidar_sensor

from roboyard.description.model import Capsule, Link, Model, PlacedModel, World
from roboyard.description.sensors import Sensor
from roboyard.errors import ConfigError, InputError, UnknownNameError
from roboyard.geometry import SE3
from roboyard.people import PARTS, BodyDimensions, make_person_model
from roboyard.people import anthropometry as a
from roboyard.people.anthropometry import compute_capsule_length, compute_capsule_radius
from roboyard.people.body import make_segment_capsule, make_skin_mesh
from roboyard.people.skeleton import PARENTS, PART_INDEX, REST_POSE_ROTATIONS, Skeleton, segment_name
from roboyard.rendering.cameras import look_at
from roboyard.rendering.ray_renderer import RayRenderer
from roboyard.simulation import ModelOptions, Simulation
from roboyard.simulation.validation.bodies import make_ball, make_box, make_floor, set_velocity
from roboyard.simulation.validation.mechanics import simulate_impact

MEAN = BodyDimensions.from_height(1.75)
BODY = make_person_model(MEAN)
AIR = World("air", gravity=(0.0, 0.0, 0.0))


def with_person(timestep: float = 0.001) -> Simulation:
    sim = Simulation(AIR, timestep=timestep)
    sim.add(BODY.model, "anna", options=ModelOptions(compliant_parts=BODY.compliant_parts))
    return sim


def move_body(sim: Simulation, displacement: tuple[float, float, float], seconds: float) -> None:
    sim.world.compliant_bodies.move_to(
        "anna", sim.world.data.mocap_pos + displacement, sim.world.data.mocap_quat.copy(), seconds
    )


# -- size and weight ---------------------------------------------------------------------------------------------------
def test_body_parts_weigh_as_much_as_the_body() -> None:
    assert sum(a.MASS_FRACTIONS[segment_name(part)] for part in PARTS) == pytest.approx(1.0)
    assert BODY.model.mass == pytest.approx(MEAN.mass)


@given(st.floats(0.9, 2.4), st.floats(14.0, 40.0))
def test_body_has_its_height_and_touches_the_ground(height: float, index: float) -> None:
    body = make_person_model(BodyDimensions.from_height(height, index * height**2))
    tops, bottoms = [], []
    for link in body.model.links:
        T = link.T_model_link @ link.collisions[0].T_link_geom
        capsule = link.collisions[0].geometry
        assert isinstance(capsule, Capsule)
        half = 0.5 * capsule.length * abs(T.rotation_matrix()[2, 2]) + capsule.radius
        tops.append(T.xyz[2] + half)
        bottoms.append(T.xyz[2] - half)
    assert max(tops) == pytest.approx(height, rel=0.02)
    assert min(bottoms) == pytest.approx(0.0, abs=1e-9 * height)


@given(st.floats(1e-4, 0.1), st.floats(0.05, 0.6))
def test_body_capsules_have_their_volume(volume: float, length: float) -> None:
    radius = compute_capsule_radius(volume, length)
    assert math.pi * radius**2 * length + 4.0 / 3.0 * math.pi * radius**3 == pytest.approx(volume, rel=1e-6)
    assert compute_capsule_length(volume, radius) == pytest.approx(length, rel=1e-4)


def test_height_percentiles_rise_and_the_median_halves_people() -> None:
    for sex in a.STATURES:
        heights = [BodyDimensions.from_percentile(p, sex).height for p in (1, 5, 50, 95, 99)]
        assert heights == sorted(heights)
        assert heights[2] == pytest.approx(a.STATURES[sex][0])


@pytest.mark.parametrize("height", [0.0, -1.0, 0.5, 3.0, math.nan, math.inf])
def test_impossible_body_heights_are_refused(height: float) -> None:
    with pytest.raises(ConfigError, match="person"):
        BodyDimensions.from_height(height)


def test_impossible_weights_and_percentiles_are_refused() -> None:
    with pytest.raises(ConfigError, match="from .* kg"):
        BodyDimensions.from_height(1.8, 5.0)
    with pytest.raises(ConfigError, match="percentile"):
        BodyDimensions.from_percentile(100.0, "female")
    with pytest.raises(ConfigError, match="female, male"):
        BodyDimensions.from_percentile(50.0, "other")  # type: ignore[arg-type]


# -- kinematics --------------------------------------------------------------------------------------------------------
def test_bones_keep_their_lengths_in_every_pose() -> None:
    rng = np.random.default_rng(3)
    skeleton = Skeleton.from_dimensions(MEAN)
    rotations = rng.normal(size=(len(PARTS), 4))
    rotations /= np.linalg.norm(rotations, axis=1, keepdims=True)
    positions, orientations = skeleton.compute_part_poses(np.array([1.0, 2.0, 3.0]), rotations)
    assert np.allclose(np.linalg.norm(orientations, axis=1), 1.0)
    for part in range(1, len(PARTS)):
        bone = np.linalg.norm(positions[part] - positions[PARENTS[part]])
        assert bone == pytest.approx(np.linalg.norm(skeleton.offsets[part]))
    T = SE3(tuple(orientations[PARENTS[PART_INDEX["left_hand"]]]), tuple(positions[PARENTS[PART_INDEX["left_hand"]]]))
    hand = T @ SE3(tuple(rotations[PART_INDEX["left_hand"]]), tuple(skeleton.offsets[PART_INDEX["left_hand"]]))
    assert np.allclose(hand.xyz, positions[PART_INDEX["left_hand"]])


def test_rest_pose_is_symmetric() -> None:
    positions, _ = Skeleton.from_dimensions(MEAN).compute_part_poses(
        Skeleton.from_dimensions(MEAN).offsets[0], REST_POSE_ROTATIONS
    )
    for part in PARTS:
        if part.startswith("left_"):
            other = positions[PART_INDEX["right_" + segment_name(part)]]
            assert np.allclose(positions[PART_INDEX[part]], other * [1.0, -1.0, 1.0])


def test_skin_meshes_are_closed_and_as_wide_as_capsules() -> None:
    for part in PARTS:
        mesh = make_skin_mesh(segment_name(part), MEAN.height)
        assert mesh.inline is not None
        points = np.frombuffer(mesh.inline.values, np.float32).reshape(-1, 3)
        faces = np.frombuffer(mesh.inline.faces, np.int32).reshape(-1, 3)
        edges = np.sort(faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
        _, count = np.unique(edges, axis=0, return_counts=True)
        assert (count == 2).all(), part
        corners = points[faces]
        volume = np.linalg.det(corners.astype(float)).sum() / 6.0
        assert volume > 0.0, part  # its triangles look outward
        assert 0.4 < volume / MEAN.segment_volume(segment_name(part)) < 3.0, part  # with what lies in its neighbours
        capsule, T = make_segment_capsule(segment_name(part), MEAN)
        local = (points - np.asarray(T.xyz)) @ T.rotation_matrix()
        inside = np.clip(local[:, 2], -0.5 * capsule.length, 0.5 * capsule.length)
        out = np.linalg.norm(local - np.outer(inside, [0.0, 0.0, 1.0]), axis=1) - capsule.radius
        assert out.max() < 0.09, part  # skins run on into their neighbours


# -- touching ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("front", [True, False])
@pytest.mark.parametrize("part", PARTS)
def test_impact_force_is_that_of_two_masses_and_a_spring(part: str, front: bool) -> None:
    for mass in (2.0, 10.0):
        impact = simulate_impact(BODY, part, front=front, mass=mass, speed=0.5, timestep=0.001)
        assert impact.relative_error < 0.05, (impact, mass)


def test_softer_body_regions_have_smaller_impact_forces() -> None:
    def force(part: str, front: bool) -> float:
        return simulate_impact(BODY, part, front=front, mass=5.0, speed=0.5, timestep=0.001).measured_force

    assert force("head", False) > force("head", True) > force("chest", True) > force("abdomen", True)


def test_impact_momentum_goes_into_the_yielding_part_and_back() -> None:
    sim = with_person()
    top = BODY.model.link("head").T_model_link.xyz
    sim.add(make_ball(mass=2.0), "ball", SE3(translation=(top[0] + 0.3, 0.0, top[2] + 0.08)))
    set_velocity(sim, (-1.0, 0.0, 0.0), name="ball")
    row = sim.world.compliant_bodies.rows["anna"]["head"]
    furthest = 0.0
    for _ in range(60):
        sim.step(50)
        furthest = max(furthest, float(-(sim.world.data.mocap_pos[row, 0] - top[0])))
    assert 0.01 < furthest < 0.2
    assert sim.ground_truth("ball").pose.xyz[0] > top[0] + 0.1  # thrown back
    assert np.linalg.norm(sim.world.data.mocap_pos[row] - np.asarray(top)) < 0.2 * furthest


def test_two_contacts_of_one_body_divide_their_force() -> None:
    """A box flat on a forearm touches it in two points."""
    forces = []
    for model, half_size in ((make_ball(mass=2.0), 0.1), (make_box(size=(0.1, 0.2, 0.2)), 0.1)):
        sim = with_person()
        position = np.asarray(BODY.model.link("left_forearm").T_model_link.xyz)
        sim.add(model, "body", SE3(translation=(position[0], position[1] + half_size + 0.05, position[2] - 0.13)))
        set_velocity(sim, (0.0, -0.5, 0.0))
        largest = 0.0
        for _ in range(200):
            sim.step()
            largest = max(largest, float(np.linalg.norm(sim.world.compliant_bodies.forces("anna")["left_forearm"])))
        forces.append(largest)
    assert forces[1] == pytest.approx(forces[0], rel=0.1)


# -- leading -----------------------------------------------------------------------------------------------------------
def test_kinematic_links_move_straight_to_their_targets() -> None:
    sim = with_person()
    start = sim.world.data.mocap_pos.copy()
    move_body(sim, (1.0, 0.0, 0.0), 0.5)
    sim.step(250)
    assert np.allclose(sim.world.data.mocap_pos, start + np.array([0.5, 0.0, 0.0]), atol=1e-12)
    sim.step(500)
    assert np.allclose(sim.world.data.mocap_pos, start + np.array([1.0, 0.0, 0.0]), atol=1e-12)
    assert np.allclose(sim.ground_truth("anna").pose.xyz, start[0] + [1.0, 0.0, 0.0])


def test_kinematic_links_survive_added_models_and_saved_states() -> None:
    runs = []
    for detour in ("none", "add", "save"):
        sim = with_person()
        move_body(sim, (0.3, 0.0, 0.0), 0.3)
        sim.add(make_ball(), "ball", SE3(translation=(0.45, 0.0, 1.3)))
        sim.step(100)
        if detour == "add":
            sim.add(make_ball(), "late", SE3(translation=(9.0, 9.0, 9.0)))
        if detour == "save":
            saved = sim.save_state()
            sim.step(77)
            sim.load_state(saved)
        sim.step(400)
        runs.append((sim.world.data.mocap_pos.tobytes(), np.asarray(sim.ground_truth("ball").pose.xyz).tobytes()))
    assert runs[0] == runs[1] == runs[2]
    assert np.frombuffer(runs[0][1])[0] > 0.5  # it was pushed


def test_links_that_cannot_be_kinematic_are_refused() -> None:
    sim = with_person()
    sim.add(make_ball(), "ball", SE3(translation=(3.0, 0.0, 0.0)))
    with pytest.raises(UnknownNameError, match="anna"):
        sim.world.compliant_bodies.move_to("ball", np.zeros((1, 3)), np.zeros((1, 4)), 1.0)
    with pytest.raises(InputError, match="each of 17 links"):
        sim.world.compliant_bodies.move_to("anna", np.zeros((1, 3)), np.zeros((1, 4)), 1.0)
    with pytest.raises(InputError, match="finite"):
        move_body(sim, (math.nan, 0.0, 0.0), 1.0)
    with pytest.raises(ConfigError, match="positive"):
        move_body(sim, (1.0, 0.0, 0.0), 0.0)


# -- being seen --------------------------------------------------------------------------------------------------------
def test_lidar_measures_the_capsules_of_a_body() -> None:
    sensor = Sensor(
        "lidar",
        "lidar",
        "stand",
        SE3(translation=(0.0, 0.0, 1.26)),
        10.0,
        "scan",
        "stand",
        lidar_sensor(samples=90).spec,
    )
    stand = PlacedModel(
        "stand", Model("stand", (Link("stand", SE3.identity()),), sensors=(sensor,), static=True), SE3.identity()
    )
    sim = Simulation(World("hall", (make_floor(), stand)), timestep=0.001)
    sim.add(
        BODY.model, "anna", SE3(translation=(2.0, 0.0, 0.0)), options=ModelOptions(compliant_parts=BODY.compliant_parts)
    )
    move_body(sim, (1.0, 0.0, 0.0), 0.1)
    sim.step(200)
    scan = sim.sensors("stand")[0].read()
    chest, _ = make_segment_capsule("chest", MEAN)
    assert np.min(scan.ranges) == pytest.approx(3.0 - chest.radius, abs=0.03)
    assert 5 < np.isfinite(scan.ranges).sum() < 30


def test_renderers_show_the_skin_at_the_body_pose() -> None:
    sim = with_person()
    move_body(sim, (0.0, 1.0, 0.0), 0.01)
    sim.step(20)
    scene = sim.visual_scene()
    assert np.allclose(scene.data.mocap_pos, sim.world.data.mocap_pos)
    camera = look_at((3.0, 1.0, 1.2), (0.0, 1.0, 1.2), fov_y=0.5)
    with RayRenderer(scene.model, 60, 60) as renderer:
        image = renderer.render(scene.data, camera).astype(int)
    center, edge = image[30, 30], image[30, 2]
    assert center[2] > center[0] + 20  # a blue shirt
    assert np.abs(center - edge).max() > 30


def test_contact_forces_agree_in_worlds_solved_by_mujoco() -> None:
    """Beyond 59 degrees of freedom MuJoCo's own solver is used."""

    def force(others: int) -> float:
        sim = with_person()
        for k in range(others):
            sim.add(make_ball(), f"other{k}", SE3(translation=(5.0 + k, 0.0, 1.0)))
        top = BODY.model.link("head").T_model_link.xyz
        sim.add(make_ball(mass=5.0), "ball", SE3(translation=(top[0] + 0.3, 0.0, top[2] + 0.08)))
        set_velocity(sim, (-1.0, 0.0, 0.0), name="ball")
        largest = 0.0
        for _ in range(400):
            sim.step()
            largest = max(largest, float(np.linalg.norm(sim.world.compliant_bodies.forces("anna")["head"])))
        return largest

    assert force(12) == pytest.approx(force(0), rel=1e-3)
