"""The timeline of a robot: events of all its collectors, by time, in metrics.json and on the report's page."""

from __future__ import annotations

import json
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from tests.harness.scenarios import snapshot_requests

from roboyard.evaluation.collector import RobotContext
from roboyard.evaluation.topics import RobotTopics
from roboyard.messages import msg
from roboyard.scenarios import RunResult, load_scenario, regenerate_report, run_scenario
from roboyard.scenarios.evaluator import Evaluator
from roboyard.scenarios.run_options import RunOptions

SCENARIO = """\
world: empty
robots: {rover: {model: rover}}
operator:
  - {drive: {linear: 0.8, duration: 5}}
faults:
  - {time: 0.3 s, type: spawn, model: box, pose: [1.0, 0, 0]}
  - {time: 1.1 s, duration: 1 s, type: sensor_noise, sensor: imu, stddev: 0.1}
duration: 2.4
criteria: {touches: contacts >= 2}
"""
MOMENTS = (0.5, 1.3)
"""When the state of a run is saved: before the first contact, and between the first and the last one [s]."""


def navigation_status(state: str, error_code: str = "") -> Any:
    return msg.NavigationStatus(task="navigate_to_pose", state=state, error_code=error_code)


def homing_status(link: str) -> Any:
    return msg.HomingStatus(link=link, phase="driven")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a scenario, its run `whole`, and the states at the moments."""
    folder = tmp_path_factory.mktemp("timeline")
    (folder / "bumps.yaml").write_text(SCENARIO, "utf-8")
    snapshots = snapshot_requests(folder, MOMENTS)
    result = run(folder, "whole", snapshots=snapshots)
    assert result.success, result.failure_reason
    return folder


def run(folder: Path, name: str, **options: Any) -> RunResult:
    return run_scenario(load_scenario(folder / "bumps.yaml"), RunOptions(out=folder / name, serve=False, **options))


def timeline_of(folder: Path) -> list[dict[str, Any]]:
    """Return the timeline of the rover."""
    timeline = json.loads((folder / "metrics.json").read_text("utf-8"))["robots"]["rover"]["timeline"]
    assert isinstance(timeline, list)
    return timeline


def test_events_are_in_order_and_within_the_run(folder: Path) -> None:
    document = json.loads((folder / "whole" / "metrics.json").read_text("utf-8"))
    times = [event["time"] for event in timeline_of(folder / "whole")]
    assert times == sorted(times)
    assert times[0] >= 0.0
    assert times[-1] <= document["sim_time"]
    contacts = [event for event in timeline_of(folder / "whole") if event["kind"] == "contact"]
    assert len(contacts) == document["contacts"]
    assert contacts[0]["time"] == document["first_contact"]
    assert contacts[0]["time"] < MOMENTS[1] < contacts[-1]["time"], "the state is saved between contacts"


@pytest.mark.parametrize("moment", MOMENTS)
def test_continued_run_has_the_timeline_of_the_whole_run(folder: Path, moment: float) -> None:
    run(folder, f"from-{moment}", from_snapshot=folder / f"{moment}.state", write_report=False)
    assert timeline_of(folder / f"from-{moment}") == timeline_of(folder / "whole")


def test_page_shows_events_of_robots_among_the_faults(folder: Path) -> None:
    page = unescape((folder / "whole" / "report.html").read_text("utf-8"))
    section = page.split("<h2>Timeline</h2>")[1].split("</section>")[0]
    rows = [row for row in section.split("<tr>") if "<td" in row]
    document = json.loads((folder / "whole" / "metrics.json").read_text("utf-8"))
    expected = [(event["time"], event["text"]) for event in (*document["events"], *timeline_of(folder / "whole"))]
    assert len(rows) == len(expected)
    for row, (time, text) in zip(rows, sorted(expected, key=lambda item: float(item[0])), strict=True):
        assert f">{time:.2f}<" in row
        assert text in row
    rover_rows = [row for row in rows if "<td>rover</td>" in row]
    assert len(rover_rows) == len(timeline_of(folder / "whole"))
    flagged_rows = [row for row in rows if '<span class="flag warn">' in row]
    assert len(flagged_rows) == len(document["events"])


def test_timeline_from_the_recording_alone_is_the_same(folder: Path) -> None:
    before = timeline_of(folder / "whole")
    copy = folder / "killed"
    copy.mkdir()
    for name in ("recording.mcap", "scenario.yaml"):
        (copy / name).write_bytes((folder / "whole" / name).read_bytes())
    regenerate_report(copy)
    assert timeline_of(copy) == before
    assert "<h2>Timeline</h2>" in (copy / "report.html").read_text("utf-8")


def evaluate(*messages: tuple[float, str, Any]) -> Evaluator:
    """Evaluate messages of a rover: time [s], topic, message."""
    evaluator = Evaluator()
    evaluator.add_robot(RobotContext("rover", RobotTopics.for_robot("rover")))
    for time, topic, message in messages:
        evaluator.process(topic, message, round(time * 1e9))
    return evaluator


MESSAGES = (
    (1.0, "/navigator/status", navigation_status("started")),
    (2.0, "/homing/status", homing_status("connected")),
    (3.0, "/homing/status", homing_status("lost")),
    (4.0, "/navigator/status", navigation_status("aborted", "no_path")),
    (5.0, "/homing/status", homing_status("recovering")),
    (6.0, "/navigator/status", navigation_status("started")),
    (7.0, "/navigator/status", navigation_status("succeeded")),
)


def test_events_of_several_collectors_are_merged_by_time() -> None:
    events = evaluate(*MESSAGES).timeline("rover")
    assert [(event.time, event.kind) for event in events] == [
        (1.0, "goal_started"), (3.0, "link_lost"), (4.0, "goal_failed"), (5.0, "link_restored"), (6.0, "goal_started"),
        (7.0, "goal_reached"),
    ]  # fmt: skip


def test_robot_without_events_has_no_timeline() -> None:
    assert "timeline" not in evaluate().details("rover")
    assert len(evaluate(*MESSAGES).details("rover")["timeline"]) == 6


@pytest.mark.parametrize("n_before", range(len(MESSAGES) + 1))
def test_saved_state_keeps_the_timeline_however_the_run_goes_on(n_before: int) -> None:
    evaluator = evaluate(*MESSAGES[:n_before])
    state = evaluator.save_state()
    for time, topic, message in MESSAGES[n_before:]:
        evaluator.process(topic, message, round(time * 1e9))
    continued = evaluate()
    continued.load_state(state)
    assert continued.timeline("rover") == evaluate(*MESSAGES[:n_before]).timeline("rover")
    for time, topic, message in MESSAGES[n_before:]:
        continued.process(topic, message, round(time * 1e9))
    assert continued.timeline("rover") == evaluator.timeline("rover") == evaluate(*MESSAGES).timeline("rover")
