"""A bus that runs in real time in a thread of its own, shown over WebSockets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.bridges.sample_robot import BridgedRobot
from tests.harness.live_bus import RunningBus

import roboyard as ry
from roboyard.bridges import Attached, FoxgloveBridge, RosbridgeBridge
from roboyard.bridges.descriptions import Descriptions


class WebRun(RunningBus):
    """A robot named "wheels" behind both bridges."""

    def __init__(self, descriptions: Descriptions) -> None:
        super().__init__(ry.Bus(seed=1))
        self.robot = self.bus.add(BridgedRobot(), "wheels")
        self.foxglove = FoxgloveBridge(port=0, descriptions=descriptions)
        self.rosbridge = RosbridgeBridge(port=0, descriptions=descriptions)
        self._attached = [Attached(bridge, self.bus) for bridge in (self.foxglove, self.rosbridge)]

    def stop(self) -> None:
        self.end()
        for attached in self._attached:
            attached.__exit__(None, None, None)
        super().stop()


@pytest.fixture
def live(tmp_path: Path) -> Iterator[WebRun]:
    """The run, with a description and a mesh to be served."""
    mesh = tmp_path / "wheel.stl"
    mesh.write_bytes(b"solid wheel")
    with WebRun(Descriptions({"/robot_description": "<robot name='w'/>"}, {mesh.as_uri(): mesh})) as live:
        yield live.start()
