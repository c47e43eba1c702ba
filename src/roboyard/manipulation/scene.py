"""What an arm plans in: the robot, what stands around it, what it holds, and which pairs may touch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from roboyard.config.wording import did_you_mean
from roboyard.errors import InputError, UnknownNameError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.geometry.constants import GRAVITY_VECTOR
from roboyard.kinematics.chain import Chain
from roboyard.kinematics.dynamics import ChainDynamics
from roboyard.manipulation.collision.bodies import Bodies, make_work
from roboyard.manipulation.collision.building import (
    Part,
    RobotSide,
    WorldSide,
    allowed_pairs,
    make_bodies,
    parts_of,
    robot_side,
    wholes,
    world_side,
)
from roboyard.manipulation.collision.clearance import distances, free_line, touching
from roboyard.manipulation.collision.obstacles import Attached, Obstacle, Voxels
from roboyard.manipulation.groups import Group, Groups

Pair = tuple[str, str]
"""Names of links, obstacles or attached shapes."""


_MADE_OF: Final = {
    "parts": ("groups", "chain", "attached"),
    "robot": ("groups", "chain", "attached", "allowed"),
    "around": ("groups", "chain", "T_world_robot", "obstacles"),
    "T_world_base": ("groups", "chain", "T_world_robot"),
}
"""What is made of what, and so kept while that stays as it is."""


@dataclass(frozen=True, eq=False)
class PlanningScene:
    """A group of a robot's joints, and everything that it must not touch.

    Immutable: `with_obstacles`, `attach` and the like give another one.

    Attributes:
        groups: What is known of the robot.
        chain: The group's, to the tool that goals are for.
        group: The group.
        T_world_robot: The robot's model frame in the world.
        obstacles: What stands around, by name.
        attached: What links carry, by name.
        allowed: Pairs that may touch, beside those of the groups.
        margin: What is nearer than this touches [m].
    """

    groups: Groups
    chain: Chain
    group: Group
    T_world_robot: SE3 = field(default_factory=SE3.identity)
    obstacles: Mapping[str, Obstacle | Voxels] = field(default_factory=dict)
    attached: Mapping[str, Attached] = field(default_factory=dict)
    allowed: frozenset[Pair] = frozenset()
    margin: float = 0.001

    def __post_init__(self) -> None:
        if not 0.0 < self.margin < 1.0:
            raise InputError(f"a margin of {self.margin} m", valid="more than 0, less than 1 m")

    @classmethod
    def of(
        cls,
        groups: Groups,
        group: str | None = None,
        *,
        tool: str | None = None,
        T_world_robot: SE3 | None = None,
        obstacles: Iterable[Obstacle | Voxels] = (),
        held: Mapping[str, float] | None = None,
        margin: float = 0.001,
    ) -> PlanningScene:
        """A scene of a robot.

        Args:
            groups: Of the robot.
            group: Which of them moves; the first unless named.
            tool: Which frame goals are for; the group's tip unless named.
            T_world_robot: Where the robot stands.
            obstacles: What stands around.
            held: Positions of joints that are not the group's [rad or m].
            margin: What is nearer than this touches [m].

        Raises:
            UnknownNameError: there is no such group, tool or joint.
            InputError: two obstacles of one name, or a margin that is none.
        """
        chain = groups.chain(group, tool, held)
        bare = cls(groups, chain, groups.group(group), T_world_robot or SE3.identity(), margin=margin)
        return bare.with_obstacles(obstacles)

    # -- other scenes ------------------------------------------------------------------------------------------------
    def with_obstacles(self, obstacles: Iterable[Obstacle | Voxels]) -> PlanningScene:
        """With further obstacles. Raises InputError for a name that is taken."""
        found, further = dict(self.obstacles), list(obstacles)
        for one in further:
            if one.name in found:
                raise InputError(f"two obstacles are called {one.name!r}", valid="a name for each")
            found[one.name] = one
        made = self._but(obstacles=found)
        if "around" in vars(self):
            vars(made)["around"] = self.around + world_side(further, self.T_world_base.inverse())
        return made

    def without(self, *names: str) -> PlanningScene:
        """Without some obstacles. Raises UnknownNameError."""
        for name in names:
            self._known("obstacle", name, self.obstacles)
        return self._but(obstacles={name: one for name, one in self.obstacles.items() if name not in names})

    def moved(self, T_world_robot: SE3) -> PlanningScene:
        """With the robot at another place."""
        return self._but(T_world_robot=T_world_robot)

    def attach(self, thing: Attached) -> PlanningScene:
        """With something that a link carries. Raises UnknownNameError, InputError."""
        self._known("link", thing.link, self.chain.link_mounts)
        for link in thing.touches:
            self._known("link", link, self.chain.link_mounts)
        if thing.name in self.attached or thing.name in self.chain.link_mounts:
            raise InputError(f"the name {thing.name!r} is taken", valid="a name of its own")
        return self._but(attached={**self.attached, thing.name: thing})

    def touchable(self, name: str) -> PlanningScene:
        """The group's gripper may touch an obstacle: while it goes round what it is to grasp.

        Raises:
            UnknownNameError: there is no such obstacle, or the group has no gripper.
        """
        self._known("obstacle", name, self.obstacles)
        if self.group.gripper is None:
            raise UnknownNameError(f"group {self.group.name!r} has no gripper", valid="gripper: … in its groups file")
        return self.allowing(*((finger, name) for finger in self._fingers()))

    def untouchable(self, name: str) -> PlanningScene:
        """What the gripper was allowed to touch it is no longer, once it has retreated. Raises UnknownNameError."""
        self._known("obstacle", name, self.obstacles)
        return self._but(allowed=frozenset(pair for pair in self.allowed if name not in pair))

    def grasp(
        self, name: str, q: ArrayLike, link: str | None = None, touches: Sequence[str] = (), mass: float = 0.0
    ) -> PlanningScene:
        """An obstacle becomes attached where it is, with the joints at ``q`` (n,); the group's gripper may touch it.

        From then on it is looked at with everything else.  Where it still stands on something, `allowing` that pair
        lets it be lifted off.  With its mass [kg] the joints' efforts are reckoned with.

        Raises:
            UnknownNameError: there is no such obstacle or link.
            InputError: it is a cloud of voxels.
        """
        self._known("obstacle", name, self.obstacles)
        one = self.obstacles[name]
        if isinstance(one, Voxels):
            raise InputError(f"{name!r} is a cloud of voxels", valid="an obstacle with a shape")
        carrier = link or self._tip_link()
        T = (self.T_world_base @ SE3.from_matrix(self.link_pose(carrier, q))).inverse() @ one.T_world
        return self.without(name).attach(Attached(name, carrier, one.geometry, T, (*self._fingers(), *touches), mass))

    def release(self, name: str, q: ArrayLike) -> PlanningScene:
        """Something attached becomes an obstacle where it is, with the joints at ``q``.

        What it touched in the hand it may touch until it is `untouchable`: so that the fingers can open and retreat.
        Raises UnknownNameError.
        """
        self._known("attached shape", name, self.attached)
        one = self.attached[name]
        T_world = self.T_world_base @ SE3.from_matrix(self.link_pose(one.link, q)) @ one.T_link
        rest = {key: value for key, value in self.attached.items() if key != name}
        freed = self._but(attached=rest).with_obstacles([Obstacle(name, one.geometry, T_world)])
        return freed.allowing(*((link, name) for link in one.touches))

    def drop(self, name: str) -> PlanningScene:
        """Something attached is lost, nobody knows where to. Raises UnknownNameError."""
        self._known("attached shape", name, self.attached)
        return self._but(attached={key: value for key, value in self.attached.items() if key != name})

    def without_attached(self, *names: str) -> PlanningScene:
        """Without some of what links carry: it is gone, not set down. Raises UnknownNameError."""
        for name in names:
            self._known("attached shape", name, self.attached)
        return self._but(attached={name: one for name, one in self.attached.items() if name not in names})

    def allowing(self, *pairs: Pair) -> PlanningScene:
        """With pairs that may touch; a name may also be that of a whole model, object or person.

        Raises:
            UnknownNameError: there is nothing of a name.
        """
        known = [*self.chain.link_mounts, *self.obstacles, *self.attached]
        whole = [name for one in (*self.obstacles, *self.attached) for name in wholes(one)[1:]]
        for name in (name for pair in pairs for name in pair):
            if name not in whole:
                self._known("link, obstacle or attached shape", name, known)
        return self.tolerating(*pairs)

    def tolerating(self, *pairs: Pair) -> PlanningScene:
        """As `allowing`, also of what may come later."""
        return self._but(allowed=self.allowed | set(pairs))

    def disallowing(self, *pairs: Pair) -> PlanningScene:
        """Without pairs that were allowed to touch."""
        gone = {*pairs, *((other, one) for one, other in pairs)}
        return self._but(allowed=frozenset(pair for pair in self.allowed if pair not in gone))

    def with_joints(self, held: Mapping[str, float], tool: str | None = None) -> PlanningScene:
        """With joints that are not the group's at other positions [rad or m], for a tool of the group.

        Raises:
            UnknownNameError: there is no such joint or tool.
        """
        return self._but(chain=self.groups.chain(self.group.name, tool, held))

    def with_margin(self, margin: float) -> PlanningScene:
        """With another margin [m]. Raises InputError."""
        return self._but(margin=margin)

    # -- asking ------------------------------------------------------------------------------------------------------
    @cached_property
    def T_world_base(self) -> SE3:
        """The chain's base in the world."""
        if self.chain.base == "world":
            return self.T_world_robot
        above = {joint.child: joint.parent for joint in self.groups.model.joints}
        top = self.chain.base
        while above.get(top, "world") != "world":
            top = above[top]
        T_base_top = SE3.from_matrix(self.chain.link_mounts[top][1])
        return self.T_world_robot @ self.groups.model.link(top).T_model_link @ T_base_top.inverse()

    @cached_property
    def dynamics(self) -> ChainDynamics:
        """What motions take, with what links carry."""
        pull = self.T_world_base.rotation_matrix().T @ np.array(GRAVITY_VECTOR)
        loads = [one.load() for one in self.attached.values() if one.mass > 0.0]
        return ChainDynamics.from_model(self.groups.model, self.chain, loads, pull)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Solids of the robot and of what it carries, from the base on."""
        return parts_of(self.groups.model, self.chain, self.attached)

    @cached_property
    def world_names(self) -> tuple[str, ...]:
        """Of the obstacle that each solid of the world is part of."""
        return self._built[1]

    @property
    def bodies(self) -> Bodies:
        """What the collision kernels take."""
        return self._built[0]

    @cached_property
    def robot(self) -> RobotSide:
        """What collision kernels take of the robot and of what it carries."""
        allowed = allowed_pairs(self.groups, self.attached, self.allowed, self.chain)
        return robot_side(self.chain, self.parts, allowed)

    @cached_property
    def around(self) -> WorldSide:
        """What collision kernels take of what stands around."""
        return world_side(self.obstacles.values(), self.T_world_base.inverse())

    @cached_property
    def _built(self) -> tuple[Bodies, tuple[str, ...]]:
        return make_bodies(self.robot, self.around, self.margin)

    def contacts(self, q: ArrayLike) -> list[Pair | None]:
        """What touches first in each state (k, n), or None where nothing is too near. Raises InputError."""
        states = np.atleast_2d(self.chain.as_positions(q))
        bodies = self.bodies
        return [self.named(who) for who in touching(bodies, make_work(bodies), states)]

    def contact(self, q: ArrayLike) -> Pair | None:
        """What touches in a state (n,), or None. Raises InputError."""
        return self.contacts(q)[0]

    def free(self, q: ArrayLike) -> bool:
        """Whether nothing touches in a state (n,). Raises InputError."""
        return self.contact(q) is None

    def free_line(self, a: ArrayLike, b: ArrayLike) -> bool:
        """Whether nothing touches on the straight way of the joints from ``a`` to ``b`` (n,). Raises InputError."""
        bodies = self.bodies
        return bool(free_line(bodies, make_work(bodies), self.chain.as_positions(a), self.chain.as_positions(b)))

    def distance(self, q: ArrayLike, limit: float = 1.0) -> float:
        """How far everything that must not touch is apart [m]: at most ``limit``, 0 where something touches.

        Never more than it is; negative depths are known to `ExactChecker`. Raises InputError.
        """
        bodies = self.bodies
        return float(distances(bodies, make_work(bodies), np.atleast_2d(self.chain.as_positions(q)), limit)[0])

    def room(self, q: ArrayLike, limit: float = 1.0) -> float:
        """As `distance`, of the robot from the world only: its own links are often near to each other."""
        bodies = self.bodies._replace(pairs=np.zeros((0, 2), np.int64))
        return float(distances(bodies, make_work(bodies), np.atleast_2d(self.chain.as_positions(q)), limit)[0])

    def link_pose(self, link: str, q: ArrayLike) -> Array:
        """Pose (4, 4) of a link in the chain's base. Raises UnknownNameError, InputError."""
        self._known("link", link, self.chain.link_mounts)
        frame, T = self.chain.link_mounts[link]
        found: Array = self.chain.frames(q)[frame] @ T
        return found

    def named(self, who: Any) -> Pair | None:
        """Names of two solids that touch, as kernels number them."""
        one, other = int(who[0]), int(who[1])
        if one < 0:
            return None
        name = self.parts[one].name
        return (name, self.world_names[other]) if other >= 0 else (name, self.parts[-1 - other].name)

    def _fingers(self) -> tuple[str, ...]:
        return self.groups.gripper(self.group.gripper).links if self.group.gripper is not None else ()

    def _tip_link(self) -> str:
        for frame in self.groups.model.frames:
            if frame.name == self.group.tip:
                return frame.link
        return self.group.tip

    def _but(self, **changes: Any) -> PlanningScene:
        made = replace(self, **changes)
        for name, sources in _MADE_OF.items():  # people who move change nothing of the robot, nor of a table
            if name in vars(self) and not any(source in changes for source in sources):
                vars(made)[name] = vars(self)[name]
        return made

    def _known(self, kind: str, name: str, known: Iterable[str]) -> None:
        names = list(known)
        if name not in names:
            raise UnknownNameError(
                f"no {kind} {name!r}{did_you_mean(name, names)}",
                location=f"scene of {self.groups.model.name}",
                valid=", ".join(names[:40]) or "there is none",
            )
