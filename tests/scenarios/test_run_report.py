"""The report page is complete, self-contained and reproducible."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.harness.models import free_box

from roboyard.errors import InputError
from roboyard.evaluation.robot_trace import read_robot_trace
from roboyard.record import open_recording
from roboyard.scenarios import Run, regenerate_report
from roboyard.scenarios.run_folder import RunFolder
from roboyard.scenarios.world.free_space import top_down_map


class Checker(HTMLParser):
    """Counts tags, and finds what would be fetched from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with Run("arena", name="<b>demo</b>") as run:
        run.add_robot("rover")
        second = run.add_robot("rover", "second", pose=(-5.0, 0.4, 3.1))  # faces a wall
        for robot in run.robots.values():
            robot.drive(0.8)
        run.run_for(2.0)  # pushing on, four driven wheels would climb the wall
        assert second.truth.pose.x < -5.5
        return run.report(tmp_path_factory.mktemp("run") / "out").parent


def test_report_is_complete_and_fetches_nothing(folder: Path) -> None:
    text = (folder / "report.html").read_text()
    checker = Checker()
    checker.feed(text)
    assert checker.tags.count("svg") == 4  # way, speeds, odometry error, scan
    assert all(link.startswith("#") for link in checker.links)
    assert "<b>demo" not in text  # names are text, not markup
    assert "@import" not in text
    for word in ("second", "/second/odom", "touches", "Timing of nodes", "nav_msgs/msg/Odometry", "odom_rmse"):
        assert word in text
    assert not re.findall(r"#0[0-9a-f]0[0-9a-f]0[0-9a-f]\b", text)  # every colour follows the page's theme


def test_rewritten_report_is_the_same(folder: Path) -> None:
    before = (folder / "report.html").read_text()
    assert regenerate_report(folder).read_text() == before
    stored = (folder / "top_down_map.npz").read_bytes()
    (folder / "top_down_map.npz").unlink()
    floorless = regenerate_report(folder).read_text()  # without the map and scenario.yaml there is no floor plan
    assert len(floorless) < len(before)
    (folder / "top_down_map.npz").write_bytes(stored[:100])
    damaged = regenerate_report(folder).read_text()
    assert "top_down_map.npz: cannot be read" in damaged
    (folder / "top_down_map.npz").write_bytes(stored)
    assert regenerate_report(folder).read_text() == before


def test_trace_agrees_with_the_metrics(folder: Path) -> None:
    metrics = RunFolder(folder).read_metrics()
    with open_recording(folder) as recording:
        traces = [
            read_robot_trace(recording, name, r["namespace"], r["topics"]) for name, r in metrics["robots"].items()
        ]
    for trace in traces:
        found = metrics["robots"][trace.robot]["metrics"]
        assert trace.errors[1].max() == pytest.approx(found["odom_max_error"], abs=1e-6)
        assert trace.truth.x[-1] == pytest.approx(found["final_x"])
        assert len(trace.contacts) == found["contacts"]
    assert len(traces[0].commands)
    scan = traces[0].scan
    assert scan is not None
    # the scan lies on the walls of the plan: the drawing puts truth, sensor pose and ranges together rightly
    with Run("arena", record=False) as run:
        floor = top_down_map(run.simulation)
    x, y = floor.cell_centers
    solid = floor.low_obstacles | floor.tall_obstacles
    column = ((scan.points[:, 0] - x[0]) / floor.resolution).round().astype(int).clip(1, len(x) - 2)
    row = ((scan.points[:, 1] - y[0]) / floor.resolution).round().astype(int).clip(1, len(y) - 2)
    hit = [solid[r - 1 : r + 2, c - 1 : c + 2].any() for r, c in zip(row, column, strict=True)]
    assert sum(hit) > 0.9 * len(hit)


def test_folders_without_a_run_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no folder"):
        regenerate_report(tmp_path / "x")
    with pytest.raises(InputError, match="not the folder of a run"):
        regenerate_report(tmp_path)
    (tmp_path / "metrics.json").write_text("{")
    with pytest.raises(InputError, match="cannot be read"):
        regenerate_report(tmp_path)


BOX = free_box("box", (0.4, 0.8, 0.4))
"""An object that a robot can push."""


def test_report_shows_an_object_that_was_added_during_the_run(tmp_path: Path) -> None:
    pages = {}
    for name in ("with", "without"):
        with Run("empty") as run:
            run.add_robot("rover").drive(0.5)
            run.run_for(0.3)
            if name == "with":
                run.add_object(BOX, "box", (2.0, 1.0, 0.0))
            run.run_for(0.3)
            pages[name] = run.report(tmp_path / name).read_text("utf-8")
    assert "movable object, at the end" in pages["with"]
    assert "movable object" not in pages["without"]
    for name, page in pages.items():
        assert regenerate_report(tmp_path / name).read_text("utf-8") == page


def test_map_from_above_has_movable_objects_where_they_are() -> None:
    with Run("empty", record=False) as run:
        run.add_robot("rover")
        assert not top_down_map(run.simulation, excluded_actors=("rover",)).movable_obstacles.any(), (
            "robots are left out"
        )
        run.add_object(BOX, "box", (2.0, 1.0, 0.0))
        run.run_for(0.1)
        found = top_down_map(run.simulation, excluded_actors=("rover",))
        assert top_down_map(run.simulation).movable_obstacles is None
    assert found.bounds == pytest.approx((1.8, 0.6, 2.2, 1.4), abs=0.06)
    assert found.is_empty, "nothing is fixed"
