"""Bounding box, bounding radius and lowest point of a model follow from its collision shapes."""

import pytest

from roboyard.bringup.catalog import OBJECTS
from roboyard.description import load_model
from roboyard.description.extent import bounding_box, bounding_radius, min_height

WHEEL = """<link name="{name}"><collision><origin rpy="1.5707963 0 0"/>
    <geometry><cylinder radius="0.1" length="0.04"/></geometry></collision></link>
  <joint name="{name}_joint" type="continuous"><parent link="base"/><child link="{name}"/>
    <origin xyz="0.1 {y} 0.1"/><axis xyz="0 1 0"/></joint>"""
CART = f"""<robot name="cart">
  <link name="base"><collision><origin xyz="0 0 0.15"/><geometry><box size="0.4 0.3 0.1"/></geometry></collision></link>
  {WHEEL.format(name="left", y=0.2)}
  {WHEEL.format(name="right", y=-0.2)}
  <link name="caster"><collision><geometry><sphere radius="0.03"/></geometry></collision></link>
  <joint name="caster_joint" type="fixed"><parent link="base"/><child link="caster"/>
    <origin xyz="-0.15 0 0.03"/></joint>
</robot>"""


def test_extent_of_a_model_follows_from_its_collision_shapes() -> None:
    cart = load_model(CART)
    assert bounding_radius(cart) == pytest.approx((0.2**2 + 0.22**2) ** 0.5, abs=0.03)
    assert min_height(cart) == pytest.approx(0.0, abs=1e-9)
    workpiece = load_model(OBJECTS.resolve("workpiece", None))
    assert bounding_box(workpiece) == pytest.approx((0.04, 0.16, 0.04))
