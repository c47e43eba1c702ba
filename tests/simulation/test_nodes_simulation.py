"""The simulation on the bus."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.harness.models import (
    RIDE_HEIGHT,
    free_box,
    ground_plane,
    make_pose,
    make_world,
    room_walls,
    rover_model,
    static_box,
)
from tests.harness.simulations import SimulationHarness

import roboyard as ry
from roboyard.description.model import Joint, PlacedModel
from roboyard.geometry import SE3
from roboyard.hardware import Hardware, JointCommand
from roboyard.simulation import Simulation

BOX = """<sdf version="1.9"><model name="box"><link name="link">
<inertial><mass>1</mass><inertia><ixx>0.01</ixx><iyy>0.01</iyy><izz>0.01</izz></inertia></inertial>
<collision name="c"><geometry><box><size>0.2 0.2 0.2</size></box></geometry></collision>
</link></model></sdf>"""


class RoomHarness(SimulationHarness):
    """A bus with the simulation of a walled floor, and the service calls that spawn models in it."""

    def __init__(self, *static_models: PlacedModel) -> None:
        super().__init__(Simulation(make_world(ground_plane(), *room_walls(), *static_models), seed=1), seed=1)

    def add_rover(
        self, name: str = "rover", *, y: float = 0.0, z: float = RIDE_HEIGHT, namespace: str = ""
    ) -> Hardware:
        """Add a rover; returns its hardware."""
        self.simulation.add(rover_model(name), name, make_pose(y=y, z=z), namespace=namespace)
        return self.simulation.hardware(name)

    def spawn(self, *, uri: str = "", text: str = "", z: float = 1.0, **fields: Any) -> Any:
        """The response to a request for a new model at height z [m]."""
        request = ry.srv.SpawnEntity.Request(**fields)
        request.entity_resource.uri = uri
        request.entity_resource.resource_string = text
        request.initial_pose.pose.position.z = z
        request.initial_pose.pose.orientation.w = 1.0
        return self.call("/spawn_entity", ry.srv.SpawnEntity, request)


@pytest.fixture
def harness() -> Iterator[RoomHarness]:
    """An empty walled floor on a bus."""
    with RoomHarness() as harness:
        yield harness


def command_wheels(hardware: Hardware, speed: float) -> None:
    """Turn all wheels of a rover [rad/s]."""
    hardware.write(JointCommand("velocity", hardware.joint_names, np.full(4, speed)))


def to_seconds(stamp: Any) -> float:
    return float(stamp.sec + stamp.nanosec * 1e-9)


def test_sensors_publish_at_their_rates_with_stamps_and_frames(harness: RoomHarness) -> None:
    harness.add_rover()
    harness.run_for(1.0)
    assert len(harness.published("/scan")) == 10
    assert len(harness.published("/imu")) == 100
    assert len(harness.published("/bumper")) == 50
    assert len(harness.published("/truth/rover/odom")) == 51
    scan, imu = harness.published("/scan").messages[-1], harness.published("/imu").messages[-1]
    assert scan.header.frame_id == "lidar_link"
    assert imu.header.frame_id == "base_link"
    assert to_seconds(scan.header.stamp) == pytest.approx(1.0)
    assert scan.ranges.dtype == np.float32
    assert scan.angle_min + 719 * scan.angle_increment == pytest.approx(scan.angle_max)
    assert scan.ranges[360] == pytest.approx(2.9, abs=0.01)
    assert imu.linear_acceleration.z == pytest.approx(9.8, abs=1e-3)


def test_truth_of_a_fixed_robot_is_published_seldom(harness: RoomHarness) -> None:
    bolt = Joint("bolt", "fixed", "world", "base_footprint", SE3.identity(), SE3.identity())
    harness.simulation.add(
        replace(rover_model("arm"), joints=(bolt, *rover_model("arm").joints)), "arm", make_pose(z=RIDE_HEIGHT)
    )
    harness.run_for(1.0)
    assert len(harness.published("/truth/arm/pose")) == 11


def test_physics_follows_the_clock_between_events(harness: RoomHarness) -> None:
    harness.simulation.add(free_box(), "crate", make_pose(z=1.0))
    harness.run_for(0.3)
    assert harness.simulation.time_ns == harness.now_ns == 300_000_000
    stamps = [to_seconds(message.header.stamp) for message in harness.published("/imu").messages]
    assert stamps == sorted(stamps)


def test_two_robots_publish_in_their_namespaces(harness: RoomHarness) -> None:
    harness.add_rover("a")
    harness.add_rover("b", y=1.0, namespace="/b")
    harness.run_for(0.2)
    assert harness.published("/scan").messages[0].header.frame_id == "lidar_link"
    assert harness.published("/b/scan").messages[0].header.frame_id == "b/lidar_link"
    assert harness.published("/truth/b/pose").messages[0].pose.position.y == pytest.approx(1.0, abs=0.01)
    assert not np.array_equal(
        harness.published("/scan").messages[0].ranges, harness.published("/b/scan").messages[0].ranges
    )


def test_contacts_are_published_when_they_change() -> None:
    with RoomHarness(static_box("post", (0.2, 0.2, 1.0), make_pose(1.0, 0, 0.5))) as harness:
        hardware = harness.add_rover()
        command_wheels(hardware, 10.0)
        harness.run_for(1.0)
        command_wheels(hardware, -10.0)
        harness.run_for(1.0)
        messages = harness.published("/truth/rover/contacts").messages
    assert messages[0].states
    assert "post::link::box" in {state.collision2_name for state in messages[0].states}
    assert not messages[-1].states  # apart again
    assert all("ground" not in state.collision2_name for message in messages for state in message.states)


def test_equal_seeds_publish_equal_messages() -> None:
    def record() -> list[tuple[int, str, str, bytes]]:
        with RoomHarness() as harness:
            harness.add_rover(z=RIDE_HEIGHT + 0.02)
            harness.run_for(0.5)
            return harness.wire()

    messages = record()
    assert {"/scan", "/imu", "/truth/rover/odom"} <= {topic for _, topic, _, _ in messages}
    assert record() == messages


def test_models_can_be_spawned_listed_inspected_and_deleted(harness: RoomHarness) -> None:
    response = harness.spawn(name="first", text=BOX)
    assert (response.result.result, response.entity_name) == (1, "first")
    harness.run_for(0.2)
    assert harness.simulation.ground_truth("first").T_world_base.z < 1.0
    response = harness.call("/get_entity_state", ry.srv.GetEntityState, entity="first")
    assert response.state.twist.linear.z == pytest.approx(-9.8 * 0.2, abs=0.15)
    request = ry.srv.GetEntities.Request()
    request.filters.filter = "^fir"
    assert harness.call("/get_entities", ry.srv.GetEntities, request).entities == ["first"]
    assert harness.call("/delete_entity", ry.srv.DeleteEntity, entity="first").result.result == 1
    assert "first" not in harness.simulation.models


def test_model_can_be_spawned_from_a_file(harness: RoomHarness, tmp_path: Path) -> None:
    file = tmp_path / "a box.sdf"
    file.write_text(BOX)
    assert harness.spawn(uri=str(file)).entity_name == "box"
    assert harness.spawn(uri=file.as_uri(), allow_renaming=True).entity_name == "box_1"


@pytest.mark.parametrize(
    ("fields", "code", "message"),
    [
        ({"text": BOX, "name": "ground_plane"}, 101, "already"),
        ({"text": BOX, "name": "a b"}, 102, "letters"),
        ({"uri": "https://example.org/box.sdf"}, 103, "file://"),
        ({}, 104, "neither"),
        ({"text": "<sdf"}, 106, ""),
        ({"text": "hello"}, 106, "XML"),
        ({"uri": "/nowhere/box.sdf"}, 106, "box.sdf"),
    ],
)
def test_invalid_spawn_requests_are_refused_with_a_reason(
    harness: RoomHarness, fields: dict[str, Any], code: int, message: str
) -> None:
    result = harness.spawn(**fields).result
    assert result.result == code
    assert re.search(message, result.error_message)
    assert list(harness.simulation.models) == [name for name in harness.simulation.models if name != "box"]


def test_deleting_an_unknown_model_names_the_known_ones(harness: RoomHarness) -> None:
    response = harness.call("/delete_entity", ry.srv.DeleteEntity, entity="ghost")
    assert response.result.result == 2
    assert "ground_plane" in response.result.error_message


def test_deleted_robot_publishes_nothing_more(harness: RoomHarness) -> None:
    harness.add_rover()
    harness.run_for(0.2)
    harness.simulation.remove("rover")
    count = len(harness.published("/imu"))
    harness.run_for(0.2)
    assert len(harness.published("/imu")) == count
    harness.add_rover()
    harness.run_for(0.2)
    assert len(harness.published("/imu")) > count


def test_saved_simulation_node_continues_bit_for_bit() -> None:
    def start(stack: ExitStack) -> RoomHarness:
        harness = stack.enter_context(RoomHarness(static_box("post", (0.2, 0.2, 1.0), make_pose(0.5, 0, 0.5))))
        command_wheels(harness.add_rover(), 8.0)
        harness.run_for(0.2)
        return harness

    def continue_run(harness: RoomHarness) -> list[tuple[int, str, str, bytes]]:
        start_ns = harness.now_ns
        harness.run_for(0.5)
        topics = ("/scan", "/imu", "/truth/rover/contacts")
        return [row for row in harness.wire(after_ns=start_ns) if row[1] in topics]

    with ExitStack() as stack:
        first, other = start(stack), start(stack)
        state = first.node.save_state()
        other.simulation.step(7)
        other.node.load_state(state)
        assert len(expected := continue_run(first)) > 50
        assert continue_run(other) == expected


@pytest.mark.parametrize(("field", "value"), [("z", float("inf")), ("w", 0.0)])
def test_impossible_pose_is_refused_and_the_run_continues(field: str, value: float) -> None:
    request = ry.srv.SpawnEntity.Request(name="box")
    request.entity_resource.resource_string = BOX
    pose = request.initial_pose.pose
    pose.orientation.w = 1.0
    setattr(pose.position if field == "z" else pose.orientation, field, value)
    with SimulationHarness(Simulation(make_world())) as harness:
        result = harness.call("/spawn_entity", ry.srv.SpawnEntity, request).result
        harness.run_for(0.01)
    assert result.result == 109
    assert "finite" in result.error_message or "pose" in result.error_message
