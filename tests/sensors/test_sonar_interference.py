"""Sonars among sonars: cross-talk, late echoes and the echo's threshold against the geometry of sound."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.harness.models import free_box, make_pose, make_world, static_box
from tests.harness.simulations import SimulationHarness

from roboyard.description.model import PlacedModel
from roboyard.description.sensors import Outage, Sensor, SonarSpec
from roboyard.geometry import SE3
from roboyard.sensors.sonar import detect_echo
from roboyard.simulation import Simulation
from roboyard.simulation.faults import PowerFault

SOUND = 343.0
STEP = 5e-4
"""Physics steps are short here: pulses leave at whole steps, and sound goes 0.17 m in one."""
PLAIN = SonarSpec(range_max=4.0)


def sonar(spec: SonarSpec = PLAIN, *, rate: float = 20.0, **more: Any) -> Sensor:
    return Sensor("ear", "sonar", "body", make_pose(0.21), rate, "ear", "body", spec, **more)


def range_of(sim: Simulation, name: str = "a") -> float:
    return float(sim.sensors(name)[0].read().range)


def pair(
    first: Sensor, second: Sensor, T_a: SE3, T_b: SE3, *others: PlacedModel, seconds: float = 0.2, seed: int = 0
) -> Simulation:
    """Two crates that hang in the air, each with a sonar, at a time at which the first one sends."""
    sim = Simulation(make_world(*others, gravity=0.0), timestep=STEP, seed=seed)
    for name, one, T in (("a", first, T_a), ("b", second, T_b)):
        sim.add(free_box(sensors=(one,)), name, T)
    sim.advance_to(round(seconds * 1e9))
    return sim


def facing(distance: float, second: Sensor, *others: PlacedModel, first: Sensor | None = None) -> Simulation:
    """Sonars `distance` apart that look at each other."""
    half = distance / 2 + 0.21
    return pair(first or sonar(), second, make_pose(-half), make_pose(half, yaw=math.pi), *others)


# -- cross-talk --------------------------------------------------------------------------------------------------------
@settings(max_examples=25, deadline=None)
@given(st.floats(0.5, 3.5), st.integers(-20, 40))
def test_pulse_of_a_facing_sonar_arrives_after_half_its_path(distance: float, steps: int) -> None:
    """Sent ``late`` after ours, it is taken for an echo from ``(D + c late)/2`` if nothing was heard before that."""
    late = steps * STEP
    phase = late % 0.05
    believed = 0.5 * (distance + SOUND * late)
    assume(believed > PLAIN.range_min + 1e-3)
    expected = min(distance + 0.01, believed)  # the other's crate begins 1 cm behind its sonar
    assert range_of(facing(distance, sonar(phase=phase))) == pytest.approx(expected, abs=0.01)


@settings(max_examples=15, deadline=None)
@given(st.floats(1.5, 3.0), st.floats(0.42, 0.6), st.integers(2, 16))
def test_neighbor_pulse_returns_from_the_wall_as_from_a_mirror(d: float, spacing: float, steps: int) -> None:
    """The other sent earlier; the way from its image behind the wall is sqrt((2 d)² + b²)."""
    early = steps * STEP
    path_length = math.hypot(2 * d, spacing)
    assume(path_length - SOUND * early > 2 * PLAIN.range_min + 0.05)
    wall = static_box("wall", (0.1, 12, 8), make_pose(d + 0.05 + 0.21))
    sim = pair(sonar(), sonar(phase=0.05 - early), make_pose(), make_pose(y=spacing), wall)
    assert range_of(sim) == pytest.approx(0.5 * (path_length - SOUND * early), rel=0.03)


@settings(max_examples=15, deadline=None)
@given(
    st.floats(0.3, 3.9), st.floats(-1.0, 1.0), st.floats(-0.6, 0.6), st.floats(0.0, 3.0),
    st.sampled_from(["turns", "frequency", "outage", "power", "behind"]),
)  # fmt: skip
def test_sonars_with_turns_or_other_codes_do_not_interfere(
    wall_at: float, y: float, yaw: float, x: float, separation: str
) -> None:
    """Whatever stands where: the reading is the same to the last bit as if the other had no sonar."""
    wall = static_box("wall", (0.1, 12, 8), make_pose(wall_at + 0.26))
    other = {
        "turns": sonar(phase=0.025),  # sound of 4 m takes 23 ms there and back
        "frequency": sonar(replace(PLAIN, frequency=PLAIN.frequency * 1.2)),
        "outage": sonar(outage=Outage(mean_interval=1e-9, mean_duration=1e6)),
        "power": sonar(),
        "behind": sonar(),
    }[separation]
    other_pose = (
        make_pose(-x - 1.0, y, yaw=math.pi + yaw)
        if separation == "behind"
        else make_pose(x, y + math.copysign(0.6, y), yaw=yaw)
    )
    crowd = pair(sonar(), other, make_pose(), other_pose, wall)
    if separation == "power":
        crowd.faults.start("flat", PowerFault("b"))
    alone = Simulation(make_world(wall, gravity=0.0), timestep=STEP)
    alone.add(free_box(sensors=(sonar(),)), "a", make_pose())
    alone.add(free_box(), "b", other_pose)
    alone.advance_to(200_000_000)
    assert range_of(crowd) == range_of(alone)


def test_obstacle_between_sonars_blocks_cross_talk() -> None:
    screen = static_box("screen", (0.05, 4, 4), make_pose())
    assert range_of(facing(3.0, sonar())) == pytest.approx(1.5, abs=0.01)
    assert range_of(facing(3.0, sonar(), screen)) == pytest.approx(1.5 - 0.025, abs=0.01)
    quick = sonar(phase=0.05 - 0.002)  # 2 ms earlier: from 1.16 m, if it came
    assert range_of(facing(3.0, quick)) == pytest.approx(1.5 - 0.5 * SOUND * 0.002, abs=0.01)
    assert range_of(facing(3.0, quick, screen)) == pytest.approx(1.5 - 0.025, abs=0.01)


@pytest.mark.parametrize("phase", [0.0, 0.025])
def test_sonar_ring_interferes_unless_it_takes_turns(phase: float) -> None:
    """The messages of a run: two that look at each other measure half of the distance, or all of it."""
    sim = facing(3.0, sonar(phase=phase))
    second_simulation = Simulation(sim.environment, timestep=STEP)
    for name, one, T in (("a", sonar(), make_pose(-1.71)), ("b", sonar(phase=phase), make_pose(1.71, yaw=math.pi))):
        second_simulation.add(free_box(sensors=(one,)), name, T, namespace=name)
    with SimulationHarness(second_simulation) as harness:
        harness.run_for(1.01)
        found = [[message.range for message in harness.published(f"/{name}/ear").messages] for name in ("a", "b")]
    for ranges in found:
        assert len(ranges) == pytest.approx(20, abs=1)
        np.testing.assert_allclose(ranges, 3.0 if phase else 1.5, atol=0.01)


# -- its own pulses ----------------------------------------------------------------------------------------------------
@settings(max_examples=25, deadline=None)
@given(st.floats(0.4, 4.9), st.sampled_from([40.0, 50.0, 80.0, 100.0]))
def test_echo_later_than_one_period_arrives_with_the_next_pulse(distance: float, rate: float) -> None:
    """The unambiguous range is c/(2 f); what lies beyond is taken modulo that, but not before a second pulse."""
    spec = replace(PLAIN, range_max=5.0)
    wall = static_box("wall", (0.1, 12, 8), make_pose(distance + 0.26))
    sim = Simulation(make_world(wall, gravity=0.0), timestep=STEP)
    sim.add(free_box(sensors=(sonar(spec, rate=rate),)), "a", make_pose())
    assert range_of(sim) == pytest.approx(distance, rel=2e-3)
    sim.advance_to(500_000_000)
    clear = 0.5 * SOUND / rate
    expected = distance % clear
    assume(min(expected, clear - expected) > spec.range_min + 0.01)
    assert range_of(sim) == pytest.approx(expected, abs=0.01)


# -- threshold ---------------------------------------------------------------------------------------------------------
@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0.1, 10.0), st.floats(1e-3, 3.0)), min_size=1, max_size=8),
    st.floats(0.01, 0.5), st.lists(st.floats(0.0, 4.0), min_size=2, max_size=2),
)  # fmt: skip
def test_echo_energy_accumulates_to_the_threshold(
    arrivals: list[tuple[float, float]], pulse: float, thresholds: list[float]
) -> None:
    path_lengths, energies = np.array(arrivals).T
    low, high = sorted(thresholds)
    first, later = (detect_echo(path_lengths, energies, pulse, limit) for limit in (low, high))
    assert first <= later * (1.0 + 1e-12)  # a higher threshold is not reached earlier, but for rounding
    for limit, found in ((low, first), (high, later)):
        if math.isinf(found):
            assert limit > np.sum(energies) * (1 - 1e-9)
        elif limit == 0.0:
            assert found == np.min(path_lengths)
        else:
            gained = float(np.sum(energies * np.clip((found - path_lengths) / pulse, 0.0, 1.0)))
            assert gained == pytest.approx(limit, rel=1e-6, abs=1e-12)  # tiny limits are reached within rounding


@pytest.mark.parametrize("distance", [0.5, 1.5, 3.0])
def test_wall_echo_is_late_by_part_of_the_pulse(distance: float) -> None:
    """A wall at d returns (R/d)² of what one at the largest range R does, so that much less of the pulse is enough."""
    spec = SonarSpec(range_max=4.0, half_angle=0.01, frequency=49.4e3, burst_cycles=16, detection_threshold=0.3)
    length = SOUND * spec.burst_cycles / spec.frequency
    wall = static_box("wall", (0.1, 12, 8), make_pose(distance + 0.26))
    sim = Simulation(make_world(wall, gravity=0.0))
    sim.add(free_box(sensors=(sonar(spec),)), "a", make_pose())
    late = 0.5 * length * spec.detection_threshold * (distance / spec.range_max) ** 2
    assert range_of(sim) - distance == pytest.approx(late, rel=0.02, abs=2e-4)


def test_thin_post_is_detected_at_short_range_only() -> None:
    """Its share of the cone shrinks with distance, a wall's does not."""
    spec = SonarSpec(range_max=6.0, half_angle=0.2, detection_threshold=0.3)

    def post(distance: float, width: float) -> float:
        box = static_box("post", (0.02, width, 0.1), make_pose(distance + 0.22))
        sim = Simulation(make_world(box, gravity=0.0))
        sim.add(free_box(sensors=(sonar(spec),)), "a", make_pose())
        return range_of(sim)

    assert post(1.0, 0.1) == pytest.approx(1.0, abs=0.1)
    assert math.isinf(post(4.0, 0.1))
    assert math.isfinite(post(4.0, 4.0)) is False  # 0.1 m high all the same
    wall = static_box("wall", (0.1, 12, 8), make_pose(5.5 + 0.26))
    sim = Simulation(make_world(wall, gravity=0.0))
    sim.add(free_box(sensors=(sonar(spec),)), "a", make_pose())
    assert range_of(sim) == pytest.approx(5.5, abs=0.1)


# -- state -------------------------------------------------------------------------------------------------------------
def test_sonar_readings_continue_from_a_saved_state() -> None:
    def ranges(sim: Simulation) -> list[float]:
        found = []
        for _ in range(30):
            sim.step(10)
            found += [range_of(sim, "a"), range_of(sim, "b")]
        return found

    sim = facing(2.0, sonar(rate=70.0), first=sonar(replace(PLAIN, dropout_probability=0.1)))
    range_of(sim)
    saved = sim.save_state()
    expected = ranges(sim)
    assert len({round(one, 3) for one in expected}) > 3  # at other rates the other's pulse wanders through
    sim.load_state(saved)
    assert ranges(sim) == expected
