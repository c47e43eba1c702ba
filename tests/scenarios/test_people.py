"""People in scenarios: errands, the two actions and their refusals, saved states, repeated runs."""

from __future__ import annotations

import math
from dataclasses import astuple
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from tests.harness.bus import BusHarness, Goal
from tests.harness.scenarios import recording_digest, snapshot_requests

from roboyard.bus import GoalFuture, Node
from roboyard.bus.socket import RemoteBus, SocketServer
from roboyard.errors import ConfigError, DescriptionError, InputError
from roboyard.geometry import SE2, SE3
from roboyard.messages import action, msg
from roboyard.messages.convert import pose_to_msg, pose_to_se2, vector_to_array
from roboyard.record import open_recording
from roboyard.scenarios import Run, check_scenario, load_scenario, run_scenario
from roboyard.scenarios.run_options import RunOptions, SnapshotRequest
from roboyard.simulation.validation.bodies import make_ball

SCENARIO = """\
world: empty
people:
  anna: {pose: [1, 0, 0], height: 1.6, repeat: true,
         schedule: [{walk: [2, 0.5]}, {animate: reach, hand_target: [2.4, 0.6, 1.0]}, {wait: 0.2 s}]}
  ben: {pose: [-1, 0, 1], percentile: 95, sex: male,
        schedule: [{animate: wave, speed: 2}, {walk: [-1, 1, 0], walk_animation: carry}]}
duration: 6
"""


def write(tmp_path: Path, text: str = SCENARIO) -> Path:
    path = tmp_path / "people.yaml"
    path.write_text(text)
    return path


def test_schedule_is_executed_and_runs_repeat(tmp_path: Path) -> None:
    spec = load_scenario(write(tmp_path))
    states = snapshot_requests(tmp_path, (0.7, 3.3))
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
    observed: dict[str, list[tuple[str, str]]] = {"anna": [], "ben": []}
    positions: dict[str, SE2] = {}
    with open_recording(tmp_path / "whole") as recording:
        for item in recording.messages(["/anna/state", "/ben/state"]):
            state = item.message
            positions[state.name] = pose_to_se2(state.pose)
            if not observed[state.name] or observed[state.name][-1][0] != state.state:
                observed[state.name].append((state.state, state.animation))
    assert [state for state, _ in observed["anna"]][:6] == ["setup", "idle", "movement", "idle", "animation", "idle"]
    assert ("movement", "carry") in observed["ben"] or any(state == "movement" for state, _ in observed["ben"])
    assert positions["anna"].x == pytest.approx(2.0, abs=0.02)
    run_scenario(spec, RunOptions(out=tmp_path / "again", write_report=False, serve=False))
    complete = recording_digest(tmp_path / "whole")
    assert recording_digest(tmp_path / "again") == complete
    for _, state in map(astuple, states):
        run_scenario(spec, RunOptions(out=tmp_path / state.stem, from_snapshot=state, write_report=False, serve=False))
        assert recording_digest(tmp_path / state.stem) == complete


@pytest.mark.parametrize(
    ("old", "new", "error", "message"),
    [
        ("height: 1.6", "height: 0", ConfigError, "people.yaml:3"),
        ("height: 1.6", "height: 1.6, mass: 9", ConfigError, "people.anna"),
        ("sex: male", "sex: cat", ConfigError, "people.yaml:5"),
        (", sex: male", "", ConfigError, "both"),
        ("percentile: 95", "percentile: 95, height: 2", ConfigError, "one of them"),
        ("{wait: 0.2 s}", "{wait: 0.2 s, animate: wave}", ConfigError, "one of them"),
        ("{wait: 0.2 s}", "{animate: fly}", InputError, "no clip 'fly'"),
        ("height: 1.6", "animations: {fly: fly.bvh}", InputError, "there is no file"),
        ("height: 1.6", "animations: {fly: broken.bvh}", DescriptionError, "broken.bvh"),
        ("ben:", "anna:", ConfigError, "anna"),
        (
            "world: empty",
            "world: empty\nrobots: {ben: {model: rover, pose: [5, 5, 0]}}",
            ConfigError,
            "of a person and of another entry",
        ),
        ("walk: [2, 0.5]", "walk: [2, .nan]", ConfigError, "people.yaml:4"),
    ],
)
def test_invalid_people_are_refused(tmp_path: Path, old: str, new: str, error: Any, message: str) -> None:
    (tmp_path / "broken.bvh").write_text("HIERARCHY\n")
    with pytest.raises(error) as caught:
        check_scenario(write(tmp_path, SCENARIO.replace(old, new, 1)))
    assert message in str(caught.value)


def walk_goal(x: float, y: float, yaw: float | None = None, name: str = "walk") -> Any:
    """A goal for Anna's movement; without a yaw she may look anywhere in the end."""
    target = pose_to_msg(SE2(0.0, y, yaw or 0.0))
    target.position.x = x
    if yaw is None:
        target.orientation = msg.Quaternion(x=0.0, y=0.0, z=0.0, w=0.0)
    return action.ActorMovement.Goal(animation_name=name, animation_distance=1.1, target=target)


def animation_goal(name: str, target: tuple[float, float, float] | None = None) -> Any:
    """A goal for Anna's animation, which may reach for a target."""
    return action.ActorAnimation.Goal(
        animation_name=name,
        animation_speed=1.0,
        has_target=target is not None,
        target=msg.Point(*(target or (0.0, 0.0, 0.0))),
    )


def start_walk(harness: BusHarness, *goal: Any, **options: Any) -> Goal:
    """Ask Anna to walk."""
    return harness.start_goal("/anna/movement", action.ActorMovement, walk_goal(*goal, **options))


def start_animation(harness: BusHarness, *goal: Any) -> Goal:
    """Ask Anna for an animation."""
    return harness.start_goal("/anna/animation", action.ActorAnimation, animation_goal(*goal))


class RemoteClient(Node):
    """Sends goals to Anna from another bus, and keeps feedback and states."""

    def setup(self) -> None:
        self._movement = self.action_client("/anna/movement", action.ActorMovement)
        self._animation = self.action_client("/anna/animation", action.ActorAnimation)
        self.feedback: list[Any] = []
        self.states: list[str] = []
        self.subscribe("/anna/state", msg.PersonState, lambda message: self.states.append(message.state))

    def walk(self, x: float, y: float) -> GoalFuture:
        return self._movement.send(walk_goal(x, y), self.feedback.append)

    def animate(self, name: str) -> GoalFuture:
        return self._animation.send(animation_goal(name), self.feedback.append)


def test_actions_of_a_person_exclude_each_other() -> None:
    with Run("empty", record=False) as run:
        run.add_person("anna", pose=(0.0, 0.0, 0.0))
        harness = BusHarness(bus=run.bus)
        states = harness.record("/anna/state", msg.PersonState)
        feedback = harness.published("/anna/movement/_action/feedback")
        harness.run_for(0.1)
        walk = start_walk(harness, 2.0, 0.0, math.pi / 2.0)
        harness.run_for(0.5)
        assert walk.accepted
        assert states.last.state == "movement"
        for other in (start_animation(harness, "wave"), start_walk(harness, 0.0, 0.0)):
            harness.run_for(0.1)
            assert other.accepted is False
            assert other.error_code == "busy"
            assert "movement" in other.error_message
        harness.wait_for(walk, timeout=20.0)
        assert walk.succeeded
        assert walk.result.success
        assert pose_to_se2(walk.result.pose).theta == pytest.approx(math.pi / 2.0, abs=0.04)
        assert len(feedback) == len(walk.feedback) > 0
        assert np.all(np.diff([item.time_ns for item in feedback]) == 20_000_000)  # at every step
        x = [message.pose.position.x for message in walk.feedback]
        assert x == sorted(x)
        wave = start_animation(harness, "wave")
        harness.run_for(1.0)
        progress = [message.progress for message in wave.feedback]
        assert progress == sorted(progress)
        assert 0.2 < progress[-1] < 0.5
        wave.cancel()
        harness.run_for(0.2)
        assert wave.done()
        assert not wave.succeeded
        assert states.last.state == "idle"
        for goal, cause in (
            (start_animation(harness, "fly"), "unknown"),
            (start_walk(harness, 1.0, 0.0, name="wave"), "invalid"),
            (start_animation(harness, "reach", (9.0, 0.0, 1.0)), "unreachable"),
            (start_walk(harness, math.inf, 0.0), "invalid"),
        ):
            harness.run_for(0.1)
            assert (goal.accepted, goal.error_code) == (False, cause)
        reach = start_animation(harness, "reach", (2.2, 0.5, 1.1))
        assert harness.wait_for(reach, timeout=10.0).succeeded


def test_truth_has_places_and_forces_of_the_body() -> None:
    with Run("empty", record=False) as run:
        run.add_person("anna", pose=(0.5, 0.0, 0.0), height=1.8)
        bodies = BusHarness(bus=run.bus).record("/truth/anna/body", msg.PersonBody)
        run.run_for(0.3)
        body = bodies.last
        capsules = {
            part: np.array(vector_to_array(pose.position)) for part, pose in zip(body.parts, body.poses, strict=True)
        }
        assert capsules["head"][2] == pytest.approx(0.935 * 1.8, abs=0.03)
        assert capsules["left_hand"][1] > 0.2
        assert len(body.radii) == len(body.lengths) == len(body.peak_forces) == len(body.parts) == 17
        true_pose = run.simulation.ground_truth("anna").pose
        assert np.allclose(true_pose.xyz[:2], (0.5, 0.0), atol=0.03)
        chest = capsules["chest"]
        run.simulation.add(make_ball(mass=5.0), "ball", SE3(translation=(chest[0] + 0.5, chest[1], chest[2] + 0.1)))
        dof = run.simulation.world.model.body_dofadr[run.simulation.world.addresses("ball").bodies[0]]
        run.simulation.world.data.qvel[dof] = -3.0
        bodies.clear()
        largest = 0.0
        for _ in range(200):
            run.run_for(0.002)
            largest = max(largest, float(np.linalg.norm(run.simulation.world.compliant_bodies.forces("anna")["chest"])))
        assert largest > 200.0
        struck = max(bodies.messages, key=lambda body: float(np.linalg.norm(vector_to_array(body.peak_forces[2]))))
        assert np.linalg.norm(vector_to_array(struck.peak_forces[2])) == pytest.approx(largest)
        assert struck.contact_regions[2] == "chest"  # from ahead
        assert struck.contact_regions[4] == ""


def test_walking_person_avoids_robots_and_people() -> None:
    with Run("empty", record=False) as run:
        run.add_robot("rover", pose=(2.0, 0.0, 0.0))
        run.add_person("anna", pose=(0.0, 0.0, 0.0))
        run.add_person("ben", pose=(4.0, 0.1, 0.0))
        harness = BusHarness(bus=run.bus)
        harness.run_for(0.1)
        walk = start_walk(harness, 6.0, 0.0)
        positions = []
        while not walk.done():
            run.run_for(0.1)
            positions.append(run.people["anna"].person.pose[:2])
        assert walk.succeeded
        off = np.array(positions)
        assert np.hypot(*(off - [2.0, 0.0]).T).min() > 0.5
        assert np.hypot(*(off - [4.0, 0.1]).T).min() > 0.45
        onto = harness.wait_for(start_walk(harness, 4.0, 0.1), timeout=20.0)
        assert onto.succeeded, "nobody is a wall"


def test_people_are_added_and_removed_during_a_run() -> None:
    with Run("empty", record=False) as run:
        run.run_for(0.1)
        run.add_person("anna", pose=(1.0, 0.0, 0.0))
        run.run_for(0.1)
        run.add_person("ben", pose=(2.0, 0.0, 0.0))
        run.run_for(0.1)
        run.remove("anna")
        run.run_for(0.1)
        assert list(run.people) == ["ben"]
        with pytest.raises(InputError, match="is taken"):
            run.add_person("ben")


@pytest.mark.slow
def test_strolling_people_keep_distance(tmp_path: Path) -> None:
    text = """\
world: corridor
people:
  anna: {pose: [1, 0.1, 0], patrol: [[7, 0], [1, 0]]}
  ben: {pose: [6, 0, 3.14], patrol: [[0, 0], [6, 0]]}
duration: 6
"""
    spec, state = load_scenario(write(tmp_path, text)), tmp_path / "kept.state"
    outcome = run_scenario(
        spec,
        RunOptions(out=tmp_path / "whole", snapshots=(SnapshotRequest(2.1, state),), write_report=False, serve=False),
    )
    assert outcome.state == "done", outcome.error
    run_scenario(spec, RunOptions(out=tmp_path / "again", from_snapshot=state, write_report=False, serve=False))
    assert recording_digest(tmp_path / "whole") == recording_digest(tmp_path / "again")
    paths: dict[str, list[tuple[float, float]]] = {}
    with open_recording(tmp_path / "whole") as recording:
        for item in recording.messages(["/truth/anna/pose", "/truth/ben/pose"]):
            paths.setdefault(item.topic, []).append((item.message.pose.position.x, item.message.pose.position.y))
    anna, ben = (np.array(path) for path in paths.values())
    assert np.linalg.norm(anna - ben, axis=1).min() > 0.5
    assert anna[-1, 0] > 5.0
    assert ben[-1, 0] < 2.0


def test_remote_client_sends_goals_to_a_person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with Run("empty", record=False) as run:
        run.add_person("anna", pose=(0.0, 0.0, 0.0))
        server = SocketServer(run.bus, "yard")
        run.bus.executor.pacer.real_time_factor = 20.0
        thread = Thread(target=lambda: run.bus.executor.run_until(10**16))
        thread.start()
        try:
            with RemoteBus("yard") as bus:
                client = bus.add(RemoteClient(), "client")
                bus.spin(timeout=20.0, stop_condition=lambda: bool(client.states))
                walk = client.walk(0.6, 0.0)
                bus.spin(timeout=20.0, stop_condition=lambda: len(client.feedback) > 3)
                wave = client.animate("wave")
                bus.spin(timeout=20.0, stop_condition=lambda: walk.done() and wave.done())
                assert walk.succeeded
                assert wave.accepted is False
                assert wave.error_code == "busy"
                assert len(client.feedback) > 10
                bus.spin(timeout=20.0, stop_condition=lambda: client.states[-1] == "idle")
                assert client.states[-1] == "idle"
        finally:
            run.bus.executor.stop()
            thread.join()
            server.close()
