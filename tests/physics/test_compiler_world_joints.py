"""Joints between models of a world, and actors."""

import numpy as np
import pytest

from roboyard.description import load_world
from roboyard.simulation import Simulation

SHAPE = '<collision name="c"><geometry><box><size>0.1 0.1 0.1</size></box></geometry></collision>'
INERTIAL = "<inertial><mass>1</mass><inertia><ixx>0.01</ixx><iyy>0.01</iyy><izz>0.01</izz></inertia></inertial>"


def box(name: str, x: float, z: float, static: bool = False) -> str:
    static_element = "<static>1</static>" if static else ""
    link = f'<link name="l">{INERTIAL}{SHAPE}</link>'
    return f'<model name="{name}">{static_element}<pose>{x} 0 {z} 0 0 0</pose>{link}</model>'


def joint(kind: str, parent: str, child: str, position: str = "0 0 0") -> str:
    axis = "<axis><xyz>0 1 0</xyz></axis>" if kind == "revolute" else ""
    return (
        f'<joint name="j" type="{kind}"><pose>{position} 0 0 0</pose>'
        f"<parent>{parent}</parent><child>{child}</child>{axis}</joint>"
    )


def start_simulation(world_elements: str) -> Simulation:
    return Simulation(load_world(f'<sdf version="1.9"><world name="w">{world_elements}</world></sdf>'))


@pytest.mark.parametrize("parent", ["world", "wall::l", "wall"])
def test_world_joint_holds_a_model_to_the_world(parent: str) -> None:
    sim = start_simulation(
        box("wall", 0.0, 2.0, static=True) + box("held", 0.5, 2.0) + joint("fixed", parent, "held::l")
    )
    assert sim.environment.joints[0].child == "held::l"
    sim.step(500)
    assert np.allclose(sim.ground_truth("held").T_world_base.xyz, (0.5, 0.0, 2.0), atol=2e-3)


def test_hinge_between_models_keeps_length_and_plane() -> None:
    sim = start_simulation(
        box("wall", 0.0, 2.0, static=True) + box("swing", 0.5, 2.0) + joint("revolute", "wall", "swing::l", "-0.5 0 0")
    )
    min_z = 2.0
    for _ in range(40):
        sim.step(20)
        x, y, z = sim.ground_truth("swing").T_world_base.xyz
        assert np.hypot(x, z - 2.0) == pytest.approx(0.5, abs=0.005)
        assert abs(y) < 1e-3
        min_z = min(min_z, z)
    assert min_z < 1.55


def test_world_joint_is_removed_with_its_model() -> None:
    sim = start_simulation(box("a", 0.0, 5.0) + box("b", 0.5, 5.0) + joint("fixed", "a", "b"))
    assert sim.world.model.neq == 1
    sim.remove("a")
    assert sim.world.model.neq == 0


def test_actors_are_marked_bodies_that_collide() -> None:
    trajectory = (
        '<script><trajectory id="0" type="walk"><waypoint><time>0</time><pose>2 -2 1.0 0 0 1.5</pose></waypoint>'
        "<waypoint><time>2</time><pose>5 -2 1.0 0 0 1.5</pose></waypoint></trajectory></script>"
    )
    sim = start_simulation(
        f'<actor name="walker">{trajectory}</actor><actor name="idler"><pose>1 1 0 0 0 0</pose></actor>'
    )
    walking_actor, standing_actor = sim.environment.models
    assert [finding.message for finding in sim.environment.warnings] == [
        f"actor '{name}' is drawn as a person of this simulator: its skin has no effect" for name in ("walker", "idler")
    ]
    assert np.allclose(walking_actor.T_world_model.xyz, (2.0, -2.0, 0.0))
    assert np.allclose(standing_actor.T_world_model.xyz, (1.0, 1.0, 0.0))
    assert walking_actor.model.links[0].visuals[0].material.rgba == (1.0, 0.0, 1.0, 0.5)
    assert sim.world.model.ngeom == 2
    assert sim.world.data.geom_xpos[0][2] == pytest.approx(0.875)
