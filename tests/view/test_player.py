"""A recording as viewers see it: a jump shows what playing up to there shows, and everything is where it was."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from roboyard.errors import RecordingError
from roboyard.messages.convert import pose_to_se3
from roboyard.record import open_recording
from roboyard.scenarios import load_spec, run_scenario
from roboyard.view.player import Player
from roboyard.view.timeline import Timeline
from roboyard.view.wire import unpacked

SCENARIO = """\
world: arena
robots: {rover: {model: rover}}
operator: [{drive: {v: 0.4, w: 0.3, for: 10}}]
duration: 6.0
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("recorded")
    (base / "small.yaml").write_text(SCENARIO)
    run_scenario(load_spec(base / "small.yaml"), out=base / "run", report=False, serve=False)
    return base / "run"


@pytest.fixture
def player(folder: Path) -> Iterator[Player]:
    made = Player(folder)
    yield made
    made.close()


def poses(player: Player) -> tuple[float, np.ndarray]:
    frames = asyncio.run(player.news(["/scan", "transforms"]))
    head, parts = next(unpacked(f.data) for f in frames if f.key == "poses")  # type: ignore[arg-type]
    return head["t"], np.frombuffer(parts[0], np.float32).reshape(-1, 7)


def said(player: Player, op: str, **values: float) -> None:
    player.command({"op": op, **values}, 1, lambda _: None)


def test_a_jump_shows_what_playing_shows(folder: Path) -> None:
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


def test_the_robot_is_where_the_recording_says(player: Player, folder: Path) -> None:
    said(player, "pause")
    for wanted in (5.0, 1.0, 3.0):
        said(player, "seek", time=wanted)
        t, rows = poses(player)
        assert t == pytest.approx(wanted)
        with open_recording(folder) as recording:
            *_, last = recording.messages(["/truth/rover/pose"], 0, round(wanted * 1e9))
        true = pose_to_se3(last.message.pose)
        assert np.abs(rows[:, :3] - np.array(true.translation)).sum(axis=1).min() < 1e-4


def test_steps_go_both_ways_and_stop_at_the_ends(player: Player) -> None:
    said(player, "pause")
    said(player, "seek", time=2.0)
    said(player, "step", seconds=0.5)
    assert poses(player)[0] == pytest.approx(2.5)
    said(player, "step", seconds=-1.0)
    assert poses(player)[0] == pytest.approx(1.5)
    said(player, "seek", time=1e9)
    assert poses(player)[0] == pytest.approx(6.0)
    said(player, "seek", time=-5.0)
    assert poses(player)[0] == pytest.approx(0.0)


def test_time_goes_on_by_itself_and_begins_anew_after_the_end(player: Player) -> None:
    said(player, "rate", rate=100.0)
    for _ in range(200):
        t, _ = poses(player)
        if player.paused:
            break
    assert t == pytest.approx(6.0)
    said(player, "resume")
    assert poses(player)[0] < 6.0


def test_a_recording_alone_shows_what_was_said(folder: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone.mcap"
    alone.write_bytes((folder / "recording.mcap").read_bytes())
    player = Player(alone)
    try:
        assert "no robot" in player.notes[-1]
        said(player, "seek", time=3.0)
        frames = asyncio.run(player.news(["/scan"]))
        assert any(frame.topic == "/scan" for frame in frames)
    finally:
        player.close()


def test_what_is_no_recording_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordingError):
        Player(tmp_path / "nothing")


def test_a_scenario_as_run_can_be_built_again(tmp_path: Path) -> None:
    """Also with a choice that changes nothing, and with somebody who has a mission."""
    spec = load_spec("cell-coexistence")
    from roboyard.scenarios.as_run import scenario_as_run

    again = tmp_path / "scenario.yaml"
    again.write_text(scenario_as_run(spec))
    assert load_spec(again).scenario.options["safety"].choices == spec.scenario.options["safety"].choices
    assert Path(str(load_spec(again).scenario.people["anna"].mission)).is_file()
