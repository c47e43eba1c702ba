"""Faults and object poses set through services: they are recorded and repeated."""

from pathlib import Path
from typing import Any

import pytest
from tests.harness.scenarios import ScenarioBuilder, recording_digest

from roboyard.bus import ExternalInput
from roboyard.messages import msg, serialize, service_type, srv
from roboyard.scenarios import Run, RunControl, run_scenario
from roboyard.scenarios.run_options import RunObserver, RunOptions


def call(kind: str, target: str, request: Any, responses: list[Any]) -> ExternalInput:
    """A call from outside the run; its response is appended to a list."""

    def collect_response(future: Any) -> None:
        future.add_done_callback(lambda finished: responses.append(finished.result))

    return ExternalInput("call", target, kind, "hand", serialize(request), reply=collect_response)


def inject(text: str, responses: list[Any]) -> ExternalInput:
    """A call that injects a fault."""
    kind = service_type("roboyard_msgs/srv/InjectFault")
    return call("roboyard_msgs/srv/InjectFault", "/inject_fault", kind.Request(fault=text), responses)


def end(name: str, responses: list[Any]) -> ExternalInput:
    """A call that ends a fault."""
    kind = service_type("roboyard_msgs/srv/EndFault")
    return call("roboyard_msgs/srv/EndFault", "/end_fault", kind.Request(name=name), responses)


def run_with_inputs(tmp_path: Path, out: str, script: dict[float, Any], **options: Any) -> tuple[Any, dict[float, int]]:
    """A run in which things are done at times; its outcome, and how many scans there were by then."""
    builder = ScenarioBuilder(world="arena", duration=2.0)
    builder.set(objects={"box": {"model": "tagged_box_0", "pose": [1.5, 1.0, 0.1]}})
    scans: dict[float, int] = {}

    def started(run: Run) -> None:
        for time, make in script.items():

            def do(time: float = time, make: Any = make) -> None:
                scans[time] = run.bus.topics["/scan"].count
                for item in make(run):
                    run.bus.inputs.put(item)

            run.bus.executor.schedule(round(time * 1e9), do)

    outcome = run_scenario(
        builder.load(tmp_path),
        RunOptions(out=tmp_path / out, write_report=False, serve=False, **options),
        control=RunControl(),
        observer=RunObserver(on_started=started),
    )
    return outcome, scans


def test_injected_fault_lasts_until_it_is_ended(tmp_path: Path) -> None:
    responses: list[Any] = []
    outcome, scans = run_with_inputs(
        tmp_path, "run",
        {
            0.5: lambda run: [inject("{type: sensor_dropout, sensor: lidar}", responses)],
            1.0: lambda run: [end(responses[0].name, responses)],
            1.5: lambda run: [],
        },
    )  # fmt: skip
    assert [one.success for one in responses] == [True, True], responses
    assert scans[1.0] <= scans[0.5] + 1
    assert scans[1.5] >= scans[1.0] + 4
    assert [event["state"] for event in outcome.metrics["events"]] == ["started", "finished"]


def test_injected_fault_with_duration_ends_by_itself(tmp_path: Path) -> None:
    responses: list[Any] = []
    outcome, _ = run_with_inputs(
        tmp_path, "run", {0.5: lambda run: [inject("{type: power_loss, duration: 0.4 s}", responses)]}
    )
    times = [event["time"] for event in outcome.metrics["events"]]
    assert times == pytest.approx([0.5, 0.9], abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "", "no fault", "[]", "{type: dance}", "{type: sensor_dropout, sensor: none}", "{type: power_loss, time: 3}",
        "{type: [}", "{type: remove, name: nobody}", "{type: power_loss}, x: {y: 1}",
    ],
)  # fmt: skip
def test_invalid_fault_is_refused_and_the_run_goes_on(tmp_path: Path, text: str) -> None:
    responses: list[Any] = []
    outcome, _ = run_with_inputs(
        tmp_path, "run", {0.5: lambda run: [inject(text, responses), end("nobody", responses)]}
    )
    assert [one.success for one in responses] == [False, False]
    assert all(one.message for one in responses)
    assert outcome.state == "done"


def test_calls_from_outside_are_repeated(tmp_path: Path) -> None:
    responses: list[Any] = []

    def move_box(run: Run) -> list[ExternalInput]:
        request = srv.SetEntityState.Request(entity="box", set_pose=True)
        request.state.pose = msg.Pose(msg.Point(2.0, -1.0, 0.3), msg.Quaternion(w=1.0))
        return [call("simulation_interfaces/srv/SetEntityState", "/set_entity_state", request, responses)]

    first, _ = run_with_inputs(
        tmp_path, "first", {0.4: lambda run: [inject("{type: power_loss, duration: 0.5 s}", responses)], 0.8: move_box}
    )
    assert responses[1].result.result == 1
    repeated, _ = run_with_inputs(tmp_path, "again", {}, replay_inputs=tmp_path / "first")
    assert repeated.metrics["events"] == first.metrics["events"]
    assert recording_digest(tmp_path / "first") == recording_digest(tmp_path / "again")


def test_invalid_entity_states_are_refused(tmp_path: Path) -> None:
    responses: list[Any] = []

    def set_entity_states(run: Run) -> list[ExternalInput]:
        found = []
        for name, x in (("nobody", 0.0), ("box", float("nan")), (next(iter(run.simulation.models)), 0.0)):
            request = srv.SetEntityState.Request(entity=name, set_pose=True)
            request.state.pose.position.x = x
            found.append(call("simulation_interfaces/srv/SetEntityState", "/set_entity_state", request, responses))
        return found

    run_with_inputs(tmp_path, "run", {0.5: set_entity_states})
    assert [one.result.result for one in responses] == [2, 109, 103]
