"""Trees on the bus: goals sent, rejected, canceled and restored; services; Nav2's control nodes."""

from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.harness.bus import (
    BusHarness,
    FakeActionServer,
    FakeService,
    Outcome,
    Reject,
    Succeed,
    check_snapshot_continues,
)
from tests.harness.missions import MissionHarness, tree_document

from roboyard.behavior import InvalidTreeError, NodeFactory, NodeStatus, read_tree
from roboyard.errors import RoboyardError
from roboyard.messages import action, srv


def navigate_server() -> FakeActionServer:
    """A robot that reaches every goal after a second, but rejects those beyond x = 10."""

    def decide(goal: Any) -> Outcome:
        return Reject("too far away", "far") if goal.pose.pose.position.x > 10.0 else Succeed(after=1.0)

    return FakeActionServer("navigate_to_pose", action.NavigateToPose, decide)


def requested(mission: MissionHarness) -> list[float]:
    """The x coordinates of the goals sent so far [m]."""
    return [goal.pose.pose.position.x for goal in mission.robot.goals]


TWO = """<Sequence>
  <NavigateToPose goal="1;0;0"/>
  <Script code="there := '2;0;1.57'"/>
  <NavigateToPose goal="{there}"/>
  <CallService service_name="lamp" service_type="std_srvs/srv/SetBool" request="data: true"/>
</Sequence>"""


def light_mission(folder: Path) -> MissionHarness:
    """A mission that drives to two goals and switches a lamp on."""
    light = FakeService("lamp", srv.SetBool, srv.SetBool.Response(success=True))
    return MissionHarness(folder, TWO, navigate_server(), nodes=[(light, "lamp")])


def test_mission_sends_goals_in_sequence(tmp_path: Path) -> None:
    mission = light_mission(tmp_path)
    mission.run_to_end(5.0)
    assert requested(mission) == [1.0, 2.0]
    assert [request.data for request in mission.bus.nodes["/lamp"].requests] == [True]
    assert mission.status == ["RUNNING", "SUCCESS"]
    assert [1, "Sequence::1", "IDLE", "RUNNING"] in mission.events


def test_rejected_goal_is_a_failure_with_the_reason(tmp_path: Path) -> None:
    body = '<Fallback><NavigateToPose goal="11;0;0" error_msg="{why}"/><NavigateToPose goal="3;0;0"/></Fallback>'
    mission = MissionHarness(tmp_path, body, navigate_server())
    assert mission.run_to_end(4.0) == "SUCCESS"
    assert requested(mission) == [11.0, 3.0]
    assert len(mission.robot.handles) == 1
    assert "too far away" in mission.entry("why")


def test_halted_leaf_cancels_its_goal(tmp_path: Path) -> None:
    body = '<Timeout msec="500"><NavigateToPose goal="1;0;0"/></Timeout>'
    mission = MissionHarness(tmp_path, body, navigate_server())
    assert mission.run_to_end(3.0) == "FAILURE"
    mission.run_for(0.1)
    assert len(mission.robot.canceled) == 1


@pytest.mark.parametrize("saved_at", [0.05, 0.55, 1.35, 2.6])
def test_saved_mission_continues_identically(tmp_path: Path, saved_at: float) -> None:
    def observe(mission: BusHarness) -> object:
        return mission.bus.nodes["/robot"].goals, mission.bus.nodes["/lamp"].requests

    check_snapshot_continues(lambda: light_mission(tmp_path), [saved_at], 3.0, observe=observe)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ('<NavigateToPose goal="here"/>', "no SE2"),
        ('<CallAction server_name="x" action_type="none/action/None"/>', "none/action/None"),
        ("<Fly/>", "Node not recognized: Fly"),
    ],
    ids=["goal", "action_type", "node"],
)
def test_invalid_missions_are_refused_when_added(tmp_path: Path, body: str, error: str) -> None:
    with pytest.raises((InvalidTreeError, RoboyardError), match=error):
        MissionHarness(tmp_path, body, navigate_server())


def test_bus_leaves_are_read_but_not_ticked_without_a_bus() -> None:
    tree = read_tree(tree_document('<Spin spin_dist="1"/>'))
    with pytest.raises(RoboyardError, match="on no bus"):
        tree.tick_once()


class ScriptedLeaves:
    """Leaves that return one status after the other, the last forever: R is running, S success, F failure."""

    statuses: ClassVar = {"R": NodeStatus.RUNNING, "S": NodeStatus.SUCCESS, "F": NodeStatus.FAILURE}

    def __init__(self, **scripts: str) -> None:
        self.factory = NodeFactory(plugins=True)
        self.calls: list[str] = []
        for name, letters in scripts.items():
            remaining = list(letters)

            def tick(_: Any, name: str = name, remaining: list[str] = remaining) -> NodeStatus:
                self.calls.append(name)
                return self.statuses[remaining.pop(0) if len(remaining) > 1 else remaining[0]]

            self.factory.register_condition(name, tick)

    def run(self, body: str, ticks: int) -> str:
        """The first letters of the tree's status after each of some ticks at 10 Hz."""
        tree = read_tree(tree_document(body), self.factory)
        return "".join(tree.tick_once(k * 100_000_000).name[0] for k in range(ticks))


def test_recovery_node_runs_recovery_between_attempts() -> None:
    leaves = ScriptedLeaves(Try="FFS", Mend="S")
    assert leaves.run('<RecoveryNode number_of_retries="2"><Try/><Mend/></RecoveryNode>', 1) == "S"
    assert leaves.calls == ["Try", "Mend", "Try", "Mend", "Try"]
    leaves = ScriptedLeaves(Try="F", Mend="S")
    assert leaves.run('<RecoveryNode number_of_retries="1"><Try/><Mend/></RecoveryNode>', 1) == "F"
    assert leaves.calls == ["Try", "Mend", "Try"]


def test_pipeline_sequence_ticks_earlier_children_again() -> None:
    leaves = ScriptedLeaves(Plan="S", Drive="RRS")
    assert leaves.run("<PipelineSequence><Plan/><Drive/></PipelineSequence>", 3) == "RRS"
    assert leaves.calls == ["Plan", "Drive"] * 3


def test_rate_controller_uses_tick_times() -> None:
    leaves = ScriptedLeaves(Plan="S")
    body = '<KeepRunningUntilFailure><RateController hz="2"><Plan/></RateController></KeepRunningUntilFailure>'
    assert leaves.run(body, 3) == "RRR"
    leaves = ScriptedLeaves(Plan="S", Drive="R")
    leaves.run('<PipelineSequence><RateController hz="2"><Plan/></RateController><Drive/></PipelineSequence>', 11)
    assert leaves.calls.count("Plan") >= 2


def test_round_robin_continues_with_the_next_child() -> None:
    leaves = ScriptedLeaves(A="S", B="S", C="S")
    leaves.run("<KeepRunningUntilFailure><RoundRobin><A/><B/><C/></RoundRobin></KeepRunningUntilFailure>", 2)
    assert leaves.calls == ["A", "B"]
