"""The bus: nodes, topics, services, actions, parameters, transforms, and the one deterministic clock they share."""

from roboyard.bus.actions import ActionClient, ActionServer, GoalFuture, GoalHandle, Status
from roboyard.bus.bus import Bus
from roboyard.bus.executor import FAULT, LAST, LATE, SENSOR, TIMER, Executor
from roboyard.bus.futures import Future
from roboyard.bus.graph import Graph, graph
from roboyard.bus.inputs import Input
from roboyard.bus.meter import NodeError
from roboyard.bus.node import Node
from roboyard.bus.parameters import param, resource, settings
from roboyard.bus.topics import Publisher, Subscription, Topic
from roboyard.bus.transforms import TransformBuffer, TransformError

__all__ = [
    "FAULT",
    "LAST",
    "LATE",
    "SENSOR",
    "TIMER",
    "ActionClient",
    "ActionServer",
    "Bus",
    "Executor",
    "Future",
    "GoalFuture",
    "GoalHandle",
    "Graph",
    "Input",
    "Node",
    "NodeError",
    "Publisher",
    "Status",
    "Subscription",
    "Topic",
    "TransformBuffer",
    "TransformError",
    "graph",
    "param",
    "resource",
    "settings",
]
