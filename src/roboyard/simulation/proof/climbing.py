"""A cart that drives against a wall: with enough friction it climbs, by Coulomb's law and statics alone."""

from __future__ import annotations

import math

import numpy as np

from roboyard.description.model import Box, Collision, Link, Model, PlacedModel, Surface
from roboyard.geometry import SE3
from roboyard.hardware import JointCommand
from roboyard.simulation.proof.bodies import RADIUS, at, floor, simulation
from roboyard.simulation.proof.check import Check
from roboyard.simulation.proof.driving import LENGTH, cart
from roboyard.simulation.settings import PhysicsSettings

SPEED = 0.2
"""Of the wheels [rad/s]: so slow that spinning them up lifts nothing; they skid while the cart stands at the wall."""
HALVINGS = 7


def climbs(settings: PhysicsSettings, friction: float) -> bool:
    """Whether a four-wheel cart lifts its front wheels along a wall within 4 s; all surfaces have this friction."""
    link = Link(
        "wall", SE3.identity(), collisions=(Collision("wall", Box((0.2, 4.0, 2.0)), SE3.identity(), Surface(friction)),)
    )
    wall = PlacedModel("wall", Model("wall", (link,), static=True), at(x=0.5 * LENGTH + RADIUS + 0.1, z=1.0))
    sim = simulation(settings, floor(friction), wall)
    sim.add(cart(friction=2.0), "cart", at(z=RADIUS))
    names = sim.hardware("cart").joint_names
    sim.hardware("cart").write(JointCommand("velocity", names, np.full(len(names), SPEED)))
    while sim.time_ns < 4_000_000_000:
        sim.step(25)
        if -sim.truth("cart").T_world_base.rotation_matrix()[2, 0] < -0.1:  # its nose points up
            return True
    return False


def least_friction() -> float:
    """From which the cart climbs.

    Its front wheels have just left the floor.  The rear ones push with ``μ N``, so does the wall, whose friction lifts
    with ``μ² N``; ``N (1 + μ²)`` is the weight.  Round the rear wheels' contacts the moments are in balance when
    ``μ r + μ² (r + l) = (1 + μ²) l/2``.
    """
    square, line, rest = RADIUS + 0.5 * LENGTH, RADIUS, -0.5 * LENGTH
    return (-line + math.sqrt(line * line - 4.0 * square * rest)) / (2.0 * square)


def walls(settings: PhysicsSettings) -> tuple[Check, ...]:
    """The least friction, found by halving an interval around it."""
    low, high = 0.4, 0.8
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if climbs(settings, middle) else (middle, high)
    law = "friction from which a four-wheel cart climbs a wall"
    return (Check(law, "μ r + μ² (r + l) = (1 + μ²) l/2", least_friction(), 0.5 * (low + high), "", 0.0, 0.02),)
