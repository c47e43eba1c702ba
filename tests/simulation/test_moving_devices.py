"""Moving devices: conveyor belts, doors and turntables follow their commands."""

from __future__ import annotations

import math
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from tests.harness.models import free_box, ground_plane, make_pose, make_world
from tests.harness.simulations import SimulationHarness

from roboyard.description import load_model
from roboyard.errors import DescriptionError
from roboyard.hardware import JointCommand
from roboyard.messages import msg, service_type
from roboyard.simulation import ModelOptions, Simulation
from roboyard.simulation.moving_devices import read_moving_device
from roboyard.simulation.nodes import DeviceNode

FOLDER = Path(str(resources.files("roboyard") / "devices"))
NAMES = sorted(path.stem for path in FOLDER.glob("*.sdf"))
G = 9.8


class DeviceHarness(SimulationHarness):
    """A device alone on the ground, and its node."""

    def __init__(self, name: str, start: float = 0.0) -> None:
        super().__init__(Simulation(make_world(ground_plane())))
        model = load_model(FOLDER / f"{name}.sdf")
        self.simulation.add(model, name, options=ModelOptions(robot=False))
        node = DeviceNode(
            simulation=self.simulation, device=read_moving_device(model), model=name, initial_command=start
        )
        self.device = self.bus.add(node, name)


@pytest.mark.parametrize("name", NAMES)
def test_device_models_load_without_warnings_and_rest(name: str) -> None:
    model = load_model(FOLDER / f"{name}.sdf")
    assert model.warnings == ()
    assert read_moving_device(model) is not None
    sim = Simulation(make_world(ground_plane()))
    sim.add(model, name)
    before = sim.ground_truth(name).T_world_base
    sim.step(500)
    assert sim.ground_truth(name).T_world_base.distance(before) == 0.0
    assert sim.warnings == ()


def test_parcel_reaches_belt_speed_and_falls_off_the_end() -> None:
    with DeviceHarness("conveyor", start=0.5) as harness:
        sim, node = harness.simulation, harness.device
        sim.add(free_box("parcel", (0.2, 0.2, 0.2), 1.0, mu=0.5), "parcel", make_pose(-0.8, 0.0, 0.4))
        harness.run_for(0.5)
        assert sim.ground_truth("parcel").linear_velocity[0] == pytest.approx(0.5, rel=0.01)
        harness.run_for(1.0)
        assert sim.ground_truth("parcel").T_world_base.x == pytest.approx(
            -0.8 + 0.5 * 1.5, abs=0.06
        )  # the parcel slips at first
        node.set_command(0.0)
        harness.run_for(1.0)
        assert np.abs(sim.ground_truth("parcel").linear_velocity).max() < 1e-3
        node.set_command(1.0)
        harness.run_for(3.0)
        assert sim.ground_truth("parcel").T_world_base.x > 1.0
        assert sim.ground_truth("parcel").T_world_base.z < 0.25


@pytest.mark.parametrize(("name", "seconds"), [("door", 1.5708 / 0.8), ("sliding_door", 1.0 / 0.6)])
def test_doors_open_and_close_at_their_speed(name: str, seconds: float) -> None:
    with DeviceHarness(name) as harness:
        state = harness.record(f"/{name}/state", msg.Float64)
        harness.run_for(0.5)
        response = harness.start_call(f"/{name}/on", service_type("std_srvs/srv/SetBool"), data=True)
        harness.run_for(0.5 * seconds)
        assert state.data[-1] == pytest.approx((state.times[-1] - 0.5) / seconds, abs=0.05)
        harness.run_for(0.5 * seconds + 1.0)
        assert response.result.success
        assert state.data[-1] == pytest.approx(1.0, abs=0.01)
        harness.publish(f"/{name}/command", msg.Float64(data=0.25))
        harness.run_for(seconds + 1.0)
        assert state.data[-1] == pytest.approx(0.25, abs=0.01)
        for value in (math.nan, -5.0):  # not a number, and below the bound
            harness.publish(f"/{name}/command", msg.Float64(data=value))
            harness.run_for(1.5 * seconds)
            assert state.data[-1] == pytest.approx(0.0, abs=0.01)
        assert harness.device.command == 0.0


def test_swing_door_leaf_rotates_on_its_hinge() -> None:
    with DeviceHarness("door", start=1.0) as harness:
        sim, node = harness.simulation, harness.device
        sim.add(
            free_box("crate", (0.3, 0.3, 0.3), 2.0, mu=0.3), "crate", make_pose(-0.3, -0.3, 0.15)
        )  # behind the door
        sim.add(
            free_box("other", (0.2, 0.2, 0.2), 1.0, mu=0.3), "other", make_pose(0.3, 0.1, 0.1)
        )  # in the path of the door leaf
        harness.run_for(4.0)
        assert sim.ground_truth("crate").T_world_base.distance(make_pose(-0.3, -0.3, 0.15)) < 0.01
        assert sim.ground_truth("other").T_world_base.distance(make_pose(0.3, 0.1, 0.1)) > 0.05
        assert node.setpoint == pytest.approx(1.0)


def test_locked_door_stays_closed_until_unlocked() -> None:
    from roboyard.simulation.faults import JointFault

    with DeviceHarness("door") as harness:
        sim, node = harness.simulation, harness.device
        sim.faults.start("lock", JointFault("door", "hinge", "blocked"))
        node.set_command(1.0)
        harness.run_for(3.0)
        assert abs(sim.hardware("door").read().position[0]) < 0.01
        sim.faults.end("lock")
        harness.run_for(2.0)
        assert sim.hardware("door").read().position[0] == pytest.approx(1.5708, abs=0.05)


@pytest.mark.parametrize("radius", [0.25, 0.45])
def test_object_slides_off_turntable_at_omega2_r_equal_mu_g(radius: float) -> None:
    mu = 0.3
    sim = Simulation(make_world(ground_plane()))
    sim.add(load_model(FOLDER / "turntable.sdf"), "table")
    size = (0.04, 0.04, 0.02)
    sim.add(free_box("coin", size, 0.2, mu=mu), "coin", make_pose(radius, 0.0, 0.111))
    table = sim.hardware("table")
    rate, step = 0.0, 0.002
    initial_distance = None
    for _ in range(6000):
        rate += 0.4 * step  # slow: the tangential acceleration uses a hundredth of the friction
        table.write(JointCommand("velocity", ("axle",), np.array([rate])))
        sim.step(1)
        pose = sim.ground_truth("coin").T_world_base
        distance = math.hypot(pose.x, pose.y)
        initial_distance = initial_distance or distance
        if distance > initial_distance + 0.001:
            break
    expected_rate = math.sqrt(mu * G / radius)
    assert table.read().velocity[0] == pytest.approx(expected_rate, rel=0.04)


MODEL = """<sdf version="1.10"><model name="m"><static>true</static><link name="belt"><collision name="c">
<geometry><box><size>1 1 1</size></box></geometry></collision></link>
<plugin filename="roboyard-furniture" name="{name}">{elements}</plugin></model></sdf>"""


@pytest.mark.parametrize(
    ("name", "elements", "message"),
    [
        ("roboyard::Lift", "", "one of: roboyard::Conveyor"),
        ("roboyard::Conveyor", "", "one of: belt"),
        ("roboyard::Conveyor", "<link>bolt</link>", "one of: belt"),
        ("roboyard::Conveyor", "<link>belt</link><speed>fast</speed>", "a number from"),
        ("roboyard::Conveyor", "<link>belt</link><speed>-1</speed>", "a number from"),
        ("roboyard::Conveyor", "<link>belt</link><speed>nan</speed>", "a number from"),
        ("roboyard::Conveyor", "<link>belt</link><direction>0 0 0</direction>", "not all zero"),
        ("roboyard::Conveyor", "<link>belt</link><direction>1 0</direction>", "three numbers"),
        ("roboyard::Door", "<joint>hinge</joint>", "the model has no joints"),
    ],
)
def test_invalid_device_plugins_are_refused(name: str, elements: str, message: str) -> None:
    model = load_model(MODEL.format(name=name, elements=elements))
    with pytest.raises(DescriptionError) as caught:
        read_moving_device(model)
    assert message in str(caught.value.valid)
    assert caught.value.location
