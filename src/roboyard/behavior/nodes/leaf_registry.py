"""All leaves on the bus that come with Roboyard, and their binding to the node that executes their tree."""

from __future__ import annotations

from roboyard.behavior.factory import NodeFactory
from roboyard.behavior.nodes.leaf_host import BusLeaf, LeafHost
from roboyard.behavior.nodes.manipulation import (
    DetectDiscs,
    FindObject,
    MoveArm,
    MoveGripper,
    MoveTool,
    OffsetPoint,
    Pick,
    Place,
    ReachPosition,
    RunSkill,
)
from roboyard.behavior.nodes.mobility import DockRobot, Explore, UndockRobot, WalkToPose
from roboyard.behavior.nodes.nav2_actions import (
    NAV2_POSE_LEAVES,
    BackUp,
    ComputePathToPose,
    DriveOnHeading,
    FollowPath,
    NavigateToPose,
    Spin,
    Wait,
)
from roboyard.behavior.nodes.nav2_conditions import NAV2_GOAL_LEAVES, NAV2_PATH_LEAVES
from roboyard.behavior.nodes.people import ActorAnimation, ActorMovement, RandomSleep, ReportWork, WeightedRandom
from roboyard.behavior.nodes.topic_leaves import (
    CallAction,
    CallService,
    ClearEntireCostmap,
    LastMessage,
    PublishMessage,
    WaitForMessage,
    WaitForPull,
)
from roboyard.behavior.tree_node import TreeNode

LEAVES: tuple[type[TreeNode], ...] = (
    *(NavigateToPose, ComputePathToPose, FollowPath, Spin, BackUp, DriveOnHeading, Wait),
    *(DockRobot, UndockRobot, Explore, WalkToPose),
    *(MoveArm, MoveGripper, DetectDiscs, RunSkill, Pick, Place, FindObject, OffsetPoint, ReachPosition, MoveTool),
    *(CallAction, CallService, ClearEntireCostmap, WaitForMessage, LastMessage, PublishMessage, WaitForPull),
    *(ActorMovement, ActorAnimation, WeightedRandom, RandomSleep, ReportWork),
    *(*NAV2_GOAL_LEAVES, *NAV2_PATH_LEAVES, *NAV2_POSE_LEAVES),
)
"""Each is registered under the name of its class."""


def register(factory: NodeFactory) -> None:
    """Add the leaves to a factory, without a host: their trees can be displayed, but not executed."""
    for leaf in LEAVES:
        factory.register(leaf)


def bind_leaves(factory: NodeFactory, host: LeafHost) -> None:
    """Let all leaves on the bus that a factory has use the node that executes their tree."""
    for name in factory.names:
        leaf = factory.find(name)
        if leaf is not None and issubclass(leaf, BusLeaf):
            factory.replace(type(leaf.__name__, (leaf,), {"host": host, "__module__": leaf.__module__}), name)
