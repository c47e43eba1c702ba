"""Things held by friction alone: they stay in the hand, and what does not is noticed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pytest
from tests.robots.grasping import FORCES, PLACES, Bench, apart, block, cylinder

import roboyard as ry
from roboyard.description.model import Model

THINGS = {
    "iisy": [
        (block((0.03, 0.01, 0.06), 0.1, 0.8), 0.06),
        (block((0.03, 0.07, 0.06), 1.5, 0.6), 0.06),
        (block((0.03, 0.04, 0.06), 2.5, 1.0), 0.06),
        (cylinder(0.06, 0.08, 1.0, 0.5), 0.08),
    ],
    "scitos_arm": [
        (block((0.03, 0.06, 0.06), 1.0, 0.5), 0.06),
        (block((0.02, 0.008, 0.05), 0.05, 0.9), 0.05),
        (cylinder(0.03, 0.08, 0.3, 0.4), 0.08),
    ],
    "youbot_arm": [
        (block((0.02, 0.016, 0.04), 0.5, 1.0), 0.04),
        (cylinder(0.022, 0.04, 0.05, 0.6), 0.04),
        (cylinder(0.018, 0.04, 0.2, 0.8), 0.04),
    ],
}
CASES = [(name, index) for name, things in THINGS.items() for index in range(len(things))]


@pytest.fixture
def bench() -> Iterator[Callable[..., Bench]]:
    with ry.Run("empty", record=False) as run:
        yield lambda name, thing, height: Bench(run, name, thing, height)


@pytest.mark.parametrize(("name", "which"), CASES)
def test_what_is_gripped_stays_in_the_hand(bench: Callable[..., Bench], name: str, which: int) -> None:
    thing, height = THINGS[name][which]
    rig = bench(name, thing, height)
    goal = rig.close()
    assert goal.succeeded
    assert goal.result.stalled
    assert rig.states[-1] == "holding"
    assert goal.result.effort == pytest.approx(FORCES[name], rel=0.02)
    rig.lift()
    before = rig.in_hand()
    rig.sweep()
    rig.run.run_for(5.0)
    way, turn = apart(before, rig.in_hand())
    assert way < 1e-3
    assert turn < 1.0
    assert rig.states[-1] == "holding"
    rig.close(wait=0.4)
    assert apart(before, rig.in_hand())[0] < 1e-3, "told again what it does already, it does not let go"


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("share", [0.25, 0.6, 1.0])
def test_the_fingers_press_as_hard_as_they_are_told(bench: Callable[..., Bench], name: str, share: float) -> None:
    rig = bench(name, *THINGS[name][0])
    goal = rig.close(share * FORCES[name], wait=3.0)
    slack = 5.0 if name == "youbot_arm" else 0.0  # its screws' friction
    for force in rig.forces().values():
        assert share * FORCES[name] - 0.6 < force < share * FORCES[name] + slack + 0.6
    assert goal.result.effort == pytest.approx(share * FORCES[name], rel=0.02)
    width = THINGS[name][0][0].links[0].collisions[0].geometry.size[1]
    assert goal.result.position == pytest.approx(width, abs=0.002)


@pytest.mark.parametrize(("name", "thing"), [
    ("iisy", block((0.03, 0.04, 0.06), 1.0, 0.05)),
    ("scitos_arm", block((0.03, 0.04, 0.06), 2.0, 0.07)),
    ("youbot_arm", block((0.02, 0.016, 0.04), 0.5, 0.08)),
])  # fmt: skip
def test_what_slips_out_of_the_hand_is_noticed(bench: Callable[..., Bench], name: str, thing: Model) -> None:
    rig = bench(name, thing, thing.links[0].collisions[0].geometry.size[2])
    rig.close()
    assert rig.states[-1] == "holding"
    assert 2.0 * FORCES[name] * thing.links[0].collisions[0].surface.friction < 9.81 * thing.links[0].inertial.mass
    rig.lift()
    if name == "youbot_arm":  # its fingers cannot point down any higher
        rig.go(rig.q - (0.0, 0.7, 0.0, 0.0, 0.0))
    rig.run.run_for(3.0)
    assert rig.states[-1] == "lost"


@pytest.mark.parametrize("name", PLACES)
def test_an_empty_hand_holds_nothing_and_what_it_holds_it_lets_go(bench: Callable[..., Bench], name: str) -> None:
    rig = bench(name, *THINGS[name][0])
    rig.sim.remove("thing")
    goal = rig.close(wait=3.0)
    assert goal.succeeded
    assert goal.result.reached_goal
    assert not goal.result.stalled
    assert rig.states[-1] == "still"
    opened = rig.send(rig.gripper.width[1])
    rig.run.run_for(2.5)
    assert opened.succeeded
    assert opened.result.position == pytest.approx(rig.gripper.width[1], abs=0.0011)
    assert rig.states[-1] == "still"


@pytest.mark.parametrize("name", PLACES)
def test_what_cannot_be_is_refused_and_nothing_moves(bench: Callable[..., Bench], name: str) -> None:
    rig = bench(name, *THINGS[name][0])
    before = rig.sim.data.qpos.copy()
    low, high = rig.gripper.width
    wrong = [(math.nan, 0.0), (low - 0.002, 0.0), (high + 0.002, 0.0), (low, -1.0), (low, math.nan), (low, math.inf)]
    goals = [rig.send(*one) for one in wrong]
    rig.run.run_for(0.3)
    for goal in goals:
        assert goal.done()
        assert not goal.accepted
    assert abs(rig.sim.data.qpos - before).max() < 2e-3
    assert rig.states in ([], ["still"])


@pytest.mark.parametrize("name", PLACES)
def test_each_finger_tells_what_presses_on_it(bench: Callable[..., Bench], name: str) -> None:
    rig, felt = bench(name, *THINGS[name][0]), {"left": 0.0, "right": 0.0}
    for side in felt:
        rig.node.subscribe(
            f"/finger_{side}/force",
            ry.msg.WrenchStamped,
            lambda message, side=side: felt.__setitem__(side, message.wrench.force.y),
        )
    rig.close(0.5 * FORCES[name], wait=3.0)
    for side, force in rig.forces().items():
        assert felt[side] == pytest.approx(force if side == "left" else -force, abs=1.0), "outwards"


def test_the_strength_of_a_grip_is_saved_and_restored(bench: Callable[..., Bench]) -> None:
    rig = bench("iisy", *THINGS["iisy"][2])
    rig.close(40.0)
    saved = rig.sim.save()
    rig.sim.step(500)
    there = rig.sim.save()
    rig.close(5.0, wait=1.0)
    assert rig.forces()["left"] == pytest.approx(5.0, abs=1.0)
    rig.sim.load(saved)
    rig.sim.step(500)
    assert rig.sim.save() == there
    assert rig.forces()["left"] == pytest.approx(40.0, abs=1.0)
