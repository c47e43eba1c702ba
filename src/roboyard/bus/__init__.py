"""Bus: nodes, topics, services, actions, parameters, transforms, and one deterministic clock for all of them."""

from typing import TYPE_CHECKING

from roboyard.config.lazy import lazy_exports

if TYPE_CHECKING:
    from roboyard.bus.actions import ActionClient, ActionServer, GoalFuture, GoalHandle
    from roboyard.bus.bus import Bus
    from roboyard.bus.callback_timer import NodeError
    from roboyard.bus.context import BusContext
    from roboyard.bus.executor import FAULT, LAST, LATE, SENSOR, TIMER, Executor
    from roboyard.bus.external_inputs import ExternalInput
    from roboyard.bus.graph import Graph, graph
    from roboyard.bus.message_filter import DroppedMessage, DropReason, MessageFilter
    from roboyard.bus.node import STATE_RATE, Node
    from roboyard.bus.parameters import ConfigT, resource
    from roboyard.bus.ros_node import RosNode
    from roboyard.bus.services import Future
    from roboyard.bus.throttle import Throttle
    from roboyard.bus.topics import Publisher, Subscription, Topic
    from roboyard.bus.transforms import TransformBuffer, TransformError

__all__ = [
    "FAULT",
    "LAST",
    "LATE",
    "SENSOR",
    "STATE_RATE",
    "TIMER",
    "ActionClient",
    "ActionServer",
    "Bus",
    "BusContext",
    "ConfigT",
    "DropReason",
    "DroppedMessage",
    "Executor",
    "ExternalInput",
    "Future",
    "GoalFuture",
    "GoalHandle",
    "Graph",
    "MessageFilter",
    "Node",
    "NodeError",
    "Publisher",
    "RosNode",
    "Subscription",
    "Throttle",
    "Topic",
    "TransformBuffer",
    "TransformError",
    "graph",
    "resource",
]

__getattr__, __dir__ = lazy_exports(__name__, {
    "actions": ("ActionClient", "ActionServer", "GoalFuture", "GoalHandle"),
    "bus": ("Bus",),
    "callback_timer": ("NodeError",),
    "context": ("BusContext",),
    "executor": ("FAULT", "LAST", "LATE", "SENSOR", "TIMER", "Executor"),
    "external_inputs": ("ExternalInput",),
    "graph": ("Graph", "graph"),
    "message_filter": ("DropReason", "DroppedMessage", "MessageFilter"),
    "node": ("STATE_RATE", "Node"),
    "parameters": ("ConfigT", "resource"),
    "ros_node": ("RosNode",),
    "services": ("Future",),
    "throttle": ("Throttle",),
    "topics": ("Publisher", "Subscription", "Topic"),
    "transforms": ("TransformBuffer", "TransformError"),
})  # fmt: skip
