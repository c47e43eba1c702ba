"""Descriptions written by hand for the tests of the simulation."""

from __future__ import annotations

import math

from roboyard.description.model import (
    Axis,
    Box,
    Collision,
    Cylinder,
    Inertial,
    Joint,
    JointInterface,
    Limits,
    Link,
    Model,
    Placed,
    Plane,
    Sphere,
    Surface,
    Visual,
    World,
)
from roboyard.description.sensors import ContactSpec, EncoderSpec, ImuSpec, LidarSpec, Noise, Sensor, TruthSpec
from roboyard.geometry import SE3

I = SE3.identity()  # noqa: E741
QUIET = Noise()


def at(x: float = 0.0, y: float = 0.0, z: float = 0.0, roll: float = 0.0, pitch: float = 0.0, yaw: float = 0.0) -> SE3:
    return SE3.from_xyz_rpy((x, y, z), (roll, pitch, yaw))


def box_inertia(mass: float, size: tuple[float, float, float]) -> tuple[float, ...]:
    x, y, z = size
    return (mass * (y * y + z * z) / 12, mass * (x * x + z * z) / 12, mass * (x * x + y * y) / 12, 0.0, 0.0, 0.0)


def ground(mu: float = 1.0) -> Placed:
    link = Link(
        "link",
        I,
        collisions=(Collision("plane", Plane(), I, Surface(friction=mu)),),
        visuals=(Visual("v", Plane(), I),),
    )
    return Placed("ground_plane", Model("ground_plane", (link,), static=True), I)


def static_box(name: str, size: tuple[float, float, float], T: SE3, mu: float = 1.0) -> Placed:
    link = Link(
        "link",
        I,
        collisions=(Collision("box", Box(size), I, Surface(friction=mu)),),
        visuals=(Visual("v", Box(size), I),),
    )
    return Placed(name, Model(name, (link,), static=True), T)


def room(half: float = 3.0, height: float = 1.0, thickness: float = 0.1) -> tuple[Placed, ...]:
    """Four walls whose inner faces are at ±half."""
    d = half + thickness / 2
    return (
        static_box("wall_e", (thickness, 2 * half, height), at(d, 0, height / 2)),
        static_box("wall_w", (thickness, 2 * half, height), at(-d, 0, height / 2)),
        static_box("wall_n", (2 * half, thickness, height), at(0, d, height / 2)),
        static_box("wall_s", (2 * half, thickness, height), at(0, -d, height / 2)),
    )


def free_box(
    name: str = "crate",
    size: tuple[float, float, float] = (0.4, 0.4, 0.2),
    mass: float = 5.0,
    mu: float = 1.0,
    restitution: float = 0.0,
    sensors: tuple[Sensor, ...] = (),
) -> Model:
    link = Link(
        "body",
        I,
        Inertial(mass, I, box_inertia(mass, size)),
        (Collision("box", Box(size), I, Surface(friction=mu, restitution=restitution)),),
        (Visual("v", Box(size), I),),
    )
    return Model(name, (link,), sensors=sensors)


def free_ball(name: str = "ball", radius: float = 0.1, mass: float = 1.0, restitution: float = 0.0) -> Model:
    i = 0.4 * mass * radius * radius
    surface = Surface(restitution=restitution)
    link = Link("body", I, Inertial(mass, I, (i, i, i, 0, 0, 0)), (Collision("ball", Sphere(radius), I, surface),))
    return Model(name, (link,))


WHEELS = {"fl": (0.15, 0.175), "fr": (0.15, -0.175), "rl": (-0.15, 0.175), "rr": (-0.15, -0.175)}
WHEEL_RADIUS = 0.1
RIDE_HEIGHT = 0.13125


def lidar(samples: int = 720, noise: Noise = QUIET, **kwargs: float) -> Sensor:
    spec = LidarSpec(samples=samples, noise=noise, **kwargs)
    return Sensor("lidar", "lidar", "lidar_link", I, 10.0, "scan", "lidar_link", spec)


def imu(noise: Noise = QUIET) -> Sensor:
    spec = ImuSpec((noise,) * 3, (noise,) * 3)
    return Sensor("imu", "imu", "base_link", I, 100.0, "imu", "base_link", spec)


def rover(
    name: str = "rover",
    effort: float = 10.0,
    sensors: tuple[Sensor, ...] | None = None,
    parameters: tuple[tuple[str, str], ...] = (),
    mu: float = 1.0,
) -> Model:
    """Four driven wheels, skid steer: the rover of the project by hand."""
    base = (0.4, 0.3, 0.125)
    wheel_inertia = (0.5 * (3 * 0.01 + 0.0025) / 12, 0.5 * (3 * 0.01 + 0.0025) / 12, 0.5 * 0.01 / 2, 0.0, 0.0, 0.0)
    upright = at(roll=-math.pi / 2)
    links = [
        Link("base_footprint", I),
        Link(
            "base_link",
            I,
            Inertial(7.0, I, box_inertia(7.0, base)),
            (Collision("c", Box(base), I),),
            (Visual("v", Box(base), I),),
        ),
        Link(
            "lidar_link",
            at(0.1, 0, 0.1125),
            Inertial(1e-5, I, box_inertia(1e-5, (0.1, 0.1, 0.1))),
            (Collision("c", Box((0.1, 0.1, 0.1)), I),),
            (Visual("v", Box((0.1, 0.1, 0.1)), I),),
        ),
    ]
    joints = [
        Joint("base_joint", "fixed", "base_footprint", "base_link", I, I),
        Joint("lidar_joint", "fixed", "base_link", "lidar_link", at(0.1, 0, 0.1125), I),
    ]
    for wheel, (x, y) in WHEELS.items():
        T = at(x, y, -0.03125) @ upright
        tyre = Cylinder(WHEEL_RADIUS, 0.05)
        links.append(
            Link(
                f"{wheel}_wheel",
                T,
                Inertial(0.5, I, wheel_inertia),
                (Collision("c", tyre, I, Surface(friction=mu)),),
                (Visual("v", tyre, I),),
            )
        )
        axis = Axis((0.0, 0.0, 1.0), Limits(effort=effort, velocity=20.0))
        joints.append(Joint(f"{wheel}_joint", "continuous", "base_link", f"{wheel}_wheel", T, I, (axis,)))
    interfaces = tuple(
        JointInterface(f"{wheel}_joint", (("velocity", -20.0, 20.0),), ("position", "velocity"), (), 1.0, parameters)
        for wheel in WHEELS
    )
    if sensors is None:
        sensors = (
            lidar(),
            imu(),
            Sensor("encoders", "encoder", "base_link", I, 50.0, "joint_states", "base_link", EncoderSpec()),
            Sensor("bumper", "contact", "base_link", I, 50.0, "bumper", "base_link", ContactSpec()),
            Sensor("truth", "truth", "base_link", I, 50.0, "truth", "base_link", TruthSpec()),
        )
    return Model(name, tuple(links), tuple(joints), sensors, interfaces)


def world(*models: Placed, gravity: float = -9.8) -> World:
    return World("test", models, gravity=(0.0, 0.0, gravity))
