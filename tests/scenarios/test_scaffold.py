"""Files of `roboyard new` are valid together and alone, and overwrite nothing."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.bringup.catalog import resolve_node_class
from roboyard.bringup.robot_loader import load_robot
from roboyard.errors import InputError
from roboyard.scenarios import Run, check_scenario, load_scenario, run_scenario
from roboyard.scenarios.run_options import RunOptions
from roboyard.scenarios.scaffold import create_from_template


def make_everything(folder: Path) -> str:
    create_from_template("robot", "my-bot", folder)
    create_from_template("world", "yard", folder)
    create_from_template("node", "wall_follower", folder)
    new = create_from_template(
        "scenario", "first", folder, robot="my-bot/my-bot.yaml", world="yard.sdf", node="wall_follower.py:WallFollower"
    )
    return str(folder / new.files[0])


def test_new_robot_world_node_and_scenario_run_together(tmp_path: Path) -> None:
    scenario = make_everything(tmp_path)
    found = check_scenario(scenario)
    assert (found.findings, found.world) == ((), "yard")
    assert "wall_follower" in found.robots["my_bot"]
    outcome = run_scenario(load_scenario(scenario, smoke=True), RunOptions(write_files=False, serve=False))
    assert outcome.success, outcome.failure_reason
    assert outcome.metrics["path_length"] > 0.3


def test_new_scenario_alone_has_a_rover_with_operator(tmp_path: Path) -> None:
    path = tmp_path / create_from_template("scenario", "alone", tmp_path).files[0]
    assert check_scenario(str(path)).findings == ()
    assert load_scenario(path).config.operator


def test_new_robot_drives(tmp_path: Path) -> None:
    new = create_from_template("robot", "bot", tmp_path)
    package = load_robot(str(tmp_path / new.files[0]))
    assert package.findings == ()
    with Run("empty", record=False) as run:
        bot = run.add_robot(package, nodes="all")
        run.run_for(1.0)
        assert abs(bot.truth.pose.x) < 0.01
        assert bot.model.warnings == ()
        bot.drive(0.4, 0.0)
        run.run_for(1.0)
        assert bot.truth.pose.x > 0.15


def test_new_node_is_named_after_its_file(tmp_path: Path) -> None:
    create_from_template("node", "door_opener", tmp_path)
    assert resolve_node_class("door_opener.py:DoorOpener", tmp_path).__name__ == "DoorOpener"


@pytest.mark.parametrize("kind", ["robot", "world", "scenario", "node"])
def test_existing_files_are_not_overwritten(tmp_path: Path, kind: str) -> None:
    new = create_from_template(kind, "mine", tmp_path)  # type: ignore[arg-type]
    (tmp_path / new.files[-1]).write_text("changed")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(InputError, match="there already"):
        create_from_template(kind, "mine", tmp_path)  # type: ignore[arg-type]
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@given(st.text(max_size=12))
def test_new_names_are_words_or_refused(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    folder = tmp_path_factory.mktemp("names")
    try:
        new = create_from_template("node", name, folder)
    except InputError as error:
        assert "small letters" in str(error)
        assert not any(folder.iterdir())
    else:
        assert (folder / new.files[0]).parent == folder
        compile((folder / new.files[0]).read_text(), "node", "exec")


@pytest.mark.parametrize("name", ["../up", "Bot", "class", "none", "a b", "", "9lives", "a__b", "a-b"])
def test_invalid_names_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="cannot be called"):
        create_from_template("node", name, tmp_path)
