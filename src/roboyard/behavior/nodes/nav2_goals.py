"""Nav2's leaves and decorators about goals, and about when something is done again."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any, ClassVar

from roboyard.behavior.errors import PortError
from roboyard.behavior.kinds import Action, Condition, Decorator
from roboyard.behavior.node import TreeNode
from roboyard.behavior.nodes.sending import POSES, SERVER, TIMEOUT, UNUSED, OnBus
from roboyard.behavior.ports import input_port, output_port
from roboyard.behavior.status import FAILURE, IDLE, RUNNING, SUCCESS, Status
from roboyard.behavior.types import list_of, type_of
from roboyard.geometry import SE2
from roboyard.messages import action, msg

_GOAL = input_port(SE2, "{goal}", "x;y;yaw")
_GOALS = input_port(POSES, "{goals}", "x;y;yaw|x;y;yaw, where there are several")
_UNNAMED = 1
"""What leaves say that failed for a reason that has no number."""


Goals = tuple[tuple[float, float, float], ...]


def goals_of(node: TreeNode) -> Goals:
    """The goal in a node's port ``goal``, and those in ``goals``; empty if there is none."""
    found: list[SE2] = []
    with suppress(PortError):
        found.append(node.input("goal"))
    with suppress(PortError):
        found += node.input("goals")
    return tuple((one.x, one.y, one.theta) for one in found)


class GoalUpdated(Condition):
    """Whether there is another goal than when this was asked first."""

    ports: ClassVar = {"goal": _GOAL, "goals": _GOALS}
    state_fields = ("_goal", "_asked")

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._goal: Goals = ()
        self._asked = False

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        before, self._goal = self._goal, goals_of(self)
        if not self._asked:
            self._asked = True
            return self._at_first()
        return SUCCESS if before != self._goal else FAILURE

    def _at_first(self) -> Status:
        return FAILURE


class GlobalUpdatedGoal(GoalUpdated):
    """Whether there is another goal than when this was asked last; the first one is another."""

    def _at_first(self) -> Status:
        return SUCCESS


class _Again(Decorator):
    """Does its child at first, as long as it runs, and again when it is time; between, it runs."""

    state_fields: ClassVar[tuple[str, ...]] = ("_first",)

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._first = True

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        if self.status is IDLE:
            self._first = True
            self.begin()
        self.set_status(RUNNING)
        if not (self._due() or self._first or self.children[0].status is RUNNING):
            return RUNNING
        self._first = False
        answer = self.children[0].execute()
        if answer is SUCCESS:
            self.begin()
        return answer

    def begin(self) -> None:
        """Note from when on it is not time yet."""

    def _due(self) -> bool:
        raise NotImplementedError


class GoalUpdatedController(_Again):
    """Does its child again when there is another goal."""

    ports: ClassVar = {"goal": _GOAL, "goals": _GOALS}
    state_fields = ("_first", "_goal")

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        super().setup()
        self._goal: Goals = ()

    def _due(self) -> bool:
        before, self._goal = self._goal, goals_of(self)
        return before != self._goal


class DistanceController(OnBus, _Again):
    """Does its child again when the robot has come so far."""

    ports: ClassVar = {
        "distance": input_port(float, 1.0, "How far [m]"),
        "global_frame": UNUSED,
        "robot_base_frame": UNUSED,
    }
    state_fields = ("_first", "_from")

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        super().setup()
        self._from: tuple[float, float] | None = None

    def begin(self) -> None:
        """See `_Again.begin`."""
        here = self.here()
        self._from = None if here is None else (here.x, here.y)

    def _due(self) -> bool:
        here = self.here()
        if here is None or self._from is None:
            return here is not None
        return bool(math.hypot(here.x - self._from[0], here.y - self._from[1]) >= self.input("distance"))


class SpeedController(OnBus, _Again):
    """Does its child again the more often the faster the robot is, and at once for another goal."""

    ports: ClassVar = {
        "min_rate": input_port(float, 0.1, "At rest [Hz]"),
        "max_rate": input_port(float, 1.0, "At full speed [Hz]"),
        "min_speed": input_port(float, 0.0, "That is rest [m/s]"),
        "max_speed": input_port(float, 0.5, "That is full speed [m/s]"),
        "goal": _GOAL,
        "goals": _GOALS,
    }
    state_fields = ("_first", "_since_ns", "_speed", "_goal")

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        super().setup()
        self._since_ns, self._speed = 0, 0.0
        self._goal: Goals = ()
        if self.desk is not None:
            self.keep(self.desk.node.subscribe("odom", msg.Odometry, self._take))

    def _take(self, message: Any) -> None:
        self._speed = math.hypot(message.twist.twist.linear.x, message.twist.twist.linear.y)

    def begin(self) -> None:
        """See `_Again.begin`."""
        self._since_ns = self.now_ns

    def _due(self) -> bool:
        before, self._goal = self._goal, goals_of(self)
        low, high = self.input("min_speed"), self.input("max_speed")
        share = min(max((self._speed - low) / (high - low), 0.0), 1.0) if high > low else 1.0
        rate = self.input("min_rate") + share * (self.input("max_rate") - self.input("min_rate"))
        return before != self._goal or (self.now_ns - self._since_ns) * 1e-9 * rate >= 1.0 - 1e-9


class _WouldHelp(Condition):
    """Whether the last failure is one of those that a recovery can mend."""

    codes: ClassVar[tuple[int, ...]] = ()

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        try:
            code = int(self.input("error_code"))
        except PortError:
            return FAILURE
        wanted = self.input("error_codes_to_check") if "error_codes_to_check" in self.inputs else self.codes
        return SUCCESS if code in wanted else FAILURE


def _would_help(name: str, codes: tuple[int, ...]) -> type[TreeNode]:
    ports = {
        "error_code": input_port(object, doc="What the leaf that failed said"),
        "error_codes_to_check": input_port(list_of(type_of(int)), doc="In the place of Nav2's", optional=True),
    }
    return type(name, (_WouldHelp,), {"codes": (*codes, _UNNAMED), "ports": ports, "__module__": __name__})


_PLAN, _FOLLOW = action.ComputePathToPose.Result, action.FollowPath.Result
WOULD_HELP = (
    _would_help("WouldAPlannerRecoveryHelp", (_PLAN.UNKNOWN, _PLAN.NO_VALID_PATH, _PLAN.TIMEOUT)),
    _would_help(
        "WouldAControllerRecoveryHelp",
        (_FOLLOW.UNKNOWN, _FOLLOW.PATIENCE_EXCEEDED, _FOLLOW.FAILED_TO_MAKE_PROGRESS, _FOLLOW.NO_VALID_CONTROL),
    ),
)


class _Selector(OnBus, Action):
    """Names what somebody chose on a topic, or else the default."""

    state_fields = ("_chosen",)
    part: ClassVar[str] = ""

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._chosen = ""
        if self.desk is not None:
            self.keep(self.desk.node.subscribe(self.inputs["topic_name"], msg.String, self._take))

    def _take(self, message: Any) -> None:
        self._chosen = str(message.data)

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        default = f"default_{self.part}"
        chosen = self._chosen or (self.input(default) if default in self.inputs else "")
        if not chosen:
            return FAILURE
        self.output(f"selected_{self.part}", chosen)
        return SUCCESS


def _selector(name: str, part: str) -> type[TreeNode]:
    ports = {
        "topic_name": input_port(str, f"{part}_selector", "On which somebody chooses (std_msgs/String)"),
        f"default_{part}": input_port(str, doc="Unless somebody does", optional=True),
        f"selected_{part}": output_port(str),
    }
    return type(name, (_Selector,), {"part": part, "ports": ports, "__module__": __name__})


SELECTORS = tuple(
    _selector(f"{''.join(word.title() for word in part.split('_'))}Selector", part)
    for part in ("planner", "controller", "smoother", "goal_checker", "progress_checker", "path_handler")
)


class CancelControl(OnBus, Action):
    """Cancels the path that the robot follows."""

    ports: ClassVar = {"server_name": SERVER, "server_timeout": TIMEOUT}

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        self.on_desk().cancel_goals(self.inputs.get("server_name") or "follow_path")
        return SUCCESS


class GetCurrentPose(OnBus, Action):
    """Where the robot is in the map."""

    ports: ClassVar = {
        "global_frame": UNUSED,
        "robot_base_frame": UNUSED,
        "current_pose": output_port(SE2, doc="x;y;yaw"),
    }

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        here = self.here()
        if here is None:
            return FAILURE
        self.output("current_pose", here)
        return SUCCESS


class ArePosesNear(Condition):
    """Whether two poses are near each other."""

    ports: ClassVar = {
        "ref_pose": input_port(SE2, doc="x;y;yaw"),
        "target_pose": input_port(SE2, doc="x;y;yaw"),
        "tolerance": input_port(float, 0.5, "How near [m]"),
        "global_frame": UNUSED,
    }

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        try:
            a, b = self.input("ref_pose"), self.input("target_pose")
        except PortError:
            return FAILURE
        return SUCCESS if math.hypot(a.x - b.x, a.y - b.y) <= self.input("tolerance") else FAILURE


class GoalReached(OnBus, Condition):
    """Whether the robot is at the goal."""

    ports: ClassVar = {
        "goal": input_port(SE2, doc="x;y;yaw"),
        "tolerance": input_port(float, 0.25, "How near [m]"),
        "global_frame": UNUSED,
        "robot_base_frame": UNUSED,
    }

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        here, goal = self.here(), self.input("goal")
        if here is None:
            return FAILURE
        return SUCCESS if math.hypot(here.x - goal.x, here.y - goal.y) <= self.input("tolerance") else FAILURE


READY: tuple[type[TreeNode], ...] = (
    GoalUpdated, GlobalUpdatedGoal, GoalUpdatedController, DistanceController, SpeedController, *WOULD_HELP,
    *SELECTORS, CancelControl, GetCurrentPose, ArePosesNear, GoalReached,
)  # fmt: skip
