"""People: forces of impacts by the formula of two bodies and a spring, feet that slide, hands that miss, and what ten
people cost."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from roboyard.geometry import quaternions
from roboyard.people import PARTS as BODY
from roboyard.people import BodyDimensions, Person, PersonGoalError, Skeleton, make_person_model
from roboyard.people.clip import BALL, FEET, HEEL
from roboyard.people.clip_library import builtin_clip_names, find_clip, load_builtin_clip
from roboyard.scenarios import Run
from roboyard.scenarios.people import PersonConfig
from roboyard.simulation.validation.mechanics import simulate_impact

TIMESTEP = 0.001
"""At which impacts are measured [s]."""
DT = 0.02
PEOPLE = 10


def impacts(nightly: bool) -> list[dict[str, Any]]:
    """The largest error of each part's impacts, from ahead and from behind, by balls of three masses."""
    body = make_person_model(BodyDimensions.from_height(1.75))
    speeds = (0.25, 0.5, 1.0) if nightly else (0.5,)
    found = []
    for part in BODY:
        hits = [
            simulate_impact(body, part, front=front, mass=mass, speed=speed, timestep=TIMESTEP)
            for front in (True, False)
            for mass in (2.0, 5.0, 10.0)
            for speed in speeds
        ]
        worst = max(hits, key=lambda hit: hit.relative_error)
        name = part.replace("_", " ")
        about = f"impact on the {name}: error of the largest force, {worst.expected_force:.0f} N by the formula"
        found.append({"name": about, "value": round(100.0 * worst.relative_error, 2), "unit": "%", "target": "<= 5"})
    return found


def slide(person: Person) -> float:
    """The farthest that a resting point of a sole goes while it rests, until a goal is done and two seconds on [m]."""
    worst, starts, left = 0.0, {}, math.inf
    while left > 0.0:
        left = 2.0 if person.has_ended_goal else left - DT
        places, turns = person.step(DT)
        rests = person.animation_player.foot_contacts()
        for side, foot in enumerate(FEET):
            for what, point in enumerate((HEEL, BALL)):
                there = places[foot] + quaternions.rotate(turns[foot], person.animation_player.height * np.array(point))
                if rests[side] != what:
                    starts.pop((side, what), None)
                    continue
                start = starts.setdefault((side, what), there)
                worst = max(worst, float(np.hypot(*(there - start)[:2])))
    return worst


def feet(nightly: bool) -> list[dict[str, Any]]:
    """How far feet slide, of people of several sizes who walk about, turn, carry, and show every clip."""
    rng = np.random.default_rng(1)
    walks, shows = [], []
    for height in (1.5, 1.75, 1.95):
        person = Person(Skeleton.from_dimensions(BodyDimensions.from_height(height)), (0.0, 0.0, 0.0), find_clip)
        person.step(DT)
        for _ in range(40 if nightly else 8):
            x, y, yaw = rng.uniform(-4.0, 4.0, 3)
            clip = ("walk", "carry")[int(rng.integers(2))]
            person.walk(clip, float(rng.uniform(0.5, 0.8)) * height, (float(x), float(y)), float(yaw) * 0.7)
            walks.append(slide(person))
        for name in builtin_clip_names():
            if not load_builtin_clip(name).travel_per_period and not load_builtin_clip(name).yaw_per_period:
                person.animate(name, 1.5)
                shows.append(slide(person))
    return [
        {"name": f"a foot slides in {len(walks)} walks with turns", "value": round(1e3 * max(walks), 3), "unit": "mm",
         "target": "<= 20"},
        {"name": f"a foot slides in {len(shows)} clips", "value": round(1e3 * max(shows), 3), "unit": "mm",
         "target": "<= 20"},
    ]  # fmt: skip


def hands(nightly: bool) -> list[dict[str, Any]]:
    """How far hands miss the places they are sent to, which lie about a person from the floor to overhead."""
    rng = np.random.default_rng(2)
    missed, refused = [], 0
    person = Person(Skeleton.from_dimensions(BodyDimensions.from_height(1.75)), (0.0, 0.0, 0.0), find_clip)
    person.step(DT)
    for k in range(300 if nightly else 60):
        hand = ("left", "right")[k % 2]
        side = 1.0 if hand == "left" else -1.0
        away, bearing = rng.uniform(0.3, 0.6), math.radians(rng.uniform(-10.0, 50.0)) * side
        place = np.array([away * math.cos(bearing), away * math.sin(bearing), rng.uniform(0.2, 1.7)])
        try:
            person.animate("reach", 2.0, place, hand)
        except PersonGoalError:
            refused += 1
            continue
        nearest = math.inf
        while not person.has_ended_goal:
            places, turns = person.step(DT)
            nearest = min(
                nearest, float(np.linalg.norm(person.animation_player.grip_position(places, turns, hand) - place))
            )
        missed.append(nearest)
        for _ in range(25):
            person.step(DT)
    share = round(100.0 * refused / (len(missed) + refused), 1)
    return [
        {"name": f"a hand misses its place, {len(missed)} reached", "value": round(1e3 * max(missed), 3), "unit": "mm",
         "target": "<= 20"},
        {"name": "places about a person that are out of reach", "value": share, "unit": "%"},
    ]  # fmt: skip


def step_time(people: int, seconds: float) -> float:
    """Processor time of a physics step of 2 ms of the rover in the arena, people walking about included [ms]."""
    with Run("arena", record=False, timestep=0.002) as run:
        run.add_robot("rover", pose=(0.0, 0.0, 0.0))
        for k in range(people):
            y = -0.9 * (k - 0.5 * (people - 1))
            back_and_forth = ({"walk": (4.0, y)}, {"walk": (1.5, y)})
            entry = PersonConfig(
                pose=(1.5, y, 0.0), schedule=tuple(_errand(one) for one in back_and_forth), repeat=True
            )
            run.add_person(f"person{k}", entry)
        run.run_for(1.0)
        start = time.process_time()  # a machine that others use takes longer, but no more of this
        run.run_for(seconds)
        return 1e3 * (time.process_time() - start) / (seconds / 0.002)


def _errand(said: dict[str, Any]) -> Any:
    from roboyard.scenarios.nodes.actors import PersonTask

    return PersonTask(**said)


def cost(nightly: bool) -> list[dict[str, Any]]:
    """What ten people who walk add to a step: the least of several turns, taken in alternation."""
    rounds, seconds = (6, 8.0) if nightly else (4, 4.0)
    alone, together = [], []
    for _ in range(rounds):
        alone.append(step_time(0, seconds))
        together.append(step_time(PEOPLE, seconds))
    added = round(min(together) - min(alone), 4)
    return [
        {"name": f"a step of the rover, {PEOPLE} people added", "value": added, "unit": "ms", "target": "<= 0.3"},
        {"name": "a step of the rover alone", "value": round(min(alone), 4), "unit": "ms"},
    ]  # fmt: skip


PARTS = (impacts, feet, hands, cost)
