"""What sensors without noise say, where a formula knows it: lidar distances, the inertial unit."""

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
from roboyard.simulation.engine import Simulation
from roboyard.simulation.proof.bodies import at, crate, floor, push, simulation
from roboyard.simulation.proof.check import Check
from roboyard.simulation.sensors.imu import ImuReading
from roboyard.simulation.sensors.lidar import Lidar, beam_directions
from roboyard.simulation.settings import PhysicsSettings

HALF, POST, BALL = 3.0, 0.2, 0.5
"""Half the room's width, radius of the post in it, radius of the ball [m]."""
POST_AT, BALL_AT, EYE = np.array([1.5, 0.5]), np.array([-1.2, -0.8, 0.3]), np.array([0.1, -0.2, 0.4])


def furnished(settings: PhysicsSettings, samples: int) -> tuple[Simulation, Lidar]:
    """A square room with a post and a ball, and a turning lidar in it."""
    wall = 0.2
    away = HALF + wall / 2
    shapes: tuple[tuple[str, Geometry, SE3], ...] = (
        ("east", Box((wall, 8.0, 4.0)), at(x=away)),
        ("west", Box((wall, 8.0, 4.0)), at(x=-away)),
        ("north", Box((8.0, wall, 4.0)), at(y=away)),
        ("south", Box((8.0, wall, 4.0)), at(y=-away)),
        ("post", Cylinder(POST, 4.0), at(*map(float, POST_AT))),
        ("ball", Sphere(BALL), at(*map(float, BALL_AT))),
    )
    link = Link("link", SE3.identity(), collisions=tuple(Collision(name, shape, T) for name, shape, T in shapes))
    spec = LidarSpec(samples=samples, range_min=0.01, range_max=20.0, vertical_samples=5)
    spec = replace(spec, vertical_angle_min=-0.2, vertical_angle_max=0.2)
    eye = Sensor("lidar", "lidar", "stand", SE3.identity(), 10.0, "scan", "stand", spec)
    stand = Model("stand", (Link("stand", SE3.identity()),), sensors=(eye,), static=True)
    sim = simulation(settings, PlacedModel("room", Model("room", (link,), static=True), SE3.identity()))
    sim.add(stand, "stand", at(*map(float, EYE)))
    found = next((sensor for sensor in sim.sensors("stand") if isinstance(sensor, Lidar)), None)
    if found is None:
        raise RunError("the stand has lost its lidar")
    return sim, found


def distances(directions: NDArray[np.float64]) -> NDArray[np.float64]:
    """True distances (n,) from the lidar along unit vectors (n, 3) [m]: planes, a circle, a sphere."""
    with np.errstate(divide="ignore"):
        walls = np.min((HALF - np.sign(directions[:, :2]) * EYE[:2]) / np.abs(directions[:, :2]), axis=1)
    flat = np.linalg.norm(directions[:, :2], axis=1)
    post = _entry(directions[:, :2] / flat[:, None], POST_AT - EYE[:2], POST) / flat
    nearest: NDArray[np.float64] = np.minimum(np.minimum(walls, post), _entry(directions, BALL_AT - EYE, BALL))
    return nearest


def _entry(directions: NDArray[np.float64], centre: NDArray[np.float64], radius: float) -> NDArray[np.float64]:
    """Way to where a ray enters a circle or sphere; infinite where it misses."""
    middle = directions @ centre
    under = middle**2 - centre @ centre + radius**2
    hits = (under > 0.0) & (middle > 0.0)
    return np.where(hits, middle - np.sqrt(np.maximum(under, 0.0)), np.inf)


def lidar(settings: PhysicsSettings) -> tuple[Check, ...]:
    """Five layers of 720 beams against planes, cylinder and sphere."""
    _, sensor = furnished(settings, 720)
    away = np.abs(sensor.read().ranges.ravel() - distances(beam_directions(sensor.spec)))
    return (
        Check(
            "largest error of 3600 lidar beams",
            "ray and plane, cylinder, sphere",
            0.0,
            float(away.max()),
            "m",
            1.0,
            1e-5,
        ),
    )


def inertial(settings: PhysicsSettings) -> tuple[Check, ...]:
    """At rest on a slope, falling, and turning away from the axis."""
    slope = math.radians(20.0)
    rest = simulation(settings, floor(slope=slope))
    rest.add(_with_unit(), "body", at(pitch=slope) @ at(z=0.1))
    rest.advance_to(1_000_000_000)
    still = _read(rest).linear_acceleration
    fall = simulation(settings)
    fall.add(_with_unit(), "body", at(z=50.0))
    fall.advance_to(500_000_000)
    spin, arm = 4.0, 0.15
    turning = simulation(settings, gravity=(0.0, 0.0, 0.0))
    turning.add(_with_unit(at(x=arm)), "body")
    push(turning, angular=(0.0, 0.0, spin))
    turning.advance_to(1_000_000_000)
    turned = _read(turning)
    return (
        Check(
            "inertial unit at rest on 20°, across the slope",
            "g cos α",
            GRAVITY * math.cos(slope),
            float(still[2]),
            "m/s²",
        ),
        Check("the same, along the slope", "−g sin α", -GRAVITY * math.sin(slope), float(still[0]), "m/s²"),
        Check(
            "inertial unit falling", "0", 0.0, float(np.linalg.norm(_read(fall).linear_acceleration)), "m/s²", GRAVITY
        ),
        Check("rate of an inertial unit that turns", "ω", spin, float(turned.angular_velocity[2]), "rad/s"),
        Check("its acceleration", "−ω² r", -(spin**2) * arm, float(turned.linear_acceleration[0]), "m/s²"),
    )


def _with_unit(T_body_unit: SE3 = SE3.identity()) -> Model:
    unit = Sensor("imu", "imu", "body", T_body_unit, 100.0, "imu", "body", ImuSpec())
    return replace(crate(), sensors=(unit,))


def _read(sim: Simulation) -> ImuReading:
    readings = (sensor.read() for sensor in sim.sensors("body"))
    found = next((reading for reading in readings if isinstance(reading, ImuReading)), None)
    if found is None:
        raise RunError("the body has lost its inertial unit")
    return found
