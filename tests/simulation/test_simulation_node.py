"""The simulation on the bus."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.simulation.builders import RIDE_HEIGHT, at, free_box, ground, room, rover, static_box, world

import roboyard as ry
from roboyard.description.model import Joint
from roboyard.geometry import SE3
from roboyard.hardware import JointCommand
from roboyard.simulation import Simulation
from roboyard.simulation.nodes import SimulationNode

BOX = """<sdf version="1.9"><model name="box"><link name="link">
<inertial><mass>1</mass><inertia><ixx>0.01</ixx><iyy>0.01</iyy><izz>0.01</izz></inertia></inertial>
<collision name="c"><geometry><box><size>0.2 0.2 0.2</size></box></geometry></collision>
</link></model></sdf>"""


class Yard:
    """A bus with a simulation, and everything that was said on it."""

    def __init__(self, *extra: Any) -> None:
        self.sim = Simulation(world(ground(), *room(), *extra), seed=1)
        self.bus = ry.Bus(seed=1)
        self.heard: dict[str, list[Any]] = {}
        self.bus.tap(lambda topic, message, node, time_ns: self.heard.setdefault(topic.name, []).append(message))
        self.node = self.bus.add(SimulationNode(simulation=self.sim), "simulation")

    def call(self, name: str, kind: Any, request: Any) -> Any:
        future = self.bus.service_client(name, kind, "/test").call(request)
        self.bus.executor.run_for(0.0)
        if not future.done():
            self.bus.executor.run_for(0.01)
        return future.result

    def spawn(self, **fields: Any) -> Any:
        request = ry.srv.SpawnEntity.Request(**{k: v for k, v in fields.items() if k not in ("uri", "text", "z")})
        request.entity_resource.uri = fields.get("uri", "")
        request.entity_resource.resource_string = fields.get("text", "")
        request.initial_pose.pose.position.z = fields.get("z", 1.0)
        request.initial_pose.pose.orientation.w = 1.0
        return self.call("/spawn_entity", ry.srv.SpawnEntity, request)


def seconds(stamp: Any) -> float:
    return float(stamp.sec + stamp.nanosec * 1e-9)


def test_sensors_publish_at_their_rates_with_stamps_and_frames() -> None:
    yard = Yard()
    yard.sim.add(rover(), "rover", at(z=RIDE_HEIGHT))
    yard.bus.executor.run_for(1.0)
    assert len(yard.heard["/scan"]) == 10
    assert len(yard.heard["/imu"]) == 100
    assert len(yard.heard["/bumper"]) == 50
    assert len(yard.heard["/truth/rover/odom"]) == 51
    scan, imu = yard.heard["/scan"][-1], yard.heard["/imu"][-1]
    assert scan.header.frame_id == "lidar_link"
    assert imu.header.frame_id == "base_link"
    assert seconds(scan.header.stamp) == pytest.approx(1.0)
    assert scan.ranges.dtype == np.float32
    assert scan.angle_min + 719 * scan.angle_increment == pytest.approx(scan.angle_max)
    assert scan.ranges[360] == pytest.approx(2.9, abs=0.01)
    assert imu.linear_acceleration.z == pytest.approx(9.8, abs=1e-3)


def test_truth_of_a_fixed_robot_is_published_seldom() -> None:
    yard = Yard()
    bolt = Joint("bolt", "fixed", "world", "base_footprint", SE3.identity(), SE3.identity())
    yard.sim.add(replace(rover("arm"), joints=(bolt, *rover("arm").joints)), "arm", at(z=RIDE_HEIGHT))
    yard.bus.executor.run_for(1.0)
    assert len(yard.heard["/truth/arm/pose"]) == 11


def test_physics_follows_the_clock_between_events() -> None:
    yard = Yard()
    yard.sim.add(free_box(), "crate", at(z=1.0))
    yard.bus.executor.run_for(0.3)
    assert yard.sim.time_ns == yard.bus.now_ns == 300_000_000
    stamps = [seconds(message.header.stamp) for message in yard.heard.get("/imu", [])]
    assert stamps == sorted(stamps)


def test_two_robots_publish_in_their_namespaces() -> None:
    yard = Yard()
    yard.sim.add(rover("a"), "a", at(z=RIDE_HEIGHT))
    yard.sim.add(rover("b"), "b", at(y=1.0, z=RIDE_HEIGHT), namespace="/b")
    yard.bus.executor.run_for(0.2)
    assert yard.heard["/scan"][0].header.frame_id == "lidar_link"
    assert yard.heard["/b/scan"][0].header.frame_id == "b/lidar_link"
    assert yard.heard["/truth/b/pose"][0].pose.position.y == pytest.approx(1.0, abs=0.01)
    assert not np.array_equal(yard.heard["/scan"][0].ranges, yard.heard["/b/scan"][0].ranges)


def test_contacts_are_published_when_they_change() -> None:
    yard = Yard(static_box("post", (0.2, 0.2, 1.0), at(1.0, 0, 0.5)))
    yard.sim.add(rover(), "rover", at(z=RIDE_HEIGHT))
    hardware = yard.sim.hardware("rover")
    hardware.write(JointCommand("velocity", hardware.joint_names, np.full(4, 10.0)))
    yard.bus.executor.run_for(1.0)
    hardware.write(JointCommand("velocity", hardware.joint_names, np.full(4, -10.0)))
    yard.bus.executor.run_for(1.0)
    messages = yard.heard["/truth/rover/contacts"]
    assert messages[0].states
    assert "post::link::box" in {state.collision2_name for state in messages[0].states}
    assert not messages[-1].states  # apart again
    assert all("ground" not in state.collision2_name for message in messages for state in message.states)


def test_equal_seeds_publish_equal_messages() -> None:
    def words() -> str:
        yard = Yard()
        yard.sim.add(rover(), "rover", at(z=RIDE_HEIGHT + 0.02))
        yard.bus.executor.run_for(0.5)
        return repr([(topic, [repr(message) for message in yard.heard[topic]]) for topic in sorted(yard.heard)])

    assert words() == words()


def test_models_can_be_spawned_listed_inspected_and_deleted() -> None:
    yard = Yard()
    response = yard.spawn(name="first", text=BOX)
    assert (response.result.result, response.entity_name) == (1, "first")
    yard.bus.executor.run_for(0.2)
    assert yard.sim.truth("first").T_world_base.z < 1.0
    response = yard.call("/get_entity_state", ry.srv.GetEntityState, ry.srv.GetEntityState.Request(entity="first"))
    assert response.state.twist.linear.z == pytest.approx(-9.8 * 0.2, abs=0.15)
    request = ry.srv.GetEntities.Request()
    request.filters.filter = "^fir"
    assert yard.call("/get_entities", ry.srv.GetEntities, request).entities == ["first"]
    assert (
        yard.call("/delete_entity", ry.srv.DeleteEntity, ry.srv.DeleteEntity.Request(entity="first")).result.result == 1
    )
    assert "first" not in yard.sim.models


def test_model_can_be_spawned_from_a_file(tmp_path: Any) -> None:
    file = tmp_path / "a box.sdf"
    file.write_text(BOX)
    yard = Yard()
    assert yard.spawn(uri=str(file)).entity_name == "box"
    assert yard.spawn(uri=file.as_uri(), allow_renaming=True).entity_name == "box_1"


@pytest.mark.parametrize(
    ("fields", "code", "words"),
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
def test_invalid_spawn_requests_are_refused_with_a_reason(fields: dict[str, Any], code: int, words: str) -> None:
    yard = Yard()
    result = yard.spawn(**fields).result
    assert result.result == code
    assert re.search(words, result.error_message)
    assert list(yard.sim.models) == [name for name in yard.sim.models if name != "box"]


def test_deleting_an_unknown_model_names_the_known_ones() -> None:
    yard = Yard()
    response = yard.call("/delete_entity", ry.srv.DeleteEntity, ry.srv.DeleteEntity.Request(entity="ghost"))
    assert response.result.result == 2
    assert "ground_plane" in response.result.error_message


def test_deleted_robot_publishes_nothing_more() -> None:
    yard = Yard()
    yard.sim.add(rover(), "rover", at(z=RIDE_HEIGHT))
    yard.bus.executor.run_for(0.2)
    yard.sim.remove("rover")
    count = len(yard.heard["/imu"])
    yard.bus.executor.run_for(0.2)
    assert len(yard.heard["/imu"]) == count
    yard.sim.add(rover(), "rover", at(z=RIDE_HEIGHT))
    yard.bus.executor.run_for(0.2)
    assert len(yard.heard["/imu"]) > count


def test_saved_simulation_node_continues_bit_for_bit() -> None:
    def words(yard: Yard) -> list[str]:
        yard.heard.clear()
        yard.bus.executor.run_for(0.5)
        return [repr(message) for topic in ("/scan", "/imu", "/truth/rover/contacts") for message in yard.heard[topic]]

    def start() -> Yard:
        yard = Yard(static_box("post", (0.2, 0.2, 1.0), at(0.5, 0, 0.5)))
        yard.sim.add(rover(), "rover", at(z=RIDE_HEIGHT))
        hardware = yard.sim.hardware("rover")
        hardware.write(JointCommand("velocity", hardware.joint_names, np.full(4, 8.0)))
        yard.bus.executor.run_for(0.2)
        return yard

    first = start()
    state = first.node.save()
    other = start()
    other.sim.step(7)
    other.node.load(state)
    assert words(other) == words(first)


@pytest.mark.parametrize(("field", "value"), [("z", float("inf")), ("w", 0.0)])
def test_impossible_pose_is_refused_and_the_run_continues(field: str, value: float) -> None:
    with ry.Bus() as bus:
        bus.add(SimulationNode(simulation=Simulation(world())), "simulation")
        request = ry.srv.SpawnEntity.Request(name="box")
        request.entity_resource.resource_string = BOX
        pose = request.initial_pose.pose
        pose.orientation.w = 1.0
        setattr(pose.position if field == "z" else pose.orientation, field, value)
        answer = bus.service_client("/spawn_entity", ry.srv.SpawnEntity, "/test").call(request)
        bus.executor.run_for(0.01)
        assert answer.result.result.result == 109
        assert "finite" in answer.result.result.error_message or "pose" in answer.result.result.error_message
