"""The move_group node: plans, executes and monitors arm motions, with MoveIt's names."""

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
from roboyard.manipulation.collision.collision_model import _fill_aabb_tree
from roboyard.manipulation.collision.motion_check import compute_distances, find_contacts, is_line_free
from roboyard.manipulation.errors import CartesianPathBlockedError
from roboyard.manipulation.nodes.motion_execution import ArmMotionTask, MotionExecutor, MotionExecutorConfig
from roboyard.manipulation.nodes.motion_messages import robot_state_to_msg, sample_trajectory_msg, trajectory_to_msg
from roboyard.manipulation.nodes.motion_requests import MotionRequestReader
from roboyard.manipulation.nodes.moveit_errors import ArmMotionError, error_cause, moveit_error_code
from roboyard.manipulation.nodes.planning_scene_monitor import (
    PlanningSceneMonitor,
    SceneParameters,
    allowed_collisions_to_msg,
    scene_to_msg,
    select_components,
)
from roboyard.manipulation.nodes.request_fields import check_fields
from roboyard.manipulation.nodes.scene_inputs import SceneInputs
from roboyard.manipulation.planning import MotionPlan, make_planner
from roboyard.manipulation.planning.path_shortening import blend_corners, shortcut_path
from roboyard.manipulation.planning.planning_request import PlanningRequest, plan_request
from roboyard.manipulation.planning.rrt_connect import connect_straight, grow_trees
from roboyard.manipulation.semantics.planning_groups import SemanticDescription
from roboyard.messages import action, msg, srv
from roboyard.messages.convert import pose_stamped_to_msg, pose_to_se3

_N_SEEDS = 2**31


class MoveGroupNodeConfig(Config):
    """Configuration of `MoveGroupNode`."""

    group: str = parameter("", doc="Group of joints that moves; empty: the first group of the robot.")
    controller: str = parameter("arm/follow_joint_trajectory", doc="Action that follows trajectories.")
    scene: SceneParameters = parameter(factory=SceneParameters, flatten="", doc="Sources of the planning scene.")
    octomap_timeout: float = parameter(2.0, unit="s", low=0.1, high=1e3, runtime=True, doc="Timeout of octomaps.")
    rate: float = parameter(20.0, unit="Hz", low=1.0, high=200.0, doc="Rate of the checks ahead.")
    latency: float = parameter(0.1, unit="s", low=1e-3, high=100.0, doc="Declared duration of planning.")
    states_per_planning_second: float = parameter(
        4000.0, low=1.0, high=1e7, runtime=True, doc="Sampled states per second of allowed_planning_time."
    )
    max_replans: int = parameter(
        3,
        low=0,
        high=1000,
        runtime=True,
        doc="Maximum number of new plans when an obstacle blocks the motion, unless a goal states it.",
    )
    replan_delay: float = parameter(
        0.5, unit="s", low=0.0, high=1e3, runtime=True, doc="Time before each new plan, unless a goal states it."
    )


class MoveGroupNode(Node[MoveGroupNodeConfig]):
    """Moves an arm to goals without collisions, and reports why a goal fails.

    in: joint_states (sensor_msgs/JointState), /tf, planning_scene (moveit_msgs/PlanningScene), collision_object
        (CollisionObject), attached_collision_object (AttachedCollisionObject), octomap (octomap_msgs/Octomap; the
        parameter octomap_topic)
    out: ~/status (roboyard_msgs/ArmStatus), display_planned_path (moveit_msgs/DisplayTrajectory),
        monitored_planning_scene (PlanningScene), all latched; ~/clearance (std_msgs/Float64): distance of the arm
        from the world while it moves, at most 0.5 m
    actions: move_action (moveit_msgs/MoveGroup), execute_trajectory (ExecuteTrajectory); ``controller``
        (control_msgs/FollowJointTrajectory) executes them
    services: plan_kinematic_path (GetMotionPlan), compute_cartesian_path (GetCartesianPath), compute_ik
        (GetPositionIK), compute_fk (GetPositionFK), check_state_validity (GetStateValidity), apply_planning_scene
        (ApplyPlanningScene), get_planning_scene (GetPlanningScene), clear_octomap (std_srvs/Empty)

    Names are those of MoveIt's move_group.  While the arm moves, the remaining motion is checked whenever
    the scene changes; if an obstacle blocks it, the arm stops, and plans again if permitted.
    """

    groups: SemanticDescription = resource(SemanticDescription)
    world: World | None = resource(World, optional=True)

    def setup(self) -> None:
        """Create inputs, actions and services."""
        expect_kernels(
            _fill_aabb_tree,
            find_contacts,
            compute_distances,
            is_line_free,
            connect_straight,
            grow_trees,
            shortcut_path,
            blend_corners,
        )
        expect_kernels(
            compute_path_effort_coefficients, compute_inverse_dynamics, time_optimal_profile, compute_all_frames
        )
        expect_kernels(search_ik)  # of straight paths
        expect_ik_kernels(self.groups.chain(self.config.group or None))
        self._monitor = monitor = PlanningSceneMonitor(
            self, self.groups, self.config.group, self.config.scene, self.world
        )
        self._reader = MotionRequestReader(monitor, self.config.states_per_planning_second, self.log.warn)
        self._executor = MotionExecutor(
            self,
            monitor,
            MotionExecutorConfig(self.config.controller, self.config.latency),
            read_request=self._read_request,
            on_finished=self._on_finished,
            scene_timeout=lambda: self.config.octomap_timeout if self.config.scene.octomap_topic else 0.0,
        )
        self._restored_handle: GoalHandle | None = None
        self._scene_publisher = self.publisher("monitored_planning_scene", msg.moveit_msgs.PlanningScene, latched=True)
        self._inputs = SceneInputs(
            self, monitor, self.config.scene, on_change=lambda: self._scene_publisher.publish(self._scene_msg())
        )
        for name, action_type, on_goal in (
            ("move_action", action.MoveGroup, self._on_move),
            ("execute_trajectory", action.ExecuteTrajectory, self._on_execute),
        ):
            self.action_server(name, action_type, on_goal, preempt=False, on_goal_restored=self._on_restored)
        kinds = srv.moveit_msgs
        self.service("plan_kinematic_path", kinds.GetMotionPlan, self._on_plan)
        self.service("compute_cartesian_path", kinds.GetCartesianPath, self._on_cartesian_path)
        self.service("compute_ik", kinds.GetPositionIK, self._on_ik)
        self.service("compute_fk", kinds.GetPositionFK, self._on_fk)
        self.service("check_state_validity", kinds.GetStateValidity, self._on_validity)
        self.service("apply_planning_scene", kinds.ApplyPlanningScene, self._on_apply)
        self.service("get_planning_scene", kinds.GetPlanningScene, self._on_get_scene)
        self.service("clear_octomap", srv.std_srvs.Empty, self._on_clear)
        self.timer(rate=self.config.rate, callback=self._executor.update)

    # -- goals ---------------------------------------------------------------------------------------------------------
    def _on_move(self, handle: GoalHandle) -> None:
        options = handle.goal.planning_options
        seed = int(self.random.integers(_N_SEEDS))
        try:
            check_fields(options, "PlanningOptions", self.log.warn)
            request = self._reader.read_plan_request(handle.goal.request, seed)
            make_planner(request.config.planner)
            start = self._requested_start(handle.goal.request, is_executed=not options.plan_only)
            if not options.plan_only:
                self._executor.check_ready()
        except RoboyardError as error:
            self._reject(handle, "move_action", error)
            return
        handle.accept()
        has_replan_options = bool(options.replan)
        self._executor.start(
            ArmMotionTask(
                "move_action",
                handle,
                request,
                not options.plan_only,
                0
                if request.timed_poses
                else int(options.replan_attempts)
                if has_replan_options
                else self.config.max_replans,
                max(float(options.replan_delay), 0.0) if has_replan_options else self.config.replan_delay,
                seed=seed,
                requested_start=start,
            )
        )

    def _requested_start(self, request: Any, *, is_executed: bool) -> Any:
        """Return the (n,) requested start state, or None for the measured one."""
        start = self._reader.read_start_state(request.start_state)
        if not request.start_state.joint_state.name:
            return None
        measured = self._monitor.measured_joints()
        deviation = float(np.abs(start - measured).max())
        if is_executed and deviation > 0.02:
            raise ArmMotionError(
                f"the start is {deviation:.3g} from the arm's position", "start_outside_limits", valid="no start"
            )
        return None if is_executed else start

    def _on_execute(self, handle: GoalHandle) -> None:
        message = handle.goal.trajectory.joint_trajectory
        controllers = [str(name) for name in handle.goal.controller_names]
        try:
            if handle.goal.trajectory.multi_dof_joint_trajectory.points:
                raise ArmMotionError(
                    "a trajectory of joints with several degrees of freedom", "bad_plan", valid="joint_trajectory"
                )
            if controllers and controllers != [self.config.controller]:
                raise ArmMotionError(
                    f"the controllers {', '.join(controllers)}", "bad_plan", valid=self.config.controller
                )
            sample_trajectory_msg(message, self._monitor.joints)
            self._executor.check_ready()
        except RoboyardError as error:
            self._reject(handle, "execute_trajectory", error)
            return
        handle.accept()
        self._executor.start(ArmMotionTask("execute_trajectory", handle, None, trajectory=message))

    def _reject(self, handle: GoalHandle, action_name: str, error: RoboyardError) -> None:
        handle.reject(str(error), error_cause(error))
        self._executor.reject(action_name, error)

    def _read_request(self, task: ArmMotionTask) -> PlanningRequest:
        return self._reader.read_plan_request(task.handle.goal.request, task.seed)

    def _on_finished(self, task: ArmMotionTask, error: RoboyardError | None) -> None:
        handle, error_code = task.handle, moveit_error_code(error)
        result: Any
        if task.action_name == "move_action":
            result = action.MoveGroup.Result(
                error_code=error_code,
                trajectory_start=self._state_msg(),
                planning_time=self.config.latency * task.n_plans,
            )
            if task.trajectory is not None:
                result.planned_trajectory.joint_trajectory = task.trajectory
        else:
            result = action.ExecuteTrajectory.Result(error_code=error_code)
        if error is None:
            handle.succeed(result)
        elif handle.is_cancel_requested:
            handle.set_canceled(result, str(error))
        else:
            handle.abort(result, str(error), error_cause(error))

    # -- services ------------------------------------------------------------------------------------------------------
    def _on_plan(self, message: Any) -> Any:
        kinds = msg.moveit_msgs
        response_type, plan_request = srv.moveit_msgs.GetMotionPlan.Response, message.motion_plan_request
        group = self._monitor.scene.group.name

        def to_response(result: MotionPlan | RoboyardError) -> Any:
            if isinstance(result, RoboyardError):
                return response_type(
                    motion_plan_response=kinds.MotionPlanResponse(
                        group_name=group, error_code=moveit_error_code(result)
                    )
                )
            path = kinds.RobotTrajectory(joint_trajectory=trajectory_to_msg(result.trajectory, self._monitor.frame))
            start = robot_state_to_msg(self._monitor.joints, result.trajectory.start, self._monitor.frame, self.now_ns)
            return response_type(
                motion_plan_response=kinds.MotionPlanResponse(
                    trajectory_start=start, group_name=group, trajectory=path, planning_time=self.config.latency,
                    error_code=moveit_error_code(None),
                )
            )  # fmt: skip

        try:
            request = self._reader.read_plan_request(plan_request, int(self.random.integers(_N_SEEDS)))
            start = self._reader.read_start_state(plan_request.start_state)
            return self._plan(request, start, to_response)
        except RoboyardError as error:
            return to_response(error)

    def _on_cartesian_path(self, message: Any) -> Any:
        response_type = srv.moveit_msgs.GetCartesianPath.Response

        def to_response(result: MotionPlan | RoboyardError) -> Any:
            if isinstance(result, RoboyardError):
                fraction = result.fraction if isinstance(result, CartesianPathBlockedError) else 0.0
                return response_type(fraction=fraction, error_code=moveit_error_code(result))
            path = msg.moveit_msgs.RobotTrajectory(
                joint_trajectory=trajectory_to_msg(result.trajectory, self._monitor.frame)
            )
            start = robot_state_to_msg(self._monitor.joints, result.trajectory.start, self._monitor.frame, self.now_ns)
            return response_type(start_state=start, solution=path, fraction=1.0, error_code=moveit_error_code(None))

        try:
            request = self._reader.read_cartesian_request(message)
            return self._plan(request, self._reader.read_start_state(message.start_state), to_response)
        except RoboyardError as error:
            return to_response(error)

    def _plan(self, request: PlanningRequest, start: Any, to_response: Any) -> Future:
        response_future = Future("plan")
        self.offload(
            plan_request, self._monitor.current_scene(request.tool), start, request, _never_stop,
            latency=self.config.latency, on_done=lambda future: response_future.set_result(to_response(future.result)),
        )  # fmt: skip
        return response_future

    def _on_ik(self, message: Any) -> Any:
        response_type, ik_request = srv.moveit_msgs.GetPositionIK.Response, message.ik_request
        try:
            self._reader.check_group(ik_request.group_name)
            check_fields(ik_request, "PositionIKRequest", self.log.warn)
            tool = self._reader.find_tool(ik_request.ik_link_name)
            seed = self._reader.read_start_state(ik_request.robot_state)
            scene = self._monitor.current_scene(tool)
            T_world = self._monitor.T_world_frame(ik_request.pose_stamped.header.frame_id) @ pose_to_se3(
                ik_request.pose_stamped.pose
            )
            solution = solve_ik(scene.chain, scene.T_world_base.inverse() @ T_world, seed, IkConfig(max_solutions=8))
            if not solution.is_solved:
                reason = "not found" if solution.failure is None else solution.failure.value
                raise ArmMotionError(
                    f"no joint positions reach the pose of {scene.chain.tip}: {reason}", "goal_unreachable"
                )
            free_solutions = [q for q in solution.solutions if not ik_request.avoid_collisions or scene.is_free(q)]
            if not free_solutions:
                raise ArmMotionError(f"all {len(solution)} joint configurations are in collision", "goal_in_collision")
        except RoboyardError as error:
            return response_type(error_code=moveit_error_code(error))
        return response_type(solution=self._state_msg(free_solutions[0]), error_code=moveit_error_code(None))

    def _on_fk(self, message: Any) -> Any:
        response_type = srv.moveit_msgs.GetPositionFK.Response
        try:
            q = self._reader.read_start_state(message.robot_state)
            scene = self._monitor.current_scene()
            T_frame = self._monitor.T_world_frame(message.header.frame_id).inverse()
            names, frame = [str(name) for name in message.fk_link_names], message.header.frame_id or self._monitor.frame
            poses = [
                T_frame @ scene.T_world_base @ SE3.from_matrix(
                    scene.chain.forward(q) if name == scene.group.tip else scene.link_pose(name, q)
                )
                for name in names
            ]  # fmt: skip
        except UnknownNameError as error:
            return response_type(
                error_code=moveit_error_code(ArmMotionError(error.message, "unknown_link", valid=error.valid))
            )
        except RoboyardError as error:
            return response_type(error_code=moveit_error_code(error))
        stamped = [pose_stamped_to_msg(pose, frame, self.now_ns) for pose in poses]
        return response_type(pose_stamped=stamped, fk_link_names=names, error_code=moveit_error_code(None))

    def _on_validity(self, message: Any) -> Any:
        """Raises ArmMotionError, which the caller of the service gets: the response has no field for it."""
        self._reader.check_group(message.group_name)
        check_fields(message, "GetStateValidity", self.log.warn)
        scene, q = self._monitor.current_scene(), self._reader.read_start_state(message.robot_state)
        contact_pair = scene.find_contact(q) if scene.chain.is_within_limits(q) else ("joints", "their limits")
        response = srv.moveit_msgs.GetStateValidity.Response(valid=contact_pair is None)
        if contact_pair is not None:
            response.contacts = [
                msg.moveit_msgs.ContactInformation(contact_body_1=contact_pair[0], contact_body_2=contact_pair[1])
            ]
        return response

    # -- scene ---------------------------------------------------------------------------------------------------------
    def _on_apply(self, message: Any) -> Any:
        return srv.moveit_msgs.ApplyPlanningScene.Response(success=self._inputs.apply_scene_message(message.scene))

    def _on_get_scene(self, message: Any) -> Any:
        scene_message = select_components(
            self._scene_msg(), allowed_collisions_to_msg(self._monitor.scene), int(message.components.components)
        )
        return srv.moveit_msgs.GetPlanningScene.Response(scene=scene_message)

    def _on_clear(self, request: Any) -> Any:
        self._monitor.clear_sensed()
        return srv.std_srvs.Empty.Response()

    def _scene_msg(self) -> Any:
        return scene_to_msg(self._monitor.scene, self._monitor.frame, self.now_ns, self._state_msg())

    def _state_msg(self, q: Any = None) -> Any:
        try:
            values = self._monitor.measured_joints() if q is None else q
        except ArmMotionError:
            return msg.moveit_msgs.RobotState(is_diff=True)
        return robot_state_to_msg(self._monitor.joints, values, self._monitor.frame, self.now_ns)

    # -- state ---------------------------------------------------------------------------------------------------------
    def _on_restored(self, handle: GoalHandle) -> None:
        self._restored_handle = handle

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data, with the scene and the motion under way. Raises RunError while it plans."""
        return super().save_state() | {
            "keeper": self._monitor.save_state(),
            "feeds": self._inputs.save_state(),
            "mover": self._executor.save_state(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what ``save_state`` returned."""
        self._restored_handle = None
        super().load_state(state)
        self._monitor.load_state(state["keeper"])
        self._inputs.load_state(state["feeds"])
        self._executor.load_state(state["mover"], self._restored_handle)


def _never_stop() -> bool:
    return False
