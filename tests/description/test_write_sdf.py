"""Worlds written as SDF keep joints between models, their geodetic origin and their lights."""

from __future__ import annotations

import numpy as np
import pytest

from roboyard.description import load_world
from roboyard.description.write import write_sdf

WORLD = """<sdf version="1.11"><world name="w">
  <magnetic_field>1e-5 2e-5 -3e-5</magnetic_field>
  <spherical_coordinates><surface_model>EARTH_WGS84</surface_model><latitude_deg>52.1</latitude_deg>
    <longitude_deg>-4.5</longitude_deg><elevation>120</elevation><heading_deg>30</heading_deg></spherical_coordinates>
  <light name="spot" type="spot"><pose>0 0 3 0 0 0</pose><attenuation><range>7</range><constant>0.5</constant>
    <linear>0.2</linear><quadratic>0.1</quadratic></attenuation><spot><outer_angle>1.2</outer_angle><falloff>2</falloff>
    </spot></light>
  <model name="a"><pose>0 0 1 0 0 0.3</pose><link name="l"/></model>
  <model name="b"><pose>1 0 1 0 0.2 0</pose><link name="l"/></model>
  <joint name="hinge" type="revolute"><pose>-0.5 0 0 0 0 0</pose><parent>a::l</parent><child>b::l</child>
    <axis><xyz>0 1 0</xyz><limit><lower>-1</lower><upper>2</upper></limit></axis></joint>
  <joint name="post" type="fixed"><parent>world</parent><child>a::l</child></joint></world></sdf>"""


def test_written_world_is_read_back_unchanged() -> None:
    world = load_world(WORLD)
    written = write_sdf(world)
    restored = load_world(written.text)
    assert [(joint.name, joint.type, joint.parent, joint.child) for joint in restored.joints] == [
        ("hinge", "revolute", "a::l", "b::l"),
        ("post", "fixed", "world", "a::l"),
    ]
    for original, restored_joint in zip(world.joints, restored.joints, strict=True):
        assert original.T_child_joint.almost_equal(restored_joint.T_child_joint, 1e-9)
        assert original.T_parent_child.almost_equal(restored_joint.T_parent_child, 1e-9)
        assert [axis.limits for axis in original.axes] == [axis.limits for axis in restored_joint.axes]
        assert all(np.allclose(x.xyz, y.xyz) for x, y in zip(original.axes, restored_joint.axes, strict=True))
    assert restored.magnetic_field == pytest.approx(world.magnetic_field)
    for name in ("latitude", "longitude", "elevation", "heading"):
        assert getattr(restored.origin, name) == pytest.approx(getattr(world.origin, name), rel=1e-12)
    light, restored_light = world.lights[0], restored.lights[0]
    assert (light.attenuation, light.range, light.falloff) == (
        restored_light.attenuation,
        restored_light.range,
        restored_light.falloff,
    )
    assert light.outer_angle == pytest.approx(restored_light.outer_angle)
    assert not written.losses


def test_joint_into_a_nested_model_is_a_loss() -> None:
    nested = WORLD.replace(
        '<model name="a"><pose>0 0 1 0 0 0.3</pose><link name="l"/></model>',
        '<model name="a"><model name="n"><link name="l"/></model></model>',
    ).replace("a::l", "a::n::l")
    losses = write_sdf(load_world(nested)).losses
    assert any("hinge" in loss for loss in losses)
