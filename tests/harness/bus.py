"""A bus under test with everything a test does to it, and servers whose answers a test decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

import pytest

from roboyard.bus import Bus, Future, GoalFuture, GoalHandle, Node, Publisher
from roboyard.bus.log import LogRecord
from roboyard.errors import InputError
from roboyard.geometry import SE2, SE3
from roboyard.messages import msg, serialize
from roboyard.messages.convert import transforms_to_msg
from roboyard.messages.convert.action_goals import GoalStatus
from roboyard.scenarios.snapshot_file import decode_snapshot, encode_snapshot

N = TypeVar("N", bound=Node)

TEST = "/test"
"""The source of what a test publishes or calls, unless it names another."""


class Received(NamedTuple):
    """One message, when it came and which node had published it."""

    time_ns: int
    message: Any
    source: str


class Traffic(list[Received]):
    """The messages of one topic in the order in which they came."""

    @property
    def messages(self) -> list[Any]:
        """Without times and sources."""
        return [received.message for received in self]

    @property
    def data(self) -> list[Any]:
        """The ``data`` field of each message."""
        return [received.message.data for received in self]

    @property
    def times(self) -> list[float]:
        """When each message came [s]."""
        return [received.time_ns * 1e-9 for received in self]

    @property
    def last(self) -> Any:
        """The newest message.

        Raises:
            AssertionError: there is none yet.
        """
        assert self, "no message has come yet"
        return self[-1].message


@dataclass
class Goal:
    """A goal that a test sent, with the feedback that has come for it."""

    future: GoalFuture
    feedback: list[Any] = field(default_factory=list)

    def done(self) -> bool:
        """Whether the goal has ended."""
        return self.future.done()

    def cancel(self) -> Future:
        """Ask the server to stop."""
        return self.future.cancel()

    @property
    def accepted(self) -> bool | None:
        """None until the server decided."""
        return self.future.accepted

    @property
    def succeeded(self) -> bool:
        """Whether the server says that it reached the goal."""
        return self.future.succeeded

    @property
    def status(self) -> GoalStatus:
        """Where it stands."""
        return self.future.status

    @property
    def error_message(self) -> str:
        """Why it was rejected, aborted or canceled."""
        return self.future.error_message

    @property
    def error_code(self) -> str:
        """The same in one word."""
        return self.future.error_code

    @property
    def result(self) -> Any:
        """The result message; raises the error of a goal that failed."""
        return self.future.result

    @property
    def error(self) -> Exception | None:
        """Why there is no result."""
        return self.future.error


class BusHarness:
    """A bus, and what a test does to it: publish, record, call, send goals, wait for a condition, save and load.

    The test itself is no node unless it sends a goal (an action client belongs to a node; that one is named "test").

    Args:
        nodes: (node, name) pairs that join at once.
        bus: A bus that exists already, e.g. of a `Run`; the test closes it itself. None: a new one.
        seed: Of a new bus.
        start_ns: Where the clock of a new bus begins [ns].
        debug: Whether a new bus checks that no subscriber changes a message.

    Attributes:
        bus: The bus.
        logs: Every log record so far.
        restored_goals: The goals under way in a state that was loaded.
    """

    def __init__(
        self,
        *nodes: tuple[Node, str],
        bus: Bus | None = None,
        seed: int = 0,
        start_ns: int = 0,
        debug: bool = False,
    ) -> None:
        self._owned = bus is None
        self.bus = Bus(seed=seed, start_ns=start_ns, debug=debug) if bus is None else bus
        self.logs: list[LogRecord] = []
        self.restored_goals: list[GoalFuture] = []
        self._traffic: dict[str, Traffic] = {}
        self._published: list[tuple[str, Received]] = []
        self._publishers: dict[tuple[str, str, bool], Publisher] = {}
        self._client: Node | None = None
        self._action_clients: dict[str, Any] = {}
        self.bus.log_sinks.append(self.logs.append)
        self.bus.add_message_observer(self._on_published)
        for node, name in nodes:
            self.bus.add(node, name)

    def _on_published(self, topic: Any, message: Any, source: str, time_ns: int) -> None:
        received = Received(time_ns, message, source)
        traffic = self._traffic.get(topic.name)
        if traffic is None:
            traffic = self._traffic[topic.name] = Traffic()
        traffic.append(received)
        self._published.append((topic.name, received))

    # -- nodes -----------------------------------------------------------------------------------------------------
    def add(self, node: N, name: str, **options: Any) -> N:
        """Let ``node`` join the bus; ``options`` as of `Bus.add`."""
        return self.bus.add(node, name, **options)

    def close(self) -> None:
        """Close the bus, unless the test brought it."""
        if self._owned:
            self.bus.close()

    def __enter__(self) -> BusHarness:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- topics ----------------------------------------------------------------------------------------------------
    def publish(self, topic: str, message: Any, *, source: str = TEST, latched: bool = False) -> None:
        """Publish ``message`` on an absolute topic in the name of ``source``; it is delivered when the bus runs."""
        key = (topic, source, latched)
        if key not in self._publishers:
            self._publishers[key] = self.bus.publisher(topic, type(message), source, latched=latched)
        self._publishers[key].publish(message)

    def send(self, topic: str, message: Any, *, source: str = TEST) -> None:
        """Publish ``message`` and deliver it, and everything it causes at this instant."""
        self.publish(topic, message, source=source)
        self.deliver()

    def record(self, topic: str, type_: type) -> Traffic:
        """Subscribe to an absolute topic: the messages that a subscriber gets from now on, when it gets them."""
        traffic = Traffic()
        self.bus.subscribe(
            topic,
            type_,
            TEST,
            lambda message, source: traffic.append(Received(self.bus.now_ns, message, source)),  # type: ignore[arg-type]
            with_source=True,
        )
        return traffic

    def published(self, topic: str) -> Traffic:
        """What was published on a topic since the harness took the bus, whether or not anybody received it."""
        return self._traffic.setdefault(topic, Traffic())

    def last(self, topic: str) -> Any:
        """The newest message published on a topic; fails when there is none."""
        assert self.published(topic), f"nothing was published on {topic}{self._describe_log()}"
        return self._traffic[topic].last

    # -- services and actions --------------------------------------------------------------------------------------
    def start_call(self, service: str, type_: Any, request: Any = None, **fields: Any) -> Future:
        """Call a service; the future is done when the answer has come. ``fields`` make the request if none is given."""
        message = type_.Request(**fields) if request is None else request
        return self.bus.service_client(service, type_, TEST).call(message)

    def call(self, service: str, type_: Any, request: Any = None, *, timeout: float = 5.0, **fields: Any) -> Any:
        """Call a service and run the bus until it answers.

        Args:
            service: Absolute name.
            type_: E.g. ``srv.Trigger``.
            request: The request; None: it is made of ``fields``.
            timeout: Most simulated time that the answer may take [s].
            fields: Of the request.

        Raises:
            RoboyardError: what the service refused with.
        """
        return self.wait_for(self.start_call(service, type_, request, **fields), timeout=timeout).result

    def start_goal(self, action: str, type_: Any, goal: Any = None, **fields: Any) -> Goal:
        """Send a goal; it is decided and carried out as the bus runs. ``fields`` make the goal if none is given."""
        if self._client is None:
            self._client = self.bus.add(Node(), TEST.strip("/"))
        if action not in self._action_clients:
            self._action_clients[action] = self._client.action_client(
                action, type_, on_goal_restored=self.restored_goals.append
            )
        feedback: list[Any] = []
        message = type_.Goal(**fields) if goal is None else goal
        return Goal(self._action_clients[action].send(message, feedback_callback=feedback.append), feedback)

    def send_goal(self, action: str, type_: Any, goal: Any = None, *, timeout: float = 60.0, **fields: Any) -> Goal:
        """Send a goal and run the bus until it has ended, however it ends; arguments as of `call`."""
        return self.wait_for(self.start_goal(action, type_, goal, **fields), timeout=timeout)

    # -- time ------------------------------------------------------------------------------------------------------
    @property
    def now_ns(self) -> int:
        """Simulated time [ns]."""
        return self.bus.now_ns

    @property
    def now(self) -> float:
        """Simulated time [s]."""
        return self.bus.now_ns * 1e-9

    def deliver(self) -> None:
        """Deliver every message that is on its way; the clock stands."""
        self.bus.executor.run_until(self.bus.now_ns)

    def run_for(self, seconds: float) -> None:
        """Run ``seconds`` of simulated time."""
        self.bus.executor.run_for(seconds)

    def run_until(self, seconds: float) -> None:
        """Run up to a moment of the bus's clock [s]."""
        self.bus.executor.run_until(round(seconds * 1e9))

    def at(self, seconds: float, action: Callable[[], object]) -> None:
        """Do something at a moment of the bus's clock [s], while the bus runs."""
        self.bus.executor.schedule(round(seconds * 1e9), lambda: action() and None)

    def spin_until(self, condition: Callable[[], object], *, timeout: float = 10.0, expected: str = "") -> None:
        """Run the bus until ``condition()`` holds at the end of an instant; the test fails if it does not.

        Args:
            condition: What is waited for.
            timeout: Most simulated time that it may take [s].
            expected: What the failure says was waited for; "": the condition's name.
        """
        begin = self.now
        if self.bus.executor.run_until(self.now_ns + round(timeout * 1e9), stop_condition=lambda: bool(condition())):
            return
        what = expected or getattr(condition, "__name__", "condition").replace("<lambda>", "the condition")
        pytest.fail(f"{what} did not hold within {self.now - begin:g} s of simulated time{self._describe_log()}")

    def wait_for(self, future: Any, *, timeout: float = 60.0) -> Any:
        """Run the bus until a future or goal is done, and return it; the test fails if it is not in time."""
        what = getattr(getattr(future, "future", future), "description", "the result")
        self.spin_until(future.done, timeout=timeout, expected=what)
        return future

    # -- transforms and log ----------------------------------------------------------------------------------------
    def set_transform(
        self, T_parent_child: SE2 | SE3, parent: str, child: str, *, static: bool = False, time_ns: int | None = None
    ) -> None:
        """Put a transform into the bus's buffer, valid from now (or ``time_ns``) on, without a message."""
        pose = T_parent_child.to_se3() if isinstance(T_parent_child, SE2) else T_parent_child
        self.bus.transforms.insert(pose, parent, child, self.now_ns if time_ns is None else time_ns, static=static)

    def publish_transforms(
        self, *transforms: tuple[SE2 | SE3, str, str], static: bool = False, time_ns: int | None = None
    ) -> None:
        """Publish (T_parent_child, parent, child) transforms of one moment on /tf, or latched on /tf_static."""
        poses = [(T.to_se3() if isinstance(T, SE2) else T, parent, child) for T, parent, child in transforms]
        message = transforms_to_msg(poses, self.now_ns if time_ns is None else time_ns)
        self.publish("/tf_static" if static else "/tf", message, latched=static)

    @property
    def log_lines(self) -> list[str]:
        """The texts of all log records."""
        return [record.text for record in self.logs]

    def _describe_log(self) -> str:
        lines = [f"  {r.time_ns * 1e-9:9.3f} {r.level:5} {r.node}: {r.text}" for r in self.logs[-20:]]
        return "\nlog:\n" + "\n".join(lines) if lines else " (the log is empty)"

    # -- state -----------------------------------------------------------------------------------------------------
    def snapshot_roundtrip(self, make: Callable[[], BusHarness]) -> BusHarness:
        """Save this bus through the codec of saved runs, build a new one with ``make``, and load the state into it."""
        saved = decode_snapshot(*encode_snapshot(self.bus.save_state()))
        restored = make()
        restored.bus.load_state(saved)
        return restored

    def wire(self, *, after_ns: int = -1) -> list[tuple[int, str, str, bytes]]:
        """Everything published after a moment: (time [ns], topic, source, bytes), in the order of publishing."""
        return [
            (item.time_ns, topic, item.source, serialize(item.message))
            for topic, item in self._published
            if item.time_ns > after_ns
        ]


def check_snapshot_continues(
    make: Callable[[], BusHarness],
    moments: Iterable[float],
    end: float,
    *,
    observe: Callable[[BusHarness], object] = lambda harness: None,
) -> None:
    """Check the law of saved states: a bus that was saved, rebuilt and loaded goes on as if nothing had happened.

    Args:
        make: Builds the bus from scratch, everything that is going to happen included.
        moments: When the state is saved [s].
        end: Until when both buses run [s].
        observe: What else must be equal at the end, besides every message.
    """
    with make() as whole:
        whole.run_until(end)
        expected, observed = whole.wire(), observe(whole)
    for moment in moments:
        with make() as first:
            first.run_until(moment)
            with first.snapshot_roundtrip(make) as second:
                second.run_until(end)
                after_ns = first.now_ns
                assert second.wire(after_ns=after_ns) == [row for row in expected if row[0] > after_ns], (
                    f"saved at {moment} s, the bus goes on with other messages"
                )
                assert observe(second) == observed, f"saved at {moment} s, the bus ends differently"


# -- servers whose answers a test decides ------------------------------------------------------------------------------
@dataclass(frozen=True)
class Succeed:
    """Accept the goal, publish ``feedback`` evenly over ``after`` seconds, and succeed with ``result``."""

    after: float = 0.0
    result: Any = None
    feedback: Sequence[Any] = ()


@dataclass(frozen=True)
class Abort:
    """Accept the goal and abort it after some time [s]."""

    after: float = 0.0
    reason: str = ""
    cause: str = ""
    result: Any = None


@dataclass(frozen=True)
class Reject:
    """Do not accept the goal."""

    reason: str = "rejected by the test"
    cause: str = ""


@dataclass(frozen=True)
class Hold:
    """Accept the goal and never end it, unless it is canceled."""


Outcome = Succeed | Abort | Reject | Hold
Script = Outcome | Sequence[Outcome] | Callable[[Any], Outcome]


class FakeActionServer(Node):
    """An action server that does with each goal what its script says, and cancels at once when asked to.

    Args:
        action: The action's name.
        type_: Its type, e.g. ``action.NavigateToPose``.
        script: What becomes of goals: one outcome for all; one after the other, the last for all further goals; or a
            function of the goal message.
        on_end: Called with the goal message just before a goal succeeds, e.g. to put the robot there.
        preempt: Whether a newer goal aborts the one before it.

    Attributes:
        goals: The goal messages that came, rejected ones included.
        handles: The handles of the accepted ones, in order.
        canceled: The goal messages that were canceled.
    """

    state_fields = ("goals", "canceled", "_count", "_outcome_of")

    def __init__(
        self,
        action: str,
        type_: Any,
        script: Script = Succeed(),
        *,
        on_end: Callable[[Any], None] | None = None,
        preempt: bool = True,
    ) -> None:
        super().__init__()
        self._action, self._type, self.script, self._on_end, self._preempt = action, type_, script, on_end, preempt
        self.goals: list[Any] = []
        self.handles: list[GoalHandle] = []
        self.canceled: list[Any] = []
        self._count = 0
        self._outcome_of: dict[str, int] = {}  # number of the goal by its id, for sequences

    def setup(self) -> None:
        """Offer the action."""
        self.server = self.action_server(
            self._action, self._type, self._on_goal, preempt=self._preempt, on_goal_restored=self.handles.append
        )

    def save_state(self) -> dict[str, Any]:
        """The node's state, and when it was saved."""
        return {**super().save_state(), "saved_ns": self.now_ns}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Take the goals under way up again; ``handles`` holds only those then."""
        self.handles.clear()
        super().load_state(saved)
        for handle in self.handles:
            self._follow(handle, self._outcome(handle.goal, self._outcome_of[handle.id.hex()]), saved["saved_ns"])

    def _outcome(self, goal: Any, number: int) -> Outcome:
        if isinstance(self.script, Sequence):
            return self.script[min(number, len(self.script) - 1)]
        return self.script(goal) if callable(self.script) else self.script

    def _on_goal(self, handle: GoalHandle) -> None:
        self.goals.append(handle.goal)
        self._outcome_of[handle.id.hex()] = self._count
        outcome = self._outcome(handle.goal, self._count)
        self._count += 1
        if isinstance(outcome, Reject):
            handle.reject(outcome.reason, outcome.cause)
            return
        handle.accept()
        self.handles.append(handle)
        self._follow(handle, outcome)

    def _follow(self, handle: GoalHandle, outcome: Outcome, done_ns: int = -1) -> None:
        """Schedule what comes of an accepted goal after ``done_ns``, up to which everything has happened."""
        handle.on_cancel = self._on_cancel
        if not isinstance(outcome, Succeed | Abort):
            return
        steps: list[tuple[float, Callable[[], None]]] = []
        if isinstance(outcome, Succeed):
            share = outcome.after / (len(outcome.feedback) + 1)
            steps = [(share * k, partial(handle.publish_feedback, item)) for k, item in enumerate(outcome.feedback, 1)]
        steps.append((outcome.after, partial(self._end, handle, outcome)))
        for after, step in steps:
            time_ns = handle.accepted_ns + round(after * 1e9)
            if time_ns > done_ns:
                self.call_after((time_ns - self.now_ns) * 1e-9, step, restored_by_node=True)

    def _end(self, handle: GoalHandle, outcome: Succeed | Abort) -> None:
        if not handle.is_active:
            return
        result = self._type.Result() if outcome.result is None else outcome.result
        if isinstance(outcome, Abort):
            handle.abort(result, outcome.reason, outcome.cause)
            return
        if self._on_end is not None:
            self._on_end(handle.goal)
        handle.succeed(result)

    def _on_cancel(self, handle: GoalHandle) -> None:
        self.canceled.append(handle.goal)
        handle.set_canceled(self._type.Result(), "canceled as requested")


class FakeService(Node):
    """A service that gives the answer a test decides, and keeps the requests.

    Args:
        service: Its name.
        type_: Its type, e.g. ``srv.Trigger``.
        response: The response, or a function of the request that returns it; None: an empty one.
        refuse: Raised as InputError with this text instead, if not "".

    Attributes:
        requests: What was asked, in order.
    """

    state_fields = ("requests",)

    def __init__(
        self, service: str, type_: Any, response: Any | Callable[[Any], Any] = None, *, refuse: str = ""
    ) -> None:
        super().__init__()
        self._service, self._type, self._response, self.refuse = service, type_, response, refuse
        self.requests: list[Any] = []

    def setup(self) -> None:
        """Offer the service."""
        self.service(self._service, self._type, self._on_request)

    def _on_request(self, request: Any) -> Any:
        self.requests.append(request)
        if self.refuse:
            raise InputError(self.refuse)
        if self._response is None:
            return self._type.Response()
        return self._response(request) if callable(self._response) else self._response


def twist(vx: float = 0.0, wz: float = 0.0, vy: float = 0.0) -> Any:
    """A velocity command: forward and sideways [m/s], turning [rad/s]."""
    return msg.Twist(linear=msg.Vector3(x=vx, y=vy), angular=msg.Vector3(z=wz))
