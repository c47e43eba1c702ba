"""A node that runs trees whose leaves send goals: it has their clients, and keeps goals that are under way."""

from __future__ import annotations

import json
from typing import Any

from roboyard.behavior.tree import Tree
from roboyard.bus import ActionClient, ConfigT, GoalFuture, Node
from roboyard.messages import srv


class DeskNode(Node[ConfigT]):
    """See `Desk`; call ``open_desk`` before a tree is made.

    service: ~/state (std_srvs/Trigger): where each node of its tree stands, JSON: [[number, status], …]
    """

    def open_desk(self) -> None:
        """Have no clients and no goals yet."""
        self.node: Node = self
        self._clients: dict[tuple[str, str], ActionClient] = {}
        self._goals: dict[bytes, GoalFuture] = {}
        self._done = 0
        self.service("~/state", srv.Trigger, self._on_state)

    def running_tree(self) -> Tree | None:
        """The tree that is under way."""
        raise NotImplementedError

    def _on_state(self, request: Any) -> Any:
        tree = self.running_tree()
        told = [] if tree is None else [[uid, node.status.name] for uid, node in tree.nodes.items()]
        return srv.Trigger.Response(success=tree is not None, message=json.dumps(told))

    def client(self, name: str, kind: Any) -> ActionClient:
        """See `Desk.client`."""
        key = (name, kind.name)
        if key not in self._clients:
            self._clients[key] = self.action_client(name, kind, on_goal_restored=self.follow)
        return self._clients[key]

    def follow(self, goal: GoalFuture) -> None:
        """See `Desk.follow`."""
        self._goals[goal.id] = goal

    def goal(self, key: bytes) -> GoalFuture | None:
        """See `Desk.goal`."""
        return self._goals.get(key)

    def cancel_goals(self, name: str) -> None:
        """See `Desk.cancel_goals`."""
        for goal in self._goals.values():
            if goal.action == self.resolve(name) and not goal.done():
                goal.cancel()

    def forget_goals(self, tree: Tree | None) -> None:
        """Keep only goals that are under way, or that a node of the tree sent last."""
        done = sum(goal.done() for goal in self._goals.values())
        if done == self._done:
            return  # looked through already
        nodes = () if tree is None else tree.nodes.values()
        sent = {node.save_state()["_key"] for node in nodes if "_key" in node.state_fields}
        self._goals = {key: goal for key, goal in self._goals.items() if not goal.done() or key in sent}
        self._done = sum(goal.done() for goal in self._goals.values())

    def load_state(self, state: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        self._goals.clear()
        self._done = 0
        super().load_state(state)
