"""A mission of a behavior tree on a bus, with the robot that carries it out."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.harness.bus import BusHarness

from roboyard.behavior.nodes import TreeExecutorNode
from roboyard.bus import Node


def tree_document(body: str, include: Path | None = None) -> str:
    """The XML of a tree named "Main"; ``include`` is a file whose trees it may use."""
    included = "" if include is None else f'<include path="{include}"/>'
    return (
        f'<root BTCPP_format="4" main_tree_to_execute="Main">{included}'
        f'<BehaviorTree ID="Main">{body}</BehaviorTree></root>'
    )


def write_tree(folder: Path, body: str, include: Path | None = None) -> Path:
    """Write a file with a tree; ``body`` may be a whole document too."""
    file = folder / "tree.xml"
    file.write_text(body if body.startswith("<root") else tree_document(body, include))
    return file


class MissionHarness(BusHarness):
    """A bus with a mission, and the nodes that carry it out.

    Args:
        folder: Where the tree's file is written.
        body: What the tree consists of, or a whole document.
        robot: The node that moves, or serves the tree's goals.
        nodes: Further (node, name) pairs.
        include: As of `tree_document`.
        start: When the mission begins [s].
        seed: Of the bus.
        parameters: Further parameters of the mission.
    """

    def __init__(
        self,
        folder: Path,
        body: str,
        robot: Node | None = None,
        *,
        nodes: Iterable[tuple[Node, str]] = (),
        include: Path | None = None,
        start: float = 0.0,
        seed: int = 1,
        **parameters: Any,
    ) -> None:
        super().__init__(seed=seed)
        file = write_tree(folder, body, include)
        self.robot: Any = None if robot is None else self.add(robot, "robot")
        for node, name in nodes:
            self.add(node, name)
        self.mission = self.add(TreeExecutorNode(file=str(file), start_time=start, **parameters), "mission")

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

    def run_to_end(self, timeout: float = 10.0) -> str:
        """Run until the tree has ended; its status then."""
        status = self.published("/mission/status")
        self.spin_until(
            lambda: bool(status) and status.last.data in ("SUCCESS", "FAILURE"), timeout=timeout, expected="SUCCESS"
        )
        return str(status.last.data)
