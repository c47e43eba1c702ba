"""The truth about a robot's arm, for judging it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry import SE3
from roboyard.kinematics import Chain
from roboyard.safety.capsules import LinkCapsules
from roboyard.scenarios.metrics.reaching import ArmMotion
from roboyard.simulation.assembly import Placement
from roboyard.simulation.truth import link_pose

if TYPE_CHECKING:
    from roboyard.scenarios.robot_handle import RobotHandle
    from roboyard.simulation import Simulation


class TrueArm:
    """Looks at a robot as it stands at the moment.

    Args:
        simulation: Where it stands.
        robot: Its groups are read when they are asked for.
    """

    def __init__(self, simulation: Simulation, robot: RobotHandle) -> None:
        self._simulation, self._robot = simulation, robot
        self._placement: Placement | None = None  # as the world was compiled last, and where its joints are in it
        self._rows = np.zeros(0, int), np.zeros(0, int)

    def root(self) -> str:
        """Name of its root link."""
        return self._robot.groups.root

    def joints(self) -> tuple[str, ...]:
        """Names of the joints of its first group, in their order; none where it has no groups."""
        groups = self._robot.groups
        return groups.chain().joints if groups.groups else ()

    def tip(self, group: str) -> tuple[SE3, SE3]:
        """True poses in the world of its root link, and of the tip of a group. Raises UnknownNameError."""
        groups = self._robot.groups
        places, data = self._simulation.placement(self._robot.name).links, self._simulation.data
        tip = groups.group(group).tip
        frame = next((one for one in groups.model.frames if one.name == tip), None)
        link, T_link_tip = (tip, SE3.identity()) if frame is None else (frame.link, frame.T_link_frame)
        return link_pose(data, places[groups.root]), link_pose(data, places[link]) @ T_link_tip

    def motion(self) -> ArmMotion | None:
        """How its first group stands and moves; None where it has no groups."""
        if not self._robot.groups.groups:
            return None
        chain, capsules = self._parts
        placement, data = self._simulation.placement(self._robot.name), self._simulation.data
        if placement is not self._placement:
            places = {joint.name: joint for joint in placement.joints}
            own = [places[name] for name in chain.joints]
            self._placement = placement
            self._rows = np.array([one.qpos for one in own], int), np.array([one.dof for one in own], int)
        q, velocity = data.qpos[self._rows[0]], data.qvel[self._rows[1]]
        return ArmMotion(chain, capsules, link_pose(data, placement.links[chain.base]).inverse(), q, velocity)

    @cached_property
    def _parts(self) -> tuple[Chain, LinkCapsules]:
        chain = self._robot.groups.chain()
        return chain, LinkCapsules.of(self._robot.groups.model, chain)

    def limits(self, joints: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Limits (n,) of velocity and acceleration of joints; infinite where nobody states one."""
        from roboyard.manipulation.timing import JointLimits

        groups = self._robot.groups
        found: dict[str, tuple[float, float]] = {}
        for name in groups.groups:
            limits = JointLimits.of(groups.chain(name))
            found |= dict(zip(limits.joints, zip(limits.velocity, limits.acceleration, strict=True), strict=True))
        rows = [found.get(name, (np.inf, np.inf)) for name in joints]
        velocity, acceleration = np.array(rows, dtype=np.float64).reshape(-1, 2).T
        return velocity, acceleration
