"""Experiments with noiseless sensors: lidar ranges and IMU readings."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from roboyard.description.model import Box, Collision, Cylinder, Geometry, Link, Model, PlacedModel, Sphere
from roboyard.description.sensors import ImuSpec, LidarSpec, Sensor
from roboyard.errors import RunError
from roboyard.geometry import SE3
from roboyard.geometry.constants import GRAVITY
from roboyard.physics.settings import PhysicsSettings
from roboyard.sensors.imu import ImuReading
from roboyard.sensors.lidar import Lidar, beam_directions
from roboyard.simulation.simulation import Simulation
from roboyard.simulation.validation.bodies import make_box, make_floor, make_pose, make_simulation, set_velocity
from roboyard.simulation.validation.law_check import Law, LawCheck

RAY_INTERSECTION = Law("distance of ray and plane, cylinder, sphere", "analytic geometry")
SPECIFIC_FORCE_NORMAL = Law("g cos α", "an accelerometer measures the specific force a − g")
SPECIFIC_FORCE_ALONG = Law("−g sin α", "an accelerometer measures the specific force a − g")
SPECIFIC_FORCE_IN_FREE_FALL = Law("0", "an accelerometer measures the specific force a − g")
ANGULAR_VELOCITY = Law("ω", "a gyroscope measures the angular velocity")
CENTRIPETAL_ACCELERATION = Law("−ω² r", "kinematics of rotation about a fixed axis")

ROOM_HALF_WIDTH, POST_RADIUS, BALL_RADIUS = 3.0, 0.2, 0.5
"""Half the room's width, radius of the post in it, radius of the ball [m]."""
POST_POSITION, BALL_POSITION, LIDAR_POSITION = (
    np.array([1.5, 0.5]),
    np.array([-1.2, -0.8, 0.3]),
    np.array([0.1, -0.2, 0.4]),
)


def make_lidar_room(settings: PhysicsSettings, samples: int) -> tuple[Simulation, Lidar]:
    """Return a simulation of a square room with a post and a ball, and the lidar in it."""
    wall = 0.2
    wall_distance = ROOM_HALF_WIDTH + wall / 2
    shapes: tuple[tuple[str, Geometry, SE3], ...] = (
        ("east", Box((wall, 8.0, 4.0)), make_pose(x=wall_distance)),
        ("west", Box((wall, 8.0, 4.0)), make_pose(x=-wall_distance)),
        ("north", Box((8.0, wall, 4.0)), make_pose(y=wall_distance)),
        ("south", Box((8.0, wall, 4.0)), make_pose(y=-wall_distance)),
        ("post", Cylinder(POST_RADIUS, 4.0), make_pose(*map(float, POST_POSITION))),
        ("ball", Sphere(BALL_RADIUS), make_pose(*map(float, BALL_POSITION))),
    )
    link = Link("link", SE3.identity(), collisions=tuple(Collision(name, shape, T) for name, shape, T in shapes))
    spec = LidarSpec(samples=samples, range_min=0.01, range_max=20.0, vertical_samples=5)
    spec = replace(spec, vertical_angle_min=-0.2, vertical_angle_max=0.2)
    lidar_description = Sensor("lidar", "lidar", "stand", SE3.identity(), 10.0, "scan", "stand", spec)
    stand = Model("stand", (Link("stand", SE3.identity()),), sensors=(lidar_description,), static=True)
    sim = make_simulation(settings, PlacedModel("room", Model("room", (link,), static=True), SE3.identity()))
    sim.add(stand, "stand", make_pose(*map(float, LIDAR_POSITION)))
    lidar_sensor = next((sensor for sensor in sim.sensors("stand") if isinstance(sensor, Lidar)), None)
    if lidar_sensor is None:
        raise RunError("the simulation has not created the lidar of the stand")
    return sim, lidar_sensor


def true_distances(directions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the distances (n,) from the lidar to the room's surfaces along unit vectors (n, 3) [m]."""
    with np.errstate(divide="ignore"):
        walls = np.min(
            (ROOM_HALF_WIDTH - np.sign(directions[:, :2]) * LIDAR_POSITION[:2]) / np.abs(directions[:, :2]), axis=1
        )
    horizontal_lengths = np.linalg.norm(directions[:, :2], axis=1)
    post = (
        _entry_distance(
            directions[:, :2] / horizontal_lengths[:, None], POST_POSITION - LIDAR_POSITION[:2], POST_RADIUS
        )
        / horizontal_lengths
    )
    nearest: NDArray[np.float64] = np.minimum(
        np.minimum(walls, post), _entry_distance(directions, BALL_POSITION - LIDAR_POSITION, BALL_RADIUS)
    )
    return nearest


def _entry_distance(directions: NDArray[np.float64], center: NDArray[np.float64], radius: float) -> NDArray[np.float64]:
    """Return the distances at which rays enter a circle or sphere; infinite where they miss it."""
    center_distance = directions @ center
    discriminant = center_distance**2 - center @ center + radius**2
    hits = (discriminant > 0.0) & (center_distance > 0.0)
    return np.where(hits, center_distance - np.sqrt(np.maximum(discriminant, 0.0)), np.inf)


def check_lidar(settings: PhysicsSettings) -> tuple[LawCheck, ...]:
    """Check the ranges of five layers of 720 beams in a room."""
    _, sensor = make_lidar_room(settings, 720)
    errors = np.abs(sensor.read().ranges.ravel() - true_distances(beam_directions(sensor.spec)))
    return (
        LawCheck(
            "largest range error of 3600 lidar beams",
            RAY_INTERSECTION,
            0.0,
            float(errors.max()),
            "m",
            1.0,
            1e-5,
        ),
    )


def check_imu(settings: PhysicsSettings) -> tuple[LawCheck, ...]:
    """Check an IMU at rest on a slope, in free fall, and in rotation at a distance from the axis."""
    slope = math.radians(20.0)
    resting = make_simulation(settings, make_floor(slope=slope))
    resting.add(_make_box_with_imu(), "body", make_pose(pitch=slope) @ make_pose(z=0.1))
    resting.advance_to(1_000_000_000)
    resting_acceleration = _read_imu(resting).linear_acceleration
    falling = make_simulation(settings)
    falling.add(_make_box_with_imu(), "body", make_pose(z=50.0))
    falling.advance_to(500_000_000)
    spin, arm = 4.0, 0.15
    rotating = make_simulation(settings, gravity=(0.0, 0.0, 0.0))
    rotating.add(_make_box_with_imu(make_pose(x=arm)), "body")
    set_velocity(rotating, body_angular=(0.0, 0.0, spin))
    rotating.advance_to(1_000_000_000)
    rotating_reading = _read_imu(rotating)
    return (
        LawCheck(
            "acceleration of an IMU at rest on a slope of 20°, normal to the slope",
            SPECIFIC_FORCE_NORMAL,
            GRAVITY * math.cos(slope),
            float(resting_acceleration[2]),
            "m/s²",
        ),
        LawCheck(
            "acceleration of an IMU at rest on a slope of 20°, along the slope",
            SPECIFIC_FORCE_ALONG,
            -GRAVITY * math.sin(slope),
            float(resting_acceleration[0]),
            "m/s²",
        ),
        LawCheck(
            "acceleration of an IMU in free fall",
            SPECIFIC_FORCE_IN_FREE_FALL,
            0.0,
            float(np.linalg.norm(_read_imu(falling).linear_acceleration)),
            "m/s²",
            GRAVITY,
        ),
        LawCheck(
            "angular velocity of a rotating IMU",
            ANGULAR_VELOCITY,
            spin,
            float(rotating_reading.angular_velocity[2]),
            "rad/s",
        ),
        LawCheck(
            "acceleration of a rotating IMU towards the axis",
            CENTRIPETAL_ACCELERATION,
            -(spin**2) * arm,
            float(rotating_reading.linear_acceleration[0]),
            "m/s²",
        ),
    )


def _make_box_with_imu(T_body_imu: SE3 = SE3.identity()) -> Model:
    imu = Sensor("imu", "imu", "body", T_body_imu, 100.0, "imu", "body", ImuSpec())
    return replace(make_box(), sensors=(imu,))


def _read_imu(sim: Simulation) -> ImuReading:
    readings = (sensor.read() for sensor in sim.sensors("body"))
    imu_reading = next((reading for reading in readings if isinstance(reading, ImuReading)), None)
    if imu_reading is None:
        raise RunError("the simulation has not created the IMU of the body")
    return imu_reading
