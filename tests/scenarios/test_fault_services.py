"""Faults and things moved by hand: through services, so that they are recorded and happen again."""

from pathlib import Path
from typing import Any

import pytest

from roboyard.bus import Input
from roboyard.messages import msg, serialize, service_type, srv
from roboyard.scenarios import Control, Run, load_spec, run_scenario

SCENARIO = """\
world: arena
robots: {rover: {model: rover}}
things: {box: {model: tagged_box_0, at: [1.5, 1.0, 0.1]}}
duration: 2.0
"""


def call(kind: str, target: str, request: Any, said: list[Any]) -> Input:
    def take(future: Any) -> None:
        future.then(lambda done: said.append(done.result))

    return Input("call", target, kind, "hand", serialize(request), reply=take)


def inject(text: str, said: list[Any]) -> Input:
    kind = service_type("roboyard_msgs/srv/InjectFault")
    return call("roboyard_msgs/srv/InjectFault", "/inject_fault", kind.Request(fault=text), said)


def end(name: str, said: list[Any]) -> Input:
    kind = service_type("roboyard_msgs/srv/EndFault")
    return call("roboyard_msgs/srv/EndFault", "/end_fault", kind.Request(name=name), said)


def played(tmp_path: Path, out: str, script: dict[float, Any], **options: Any) -> tuple[Any, dict[float, int]]:
    """A run in which things are done at times; its outcome, and how many scans there were by then."""
    path = tmp_path / "hand.yaml"
    path.write_text(SCENARIO)
    scans: dict[float, int] = {}

    def started(run: Run) -> None:
        for time, make in script.items():

            def do(time: float = time, make: Any = make) -> None:
                scans[time] = run.bus.topics["/scan"].count
                for item in make(run):
                    run.bus.inputs.push(item)

            run.bus.executor.at(round(time * 1e9), do)

    outcome = run_scenario(
        load_spec(path), out=tmp_path / out, report=False, serve=False, control=Control(), started=started, **options
    )
    return outcome, scans


def test_a_sensor_falls_silent_until_it_is_told_otherwise(tmp_path: Path) -> None:
    said: list[Any] = []
    outcome, scans = played(
        tmp_path, "run",
        {
            0.5: lambda run: [inject("{what: sensor_silent, sensor: lidar}", said)],
            1.0: lambda run: [end(said[0].name, said)],
            1.5: lambda run: [],
        },
    )  # fmt: skip
    assert [one.success for one in said] == [True, True], said
    assert scans[1.0] <= scans[0.5] + 1
    assert scans[1.5] >= scans[1.0] + 4
    assert [event["state"] for event in outcome.metrics["events"]] == ["began", "ended"]


def test_one_that_lasts_ends_by_itself(tmp_path: Path) -> None:
    said: list[Any] = []
    outcome, _ = played(tmp_path, "run", {0.5: lambda run: [inject("{what: power_loss, for: 0.4 s}", said)]})
    times = [event["time"] for event in outcome.metrics["events"]]
    assert times == pytest.approx([0.5, 0.9], abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "", "no fault", "[]", "{what: dance}", "{what: sensor_silent, sensor: none}", "{what: power_loss, at: 3}",
        "{what: [}", "{what: remove, name: nobody}", "{what: power_loss}, x: {y: 1}",
    ],
)  # fmt: skip
def test_what_is_no_fault_is_refused_and_the_run_goes_on(tmp_path: Path, text: str) -> None:
    said: list[Any] = []
    outcome, _ = played(tmp_path, "run", {0.5: lambda run: [inject(text, said), end("nobody", said)]})
    assert [one.success for one in said] == [False, False]
    assert all(one.message for one in said)
    assert outcome.state == "done"


def test_what_was_done_by_hand_happens_again(tmp_path: Path) -> None:
    said: list[Any] = []

    def moved(run: Run) -> list[Input]:
        request = srv.SetEntityState.Request(entity="box", set_pose=True)
        request.state.pose = msg.Pose(msg.Point(2.0, -1.0, 0.3), msg.Quaternion(w=1.0))
        return [call("simulation_interfaces/srv/SetEntityState", "/set_entity_state", request, said)]

    first, _ = played(
        tmp_path, "first", {0.4: lambda run: [inject("{what: power_loss, for: 0.5 s}", said)], 0.8: moved}
    )
    assert said[1].result.result == 1
    again, _ = played(tmp_path, "again", {}, inputs=tmp_path / "first")
    assert again.metrics["events"] == first.metrics["events"]
    assert (tmp_path / "first/recording.mcap").read_bytes() == (tmp_path / "again/recording.mcap").read_bytes()


def test_what_is_held_is_not_moved(tmp_path: Path) -> None:
    said: list[Any] = []

    def moved(run: Run) -> list[Input]:
        found = []
        for name, x in (("nobody", 0.0), ("box", float("nan")), (next(iter(run.simulation.models)), 0.0)):
            request = srv.SetEntityState.Request(entity=name, set_pose=True)
            request.state.pose.position.x = x
            found.append(call("simulation_interfaces/srv/SetEntityState", "/set_entity_state", request, said))
        return found

    played(tmp_path, "run", {0.5: moved})
    assert [one.result.result for one in said] == [2, 109, 103]
