"""Leaves that read and publish messages of any topic."""

from pathlib import Path

import pytest
from tests.harness.missions import MissionHarness, tree_document

from roboyard.behavior import InvalidTreeError, read_tree
from roboyard.geometry import SE2
from roboyard.messages import msg
from roboyard.messages.convert import pose_to_msg


def test_topic_leaves_read_and_publish_messages(tmp_path: Path) -> None:
    body = """<Sequence>
      <RetryUntilSuccessful num_attempts="50"><Delay delay_msec="100">
        <LastMessage topic="order" type="roboyard_msgs/msg/HomingOrder" field="id" value="{id}"/>
      </Delay></RetryUntilSuccessful>
      <LastMessage topic="order" type="roboyard_msgs/msg/HomingOrder" field="pose" value="{pose}"/>
      <PublishMessage topic="report" type="roboyard_msgs/msg/HomingReport" fields="id: {id}, outcome: nearby"/>
    </Sequence>"""
    mission = MissionHarness(tmp_path, body)
    reports = mission.record("/report", msg.HomingReport)
    mission.run_for(1.0)
    assert mission.status[-1] == "RUNNING"  # no order has been published
    order = msg.HomingOrder(id=106_500_000_000)
    order.pose.pose = pose_to_msg(SE2(1.0, 2.0, 0.5))
    mission.publish("/order", order)
    assert mission.run_to_end(1.0) == "SUCCESS"
    assert [(one.id, one.outcome) for one in reports.messages] == [(106_500_000_000, "nearby")]
    assert mission.entry("pose").theta == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ('<LastMessage topic="a" type="std_msgs/msg/Bool" field="date"/>', "field. date: .*no attribute"),
        ('<PublishMessage topic="a" type="std_msgs/msg/Bool" fields="date: true"/>', "no field 'date' .fields: data"),
    ],
    ids=["read", "published"],
)
def test_unknown_message_fields_are_refused_when_a_tree_is_read(body: str, error: str) -> None:
    with pytest.raises(InvalidTreeError, match=error):
        read_tree(tree_document(body))
