"""Furniture that moves: belts carry, doors open as they say, turntables throw off what is too fast."""

from __future__ import annotations

import math
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from tests.simulation.builders import at, free_box, ground, world

from roboyard.bus import Bus
from roboyard.description import load_model
from roboyard.errors import DescriptionError
from roboyard.hardware import JointCommand
from roboyard.messages import msg, service_type
from roboyard.simulation import Simulation
from roboyard.simulation.furniture import furniture_of
from roboyard.simulation.nodes import FurnitureNode, SimulationNode

FOLDER = Path(str(resources.files("roboyard") / "worlds" / "furniture"))
NAMES = sorted(path.stem for path in FOLDER.glob("*.sdf"))
G = 9.8


def moving(name: str, start: float = 0.0) -> tuple[Bus, Simulation, FurnitureNode]:
    sim = Simulation(world(ground()))
    model = load_model(FOLDER / f"{name}.sdf")
    sim.add(model, name, robot=False)
    bus = Bus()
    bus.add(SimulationNode(simulation=sim), "simulation")
    node = FurnitureNode(simulation=sim, furniture=furniture_of(model), model=name, start=start)
    return bus, sim, bus.add(node, name)


@pytest.mark.parametrize("name", NAMES)
def test_furniture_models_load_without_findings_and_rest(name: str) -> None:
    model = load_model(FOLDER / f"{name}.sdf")
    assert model.findings == ()
    assert furniture_of(model) is not None
    sim = Simulation(world(ground()))
    sim.add(model, name)
    before = sim.truth(name).T_world_base
    sim.step(500)
    assert sim.truth(name).T_world_base.distance(before) == 0.0
    assert sim.notes == ()


def test_parcel_reaches_belt_speed_and_falls_off_the_end() -> None:
    bus, sim, node = moving("conveyor", start=0.5)
    sim.add(free_box("parcel", (0.2, 0.2, 0.2), 1.0, mu=0.5), "parcel", at(-0.8, 0.0, 0.4))
    bus.executor.run_for(0.5)
    assert sim.truth("parcel").linear_velocity[0] == pytest.approx(0.5, rel=0.01)
    bus.executor.run_for(1.0)
    assert sim.truth("parcel").T_world_base.x == pytest.approx(-0.8 + 0.5 * 1.5, abs=0.06)  # less what it slipped
    node.move(0.0)
    bus.executor.run_for(1.0)
    assert np.abs(sim.truth("parcel").linear_velocity).max() < 1e-3
    node.move(1.0)
    bus.executor.run_for(3.0)
    assert sim.truth("parcel").T_world_base.x > 1.0
    assert sim.truth("parcel").T_world_base.z < 0.25


@pytest.mark.parametrize(("name", "seconds"), [("door", 1.5708 / 0.8), ("sliding_door", 1.0 / 0.6)])
def test_sliding_door_opens_and_closes_at_its_speed(name: str, seconds: float) -> None:
    bus, _, node = moving(name)
    told: list[tuple[float, float]] = []
    bus.tap(lambda t, m, n, time_ns: told.append((time_ns * 1e-9, m.data)) if t.name == f"/{name}/state" else None)
    bus.executor.run_for(0.5)
    kind = service_type("std_srvs/srv/SetBool")
    answer = bus.service_client(f"/{name}/on", kind, "/me").call(kind.Request(data=True))
    bus.executor.run_for(0.5 * seconds)
    assert told[-1][1] == pytest.approx((told[-1][0] - 0.5) / seconds, abs=0.05)
    bus.executor.run_for(0.5 * seconds + 1.0)
    assert answer.result.success
    assert told[-1][1] == pytest.approx(1.0, abs=0.01)
    publisher = bus.publisher(f"/{name}/command", msg.Float64, "/me")
    publisher.publish(msg.Float64(data=0.25))
    bus.executor.run_for(seconds + 1.0)
    assert told[-1][1] == pytest.approx(0.25, abs=0.01)
    for value in (math.nan, -5.0):  # neither a number, nor farther closed than closed
        publisher.publish(msg.Float64(data=value))
        bus.executor.run_for(1.5 * seconds)
        assert told[-1][1] == pytest.approx(0.0, abs=0.01)
    assert node.command == 0.0


def test_swing_door_leaf_moves_about_its_hinge() -> None:
    bus, sim, node = moving("door", start=1.0)
    sim.add(free_box("crate", (0.3, 0.3, 0.3), 2.0, mu=0.3), "crate", at(-0.3, -0.3, 0.15))  # behind: not in the way
    sim.add(free_box("other", (0.2, 0.2, 0.2), 1.0, mu=0.3), "other", at(0.3, 0.1, 0.1))  # where the leaf passes
    bus.executor.run_for(4.0)
    assert sim.truth("crate").T_world_base.distance(at(-0.3, -0.3, 0.15)) < 0.01
    assert sim.truth("other").T_world_base.distance(at(0.3, 0.1, 0.1)) > 0.05
    assert node.setpoint == pytest.approx(1.0)


def test_locked_door_stays_closed_until_unlocked() -> None:
    from roboyard.simulation.faults import JointFault

    bus, sim, node = moving("door")
    sim.faults.begin("lock", JointFault("door", "hinge", "blocked"))
    node.move(1.0)
    bus.executor.run_for(3.0)
    assert abs(sim.hardware("door").read().position[0]) < 0.01
    sim.faults.end("lock")
    bus.executor.run_for(2.0)
    assert sim.hardware("door").read().position[0] == pytest.approx(1.5708, abs=0.05)


@pytest.mark.parametrize("radius", [0.25, 0.45])
def test_object_slides_off_turntable_at_omega2_r_equal_mu_g(radius: float) -> None:
    mu = 0.3
    sim = Simulation(world(ground()))
    sim.add(load_model(FOLDER / "turntable.sdf"), "table")
    size = (0.04, 0.04, 0.02)
    sim.add(free_box("coin", size, 0.2, mu=mu), "coin", at(radius, 0.0, 0.111))
    table = sim.hardware("table")
    rate, step = 0.0, 0.002
    start = None
    for _ in range(6000):
        rate += 0.4 * step  # slowly: its angular acceleration takes a hundredth of the friction
        table.write(JointCommand("velocity", ("axle",), np.array([rate])))
        sim.step(1)
        place = sim.truth("coin").T_world_base
        now = math.hypot(place.x, place.y)
        start = start or now
        if now > start + 0.001:
            break
    due = math.sqrt(mu * G / radius)
    assert table.read().velocity[0] == pytest.approx(due, rel=0.04)


MODEL = """<sdf version="1.10"><model name="m"><static>true</static><link name="belt"><collision name="c">
<geometry><box><size>1 1 1</size></box></geometry></collision></link>
<plugin filename="roboyard-furniture" name="{name}">{inside}</plugin></model></sdf>"""


@pytest.mark.parametrize(
    ("name", "inside", "message"),
    [
        ("roboyard::Lift", "", "one of: roboyard::Conveyor"),
        ("roboyard::Conveyor", "", "one of: belt"),
        ("roboyard::Conveyor", "<link>bolt</link>", "one of: belt"),
        ("roboyard::Conveyor", "<link>belt</link><speed>fast</speed>", "a number from"),
        ("roboyard::Conveyor", "<link>belt</link><speed>-1</speed>", "a number from"),
        ("roboyard::Conveyor", "<link>belt</link><speed>nan</speed>", "a number from"),
        ("roboyard::Conveyor", "<link>belt</link><direction>0 0 0</direction>", "not all zero"),
        ("roboyard::Conveyor", "<link>belt</link><direction>1 0</direction>", "three numbers"),
        ("roboyard::Door", "<joint>hinge</joint>", "none is there"),
    ],
)
def test_invalid_furniture_plugins_are_refused(name: str, inside: str, message: str) -> None:
    model = load_model(MODEL.format(name=name, inside=inside))
    with pytest.raises(DescriptionError) as caught:
        furniture_of(model)
    assert message in str(caught.value.valid)
    assert caught.value.where
