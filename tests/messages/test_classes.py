"""Message classes: one class per type, default values, type names, services and actions."""

import copy
import dataclasses
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from tests.harness.messages import messages

import roboyard as ry
from roboyard.errors import MessageError
from roboyard.messages import (
    action,
    action_type,
    deserialize,
    message_type,
    msg,
    serialize,
    service_type,
    srv,
    time_to_msg,
    type_name,
    type_names,
)


def test_message_type_is_one_class_under_all_names():
    twist = message_type("geometry_msgs/msg/Twist")
    for name in ("geometry_msgs/Twist", "Twist"):
        assert message_type(name) is twist
    assert msg.Twist is msg.geometry_msgs.Twist is ry.msg.Twist is twist
    assert type_name(twist) == type_name(twist()) == "geometry_msgs/msg/Twist"
    assert type(twist().linear) is msg.Vector3
    assert type(deserialize(serialize(twist()), "Twist")) is twist
    assert dataclasses.is_dataclass(twist)
    assert [f.name for f in dataclasses.fields(twist)] == ["linear", "angular"]


def test_message_defaults_are_those_of_the_definition():
    odometry = msg.Odometry()
    assert odometry.child_frame_id == ""
    assert odometry.pose.covariance.dtype == np.float64
    assert odometry.pose.covariance.tolist() == [0.0] * 36
    assert odometry.pose.pose.orientation == msg.Quaternion(x=0.0, y=0.0, z=0.0, w=1.0)
    assert msg.LaserScan().ranges.dtype == np.float32
    assert msg.JointState().name == []
    assert msg.Empty() == msg.Empty()
    assert repr(msg.Empty()) == "Empty()"
    assert srv.StepSimulation.Request().steps == 1


def test_message_defaults_are_not_shared():
    first, second = msg.Odometry(), msg.Odometry()
    first.pose.covariance[0] = 1.0
    first.pose.pose.position.x = 1.0
    assert second == msg.Odometry() != first
    path = msg.Path()
    path.poses.append(msg.PoseStamped())
    assert msg.Path().poses == []


def test_unknown_message_fields_are_errors():
    with pytest.raises(AttributeError):
        msg.Twist().lineal = 5
    with pytest.raises(TypeError):
        msg.Twist(lineal=5)


def test_message_constants_are_class_attributes():
    assert msg.GoalStatus.STATUS_SUCCEEDED == 4
    assert srv.SpawnEntity.Response.NAME_NOT_UNIQUE == 101


def test_field_names_that_are_python_keywords_get_an_underscore():
    from roboyard.messages import register

    register("float64 from\nint8 lambda", "test_words/msg/Words")
    message = message_type("test_words/msg/Words")(from_=2.0, lambda_=3)
    assert deserialize(serialize(message), "test_words/msg/Words") == message


@given(messages("sensor_msgs/msg/PointCloud2"))
def test_copied_and_pickled_messages_are_equal(message):
    for duplicate in (pickle.loads(pickle.dumps(message)), copy.copy(message), copy.deepcopy(message)):
        assert duplicate == message
        assert type(duplicate) is type(message)
    deep_copy = copy.deepcopy(message)
    deep_copy.header.frame_id += "x"
    assert deep_copy != message
    assert copy.copy(message).header is message.header


def test_message_equality_compares_types_and_fields():
    assert msg.Twist() != 5
    assert msg.Point() != msg.Vector3()
    assert msg.LaserScan(ranges=np.ones(2, np.float32)) == msg.LaserScan(ranges=np.ones(2, np.float32))
    assert msg.LaserScan(ranges=np.ones(2, np.float32)) != msg.LaserScan(ranges=np.ones(3, np.float32))


# -- names -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("geometry_msgs/msg/Twits", "geometry_msgs/msg/Twist"),
        ("Twits", "geometry_msgs/msg/Twist"),
        ("lasercan", "sensor_msgs/msg/LaserScan"),
        ("geometry_msgs/msg/Xyzzy", "geometry_msgs/msg/"),
        ("Xyzzy", "register"),
        ("", "register"),
        ("a/b/c/d", "register"),
        (5, "geometry_msgs/msg/Twist"),
    ],
)
def test_unknown_type_names_list_similar_names(name, hint):
    with pytest.raises(MessageError, match=hint):
        message_type(name)


def test_ambiguous_bare_type_names_are_resolved_or_refused():
    from roboyard.messages import register

    assert type_name(msg.GoalStatus) == "action_msgs/msg/GoalStatus"  # the type of the more common package
    assert type_name(msg.actionlib_msgs.GoalStatus) == "actionlib_msgs/msg/GoalStatus"
    assert type_name(msg.KeyValue) == "diagnostic_msgs/msg/KeyValue"
    register("int8 a", "test_left/msg/TwinName")
    register("int8 b", "test_right/msg/TwinName")
    with pytest.raises(MessageError, match="test_left/msg/TwinName, test_right/msg/TwinName"):
        message_type("TwinName")
    assert hasattr(msg.test_left.TwinName(), "a")


def test_unknown_attributes_of_namespaces_are_errors():
    assert not hasattr(msg, "Twits")
    assert not hasattr(msg.geometry_msgs, "Twits")
    assert not hasattr(srv, "twist_msgs")
    with pytest.raises(MessageError, match="Twist"):
        _ = msg.Twits
    with pytest.raises(MessageError, match="package .* has no"):
        _ = msg.geometry_mgs
    with pytest.raises(AttributeError):
        _ = msg._private


def test_namespaces_list_their_types():
    assert type_names() == sorted(type_names())
    assert {"Twist", "geometry_msgs"} <= set(dir(msg))
    assert {"SetBool", "std_srvs"} <= set(dir(srv))
    assert {"BackUp", "NavigateToPose", "Spin"} <= set(dir(action.nav2_msgs))
    assert dir(action.nav2_msgs) == sorted(dir(action.nav2_msgs))
    assert all(len(parts) == 3 for parts in (name.split("/") for name in type_names()))
    assert not any("_Request" in name or "_Goal" in name for name in type_names())


def test_import_of_messages_loads_no_rosbags(tmp_path):
    code = (
        "import sys, roboyard.messages as m; print('rosbags' in sys.modules);"
        "m.msg.Twist(); print('rosbags' in sys.modules)"
    )
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    for is_rosbags_loaded in ("True", "False"):  # the second process reads the cache of the first one
        process = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
        )
        assert process.stdout.split() == ["False", is_rosbags_loaded]


# -- services and actions ----------------------------------------------------------------------------------------------
def test_service_type_has_request_and_response():
    service = service_type("std_srvs/srv/SetBool")
    assert service is srv.SetBool is service_type("std_srvs/SetBool")
    assert service.name == "std_srvs/srv/SetBool"
    assert service.Request(data=True).data is True
    assert type_name(service.Response) == "std_srvs/srv/SetBool_Response"
    assert message_type("std_srvs/srv/SetBool_Request") is service.Request
    with pytest.raises(AttributeError):
        service.name = "x"
    with pytest.raises(MessageError, match="std_srvs/srv/SetBool"):
        service_type("SetBol")


def test_action_type_has_its_parts():
    navigate = action_type("nav2_msgs/action/NavigateToPose")
    assert navigate is action.NavigateToPose
    goal = navigate.Goal(pose=msg.PoseStamped())
    request = navigate.SendGoal.Request(goal=goal)
    assert request.goal_id.uuid.tolist() == [0] * 16
    assert navigate.SendGoal.name == "nav2_msgs/action/NavigateToPose_SendGoal"
    assert navigate.SendGoal.Response(accepted=True, stamp=time_to_msg(5)).accepted
    assert navigate.GetResult.Response(status=4).result == navigate.Result()
    message = navigate.FeedbackMessage(feedback=navigate.Feedback(number_of_recoveries=3))
    assert deserialize(serialize(message), "nav2_msgs/action/NavigateToPose_FeedbackMessage") == message
    with pytest.raises(MessageError, match="example_interfaces/action/Fibonacci"):
        action_type("Fibonaci")
    with pytest.raises(MessageError, match="not a type name"):
        action_type(None)
