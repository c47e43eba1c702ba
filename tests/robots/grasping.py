"""A test bench for grippers: an arm grips, lifts, swings and holds an object from a pedestal."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from tests.harness.bus import BusHarness, Goal

import roboyard as ry
from roboyard.bringup.joint_groups import load_joint_groups
from roboyard.description.model import GROUND_PLUGIN, Box, Collision, Cylinder, Inertial, Link, Model, Surface
from roboyard.geometry import SE3
from roboyard.hardware import JointCommand
from roboyard.kinematics.ik import PointingTarget, solve_ik
from roboyard.manipulation.collision.planning_scene import PlanningScene
from roboyard.manipulation.time_parameterization import JointLimits, make_jerk_limited
from roboyard.messages import action, msg

I = SE3.identity()  # noqa: E741
CYCLE = 0.01
# Where things are gripped in the arm's base, tool, a pose near, palm, how far up it may go, the gripper's action.
PLACES = {
    "iisy": ((0.35, 0.05, 0.15), None, "home", "gripper_body", 0.1, "/gripper/gripper_cmd"),
    "scitos_arm": ((0.45, 0.05, 0.25), "fingertips", "ahead", "arm_link_5", 0.1, "/schunk/gripper"),
    "youbot_arm": ((0.2, 0.03, 0.04), None, "pick", "gripper_palm", 0.03, "/gripper/gripper_cmd"),
}
FORCES = {"iisy": 60.0, "scitos_arm": 100.0, "youbot_arm": 20.0}


def block(size: tuple[float, float, float], mass: float, friction: float) -> Model:
    x, y, z = size
    moments = (mass * (y * y + z * z) / 12, mass * (x * x + z * z) / 12, mass * (x * x + y * y) / 12)
    shape = Collision("shape", Box(size), I, Surface(friction=friction))
    return Model("thing", (Link("thing", I, Inertial(mass, I, (*moments, 0.0, 0.0, 0.0)), (shape,)),))


def cylinder(diameter: float, height: float, mass: float, friction: float) -> Model:
    r = diameter / 2
    across = mass * (3 * r * r + height * height) / 12
    shape = Collision("shape", Cylinder(r, height), I, Surface(friction=friction))
    inertial = Inertial(mass, I, (across, across, mass * r * r / 2, 0.0, 0.0, 0.0))
    return Model("thing", (Link("thing", I, inertial, (shape,)),))


class Bench:
    """In ``run``, an arm with its gripper open round ``thing``, which is ``height`` high and stands on a pedestal.

    It stands ``aside`` along the fingers' way [m], turned by ``turned`` [rad].
    """

    def __init__(
        self, run: ry.Run, name: str, thing: Model, height: float, aside: float = 0.0, turned: float = 0.0
    ) -> None:
        place, tool, near, self.palm, self.up, topic = PLACES[name]
        self.run, self.name, self.sim = run, name, run.simulation
        self.groups = load_joint_groups(name)
        self.chain, self.gripper = self.groups.chain("arm", tool), self.groups.gripper("gripper")
        self.place = np.array(place)
        self.q = np.array(self._over(place, self.groups.group("arm").pose(near)))
        T = PlanningScene.create(self.groups, "arm", tool=tool).T_world_base @ SE3.from_matrix(
            self.chain.forward(self.q)
        )
        x, y, z = T.xyz
        pedestal = Box((0.2, 0.2, 0.02))
        top = Link("stand", I, collisions=(Collision("top", pedestal, I),))
        stand = Model("stand", (top,), static=True, plugins=(GROUND_PLUGIN,))
        self.sim.add(stand, "stand", SE3.from_xyz_rpy((x, y, z - height / 2 - 0.01)))
        run.add_robot(name, nodes=("gripper",))
        joints = {one.name: one for one in self.sim.world.addresses(name).joints}
        for joint, value in zip(self.chain.joints, self.q, strict=True):
            self.sim.world.data.qpos[joints[joint].qpos] = value
        for joint in (one for one in joints if "finger" in one):
            self.sim.world.data.qpos[joints[joint].qpos] = self.gripper.open[0]
        self.sim.world.evaluate()
        fingers = T.rotation_matrix()[:, 1]
        yaw = math.atan2(fingers[1], fingers[0]) - math.pi / 2
        x, y = x + aside * fingers[0], y + aside * fingers[1]
        self.sim.add(thing, "thing", SE3.from_xyz_rpy((x, y, z), (0.0, 0.0, yaw + turned)))
        self.hardware = self.sim.hardware(name)
        self.hold()
        self.hardware.write(JointCommand("position", self.gripper.joints, np.array(self.gripper.open)))
        self.harness = BusHarness(bus=run.bus)
        self._action = topic
        state = "/schunk/gripper/state" if name == "scitos_arm" else "/gripper/state"
        self._states = self.harness.record(state, msg.String)

    @property
    def states(self) -> list[str]:
        """The states that the gripper has published."""
        return self._states.data

    def _over(self, place: tuple[float, ...] | np.ndarray, near: np.ndarray | tuple[float, ...]) -> np.ndarray:
        return np.array(solve_ik(self.chain, PointingTarget(position=tuple(place), axis=(0, 0, -1)), seed=near).best)

    def hold(self) -> None:
        """The arm where it is to be."""
        self.hardware.write(JointCommand("position", self.chain.joints, self.q))

    def send(self, opening: float, effort: float = 0.0) -> Goal:
        """A goal for the gripper."""
        command = msg.GripperCommand(position=opening, max_effort=effort)
        return self.harness.start_goal(self._action, action.GripperCommand, command=command)

    def close(self, effort: float = 0.0, wait: float = 2.0) -> Goal:
        """Close on whatever is there; the goal after ``wait`` [s]."""
        goal = self.send(self.gripper.opening_range[0], effort)
        self.run.run_for(wait)
        return goal

    def move_to(self, goal: np.ndarray) -> None:
        """Move the arm as fast as its rated speed and acceleration allow."""
        limits = JointLimits.from_chain(self.chain)
        trajectory = make_jerk_limited(
            self.chain.joints, self.q, goal, replace(limits, jerk=20.0 * limits.acceleration)
        )
        for k in range(int(trajectory.duration / CYCLE) + 1):
            self.q = trajectory.sample((k + 1) * CYCLE).position
            self.hold()
            self.run.run_for(CYCLE)
        self.q = goal
        self.hold()

    def lift(self) -> None:
        """Straight up from the pedestal."""
        for fraction in np.linspace(0.2, 1.0, 5):
            self.move_to(self._over(self.place + np.array([0.0, 0.0, fraction * self.up]), self.q))

    def sweep(self) -> None:
        """To the side and back, the hand turning."""
        before, aside = self.q.copy(), self.q.copy()
        aside[[0, -1]] += 0.6, 0.3
        self.move_to(aside)
        self.move_to(before)

    def in_hand(self) -> np.ndarray:
        """Pose (4, 4) of the thing in the palm."""
        T = [self._pose(self.name, self.palm), self._pose("thing", "thing")]
        return np.array(np.linalg.inv(T[0]) @ T[1])

    def _pose(self, model: str, link: str) -> np.ndarray:
        body, T = self.sim.world.addresses(model).links[link].body, np.eye(4)
        T[:3, :3], T[:3, 3] = self.sim.world.data.xmat[body].reshape(3, 3), self.sim.world.data.xpos[body]
        return T

    def forces(self) -> dict[str, float]:
        """What each finger truly presses with, by its shape [N]."""

        watch, found = self.sim.world.contacts, {"left": 0.0, "right": 0.0}
        mine = np.array([watch.geom_name(geom).startswith(f"{self.name}::") for geom in watch.geoms])
        for touch in self.sim.world.find_contacts(mine, ground=False):
            side = touch.geom.rpartition("_")[2]
            found[side] += abs(float(np.dot(touch.force, touch.normal)))
        return found


def apart(one: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """Between two poses [m, degrees]."""
    turn = np.linalg.inv(one)[:3, :3] @ other[:3, :3]
    cosine = min(1.0, (np.trace(turn) - 1.0) / 2.0)
    return float(np.linalg.norm(one[:3, 3] - other[:3, 3])), math.degrees(math.acos(cosine))
