"""The arbiter node: many senders of velocity commands, one drive."""

from __future__ import annotations

from typing import Any

from roboyard.bus import Node
from roboyard.bus.executor import ScheduledEvent
from roboyard.config import Config, parameter
from roboyard.messages import deserialize, msg, serialize, srv
from roboyard.messages.convert import is_finite_twist
from roboyard.safety.arbitration import Arbiter, ArbitrationConfig, ArbitrationDecision, CommandSource

_TWIST = "geometry_msgs/msg/Twist"
_STOP_LOCK_LEVEL = 1_000_000
"""Above every source."""


class CommandSourceConfig(Config):
    """A node that may command the drive."""

    priority: int = parameter(0, doc="Higher priorities win.")
    timeout: float = parameter(0.5, unit="s", low=1e-3, high=1e6, doc="Time that a command counts.")


class ArbiterNodeConfig(Config):
    """Configuration of `ArbiterNode`."""

    sources: dict[str, CommandSourceConfig] = parameter(
        {"teleop": CommandSourceConfig(priority=100), "navigator": CommandSourceConfig(priority=50)},
        doc="Nodes that may command, by name or full name; the first that fits counts.",
    )
    accept_unknown: bool = parameter(True, doc="Accept commands of nodes that are not listed.")
    unknown_priority: int = parameter(0, low=-1000, high=1000, doc="Priority of nodes that are not listed.")
    unknown_timeout: float = parameter(
        0.5, unit="s", low=0.01, high=60.0, doc="Time that a command of a node that is not listed counts."
    )


class ArbiterNode(Node[ArbiterNodeConfig]):
    """Passes on the velocity commands of one source at a time, by priority and time-out of the publishing node.

    in: cmd_vel (any number of publishers)   out: cmd_vel_out, ~owner (std_msgs/String, latched; "" without an owner)
    service: ~stop (std_srvs/SetBool): true stops the robot until false

    When the commands of the active source time out, the live source of highest priority becomes active; without one the
    node publishes one zero command. A command that is not finite is rejected as if it had not been sent, and logged
    once per publisher.
    """

    def setup(self) -> None:
        """Connect."""
        self._deadline_event: ScheduledEvent | None = None
        unknown = (
            CommandSource("unknown", self.config.unknown_priority, self.config.unknown_timeout)
            if self.config.accept_unknown
            else None
        )
        sources = tuple(
            CommandSource(name, source.priority, source.timeout) for name, source in self.config.sources.items()
        )
        config = ArbitrationConfig(sources, unknown)
        self._arbiter: Arbiter[Any] = Arbiter(config, msg.Twist())
        self._rejected_publishers: list[str] = []
        self._error_text = ""
        self._output = self.publisher("cmd_vel_out", msg.Twist)
        self._owner_publisher = self.publisher("~owner", msg.String, latched=True)
        self.subscribe("cmd_vel", msg.Twist, self._on_command, with_source=True)
        self.service("~stop", srv.SetBool, self._on_stop)
        self._publish_owner(None)

    def close(self) -> None:
        """Forget the pending check."""
        if self._deadline_event is not None:
            self._deadline_event.cancel()

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        state = self._arbiter.save_state()
        state["streams"] = {
            name: (*fields, serialize(command)) for name, (*fields, command) in state["streams"].items()
        }
        return super().save_state() | {
            "arbiter": state,
            "refused": list(self._rejected_publishers),
            "complaint": self._error_text,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        super().load_state(state)
        arbiter = dict(state["arbiter"])
        arbiter["streams"] = {
            n: (*fields, deserialize(command, _TWIST)) for n, (*fields, command) in arbiter["streams"].items()
        }
        self._arbiter.load_state(arbiter)
        self._rejected_publishers, self._error_text = list(state["refused"]), state["complaint"]
        self._schedule_deadline()

    def _on_command(self, command: Any, publisher: str) -> None:
        if not is_finite_twist(command):
            self._reject(publisher)
        elif self._arbiter.config.find_source(publisher) is None:
            self.log.warn(f"ignored a command of {publisher}: it is not among the sources", throttle=10.0)
        else:
            self._apply_decision(self._arbiter.submit(publisher, command, self.now_ns))
            if self._error_text:
                self._error_text = ""
                self._report_state()

    def _reject(self, publisher: str) -> None:
        self._error_text = text = f"rejected a command of {publisher}: not finite"
        self._report_state()
        if publisher not in self._rejected_publishers:
            self._rejected_publishers.append(publisher)
            self.log.error(text)

    def _on_stop(self, request: Any) -> Any:
        if request.data:
            decision = self._arbiter.lock("stop", _STOP_LOCK_LEVEL, self.now_ns)
            if decision.output is None:  # no source was active; subscribers get the stop all the same
                self._output.publish(msg.Twist())
        else:
            decision = self._arbiter.unlock("stop", self.now_ns)
        self._apply_decision(decision)
        self._report_state()
        return srv.SetBool.Response(success=True, message="stopped" if request.data else "released")

    def _on_deadline(self) -> None:
        self._deadline_event = None
        self._apply_decision(self._arbiter.expire(self.now_ns))

    def _apply_decision(self, decision: ArbitrationDecision[Any]) -> None:
        if decision.output is not None:
            self._output.publish(decision.output)
        if decision.changed:
            self._publish_owner(decision.owner)
        self._schedule_deadline()

    def _publish_owner(self, owner: str | None) -> None:
        self._owner_publisher.publish(msg.String(data=owner or ""))
        self._report_state()

    def _report_state(self) -> None:
        owner = self._arbiter.owner or ""
        if self._arbiter.locks:
            self.report_health("warn", "stopped by ~stop", owner=owner)
        elif self._error_text:
            self.report_health("warn", self._error_text, owner=owner)
        else:
            self.report_health("ok", f"active source: {owner}" if owner else "no active source", owner=owner)

    def _schedule_deadline(self) -> None:
        """Schedule a check at the deadline of the arbiter; one check is pending at a time."""
        deadline_ns = self._arbiter.deadline_ns
        if deadline_ns is None:
            return
        if self._deadline_event is not None:
            if self._deadline_event.time_ns <= deadline_ns:  # fires early at worst, and then checks again
                return
            self._deadline_event.cancel()
        self._deadline_event = self.call_after(
            (deadline_ns - self.now_ns) * 1e-9, self._on_deadline, restored_by_node=True
        )
