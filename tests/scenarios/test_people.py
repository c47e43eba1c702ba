"""People in scenarios: errands, the two actions and their refusals, states saved on the way, runs that repeat."""

from __future__ import annotations

import math
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

from roboyard.bus import GoalFuture, Node
from roboyard.bus.socket import RemoteBus, SocketServer
from roboyard.errors import ConfigError, DescriptionError, InputError
from roboyard.geometry import SE2, SE3
from roboyard.messages import action, msg
from roboyard.messages.convert import pose_to_msg, pose_to_se2, vector_to_array
from roboyard.record import open_recording
from roboyard.scenarios import Run, check_scenario, load_spec, run_scenario
from roboyard.simulation.proof.bodies import ball

SCENARIO = """\
world: empty
people:
  anna: {at: [1, 0, 0], height: 1.6, repeat: true,
         errands: [{walk: [2, 0.5]}, {show: reach, at: [2.4, 0.6, 1.0]}, {wait: 0.2 s}]}
  ben: {at: [-1, 0, 1], percentile: 95, sex: male, errands: [{show: wave, speed: 2}, {walk: [-1, 1, 0], clip: carry}]}
duration: 6
"""


def write(tmp_path: Path, text: str = SCENARIO) -> Path:
    path = tmp_path / "people.yaml"
    path.write_text(text)
    return path


def test_errands_are_done_and_runs_repeat(tmp_path: Path) -> None:
    spec = load_spec(write(tmp_path))
    states = [(time, tmp_path / f"{time}.state") for time in (0.7, 3.3)]
    outcome = run_scenario(spec, out=tmp_path / "whole", save_states=states, report=False, serve=False)
    assert outcome.state == "done", outcome.error
    seen: dict[str, list[tuple[str, str]]] = {"anna": [], "ben": []}
    places: dict[str, SE2] = {}
    with open_recording(tmp_path / "whole") as recording:
        for item in recording.messages(["/anna/state", "/ben/state"]):
            said = item.message
            places[said.name] = pose_to_se2(said.pose)
            if not seen[said.name] or seen[said.name][-1][0] != said.state:
                seen[said.name].append((said.state, said.animation))
    assert [state for state, _ in seen["anna"]][:6] == ["setup", "idle", "movement", "idle", "animation", "idle"]
    assert ("movement", "carry") in seen["ben"] or any(state == "movement" for state, _ in seen["ben"])
    assert places["anna"].x == pytest.approx(2.0, abs=0.02)
    run_scenario(spec, out=tmp_path / "again", report=False, serve=False)
    whole = (tmp_path / "whole" / "recording.mcap").read_bytes()
    assert (tmp_path / "again" / "recording.mcap").read_bytes() == whole
    for _, state in states:
        run_scenario(spec, out=tmp_path / state.stem, from_state=state, report=False, serve=False)
        assert (tmp_path / state.stem / "recording.mcap").read_bytes() == whole


@pytest.mark.parametrize(
    ("old", "new", "error", "message"),
    [
        ("height: 1.6", "height: 0", ConfigError, "people.yaml:3"),
        ("height: 1.6", "height: 1.6, mass: 9", ConfigError, "people.anna"),
        ("sex: male", "sex: cat", ConfigError, "people.yaml:5"),
        (", sex: male", "", ConfigError, "both"),
        ("percentile: 95", "percentile: 95, height: 2", ConfigError, "one of them"),
        ("{wait: 0.2 s}", "{wait: 0.2 s, show: wave}", ConfigError, "one of them"),
        ("{wait: 0.2 s}", "{show: fly}", InputError, "no clip 'fly'"),
        ("height: 1.6", "clips: {fly: fly.bvh}", InputError, "there is no file"),
        ("height: 1.6", "clips: {fly: broken.bvh}", DescriptionError, "broken.bvh"),
        ("ben:", "anna:", ConfigError, "anna"),
        ("world: empty", "world: empty\nrobots: {ben: {model: rover, at: [5, 5, 0]}}", ConfigError, "something else"),
        ("walk: [2, 0.5]", "walk: [2, .nan]", ConfigError, "people.yaml:4"),
    ],
)
def test_invalid_people_are_refused(tmp_path: Path, old: str, new: str, error: Any, message: str) -> None:
    (tmp_path / "broken.bvh").write_text("HIERARCHY\n")
    with pytest.raises(error) as caught:
        check_scenario(write(tmp_path, SCENARIO.replace(old, new, 1)))
    assert message in str(caught.value)


class Asking(Node):
    """Asks for goals, and keeps what comes of them."""

    def setup(self) -> None:
        self.move = self.action_client("/anna/movement", action.ActorMovement)
        self.show = self.action_client("/anna/animation", action.ActorAnimation)
        self.feedback: list[tuple[int, Any]] = []
        self.states: list[tuple[int, str]] = []
        self.subscribe("/anna/state", msg.PersonState, lambda said: self.states.append((self.now_ns, said.state)))

    def walk(self, x: float, y: float, yaw: float | None = None, name: str = "walk") -> GoalFuture:
        target = pose_to_msg(SE2(0.0, y, yaw or 0.0))
        target.position.x = x
        if yaw is None:
            target.orientation = msg.Quaternion(x=0.0, y=0.0, z=0.0, w=0.0)
        goal = action.ActorMovement.Goal(animation_name=name, animation_distance=1.1, target=target)
        return self.move.send(goal, lambda said: self.feedback.append((self.now_ns, said)))

    def animate(self, name: str, place: tuple[float, float, float] | None = None) -> GoalFuture:
        goal = action.ActorAnimation.Goal(
            animation_name=name,
            animation_speed=1.0,
            reach=place is not None,
            place=msg.Point(*(place or (0.0, 0.0, 0.0))),
        )
        return self.show.send(goal, lambda said: self.feedback.append((self.now_ns, said)))


def test_actions_of_a_person_exclude_each_other() -> None:
    with Run("empty", record=False) as run:
        run.add_person("anna", at=(0.0, 0.0, 0.0))
        asking = Asking()
        run.add_node(asking, "asking")
        run.run_for(0.1)
        walk = asking.walk(2.0, 0.0, math.pi / 2.0)
        run.run_for(0.5)
        assert walk.accepted
        assert asking.states[-1][1] == "movement"
        for other in (asking.animate("wave"), asking.walk(0.0, 0.0)):
            run.run_for(0.1)
            assert other.accepted is False
            assert other.cause == "busy"
            assert "movement" in other.reason
        assert run.until(walk.done, 20.0)
        assert walk.succeeded
        assert walk.result.success
        assert pose_to_se2(walk.result.pose).theta == pytest.approx(math.pi / 2.0, abs=0.04)
        times = np.array([time for time, _ in asking.feedback])
        assert np.all(np.diff(times) == 20_000_000)  # at every step
        x = [said.pose.position.x for _, said in asking.feedback]
        assert x == sorted(x)
        asking.feedback.clear()
        wave = asking.animate("wave")
        run.run_for(1.0)
        progress = [said.progress for _, said in asking.feedback]
        assert progress == sorted(progress)
        assert 0.2 < progress[-1] < 0.5
        wave.cancel()
        run.run_for(0.2)
        assert wave.done()
        assert not wave.succeeded
        assert asking.states[-1][1] == "idle"
        for goal, cause in (
            (asking.animate("fly"), "unknown"),
            (asking.walk(1.0, 0.0, name="wave"), "invalid"),
            (asking.animate("reach", (9.0, 0.0, 1.0)), "unreachable"),
            (asking.walk(math.inf, 0.0), "invalid"),
        ):
            run.run_for(0.1)
            assert (goal.accepted, goal.cause) == (False, cause)
        reach = asking.animate("reach", (2.2, 0.5, 1.1))
        assert run.until(reach.done, 10.0)
        assert reach.succeeded


def test_truth_has_places_and_forces_of_the_body() -> None:
    bodies: list[Any] = []
    with Run("empty", record=False) as run:
        run.add_person("anna", at=(0.5, 0.0, 0.0), height=1.8)
        node = Node()
        run.add_node(node, "listener")
        node.subscribe("/truth/anna/body", msg.PersonBody, bodies.append)
        run.run_for(0.3)
        body = bodies[-1]
        capsules = {
            part: np.array(vector_to_array(pose.position)) for part, pose in zip(body.parts, body.poses, strict=True)
        }
        assert capsules["head"][2] == pytest.approx(0.935 * 1.8, abs=0.03)
        assert capsules["left_hand"][1] > 0.2
        assert len(body.radii) == len(body.lengths) == len(body.forces) == len(body.parts) == 17
        place = run.simulation.truth("anna").pose
        assert np.allclose(place.xyz[:2], (0.5, 0.0), atol=0.03)
        chest = capsules["chest"]
        run.simulation.add(ball(mass=5.0), "ball", SE3(translation=(chest[0] + 0.5, chest[1], chest[2] + 0.1)))
        dof = run.simulation.model.body_dofadr[run.simulation.placement("ball").bodies[0]]
        run.simulation.data.qvel[dof] = -3.0
        bodies.clear()
        largest = 0.0
        for _ in range(200):
            run.run_for(0.002)
            largest = max(largest, float(np.linalg.norm(run.simulation.flesh.forces("anna")["chest"])))
        assert largest > 200.0
        struck = max(bodies, key=lambda said: float(np.linalg.norm(vector_to_array(said.forces[2]))))
        assert np.linalg.norm(vector_to_array(struck.forces[2])) == pytest.approx(largest)
        assert struck.regions[2] == "chest"  # from ahead
        assert struck.regions[4] == ""


def test_walking_person_avoids_robots_and_people() -> None:
    with Run("empty", record=False) as run:
        run.add("rover", at=(2.0, 0.0, 0.0))
        run.add_person("anna", at=(0.0, 0.0, 0.0))
        run.add_person("ben", at=(4.0, 0.1, 0.0))
        asking = Asking()
        run.add_node(asking, "asking")
        run.run_for(0.1)
        walk = asking.walk(6.0, 0.0)
        places = []
        while not walk.done():
            run.run_for(0.1)
            places.append(run.people["anna"].person.place[:2])
        assert walk.succeeded
        off = np.array(places)
        assert np.hypot(*(off - [2.0, 0.0]).T).min() > 0.5
        assert np.hypot(*(off - [4.0, 0.1]).T).min() > 0.45
        onto = asking.walk(4.0, 0.1)
        assert run.until(onto.done, 20.0)
        assert onto.succeeded, "nobody is a wall"


def test_people_are_added_and_removed_during_a_run() -> None:
    with Run("empty", record=False) as run:
        run.run_for(0.1)
        run.add_person("anna", at=(1.0, 0.0, 0.0))
        run.run_for(0.1)
        run.add_person("ben", at=(2.0, 0.0, 0.0))
        run.run_for(0.1)
        run.remove("anna")
        run.run_for(0.1)
        assert list(run.people) == ["ben"]
        with pytest.raises(InputError, match="already"):
            run.add_person("ben")


@pytest.mark.slow
def test_strolling_people_keep_distance(tmp_path: Path) -> None:
    text = """\
world: corridor
people:
  anna: {at: [1, 0.1, 0], stroll: [[7, 0], [1, 0]]}
  ben: {at: [6, 0, 3.14], stroll: [[0, 0], [6, 0]]}
duration: 6
"""
    spec, state = load_spec(write(tmp_path, text)), tmp_path / "kept.state"
    outcome = run_scenario(spec, out=tmp_path / "whole", save_states=[(2.1, state)], report=False, serve=False)
    assert outcome.state == "done", outcome.error
    run_scenario(spec, out=tmp_path / "again", from_state=state, report=False, serve=False)
    whole, again = (tmp_path / name / "recording.mcap" for name in ("whole", "again"))
    assert whole.read_bytes() == again.read_bytes()
    ways: dict[str, list[tuple[float, float]]] = {}
    with open_recording(tmp_path / "whole") as recording:
        for item in recording.messages(["/truth/anna/pose", "/truth/ben/pose"]):
            ways.setdefault(item.topic, []).append((item.message.pose.position.x, item.message.pose.position.y))
    anna, ben = (np.array(way) for way in ways.values())
    assert np.linalg.norm(anna - ben, axis=1).min() > 0.5
    assert anna[-1, 0] > 5.0
    assert ben[-1, 0] < 2.0


def test_remote_client_sends_goals_to_a_person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with Run("empty", record=False) as run:
        run.add_person("anna", at=(0.0, 0.0, 0.0))
        server = SocketServer(run.bus, "yard")
        run.bus.executor.pacer.factor = 20.0
        thread = Thread(target=lambda: run.bus.executor.run_until(10**16))
        thread.start()
        try:
            with RemoteBus("yard") as bus:
                asking = bus.add(Asking(), "asking")
                bus.spin(timeout=20.0, until=lambda: bool(asking.states))
                walk = asking.walk(0.6, 0.0)
                bus.spin(timeout=20.0, until=lambda: len(asking.feedback) > 3)
                wave = asking.animate("wave")
                bus.spin(timeout=20.0, until=lambda: walk.done() and wave.done())
                assert walk.succeeded
                assert wave.accepted is False
                assert wave.cause == "busy"
                assert len(asking.feedback) > 10
                bus.spin(timeout=20.0, until=lambda: asking.states[-1][1] == "idle")
                assert asking.states[-1][1] == "idle"
        finally:
            run.bus.executor.stop()
            thread.join()
            server.close()
