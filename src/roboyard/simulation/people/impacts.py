"""What a ball that strikes somebody feels, in the simulation and by the formula of two bodies and a spring.

The largest force is ``v √(k m)``, with the speed ``v``, the stiffness ``k`` of the region and the reduced mass ``m`` of
what strikes and what is struck: the model of impacts in ISO/TS 15066.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from roboyard.description.model import Collision, Inertial, Link, Model, World
from roboyard.description.shapes import Sphere
from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.simulation.engine import Simulation
from roboyard.simulation.people.body import Body, region_of
from roboyard.simulation.people.skeleton import segment

RADIUS = 0.02
"""Of the ball [m]: small enough to reach the neck below the chin."""
ARM = ("upper_arm", "forearm", "hand")
_GAP = 0.004
_LONGEST = 0.5
"""No first touch is longer [s]."""


@dataclass(frozen=True, slots=True)
class Impact:
    """The largest force of a first touch.

    Attributes:
        region: What was struck.
        measured: In the simulation [N].
        truth: By the formula [N].
    """

    region: str
    measured: float
    truth: float

    @property
    def error(self) -> float:
        """Measured against true."""
        return abs(self.measured / self.truth - 1.0)


def strike(body: Body, part: str, *, front: bool, mass: float, speed: float, timestep: float) -> Impact:
    """A ball flies against the middle of a part, in a world without gravity.

    Args:
        body: Whose; it stands still.
        part: One of its links.
        front: From ahead, or from behind; an arm is struck from its side, where no trunk is in the way.
        mass: Of the ball [kg].
        speed: Of the ball [m/s].
        timestep: Of the physics [s].

    Raises:
        InputError: the ball never touches the part.
    """
    capsule, T_part_capsule = body.capsules[part]
    T = body.model.link(part).T_model_link @ T_part_capsule
    outward = np.array([1.0 if front else -1.0, 0.0, 0.0])
    if segment(part) in ARM:
        outward = np.array([0.0, math.copysign(1.0, T.xyz[1]), 0.0])
    deep = capsule.radius + abs(float(T.rotation_matrix()[:, 2] @ outward)) * 0.5 * capsule.length
    start = np.asarray(T.xyz) + (deep + RADIUS + _GAP) * outward
    moment = 0.4 * mass * RADIUS**2
    inertial = Inertial(mass, SE3.identity(), (moment, moment, moment, 0.0, 0.0, 0.0))
    ball = Model(
        "ball", (Link("ball", SE3.identity(), inertial, (Collision("ball", Sphere(RADIUS), SE3.identity()),)),)
    )
    sim = Simulation(World("air", gravity=(0.0, 0.0, 0.0)), timestep=timestep)
    sim.add(body.model, "person", flesh=body.flesh)
    sim.add(ball, "ball", SE3(translation=tuple(start.tolist())))
    sim.data.qvel[:3] = -speed * outward
    flesh = body.flesh[part]
    largest = 0.0
    for _ in range(round(_LONGEST / timestep)):
        sim.step()
        force = float(np.linalg.norm(sim.flesh.forces("person")[part]))
        if largest > 0.0 and force == 0.0:
            break
        largest = max(largest, force)
    if largest == 0.0:
        raise InputError(f"the ball does not meet {part!r}")
    stiffness = flesh.front if front else flesh.behind
    truth = speed * math.sqrt(stiffness / (1.0 / mass + 1.0 / flesh.mass))
    return Impact(region_of(part, float(outward[0])), largest, truth)
