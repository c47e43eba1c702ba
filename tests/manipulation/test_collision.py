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
from roboyard.manipulation import Groups, guess_groups, load_groups
from roboyard.manipulation.collision import (
    Attached,
    ExactChecker,
    Obstacle,
    Voxels,
    box_obstacle,
    obstacles_of,
    voxels_of_cloud,
)
from roboyard.manipulation.collision.gjk import separation
from roboyard.manipulation.collision.sampling import found_pairs
from roboyard.manipulation.collision.solids import Solids, gathered, solids_of
from roboyard.manipulation.scene import PlanningScene
from roboyard.simulation import Simulation

ROBOTS = Path(str(resources.files("roboyard") / "robots"))
WORLDS = Path(str(resources.files("roboyard") / "worlds"))


def schunk() -> Groups:
    folder = ROBOTS / "scitos_arm"
    return load_groups(folder / "groups.yaml", load_model(folder / "scitos_arm.urdf.xacro"))


def things() -> list[Obstacle]:
    return [
        box_obstacle("floor", (4.0, 4.0, 0.02), (0.0, 0.0, -0.02)),
        box_obstacle("plate", (0.3, 0.8, 0.02), (0.6, 0.0, 0.5), 0.3),
        Obstacle("cylinder", Cylinder(0.1, 0.6), SE3.from_xyz_rpy((-0.5, 0.3, 0.4), (0.3, 0.2, 0.0))),
        Obstacle("ball", Sphere(0.1), SE3.from_xyz_rpy((0.0, -0.5, 0.6))),
        Obstacle("capsule", Capsule(0.08, 0.5), SE3.from_xyz_rpy((0.1, 0.6, 0.7), (1.2, 0.2, 0.0))),
        Obstacle("egg", Ellipsoid((0.1, 0.2, 0.05)), SE3.from_xyz_rpy((-0.3, -0.5, 0.8), (1.2, 0.2, 0.0))),
    ]


def scene(**options: float) -> PlanningScene:
    return PlanningScene.of(schunk(), obstacles=things(), **options)  # type: ignore[arg-type]


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
def poses(draw: st.DrawFn) -> SE3:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return SE3(rng.normal(size=4), rng.uniform(-0.8, 0.8, 3))


def apart(one: Geometry, A: SE3, other: Geometry, B: SE3, enough: float = math.inf) -> float:
    (first,), (second,) = solids_of(one, A), solids_of(other, B)
    a, b = gathered([first]), gathered([second])
    return separation(a, 0, first.T.matrix(), b, 0, second.T.matrix(), enough, 0.0, np.zeros((5, 3)))


@settings(max_examples=120, deadline=None)
@given(shapes, poses(), shapes, poses())
def test_distances_agree_with_coal_and_never_exceed_it(one: Geometry, A: SE3, other: Geometry, B: SE3) -> None:
    import coal

    from roboyard.manipulation.collision.exact import made

    found = apart(one, A, other, B)
    request = coal.DistanceRequest()
    request.enable_signed_distance = True
    place = [coal.Transform3s(T.rotation_matrix(), np.array(T.translation)) for T in (A, B)]
    theirs = coal.distance(made(one, "")[0], place[0], made(other, "")[0], place[1], request, coal.DistanceResult())
    cone = isinstance(one, Cone) or isinstance(other, Cone)  # held by a pyramid of 24 sides
    assert found <= max(theirs, 0.0) + 2e-6
    assert found >= theirs - (0.01 if cone else 2e-5) or found <= 0.0
    if theirs > (0.01 if cone else 2e-5):
        assert found > 0.0
    assert apart(other, B, one, A) == pytest.approx(max(found, 0.0), abs=1e-6) or found <= 0.0


@settings(max_examples=100, deadline=None)
@given(shapes, poses(), shapes, poses(), st.floats(0.01, 0.3))
def test_early_ending_distance_stays_on_the_right_side(
    one: Geometry, A: SE3, other: Geometry, B: SE3, enough: float
) -> None:
    exact = apart(one, A, other, B)
    early = apart(one, A, other, B, enough)
    assert early <= exact + 1e-9
    assert early == pytest.approx(exact, abs=1e-7) or early >= enough or exact <= 0.0


@settings(max_examples=60, deadline=None)
@given(shapes, poses())
def test_rows_of_balls_enclose_the_solid(shape: Geometry, T: SE3) -> None:
    (solid,) = solids_of(shape, T)
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(400, 3))
    arrays = gathered([solid])
    from roboyard.manipulation.collision.gjk import _support

    corners = np.array([_support.py_func(arrays, 0, np.eye(4), *d) for d in directions])
    swept = corners + solid.radius * directions / np.linalg.norm(directions, axis=1)[:, None]
    balls = solid.balls()
    off = np.linalg.norm(swept[:, None] - balls[None, :, :3], axis=2) - balls[None, :, 3]
    assert off.min(axis=1).max() < 1e-12
    assert (np.abs(corners) <= solid.size + 1e-12).all()
    assert np.linalg.norm(swept, axis=1).max() <= solid.outer + 1e-12


def test_no_touching_state_is_called_free() -> None:
    disagreements(600, seed=3)


@pytest.mark.slow
@pytest.mark.parametrize("robot", ["scitos_arm", "iisy", "youbot_arm"])
def test_no_touching_state_among_very_many_is_called_free(robot: str) -> None:
    count = sample_count(100_000, 0.15)
    disagreements(count, seed=4, robot=robot)
    assert seen_by_mujoco(robot, count, seed=4) > count // 10


def disagreements(count: int, seed: int, robot: str = "scitos_arm") -> None:
    asked = PlanningScene.of(load_joint_groups(robot), obstacles=things(), margin=1e-6)
    exact = ExactChecker(asked)
    states = asked.chain.sample_positions(np.random.default_rng(seed), count)
    ours, theirs = asked.contacts(states), [exact.contact(q) for q in states]
    assert [q for q, mine, other in zip(states, ours, theirs, strict=True) if mine is None and other] == []
    wrong = [q for q, mine, other in zip(states, ours, theirs, strict=True) if mine and other is None]
    assert all(exact.distance(q)[0] < 1e-5 for q in wrong)  # nothing is called touching that is not
    assert 0.1 < np.mean([found is not None for found in theirs]) < 0.9


def test_mujoco_finds_no_contact_in_free_states() -> None:
    assert seen_by_mujoco("scitos_arm", 600, seed=7) > 300


def seen_by_mujoco(robot: str, count: int, seed: int) -> int:
    """Where MuJoCo sees a contact it is right, though it misses some (thin boxes); how many states were looked at."""
    groups = load_joint_groups(robot)
    asked = PlanningScene.of(groups, margin=1e-6)
    simulation = Simulation(World("bare", (PlacedModel("arm", groups.model, SE3.identity()),)))
    model = simulation.visual_scene().model
    data = mujoco.MjData(model)
    names = {model.joint(j).name.split("/")[-1].split("::")[-1]: j for j in range(model.njnt)}
    addresses = [
        model.jnt_qposadr[next(j for name, j in names.items() if joint in name)] for joint in asked.chain.joints
    ]
    states = asked.chain.sample_positions(np.random.default_rng(seed), count)
    free = [q for q, found in zip(states, asked.contacts(states), strict=True) if found is None]
    allowed = {frozenset(pair) for pair in groups.allowed}
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
    asked = scene()
    rng = np.random.default_rng(seed)
    a, b = asked.chain.sample_positions(rng, 2)
    b = a + 0.5 * (b - a)
    share = np.linspace(0.0, 1.0, 800)[:, None]
    states = a + share * (b - a)
    touched = [found for found in asked.with_margin(1e-4).contacts(states) if found]
    if asked.free_line(a, b):
        assert touched == []
    elif not touched:  # then something is at least as near as the margin, or nearly
        assert min(asked.distance(q) for q in states) < 1.1 * asked.margin


def test_contacts_of_batches_equal_single_states() -> None:
    asked = scene()
    states = asked.chain.sample_positions(np.random.default_rng(0), 50)
    assert asked.contacts(states) == [asked.contact(q) for q in states] == scene().contacts(states)
    distances = [asked.distance(q) for q in states]
    assert all(
        (distance < asked.margin) == (found is not None)
        for distance, found in zip(distances, asked.contacts(states), strict=True)
    )


def test_larger_margin_frees_no_state() -> None:
    states = scene().chain.sample_positions(np.random.default_rng(1), 2000)
    before = np.array([found is None for found in scene(margin=0.001).contacts(states)])
    after = np.array([found is None for found in scene(margin=0.03).contacts(states)])
    assert not (after & ~before).any()
    assert after.sum() < before.sum()


def test_voxels_cover_their_cloud() -> None:
    rng = np.random.default_rng(2)
    cloud = rng.uniform((-0.1, -0.1, 0.9), (0.1, 0.1, 1.5), (3000, 3))
    voxels = voxels_of_cloud("cloud", cloud, 0.05)
    inside = np.abs(cloud[:, None] - voxels.middles[None]).max(axis=2).min(axis=1)
    assert inside.max() <= 0.025 + 1e-9
    asked = PlanningScene.of(schunk(), obstacles=[voxels])
    assert asked.contact(np.zeros(5)) in [
        (name, "cloud") for name in ("arm_link_3", "arm_link_4", "arm_link_5", "kinect", "finger_left", "finger_right")
    ]
    boxes = [box_obstacle(f"b{i}", (0.05,) * 3, middle) for i, middle in enumerate(voxels.middles)]
    alike = PlanningScene.of(schunk(), obstacles=boxes)
    states = asked.chain.sample_positions(rng, 300)
    assert [a is None for a in asked.contacts(states)] == [b is None for b in alike.contacts(states)]


def test_attached_object_collides_and_is_put_down_in_place() -> None:
    groups = schunk()
    q = groups.group("arm").pose("ahead")
    bare = PlanningScene.of(groups, "arm", tool="fingertips")
    tool = SE3.from_matrix(bare.chain.forward(q))
    rod = Obstacle("rod", Cylinder(0.015, 0.5), tool @ SE3.from_xyz_rpy((0.0, 0.0, 0.02), (math.pi / 2, 0.0, 0.0)))
    around = bare.with_obstacles([rod, box_obstacle("wall", (0.05, 1.0, 0.5), (tool.x, 0.8, tool.z))])
    assert around.contact(q) is not None
    holding = around.grasp("rod", q)
    assert holding.contact(q) is None
    assert holding.bodies.rows is around.chain.arrays
    back = holding.release("rod", q)
    assert back.obstacles["rod"].T_world.almost_equal(rod.T_world, 1e-9)  # type: ignore[union-attr]
    touches = [holding.contact(q + angle * np.eye(5)[0]) for angle in np.linspace(-0.6, 0.6, 25)]
    assert ("rod", "wall") in touches


def test_derived_scene_equals_a_scene_built_anew() -> None:
    groups = schunk()
    first = PlanningScene.of(groups, obstacles=things()[:2])
    _ = first.bodies
    q = groups.group("arm").pose("ahead")
    cloud = Voxels("cloud", np.array([[0.4, 0.3, 0.6], [0.5, 0.3, 0.6]]), 0.05)
    prism = Obstacle("prism", Cone(0.1, 0.3), SE3(translation=(0.5, -0.3, 0.4)))
    for changed in (
        first.with_obstacles([*things()[2:], prism]).with_obstacles(
            [box_obstacle("b", (0.1,) * 3, (0.4, 0, 0.3)), cloud]
        ),
        first.without("plate").with_obstacles([prism]),
        first.moved(SE3.from_xyz_rpy((0.1, 0.0, 0.0), (0.0, 0.0, 0.4))),
        first.with_obstacles([prism]).grasp("prism", q),
        first.with_margin(0.03),
        first.allowing(("plate", "kinect")),
        first.with_joints({}),
    ):
        fresh = PlanningScene(
            changed.groups, changed.chain, changed.group, changed.T_world_robot, changed.obstacles, changed.attached,
            changed.allowed, changed.margin,
        )  # fmt: skip
        assert changed.world_names == fresh.world_names
        for one, other in zip(_plain(changed.bodies), _plain(fresh.bodies), strict=True):
            assert np.array_equal(one, other)


def _plain(bodies: Any) -> list[Any]:
    """All arrays; where points and balls begin that a solid has none of is nobody's business."""
    found: list[Any] = []
    for part in bodies:
        if isinstance(part, Solids):
            part = part._replace(
                first=np.where(part.many > 0, part.first, 0),
                ball_first=np.where(part.ball_count > 0, part.ball_first, 0),
            )
        found += part if isinstance(part, tuple) else [part]
    return found


def test_allowed_pairs_are_not_contacts() -> None:
    asked = scene()
    q = next(
        q
        for q in asked.chain.sample_positions(np.random.default_rng(5), 500)
        if asked.contact(q) == ("kinect", "plate")
    )
    assert asked.allowing(("plate", "kinect")).contact(q) != ("kinect", "plate")
    assert asked.without("plate").contact(q) != ("kinect", "plate")


def test_allowed_models_include_later_obstacles() -> None:
    groups = schunk()
    far = [Obstacle(f"shelf::link::{k}", one.geometry, one.T_world) for k, one in enumerate(things())]
    asked = PlanningScene.of(groups, obstacles=far)
    states = asked.chain.sample_positions(np.random.default_rng(5), 300)
    touches = [pair for pair in asked.contacts(states) if pair and "::" in pair[1]]
    assert touches
    links = {pair[0] for pair in touches}
    free = asked.allowing(*((link, "shelf") for link in links))
    assert not any(pair and pair[0] in links and "::" in pair[1] for pair in free.contacts(states))
    before = PlanningScene.of(groups).tolerating(*(("shelf", link) for link in links)).with_obstacles(far)
    assert before.contacts(states) == free.contacts(states)
    exact, strict = ExactChecker(free), ExactChecker(asked)
    assert all(exact.contact(q) is None for q in states if free.free(q))
    assert any(strict.contact(q) for q in states if free.free(q))
    with pytest.raises(UnknownNameError, match="shelf"):
        PlanningScene.of(groups).allowing(("shelf", "kinect"))


def test_contacts_do_not_depend_on_the_world_frame() -> None:
    T = SE3.from_xyz_rpy((3.0, -2.0, 0.5), (0.1, 0.2, 2.0))
    moved = [Obstacle(one.name, one.geometry, T @ one.T_world) for one in things()]
    other = PlanningScene.of(schunk(), T_world_robot=T, obstacles=moved)
    states = other.chain.sample_positions(np.random.default_rng(6), 500)
    assert other.contacts(states) == scene().contacts(states)


def test_obstacles_of_a_world_leave_out_named_models() -> None:
    world = load_world(WORLDS / "arena.sdf")
    obstacles = obstacles_of(world)
    assert len(obstacles) > 3
    assert len(obstacles_of(world, [world.models[0].name])) < len(obstacles)
    near = PlanningScene.of(schunk(), obstacles=obstacles, T_world_robot=SE3.from_xyz_rpy((0.0, 0.0, 0.01)))
    states = near.chain.sample_positions(np.random.default_rng(0), 300)
    touched = [found[1] for found in near.contacts(states) if found]
    assert near.contact(np.zeros(5)) is None
    assert any("ground" in name for name in touched)


def test_plane_obstacle_is_solid_below() -> None:
    ground = Obstacle("ground", Plane(), SE3.identity())
    asked = PlanningScene.of(schunk(), obstacles=[ground])
    exact = ExactChecker(asked)
    states = asked.chain.sample_positions(np.random.default_rng(0), 500)
    assert asked.contact(np.zeros(5)) is None
    assert [found is None for found in asked.contacts(states)] == [exact.distance(q)[0] >= 0.001 for q in states]
    assert any(found and found[1] == "ground" for found in asked.contacts(states))


def test_sampling_finds_pairs_that_need_no_check() -> None:
    groups = guess_groups(schunk().model)
    found = found_pairs(groups, np.random.default_rng(0), 3000)
    assert found == found_pairs(groups, np.random.default_rng(0), 3000)
    assert found["arm_base", "arm_link_1"] == "adjacent"
    assert found["arm_link_4", "kinect"] in ("never", "always") or ("arm_link_4", "kinect") not in found
    assert ("arm_base", "kinect") not in found
    asked = PlanningScene.of(groups)
    for one, other in (pair for pair, reason in found.items() if reason == "never"):
        assert not [
            c
            for c in asked.contacts(asked.chain.sample_positions(np.random.default_rng(9), 2000))
            if c and set(c) == {one, other}
        ]


@pytest.mark.parametrize(
    ("q", "words"),
    [([0.0] * 4, "shape"), ([math.nan] * 5, "finite"), ("abc", "must be numbers"), ([[0.0] * 6], "shape")],
)
def test_contact_refuses_bad_states(q: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        scene().contact(q)  # type: ignore[arg-type]


def test_scene_refuses_unknown_names() -> None:
    asked = scene()
    for act in (
        lambda: asked.without("plat"),
        lambda: asked.allowing(("plate", "kinekt")),
        lambda: asked.attach(Attached("x", "hand", Sphere(0.1), SE3.identity())),
        lambda: asked.grasp("nothing", np.zeros(5)),
        lambda: asked.release("nothing", np.zeros(5)),
        lambda: asked.link_pose("nowhere", np.zeros(5)),
        lambda: PlanningScene.of(schunk(), "leg"),
    ):
        with pytest.raises(UnknownNameError):
            act()


def test_scene_refuses_bad_margins_and_shapes() -> None:
    with pytest.raises(InputError, match="margin"):
        scene(margin=0.0)
    with pytest.raises(InputError, match="two obstacles"):
        scene().with_obstacles([box_obstacle("plate", (1.0, 1.0, 1.0), (0, 0, 0))])
    with pytest.raises(InputError, match="taken"):
        scene().attach(Attached("arm_base", "kinect", Sphere(0.1), SE3.identity()))
    with pytest.raises(InputError, match="middles"):
        Voxels("v", np.zeros((2, 2)), 0.1)
    with pytest.raises(InputError, match="cubes"):
        Voxels("v", np.zeros((2, 3)), 0.0)
    with pytest.raises(InputError, match="states"):
        found_pairs(schunk(), np.random.default_rng(0), 0)
