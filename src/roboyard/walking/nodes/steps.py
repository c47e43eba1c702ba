"""The steps node: a goal and a map of heights in, a walk over uneven ground, planned step by step, out."""

from __future__ import annotations

import math
from contextlib import suppress
from functools import partial
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.bus import Future, Node, TransformError, resource
from roboyard.bus.offload import OffloadedTask
from roboyard.compute import expect_kernels
from roboyard.config import parameter
from roboyard.control.joint_claims import JointClaims
from roboyard.description.model import Model
from roboyard.errors import ConfigError, RoboyardError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.geometry.constants import GRAVITY
from roboyard.grids.height_map import HeightMap
from roboyard.hardware.interface import Hardware, JointCommand, check_command_mode, joint_indices
from roboyard.messages import msg
from roboyard.messages.convert.grid_maps import heights_from_msg
from roboyard.walking.gait_kernels import held_by, tips_at
from roboyard.walking.leg_kernels import all_finite, nearest_solutions, place_feet
from roboyard.walking.loads import LOADING, told_joints
from roboyard.walking.nodes.gait import LeggedConfig, softness
from roboyard.walking.nodes.legged_messages import foot_force, gait_state, legged_odometry, pose_of, tilt_and_heading
from roboyard.walking.nodes.steps_messages import plan_message, plan_of_message, touchdown_message
from roboyard.walking.odometry import LeggedOdometry, body_motion, levelled
from roboyard.walking.standing import rising
from roboyard.walking.steps import replanning as again
from roboyard.walking.steps.following import Footing, PlanFollower, walk_as_data, walk_of_data
from roboyard.walking.steps.foresight import Foresight
from roboyard.walking.steps.ground import Ground
from roboyard.walking.steps.ground_kernels import body_height, lay_cones, spread_ground
from roboyard.walking.steps.guide import lay_lengths
from roboyard.walking.steps.judge import make_room
from roboyard.walking.steps.past import settled
from roboyard.walking.steps.plan import StepPlan
from roboyard.walking.steps.planning import PLANNERS, expect_planner
from roboyard.walking.steps.problem import Problem
from roboyard.walking.steps.rig import Rig
from roboyard.walking.steps.rig_kernels import fill_table, knee_turn
from roboyard.walking.steps.swing import swing_place
from roboyard.walking.steps.whereabouts import over_feet, over_ground
from roboyard.walking.walker import Walker

_BEFORE = 1e-3
"""A plan stops so long before a foot would come down where it may not [s]."""
_BETTER = 0.5
"""Another plan takes over if it is sooner at the goal by this [s]."""
_TRIES = 8
"""So often it looks for a plan before it says that there is none."""
_LAG = 0.1
"""Joints may be behind by as much before the plan waits for them [rad]."""


class StepsNodeConfig(LeggedConfig):
    """Configuration of `StepsNode`."""

    goal: tuple[float, ...] = parameter((), doc="First goal, x and y in the map [m]; empty: none.")
    planner: str = parameter("splitting", choices=tuple(PLANNERS), doc="Planner of the steps.", runtime=True)
    budget: int = parameter(
        60_000, low=1, high=10**9, doc="Largest number of events that planning tries.", runtime=True
    )
    seed: int = parameter(0, low=0, high=2**31, doc="Seed of the planner's random numbers.", runtime=True)
    thinking: float = parameter(1.0, unit="s", low=0.01, high=600.0, doc="Declared duration of planning.", runtime=True)
    improving: float = parameter(
        2.0,
        unit="s",
        low=0.1,
        high=1e4,
        doc="Time between two searches for a better plan during the walk.",
        runtime=True,
    )
    effort: int = parameter(
        6_000, low=0, high=10**9, runtime=True,
        doc="Largest number of events that a search for a better plan tries; 0: no such search.",
    )  # fmt: skip
    takeover: float = parameter(
        0.1, unit="s", low=0.01, high=60.0, doc="Declared duration of planning during the walk.", runtime=True
    )
    footing: Footing = parameter(factory=Footing, flatten="", doc="How feet find the ground.")
    friction: float = parameter(
        0.8, low=0.01, high=10.0, doc="Assumed coefficient of friction of the ground.", runtime=True
    )
    horizon: float = parameter(
        0.9, unit="m", low=0.0, high=100.0, doc="Distance below which unseen ground counts as a hole.", runtime=True
    )
    around: float = parameter(
        0.7, unit="m", low=0.0, high=10.0, runtime=True,
        doc="Distance from the start below which unseen ground is as high as the ground there.",
    )  # fmt: skip
    map_frame: str = parameter("map", doc="Frame of the map.")


class StepsNode(Node[StepsNodeConfig]):
    """Makes a robot with legs stand up and walk to goals on steps that it plans over a map of heights.

    in: goal_pose (geometry_msgs/PoseStamped: where its body shall go; it keeps its heading), elevation_map
    (grid_map_msgs/GridMap), step_plan (roboyard_msgs/FootstepPlan: walked as it is), imu (sensor_msgs/Imu), feet/<leg>
    (gazebo_msgs/ContactsState), /tf map_frame → odom_frame
    out: positions to the hardware, steps/plan (roboyard_msgs/FootstepPlan: what it walks), steps/touchdown
    (roboyard_msgs/Touchdown), odom (nav_msgs/Odometry), /tf odom_frame → base_frame, gait/state
    (roboyard_msgs/GaitState: as who walks on a gait tells it)

    Without anybody who tells where the odometry's frame lies in the map's, both are the same.
    """

    hardware: Hardware = resource(Hardware)
    legs: Walker = resource(Walker)
    description: Model = resource(Model)
    joint_claims: JointClaims = resource(JointClaims, make=JointClaims)

    state_fields = (
        "_phase", "_way", "_at", "_goal", "_map", "_turn", "_feels", "_forces", "_touching", "_ticks", "_near",
        "_loaded", "_number", "_stands", "_tries", "_bad", "_improved_ns", "_asked", "_begun",
    )  # fmt: skip

    def setup(self) -> None:
        """Take the joints, and stand up."""
        expect_kernels(fill_table, knee_turn, body_height, lay_cones, spread_ground, lay_lengths, swing_place)
        expect_kernels(all_finite, nearest_solutions, place_feet, body_motion, levelled)
        expect_kernels(told_joints, held_by, tips_at, make_room)
        expect_planner(self.config.planner)
        if len(self.config.goal) not in (0, 2) or not all(map(math.isfinite, self.config.goal)):
            raise ConfigError(f"goal {self.config.goal}", location=self.full_name, valid="[x, y] of the map [m]")
        joints, count = self.legs.joints, len(self.legs.legs)
        check_command_mode(self.hardware, joints, "position", self.full_name)
        self._names = [leg.name for leg in self.legs.legs]
        self._where = joint_indices(self.hardware, joints)
        self._rig = Rig.of(self.legs, self.description)
        self._odometry = LeggedOdometry()
        self._turn: tuple[float, float, float] | None = None
        self._feels, self._forces, self._touching = False, np.zeros(count), np.zeros(count, bool)
        self._softness = softness(self.description, joints).reshape(-1, 3)
        self._weight, self._loaded = GRAVITY * self.description.mass, np.zeros(count)
        self._near, self._at, self._ticks, self._number = self._actual(), 0, 0, 0
        self._goal, self._tries = list(self.config.goal), 0
        self._map: HeightMap | None = None
        self._stands = np.zeros((count, 3))
        self._follower: PlanFollower | None = None
        self._search: OffloadedTask | None = None
        self._bad: list[int] = []
        self._begun: list[float] = []
        self._improved_ns = self._asked = 0
        self.joint_claims.claim_if_free(self.full_name, joints)
        self._phase = "rising"
        self._way: Array = rising(self.legs, self._near, ground=self.config.ground, period=1.0 / self.config.rate)
        self._frames = (self.frame(self.config.odom_frame), self.frame(self.config.base_frame))
        self._state = self.publisher("gait/state", msg.GaitState)
        self._odom = self.publisher("odom", msg.Odometry)
        self._published = self.publisher("steps/plan", msg.FootstepPlan, latched=True)
        self._downs = self.publisher("steps/touchdown", msg.Touchdown)
        self.subscribe("goal_pose", msg.PoseStamped, self._on_goal)
        self.subscribe("elevation_map", msg.GridMap, self._on_map)
        self.subscribe("step_plan", msg.FootstepPlan, self._on_plan)
        self.subscribe("imu", msg.Imu, self._on_imu)
        for i, leg in enumerate(self.legs.legs if self.config.feet else ()):
            self.subscribe(f"{self.config.feet}/{leg.name}", msg.ContactsState, partial(self._on_touch, i))
        self.timer(rate=self.config.rate, callback=self._tick, immediate=True)

    def close(self) -> None:
        """Leave the joints to others."""
        self.joint_claims.unregister(self.full_name)

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """State as plain data."""
        walk = None if self._follower is None else walk_as_data(self._follower)
        return super().save_state() | {"odometry": self._odometry.save_state(), "walk": walk}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        super().load_state(state)
        self._odometry.load_state(state["odometry"])
        self._follower = None if state["walk"] is None else walk_of_data(state["walk"], self.config.footing)

    # -- what comes in -------------------------------------------------------------------------------------------------
    def _on_goal(self, message: Any) -> None:
        goal = [message.pose.position.x, message.pose.position.y]
        if not all(map(math.isfinite, goal)):
            self.log.error(f"refused a goal at {goal}: not finite", throttle=5.0)
        elif self._phase not in ("rising", "standing"):
            self.log.warn(f"refused a goal at {goal[0]:.2f}, {goal[1]:.2f}: it is {self._phase}")
        else:
            self._goal = goal

    def _on_map(self, message: Any) -> None:
        try:
            self._map = heights_from_msg(message)
        except RoboyardError as error:
            self.log.error(f"refused a map: {error}", throttle=5.0)
            return
        if self._phase == "walking":
            self._look_again()

    def _on_plan(self, message: Any) -> None:
        if self._phase != "standing":
            self.log.warn(f"refused a plan: it is {self._phase}")
            return
        try:
            plan = plan_of_message(message, len(self.legs.legs))
        except RoboyardError as error:
            self.log.error(f"refused {error}")
            return
        self._goal = [message.goal.x, message.goal.y]
        self._set_out(plan, "given")

    def _on_imu(self, message: Any) -> None:
        self._turn = tilt_and_heading(message.orientation)

    def _on_touch(self, leg: int, message: Any) -> None:
        self._feels, self._touching[leg], self._forces[leg] = True, bool(message.states), foot_force(message)

    # -- planning ------------------------------------------------------------------------------------------------------
    def _plan(self) -> None:
        """Look for steps to the goal from where the robot stands."""
        body, stop = self._body(self.legs.feet(self._near)), Event()
        (x, y), goal = body.translation[:2], self._goal
        given = self._known(x, y)
        if given is None:
            return
        try:
            feet = self._stands[:, :2]
            ground = Ground.of_map(given, self._rig, heading=body.yaw, friction=self.config.friction, start=feet)
            problem = Problem.of(self._rig, ground, (x, y), goal, feet=self._stands)
        except RoboyardError as error:
            self._refuse(str(error))
            return
        self._phase, self._tries = "planning", self._tries + 1
        asked = {"budget": self.config.budget, "seed": self.config.seed + self._tries - 1, "stop": stop.is_set}
        self.offload(
            again.planned,
            problem,
            self.config.planner,
            asked,
            latency=self.config.thinking,
            on_done=self._on_planned,
            cancel_event=stop,
        )

    def _on_planned(self, done: Future) -> None:
        found = done.result
        if isinstance(found, str):
            self._phase = "standing"
            if self._tries >= _TRIES:
                self._refuse(found)
        else:
            self._set_out(found, "start")

    def _refuse(self, why: str) -> None:
        self._goal, self._tries = [], 0
        self.log.error(f"it stays where it is: {why}")
        self.report_health("error", "no plan", reason=why)

    def _set_out(self, plan: StepPlan, why: str) -> None:
        """Walk a plan from its start."""
        body = self._body(self.legs.feet(self._near))
        self._follower = PlanFollower(plan, body, self._stands, self.config.footing)
        self._phase, self._tries, self._bad, self._improved_ns = "walking", 0, [], self.now_ns
        self._tell(why)
        self.report_health("ok", f"walks {plan.length:.2f} m on {len(plan.swings)} steps")

    def _look_again(self) -> None:
        """The ground has changed: whether the plan's footholds are still there; if not another plan is needed."""
        follower = self._follower
        if follower is None or (given := self._known(*follower.place)) is None:
            return
        try:
            heading, feet = follower.plan.heading, again.footing_at(follower.plan, follower.time)[:, :2]
            ground = Ground.of_map(given, self._rig, heading=heading, friction=self.config.friction, start=feet)
        except RoboyardError as error:
            self.log.error(f"refused a map: {error}", throttle=5.0)
            return
        self._bad = again.footholds_gone(follower.plan, follower.time, ground)
        # what was thought gone may turn out to be there
        follower.spoilt = min((follower.plan.swings[k].lands for k in self._bad), default=math.inf) - _BEFORE
        if self._bad:
            self.log.warn(f"{len(self._bad)} footholds of the plan are gone")
            self._improve()

    def _known(self, x: float, y: float) -> HeightMap | None:
        """The map, completed for a body at a place [m]; None without one."""
        if self._map is None or self._map.variance is None:
            return self._map
        if not self._begun:
            self._begun = [x, y, float(self._stands[:, 2].mean())]
        foresight = Foresight(self.config.horizon, (self._begun[0], self._begun[1], self._begun[2]), self.config.around)
        feet, footholds = self._stands, np.zeros((0, 3))
        if self._follower is not None:
            feet = np.vstack([feet, again.footing_at(self._follower.plan, self._follower.time)])
            footholds = self._follower.plan.footholds
        return foresight.complete(self._map, (x, y), self._goal, feet, footholds, 0.8 * self._rig.scale)

    def _improve(self) -> None:
        """Look for another plan while this one is walked; one that was asked for before is forgotten."""
        follower = self._follower
        if follower is None or not self._goal or (given := self._known(*follower.place)) is None:
            return
        if self._search is not None:
            self._search.cancel()
        plan, self._improved_ns = follower.plan, self.now_ns
        self._asked += 1
        try:
            past = settled(plan, follower.time + self.config.takeover * self.config.footing.pace, frozenset(self._bad))
        except RoboyardError as error:
            self.log.warn(f"no other plan: {error}", throttle=5.0)
            return
        stop, goal = Event(), np.array(self._goal)
        asked = {"budget": self.config.effort, "seed": self.config.seed + self._asked, "stop": stop.is_set}
        self._search = self.offload(
            again.replanned, self._rig, given, self.config.friction, plan, goal, past, self.config.planner, asked,
            latency=self.config.takeover, on_done=self._on_replanned, cancel_event=stop,
        )  # fmt: skip

    def _on_replanned(self, done: Future) -> None:
        self._search = None
        found, follower = done.result, self._follower
        if follower is None or self._phase != "walking":
            return
        if isinstance(found, str):
            if self._bad:
                self.log.warn(f"no way round yet: {found}", throttle=1.0)
                self._improve()
            return
        if self._bad or found.duration < follower.plan.duration - _BETTER:
            why, self._bad = "ground" if self._bad else "better", []
            follower.change(found)
            self._tell(why)

    def _tell(self, why: str) -> None:
        if self._follower is None:
            return
        self._number += 1
        plan, at, goal = self._follower.plan, self._follower.time, np.array(self._goal)
        told = plan_message(
            plan, goal, self.now_ns, self.frame(self.config.map_frame), number=self._number, at=at, why=why
        )
        self._published.publish(told)

    # -- going on ------------------------------------------------------------------------------------------------------
    def _tick(self) -> None:
        actual = self._actual()
        feet, dt = self.legs.feet(actual), 1.0 / self.config.rate
        if self.joint_claims.has_claim(self.full_name, self.legs.joints) and not self.joint_claims.is_paused(
            self.legs.joints
        ):
            if self._phase == "rising":
                self._rise()
            elif self._phase == "standing" and self._goal and self._map is not None:
                self._plan()
            if self._phase == "walking":
                self._walk(feet, actual, dt)
                if (
                    self.config.effort
                    and self._search is None
                    and self.now_ns - self._improved_ns > self.config.improving * 1e9
                ):
                    self._improve()
            self.hardware.write(JointCommand("position", self.legs.joints, self._told().ravel()))
        down, carried = self._down(), self._forces if self._feels else np.floor(self._loaded)
        self._odometry.update(dt, feet, carried, self._turn, down)
        pose = pose_of(self._odometry)
        self._odom.publish(legged_odometry(pose, self._odometry.speed, self.now_ns, *self._frames))
        self.send_transform(pose, *self._frames)
        self._ticks += 1
        if self._ticks % max(1, round(self.config.rate / self.config.state_rate)) == 0:
            touching = self._touching if self._feels else self._touching[:0]
            phase, how = "rising" if self._phase == "rising" else "walking", (feet, self._turn, self._speed())
            self._state.publish(gait_state(self.now_ns, phase, "free", self._names, down, touching, *how))

    def _down(self) -> NDArray[np.bool_]:
        return np.ones(len(self._names), bool) if self._follower is None else self._follower.down

    def _speed(self) -> Array:
        """(3,) how the plan carries the body in its own frame."""
        if self._follower is None or self._phase != "walking":
            return np.zeros(3)
        return self.config.footing.pace * self._follower.plan.velocity(self._follower.time)

    def _rise(self) -> None:
        self._near, self._at = self._way[self._at], self._at + 1
        if self._at >= len(self._way):
            self._phase, self._at = "standing", 0
            self._way = self._near[None]

    def _walk(self, feet: Array, actual: Array, dt: float) -> None:
        """The set-points of the next moment of the plan."""
        follower = self._follower
        if follower is None:
            return
        lag = float(np.abs(self._near - actual).max()) / _LAG
        local, downs = follower.advance(dt, self._body(feet), feet, self._touching if self._feels else None, lag)
        try:
            near = self.legs.reach(local, self._near)
        except RoboyardError as error:
            self.log.warn(f"a foot stays where it is: {error}", throttle=1.0)
            out = ~self.legs.reached(local)  # the others go on
            local[out] = self.legs.feet(self._near)[out]
            near = self.legs.reach(local, self._near)
        self._near = near
        for down in downs:
            told = touchdown_message(down, self._names[down.leg], self.now_ns, self.frame(self.config.map_frame))
            self._downs.publish(told)
        self._stands = follower.anchors.copy()
        if follower.done:
            self._phase, self._goal = "standing", []
            self.log.info("it is where it should be")
            self.report_health("ok", "it has come to its goal")

    def _body(self, feet: Array) -> SE3:
        """T_map_body: from odometry and localisation, its height above where its feet stand."""
        T = pose_of(self._odometry)
        with suppress(TransformError):  # nobody says where the odometry's frame lies
            T = self.transforms.lookup(self.frame(self.config.map_frame), self._frames[0]) @ T
        if self._follower is not None:
            return over_feet(T, feet, self._stands, self._down())
        T, self._stands = over_ground(T, feet, self._map)
        return T

    def _told(self) -> Array:
        """(l, 3) what servos as soft as these are told so that joints come to where they shall be [rad]."""
        most, feet = 1.0 / (self.config.rate * LOADING), self.legs.feet(self._near)
        down = self._down() if self._phase != "rising" or self._at > 0 else np.zeros(len(self._names), bool)
        return told_joints(self.legs.rows, self._near, feet, self._weight, down, most, self._loaded, self._softness)

    def _actual(self) -> Array:
        """(l, 3) joints as they are [rad]."""
        return np.asarray(self.hardware.read().position[self._where].reshape(-1, 3), np.float64)
