"""Errors of the physics against laws with closed forms; PyBullet repeats some of the experiments.

`roboyard bench physics` lists the error of every check; ``python benchmarks/physics.py FOLDER`` draws the figure of
docs/explanation/physics-validation.md, ``--table`` prints its tables.
"""

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from roboyard.geometry.constants import GRAVITY
from roboyard.physics.settings import PhysicsSettings
from roboyard.simulation.validation import Law, LawCheck, drives, friction, mechanics, run_experiments
from roboyard.simulation.validation.bodies import (
    HOLLOW_BALL_INERTIA,
    MASS,
    RADIUS,
    SOLID_BALL_INERTIA,
    make_ball,
    make_box,
    make_pose,
)

SETTINGS = PhysicsSettings()
FINE = replace(SETTINGS, timestep=0.0005)


class Bullet:
    """One body in PyBullet, with the same step, gravity and friction, and without its default damping."""

    def __init__(self, gravity: float = GRAVITY) -> None:
        import pybullet

        self.p = pybullet
        self.client = pybullet.connect(pybullet.DIRECT)
        self.dt = SETTINGS.timestep
        pybullet.setTimeStep(self.dt)
        pybullet.setGravity(0.0, 0.0, -gravity)
        self.still = {"linearDamping": 0.0, "angularDamping": 0.0, "rollingFriction": 0.0, "spinningFriction": 0.0}

    def floor(self, slope: float, friction: float, restitution: float = 0.0) -> None:
        """A plane that falls towards +x."""
        normal = [math.sin(slope), 0.0, math.cos(slope)]
        shape = self.p.createCollisionShape(self.p.GEOM_PLANE, planeNormal=normal)
        plane = self.p.createMultiBody(0, shape)
        self.p.changeDynamics(plane, -1, lateralFriction=friction, restitution=restitution)

    def body(self, shape: dict[str, Any], inertia: list[float], where: Any, restitution: float = 0.0) -> int:
        """A free body; contacts multiply coefficients, so that its own friction is 1."""
        made = int(self.p.createMultiBody(MASS, self.p.createCollisionShape(**shape), -1, *self._pose(where)))
        self.p.changeDynamics(
            made, -1, lateralFriction=1.0, localInertiaDiagonal=inertia, restitution=restitution, **self.still
        )
        return made

    def _pose(self, where: Any) -> tuple[list[float], list[float]]:
        return where.translation.tolist(), [*where.rotation[1:].tolist(), float(where.rotation[0])]

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds / self.dt)):
            self.p.stepSimulation()

    def close(self) -> None:
        self.p.disconnect(self.client)


def bullet_fall() -> float:
    bullet = Bullet()
    made = bullet.body({"shapeType": bullet.p.GEOM_SPHERE, "radius": RADIUS}, [0.008] * 3, make_pose(z=100.0))
    bullet.p.resetBaseVelocity(made, [3.0, 0.0, 5.0])
    bullet.run(1.0)
    z = bullet.p.getBasePositionAndOrientation(made)[0][2]
    bullet.close()
    return 100.0 - z


def bullet_slope(slope: float, friction: float, share: float | None) -> float:
    """Acceleration down a slope: of a crate, or of a ball with inertia ``share · m r²``."""
    bullet = Bullet()
    bullet.floor(slope, friction)
    if share is None:
        shape = {"shapeType": bullet.p.GEOM_BOX, "halfExtents": [0.2, 0.2, 0.1]}
        model, height = make_box(), 0.1
    else:
        shape = {"shapeType": bullet.p.GEOM_SPHERE, "radius": RADIUS}
        model, height = make_ball(share), RADIUS
    inertial = model.links[0].inertial
    inertia = list(inertial.inertia[:3]) if inertial else []
    made = bullet.body(shape, inertia, make_pose(pitch=slope) @ make_pose(z=height))
    bullet.run(0.3)
    before = np.array(bullet.p.getBaseVelocity(made)[0])
    bullet.run(1.0)
    change = np.array(bullet.p.getBaseVelocity(made)[0]) - before
    bullet.close()
    return float(change[0] * math.cos(slope) - change[2] * math.sin(slope))


def bullet_pendulum(amplitude: float) -> float:
    """Mean period of five swings."""
    bullet = Bullet()
    p = bullet.p
    made = p.createMultiBody(
        0, -1, -1, [0, 0, 0], [0, 0, 0, 1], linkMasses=[MASS], linkCollisionShapeIndices=[-1],
        linkVisualShapeIndices=[-1], linkPositions=[[0, 0, 0]], linkOrientations=[[0, 0, 0, 1]],
        linkInertialFramePositions=[[0, 0, -mechanics.PENDULUM_LENGTH]], linkInertialFrameOrientations=[[0, 0, 0, 1]],
        linkParentIndices=[0], linkJointTypes=[p.JOINT_REVOLUTE], linkJointAxis=[[0, 1, 0]],
    )  # fmt: skip
    p.changeDynamics(made, 0, localInertiaDiagonal=[0.002] * 3, jointDamping=0.0, **bullet.still)
    p.changeDynamics(made, -1, linearDamping=0.0, angularDamping=0.0)
    p.setJointMotorControl2(made, 0, p.VELOCITY_CONTROL, force=0.0)
    p.resetJointState(made, 0, amplitude)
    crossings, before, time = [], amplitude, 0.0
    while len(crossings) < 11 and time < 60.0:
        p.stepSimulation()
        time += bullet.dt
        now = p.getJointState(made, 0)[0]
        if before * now < 0.0:
            crossings.append(time - bullet.dt * now / (now - before))
        before = now
    bullet.close()
    return (crossings[-1] - crossings[0]) / 5.0


PEERS: dict[str, Callable[[], float]] = {
    "height lost in 1 s of a throw": bullet_fall,
    **{
        f"period of a pendulum with amplitude {d}°": lambda d=d: bullet_pendulum(math.radians(d))
        for d in (5, 45, 90, 150, 175)
    },
    **{
        f"acceleration of a box on a slope of {d}°, μ = {mu}": lambda d=d, mu=mu: bullet_slope(
            math.radians(d), mu, None
        )
        for d, mu in ((25, 0.3), (40, 0.6), (50, 1.0))
    },
    "acceleration of a solid ball that rolls down 20°": lambda: bullet_slope(
        math.radians(20.0), 0.8, SOLID_BALL_INERTIA
    ),
    "acceleration of a hollow ball that rolls down 20°": lambda: bullet_slope(
        math.radians(20.0), 0.8, HOLLOW_BALL_INERTIA
    ),
    "acceleration of a solid ball that slips down 40°, μ = 0.1": lambda: bullet_slope(
        math.radians(40.0), 0.1, SOLID_BALL_INERTIA
    ),
}
"""Experiments that PyBullet repeats, by quantity; each returns the measured value."""


def figure(check: LawCheck) -> dict[str, Any]:
    """Return a check as a figure of `roboyard bench`: its relative error in percent, and its tolerance."""
    expected = f"{check.law.formula} = {check.expected:.5g} {check.unit}".rstrip()
    made: dict[str, Any] = {
        "name": f"relative error of the {check.quantity}: {expected}",
        "value": round(100.0 * check.error, 5),
        "unit": "%",
        "target": f"<= {100.0 * check.tolerance:g}",
    }
    if check.quantity in PEERS:
        made["peer"] = "PyBullet"
        try:
            made["peer_value"] = round(100.0 * replace(check, measured=PEERS[check.quantity]()).error, 5)
        except ImportError as error:
            made["missing"] = str(error)
    return made


def laws(nightly: bool) -> list[dict[str, Any]]:
    """All checks with the default physics settings."""
    return [figure(check) for checks in run_experiments(SETTINGS).values() for check in checks]


def fine(nightly: bool) -> list[dict[str, Any]]:
    """Checks whose error depends on the time step, with steps of 0.5 ms."""
    found = run_experiments(FINE, ("impact", "restitution", "rebound", "gyroscope", "free rotation", "energy"))
    return [
        figure(replace(check, quantity=f"{check.quantity}, with steps of 0.5 ms"))
        for part in found.values()
        for check in part
    ]


PARTS = (laws, fine)


# -- tables and figure of the page -------------------------------------------------------------------------------------
def table() -> Iterator[str]:
    """Yield the lines of the page's tables: all checks, and the sources of the formulas."""
    yield "| quantity | formula | expected | measured | error | tolerance | error of PyBullet |"
    yield "|---|---|---|---|---|---|---|"
    laws: dict[Law, None] = {}
    for checks in run_experiments(SETTINGS).values():
        for check in checks:
            laws[check.law] = None
            has_peer = check.quantity in PEERS
            peer = f"{100.0 * replace(check, measured=PEERS[check.quantity]()).error:.2g} %" if has_peer else ""
            error = f"{100.0 * check.error:.2g} %" if check.error > 1e-7 else "0"
            value = f"{check.expected:.4g} {check.unit}".strip()
            measured = f"{check.measured:.4g}" if abs(check.measured) > 1e-9 else "0"
            tolerance = f"{100 * check.tolerance:g} %"
            yield (
                f"| {check.quantity} | {check.law.formula} | {value} | {measured} | {error} | {tolerance} | {peer} |"
            )
    yield from ("", "| formula | source |", "|---|---|")
    yield from (f"| {law.formula} | {law.source} |" for law in laws)


def pictures(folder: Path) -> None:
    """Draw the laws as curves and the simulated values as dots."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(2, 3, figsize=(12.5, 7), layout="constrained")
    (swing, slope, bounce), (motor, skid, energy) = axes

    degrees = np.linspace(1, 179, 179)
    swing.plot(degrees, [mechanics.pendulum_period(math.radians(d)) for d in degrees], color="0.6")
    asked = [5, 30, 60, 90, 120, 150, 165, 175]
    swing.plot(asked, [mechanics.measure_pendulum_period(SETTINGS, math.radians(d)) for d in asked], "o", color="teal")
    swing.set(title="Period of a pendulum", xlabel="amplitude [°]", ylabel="period [s]")

    for share, name, colour in (
        (SOLID_BALL_INERTIA, "solid ball", "teal"),
        (HOLLOW_BALL_INERTIA, "hollow ball", "darkorange"),
    ):
        degrees = np.linspace(0, 80, 161)
        slope.plot(degrees, [friction.rolling_acceleration(math.radians(d), 0.3, share) for d in degrees], color="0.6")
        asked = list(range(5, 80, 5))
        found = [
            friction.measure_slope_acceleration(SETTINGS, make_ball(share), math.radians(d), 0.3, RADIUS) for d in asked
        ]
        slope.plot(asked, found, "o", color=colour, label=name, markersize=5)
    slope.set(title="Rolling, then slipping down a slope, μ = 0.3", xlabel="slope [°]", ylabel="acceleration [m/s²]")
    slope.legend()

    asked = np.linspace(0.0, 1.0, 11)
    bounce.plot([0, 1], [0, 1], color="0.6")
    bounce.plot(asked, [mechanics.measure_restitution(SETTINGS, e) for e in asked], "o", color="teal", label="2 ms")
    bounce.plot(asked, [mechanics.measure_restitution(FINE, e) for e in asked], "+", color="black", label="0.5 ms")
    bounce.set(title="Impact on the floor", xlabel="given restitution", ylabel="simulated restitution")
    bounce.legend()

    for constant, colour in ((0.05, "darkorange"), (0.1, "teal"), (0.2, "purple")):
        times, speeds = drives.record_step_response(SETTINGS, constant, 10.0)
        motor.plot(times, 10.0 * -np.expm1(-times / constant), color="0.6")
        motor.plot(times[::12], speeds[::12], ".", color=colour, label=f"T = {constant:g} s")
    motor.set(title="Step response of a motor", xlabel="time [s]", ylabel="speed [rad/s]", xlim=(0, 0.6))
    motor.legend()

    lengths = np.linspace(0.05, 0.8, 60)
    asked = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
    turned = [drives.measure_spot_rotation(SETTINGS, 5.0, 0.5, length) for length in asked]
    skid.plot(lengths, [drives.skid_rate(5.0, length) for length in lengths], color="0.6")
    skid.plot(asked, [rate for rate, _ in turned], "o", color="teal", label="rate [rad/s]")
    skid.plot(lengths, [drives.skid_torque(0.5, length) for length in lengths], color="0.6")
    skid.plot(asked, [torque for _, torque in turned], "s", color="darkorange", label="torque of a wheel [N m]")
    skid.set(title="Skid steering on the spot, μ = 0.5", xlabel="distance between the axles [m]")
    skid.legend()

    for settings, colour in ((SETTINGS, "teal"), (FINE, "darkorange")):
        for links, style in ((1, "-"), (2, ":")):
            sim = mechanics.make_simulation(settings)
            sim.add(mechanics.make_pendulum(n_links=links), "pendulum")
            sim.world.data.qpos[:links] = 2.0
            course = mechanics.record_energy(sim, 10.0)
            span = links * (links + 1) * MASS * GRAVITY * mechanics.PENDULUM_LENGTH
            label = f"{'double ' if links > 1 else ''}pendulum, {settings.timestep * 1e3:g} ms"
            times = np.linspace(0.0, 10.0, len(course))
            energy.plot(times, 100.0 * (course - course[0]) / span, style, color=colour, label=label, linewidth=1)
    energy.set(title="Change of energy", xlabel="time [s]", ylabel="% of the range")
    energy.legend()
    figure.savefig(folder / "physics-validation.png", dpi=80)


if __name__ == "__main__":
    if "--table" in sys.argv:
        print("\n".join(table()))
    else:
        pictures(Path(sys.argv[1]))
