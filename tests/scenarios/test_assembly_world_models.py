"""Robots of a world's file: brought up by their plugins, driven as any other, named by a scenario."""

from __future__ import annotations

from pathlib import Path

import pytest

from roboyard.errors import UnknownNameError
from roboyard.scenarios import Run, load_scenario
from roboyard.scenarios.assembly import build_run, drivable_world_models, rename_world_models
from roboyard.scenarios.resolve import resolve_scenario


def wheel(side: str, y: float) -> str:
    return f"""<link name="{side}"><pose>0 {y} 0.1 -1.5708 0 0</pose>
      <inertial><mass>0.5</mass><inertia><ixx>.002</ixx><iyy>.002</iyy><izz>.003</izz></inertia></inertial>
      <collision name="c"><geometry><cylinder><radius>0.1</radius><length>0.04</length></cylinder></geometry>
      </collision></link><joint name="{side}_joint" type="revolute"><parent>base</parent><child>{side}</child>
      <axis><xyz>0 0 1</xyz></axis></joint>"""


def cart(name: str, y: float) -> str:
    return f"""<model name="{name}"><pose>0 {y} 0 0 0 0</pose><link name="base"><pose>0 0 0.12 0 0 0</pose>
      <inertial><mass>4</mass><inertia><ixx>.05</ixx><iyy>.05</iyy><izz>.05</izz></inertia></inertial>
      <collision name="c"><geometry><box><size>.3 .2 .05</size></box></geometry></collision>
      <collision name="front"><pose>.12 0 -.1 0 0 0</pose><geometry><sphere><radius>.02</radius></sphere></geometry>
        <surface><friction><ode><mu>0</mu><mu2>0</mu2></ode></friction></surface></collision>
      <collision name="back"><pose>-.12 0 -.1 0 0 0</pose><geometry><sphere><radius>.02</radius></sphere></geometry>
        <surface><friction><ode><mu>0</mu><mu2>0</mu2></ode></friction></surface></collision>
    </link>{wheel("left", 0.15)}{wheel("right", -0.15)}
    <plugin filename="gz-sim-diff-drive-system" name="gz::sim::systems::DiffDrive"><left_joint>left_joint</left_joint>
      <right_joint>right_joint</right_joint><wheel_separation>0.3</wheel_separation><wheel_radius>0.1</wheel_radius>
    </plugin></model>"""


WORLD = f"""<sdf version="1.9"><world name="yard">
  <model name="ground_plane"><static>true</static><link name="l"><collision name="c"><geometry><plane/></geometry>
  </collision></link></model>
  <model name="crate"><pose>5 5 0.5 0 0 0</pose><link name="l"><collision name="c"><geometry><box><size>1 1 1</size>
  </box></geometry></collision></link></model>
  {cart("blue", 0.0)}{cart("green", 2.0)}</world></sdf>"""


@pytest.fixture
def world(tmp_path: Path) -> Path:
    file = tmp_path / "yard.sdf"
    file.write_text(WORLD)
    return file


def test_robot_of_the_world_drives(world: Path) -> None:
    with Run(world, record=False) as run:
        assert drivable_world_models(run.world) == ("blue", "green")
        blue, green = run.activate_model("blue"), run.activate_model("green")
        assert (blue.namespace, green.namespace) == ("", "/green")
        blue.drive(0.5)
        run.run_for(3.0)
        assert blue.truth.pose.x == pytest.approx(1.5, abs=0.25)
        assert abs(green.truth.pose.x) < 0.02
        with pytest.raises(UnknownNameError):
            run.activate_model("red")


def test_scenario_names_one_world_robot_and_starts_the_others(world: Path, tmp_path: Path) -> None:
    file = tmp_path / "drive.yaml"
    file.write_text("world: yard.sdf\nduration: 2 s\nrobots: {rover: {model: 'world:green'}}\n")
    with build_run(resolve_scenario(load_scenario(file)), record=False) as run:
        assert list(run.robots) == ["rover", "blue"]
        assert run.robots["rover"].namespace == ""
        run.robots["rover"].drive(0.5)
        run.run_for(2.0)
        assert run.robots["rover"].truth.pose.x > 0.6
        assert run.robots["rover"].truth.pose.y == pytest.approx(2.0, abs=0.05)
        assert abs(run.robots["blue"].truth.pose.x) < 0.02


def test_unknown_world_robots_are_refused(world: Path) -> None:
    with Run(world, record=False) as run:
        for names in ({"red": "rover"}, {"blue": "crate"}):
            with pytest.raises(UnknownNameError):
                rename_world_models(run.world, names)
        assert [one.name for one in rename_world_models(run.world, {"blue": "rover"}).models][2] == "rover"
