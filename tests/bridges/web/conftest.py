"""A bus that goes on in real time on a thread of its own, shown over WebSockets."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from threading import Thread
from typing import Any

import pytest

import roboyard as ry
from roboyard.bridges import Attached, FoxgloveBridge, RosbridgeBridge
from roboyard.bridges.descriptions import Descriptions


class Wheels(ry.Node):
    """in: cmd_vel   out: speed, plan"""

    gain: float = ry.param(1.0, low=0.0, high=10.0)

    def setup(self) -> None:
        self.heard: list[tuple[str, float]] = []
        self.speed = self.publisher("speed", ry.msg.Float64)
        self.plan = self.publisher("plan", ry.msg.String, latched=True)
        self.plan.publish(ry.msg.String(data="straight on"))
        self.scan = self.publisher("scan", ry.msg.LaserScan)
        self.subscribe("cmd_vel", ry.msg.Twist, self.on_command, with_source=True)
        self.timer(0.02, self.tick)
        self.service("ring", ry.srv.SetBool, self.on_ring)
        self.server = self.action_server("count", ry.action.Fibonacci, self.on_goal)
        self.reached = 0

    def tick(self) -> None:
        self.speed.publish(ry.msg.Float64(data=self.now))
        self.scan.publish(ry.msg.LaserScan(ranges=[1.0, float("inf"), 2.5]))
        for goal in self.server.active:
            self.reached += 1
            goal.feedback(ry.action.Fibonacci.Feedback(sequence=[self.reached]))
            if goal.canceling:
                goal.cancel(reason="as you wish")
            elif self.reached == goal.goal.order:
                goal.succeed(ry.action.Fibonacci.Result(sequence=list(range(self.reached))))

    def on_goal(self, goal: Any) -> None:
        self.reached = 0
        if goal.goal.order < 0:
            goal.reject("only upwards")
        else:
            goal.accept()

    def on_command(self, message: Any, source: str) -> None:
        self.heard.append((source, message.linear.x))

    def on_ring(self, request: Any) -> Any:
        return ry.srv.SetBool.Response(success=request.data, message="ding")


class Live:
    """The bus, and both bridges."""

    def __init__(self, descriptions: Descriptions) -> None:
        self.bus = ry.Bus(seed=1)
        self.wheels = self.bus.add(Wheels(), "wheels")
        self.bus.executor.pacer.factor = 1.0
        self.lines: list[str] = []
        self.bus.log_sinks.append(lambda record: self.lines.append(record.text))
        self.foxglove = FoxgloveBridge(port=0, descriptions=descriptions)
        self.rosbridge = RosbridgeBridge(port=0, descriptions=descriptions)
        self._attached = [Attached(bridge, self.bus) for bridge in (self.foxglove, self.rosbridge)]
        self._thread = Thread(target=lambda: self.bus.executor.run_until(10**12))
        self._thread.start()

    def wait(self, until: Callable[[], bool], seconds: float = 10.0) -> bool:
        end = time.monotonic() + seconds
        while not until() and time.monotonic() < end:
            time.sleep(0.01)
        return until()

    def close(self) -> None:
        self.bus.executor.stop()
        self._thread.join()
        for attached in self._attached:
            attached.__exit__(None, None, None)
        self.bus.close()


@pytest.fixture
def live(tmp_path: Any) -> Iterator[Live]:
    mesh = tmp_path / "wheel.stl"
    mesh.write_bytes(b"solid wheel")
    made = Live(Descriptions({"/robot_description": "<robot name='w'/>"}, {mesh.as_uri(): mesh}))
    yield made
    made.close()
