"""Carries out what skills ask for: one thing at a time, each within a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from roboyard.bus import GoalFuture, Node
from roboyard.geometry import SE2
from roboyard.manipulation.groups import Groups
from roboyard.manipulation.nodes.skill_requests import look_goal, looked, move_goal, moved, ride_goal, scene_messages
from roboyard.manipulation.skills import (
    DONE,
    Ask,
    Cause,
    Go,
    Grip,
    Lane,
    Look,
    Move,
    Outcome,
    Ride,
    Show,
    SkillConfig,
    Wait,
)
from roboyard.messages import action, msg
from roboyard.messages.convert import pose_stamped_to_msg

_PATIENCE: Final = 3.0
"""For an answer after something was cancelled [s]."""


@dataclass(frozen=True)
class Doings:
    """Names and times of what carries things out.

    Attributes:
        look: Action roboyard_msgs/LookForDiscs.
        move: Action moveit_msgs/MoveGroup.
        grip: Action control_msgs/GripperCommand.
        grip_state: Topic std_msgs/String of that gripper.
        belts: By field, topics std_msgs/Float64 that tell how fast its floor moves [m/s].
        fingers: Topics geometry_msgs/WrenchStamped: what presses on each, z along it.
        touch: That more or less along all of them is a touch [N].
        go: Action nav2_msgs/NavigateToPose.
        places: Where to go to, by name, in ``map_frame``; empty: the robot stands fast.
        map_frame: Of places.
        look_time: For a look [s].
        move_time: For a motion [s].
        grip_time: For a grip [s].
        go_time: For a drive [s].
    """

    look: str
    move: str
    grip: str
    grip_state: str
    fingers: tuple[str, ...]
    touch: float
    go: str
    belts: dict[str, str]
    places: dict[str, SE2]
    map_frame: str
    look_time: float
    move_time: float
    grip_time: float
    go_time: float


class Doer:
    """See the module.

    Args:
        node: Who sends.
        groups: Of the robot.
        group: That moves.
        config: Sizes of things.
        ground: Height of the floor in the frame of the robot's root [m].
        doings: Who does it.
        ended: Told how what was asked for ended.
        lanes: Gives the strips that the arm keeps out of.

    Attributes:
        holding: Whether the fingers feel something.
        flows: By field, how fast its floor moves [m/s]; NaN until that is told.
    """

    def __init__(
        self,
        node: Node,
        groups: Groups,
        group: str,
        config: SkillConfig,
        ground: float,
        doings: Doings,
        ended: Callable[[Outcome], None],
        lanes: Callable[[], tuple[Lane, ...]],
    ) -> None:
        self._node, self._config, self._ground, self._doings = node, config, ground, doings
        self._ended, self._lanes = ended, lanes
        known = groups.group(group or None)
        self._joints, self._tip = known.joints, known.tip
        self._touches = groups.gripper(known.gripper).links if known.gripper else ()
        self._frame = node.frame(groups.root)
        self.holding = False
        self._ask: Ask | None = None
        self._due_ns = 0
        self._moved_fingers = False
        self.flows = dict.fromkeys(doings.belts, math.nan)
        self._why: Outcome | None = None
        self._told: tuple[str, ...] = ()
        self._future: GoalFuture | None = None
        self._restored: dict[str, GoalFuture] = {}
        kinds: dict[str, tuple[str, Any]] = {
            "Look": (doings.look, action.LookForDiscs),
            "Move": (doings.move, action.MoveGroup),
            "Grip": (doings.grip, action.GripperCommand),
        }
        if doings.places:
            kinds["Go"] = (doings.go, action.NavigateToPose)
        self._clients = {
            kind: node.action_client(name, type_, on_goal_restored=partial(self._take_up, kind))
            for kind, (name, type_) in kinds.items()
        }
        self._scene = node.publisher("planning_scene", msg.moveit_msgs.PlanningScene)
        node.subscribe(doings.grip_state, msg.String, self._on_grip)
        for name, topic in doings.belts.items():
            node.subscribe(topic, msg.Float64, partial(self._on_belt, name))
        self._forces = dict.fromkeys(doings.fingers, 0.0)
        self._force_before = 0.0
        for finger in doings.fingers:
            node.subscribe(finger, msg.WrenchStamped, partial(self._on_force, finger))

    @property
    def busy(self) -> bool:
        """Whether something is being carried out."""
        return self._ask is not None

    # -- asking --------------------------------------------------------------------------------------------------------
    def start(self, ask: Ask) -> Outcome | None:
        """Begin; an outcome if that was all there was to do, else ``ended`` is told later."""
        doings = self._doings
        if isinstance(ask, Show):
            messages, self._told = scene_messages(
                ask, self._told, self._frame, self._tip, self._touches, self._config, self._ground, self._lanes()
            )
            for message in messages:
                self._scene.publish(message)
            return DONE
        if isinstance(ask, Go) and (not doings.places or (ask.place and ask.place not in doings.places)):
            return DONE
        if isinstance(ask, Move | Ride) and ask.holding and not self.holding:
            return Outcome(Cause.LOST, "what was held is no longer between the fingers")
        self._ask, self._why, self._moved_fingers = ask, None, False
        self._force_before = sum(self._forces.values())
        self._due_ns = self._node.now_ns + round(self._time(ask) * 1e9)
        if not isinstance(ask, Wait):
            client = self._clients[_kind(ask)]
            self._follow(client.send(self._goal(ask)))
        return None

    def _time(self, ask: Ask) -> float:
        doings = self._doings
        if isinstance(ask, Ride):
            return (ask.stages[-1].time_ns - self._node.now_ns) * 1e-9 + _PATIENCE
        times = {
            "Look": doings.look_time + 1.0,
            "Move": doings.move_time,
            "Grip": doings.grip_time,
            "Go": doings.go_time,
        }
        return ask.seconds if isinstance(ask, Wait) else times[type(ask).__name__]

    def _goal(self, ask: Ask) -> Any:
        doings = self._doings
        if isinstance(ask, Look):
            return look_goal(ask, self._frame, doings.look_time)
        if isinstance(ask, Move):
            return move_goal(ask, self._joints, self._tip, self._frame)
        if isinstance(ask, Ride):
            return ride_goal(ask, self._tip, self._frame)
        if isinstance(ask, Grip):
            command = msg.GripperCommand(position=ask.opening, max_effort=ask.force)
            return action.GripperCommand.Goal(command=command)
        go = ask if isinstance(ask, Go) else Go()
        pose = (doings.places[go.place] if go.place else SE2()) @ SE2(*go.aside)
        frame = self._node.frame(doings.map_frame) if go.place else self._frame
        return action.NavigateToPose.Goal(pose=pose_stamped_to_msg(pose, frame, self._node.now_ns))

    def _follow(self, future: GoalFuture) -> None:
        self._future = future
        future.add_done_callback(lambda _: self._answered(future))

    # -- ending --------------------------------------------------------------------------------------------------------
    def cancel(self, why: Outcome) -> None:
        """Stop what is being carried out; it ends with ``why`` once it has stopped."""
        if self._ask is None or self._why is not None:
            return
        self._why = why
        if self._future is None:
            self._end(why)
            return
        self._due_ns = self._node.now_ns + round(_PATIENCE * 1e9)
        self._future.cancel()

    def step(self) -> None:
        """Watch the time; called at a rate."""
        ask = self._ask
        if isinstance(ask, Ride) and not self._moved_fingers and self._why is None and self._node.now_ns >= ask.grip_ns:
            self._moved_fingers = True
            self._clients["Grip"].send(self._goal(ask.grip))
        if self._ask is None or self._node.now_ns < self._due_ns:
            return
        if isinstance(self._ask, Wait):
            self._end(DONE)
        elif self._why is not None:
            self._end(self._why)
        else:
            name = type(self._ask).__name__.lower()
            self.cancel(Outcome(Cause.TIMED_OUT, f"the {name} was not over in time"))

    def _answered(self, future: GoalFuture) -> None:
        if future is not self._future or self._ask is None:
            return
        ask = self._ask
        if self._why is not None:
            self._end(self._why)
        elif isinstance(ask, Look):
            self._end(looked(future))
        elif isinstance(ask, Grip):
            self._end(self._gripped(ask, future))
        else:
            outcome = moved(future)
            if isinstance(ask, Move) and ask.holding and ask.straight and outcome.cause is Cause.NOT_FOLLOWED:
                outcome = Outcome(Cause.TOO_HEAVY, f"the arm cannot lift it: {outcome.text}")
            self._end(outcome)

    def _gripped(self, ask: Grip, future: GoalFuture) -> Outcome:
        """Fingers that shall let go must have left what they hold by half of the room that there would be."""
        room = 0.5 * ask.opening - self._config.thing_radius
        if future.error is None and room > 0.0 and future.result.position < ask.opening - room:
            text = f"the fingers stand {1e3 * future.result.position:.0f} mm apart instead of {1e3 * ask.opening:.0f}"
            return Outcome(Cause.HAND_STUCK, text)
        return DONE if future.error is None and future.succeeded else moved(future)

    def _end(self, outcome: Outcome) -> None:
        self._ask = self._why = self._future = None
        self._ended(outcome)

    # -- the fingers ---------------------------------------------------------------------------------------------------
    def _on_grip(self, message: Any) -> None:
        self.holding = message.data == "holding"
        ask = self._ask
        if isinstance(ask, Ride) and self._moved_fingers:
            return
        if isinstance(ask, Move | Ride) and ask.holding and not self.holding:
            self.cancel(Outcome(Cause.LOST, f"the gripper says: {message.data}"))

    def _on_force(self, finger: str, message: Any) -> None:
        self._forces[finger] = float(message.wrench.force.z)
        change = abs(sum(self._forces.values()) - self._force_before)
        if isinstance(self._ask, Move) and self._ask.guarded and change > self._doings.touch:
            self.cancel(Outcome(Cause.BLOCKED, f"the hand came upon something: {change:.0f} N along the fingers"))

    # -- belts ---------------------------------------------------------------------------------------------------------
    def _on_belt(self, name: str, message: Any) -> None:
        self.flows[name] = float(message.data)
        ask = self._ask
        if isinstance(ask, Move) and ask.field == name and abs(message.data) > self._config.still:
            self.cancel(Outcome(Cause.UNSTEADY, f"the belt stood, now it moves at {abs(message.data):.3f} m/s"))
        if not isinstance(ask, Ride) or ask.field != name or self._moved_fingers:
            return
        speed = math.hypot(*ask.stages[0].velocity)
        if not abs(abs(message.data) - speed) <= self._config.unsteady:
            self.cancel(Outcome(Cause.UNSTEADY, f"the belt moved at {speed:.3f} m/s, now at {abs(message.data):.3f}"))

    # -- state ---------------------------------------------------------------------------------------------------------
    def _take_up(self, kind: str, future: GoalFuture) -> None:
        self._restored[kind] = future

    def save_state(self) -> dict[str, Any]:
        """What is under way, as plain data; goals themselves are their clients'."""
        return {
            "ask": self._ask, "due": self._due_ns, "why": self._why, "told": self._told, "holding": self.holding,
            "waits": self._future is not None, "fingers": self._moved_fingers, "flows": dict(self.flows),
            "forces": dict(self._forces), "force_before": self._force_before,
        }  # fmt: skip

    def load_state(self, saved: dict[str, Any]) -> None:
        """Counterpart of `save`, after the clients have taken up their goals."""
        self._ask, self._due_ns, self._why = saved["ask"], saved["due"], saved["why"]
        self._told, self.holding = saved["told"], saved["holding"]
        self._moved_fingers, self.flows = saved["fingers"], dict(saved["flows"])
        self._forces, self._force_before = dict(saved["forces"]), saved["force_before"]
        self._future = None
        if saved["waits"]:
            self._follow(self._restored[_kind(self._ask)])
        self._restored.clear()


def _kind(ask: Any) -> str:
    """Whose client an ask is for: rides are motions."""
    return "Move" if isinstance(ask, Ride) else type(ask).__name__
