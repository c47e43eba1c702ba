"""What all nodes offer that move joints in time: to stop at once, and to pause."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from roboyard.bus import Node
from roboyard.control.owners import JointOwners
from roboyard.messages import srv


def offer_stops(node: Node, owners: JointOwners, joints: tuple[str, ...], stop: Callable[[], None]) -> None:
    """Offer ``~stop`` (std_srvs/Trigger) and ``~pause`` (std_srvs/SetBool), which hold for whoever moves the joints.

    Args:
        node: That offers them, and moves joints itself.
        owners: Who moves which.
        joints: Which.
        stop: Stops what the node itself is doing.
    """
    owners.join(node.full_name, stop)

    def on_stop(request: Any) -> Any:
        stopped = owners.stop(joints)
        return srv.Trigger.Response(success=True, message=f"stops: {', '.join(stopped) or 'nothing moved'}")

    def on_pause(request: Any) -> Any:
        owners.pause(joints, bool(request.data))
        return srv.SetBool.Response(success=True, message="paused" if request.data else "goes on")

    node.service("~stop", srv.Trigger, on_stop)
    node.service("~pause", srv.SetBool, on_pause)
