"""Furniture in scenarios: placement, commands, saved states, and refused mistakes."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path
from typing import Any

import pytest
from tests.harness.scenarios import recording_digest, snapshot_requests

from roboyard.errors import ConfigError, InputError, UnknownNameError
from roboyard.record import open_recording
from roboyard.scenarios import check_scenario, load_scenario, run_scenario
from roboyard.scenarios.run_options import RunOptions

SCENARIO = """\
world: empty
robots: {rover: {model: rover, pose: [-1, 0, 0], nodes: none}}
devices:
  belt: {model: conveyor, pose: [1, 2, 0.5], initial_command: 0.4}
  table: {model: turntable, pose: [-2, 2, 0], initial_command: 1}
  door: {model: door, pose: [2, 0, 0]}
faults:
  - {time: 0.2 s, type: spawn, model: box, pose: [1, 2, 0.42, 0, 0, 0], size: [0.2, 0.2, 0.2], name: parcel}
  - {time: 0.4 s, type: device_command, name: door, value: 0.5}
  - {time: 0.8 s, type: device_command, name: belt, value: -0.2}
  - {time: 1.2 s, type: remove, name: table}
duration: 1.6
"""


def write(tmp_path: Path, text: str = SCENARIO) -> Path:
    path = tmp_path / "moving.yaml"
    path.write_text(text)
    return path


def test_devices_move_on_time_and_continue_from_states(tmp_path: Path) -> None:
    spec = load_scenario(write(tmp_path))
    states = snapshot_requests(tmp_path, (0.6, 1.3))
    outcome = run_scenario(
        spec,
        RunOptions(
            out=tmp_path / "whole",
            snapshots=states,
            write_report=False,
            serve=False,
        ),
    )
    assert outcome.state == "done", outcome.error
    found: dict[str, list[tuple[float, float]]] = {}
    with open_recording(tmp_path / "whole") as recording:
        for item in recording.messages(["/belt/state", "/door/state", "/table/state"]):
            found.setdefault(item.topic, []).append((item.time_ns * 1e-9, item.message.data))
    assert [value for time, value in found["/belt/state"] if 0.65 < time < 0.75] == [pytest.approx(0.4)]
    assert found["/belt/state"][-1][1] == pytest.approx(-0.2)
    assert found["/door/state"][-1][1] == pytest.approx(0.5, abs=0.05)
    assert max(value for time, value in found["/door/state"] if time < 0.4) < 0.01
    assert found["/table/state"][-1][0] <= 1.2
    for _, state in map(astuple, states):
        run_scenario(spec, RunOptions(out=tmp_path / state.stem, from_snapshot=state, write_report=False, serve=False))
        assert recording_digest(tmp_path / "whole") == recording_digest(tmp_path / state.stem)


@pytest.mark.parametrize(
    ("old", "new", "error", "message"),
    [
        ("model: conveyor", "model: escalator", UnknownNameError, "there are: barrier, conveyor, door"),
        ("model: conveyor", "model: missing.sdf", InputError, "there is no file missing.sdf"),
        ("name: door, value", "name: gate, value", ConfigError, "moving.yaml:9, faults[1].name"),
        ("value: 0.5", "value: open", ConfigError, "moving.yaml:9"),
        ("table: {", "belt: {", ConfigError, "belt"),
        ("table: {", "rover: {", InputError, "rover"),
        ("initial_command: 0.4", "initial_command: .inf", ConfigError, "moving.yaml:4"),
    ],
)
def test_invalid_device_is_refused(tmp_path: Path, old: str, new: str, error: Any, message: str) -> None:
    with pytest.raises(error) as caught:
        check_scenario(write(tmp_path, SCENARIO.replace(old, new, 1)))
    assert message in str(caught.value)


def test_static_model_is_no_device(tmp_path: Path) -> None:
    (tmp_path / "stone.sdf").write_text(
        '<sdf version="1.10"><model name="stone"><static>true</static><link name="l"/></model></sdf>'
    )
    with pytest.raises(InputError, match="model stone has no moving device"):
        check_scenario(write(tmp_path, SCENARIO.replace("model: conveyor", "model: stone.sdf", 1)))


def test_world_file_may_contain_devices(tmp_path: Path) -> None:
    """Devices inside a world file move without an entry in the scenario."""
    from importlib import resources

    inside = (resources.files("roboyard") / "devices/sliding_door.sdf").read_text()
    model = inside[inside.index("<model") : inside.index("</sdf>")]
    (tmp_path / "home.sdf").write_text(f'<sdf version="1.10"><world name="home">{model}</world></sdf>')
    report = check_scenario(write(tmp_path, "world: home.sdf\nduration: 1\n"))
    assert "/sliding_door/command" in report.topics
