"""Meshes are read from all formats, and concave meshes stay concave for contacts."""

import math
import re
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from tests.description.mesh_samples import write_triangles
from tests.harness.models import IDENTITY, RIDE_HEIGHT, free_ball, ground_plane, make_pose, make_world, rover_model

from roboyard.description.meshes.convex import MAX_COLLISION_PIECES, PLATE_THICKNESS
from roboyard.description.model import (
    Box,
    Collision,
    Heightmap,
    Inertial,
    Link,
    Material,
    Mesh,
    Model,
    PlacedModel,
    Visual,
)
from roboyard.description.sensors import LidarSpec, Sensor
from roboyard.hardware import JointCommand
from roboyard.physics.compiled_world import GeomGroup
from roboyard.simulation import Simulation


def place_static(geometry: Mesh | Heightmap) -> PlacedModel:
    return PlacedModel(
        "thing",
        Model("thing", (Link("link", IDENTITY, collisions=(Collision("c", geometry, IDENTITY),)),), static=True),
        IDENTITY,
    )


@pytest.mark.parametrize(
    ("corners", "expected_text"),
    [
        (np.zeros((4, 3, 3)), "line"),
        (np.arange(3.0)[None, :, None] * np.ones((4, 1, 3)), "line"),
        (1e7 * np.random.default_rng(0).random((4, 3, 3)), "too large"),
    ],
)
def test_degenerate_mesh_becomes_a_marked_box_with_a_warning(
    tmp_path: Path, corners: np.ndarray, expected_text: str
) -> None:
    mesh = Mesh("a.stl", write_triangles(tmp_path / "a.stl", corners))
    sim = Simulation(make_world(place_static(mesh)))
    sim.visual_scene()
    assert re.search(rf"{expected_text}.*marked box", "; ".join(sim.warnings))


@pytest.mark.parametrize("static", [True, False])
def test_single_triangle_is_visible_and_collides(tmp_path: Path, static: bool) -> None:
    mesh = Mesh("a.stl", write_triangles(tmp_path / "a.stl", np.array([[[0, 0, 0], [1, 0, 0], [0, 1, 0]]], float)))
    link = Link(
        "link",
        IDENTITY,
        Inertial(1.0, IDENTITY, (1.0, 1.0, 1.0, 0.0, 0.0, 0.0)),
        (Collision("c", mesh, IDENTITY),),
        (Visual("v", mesh, IDENTITY),),
    )
    sim = Simulation(make_world(PlacedModel("thing", Model("thing", (link,), static=static), IDENTITY)))
    sim.visual_scene()
    assert sim.warnings == ()
    assert sim.world.model.ngeom == 1


@pytest.mark.slow
def test_mesh_of_many_parts_collides_coarsely_with_a_warning(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    triangles = (
        rng.random((MAX_COLLISION_PIECES + 10, 1, 3)) * 4.0 + rng.random((MAX_COLLISION_PIECES + 10, 3, 3)) * 0.01
    )
    sim = Simulation(make_world(place_static(Mesh("a.stl", write_triangles(tmp_path / "a.stl", triangles)))))
    stated = re.search(r"(\d+) pieces, gaps narrower than ([0-9.]+) m", "; ".join(sim.warnings))
    assert stated is not None
    is_piece = sim.world.model.geom_group == GeomGroup.INVISIBLE_COLLISION
    assert 1 < is_piece.sum() == int(stated[1]) <= MAX_COLLISION_PIECES
    assert (
        2.0 * sim.world.model.geom_aabb[is_piece, 3:].max() < math.sqrt(3.0) * float(stated[2]) + 2.1 * PLATE_THICKNESS
    )
    assert float(stated[2]) < 0.2


def scanned_doorway(tmp_path: Path) -> Path:
    """A wall across the x axis with a door 0.8 m wide, as a scanner sees it: fine, and nowhere quite flat."""
    import trimesh

    parts = []
    for y, width, low, high in ((1.4, 2.0, 0.0, 2.2), (-1.4, 2.0, 0.0, 2.2), (0.0, 0.8, 1.8, 2.2)):
        part = trimesh.creation.box((0.2, width, high - low))
        part.apply_translation((0.0, y, 0.5 * (low + high)))
        parts.append(part)
    wall = trimesh.util.concatenate(parts)
    wall = trimesh.Trimesh(*trimesh.remesh.subdivide_to_size(wall.vertices, wall.faces, 0.06, max_iter=20))
    wall.merge_vertices()
    wall.vertices += np.random.default_rng(3).normal(0.0, 0.002, wall.vertices.shape)
    file = tmp_path / "doorway.stl"
    wall.export(file)
    assert len(wall.faces) > 2 * MAX_COLLISION_PIECES
    return file


@pytest.mark.slow
def test_robot_drives_through_doors_of_a_detailed_building(tmp_path: Path) -> None:
    """Reduced, it touches within the distance that the note states; where its wall is, it stops the same robot."""
    file = scanned_doorway(tmp_path)
    house = PlacedModel(
        "house",
        Model("house", (Link("l", IDENTITY, collisions=(Collision("c", Mesh("d", file), IDENTITY),)),), static=True),
        IDENTITY,
    )
    sim = Simulation(make_world(ground_plane(), house))
    stated = re.search(r"collides as a mesh of (\d+) triangles, within ([0-9.]+) mm", "; ".join(sim.warnings))
    assert stated is not None
    assert int(stated[1]) <= MAX_COLLISION_PIECES
    assert 0.0 < float(stated[2]) < 20.0
    starts = {"through": 0.0, "against": 1.2}
    for name, y in starts.items():
        sim.add(rover_model(sensors=()), name, make_pose(x=-1.2, y=y, z=RIDE_HEIGHT))
        hardware = sim.hardware(name)
        hardware.write(JointCommand("velocity", hardware.joint_names, np.full(4, 10.0)))
    sim.step(1250)
    ends = [sim.ground_truth(name).T_world_base.x for name in starts]
    assert [bool(sim.contact_episodes(name)) for name in starts] == [False, True]
    assert ends[0] > 1.0
    assert ends[1] < 0.0


def test_unknown_submesh_becomes_a_marked_box(tmp_path: Path) -> None:
    sim = Simulation(make_world(place_static(Mesh("ring.stl", write_ring(tmp_path), submesh="left"))))
    assert "no submesh 'left'" in "; ".join(sim.warnings)


@pytest.mark.parametrize("content", [b"", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"not a picture", b"huge"])
def test_broken_or_huge_image_becomes_a_marked_box_or_plain_color(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "a.png"
    if content == b"huge":  # a header that claims 60000 × 60000 pixels
        head = b"IHDR" + struct.pack(">IIBBBBB", 60_000, 60_000, 8, 0, 0, 0, 0)
        content = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + head + struct.pack(">I", zlib.crc32(head))
    file.write_bytes(content)
    sim = Simulation(make_world(place_static(Heightmap("a.png", file, (1.0, 1.0, 1.0)))))
    assert "marked box" in "; ".join(sim.warnings)
    visual = Visual("v", Box((1.0, 1.0, 1.0)), IDENTITY, Material("m", (0.2, 0.4, 0.6, 1.0), texture=file))
    sim = Simulation(
        make_world(
            PlacedModel("thing", Model("thing", (Link("link", IDENTITY, visuals=(visual,)),), static=True), IDENTITY)
        )
    )
    assert sim.visual_scene().model.ntex == 1  # the sky alone
    assert "plain color" in "; ".join(sim.visual_scene().compiled.warnings)


def write_ring(tmp_path: Path) -> Path:
    """A wall around a yard of 4 m inner diameter, 1 m high."""
    import trimesh

    file = tmp_path / "ring.stl"
    trimesh.creation.annulus(r_min=2.0, r_max=2.2, height=1.0, sections=32).export(file)
    return file


def test_wall_around_a_yard_is_hollow(tmp_path: Path) -> None:
    file = write_ring(tmp_path)
    spec = LidarSpec(samples=90, angle_min=-math.pi, angle_max=math.pi)
    sensor = Sensor("lidar", "lidar", "stand", IDENTITY, 10.0, "scan", "stand", spec)
    sim = Simulation(make_world(ground_plane(), place_static(Mesh(file.name, file))))
    sim.add(Model("post", (Link("stand", IDENTITY),), sensors=(sensor,), static=True), "post", make_pose(z=0.2))
    ranges = sim.sensors("post")[0].read().ranges
    inner = 2.0 * math.cos(math.pi / 32)
    assert ((ranges > inner - 1e-6) & (ranges < 2.0 + 1e-6)).all()
    sim.add(free_ball(), "ball", make_pose(z=0.1))
    sim.step(300)
    assert sim.contact_episodes("ball") == ()
    sim.world.data.qvel[0] = 2.0
    sim.step(800)
    assert len(sim.contact_episodes("ball")) > 0
    assert np.hypot(*sim.ground_truth("ball").T_world_base.translation[:2]) < 2.0


def test_mesh_scale_and_mirroring_are_applied(tmp_path: Path) -> None:
    import trimesh

    file = tmp_path / "wedge.stl"
    box = trimesh.creation.box((1.0, 1.0, 1.0))
    box.apply_translation((0.5, 0.0, 0.0))
    box.export(file)
    for sign in (1.0, -1.0):
        sim = Simulation(make_world(place_static(Mesh(file.name, file, scale=(2.0 * sign, 1.0, 1.0)))))
        geom = sim.world.model.geom("thing::link::c").id
        vertices = (
            sim.world.model.mesh_vert @ sim.world.data.geom_xmat[geom].reshape(3, 3).T + sim.world.data.geom_xpos[geom]
        )
        assert sorted(set(np.round(vertices[:, 0], 5))) == sorted([0.0, 2.0 * sign])


def test_heightmap_height_is_its_brightness(tmp_path: Path) -> None:
    from PIL import Image

    file = tmp_path / "hill.png"
    gray = np.zeros((65, 65), np.uint8)
    gray[:, 33:] = 255
    Image.fromarray(gray).save(file)
    sim = Simulation(make_world(place_static(Heightmap(file.name, file, (10.0, 10.0, 1.0)))))
    for x, height in ((-3.0, 0.0), (3.0, 1.0)):
        sim.add(free_ball(), f"ball{height:.0f}", make_pose(x, 0, height + 0.1))
    sim.step(300)
    assert sim.ground_truth("ball0").T_world_base.z == pytest.approx(0.1, abs=0.01)
    assert sim.ground_truth("ball1").T_world_base.z == pytest.approx(1.1, abs=0.01)
    assert sim.contact_episodes() == ()  # terrain is ground


def test_turtlebot_drives_in_its_own_world(external_data: Path) -> None:
    from roboyard.description import load_model, load_world
    from roboyard.hardware import JointCommand

    folder = external_data / "descriptions"
    search = [
        folder / "turtlebot3_worlds_a/turtlebot3_gazebo/models",
        folder / "turtlebot3_burger/turtlebot3_gazebo/models",
    ]
    world = load_world(folder / "turtlebot3_worlds_a/turtlebot3_gazebo/worlds/turtlebot3_world.world", search=search)
    burger = load_model(search[1] / "turtlebot3_burger" / "model.sdf", search=search)
    sim = Simulation(world)
    sim.add(burger, "burger", make_pose(-2.0, -0.5, 0.01))
    assert sum(sim.world.model.body_mass[body] for body in sim.world.addresses("burger").bodies) == pytest.approx(
        burger.mass
    )
    wheels = sim.hardware("burger")
    names = tuple(name for name in wheels.joint_names if "wheel" in name)
    sim.step(500)
    wheels.write(JointCommand("velocity", names, np.full(2, 5.0)))
    sim.step(1000)
    assert sim.ground_truth("burger").linear_velocity[0] == pytest.approx(0.165, rel=0.02)
    lidar = next(sensor for sensor in sim.sensors("burger") if sensor.sensor.kind == "lidar")
    ranges = lidar.read().ranges
    assert 0.5 < ranges[np.isfinite(ranges)].min() < 1.0
    assert sim.contact_episodes("burger") == ()
