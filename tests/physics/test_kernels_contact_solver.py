"""The contact solver agrees with MuJoCo's fully converged Newton method for every type of constraint."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from roboyard.physics.kernels.contact_modifiers import correct_rotating_contacts, stiffen_moving_contacts
from roboyard.physics.kernels.contact_solver import MAX_DENSE_DOFS, solve_contacts
from roboyard.physics.kernels.step import compute_accelerations, evaluate, solve_accelerations
from roboyard.physics.mujoco_memory import mujoco_layout

LAYOUT = np.array(mujoco_layout(), np.int64)

SCENE = """
<mujoco>
  <option cone="elliptic" timestep="0.002" impratio="{impratio}"/>
  <default><geom friction="{friction} 0.01 0.002" condim="{condim}"/></default>
  <worldbody>
    <geom type="plane" size="5 5 1"/>
    <body pos="0 0 0.11"><freejoint/><geom type="box" size=".2 .15 .1" mass="3"/>
      <body pos=".2 .2 0"><joint type="hinge" axis="0 1 0" frictionloss="0.4" damping="0.01"/>
        <geom type="cylinder" size=".1 .03" euler="90 0 0" mass=".5"/></body>
      <body pos="-.2 -.2 0"><joint name="a" type="hinge" axis="0 1 0" limited="true" range="-0.05 0.05"/>
        <geom type="cylinder" size=".1 .03" euler="90 0 0" mass=".5"/></body>
    </body>
    <body pos="0.02 0.01 0.32"><freejoint/><geom type="sphere" size=".1" mass="1"/></body>
    <body pos="1 0 0.3"><joint name="b" type="slide" axis="0 0 1" frictionloss="1"/>
      <geom type="capsule" size=".05 .1" mass="1"/></body>
  </worldbody>
  <equality><joint joint1="b" joint2="a" polycoef="0 0.5 0 0 0"/></equality>
</mujoco>
"""


def random_contact_state(
    condim: int, friction: float, impratio: float, seed: int
) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """The scene thrown about: some steps of the engine's own after a random push."""
    model = mujoco.MjModel.from_xml_string(SCENE.format(condim=condim, friction=friction, impratio=impratio))
    data = mujoco.MjData(model)
    rng = np.random.default_rng(seed)
    data.qvel[:] = rng.normal(0.0, 1.5, model.nv)
    data.qvel[2] = -0.5
    for _ in range(int(rng.integers(1, 60))):
        mujoco.mj_step(model, data)
    data.qfrc_applied[:] = rng.normal(0.0, 2.0, model.nv)
    return model, data


@pytest.mark.parametrize("condim", [1, 3, 4, 6])
@pytest.mark.parametrize("seed", range(12))
def test_contact_solver_finds_the_minimum_of_mujoco(condim: int, seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    model, data = random_contact_state(condim, float(rng.uniform(0.2, 1.2)), float(rng.choice([1.0, 10.0])), seed)
    address = model._address, data._address, LAYOUT
    evaluate(*address)
    mujoco.mj_fwdActuation(model, data)
    mujoco.mj_fwdAcceleration(model, data)
    assert solve_contacts(*address)
    solve_accelerations(*address)
    solution = data.qacc.copy(), data.efc_force.copy(), data.qfrc_constraint.copy()
    assert model.opt.solver == mujoco.mjtSolver.mjSOL_NEWTON
    assert model.opt.iterations == 100

    model.opt.tolerance, model.opt.iterations, model.opt.ls_tolerance = 0.0, 300, 1e-6
    mujoco.mj_fwdConstraint(model, data)
    mujoco_solution = data.qacc, data.efc_force, data.qfrc_constraint
    for value, reference in zip(solution, mujoco_solution, strict=True):
        scale = 1.0 + np.abs(reference).max(initial=0.0)
        np.testing.assert_allclose(value / scale, reference / scale, atol=2e-6)


@pytest.mark.parametrize("condim", [1, 3, 4, 6])
@pytest.mark.parametrize("seed", range(12))
def test_contact_solver_finds_the_minimum_with_stiffened_moving_contacts(condim: int, seed: int) -> None:
    model, data = random_contact_state(condim, 0.8, 10.0, seed)
    address = model._address, data._address, LAYOUT
    evaluate(*address)
    before = data.efc_D.copy()
    stiffen_moving_contacts(*address)
    correct_rotating_contacts(*address, model.opt.timestep)
    np.testing.assert_allclose(data.efc_D * data.efc_R, 1.0)
    has_moving_contact = any(0 not in model.body_weldid[model.geom_bodyid[contact.geom]] for contact in data.contact)
    assert has_moving_contact == bool((data.efc_D != before).any())
    solve_accelerations(*address)
    inertia, change = np.zeros((model.nv, model.nv)), data.qacc - data.qacc_smooth
    mujoco.mj_fullM(model, data, inertia)
    mujoco.mj_constraintUpdate(
        model, data, data.efc_J.reshape(-1, model.nv) @ data.qacc - data.efc_aref, np.zeros(1), 0
    )
    np.testing.assert_allclose(inertia @ change, data.qfrc_constraint, atol=1e-4)


def test_contact_solver_scene_has_every_constraint_type() -> None:
    row_types: set[int] = set()
    for condim in (1, 3):
        for seed in range(12):
            _, data = random_contact_state(condim, 0.5, 1.0, seed)
            row_types |= set(data.efc_type[: data.nefc].tolist())
    constraint_types = mujoco.mjtConstraint
    assert row_types >= {
        int(constraint_types.mjCNSTR_EQUALITY),
        int(constraint_types.mjCNSTR_FRICTION_DOF),
        int(constraint_types.mjCNSTR_LIMIT_JOINT),
        int(constraint_types.mjCNSTR_CONTACT_FRICTIONLESS),
        int(constraint_types.mjCNSTR_CONTACT_ELLIPTIC),
    }


def test_computing_accelerations_does_not_change_the_warm_start() -> None:
    model, data = random_contact_state(3, 0.7, 10.0, 3)
    evaluate(model._address, data._address, LAYOUT)
    before = data.qacc_warmstart.copy()
    compute_accelerations(model._address, data._address, LAYOUT, data.qacc_warmstart, np.zeros(model.nv))
    np.testing.assert_array_equal(data.qacc_warmstart, before)
    assert not np.array_equal(data.qacc, before)


def test_large_problems_are_solved_by_mujoco() -> None:
    balls = "".join(
        f'<body pos="{0.3 * k} 0 0.099"><freejoint/><geom size=".1"/></body>' for k in range(MAX_DENSE_DOFS // 6 + 1)
    )
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><option cone="elliptic"/><worldbody><geom type="plane" size="9 9 1"/>{balls}</worldbody></mujoco>'
    )
    data = mujoco.MjData(model)
    address = model._address, data._address, LAYOUT
    evaluate(*address)
    solve_accelerations(*address)
    assert data.solver_niter[0] > 0
    assert not solve_contacts(*address)
    np.testing.assert_allclose(data.qfrc_constraint[2::6], 9.81 * model.body_mass[1], rtol=0.3)
