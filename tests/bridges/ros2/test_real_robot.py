"""Our nodes beside a foreign robot: no simulation, the wall's clock, joints in over DDS and odometry out."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
import pytest
from tests.bridges.ros2.conftest import Peer
from tests.harness.live_bus import RunningBus
from tests.harness.live_run import poll

import roboyard as ry
from roboyard.bridges import Attached
from roboyard.bridges.ros2 import Ros2Bridge, names
from roboyard.localization.nodes import OdometryNode
from roboyard.messages import deserialize
from roboyard.messages.time import time_to_msg, to_nanoseconds

ODOMETRY = "nav_msgs/msg/Odometry"


def test_joint_states_of_a_foreign_robot_become_odometry() -> None:
    domain = 60 + os.getpid() % 40
    with ry.Bus(start_ns=time.time_ns()) as bus:
        bus.add(OdometryNode(wheel_radius=0.1, track=0.4), "odometry")
        peer = Peer(domain)
        live = RunningBus(bus)
        with Attached(Ros2Bridge(domain), bus):
            live.start()
            try:
                peer.read("rt/odom", names.dds_type(ODOMETRY))

                def turn(time_ns: int, angle: float) -> None:
                    joints = ry.msg.JointState(
                        header=ry.msg.Header(stamp=time_to_msg(time_ns)),
                        name=["left_wheel_joint", "right_wheel_joint"],
                        position=np.full(2, angle),
                    )
                    peer.publish("rt/joint_states", joints, node="/base")
                    live.wait_for_time(bus.now_ns * 1e-9 + 0.025)

                def receive(time_ns: int) -> bool:
                    turn(time_ns, 0.0)
                    return bool(peer.received["rt/odom"])

                poll(lambda: receive(time.time_ns()), expected="odometry")  # until both know each other
                first = time.time_ns()
                for number in range(41):  # half a turn of both wheels
                    turn(first + number * 25_000_000, np.pi * number / 40)

                def last() -> Any:
                    return deserialize(peer.received["rt/odom"][-1], ODOMETRY)

                poll(lambda: last().pose.pose.position.x > 0.31, expected="the end of the way")
                assert last().pose.pose.position.x == pytest.approx(0.1 * np.pi, abs=1e-6)
                assert to_nanoseconds(last().header.stamp) == first + 40 * 25_000_000
                assert abs(bus.now_ns - time.time_ns()) < 1e9  # its clock is the wall's
            finally:
                live.end()
                peer.close()
