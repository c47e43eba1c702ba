"""Emission of materials is read from SDF elements, Gazebo blocks and Gazebo's named materials."""

import pytest
from tests.harness.descriptions import INERTIAL, sdf_model, urdf

from roboyard.description import load_model
from roboyard.description.model import Material

SHAPE = "<geometry><sphere><radius>1</radius></sphere></geometry>"


def load_sdf_material(content: str) -> Material:
    text = f'<link name="a"><visual name="v">{SHAPE}<material>{content}</material></visual></link>'
    return load_model(sdf_model(text)).links[0].visuals[0].material


def load_gazebo_material(content: str) -> Material:
    link = f'<link name="a">{INERTIAL}<visual><geometry><sphere radius="1"/></geometry></visual></link>'
    return load_model(urdf(f'{link}<gazebo reference="a">{content}</gazebo>')).links[0].visuals[0].material


def test_materials_have_no_emission_by_default() -> None:
    assert Material().emissive == (0.0, 0.0, 0.0)
    assert load_sdf_material("<diffuse>1 1 1 1</diffuse>").emissive == (0.0, 0.0, 0.0)
    assert load_gazebo_material("<material>Gazebo/Red</material>").emissive == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("emissive", ["1 0.5 0.25 1", "1 0.5 0.25"])
def test_emission_is_read_together_with_the_color(emissive: str) -> None:
    material = load_sdf_material(f"<diffuse>0.1 0.2 0.3 1</diffuse><emissive>{emissive}</emissive>")
    assert (material.rgba, material.emissive) == ((0.1, 0.2, 0.3, 1.0), (1.0, 0.5, 0.25))
    block = f"<visual><material><diffuse>0.1 0.2 0.3 1</diffuse><emissive>{emissive}</emissive></material></visual>"
    assert load_gazebo_material(block) == material


def test_gazebo_glow_material_has_emission() -> None:
    script = load_sdf_material("<script><name>Gazebo/GreenGlow</name></script>")
    block = load_gazebo_material("<material>Gazebo/GreenGlow</material>")
    assert script == block == Material("Gazebo/GreenGlow", (0.0, 1.0, 0.0, 1.0), None, (0.0, 1.0, 0.0))
