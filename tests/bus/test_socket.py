"""Other processes reach a run through its socket; nothing they send can harm it."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import roboyard as ry
from roboyard.bus.inputs import Input
from roboyard.bus.socket import Connection, RemoteBus, SocketServer, connect, live_runs
from roboyard.bus.socket.frames import FrameReader
from roboyard.bus.socket.outbox import ANSWERS, MESSAGE_BYTES, Outbox
from roboyard.bus.socket.registry import directory
from roboyard.errors import InputError, RunError, UnknownNameError
from roboyard.messages import serialize


class Robot(ry.Node):
    """in: cmd   out: count"""

    speed: float = ry.param(1.0, low=0.0, high=2.0)

    def setup(self) -> None:
        self.commands: list[tuple[str, str, int]] = []
        self.count = self.publisher("count", ry.msg.Int32)
        self.map = self.publisher("map", ry.msg.String, latched=True)
        self.map.publish(ry.msg.String(data="the map"))
        self.subscribe("cmd", ry.msg.String, self.on_command, with_source=True)
        self.service("greet", ry.srv.Trigger, lambda request: ry.srv.Trigger.Response(success=True, message="hello"))
        self.timer(0.1, self.tick)
        self.ticks = 0

    def on_command(self, message: object, source: str) -> None:
        self.commands.append((message.data, source, self.now_ns))

    def tick(self) -> None:
        self.ticks += 1
        self.count.publish(ry.msg.Int32(data=self.ticks))


@pytest.fixture(autouse=True)
def private_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


class Live:
    """A run in a thread, at twenty times real time."""

    def __init__(self) -> None:
        self.bus = ry.Bus()
        self.robot = self.bus.add(Robot(), "robot")
        self.server = SocketServer(self.bus, "yard")
        self.bus.executor.pacer.factor = 20.0
        self.thread = Thread(target=lambda: self.bus.executor.run_until(10**16))
        self.thread.start()

    def stop(self) -> None:
        self.bus.executor.stop()
        self.thread.join()
        self.server.close()
        self.bus.close()


@pytest.fixture
def live() -> Iterator[Live]:
    run = Live()
    yield run
    run.stop()


def test_a_run_is_listed_while_it_lives(live: Live) -> None:
    assert [(run.name, run.pid) for run in live_runs()] == [("yard", os.getpid())]
    assert live.server.run.socket.stat().st_mode & 0o777 == 0o600
    assert directory().stat().st_mode & 0o777 == 0o700
    with pytest.raises(UnknownNameError, match=r"no live run 'other' \(live: yard"):
        connect("other")


def test_nothing_live_is_said_so() -> None:
    with pytest.raises(InputError, match="no run is live"):
        connect()


def test_what_a_dead_process_left_is_cleared() -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    entry = directory() / f"{dead.pid}-0.json"
    entry.write_text(json.dumps({"name": "ghost", "pid": dead.pid}))
    assert live_runs() == []
    assert not entry.exists()


def test_subscribing_brings_latched_and_new_messages_with_their_source(live: Live) -> None:
    with connect() as connection:
        connection.subscribe("/map")
        connection.subscribe("/count")
        got = connection.messages(timeout=5.0)
        first = next(got)
        assert (first.topic, first.source, first.message.data) == ("/map", "/robot", "the map")
        numbers = [next(got) for _ in range(5)]
        assert [m.message.data for m in numbers] == list(range(numbers[0].message.data, numbers[0].message.data + 5))
        assert all(m.time_ns == m.message.data * 100_000_000 for m in numbers)


def test_publishing_and_calling_enter_through_the_input_port(live: Live) -> None:
    with connect("yard") as connection:
        connection.publish("/cmd", ry.msg.String(data="go"), source="operator")
        answer = connection.call("/greet", ry.srv.Trigger, ry.srv.Trigger.Request())
        assert answer.success
        assert answer.message == "hello"
        with pytest.raises(RunError, match="nobody serves /nothing"):
            connection.call("/nothing", ry.srv.Trigger, ry.srv.Trigger.Request())
    assert [(text, source) for text, source, _ in live.robot.commands] == [("go", "operator")]
    assert live.bus.topics["/inputs"].count == 3


def test_the_graph_tells_nodes_and_topics_and_control_pauses(live: Live) -> None:
    with connect() as connection:
        picture = connection.graph()
        assert {"/robot", "/roboyard"} == {node["name"] for node in picture["nodes"]}
        paused = connection.control("pause")
        assert paused["paused"]
        assert connection.graph()["time_ns"] == paused["time"]
        assert not connection.control("resume")["paused"]
        connection.control("rate", rate=0)
        with pytest.raises(RunError, match="unknown control 'dance'"):
            connection.control("dance")
        with pytest.raises(RunError, match="rate -1"):
            connection.control("rate", rate=-1)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200), st.sampled_from(["raw", "framed", "json"]))
def test_garbage_on_the_socket_does_not_disturb_the_run(live: Live, data: bytes, how: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.connect(str(live.server.run.socket))
        if how == "framed":
            data = struct.pack("!II", len(data), 0) + data
        elif how == "json":
            head = json.dumps({"op": data.hex(), "topic": "/cmd"}).encode()
            data = struct.pack("!II", len(head), 0) + head
        sock.sendall(data)
    with connect() as connection:
        assert connection.graph()["nodes"]


def test_malformed_messages_are_refused_logged_and_counted(live: Live) -> None:
    with connect() as connection:
        connection.publish_raw("/cmd", "std_msgs/msg/String", b"\x00\x01\x00\x00\xff\xff\xff\x7f")
        connection.publish_raw("/cmd", "no_msgs/msg/Such", b"")
        connection.publish_raw("/cmd", "std_msgs/msg/Int32", serialize(ry.msg.Int32()))
        connection.publish_raw("not a name", "std_msgs/msg/Int32", serialize(ry.msg.Int32()))
        assert connection.graph()["inputs"]["refused"] == 4
    assert live.robot.commands == []


def test_a_slow_reader_loses_messages_not_the_run(live: Live) -> None:
    live.bus.executor.pacer.factor = 0.0
    with Connection(live.server.run) as lazy, connect() as other:
        lazy.subscribe("/count")
        start = other.graph()["time_ns"]
        while other.graph()["time_ns"] < start + 2_000 * 10**9:
            pass
        numbers = [received.message.data for received, _ in zip(lazy.messages(5.0), range(5_000), strict=False)]
    assert numbers == sorted(set(numbers))
    assert numbers[-1] - numbers[0] > len(numbers)


def test_recorded_inputs_repeat_the_run_exactly() -> None:
    def run(live_inputs: bool, recorded: list[tuple[int, Input]]) -> tuple[list[object], list[tuple[int, Input]]]:
        inputs: list[tuple[int, Input]] = []
        with ry.Bus() as bus:
            robot = bus.add(Robot(), "robot")

            def tap(topic: object, m: object, node: str, time_ns: int) -> None:
                if topic.name == "/inputs":
                    inputs.append((time_ns, Input(m.kind, m.target, m.type, m.source, bytes(m.data))))

            bus.tap(tap)
            bus.inputs.schedule(recorded)
            if live_inputs:
                for time_ns, text in ((250_000_000, "a"), (300_000_000, "b"), (300_000_000, "c")):
                    data = serialize(ry.msg.String(data=text))
                    item = Input("publish", "/cmd", "std_msgs/msg/String", "me", data)
                    bus.executor.at(time_ns, lambda item=item: bus.inputs.push(item) and None)
            bus.executor.run_for(1.0)
            return robot.commands, inputs

    commands, inputs = run(True, [])
    assert [c[0] for c in commands] == ["a", "b", "c"]
    assert run(False, inputs) == (commands, inputs)


REMOTE = """
import roboyard as ry
from roboyard.bus.socket import RemoteBus

class Echo(ry.Node):
    def setup(self):
        self.out = self.publisher("cmd", ry.msg.String)
        self.subscribe("count", ry.msg.Int32, self.on_count)
        self.greet = self.service_client("greet", ry.srv.Trigger)
        self.ticks = self.heard = 0
        self.timer(0.5, self.tick)
        self.greet.call(ry.srv.Trigger.Request()).then(lambda f: self.out.publish(ry.msg.String(data=f.result.message)))
    def tick(self):
        self.ticks += 1
    def on_count(self, message):
        self.out.publish(ry.msg.String(data=f"{message.data} {self.ticks}"))
        self.heard += 1
        if self.heard >= 20:
            raise SystemExit

bus = RemoteBus("yard")
bus.add(Echo(), "echo")
bus.spin(timeout=10)
"""


def test_a_node_in_another_process_takes_part(live: Live) -> None:
    subprocess.run([sys.executable, "-c", REMOTE], check=True, timeout=60)
    texts = [text for text, source, _ in live.robot.commands if source == "/echo"]
    assert "hello" in texts
    pairs = [tuple(int(value) for value in text.split()) for text in texts if text != "hello"]
    assert len(pairs) >= 15
    # the remote timer of 0.5 s ticked with the run's clock, on which five counts are 0.5 s
    (first_count, first_ticks), (last_count, last_ticks) = pairs[0], pairs[-1]
    assert abs((last_count - first_count) / 5 - (last_ticks - first_ticks)) <= 1


def test_a_remote_bus_needs_a_run() -> None:
    with pytest.raises(InputError, match="no run is live"):
        RemoteBus()


# -- what harms nobody ---------------------------------------------------------------------------------------------
def frame(header: bytes, payload: bytes = b"") -> bytes:
    return struct.pack("!II", len(header), len(payload)) + header + payload


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (struct.pack("!II", 2**32 - 1, 2**32 - 1), "a frame claims 4294967295"),
        (frame(b"[" * 1_000_000), "is not JSON"),
        (frame(b"\xff\xfe"), "is not JSON"),
        (frame(b"[1]"), "has no 'op'"),
        (frame(b'{"op": 3}'), "has no 'op'"),
        (frame(b'{"op": "dance"}'), "unknown operation 'dance'"),
        (frame(b'{"op": "publish", "topic": "/x"}'), "'publish' lacks 'type'"),
        (frame(json.dumps({"op": "publish", "topic": "/x", "type": "a", "source": "\ud800"}).encode()), "printable"),
        (frame(json.dumps({"op": "publish", "topic": "/x", "type": "a", "source": "x" * 10**6}).encode()), "printable"),
        (frame(b'{"op": "control", "do": "rate", "rate": NaN}'), "rate nan"),
        (frame(b'{"op": "control", "do": "rate", "rate": "fast"}'), "rate 'fast'"),
        (frame(b'{"op": "control", "do": "step", "count": 0}'), "0 steps"),
        (frame(b'{"op": "join", "node": "/robot"}'), "takes part in the run already"),
    ],
)
def test_who_sends_nonsense_is_told_what_is_wrong(
    live: Live, sent: bytes, said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(10.0)
        sock.connect(str(live.server.run.socket))
        sock.sendall(sent)
        reader = FrameReader(sock)
        assert reader.receive()[0]["op"] == "hello"
        answer, _ = reader.receive()
        assert answer["op"] == "error"
        assert said in answer["error"]
    with connect() as connection:
        assert connection.graph()["nodes"]
    assert capfd.readouterr().err == ""


@given(st.lists(st.tuples(st.dictionaries(st.text(max_size=3), st.integers(), max_size=3), st.binary(max_size=50))),
       st.lists(st.integers(1, 40), min_size=1))  # fmt: skip
def test_frames_arrive_whole_however_they_are_cut(sent: list[tuple[dict[str, int], bytes]], cuts: list[int]) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        data, wanted = b"", [({**header, "op": "x"}, payload) for header, payload in sent]
        for header, payload in wanted:
            data += frame(json.dumps(header).encode(), payload)
        reader, got = FrameReader(ours), []
        ours.settimeout(0.0)
        at, turn = 0, 0
        while at < len(data):
            size = cuts[turn % len(cuts)]
            theirs.sendall(data[at : at + size])
            at, turn = at + size, turn + 1
            with suppress(BlockingIOError):  # as a time-out in the middle of a frame
                while True:
                    got.append(reader.receive())
        theirs.close()
        assert got == wanted
        assert reader.receive() is None


def test_a_client_that_does_not_read_costs_little_memory() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        outbox = Outbox(ours, "out")
        for number in range(200):
            outbox.message({"op": "message", "number": number}, bytes(1_000_000))
        for number in range(50):
            outbox.answer({"op": "done", "id": number})
        assert sum(len(payload) for _, payload, _ in outbox._waiting) <= MESSAGE_BYTES
        outbox.finish()
        theirs.settimeout(10.0)
        reader, answers, numbers = FrameReader(theirs), [], []
        while (got := reader.receive()) is not None:
            (answers.append(got[0]["id"]) if got[0]["op"] == "done" else numbers.append(got[0]["number"]))
            if len(answers) == 50 and numbers[-1] == 199:
                break
        assert answers == list(range(50))
        assert numbers == sorted(set(numbers))
        assert len(numbers) + outbox.lost == 200
        outbox.join(5.0)


def test_who_asks_for_ever_and_never_reads_is_let_go() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        outbox = Outbox(ours, "out")
        for _ in range(3 * ANSWERS):
            outbox.answer({"op": "graph", "graph": "x" * 1000})
        assert outbox.closed


def test_the_answer_to_stop_always_arrives() -> None:
    for _ in range(20):
        run = Live()
        with connect() as connection:
            thread = Thread(target=lambda run=run: (run.thread.join(), run.stop()))
            thread.start()
            assert connection.control("stop")["time"] >= 0
            thread.join()


def test_two_runs_of_one_name_are_told_apart_by_their_process(live: Live, tmp_path: Path) -> None:
    script = (
        "import roboyard as ry\nfrom roboyard.bus.socket import SocketServer\nwith ry.Bus() as bus:\n"
        "    server = SocketServer(bus, 'yard')\n    print('up', flush=True)\n    input()\n    server.close()"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        with pytest.raises(InputError, match=f"several runs 'yard' are live.*process id.*pid {other.pid}"):
            connect("yard")
        with pytest.raises(InputError, match="several runs are live"):
            connect()
        with connect(str(os.getpid())) as connection:
            assert connection.graph()["nodes"]
        other.stdin.write(b"\n")
        other.stdin.flush()
        other.wait(30)
    assert connect("yard").close() is None


@pytest.mark.parametrize("kind", ["missing", "a file", "too long"])
def test_an_odd_runtime_folder_is_no_hindrance(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = {"missing": tmp_path / "none", "a file": tmp_path / "file", "too long": tmp_path / ("x" * 120)}[kind]
    if kind == "a file":
        base.write_text("")
    elif kind == "too long":
        base.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(base))
    with tempfile.TemporaryDirectory() as short:
        monkeypatch.setattr(tempfile, "tempdir", short)
        with ry.Bus() as bus:
            server = SocketServer(bus, "yard")
            assert server.run.socket.is_relative_to(short)
            assert [run.name for run in live_runs()] == ["yard"]
            server.close()
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / ("y" * 120)))
        with ry.Bus() as bus, pytest.raises(RunError, match="no folder for the run's socket"):
            SocketServer(bus, "yard")


def test_a_socket_left_by_a_process_of_the_same_number_is_no_hindrance() -> None:
    (directory() / f"{os.getpid()}-0.sock").write_text("")
    with ry.Bus() as bus:
        SocketServer(bus, "yard").close()
