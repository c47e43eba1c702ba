"""A node that offers one of everything to bridges, and one that calls what is served outside."""

from __future__ import annotations

from typing import Any

import roboyard as ry


class BridgedRobotConfig(ry.Config):
    """Configuration of `BridgedRobot`."""

    gain: float = ry.parameter(1.0, low=0.0, high=10.0, runtime=True)


class BridgedRobot(ry.Node[BridgedRobotConfig]):
    """in: cmd_vel   out: speed, plan, scan; serves ring and count"""

    def setup(self) -> None:
        self.commands: list[tuple[str, float]] = []
        self.speed = self.publisher("speed", ry.msg.Float64)
        self.plan = self.publisher("plan", ry.msg.String, latched=True)
        self.plan.publish(ry.msg.String(data="straight on"))
        self.scan = self.publisher("scan", ry.msg.LaserScan)
        self.subscribe("cmd_vel", ry.msg.Twist, self.on_command, with_source=True)
        self.timer(0.02, self.on_timer)
        self.service("ring", ry.srv.SetBool, self.on_ring)
        self.server = self.action_server("count", ry.action.Fibonacci, self.on_goal)
        self.reached = 0

    def on_timer(self) -> None:
        self.speed.publish(ry.msg.Float64(data=self.now))
        self.scan.publish(ry.msg.LaserScan(ranges=[1.0, float("inf"), 2.5]))
        for goal in self.server.active_goals:
            self.reached += 1
            goal.publish_feedback(ry.action.Fibonacci.Feedback(sequence=[self.reached]))
            if goal.is_cancel_requested:
                goal.set_canceled(error_message="as you wish")
            elif self.reached == goal.goal.order:
                goal.succeed(ry.action.Fibonacci.Result(sequence=list(range(self.reached))))

    def on_goal(self, goal: Any) -> None:
        self.reached = 0
        if goal.goal.order < 0:
            goal.reject("only upwards")
        else:
            goal.accept()

    def on_command(self, message: Any, source: str) -> None:
        self.commands.append((source, message.linear.x))

    def on_ring(self, request: Any) -> Any:
        return ry.srv.SetBool.Response(success=request.data, message="ding")


class CallingNode(ry.Node):
    """Calls a service and an action again and again, and keeps what came of it."""

    def setup(self) -> None:
        self.outcomes: list[str] = []
        self.publisher_of_outcomes = self.publisher("outcomes", ry.msg.String)
        self.ring = self.service_client("ring", ry.srv.SetBool)
        self.count = self.action_client("count", ry.action.Fibonacci)

    def call(self, *, data: bool = True) -> Any:
        future = self.ring.call(ry.srv.SetBool.Request(data=data))
        future.add_done_callback(lambda done: self.keep(str(done.error or done.result.message)))
        return future

    def send(self, order: int) -> Any:
        goal = self.count.send(ry.action.Fibonacci.Goal(order=order), lambda f: self.keep(str(f.sequence.tolist())))
        goal.add_done_callback(lambda done: self.keep(str(done.error or done.result.sequence.tolist())))
        return goal

    def keep(self, text: str) -> None:
        self.outcomes.append(text)
        self.publisher_of_outcomes.publish(ry.msg.String(data=text))
