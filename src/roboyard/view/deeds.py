"""What people do, and tasks that robots pursue, by a viewer's word."""

from __future__ import annotations

from typing import Any

from roboyard.errors import InputError
from roboyard.messages import action_type, msg
from roboyard.scenarios import Run
from roboyard.task_planning.nodes import TaskExecutorNode
from roboyard.view.sender import Sender
from roboyard.view.show import Reply
from roboyard.view.wire import ViewMessage, numbers, text, word


def tasks(run: Run) -> dict[str, list[str]]:
    """Goals that nodes can pursue, by node; on the run's thread."""
    return {name: list(node.goal_names) for name, node in run.bus.nodes.items() if isinstance(node, TaskExecutorNode)}


class DeedHand:
    """Has people walk and show clips, and robots pursue goals.

    Args:
        run: Whose people and nodes.
        sender: Into it.
    """

    ops = frozenset({"walk", "animate", "task"})

    def __init__(self, run: Run, sender: Sender) -> None:
        self._run, self._sender = run, sender

    def command(self, said: dict[str, Any], viewer: int, reply: Reply) -> None:
        """Ask for it.

        Raises:
            InputError: there is no such person or node.
        """
        if said["op"] == "task":
            node = word(said, "node")
            if not isinstance(self._run.bus.nodes.get(node), TaskExecutorNode):
                raise InputError(f"{node} pursues no goals", valid="a mission of tasks")
            self._sender.publish(f"{node}/add", msg.String(data=word(said, "goal")))
            reply(ViewMessage(text("done", id=said.get("id"), to="task")))
            return
        name = word(said, "person")
        if name not in self._run.people:
            raise InputError(f"nobody is called {name!r}", valid=", ".join(self._run.people) or "nobody is here")
        walks = said["op"] == "walk"
        kind = action_type(f"roboyard_msgs/action/{'ActorMovement' if walks else 'ActorAnimation'}")
        goal = kind.Goal(animation_name=word(said, "clip", 100))
        if walks:
            x, y = numbers(said, "at", 2)
            goal.target.position.x, goal.target.position.y, goal.target.orientation.w = x, y, 0.0
        self._sender.send_goal(f"/{name}/{'movement' if walks else 'animation'}", kind, goal, said, reply)
