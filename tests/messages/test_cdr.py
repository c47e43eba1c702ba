"""CDR serialization: round trips, agreement with rosbags, and errors for malformed bytes and invalid values."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rosbags.interfaces import Nodetype
from rosbags.typesys import Stores, get_typestore
from tests.harness.messages import all_wire_types, messages

from roboyard.errors import MessageError
from roboyard.messages import deserialize, message_type, msg, serialize, type_names
from roboyard.messages.type_registry import definition_of

EXTENSIVE = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], max_examples=300)
TYPE_NAMES = st.sampled_from(all_wire_types())
MESSAGES = TYPE_NAMES.flatmap(messages)


def rosbags_store():
    """Return an independent type store of rosbags that also contains the definitions of this package."""
    store = get_typestore(Stores.ROS2_JAZZY)
    for name in all_wire_types():
        if name not in store.fielddefs:
            fields = []
            for field in definition_of(name).fields:
                inner = (
                    (Nodetype.NAME, field.type)
                    if field.is_message
                    else (Nodetype.BASE, (field.type, field.string_capacity))
                )
                node = {"array": Nodetype.ARRAY, "sequence": Nodetype.SEQUENCE}.get(field.arity)
                fields.append((field.python_name, inner if node is None else (node, (inner, field.size))))
            store.fielddefs[name] = ([], fields)
        store.types[name] = message_type(name)
    return store


STORE = rosbags_store()


@EXTENSIVE
@given(MESSAGES)
def test_serialized_message_deserializes_equally(message):
    data = serialize(message)
    deserialized = deserialize(data, message.__msgtype__)
    assert deserialized == message
    assert type(deserialized) is type(message)
    assert serialize(deserialized) == data


@EXTENSIVE
@given(MESSAGES)
def test_serialized_bytes_agree_with_rosbags(message):
    name = message.__msgtype__
    assert serialize(message) == STORE.serialize_cdr(message, name, little_endian=True).tobytes()
    assert deserialize(STORE.serialize_cdr(message, name, little_endian=False).tobytes(), name) == message


@pytest.mark.parametrize("name", all_wire_types())
def test_default_message_of_each_type_agrees_with_rosbags(name):
    message = message_type(name)()
    data = serialize(message)
    assert data == STORE.serialize_cdr(message, name, little_endian=True).tobytes()
    assert deserialize(data, name) == message


@EXTENSIVE
@given(MESSAGES, st.integers(1, 3))
def test_deserialize_accepts_padding_and_other_buffers(message, padding):
    data, name = serialize(message), message.__msgtype__
    assert deserialize(data + bytes(padding), name) == message
    assert deserialize(bytearray(data), name) == message
    assert deserialize(memoryview(b"x" + data)[1:], name) == message
    with pytest.raises(MessageError, match="4 bytes left over"):
        deserialize(data + bytes(4), name)


@EXTENSIVE
@given(MESSAGES)
def test_deserialized_arrays_are_aligned_and_read_only(message):
    for array in arrays_of(deserialize(b"" + serialize(message), message.__msgtype__)):
        assert not array.flags.writeable
        assert array.flags.aligned
        assert array.dtype.isnative


def arrays_of(value):
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from arrays_of(item)
    elif hasattr(value, "__msgtype__"):
        for field in definition_of(value.__msgtype__).fields:
            yield from arrays_of(getattr(value, field.python_name))


def test_non_finite_floats_keep_their_bits():
    values = np.array([np.nan, -np.nan, np.inf, -np.inf, -0.0], np.float32)
    scan = msg.LaserScan(angle_min=float("nan"), ranges=values)
    deserialized = deserialize(serialize(scan), "sensor_msgs/msg/LaserScan")
    assert deserialized.ranges.tobytes() == values.tobytes()
    assert np.isnan(deserialized.angle_min)


# -- malformed bytes ---------------------------------------------------------------------------------------------------
def check_read_or_message_error(data, name):
    try:
        message = deserialize(data, name)
    except MessageError as error:
        assert name in str(error)
    else:
        assert message.__msgtype__ == name


@EXTENSIVE
@given(TYPE_NAMES, st.sampled_from([b"\x00\x01\x00\x00", b"\x00\x00\x00\x00", b""]), st.binary(max_size=200))
def test_deserialize_reads_or_refuses_any_bytes(name, header, data):
    check_read_or_message_error(header + data, name)


@EXTENSIVE
@given(MESSAGES, st.data())
def test_deserialize_reads_or_refuses_damaged_bytes(message, data):
    raw = bytearray(serialize(message))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    check_read_or_message_error(bytes(raw[: data.draw(st.integers(0, len(raw)))]), message.__msgtype__)


@EXTENSIVE
@given(MESSAGES)
def test_deserialize_refuses_truncated_bytes(message):
    data = serialize(message)
    for end in range(len(data)):
        with pytest.raises(MessageError):
            deserialize(data[:end], message.__msgtype__)


@pytest.mark.parametrize("byte_order", ["little", "big"])
@pytest.mark.parametrize("count", [2**32 - 1, 2**31, 10**6])
def test_deserialize_of_huge_lengths_allocates_no_memory(byte_order, count):
    tracemalloc.start()
    try:
        header = b"\x00\x01\x00\x00" if byte_order == "little" else b"\x00\x00\x00\x00"
        for name in type_names("msg"):
            for n_bytes_before in range(0, 24, 4):
                check_read_or_message_error(
                    header + bytes(n_bytes_before) + count.to_bytes(4, byte_order) + bytes(1000), name
                )
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "header", [b"", b"\x00", b"\x00\x01\x00", b"\x00\x02\x00\x00", b"\x01\x00\x00\x00", b"\x00\x07\x00\x00"]
)
def test_deserialize_refuses_other_encodings(header):
    with pytest.raises(MessageError, match="header"):
        deserialize(header, "std_msgs/msg/Empty")


def test_serialization_refuses_values_of_wrong_types():
    with pytest.raises(MessageError, match="bytes are required"):
        deserialize(5, "std_msgs/msg/Empty")
    with pytest.raises(MessageError, match="bytes are required"):
        deserialize("text", "std_msgs/msg/Empty")
    with pytest.raises(MessageError, match="unknown message type"):
        deserialize(b"\x00\x01\x00\x00", "std_msgs/msg/Nothing")
    with pytest.raises(MessageError, match="is not a message"):
        serialize("text")


def test_empty_string_without_final_zero_is_read():
    """Some writers encode the empty string with length 0, without a terminating zero."""
    assert deserialize(b"\x00\x01\x00\x00" + bytes(4), "std_msgs/msg/String") == msg.String()


def test_string_without_terminator_or_utf8_is_refused():
    with pytest.raises(MessageError, match="without end"):
        deserialize(b"\x00\x01\x00\x00\x02\x00\x00\x00ab", "std_msgs/msg/String")
    with pytest.raises(MessageError, match="utf-8"):
        deserialize(b"\x00\x01\x00\x00\x02\x00\x00\x00\xff\x00", "std_msgs/msg/String")


# -- wrong values ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("message", "field"),
    [
        (lambda: msg.String(data=5), "String.data"),
        (lambda: msg.String(data=b"bytes"), "String.data"),
        (lambda: msg.String(data="\ud800"), "String.data"),
        (lambda: msg.Int8(data=128), "Int8.data"),
        (lambda: msg.Int8(data=1.0), "Int8.data"),
        (lambda: msg.UInt8(data=-1), "UInt8.data"),
        (lambda: msg.Bool(data="yes"), "Bool.data"),
        (lambda: msg.Bool(data=2), "Bool.data"),
        (lambda: msg.Float64(data="1"), "Float64.data"),
        (lambda: msg.Float32(data=1e300), "Float32.data"),
        (lambda: msg.Float32(data=[1.0]), "Float32.data"),
        (lambda: msg.Twist(linear=msg.Point32(), angular=5), "Twist.angular"),
        (lambda: msg.Odometry(pose=msg.Pose()), "Odometry.pose"),
        (lambda: msg.Odometry(header=msg.Header(stamp=msg.Time(sec=2**31))), "Odometry.header.stamp.sec"),
        (lambda: msg.LaserScan(ranges="abc"), "LaserScan.ranges"),
        (lambda: msg.LaserScan(ranges=3.0), "LaserScan.ranges"),
        (lambda: msg.LaserScan(ranges=np.zeros((2, 2), np.float32)), "LaserScan.ranges"),
        (lambda: msg.LaserScan(ranges=["a"]), "LaserScan.ranges"),
        (lambda: msg.LaserScan(ranges=[1.0, [2.0]]), "LaserScan.ranges"),
        (lambda: msg.Int8MultiArray(data=[300]), "Int8MultiArray.data"),
        (lambda: msg.Int8MultiArray(data=[0.5]), "Int8MultiArray.data"),
        (lambda: msg.UInt8MultiArray(data=np.array([-1])), "UInt8MultiArray.data"),
        (lambda: msg.UUID(uuid=np.zeros(15, np.uint8)), "UUID.uuid"),
        (lambda: msg.PoseWithCovariance(covariance=np.zeros(35)), "PoseWithCovariance.covariance"),
        (lambda: msg.TFMessage(transforms=[msg.TransformStamped(), 3]), r"TFMessage.transforms\[1\]"),
        (lambda: msg.TFMessage(transforms=[msg.TransformStamped(child_frame_id=7)]), r"transforms\[0\].child_frame_id"),
        (lambda: msg.TFMessage(transforms=5), "TFMessage.transforms"),
        (lambda: msg.JointState(name=["a", 1]), r"JointState.name\[1\]"),
        (lambda: msg.SolidPrimitive(dimensions=np.zeros(4)), "SolidPrimitive.dimensions"),
    ],
)  # fmt: skip
def test_serialize_names_the_invalid_field(message, field):
    with pytest.raises(MessageError, match=field):
        serialize(message())


def test_serialize_converts_numbers_within_range():
    scan = msg.LaserScan(ranges=[1, 2.5], intensities=np.array([1, 2], np.int64))
    deserialized = deserialize(serialize(scan), "sensor_msgs/msg/LaserScan")
    assert deserialized.ranges.tolist() == [1.0, 2.5]
    assert deserialized.intensities.dtype == np.float32
    assert serialize(msg.UInt8MultiArray(data=b"\x01\x02")) == serialize(msg.UInt8MultiArray(data=[1, 2]))
    assert serialize(msg.Bool(data=np.True_)) == serialize(msg.Bool(data=True))
    assert serialize(msg.Int32(data=np.int64(7))) == serialize(msg.Int32(data=7))
    assert serialize(msg.LaserScan(ranges=[])) == serialize(msg.LaserScan())


def test_serialize_accepts_strided_and_byte_swapped_arrays():
    table = np.arange(20, dtype=np.float32).reshape(10, 2)
    expected = serialize(msg.LaserScan(ranges=table[:, 0].copy()))
    assert serialize(msg.LaserScan(ranges=table[:, 0])) == expected
    assert serialize(msg.LaserScan(ranges=table[:, 0].astype(">f4"))) == expected
