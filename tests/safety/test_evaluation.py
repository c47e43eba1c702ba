"""People approach a working arm: effects of the safety modes, measured from the truth."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.harness.scenarios import recording_digest

from roboyard.bringup.joint_groups import load_joint_groups
from roboyard.messages import msg, time_to_msg
from roboyard.people import PARTS
from roboyard.safety.collaborative.capsules import LinkCapsules
from roboyard.safety.evaluation import ArmState, BinnedMinimum, CollaborativeSafetyMetrics, approaches_figure
from roboyard.scenarios import RunResult, load_scenario, run_scenario
from roboyard.scenarios.run_options import RunOptions, SnapshotRequest

GROUPS = load_joint_groups("iisy")
CHAIN = GROUPS.chain("arm")
CAPSULES = LinkCapsules.from_model(GROUPS.model, CHAIN)
HOME = np.array(GROUPS.group("arm").pose("home"))


def run(out: Path | None, *overrides: str, seed: int = 0, **options: object) -> RunResult:
    """Run the scenario to its end into a folder, or without files."""
    spec = load_scenario("cell-approach", overrides=[f"seed={seed}", *overrides])
    run_options = RunOptions(out=out, write_files=out is not None, serve=False, **options)  # type: ignore[arg-type]
    outcome = run_scenario(spec, run_options)
    assert outcome.state == "done", outcome.error
    return outcome


@cache
def measure(seed: int, person_sensing: str = "ground_truth", safety: str = "ssm") -> dict[str, Any]:
    """Metrics of a whole run; each is run once."""
    return run(None, f"person_sensing={person_sensing}", f"safety={safety}", seed=seed).metrics


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "observed"),
    [(0, "ground_truth"), (1, "ground_truth"), (2, "ground_truth"), (3, "ground_truth"), (0, "depth_camera")],
)
def test_separation_monitoring_prevents_violations(seed: int, observed: str) -> None:
    found = measure(seed, observed)
    assert found["ssm_violation_s"] == 0.0
    assert found["limit_exceeded"] == 0
    assert found["protective_stops"] >= 2
    assert found["arm_reached"] >= 1


@pytest.mark.slow
def test_guard_modes_differ_in_violations_and_cycles() -> None:
    modes = ("off", "zones", "ssm", "pfl")
    found = {mode: measure(1, safety=mode) for mode in modes}
    assert found["off"]["ssm_violation_s"] > 5.0
    assert found["off"]["protective_stops"] == 0
    assert found["zones"]["ssm_violation_s"] == found["ssm"]["ssm_violation_s"] == 0.0
    assert found["pfl"]["limit_exceeded"] == 0
    assert found["off"]["arm_reached"] > found["pfl"]["arm_reached"] >= found["zones"]["arm_reached"]


@pytest.mark.slow
def test_guard_protects_people_from_a_jogged_arm() -> None:
    found = {}
    for mode in ("ssm", "off"):
        spec = load_scenario("cell-jogging", overrides=["seed=0", f"safety={mode}", "duration=30 s"])
        found[mode] = run_scenario(spec, RunOptions(write_files=False, serve=False)).metrics
    assert found["ssm"]["ssm_violation_s"] == 0.0
    assert found["ssm"]["protective_stops"] >= 1
    assert found["ssm"]["limit_exceeded"] == 0
    assert found["ssm"]["robot_idle"] < 0.9
    assert found["off"]["ssm_violation_s"] > 2.0


def test_guarded_run_goes_on_from_a_state(tmp_path: Path) -> None:
    state = tmp_path / "2.5.state"
    run(tmp_path / "whole", "duration=4 s", snapshots=(SnapshotRequest(2.5, state),), write_report=False)
    spec = load_scenario("cell-approach", overrides=["seed=0", "duration=4 s"])
    run_scenario(spec, RunOptions(out=tmp_path / "rest", from_snapshot=state, write_report=False, serve=False))
    assert recording_digest(tmp_path / "rest") == recording_digest(tmp_path / "whole")


# -- the measure, on what tests make up --------------------------------------------------------------------------------
class LeaningArm:
    """The truth about an arm that leans forward at a speed [rad/s]."""

    def __init__(self, speed: float = 0.0) -> None:
        from roboyard.geometry import SE3

        self.moving = ArmState(CHAIN, CAPSULES, SE3.identity(), HOME, np.array([0.0, speed, 0.0, 0.0, 0.0, 0.0]))

    def state(self) -> ArmState:
        return self.moving


def body(time: float, x: float, force: float = 0.0, part: str = "chest") -> object:
    forces = [msg.Vector3(x=force) if name == part else msg.Vector3() for name in PARTS]
    return msg.PersonBody(
        header=msg.Header(stamp=time_to_msg(round(time * 1e9)), frame_id="world"), name="anna", parts=list(PARTS),
        poses=[msg.Pose(msg.Point(x, 0.0, 0.5), msg.Quaternion(0.0, 0.0, 0.0, 1.0)) for _ in PARTS],
        radii=np.full(len(PARTS), 0.1), lengths=np.full(len(PARTS), 0.3),
        velocities=[msg.Vector3() for _ in PARTS], peak_forces=forces,
        contact_regions=["chest" if name == part and force else "" for name in PARTS],
    )  # fmt: skip


def measure_people(arm: LeaningArm, *rows: tuple[float, float, float]) -> CollaborativeSafetyMetrics:
    """What is measured of a person: (time, x, force)."""
    people = CollaborativeSafetyMetrics("", arm)  # type: ignore[arg-type]
    for time, x, force in rows:
        people.on_body(body(time, x, force), round(time * 1e9))
    people.finish(round(rows[-1][0] * 1e9))
    return people


def near_for_a_second(x: float) -> list[tuple[float, float, float]]:
    return [(0.1 * k, x, 0.0) for k in range(11)]


def test_only_a_fast_arm_near_a_person_violates() -> None:
    assert measure_people(LeaningArm(0.5), *near_for_a_second(0.9)).values()["ssm_violation_s"] == pytest.approx(1.0)
    assert measure_people(LeaningArm(0.5), *near_for_a_second(9.0)).values()["ssm_violation_s"] == 0.0
    assert measure_people(LeaningArm(0.0), *near_for_a_second(0.9)).values()["ssm_violation_s"] == 0.0
    assert measure_people(LeaningArm(0.01), *near_for_a_second(0.9)).values()["ssm_violation_s"] == 0.0


def test_only_approaches_nearer_than_the_protective_distance_are_events() -> None:
    distant = (1.1, 9.0, 0.0)
    people = measure_people(LeaningArm(0.5), *near_for_a_second(0.6), distant)
    (approach,) = people.approaches
    assert approach.distance < approach.protective_distance
    (event,) = people.events()
    assert (event.time, event.kind) == (approach.time, "person_approach")
    assert "anna" in event.text
    assert f"{approach.protective_distance:.3f} m" in event.text
    assert measure_people(LeaningArm(0.5), *near_for_a_second(9.0)).events() == []


def test_handovers_are_excluded_and_counted() -> None:
    people = CollaborativeSafetyMetrics("", LeaningArm(0.5))  # type: ignore[arg-type]
    for time, x, _ in near_for_a_second(0.9):
        people.subscriptions()["/handover"](msg.Bool(data=0.25 < time < 0.75), 0)
        people.on_body(body(time, x), round(time * 1e9))
    found = people.values()
    assert found["handover_s"] == pytest.approx(0.5)
    assert found["ssm_violation_s"] == pytest.approx(0.5)


def test_guiding_person_is_excluded_but_others_count() -> None:
    for guided, others, expected in ((False, 9.0, 1.0), (True, 9.0, 0.0), (True, 0.9, 1.0)):
        people = CollaborativeSafetyMetrics("", LeaningArm(0.5))  # type: ignore[arg-type]
        for k in range(11):
            people.subscriptions()["/hand_guiding/enable"](msg.Bool(data=guided), round(1e8 * k))
            for name, x in (("anna", 0.6), ("ben", others)):
                other_person = body(0.1 * k, x)
                other_person.name = name
                people.on_body(other_person, round(1e8 * k))
        assert people.values()["ssm_violation_s"] == pytest.approx(expected)


def test_last_moment_of_a_handover_is_excluded() -> None:
    people = CollaborativeSafetyMetrics("", LeaningArm(0.5))  # type: ignore[arg-type]
    for time, x in ((0.0, 0.9), (0.1, 0.9), (0.2, 9.0)):
        people.subscriptions()["/handover"](msg.Bool(data=time < 0.2), 0)
        people.on_body(body(time, x), round(time * 1e9))
    assert people.values()["ssm_violation_s"] == 0.0
    assert people.values()["handover_s"] == pytest.approx(0.2)


def test_missing_bodies_are_no_violation() -> None:
    found = measure_people(LeaningArm(0.5), (0.0, 0.9, 0.0), (2.0, 0.9, 0.0)).values()
    assert found["ssm_violation_s"] <= 0.26


def test_force_limits_depend_on_region_duration_and_cause() -> None:
    touching = 0.55
    for force, exceeded in ((100.0, 0), (180.0, 0), (300.0, 1)):
        found = measure_people(LeaningArm(0.5), (0.0, touching, 0.0), (0.1, touching, force)).values()
        assert (found["max_force_n"], found["person_touches"]) == (force, 1)
        assert found["limit_exceeded"] == exceeded, "210 N for an impact on the chest"
        assert found["limit_ratio"] >= force / 210.0
        assert (found["limit_ratio"] > 1.0) == bool(exceeded)
    lasting = [(0.1 * k, touching, 180.0) for k in range(10)]
    assert measure_people(LeaningArm(0.5), *lasting).values()["limit_exceeded"] == 1, "140 N where it is clamped"
    assert measure_people(LeaningArm(0.0), (0.0, touching, 0.0), (0.1, touching, 300.0)).values()["limit_exceeded"] == 0
    assert measure_people(LeaningArm(0.5), (0.0, 3.0, 0.0), (0.1, 3.0, 300.0)).values()["max_force_n"] == 0.0


def test_approaches_keep_their_nearest_moment() -> None:
    distances = [2.0, 1.0, 0.7, 0.6, 0.8, 2.0, 0.9, 0.8, 0.9]
    people = measure_people(LeaningArm(), *((0.1 * k, x, 0.0) for k, x in enumerate(distances)))
    assert [round(one.time, 1) for one in people.approaches] == [0.3, 0.7]
    assert people.values()["min_separation"] == pytest.approx(min(one.distance for one in people.approaches))
    repeated = CollaborativeSafetyMetrics("", LeaningArm())  # type: ignore[arg-type]
    repeated.load_state(people.save_state())
    assert repeated.approaches == people.approaches
    assert repeated.values() == people.values()


def test_run_without_people_has_no_people_metrics() -> None:
    found = CollaborativeSafetyMetrics("", LeaningArm()).values()  # type: ignore[arg-type]
    assert "ssm_violation_s" not in found
    assert "min_separation" not in found


def test_report_shows_each_approach(tmp_path: Path) -> None:
    found = run(tmp_path / "run", "duration=5 s", "people.anna.pose=[1.4, 0.1, 3.14]").metrics
    people, approaches = (found["robots"]["arm"][key] for key in ("people", "approaches"))
    assert [one["person"] for one in approaches] == ["anna"]
    assert approaches[0]["distance"] == pytest.approx(found["min_separation"], abs=1e-9)
    for group in ("head", "trunk", "arms", "hands", "legs"):
        minimum = min(value for value in people["separation"][group] if value is not None)
        assert minimum == pytest.approx(found[f"min_separation_{group}"], abs=6e-4)
    page = (tmp_path / "run" / "report.html").read_text()
    assert "People beside the arm" in page
    assert "Distance and protective distance by the safety node" in page
    several = [{**approaches[0], "time": 1.0 * k} for k in range(6)]
    assert approaches_figure(several).count("<svg") == 1


def test_spans_are_joined_in_long_runs() -> None:
    minimum = BinnedMinimum(bin_duration=1.0)
    values = np.random.default_rng(0).uniform(0.0, 1.0, 5000)
    for k, value in enumerate(values.tolist()):
        minimum.add(float(k), {"a": value} if k != 7 else {})
    values[7] = np.inf
    assert minimum.bin_duration == 32.0
    assert minimum.minima["a"] == [float(values[k : k + 32].min()) for k in range(0, 5000, 32)]
