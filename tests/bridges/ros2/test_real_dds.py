"""The bridge to ROS 2 with another vendor's DDS: `make test-ros` installs Debian's Fast DDS and runs this."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.bridges.ros2.test_ros2_bridge import Ros2Run
from tests.harness.live_run import poll

import roboyard as ry
from roboyard.bridges.ros2 import names
from roboyard.messages import deserialize, serialize

SOURCE = Path(__file__).with_name("peers") / "fastdds.cpp"

pytestmark = [
    pytest.mark.ros,
    pytest.mark.skipif(
        shutil.which("g++") is None or not Path("/usr/include/fastdds/dds").is_dir(),
        reason="Fast DDS is not installed: `make test-ros` says why",
    ),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    executable = tmp_path_factory.mktemp("fastdds") / "peer"
    subprocess.run(
        ["g++", "-O1", "-std=c++17", "-o", str(executable), str(SOURCE), "-lfastrtps", "-lfastcdr"],
        check=True,
        timeout=200,
    )
    return executable


@pytest.fixture(scope="module")
def live() -> Iterator[Ros2Run]:
    with Ros2Run(20 + os.getpid() % 60) as live:
        yield live


def start(program: Path, live: Ros2Run, *words: str) -> subprocess.Popen[str]:
    command = [str(program), str(live.domain), *words]
    return subprocess.Popen(command, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)


def test_fast_dds_reads_messages_of_the_bridge(program: Path, live: Ros2Run) -> None:
    kind = "sensor_msgs/msg/LaserScan"
    with start(program, live, "read", names.topic("/scan"), names.dds_type(kind)) as process:
        output, _ = process.communicate(timeout=60)
    scans = [deserialize(bytes.fromhex(line), kind) for line in output.split()]
    assert len(scans) == 5
    assert all(list(scan.ranges) == [1.0, float("inf"), 2.5] for scan in scans)


def test_bridge_reads_messages_of_fast_dds(program: Path, live: Ros2Run) -> None:
    twist = ry.msg.Twist(linear=ry.msg.Vector3(x=0.9))
    words = ["write", names.topic("/cmd_vel"), names.dds_type("geometry_msgs/msg/Twist"), serialize(twist).hex()]
    with start(program, live, *words) as process:
        poll(lambda: live.robot.commands)
        process.kill()
    source, speed = live.robot.commands[0]
    assert speed == 0.9
    assert source.startswith("/dds_")
