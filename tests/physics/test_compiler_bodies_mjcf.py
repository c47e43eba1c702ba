"""An MJCF file read and assembled by this project moves as plain MuJoCo moves it.

Compared without contacts, which are this project's own, at the same step and integrator.  Limits have the softness of
this project, so the reference gets it too; what its own default does instead is measured at the end.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest
from numpy.typing import NDArray
from tests.description.mjcf_samples import disable_mujoco_log

from roboyard.description import World, load_model
from roboyard.geometry import SE3
from roboyard.hardware import JointCommand
from roboyard.physics.world import link_pose
from roboyard.simulation import Simulation

STEP = 0.0005
LIMIT_SOLREF = (0.005, 1.0)
"""Time constant and damping ratio of this project's joint limits."""
LIMIT_SOLIMP = (0.9, 0.95, 0.001, 0.5, 2.0)
"""Their impedance, which is MuJoCo's own default."""
CONSTRAINT_SOLIMP = (0.9999, 0.9999, 0.001, 0.5, 2.0)
"""Impedance of its couplings and loops."""


@pytest.fixture(autouse=True, scope="module")
def _no_log_file() -> Iterator[None]:
    with disable_mujoco_log():
        yield


class SimulationPair:
    """The same file twice: ``plain`` by MuJoCo alone, ``sim`` by way of this project's description."""

    def __init__(self, description: str | Path, softness: tuple[float, float] | None = LIMIT_SOLREF) -> None:
        self.reference_model = m = (
            mujoco.MjModel.from_xml_path(str(description))
            if isinstance(description, Path)
            else mujoco.MjModel.from_xml_string(description)
        )
        m.opt.timestep, m.opt.integrator = STEP, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        m.opt.solver, m.opt.tolerance, m.opt.iterations = mujoco.mjtSolver.mjSOL_NEWTON, 1e-10, 100
        # Motors here are off until they are told something; MuJoCo's servos hold zero from the start.
        disable_flags = mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_ACTUATION
        m.opt.disableflags |= int(disable_flags)
        m.opt.density = m.opt.viscosity = 0.0
        if softness is not None:
            m.jnt_solref[:], m.jnt_solimp[:], m.jnt_margin[:] = softness, LIMIT_SOLIMP, 0.0
            m.eq_solref[:], m.eq_solimp[:] = (2.0 * STEP, 0.5), CONSTRAINT_SOLIMP
        self.reference_data = mujoco.MjData(m)
        model = load_model(description)
        links_without_collisions = tuple(replace(link, collisions=()) for link in model.links)
        gravity = (float(m.opt.gravity[0]), float(m.opt.gravity[1]), float(m.opt.gravity[2]))
        self.sim = Simulation(World("nowhere", gravity=gravity), timestep=STEP)
        self.sim.add(replace(model, links=links_without_collisions), "robot")
        names = {m.joint(number).name: number for number in range(m.njnt)}
        addresses = [address for address in self.sim.world.addresses("robot").joints if address.name in names]
        assert addresses
        self._simulation_qpos = np.array([address.qpos for address in addresses])
        self._reference_qpos = np.array([m.jnt_qposadr[names[address.name]] for address in addresses])
        self.reference_data.qpos[self._reference_qpos] = (
            self.sim.world.data.qpos[self._simulation_qpos] + m.qpos0[self._reference_qpos]
        )

    def drive(self, controls: Callable[[float, float], float]) -> None:
        """Give each actuator a constant control between its bounds (-1 and 1 where it has none), in both.

        Of two servos of one joint, position and speed, the second is told to keep still: here it is one servo.
        """
        m, hardware = self.reference_model, self.sim.hardware("robot")
        m.opt.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_ACTUATION)
        driven_joints = set()
        for number in range(m.nu):
            low, high = m.actuator_ctrlrange[number] if m.actuator_ctrllimited[number] else (-1.0, 1.0)
            joint = m.joint(m.actuator_trnid[number][0])
            if joint.name in driven_joints:
                continue
            driven_joints.add(joint.name)
            self.reference_data.ctrl[number] = value = controls(low, high)
            gear, gain = float(m.actuator_gear[number][0]), float(m.actuator_gainprm[number][0])
            bias, kp, kv = (float(one) for one in m.actuator_biasprm[number][:3])
            if int(m.actuator_biastype[number]) == int(mujoco.mjtBias.mjBIAS_NONE):
                bias = kp = kv = 0.0
            actuator_input = gain * value + bias
            if kp:
                command = JointCommand(
                    "position", (joint.name,), np.array([actuator_input / (-kp * gear) - joint.qpos0[0]])
                )
            elif kv:
                command = JointCommand("velocity", (joint.name,), np.array([actuator_input / (-kv * gear)]))
            else:
                command = JointCommand("effort", (joint.name,), np.array([actuator_input * gear]))
            hardware.write(command)

    def run(self, seconds: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Positions of the joints from as they are drawn, (steps, joints): plain MuJoCo's and this project's."""
        reference_positions, simulation_positions = [], []
        for _ in range(round(seconds / STEP)):
            mujoco.mj_step(self.reference_model, self.reference_data)
            self.sim.step()
            reference_positions.append(
                self.reference_data.qpos[self._reference_qpos] - self.reference_model.qpos0[self._reference_qpos]
            )
            simulation_positions.append(self.sim.world.data.qpos[self._simulation_qpos].copy())
        return np.array(reference_positions), np.array(simulation_positions)


ARM = '<body name="{}" pos="{}"><joint name="{}" {}/><geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/>{}</body>'


HANGING = """<body name="hanging" pos="0.3 0 0"><joint type="ball"/><joint name="out" type="slide" axis="0 0 1"/>
<geom size="0.05"/><site name="ring"/></body>"""


def arm(
    shoulder_attributes: str = 'axis="0 1 0"',
    elbow_attributes: str = 'axis="0 1 0.3"',
    top_level_elements: str = "",
    elbow_body_elements: str = "",
) -> str:
    """A double pendulum with another beside it."""
    elbow_body = ARM.format(
        "b", "0.3 0 0", "elbow", elbow_attributes, f'<site name="tip" pos="0.3 0 0"/>{elbow_body_elements}'
    )
    side_body = ARM.format("c", "0 1 0", "side", 'axis="0 1 0" pos="0.02 0 0"', '<site name="end" pos="0.3 0 0"/>')
    bodies = ARM.format("a", "0 0 1", "shoulder", shoulder_attributes, elbow_body) + side_body
    return f'<mujoco><compiler angle="radian"/><worldbody>{bodies}</worldbody>{top_level_elements}</mujoco>'


MODELS = {
    "falling": arm(),
    "damped, sprung, rubbing, with a rotor": arm(
        'axis="0 1 0" damping="0.2" armature="0.03" frictionloss="0.1"', 'axis="0 1 0" stiffness="8" springref="0.5"'
    ),
    "spring by time constant": arm('axis="0 1 0" springdamper="0.3 0.8"'),
    "limited": arm('axis="0 1 0" range="-0.3 0.4"', 'axis="0 1 0.3" range="-0.2 0.5" damping="0.02"'),
    "drawn elsewhere than at zero": arm('axis="0 1 0" ref="0.4" range="0.1 0.9" stiffness="3" springref="0.2"'),
    "several joints of a body": arm('axis="0 1 0"/><joint name="sway" axis="0 0 1"/><joint name="lift" type="slide"'),
    "ball that is braked": arm('type="ball" damping="0.05" frictionloss="0.02" armature="0.01" stiffness="0.5"'),
    "ball that is limited": arm('type="ball" range="0 0.7" damping="0.02"'),
    "coupled": arm(
        top_level_elements='<equality><joint joint1="side" joint2="elbow" polycoef="0.1 -0.7 0 0 0"/></equality>'
    ),
    "connected bodies": arm(
        elbow_attributes='axis="0 1 0"',
        top_level_elements='<equality><connect body1="b" body2="c" anchor="0.3 0 0"/></equality>',
    ),
    "connected to the world": arm(top_level_elements='<equality><connect body1="b" anchor="0.1 0 0"/></equality>'),
    "connected sites": arm(
        elbow_body_elements=HANGING, top_level_elements='<equality><connect site1="ring" site2="tip"/></equality>'
    ),
    "welded bodies": arm(
        elbow_body_elements=HANGING, top_level_elements='<equality><weld body1="hanging" body2="b"/></equality>'
    ),
    "welded at an anchor": arm(
        elbow_body_elements=HANGING,
        top_level_elements='<equality><weld body1="hanging" body2="b" anchor="0.3 0.05 0" relpose="0 0.05 0 '
        '1 0 0 0"/></equality>',
    ),
    "held still": arm(top_level_elements='<equality><joint joint1="elbow" polycoef="0.3 0 0 0 0"/></equality>'),
    "off": arm(top_level_elements='<equality><weld body1="b" body2="c" active="false"/></equality>'),
    "motors": arm(
        top_level_elements='<actuator><motor joint="shoulder" gear="3"/><motor joint="elbow" ctrlrange="-2 '
        '2"/></actuator>'
    ),
    "servos": arm(
        top_level_elements="""<actuator><position joint="shoulder" kp="60" kv="3" forcerange="-30 30" ctrlrange="-1 1"/>
        <velocity joint="elbow" kv="0.7" gear="2"/><position joint="side" kp="20" dampratio="1"/></actuator>"""
    ),
    "servos of any gains": arm(
        top_level_elements="""<actuator><general joint="shoulder" gainprm="30" biastype="affine" biasprm="4 -25 -2"
        gear="1.5"/>
        <general joint="elbow" gainprm="2" biastype="affine" biasprm="0.3 0 -1.1"/>
        <general joint="side" gainprm="3" biastype="none" biasprm="7 7 7"/></actuator>"""
    ),
    "motors with rotors": arm(
        top_level_elements='<actuator><motor joint="shoulder" gear="4" armature="0.01" damping="0.03"/></actuator>'
    ),
    "a servo with a brake": arm(
        'axis="0 1 0" ref="0.2"', top_level_elements='<actuator><position joint="shoulder" kp="40"/></actuator>'
    ).replace("</actuator>", '<velocity joint="shoulder" kv="4" /></actuator>'),
}


@pytest.mark.parametrize(
    ("name", "driven"),
    [
        (name, motion_range)
        for name in MODELS
        for motion_range in (False, True)
        if "<actuator>" in MODELS[name] or not motion_range
    ],
)
def test_mjcf_model_moves_as_in_mujoco(name: str, driven: bool) -> None:
    """Within a thousandth of the way: that is what is left of a step of first order in both."""
    pair = SimulationPair(MODELS[name])
    if driven:
        pair.drive(lambda low, high: 0.7 * high + 0.3 * low)
    reference_positions, simulation_positions = pair.run(0.5)
    motion_range = np.ptp(reference_positions, axis=0).max()
    assert motion_range > 0.1
    assert np.abs(reference_positions - simulation_positions).max() < 1e-3 * motion_range


def test_welded_loop_with_offset_is_closed_from_the_start() -> None:
    """The weld of the file counts, not how the bodies stand in it; plain MuJoCo would pull them there with a jerk."""
    weld = '<equality><weld body1="b" body2="hanging" relpose="0.3 0 0.01 0.9998 0 0 0.02"/></equality>'
    sim = Simulation(World("nowhere"))
    sim.add(replace(load_model(arm(elbow_body_elements=HANGING, top_level_elements=weld)), name="robot"))
    for _ in range(2):
        links = sim.world.addresses("robot").links
        T_b_hanging = link_pose(sim.world.data, links["b"]).inverse() @ link_pose(sim.world.data, links["hanging"])
        assert T_b_hanging.almost_equal(SE3((0.9998, 0.0, 0.0, 0.02), (0.3, 0.0, 0.01)), 1e-4)
        sim.step(250)


def test_menagerie_joints_move_as_in_mujoco(external_data: Path) -> None:
    """Gymnasium's robots, let go and driven: within 3 thousandths of the way in half a second."""
    files = sorted((external_data / "descriptions" / "mjcf_gymnasium").rglob("*.xml"))
    if not files:
        pytest.skip("ROBOYARD_DATA has no folder 'descriptions/mjcf_gymnasium'")
    for number, file in enumerate(files):
        rng = np.random.default_rng(number)
        for driven in (False, True):
            pair = SimulationPair(file)
            if driven:
                pair.drive(lambda low, high, rng=rng: float(rng.uniform(low, high)))
            reference_positions, simulation_positions = pair.run(0.5)
            assert (
                np.abs(reference_positions - simulation_positions).max()
                < 1e-7 + 3e-3 * np.ptp(reference_positions, axis=0).max()
            ), (file.name, driven)


def test_joint_limits_are_stiffer_than_in_mujoco() -> None:
    """What is left of the difference where a file says nothing of its limits: joints go less far over them here."""
    pair = SimulationPair(MODELS["limited"], softness=None)
    reference_positions, simulation_positions = pair.run(1.0)
    overshoots = [
        float(np.abs(positions[:, 1]).max()) - 0.5 for positions in (reference_positions, simulation_positions)
    ]
    assert 0.0 < overshoots[1] < 0.5 * overshoots[0]
