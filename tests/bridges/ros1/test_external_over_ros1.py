"""Our nodes call services and actions of a node in another process, over ROS 1."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.bridges.ros1.conftest import SmallMaster
from tests.bridges.sample_robot import BridgedRobot, CallingNode
from tests.harness.bus import BusHarness

import roboyard as ry
from roboyard.bridges import Attached, Ros1Bridge
from roboyard.bridges.external import stand_in

ROOT = Path(__file__).resolve().parents[3]


class Ros1Caller(BusHarness):
    """A node that calls what another process serves."""

    def __init__(self, uri: str) -> None:
        super().__init__(seed=1)
        self.uri = uri
        robot = self.add(BridgedRobot(), "wheels")
        self.caller = self.add(CallingNode(), "caller")
        stand_in(self.bus, robot, 100.0)
        self.bus.executor.pacer.real_time_factor = 1.0
        self.bridge = Ros1Bridge(uri)
        self.processes: list[subprocess.Popen[str]] = []

    def serve(self) -> subprocess.Popen[str]:
        words = [sys.executable, "-m", "tests.bridges.ros1.server", self.uri]
        self.processes.append(subprocess.Popen(words, stdin=subprocess.PIPE, text=True, cwd=ROOT))
        return self.processes[-1]

    @property
    def sources(self) -> list[str]:
        """Who sent the inputs so far."""
        return [message.source for message in self.published("/inputs").messages]

    def close(self) -> None:
        for process in self.processes:
            process.communicate()
        super().close()


@pytest.fixture
def scene(master: SmallMaster) -> Iterator[Ros1Caller]:
    with Ros1Caller(master.uri) as scene, Attached(scene.bridge, scene.bus):
        yield scene


def test_call_waits_for_its_server_and_is_answered(scene: Ros1Caller) -> None:
    first = scene.caller.call()
    scene.run_for(1.0)  # nobody is there yet
    assert not first.done()
    scene.serve()
    scene.wait_for(first)
    second = scene.caller.call(data=False)
    scene.wait_for(second)
    assert scene.caller.outcomes == ["ding"] * 2
    assert [future.result.success for future in (first, second)] == [True, False]
    assert scene.sources == ["/robot"] * 2


def test_goals_have_feedback_results_reasons_and_cancel(scene: Ros1Caller) -> None:
    scene.serve()
    goal = scene.caller.send(3)
    scene.wait_for(goal)
    assert goal.succeeded
    assert scene.caller.outcomes == ["[1]", "[2]", "[3]", "[0, 1, 2]"]
    assert "/robot" in scene.sources
    endless = scene.caller.send(1_000_000)
    scene.spin_until(lambda: len(scene.caller.outcomes) > 6)
    endless.cancel()
    scene.wait_for(endless)
    assert (int(endless.status), endless.error_message) == (5, "as you wish")
    refused = scene.caller.send(-1)
    scene.wait_for(refused)
    assert "only upwards" in str(refused.error)


@pytest.mark.slow
def test_lost_server_fails_its_goals(scene: Ros1Caller) -> None:
    process = scene.serve()
    goal = scene.caller.send(1_000_000)
    scene.spin_until(lambda: bool(scene.caller.outcomes))
    process.kill()
    scene.wait_for(goal)
    assert "who served it has gone" in str(goal.error)


def test_service_of_another_type_is_refused(master: SmallMaster, scene: Ros1Caller) -> None:
    other = ry.Bus(seed=3)

    class Other(ry.Node):
        def setup(self) -> None:
            self.service("ring", ry.srv.Trigger, lambda request: ry.srv.Trigger.Response())

    other.add(Other(), "other")
    with Attached(Ros1Bridge(master.uri), other):
        future: Any = scene.caller.call()
        scene.wait_for(future)
    assert "std_srvs/SetBool" in str(future.error)
    assert scene.bridge.counts["malformed"] == 1
    other.close()
