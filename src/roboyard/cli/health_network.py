"""Looks at what bridges speak through: ports, a master of ROS 1, and DDS on this machine."""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import closing
from importlib.util import find_spec
from typing import Final

from roboyard.cli.health_finding import Finding
from roboyard.errors import InputError, RoboyardError

_HERE: Final = "127.0.0.1"
_GROUP: Final = "239.255.0.1"
"""Where participants of DDS announce themselves (RTPS 2.5, 9.6.2.4.1)."""
_MOST_DOMAIN: Final = 232


def ports() -> Finding:
    """Whether the bridges can be served where they usually are."""
    from roboyard.bridges.foxglove.bridge import PORT as FOXGLOVE
    from roboyard.bridges.rosbridge.bridge import PORT as ROSBRIDGE

    try:
        _serve(0)
    except OSError as error:
        text = f"no port of {_HERE} can be opened: {error.strerror or error}"
        return Finding("ports", False, text, "`ip link set lo up` as root; in a container, allow sockets")
    options = {FOXGLOVE: "--foxglove", ROSBRIDGE: "--rosbridge"}
    taken = {port: option for port, option in options.items() if not _free(port)}
    if taken:
        port, option = next(iter(taken.items()))
        text = "taken: " + ", ".join(f"{port} ({option})" for port, option in taken.items())
        advice = f"`roboyard run … {option} --bridge-port N`; `ss -ltnp 'sport = :{port}'` tells who listens"
        return Finding("ports", None, text, advice)
    return Finding("ports", True, "free: " + ", ".join(f"{port} ({option})" for port, option in options.items()))


def _free(port: int) -> bool:
    try:
        _serve(port)
    except OSError:
        return False
    return True


def _serve(port: int) -> None:
    """Listen for a moment. Raises OSError."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: who has just gone is no hindrance
        probe.bind((_HERE, port))
        probe.listen()


def ros1() -> Finding:
    """Whether a master answers where ``--ros1`` looks for one."""
    from roboyard.bridges.ros1.bridge import MASTER
    from roboyard.bridges.ros1.xmlrpc import call

    uri = os.environ.get("ROS_MASTER_URI") or MASTER
    try:
        asyncio.run(call(uri, "getPid", "/roboyard_doctor"))
    except InputError as error:
        return Finding("ros 1", False, f"ROS_MASTER_URI: {error.message}", f"`export ROS_MASTER_URI={MASTER}`")
    except RoboyardError:
        text = f"no master answers at {uri}: nothing for --ros1"
        return Finding("ros 1", None, text, "`roscore` starts one; ROS_MASTER_URI names one elsewhere")
    return Finding("ros 1", True, f"a master answers at {uri}")


def ros2() -> Finding:
    """Whether ``--ros2`` would find others of this machine."""
    domain, middleware = os.environ.get("ROS_DOMAIN_ID", ""), os.environ.get("RMW_IMPLEMENTATION", "")
    if domain and (not domain.isdecimal() or int(domain) > _MOST_DOMAIN):
        advice = f"a number from 0 to {_MOST_DOMAIN}, the same for all who are to meet"
        return Finding("ros 2", False, f"ROS_DOMAIN_ID is '{domain[:40]}'", advice)
    if find_spec("cyclonedds") is None:
        return Finding("ros 2", None, "no DDS: nothing for --ros2", "`pip install 'roboyard[ros2]'`")
    text = f"Cyclone DDS, domain {domain or 0}"
    if not _multicast():
        text = f"{text}; no multicast on the loopback interface: others of this machine may not be found"
        advice = "`ip link set lo multicast on` and `ip route add 239.255.0.0/16 dev lo` as root"
        return Finding("ros 2", None, text, advice)
    if middleware not in ("", "rmw_cyclonedds_cpp"):
        text = f"{text}; RMW_IMPLEMENTATION={middleware}: topics cross, services, actions and parameters do not"
        return Finding("ros 2", None, text, "`export RMW_IMPLEMENTATION=rmw_cyclonedds_cpp` where your nodes start")
    return Finding("ros 2", True, f"{text}, multicast on the loopback interface")


def _multicast() -> bool:
    """Whether what is sent to a group on the loopback interface arrives there."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as one:
        try:
            one.bind(("", 0))
            here = socket.inet_aton(_HERE)
            one.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(_GROUP) + here)
            one.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, here)
            one.settimeout(0.5)
            one.sendto(b"roboyard", (_GROUP, one.getsockname()[1]))
            return one.recv(16) == b"roboyard"
        except OSError:
            return False
