"""Settings of the physics engine, and the reasons for their values."""

from __future__ import annotations

from dataclasses import dataclass, replace

import mujoco

from roboyard.errors import ConfigError

ARENA_BYTES = 256 << 20
"""Size of MuJoCo's arena for contacts and constraints [bytes]; only the pages in use take real memory."""


@dataclass(frozen=True, slots=True)
class PhysicsSettings:
    """Settings of the physics engine.

    Attributes:
        timestep: Physics step [s].
        contact_time: Time constant with which a penetration decays [s]; at least twice the step or it is unstable.
            At 10 ms a wheel that skids at 1 m/s stays within 0.3 mm of the ground; at 5 ms it chatters.
        impedance: Constraint stiffness at zero and full penetration (MuJoCo's ``solimp`` d0 and dmax).
        impratio: How much stiffer friction is than the normal force: at 10 a box on a slope at half the angle of
            friction creeps 0.04 mm/s, at 1 it creeps 0.4 mm/s.
        iterations: Maximum number of solver iterations; with a warm start the solver needs one or two.
        tolerance: Tolerance at which the solver stops.
    """

    timestep: float = 0.002
    contact_time: float = 0.01
    impedance: tuple[float, float] = (0.9, 0.95)
    impratio: float = 10.0
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

    @property
    def contact_softness(self) -> tuple[float, float]:
        """Time constant [s] and damping ratio (MuJoCo's ``solref``) of contacts without restitution.

        With critical damping a body would rebound with 13 % of its impact speed.  More damping lowers the rebound, but
        one step must not remove more than the whole speed: 4 % remain with steps of 2 ms, 1 % with 1 ms and less.
        """
        time = max(self.contact_time, 2.0 * self.timestep)
        ratio = min(time / (2.0 * self.timestep), 5.0)
        return time / ratio, ratio  # the stiffness is that of critical damping at `time`

    def apply(self, spec: mujoco.MjSpec, gravity: tuple[float, float, float]) -> None:
        """Write these settings and ``gravity`` [m/s²] into a specification."""
        spec.memory = ARENA_BYTES
        option = spec.option
        option.timestep = self.timestep_ns * 1e-9
        option.gravity = gravity
        # Implicit in velocity: the derivative part of the actuators is stable at any gain.
        option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC  # the same friction in every direction
        option.solver = mujoco.mjtSolver.mjSOL_NEWTON
        option.impratio = self.impratio
        option.iterations = self.iterations
        option.tolerance = self.tolerance
        # Splitting into islands costs more than it saves for robots in a world (10–20 % of a step, measured).
        option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_ISLAND)
        # Sleep is on for what it does to static bodies, which are then placed once and not at every step (15 % of a
        # step in a furnished world).  Nothing ever sleeps, every tree is marked so: a sleeper's state cannot be saved.
        option.enableflags |= int(mujoco.mjtEnableBit.mjENBL_SLEEP)
        # A diverged state is an error that the run reports; it is not silently put back to the start.
        option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_AUTORESET)

        geom = spec.default.geom
        geom.solref = self.contact_softness
        geom.solimp = [*self.impedance, 0.001, 0.5, 2.0]
        geom.condim = 3

        compiler = spec.compiler
        compiler.degree = False
        compiler.autolimits = True
        compiler.inertiafromgeom = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_FALSE  # masses come from the file only
        compiler.alignfree = False
        compiler.fusestatic = False  # every link stays a body of its own
