"""A mission of a behavior tree on a bus, with the robot that carries it out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.harness.bus import BusHarness

from roboyard.behavior.nodes import TreeMissionNode
from roboyard.bus import Node


class MissionHarness(BusHarness):
    """A bus with a robot and a mission.

    Args:
        folder: Where the tree's file is written.
        body: What the tree consists of.
        robot: The node that serves the tree's goals.
        start: When the mission begins [s].
    """

    def __init__(self, folder: Path, body: str, robot: Node, *, start: float = 0.0) -> None:
        super().__init__(seed=1)
        file = folder / "tree.xml"
        file.write_text(f'<root BTCPP_format="4"><BehaviorTree ID="Main">{body}</BehaviorTree></root>')
        self.robot = self.add(robot, "robot")
        self.mission = self.add(TreeMissionNode(file=str(file), start=start), "mission")

    @property
    def status(self) -> list[str]:
        """The mission's states."""
        return self.published("/mission/status").data

    @property
    def events(self) -> list[Any]:
        """What happened to the tree's nodes."""
        return [event for text in self.published("/mission/events").data for event in json.loads(text)]

    def entry(self, name: str) -> Any:
        """An entry of the tree's blackboard."""
        return self.mission._tree.blackboard.get(name)
