"""The command run in this process or as a process of its own, a live run to look at, and a recording of it."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from tests.harness.live_bus import PROGRAM, CliResult, run_cli
from tests.harness.workers import forked_workers

import roboyard as ry
from roboyard.bus.socket import SocketServer
from roboyard.geometry import SE3
from roboyard.record import Recorder

__all__ = ["PROGRAM", "forked_workers"]
Command = Callable[..., CliResult]


@pytest.fixture(autouse=True)
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty working directory, and a registry of live runs that nobody else uses."""
    registry = tmp_path / "runtime"
    registry.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(registry))
    monkeypatch.delenv("ROBOYARD_DEBUG", raising=False)
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)


@pytest.fixture
def command() -> Command:
    """Runs a command line in this process."""
    return run_cli


@pytest.fixture
def shell() -> Command:
    """Runs a command line as its own process, without a terminal."""

    def call(*words: object, **options: Any) -> CliResult:
        done = subprocess.run(
            [str(PROGRAM), *map(str, words)],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=600,
            check=False,
            **options,
        )
        return CliResult(done.returncode, done.stdout, done.stderr)

    return call


class Robot(ry.Node):
    """Something of everything.  in: cmd   out: count, big, map"""

    speed: float = ry.param(1.0, unit="m/s", low=0.0, high=2.0, doc="how fast")
    mode: str = ry.param("slow", choices=("slow", "quick"))
    steps: int = ry.param(3, low=0, high=9)
    gains: tuple[float, ...] = ry.param((1.0, 2.0))
    label: str = ry.param("a", fixed=True)

    def setup(self) -> None:
        self.heard: list[tuple[str, str]] = []
        self.count = self.publisher("count", ry.msg.Int32)
        self.twist = self.publisher("twist", ry.msg.TwistStamped)
        self.map = self.publisher("map", ry.msg.String, latched=True)
        self.map.publish(ry.msg.String(data="the map"))
        self.subscribe("cmd", ry.msg.String, lambda m, source: self.heard.append((m.data, source)), with_source=True)
        self.service("greet", ry.srv.SetBool, self.on_greet)
        self.action_server("fibonacci", ry.action.Fibonacci, self.on_goal)
        self.broadcast(SE3.from_xyz_rpy((0.0, 0.0, 0.5)), "base", "laser", static=True)
        self.timer(0.1, self.tick)
        self.ticks = 0

    def on_greet(self, request: Any) -> Any:
        return ry.srv.SetBool.Response(success=request.data, message="hello")

    def on_goal(self, handle: Any) -> None:
        if handle.goal.order > 20:
            handle.reject("that is too much")
            return
        handle.accept()
        self.go_on(handle, [0, 1])

    def go_on(self, handle: Any, numbers: list[int]) -> None:
        if handle.canceling:
            handle.cancel()
        elif handle.goal.order < 0:
            handle.abort(reason="it is negative")
        elif len(numbers) > handle.goal.order:
            handle.succeed(ry.action.Fibonacci.Result(sequence=numbers))
        else:
            handle.feedback(ry.action.Fibonacci.Feedback(sequence=numbers))
            self.after(0.05, lambda: self.go_on(handle, [*numbers, numbers[-1] + numbers[-2]]))

    def tick(self) -> None:
        self.ticks += 1
        self.count.publish(ry.msg.Int32(data=self.ticks))
        self.twist.publish(ry.msg.TwistStamped())
        self.broadcast(SE3.from_xyz_rpy((float(self.ticks), 0.0, 0.0)), "odom", "base")


class Live:
    """A run in a thread, at twenty times real time."""

    def __init__(self, name: str = "yard") -> None:
        self.bus = ry.Bus()
        self.robot = self.bus.add(Robot(), "robot")
        self.server = SocketServer(self.bus, name)
        self.bus.executor.pacer.factor = 20.0
        self.thread = Thread(target=lambda: self.bus.executor.run_until(10**16))
        self.thread.start()

    def stop(self) -> None:
        self.bus.executor.stop()
        self.thread.join()
        self.server.close()
        self.bus.close()


@pytest.fixture
def live(own_place: None) -> Iterator[Live]:
    """A live run to look at."""
    made = Live()
    yield made
    made.stop()


@pytest.fixture(scope="session")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seconds of the same robot."""
    path = tmp_path_factory.mktemp("recording") / "yard.mcap"
    with ry.Bus() as bus:
        bus.add(Robot(), "robot")
        with Recorder(bus, path, metadata={"run": "yard"}):
            bus.executor.run_for(2.0)
    return path


@pytest.fixture(scope="session")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short scenario in a nearly empty world."""
    path = tmp_path_factory.mktemp("scenario") / "short.yaml"
    path.write_text(
        "about: Drives ahead\n"
        "world: empty\n"
        "robots: {rover: {model: rover}}\n"
        "operator: [{drive: {v: 0.5, for: 5 s}}]\n"
        "duration: 0.6 s\n"
        "criteria: {moves: path_length > 0.001}\n"
    )
    return path


def environment(**changes: str) -> dict[str, str]:
    """This process's, changed."""
    return {**os.environ, **changes}
