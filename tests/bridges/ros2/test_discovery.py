"""The graph's message: both sizes of GUIDs, there and back, and no bytes do harm."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.bridges.ros2 import discovery, names
from roboyard.bridges.ros2.discovery import NodeEnds
from roboyard.errors import MessageError

GUIDS = st.lists(st.binary(min_size=16, max_size=16), max_size=4)
NODES = st.dictionaries(
    st.from_regex(r"(/[a-z]{1,5}){1,3}", fullmatch=True), st.builds(NodeEnds, GUIDS, GUIDS), max_size=4
)


@given(st.binary(min_size=16, max_size=16), NODES, st.sampled_from([discovery.NEW, discovery.OLD]))
def test_graph_message_roundtrips(participant: bytes, nodes: dict[str, NodeEnds], size: int) -> None:
    found, told, octets = discovery.decode(discovery.encode(participant, nodes, size))
    assert (found, told) == (participant, nodes)
    assert octets == size or not nodes


def test_encoded_graph_equals_jazzy() -> None:
    guid = bytes(range(16))
    expected = (
        b"\0\1\0\0"
        + guid
        + b"\1\0\0\0"
        + b"\2\0\0\0/\0"
        + b"\0\0"
        + b"\4\0\0\0ear\0"
        + b"\1\0\0\0"
        + guid
        + b"\0\0\0\0"
    )
    assert discovery.encode(guid, {"/ear": NodeEnds([guid], [])}) == expected


@given(st.binary(max_size=200))
def test_arbitrary_bytes_raise_only_message_errors(data: bytes) -> None:
    with suppress(MessageError):
        discovery.decode(b"\0\1\0\0" + data)


@pytest.mark.parametrize(
    ("name", "dds"),
    [
        ("std_msgs/msg/String", "std_msgs::msg::dds_::String_"),
        ("std_srvs/srv/SetBool_Request", "std_srvs::srv::dds_::SetBool_Request_"),
        ("nav2_msgs/action/Wait_SendGoal_Request", "nav2_msgs::action::dds_::Wait_SendGoal_Request_"),
    ],
)
def test_type_names_follow_ros2(name: str, dds: str) -> None:
    assert names.dds_type(name) == dds


def test_topic_names_follow_ros2() -> None:
    assert names.topic("/scan") == "rt/scan"
    assert names.request("/ring") == "rq/ringRequest"
    assert names.reply("/a/_action/send_goal") == "rr/a/_action/send_goalReply"
    assert names.hash_of("std_msgs/msg/String") == (
        "typehash=RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18;"
    )
    assert names.identity(bytes([0, 255, 16]), "serviceid") == "serviceid=0.ff.10;"
