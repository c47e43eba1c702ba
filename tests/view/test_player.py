"""A recording as viewers see it: a jump shows what playing up to there shows, and everything is where it was."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.harness.scenarios import ScenarioBuilder

from roboyard.errors import RecordingError
from roboyard.messages.convert import pose_to_se3
from roboyard.record import open_recording
from roboyard.scenarios import load_scenario, run_scenario
from roboyard.scenarios.run_options import RunOptions
from roboyard.view.player import Player
from roboyard.view.timeline import Timeline
from roboyard.view.wire import unpacked


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("recorded")
    spec = ScenarioBuilder(world="arena", duration=6.0).drive(0.4, 0.3, duration=10.0).load(base)
    run_scenario(spec, RunOptions(out=base / "run", write_report=False, serve=False))
    return base / "run"


@pytest.fixture
def player(folder: Path) -> Iterator[Player]:
    player = Player(folder)
    yield player
    player.close()


def poses(player: Player) -> tuple[float, np.ndarray]:
    frames = asyncio.run(player.news(["/scan", "transforms"]))
    head, parts = next(unpacked(f.data) for f in frames if f.key == "poses")  # type: ignore[arg-type]
    return head["t"], np.frombuffer(parts[0], np.float32).reshape(-1, 7)


def send(player: Player, op: str, **values: float) -> None:
    player.command({"op": op, **values}, 1, lambda _: None)


def test_seek_shows_the_same_as_playing(folder: Path) -> None:
    with open_recording(folder) as recording:
        names = list(recording.topics)
        played, jumped = ({}, {})  # type: dict, dict
        line = Timeline(recording, names, ["/tf"])
        line.seek(line.start_ns, lambda topic, message, time: played.__setitem__(topic, time))
        for time_ns in range(line.start_ns, 4_330_000_000, 50_000_000):
            line.advance(time_ns, lambda topic, message, time: played.__setitem__(topic, time))
        line.advance(4_330_000_000, lambda topic, message, time: played.__setitem__(topic, time))
        other = Timeline(recording, names, ["/tf"])
        other.seek(4_330_000_000, lambda topic, message, time: jumped.__setitem__(topic, time))
    assert played == jumped
    assert max(jumped.values()) <= 4_330_000_000


def test_robot_is_shown_at_the_recorded_pose(player: Player, folder: Path) -> None:
    send(player, "pause")
    for wanted in (5.0, 1.0, 3.0):
        send(player, "seek", time=wanted)
        t, rows = poses(player)
        assert t == pytest.approx(wanted)
        with open_recording(folder) as recording:
            *_, last = recording.messages(["/truth/rover/pose"], 0, round(wanted * 1e9))
        true = pose_to_se3(last.message.pose)
        assert np.abs(rows[:, :3] - np.array(true.translation)).sum(axis=1).min() < 1e-4


def test_steps_go_both_directions_and_stop_at_the_ends(player: Player) -> None:
    send(player, "pause")
    send(player, "seek", time=2.0)
    send(player, "step", seconds=0.5)
    assert poses(player)[0] == pytest.approx(2.5)
    send(player, "step", seconds=-1.0)
    assert poses(player)[0] == pytest.approx(1.5)
    send(player, "seek", time=1e9)
    assert poses(player)[0] == pytest.approx(6.0)
    send(player, "seek", time=-5.0)
    assert poses(player)[0] == pytest.approx(0.0)


def test_player_stops_at_the_end_and_starts_again(player: Player) -> None:
    send(player, "rate", rate=100.0)
    for _ in range(200):
        t, _ = poses(player)
        if player.paused:
            break
    assert t == pytest.approx(6.0)
    send(player, "resume")
    assert poses(player)[0] < 6.0


def test_recording_without_scenario_shows_messages(folder: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone.mcap"
    alone.write_bytes((folder / "recording.mcap").read_bytes())
    player = Player(alone)
    try:
        assert "no robot" in player.notes[-1]
        send(player, "seek", time=3.0)
        frames = asyncio.run(player.news(["/scan"]))
        assert any(frame.topic == "/scan" for frame in frames)
    finally:
        player.close()


def test_missing_recording_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordingError):
        Player(tmp_path / "nothing")


def test_saved_scenario_can_be_loaded_again(tmp_path: Path) -> None:
    """Also with a choice that changes nothing, and with somebody who has a mission."""
    spec = load_scenario("cell-coexistence")
    from roboyard.scenarios.resolve import resolve_scenario

    again = tmp_path / "scenario.yaml"
    again.write_text(resolve_scenario(spec).to_yaml())
    assert load_scenario(again).config.options["safety"].choices == spec.config.options["safety"].choices
    assert Path(str(load_scenario(again).config.people["anna"].mission)).is_file()
