"""Lidar against geometry done by hand, and against the engine's own rays."""

import math
from dataclasses import replace

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.harness.models import IDENTITY, lidar_sensor, make_pose, make_world, room_walls, rover_model, static_box

from roboyard.description.model import (
    Box,
    Capsule,
    Collision,
    Cylinder,
    Ellipsoid,
    Geometry,
    Link,
    Mesh,
    Model,
    PlacedModel,
    Sphere,
)
from roboyard.description.sensors import LidarSpec, Noise, Sensor
from roboyard.geometry import SE3
from roboyard.sensors import LidarReading
from roboyard.sensors.lidar import Lidar
from roboyard.simulation import Simulation


def post(spec: LidarSpec, T: SE3 = IDENTITY) -> Model:
    """A lidar on a static stand without shapes."""
    sensor = Sensor("lidar", "lidar", "stand", T, 10.0, "scan", "stand", spec)
    return Model("post", (Link("stand", IDENTITY),), sensors=(sensor,), static=True)


def scan(sim: Simulation, name: str = "post") -> NDArray[np.float64]:
    reading = next(s for s in sim.sensors(name) if s.sensor.kind == "lidar").read()
    assert isinstance(reading, LidarReading)
    return reading.ranges


def room_distance(x: float, y: float, angle: NDArray[np.float64], half: float) -> NDArray[np.float64]:
    with np.errstate(divide="ignore"):
        along_x = np.where(np.cos(angle) > 0, (half - x) / np.cos(angle), (-half - x) / np.cos(angle))
        along_y = np.where(np.sin(angle) > 0, (half - y) / np.sin(angle), (-half - y) / np.sin(angle))
    return np.minimum(np.abs(along_x), np.abs(along_y))


@given(st.floats(-2.5, 2.5), st.floats(-2.5, 2.5), st.floats(-math.pi, math.pi), st.sampled_from([1, 7, 360, 720]))
@settings(max_examples=25)
def test_lidar_measures_a_room_from_any_pose(x: float, y: float, yaw: float, samples: int) -> None:
    spec = LidarSpec(samples=samples, angle_min=-2.0, angle_max=2.2)
    sim = Simulation(make_world(*room_walls(3.0)))
    sim.add(post(spec), "post", make_pose(x, y, 0.5, yaw=yaw))
    angles = np.linspace(-2.0, 2.2, samples) + yaw
    np.testing.assert_allclose(
        scan(sim)[0], room_distance(x, y, angles, 3.0), rtol=1e-6
    )  # the engine drops turns below 1e-7


@pytest.mark.parametrize(
    "sweep",
    [(-math.pi, math.pi), (0.0, 6.28), (0.0, 2 * math.pi), (-0.5, 0.5), (2.0, 5.0)],
    ids=["whole_turn", "nearly_a_turn", "turn_from_zero", "ahead", "behind"],
)
def test_lidar_ranges_agree_with_mujoco_rays(sweep: tuple[float, float]) -> None:
    rng = np.random.default_rng(3)
    shapes: list[Geometry] = [Box((0.4, 0.3, 0.5)), Cylinder(0.2, 0.6), Sphere(0.3), Capsule(0.15, 0.4)]
    shapes.append(Ellipsoid((0.3, 0.2, 0.4)))
    objects = []
    for i in range(40):
        pose = make_pose(*rng.uniform(-5, 5, 2), rng.uniform(-0.2, 0.2), *rng.uniform(-3, 3, 3))
        link = Link("link", IDENTITY, collisions=(Collision("c", shapes[i % len(shapes)], IDENTITY),))
        objects.append(PlacedModel(f"thing{i}", Model("thing", (link,), static=True), pose))
    spec = LidarSpec(
        samples=181,
        angle_min=sweep[0],
        angle_max=sweep[1],
        vertical_samples=5,
        vertical_angle_min=-0.3,
        vertical_angle_max=0.4,
        range_min=0.0,
        range_max=4.0,
    )
    sim = Simulation(make_world(*objects))
    sim.add(post(spec), "post", make_pose(0.3, 0.2, 0.1, 0.1, -0.2, 0.5))
    sensor = sim.sensors("post")[0]
    assert isinstance(sensor, Lidar)
    ranges = sensor.cast().copy()
    beams = (sensor.beams.directions @ sim.world.data.site_xmat[sensor.site].reshape(3, 3).T).ravel()
    count = len(ranges)
    mujoco_ranges, geoms = np.zeros(count), np.zeros(count, np.int32)
    mujoco.mj_multiRay(
        sim.world.model,
        sim.world.data,
        sim.world.data.site_xpos[sensor.site],
        beams,
        None,
        True,
        -1,
        geoms,
        mujoco_ranges,
        None,
        count,
        4.0,
    )
    mujoco_ranges[(mujoco_ranges < 0) | (mujoco_ranges > 4.0)] = np.inf
    np.testing.assert_allclose(ranges, mujoco_ranges, atol=1e-9)
    assert np.isfinite(ranges).sum() > 20


def test_lidar_of_a_turned_rover_measures_the_room() -> None:
    sim = Simulation(make_world(*room_walls(3.0)))
    sim.add(rover_model(sensors=(lidar_sensor(samples=90),)), "rover", make_pose(0.5, -0.7, 0.3, yaw=0.8))
    angles = np.linspace(-math.pi / 2, math.pi / 2, 90) + 0.8
    x, y = (make_pose(0.5, -0.7, 0.3, yaw=0.8) @ make_pose(0.1)).translation[:2]
    np.testing.assert_allclose(
        scan(sim, "rover")[0], room_distance(x, y, angles, 3.0), rtol=1e-6
    )  # the engine drops turns below 1e-7


def test_range_outside_limits_is_plus_or_minus_infinity() -> None:
    spec = LidarSpec(samples=3, angle_min=-0.5, angle_max=0.5, range_min=0.2, range_max=5.0)
    sim = Simulation(
        make_world(
            static_box("near", (0.1, 0.1, 1.0), make_pose(0.15)), static_box("far", (0.1, 20, 1), make_pose(9.0))
        )
    )
    sim.add(post(spec), "post")
    np.testing.assert_array_equal(scan(sim)[0], [np.inf, -np.inf, np.inf])


def test_lidar_noise_and_resolution_stay_within_limits() -> None:
    noisy = LidarSpec(samples=2000, range_max=4.0, resolution=0.01, noise=Noise(stddev=0.02, mean=0.1))
    sim = Simulation(make_world(*room_walls(3.0)), seed=4)
    sim.add(post(noisy), "post")
    ranges = scan(sim)[0]
    truth = room_distance(0, 0, np.linspace(-math.pi / 2, math.pi / 2, 2000), 3.0)
    has_return = np.isfinite(ranges)
    assert (has_return == (truth <= 4.0)).all()
    np.testing.assert_allclose(ranges[has_return] / 0.01, np.round(ranges[has_return] / 0.01), atol=1e-6)
    inner = has_return & (truth < 3.8)
    assert np.std((ranges - truth)[inner]) == pytest.approx(0.02, rel=0.1)
    assert np.mean((ranges - truth)[inner]) == pytest.approx(0.1, abs=0.003)
    assert ranges[has_return].max() <= 4.0


def test_lidar_sees_meshes_and_visual_only_links(tmp_path) -> None:
    import trimesh

    file = tmp_path / "cube.stl"
    trimesh.creation.box((1.0, 1.0, 1.0)).export(file)
    link = Link("link", IDENTITY, collisions=(Collision("c", Mesh(file.name, file), IDENTITY),))
    mesh = PlacedModel("mesh", Model("mesh", (link,), static=True), make_pose(2.0))
    sign = static_box("sign", (1, 1, 1), make_pose(-3.0))
    sign = replace(sign, model=replace(sign.model, links=(replace(sign.model.links[0], collisions=()),)))
    sim = Simulation(make_world(mesh, sign))
    sim.add(post(LidarSpec(samples=2, angle_min=0.0, angle_max=math.pi)), "post")
    np.testing.assert_allclose(scan(sim)[0], [1.5, 2.5], atol=1e-6)


def test_lidar_readings_are_read_only_and_repeat_in_one_instant() -> None:
    sim = Simulation(make_world(*room_walls()), seed=1)
    sim.add(rover_model(sensors=(lidar_sensor(noise=Noise(stddev=0.1)),)), "rover", make_pose(z=0.2))
    first, second = scan(sim, "rover"), scan(sim, "rover")
    assert first is second
    with pytest.raises(ValueError, match="read-only"):
        first[0, 0] = 1.0
    sim.step()
    assert not np.array_equal(scan(sim, "rover"), first)
