"""The rover's description and bring-up file."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import yaml

import roboyard
from roboyard.bringup.catalog import resolve_node_class
from roboyard.bus import Bus
from roboyard.control.drive_config import DifferentialDriveConfig, DriveLimits
from roboyard.control.nodes import RobotStateNode
from roboyard.description import load_model
from roboyard.description.model import Box, Cylinder, Model
from roboyard.description.sensors import ContactSpec, EncoderSpec, ImuSpec, LidarSpec
from roboyard.kinematics import ForwardKinematics
from roboyard.messages import msg

FOLDER = Path(roboyard.__file__).parent / "robots" / "rover"
WHEELS = {
    "front_left": (0.15, 0.175),
    "front_right": (0.15, -0.175),
    "rear_left": (-0.15, 0.175),
    "rear_right": (-0.15, -0.175),
}


@pytest.fixture(scope="module")
def rover() -> Model:
    return load_model(FOLDER / "rover.urdf.xacro")


@pytest.fixture(scope="module")
def package() -> dict:
    return yaml.safe_load((FOLDER / "rover.yaml").read_text())


def test_rover_is_read_without_findings(rover: Model) -> None:
    assert rover.name == "rover"
    assert rover.warnings == ()


def test_rover_masses_and_places_are_those_of_the_thesis(rover: Model) -> None:
    assert rover.mass == pytest.approx(7.0 + 4 * 0.5 + 1e-5)
    poses = ForwardKinematics(rover).link_poses({})
    T_body = poses["body_link"]
    for name, (x, y) in WHEELS.items():
        T_body_wheel = T_body.inverse() @ poses[f"{name}_wheel"]
        assert T_body_wheel.xyz == pytest.approx((x, y, -0.03125))
        assert poses[f"{name}_wheel"].z == pytest.approx(0.1), "the wheels stand on the ground"
    assert (T_body.inverse() @ poses["laser"]).xyz == pytest.approx((0.1, 0.0, 0.1125))


def test_base_link_is_the_root_on_the_ground(rover: Model) -> None:
    assert [link.name for link in rover.roots] == ["base_link"]
    poses = ForwardKinematics(rover).link_poses({})
    assert poses["base_footprint"].almost_equal(poses["base_link"], 0.0)
    assert poses["body_link"].xyz == pytest.approx((0.0, 0.0, 0.13125))


def voxels(shape: Box | Cylinder, count: int = 60) -> np.ndarray:
    """Independent of any formula: points that fill a shape evenly."""
    half = (
        np.array(shape.size) / 2 if isinstance(shape, Box) else np.array([shape.radius, shape.radius, shape.length / 2])
    )
    steps = [((np.arange(count) + 0.5) / count * 2 - 1) * h for h in half]
    points = np.stack(np.meshgrid(*steps, indexing="ij"), axis=-1).reshape(-1, 3)
    if isinstance(shape, Cylinder):
        points = points[np.hypot(points[:, 0], points[:, 1]) <= shape.radius]
    return points


def moments(points: np.ndarray, mass: float) -> np.ndarray:
    """Inertia tensor of evenly spread points about the origin."""
    square = (points**2).sum(axis=1)
    return mass * (np.eye(3) * square.mean() - np.einsum("ni,nj->ij", points, points) / len(points))


def test_rover_inertia_is_that_of_the_shapes(rover: Model) -> None:
    """The whole rover about its base: links' tensors moved there, against points filling the collision shapes."""
    poses = ForwardKinematics(rover).link_poses({})
    stated, counted = np.zeros((3, 3)), np.zeros((3, 3))
    for link in rover.links:
        if link.inertial is None:
            continue
        T_base_com = poses[link.name] @ link.inertial.T_link_com
        ixx, iyy, izz, ixy, ixz, iyz = link.inertial.inertia
        tensor = np.array([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]])
        R, c = T_base_com.rotation_matrix(), np.array(T_base_com.xyz)
        stated += R @ tensor @ R.T + link.inertial.mass * (np.eye(3) * (c @ c) - np.outer(c, c))
        (collision,) = link.collisions
        assert isinstance(collision.geometry, (Box, Cylinder))
        points = poses[link.name] @ (collision.T_link_geom @ voxels(collision.geometry))
        counted += moments(points, link.inertial.mass)
    np.testing.assert_allclose(stated, counted, atol=2e-3 * np.trace(stated))


def test_wheel_inertia_follows_the_formula(rover: Model) -> None:
    inertial = rover.link("front_left_wheel").inertial
    assert inertial is not None
    m, r, w = 0.5, 0.1, 0.05
    side = m * (3 * r * r + w * w) / 12
    assert inertial.inertia == pytest.approx((side, m * r * r / 2, side, 0, 0, 0))


def test_rover_sensors(rover: Model) -> None:
    by_topic = {sensor.topic: sensor for sensor in rover.sensors}
    assert set(by_topic) == {"scan", "imu", "bumper", "wheel_encoders"}
    scan = by_topic["scan"]
    assert isinstance(scan.spec, LidarSpec)
    assert (scan.frame, scan.update_rate, scan.spec.samples) == ("laser", 10.0, 720)
    assert (scan.spec.angle_min, scan.spec.angle_max) == (-1.570796, 1.570796)
    assert (scan.spec.range_min, scan.spec.range_max, scan.spec.resolution) == (0.1, 30.0, 0.01)
    imu = by_topic["imu"]
    assert isinstance(imu.spec, ImuSpec)
    assert (imu.frame, imu.update_rate, imu.spec.orientation) == ("imu_link", 100.0, False)
    assert all(noise.stddev > 0 for noise in (*imu.spec.angular_velocity, *imu.spec.linear_acceleration))
    assert isinstance(by_topic["bumper"].spec, ContactSpec)
    assert by_topic["bumper"].spec.collisions == ("body",)
    encoders = by_topic["wheel_encoders"].spec
    assert isinstance(encoders, EncoderSpec)
    assert encoders.joints == tuple(f"{name}_wheel_joint" for name in WHEELS)
    assert encoders.resolution == 4096


def test_wheels_take_velocity_commands(rover: Model) -> None:
    for interface in rover.interfaces:
        (command,) = interface.commands
        assert command == ("velocity", -28.0, 28.0)
    joints = {interface.joint for interface in rover.interfaces}
    assert joints == {f"{name}_wheel_joint" for name in WHEELS}
    for name in joints:
        assert rover.joint(name).axes[0].limits.effort == 2.5


def test_friction_can_be_chosen_at_load() -> None:
    icy = load_model(FOLDER / "rover.urdf.xacro", arguments={"wheel_friction": "0.1"})
    assert icy.link("rear_left_wheel").collisions[0].surface.friction == 0.1


def test_published_transforms_agree_with_matrix_products(rover: Model) -> None:
    """Independent: the chain body → wheel as plain matrices, from the numbers of the thesis."""
    angles = {"front_left": 0.3, "front_right": -1.2, "rear_left": 2.5, "rear_right": 40.0}
    with Bus() as bus:
        bus.add(RobotStateNode(description=rover), "robot_state")
        names = [f"{name}_wheel_joint" for name in angles]
        state = msg.JointState(name=names, position=np.array(list(angles.values())))
        bus.publisher("/joint_states", msg.JointState, "/test").publish(state)
        bus.executor.run_for(0.01)
        for name, q in angles.items():
            x, y = WHEELS[name]
            c, s = math.cos(q), math.sin(q)
            body = np.eye(4)
            body[2, 3] = 0.13125
            place = np.eye(4)
            place[:3, 3] = x, y, -0.03125
            turn = np.array([[c, 0, s, 0], [0, 1, 0, 0], [-s, 0, c, 0], [0, 0, 0, 1.0]])
            found = bus.transforms.lookup("base_link", f"{name}_wheel").matrix()
            np.testing.assert_allclose(found, body @ place @ turn, atol=1e-12)
        assert bus.transforms.lookup("base_footprint", "laser").xyz == pytest.approx((0.1, 0.0, 0.24375))
        assert bus.transforms.lookup("body_link", "imu_link").xyz == pytest.approx((0.0, 0.0, 0.0))


def test_bringup_file_has_valid_nodes_and_parameters(package: dict) -> None:
    assert set(package["autostart"]) <= set(package["nodes"])
    for entry in package["nodes"].values():
        resolve_node_class(entry["type"]).config_class.load(entry.get("parameters", {}))


def test_bringup_file_agrees_with_the_description(rover: Model, package: dict) -> None:
    drive = DifferentialDriveConfig.load(package["drive"])
    limits = DriveLimits.load(package["limits"])
    poses = ForwardKinematics(rover).link_poses({})
    for joints, sign in ((drive.left_joints, 1.0), (drive.right_joints, -1.0)):
        for name in joints:
            joint = rover.joint(name)
            assert poses[joint.child].y == pytest.approx(sign * drive.track / 2)
            tyre = rover.link(joint.child).collisions[0].geometry
            assert isinstance(tyre, Cylinder)
            assert tyre.radius == drive.wheel_radius
            assert joint.axes[0].limits.velocity == limits.wheel_speed
    assert package["base_frame"] in {link.name for link in rover.links}


def test_footprint_is_the_outline_of_body_and_wheels(rover: Model, package: dict) -> None:
    poses = ForwardKinematics(rover).link_poses({})
    points = np.concatenate(
        [
            poses[link.name] @ (item.T_link_geom @ voxels(item.geometry, 40))
            for link in rover.links
            for item in link.collisions
        ]
    )
    outline = np.array(package["footprint"])
    np.testing.assert_allclose(np.abs(points[:, :2]).max(axis=0), outline.max(axis=0), atol=0.01)
