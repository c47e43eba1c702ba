"""How ROS 2 calls things on DDS (design.ros2.org: topic and service names)."""

from __future__ import annotations

from roboyard.errors import MessageError
from roboyard.messages import type_hash


def topic(name: str) -> str:
    """DDS's topic of a topic."""
    return f"rt{name}"


def request(service: str) -> str:
    """DDS's topic of a service's requests."""
    return f"rq{service}Request"


def reply(service: str) -> str:
    """DDS's topic of a service's responses."""
    return f"rr{service}Reply"


def dds_type(name: str) -> str:
    """DDS's type of a message's full name: ``std_msgs::msg::dds_::String_``."""
    package, kind, short = name.split("/")
    return f"{package}::{kind}::dds_::{short}_"


def hash_of(name: str) -> str:
    """What an endpoint's user data says of its type."""
    try:
        return f"typehash={type_hash(name)};"
    except MessageError:
        return ""


def identity(guid: bytes, label: str) -> str:
    """What tells the two endpoints of one service or client to belong together."""
    return f"{label}={'.'.join(format(octet, 'x') for octet in guid)};"
