"""Messages as people type and read them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import roboyard as ry
from roboyard.cli.arguments import parse_yaml_value
from roboyard.cli.message_text import MAX_ARRAY_LENGTH, get_field, to_plain, to_text
from roboyard.errors import InputError, MessageError
from roboyard.messages import message_type, serialize
from roboyard.messages.from_data import message_from_data

reals = st.floats(allow_nan=False, width=64)
texts = st.text(st.characters(blacklist_categories=("Cs", "Cc")), max_size=20)


@given(st.lists(reals, min_size=6, max_size=6), texts)
def test_printed_messages_are_read_back(numbers: list[float], frame: str) -> None:
    message = ry.msg.TwistStamped()
    message.header.frame_id = frame
    message.twist.linear = ry.msg.Vector3(*numbers[:3])
    message.twist.angular = ry.msg.Vector3(*numbers[3:])
    assert message_from_data(ry.msg.TwistStamped, parse_yaml_value(to_text(message))) == message


@given(st.lists(st.floats(width=32, allow_nan=False), max_size=300))
def test_full_arrays_are_read_back(values: list[float]) -> None:
    scan = ry.msg.LaserScan(ranges=np.array(values, dtype=np.float32), range_max=0.1)
    repeated = message_from_data(ry.msg.LaserScan, parse_yaml_value(to_text(scan, full=True)))
    assert serialize(repeated) == serialize(scan)


@given(st.lists(st.tuples(texts, reals), max_size=5))
def test_lists_of_messages_are_read_back(pairs: list[tuple[str, float]]) -> None:
    transforms = []
    for name, x in pairs:
        item = ry.msg.TransformStamped(child_frame_id=name)
        item.transform.translation.x = x
        transforms.append(item)
    message = message_type("tf2_msgs/msg/TFMessage")(transforms=transforms)
    assert message_from_data(type(message), parse_yaml_value(to_text(message))) == message


def test_floats_have_their_own_digits() -> None:
    text = to_text(ry.msg.LaserScan(range_max=np.float32(0.1), ranges=np.array([0.3, np.inf], dtype=np.float32)))
    assert "range_max: 0.1\n" in text
    assert "ranges: [0.3, .inf]" in text


def test_long_arrays_are_shortened() -> None:
    scan = ry.msg.LaserScan(ranges=np.ones(MAX_ARRAY_LENGTH + 1, dtype=np.float32))
    assert to_text(scan).count("1.0") == MAX_ARRAY_LENGTH
    assert "…" in to_text(scan)
    assert "…" not in to_text(scan, full=True)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.5, "1.5"),
        (float("nan"), ".nan"),
        (float("-inf"), "-.inf"),
        (True, "true"),
        ("a b", "a b"),
        ([1, 2], "[1, 2]"),
    ],
)
def test_single_values_are_written_as_yaml(value: Any, text: str) -> None:
    assert to_text(value) == text


def test_parts_of_messages_are_found_by_path() -> None:
    message = ry.msg.Odometry()
    message.pose.pose.position.x = 2.0
    assert get_field(message, "pose.pose.position.x") == 2.0
    assert get_field(message, "pose.covariance.35") == 0.0
    assert get_field(message, "") is message
    for wrong in ("pose.covariance.36", "pose.x", "pose.pose.position.x.y", "."):
        with pytest.raises(InputError, match="no field"):
            get_field(message, wrong)


def test_message_without_fields_is_empty_text() -> None:
    assert to_text(ry.srv.Trigger.Request()) == "{}"
    assert to_plain(ry.srv.Trigger.Request()) == {}
    assert message_from_data(ry.srv.Trigger.Request, {}) == ry.srv.Trigger.Request()


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("Twist", "{linear: {x: fast}}", "Twist.linear.x: a float64 is required, got str 'fast'"),
        ("Twist", "{linear: 3}", "Twist.linear: a geometry_msgs/msg/Vector3 is required, got 3 (fields: x, y, z)"),
        ("Twist", "[1, 2]", "a geometry_msgs/msg/Twist is required"),
        ("UInt8", "{data: 256}", "a uint8 is required, got int 256"),
        ("JointState", "{position: [a]}", "JointState.position"),
        ("JointState", "{name: joint}", "a list is required, got 'joint'"),
        ("JointState", "{name: [1]}", "JointState.name[0]: a string is required, got int 1"),
        ("Odometry", "{pose: {covariance: [1, 2]}}", "2 elements"),
    ],
)
def test_wrong_fields_are_named(kind: str, text: str, expected: str) -> None:
    with pytest.raises(MessageError) as caught:
        message_from_data(message_type(kind), parse_yaml_value(text))
    assert expected in str(caught.value)
