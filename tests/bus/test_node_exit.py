"""A node that calls ``sys.exit`` causes a `NodeError` that names the node, in each callback and for each exit code."""

import sys
from collections.abc import Callable

import pytest

import roboyard as ry
from roboyard.bus import NodeError
from roboyard.messages import srv


class ExitingNode(ry.Node):
    """A node that calls ``sys.exit`` on one trigger."""

    def __init__(self, trigger: str, code: object = 0) -> None:
        super().__init__()
        self.trigger = trigger
        self.code = code

    def setup(self) -> None:
        trigger = self.trigger
        self.subscribe("word", ry.msg.String, self.exit if trigger == "topic" else lambda message: None)
        if trigger == "setup":
            self.exit()
        elif trigger == "timer":
            self.timer(0.1, self.exit)
        elif trigger == "one-shot":
            self.call_after(0.1, self.exit)
        elif trigger == "topic":
            word = self.publisher("word", ry.msg.String)
            self.call_after(0.1, lambda: word.publish(ry.msg.String(data="go")))
        elif trigger == "service":
            self.service("exit", srv.Trigger, self.exit)
            client = self.service_client("exit", srv.Trigger)
            self.call_after(0.1, lambda: client.call(srv.Trigger.Request()) and None)
        elif trigger == "response":
            self.service("answer", srv.Trigger, lambda request: srv.Trigger.Response())
            client = self.service_client("answer", srv.Trigger)
            self.call_after(0.1, lambda: client.call(srv.Trigger.Request()).add_done_callback(self.exit))
        elif trigger == "offloaded":
            self.offload(sys.exit, self.code, latency=0.1, on_done=lambda work: None)

    def close(self) -> None:
        if self.trigger == "close":
            self.exit()

    def exit(self, *_: object) -> None:
        sys.exit(self.code)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "trigger", ["setup", "timer", "one-shot", "topic", "service", "response", "offloaded", "close"]
)
def test_sys_exit_in_a_node_is_an_error_that_names_the_node(trigger: str) -> None:
    def run() -> None:
        with ry.Bus() as bus:
            bus.add(ExitingNode(trigger), "leaver")
            bus.executor.run_for(1.0)

    with pytest.raises(NodeError, match=r"node /leaver, .*: called sys\.exit\(0\) \(.*until") as caught:
        run()
    assert caught.value.node == "/leaver"


@pytest.mark.parametrize(
    ("code", "call"), [(None, r"sys\.exit\(\)"), (3, r"sys\.exit\(3\)"), ("bye", r"sys\.exit\('bye'\)")]
)
def test_error_states_the_argument_of_sys_exit(code: object, call: str) -> None:
    with ry.Bus() as bus:
        bus.add(ExitingNode("timer", code), "leaver")
        with pytest.raises(NodeError, match=call):
            bus.executor.run_for(1.0)


@pytest.mark.parametrize("exception", [KeyboardInterrupt, GeneratorExit])
def test_interrupt_in_a_node_is_no_node_error(exception: type[BaseException]) -> None:
    def interrupt() -> None:
        raise exception

    class Node(ry.Node):
        def setup(self) -> None:
            self.timer(0.1, interrupt)

    with ry.Bus() as bus:
        bus.add(Node(), "node")
        with pytest.raises(exception):
            bus.executor.run_for(1.0)


class NodeExitingOnSave(ry.Node):
    """A node that calls ``sys.exit`` in ``save_state``."""

    def save_state(self) -> dict[str, object]:
        sys.exit(0)


class NodeExitingOnCopy(ry.Node):
    """A node with an attribute that calls ``sys.exit`` when it is copied."""

    class Attribute:
        """A value that cannot be copied."""

        def __deepcopy__(self, memo: object) -> object:
            sys.exit(0)

    state_fields = ("attribute",)
    attribute = Attribute()


@pytest.mark.parametrize("kind", [NodeExitingOnSave, NodeExitingOnCopy])
def test_sys_exit_on_save_is_an_error_that_names_the_node(kind: type[ry.Node]) -> None:
    with ry.Bus() as bus:
        bus.add(kind(), "node")
        with pytest.raises(ry.RoboyardError, match=r"node /node: cannot be saved: .*called sys\.exit\(0\)"):
            bus.save_state()


def test_other_nodes_are_closed_when_one_exits() -> None:
    closed: list[str] = []

    def record_close(name: str) -> Callable[[], None]:
        return lambda: closed.append(name)

    bus = ry.Bus()
    for name in ("first", "last"):
        node = ExitingNode("nothing")
        node.close = record_close(name)  # type: ignore[method-assign]
        bus.add(node, name)
        if name == "first":
            bus.add(ExitingNode("close"), "leaver")
    with pytest.raises(NodeError, match=r"node /leaver, close"):
        bus.close()
    assert closed == ["last", "first"]
