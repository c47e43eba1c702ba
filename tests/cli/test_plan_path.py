"""``roboyard plan path``: a way, the reason why there is none, or what cannot be used."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Command

from roboyard.geometry import SE2
from roboyard.grids import GridGeometry, OccupancyGrid
from roboyard.mapping import load_map, save_map
from roboyard.mapping.map_files import read_image

CELL = 0.1
ROTATED = SE2(1.0, 2.0, 0.6)


def _make_cells() -> np.ndarray:
    """4 m by 6 m; a wall with a door at the top, and a patch that nobody has seen."""
    cells = np.zeros((40, 60), dtype=np.int8)
    cells[[0, -1]] = cells[:, [0, -1]] = 100
    cells[:28, 30] = 100
    cells[30:36, 40:50] = -1
    return cells


def _saved(cells: np.ndarray, T_map_grid: SE2 = SE2.identity(), name: str = "room.yaml") -> str:
    save_map(name, OccupancyGrid(cells.astype(np.int8), GridGeometry(CELL, cells.shape, T_map_grid)))
    return name


def _words(pose: SE2) -> str:
    return f"{pose.x},{pose.y},{pose.theta}"


# -- ways --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("origin", [SE2.identity(), SE2(-7.0, 3.0, 0.0), ROTATED])
@pytest.mark.parametrize("planner", ["fast_marching", "navfn", "a_star", "dijkstra"])
def test_path_crosses_free_cells_wherever_the_map_lies(command: Command, planner: str, origin: SE2) -> None:
    start, goal = origin @ SE2(1.0, 1.0, 0.3), origin @ SE2(5.0, 1.0, -1.0)
    file = _saved(_make_cells(), origin)
    completed = command(
        "plan", "path", file, "--start", _words(start), "--goal", _words(goal), "--planner", planner, "--json"
    )
    assert completed.code == 0, completed
    poses = np.array(completed.json["path"])
    np.testing.assert_allclose(poses[0, :2], start.xy, atol=1e-9)
    np.testing.assert_allclose(poses[-1], [goal.x, goal.y, goal.theta], atol=1e-9)
    length = np.linalg.norm(np.diff(poses[:, :2], axis=0), axis=1).sum()
    assert completed.json["length"] == pytest.approx(length)
    assert 2.0 * math.hypot(2.05, 1.9) < length < 7.0, "through the door, and not much farther"
    cells = load_map(file).geometry.cells_of_points(np.linspace(poses[:-1, :2], poses[1:, :2], 5).reshape(-1, 2))
    assert (load_map(file).cells[cells[:, 0], cells[:, 1]] == 0).all()
    assert 0.1 < completed.json["clearance"] < 1.0


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_path_is_printed_and_drawn(command: Command, suffix: str) -> None:
    image = Path(f"way{suffix}")
    completed = command(
        "plan", "path", _saved(_make_cells(), ROTATED), "--start", "1.2,3.4", "--goal", "4.6,6.1", "--picture", image
    )
    assert completed.code == 0, completed
    for word in ("length", "cost", "clearance", str(image)):
        assert word in completed.out
    if suffix == ".svg":
        assert "path of" in image.read_text()
    else:
        shades = read_image(image)
        assert min(shades.pixels.shape[:2]) > 200


def test_path_leads_out_of_costs_at_the_start(command: Command) -> None:
    file = _saved(_make_cells())
    path_near_costs = command("plan", "path", file, "--start", "3.4,1", "--goal", "5,1", "--json").json
    assert path_near_costs["cost"] > 1.05 * path_near_costs["length"]
    plain = command("plan", "path", file, "--start", "3.4,1", "--goal", "5,1", "--inflation-radius", 0, "--json").json
    assert plain["cost"] == pytest.approx(plain["length"], rel=1e-6)


def test_unknown_cells_are_entered_only_on_request(command: Command) -> None:
    words = ["plan", "path", _saved(_make_cells()), "--start", "5.5,3.3", "--goal", "4.5,3.3"]
    completed = command(*words)
    assert completed.code == 2
    assert "in unknown space" in completed.error
    assert command(*words, "--allow-unknown").code == 0


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(1, 1), (1, 50), (50, 1), (3, 400), (40, 60)])
@pytest.mark.parametrize("planner", ["fast_marching", "navfn", "a_star"])
def test_maps_of_any_shape_are_planned_on(command: Command, shape: tuple[int, int], planner: str) -> None:
    height, width = (CELL * count for count in shape)
    start, goal = f"{0.25 * width},{0.25 * height}", f"{0.75 * width},{0.75 * height}"
    words = ["--start", start, "--goal", goal, "--planner", planner]
    file = _saved(np.zeros(shape))
    completed = command("plan", "path", file, *words)
    assert completed.code == 0, completed
    assert "no obstacle" in completed.out
    straight = math.hypot(0.5 * width, 0.5 * height)
    found = command("plan", "path", file, *words, "--json").json
    assert straight - 1e-9 <= found["length"] <= 1.09 * straight + CELL
    blocked = command("plan", "path", _saved(np.full(shape, 100)), *words)
    assert blocked.code == 2
    assert "in an obstacle" in blocked.error


@pytest.mark.parametrize("planner", ["fast_marching", "navfn", "a_star", "dijkstra"])
def test_goal_at_the_start_is_a_path_of_no_length(command: Command, planner: str) -> None:
    completed = command(
        "plan", "path", _saved(_make_cells()), "--start", "1,1", "--goal", "1,1,2", "--planner", planner, "--json"
    )
    assert completed.code == 0, completed
    assert completed.json["length"] == completed.json["cost"] == 0.0
    assert completed.json["path"][-1] == [1.0, 1.0, 2.0]


# -- no path -----------------------------------------------------------------------------------------------------------
def test_missing_path_is_explained_and_drawn(command: Command) -> None:
    cells = _make_cells()
    cells[28:, 30] = 100
    words = ["plan", "path", _saved(cells), "--start", "1,1", "--goal", "5,1"]
    completed = command(*words, "--picture", "shut.svg")
    assert completed.code == 1
    assert "no path" in completed.err
    assert "layer 'static'" in completed.err
    assert "obstacles" in Path("shut.svg").read_text()
    result = command(*words, "--json")
    assert result.code == 1
    assert result.json["path"] is None
    (x, _) = result.json["explanation"]["position"]
    assert x == pytest.approx(3.05)
    assert json.dumps(result.json["explanation"]["obstacles"])


# -- what cannot be used -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--goal", "50,1"], ("the goal (50.00, 1.00)", "outside of the map", "(0.00, 0.00) to (6.00, 4.00)")),
        (["--start", "-1,1"], ("the start (-1.00, 1.00)", "outside of the map")),
        (["--goal", "3.05,1"], ("the goal (3.05, 1.00)", "in an obstacle")),
        (["--start", "3.05,1"], ("the start", "in an obstacle")),
        (["--start", "2.95,1"], ("the start", "does not fit")),
        (["--goal", "4.5,3.3"], ("the goal", "in unknown space")),
        (["--goal", "nan,1"], ("--goal 'nan,1'", "2 or 3 finite numbers")),
        (["--start", "inf,1"], ("--start 'inf,1'",)),
        (["--goal", "1e300,1"], ("--goal '1e300,1'", "1e+07")),
        (["--goal", "5,1,nan"], ("--goal '5,1,nan'",)),
        (["--goal", "5"], ("--goal '5'",)),
        (["--goal", "a,b"], ("--goal 'a,b'",)),
        (["--goal", "1,2,3,4"], ("--goal '1,2,3,4'",)),
        (["--goal", ""], ("--goal ''",)),
        (["--planner", "nobody"], ("no planner 'nobody'", "fast_marching")),
        (["--planner", "route"], ("route graph",)),
        (["--robot", "nobody"], ("no robot 'nobody'", "rover")),
        (["--robot-radius", "0"], ("--robot-radius 0", "0 to 100 m")),
        (["--robot-radius", "nan"], ("--robot-radius nan",)),
        (["--robot-radius", "2.5"], ("the start", "does not fit")),
        (["--inflation-radius", "-1"], ("--inflation-radius -1", "0 to 50 m")),
        (["--inflation-radius", "nan"], ("--inflation-radius nan",)),
        (["--min-turning-radius", "1"], ("minimum turning radius", "--planner hybrid")),
        (["--planner", "hybrid_a_star", "--min-turning-radius", "nan"], ("turning_radius: is nan", "0 to 1000")),
        (["--picture", "way.gif"], ("way.gif", ".png or .svg")),
        (["--picture", "nowhere/way.png"], ("nowhere/way.png", "cannot be written")),
    ],
)
@pytest.mark.filterwarnings("error")
def test_plan_command_refuses_bad_input_in_one_line(
    command: Command, words: list[str], expected: tuple[str, ...]
) -> None:
    completed = command("plan", "path", _saved(_make_cells()), *_defaults(words), *words)
    assert completed.code == 2, completed
    for part in expected:
        assert part in completed.error
    assert len(completed.error) < 300


def _defaults(words: list[str]) -> list[str]:
    return [
        w for option, pose in (("--start", "1,1"), ("--goal", "5,1")) if option not in words for w in (option, pose)
    ]


def test_goal_outside_a_turned_map_names_its_extent(command: Command) -> None:
    file = _saved(_make_cells(), ROTATED)
    completed = command("plan", "path", file, "--start", "1.2,3.4", "--goal", "0,0")
    assert completed.code == 2
    corners = ROTATED @ np.array([[0.0, 0.0], [6.0, 0.0], [6.0, 4.0], [0.0, 4.0]])
    (x0, y0), (x1, y1) = corners.min(axis=0), corners.max(axis=0)
    assert f"from ({x0:.2f}, {y0:.2f}) to ({x1:.2f}, {y1:.2f}), turned by 0.60 rad" in completed.error


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda: Path("room.pgm").unlink(), "room.pgm does not exist"),
        (lambda: Path("room.pgm").write_bytes(b"P5\n10 10\n255\nabc"), "room.pgm"),
        (lambda: Path("room.yaml").unlink(), "room.yaml: cannot be read"),
        (lambda: Path("room.yaml").write_text("image: ["), "room.yaml"),
        (lambda: Path("room.yaml").write_text("image: room.pgm\n"), "resolution"),
    ],
)
def test_unreadable_map_is_one_error(command: Command, change, expected: str) -> None:
    file = _saved(_make_cells())
    change()
    completed = command("plan", "path", file, "--start", "1,1", "--goal", "5,1")
    assert completed.code == 2, completed
    assert expected in completed.error
