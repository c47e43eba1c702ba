"""An arm in a run, with what a test asks of its move node and tells it about objects."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from tests.harness.bus import BusHarness, Goal

from roboyard.geometry import SE3
from roboyard.kinematics import Chain
from roboyard.messages import action, msg
from roboyard.messages.convert import make_header, pose_to_msg
from roboyard.scenarios.run import Run

ARM_NODES = ("joint_states", "robot_state", "arm")
"""Nodes that an arm needs to be moved at all."""
_STILL = 1e-3  # rad/s


def box_message(name: str, size: ArrayLike, T_frame_box: SE3, frame: str) -> Any:
    """A CollisionObject that adds a box of given edges [m]."""
    box = msg.moveit_msgs.CollisionObject(header=make_header(frame, 0), id=name, pose=pose_to_msg(T_frame_box))
    box.primitives = [msg.SolidPrimitive(type=1, dimensions=np.asarray(size, dtype=np.float64))]
    return box


class ArmCell:
    """A run with one robot that has an arm, and a `BusHarness` on its bus.

    Args:
        robot: Its model.
        nodes: Nodes of its package that are brought up.
        world: Name of the world.
        at: Where it stands: x, y [m], heading [rad].
        seed: Of the run.
        settle: How long the run goes on before the test begins [s].

    Attributes:
        run: The run; nothing is recorded.
        robot: Its handle.
        harness: Of the run's bus.
    """

    def __init__(
        self,
        robot: str,
        nodes: Sequence[str] = ARM_NODES,
        *,
        world: str = "empty",
        at: tuple[float, float, float] = (0.0, 0.0, 0.0),
        seed: int = 0,
        settle: float = 0.3,
    ) -> None:
        self.run = Run(world, seed=seed, record=False)
        try:
            self.harness = BusHarness(bus=self.run.bus)
            self.robot = self.run.add_robot(robot, pose=at, nodes=nodes)
            self.run.run_for(settle)
        except BaseException:
            self.run.close()
            raise

    def close(self) -> None:
        """End the run."""
        self.run.close()

    def __enter__(self) -> ArmCell:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- the arm ---------------------------------------------------------------------------------------------------
    @cached_property
    def chain(self) -> Chain:
        """The chain of its arm."""
        return self.robot.groups.chain()

    def pose(self, name: str) -> NDArray[np.float64]:
        """Joint positions of a named pose of its arm [rad or m]."""
        return np.array(self.robot.groups.group().pose(name))

    def joints(self) -> NDArray[np.float64]:
        """Positions of the arm's joints as its hardware reads them [rad or m]."""
        return self._of_arm(self.robot.hardware.read().position)

    def speed(self) -> float:
        """The fastest of the arm's joints now [rad/s or m/s]."""
        return float(np.abs(self._of_arm(self.robot.hardware.read().velocity)).max())

    def _of_arm(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        names = self.robot.hardware.joint_names
        return values[[names.index(joint) for joint in self.chain.joints]]

    def tool_pose(self, q: ArrayLike | None = None) -> SE3:
        """T_base_tool of the chain at joint positions; None: those of now."""
        return SE3.from_matrix(self.chain.forward(self.joints() if q is None else q))

    def wait_until_still(self, *, timeout: float = 5.0) -> None:
        """Run until no joint of the arm moves; fails if one still does after ``timeout`` [s]."""
        self.harness.spin_until(lambda: self.speed() < _STILL, timeout=timeout, expected="an arm that stands still")

    # -- goals of the move node ------------------------------------------------------------------------------------
    def joint_goal(self, q: ArrayLike, joints: Sequence[str] = ()) -> Any:
        """Constraints of positions [rad or m]; of the arm's joints if none are named."""
        kinds = msg.moveit_msgs
        values = np.asarray(q, dtype=np.float64).tolist()
        return kinds.Constraints(
            joint_constraints=[
                kinds.JointConstraint(joint_name=name, position=value)
                for name, value in zip(joints or self.chain.joints, values, strict=True)
            ]
        )

    @staticmethod
    def named_goal(name: str) -> Any:
        """Constraints that stand for a named pose."""
        return msg.moveit_msgs.Constraints(name=name)

    @staticmethod
    def pose_goal(
        T: SE3, frame: str, *, link: str = "", turn_tolerances: tuple[float, float, float] = (0.01, 0.01, 0.01)
    ) -> Any:
        """Constraints of a pose of a link ("": the tool) in a frame: within 1 mm, and turns about x, y and z [rad]."""
        kinds = msg.moveit_msgs
        place = kinds.PositionConstraint(header=make_header(frame, 0), link_name=link)
        place.constraint_region.primitives = [msg.SolidPrimitive(type=2, dimensions=np.array([1e-3]))]
        place.constraint_region.primitive_poses = [pose_to_msg(T)]
        turn = kinds.OrientationConstraint(
            header=make_header(frame, 0), orientation=pose_to_msg(T).orientation, link_name=link
        )
        for axis, tolerance in zip("xyz", turn_tolerances, strict=True):
            setattr(turn, f"absolute_{axis}_axis_tolerance", tolerance)
        return kinds.Constraints(position_constraints=[place], orientation_constraints=[turn])

    def start_move(self, *constraints: Any, options: dict[str, Any] | None = None, **request: Any) -> Goal:
        """Send a goal to the move node; it is planned and carried out as the run goes on.

        Args:
            constraints: One or more alternatives.
            options: Fields of the goal's planning options.
            request: Fields of the goal's request.
        """
        goal = action.MoveGroup.Goal()
        goal.request.goal_constraints = list(constraints)
        for name, value in request.items():
            setattr(goal.request, name, value)
        for name, value in (options or {}).items():
            setattr(goal.planning_options, name, value)
        return self.harness.start_goal("/move_action", action.MoveGroup, goal)

    def move(self, *constraints: Any, timeout: float = 30.0, **more: Any) -> Goal:
        """Send a goal and run until it has ended, however it ends; arguments as of `start_move`."""
        return self.harness.wait_for(self.start_move(*constraints, **more), timeout=timeout)

    # -- objects ---------------------------------------------------------------------------------------------------
    def add_box(self, name: str, size: ArrayLike, pose: SE3 | ArrayLike, frame: str) -> None:
        """Publish a box as a collision object: edges [m], and its pose, or its middle [m], in a frame."""
        T = pose if isinstance(pose, SE3) else SE3(translation=np.asarray(pose, dtype=np.float64))
        self.harness.publish("/collision_object", box_message(name, size, T, frame))

    def remove_object(self, name: str) -> None:
        """Publish that a collision object is there no longer."""
        kind = msg.moveit_msgs.CollisionObject
        self.harness.publish("/collision_object", kind(id=name, operation=kind.REMOVE))
