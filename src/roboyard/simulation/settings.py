"""How the physics engine is set, and why: one frozen record applied to every assembled world."""

from __future__ import annotations

from dataclasses import dataclass, replace

import mujoco

from roboyard.errors import ConfigError

MEMORY = 256 << 20
"""Room for contacts and solver [bytes]; only what is touched becomes real memory."""


@dataclass(frozen=True, slots=True)
class PhysicsSettings:
    """Numbers of the engine.

    MuJoCo solves normal and friction forces in one convex problem.  A contact that slides is then pushed apart in
    proportion to its sliding speed, so a box sliding at 2 m/s hops 22 mm high and a skid-steered robot turns at a
    quarter of its rate.  Here the coupled problem carries practically no friction (``impratio`` 1e-6) and the
    *noslip* pass that follows finds friction for the normal forces found: Coulomb's law, exact to 1 % in sliding and
    without creep at rest (see the tests of slopes, sliding and skid-steer turning).

    Attributes:
        timestep: Physics step [s].
        contact_time: Time constant with which a penetration decays [s]; at least twice the step or it is unstable.
        impedance: Constraint stiffness at zero and full penetration (MuJoCo's ``solimp`` d0 and dmax).
        impratio: Friction's share in the coupled solve; see above.
        noslip_iterations: Sweeps of the friction pass; two keep the skid-steer turning rate within 0.5 % of many.
        iterations: Bound of the main solver; warm-started it needs one or two.
        tolerance: At which the main solver stops.
    """

    timestep: float = 0.002
    contact_time: float = 0.005
    impedance: tuple[float, float] = (0.9, 0.95)
    impratio: float = 1e-6
    noslip_iterations: int = 2
    iterations: int = 50
    tolerance: float = 1e-8

    def __post_init__(self) -> None:
        if not 1e-5 <= self.timestep <= 0.02:
            raise ConfigError(f"physics timestep {self.timestep} s", valid="between 0.00001 and 0.02 s")

    def with_timestep(self, timestep: float) -> PhysicsSettings:
        """These settings with another step [s]. Raises ConfigError."""
        return replace(self, timestep=timestep)

    @property
    def timestep_ns(self) -> int:
        """The step in whole nanoseconds; the engine's own clock follows it."""
        return round(self.timestep * 1e9)

    def apply(self, spec: mujoco.MjSpec, gravity: tuple[float, float, float]) -> None:
        """Write these settings and ``gravity`` [m/s²] into a specification."""
        spec.memory = MEMORY
        option = spec.option
        option.timestep = self.timestep_ns * 1e-9
        option.gravity = gravity
        # Implicit in velocity: the derivative part of the actuators is stable at any gain.
        option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC  # the same friction in every direction
        option.solver = mujoco.mjtSolver.mjSOL_NEWTON
        option.impratio = self.impratio
        option.noslip_iterations = self.noslip_iterations
        option.iterations = self.iterations
        option.tolerance = self.tolerance
        # Splitting into islands costs more than it saves for robots in a world (10–20 % of a step, measured).
        option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_ISLAND)
        # A diverged state is an error that the run reports; it is not silently put back to the start.
        option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_AUTORESET)

        geom = spec.default.geom
        geom.solref = [max(self.contact_time, 2.0 * self.timestep), 1.0]
        geom.solimp = [*self.impedance, 0.001, 0.5, 2.0]
        geom.condim = 3

        compiler = spec.compiler
        compiler.degree = False
        compiler.autolimits = True
        compiler.inertiafromgeom = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_FALSE  # masses come from the file only
        compiler.alignfree = False
        compiler.fusestatic = False  # every link stays a body of its own
