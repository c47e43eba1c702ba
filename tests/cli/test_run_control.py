"""Verbs that change a live run: publish, call, send goals, set parameters, control the clock."""

import signal

from tests.cli.conftest import Command, SampleRobot
from tests.harness.live_bus import LiveBus
from tests.harness.live_run import LiveRun

from roboyard.bus.socket import connect


def test_topic_pub_publishes_once_or_at_a_rate(command: Command, live: LiveBus, robot: SampleRobot) -> None:
    result = command("topic", "pub", "cmd", "String", "{data: go}", "--once", "--source", "operator")
    assert result.code == 0
    assert result.err == "published 1 message on /cmd\n"
    assert robot.commands == [("go", "operator")]
    assert command("topic", "pub", "/cmd", "{data: again}", "-t", "5", "-r", "100", "--json").json["published"] == 5
    assert len(robot.commands) == 6


def test_topic_pub_refuses_wrong_types_and_values(command: Command, live: LiveBus, robot: SampleRobot) -> None:
    cases = {
        ("cmd", "Twist"): "topic /cmd has the type std_msgs/msg/String, not geometry_msgs/msg/Twist",
        ("new",): "topic /new does not exist and has no type",
        ("new", "Strong"): "unknown message type 'Strong'",
        ("new", "std_msgs/msg/Strin"): "unknown message type 'std_msgs/msg/Strin'",
        ("cmd", "{dta: x}"): "std_msgs/msg/String has no field 'dta' (fields: data)",
        ("cmd", "{data: 3}"): "a string is required, got int 3",
        ("cmd", "{data: ["): "is not valid YAML",
        ("cmd", "String", "{data: x}", "more"): "the values in quotes",
        ("cmd", "{data: x}", "-r", "0"): "rate 0 (more than 0 Hz)",
    }
    for words, expected in cases.items():
        result = command("topic", "pub", *words)
        assert result.code == 2, words
        assert expected in result.error
    assert robot.commands == []


def test_services_are_listed_and_called(command: Command, live: LiveBus) -> None:
    assert command("service", "list", "--json").json["services"] == {"/greet": "std_srvs/srv/SetBool"}
    assert "/robot/set_parameters" in command("service", "list", "--all").out
    assert command("service", "call", "greet", "{data: true}").out == "{success: true, message: hello}\n"
    response = command("service", "call", "/greet", "std_srvs/srv/SetBool", "--json").json
    assert response["response"] == {"success": False, "message": "hello"}
    result = command("service", "call", "greet", "Trigger")
    assert result.code == 2
    assert "service /greet has the type std_srvs/srv/SetBool, not Trigger" in result.error
    assert "no service great (similar: /greet" in command("service", "call", "great").error


def test_action_send_goal_reports_feedback_and_result(command: Command, live: LiveBus) -> None:
    assert command("action", "list", "--json").json["actions"] == {"/fibonacci": "example_interfaces/action/Fibonacci"}
    result = command("action", "send_goal", "fibonacci", "Fibonacci", "{order: 5}", "--feedback")
    assert result.code == 0
    assert "feedback:\n  sequence: [0, 1, 1]\n" in result.out
    assert result.out.endswith("result:\n  sequence: [0, 1, 1, 2, 3, 5]\ngoal succeeded\n")
    assert command("action", "send_goal", "fibonacci", "{order: 3}", "--json").json["result"] == {
        "sequence": [0, 1, 1, 2]
    }


def test_failed_goals_have_exit_code_and_reason(command: Command, live: LiveBus) -> None:
    result = command("action", "send_goal", "fibonacci", "{order: 21}")
    assert result.code == 1
    assert "the goal was rejected: that is too much" in result.error
    result = command("action", "send_goal", "fibonacci", "{order: -1}")
    assert result.code == 1
    assert result.out.endswith("goal aborted: it is negative\n")
    assert command("action", "send_goal", "fibonacci", "{order: many}").code == 2
    unknown = command("action", "send_goal", "fibonacci", "nope/action/X", "{}")
    assert "unknown action type 'nope/action/X' (a package/action/Name" in unknown.error
    assert "servers  /robot\nclients  none" in command("action", "info", "fibonacci").out
    assert command("action", "send_goal", "fibonaci", "{order: 1}").code == 2


def test_ctrl_c_cancels_the_goal(live: LiveBus) -> None:
    live.bus.executor.pacer.real_time_factor = 1.0
    with LiveRun("action", "send_goal", "fibonacci", "{order: 20}", "--feedback") as run:
        run.read_line()  # it is under way
        run.send_signal(signal.SIGINT)
        result = run.wait()
    assert (result.code, result.err) == (130, "")
    live.bus.executor.pacer.real_time_factor = 20.0
    with connect() as connection:
        connection.subscribe("/fibonacci/_action/status")
        assert any(
            item.message.status_list[-1].status == 5  # STATUS_CANCELED of action_msgs/GoalStatus
            for item in connection.messages(timeout=10.0)
        )


def test_parameters_are_listed_read_and_set(command: Command, live: LiveBus, robot: SampleRobot) -> None:
    listed = command("param", "list", "--json").json["parameters"]["/robot"]
    assert listed == {"speed": 1.0, "mode": "slow", "steps": 3, "gains": [1.0, 2.0], "label": "a"}
    assert "/robot  speed      1.0" in command("param", "list").out
    assert command("param", "get", "robot", "gains").out == "[1.0, 2.0]\n"
    assert command("param", "set", "robot", "speed", "2").out == "/robot speed: 2.0\n"
    assert command("param", "set", "/robot", "gains", "[3, 4.5, 5]", "--json").json["value"] == [3.0, 4.5, 5.0]
    assert command("param", "set", "robot", "mode", "quick").code == 0
    assert (robot.config.speed, robot.config.gains, robot.config.mode) == (2.0, (3.0, 4.5, 5.0), "quick")
    assert command("param", "dump", "robot").out.startswith("/robot:\n  ros__parameters:")
    assert "a number in m/s, 0 to 2" in command("param", "describe", "robot", "speed").out
    described = command("param", "describe", "robot", "--json").json["parameters"]
    assert {entry["name"]: entry["read_only"] for entry in described}["label"]


def test_bad_parameter_values_are_refused(command: Command, live: LiveBus, robot: SampleRobot) -> None:
    for name, value, expected in (
        ("speed", "3", "3 m/s is above 2 m/s (allowed: 0 to 2 m/s)"),
        ("speed", "-3", "-3 m/s is below 0 m/s"),
        ("speed", "fast", "'fast' is not a number"),
        ("mode", "1", "is '1' (one of: slow, quick)"),
        ("steps", "1.5", "is the number 1.5 (must be a whole number"),
        ("label", "b", "label"),
        ("sped", "1", "no parameter sped (there are: speed, mode, steps, gains, label)"),
    ):
        result = command("param", "set", "robot", name, value)
        assert result.code == 2, name
        assert expected in result.error
    assert robot.config.speed == 1.0


def test_clock_is_paused_stepped_and_resumed(command: Command, live: LiveBus) -> None:
    assert command("pause", "--json").json["state"] == "paused"
    before = live.bus.now_ns
    live.thread.join(0.1)  # forty instants at the rate of before
    assert live.thread.is_alive()
    assert live.bus.now_ns == before
    assert command("step", "--json").json["time"] * 1e9 > before
    now = command("step", "--by", "0.5", "--json").json
    assert now["state"] == "paused"
    after = command("step", "3", "--json").json["time"]
    assert after > now["time"]
    assert live.bus.now_ns == round(after * 1e9)
    assert command("resume").out.startswith("yard: running at ")
    assert command("rate", "0").code == 0
    assert live.bus.executor.pacer.real_time_factor == 0.0
    assert command("rate", "20").code == 0
    assert command("rate", "-1").code == 2
    assert command("step", "0").code == 2
    assert command("stop", "--json").json["state"] == "stopping"
    live.thread.join(10.0)
    assert not live.thread.is_alive()


def test_topic_hz_ends_with_the_run(command: Command, live: LiveBus) -> None:
    live.end_after(lambda: live.is_subscribed("/count"), 5.0)
    result = command("topic", "hz", "count")
    assert result.code == 0
    assert "average rate: 10.000 Hz" in result.out
