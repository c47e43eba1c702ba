"""What can be done with the robots, people and nodes of a run, as its topics and services say."""

from __future__ import annotations

from typing import Any

from roboyard.behavior.nodes.leaf_host import LeafHostNode
from roboyard.behavior.tree_drawing import tree_to_text
from roboyard.bus import Bus
from roboyard.bus.actions import endpoint
from roboyard.scenarios import Run

TWIST, STAMPED = "geometry_msgs/msg/Twist", "geometry_msgs/msg/TwistStamped"
_GOAL, _INITIAL = "geometry_msgs/msg/PoseStamped", "geometry_msgs/msg/PoseWithCovarianceStamped"
_BEAT = "std_msgs/msg/Header"


def abilities(run: Run) -> dict[str, Any]:
    """Of the robots by name: where they listen; "" where they do not.  Of people: their names.  On the run's thread."""
    bus = run.bus
    robots = {}
    for name, robot in run.robots.items():
        space = robot.namespace
        command = f"{space}/cmd_vel"
        robots[name] = {
            "space": space,
            "drive": command if heard(bus, command) in (TWIST, STAMPED) else "",
            "beat": _listens(bus, f"{space}/teleop/heartbeat", _BEAT),
            "goal": _listens(bus, f"{space}/goal_pose", _GOAL),
            "initial": _listens(bus, f"{space}/initialpose", _INITIAL),
            "follow": _serves(bus, endpoint(f"{space}/follow_waypoints", "send_goal")),
            "cancel": _serves(bus, endpoint(f"{space}/navigate_to_pose", "cancel_goal")),
        }
    return {"robots": robots, "people": list(run.people), "things": _things(run)}


def _things(run: Run) -> list[str]:
    """Models that are neither robots nor people nor furniture that moves."""
    taken = {*run.robots, *run.devices, *(person.config.model for person in run.people.values())}
    return [name for name, handle in run.simulation.models.items() if name not in taken and not handle.model.static]


def heard(bus: Bus, topic: str) -> str:
    """Type of a topic that somebody listens to; "" where nobody does."""
    found = bus.topics.get(topic)
    return found.type_name if found is not None and found.subscriptions else ""


def _listens(bus: Bus, topic: str, kind: str) -> str:
    return topic if heard(bus, topic) == kind else ""


def _serves(bus: Bus, service: str) -> str:
    return service if service in bus.services else ""


def trees(run: Run) -> dict[str, str]:
    """Behaviour trees that run, as text with where each node stands, by the node that runs them."""
    found = {}
    for name, node in run.bus.nodes.items():
        tree = node.running_tree() if isinstance(node, LeafHostNode) else None
        if tree is not None:
            found[name] = tree_to_text(tree, status=True)
    return found
