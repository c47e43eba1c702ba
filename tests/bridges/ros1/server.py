"""A node that serves in ROS 1, in a process of its own, until its standard input ends."""

from __future__ import annotations

import sys
from threading import Thread

from tests.bridges.sample_robot import BridgedRobot

import roboyard as ry
from roboyard.bridges import Attached, Ros1Bridge


def main(master: str) -> None:
    """Serve /ring and /count."""
    bus = ry.Bus(seed=2)
    bus.add(BridgedRobot(), "robot")
    bus.executor.pacer.real_time_factor = 1.0
    with Attached(Ros1Bridge(master, topics=["/none"]), bus):
        thread = Thread(target=lambda: bus.executor.run_until(10**12))
        thread.start()
        sys.stdin.read()
        bus.executor.stop()
        thread.join()
    bus.close()


if __name__ == "__main__":
    main(sys.argv[1])
