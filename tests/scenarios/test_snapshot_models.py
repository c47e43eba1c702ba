"""A run continues from a saved state after models were spawned and deleted through services."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path

from tests.harness.scenarios import ScenarioBuilder, recording_digest, snapshot_requests

from roboyard.bus import ExternalInput
from roboyard.messages import serialize, srv
from roboyard.scenarios import Run, run_scenario
from roboyard.scenarios.run_options import RunObserver, RunOptions

SEEING = """<sdf version="1.10"><model name="seeing"><link name="l">
<inertial><mass>1</mass><inertia><ixx>0.01</ixx><iyy>0.01</iyy><izz>0.01</izz></inertia></inertial>
<collision name="c"><geometry><box><size>0.2 0.2 0.2</size></box></geometry></collision>
<sensor name="eye" type="imu"><update_rate>50</update_rate><topic>{topic}</topic></sensor></link></model></sdf>"""


def test_models_spawned_by_services_are_restored(tmp_path: Path) -> None:
    def call(service: str, request: object) -> ExternalInput:
        kind = f"simulation_interfaces/srv/{service.title().replace('_', '')}"
        return ExternalInput("call", f"/{service}", kind, "somebody", serialize(request))

    def spawn(name: str, x: float) -> ExternalInput:
        request = srv.SpawnEntity.Request(name=name)
        request.entity_resource.resource_string = SEEING.format(topic=f"/{name}/eye")
        request.initial_pose.pose.position.x, request.initial_pose.pose.position.z = x, 0.5
        return call("spawn_entity", request)

    def change_models(run: Run) -> None:
        inputs = [
            (0.2, spawn("one", 1.0)), (0.3, spawn("two", 2.0)),
            (0.5, call("delete_entity", srv.DeleteEntity.Request(entity="one"))), (0.7, spawn("three", 3.0)),
            (1.0, call("delete_entity", srv.DeleteEntity.Request(entity="two"))),
        ]  # fmt: skip
        run.bus.inputs.schedule((round(time * 1e9), item) for time, item in inputs if time * 1e9 > run.bus.now_ns)

    spec = ScenarioBuilder(duration=1.2).load(tmp_path)
    states = snapshot_requests(tmp_path, (0.4, 0.6, 0.9))
    run_scenario(
        spec,
        RunOptions(
            out=tmp_path / "whole",
            snapshots=states,
            write_report=False,
            serve=False,
        ),
        observer=RunObserver(on_started=change_models),
    )
    assert b"three" in (tmp_path / "whole/recording.mcap").read_bytes()
    for _, state in map(astuple, states):
        out = tmp_path / state.stem
        outcome = run_scenario(
            spec,
            RunOptions(out=out, from_snapshot=state, write_report=False, serve=False),
            observer=RunObserver(on_started=change_models),
        )
        assert outcome.state == "done", outcome.error
        assert recording_digest(out) == recording_digest(tmp_path / "whole")
        repeated = run_scenario(
            spec, RunOptions(write_files=False, from_snapshot=state, replay_inputs=tmp_path / "whole", serve=False)
        )
        assert repeated.metrics["messages"] == outcome.metrics["messages"]
