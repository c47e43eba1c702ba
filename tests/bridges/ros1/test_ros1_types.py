"""Types of ROS 1: their md5 sums are those of ROS, bytes go there and back, and no bytes do harm."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

import roboyard as ry
from roboyard.bridges.ros1.types import ros1_action, ros1_service, ros1_type
from roboyard.errors import MessageError
from roboyard.messages import action_type, deserialize, message_type, service_type, time_to_msg, type_names

# From `rosmsg md5` and `rossrv md5` of ROS Noetic.
MESSAGES = {
    "std_msgs/msg/String": "992ce8a1687cec8c8bd883ec73ca41d1",
    "std_msgs/msg/Header": "2176decaecbce78abc3b96ef049fabed",
    "geometry_msgs/msg/Twist": "9f195f881246fdfa2798d1d3eebca84a",
    "sensor_msgs/msg/LaserScan": "90c7ef2dc6895d81024acba2ac42f369",
    "sensor_msgs/msg/Image": "060021388200f6f0f447d0fcd9c64743",
    "sensor_msgs/msg/CameraInfo": "c9a58c1b0b154e0e6da7578cb991d214",
    "sensor_msgs/msg/PointCloud2": "1158d486dd51d683ce2f1be655c3c181",
    "nav_msgs/msg/Odometry": "cd5e73d190d741a2f92e81eda573aca7",
    "nav_msgs/msg/OccupancyGrid": "3381f2d731d4076ec5c71b0759edbe4e",
    "tf2_msgs/msg/TFMessage": "94810edda583a504dfda3829e70d7eec",
    "rosgraph_msgs/msg/Clock": "a9c97c1d230cfc112e270351a944ee47",
    "rcl_interfaces/msg/Log": "acffd30cd6b6de30f120938c17c593fb",  # rosgraph_msgs/Log there
    "visualization_msgs/msg/Marker": "4048c9de2a16f4ae8e0538085ebf1b97",
    "diagnostic_msgs/msg/DiagnosticArray": "60810da900de1dd6ddd437c3503511da",
}
SERVICES = {
    "std_srvs/srv/SetBool": "09fb03525b03e7ea1fd3992bafd87e16",
    "std_srvs/srv/Empty": "d41d8cd98f00b204e9800998ecf8427e",
    "std_srvs/srv/Trigger": "937c9679a518e3a18d831e57125ea522",
    "nav_msgs/srv/GetMap": "6cdd0a18e0aff5b0a3ca2326a89b54ff",
    "nav_msgs/srv/GetPlan": "421c8ea4d21c6c9db7054b4bbdf1e024",
}
ACTIONS = {  # goal, result, feedback
    "control_msgs/action/FollowJointTrajectory": (
        "cff5c1d533bf2f82dd0138d57f4304bb", "c4fb3b000dc9da4fd99699380efcc5d9", "d8920dc4eae9fc107e00999cce4be641",
    ),
    "move_base_msgs/action/MoveBase": (
        "660d6895a1b9a16dce51fbdd9a64a56b", "1eb06eeff08fa7ea874431638cb52332", "7d1870ff6e0decea702b943b5af0b42e",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "md5"), MESSAGES.items())
def test_md5_sums_of_messages_equal_ros(name: str, md5: str) -> None:
    assert ros1_type(name).md5 == md5


@pytest.mark.parametrize(("name", "md5"), SERVICES.items())
def test_md5_sums_of_services_equal_ros(name: str, md5: str) -> None:
    assert ros1_service(service_type(name)).md5 == md5


@pytest.mark.parametrize(("name", "md5"), ACTIONS.items())
def test_md5_sums_of_actions_equal_ros(name: str, md5: tuple[str, str, str]) -> None:
    found = ros1_action(action_type(name))
    assert (found.goal.md5, found.result.md5, found.feedback.md5) == md5


def test_every_message_roundtrips() -> None:
    one_way = {"rcl_interfaces/msg/Log"}
    for name in type_names():
        kind, message = ros1_type(name), message_type(name)()
        data = kind.encode(message)
        if name not in one_way:
            assert deserialize(kind.decode(data), name) == message, name


def test_every_service_and_action_has_ros1_types() -> None:
    for name in type_names("srv"):
        assert len(ros1_service(service_type(name)).md5) == 32
    for name in type_names("action"):
        assert ros1_action(action_type(name)).goal.name.endswith("ActionGoal")


def test_values_are_encoded_and_decoded() -> None:
    scan = ry.msg.LaserScan(angle_min=-1.5, ranges=[1.0, 2.5], intensities=[])
    scan.header.stamp, scan.header.frame_id = time_to_msg(12_345_678_901), "laser"
    kind = ros1_type("sensor_msgs/msg/LaserScan")
    data = kind.encode(scan)
    assert data[:16] == bytes(4) + (12).to_bytes(4, "little") + (345_678_901).to_bytes(4, "little") + b"\x05\0\0\0"
    assert deserialize(kind.decode(data), "sensor_msgs/msg/LaserScan") == scan


def test_fields_of_ros2_only_are_omitted_and_read_as_zero() -> None:
    message = message_type("sensor_msgs/msg/Range")(range=2.0, variance=0.5)
    kind = ros1_type("sensor_msgs/msg/Range")
    back = deserialize(kind.decode(kind.encode(message)), "sensor_msgs/msg/Range")
    assert (back.range, back.variance) == (2.0, 0.0)


@given(st.binary(max_size=300), st.sampled_from(sorted(set(MESSAGES) - {"rcl_interfaces/msg/Log"})))
def test_arbitrary_bytes_raise_only_message_errors(data: bytes, name: str) -> None:
    with suppress(MessageError):
        deserialize(ros1_type(name).decode(data), name)


@pytest.mark.parametrize("name", ["sensor_msgs/msg/LaserScan", "tf2_msgs/msg/TFMessage", "std_msgs/msg/String"])
def test_huge_claimed_length_is_refused(name: str) -> None:
    data = bytearray(ros1_type(name).encode(message_type(name)()))
    data[-4:] = b"\xff\xff\xff\x7f"
    with pytest.raises(MessageError):
        ros1_type(name).decode(bytes(data))
