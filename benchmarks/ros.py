"""What it costs to be in ROS's graph: bytes, round trips, pictures, and a whole run with all its topics bridged.

The other side is a process of its own on the same machine that speaks DDS through the same library.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from tempfile import TemporaryDirectory
from threading import Semaphore
from typing import Any

import numpy as np

import roboyard as ry
from roboyard.bridges import Attached
from roboyard.bridges.ros1.types import ros1_type
from roboyard.errors import RunError
from roboyard.messages import serialize
from roboyard.scenarios import Run, load_scenario, run_scenario
from roboyard.scenarios.run_options import RunObserver, RunOptions

DOMAIN = 87
_OTHER = """
import os, sys, time
from roboyard.bridges.ros2.dds import Participant, Quality
from roboyard.bridges.ros2 import names
what, domain = sys.argv[1], int(sys.argv[2])
participant = Participant(domain, local=True)
kept, ages = [], []
if what == "echo":
    kind = names.dds_type("std_msgs/msg/UInt64")
    back = participant.writer("rt/pong", kind, Quality())
    kept.append(participant.reader("rt/ping", kind, Quality(), lambda r: [back.write(s.data) for s in r.take()]))
elif what == "images":
    def came(reader):
        for sample in reader.take():
            sent = int.from_bytes(sample.data[-640 * 480 * 3:][:8], "little")
            ages.append((time.perf_counter_ns() - sent) * 1e-9)
    kept.append(participant.reader("rt/image", names.dds_type("sensor_msgs/msg/Image"), Quality(), came))
else:
    for line in what.split(","):
        topic, kind = line.split("=")
        quality, kind = Quality(reliable=False), names.dds_type(kind)
        kept.append(participant.reader(f"rt{topic}", kind, quality, lambda r: ages.extend(r.take())))
print("ready", flush=True)
sys.stdin.readline()
print(len(ages), " ".join(f"{age:.9f}" for age in ages if isinstance(age, float)), flush=True)
os._exit(0)
"""


class _Other:
    """The other process, until the block ends."""

    def __init__(self, what: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _OTHER, what, str(DOMAIN)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self._process.stdout.readline()

    def end(self) -> tuple[int, list[float]]:
        """How many messages came, and how old they were [s]."""
        try:
            said, _ = self._process.communicate("\n", timeout=30)
        finally:
            self._process.kill()
        count, *ages = said.split()
        return int(count), [float(age) for age in ages]


def _microseconds(work: Any, repeats: int) -> float:
    times = []
    for _ in range(7):
        start = time.perf_counter()
        for _ in range(repeats):
            work()
        times.append((time.perf_counter() - start) / repeats * 1e6)
    return median(times)


def _image() -> Any:
    return ry.msg.Image(height=480, width=640, encoding="rgb8", step=1920, data=np.zeros(640 * 480 * 3, np.uint8))


def round_trip(count: int) -> float:
    """Median time of a small message to the other process and back [µs]."""
    from threading import Event

    from roboyard.bridges.ros2 import names
    from roboyard.bridges.ros2.dds import Participant, Quality, Reader

    other = _Other("echo")
    participant, back, kind = Participant(DOMAIN, local=True), Event(), names.dds_type("std_msgs/msg/UInt64")
    came = [0.0]

    def heard(reader: Reader) -> None:
        if reader.take():
            came[0] = time.perf_counter()  # where a bridge has it; `back` only keeps this thread from asking too soon
            back.set()

    writer = participant.writer("rt/ping", kind, Quality())
    reader = participant.reader("rt/pong", kind, Quality(), heard)
    data, times = serialize(ry.msg.UInt64(data=5)), []
    for _ in range(200):
        if writer.matched:
            break
        time.sleep(0.05)
    else:
        raise RunError("the other process is not found over DDS")
    time.sleep(1.5)
    for _ in range(count):
        back.clear()
        start = time.perf_counter()
        writer.write(data)
        if back.wait(1.0):
            times.append((came[0] - start) * 1e6)
    participant.forget(reader)
    participant.close()
    other.end()
    return median(times)


def datagrams(count: int) -> float:
    """What the machine can do: median time of a datagram to another process and back, with no DDS at all [µs]."""
    echo = (
        "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('127.0.0.1', 0))\n"
        "print(s.getsockname()[1], flush=True)\nwhile True: s.sendto(*s.recvfrom(2000))"
    )
    process = subprocess.Popen([sys.executable, "-c", echo], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    times = []
    try:
        there = ("127.0.0.1", int(process.stdout.readline()))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
            here.settimeout(1.0)
            for _ in range(count):
                start = time.perf_counter()
                here.sendto(bytes(24), there)
                here.recvfrom(2000)
                times.append((time.perf_counter() - start) * 1e6)
    finally:
        process.kill()
        process.wait()
    return median(times)


def images(seconds: float) -> tuple[float, float]:
    """Share of 640 × 480 pictures at 30 Hz that get lost, and the median age of the others [ms]."""
    from roboyard.bridges.ros2 import Ros2Bridge

    class Camera(ry.Node):
        def setup(self) -> None:
            self.out = self.publisher("image", ry.msg.Image)
            self.sent = 0
            self.timer(rate=30.0, callback=self.tick)

        def tick(self) -> None:
            if self.now > 2.0:  # until all know each other
                picture = _image()
                picture.data[:8] = np.frombuffer(time.perf_counter_ns().to_bytes(8, "little"), np.uint8)
                self.out.publish(picture)
                self.sent += 1

    other = _Other("images")
    with ry.Bus() as bus:
        camera = bus.add(Camera(), "camera")
        bus.executor.pacer.real_time_factor = 1.0
        with Attached(Ros2Bridge(DOMAIN), bus):
            bus.executor.run_for(2.0 + seconds)
            time.sleep(0.3)
            count, ages = other.end()
    return 1.0 - count / camera.sent, median(ages) * 1e3


def bridged(duration: float, *, record: bool) -> float:
    """How much longer the run's thread takes for a simulated second with all topics read by the other process [1].

    Two runs of the same seed take turns, a simulated second each, since the machine's own pace drifts by more than what
    is sought: the median over the seconds' ratios counts.
    """
    from roboyard.bridges.ros2 import Ros2Bridge

    topics: dict[str, str] = {}

    def look(run: Run) -> None:
        topics.update({name: topic.type_name for name, topic in run.bus.topics.items() if name != "/clock"})

    brief = load_scenario("rover-homing", overrides=["duration=3"]).with_seed(0)
    run_scenario(
        brief, RunOptions(write_files=False, write_report=False, serve=False), observer=RunObserver(on_started=look)
    )
    spec = load_scenario("rover-homing", overrides=[f"duration={duration}"]).with_seed(0)
    turns, took = (Semaphore(1), Semaphore(0)), (list[float](), list[float]())

    def one(which: int, *attach: Any) -> None:
        mine, others = turns[which], turns[1 - which]
        second, begun = 0, 0.0

        def advance(time_ns: int) -> None:
            nonlocal second, begun
            if time_ns // 1_000_000_000 > second:
                if second:
                    took[which].append(time.thread_time() - begun)
                    others.release()
                    mine.acquire()
                second, begun = time_ns // 1_000_000_000, time.thread_time()

        def started(run: Run) -> None:
            run.bus.executor.on_advance(advance)

        mine.acquire()
        try:
            with TemporaryDirectory() as folder:
                out = f"{folder}/run" if record else None
                run_scenario(
                    spec,
                    RunOptions(out=out, write_files=record, write_report=False, serve=False, bridges=attach),
                    observer=RunObserver(on_started=started),
                )
        finally:
            others.release(10 * int(duration))  # it goes on alone

    other = _Other(",".join(f"{name}={kind}" for name, kind in topics.items()))
    try:
        with ThreadPoolExecutor(2) as pool:
            runs = (pool.submit(one, 0), pool.submit(one, 1, lambda run: Attached(Ros2Bridge(DOMAIN), run.bus)))
        for run in runs:
            run.result()
    finally:
        heard, _ = other.end()
    if heard < 100 * duration:
        raise RunError(f"the other process heard {heard} messages only")
    return median(both / alone for alone, both in zip(*took, strict=True)) - 1.0


def run(nightly: bool = False) -> dict[str, Any]:
    """Measure; medians over repeats.  ``nightly`` takes longer."""
    scan = ry.msg.LaserScan(ranges=np.ones(720, np.float32), intensities=np.ones(720, np.float32))
    picture, kind = _image(), ros1_type("sensor_msgs/msg/LaserScan")
    figures: list[dict[str, Any]] = [
        {"name": "scan of 720 as CDR", "value": _microseconds(lambda: serialize(scan), 2000), "unit": "µs",
         "target": "<= 5"},
        {"name": "picture of 640 × 480 as CDR", "value": _microseconds(lambda: serialize(picture), 200), "unit": "µs",
         "target": "<= 50"},
        {"name": "scan of 720 for ROS 1", "value": _microseconds(lambda: kind.encode(scan), 1000), "unit": "µs"},
    ]  # fmt: skip
    lost, age = images(60.0 if nightly else 8.0)
    duration = 120.0 if nightly else 40.0
    recorded, bare = (bridged(duration, record=record) for record in (True, False))
    figures += [
        {"name": "round trip over DDS, small message", "value": round_trip(2000 if nightly else 500), "unit": "µs",
         "target": "<= 100"},
        {"name": "… of a datagram between two processes", "value": datagrams(2000), "unit": "µs"},
        {"name": "pictures at 30 Hz that are lost", "value": lost * 100.0, "unit": "%", "target": "<= 0"},
        {"name": "age of a picture", "value": age, "unit": "ms", "target": "<= 5"},
        {"name": "all topics of rover-homing over DDS", "value": recorded * 100.0, "unit": "%", "target": "<= 15"},
        {"name": "… of a run that is not recorded", "value": bare * 100.0, "unit": "%"},
    ]  # fmt: skip
    return {"figures": figures}
