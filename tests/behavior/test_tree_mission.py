"""Trees on the bus: goals sent, refused, broken off and taken up again; services; Nav2's controls."""

from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.behavior.missions import MissionHarness

from roboyard.behavior import Factory, Status, TreeError, read_tree
from roboyard.bus import Node
from roboyard.errors import RoboyardError
from roboyard.messages import action, srv


class NavigatingRobot(Node):
    """Is anywhere a second after it was asked, but refuses what lies behind x = 10."""

    fields = ("_due_ns", "asked", "broken_off", "switched")

    def setup(self) -> None:
        self.asked: list[float] = []
        self.broken_off = 0
        self.switched = False
        self._due_ns = -1
        self._handle: Any = None
        self.action_server("navigate_to_pose", action.NavigateToPose, self._on_goal, on_restored=self._take)
        self.service("lamp", srv.SetBool, self._on_lamp)
        self.timer(rate=20.0, callback=self._tick)

    def _on_goal(self, handle: Any) -> None:
        x = handle.goal.pose.pose.position.x
        if x > 10.0:
            handle.reject("too far away", "far")
            return
        handle.accept()
        self.asked.append(x)
        self._due_ns = self.now_ns + 1_000_000_000
        self._take(handle)

    def _take(self, handle: Any) -> None:
        self._handle = handle
        handle.on_cancel = self._on_cancel

    def _on_cancel(self, handle: Any) -> None:
        self.broken_off += 1
        self._handle = None
        handle.cancel()

    def _tick(self) -> None:
        if self._handle is not None and self.now_ns >= self._due_ns:
            handle, self._handle = self._handle, None
            handle.succeed(action.NavigateToPose.Result())

    def _on_lamp(self, request: Any) -> Any:
        self.switched = request.data
        return srv.SetBool.Response(success=True)


TWO = """<Sequence>
  <NavigateToPose goal="1;0;0"/>
  <Script code="there := '2;0;1.57'"/>
  <NavigateToPose goal="{there}"/>
  <CallService service_name="lamp" service_type="std_srvs/srv/SetBool" request="data: true"/>
</Sequence>"""


def test_mission_sends_goals_in_sequence(tmp_path: Path) -> None:
    mission = MissionHarness(tmp_path, TWO, NavigatingRobot())
    mission.run_for(5.0)
    assert mission.robot.asked == [1.0, 2.0]
    assert mission.robot.switched
    assert mission.status == ["RUNNING", "SUCCESS"]
    assert [1, "Sequence::1", "IDLE", "RUNNING"] in mission.events


def test_rejected_goal_is_a_failure_with_the_reason(tmp_path: Path) -> None:
    body = '<Fallback><NavigateToPose goal="11;0;0" error_msg="{why}"/><NavigateToPose goal="3;0;0"/></Fallback>'
    mission = MissionHarness(tmp_path, body, NavigatingRobot())
    mission.run_for(4.0)
    assert mission.robot.asked == [3.0]
    assert mission.status[-1] == "SUCCESS"
    assert "too far away" in mission.entry("why")


def test_halted_leaf_cancels_its_goal(tmp_path: Path) -> None:
    mission = MissionHarness(
        tmp_path, '<Timeout msec="500"><NavigateToPose goal="1;0;0"/></Timeout>', NavigatingRobot()
    )
    mission.run_for(3.0)
    assert mission.status[-1] == "FAILURE"
    assert mission.robot.broken_off == 1


@pytest.mark.parametrize("at", [0.05, 0.55, 1.35, 2.6])
def test_saved_mission_continues_identically(tmp_path: Path, at: float) -> None:
    straight = MissionHarness(tmp_path, TWO, NavigatingRobot())
    straight.run_for(at)
    saved = straight.bus.save()
    events = len(straight.events)
    straight.run_for(4.0 - at)

    again = MissionHarness(tmp_path, TWO, NavigatingRobot())
    again.bus.load(saved)
    events_before = len(again.events)
    again.run_for(4.0 - at)
    assert again.events[events_before:] == straight.events[events:]
    assert again.robot.asked == straight.robot.asked


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ('<NavigateToPose goal="here"/>', "no SE2"),
        ('<CallAction server_name="x" action_type="none/action/None"/>', "none/action/None"),
        ("<Fly/>", "Node not recognized: Fly"),
    ],
)
def test_invalid_missions_are_refused_when_added(tmp_path: Path, body: str, says: str) -> None:
    with pytest.raises((TreeError, RoboyardError), match=says):
        MissionHarness(tmp_path, body, NavigatingRobot())


def test_bus_leaves_are_read_but_not_ticked_without_a_bus() -> None:
    tree = read_tree('<root BTCPP_format="4"><BehaviorTree ID="M"><Spin spin_dist="1"/></BehaviorTree></root>')
    with pytest.raises(RoboyardError, match="on no bus"):
        tree.tick_once()


class Answers:
    """Leaves that answer what a list says, the last for ever."""

    names: ClassVar = {"R": Status.RUNNING, "S": Status.SUCCESS, "F": Status.FAILURE}

    def __init__(self, **answers: str) -> None:
        self.factory = Factory(plugins=True)
        self.calls: list[str] = []
        for name, letters in answers.items():
            left = list(letters)

            def tick(_: Any, name: str = name, left: list[str] = left) -> Status:
                self.calls.append(name)
                return self.names[left.pop(0) if len(left) > 1 else left[0]]

            self.factory.register_condition(name, tick)

    def run(self, body: str, ticks: int) -> str:
        tree = read_tree(f'<root BTCPP_format="4"><BehaviorTree ID="M">{body}</BehaviorTree></root>', self.factory)
        return "".join(tree.tick_once(k * 100_000_000).name[0] for k in range(ticks))


def test_recovery_node_runs_recovery_between_attempts() -> None:
    leaves = Answers(Try="FFS", Mend="S")
    assert leaves.run('<RecoveryNode number_of_retries="2"><Try/><Mend/></RecoveryNode>', 1) == "S"
    assert leaves.calls == ["Try", "Mend", "Try", "Mend", "Try"]
    leaves = Answers(Try="F", Mend="S")
    assert leaves.run('<RecoveryNode number_of_retries="1"><Try/><Mend/></RecoveryNode>', 1) == "F"
    assert leaves.calls == ["Try", "Mend", "Try"]


def test_pipeline_sequence_ticks_earlier_children_again() -> None:
    leaves = Answers(Plan="S", Drive="RRS")
    assert leaves.run("<PipelineSequence><Plan/><Drive/></PipelineSequence>", 3) == "RRS"
    assert leaves.calls == ["Plan", "Drive"] * 3


def test_rate_controller_uses_tick_times() -> None:
    leaves = Answers(Plan="S")
    body = '<KeepRunningUntilFailure><RateController hz="2"><Plan/></RateController></KeepRunningUntilFailure>'
    assert leaves.run(body, 3) == "RRR"
    leaves = Answers(Plan="S", Drive="R")
    leaves.run('<PipelineSequence><RateController hz="2"><Plan/></RateController><Drive/></PipelineSequence>', 11)
    assert leaves.calls.count("Plan") >= 2


def test_round_robin_continues_with_the_next_child() -> None:
    leaves = Answers(A="S", B="S", C="S")
    leaves.run("<KeepRunningUntilFailure><RoundRobin><A/><B/><C/></RoundRobin></KeepRunningUntilFailure>", 2)
    assert leaves.calls == ["A", "B"]
