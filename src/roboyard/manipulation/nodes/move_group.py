"""The move node: goals for an arm's tool in, planned and watched motions out, as MoveIt's move_group has them."""

from __future__ import annotations

from typing import Any

import numpy as np

from roboyard.bus import Future, GoalHandle, Node, resource
from roboyard.compute import expect_kernels
from roboyard.config import Config, parameter
from roboyard.control.topp_kernels import time_optimal_profile
from roboyard.description import World
from roboyard.errors import RoboyardError, UnknownNameError
from roboyard.geometry import SE3
from roboyard.kinematics.chain_kernels import compute_all_frames
from roboyard.kinematics.dynamics_kernels import compute_inverse_dynamics, compute_path_effort_coefficients
from roboyard.kinematics.ik import IkConfig, solve_ik
from roboyard.kinematics.ik.numeric_ik import search_from_seeds as search_ik
from roboyard.kinematics.ik.solve import expect_ik_kernels
from roboyard.manipulation.collision.boxes_tree import _fill
from roboyard.manipulation.collision.clearance import distances, free_line, touching
from roboyard.manipulation.groups import Groups
from roboyard.manipulation.nodes.motion import Motion, Mover
from roboyard.manipulation.nodes.motion_messages import sampled, state_message, trajectory_message
from roboyard.manipulation.nodes.motion_requests import Reader
from roboyard.manipulation.nodes.move_codes import MoveError, cause_of, code_of
from roboyard.manipulation.nodes.scene_feeds import SceneFeeds
from roboyard.manipulation.nodes.scene_keeper import SceneKeeper, place_of
from roboyard.manipulation.nodes.scene_messages import scene_to_msg
from roboyard.manipulation.people import PeopleSettings
from roboyard.manipulation.planning import LineBlocked, Plan, planner_named
from roboyard.manipulation.planning.shortening import round_corners, shorten
from roboyard.manipulation.planning.trees import grow, try_straight
from roboyard.manipulation.searching import Request, search
from roboyard.messages import action, msg, srv
from roboyard.messages.convert import pose_stamped_to_msg, pose_to_se3

_DRAWN = 2**31


class MoveGroupNodeConfig(Config):
    """Configuration of `MoveGroupNode`."""

    group: str = parameter("", doc="Group of joints that moves; empty: the first group of the robot.")
    controller: str = parameter("arm/follow_joint_trajectory", doc="Action that follows trajectories.")
    world_frame: str = parameter(
        "", doc="Frame of plans, found by /tf; empty: the robot's root link, which stands still."
    )
    know_world: bool = parameter(False, doc="Know beforehand what is fixed in the world, as from a map.")
    place: tuple[float, ...] = parameter((), doc="Pose x y z roll pitch yaw of the root in that world.")
    octomap_topic: str = parameter("", doc="Topic of maps of space that sensors make; empty: none.")
    people_topics: tuple[str, ...] = parameter((), doc="Topics of people's positions, one nav_msgs/Odometry each.")
    bodies_topics: tuple[str, ...] = parameter((), doc="Topics of people's bodies, one PersonBody each.")
    people: PeopleSettings = parameter(factory=PeopleSettings, doc="Clearance of people.")
    gripper_topic: str = parameter("", doc="Topic of the state of a gripper that the scene follows; empty: none.")
    things_topic: str = parameter("", doc="Topic of detected things with their sizes; empty: none.")
    allowed: tuple[tuple[str, str], ...] = parameter(
        (), doc="Pairs of names (links, objects, models) that may touch each other."
    )
    octomap_timeout: float = parameter(
        2.0, unit="s", low=0.1, high=1e3, runtime=True, doc="Longest absence of such maps."
    )
    margin: float = parameter(0.005, unit="m", low=0.0005, high=0.5, doc="Distance below which bodies touch.")
    rate: float = parameter(20.0, unit="Hz", low=1.0, high=200.0, doc="Rate of the checks ahead.")
    latency: float = parameter(0.1, unit="s", low=1e-3, high=100.0, doc="Declared duration of planning.")
    states_per_second: float = parameter(
        4000.0, low=1.0, high=1e7, runtime=True, doc="States drawn per second of allowed_planning_time."
    )
    replans: int = parameter(
        3,
        low=0,
        high=1000,
        runtime=True,
        doc="Number of new plans when something comes into the way, unless a goal states it.",
    )
    replan_delay: float = parameter(
        0.5, unit="s", low=0.0, high=1e3, runtime=True, doc="Time before each new plan, unless a goal states it."
    )
    joint_timeout: float = parameter(0.5, unit="s", low=0.01, high=1e3, doc="Largest age of measured joints.")


class MoveGroupNode(Node[MoveGroupNodeConfig]):
    """Brings an arm where goals say, touching nothing, and says why when it cannot.

    in: joint_states (sensor_msgs/JointState), /tf, planning_scene (moveit_msgs/PlanningScene), collision_object
        (CollisionObject), attached_collision_object (AttachedCollisionObject), octomap (octomap_msgs/Octomap; the
        parameter octomap_topic)
    out: ~/status (roboyard_msgs/ArmStatus), display_planned_path (moveit_msgs/DisplayTrajectory),
        monitored_planning_scene (PlanningScene), all latched; ~/clearance (std_msgs/Float64): how far the arm is from
        everything in the world while it moves, at most 0.5 m
    actions: move_action (moveit_msgs/MoveGroup), execute_trajectory (ExecuteTrajectory); it asks ``controller``
        (control_msgs/FollowJointTrajectory) to follow them
    services: plan_kinematic_path (GetMotionPlan), compute_cartesian_path (GetCartesianPath), compute_ik
        (GetPositionIK), compute_fk (GetPositionFK), check_state_validity (GetStateValidity), apply_planning_scene
        (ApplyPlanningScene), get_planning_scene (GetPlanningScene), clear_octomap (std_srvs/Empty)

    Names are those of MoveIt's move_group.  While the arm moves, what is left of the motion is looked at whenever the
    scene changes; where something has come into the way the arm stops, and plans anew if it may.
    """

    groups: Groups = resource(Groups)
    world: World | None = resource(World, optional=True)

    def setup(self) -> None:
        """Connect."""
        expect_kernels(_fill, touching, distances, free_line, try_straight, grow, shorten, round_corners)
        expect_kernels(
            compute_path_effort_coefficients, compute_inverse_dynamics, time_optimal_profile, compute_all_frames
        )
        expect_kernels(search_ik)  # of straight lines
        expect_ik_kernels(self.groups.chain(self.config.group or None))
        known = self.world if self.config.know_world else None
        self._keeper = keeper = SceneKeeper(
            self,
            self.groups,
            self.config.group,
            world_frame=self.config.world_frame,
            place=place_of(self.config.place),
            known=known,
            margin=self.config.margin,
            joint_timeout=self.config.joint_timeout,
            allowed=self.config.allowed,
        )
        self._reader = Reader(keeper, self.config.states_per_second)
        self._mover = Mover(
            self,
            keeper,
            controller=self.config.controller,
            latency=self.config.latency,
            read=self._read,
            ended=self._ended,
            patience=lambda: self.config.octomap_timeout if self.config.octomap_topic else 0.0,
        )
        self._handle: GoalHandle | None = None
        self._monitored = self.publisher("monitored_planning_scene", msg.moveit_msgs.PlanningScene, latched=True)
        self._feeds = SceneFeeds(
            self,
            keeper,
            octomap_topic=self.config.octomap_topic,
            people_topics=self.config.people_topics,
            people=self.config.people,
            gripper_topic=self.config.gripper_topic,
            changed=lambda: self._monitored.publish(self._scene()),
            bodies_topics=self.config.bodies_topics,
            things_topic=self.config.things_topic,
        )
        for name, kind, take in (
            ("move_action", action.MoveGroup, self._on_move),
            ("execute_trajectory", action.ExecuteTrajectory, self._on_execute),
        ):
            self.action_server(name, kind, take, preempt=False, on_goal_restored=self._on_restored)
        kinds = srv.moveit_msgs
        self.service("plan_kinematic_path", kinds.GetMotionPlan, self._on_plan)
        self.service("compute_cartesian_path", kinds.GetCartesianPath, self._on_line)
        self.service("compute_ik", kinds.GetPositionIK, self._on_ik)
        self.service("compute_fk", kinds.GetPositionFK, self._on_fk)
        self.service("check_state_validity", kinds.GetStateValidity, self._on_validity)
        self.service("apply_planning_scene", kinds.ApplyPlanningScene, self._on_apply)
        self.service(
            "get_planning_scene", kinds.GetPlanningScene, lambda _: kinds.GetPlanningScene.Response(scene=self._scene())
        )
        self.service("clear_octomap", srv.std_srvs.Empty, self._on_clear)
        self.timer(rate=self.config.rate, callback=self._mover.step)

    # -- goals ---------------------------------------------------------------------------------------------------------
    def _on_move(self, handle: GoalHandle) -> None:
        options = handle.goal.planning_options
        seed = int(self.random.integers(_DRAWN))
        try:
            if options.planning_scene_diff.world.collision_objects:
                raise MoveError("a scene for one goal only", "bad_goal", valid="apply_planning_scene before it")
            request = self._reader.request(handle.goal.request, seed)
            planner_named(request.settings.planner)
            start = self._start(handle.goal.request, execute=not options.plan_only)
            if not options.plan_only:
                self._mover.ready()
        except RoboyardError as error:
            self._refuse(handle, "move_action", error)
            return
        handle.accept()
        given = bool(options.replan)
        self._mover.begin(
            Motion(
                "move_action", handle, request, not options.plan_only,
                0 if request.stations else int(options.replan_attempts) if given else self.config.replans,
                max(float(options.replan_delay), 0.0) if given else self.config.replan_delay,
                seed=seed, given_start=start,
            )
        )  # fmt: skip

    def _start(self, request: Any, *, execute: bool) -> Any:
        """(n,) the state to plan from, or None for the measured one."""
        start = self._reader.start(request.start_state)
        if not request.start_state.joint_state.name:
            return None
        measured = self._keeper.measured()
        off = float(np.abs(start - measured).max())
        if execute and off > 0.02:
            raise MoveError(f"the start is {off:.3g} from where the arm is", "start_outside_limits", valid="no start")
        return None if execute else start

    def _on_execute(self, handle: GoalHandle) -> None:
        message = handle.goal.trajectory.joint_trajectory
        try:
            if handle.goal.trajectory.multi_dof_joint_trajectory.points:
                raise MoveError("a trajectory of joints with several degrees of freedom", "bad_plan")
            sampled(message, self._keeper.joints)
            self._mover.ready()
        except RoboyardError as error:
            self._refuse(handle, "execute_trajectory", error)
            return
        handle.accept()
        self._mover.begin(Motion("execute_trajectory", handle, None, trajectory=message))

    def _refuse(self, handle: GoalHandle, task: str, error: RoboyardError) -> None:
        handle.reject(str(error), cause_of(error))
        self._mover.refuse(task, error)

    def _read(self, motion: Motion) -> Request:
        return self._reader.request(motion.handle.goal.request, motion.seed)

    def _ended(self, motion: Motion, error: RoboyardError | None) -> None:
        handle, code = motion.handle, code_of(error)
        result: Any
        if motion.task == "move_action":
            result = action.MoveGroup.Result(
                error_code=code, trajectory_start=self._state(), planning_time=self.config.latency * motion.plans
            )
            if motion.trajectory is not None:
                result.planned_trajectory.joint_trajectory = motion.trajectory
        else:
            result = action.ExecuteTrajectory.Result(error_code=code)
        if error is None:
            handle.succeed(result)
        elif handle.is_cancel_requested:
            handle.set_canceled(result, str(error))
        else:
            handle.abort(result, str(error), cause_of(error))

    # -- services ------------------------------------------------------------------------------------------------------
    def _on_plan(self, message: Any) -> Any:
        kinds = msg.moveit_msgs
        answer, asked = srv.moveit_msgs.GetMotionPlan.Response, message.motion_plan_request
        group = self._keeper.scene.group.name

        def told(found: Plan | RoboyardError) -> Any:
            if isinstance(found, RoboyardError):
                return answer(
                    motion_plan_response=kinds.MotionPlanResponse(group_name=group, error_code=code_of(found))
                )
            path = kinds.RobotTrajectory(joint_trajectory=trajectory_message(found.trajectory, self._keeper.frame))
            start = state_message(self._keeper.joints, found.trajectory.start, self._keeper.frame, self.now_ns)
            return answer(
                motion_plan_response=kinds.MotionPlanResponse(
                    trajectory_start=start, group_name=group, trajectory=path, planning_time=self.config.latency,
                    error_code=code_of(None),
                )
            )  # fmt: skip

        try:
            request = self._reader.request(asked, int(self.random.integers(_DRAWN)))
            start = self._reader.start(asked.start_state)
            return self._search(request, start, told)
        except RoboyardError as error:
            return told(error)

    def _on_line(self, message: Any) -> Any:
        answer = srv.moveit_msgs.GetCartesianPath.Response

        def told(found: Plan | RoboyardError) -> Any:
            if isinstance(found, RoboyardError):
                share = found.share if isinstance(found, LineBlocked) else 0.0
                return answer(fraction=share, error_code=code_of(found))
            path = msg.moveit_msgs.RobotTrajectory(
                joint_trajectory=trajectory_message(found.trajectory, self._keeper.frame)
            )
            start = state_message(self._keeper.joints, found.trajectory.start, self._keeper.frame, self.now_ns)
            return answer(start_state=start, solution=path, fraction=1.0, error_code=code_of(None))

        try:
            request = self._reader.line(message)
            return self._search(request, self._reader.start(message.start_state), told)
        except RoboyardError as error:
            return told(error)

    def _search(self, request: Request, start: Any, told: Any) -> Future:
        done = Future("plan")
        self.offload(
            search, self._keeper.now(request.tool), start, request, _never,
            latency=self.config.latency, on_done=lambda future: done.set_result(told(future.result)),
        )  # fmt: skip
        return done

    def _on_ik(self, message: Any) -> Any:
        answer, asked = srv.moveit_msgs.GetPositionIK.Response, message.ik_request
        try:
            self._reader.check_group(asked.group_name)
            tool = self._reader.tool(asked.ik_link_name)
            near = self._reader.start(asked.robot_state)
            scene = self._keeper.now(tool)
            T_world = self._keeper.T_world_frame(asked.pose_stamped.header.frame_id) @ pose_to_se3(
                asked.pose_stamped.pose
            )
            found = solve_ik(scene.chain, scene.T_world_base.inverse() @ T_world, near, IkConfig(max_solutions=8))
            if not found.is_solved:
                why = "not found" if found.failure is None else found.failure.value
                raise MoveError(f"no joints put {scene.chain.tip} there: {why}", "goal_unreachable")
            free = [q for q in found.solutions if not asked.avoid_collisions or scene.free(q)]
            if not free:
                raise MoveError(f"something touches in all {len(found)} ways to stand there", "goal_in_collision")
        except RoboyardError as error:
            return answer(error_code=code_of(error))
        return answer(solution=self._state(free[0]), error_code=code_of(None))

    def _on_fk(self, message: Any) -> Any:
        answer = srv.moveit_msgs.GetPositionFK.Response
        try:
            q = self._reader.start(message.robot_state)
            scene = self._keeper.now()
            T_frame = self._keeper.T_world_frame(message.header.frame_id).inverse()
            names, frame = [str(name) for name in message.fk_link_names], message.header.frame_id or self._keeper.frame
            poses = [
                T_frame @ scene.T_world_base @ SE3.from_matrix(
                    scene.chain.forward(q) if name == scene.group.tip else scene.link_pose(name, q)
                )
                for name in names
            ]  # fmt: skip
        except UnknownNameError as error:
            return answer(error_code=code_of(MoveError(error.message, "unknown_link", valid=error.valid)))
        except RoboyardError as error:
            return answer(error_code=code_of(error))
        stamped = [pose_stamped_to_msg(pose, frame, self.now_ns) for pose in poses]
        return answer(pose_stamped=stamped, fk_link_names=names, error_code=code_of(None))

    def _on_validity(self, message: Any) -> Any:
        self._reader.check_group(message.group_name)
        scene, q = self._keeper.now(), self._reader.start(message.robot_state)
        pair = scene.contact(q) if scene.chain.is_within_limits(q) else ("joints", "their limits")
        answer = srv.moveit_msgs.GetStateValidity.Response(valid=pair is None)
        if pair is not None:
            answer.contacts = [msg.moveit_msgs.ContactInformation(contact_body_1=pair[0], contact_body_2=pair[1])]
        return answer

    # -- scene ---------------------------------------------------------------------------------------------------------
    def _on_apply(self, message: Any) -> Any:
        return srv.moveit_msgs.ApplyPlanningScene.Response(success=self._feeds.take(message.scene))

    def _on_clear(self, request: Any) -> Any:
        self._keeper.forget()
        return srv.std_srvs.Empty.Response()

    def _scene(self) -> Any:
        return scene_to_msg(self._keeper.scene, self._keeper.frame, self.now_ns, self._state())

    def _state(self, q: Any = None) -> Any:
        try:
            values = self._keeper.measured() if q is None else q
        except MoveError:
            return msg.moveit_msgs.RobotState(is_diff=True)
        return state_message(self._keeper.joints, values, self._keeper.frame, self.now_ns)

    # -- state ---------------------------------------------------------------------------------------------------------
    def _on_restored(self, handle: GoalHandle) -> None:
        self._handle = handle

    def save_state(self) -> dict[str, Any]:
        """State as plain data, the scene and the motion under way with it. Raises RunError: it is planning."""
        return super().save_state() | {
            "keeper": self._keeper.save_state(),
            "feeds": self._feeds.save_state(),
            "mover": self._mover.save_state(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        self._handle = None
        super().load_state(state)
        self._keeper.load_state(state["keeper"])
        self._feeds.load_state(state["feeds"])
        self._mover.load_state(state["mover"], self._handle)


def _never() -> bool:
    return False
