"""Our nodes beside a foreign robot: no simulation, the wall's clock, joints in over DDS and odometry out."""

from __future__ import annotations

import os
import time
from threading import Thread

import numpy as np
import pytest
from tests.bridges.ros2.conftest import Peer

import roboyard as ry
from roboyard.bridges import Attached
from roboyard.bridges.ros2 import Ros2Bridge, names
from roboyard.localization.nodes import OdometryNode
from roboyard.messages import deserialize
from roboyard.messages.time import nanoseconds, stamp

ODOMETRY = "nav_msgs/msg/Odometry"


def test_odometry_of_a_foreign_robots_joints() -> None:
    domain = 60 + os.getpid() % 40
    with ry.Bus(start_ns=time.time_ns()) as bus:
        bus.executor.pacer.factor = 1.0
        bus.add(OdometryNode(wheel_radius=0.1, track=0.4), "odometry")
        peer = Peer(domain)
        with Attached(Ros2Bridge(domain), bus):
            thread = Thread(target=lambda: bus.executor.run_for(60.0))
            thread.start()
            try:
                peer.say(op="read", topic="rt/odom", type=names.dds_type(ODOMETRY))

                def turn(time_ns: int, angle: float) -> None:
                    joints = ry.msg.JointState(
                        header=ry.msg.Header(stamp=stamp(time_ns)),
                        name=["left_wheel_joint", "right_wheel_joint"],
                        position=np.full(2, angle),
                    )
                    peer.publish("rt/joint_states", joints, node="/base")
                    time.sleep(0.025)

                end = time.monotonic() + 20.0
                while "rt/odom" not in peer.heard and time.monotonic() < end:  # until both know each other
                    turn(time.time_ns(), 0.0)
                first = time.time_ns()
                for number in range(41):  # half a turn of both wheels
                    turn(first + number * 25_000_000, np.pi * number / 40)
                end = time.monotonic() + 10.0
                heard = []
                while not (heard and heard[-1].pose.pose.position.x > 0.31) and time.monotonic() < end:
                    time.sleep(0.05)
                    heard = [deserialize(data, ODOMETRY) for data in peer.heard.get("rt/odom", [])]
                assert heard[-1].pose.pose.position.x == pytest.approx(0.1 * np.pi, abs=1e-6)
                assert nanoseconds(heard[-1].header.stamp) == first + 40 * 25_000_000
                assert abs(bus.now_ns - time.time_ns()) < 1e9  # its clock is the wall's
            finally:
                bus.executor.stop()
                thread.join()
                peer.close()
