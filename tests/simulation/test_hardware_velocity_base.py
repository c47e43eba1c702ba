"""Bodies that take their velocity as a command."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from roboyard.description.model import Box, Collision, Inertial, Joint, Link, Model, PlacedModel, Plane, World
from roboyard.errors import DescriptionError, InputError, RunError
from roboyard.geometry import SE3
from roboyard.hardware import VelocityBase
from roboyard.simulation import ModelOptions, Simulation

TOP = Collision("top", Plane(), SE3.identity())
FLOOR = Model("floor", (Link("floor", SE3.identity(), collisions=(TOP,)),), static=True)
FLAT = World("flat", (PlacedModel("floor", FLOOR, SE3.identity()),))
BOX = Link(
    "box", SE3.identity(), Inertial(4.0, SE3.identity(), (0.05, 0.06, 0.07, 0.0, 0.0, 0.0)),
    (Collision("box", Box((0.4, 0.3, 0.2)), SE3.identity()),),
)  # fmt: skip
MODEL = Model("crate", (BOX,))
ON_THE_FLOOR = SE3.from_xyz_rpy((0.0, 0.0, 0.1), (0.0, 0.0, 0.5))


def test_planar_base_follows_commands_despite_floor_friction() -> None:
    yard = Simulation(FLAT)
    yard.add(MODEL, T_world_model=ON_THE_FLOOR, options=ModelOptions(base="planar"))
    base = yard.velocity_base("crate")
    assert isinstance(base, VelocityBase)
    assert base.kind == "planar"
    assert yard.velocity_base("floor") is None
    yard.step(100)
    assert yard.ground_truth("crate").T_world_base.x == pytest.approx(0.0, abs=1e-4), (
        "it is at rest until a command arrives"
    )
    base.set_velocity((0.3, -0.2, 5.0), (3.0, 0.0, 0.4))
    yard.step(250)
    moving = yard.ground_truth("crate")
    assert moving.linear_velocity == pytest.approx((0.3, -0.2, 0.0), abs=0.015)
    assert moving.angular_velocity == pytest.approx((0.0, 0.0, 0.4), abs=0.05)
    base.release()
    yard.step(250)
    assert yard.ground_truth("crate").linear_velocity == pytest.approx(np.zeros(3), abs=1e-3), "friction stops it"


@pytest.mark.parametrize("gravity", [1.62, 9.81, 20.0])
def test_force_of_a_planar_base_is_limited_by_its_weight_in_the_gravity_of_the_world(gravity: float) -> None:
    yard = Simulation(World("moon", gravity=(0.0, 0.0, -gravity)))  # no floor, and so no friction
    yard.add(MODEL, options=ModelOptions(base="planar"))
    base = yard.velocity_base("crate")
    assert base is not None
    base.set_velocity((50.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    yard.step(100)
    seconds = yard.time_ns * 1e-9
    assert yard.ground_truth("crate").linear_velocity[0] == pytest.approx(3.0 * gravity * seconds, rel=0.01)


def test_free_base_flies_against_gravity() -> None:
    yard = Simulation(FLAT)
    yard.add(MODEL, T_world_model=SE3.from_xyz_rpy((0.0, 0.0, 2.0), (0.0, 0.0, 0.0)), options=ModelOptions(base="free"))
    base = yard.velocity_base("crate")
    assert base is not None
    base.set_velocity((0.2, 0.1, 0.3), (0.0, 0.0, 0.5))
    yard.step(500)
    truth = yard.ground_truth("crate")
    assert truth.linear_velocity == pytest.approx((0.2, 0.1, 0.3), abs=0.05)
    assert truth.angular_velocity == pytest.approx((0.0, 0.0, 0.5), abs=0.05)
    assert truth.T_world_base.z == pytest.approx(2.3, abs=0.05)


def test_saved_and_recompiled_base_continues_bit_for_bit() -> None:
    def yard() -> Simulation:
        simulation = Simulation(FLAT)
        simulation.add(MODEL, T_world_model=ON_THE_FLOOR, options=ModelOptions(base="planar"))
        return simulation

    one, other = yard(), yard()
    base = one.velocity_base("crate")
    assert base is not None
    base.set_velocity((0.3, 0.1, 0.0), (0.0, 0.0, 0.4))
    one.step(100)
    other.load_state(one.save_state())
    one.step(100)
    other.step(100)
    assert np.array_equal(one.world.data.qpos, other.world.data.qpos)
    one.add(MODEL, "late", T_world_model=SE3.from_xyz_rpy((5.0, 0.0, 0.1), (0.0, 0.0, 0.0)))
    one.step(100)
    other.step(100)
    assert one.ground_truth("crate").T_world_base.xyz == pytest.approx(
        other.ground_truth("crate").T_world_base.xyz, abs=1e-9
    )


def test_invalid_bases_and_commands_are_refused() -> None:
    yard = Simulation(FLAT)
    yard.add(MODEL, T_world_model=ON_THE_FLOOR, options=ModelOptions(base="planar"))
    base = yard.velocity_base("crate")
    assert base is not None
    with pytest.raises(InputError, match="finite"):
        base.set_velocity((float("nan"), 0.0, 0.0), (0.0, 0.0, 0.0))
    nailed = Model("nailed", (BOX,), (Joint("nail", "fixed", "world", "box", SE3.identity(), SE3.identity()),))
    with pytest.raises(DescriptionError, match="flies"):
        yard.add(nailed, options=ModelOptions(base="planar"))
    assert list(yard.models) == ["floor", "crate"]
    yard.step(10)


def test_mujoco_with_other_fields_is_an_error_with_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    from roboyard.physics import mujoco_memory

    mujoco_memory.mujoco_layout.cache_clear()
    real = mujoco_memory._mujoco_struct
    bare = type("bare", (ctypes.Structure,), {"_fields_": [("other", ctypes.c_int)]})
    monkeypatch.setattr(mujoco_memory, "_mujoco_struct", lambda name: bare if name == "mjContact" else real(name))
    with pytest.raises(RunError, match=r"mujoco \d.* does not keep its numbers where .*mujoco-core>="):
        mujoco_memory.mujoco_layout()
    monkeypatch.undo()
    assert mujoco_memory.mujoco_layout().contact_size > 0
