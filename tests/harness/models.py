"""Robots, scenery and worlds as description records, each with as few parameters as tests vary."""

from __future__ import annotations

import math

from roboyard.description.model import (
    Axis,
    AxisLimits,
    Box,
    Collision,
    Cylinder,
    Inertial,
    Joint,
    JointInterface,
    Link,
    Model,
    PlacedModel,
    Plane,
    Sphere,
    Surface,
    Visual,
    World,
)
from roboyard.description.sensors import ContactSpec, EncoderSpec, GroundTruthSpec, ImuSpec, LidarSpec, Noise, Sensor
from roboyard.geometry import SE3

IDENTITY = SE3.identity()
NO_NOISE = Noise()


def make_pose(
    x: float = 0.0, y: float = 0.0, z: float = 0.0, roll: float = 0.0, pitch: float = 0.0, yaw: float = 0.0
) -> SE3:
    """A pose of meters and radians."""
    return SE3.from_xyz_rpy((x, y, z), (roll, pitch, yaw))


def box_inertia(mass: float, size: tuple[float, float, float]) -> tuple[float, ...]:
    """ixx, iyy, izz, ixy, ixz, iyz of a homogeneous box [kg m²]."""
    x, y, z = size
    return (mass * (y * y + z * z) / 12, mass * (x * x + z * z) / 12, mass * (x * x + y * y) / 12, 0.0, 0.0, 0.0)


def ground_plane(mu: float = 1.0) -> PlacedModel:
    """A static plane at z = 0."""
    link = Link(
        "link",
        IDENTITY,
        collisions=(Collision("plane", Plane(), IDENTITY, Surface(friction=mu)),),
        visuals=(Visual("v", Plane(), IDENTITY),),
    )
    return PlacedModel("ground_plane", Model("ground_plane", (link,), static=True), IDENTITY)


def static_box(name: str, size: tuple[float, float, float], T: SE3, mu: float = 1.0) -> PlacedModel:
    """A static model of one box of edge lengths ``size`` [m]."""
    link = Link(
        "link",
        IDENTITY,
        collisions=(Collision("box", Box(size), IDENTITY, Surface(friction=mu)),),
        visuals=(Visual("v", Box(size), IDENTITY),),
    )
    return PlacedModel(name, Model(name, (link,), static=True), T)


def room_walls(half: float = 3.0, height: float = 1.0, thickness: float = 0.1) -> tuple[PlacedModel, ...]:
    """Four walls whose inner faces are at ±half."""
    d = half + thickness / 2
    return (
        static_box("wall_e", (thickness, 2 * half, height), make_pose(d, 0, height / 2)),
        static_box("wall_w", (thickness, 2 * half, height), make_pose(-d, 0, height / 2)),
        static_box("wall_n", (2 * half, thickness, height), make_pose(0, d, height / 2)),
        static_box("wall_s", (2 * half, thickness, height), make_pose(0, -d, height / 2)),
    )


def free_box(
    name: str = "crate",
    size: tuple[float, float, float] = (0.4, 0.4, 0.2),
    mass: float = 5.0,
    mu: float = 1.0,
    restitution: float = 0.0,
    sensors: tuple[Sensor, ...] = (),
) -> Model:
    """A box that moves freely."""
    link = Link(
        "body",
        IDENTITY,
        Inertial(mass, IDENTITY, box_inertia(mass, size)),
        (Collision("box", Box(size), IDENTITY, Surface(friction=mu, restitution=restitution)),),
        (Visual("v", Box(size), IDENTITY),),
    )
    return Model(name, (link,), sensors=sensors)


def free_ball(name: str = "ball", radius: float = 0.1, mass: float = 1.0, restitution: float = 0.0) -> Model:
    """A ball that moves freely."""
    i = 0.4 * mass * radius * radius
    surface = Surface(restitution=restitution)
    link = Link(
        "body",
        IDENTITY,
        Inertial(mass, IDENTITY, (i, i, i, 0, 0, 0)),
        (Collision("ball", Sphere(radius), IDENTITY, surface),),
    )
    return Model(name, (link,))


WHEELS = {"fl": (0.15, 0.175), "fr": (0.15, -0.175), "rl": (-0.15, 0.175), "rr": (-0.15, -0.175)}
WHEEL_RADIUS = 0.1
RIDE_HEIGHT = 0.13125


def lidar_sensor(samples: int = 720, noise: Noise = NO_NOISE, **kwargs: float) -> Sensor:
    """A planar lidar on the rover."""
    spec = LidarSpec(samples=samples, noise=noise, **kwargs)
    return Sensor("lidar", "lidar", "lidar_link", IDENTITY, 10.0, "scan", "lidar_link", spec)


def imu_sensor(noise: Noise = NO_NOISE) -> Sensor:
    """An inertial unit on the rover."""
    spec = ImuSpec((noise,) * 3, (noise,) * 3)
    return Sensor("imu", "imu", "base_link", IDENTITY, 100.0, "imu", "base_link", spec)


def rover_model(
    name: str = "rover",
    effort: float = 10.0,
    sensors: tuple[Sensor, ...] | None = None,
    parameters: tuple[tuple[str, str], ...] = (),
    mu: float = 1.0,
) -> Model:
    """Four driven wheels, skid steer: the rover of the project by hand."""
    base = (0.4, 0.3, 0.125)
    wheel_inertia = (0.5 * (3 * 0.01 + 0.0025) / 12, 0.5 * (3 * 0.01 + 0.0025) / 12, 0.5 * 0.01 / 2, 0.0, 0.0, 0.0)
    upright = make_pose(roll=-math.pi / 2)
    links = [
        Link("base_footprint", IDENTITY),
        Link(
            "base_link",
            IDENTITY,
            Inertial(7.0, IDENTITY, box_inertia(7.0, base)),
            (Collision("c", Box(base), IDENTITY),),
            (Visual("v", Box(base), IDENTITY),),
        ),
        Link(
            "lidar_link",
            make_pose(0.1, 0, 0.1125),
            Inertial(1e-5, IDENTITY, box_inertia(1e-5, (0.1, 0.1, 0.1))),
            (Collision("c", Box((0.1, 0.1, 0.1)), IDENTITY),),
            (Visual("v", Box((0.1, 0.1, 0.1)), IDENTITY),),
        ),
    ]
    joints = [
        Joint("base_joint", "fixed", "base_footprint", "base_link", IDENTITY, IDENTITY),
        Joint("lidar_joint", "fixed", "base_link", "lidar_link", make_pose(0.1, 0, 0.1125), IDENTITY),
    ]
    for wheel, (x, y) in WHEELS.items():
        T = make_pose(x, y, -0.03125) @ upright
        tyre = Cylinder(WHEEL_RADIUS, 0.05)
        links.append(
            Link(
                f"{wheel}_wheel",
                T,
                Inertial(0.5, IDENTITY, wheel_inertia),
                (Collision("c", tyre, IDENTITY, Surface(friction=mu)),),
                (Visual("v", tyre, IDENTITY),),
            )
        )
        axis = Axis((0.0, 0.0, 1.0), AxisLimits(effort=effort, velocity=20.0))
        joints.append(Joint(f"{wheel}_joint", "continuous", "base_link", f"{wheel}_wheel", T, IDENTITY, (axis,)))
    interfaces = tuple(
        JointInterface(f"{wheel}_joint", (("velocity", -20.0, 20.0),), ("position", "velocity"), (), 1.0, parameters)
        for wheel in WHEELS
    )
    if sensors is None:
        sensors = (
            lidar_sensor(),
            imu_sensor(),
            Sensor("encoders", "encoder", "base_link", IDENTITY, 50.0, "joint_states", "base_link", EncoderSpec()),
            Sensor("bumper", "contact", "base_link", IDENTITY, 50.0, "bumper", "base_link", ContactSpec()),
            Sensor("truth", "ground_truth", "base_link", IDENTITY, 50.0, "truth", "base_link", GroundTruthSpec()),
        )
    return Model(name, tuple(links), tuple(joints), sensors, interfaces)


def make_world(*models: PlacedModel, gravity: float = -9.8) -> World:
    """A world of models, gravity along z [m/s²]."""
    return World("test", models, gravity=(0.0, 0.0, gravity))
