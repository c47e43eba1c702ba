"""Conversions between messages and arrays or poses: each one is the inverse of its counterpart."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.errors import MessageError
from roboyard.geometry import SE2, SE3
from roboyard.messages import (
    convert,
    deserialize,
    duration_to_msg,
    msg,
    serialize,
    to_nanoseconds,
    to_seconds,
    type_name,
)
from roboyard.messages.convert.images import ENCODINGS

LENGTH, ANGLE = st.floats(-1e3, 1e3), st.floats(-3.0, 3.0)
POSE3 = st.builds(SE3.from_xyz_rpy, st.tuples(LENGTH, LENGTH, LENGTH), st.tuples(ANGLE, ANGLE, ANGLE))
POSE2 = st.builds(SE2, LENGTH, LENGTH, ANGLE)
SEEDS = st.integers(0, 2**32 - 1)


def transmit(message):
    """Return the message after serialization and deserialization."""
    return deserialize(serialize(message), type_name(message))


@given(POSE3)
def test_poses_and_transforms_convert_back(pose):
    assert convert.pose_to_se3(transmit(convert.pose_to_msg(pose))) == pose
    assert convert.transform_to_se3(transmit(convert.transform_to_msg(pose))) == pose
    message = convert.pose_to_msg(pose)
    assert (message.orientation.w, message.orientation.x) == pose.quaternion[:2]
    stamped = convert.pose_stamped_to_msg(pose, "map", 5)
    assert (stamped.header.frame_id, stamped.header.stamp.nanosec) == ("map", 5)


@given(POSE2)
def test_planar_poses_convert_back(pose):
    assert convert.pose_to_se2(convert.pose_to_msg(pose)).almost_equal(pose, 1e-12)
    assert convert.pose_to_msg(pose) == convert.pose_to_msg(pose.to_se3()) or pose.theta < 0.0


@given(st.lists(POSE3, max_size=5), st.lists(POSE2, max_size=5))
def test_paths_convert_back(spatial, planar):
    path = transmit(convert.path_to_msg(spatial, "map", 7))
    assert convert.path_to_poses(path) == spatial
    rows = np.array([(p.x, p.y, p.theta) for p in planar]).reshape(-1, 3)
    for poses in (planar, rows):
        np.testing.assert_allclose(convert.path_to_array(convert.path_to_msg(poses, "map", 7)), rows, atol=1e-12)


@given(POSE3, SEEDS)
def test_odometry_converts_back(pose, seed):
    rng = np.random.default_rng(seed)
    linear, angular, covariance = rng.normal(size=3), rng.normal(size=3), rng.normal(size=(6, 6))
    message = convert.odometry_to_msg(
        pose, linear, angular, frame="odom", child_frame="base_link", time_ns=9, pose_covariance=covariance
    )
    converted, v, w = convert.odometry_to_arrays(transmit(message))
    assert converted == pose
    np.testing.assert_array_equal((v, w), (linear, angular))
    np.testing.assert_array_equal(convert.covariance_to_array(message.pose.covariance), covariance)
    assert message.twist.covariance.tolist() == [0.0] * 36
    assert convert.twist_to_arrays(convert.twist_to_msg(v, w))[1].tolist() == angular.tolist()


def test_tf_message_contains_frames_and_stamps():
    tree = convert.transforms_to_msg(
        [(SE3(translation=(1, 2, 3)), "odom", "base"), (SE3(), "base", "laser")], 1_500_000_000
    )
    assert [(t.header.frame_id, t.child_frame_id) for t in tree.transforms] == [("odom", "base"), ("base", "laser")]
    assert tree.transforms[0].header.stamp == msg.Time(sec=1, nanosec=500_000_000)
    assert convert.transform_to_se3(tree.transforms[0].transform).xyz.tolist() == [1, 2, 3]


@given(SEEDS, st.integers(0, 400))
def test_scans_convert_back(seed, count):
    rng = np.random.default_rng(seed)
    ranges = rng.uniform(0.0, 12.0, count).astype(np.float32)
    ranges[rng.random(count) < 0.1] = np.inf
    ranges[rng.random(count) < 0.1] = np.nan
    scan = transmit(
        convert.scan_to_msg(ranges, convert.ScanGeometry(-1.5, 0.01, 0.1, 10.0), frame="laser", time_ns=3,
                            scan_time=0.1)
    )  # fmt: skip
    np.testing.assert_array_equal(scan.ranges, ranges)
    angles = convert.scan_angles(scan)
    np.testing.assert_allclose(angles, -1.5 + 0.01 * np.arange(count), atol=1e-5)
    if count:
        assert scan.angle_max == pytest.approx(angles[-1], abs=1e-4)
    points, valid = convert.scan_points(scan), convert.scan_valid(scan)
    assert points.shape == (valid.sum(), 2)
    np.testing.assert_allclose(np.hypot(*points.T), ranges[valid], rtol=1e-6)
    np.testing.assert_allclose(np.arctan2(points[:, 1], points[:, 0]), angles[valid], atol=1e-9)


def test_scan_ranges_at_the_limits_are_valid():
    geometry = convert.ScanGeometry(angle_min=0, angle_increment=1, range_min=0.1, range_max=10.0)
    scan = convert.scan_to_msg([0.1, 10.0, 10.01, 0.09], geometry, frame="", time_ns=0)
    assert convert.scan_valid(scan).tolist() == [True, True, False, False]


@given(SEEDS, st.sampled_from(sorted(ENCODINGS.items())))
def test_images_convert_back(seed, encoding):
    name, (kind, channels) = encoding
    rng = np.random.default_rng(seed)
    shape = (int(rng.integers(1, 6)), int(rng.integers(1, 7)), *([channels] if channels > 1 else []))
    image = rng.integers(0, 100, shape).astype(kind)
    message = convert.image_to_msg(image, "camera", 3, name)
    converted = convert.image_to_array(transmit(message))
    np.testing.assert_array_equal(converted, image)
    assert converted.dtype == image.dtype
    np.testing.assert_array_equal(convert.image_to_array(pad_rows(message)), image)
    np.testing.assert_array_equal(convert.image_to_array(swap_bytes(message, kind)), image)


@pytest.mark.parametrize("encoding", ["rgb8", "bgr8", "rgba8", "bgra8", "mono8"])
def test_color_images_become_rgb_or_gray(encoding):
    channels = ENCODINGS[encoding][1]
    image = np.arange(2 * 3 * channels, dtype=np.uint8).reshape((2, 3, channels) if channels > 1 else (2, 3))
    converted = convert.color_to_array(convert.image_to_msg(image, "camera", 0, encoding))
    order = [2, 1, 0] if encoding.startswith("bgr") else [0, 1, 2]
    np.testing.assert_array_equal(converted, image if channels == 1 else image[:, :, order])
    assert converted.flags.c_contiguous


def test_depth_images_become_meters():
    millimeters = convert.image_to_msg(np.array([[0, 1500]], np.uint16), "camera", 0)
    np.testing.assert_allclose(convert.depth_to_array(millimeters), [[np.nan, 1.5]], rtol=1e-6)
    meters = np.array([[np.inf, 1.5, np.nan]], np.float32)
    np.testing.assert_array_equal(convert.depth_to_array(convert.image_to_msg(meters, "camera", 0)), meters)


def pad_rows(message):
    """Return the image with padding bytes at the ends of rows, as some cameras publish."""
    rows = message.data.reshape(message.height, message.step)
    data = np.pad(rows, ((0, 0), (0, 5)), constant_values=77).ravel()
    return msg.Image(message.header, message.height, message.width, message.encoding, 0, message.step + 5, data)


def swap_bytes(message, kind):
    data = message.data.view(kind).byteswap().view(np.uint8)
    return msg.Image(message.header, message.height, message.width, message.encoding, 1, message.step, data)


def test_image_encodings_follow_shape_and_type():
    for shape, kind, encoding in [
        ((2, 3, 3), np.uint8, "rgb8"), ((2, 3, 4), np.uint8, "rgba8"), ((2, 3), np.uint8, "mono8"),
        ((2, 3), np.uint16, "16UC1"), ((2, 3), np.float32, "32FC1"),
    ]:  # fmt: skip
        assert convert.image_to_msg(np.zeros(shape, kind), "", 0).encoding == encoding


def test_camera_matrix_converts_back():
    K = np.array([[500.0, 0, 320], [0, 510, 240], [0, 0, 1]])
    info = transmit(convert.camera_info_to_msg(640, 480, K, "camera", 1))
    np.testing.assert_array_equal(convert.camera_matrix(info), K)
    assert info.p.reshape(3, 4)[:, :3].tolist() == K.tolist()


@given(SEEDS, st.integers(0, 30))
def test_clouds_convert_back(seed, count):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(count, 3)).astype(np.float32)
    fields = {
        "intensity": rng.normal(size=count),
        "ring": rng.integers(0, 9, count).astype(np.uint16),
        "rgb": convert.pack_rgb(rng.integers(0, 256, (count, 3))),
    }
    message = convert.cloud_to_msg(points, "lidar", 4, fields=fields)
    for cloud in (transmit(message), organize(message)):
        arrays = convert.cloud_to_arrays(cloud)
        np.testing.assert_array_equal(convert.cloud_points(cloud), points)
        assert list(arrays) == ["x", "y", "z", "intensity", "ring", "rgb"]
        for name, values in fields.items():
            assert arrays[name].dtype == values.dtype
            assert arrays[name].tobytes() == values.tobytes()
    np.testing.assert_array_equal(
        convert.pack_rgb(convert.unpack_rgb(fields["rgb"])).view(np.uint32), fields["rgb"].view(np.uint32)
    )


def organize(message):
    """Return the cloud organized in two rows with padding bytes, as a depth camera publishes it."""
    if message.width % 2 or not message.width:
        return message
    width = message.width // 2
    rows = np.pad(message.data.reshape(2, width * message.point_step), ((0, 0), (0, 9))).ravel()
    return msg.PointCloud2(
        message.header, 2, width, message.fields, False, message.point_step, width * message.point_step + 9, rows, True
    )


def test_cloud_points_excludes_points_that_are_not_finite():
    points = np.array([[1, 2, 3], [np.nan] * 3, [4, 5, np.inf]])
    cloud = convert.cloud_to_msg(points, "", 0)
    assert not cloud.is_dense
    assert convert.cloud_points(cloud).tolist() == [[1, 2, 3]]
    assert convert.cloud_points(cloud, finite=False).shape == (3, 3)


@given(SEEDS, POSE2)
def test_grids_convert_back(seed, origin):
    rng = np.random.default_rng(seed)
    cells = rng.integers(-1, 101, rng.integers(1, 9, 2))
    grid = transmit(convert.grid_to_msg(cells, 0.05, origin, "map", 6))
    np.testing.assert_array_equal(convert.grid_to_array(grid), cells)
    assert convert.grid_to_array(grid)[0, -1] == grid.data[cells.shape[1] - 1]  # rows along y
    assert (grid.info.height, grid.info.width) == cells.shape
    assert convert.grid_origin(grid).almost_equal(origin, 1e-12)
    assert grid.info.resolution == pytest.approx(0.05)


def make_scan(ranges, **fields):
    return convert.scan_to_msg(ranges, convert.ScanGeometry(0, 1, 0, 1), frame="", time_ns=0, **fields)


@pytest.mark.parametrize(
    "convert_invalid",
    [
        lambda: convert.pose_to_se3(msg.Pose(orientation=msg.Quaternion(w=0.0))),
        lambda: convert.transform_to_se3(msg.Transform(translation=msg.Vector3(x=math.nan))),
        lambda: convert.vector_to_msg([1, 2]),
        lambda: convert.quaternion_to_msg([1, 2, 3]),
        lambda: convert.path_to_msg(np.zeros((4, 2)), "map", 0),
        lambda: convert.covariance_to_msg(np.zeros(35)),
        lambda: make_scan(np.zeros((2, 2))),
        lambda: make_scan(np.zeros(3), intensities=np.zeros(2)),
        lambda: convert.image_to_msg(np.zeros((2, 2), np.int64), "", 0),
        lambda: convert.image_to_msg(np.zeros((2, 2, 3), np.uint8), "", 0, "mono8"),
        lambda: convert.image_to_msg(np.zeros((2, 2), np.uint8), "", 0, "jpeg"),
        lambda: convert.image_to_msg(np.zeros(5, np.uint8), "", 0, "mono8"),
        lambda: convert.color_to_array(msg.Image(encoding="32FC1")),
        lambda: convert.depth_to_array(msg.Image(encoding="rgb8")),
        lambda: convert.image_to_array(msg.Image(encoding="jpeg")),
        lambda: convert.image_to_array(msg.Image(encoding="rgb8", width=2, height=2, step=5, data=np.zeros(10, "u1"))),
        lambda: convert.image_to_array(msg.Image(encoding="rgb8", width=2, height=2, step=6, data=np.zeros(11, "u1"))),
        lambda: convert.camera_info_to_msg(1, 1, np.eye(4), "", 0),
        lambda: convert.cloud_to_msg(np.zeros((3, 2)), "", 0),
        lambda: convert.cloud_to_msg(np.zeros((3, 3)), "", 0, fields={"x": np.zeros(3)}),
        lambda: convert.cloud_to_msg(np.zeros((3, 3)), "", 0, fields={"t": np.zeros(2)}),
        lambda: convert.cloud_to_msg(np.zeros((3, 3)), "", 0, fields={"t": np.zeros(3, np.int64)}),
        lambda: convert.cloud_points(msg.PointCloud2()),
        lambda: convert.cloud_to_arrays(msg.PointCloud2(width=5, height=1, point_step=4, row_step=20)),
        lambda: convert.cloud_to_arrays(msg.PointCloud2(fields=[msg.PointField(datatype=9)])),
        lambda: convert.cloud_to_arrays(msg.PointCloud2(point_step=4, fields=[msg.PointField(datatype=8)])),
        lambda: convert.pack_rgb(np.zeros((2, 4))),
        lambda: convert.grid_to_msg(np.zeros((2, 2)), 0.05, SE2(), "", 0),
        lambda: convert.grid_to_msg(np.full((2, 2), 101), 0.05, SE2(), "", 0),
        lambda: convert.grid_to_msg(np.zeros((2, 2), int), 0.0, SE2(), "", 0),
        lambda: convert.grid_to_msg(np.zeros(4, int), 0.05, SE2(), "", 0),
        lambda: convert.grid_to_array(msg.OccupancyGrid(data=np.zeros(3, np.int8))),
    ],
)  # fmt: skip
def test_conversion_of_wrong_shapes_is_refused(convert_invalid):
    with pytest.raises(MessageError):
        convert_invalid()


@pytest.mark.parametrize(
    "convert_invalid",
    [
        lambda: make_scan(["a"]),
        lambda: convert.image_to_msg([[1, 2], [3]], "c", 0),
        lambda: convert.cloud_to_msg([["a", "b", "c"]], "c", 0),
        lambda: convert.pack_rgb([[300, 0, 0]]),
        lambda: convert.pack_rgb("red"),
        lambda: convert.unpack_rgb(np.zeros(3)),
        lambda: convert.grid_to_msg(np.zeros((2, 2), int), np.inf, SE2(), "m", 0),
        lambda: convert.path_to_msg(["abc"], "m", 0),
        lambda: convert.pose_to_msg("here"),
        lambda: convert.twist_to_msg("abc", [0, 0, 0]),
        lambda: convert.covariance_to_array(np.zeros(5)),
        lambda: convert.camera_info_to_msg(1, 1, "x", "c", 0),
    ],
)
def test_conversion_of_non_numbers_is_refused_in_one_line(convert_invalid):
    with pytest.raises(MessageError) as caught:
        convert_invalid()
    assert "\n" not in str(caught.value)


@given(st.binary(min_size=16, max_size=16))
def test_identifiers_convert_back(uuid):
    message = convert.uuid_to_msg(uuid)
    assert type_name(message) == "unique_identifier_msgs/msg/UUID"
    assert convert.uuid_from_msg(message) == convert.uuid_from_msg(transmit(message)) == uuid


@given(st.binary(max_size=40).filter(lambda uuid: len(uuid) != 16))
def test_identifier_of_another_length_is_refused(uuid):
    with pytest.raises(MessageError, match="16"):
        serialize(convert.uuid_to_msg(uuid))


@given(st.text(), st.text())
def test_identifiers_of_texts_are_equal_exactly_where_the_texts_are(first, second):
    assert (convert.uuid_of_text(first) == convert.uuid_of_text(second)) == (first == second)
    assert len(convert.uuid_of_text(first)) == 16


@given(st.lists(st.floats(), min_size=6, max_size=6))
def test_twist_is_finite_where_all_its_numbers_and_their_sum_are(values):
    twist = msg.Twist(linear=msg.Vector3(*values[:3]), angular=msg.Vector3(*values[3:]))
    total = sum(values[1:], values[0])
    assert convert.is_finite_twist(twist) == (all(map(math.isfinite, values)) and math.isfinite(total))


@given(st.integers(-(2**53) // 10**6, 2**53 // 10**6))
def test_seconds_of_a_duration_agree_with_its_nanoseconds(milliseconds):
    duration = duration_to_msg(milliseconds * 1_000_000)
    assert to_seconds(duration) == pytest.approx(to_nanoseconds(duration) * 1e-9, rel=1e-12, abs=1e-9)
