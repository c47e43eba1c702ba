"""Laws of arbitration, by random walks through commands, time, locks and leaving publishers."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from roboyard.errors import ConfigError
from roboyard.safety import Arbiter, ArbitrationConfig, ArbitrationDecision, CommandSource

SECOND = 1_000_000_000
STOP = "stop"
CONFIG = ArbitrationConfig(
    sources=(
        CommandSource("teleop", priority=100, timeout=0.5),
        CommandSource("/desk/pilot", priority=100, timeout=1.0),
        CommandSource("navigator", priority=50, timeout=0.3),
        CommandSource("homing", priority=50, timeout=2.0),
    ),
    unknown=CommandSource("unknown", priority=1, timeout=0.2),
)
PUBLISHERS = ("/rover/teleop", "/desk/pilot", "/other/pilot", "/rover/navigator", "/rover/homing", "/somebody")


class Arbitration(RuleBasedStateMachine):
    """Beside the arbiter a plain model: each publisher's last command, when it came, and its rule."""

    def __init__(self) -> None:
        super().__init__()
        self.arbiter: Arbiter[str] = Arbiter(CONFIG, STOP)
        self.now = 0
        self.count = 0
        self.last: dict[str, tuple[int, str]] = {}
        self.output = STOP
        self.locks: dict[str, int] = {}

    def eligible_priorities(self) -> dict[str, int]:
        """Publishers that count now, with their priorities, by the definition."""
        level = max(self.locks.values(), default=-1)
        priorities = {}
        for name, (sent, _) in self.last.items():
            source = CONFIG.find_source(name)
            assert source is not None
            if self.now - sent < round(source.timeout * 1e9) and source.priority > level:
                priorities[name] = source.priority
        return priorities

    def check_decision(self, decision: ArbitrationDecision[str], previous_owner: str | None) -> None:
        assert decision.owner == self.arbiter.owner
        assert decision.changed == (previous_owner != decision.owner)
        assert decision.stop == (previous_owner is not None and decision.owner is None)
        if decision.output is not None:
            self.output = decision.output
        eligible = self.eligible_priorities()
        if previous_owner in eligible and decision.owner != previous_owner:
            assert decision.owner is not None
            assert eligible[decision.owner] > eligible[previous_owner], (
                "only a higher priority may take over from a live owner"
            )

    @rule(publisher=st.sampled_from(PUBLISHERS))
    def command(self, publisher: str) -> None:
        before = self.arbiter.owner
        self.count += 1
        command = f"{publisher}#{self.count}"
        self.last[publisher] = (self.now, command)
        decision = self.arbiter.submit(publisher, command, self.now)
        self.check_decision(decision, before)
        if decision.owner == publisher:
            assert decision.output == command, "the owner's commands pass at once"

    @rule(milliseconds=st.integers(1, 700))
    def wait(self, milliseconds: int) -> None:
        """Time passes; whoever runs the arbiter calls ``expire`` at the deadline."""
        end = self.now + milliseconds * 1_000_000
        while (deadline := self.arbiter.deadline_ns) is not None and deadline <= end:
            assert deadline > self.now or self.now == end
            self.now = max(self.now, deadline)
            before = self.arbiter.owner
            self.check_decision(self.arbiter.expire(self.now), before)
        self.now = end

    @rule(name=st.sampled_from(("stop", "bumper")), level=st.sampled_from((0, 50, 255)))
    def lock(self, name: str, level: int) -> None:
        before = self.arbiter.owner
        self.locks[name] = level
        self.check_decision(self.arbiter.lock(name, level, self.now), before)

    @precondition(lambda self: self.locks)
    @rule(name=st.sampled_from(("stop", "bumper")))
    def unlock(self, name: str) -> None:
        before = self.arbiter.owner
        self.locks.pop(name, None)
        self.check_decision(self.arbiter.unlock(name, self.now), before)

    @rule(publisher=st.sampled_from(PUBLISHERS))
    def leave(self, publisher: str) -> None:
        before = self.arbiter.owner
        self.last.pop(publisher, None)
        self.check_decision(self.arbiter.release(publisher, self.now), before)

    @rule()
    def saved_and_loaded(self) -> None:
        state = self.arbiter.save_state()
        self.arbiter = Arbiter(CONFIG, STOP)
        self.arbiter.load_state(state)

    @invariant()
    def the_owner_is_a_live_one_of_the_highest_priority(self) -> None:
        eligible, owner = self.eligible_priorities(), self.arbiter.owner
        assert (owner is None) == (not eligible)
        if owner is not None:
            assert eligible[owner] == max(eligible.values())

    @invariant()
    def the_output_is_the_owners_newest_command_or_stop(self) -> None:
        owner = self.arbiter.owner
        assert self.output == (STOP if owner is None else self.last[owner][1])

    @invariant()
    def ownership_ends_in_bounded_time(self) -> None:
        deadline = self.arbiter.deadline_ns
        if deadline is not None:
            assert self.now < deadline <= self.now + 2 * SECOND


Arbitration.TestCase.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)
TestArbitration = Arbitration.TestCase


def test_equal_priority_waits_for_timeout_then_inherits() -> None:
    arbiter: Arbiter[str] = Arbiter(CONFIG, STOP)
    assert arbiter.submit("/navigator", "n1", 0).owner == "/navigator"
    first = arbiter.submit("/homing", "h1", SECOND // 10)
    assert (first.output, first.owner) == (None, "/navigator")
    second = arbiter.expire(3 * SECOND // 10)
    assert (second.output, second.owner, second.changed) == ("h1", "/homing", True)
    assert arbiter.submit("/navigator", "n2", 4 * SECOND // 10).output is None


def test_lapsed_owner_queues_behind_its_equals() -> None:
    arbiter: Arbiter[str] = Arbiter(CONFIG, STOP)
    arbiter.submit("/navigator", "n1", 0)
    arbiter.submit("/homing", "h1", 1)
    late = arbiter.submit("/navigator", "n2", SECOND)
    assert (late.output, late.owner) == ("h1", "/homing")


def test_arbiter_stops_once_when_all_sources_are_silent() -> None:
    arbiter: Arbiter[str] = Arbiter(CONFIG, STOP)
    arbiter.submit("/teleop", "t", 0)
    assert arbiter.expire(SECOND // 2) == ArbitrationDecision(STOP, None, changed=True, stop=True)
    assert arbiter.expire(SECOND) == ArbitrationDecision(None, None)


def test_unknown_sources_can_be_refused() -> None:
    arbiter: Arbiter[str] = Arbiter(ArbitrationConfig((CommandSource("teleop"),), unknown=None), STOP)
    assert arbiter.submit("/stranger", "s", 0) == ArbitrationDecision(None, None)
    assert arbiter.submit("/teleop", "t", 0).output == "t"


def test_lock_stops_at_once_and_live_sources_return() -> None:
    arbiter: Arbiter[str] = Arbiter(CONFIG, STOP)
    arbiter.submit("/homing", "h", 0)
    assert arbiter.lock("stop", 255, 1).stop
    assert arbiter.submit("/homing", "h2", 2).output is None
    assert arbiter.unlock("stop", 3).output == "h2"


@pytest.mark.parametrize("bad", [{"name": ""}, {"name": "a", "timeout": 0.0}, {"name": "a", "timeout": float("inf")}])
def test_invalid_sources_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        CommandSource(**bad)  # type: ignore[arg-type]


def test_duplicate_source_name_is_refused() -> None:
    with pytest.raises(ConfigError, match="teleop"):
        ArbitrationConfig((CommandSource("teleop"), CommandSource("teleop", 3)))
