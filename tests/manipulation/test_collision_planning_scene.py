"""Collisions: the kernels beside coal and MuJoCo, ways that are free everywhere, things that are carried."""

from __future__ import annotations

import math
from importlib import resources
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.harness.profiles import sample_count

from roboyard.bringup.joint_groups import load_joint_groups
from roboyard.description import (
    Box,
    Capsule,
    Cone,
    Cylinder,
    Ellipsoid,
    Geometry,
    Plane,
    Sphere,
    World,
    load_model,
    load_world,
)
from roboyard.description.model import PlacedModel
from roboyard.errors import InputError, UnknownNameError
from roboyard.geometry import SE3
from roboyard.manipulation import SemanticDescription, box_obstacle, guess_groups, load_groups
from roboyard.manipulation.collision import (
    AttachedBody,
    CoalChecker,
    Obstacle,
    VoxelObstacles,
    obstacles_from_world,
    voxels_from_cloud,
)
from roboyard.manipulation.collision.allowed_collisions import sample_allowed_pairs
from roboyard.manipulation.collision.convex_shapes import ConvexShapeArrays, shapes_of_geometry, stack_shapes
from roboyard.manipulation.collision.gjk import DistanceThresholds, distance_lower_bound
from roboyard.manipulation.collision.planning_scene import PlanningScene
from roboyard.simulation import Simulation

ROBOTS = Path(str(resources.files("roboyard") / "robots"))
WORLDS = Path(str(resources.files("roboyard") / "worlds"))


def scitos_arm_semantics() -> SemanticDescription:
    folder = ROBOTS / "scitos_arm"
    return load_groups(folder / "groups.yaml", load_model(folder / "scitos_arm.urdf.xacro"))


def example_obstacles() -> list[Obstacle]:
    return [
        box_obstacle("floor", (4.0, 4.0, 0.02), (0.0, 0.0, -0.02)),
        box_obstacle("plate", (0.3, 0.8, 0.02), (0.6, 0.0, 0.5), 0.3),
        Obstacle("cylinder", Cylinder(0.1, 0.6), SE3.from_xyz_rpy((-0.5, 0.3, 0.4), (0.3, 0.2, 0.0))),
        Obstacle("ball", Sphere(0.1), SE3.from_xyz_rpy((0.0, -0.5, 0.6))),
        Obstacle("capsule", Capsule(0.08, 0.5), SE3.from_xyz_rpy((0.1, 0.6, 0.7), (1.2, 0.2, 0.0))),
        Obstacle("egg", Ellipsoid((0.1, 0.2, 0.05)), SE3.from_xyz_rpy((-0.3, -0.5, 0.8), (1.2, 0.2, 0.0))),
    ]


def scene(**options: float) -> PlanningScene:
    return PlanningScene.create(scitos_arm_semantics(), obstacles=example_obstacles(), **options)  # type: ignore[arg-type]


sizes = st.floats(0.01, 0.5)
shapes = st.one_of(
    st.builds(lambda x, y, z: Box((x, y, z)), sizes, sizes, sizes),
    st.builds(Sphere, sizes),
    st.builds(Capsule, sizes, sizes),
    st.builds(Cylinder, sizes, sizes),
    st.builds(lambda x, y, z: Ellipsoid((x, y, z)), sizes, sizes, sizes),
    st.builds(Cone, sizes, sizes),
)


@st.composite
def random_poses(draw: st.DrawFn) -> SE3:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return SE3(rng.normal(size=4), rng.uniform(-0.8, 0.8, 3))


def compute_distance(one: Geometry, A: SE3, other: Geometry, B: SE3, far_threshold: float = math.inf) -> float:
    (first,), (second,) = shapes_of_geometry(one, A), shapes_of_geometry(other, B)
    a, b = stack_shapes([first]), stack_shapes([second])
    return distance_lower_bound(
        a,
        0,
        first.T_frame_shape.matrix(),
        b,
        0,
        second.T_frame_shape.matrix(),
        DistanceThresholds(far_threshold, 0.0),
        np.zeros((5, 3)),
    )


@settings(max_examples=120, deadline=None)
@given(shapes, random_poses(), shapes, random_poses())
def test_distances_agree_with_coal_and_never_exceed_it(one: Geometry, A: SE3, other: Geometry, B: SE3) -> None:
    import coal

    from roboyard.manipulation.collision.coal_checker import make_coal_geometry

    lower_bound = compute_distance(one, A, other, B)
    request = coal.DistanceRequest()
    request.enable_signed_distance = True
    coal_poses = [coal.Transform3s(T.rotation_matrix(), np.array(T.translation)) for T in (A, B)]
    coal_distance = coal.distance(
        make_coal_geometry(one, "")[0],
        coal_poses[0],
        make_coal_geometry(other, "")[0],
        coal_poses[1],
        request,
        coal.DistanceResult(),
    )
    cone = isinstance(one, Cone) or isinstance(other, Cone)  # held by a pyramid of 24 sides
    assert lower_bound <= max(coal_distance, 0.0) + 2e-6
    assert lower_bound >= coal_distance - (0.01 if cone else 2e-5) or lower_bound <= 0.0
    if coal_distance > (0.01 if cone else 2e-5):
        assert lower_bound > 0.0
    assert compute_distance(other, B, one, A) == pytest.approx(max(lower_bound, 0.0), abs=1e-6) or lower_bound <= 0.0


@settings(max_examples=100, deadline=None)
@given(shapes, random_poses(), shapes, random_poses(), st.floats(0.01, 0.3))
def test_early_ending_distance_stays_on_the_right_side(
    one: Geometry, A: SE3, other: Geometry, B: SE3, far_threshold: float
) -> None:
    exact = compute_distance(one, A, other, B)
    early = compute_distance(one, A, other, B, far_threshold)
    assert early <= exact + 1e-9
    assert early == pytest.approx(exact, abs=1e-7) or early >= far_threshold or exact <= 0.0


@settings(max_examples=60, deadline=None)
@given(shapes, random_poses())
def test_bounding_spheres_enclose_the_shape(shape: Geometry, T: SE3) -> None:
    (convex_shape,) = shapes_of_geometry(shape, T)
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(400, 3))
    arrays = stack_shapes([convex_shape])
    from roboyard.manipulation.collision.gjk import _support

    corners = np.array([_support.py_func(arrays, 0, np.eye(4), *d) for d in directions])
    surface_points = corners + convex_shape.radius * directions / np.linalg.norm(directions, axis=1)[:, None]
    spheres = convex_shape.bounding_spheres()
    distances = np.linalg.norm(surface_points[:, None] - spheres[None, :, :3], axis=2) - spheres[None, :, 3]
    assert distances.min(axis=1).max() < 1e-12
    assert (np.abs(corners) <= convex_shape.half_size + 1e-12).all()
    assert np.linalg.norm(surface_points, axis=1).max() <= convex_shape.bounding_radius + 1e-12


def test_no_touching_state_is_called_free() -> None:
    check_against_coal(600, seed=3)


@pytest.mark.slow
@pytest.mark.parametrize("robot", ["scitos_arm", "iisy", "youbot_arm"])
def test_no_touching_state_among_very_many_is_called_free(robot: str) -> None:
    count = sample_count(100_000, 0.15)
    check_against_coal(count, seed=4, robot=robot)
    assert check_against_mujoco(robot, count, seed=4) > count // 10


def check_against_coal(count: int, seed: int, robot: str = "scitos_arm") -> None:
    planning_scene = PlanningScene.create(load_joint_groups(robot), obstacles=example_obstacles(), margin=1e-6)
    exact = CoalChecker(planning_scene)
    states = planning_scene.chain.sample_positions(np.random.default_rng(seed), count)
    pairs, coal_pairs = planning_scene.find_contacts(states), [exact.find_contact(q) for q in states]
    assert [q for q, pair, other in zip(states, pairs, coal_pairs, strict=True) if pair is None and other] == []
    near_states = [q for q, pair, other in zip(states, pairs, coal_pairs, strict=True) if pair and other is None]
    assert all(exact.signed_distance(q)[0] < 1e-5 for q in near_states)  # nothing is called touching that is not
    assert 0.1 < np.mean([found is not None for found in coal_pairs]) < 0.9


def test_mujoco_finds_no_contact_in_free_states() -> None:
    assert check_against_mujoco("scitos_arm", 600, seed=7) > 300


def check_against_mujoco(robot: str, count: int, seed: int) -> int:
    """Where MuJoCo sees a contact it is right, though it misses some (thin boxes); how many states were looked at."""
    semantics = load_joint_groups(robot)
    planning_scene = PlanningScene.create(semantics, margin=1e-6)
    simulation = Simulation(World("bare", (PlacedModel("arm", semantics.model, SE3.identity()),)))
    model = simulation.visual_scene().model
    data = mujoco.MjData(model)
    names = {model.joint(j).name.split("/")[-1].split("::")[-1]: j for j in range(model.njnt)}
    addresses = [
        model.jnt_qposadr[next(j for name, j in names.items() if joint in name)]
        for joint in planning_scene.chain.joints
    ]
    states = planning_scene.chain.sample_positions(np.random.default_rng(seed), count)
    free = [q for q, found in zip(states, planning_scene.find_contacts(states), strict=True) if found is None]
    allowed = {frozenset(pair) for pair in semantics.allowed_collisions}
    for q in free:
        data.qpos[addresses] = q
        mujoco.mj_kinematics(model, data)
        mujoco.mj_collision(model, data)
        for contact in data.contact:
            bodies = [model.body(model.geom_bodyid[geom]).name for geom in contact.geom]
            links = frozenset(name.split("/")[-1].split("::")[-1] for name in bodies)
            assert contact.dist > -1e-6 or links in allowed or len(links) == 1, (q, links)
    simulation.close()
    return len(free)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_free_motions_are_free_everywhere(seed: int) -> None:
    planning_scene = scene()
    rng = np.random.default_rng(seed)
    a, b = planning_scene.chain.sample_positions(rng, 2)
    b = a + 0.5 * (b - a)
    fraction = np.linspace(0.0, 1.0, 800)[:, None]
    states = a + fraction * (b - a)
    touched = [found for found in planning_scene.with_margin(1e-4).find_contacts(states) if found]
    if planning_scene.is_line_free(a, b):
        assert touched == []
    elif not touched:  # then something is at least as near as the margin, or nearly
        assert min(planning_scene.distance(q) for q in states) < 1.1 * planning_scene.margin


def test_contacts_of_batches_equal_single_states() -> None:
    planning_scene = scene()
    states = planning_scene.chain.sample_positions(np.random.default_rng(0), 50)
    assert (
        planning_scene.find_contacts(states)
        == [planning_scene.find_contact(q) for q in states]
        == scene().find_contacts(states)
    )
    distances = [planning_scene.distance(q) for q in states]
    assert all(
        (distance < planning_scene.margin) == (found is not None)
        for distance, found in zip(distances, planning_scene.find_contacts(states), strict=True)
    )


def test_larger_margin_frees_no_state() -> None:
    states = scene().chain.sample_positions(np.random.default_rng(1), 2000)
    before = np.array([found is None for found in scene(margin=0.001).find_contacts(states)])
    after = np.array([found is None for found in scene(margin=0.03).find_contacts(states)])
    assert not (after & ~before).any()
    assert after.sum() < before.sum()


def test_voxels_cover_their_cloud() -> None:
    rng = np.random.default_rng(2)
    cloud = rng.uniform((-0.1, -0.1, 0.9), (0.1, 0.1, 1.5), (3000, 3))
    voxels = voxels_from_cloud("cloud", cloud, 0.05)
    inside = np.abs(cloud[:, None] - voxels.centers[None]).max(axis=2).min(axis=1)
    assert inside.max() <= 0.025 + 1e-9
    planning_scene = PlanningScene.create(scitos_arm_semantics(), obstacles=[voxels])
    assert planning_scene.find_contact(np.zeros(5)) in [
        (name, "cloud") for name in ("arm_link_3", "arm_link_4", "arm_link_5", "kinect", "finger_left", "finger_right")
    ]
    boxes = [box_obstacle(f"b{i}", (0.05,) * 3, center) for i, center in enumerate(voxels.centers)]
    box_scene = PlanningScene.create(scitos_arm_semantics(), obstacles=boxes)
    states = planning_scene.chain.sample_positions(rng, 300)
    assert [a is None for a in planning_scene.find_contacts(states)] == [
        b is None for b in box_scene.find_contacts(states)
    ]


def test_attached_object_collides_and_is_put_down_in_place() -> None:
    groups = scitos_arm_semantics()
    q = groups.group("arm").pose("ahead")
    bare = PlanningScene.create(groups, "arm", tool="fingertips")
    tool = SE3.from_matrix(bare.chain.forward(q))
    rod = Obstacle("rod", Cylinder(0.015, 0.5), tool @ SE3.from_xyz_rpy((0.0, 0.0, 0.02), (math.pi / 2, 0.0, 0.0)))
    scene_with_rod = bare.with_obstacles([rod, box_obstacle("wall", (0.05, 1.0, 0.5), (tool.x, 0.8, tool.z))])
    assert scene_with_rod.find_contact(q) is not None
    holding = scene_with_rod.attach_obstacle("rod", q)
    assert holding.find_contact(q) is None
    assert holding.collision_arrays.chain is scene_with_rod.chain.arrays
    released = holding.detach_to_world("rod", q)
    assert released.obstacles["rod"].T_world.almost_equal(rod.T_world, 1e-9)  # type: ignore[union-attr]
    touches = [holding.find_contact(q + angle * np.eye(5)[0]) for angle in np.linspace(-0.6, 0.6, 25)]
    assert ("rod", "wall") in touches


def test_derived_scene_equals_a_newly_built_scene() -> None:
    groups = scitos_arm_semantics()
    first = PlanningScene.create(groups, obstacles=example_obstacles()[:2])
    _ = first.collision_arrays
    q = groups.group("arm").pose("ahead")
    cloud = VoxelObstacles("cloud", np.array([[0.4, 0.3, 0.6], [0.5, 0.3, 0.6]]), 0.05)
    prism = Obstacle("prism", Cone(0.1, 0.3), SE3(translation=(0.5, -0.3, 0.4)))
    for changed in (
        first.with_obstacles([*example_obstacles()[2:], prism]).with_obstacles(
            [box_obstacle("b", (0.1,) * 3, (0.4, 0, 0.3)), cloud]
        ),
        first.without_obstacles("plate").with_obstacles([prism]),
        first.with_robot_pose(SE3.from_xyz_rpy((0.1, 0.0, 0.0), (0.0, 0.0, 0.4))),
        first.with_obstacles([prism]).attach_obstacle("prism", q),
        first.with_margin(0.03),
        first.with_allowed(("plate", "kinect")),
        first.with_fixed_positions({}),
    ):
        rebuilt = PlanningScene(
            changed.semantics, changed.chain, changed.group, changed.T_world_robot, changed.obstacles, changed.attached,
            changed.allowed, changed.margin,
        )  # fmt: skip
        assert changed.world_shape_names == rebuilt.world_shape_names
        for one, other in zip(
            _flatten_arrays(changed.collision_arrays), _flatten_arrays(rebuilt.collision_arrays), strict=True
        ):
            assert np.array_equal(one, other)


def _flatten_arrays(collision: Any) -> list[Any]:
    """All arrays; where points and balls begin that a solid has none of is nobody's business."""
    found: list[Any] = []
    for part in collision:
        if isinstance(part, ConvexShapeArrays):
            part = part._replace(
                first_point=np.where(part.n_points > 0, part.first_point, 0),
                first_sphere=np.where(part.n_spheres > 0, part.first_sphere, 0),
            )
        found += part if isinstance(part, tuple) else [part]
    return found


def test_allowed_pairs_are_not_contacts() -> None:
    planning_scene = scene()
    q = next(
        q
        for q in planning_scene.chain.sample_positions(np.random.default_rng(5), 500)
        if planning_scene.find_contact(q) == ("kinect", "plate")
    )
    assert planning_scene.with_allowed(("plate", "kinect")).find_contact(q) != ("kinect", "plate")
    assert planning_scene.without_obstacles("plate").find_contact(q) != ("kinect", "plate")


def test_allowed_models_include_later_obstacles() -> None:
    groups = scitos_arm_semantics()
    shelf_parts = [
        Obstacle(f"shelf::link::{k}", one.geometry, one.T_world) for k, one in enumerate(example_obstacles())
    ]
    planning_scene = PlanningScene.create(groups, obstacles=shelf_parts)
    states = planning_scene.chain.sample_positions(np.random.default_rng(5), 300)
    touches = [pair for pair in planning_scene.find_contacts(states) if pair and "::" in pair[1]]
    assert touches
    links = {pair[0] for pair in touches}
    free = planning_scene.with_allowed(*((link, "shelf") for link in links))
    assert not any(pair and pair[0] in links and "::" in pair[1] for pair in free.find_contacts(states))
    before = (
        PlanningScene.create(groups)
        .with_allowed_unchecked(*(("shelf", link) for link in links))
        .with_obstacles(shelf_parts)
    )
    assert before.find_contacts(states) == free.find_contacts(states)
    exact, strict = CoalChecker(free), CoalChecker(planning_scene)
    assert all(exact.find_contact(q) is None for q in states if free.is_free(q))
    assert any(strict.find_contact(q) for q in states if free.is_free(q))
    with pytest.raises(UnknownNameError, match="shelf"):
        PlanningScene.create(groups).with_allowed(("shelf", "kinect"))


def test_contacts_do_not_depend_on_the_world_frame() -> None:
    T = SE3.from_xyz_rpy((3.0, -2.0, 0.5), (0.1, 0.2, 2.0))
    transformed_obstacles = [Obstacle(one.name, one.geometry, T @ one.T_world) for one in example_obstacles()]
    other = PlanningScene.create(scitos_arm_semantics(), T_world_robot=T, obstacles=transformed_obstacles)
    states = other.chain.sample_positions(np.random.default_rng(6), 500)
    assert other.find_contacts(states) == scene().find_contacts(states)


def test_obstacles_from_world_exclude_named_models() -> None:
    world = load_world(WORLDS / "arena.sdf")
    obstacles = obstacles_from_world(world)
    assert len(obstacles) > 3
    assert len(obstacles_from_world(world, [world.models[0].name])) < len(obstacles)
    planning_scene = PlanningScene.create(
        scitos_arm_semantics(), obstacles=obstacles, T_world_robot=SE3.from_xyz_rpy((0.0, 0.0, 0.01))
    )
    states = planning_scene.chain.sample_positions(np.random.default_rng(0), 300)
    touched = [found[1] for found in planning_scene.find_contacts(states) if found]
    assert planning_scene.find_contact(np.zeros(5)) is None
    assert any("ground" in name for name in touched)


def test_plane_obstacle_is_solid_below() -> None:
    ground = Obstacle("ground", Plane(), SE3.identity())
    planning_scene = PlanningScene.create(scitos_arm_semantics(), obstacles=[ground])
    exact = CoalChecker(planning_scene)
    states = planning_scene.chain.sample_positions(np.random.default_rng(0), 500)
    assert planning_scene.find_contact(np.zeros(5)) is None
    assert [found is None for found in planning_scene.find_contacts(states)] == [
        exact.signed_distance(q)[0] >= 0.001 for q in states
    ]
    assert any(found and found[1] == "ground" for found in planning_scene.find_contacts(states))


def test_sampling_finds_allowed_pairs() -> None:
    groups = guess_groups(scitos_arm_semantics().model)
    found = sample_allowed_pairs(groups, np.random.default_rng(0), 3000)
    assert found == sample_allowed_pairs(groups, np.random.default_rng(0), 3000)
    assert found["arm_base", "arm_link_1"] == "adjacent"
    assert found["arm_link_4", "kinect"] in ("never", "always") or ("arm_link_4", "kinect") not in found
    assert ("arm_base", "kinect") not in found
    planning_scene = PlanningScene.create(groups)
    for one, other in (pair for pair, reason in found.items() if reason == "never"):
        assert not [
            c
            for c in planning_scene.find_contacts(planning_scene.chain.sample_positions(np.random.default_rng(9), 2000))
            if c and set(c) == {one, other}
        ]


@pytest.mark.parametrize(
    ("q", "words"),
    [([0.0] * 4, "shape"), ([math.nan] * 5, "finite"), ("abc", "must be numbers"), ([[0.0] * 6], "shape")],
)
def test_contact_refuses_bad_states(q: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        scene().find_contact(q)  # type: ignore[arg-type]


def test_scene_refuses_unknown_names() -> None:
    planning_scene = scene()
    for act in (
        lambda: planning_scene.without_obstacles("plat"),
        lambda: planning_scene.with_allowed(("plate", "kinekt")),
        lambda: planning_scene.attach(AttachedBody("x", "hand", Sphere(0.1), SE3.identity())),
        lambda: planning_scene.attach_obstacle("nothing", np.zeros(5)),
        lambda: planning_scene.detach_to_world("nothing", np.zeros(5)),
        lambda: planning_scene.link_pose("nowhere", np.zeros(5)),
        lambda: PlanningScene.create(scitos_arm_semantics(), "leg"),
    ):
        with pytest.raises(UnknownNameError):
            act()


def test_scene_refuses_bad_margins_and_shapes() -> None:
    with pytest.raises(InputError, match="margin"):
        scene(margin=0.0)
    with pytest.raises(InputError, match="two obstacles"):
        scene().with_obstacles([box_obstacle("plate", (1.0, 1.0, 1.0), (0, 0, 0))])
    with pytest.raises(InputError, match="taken"):
        scene().attach(AttachedBody("arm_base", "kinect", Sphere(0.1), SE3.identity()))
    with pytest.raises(InputError, match="centers"):
        VoxelObstacles("v", np.zeros((2, 2)), 0.1)
    with pytest.raises(InputError, match="cubes"):
        VoxelObstacles("v", np.zeros((2, 3)), 0.0)
    with pytest.raises(InputError, match="states"):
        sample_allowed_pairs(scitos_arm_semantics(), np.random.default_rng(0), 0)
