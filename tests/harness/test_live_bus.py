"""A live bus answers in its own thread and ends; the command line ends alike in this process and in another."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.harness.live_bus import LiveBus, run_cli, spawn_cli

from roboyard.bus import Node, NodeError
from roboyard.bus.socket import RemoteBus, connect, live_runs
from roboyard.messages import msg


class Counter(Node):
    """Publishes 1, 2, 3, … at 10 Hz, and fails at a number."""

    def __init__(self, fails_at: int = -1) -> None:
        super().__init__()
        self.count, self.fails_at = 0, fails_at

    def setup(self) -> None:
        self.out = self.publisher("count", msg.Int32)
        self.timer(0.1, self.tick)

    def tick(self) -> None:
        self.count += 1
        if self.count == self.fails_at:
            raise ValueError("enough")
        self.out.publish(msg.Int32(data=self.count))


@pytest.fixture(autouse=True)
def private_runtime_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


def test_live_bus_is_reachable_until_it_stops() -> None:
    with LiveBus((Counter(), "counter"), name="bench", warm_up=5.0) as live:
        assert [run.name for run in live_runs()] == ["bench"]
        with connect("bench") as connection:
            connection.subscribe("/count")
            assert next(connection.messages(10.0)).message.data > 50
        live.wait_until(lambda: live.bus.nodes["/counter"].count >= 60)
        assert live.in_run(lambda: live.bus.nodes["/counter"].count) >= 60
        live.wait_for_time(7.0)
        assert live.in_run(lambda: live.bus.now_ns) >= 7 * 10**9
        with RemoteBus("bench") as remote, connect("bench") as connection:
            assert "/counter" in {node["name"] for node in connection.graph()["nodes"]}
            assert remote.now_ns > 0
    assert live_runs() == []
    live.stop()


def test_live_bus_ends_after_a_condition() -> None:
    with LiveBus((Counter(), "counter")) as live:
        live.end_after(lambda: live.is_subscribed("/count"), 0.5)
        with connect() as connection:
            connection.subscribe("/count")
            counts = [received.message.data for received in connection.messages()]
            assert connection.has_ended
        assert len(counts) in (5, 6)
        live.thread.join()
        assert live_runs() == []
        assert live.bus.nodes["/counter"].count == counts[-1]


def test_in_run_raises_what_the_question_raises() -> None:
    with LiveBus((Counter(), "counter")) as live:
        with pytest.raises(ZeroDivisionError):
            live.in_run(lambda: 1 / 0)
        assert live.in_run(lambda: 7) == 7


def test_wait_until_gives_up() -> None:
    with LiveBus((Counter(), "counter")) as live:
        with pytest.raises(TimeoutError, match="did not hold"):
            live.wait_until(lambda: False, timeout=0.1)
        assert live.in_run(lambda: 7) == 7


def test_stop_raises_the_error_that_ended_the_run() -> None:
    live = LiveBus((Counter(fails_at=3), "counter"))
    live.thread.join(30.0)
    with pytest.raises(NodeError, match="enough"):
        live.stop()


@pytest.mark.parametrize(
    ("words", "code", "out", "error"),
    [
        (["--version"], 0, "roboyard", None),
        (["check", "no-such-scenario"], 2, "", "no-such-scenario"),
        (["no-such-verb"], 2, "", "no-such-verb"),
    ],
    ids=["version", "bad input", "unknown verb"],
)
def test_commands_end_alike_here_and_in_another_process(
    words: list[str], code: int, out: str, error: str | None
) -> None:
    results = [run_cli(*words), spawn_cli(*words)]
    assert results[0] == results[1]
    assert results[0].code == code
    assert out in results[0].out
    if error is None:
        assert results[0].err == ""
    else:
        assert error in results[0].err


def test_json_output_is_parsed() -> None:
    result = run_cli("list", "scenarios", "--json")
    assert result.code == 0
    assert result.json


def test_error_wants_one_line_without_traceback() -> None:
    failed = run_cli("check", "no-such-scenario")
    assert failed.error.startswith("error:")
    with pytest.raises(ValueError, match="not enough values"):
        _ = run_cli("--version").error
