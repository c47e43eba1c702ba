"""Our nodes call services and actions of a node in another process, over ROS 1."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.bridges.ros1.conftest import SmallMaster
from tests.bridges.test_external import Caller
from tests.bridges.web.conftest import Wheels

import roboyard as ry
from roboyard.bridges import Attached, Ros1Bridge
from roboyard.bridges.external import stand_in

ROOT = Path(__file__).resolve().parents[3]


class Scene:
    def __init__(self, uri: str) -> None:
        self.uri = uri
        self.bus = ry.Bus(seed=1)
        wheels = self.bus.add(Wheels(), "wheels")
        self.caller = self.bus.add(Caller(), "caller")
        stand_in(self.bus, wheels, 100.0)
        self.bus.executor.pacer.factor = 1.0
        self.sources: list[str] = []
        self.bus.tap(lambda topic, message, *_: self.sources.append(message.source) if topic.name == "/inputs" else 0)
        self.bridge = Ros1Bridge(uri)
        self.processes: list[subprocess.Popen[str]] = []

    def serve(self) -> subprocess.Popen[str]:
        words = [sys.executable, "-m", "tests.bridges.ros1.server", self.uri]
        self.processes.append(subprocess.Popen(words, stdin=subprocess.PIPE, text=True, cwd=ROOT))
        return self.processes[-1]

    def run(self, until: Callable[[], bool], seconds: float = 60.0) -> bool:
        return self.bus.executor.run_until(self.bus.now_ns + round(seconds * 1e9), until)

    def close(self) -> None:
        for process in self.processes:
            process.communicate()
        self.bus.close()


@pytest.fixture
def scene(master: SmallMaster) -> Iterator[Scene]:
    made = Scene(master.uri)
    with Attached(made.bridge, made.bus):
        yield made
    made.close()


def test_a_call_waits_for_its_server_and_is_answered(scene: Scene) -> None:
    first = scene.caller.call()
    assert not scene.run(first.done, 1.0)  # nobody is there yet
    scene.serve()
    assert scene.run(first.done)
    second = scene.caller.call(data=False)
    assert scene.run(second.done)
    assert scene.caller.came == ["ding"] * 2
    assert [future.result.success for future in (first, second)] == [True, False]
    assert scene.sources == ["/robot"] * 2


def test_goals_with_feedback_results_reasons_and_cancel(scene: Scene) -> None:
    scene.serve()
    goal = scene.caller.send(3)
    assert scene.run(goal.done)
    assert goal.succeeded
    assert scene.caller.came == ["[1]", "[2]", "[3]", "[0, 1, 2]"]
    assert "/robot" in scene.sources
    endless = scene.caller.send(1_000_000)
    assert scene.run(lambda: len(scene.caller.came) > 6)
    endless.cancel()
    assert scene.run(endless.done)
    assert (int(endless.status), endless.reason) == (5, "as you wish")
    refused = scene.caller.send(-1)
    assert scene.run(refused.done)
    assert "only upwards" in str(refused.error)


@pytest.mark.slow
def test_a_server_that_goes_fails_what_it_was_asked(scene: Scene) -> None:
    process = scene.serve()
    goal = scene.caller.send(1_000_000)
    assert scene.run(lambda: bool(scene.caller.came))
    process.kill()
    assert scene.run(goal.done)
    assert "who served it has gone" in str(goal.error)


def test_another_type_is_refused(master: SmallMaster, scene: Scene) -> None:
    other = ry.Bus(seed=3)

    class Other(ry.Node):
        def setup(self) -> None:
            self.service("ring", ry.srv.Trigger, lambda request: ry.srv.Trigger.Response())

    other.add(Other(), "other")
    with Attached(Ros1Bridge(master.uri), other):
        future: Any = scene.caller.call()
        assert scene.run(future.done)
    assert "std_srvs/SetBool" in str(future.error)
    assert scene.bridge.counts["malformed"] == 1
    other.close()
