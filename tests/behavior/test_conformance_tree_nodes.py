"""Every registered node type keeps the contract of TreeNode; node types that break it are found."""

from typing import Any, ClassVar

import numpy as np
import pytest

from roboyard.behavior import (
    ConditionNode,
    ControlNode,
    DecoratorNode,
    GeneratorActionNode,
    NodeStatus,
    StatefulActionNode,
    SyncActionNode,
    check_tree_node,
    input_port,
    output_port,
)
from roboyard.behavior.bt_version3 import NODE_TYPES as VERSION_3_NODE_TYPES
from roboyard.behavior.decorators import SubTreeNode
from roboyard.behavior.factory import TREE_NODES
from roboyard.behavior.nodes import ActionLeaf, BusLeaf
from roboyard.errors import InputError
from roboyard.messages import action, msg
from roboyard.messages.convert import path_to_msg

PATH = path_to_msg(np.linspace([0.0, 0.0, 0.0], [4.0, 0.0, 0.0], 9), "map", 0)
POSE, POSES = "1;2;0.5", "1;2;0|3;4;0"
PATH_ENTRY = {"ports": {"path": "{a}"}, "entries": {"a": PATH}}
INPUT_PATH_ENTRY = {"ports": {"input_path": "{a}"}, "entries": {"a": PATH}}
LOOPS = {"LoopInt": "1;2", "LoopBool": "true;false", "LoopDouble": "0.5;1.5", "LoopString": "a;b"}

CASES: dict[str, dict[str, Any]] = {
    "SequenceWithMemory": {"has_memory": True},
    "SequenceStar": {"has_memory": True},
    "IfThenElse": {"n_children": 3},
    "WhileDoElse": {"n_children": 3},
    "TryCatch": {"n_children": 2},
    **{
        f"Switch{n}": {
            "ports": {"variable": "{a}", **{f"case_{k}": str(k) for k in range(1, n + 1)}},
            "entries": {"a": "1"},
            "n_children": n + 1,
        }
        for n in range(2, 7)
    },
    "Repeat": {"ports": {"num_cycles": "3"}},
    "RetryUntilSuccessful": {"ports": {"num_attempts": "3"}},
    "RunOnce": {"has_memory": True},
    "Timeout": {"ports": {"msec": "250"}},
    "Delay": {"ports": {"delay_msec": "250"}},
    "Precondition": {"ports": {"if": "true"}},
    "WasEntryUpdated": {"ports": {"entry": "{a}"}, "entries": {"a": 1}, "has_memory": True},
    "SkipUnlessUpdated": {"ports": {"entry": "{a}"}, "entries": {"a": 1}, "has_memory": True},
    "WaitValueUpdate": {"ports": {"entry": "{a}"}, "entries": {"a": 1}, "has_memory": True},
    **{name: {"ports": {"queue": text, "value": "{value}"}, "has_memory": True} for name, text in LOOPS.items()},
    "Script": {"ports": {"code": "a := 1"}},
    "ScriptCondition": {"ports": {"code": "1 &lt; 2".replace("&lt;", "<")}},
    "SetBlackboard": {"ports": {"value": "3", "output_key": "a"}},
    "UnsetBlackboard": {"ports": {"key": "a"}},
    "Sleep": {"ports": {"msec": "250"}},
    "RateController": {},
    "WeightedRandom": {"ports": {"weights": "1;1"}, "has_memory": True},
    "RandomSleep": {"ports": {"low": "0.2", "high": "0.5"}, "has_memory": True},
    "CallAction": {"ports": {"action_type": "nav2_msgs/action/Spin", "server_name": "spin"}},
    "CallService": {"ports": {"service_name": "lamp"}},
    "WaitForMessage": {"ports": {"topic": "image", "type": "std_msgs/msg/Bool"}},
    "LastMessage": {"ports": {"topic": "a", "type": "std_msgs/msg/Bool", "field": "data"}, "has_memory": True},
    "PublishMessage": {"ports": {"topic": "a", "type": "std_msgs/msg/Bool", "fields": "data: true"}},
    "NavigateToPose": {"ports": {"goal": POSE}},
    "ComputePathToPose": {"ports": {"goal": POSE}},
    "ComputePathThroughPoses": {"ports": {"goals": POSES}},
    "FollowPath": PATH_ENTRY,
    "DockRobot": {"ports": {"dock_id": "home"}},
    "ArePosesNear": {"ports": {"ref_pose": POSE, "target_pose": POSE}},
    "GoalReached": {"ports": {"goal": POSE}},
    "GoalUpdated": {"ports": {"goal": POSE}, "has_memory": True},
    "GlobalUpdatedGoal": {"ports": {"goal": POSE}, "has_memory": True},
    "GoalUpdatedController": {"ports": {"goal": POSE}, "has_memory": True},
    "GoalUpdater": {"ports": {"input_goal": POSE}, "has_memory": True},
    "GetNextFewGoals": {"ports": {"num_goals": "1", "input_goals": POSES}},
    "RemovePassedGoals": {"ports": {"input_goals": POSES}},
    "SpeedController": {"ports": {"goal": POSE}, "has_memory": True},
    "WouldAPlannerRecoveryHelp": {"ports": {"error_code": "208"}},
    "WouldAControllerRecoveryHelp": {"ports": {"error_code": "103"}},
    "IsGoalNearby": PATH_ENTRY,
    "PathLongerOnApproach": {**PATH_ENTRY, "has_memory": True},
    "TruncatePath": INPUT_PATH_ENTRY,
    "TruncatePathLocal": {**INPUT_PATH_ENTRY, "ports": {**INPUT_PATH_ENTRY["ports"], "pose": POSE}},
    "GetPoseFromPath": PATH_ENTRY,
    "ConcatenatePaths": {"ports": {"input_path1": "{a}", "input_path2": "{a}"}, "entries": {"a": PATH}},
    "ValidatePath": {**PATH_ENTRY, "has_memory": True},
    "MoveArm": {"ports": {"pose": "home"}},
    "MoveGripper": {"ports": {"position": "0.02"}},
    "RunSkill": {"ports": {"skill": "look"}},
    "ReachPosition": {"ports": {"position": "0.5;0;0.4", "arm_base": "base_link"}},
    "MoveTool": {"ports": {"position": "0.5;0;0.4", "exact": "true"}},
    "ComputePointInFront": {"ports": {"pose": POSE, "distance": "1", "height": "1"}},
    "FindObject": {"ports": {"object_id": "cup", "timeout": "0.6"}},
    "WalkToPose": {"ports": {"goal": POSE}},
    "ActorMovement": {"ports": {"target": "1;2"}},
    "ActorAnimation": {"ports": {"animation_name": "wave"}},
    "ReportWork": {"ports": {"actor": "arm", "task": "cycle", "state": "started"}},
    # nodes that remember which child comes next, or when they began
    "RoundRobin": {"has_memory": True},
    "SingleTrigger": {},
    "BlackboardCheckInt": {"ports": {"value_A": "1", "value_B": "1"}},
    "BlackboardCheckDouble": {"ports": {"value_A": "1", "value_B": "1"}},
    "BlackboardCheckString": {"ports": {"value_A": "a", "value_B": "a"}},
    "BlackboardCheckBool": {"ports": {"value_A": "true", "value_B": "true"}},
    "Parallel of version 3": {"ports": {"success_threshold": "2"}},
}
"""What `check_tree_node` needs to know of a node type: texts of its required ports, children, entries, memory."""

NODE_TYPES: dict[str, Any] = {
    **{name: TREE_NODES[name] for name in TREE_NODES.names()},
    **{(f"{name} of version 3" if name in TREE_NODES else name): kind for name, kind in VERSION_3_NODE_TYPES.items()},
}
SUBTREES = [name for name, kind in NODE_TYPES.items() if issubclass(kind, SubTreeNode)]


@pytest.mark.parametrize("name", sorted(NODE_TYPES.keys() - SUBTREES))
def test_registered_node_types_conform(name: str) -> None:
    check_tree_node(NODE_TYPES[name], **CASES.get(name, {}))


def test_every_case_belongs_to_a_node_type() -> None:
    assert CASES.keys() - NODE_TYPES.keys() == set()
    assert sorted(SUBTREES) == ["SubTree", "SubTree of version 3", "SubTreePlus"]
    assert len(NODE_TYPES) > 100


# -- node types that break the contract --------------------------------------------------------------------------------
class Counter(StatefulActionNode):
    """Runs for three ticks; correct, the base of the broken ones."""

    ports: ClassVar = {"n": input_port(int, 3, "Number of ticks.")}
    state_fields = ("_count",)

    def setup(self) -> None:
        self._count = 0

    def on_start(self) -> NodeStatus:
        self._count = 0
        return self.on_running()

    def on_running(self) -> NodeStatus:
        self._count += 1
        return NodeStatus.RUNNING if self._count < self.get_input("n") else NodeStatus.SUCCESS


class Undocumented(Counter):
    ports: ClassVar = {"n": input_port(int, 3)}


class ForbiddenPortName(Counter):
    ports: ClassVar = {"name": input_port(int, 3, "Number.")}


class NoPort(Counter):
    ports: ClassVar = {"n": 3}


class OmitsStateField(Counter):
    state_fields = ()


class ReturnsMutableState(Counter):
    state_fields = ("_ticks",)

    def on_start(self) -> NodeStatus:
        self._ticks: list[list[int]] = [[]]
        return self.on_running()

    def setup(self) -> None:
        self._ticks = [[]]

    def on_running(self) -> NodeStatus:
        self._ticks[0].append(1)
        return NodeStatus.RUNNING if len(self._ticks[0]) < 3 else NodeStatus.SUCCESS


class ContinuesAfterHalt(Counter):
    def on_start(self) -> NodeStatus:
        return self.on_running()


class IgnoresHalt(Counter):
    def halt(self) -> None:
        pass


class IgnoresResetOfStatus(Counter):
    def on_halted(self) -> None:
        self._count = 0

    def reset_status(self) -> None:
        pass


class RaisesValueError(SyncActionNode):
    def tick(self) -> NodeStatus:
        return NodeStatus(float("nan"))


class CountsAllInstances(ConditionNode):
    count = 0

    def tick(self) -> NodeStatus:
        CountsAllInstances.count += 1
        return NodeStatus.SUCCESS if CountsAllInstances.count % 5 else NodeStatus.FAILURE


class LeavesItsChildRunning(DecoratorNode):
    def tick(self) -> NodeStatus:
        self.set_status(NodeStatus.RUNNING)
        return self.child.execute_tick()

    def halt(self) -> None:
        self.reset_status()


class SkipsTheStatus(ControlNode):
    def tick(self) -> NodeStatus:
        self.status = NodeStatus.RUNNING
        status = self.children[0].execute_tick()
        return status


class LeavesItsGoalActive(ActionLeaf):
    action_name = "spin"
    action_type = property(lambda _: action.Spin)

    def make_goal(self) -> Any:
        return action.Spin.Goal()

    def on_halted(self) -> None:
        pass


class LeavesItsSubscriptionOpen(BusLeaf, Counter):
    def on_start(self) -> NodeStatus:
        self.require_host().node.subscribe("a", msg.String, lambda _: None)
        return super().on_start()


BROKEN: dict[type, str] = {
    Undocumented: "does not document the port n",
    ForbiddenPortName: "port name, whose name is reserved",
    NoPort: "not by input_port",
    OmitsStateField: "continues otherwise after it was saved and restored",
    ReturnsMutableState: "changes a state that was saved before",
    ContinuesAfterHalt: "does not start afresh after halt",
    IgnoresHalt: "does not call on_halted",
    IgnoresResetOfStatus: "RUNNING after halt",
    RaisesValueError: "raises an error that is no RoboyardError: ValueError",
    CountsAllInstances: "returns other statuses for the same ticks",
    LeavesItsChildRunning: "RUNNING after halt",
    SkipsTheStatus: "changes its status from",
    LeavesItsGoalActive: "leaves a goal active after halt",
    LeavesItsSubscriptionOpen: "leaves a subscription or a publisher open",
}


@pytest.mark.parametrize("broken", BROKEN, ids=lambda kind: kind.__name__)
def test_broken_node_types_are_found(broken: type) -> None:
    with pytest.raises(InputError, match=BROKEN[broken]) as caught:
        check_tree_node(broken)
    assert broken.__name__ in str(caught.value)


def test_correct_node_types_of_others_pass() -> None:
    class Count(GeneratorActionNode):
        ports: ClassVar = {"reached": output_port(int, doc="The number that was reached.")}

        def run(self) -> Any:
            for number in range(1, 4):
                self.set_output("reached", number)
                yield
            return NodeStatus.SUCCESS

    check_tree_node(Count)
    check_tree_node(Counter, {"n": "5"})


def test_missing_text_of_a_required_port_is_named() -> None:
    class Needs(SyncActionNode):
        ports: ClassVar = {"to": input_port(int, doc="A number.")}

    with pytest.raises(InputError, match="no text for the port to"):
        check_tree_node(Needs)
