"""Hooks that Groot2 sets on nodes: breakpoints, at which a tree waits, and answers in a node's place.

As in BehaviorTree.CPP 4.10 a hook stands before or after a node's tick.  That it was come upon is told.  A tree waits
at a breakpoint until it is unlocked, and goes on with the node's own answer, or the one that it was unlocked with.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from roboyard.behavior.node import TreeNode
from roboyard.behavior.status import SKIPPED, Status
from roboyard.behavior.tree import Tree

PRE: Final = 0
POST: Final = 1
BREAKPOINT: Final = 0
REPLACE: Final = 1
CHANGES: Final = "IRUAXE"
"""Requests that change hooks: insert, remove, unlock, remove all, disable all; ``E``, enable all, is not Groot2's."""


class GrootError(Exception):
    """A request that cannot be answered; says why."""


@dataclass
class Hook:
    """On one node.

    Attributes:
        enabled: Whether it does anything.
        uid: The node's number.
        mode: `BREAKPOINT` or `REPLACE`.
        once: Whether it goes when it was come upon.
        desired_status: The answer in place of the node's own; other than SUCCESS and FAILURE: none.
        position: `PRE` or `POST`.
    """

    enabled: bool
    uid: int
    mode: int
    once: bool
    desired_status: str
    position: int


class Hooks:
    """On the nodes of a tree.

    Attributes:
        wait: Called at a breakpoint; returns when there is something new.
        tell: Called with a node's number when its hook is come upon.
        held_at: The path of the node at whose breakpoint the tree waits; "" where it does not.
    """

    def __init__(self, tree: Tree, wait: Callable[[], None], tell: Callable[[int], None]) -> None:
        self._nodes = tree.nodes
        self._wait, self._tell = wait, tell
        self._hooks: dict[tuple[int, int], Hook] = {}
        self._unlocked: set[tuple[int, int]] = set()
        self.held_at = ""

    def __bool__(self) -> bool:
        return bool(self._hooks)

    def dump(self) -> str:
        """All of them as JSON, those before ticks first."""
        hooks = sorted(self._hooks.items(), key=lambda item: item[0][0])
        return json.dumps([asdict(hook) for _, hook in hooks], separators=(",", ":"), sort_keys=True)

    def change(self, kind: str, body: str) -> None:
        """Carry a request out; see `CHANGES`.

        Raises:
            GrootError: it is none, or about a hook that there is not.
        """
        if kind in "XE":
            for hook in self._hooks.values():
                hook.enabled = kind == "E"
            return
        if kind == "A":
            for key in list(self._hooks):
                self._remove(key)
            return
        try:
            said = json.loads(body)
            for one in said if isinstance(said, list) else [said]:
                if kind == "I":
                    self._insert(one)
                    continue
                key = (int(one["position"]), int(one["uid"]))
                if key not in self._hooks:
                    raise GrootError("Node ID not found")
                if kind == "R":
                    self._remove(key)
                else:
                    self._unlock(key, str(one["desired_status"]), bool(one["remove_when_done"]))
        except KeyError as error:
            raise GrootError(f"the key {error} is missing") from None
        except (ValueError, TypeError, AttributeError) as error:
            raise GrootError(f"no request: {error}") from None

    # -- changes -------------------------------------------------------------------------------------------------------
    def _insert(self, said: Mapping[str, Any]) -> None:
        hook = Hook(
            enabled=bool(said["enabled"]), uid=int(said["uid"]), mode=int(said["mode"]), once=bool(said["once"]),
            desired_status=str(said["desired_status"]), position=int(said["position"]),
        )  # fmt: skip
        if hook.desired_status not in Status.__members__:
            raise GrootError(f"{hook.desired_status!r} is no status; valid: {', '.join(Status.__members__)}")
        if hook.mode not in (BREAKPOINT, REPLACE) or hook.position not in (PRE, POST):
            raise GrootError("mode and position are 0 or 1")
        if hook.uid not in self._nodes:
            return  # as BehaviorTree.CPP does
        key = (hook.position, hook.uid)
        before = self._hooks.setdefault(key, hook)
        if before is hook:
            self._attach(hook.uid)
            return
        if before.mode == BREAKPOINT and hook.mode == REPLACE:
            self._unlocked.add(key)
        vars(before).update(vars(hook))

    def _unlock(self, key: tuple[int, int], status: str, remove: bool) -> None:
        hook = self._hooks[key]
        hook.desired_status = status if status in ("SUCCESS", "FAILURE") else "SKIPPED"
        hook.once = hook.once or remove
        if hook.mode == BREAKPOINT:
            self._unlocked.add(key)

    def _remove(self, key: tuple[int, int]) -> None:
        self._hooks.pop(key).enabled = False
        self._unlocked.discard(key)
        self._attach(key[1])

    def _attach(self, uid: int) -> None:
        """Have a node ask its hooks."""
        before, after = (self._hooks.get((position, uid)) for position in (PRE, POST))
        self._nodes[uid].hook(
            None if before is None else lambda node: self._come_upon(before, node),
            None if after is None else lambda node: self._come_upon(after, node),
        )

    # -- ticks ---------------------------------------------------------------------------------------------------------
    def _come_upon(self, hook: Hook, node: TreeNode) -> Status:
        if not hook.enabled:
            return SKIPPED
        self._tell(node.uid)
        key = (hook.position, hook.uid)
        if hook.mode == BREAKPOINT:
            self.held_at = node.path
            while hook.enabled and key not in self._unlocked:
                self._wait()
            self.held_at = ""
            self._unlocked.discard(key)
        return self._answer(hook)

    def _answer(self, hook: Hook) -> Status:
        if not hook.enabled:  # meanwhile
            return SKIPPED
        if hook.once:
            self._remove((hook.position, hook.uid))
        return Status[hook.desired_status]
