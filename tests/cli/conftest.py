"""The command line in an empty folder, a live run to look at, a recording of it, and a short scenario."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.harness.fixtures import private_runtime_folder
from tests.harness.live_bus import CliResult, LiveBus, run_cli
from tests.harness.scenarios import short_scenario
from tests.harness.workers import thread_workers

import roboyard as ry
from roboyard.geometry import SE3
from roboyard.record import Recorder

__all__ = ["private_runtime_folder", "thread_workers"]
Command = Callable[..., CliResult]


@pytest.fixture(autouse=True)
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder."""
    monkeypatch.delenv("ROBOYARD_DEBUG", raising=False)
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def command() -> Command:
    """Runs a command line in this process."""
    return run_cli


class SampleRobotConfig(ry.Config):
    """Configuration of `SampleRobot`."""

    speed: float = ry.parameter(1.0, unit="m/s", low=0.0, high=2.0, doc="how fast", runtime=True)
    mode: str = ry.parameter("slow", choices=("slow", "quick"), runtime=True)
    steps: int = ry.parameter(3, low=0, high=9, runtime=True)
    gains: tuple[float, ...] = ry.parameter((1.0, 2.0), runtime=True)
    label: str = ry.parameter("a")


class SampleRobot(ry.Node[SampleRobotConfig]):
    """Something of everything.  in: cmd   out: count, twist, map"""

    def setup(self) -> None:
        self.commands: list[tuple[str, str]] = []
        self.count = self.publisher("count", ry.msg.Int32)
        self.twist = self.publisher("twist", ry.msg.TwistStamped)
        self.map = self.publisher("map", ry.msg.String, latched=True)
        self.map.publish(ry.msg.String(data="the map"))
        self.subscribe("cmd", ry.msg.String, lambda m, source: self.commands.append((m.data, source)), with_source=True)
        self.service("greet", ry.srv.SetBool, self.on_greet)
        self.action_server("fibonacci", ry.action.Fibonacci, self.on_goal)
        self.send_transform(SE3.from_xyz_rpy((0.0, 0.0, 0.5)), "base", "laser", static=True)
        self.timer(0.1, self.on_timer)
        self.ticks = 0

    def on_greet(self, request: Any) -> Any:
        return ry.srv.SetBool.Response(success=request.data, message="hello")

    def on_goal(self, handle: Any) -> None:
        if handle.goal.order > 20:
            handle.reject("that is too much")
            return
        handle.accept()
        self.pursue(handle, [0, 1])

    def pursue(self, handle: Any, numbers: list[int]) -> None:
        if handle.is_cancel_requested:
            handle.set_canceled()
        elif handle.goal.order < 0:
            handle.abort(error_message="it is negative")
        elif len(numbers) > handle.goal.order:
            handle.succeed(ry.action.Fibonacci.Result(sequence=numbers))
        else:
            handle.publish_feedback(ry.action.Fibonacci.Feedback(sequence=numbers))
            self.call_after(0.05, lambda: self.pursue(handle, [*numbers, numbers[-1] + numbers[-2]]))

    def on_timer(self) -> None:
        self.ticks += 1
        self.count.publish(ry.msg.Int32(data=self.ticks))
        self.twist.publish(ry.msg.TwistStamped())
        self.send_transform(SE3.from_xyz_rpy((float(self.ticks), 0.0, 0.0)), "odom", "base")


@pytest.fixture
def robot() -> SampleRobot:
    """The node of the live run."""
    return SampleRobot()


@pytest.fixture
def live(private_runtime_folder: None, robot: SampleRobot) -> Iterator[LiveBus]:
    """A live run named "yard", at twenty times real time."""
    with LiveBus((robot, "robot")) as live:
        yield live


@pytest.fixture(scope="module")
def shared_runtime_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A registry in which a run named "yard" is live, for tests that only look at it."""
    folder = tmp_path_factory.mktemp("runtime")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(folder))
        live = LiveBus((SampleRobot(), "robot"))
    with live:
        yield folder


@pytest.fixture(scope="session")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seconds of the same robot."""
    path = tmp_path_factory.mktemp("recording") / "yard.mcap"
    with ry.Bus() as bus:
        bus.add(SampleRobot(), "robot")
        with Recorder(bus, path, metadata={"run": "yard"}):
            bus.executor.run_for(2.0)
    return path


@pytest.fixture(scope="session")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short scenario in a nearly empty world."""
    return short_scenario().set(summary="Drives ahead").write(tmp_path_factory.mktemp("scenario"))
