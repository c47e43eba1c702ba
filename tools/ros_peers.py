"""Installs what others wrote, with which the bridges are tested: ROS 1 and Fast DDS from Debian, clients from npm.

Says loudly what cannot be had here; tests that need it are skipped then.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROS1 = (
    "python3-rosmaster", "python3-rospy", "python3-rostopic", "python3-rosservice", "python3-rosparam",
    "python3-rosnode", "python3-rosbag", "python3-rosmsg", "python3-actionlib", "python3-tf2-ros", "python3-std-msgs",
    "python3-std-srvs", "python3-sensor-msgs", "python3-nav-msgs", "python3-geometry-msgs", "python3-actionlib-msgs",
    "tf-tools", "rviz", "xvfb", "imagemagick",
)  # fmt: skip
TF_ECHO = "/usr/lib/tf/tf_echo"
NPM = ("roslib@2.1.0", "@foxglove/ws-protocol@0.8.0", "ws@8")
PEERS = Path(os.environ.get("ROBOYARD_PEERS", Path.home() / ".cache" / "roboyard-peers"))


def run(*words: str) -> str:
    """Run a command; gives what it said if it failed, else nothing."""
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=900, check=False,
            env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "" if done.returncode == 0 else (done.stderr or done.stdout).strip()[-300:] or f"exit {done.returncode}"


def ros1() -> str:
    """Debian's ROS 1; gives why it cannot be had."""
    programs = ("rosmaster", "rosbag", "rviz", "Xvfb", "import", TF_ECHO)
    if all(map(shutil.which, programs)) and Path("/usr/lib/python3/dist-packages/actionlib").is_dir():
        return ""
    if not shutil.which("apt-get"):
        return "this system has no apt-get"
    return run("apt-get", "update", "-q") or run("apt-get", "install", "-y", "-q", "--no-install-recommends", *ROS1)


def dds() -> str:
    """Debian's Fast DDS and a compiler; gives why they cannot be had."""
    if shutil.which("g++") and Path("/usr/include/fastdds/dds").is_dir():
        return ""
    if not shutil.which("apt-get"):
        return "this system has no apt-get"
    return run("apt-get", "install", "-y", "-q", "--no-install-recommends", "libfastrtps-dev", "g++")


def npm() -> str:
    """Clients of Foxglove's protocol and of rosbridge; gives why they cannot be had."""
    if (PEERS / "node_modules" / "ws").is_dir():
        return ""
    if not shutil.which("npm"):
        return "this system has no npm"
    PEERS.mkdir(parents=True, exist_ok=True)
    return run("npm", "install", "--no-audit", "--no-fund", "--prefix", str(PEERS), *NPM)


def main() -> int:
    """Install all that can be had."""
    peers = (("ROS 1 (Debian)", ros1), ("Fast DDS (Debian)", dds), ("roslib and @foxglove/ws-protocol (npm)", npm))
    for what, why in ((what, install()) for what, install in peers):
        if why:
            print(f"\n!!! NOT TESTED against {what}: {why}\n", file=sys.stderr, flush=True)
        else:
            print(f"{what}: there")
    return 0


if __name__ == "__main__":
    sys.exit(main())
